//! A proxy that takes its configuration anew while clients go on.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::world::{Process, free_port, moldau};

/// How long a change of a file may go unseen. Generous, since machines are shared.
const PATIENCE: Duration = Duration::from_secs(60);

/// A proxy with TLS and these further lines of its virtual cluster.
fn configuration(dir: &Path, upstream: std::net::SocketAddr, port: u16, more: &str) {
    let text = format!(
        "admin: 127.0.0.1:0\nvirtual_clusters:\n  - name: main\n    bootstrap: \
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
fn a_configuration_is_taken_on_sighup_and_on_change_unless_it_is_wrong() {
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
    let line = proxy.wait_for_line("the configuration stays as it was");
    assert!(
        line.ends_with("proxy.yaml:7:5: unknown key \"filtres\"; did you mean \"filters\"?"),
        "{line}"
    );
    wait_for(&proxy, refused, 1.0);
    assert_eq!(proxy.page("/readyz"), "ready\n");

    configuration(dir.path(), broker.address, port, "    filters: [multi_tenant: {}]\n");
    let line = proxy.wait_for_line("is taken anew");
    assert!(line.ends_with("; other filters: main"), "{line}");
    wait_for(&proxy, taken, 1.0);

    // A certificate is a part of the configuration.
    certificate(dir.path());
    proxy.wait_for_line("is taken anew");
    wait_for(&proxy, taken, 2.0);

    let id = proxy.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    proxy.wait_for_line("is taken anew");
    wait_for(&proxy, taken, 3.0);
    let (status, _) = proxy.terminate_said();
    assert_eq!(status.code(), Some(0));
}
