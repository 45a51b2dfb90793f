//! The Transit client against a real Vault, whose binary `MOLDAU_VAULT` names. Each test has a
//! server of its own on loopback.

mod server;

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use moldau_encryption::{
    DataKeys, Edek, KekId, KeySettings, Kms, KmsError, Operation, Outcome, Vault, VaultAuth,
    VaultSettings,
};
use tokio::time::{Instant, interval};

use self::server::Server;

/// What a proxy needs of the engine, and no more.
const POLICY: &str = r#"
path "transit/keys/*" { capabilities = ["read"] }
path "transit/datakey/plaintext/*" { capabilities = ["update"] }
path "transit/decrypt/*" { capabilities = ["update"] }
"#;

/// A server with Transit, its key `orders`, and the policy `proxy`.
fn transit(server: &Server) {
    server.admin(&["secrets", "enable", "transit"]);
    server.admin(&["write", "-f", "transit/keys/orders"]);
    let file = server.directory().join("policy.hcl");
    fs::write(&file, POLICY).unwrap();
    server.admin(&["policy", "write", "proxy", file.to_str().unwrap()]);
}

/// A client whose token stands in the file `token` beside the server.
fn with_token(server: &Server, engine: &str, token: &str) -> (Vault, PathBuf) {
    let file = server.directory().join("token");
    fs::write(&file, token).unwrap();
    let auth = VaultAuth::TokenFile { file: file.clone() };
    let url = format!("{}/v1/{engine}", server.address());
    let settings = VaultSettings { url, auth, ca_file: server.ca_file(), namespace: None };
    (Vault::new(&settings).unwrap(), file)
}

fn proxy_token(server: &Server) -> String {
    let token = server.admin(&["token", "create", "-policy=proxy", "-field=token"]);
    token.trim().to_owned()
}

/// The version of the key that wrapped the data key, by Kroxylicious's layout of `orders`.
fn version(edek: &Edek) -> String {
    let text = edek.0.strip_prefix(b"\x06ordersvault:v").unwrap();
    text.iter().map_while(|byte| byte.is_ascii_digit().then(|| char::from(*byte))).collect()
}

#[tokio::test]
async fn data_keys_outlive_the_rotation_of_their_key_and_not_its_end() {
    let server = Server::start();
    transit(&server);
    let (vault, _) = with_token(&server, "transit", &proxy_token(&server));
    let id = vault.resolve_alias("orders").await.unwrap();
    assert_eq!(id, KekId("orders".into()));
    let first = vault.generate_data_key(&id).await.unwrap();
    assert_eq!((version(&first.edek).as_str(), first.edek.0.len()), ("1", 7 + 89));
    server.admin(&["write", "-f", "transit/keys/orders/rotate"]);
    let second = vault.generate_data_key(&id).await.unwrap();
    assert_eq!(version(&second.edek), "2");
    for wrapped in [&first, &second] {
        let opened = vault.decrypt_edek(&wrapped.edek).await.unwrap();
        assert_eq!(opened.bytes(), wrapped.key.bytes());
    }
    let mut damaged = first.edek.0.clone();
    damaged[30] = if damaged[30] == b'A' { b'B' } else { b'A' };
    let damaged = vault.decrypt_edek(&Edek(damaged)).await.err();
    assert!(matches!(damaged, Some(KmsError::DamagedEdek(_))), "{damaged:?}");

    let unknown = Some(KmsError::UnknownKey("orders".into()));
    let config = "transit/keys/orders/config";
    server.admin(&["write", config, "min_decryption_version=2"]);
    assert_eq!(vault.decrypt_edek(&first.edek).await.err(), unknown, "its version was revoked");
    assert!(vault.decrypt_edek(&second.edek).await.is_ok());
    server.admin(&["write", config, "deletion_allowed=true"]);
    server.admin(&["delete", "transit/keys/orders"]);
    assert_eq!(vault.resolve_alias("orders").await.err(), unknown);
    assert_eq!(vault.generate_data_key(&id).await.err(), unknown);
    assert_eq!(vault.decrypt_edek(&second.edek).await.err(), unknown);
}

#[tokio::test]
async fn a_missing_engine_does_not_pass_for_a_missing_key() {
    let server = Server::start();
    transit(&server);
    let (vault, _) = with_token(&server, "elsewhere", server.root_token());
    let error = vault.resolve_alias("orders").await.unwrap_err();
    assert!(matches!(error, KmsError::Refused(_)), "{error}");
    let (vault, _) = with_token(&server, "transit", server.root_token());
    for alias in ["bills", "a/b", "../sys/mounts", "a b", "ü"] {
        let error = vault.resolve_alias(alias).await.unwrap_err();
        assert_eq!(error, KmsError::UnknownKey(alias.into()));
    }
}

