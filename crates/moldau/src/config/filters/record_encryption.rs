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

use moldau_encryption::{
    AwsAuth, AwsKms, AwsSettings, DataKeys, KekTemplate, KeyFile, KeySettings, Kms, MemoryKek,
    MemoryKms, Vault, VaultAuth, VaultSettings,
};
use moldau_filters::{
    OnDamage, Recompression, RecordEncryption, RecordEncryptionSettings, UnresolvedKey,
};
use moldau_proxy::Filter;
use serde::Deserialize;

use crate::config::problem::At;
use crate::config::{Problem, Sources};

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Alias of the key of a topic, whose name takes the place of `$(topicName)`.
    template: At<String>,
    /// Handling of records for a topic whose alias the service does not know. Default `reject`.
    #[serde(default)]
    unresolved_key: OnUnresolvedKey,
    /// Handling of fetched records that cannot be opened. Default `fail`.
    #[serde(default)]
    damaged_records: OnDamagedRecords,
    /// How rewritten batches are compressed. Default `same_codec`.
    #[serde(default)]
    recompression: Codec,
    /// Records that one data key seals at most. Default 5000000.
    records_per_key_max: Option<At<u64>>,
    /// Seconds after which the next data key is made. Default 3600.
    sealing_key_refresh_s: Option<At<u64>>,
    /// Seconds after which a data key seals no more. Default 7200.
    sealing_key_expiry_s: Option<At<u64>>,
    /// Data keys that are kept to open records. Default 1000.
    opening_keys_max: Option<At<usize>>,
    /// Seconds after which the service is asked again for a key that opens. Default 3600.
    opening_key_refresh_s: Option<At<u64>>,
    /// Seconds after which a key opens no more while the service is down. Default 7200.
    opening_key_expiry_s: Option<At<u64>>,
    /// The key management service.
    kms: At<Service>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum OnUnresolvedKey {
    Passthrough,
    #[default]
    Reject,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum OnDamagedRecords {
    #[default]
    Fail,
    Pass,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Codec {
    #[default]
    SameCodec,
    Uncompressed,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Service {
    KeyFile(OfKeyFile),
    Vault(OfVault),
    Aws(OfAws),
    Memory(OfMemory),
}

/// Keys in a file of our own.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfKeyFile {
    /// The file that `moldau proxy keys` writes.
    path: At<PathBuf>,
}

/// Vault's Transit engine.
#[derive(Clone, Debug, Deserialize, PartialEq)]
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

#[derive(Clone, Debug, Deserialize, PartialEq)]
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
#[derive(Clone, Debug, Deserialize, PartialEq)]
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

#[derive(Clone, Debug, Deserialize, PartialEq)]
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
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfMemory {
    /// The key encryption keys.
    keks: Vec<OfMemoryKek>,
}

/// One key encryption key in memory.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct OfMemoryKek {
    /// Its id.
    uuid: At<String>,
    /// What topics lead to.
    alias: String,
    /// File with its 32 bytes in base64.
    secret_file: At<PathBuf>,
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
pub(crate) fn filter(
    settings: Settings,
    sources: &mut Sources,
) -> Result<Arc<dyn Filter>, Problem> {
    let keys = key_settings(&settings)?;
    let template = KekTemplate::parse(&settings.template.value);
    let template = template.map_err(|error| Problem::at(&settings.template, error))?;
    let kms = service(settings.kms, sources)?;
    let filter = RecordEncryptionSettings {
        template,
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

fn key_settings(settings: &Settings) -> Result<KeySettings, Problem> {
    let default = KeySettings::default();
    let seconds = |key: &Option<At<u64>>, default: Duration| {
        key.as_ref().map_or(default, |key| Duration::from_secs(key.value))
    };
    let count = |key: &Option<At<u64>>, default| key.as_ref().map_or(default, |key| key.value);
    let keys_max = settings.opening_keys_max.as_ref().map(|keys| keys.value);
    let keys = KeySettings {
        records_per_key_max: count(&settings.records_per_key_max, default.records_per_key_max),
        sealing_key_refresh: seconds(&settings.sealing_key_refresh_s, default.sealing_key_refresh),
        sealing_key_expiry: seconds(&settings.sealing_key_expiry_s, default.sealing_key_expiry),
        opening_keys_max: keys_max.unwrap_or(default.opening_keys_max),
        opening_key_refresh: seconds(&settings.opening_key_refresh_s, default.opening_key_refresh),
        opening_key_expiry: seconds(&settings.opening_key_expiry_s, default.opening_key_expiry),
        ..default
    };
    if let Some(records) = &settings.records_per_key_max
        && !(1..=RECORDS_PER_KEY_MAX).contains(&records.value)
    {
        let text = format_args!("records_per_key_max: must be 1 to {RECORDS_PER_KEY_MAX}");
        return Err(Problem::at(records, text));
    }
    settings
        .opening_keys_max
        .as_ref()
        .map_or(Ok(()), |keys| crate::config::at_least_one(keys, "opening_keys_max"))?;
    let Settings { sealing_key_refresh_s, sealing_key_expiry_s, .. } = settings;
    let Settings { opening_key_refresh_s, opening_key_expiry_s, .. } = settings;
    for (refresh, expiry, is_wrong, text) in [
        (
            sealing_key_refresh_s,
            sealing_key_expiry_s,
            keys.sealing_key_refresh > keys.sealing_key_expiry,
            "sealing_key_refresh_s: must not be above sealing_key_expiry_s",
        ),
        (
            opening_key_refresh_s,
            opening_key_expiry_s,
            keys.opening_key_refresh > keys.opening_key_expiry,
            "opening_key_refresh_s: must not be above opening_key_expiry_s",
        ),
    ] {
        if is_wrong {
            let key = refresh.as_ref().or(expiry.as_ref());
            let key = key.expect("the defaults fit, so that one of them stands in the file");
            return Err(Problem::at(key, text));
        }
    }
    Ok(keys)
}

fn service(kms: At<Service>, sources: &mut Sources) -> Result<Arc<dyn Kms>, Problem> {
    let place = kms.with(());
    let failed = |error: &dyn std::fmt::Display| Problem::at(&place, format_args!("kms: {error}"));
    Ok(match kms.value {
        Service::KeyFile(OfKeyFile { path }) => {
            sources.add(&path.value);
            Arc::new(KeyFile::open(&path.value).map_err(|error| Problem::at(&path, error))?)
        }
        Service::Vault(OfVault { url, auth, ca_file, namespace }) => {
            ca_file.iter().for_each(|file| sources.add(file));
            let auth = vault_auth(auth);
            let settings = VaultSettings { url, auth, ca_file, namespace };
            Arc::new(Vault::new(&settings).map_err(|error| failed(&error))?)
        }
        Service::Aws(OfAws { region, auth, url, ca_file }) => {
            ca_file.iter().for_each(|file| sources.add(file));
            let auth = aws_auth(auth);
            let settings = AwsSettings { region, url, auth, ca_file };
            Arc::new(AwsKms::new(&settings).map_err(|error| failed(&error))?)
        }
        Service::Memory(OfMemory { keks }) => {
            let keks = keks.into_iter().map(|kek| memory_kek(kek, sources));
            Arc::new(MemoryKms::new(keks.collect::<Result<_, _>>()?))
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

fn memory_kek(kek: OfMemoryKek, sources: &mut Sources) -> Result<MemoryKek, Problem> {
    let OfMemoryKek { uuid, alias, secret_file } = kek;
    let key = sources.secret(&secret_file)?;
    let kek = MemoryKek::parse(&uuid.value, &key, &alias);
    kek.map_err(|error| Problem::at(&uuid, error))
}

/// Values that one key seals at most: with the nonces of the format, two of 2^32 values would
/// collide once in 2^32 keys (NIST SP 800-38D).
const RECORDS_PER_KEY_MAX: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;

    fn problem(text: &str) -> String {
        let made = parse(text).and_then(|settings| filter(settings, &mut Sources::default()));
        made.unwrap_err().to_string()
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
            filter(settings, &mut Sources::default())
                .unwrap_or_else(|error| panic!("{text}{error}"));
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        let kms = "kms: {memory: {keks: []}}";
        for (text, reason) in [
            ("template: $(topic)\n", ":1:11: template: "),
            ("template: a\nrecords_per_key_max: 0\n", ":2:22: records_per_key_max: "),
            ("template: a\nopening_keys_max: 0\n", ":2:19: opening_keys_max: "),
            ("template: a\nsealing_key_refresh_s: 8000\n", ":2:24: sealing_key_refresh_s: "),
            ("template: a\nopening_key_expiry_s: 1\n", ":2:23: opening_key_refresh_s: "),
            ("template: a\ntemplat: a\n", ":2:1: unknown key \"templat\"; did you mean"),
            ("template: a\nunresolved_key: maybe\n", ":2:17: "),
        ] {
            let problem = problem(&format!("{text}{kms}\n"));
            assert!(problem.starts_with(reason), "{text}{problem}");
        }
        let problem = problem("template: a\nkms: {key_file: {path: /nowhere/keys}}\n");
        assert!(problem.starts_with(":2:24: key file /nowhere/keys: "), "{problem}");
    }
}
