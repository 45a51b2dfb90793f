//! TLS to a real PostgreSQL and to a store, and roles that may do little.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    Answer, Bucket, BucketSettings, Error, Frames, LogId, ObjectKey, Postgres, Sequencer, Settings,
    Store, garbage,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use uuid::Uuid;

use crate::owner::put_record;
use crate::postgres_server::{self, Server};
use crate::s3_server::S3Server;

/// An authority with the certificate of a server and that of a client.
struct Authority {
    own: CertifiedIssuer<'static, KeyPair>,
    files: TempDir,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let own = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let files = tempfile::tempdir().unwrap();
        std::fs::write(files.path().join("root.pem"), own.pem()).unwrap();
        Self { own, files }
    }

    /// Certificate and key of a name, in PEM.
    fn issue(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.own).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let file = self.files.path().join(name);
        std::fs::write(&file, text).unwrap();
        file
    }

    fn root(&self) -> String {
        self.files.path().join("root.pem").display().to_string()
    }
}

/// A server on a port, and a database with the schema.
struct Listening {
    server: Server,
    database: Settings,
    port: u16,
    /// Keeps the port for the server, also before it listens.
    _reserved: TcpSocket,
}

impl Listening {
    async fn start(files: &[(&str, &str)], options: &[&str]) -> Self {
        let reserved = TcpSocket::new_v4().unwrap();
        // With this option on both, a server may listen where another socket is bound.
        reserved.set_reuseaddr(true).unwrap();
        reserved.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let port = reserved.local_addr().unwrap().port();
        let own = ["fsync=off", "listen_addresses=127.0.0.1"];
        let server = Server::start_of(port, files, &[&own[..], options].concat());
        let database = server.database().await;
        Self { server, database, port, _reserved: reserved }
    }

    /// Settings with a URL to the port, which asks for the name of the server's certificate.
    fn url(&self, user: &str, host: &str, parameters: &str) -> Settings {
        let (port, name) = (self.port, self.database.connection.rsplit_once('=').unwrap().1);
        let connection =
            format!("postgresql://{user}@{host}:{port}/{name}?hostaddr=127.0.0.1&{parameters}");
        Settings { connection, ..self.database.clone() }
    }
}

/// Connects, and reads over a session of its own as well.
async fn connect(settings: &Settings) -> Answer<()> {
    let postgres = Postgres::connect(settings).await?;
    let page = postgres.named().next().await?;
    assert!(page.is_empty());
    Ok(())
}

fn told(answer: Answer<()>) -> String {
    answer.unwrap_err().to_string()
}

#[tokio::test]
async fn each_sslmode_secures_connections_and_verifies_what_it_says() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other authority"));
    let (certificate, key) = authority.issue(HOST);
    let files = [
        ("server.crt", certificate.as_str()),
        ("server.key", &key),
        ("root.crt", &authority.own.pem()),
        ("pg_hba.conf", ACCESS),
    ];
    let server = Listening::start(&files, &["ssl=on", "ssl_ca_file=root.crt"]).await;
    let (own, strange) = (authority.root(), other.root());
    for good in [
        String::new(),
        "sslmode=prefer".into(),
        "sslmode=require".into(),
        "ssl=true".into(),
        format!("sslmode=verify-full&sslrootcert={own}"),
        format!("sslmode=verify-full&sslrootcert={}", own.replace('/', "%2F")),
    ] {
        assert_eq!(connect(&server.url("moldau", HOST, &good)).await, Ok(()), "{good}");
    }
    let full = format!("sslmode=verify-full&sslrootcert={own}");
    let ca = format!("sslmode=verify-ca&sslrootcert={own}");
    assert_eq!(connect(&server.url("moldau", "other.example", &ca)).await, Ok(()));
    let settings = server.url("moldau", "other.example", &full);
    let refused = told(connect(&settings).await);
    assert!(refused.contains("not valid for name"), "{refused}");
    for wrong in [
        format!("sslmode=verify-full&sslrootcert={strange}"),
        format!("sslmode=verify-ca&sslrootcert={strange}"),
        format!("sslmode=require&sslrootcert={strange}"),
    ] {
        let refused = told(connect(&server.url("moldau", HOST, &wrong)).await);
        assert!(refused.contains("UnknownIssuer") && refused.contains(HOST), "{wrong}: {refused}");
    }
    let plain = connect(&server.url("moldau", HOST, "sslmode=disable")).await;
    assert!(matches!(plain, Err(Error::DatabaseRefused(_))), "{plain:?}");
}

