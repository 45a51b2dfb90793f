//! `moldau proxy import` and `moldau broker import`: golden translations, each of which
//! `moldau config check` accepts.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::world::moldau;

/// The directory of what is translated, `NAME.in.yaml`, and of its translation, `NAME.out.yaml`.
fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import").join(name)
}

fn run_in(dir: &Path, arguments: &[&str]) -> Output {
    Command::new(moldau()).args(arguments).current_dir(dir).output().unwrap()
}

/// A directory with every file that the translations name.
fn world() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let own = rcgen::generate_simple_self_signed(vec!["demo.example".to_owned()]).unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    write("own.pem", &own.cert.pem());
    write("authority.pem", &own.cert.pem());
    write("own.key", &own.signing_key.serialize_pem());
    write("own-with-key.pem", &(own.signing_key.serialize_pem() + &own.cert.pem()));
    write("FILE_WITH_USERS", "alice:changeit\n");
    write("secret", "changeit\n");
    write("token", "token\n");
    let rules = std::fs::read_to_string(golden("kroxylicious-policies.acl.txt")).unwrap();
    write("acl-rules.txt", &rules);
    dir
}

/// Asserts what is printed, what is told, and that the result is a configuration of ours.
fn assert_translation(name: &str, arguments: &[&str], is_whole: bool) {
    let dir = world();
    let output = run_in(dir.path(), &[&["proxy", "import"], arguments].concat());
    let (stdout, stderr) =
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).into();
    let file = golden(&format!("{name}.out.yaml"));
    let wanted = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(stdout, wanted, "{}", file.display());
    assert_eq!(output.status.code(), Some(i32::from(!is_whole)), "{stderr}");
    // What is told stands above what is printed as well.
    let comments = stdout.lines().filter_map(|line| line.strip_prefix("# - "));
    let told = stderr.lines().filter_map(|line| line.strip_prefix("moldau: not translated: "));
    assert!(comments.eq(told), "{stderr}{stdout}");
    std::fs::write(dir.path().join("proxy.yaml"), &stdout).unwrap();
    let checked = run_in(dir.path(), &["config", "check", "proxy.yaml"]);
    assert!(checked.status.success(), "{stdout}{checked:?}");
}

/// As [`assert_translation`] for a `server.properties`, of which this many lines are not supported.
fn assert_server_properties(name: &str, unsupported: usize) {
    let dir = world();
    let file = golden(&format!("{name}.in.properties"));
    let output = run_in(dir.path(), &["broker", "import", file.to_str().unwrap()]);
    let (stdout, stderr) =
        [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap()).into();
    let wanted = std::fs::read_to_string(golden(&format!("{name}.out.yaml"))).unwrap_or_default();
    assert_eq!(stdout, wanted);
    assert_eq!(output.status.code(), Some(i32::from(unsupported > 0)), "{stderr}");
    let told = stderr.lines().filter_map(|line| line.strip_prefix("moldau: not supported: "));
    assert!(told.clone().all(|line| stdout.contains(&format!("# - {line}\n"))), "{stderr}");
    assert_eq!(told.count(), unsupported);
    assert!(!format!("{stdout}{stderr}").contains("changeit"));
    std::fs::write(dir.path().join("broker.yaml"), &stdout).unwrap();
    let checked = run_in(dir.path(), &["config", "check", "broker.yaml"]);
    assert!(checked.status.success(), "{stdout}{checked:?}");
}

#[test]
fn default_kafka_file_is_translated_completely() {
    assert_server_properties("server-properties-default", 0);
}

#[test]
fn import_covers_each_line_of_a_secured_kafka_broker() {
    assert_server_properties("server-properties-secured", 7);
}

fn assert_kroxylicious(name: &str, is_whole: bool) {
    let file = golden(&format!("{name}.in.yaml"));
    assert_translation(name, &[file.to_str().unwrap()], is_whole);
}

#[test]
fn oldest_kroxylicious_syntax_is_translated_completely() {
    assert_kroxylicious("kroxylicious-0.5", true);
}

