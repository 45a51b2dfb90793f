//! `moldau config check`: mistakes that are planted in files, and the whole of what is said.

use std::path::Path;
use std::process::{Command, Output};

use crate::world::moldau;

/// A file with a mistake, and what is said of it behind the file's name.
struct Mistake {
    file: String,
    said: &'static str,
}

fn mistake(file: &str, said: &'static str) -> Mistake {
    Mistake { file: file.to_owned(), said }
}

fn check(dir: &Path, text: &str) -> Output {
    std::fs::write(dir.join("file.yaml"), text).unwrap();
    let mut command = Command::new(moldau());
    command.args(["config", "check", "file.yaml"]).current_dir(dir).output().unwrap()
}

/// Asserts what is said of each file, in a directory with these others.
fn assert_mistakes(files: &[(&str, String)], mistakes: &[Mistake]) {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let mut wrong = Vec::new();
    for Mistake { file, said } in mistakes {
        let output = check(dir.path(), file);
        let stderr = String::from_utf8(output.stderr).unwrap();
        let wanted = format!("moldau: file.yaml:{said}\n");
        if stderr != wanted || output.status.code() != Some(1) {
            wrong.push(format!("{file}--- wanted\n{wanted}--- said\n{stderr}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_of_a_broker_file_name_line_and_nearest_key() {
    assert_mistakes(
        &[],
        &[
            mistake(
                "log.dirs: data\nlissteners: PLAINTEXT://127.0.0.1:9092\n",
                "2:1: unknown key \"lissteners\"; did you mean \"listeners\"?",
            ),
            mistake(
                "log.dirs: data\nnum.partitions: many\n",
                "2:17: num.partitions: many is not a whole number, 0 or more",
            ),
            mistake(
                "log.dirs: data\npartitions_default: 3\n",
                "2:1: the key \"partitions_default\" is called \"num.partitions\"",
            ),
            mistake(
                "log.retention.hours: week\n",
                "1:22: Invalid value week for configuration log.retention.hours: Not a number of \
                 type INT",
            ),
            mistake(
                "num.io.threads: 8\n",
                "1:1: the key \"num.io.threads\" has no effect here: network threads handle \
                 requests themselves, without a queue",
            ),
            mistake(
                "default.replication.factor: 3\n",
                "1:1: the key \"default.replication.factor\" is not supported: each partition has \
                 one replica, on this broker",
            ),
            mistake(
                "drain_timeout_ms: 10s\n",
                "1:19: drain_timeout_ms: 10s is not a whole number, 0 or more; its unit is \
                 milliseconds",
            ),
            mistake(
                "listeners: kafka:9092\n",
                "1:12: listeners: \"kafka:9092\" is not NAME://HOST:PORT",
            ),
            mistake(
                "log.dirs: data\nadvertised.listeners: kafka\n",
                "2:23: advertised.listeners: \"kafka\" is not NAME://HOST:PORT",
            ),
            mistake(
                "durability: fsnc\n",
                "1:13: \"fsnc\" is not one of fsync, os; did you mean \"fsync\"?",
            ),
            mistake(
                "auto.create.topics.enable: maybe\n",
                "1:28: auto.create.topics.enable: maybe is not true or false",
            ),
            mistake(
                "log.dirs: a\nadmin: 127.0.0.1:1\nlog.dirs: b\n",
                "3:1: duplicate key \"log.dirs\"",
            ),
            mistake("journal_file_mib: 0\n", "1:19: journal_file_mib: must lie between 1 and 1024"),
            mistake("num.network.threads: 0\n", "1:22: num.network.threads: must be at least 1"),
            mistake(
                "num.network.threads: [1]\n",
                "1:22: num.network.threads: a list is not a single value",
            ),
            mistake("log.dirs: [\n", "1:11: log.dirs: a list is not a single value"),
            mistake(
                "tail_cache_mib: 128MB # much\n",
                "1:17: tail_cache_mib: 128MB is not a whole number, 0 or more; its unit is MiB",
            ),
        ],
    );
}

#[test]
fn errors_of_listeners_name_their_keys() {
    let with = |lines: &str| {
        format!("listeners:\n  - name: A\n    address: 127.0.0.1:9092\n    {lines}\n")
    };
    let second = |name: &str, port: u16| {
        let lines = format!("limits: {{}}\n  - name: {name}\n    address: 0.0.0.0:{port}");
        with(&lines)
    };
    let mut files = certificates();
    let parts = "salt=AA==,stored_key=AA==,server_key=AA==,iterations=4096";
    files.push(("scram-users", format!("alice:SCRAM-SHA-256=[{parts}]\n")));
    assert_mistakes(
        &files,
        &[
            mistake("listeners: []\n", "1:12: listeners: at least one is needed"),
            mistake(
                "advertised.listeners: A://kafka:1\n\
                 listeners: [{name: A, address: '127.0.0.1:9093'}]\n",
                "1:23: advertised.listeners: use the key `advertised` of each listener in a list",
            ),
            mistake(&second("A", 9093), "5:11: name: \"A\" is the name of another listener"),
            mistake(&second("B", 9092), "6:14: address: 0.0.0.0:9092 is in use by listener A"),
            mistake(&second("B", 9644), "6:14: address: 0.0.0.0:9644 is in use by admin"),
            mistake(
                &with("advertized: kafka:1"),
                "4:5: unknown key \"advertized\"; did you mean \"advertised\"?",
            ),
            mistake(
                &with("tls: {certificate_file: own.pem}"),
                "4:29: certificate_file: needs key_file",
            ),
            mistake(
                &with("limits: {handshake_timeout_ms: 0}"),
                "4:36: handshake_timeout_ms: must be at least 1",
            ),
            mistake(
                &with("sasl: {mechanisms: []}"),
                "4:11: SASL settings: a server has to offer a mechanism",
            ),
            mistake(
                &with("sasl: {mechanisms: [PLAIN]}"),
                "4:11: the key \"users_file\" is missing",
            ),
            mistake(
                &with("sasl: {mechanisms: [SCRAM-SHA-256], users_file: users}"),
                "4:53: users_file: serves PLAIN, which is not one of the mechanisms",
            ),
            mistake(
                &with("sasl: {mechanisms: [PLAIN], users_file: scram-users}"),
                "4:45: scram-users, line 1: is a SCRAM credential; create it with kafka-configs, \
                 since the broker stores them itself",
            ),
        ],
    );
}

/// A proxy with one virtual cluster that has these further lines.
fn cluster(lines: &str) -> String {
    format!("virtual_clusters:\n  - name: a\n    bootstrap: 127.0.0.1:19092\n{lines}")
}

#[test]
fn errors_of_a_proxy_file_name_line_and_nearest_key() {
    assert_mistakes(
        &[],
        &[
            mistake("virtual_clusters: []\n", "1:19: virtual_clusters: at least one is needed"),
            mistake("virtual_clusters: 3\n", "1:19: virtual_clusters: 3 is not a list"),
            mistake("virtual_clusters:\n  - 3\n", "2:5: 3 is not a mapping of keys"),
            mistake(
                "virtual_clusters:\n  - nam: a\n",
                "2:5: unknown key \"nam\"; did you mean \"name\"?",
            ),
            mistake(
                "virtual_clusters:\n  - name: a\n    upstream: [kafka:9092]\n",
                "2:11: the key \"bootstrap\" is missing, or gateway",
            ),
            mistake(
                &cluster("    upstream: []\n"),
                "4:15: upstream: at least one server is needed",
            ),
            mistake(
                &cluster("    upstream: [kafka]\n"),
                "4:16: upstream: \"kafka\" is not HOST:PORT",
            ),
            mistake(
                &cluster("    upstream: [k:1]\n    bootstrap: 127.0.0.1:2\n"),
                "5:5: duplicate key \"bootstrap\"",
            ),
            mistake(
                &cluster("    upstream: [k:1]\n    filters:\n      - record_encription: {}\n"),
                "6:9: \"record_encription\" is not one of record_encryption, multi_tenant, \
                 authorization, header, mask, record_validation, quota, audit, chaos; did you \
                 mean \"record_encryption\"?",
            ),
        ],
    );
}

#[test]
fn conflicts_between_virtual_clusters_are_errors() {
    let second = |lines: &str| cluster(&format!("    upstream: [k:1]\n  - name: b\n{lines}"));
    let end = "    upstream: [k:1]\n";
    assert_mistakes(
        &[],
        &[
            mistake(
                &cluster(&format!("{end}  - name: a\n    bootstrap: 127.0.0.1:29092\n{end}")),
                "5:11: name: \"a\" is the name of another virtual cluster",
            ),
            mistake(
                &second(&format!("    bootstrap: 127.0.0.1:19092\n{end}")),
                "6:16: bootstrap: 127.0.0.1:19092 is in use by virtual cluster a",
            ),
            mistake(
                &second(&format!("    bootstrap: 0.0.0.0:19093\n{end}")),
                "6:16: broker_port_start: 19093 of a is in use by b",
            ),
            mistake(
                &format!("admin: 127.0.0.1:19092\n{}", cluster(end)),
                "1:8: admin: 127.0.0.1:19092 is in use by virtual cluster a",
            ),
            mistake(
                &format!("admin: {{listen: 127.0.0.1:19092}}\n{}", cluster(end)),
                "1:17: admin: 127.0.0.1:19092 is in use by virtual cluster a",
            ),
            mistake(
                &format!("admin: 9645\n{}", cluster(end)),
                "1:8: admin: 9645 is not an address, IP:PORT",
            ),
            mistake(
                &format!(
                    "traces: {{otlp_url: 'http://c:4318', sample_ratio: 1.5}}\n{}",
                    cluster(end)
                ),
                "1:51: sample_ratio: 1.5 is not 0 to 1",
            ),
            mistake(
                &format!("traces: {{otlp_url: 'grpc://c:4317'}}\n{}", cluster(end)),
                "1:20: otlp_url: \"grpc://c:4317\" is neither an http nor an https address",
            ),
            mistake(
                &format!("admin: {{reload_token: x}}\n{}", cluster(end)),
                "1:9: unknown key \"reload_token\"; did you mean \"reload_token_file\"?",
            ),
            mistake(
                &format!("admin: {{reload_token_file: nowhere}}\n{}", cluster(end)),
                "1:28: nowhere: No such file or directory (os error 2)",
            ),
        ],
    );
}

/// All names of the tenant `a-b` were names of the tenant `a` too, and nobody was told.
#[test]
fn overlapping_tenant_prefixes_are_an_error() {
    let tenants = |keys: &str| format!("    filters:\n      - multi_tenant: {{{keys}}}\n");
    let two = |first: &str, name: &str, upstream: &str, second: &str| {
        let (first, second) = (tenants(first), tenants(second));
        cluster(&format!(
            "    upstream: [k:1]\n{first}  - name: {name}\n    bootstrap: 127.0.0.1:29092\n    \
             upstream: {upstream}\n{second}"
        ))
    };
    let principal = "prefix: $(principal)-";
    assert_mistakes(
        &[],
        &[
            mistake(
                &two("", "a-b", "[l:1, k:1]", ""),
                "7:11: name: the prefixes of \"a-b\" and \"a\" overlap on their cluster, so \
                 tenants would share names",
            ),
            mistake(
                &two("", "b", "[k:1]", principal),
                "7:11: name: the prefixes of \"b\" and \"a\" overlap on their cluster, so \
                 tenants would share names",
            ),
            mistake(
                &two("", "b c", "[k:1]", ""),
                "7:11: name: \"b c\" has characters that a prefix of topic names cannot have",
            ),
        ],
    );
    let dir = tempfile::tempdir().unwrap();
    for file in [
        two("", "ab", "[k:1]", ""),
        two("", "a-b", "[l:1]", ""),
        two(principal, "b", "[k:1]", principal),
    ] {
        let output = check(dir.path(), &file);
        assert!(output.status.success(), "{file}{output:?}");
    }
}

#[test]
fn possibly_overlapping_ports_are_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let end = "    upstream: [k:1]\n";
    let second = format!("{end}  - name: b\n    bootstrap: 127.0.0.1:19096\n{end}");
    let output = check(dir.path(), &cluster(&second));
    assert!(output.status.success(), "{output:?}");
    let said =
        "moldau: warning: file.yaml:6:16: virtual cluster b leaves ports for only 3 brokers of a\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
    assert_eq!(output.stdout, b"file.yaml: a valid proxy configuration\n");
}

#[test]
fn reload_token_without_tls_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("token"), "t\n").unwrap();
    let admin = "admin: {listen: 0.0.0.0:9645, reload_token_file: token}\n";
    let output = check(dir.path(), &format!("{admin}{}", cluster("    upstream: [k:1]\n")));
    assert!(output.status.success(), "{output:?}");
    let said = "moldau: warning: file.yaml:1:50: reload_token_file: 0.0.0.0:9645 has no TLS, so \
                others can read the token\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
}

#[test]
fn errors_of_record_encryption_name_line_and_nearest_key() {
    let filter = |lines: &str| {
        let lines = lines.replace('\n', "\n          ");
        cluster(&format!(
            "    upstream: [k:1]\n    filters:\n      - record_encryption:\n          {lines}\n"
        ))
    };
    assert_mistakes(
        &[],
        &[
            mistake(
                &filter("template: KEK_$(topic)\nkms: {key_file: {path: k}}"),
                "7:21: template: $(topic) is not known, $(topicName) is",
            ),
            mistake(
                &filter("template: a\nkms: {key_file: {path: nowhere}}"),
                "8:34: key file nowhere: No such file or directory (os error 2)",
            ),
            mistake(
                &filter("template: a\nkms: {key_fil: {path: nowhere}}"),
                "8:17: \"key_fil\" is not one of key_file, vault, aws, memory; did you mean \
                 \"key_file\"?",
            ),
            mistake(
                &filter("template: a\nrecords_per_key_max: 0\nkms: {memory: {keks: []}}"),
                "8:32: records_per_key_max: must be 1 to 4294967296",
            ),
            mistake(
                &filter("template: a\nsealing_key_refresh_s: 2h\nkms: {memory: {keks: []}}"),
                "8:34: sealing_key_refresh_s: 2h is not a whole number, 0 or more; its unit is \
                 seconds",
            ),
        ],
    );
}

/// Certificates as an operator has them: two pairs and an expired one.
fn certificates() -> Vec<(&'static str, String)> {
    let pair = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    let (own, other) = (pair("one.example"), pair("two.example"));
    let mut expired = rcgen::CertificateParams::new(vec!["three.example".to_owned()]).unwrap();
    expired.not_after = rcgen::date_time_ymd(2020, 1, 1);
    vec![
        ("expired.pem", expired.self_signed(&own.signing_key).unwrap().pem()),
        ("own.pem", own.cert.pem()),
        ("own.key", own.signing_key.serialize_pem()),
        ("other.key", other.signing_key.serialize_pem()),
        ("empty", String::new()),
        ("users", "alice:secret\n".to_owned()),
        ("broken-users", "alice:secret\nalice\n".to_owned()),
        ("secret", "secret\n".to_owned()),
        ("rules", "permit User:alice Read topic orders\n".to_owned()),
    ]
}

#[test]
fn errors_of_tls_name_their_keys() {
    let with = |lines: &str| cluster(&format!("    upstream: [k:1]\n    {lines}\n"));
    assert_mistakes(
        &certificates(),
        &[
            mistake(
                &with("tls: {certificate_file: own.pem}"),
                "5:29: certificate_file: needs key_file",
            ),
            mistake(&with("tls: {key_file: own.key}"), "5:21: key_file: needs certificate_file"),
            mistake(
                &with("tls: {}"),
                "5:10: tls: needs certificate_file and key_file, or key_store_file",
            ),
            mistake(
                &with("tls: {certificate_file: nowhere.pem, key_file: own.key}"),
                "5:29: nowhere.pem: No such file or directory (os error 2)",
            ),
            mistake(
                &with("tls: {certificate_file: own.pem, key_file: other.key}"),
                "5:48: other.key does not fit own.pem: certificate: keys may not be consistent: \
                 KeyMismatch",
            ),
            mistake(
                &with("tls: {certificate_file: empty, key_file: own.key}"),
                "5:29: empty: certificate: there is no certificate in it",
            ),
            mistake(
                &with(
                    "tls: {certificate_file: own.pem, key_file: own.key, client_authentication: \
                     required}",
                ),
                "5:80: client_authentication: needs trust_file or trust_store_file",
            ),
            mistake(
                &with(
                    "tls: {certificate_file: own.pem, key_file: own.key, client_authentication: \
                     must}",
                ),
                "5:80: \"must\" is not one of none, requested, required",
            ),
            mistake(
                &with(
                    "tls: {certificate_file: own.pem, key_file: own.key, principal_mapping_rules: \
                     'RULE:(/x/'}",
                ),
                "5:82: principal_mapping_rules: principal mapping rule \"RULE:(/x/\": regex parse \
                 error: ^(?:()$ ^ error: unclosed group",
            ),
            mistake(
                &with("tls: {key_store_file: own.pem}"),
                "5:27: key_store_file: needs key_store_password_file",
            ),
        ],
    );
}

#[test]
fn errors_of_sasl_and_upstream_name_their_keys() {
    let with = |lines: &str| cluster(&format!("    upstream: [k:1]\n    {lines}\n"));
    let toward = |keys: &str| cluster(&format!("    upstream: {{servers: [k:1], {keys}}}\n"));
    assert_mistakes(
        &certificates(),
        &[
            mistake(
                &with("sasl: {terminate: {mechanisms: [SCRAM-SHA-1], users_file: users}}"),
                "5:37: \"SCRAM-SHA-1\" is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, \
                 OAUTHBEARER; did you mean \"SCRAM-SHA-512\"?",
            ),
            mistake(
                &with("sasl: {terminate: {mechanisms: [PLAIN]}}"),
                "5:23: the key \"users_file\" is missing",
            ),
            mistake(
                &with("sasl: {terminate: {mechanisms: [PLAIN], users_file: broken-users}}"),
                "5:57: broken-users, line 2: is not user:password",
            ),
            mistake(
                &with("sasl: {terminate: {mechanisms: [OAUTHBEARER]}}"),
                "5:23: the key \"oauthbearer\" is missing",
            ),
            mistake(
                &with(
                    "sasl: {terminate: {mechanisms: [OAUTHBEARER], oauthbearer: {jwks_file: \
                     empty}}}",
                ),
                "5:76: empty: SASL settings: EOF while parsing a value at line 1 column 0",
            ),
            mistake(
                &toward("sasl: {mechanism: PLAIN, user: a}"),
                "4:50: the key \"password_file\" is missing, which PLAIN needs",
            ),
            mistake(
                &toward("sasl: {mechanism: PLAIN, user: a, password_file: empty}"),
                "4:81: empty: is not one line with the secret",
            ),
            mistake(
                &toward("tls: {trust_file: own.key}"),
                "4:50: own.key: trusted certificates: there is no certificate in it",
            ),
            mistake(
                &toward("tls: {certificate_file: own.pem}"),
                "4:56: certificate_file: needs key_file",
            ),
            mistake(
                "virtual_clusters:\n  - name: a\n    upstream: [k:1]\n    gateway: {port: \
                 {bootstrap: '127.0.0.1:1'}}\n",
                "4:15: \"port\" is not one of ports, sni; did you mean \"ports\"?",
            ),
        ],
    );
}

#[test]
fn errors_of_gateways_limits_and_filters_name_their_keys() {
    let with = |lines: &str| cluster(&format!("    upstream: [k:1]\n    {lines}\n"));
    let tls = "tls: {certificate_file: own.pem, key_file: own.key}";
    let sni = "listen: '127.0.0.1:1', bootstrap_host: a.example";
    let behind =
        |lines: &str| format!("virtual_clusters:\n  - name: a\n    upstream: [k:1]\n    {lines}\n");
    assert_mistakes(
        &certificates(),
        &[
            mistake(
                &with("limits: {max_connections_per_ip: 0}"),
                "5:38: max_connections_per_ip: must be at least 1",
            ),
            mistake(
                &with("limits: {max_conections: 5}"),
                "5:14: unknown key \"max_conections\"; did you mean \"max_connections\"?",
            ),
            mistake(
                &with("proxy_protocol: v2"),
                "5:21: \"v2\" is not one of disabled, allowed, required",
            ),
            mistake(
                &with("filters: [authorization: {rules_file: rules}]"),
                "5:43: rules: authorization: line 1: `permit` is neither `allow` nor `deny`",
            ),
            mistake(
                &with("filters: [authorization: {}]"),
                "5:30: the key \"rules_file\" is missing, or rules",
            ),
            mistake(
                &with("filters: [authorization: {rules: [allow User:a Read topc x]}]"),
                "5:39: `topc` is no kind of resource; there are topic, group, transactional_id, \
                 cluster and any",
            ),
            mistake(
                &with(
                    "filters: [audit: {}, authorization: {rules: [allow User:a All topic x]}, \
                     multi_tenant: {}]",
                ),
                "5:26: must not be in front of multi_tenant, where a topic has two names: the \
                 client's, and the cluster's in requests by id; put multi_tenant first",
            ),
            mistake(
                &with("filters: [multi_tenant: {prefix: ''}]"),
                "5:38: multi_tenant: prefix ``: without a variable all tenants would be one",
            ),
            mistake(
                &with("gateway: {ports: {bootstrap: '127.0.0.1:1'}}"),
                "3:16: bootstrap: cannot be combined with gateway",
            ),
            mistake(
                &behind(&format!("{tls}\n    gateway: {{sni: {{{sni}, broker_host: b.example}}}}")),
                "5:84: broker_host: \"b.example\" needs $(nodeId) once",
            ),
            mistake(
                &behind(&format!("gateway: {{sni: {{{sni}, broker_host: b-$(nodeId)}}}}")),
                "4:14: sni: needs tls, which carries the host name",
            ),
        ],
    );
}

#[test]
fn an_expired_certificate_is_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in certificates() {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    let tls = "    upstream: [k:1]\n    tls: {certificate_file: expired.pem, key_file: own.key}\n";
    let output = check(dir.path(), &cluster(tls));
    assert!(output.status.success(), "{output:?}");
    let said = "moldau: warning: file.yaml:5:29: expired.pem: the certificate has expired\n";
    assert_eq!(String::from_utf8(output.stderr).unwrap(), said);
}

#[test]
fn error_names_an_unreadable_file() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("file.yaml")).unwrap();
    for (file, said) in [
        ("nowhere.yaml", "nowhere.yaml: No such file or directory (os error 2)"),
        ("file.yaml", "file.yaml: Is a directory (os error 21)"),
    ] {
        let mut command = Command::new(moldau());
        let output = command.args(["config", "check", file]).current_dir(dir.path()).output();
        let stderr = String::from_utf8(output.unwrap().stderr).unwrap();
        assert_eq!(stderr, format!("moldau: {said}\n"));
    }
}
