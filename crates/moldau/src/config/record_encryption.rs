//! The settings of the filter `record_encryption`, and of the service that has its keys.
//!
//! ```yaml
//! record_encryption:
//!   template: KEK_$(topicName)
//!   kms:
//!     key_file:
//!       path: keys
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use moldau_encryption::{
    AwsAuth, AwsKms, AwsSettings, DataKeys, KekTemplate, KeyFile, KeySettings, Kms, MemoryKek,
    MemoryKms, OnDamage, Recompression, Vault, VaultAuth, VaultSettings,
};
use moldau_proxy::{Filter, RecordEncryption, RecordEncryptionSettings, UnresolvedKey};
use serde::Deserialize;

/// The keys of the filter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Alias of the key of a topic, whose name takes the place of `$(topicName)`.
    template: String,
    /// What becomes of records for a topic whose alias the service does not know. Default `reject`.
    #[serde(default)]
    unresolved_key: OnUnresolvedKey,
    /// What becomes of fetched records that cannot be opened. Default `fail`.
    #[serde(default)]
    damaged_records: OnDamagedRecords,
    /// How rewritten batches are compressed. Default `same_codec`.
    #[serde(default)]
    recompression: Codec,
    /// Records that one data key seals at most. Default 5000000.
    records_per_key_max: Option<u64>,
    /// Seconds after which the next data key is made. Default 3600.
    sealing_key_refresh_s: Option<u64>,
    /// Seconds after which a data key seals no more. Default 7200.
    sealing_key_expiry_s: Option<u64>,
    /// Data keys that are kept to open records. Default 1000.
    opening_keys_max: Option<usize>,
    /// Seconds after which the service is asked again for a key that opens. Default 3600.
    opening_key_refresh_s: Option<u64>,
    /// Seconds after which a key opens no more while the service is down. Default 7200.
    opening_key_expiry_s: Option<u64>,
    /// The key management service.
    kms: Service,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnUnresolvedKey {
    Passthrough,
    #[default]
    Reject,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum OnDamagedRecords {
    #[default]
    Fail,
    Pass,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Codec {
    #[default]
    SameCodec,
    Uncompressed,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Service {
    KeyFile(OfKeyFile),
    Vault(OfVault),
    Aws(OfAws),
    Memory(OfMemory),
}

/// Keys in a file of our own.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfKeyFile {
    /// The file that `moldau proxy keys` writes.
    path: PathBuf,
}

/// Vault's Transit engine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfVault {
    /// URL of the engine, such as `https://vault.example:8200/v1/transit`.
    url: String,
    /// Where the token comes from.
    auth: OfVaultAuth,
    /// Certificates of authorities to trust, in PEM. Default: the system's.
    ca_file: Option<PathBuf>,
    /// Namespace, of Vault Enterprise.
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum OfVaultAuth {
    TokenFile(PathBuf),
    AppRole {
        #[serde(default = "default_app_role_mount")]
        mount: String,
        role_id: String,
        secret_id_file: PathBuf,
    },
    Kubernetes {
        #[serde(default = "default_kubernetes_mount")]
        mount: String,
        role: String,
        #[serde(default = "default_service_account_token")]
        token_file: PathBuf,
    },
}

/// AWS KMS.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfAws {
    /// The region, such as `eu-central-1`.
    region: String,
    /// Where credentials come from.
    auth: OfAwsAuth,
    /// URL of the service. Default: the region's own.
    url: Option<String>,
    /// Certificates of authorities to trust, in PEM. Default: the system's.
    ca_file: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum OfAwsAuth {
    LongTerm {
        access_key_id: String,
        secret_access_key_file: PathBuf,
    },
    WebIdentity {
        role_arn: String,
        #[serde(default = "default_session_name")]
        session_name: String,
        token_file: PathBuf,
        sts_url: Option<String>,
    },
    InstanceMetadata {
        url: Option<String>,
    },
}

/// The keys of Kroxylicious's `UnitTestingKmsService`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfMemory {
    /// The key encryption keys.
    keks: Vec<OfMemoryKek>,
}

/// One key encryption key in memory.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfMemoryKek {
    /// Its id.
    uuid: String,
    /// What topics lead to.
    alias: String,
    /// File with its 32 bytes in base64.
    secret_file: PathBuf,
}

fn default_app_role_mount() -> String {
    "approle".to_owned()
}

