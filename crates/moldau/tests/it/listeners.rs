//! A broker with the listeners of a file.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use moldau_net::Stream;
use moldau_net::sasl::{SaslClient, SaslCredentials};
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, TrustAnchors};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

use crate::world::{Process, moldau};

/// How long an answer may take. Generous, since machines are shared.
const PATIENCE: Duration = Duration::from_secs(60);

/// Metadata, version 1, of all topics, with its length before it.
const METADATA: [u8; 20] = [
    0, 0, 0, 16, // length
    0, 3, 0, 1, // Metadata, version 1
    0, 0, 0, 7, // correlation id
    0, 2, b'i', b't', // client id
    0xff, 0xff, 0xff, 0xff, // all topics
];

/// A broker with one listener that has TLS and PLAIN, and the directory of its files.
struct World {
    broker: Process,
    dir: TempDir,
    runtime: Runtime,
}

impl World {
    fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        certificate(dir.path());
        configuration(dir.path(), "");
        put(dir.path(), "users", "alice:secret\n");
        let mut command = Command::new(moldau());
        command.args(["broker", "--config", "broker.yaml"]).current_dir(dir.path());
        let broker = Process::start(command);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { broker, dir, runtime }
    }

    /// A connection of alice, by the certificate that the directory has by now.
    fn connect(&self, password: &str) -> Result<Stream, String> {
        let pem = std::fs::read(self.dir.path().join("own.pem")).unwrap();
        self.connect_trusting(&pem, password)
    }

    fn connect_trusting(&self, pem: &[u8], password: &str) -> Result<Stream, String> {
        let tls = ClientTls::new(ClientTlsSettings {
            trust: TrustAnchors::from_pem(pem).unwrap(),
            identity: None,
            provider: CryptoProvider::default(),
            verify_host_name: true,
        });
        let (user, password) = ("alice".to_owned(), Zeroizing::new(password.to_owned()));
        let sasl = SaslClient::new(SaslCredentials::Plain { user, password }).unwrap();
        self.wait(async {
            let stream = TcpStream::connect(self.broker.address).await.unwrap();
            let mut stream = tls.unwrap().connect(stream, "localhost").await.map_err(error_text)?;
            sasl.authenticate(&mut stream, "it").await.map_err(error_text)?;
            Ok(stream)
        })
    }

    /// What the broker answers to [`METADATA`].
    fn ask(&self, stream: &mut Stream) -> Vec<u8> {
        self.wait(async {
            stream.write_all(&METADATA).await.unwrap();
            stream.flush().await.unwrap();
            let length = stream.read_u32().await.unwrap();
            let mut answer = vec![0; usize::try_from(length).unwrap()];
            stream.read_exact(&mut answer).await.unwrap();
            answer
        })
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(async { tokio::time::timeout(PATIENCE, work).await.unwrap() })
    }
}

fn error_text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn certificate(dir: &Path) {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(dir.join("own.pem"), own.cert.pem()).unwrap();
    std::fs::write(dir.join("own.key"), own.signing_key.serialize_pem()).unwrap();
}

/// The broker's file, with these further lines.
fn configuration(dir: &Path, more: &str) {
    let text = "admin: 127.0.0.1:0\nlog.dirs: data\nlisteners:\n  - name: EXTERNAL\n    \
                address: 127.0.0.1:0\n    advertised: kafka.example:9093\n    \
                tls: {certificate_file: own.pem, key_file: own.key}\n    \
                sasl: {mechanisms: [PLAIN, SCRAM-SHA-256], users_file: users}\n";
    put(dir, "broker.yaml", &format!("{text}{more}"));
}

/// As editors and Kubernetes do: the file changes at once or not at all.
fn put(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join("beside"), text).unwrap();
    std::fs::rename(dir.join("beside"), dir.join(name)).unwrap();
}

