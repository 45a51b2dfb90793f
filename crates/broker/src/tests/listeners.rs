//! Listeners as clients meet them: over sockets, with the address and the security of each.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_net::sasl::{Mechanism, SaslClient, SaslCredentials, Users};
use moldau_protocol::messages::alter_user_scram_credentials_request::ScramCredentialUpsertion;
use moldau_protocol::messages::{
    AlterUserScramCredentialsRequest, DescribeAclsRequest, DescribeClusterRequest,
    FindCoordinatorRequest, MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use moldau_protocol::{ErrorCode, Message, Reader, Request, frame};
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::world::{code, config};
use crate::config::{Advertised, AuthorizationSettings, ListenerConfig, SaslListener};
use crate::server::Broker;

/// How long an answer may take on a busy machine.
pub(super) const DEADLINE: Duration = Duration::from_secs(20);

/// A broker with a plain listener and one with SASL, and its directory.
pub(super) struct Server {
    pub(super) broker: Broker,
    _dir: TempDir,
}

impl Server {
    fn start() -> Self {
        Self::with(|_| {})
    }

    /// A broker whose SASL is set otherwise.
    pub(super) fn with(change: impl FnOnce(&mut SaslListener)) -> Self {
        Self::configured(|settings| {
            let sasl = settings.listeners.iter_mut().find_map(|it| it.sasl.as_mut());
            change(sasl.unwrap());
        })
    }

    /// A broker with other settings.
    fn configured(change: impl FnOnce(&mut crate::Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = settings(dir.path());
        change(&mut settings);
        let broker = Broker::start(settings).unwrap();
        Self { broker, _dir: dir }
    }

    fn plain(&self) -> Client {
        Client::connect(self.broker.addresses()[0])
    }

    pub(super) fn sasl(&self) -> Client {
        Client::connect(self.broker.addresses()[1])
    }
}

fn settings(data_dir: &Path) -> crate::Config {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let advertised = Some(Advertised { host: "kafka.example".to_owned(), port: 9093 });
    let mut users = Users::default();
    for user in ["admin", "alice"] {
        users.insert_password(user, Zeroizing::new(format!("{user}-secret")));
    }
    let sasl = SaslListener {
        mechanisms: vec![Mechanism::Plain, Mechanism::ScramSha256],
        users: Arc::new(users),
        tokens: None,
        max_reauthentication: None,
    };
    let secured = ListenerConfig {
        name: "SASL_PLAINTEXT".to_owned(),
        sasl: Some(sasl),
        ..ListenerConfig::plain(local, advertised)
    };
    let super_users = ["User:admin", "User:ANONYMOUS"].map(|it| it.parse().unwrap()).into();
    crate::Config {
        listeners: vec![ListenerConfig::plain(local, None), secured],
        authorization: Some(AuthorizationSettings { super_users, ..Default::default() }),
        ..config(data_dir)
    }
}

#[test]
fn a_request_above_the_limit_of_the_broker_closes_its_connection() {
    let server = Server::configured(|settings| settings.request_bytes_max = 1000);
    let request = |bytes: usize| FindCoordinatorRequest {
        coordinator_keys: vec!["k".repeat(bytes)],
        ..FindCoordinatorRequest::default()
    };
    assert!(server.plain().try_ask(4, &request(900)).is_some());
    assert!(server.plain().try_ask(4, &request(1000)).is_none());
}

#[test]
fn idle_client_is_disconnected() {
    let idle = Duration::from_millis(10);
    let server = Server::configured(|settings| settings.connections_max_idle = idle);
    assert!(server.plain().is_closed());
}

/// A blocking connection.
pub(super) struct Client {
    pub(super) stream: TcpStream,
    address: SocketAddr,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        Self { stream, address }
    }

    /// Asks and waits; `None` if the broker closes the connection instead.
    pub(super) fn try_ask<Q: Request>(&mut self, version: i16, request: &Q) -> Option<Q::Response> {
        let mut out = BytesMut::new();
        frame::encode_request(&mut out, version, 5, Some("tester"), request).unwrap();
        self.stream.write_all(&out).ok()?;
        let answer = self.read_frame()?;
        let (_, body) = frame::parse_response(&answer, Q::KEY, version).unwrap();
        Some(Q::Response::decode(&mut Reader::new(body), version).unwrap())
    }

    /// The next frame; `None` if the broker closes the connection instead.
    pub(super) fn read_frame(&mut self) -> Option<Vec<u8>> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).ok()?;
        let mut frame = vec![0; u32::from_be_bytes(length) as usize];
        self.stream.read_exact(&mut frame).unwrap();
        Some(frame)
    }

    pub(super) fn ask<Q: Request>(&mut self, version: i16, request: &Q) -> Q::Response {
        self.try_ask(version, request).unwrap_or_else(|| panic!("{} was not answered", Q::KEY))
    }

    /// Logs in by PLAIN and returns the code of the answer.
    pub(super) fn log_in(&mut self, user: &str, password: &str) -> ErrorCode {
        let handshake = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
        assert_eq!(code(self.ask(1, &handshake).error_code), ErrorCode::None);
        let auth_bytes = Bytes::from(format!("\0{user}\0{password}"));
        let request = SaslAuthenticateRequest { auth_bytes, ..SaslAuthenticateRequest::default() };
        code(self.ask(2, &request).error_code)
    }

    /// Whether the broker has closed the connection.
    pub(super) fn is_closed(&mut self) -> bool {
        matches!(self.stream.read(&mut [0]), Ok(0) | Err(_))
    }

    /// What the broker calls itself.
    pub(super) fn addresses(&mut self) -> Vec<(String, i32)> {
        let metadata = self.ask(12, &MetadataRequest::default()).brokers.remove(0);
        let cluster = DescribeClusterRequest { endpoint_type: 1, ..Default::default() };
        let cluster = self.ask(1, &cluster).brokers.remove(0);
        let find = FindCoordinatorRequest {
            coordinator_keys: vec!["readers".to_owned()],
            ..FindCoordinatorRequest::default()
        };
        let coordinator = self.ask(4, &find).coordinators.remove(0);
        vec![
            (metadata.host, metadata.port),
            (cluster.host, cluster.port),
            (coordinator.host, coordinator.port),
        ]
    }
}