fn default_kubernetes_mount() -> String {
    "kubernetes".to_owned()
}

fn default_service_account_token() -> PathBuf {
    "/var/run/secrets/kubernetes.io/serviceaccount/token".into()
}

fn default_session_name() -> String {
    "moldau".to_owned()
}

/// Makes the filter, which asks the service for nothing yet.
///
/// # Errors
/// Names the key of the file that is at fault.
pub(crate) fn filter(settings: Settings) -> anyhow::Result<Arc<dyn Filter>> {
    let keys = key_settings(&settings)?;
    let kms = service(settings.kms).context("kms")?;
    let filter = RecordEncryptionSettings {
        template: KekTemplate::parse(&settings.template)?,
        unresolved_key: match settings.unresolved_key {
            OnUnresolvedKey::Passthrough => UnresolvedKey::Passthrough,
            OnUnresolvedKey::Reject => UnresolvedKey::Reject,
        },
        on_damage: match settings.damaged_records {
            OnDamagedRecords::Fail => OnDamage::Fail,
            OnDamagedRecords::Pass => OnDamage::Pass,
        },
        recompression: match settings.recompression {
            Codec::SameCodec => Recompression::SameCodec,
            Codec::Uncompressed => Recompression::Uncompressed,
        },
    };
    // The pauses between attempts differ from those of other proxies.
    let seed = u64::from(std::process::id());
    Ok(Arc::new(RecordEncryption::new(filter, DataKeys::new(kms, &keys, seed))))
}

fn key_settings(settings: &Settings) -> anyhow::Result<KeySettings> {
    let default = KeySettings::default();
    let seconds = |key: Option<u64>, default: Duration| key.map_or(default, Duration::from_secs);
    let keys = KeySettings {
        records_per_key_max: settings.records_per_key_max.unwrap_or(default.records_per_key_max),
        sealing_key_refresh: seconds(settings.sealing_key_refresh_s, default.sealing_key_refresh),
        sealing_key_expiry: seconds(settings.sealing_key_expiry_s, default.sealing_key_expiry),
        opening_keys_max: settings.opening_keys_max.unwrap_or(default.opening_keys_max),
        opening_key_refresh: seconds(settings.opening_key_refresh_s, default.opening_key_refresh),
        opening_key_expiry: seconds(settings.opening_key_expiry_s, default.opening_key_expiry),
        ..default
    };
    anyhow::ensure!(
        keys.records_per_key_max > 0 && keys.records_per_key_max <= RECORDS_PER_KEY_MAX,
        "records_per_key_max: must be 1 to {RECORDS_PER_KEY_MAX}"
    );
    anyhow::ensure!(keys.opening_keys_max > 0, "opening_keys_max: must be at least 1");
    anyhow::ensure!(
        keys.sealing_key_refresh <= keys.sealing_key_expiry,
        "sealing_key_refresh_s: must not be above sealing_key_expiry_s"
    );
    anyhow::ensure!(
        keys.opening_key_refresh <= keys.opening_key_expiry,
        "opening_key_refresh_s: must not be above opening_key_expiry_s"
    );
    Ok(keys)
}

fn service(service: Service) -> anyhow::Result<Arc<dyn Kms>> {
    Ok(match service {
        Service::KeyFile(OfKeyFile { path }) => Arc::new(KeyFile::open(&path)?),
        Service::Vault(OfVault { url, auth, ca_file, namespace }) => {
            let auth = vault_auth(auth);
            Arc::new(Vault::new(&VaultSettings { url, auth, ca_file, namespace })?)
        }
        Service::Aws(OfAws { region, auth, url, ca_file }) => {
            let auth = aws_auth(auth);
            Arc::new(AwsKms::new(&AwsSettings { region, url, auth, ca_file })?)
        }
        Service::Memory(OfMemory { keks }) => {
            let keks = keks.into_iter().map(memory_kek);
            Arc::new(MemoryKms::new(keks.collect::<anyhow::Result<_>>()?))
        }
    })
}

fn vault_auth(auth: OfVaultAuth) -> VaultAuth {
    match auth {
        OfVaultAuth::TokenFile(file) => VaultAuth::TokenFile { file },
        OfVaultAuth::AppRole { mount, role_id, secret_id_file } => {
            VaultAuth::AppRole { mount, role_id, secret_id_file }
        }
        OfVaultAuth::Kubernetes { mount, role, token_file } => {
            VaultAuth::Kubernetes { mount, role, token_file }
        }
    }
}