#[test]
fn kroxylicious_sni_and_tls_are_translated_completely() {
    assert_kroxylicious("kroxylicious-0.12", true);
}

#[test]
fn untranslated_kroxylicious_settings_are_listed_with_path() {
    assert_kroxylicious("kroxylicious-0.15", false);
}

#[test]
fn kroxylicious_gateways_become_virtual_clusters() {
    assert_kroxylicious("kroxylicious-0.24", false);
}

#[test]
fn kroxylicious_policies_with_equal_meaning_are_translated() {
    assert_kroxylicious("kroxylicious-policies", false);
}

#[test]
fn kafka_proxy_flags_are_translated_completely() {
    let flags = "--kafka-proxy -- server --tls-enable \
                 --bootstrap-server-mapping kafka-1:9092,127.0.0.1:32400,kafka.example:32401 \
                 --bootstrap-server-mapping=kafka-2:9092,127.0.0.1:32401,kafka.example:32402 \
                 --http-listen-address 127.0.0.1:9080 --tls-ca-chain-cert-file authority.pem \
                 --proxy-listener-tls-enable --proxy-listener-cert-file own.pem \
                 --proxy-listener-key-file own.key --dynamic-advertised-listener kafka.example \
                 --proxy-listener-ca-chain-cert-file authority.pem --kafka-max-open-requests 10";
    assert_translation("kafka-proxy", &flags.split_whitespace().collect::<Vec<_>>(), true);
}

/// Firewalls and certificates rely on the advertised addresses.
#[test]
fn import_names_changed_advertised_addresses() {
    let flags = "proxy import --kafka-proxy -- --dynamic-listeners-disable \
                 --bootstrap-server-mapping kafka-1:9092,127.0.0.1:32400 \
                 --bootstrap-server-mapping kafka-2:9092,127.0.0.1:32401 \
                 --bootstrap-server-mapping kafka-3:9092,127.0.0.1:32402,kafka.example:32402";
    let output = run_in(world().path(), &flags.split_whitespace().collect::<Vec<_>>());
    assert_eq!(output.status.code(), Some(1));
    let notes = String::from_utf8(output.stderr).unwrap();
    for (part, is_named) in [
        ("kafka-1:9092: kafka-proxy advertises 127.0.0.1:32400; here", true),
        ("kafka-2:9092", false),
        ("kafka-3:9092: kafka-proxy advertises kafka.example:32402; here", true),
        ("--dynamic-listeners-disable", true),
    ] {
        assert_eq!(notes.contains(part), is_named, "{part}: {notes}");
    }
}

#[test]
fn import_never_prints_secrets() {
    let dir = world();
    let flags = "proxy import --kafka-proxy -- --bootstrap-server-mapping kafka:9092,0.0.0.0:32400 \
                 --sasl-enable --sasl-username alice --sasl-password changeit --log-format json";
    let of_flags = run_in(dir.path(), &flags.split_whitespace().collect::<Vec<_>>());
    let file = golden("kroxylicious-inline-secrets.in.yaml");
    let of_file = run_in(dir.path(), &["proxy", "import", file.to_str().unwrap()]);
    for output in [of_flags, of_file] {
        assert_eq!(output.status.code(), Some(1));
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            assert!(text.contains("the secret belongs in a file of its own"), "{text}");
            assert!(!text.contains("changeit"), "{text}");
        }
    }
}

#[test]
fn invalid_file_is_refused_in_one_line() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("broken.yaml"), "virtualClusters: [\n").unwrap();
    std::fs::write(dir.path().join("broken.properties"), "a=1\nb=\\u12\n").unwrap();
    for (arguments, part) in [
        (&["proxy", "import", "nowhere.yaml"][..], "nowhere.yaml: No such file"),
        (&["proxy", "import", "broken.yaml"], "broken.yaml:"),
        (&["broker", "import", "nowhere.properties"], "nowhere.properties: No such file"),
        (&["broker", "import", "broken.properties"], "broken.properties:2:1: "),
    ] {
        let output = run_in(dir.path(), arguments);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(part) && text.lines().count() == 1, "{text}");
    }
}