#[tokio::test]
async fn a_wrong_token_is_refused_until_its_file_holds_a_right_one() {
    let server = Server::start();
    transit(&server);
    let (vault, file) = with_token(&server, "transit", "wrong");
    let error = vault.resolve_alias("orders").await.unwrap_err();
    assert!(matches!(&error, KmsError::Refused(text) if !text.contains("wrong")), "{error}");
    let token = proxy_token(&server);
    fs::write(&file, &token).unwrap();
    vault.resolve_alias("orders").await.unwrap();
    server.admin(&["token", "revoke", &token]);
    assert!(matches!(vault.resolve_alias("orders").await, Err(KmsError::Refused(_))));
    fs::write(&file, proxy_token(&server)).unwrap();
    vault.resolve_alias("orders").await.unwrap();
}

#[tokio::test]
async fn an_approle_logs_in_renews_and_logs_in_anew() {
    let server = Server::start();
    transit(&server);
    server.admin(&["auth", "enable", "approle"]);
    let role = "auth/approle/role/proxy";
    server.admin(&["write", role, "token_policies=proxy", "token_ttl=3s", "token_max_ttl=20s"]);
    let role_id = server.admin(&["read", "-field=role_id", &format!("{role}/role-id")]);
    let secret_id =
        server.admin(&["write", "-f", "-field=secret_id", &format!("{role}/secret-id")]);
    let secret_id_file = server.directory().join("secret");
    fs::write(&secret_id_file, secret_id).unwrap();
    let auth = VaultAuth::AppRole { mount: "approle".into(), role_id, secret_id_file };
    let url = format!("{}/v1/transit", server.address());
    let settings = VaultSettings { url, auth, ca_file: None, namespace: None };
    let vault = Vault::new(&settings).unwrap();
    vault.resolve_alias("orders").await.unwrap();
    let logins = || {
        let listed = server.admin(&["list", "-format=json", "auth/token/accessors"]);
        serde_json::from_str::<Vec<String>>(&listed).unwrap().len()
    };
    let before = logins();
    // Longer than the token is good for unless it is renewed.
    let end = Instant::now() + Duration::from_secs(7);
    let mut ticks = interval(Duration::from_millis(200));
    while ticks.tick().await < end {
        vault.maintain().await.unwrap();
        vault.resolve_alias("orders").await.unwrap();
    }
    assert_eq!(logins(), before, "the token was renewed, and no other was made");
    server.admin(&["token", "revoke", "-mode=path", "auth/approle"]);
    vault.resolve_alias("orders").await.unwrap();
}

#[tokio::test]
async fn tls_trusts_the_authority_that_the_file_names_and_no_other() {
    let server = Server::start_tls();
    transit(&server);
    let (vault, file) = with_token(&server, "transit", server.root_token());
    vault.resolve_alias("orders").await.unwrap();
    let auth = VaultAuth::TokenFile { file };
    let url = format!("{}/v1/transit", server.address());
    let settings = VaultSettings { url, auth, ca_file: None, namespace: None };
    let error = Vault::new(&settings).unwrap().resolve_alias("orders").await.unwrap_err();
    assert!(
        matches!(&error, KmsError::Unavailable(text) if text.contains("certificate")),
        "{error}"
    );
}

#[tokio::test]
async fn a_stopped_server_is_noticed_by_cold_keys_only_and_for_as_long_as_it_is_away() {
    let mut server = Server::start();
    transit(&server);
    server.admin(&["write", "-f", "transit/keys/bills"]);
    let (vault, _) = with_token(&server, "transit", &proxy_token(&server));
    let keys = DataKeys::new(Arc::new(vault), &KeySettings::default(), 1);
    let orders = keys.kek("orders").await.unwrap();
    let bills = KekId("bills".into());
    keys.sealing_key(&orders, 1).await.unwrap();

    server.stop();
    let error = keys.sealing_key(&bills, 1).await.err();
    assert!(matches!(error, Some(KmsError::Unavailable(_))), "{error:?}");
    assert!(keys.sealing_key_now(&orders, 1).unwrap().is_ok());
    server.restart_sealed();
    let sealed = |error: &Option<KmsError>| {
        let text = error.as_ref().map(ToString::to_string);
        text.is_some_and(|text| text.contains("status 503"))
    };
    eventually(async || keys.sealing_key(&bills, 1).await.err(), sealed).await;
    server.unseal();
    eventually(async || keys.sealing_key(&bills, 1).await.is_ok(), |is_ok| *is_ok).await;
    assert!(keys.sealing_key_now(&orders, 1).unwrap().is_ok());
    assert_eq!(keys.counters().calls(Operation::GenerateDataKey, Outcome::Ok), 2);
}

/// Repeats an attempt until its outcome is as wanted, for half a minute at most.
async fn eventually<T: std::fmt::Debug>(attempt: impl AsyncFn() -> T, wanted: impl Fn(&T) -> bool) {
    let end = Instant::now() + Duration::from_secs(30);
    let mut ticks = interval(Duration::from_millis(100));
    loop {
        ticks.tick().await;
        let outcome = attempt().await;
        if wanted(&outcome) {
            return;
        }
        assert!(Instant::now() < end, "{outcome:?}");
    }
}
