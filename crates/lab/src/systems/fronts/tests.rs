//! What the fronts are configured with, word for word.

use super::*;

fn addresses() -> FrontAddresses {
    let [bootstrap, broker, admin] =
        [1, 2, 3].map(|port| SocketAddr::from(([127, 0, 0, 1], 19_090 + port)));
    FrontAddresses { bootstrap, broker, admin }
}

fn upstream() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 9_092))
}

const MOLDAU: &str = "\
admin: 127.0.0.1:19093
virtual_clusters:
  - name: lab
    bootstrap: 127.0.0.1:19091
    upstream: [\"127.0.0.1:9092\"]
    broker_port_start: 19092
";

const KROXYLICIOUS: &str = "\
virtualClusters:
  - name: lab
    targetCluster:
      bootstrapServers: 127.0.0.1:9092
    gateways:
      - name: loopback
        portIdentifiesNode:
          bootstrapAddress: 127.0.0.1:19091
          advertisedBrokerAddressPattern: 127.0.0.1
          nodeStartPort: 19092
          nodeIdRanges:
            - name: brokers
              start: 7
              end: 7
";

const KROXYLICIOUS_ENCRYPTION: &str = "\
filterDefinitions:
  - name: encryption
    type: RecordEncryption
    config:
      kms: UnitTestingKmsService
      kmsConfig:
        numIvBytes: 12
        numAuthBits: 128
        existingKeks:
          - uuid: 6d6f6c64-6175-4c61-8b00-000000000001
            alias: KEK_lab
            algorithm: AES
            key: AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=
      selector: TemplateKekSelector
      selectorConfig:
        template: KEK_lab
      unresolvedKeyPolicy: REJECT
defaultFilters: [encryption]
";

#[test]
fn our_proxy_is_configured_with_and_without_further_keys() {
    let upstream = "[\"127.0.0.1:9092\"]";
    assert_eq!(moldau_yaml(addresses(), upstream, ""), MOLDAU);
    let more = moldau_yaml(addresses(), upstream, "filters:\n  - multi_tenant: {}\n");
    assert_eq!(more, format!("{MOLDAU}    filters:\n      - multi_tenant: {{}}\n"));
}

#[test]
fn kroxylicious_is_configured_with_and_without_encryption() {
    assert_eq!(kroxylicious_yaml(addresses(), upstream(), 7, None), KROXYLICIOUS);
    let sealed = kroxylicious_yaml(addresses(), upstream(), 7, Some(LabKey([1; 32])));
    assert_eq!(sealed, format!("{KROXYLICIOUS_ENCRYPTION}{KROXYLICIOUS}"));
}

#[test]
fn the_seed_decides_the_key() {
    assert_eq!(BASE64.decode(LabKey::of(1).text()).unwrap(), LabKey::of(1).0);
    assert_ne!(LabKey::of(1).0, LabKey::of(2).0);
}

#[test]
fn the_relay_gets_its_addresses() {
    let spec = bare_relay(Path::new("moldau"), addresses().bootstrap, upstream());
    let expected = ["lab", "relay", "--listen", "127.0.0.1:19091", "--to", "127.0.0.1:9092"];
    assert_eq!(spec.args, expected);
}

#[test]
fn kroxylicious_is_there_with_its_main_jar_and_its_launcher() {
    let directory = tempfile::tempdir().unwrap();
    let found = Kroxylicious { java: "java".into(), directory: directory.path().into() };
    assert_eq!(found.version(), None);
    for below in ["lib", "classes"] {
        fs::create_dir(directory.path().join(below)).unwrap();
    }
    fs::write(directory.path().join("classes/KroxyliciousLauncher.class"), "").unwrap();
    fs::write(directory.path().join("lib/kroxylicious-api-0.11.0.jar"), "").unwrap();
    assert_eq!(found.version(), None);
    fs::write(directory.path().join("lib/kroxylicious-runtime-0.12.0.jar"), "").unwrap();
    assert_eq!(found.version().as_deref(), Some("0.12.0"));
    let spec =
        kroxylicious_proxy(&found, directory.path(), addresses(), upstream(), 0, None).unwrap();
    let lies = directory.path().display();
    assert!(spec.args.contains(&format!("{lies}/lib/*:{lies}/classes").into()), "{:?}", spec.args);
}
