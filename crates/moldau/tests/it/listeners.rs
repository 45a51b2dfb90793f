//! A broker with the listeners of a file.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use moldau_net::sasl::{SaslClient, SaslCredentials};
use moldau_net::tls::{ClientTls, ClientTlsSettings, CryptoProvider, TrustAnchors};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
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

/// A broker with one listener that has TLS and PLAIN.
fn broker(dir: &Path) -> Process {
    let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let text = "admin: 127.0.0.1:0\ndata_dir: data\nlisteners:\n  - name: EXTERNAL\n    \
                address: 127.0.0.1:0\n    advertised: kafka.example:9093\n    \
                tls: {certificate_file: own.pem, key_file: own.key}\n    \
                sasl: {mechanisms: [PLAIN, SCRAM-SHA-256], users_file: users}\n";
    for (name, text) in [
        ("own.pem", own.cert.pem().as_str()),
        ("own.key", &own.signing_key.serialize_pem()),
        ("users", "alice:secret\n"),
        ("broker.yaml", text),
    ] {
        std::fs::write(dir.join(name), text).unwrap();
    }
    let mut command = Command::new(moldau());
    command.args(["broker", "--config", "broker.yaml"]).current_dir(dir);
    Process::start(command)
}

/// What the broker answers to [`METADATA`] by TLS, once it believes the credentials.
async fn answer(
    broker: &Process,
    tls: &ClientTls,
    credentials: SaslCredentials,
) -> Result<Vec<u8>, String> {
    let stream = TcpStream::connect(broker.address).await.unwrap();
    let mut stream = tls.connect(stream, "localhost").await.unwrap();
    let sasl = SaslClient::new(credentials).unwrap();
    sasl.authenticate(&mut stream, "it").await.map_err(|error| error.to_string())?;
    stream.write_all(&METADATA).await.unwrap();
    stream.flush().await.unwrap();
    let length = stream.read_u32().await.unwrap();
    let mut answer = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut answer).await.unwrap();
    Ok(answer)
}

#[test]
fn a_listener_of_a_file_answers_by_tls_whom_it_knows() {
    let dir = tempfile::tempdir().unwrap();
    let broker = broker(dir.path());
    let trust = TrustAnchors::from_pem(&std::fs::read(dir.path().join("own.pem")).unwrap());
    let tls = ClientTls::new(ClientTlsSettings {
        trust: trust.unwrap(),
        identity: None,
        provider: CryptoProvider::default(),
        verify_host_name: true,
    });
    let tls = tls.unwrap();
    let plain = |password: &str| SaslCredentials::Plain {
        user: "alice".to_owned(),
        password: Zeroizing::new(password.to_owned()),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ask = |credentials| {
        let answer = answer(&broker, &tls, credentials);
        runtime.block_on(async { tokio::time::timeout(PATIENCE, answer).await.unwrap() })
    };
    let answered = ask(plain("secret")).unwrap();
    assert_eq!(answered[..4], METADATA[8..12], "{answered:?}");
    let host = b"kafka.example";
    assert!(answered.windows(host.len()).any(|part| part == host), "{answered:?}");
    assert!(ask(plain("another")).unwrap_err().contains("Authentication failed"));
    let refused = "moldau_refusals_total{cause=\"authentication\"} 1\n";
    assert!(broker.page("/metrics").contains(refused));
    let (status, _) = broker.terminate_said();
    assert_eq!(status.code(), Some(0));
}
