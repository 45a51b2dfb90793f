//! Which clients are accepted, which are refused, and which error the caller gets.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use moldau_client::{Connection, ConnectionOptions, Error, Security};
use moldau_net::sasl::{Mechanism, SaslClient, SaslCredentials};
use moldau_protocol::messages::HeartbeatRequest;
use zeroize::Zeroizing;

use crate::server::{Authority, Server};

const PATIENCE: Duration = Duration::from_secs(60);

fn options(authority: &Authority, password: &str) -> ConnectionOptions {
    let credentials = SaslCredentials::Scram {
        mechanism: Mechanism::ScramSha256,
        user: "alice".to_owned(),
        password: Zeroizing::new(password.to_owned()),
    };
    let sasl = Some(Arc::new(SaslClient::new(credentials).unwrap()));
    let security = Security { tls: Some(authority.client(true)), sasl };
    ConnectionOptions { security, ..ConnectionOptions::default() }
}

async fn connect(server: &Server, options: &ConnectionOptions) -> Result<Connection, Error> {
    Connection::connect(&server.address.to_string().parse().unwrap(), options).await
}

async fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(PATIENCE, test).await.unwrap() })
}

#[test]
fn right_certificate_and_password_get_through() {
    let authority = Authority::new();
    let server = Server::start(&authority, None);
    run(async {
        let connection = connect(&server, &options(&authority, "secret")).await.unwrap();
        let request = HeartbeatRequest { group_id: "g".repeat(30_000), ..Default::default() };
        let (one, two) = tokio::join!(connection.send(&request), connection.send(&request));
        assert_eq!((one.unwrap().error_code, two.unwrap().error_code), (0, 0));
    });
}

#[test]
fn wrong_password_fails_with_the_brokers_message_and_is_not_tried_again() {
    let authority = Authority::new();
    let server = Server::start(&authority, None);
    run(async {
        let error = connect(&server, &options(&authority, "guess")).await.unwrap_err();
        assert!(matches!(error, Error::Authentication { .. }), "{error:?}");
        assert!(!error.is_retriable());
        let text = error.to_string();
        assert!(text.contains(&server.address.to_string()), "{text}");
        assert!(text.contains("invalid credentials with SASL mechanism SCRAM-SHA-256"), "{text}");
        assert!(!text.contains("guess"), "{text}");
    });
}

#[test]
fn certificates_that_are_not_believed_are_named_as_the_cause() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = Server::start(&authority, None);
    run(async {
        for (tls, cause) in [
            (other.client(true), "invalid peer certificate"),
            (authority.client(false), "CertificateRequired"),
        ] {
            let mut options = options(&authority, "secret");
            options.security.tls = Some(tls);
            let error = connect(&server, &options).await.unwrap_err();
            assert!(matches!(error, Error::Tls { .. }), "{error:?}");
            assert!(!error.is_retriable());
            assert!(error.to_string().contains(cause), "{error}");
        }
    });
}

#[test]
fn connection_authenticates_again_between_its_requests() {
    let authority = Authority::new();
    let server = Server::start(&authority, Some(Duration::from_millis(400)));
    run(async {
        let connection = connect(&server, &options(&authority, "secret")).await.unwrap();
        for count in 2..5 {
            wait_until(|| server.shared.authentications.load(Relaxed) >= count).await;
            let request = HeartbeatRequest::default();
            let (one, two) = tokio::join!(connection.send(&request), connection.send(&request));
            assert_eq!((one.unwrap().error_code, two.unwrap().error_code), (0, 0));
        }
    });
}

#[test]
fn connection_whose_user_is_gone_ends_with_the_brokers_words() {
    let authority = Authority::new();
    let server = Server::start(&authority, Some(Duration::from_millis(200)));
    run(async {
        let connection = connect(&server, &options(&authority, "secret")).await.unwrap();
        server.forget_the_user();
        wait_until(|| connection.is_closed()).await;
        let error = connection.send(&HeartbeatRequest::default()).await.unwrap_err();
        assert!(matches!(error, Error::Authentication { .. }), "{error:?}");
        assert!(error.to_string().contains("during re-authentication"), "{error}");
    });
}
