//! `moldau proxy keys`: the whole life of a key file on the command line.

use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use crate::world::run;

fn keys(arguments: &[&str]) -> Output {
    run([&["proxy", "keys"], arguments].concat())
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn key_file_commands_create_add_rotate_and_list_without_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys");
    let file = path.to_str().unwrap();
    said(&keys(&["init", file]));
    assert_eq!(said(&keys(&["add", file, "KEK_orders"])), "KEK_orders: version 1\n");
    assert_eq!(said(&keys(&["rotate", file, "KEK_orders"])), "KEK_orders: version 2\n");
    let listed = said(&keys(&["list", file]));
    let rows: Vec<Vec<&str>> = listed.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["alias", "active", "versions", "age"]);
    assert_eq!(rows[1], ["KEK_orders", "2", "2", "0", "min"]);
    let text = std::fs::read_to_string(&path).unwrap();
    let secrets: Vec<&str> = text.split("secret ").skip(1).map(|after| &after[..44]).collect();
    assert_eq!(secrets.len(), 2);
    assert!(secrets.iter().all(|secret| !listed.contains(secret)), "{listed}");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn readable_key_file_is_refused_with_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("keys");
    let file = path.to_str().unwrap();
    said(&keys(&["init", file]));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    for arguments in [&["list", file][..], &["add", file, "KEK_orders"]] {
        let output = keys(arguments);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("chmod 600") && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn proxy_needs_a_configuration_or_an_action() {
    let output = run(["proxy"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--config"));
}
