//! Tokens of an issuer of our own, and those of others.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use serde_json::json;

use super::*;

struct Issuer {
    key: KeyPair,
    id: &'static str,
}

impl Issuer {
    fn new(id: &'static str) -> Self {
        Self { key: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap(), id }
    }

    fn key_set(&self) -> Vec<u8> {
        let key = EncodingKey::from_ec_der(&self.key.serialize_der());
        let mut jwk = Jwk::from_encoding_key(&key, Algorithm::ES256).unwrap();
        jwk.common.key_id = Some(self.id.to_owned());
        let unknown = json!({ "kty": "XYZ", "kid": "other" });
        let shared = json!({ "kty": "oct", "kid": "shared", "k": "c2VjcmV0" });
        json!({ "keys": [unknown, shared, jwk] }).to_string().into_bytes()
    }

    fn token(&self, claims: &Value) -> String {
        self.token_with(Header::new(Algorithm::ES256), claims)
    }

    fn token_with(&self, mut header: Header, claims: &Value) -> String {
        header.kid = Some(self.id.to_owned());
        let key = EncodingKey::from_ec_der(&self.key.serialize_der());
        jsonwebtoken::encode(&header, claims, &key).unwrap()
    }
}

fn now() -> u64 {
    jsonwebtoken::get_current_timestamp()
}

fn verifier(issuer: &Issuer) -> TokenVerifier {
    let settings = TokenSettings {
        issuer: Some("https://issuer".to_owned()),
        audiences: vec!["kafka".to_owned()],
        scopes: vec!["produce".to_owned()],
        ..TokenSettings::new(KeySource::Bytes(issuer.key_set()))
    };
    TokenVerifier::new(settings).unwrap()
}

fn claims() -> Value {
    json!({
        "iss": "https://issuer",
        "aud": "kafka",
        "sub": "alice",
        "scope": "produce consume",
        "exp": now() + 600,
    })
}

#[test]
fn token_of_the_issuer_is_believed_until_it_expires() {
    let issuer = Issuer::new("one");
    let verified = verifier(&issuer).verify(&issuer.token(&claims())).ok().unwrap();
    assert_eq!(verified.principal, "alice");
    assert!((590..=600).contains(&verified.expires_in.as_secs()), "{:?}", verified.expires_in);
}

/// Such a token was believed for a second.
#[test]
fn token_that_expires_beyond_all_times_is_believed_for_ever() {
    let issuer = Issuer::new("one");
    let mut claims = claims();
    claims["exp"] = json!(u64::MAX);
    let verified = verifier(&issuer).verify(&issuer.token(&claims)).ok().unwrap();
    assert!(verified.expires_in > Duration::from_hours(1 << 30), "{:?}", verified.expires_in);
}

#[test]
fn token_that_demands_an_extension_is_refused() {
    let issuer = Issuer::new("one");
    for names in [vec!["exp".to_owned()], Vec::new()] {
        let mut header = Header::new(Algorithm::ES256);
        header.crit = Some(names);
        let refused = verifier(&issuer).verify(&issuer.token_with(header, &claims())).err();
        assert!(matches!(refused, Some(TokenRefusal::Invalid(_))), "{refused:?}");
    }
}

#[test]
fn token_with_another_claim_is_refused() {
    let issuer = Issuer::new("one");
    let verifier = verifier(&issuer);
    for (claim, value) in [
        ("iss", json!("https://other")),
        ("iss", Value::Null),
        ("aud", json!("web")),
        ("aud", Value::Null),
        ("exp", json!(now() - 60)),
        ("exp", Value::Null),
        ("nbf", json!(now() + 600)),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("scope", json!("consume")),
    ] {
        let mut claims = claims();
        claims[claim] = value.clone();
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(claim);
        }
        let refused = verifier.verify(&issuer.token(&claims)).err();
        let refused = refused.unwrap_or_else(|| panic!("{claim} = {value} is believed"));
        let expected = if claim == "scope" { "insufficient_scope" } else { "invalid_token" };
        assert_eq!(refused.status(), expected);
    }
}

#[test]
fn token_signed_by_another_key_is_refused() {
    let (issuer, imposter) = (Issuer::new("one"), Issuer::new("one"));
    let verifier = verifier(&issuer);
    let refused = verifier.verify(&imposter.token(&claims())).err().unwrap();
    assert!(matches!(refused, TokenRefusal::Invalid(_)), "{refused}");
    let unknown = verifier.verify(&Issuer::new("two").token(&claims())).err().unwrap();
    assert!(matches!(unknown, TokenRefusal::UnknownKey), "{unknown}");
}

#[test]
fn token_without_a_public_key_signature_is_refused() {
    let issuer = Issuer::new("one");
    let verifier = verifier(&issuer);
    // The public set as a shared secret: the classic confusion of algorithms.
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("one".to_owned());
    let secret = EncodingKey::from_secret(&issuer.key_set());
    let confused = jsonwebtoken::encode(&header, &claims(), &secret).unwrap();
    assert!(matches!(verifier.verify(&confused), Err(TokenRefusal::Algorithm)));

    let token = issuer.token(&claims());
    let body = token.split('.').nth(1).unwrap();
    // {"alg":"none"}
    for text in [format!("eyJhbGciOiJub25lIn0.{body}."), "a.b".to_owned(), String::new()] {
        assert!(matches!(verifier.verify(&text), Err(TokenRefusal::Invalid(_))), "{text}");
    }
    for algorithm in ["HS256", "none", "RS257"] {
        let settings = TokenSettings {
            algorithms: vec![algorithm.to_owned()],
            ..TokenSettings::new(KeySource::Bytes(issuer.key_set()))
        };
        assert!(TokenVerifier::new(settings).is_err(), "{algorithm}");
    }
}

/// The parser's own words quote what it has read: a header with line breaks, of any length, went
/// into the log as it was.
#[test]
fn refusal_quotes_nothing_of_a_token() {
    let verifier = verifier(&Issuer::new("one"));
    let header = json!({ "alg": "forged\nline".repeat(30_000) }).to_string();
    let token = format!("{}.e30.e30", URL_SAFE_NO_PAD.encode(header));
    let refused = verifier.verify(&token).err().unwrap();
    assert_eq!(refused.to_string(), "it is not a valid JSON Web Token");
}

#[test]
fn key_set_without_a_usable_key_is_refused() {
    for text in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"c2VjcmV0"}]}"#] {
        let keys = KeySource::Bytes(text.as_bytes().to_vec());
        assert!(TokenVerifier::new(TokenSettings::new(keys)).is_err(), "{text:?}");
    }
}

#[test]
fn query_of_an_address_stands_in_no_error() {
    for address in ["ftp://issuer/keys", "https://issuer/keys", "/keys", "http://a b/keys"] {
        let url = format!("{address}?code=secret");
        let (tls, refresh_interval) = (None, Duration::from_hours(1));
        let keys = KeySource::Url { url, tls, refresh_interval };
        let error = TokenVerifier::new(TokenSettings::new(keys)).unwrap_err().to_string();
        assert!(error.contains(address) && !error.contains("secret"), "{error}");
    }
}