#[test]
fn tls_listener_serves_only_authenticated_clients() {
    let mut world = World::start();
    let answered = world.ask(&mut world.connect("secret").unwrap());
    assert_eq!(answered[..4], METADATA[8..12], "{answered:?}");
    let host = b"kafka.example";
    assert!(answered.windows(host.len()).any(|part| part == host), "{answered:?}");
    assert!(world.connect("another").unwrap_err().contains("Authentication failed"));
    let line = world.broker.wait_for_line("client refused");
    for part in ["\"authentication\"", "EXTERNAL", "127.0.0.1:", "Invalid username or password"] {
        assert!(line.contains(part), "{line}");
    }
    assert!(!line.contains("another"), "{line}");
    let refused = "moldau_refusals_total{cause=\"authentication\"} 1\n";
    assert!(world.broker.page("/metrics").contains(refused));
    let (status, _) = world.broker.terminate_with_stderr();
    assert_eq!(status.code(), Some(0));
}

#[test]
fn client_tools_use_tls_and_sasl_and_report_errors_without_secrets() {
    let world = World::start();
    let (dir, address) = (world.dir.path(), world.broker.address.to_string());
    put(dir, "password", "secret\n");
    put(dir, "wrong", "another-secret\n");
    let tool = |arguments: &[&str], security: &str| {
        put(dir, "client.yaml", security);
        let mut command = Command::new(moldau());
        command.args(arguments).args(["--bootstrap", &address, "--security", "client.yaml"]);
        let output = command.current_dir(dir).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    };
    let good = "tls: {trust_file: own.pem, verify_host_name: false}\n\
                sasl: {mechanism: PLAIN, user: alice, password_file: password}\n";
    assert!(tool(&["topics", "create", "secured"], good).0);
    assert!(tool(&["topics"], good).1.contains("secured"));
    let with = |of: &str, other: &str| good.replace(of, other);
    let unknown = "client.yaml:2:26: unknown key \"usr\"; did you mean \"user\"?";
    for (security, told) in [
        (with("file: password", "file: wrong"), "Authentication failed"),
        (with("mechanism: PLAIN", "mechanism: SCRAM-SHA-512"), "SCRAM-SHA-512"),
        (with("trust_file: own.pem, ", ""), "certificate"),
        (with("user:", "usr:"), unknown),
        (with("file: password", "file: nowhere"), "client.yaml:2:54: nowhere: No such file"),
    ] {
        let (succeeded, said) = tool(&["topics"], &security);
        assert!(!succeeded && said.contains(told), "{told}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
    put(dir, "client.yaml", good);
    let mut check = Command::new(moldau());
    check.args(["config", "check", "client.yaml"]).current_dir(dir);
    let said = String::from_utf8(check.output().unwrap().stdout).unwrap();
    assert_eq!(said, "client.yaml: a valid client configuration\n");
}

#[test]
fn certificates_and_users_reload_without_affecting_clients() {
    let mut world = World::start();
    let dir = world.dir.path().to_owned();
    let mut standing = world.connect("secret").unwrap();

    put(&dir, "users", "alice:secret\nnobody\n");
    let line = world.broker.wait_for_line("the old configuration stays in force");
    let wrong = "broker.yaml:8:60: users, line 2: is not user:password";
    assert!(line.ends_with(wrong), "{line}");
    assert!(world.connect("secret").is_ok());

    put(&dir, "users", "alice:another\n");
    world.broker.wait_for_line("was reloaded");
    assert!(world.connect("secret").unwrap_err().contains("Authentication failed"));
    assert!(world.connect("another").is_ok());

    let before = std::fs::read(dir.join("own.pem")).unwrap();
    certificate(&dir);
    world.broker.wait_for_line("was reloaded");
    assert!(world.connect_trusting(&before, "another").unwrap_err().contains("certificate"));
    assert!(world.connect("another").is_ok());

    configuration(&dir, "tail_cache_mib: 64\n");
    let id = world.broker.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    let line = world.broker.wait_for_line("was reloaded");
    assert!(line.ends_with("; a restart is needed for tail_cache_mib"), "{line}");

    assert_eq!(world.ask(&mut standing)[..4], METADATA[8..12]);
    assert!(world.broker.metric("moldau_reloads_total") >= 3.0);
    assert!(world.broker.metric("moldau_reload_failures_total") >= 1.0);
    let (status, said) = world.broker.terminate_with_stderr();
    assert_eq!(status.code(), Some(0));
    assert!(!said.contains("secret") && !said.contains("another"), "{said}");
}
