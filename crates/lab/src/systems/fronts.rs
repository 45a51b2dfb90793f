//! What stands between clients and a broker: a bare relay, our proxy, Kroxylicious. Each is called
//! `proxy` among the measured processes.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::{ProcessSpec, Ready};
use moldau_load::relay;
use moldau_measure::Error;

/// Role of whatever stands between.
pub const FRONT_ROLE: &str = "proxy";

/// Where a front listens.
#[derive(Clone, Copy, Debug)]
pub struct FrontAddresses {
    /// Where clients connect first.
    pub bootstrap: SocketAddr,
    /// Where they reach the cluster's only broker.
    pub broker: SocketAddr,
    /// Where our proxy has its admin pages.
    pub admin: SocketAddr,
}

/// A key encryption key for every topic, in the in-memory service that Kroxylicious and our proxy
/// have in common, so that both wrap data keys alike.
#[derive(Clone, Copy, Debug)]
pub struct LabKey([u8; 32]);

impl LabKey {
    /// Its alias, which is the template too.
    pub const ALIAS: &'static str = "KEK_lab";

    /// Its id.
    pub const UUID: &'static str = "6d6f6c64-6175-4c61-8b00-000000000001";

    /// The key of a seed; it protects nothing but random bytes.
    #[must_use]
    pub fn of(seed: u64) -> Self {
        let mut key = [0; 32];
        fastrand::Rng::with_seed(seed).fill(&mut key);
        Self(key)
    }

    /// The key in base64.
    #[must_use]
    pub fn text(self) -> String {
        BASE64.encode(self.0)
    }
}

/// Where Kroxylicious lies.
#[derive(Clone, Debug)]
pub struct Kroxylicious {
    /// The `java` executable.
    pub java: PathBuf,
    /// A directory with its jars in `lib` and the class `KroxyliciousLauncher` in `classes`.
    pub directory: PathBuf,
}

impl Kroxylicious {
    /// Its version, by the name of its main jar; `None` where the directory lacks that or the
    /// launcher.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        self.directory.join("classes/KroxyliciousLauncher.class").is_file().then_some(())?;
        // A directory that cannot be read has no jar either.
        let mut files = fs::read_dir(self.directory.join("lib")).ok()?.flatten();
        files.find_map(|file| {
            let name = file.file_name();
            let rest = name.to_str()?.strip_prefix("kroxylicious-runtime-")?;
            Some(rest.strip_suffix(".jar")?.to_string())
        })
    }
}

/// [`relay::run`] as a process.
#[must_use]
pub fn bare_relay(program: &Path, listen: SocketAddr, upstream: SocketAddr) -> ProcessSpec {
    let arguments = ["--listen", &listen.to_string(), "--to", &upstream.to_string()];
    ProcessSpec {
        role: FRONT_ROLE.into(),
        program: program.into(),
        args: relay::ARGUMENTS.iter().chain(&arguments).map(Into::into).collect(),
        env: Vec::new(),
        ready: Ready::Tcp(listen),
    }
}

/// `moldau proxy` with one virtual cluster before `upstream`, given as the value of its key, and
/// with further keys of the virtual cluster, given as YAML lines. Its configuration is written to
/// `directory`.
///
/// # Errors
/// [`Error::Machine`] when the configuration cannot be written.
pub fn moldau_proxy(
    program: &Path,
    directory: &Path,
    addresses: FrontAddresses,
    upstream: &str,
    keys: &str,
) -> Result<ProcessSpec, Error> {
    let path = directory.join("proxy.yaml");
    write(&path, &moldau_yaml(addresses, upstream, keys))?;
    Ok(ProcessSpec {
        role: FRONT_ROLE.into(),
        program: program.into(),
        args: vec!["proxy".into(), "--config".into(), path.into()],
        env: Vec::new(),
        ready: Ready::Http(addresses.admin, "/readyz".into()),
    })
}

fn moldau_yaml(addresses: FrontAddresses, upstream: &str, keys: &str) -> String {
    let FrontAddresses { bootstrap, broker, admin } = addresses;
    let port = broker.port();
    let cluster = format!(
        "admin: {admin}\n\
         virtual_clusters:\n\
         \x20 - name: lab\n\
         \x20   bootstrap: {bootstrap}\n\
         \x20   upstream: {upstream}\n\
         \x20   broker_port_start: {port}\n"
    );
    keys.lines().fold(cluster, |yaml, line| yaml + "    " + line + "\n")
}

/// Kroxylicious with a heap of 512 MiB and one virtual cluster before `upstream`, whose only broker
/// has this node id; it seals the values of all topics if there is a key. Its configuration is
/// written to `directory`.
///
/// # Errors
/// [`Error::Machine`] when the configuration cannot be written.
pub fn kroxylicious_proxy(
    installation: &Kroxylicious,
    directory: &Path,
    addresses: FrontAddresses,
    upstream: SocketAddr,
    node: u16,
    key: Option<LabKey>,
) -> Result<ProcessSpec, Error> {
    let path = directory.join("kroxylicious.yaml");
    write(&path, &kroxylicious_yaml(addresses, upstream, node, key))?;
    let mut class_path = installation.directory.join("lib/*").into_os_string();
    class_path.push(":");
    class_path.push(installation.directory.join("classes"));
    Ok(ProcessSpec {
        role: FRONT_ROLE.into(),
        program: installation.java.clone(),
        args: vec![
            "-Xmx512m".into(),
            "-cp".into(),
            class_path,
            "KroxyliciousLauncher".into(),
            path.into(),
        ],
        env: Vec::new(),
        ready: Ready::Tcp(addresses.bootstrap),
    })
}

fn kroxylicious_yaml(
    addresses: FrontAddresses,
    upstream: SocketAddr,
    node: u16,
    key: Option<LabKey>,
) -> String {
    let FrontAddresses { bootstrap, broker, .. } = addresses;
    let (host, port) = (broker.ip(), broker.port());
    let (alias, uuid) = (LabKey::ALIAS, LabKey::UUID);
    let filter = key.map_or_else(String::new, |key| {
        format!(
            "filterDefinitions:\n\
             \x20 - name: encryption\n\
             \x20   type: RecordEncryption\n\
             \x20   config:\n\
             \x20     kms: UnitTestingKmsService\n\
             \x20     kmsConfig:\n\
             \x20       numIvBytes: 12\n\
             \x20       numAuthBits: 128\n\
             \x20       existingKeks:\n\
             \x20         - uuid: {uuid}\n\
             \x20           alias: {alias}\n\
             \x20           algorithm: AES\n\
             \x20           key: {}\n\
             \x20     selector: TemplateKekSelector\n\
             \x20     selectorConfig:\n\
             \x20       template: {alias}\n\
             \x20     unresolvedKeyPolicy: REJECT\n\
             defaultFilters: [encryption]\n",
            key.text()
        )
    });
    format!(
        "{filter}virtualClusters:\n\
         \x20 - name: lab\n\
         \x20   targetCluster:\n\
         \x20     bootstrapServers: {upstream}\n\
         \x20   gateways:\n\
         \x20     - name: loopback\n\
         \x20       portIdentifiesNode:\n\
         \x20         bootstrapAddress: {bootstrap}\n\
         \x20         advertisedBrokerAddressPattern: {host}\n\
         \x20         nodeStartPort: {port}\n\
         \x20         nodeIdRanges:\n\
         \x20           - name: brokers\n\
         \x20             start: {node}\n\
         \x20             end: {node}\n"
    )
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::machine(format!("writing {}", path.display())))
}

#[cfg(test)]
mod tests;
