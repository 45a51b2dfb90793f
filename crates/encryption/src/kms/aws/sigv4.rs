//! Signature version 4 of Amazon Web Services, for POST requests to `/` without a query.

use std::time::SystemTime;

use aws_lc_rs::digest::{self, SHA256};
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use zeroize::Zeroizing;

use super::credentials::Credentials;
use crate::utc;

/// The region and the service that a signature is for.
pub(super) struct Scope<'a> {
    pub(super) region: &'a str,
    pub(super) service: &'a str,
}

/// Headers with the signature, in addition to `headers`, which it covers together with `Host`.
/// The names of `headers` are in lower case.
pub(super) fn sign(
    credentials: &Credentials,
    scope: &Scope<'_>,
    host: &str,
    headers: &[(&'static str, &str)],
    body: &[u8],
    now: SystemTime,
) -> Vec<(&'static str, Zeroizing<String>)> {
    let time: String = utc::format(now).chars().filter(char::is_ascii_alphanumeric).collect();
    let date = time.get(..8).expect("a time begins with eight digits of the date");
    let mut signed = vec![("host", host), ("x-amz-date", time.as_str())];
    if let Some(token) = &credentials.session_token {
        signed.push(("x-amz-security-token", token));
    }
    signed.extend_from_slice(headers);
    signed.sort_unstable();
    let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");

    let mut request = Zeroizing::new("POST\n/\n\n".to_owned());
    for (name, value) in &signed {
        request.push_str(&Zeroizing::new(format!("{name}:{}\n", value.trim())));
    }
    request.push_str(&format!("\n{names}\n{}", hex(digest::digest(&SHA256, body).as_ref())));
    let scope_text = format!("{date}/{}/{}/aws4_request", scope.region, scope.service);
    let request_hash = hex(digest::digest(&SHA256, request.as_bytes()).as_ref());
    let text = format!("{ALGORITHM}\n{time}\n{scope_text}\n{request_hash}");
    let key = signing_key(&credentials.secret_access_key, date, scope);
    let signature = hex(hmac::sign(&key, text.as_bytes()).as_ref());
    let authorization = format!(
        "{ALGORITHM} Credential={}/{scope_text}, SignedHeaders={names}, Signature={signature}",
        credentials.access_key_id
    );

    let mut added = vec![
        ("authorization", Zeroizing::new(authorization)),
        ("x-amz-date", Zeroizing::new(time)),
    ];
    if let Some(token) = &credentials.session_token {
        added.push(("x-amz-security-token", token.clone()));
    }
    added
}

fn signing_key(secret: &str, date: &str, scope: &Scope<'_>) -> hmac::Key {
    let first = Zeroizing::new(format!("AWS4{secret}"));
    let mut key = hmac::Key::new(HMAC_SHA256, first.as_bytes());
    for part in [date, scope.region, scope.service, "aws4_request"] {
        key = hmac::Key::new(HMAC_SHA256, hmac::sign(&key, part.as_bytes()).as_ref());
    }
    key
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

const ALGORITHM: &str = "AWS4-HMAC-SHA256";

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// The session token of AWS's test suite.
    const TOKEN: &str = "AQoDYXdzEPT//////////wEXAMPLEtc764bNrC9SAPBSM22wDOk4x4HIZ8j4FZTwdQWLWsK\
        WHGBuFqwAeMicRXmxfpSPfIeoIYRqTflfKD8YUuwthAx7mSEI/qkPpKPi/kMcGdQrmGdeehM4IC1NtBmUpp2wUE8p\
        hUZampKsburEDy0KPkyQDYwT7WZ0wq5VSXDvp75YU9HFvlRd8Tx6q6fE8YQcHNVXAkiY9q6d+xo0rKwT38xVqr7ZD\
        0u0iPPkUL64lIZbqBAz+scqKmlzm8FDrypNC9Yjc8fPOLn9FX9KSYvKTr4rvx3iSIlTJabIQwj2ICCR/oLxBA==";

    fn credentials(token: Option<&str>) -> Credentials {
        Credentials {
            access_key_id: "AKIDEXAMPLE".into(),
            secret_access_key: Zeroizing::new("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into()),
            session_token: token.map(|token| Zeroizing::new(token.to_owned())),
        }
    }

    /// Vectors of `aws-sig-v4-test-suite`: post-vanilla, post-sts-header-before,
    /// post-x-www-form-urlencoded, post-header-key-sort.
    #[test]
    fn the_published_vectors_are_signed() {
        let form = ("content-type", "application/x-www-form-urlencoded");
        let scope = Scope { region: "us-east-1", service: "service" };
        let now = UNIX_EPOCH + Duration::from_secs(1_440_938_160);
        for (token, headers, body, names, signature) in [
            (
                None,
                vec![],
                "",
                "host;x-amz-date",
                "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
            ),
            (
                Some(TOKEN),
                vec![],
                "",
                "host;x-amz-date;x-amz-security-token",
                "85d96828115b5dc0cfc3bd16ad9e210dd772bbebba041836c64533a82be05ead",
            ),
            (
                None,
                vec![form],
                "Param1=value1",
                "content-type;host;x-amz-date",
                "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
            ),
            (
                None,
                vec![("my-header1", "value1")],
                "",
                "host;my-header1;x-amz-date",
                "c5410059b04c1ee005303aed430f6e6645f61f4dc9e1461ec8f8916fdf18852c",
            ),
        ] {
            let host = "example.amazonaws.com";
            let added = sign(&credentials(token), &scope, host, &headers, body.as_bytes(), now);
            let expected = format!(
                "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, \
                 SignedHeaders={names}, Signature={signature}"
            );
            assert_eq!(added[0].1.as_str(), expected);
            assert_eq!(added[1].1.as_str(), "20150830T123600Z");
            assert_eq!(added.get(2).map(|(_, token)| token.as_str()), token);
        }
    }

    /// The example of a signing key in AWS's reference.
    #[test]
    fn the_published_signing_key_signs() {
        let secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
        let scope = Scope { region: "us-east-1", service: "iam" };
        let key = signing_key(secret, "20150830", &scope);
        let expected = [
            0xc4, 0xaf, 0xb1, 0xcc, 0x57, 0x71, 0xd8, 0x71, 0x76, 0x3a, 0x39, 0x3e, 0x44, 0xb7,
            0x03, 0x57, 0x1b, 0x55, 0xcc, 0x28, 0x42, 0x4d, 0x1a, 0x5e, 0x86, 0xda, 0x6e, 0xd3,
            0xc1, 0x54, 0xa4, 0xb9,
        ];
        let known = hmac::Key::new(HMAC_SHA256, &expected);
        assert_eq!(hmac::sign(&key, b"text").as_ref(), hmac::sign(&known, b"text").as_ref());
    }
}