#[tokio::test]
async fn passwords_are_bound_to_the_certificate_and_certificates_take_their_place() {
    let authority = Authority::new("authority");
    let (certificate, key) = authority.issue(HOST);
    let files = [
        ("server.crt", certificate.as_str()),
        ("server.key", &key),
        ("root.crt", &authority.own.pem()),
        ("pg_hba.conf", ACCESS),
    ];
    let server = Listening::start(&files, &["ssl=on", "ssl_ca_file=root.crt"]).await;
    for statement in [
        "create role with_password login superuser password 'a?b@c'",
        "create role with_certificate login superuser",
    ] {
        assert!(server.server.run_statement(&server.database, statement));
    }
    let bound = "channel_binding=require&sslmode=require";
    let settings = server.url("with_password:a%3Fb%40c", HOST, bound);
    assert_eq!(connect(&settings).await, Ok(()));
    let wrong = told(connect(&server.url("with_password:hunter2", HOST, bound)).await);
    assert!(wrong.contains("the database refuses") && !wrong.contains("hunter2"), "{wrong}");
    let (certificate, key) = authority.issue("with_certificate");
    let certificate = authority.file("client.pem", &certificate);
    let key = authority.file("client.key", &key);
    let shown =
        format!("sslmode=require&sslcert={}&sslkey={}", certificate.display(), key.display());
    assert_eq!(connect(&server.url("with_certificate", HOST, &shown)).await, Ok(()));
    let without = connect(&server.url("with_certificate", HOST, "sslmode=require")).await;
    assert!(matches!(without, Err(Error::DatabaseRefused(_))), "{without:?}");
}

/// As libpq does.
#[tokio::test]
async fn without_usable_tls_prefer_goes_on_in_the_clear_and_require_does_not() {
    let authority = Authority::new("authority");
    let (certificate, key) = authority.issue(HOST);
    let files = [("server.crt", certificate.as_str()), ("server.key", &key)];
    // No version of TLS that this program speaks.
    let old = ["ssl=on", "ssl_min_protocol_version=TLSv1", "ssl_max_protocol_version=TLSv1.1"];
    for (options, reason) in [(&old[..], "TLS handshake"), (&["ssl=off"], "does not support TLS")] {
        let server = Listening::start(&files, options).await;
        assert_eq!(connect(&server.url("moldau", HOST, "")).await, Ok(()), "{options:?}");
        let refused = told(connect(&server.url("moldau", HOST, "sslmode=require")).await);
        assert!(refused.contains(reason), "{refused}");
    }
}

#[tokio::test]
async fn a_role_that_may_only_use_a_complete_schema_migrates_nothing_and_works() {
    let server = postgres_server::shared();
    let owner = server.database().await;
    let number = owner.connection.rsplit_once('_').unwrap().1;
    let role = format!("user_{number}");
    let as_role = Settings {
        connection: owner.connection.replace("user=moldau", &format!("user={role}")),
        application_name: "moldau test".into(),
        ..owner.clone()
    };
    assert!(server.run_statement(&owner, &format!("create role {role} login")));
    let refused = Postgres::migrate(&as_role).await.unwrap_err().to_string();
    assert!(refused.contains("grant usage on schema moldau"), "{refused}");
    for grant in
        ["usage on schema moldau", "select, insert, update, delete on all tables in schema moldau"]
    {
        assert!(server.run_statement(&owner, &format!("grant {grant} to {role}")));
    }
    assert_eq!(Postgres::migrate(&as_role).await, Ok(0));
    let postgres = Postgres::connect(&as_role).await.unwrap();
    let (store, other) = (S3Server::start().await, Postgres::connect(&owner).await.unwrap());
    let bucket = store.bucket();
    postgres.claim_store(&bucket).await.unwrap();
    let key = put_record(&postgres, &bucket).await;
    assert_eq!(other.known(&[key]).await, Ok(vec![(key, true)]));
    postgres.trim(LogId { topic: Uuid::from_u128(1), partition: 0 }, 1).await.unwrap();
    assert_eq!(garbage::collect(&postgres, &bucket).await, Ok(1));
    postgres.begin_generation(Duration::ZERO).await.unwrap();
    assert_eq!(postgres.status().await.unwrap().topics, 1);
    assert!(postgres.claim(1, "broker").await.unwrap().is_some());
    let named = "do $$ begin assert exists (select from pg_stat_activity a
        where a.application_name = 'moldau test' and a.datname = current_database()); end $$";
    assert!(server.run_statement(&owner, named));
    // What is missing of the schema needs more.
    assert!(server.run_statement(&owner, "delete from moldau.schema_versions where version > 1"));
    let refused = Postgres::migrate(&as_role).await.unwrap_err().to_string();
    for part in ["from version 1 to ", "this role must own the schema moldau"] {
        assert!(refused.contains(part), "{refused}");
    }
}

