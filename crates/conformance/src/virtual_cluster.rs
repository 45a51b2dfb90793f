//! A virtual cluster with record encryption, as Kroxylicious and our proxy are told of it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Value, json};

use crate::process::loopback;

/// Brokers have ids from 0 to this.
const NODE_ID_MAX: u16 = 3;

/// How both find the key of a topic.
const TEMPLATE: &str = "KEK_$(topicName)";

/// A cluster behind a proxy that seals and opens the values of records.
#[derive(Clone, Debug)]
pub struct VirtualCluster {
    /// Its name, in logs.
    pub name: String,
    /// The first of [`PORTS`](Self::PORTS) loopback ports; clients connect to it first.
    pub port: u16,
    /// The address of the cluster behind it.
    pub upstream: String,
    /// The service that has the keys.
    pub kms: Kms,
}

/// A key management service.
#[derive(Clone, Debug)]
pub enum Kms {
    /// Each proxy has the same keys in its memory: Kroxylicious's `UnitTestingKmsService`.
    Memory(Vec<MemoryKek>),
    /// Transit of a HashiCorp Vault.
    Vault {
        /// URL of the engine, such as `http://127.0.0.1:8200/v1/transit`.
        url: String,
        /// The file that holds a token for it.
        token_file: PathBuf,
    },
}

/// A key encryption key that the proxies have in memory.
#[derive(Clone, Debug)]
pub struct MemoryKek {
    /// Its id, as each wrapped data key names it.
    pub uuid: String,
    /// What a topic's name leads to.
    pub alias: String,
    /// The key.
    pub secret: [u8; 32],
}

impl VirtualCluster {
    /// How many neighbouring ports it takes.
    pub const PORTS: u16 = NODE_ID_MAX + 2;

    /// The address that clients connect to.
    pub fn bootstrap(&self) -> String {
        loopback(self.port).to_string()
    }

    /// The configuration of a Kroxylicious that has `clusters`.
    pub(crate) fn for_kroxylicious(clusters: &[Self]) -> Value {
        let filter = |cluster: &Self| {
            let (kms, config) = cluster.kms.for_kroxylicious();
            json!({"name": cluster.name, "type": "RecordEncryption", "config": {
                "kms": kms,
                "kmsConfig": config,
                "selector": "TemplateKekSelector",
                "selectorConfig": {"template": TEMPLATE},
                "unresolvedKeyPolicy": "REJECT",
            }})
        };
        let virtual_cluster = |cluster: &Self| {
            json!({
                "name": cluster.name,
                "filters": [cluster.name],
                "targetCluster": {"bootstrapServers": cluster.upstream},
                "gateways": [{"name": "loopback", "portIdentifiesNode": {
                    "bootstrapAddress": cluster.bootstrap(),
                    "advertisedBrokerAddressPattern": "127.0.0.1",
                    "nodeStartPort": cluster.port + 1,
                    "nodeIdRanges": [{"name": "all", "start": 0, "end": NODE_ID_MAX}],
                }}],
            })
        };
        json!({
            "filterDefinitions": clusters.iter().map(filter).collect::<Vec<_>>(),
            "virtualClusters": clusters.iter().map(virtual_cluster).collect::<Vec<_>>(),
        })
    }

    /// The configuration of our proxy with `clusters`; keys are put into files in `directory`.
    pub(crate) fn for_moldau(clusters: &[Self], admin: u16, directory: &Path) -> Result<Value> {
        let virtual_cluster = |cluster: &Self| -> Result<Value> {
            Ok(json!({
                "name": cluster.name,
                "bootstrap": cluster.bootstrap(),
                "broker_port_start": cluster.port + 1,
                "upstream": [cluster.upstream],
                "filters": [{"record_encryption": {
                    "template": TEMPLATE,
                    "kms": cluster.kms.for_moldau(directory)?,
                }}],
            }))
        };
        let clusters = clusters.iter().map(virtual_cluster).collect::<Result<Vec<_>>>()?;
        Ok(json!({"admin": loopback(admin).to_string(), "virtual_clusters": clusters}))
    }
}

impl Kms {
    fn for_kroxylicious(&self) -> (&'static str, Value) {
        match self {
            Self::Memory(keks) => {
                let kek = |kek: &MemoryKek| {
                    json!({
                        "uuid": kek.uuid,
                        "key": BASE64.encode(kek.secret),
                        "algorithm": "AES",
                        "alias": kek.alias,
                    })
                };
                let keks: Vec<_> = keks.iter().map(kek).collect();
                let config = json!({"numIvBytes": 12, "numAuthBits": 128, "existingKeks": keks});
                ("UnitTestingKmsService", config)
            }
            Self::Vault { url, token_file } => {
                let token = json!({"passwordFile": token_file});
                let config = json!({"vaultTransitEngineUrl": url, "vaultToken": token});
                ("VaultKmsService", config)
            }
        }
    }

    fn for_moldau(&self, directory: &Path) -> Result<Value> {
        match self {
            Self::Memory(keks) => {
                let kek = |kek: &MemoryKek| -> Result<Value> {
                    let file = directory.join(format!("{}.kek", kek.uuid));
                    fs::write(&file, BASE64.encode(kek.secret))?;
                    Ok(json!({"uuid": kek.uuid, "alias": kek.alias, "secret_file": file}))
                };
                let keks = keks.iter().map(kek).collect::<Result<Vec<_>>>()?;
                Ok(json!({"memory": {"keks": keks}}))
            }
            Self::Vault { url, token_file } => {
                Ok(json!({"vault": {"url": url, "auth": {"token_file": token_file}}}))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_proxies_get_the_same_key_and_ports() {
        let kek = MemoryKek { uuid: "u".to_owned(), alias: "a".to_owned(), secret: [7; 32] };
        let kms = Kms::Memory(vec![kek]);
        let (name, upstream) = ("main".to_owned(), "127.0.0.1:9".to_owned());
        let clusters = [VirtualCluster { name, port: 1000, upstream, kms }];
        let directory = tempfile::tempdir().unwrap();

        let theirs = VirtualCluster::for_kroxylicious(&clusters);
        let kek = &theirs["filterDefinitions"][0]["config"]["kmsConfig"]["existingKeks"][0];
        let gateway = &theirs["virtualClusters"][0]["gateways"][0]["portIdentifiesNode"];
        let ours = VirtualCluster::for_moldau(&clusters, 1, directory.path()).unwrap();
        let cluster = &ours["virtual_clusters"][0];
        let keks = &cluster["filters"][0]["record_encryption"]["kms"]["memory"]["keks"];
        let secret = fs::read_to_string(keks[0]["secret_file"].as_str().unwrap()).unwrap();

        assert_eq!(kek["key"], secret);
        assert_eq!(gateway["bootstrapAddress"], cluster["bootstrap"]);
        assert_eq!(gateway["nodeStartPort"], cluster["broker_port_start"]);
    }
}