fn aws_auth(auth: OfAwsAuth) -> AwsAuth {
    match auth {
        OfAwsAuth::LongTerm { access_key_id, secret_access_key_file } => {
            AwsAuth::LongTerm { access_key_id, secret_access_key_file }
        }
        OfAwsAuth::WebIdentity { role_arn, session_name, token_file, sts_url } => {
            AwsAuth::WebIdentity { role_arn, session_name, token_file, sts_url }
        }
        OfAwsAuth::InstanceMetadata { url } => AwsAuth::InstanceMetadata { url },
    }
}

fn memory_kek(kek: OfMemoryKek) -> anyhow::Result<MemoryKek> {
    let OfMemoryKek { uuid, alias, secret_file } = kek;
    let place = || format!("{}", secret_file.display());
    let mut key = std::fs::read_to_string(&secret_file).with_context(place)?;
    key.truncate(key.trim_end().len());
    Ok(MemoryKek::parse(&uuid, &key.into(), &alias)?)
}

/// Values that one key seals at most: with the nonces of the format, two of 2^32 values would
/// collide once in 2^32 keys (NIST SP 800-38D).
const RECORDS_PER_KEY_MAX: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn problem(text: &str) -> String {
        let settings = parse::<Settings>(text)
            .and_then(|settings| filter(settings).map(drop).map_err(|error| format!("{error:#}")));
        settings.unwrap_err()
    }

    #[test]
    fn every_service_is_configured_without_asking_it() {
        let directory = tempfile::tempdir().unwrap();
        let secret = directory.path().join("secret");
        std::fs::write(&secret, format!("{}=\n", "A".repeat(43))).unwrap();
        let keys = directory.path().join("keys");
        KeyFile::init(&keys).unwrap();
        let (secret, keys) = (secret.display(), keys.display());
        for kms in [
            format!("key_file: {{path: {keys}}}"),
            format!(
                "vault: {{url: 'http://localhost:8200/v1/transit', auth: {{token_file: {secret}}}}}"
            ),
            format!(
                "vault: {{url: 'http://localhost:8200/v1/transit', auth: {{app_role: {{role_id: r, \
                 secret_id_file: {secret}}}}}}}"
            ),
            "vault: {url: 'http://localhost:8200/v1/transit', auth: {kubernetes: {role: r}}}"
                .into(),
            format!(
                "aws: {{region: eu-central-1, auth: {{long_term: {{access_key_id: a, \
                 secret_access_key_file: {secret}}}}}}}"
            ),
            format!(
                "aws: {{region: eu-central-1, auth: {{web_identity: {{role_arn: a, \
                 token_file: {secret}}}}}}}"
            ),
            "aws: {region: eu-central-1, auth: {instance_metadata: {}}}".into(),
            format!(
                "memory: {{keks: [{{uuid: 00112233-4455-6677-8899-aabbccddeeff, alias: a, \
                 secret_file: {secret}}}]}}"
            ),
        ] {
            let text = format!("template: $(topicName)\nkms: {{{kms}}}\n");
            let settings = parse::<Settings>(&text).unwrap_or_else(|error| panic!("{text}{error}"));
            filter(settings).unwrap_or_else(|error| panic!("{text}{error:#}"));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let kms = "kms: {memory: {keks: []}}";
        for (text, reason) in [
            ("template: $(topic)\n", "template: "),
            ("template: a\nrecords_per_key_max: 0\n", "records_per_key_max: "),
            ("template: a\nopening_keys_max: 0\n", "opening_keys_max: "),
            ("template: a\nsealing_key_refresh_s: 8000\n", "sealing_key_refresh_s: "),
            ("template: a\nopening_key_expiry_s: 1\n", "opening_key_refresh_s: "),
            ("template: a\ntemplat: a\n", ":2:1: unknown key \"templat\"; did you mean"),
            ("template: a\nunresolved_key: maybe\n", ":2:17: "),
        ] {
            let problem = problem(&format!("{text}{kms}\n"));
            assert!(problem.starts_with(reason), "{text}{problem}");
        }
        let problem = problem("template: a\nkms: {key_file: {path: /nowhere/keys}}\n");
        assert!(problem.starts_with("kms: key file /nowhere/keys: "), "{problem}");
    }
}