#[tokio::test]
async fn a_role_that_may_create_nothing_is_told_which_grant_it_lacks() {
    let server = postgres_server::shared();
    let owner = server.empty_database();
    let role = format!("none_{}", owner.connection.rsplit_once('_').unwrap().1);
    assert!(server.run_statement(&owner, &format!("create role {role} login")));
    let connection = owner.connection.replace("user=moldau", &format!("user={role}"));
    let as_role = Settings { connection, ..owner };
    let refused = Postgres::migrate(&as_role).await.unwrap_err().to_string();
    assert!(refused.contains("permission denied for database"), "{refused}");
    assert!(refused.contains("grant create on database"), "{refused}");
}

#[tokio::test]
async fn a_store_is_trusted_by_the_authorities_of_its_settings_alone() {
    let (authority, other) = (Authority::new("authority"), Authority::new("other authority"));
    let store = S3Server::start().await;
    let plain = store.settings();
    let address = plain.endpoint.as_ref().unwrap().strip_prefix("http://").unwrap().to_owned();
    let (port, front) = front(&authority, address.clone()).await;
    let with = |endpoint: String, trust: Option<String>| BucketSettings {
        endpoint: Some(endpoint),
        trust: trust.map(String::into_bytes),
        ..plain.clone()
    };
    let secured = format!("https://127.0.0.1:{port}");
    let both = format!("{}{}", other.own.pem(), authority.own.pem());
    let bucket = Bucket::open(&with(secured.clone(), Some(both))).unwrap();
    bucket.put(ObjectKey::fresh(), Bytes::from_static(b"batches")).await.unwrap();
    assert_eq!(store.keys().len(), 1);
    for trust in [None, Some(other.own.pem())] {
        let bucket = Bucket::open(&with(secured.clone(), trust)).unwrap();
        let refused = told(bucket.reach().await);
        assert!(refused.contains("trust_file of the bucket can name"), "{refused}");
    }
    let bucket = Bucket::open(&with(format!("https://{address}"), None)).unwrap();
    let refused = told(bucket.reach().await);
    assert!(refused.contains("the store does not speak TLS at this endpoint"), "{refused}");
    let wrong = Bucket::open(&with(secured, Some("none".into()))).err();
    assert!(matches!(wrong, Some(Error::Settings(_))), "{wrong:?}");
    front.abort();
}

/// TLS in front of a server.
async fn front(authority: &Authority, address: String) -> (u16, JoinHandle<()>) {
    let (certificate, key) = authority.issue("127.0.0.1");
    let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let serving = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, address) = (acceptor.clone(), address.clone());
            tokio::spawn(async move {
                // A client that does not trust the certificate ends the handshake.
                let Ok(mut secured) = acceptor.accept(stream).await else { return };
                let mut plain = TcpStream::connect(address).await.unwrap();
                drop(tokio::io::copy_bidirectional(&mut secured, &mut plain).await);
            });
        }
    });
    (port, serving)
}

const HOST: &str = "db.example";
/// Without TLS nobody gets in, except over the socket in the directory.
const ACCESS: &str = "
local all all trust
hostssl all with_password 127.0.0.1/32 scram-sha-256
hostssl all with_certificate 127.0.0.1/32 cert
hostssl all all 127.0.0.1/32 trust
";
