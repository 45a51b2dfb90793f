//! A Schema Registry with TLS, which wants credentials.

use std::net::SocketAddr;
use std::time::Duration;

use moldau_consumer::schema_registry::{RegistryError, SchemaRegistry};
use moldau_net::tls::{
    ClientAuthentication, CryptoProvider, Identity, PrincipalMapping, ServerTls, ServerTlsSettings,
};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::registry::Registry;

/// Starts a registry with a certificate for `name`; returns its address, and the certificate of
/// its authority.
async fn start(registry: &Registry, name: &str) -> (SocketAddr, String) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let root_key = KeyPair::generate().unwrap();
    let root = params.self_signed(&root_key).unwrap().pem();
    let issuer = Issuer::new(params, root_key);
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap().pem();
    let key = key.serialize_pem();
    let identity = Identity::from_pem(certificate.as_bytes(), key.as_bytes()).unwrap();
    let tls = ServerTls::new(ServerTlsSettings {
        identities: vec![(None, identity)],
        client_authentication: ClientAuthentication::None,
        client_trust: None,
        provider: CryptoProvider::default(),
        principal_mapping: PrincipalMapping::default(),
    });
    let (tls, registry) = (tls.unwrap(), registry.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            let deadline = Instant::now() + Duration::from_secs(60);
            // Clients that do not trust it give up.
            if let Ok(accepted) = tls.accept(socket, deadline).await {
                registry.serve(accepted.stream).await;
            }
        }
    });
    (address, root)
}

/// A registry that knows one schema by the id 7.
fn registry(authorization: &str) -> Registry {
    let authorization = Some(authorization.to_owned());
    let registry = Registry { authorization, ..Registry::default() };
    registry.answer("POST /subjects/orders/versions", 200, &serde_json::json!({ "id": 7 }));
    registry
}

async fn register(client: &SchemaRegistry) -> Result<u32, RegistryError> {
    client.register("orders", "JSON", "{}").await
}

#[tokio::test]
async fn a_registry_with_tls_gets_a_bearer_token() {
    let registry = registry("Bearer to.ken-1");
    let (address, root) = start(&registry, "127.0.0.1").await;
    let client = SchemaRegistry::new(&format!("https://{address}")).unwrap();
    let client = client.trust(root.as_bytes()).unwrap();
    let bearer = |token: &str| client.clone().bearer(token).unwrap();
    for refused in [client.clone(), bearer("another-secret")] {
        let error = register(&refused).await.expect_err("it is not admitted");
        assert!(matches!(&error, RegistryError::Refused { status: 401, .. }), "{error}");
        // Someone may mend the token while records wait.
        assert!(error.is_retriable());
        let said = format!("{error} {error:?} {refused:?}");
        assert!(!said.contains("secret") && said.contains("Unauthorized"), "{said}");
    }
    assert_eq!(register(&bearer("to.ken-1")).await.expect("it is admitted"), 7);
    assert_eq!(registry.asked("POST"), 3);
}

#[tokio::test]
async fn a_registry_with_tls_gets_a_user_and_password() {
    // "app:pass:word" in base64.
    let registry = registry("Basic YXBwOnBhc3M6d29yZA==");
    let (address, root) = start(&registry, "localhost").await;
    let client = SchemaRegistry::new(&format!("https://localhost:{}/", address.port())).unwrap();
    let client = client.trust(root.as_bytes()).unwrap();
    let wrong = client.clone().basic_auth("app", "word").unwrap();
    let error = register(&wrong).await.expect_err("it is not admitted");
    assert!(matches!(error, RegistryError::Refused { status: 401, .. }), "{error}");
    let right = client.basic_auth("app", "pass:word").unwrap();
    assert_eq!(register(&right).await.expect("it is admitted"), 7);
}

#[tokio::test]
async fn credentials_go_only_to_a_registry_that_is_trusted() {
    let registry = registry("Bearer token");
    let (address, root) = start(&registry, "registry.example").await;
    let (_, other_root) = start(&registry, "127.0.0.1").await;
    let client = SchemaRegistry::new(&format!("https://{address}")).unwrap();
    let client = client.bearer("token").unwrap();
    let of_another_host = client.clone().trust(root.as_bytes()).unwrap();
    let of_another_authority = client.clone().trust(other_root.as_bytes()).unwrap();
    for client in [client, of_another_host, of_another_authority] {
        let error = register(&client).await.expect_err("it is not trusted");
        assert!(matches!(error, RegistryError::Unavailable(_)), "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    assert_eq!(registry.asked("POST"), 0);
}

#[test]
fn settings_that_cannot_be_are_refused_without_repeating_them() {
    let client = || SchemaRegistry::new("https://registry.example").unwrap();
    let refused = [
        client().bearer("secret\n").expect_err("a line break"),
        client().basic_auth("secret:user", "password").expect_err("a colon"),
        client().trust(b"secret").expect_err("no certificate"),
    ];
    for error in refused {
        assert!(matches!(error, RegistryError::Setting(_)), "{error}");
        assert!(!error.to_string().contains("secret"), "{error}");
    }
}