#[test]
fn each_listener_reports_its_own_address() {
    let server = Server::start();
    let mut plain = server.plain();
    let own = ("127.0.0.1".to_owned(), i32::from(plain.address.port()));
    assert_eq!(plain.addresses(), vec![own; 3]);
    let mut secured = server.sasl();
    assert_eq!(secured.log_in("admin", "admin-secret"), ErrorCode::None);
    assert_eq!(secured.addresses(), vec![("kafka.example".to_owned(), 9093); 3]);
}

#[test]
fn nothing_is_served_before_authentication() {
    let server = Server::start();
    let mut client = server.sasl();
    assert!(client.try_ask(12, &MetadataRequest::default()).is_none());
    assert!(client.is_closed());
}

#[test]
fn a_wrong_password_is_refused_and_the_connection_closed() {
    let server = Server::start();
    for (user, password) in [("admin", "wrong"), ("nobody", "admin-secret")] {
        let mut client = server.sasl();
        assert_eq!(client.log_in(user, password), ErrorCode::SaslAuthenticationFailed);
        assert!(client.is_closed());
    }
    assert_eq!(server.sasl().log_in("admin", "admin-secret"), ErrorCode::None);
}

#[test]
fn refusal_of_a_mechanism_lists_the_offered_ones() {
    let server = Server::start();
    let mut client = server.sasl();
    let response = client.ask(1, &SaslHandshakeRequest { mechanism: "GSSAPI".to_owned() });
    assert_eq!(code(response.error_code), ErrorCode::UnsupportedSaslMechanism);
    assert_eq!(response.mechanisms, ["PLAIN", "SCRAM-SHA-256"]);
    assert!(client.is_closed());
}

#[test]
fn plain_listener_refuses_sasl() {
    let server = Server::start();
    let mut client = server.plain();
    let handshake = client.ask(1, &SaslHandshakeRequest { mechanism: "PLAIN".to_owned() });
    assert_eq!(code(handshake.error_code), ErrorCode::IllegalSaslState);
    let response = client.ask(2, &SaslAuthenticateRequest::default());
    assert_eq!(code(response.error_code), ErrorCode::IllegalSaslState);
    assert_eq!(client.addresses().len(), 3);
}

#[test]
fn rights_are_those_of_the_authenticated_user() {
    let server = Server::start();
    let describe = |user: &str| {
        let mut client = server.sasl();
        assert_eq!(client.log_in(user, &format!("{user}-secret")), ErrorCode::None);
        let request = DescribeAclsRequest {
            resource_type_filter: 1,
            pattern_type_filter: 1,
            operation: 1,
            permission_type: 1,
            ..DescribeAclsRequest::default()
        };
        code(client.ask(3, &request).error_code)
    };
    assert_eq!(describe("alice"), ErrorCode::ClusterAuthorizationFailed);
    assert_eq!(describe("admin"), ErrorCode::None);
}

#[test]
fn created_scram_user_can_log_in_at_once() {
    let server = Server::start();
    let log_in = |password: &str| {
        let credentials = SaslCredentials::Scram {
            mechanism: Mechanism::ScramSha256,
            user: "carol".to_owned(),
            password: Zeroizing::new(password.to_owned()),
        };
        let client = SaslClient::new(credentials).unwrap();
        let address = server.broker.addresses()[1];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
            client.authenticate(&mut stream, "tester").await.is_ok()
        })
    };
    assert!(!log_in("pencil"));
    // The salted password of "pencil" with this salt (RFC 7677, section 3).
    let salted_password = [
        0xc4, 0xa4, 0x95, 0x10, 0x32, 0x3a, 0xb4, 0xf9, 0x52, 0xca, 0xc1, 0xfa, 0x99, 0x44, 0x19,
        0x39, 0xe7, 0x8e, 0xa7, 0x4d, 0x6b, 0xe8, 0x1d, 0xdf, 0x70, 0x96, 0xe8, 0x75, 0x13, 0xdc,
        0x61, 0x5d,
    ];
    let salt = [
        0x5b, 0x6d, 0x99, 0x68, 0x9d, 0x12, 0x35, 0x8e, 0xec, 0xa0, 0x4b, 0x14, 0x12, 0x36, 0xfa,
        0x81,
    ];
    let upsertion = ScramCredentialUpsertion {
        name: "carol".to_owned(),
        mechanism: 1,
        iterations: 4096,
        salt: Bytes::copy_from_slice(&salt),
        salted_password: Bytes::copy_from_slice(&salted_password),
        ..ScramCredentialUpsertion::default()
    };
    let request = AlterUserScramCredentialsRequest {
        upsertions: vec![upsertion],
        ..AlterUserScramCredentialsRequest::default()
    };
    let response = server.plain().ask(0, &request);
    assert_eq!(code(response.results[0].error_code), ErrorCode::None);
    assert!(log_in("pencil"));
    assert!(!log_in("pencils"));
}
