//! The client against a server on loopback that speaks as Vault does; `tests/it` has the real one.

use std::fs;
use std::sync::atomic::{AtomicU32, Ordering};

use tempfile::TempDir;

use super::*;
use crate::kms::fake_http::{Asked, FakeHttp};

const DATA_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

/// A server that knows the token `good` and the key `KEK orders`.
fn transit(asked: &Asked) -> (u16, String) {
    if asked.path == "/v1/auth/token/lookup-self" {
        // As of a root token, which does not say whether it can be renewed.
        return (200, r#"{"data":{"ttl":0}}"#.into());
    }
    if asked.header("x-vault-token") != "good" {
        return (403, r#"{"errors":["permission denied"]}"#.into());
    }
    match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", "/v1/transit/keys/KEK%20orders") => {
            (200, r#"{"data":{"name":"KEK orders"}}"#.into())
        }
        ("POST", "/v1/transit/datakey/plaintext/KEK%20orders") => {
            let data = format!(r#"{{"plaintext":"{DATA_KEY}","ciphertext":"vault:v1:AAAA"}}"#);
            (200, format!(r#"{{"data":{data}}}"#))
        }
        ("POST", "/v1/transit/decrypt/KEK%20orders")
            if asked.text() == r#"{"ciphertext":"vault:v1:AAAA"}"# =>
        {
            (200, format!(r#"{{"data":{{"plaintext":"{DATA_KEY}"}}}}"#))
        }
        _ => (404, r#"{"errors":[]}"#.into()),
    }
}

fn settings(url: &str, auth: VaultAuth) -> VaultSettings {
    let url = format!("{url}/v1/transit");
    VaultSettings { url, auth, ca_file: None, namespace: None }
}

/// A service whose token stands in the file `token` of the directory.
fn with_token(server: &FakeHttp, token: &str) -> (TempDir, Vault) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    fs::write(&file, token).unwrap();
    (directory, Vault::new(&settings(&server.url, VaultAuth::TokenFile { file })).unwrap())
}

#[tokio::test]
async fn a_data_key_has_kroxyliciouss_layout() {
    let server = FakeHttp::start(transit).await;
    let (_directory, vault) = with_token(&server, "good\n");
    let id = vault.resolve("KEK orders").await.unwrap();
    assert_eq!(&*id.0, "KEK orders");
    let wrapped = vault.generate(&id).await.unwrap();
    assert_eq!(&*wrapped.edek.0, b"\x0aKEK ordersvault:v1:AAAA");
    assert_eq!(wrapped.key.bytes()[..4], [0, 1, 2, 3]);
    let opened = vault.decrypt(&wrapped.edek).await.unwrap();
    assert_eq!(opened.bytes(), wrapped.key.bytes());
}

#[tokio::test]
async fn a_namespace_goes_with_each_request() {
    let server = FakeHttp::start(transit).await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    fs::write(&file, "good").unwrap();
    let mut settings = settings(&server.url, VaultAuth::TokenFile { file });
    settings.namespace = Some("team".into());
    Vault::new(&settings).unwrap().resolve("KEK orders").await.unwrap();
    for asked in server.asked() {
        assert_eq!(asked.header("x-vault-namespace"), "team", "{}", asked.path);
    }
}

#[tokio::test]
async fn a_token_is_read_again_when_its_file_changed() {
    let server = FakeHttp::start(transit).await;
    let (directory, vault) = with_token(&server, "bad");
    let refused = vault.resolve("KEK orders").await;
    assert!(matches!(refused, Err(KmsError::Refused(_))), "{refused:?}");
    let file = directory.path().join("token");
    fs::write(&file, "good").unwrap();
    vault.resolve("KEK orders").await.unwrap();
    server.asked();
    vault.resolve("KEK orders").await.unwrap();
    assert_eq!(server.paths(), ["GET /v1/transit/keys/KEK%20orders"], "the token is kept");
}

#[tokio::test]
async fn a_secret_that_cannot_be_read_is_named_and_not_shown() {
    let server = FakeHttp::start(transit).await;
    let (directory, vault) = with_token(&server, "two words");
    let error = vault.resolve("KEK orders").await.unwrap_err().to_string();
    assert!(error.contains("token") && !error.contains("two words"), "{error}");
    fs::remove_file(directory.path().join("token")).unwrap();
    let error = vault.resolve("KEK orders").await.unwrap_err();
    assert!(matches!(&error, KmsError::Refused(text) if text.contains("No such file")), "{error}");
    assert_eq!(server.asked().len(), 0);
}

/// A server whose AppRole logins give tokens of a minute that only the last login made good.
async fn approle() -> (FakeHttp, Arc<AtomicU32>) {
    let logins = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&logins);
    let server = FakeHttp::start(move |asked| {
        let last = counted.load(Ordering::Relaxed);
        let grant = |number: u32, seconds: u32| {
            let token = format!(r#""client_token":"t{number}","renewable":true"#);
            (200, format!(r#"{{"auth":{{{token},"lease_duration":{seconds}}}}}"#))
        };
        match asked.path.as_str() {
            "/v1/auth/team/approle/login" => {
                assert_eq!(asked.text(), r#"{"role_id":"role","secret_id":"secret"}"#);
                grant(counted.fetch_add(1, Ordering::Relaxed) + 1, 60)
            }
            _ if asked.header("x-vault-token") != format!("t{last}") => {
                (403, r#"{"errors":["permission denied"]}"#.into())
            }
            "/v1/auth/token/renew-self" => grant(last, 60),
            _ => (200, r#"{"data":{"name":"orders"}}"#.into()),
        }
    });
    (server.await, logins)
}

fn with_approle(server: &FakeHttp) -> (TempDir, Vault) {
    let directory = tempfile::tempdir().unwrap();
    let secret_id_file = directory.path().join("secret");
    fs::write(&secret_id_file, "secret").unwrap();
    let (mount, role_id) = ("team/approle".to_owned(), "role".to_owned());
    let auth = VaultAuth::AppRole { mount, role_id, secret_id_file };
    (directory, Vault::new(&settings(&server.url, auth)).unwrap())
}

#[tokio::test]
async fn one_login_serves_all_calls_until_its_token_is_refused() {
    let (server, logins) = approle().await;
    let (_directory, vault) = with_approle(&server);
    let (a, b) = tokio::join!(vault.resolve("orders"), vault.resolve("orders"));
    assert!(a.is_ok() && b.is_ok());
    assert_eq!(logins.load(Ordering::Relaxed), 1);
    // The server forgot the token.
    logins.fetch_add(1, Ordering::Relaxed);
    vault.resolve("orders").await.unwrap();
    assert_eq!(logins.load(Ordering::Relaxed), 3);
}

#[tokio::test]
async fn a_token_is_renewed_before_it_ends_also_without_calls() {
    let (server, logins) = approle().await;
    let (_directory, vault) = with_approle(&server);
    vault.maintain().await.unwrap();
    assert_eq!(server.paths(), Vec::<String>::new(), "no call needed a token yet");
    vault.resolve("orders").await.unwrap();
    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(41)).await;
    tokio::time::resume();
    server.asked();
    vault.maintain().await.unwrap();
    assert_eq!(server.paths(), ["POST /v1/auth/token/renew-self"]);
    vault.maintain().await.unwrap();
    assert_eq!(server.paths(), Vec::<String>::new());
    assert_eq!(logins.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_service_account_logs_in() {
    let server = FakeHttp::start(|asked| match asked.path.as_str() {
        "/v1/auth/kubernetes/login" => {
            assert_eq!(asked.text(), r#"{"jwt":"a.b.c","role":"proxy"}"#);
            let auth = r#""client_token":"good","renewable":false,"lease_duration":60"#;
            (200, format!(r#"{{"auth":{{{auth}}}}}"#))
        }
        _ => transit(asked),
    })
    .await;
    let directory = tempfile::tempdir().unwrap();
    let token_file = directory.path().join("token");
    fs::write(&token_file, "a.b.c").unwrap();
    let (mount, role) = ("kubernetes".to_owned(), "proxy".to_owned());
    let auth = VaultAuth::Kubernetes { mount, role, token_file };
    let vault = Vault::new(&settings(&server.url, auth)).unwrap();
    vault.resolve("KEK orders").await.unwrap();
}

#[test]
fn errors_say_who_can_do_something() {
    let unknown = KmsError::UnknownKey("orders".into());
    let refused = |text: &str| KmsError::Refused(text.into());
    let unavailable = |text: &str| KmsError::Unavailable(text.into());
    for (status, errors, expected) in [
        (404, "[]", unknown.clone()),
        (
            404,
            r#"["no handler for route \"transit/keys/orders\""]"#,
            refused("status 404: no handler for route \"transit/keys/orders\""),
        ),
        (400, r#"["encryption key not found"]"#, unknown.clone()),
        (400, r#"["ciphertext or signature version is disallowed by policy (too old)"]"#, unknown),
        (400, r#"["something else"]"#, refused("status 400: something else")),
        (403, r#"["permission denied"]"#, refused("status 403: permission denied")),
        (307, "[]", refused("status 307: ")),
        (429, "[]", unavailable("status 429: ")),
        (500, r#"["internal\nerror"]"#, unavailable("status 500: internal error")),
        (503, r#"["Vault is sealed"]"#, unavailable("status 503: Vault is sealed")),
    ] {
        let body = Zeroizing::new(format!(r#"{{"errors":{errors}}}"#).into_bytes());
        assert_eq!(refusal(&Answer { status, body }, "orders"), expected);
    }
    // What stands between may answer in Vault's place.
    let answer = |status| Answer { status, body: Zeroizing::new(b"<html>".to_vec()) };
    let said = |status| format!("status {status}: not in Vault's words");
    assert_eq!(refusal(&answer(502), ""), unavailable(&said(502)));
    assert_eq!(refusal(&answer(404), ""), refused(&said(404)));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    fs::write(&file, "good").unwrap();
    let vault = Vault::new(&settings(&url, VaultAuth::TokenFile { file })).unwrap();
    assert!(matches!(vault.resolve("orders").await, Err(KmsError::Unavailable(_))));
}

#[tokio::test]
async fn answers_that_are_not_as_documented_are_no_keys() {
    for body in ["", "{}", r#"{"data":{}}"#, r#"{"data":{"plaintext":"AA==","ciphertext":"c"}}"#] {
        let server = FakeHttp::start(|asked| match asked.path.as_str() {
            "/v1/auth/token/lookup-self" => transit(asked),
            _ => (200, body.to_owned()),
        })
        .await;
        let (_directory, vault) = with_token(&server, "good");
        let made = vault.generate(&KekId("orders".into())).await.err();
        assert!(matches!(made, Some(KmsError::Unavailable(_))), "{body}: {made:?}");
    }
}

#[test]
fn a_damaged_edek_is_noticed_before_anything_is_asked() {
    assert_eq!(parts(b"\x06ordersvault:v1:AAAA").unwrap(), ("orders", "vault:v1:AAAA"));
    for edek in [
        &b""[..],
        b"\x06orde",
        b"\xff\xff\xff\xff\x0forders",
        b"\xff\xff\xff\xff\xff\xff",
        b"\x00vault:v1:AAAA",
        b"\x02..vault:v1:AAAA",
        b"\x02\xff\xfevault:v1:AAAA",
        b"\x06ordersvalut:v1:AAAA",
        b"\x06ordersvault:v1:AA A",
    ] {
        assert!(matches!(parts(edek), Err(KmsError::DamagedEdek(_))), "{edek:?}");
    }
}

#[test]
fn a_url_without_an_engine_is_refused() {
    let auth = VaultAuth::TokenFile { file: "token".into() };
    for url in ["http://vault", "http://vault/v1", "http://vault/v1/", "http://vault/transit"] {
        let settings =
            VaultSettings { url: url.into(), auth: auth.clone(), ca_file: None, namespace: None };
        assert!(Vault::new(&settings).is_err(), "{url}");
    }
}

/// Input that a producer may have forged is not read beyond its end.
#[test]
fn mutated_edeks_are_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..200_000 {
        let mut edek = b"\x06ordersvault:v1:AAAA".to_vec();
        for _ in 0..random.usize(1..4) {
            let at = random.usize(..edek.len());
            edek[at] = random.u8(..);
        }
        edek.truncate(random.usize(..=edek.len()));
        if let Ok(read) = parts(&edek) {
            assert!(read.0.len() + read.1.len() < edek.len());
        }
    }
}
