//! The client against a server on loopback that recomputes its signatures.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use tempfile::TempDir;

use super::*;
use crate::kms::fake_http::{Asked, FakeHttp};
use crate::utc;

const DATA_KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a request is signed with `secret`: the signature is computed anew from the request as
/// it came and from what its own `Authorization` says is signed.
fn is_signed(asked: &Asked, secret: &str) -> bool {
    let authorization = asked.header("authorization");
    let part = |name: &str| {
        let after = authorization.split(name).nth(1).unwrap_or_default();
        after.split([',', ' ']).next().unwrap_or_default().to_owned()
    };
    let names = part("SignedHeaders=");
    let all_signed = ["host", "x-amz-date", "x-amz-target", "content-type"]
        .iter()
        .all(|name| names.split(';').any(|signed| signed == *name));
    let mut request = format!("{}\n{}\n\n", asked.method, asked.path);
    for name in names.split(';') {
        request += &format!("{name}:{}\n", asked.header(name));
    }
    request += &format!("\n{names}\n{}", hex(digest(&SHA256, &asked.body).as_ref()));
    let credential = part("Credential=");
    let (_, scope) = credential.split_once('/').unwrap_or_default();
    let hash = hex(digest(&SHA256, request.as_bytes()).as_ref());
    let text = format!("AWS4-HMAC-SHA256\n{}\n{scope}\n{hash}", asked.header("x-amz-date"));
    let mut key = format!("AWS4{secret}").into_bytes();
    for part in scope.split('/') {
        key = sign(&Key::new(HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    let signature = hex(sign(&Key::new(HMAC_SHA256, &key), text.as_bytes()).as_ref());
    all_signed && scope.ends_with("/eu-west-1/kms/aws4_request") && part("Signature=") == signature
}

/// A service that knows the alias `orders`, and who may ask.
fn kms(asked: &Asked, secret: &str) -> (u16, String) {
    let failure = |code: &str| (400, format!(r#"{{"__type":"{code}","message":"no"}}"#));
    if !is_signed(asked, secret) {
        return failure("com.amazon.coral.service#InvalidSignatureException");
    }
    assert_eq!(asked.header("content-type"), "application/x-amz-json-1.1");
    match (asked.header("x-amz-target"), asked.text()) {
        ("TrentService.DescribeKey", r#"{"KeyId":"alias/orders"}"#) => {
            (200, r#"{"KeyMetadata":{"KeyId":"1234abcd"}}"#.into())
        }
        ("TrentService.GenerateDataKey", r#"{"KeyId":"1234abcd","KeySpec":"AES_256"}"#) => {
            (200, format!(r#"{{"Plaintext":"{DATA_KEY}","CiphertextBlob":"AQID"}}"#))
        }
        ("TrentService.Decrypt", r#"{"CiphertextBlob":"AQID","KeyId":"1234abcd"}"#) => {
            (200, format!(r#"{{"Plaintext":"{DATA_KEY}"}}"#))
        }
        ("TrentService.Decrypt", _) => failure("InvalidCiphertextException"),
        _ => failure("NotFoundException"),
    }
}

fn settings(url: &str, auth: AwsAuth) -> AwsSettings {
    let url = Some(url.to_owned());
    AwsSettings { region: "eu-west-1".into(), url, auth, ca_file: None }
}

/// A file with a secret in a directory of its own.
fn secret_file(secret: &str) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("secret");
    fs::write(&file, secret).unwrap();
    (directory, file)
}

fn with_access_key(server: &FakeHttp, secret: &str) -> (TempDir, AwsKms) {
    let (directory, secret_access_key_file) = secret_file(secret);
    let access_key_id = "AKIDEXAMPLE".to_owned();
    let auth = AwsAuth::LongTerm { access_key_id, secret_access_key_file };
    (directory, AwsKms::new(&settings(&server.url, auth)).unwrap())
}

#[tokio::test]
async fn a_data_key_has_kroxyliciouss_layout_and_requests_are_signed() {
    let server = FakeHttp::start(|asked| kms(asked, SECRET)).await;
    let (_directory, aws) = with_access_key(&server, SECRET);
    let id = aws.resolve("orders").await.unwrap();
    assert_eq!(&*id.0, "1234abcd");
    let wrapped = aws.generate(&id).await.unwrap();
    assert_eq!(&*wrapped.edek.0, b"\x00\x081234abcd\x01\x02\x03");
    let opened = aws.decrypt(&wrapped.edek).await.unwrap();
    assert_eq!(opened.bytes(), wrapped.key.bytes());
    assert_eq!(aws.resolve("bills").await, Err(KmsError::UnknownKey("bills".into())));
    let damaged = Edek(b"\x00\x081234abcd\x09".as_slice().into());
    assert!(matches!(aws.decrypt(&damaged).await, Err(KmsError::DamagedEdek(_))));
}

#[tokio::test]
async fn a_wrong_secret_is_read_again_once_and_refused_without_showing_it() {
    let server = FakeHttp::start(|asked| kms(asked, SECRET)).await;
    let (directory, aws) = with_access_key(&server, "wrong");
    let error = aws.resolve("orders").await.unwrap_err();
    assert!(matches!(&error, KmsError::Refused(text) if !text.contains("wrong")), "{error}");
    assert_eq!(server.asked().len(), 2);
    fs::write(directory.path().join("secret"), SECRET).unwrap();
    aws.resolve("orders").await.unwrap();
}

#[tokio::test]
async fn a_web_identity_assumes_its_role_once() {
    let server = FakeHttp::start(|asked| {
        if !asked.header("x-amz-target").is_empty() {
            assert_eq!(asked.header("x-amz-security-token"), "session");
            assert!(asked.header("authorization").contains("x-amz-security-token"));
            return kms(asked, SECRET);
        }
        let form = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15\
                    &RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fr&RoleSessionName=proxy\
                    &WebIdentityToken=a.b.c";
        assert_eq!(asked.text(), form);
        let expiration = utc::format(SystemTime::now() + Duration::from_secs(3600));
        let credentials = format!(
            "<AccessKeyId>ASIA</AccessKeyId><SecretAccessKey>{SECRET}</SecretAccessKey>\
             <SessionToken>session</SessionToken><Expiration>{expiration}</Expiration>"
        );
        (200, format!("<R><Credentials>{credentials}</Credentials></R>"))
    })
    .await;
    let (_directory, token_file) = secret_file("a.b.c");
    let auth = AwsAuth::WebIdentity {
        role_arn: "arn:aws:iam::1:role/r".into(),
        session_name: "proxy".into(),
        token_file,
        sts_url: Some(server.url.clone()),
    };
    let aws = AwsKms::new(&settings(&server.url, auth)).unwrap();
    for _ in 0..3 {
        aws.resolve("orders").await.unwrap();
    }
    assert_eq!(server.asked().len(), 1 + 3);
}

#[tokio::test]
async fn an_identity_that_is_refused_is_named_by_its_code() {
    let server = FakeHttp::start(|_| {
        let error = "<Error><Code>InvalidIdentityToken</Code><Message>a.b.c</Message></Error>";
        (400, format!("<ErrorResponse>{error}</ErrorResponse>"))
    })
    .await;
    let (_directory, token_file) = secret_file("a.b.c");
    let auth = AwsAuth::WebIdentity {
        role_arn: "role".into(),
        session_name: "proxy".into(),
        token_file,
        sts_url: Some(server.url.clone()),
    };
    let aws = AwsKms::new(&settings(&server.url, auth)).unwrap();
    let said = "the security token service: status 400, InvalidIdentityToken";
    assert_eq!(aws.resolve("orders").await, Err(KmsError::Refused(said.into())));
}

#[tokio::test]
async fn an_instance_asks_its_metadata_service_and_again_before_the_end() {
    let given = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&given);
    let server = FakeHttp::start(move |asked| {
        let token = asked.header("x-aws-ec2-metadata-token");
        match (asked.method.as_str(), asked.path.as_str()) {
            ("PUT", "/latest/api/token") => {
                assert_eq!(asked.header("x-aws-ec2-metadata-token-ttl-seconds"), "60");
                (200, "token".into())
            }
            ("GET", _) if token != "token" => (401, String::new()),
            ("GET", "/latest/meta-data/iam/security-credentials/") => (200, "role\n".into()),
            ("GET", "/latest/meta-data/iam/security-credentials/role") => {
                counted.fetch_add(1, Ordering::Relaxed);
                let expiration = utc::format(SystemTime::now() + Duration::from_secs(600));
                let keys = format!(r#""AccessKeyId":"ASIA","SecretAccessKey":"{SECRET}""#);
                let token = format!(r#""Token":"session","Expiration":"{expiration}""#);
                (200, format!(r#"{{"Code":"Success",{keys},{token}}}"#))
            }
            _ => kms(asked, SECRET),
        }
    })
    .await;
    let auth = AwsAuth::InstanceMetadata { url: Some(server.url.clone()) };
    let aws = AwsKms::new(&settings(&server.url, auth)).unwrap();
    aws.resolve("orders").await.unwrap();
    aws.resolve("orders").await.unwrap();
    assert_eq!(given.load(Ordering::Relaxed), 1);
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(450)).await;
    tokio::time::resume();
    aws.maintain().await.unwrap();
    assert_eq!(given.load(Ordering::Relaxed), 2);
}

#[test]
fn errors_say_who_can_do_something() {
    let unknown = KmsError::UnknownKey("orders".into());
    for (status, code, message, expected) in [
        (400, "NotFoundException", "no", unknown.clone()),
        (400, "DisabledException", "no", unknown.clone()),
        (400, "KMSInvalidStateException", "arn is pending deletion.", unknown),
        (400, "IncorrectKeyException", "no", KmsError::DamagedEdek("AWS KMS does not decrypt it")),
    ] {
        let refusal =
            Refusal { kind: format!("com.amazonaws.kms#{code}"), message: message.into() };
        assert_eq!(refusal.error(status, "orders"), expected);
    }
    for (status, code, message, is_unavailable) in [
        (400, "KMSInvalidStateException", "arn is pending import.", true),
        (400, "ThrottlingException", "Rate exceeded", true),
        (500, "KMSInternalException", "", true),
        (503, "", "", true),
        (400, "AccessDeniedException", "User is not authorized", false),
        (400, "ValidationException", "no", false),
    ] {
        let refusal = Refusal { kind: code.into(), message: message.into() };
        match refusal.error(status, "orders") {
            KmsError::Unavailable(_) => assert!(is_unavailable, "{code}"),
            KmsError::Refused(text) => assert!(!is_unavailable && text.contains(message), "{code}"),
            other => panic!("{code}: {other}"),
        }
    }
}

#[test]
fn a_damaged_edek_is_noticed_before_anything_is_asked() {
    assert_eq!(parts(b"\x00\x02id\x01").unwrap(), ("id", &[1][..]));
    for edek in [
        &b""[..],
        b"\x01\x02id\x01",
        b"\x00\x02id",
        b"\x00\x00\x01",
        b"\x00\x09id",
        b"\x00\xff\xff\xff\xff\xff",
        b"\x00\x02\xff\xfe\x01",
    ] {
        assert!(matches!(parts(edek), Err(KmsError::DamagedEdek(_))), "{edek:?}");
    }
    let long = [&b"\x00\x02id"[..], &[1; BLOB_BYTES_MAX + 1]].concat();
    assert!(parts(&long).is_err());
}

#[test]
fn a_region_that_is_none_is_refused() {
    for region in ["", "eu west", "eu/../x"] {
        let auth = AwsAuth::InstanceMetadata { url: None };
        let settings = AwsSettings { region: region.into(), url: None, auth, ca_file: None };
        assert!(AwsKms::new(&settings).is_err());
    }
}

/// Input that a producer may have forged is not read beyond its end.
#[test]
fn mutated_edeks_are_read_or_refused() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..200_000 {
        let mut edek = b"\x00\x081234abcd\x01\x02\x03".to_vec();
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
