//! A proxy that takes its configuration anew while clients go on.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::world::{Process, free_port, moldau};

/// How long a change of a file may go unseen. Generous, since machines are shared.
const PATIENCE: Duration = Duration::from_secs(60);

/// A proxy with TLS and these further lines of its virtual cluster.
fn configuration(dir: &Path, upstream: std::net::SocketAddr, port: u16, more: &str) {
    write(dir, "127.0.0.1:0", upstream, port, more);
}

fn write(dir: &Path, admin: &str, upstream: std::net::SocketAddr, port: u16, more: &str) {
    let text = format!(
        "admin: {admin}\nvirtual_clusters:\n  - name: main\n    bootstrap: \
         127.0.0.1:{port}\n    \
         upstream: [\"{upstream}\"]\n    tls: {{certificate_file: own.pem, key_file: \
         own.key}}\n{more}"
    );
    // As editors and Kubernetes do: the file changes at once or not at all.
    std::fs::write(dir.join("beside"), text).unwrap();
    std::fs::rename(dir.join("beside"), dir.join("proxy.yaml")).unwrap();
}

fn certificate(dir: &Path) {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("own.pem"), own.cert.pem()).unwrap();
    std::fs::write(dir.join("own.key"), own.signing_key.serialize_pem()).unwrap();
}

/// Waits until a counter of the proxy has this value.
fn wait_for(proxy: &Process, metric: &str, value: f64) {
    let begun = Instant::now();
    while proxy.metric(metric).to_bits() != value.to_bits() {
        assert!(begun.elapsed() < PATIENCE, "{metric}: {}", proxy.page("/metrics"));
        std::thread::yield_now();
    }
}

#[test]
fn sighup_and_file_changes_reload_a_valid_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(&dir.path().join("data"), &[]);
    let port = free_port();
    certificate(dir.path());
    configuration(dir.path(), broker.address, port, "");
    let mut command = Command::new(moldau());
    command.args(["proxy", "--config", "proxy.yaml"]).current_dir(dir.path());
    let mut proxy = Process::start(command);
    let [taken, refused] = ["moldau_proxy_reloads_total", "moldau_proxy_reload_failures_total"];

    configuration(dir.path(), broker.address, port, "    filtres: []\n");
    let line = proxy.wait_for_line("the old configuration stays in force");
    assert!(
        line.ends_with("proxy.yaml:7:5: unknown key \"filtres\"; did you mean \"filters\"?"),
        "{line}"
    );
    wait_for(&proxy, refused, 1.0);
    assert_eq!(proxy.page("/readyz"), "ready\n");

    configuration(dir.path(), broker.address, port, "    filters: [multi_tenant: {}]\n");
    let line = proxy.wait_for_line("was reloaded");
    assert!(line.ends_with("; other filters: main"), "{line}");
    wait_for(&proxy, taken, 1.0);

    // A certificate is a part of the configuration.
    certificate(dir.path());
    proxy.wait_for_line("was reloaded");
    wait_for(&proxy, taken, 2.0);

    let id = proxy.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    proxy.wait_for_line("was reloaded");
    wait_for(&proxy, taken, 3.0);
    let (status, _) = proxy.terminate_with_stderr();
    assert_eq!(status.code(), Some(0));
}

/// The status and the text of an answer to `POST /reload`.
fn post_reload(proxy: &Process, token: &str) -> (String, String) {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(proxy.admin).unwrap();
    let head = format!("POST /reload HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n");
    write!(stream, "{head}Connection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().to_owned(), text.to_owned())
}

/// Asks for a reload that changes this.
fn take(proxy: &mut Process, token: &str, what: &str) {
    let (status, text) = post_reload(proxy, token);
    assert_eq!(status, "200", "{text}");
    // The proxy may have looked at the files just before.
    let told = format!("the configuration was reloaded; {what}\n");
    assert!(text == told || text.ends_with("; no file has changed\n"), "{text}");
    proxy.wait_for_line(what);
}

#[test]
fn reload_over_http_needs_the_token_and_reports_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(&dir.path().join("data"), &[]);
    let port = free_port();
    certificate(dir.path());
    std::fs::write(dir.path().join("token"), "s3cret-one\n").unwrap();
    let admin = "{listen: 127.0.0.1:0, reload_token_file: token}";
    write(dir.path(), admin, broker.address, port, "");
    let mut command = Command::new(moldau());
    command.args(["proxy", "--config", "proxy.yaml"]).current_dir(dir.path());
    let mut proxy = Process::start(command);

    let (status, text) = post_reload(&proxy, "s3cret-two");
    assert_eq!((&*status, &*text), ("401", "the token is required\n"));
    take(&mut proxy, "s3cret-one", "no file has changed");
    write(dir.path(), admin, broker.address, port, "    filters: [multi_tenant: {}]\n");
    take(&mut proxy, "s3cret-one", "changed: proxy.yaml; other filters: main");
    write(dir.path(), admin, broker.address, port, "    filtres: []\n");
    let (status, text) = post_reload(&proxy, "s3cret-one");
    assert_eq!(status, "422");
    let refused = "proxy.yaml:7:5: unknown key \"filtres\"; did you mean \"filters\"?\n";
    assert_eq!(text, format!("reload refused, the old configuration stays in force: {refused}"));

    // Who knows the token has another put in its place.
    write(dir.path(), admin, broker.address, port, "");
    std::fs::write(dir.path().join("token"), "s3cret-two\n").unwrap();
    take(&mut proxy, "s3cret-one", "changed: proxy.yaml, token; other filters: main");
    assert_eq!(post_reload(&proxy, "s3cret-one").0, "401");
    let refused = proxy.metric("moldau_proxy_refusals_total{cause=\"admin_token\"}");
    assert_eq!(refused.to_bits(), 2.0_f64.to_bits());
    // Without a token there is no page.
    write(dir.path(), "127.0.0.1:0", broker.address, port, "");
    take(&mut proxy, "s3cret-two", "changed: proxy.yaml");
    assert_eq!(post_reload(&proxy, "s3cret-two").0, "404");
    let (status, said) = proxy.terminate_with_stderr();
    assert_eq!(status.code(), Some(0));
    assert!(!said.contains("s3cret"), "{said}");
}
