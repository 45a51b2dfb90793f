//! Messages of OAUTHBEARER (RFC 7628), with Kafka's extensions (KIP-342).

use std::fmt::Write;

/// First message of a client.
pub(super) struct BearerMessage<'a> {
    pub(super) authorization_id: Option<&'a str>,
    pub(super) token: &'a str,
}

impl<'a> BearerMessage<'a> {
    /// Reads `n,[a=id],^Aauth=Bearer token^A[key=value^A]...^A`.
    pub(super) fn parse(message: &'a [u8]) -> Option<Self> {
        let text = std::str::from_utf8(message).ok()?;
        let (header, pairs) = text.split_once('\x01')?;
        let authorization_id = match header.strip_prefix("n,")?.strip_suffix(',')? {
            "" => None,
            id => Some(id.strip_prefix("a=").filter(|id| !id.is_empty())?),
        };
        let mut token = None;
        for pair in pairs.strip_suffix("\x01\x01")?.split('\x01') {
            let (key, value) = pair.split_once('=')?;
            let key_fits = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphabetic());
            let value_fits =
                value.bytes().all(|b| matches!(b, 0x20..=0x7e | b'\t' | b'\r' | b'\n'));
            if !key_fits || !value_fits || value.is_empty() {
                return None;
            }
            if key == "auth" {
                let (scheme, value) = value.split_once(' ')?;
                let fits = scheme.eq_ignore_ascii_case("bearer") && token.is_none();
                token = Some(value.trim_matches(' ')).filter(|value| fits && !value.is_empty());
                token?;
            }
        }
        Some(Self { authorization_id, token: token? })
    }
}

/// The token of a client's first message, if a server of Kafka's would read it as one and as no
/// other.
#[must_use]
pub fn bearer_token(message: &[u8]) -> Option<&str> {
    BearerMessage::parse(message).map(|read| read.token)
}

/// A client's first message, with Kafka's extensions.
pub(super) fn message(token: &str, extensions: &[(String, String)]) -> Vec<u8> {
    let mut message = format!("n,,\x01auth=Bearer {token}");
    for (key, value) in extensions {
        write!(message, "\x01{key}={value}").expect("a string takes everything");
    }
    message.push_str("\x01\x01");
    message.into_bytes()
}

/// A server's answer to a token that it does not accept, as JSON.
pub(super) fn challenge(status: &str, scope: Option<&str>) -> String {
    match scope {
        Some(scope) => serde_json::json!({ "status": status, "scope": scope }).to_string(),
        None => serde_json::json!({ "status": status }).to_string(),
    }
}

/// A client's answer to a challenge: it has understood that it failed.
pub(super) const ACKNOWLEDGEMENT: &[u8] = b"\x01";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_read_back_with_its_extensions() {
        let extensions = [("logicalCluster".to_owned(), "lkc-1".to_owned())];
        let bytes = message("a.b-c_d", &extensions);
        assert_eq!(bytes, b"n,,\x01auth=Bearer a.b-c_d\x01logicalCluster=lkc-1\x01\x01");
        let read = BearerMessage::parse(&bytes).unwrap();
        assert_eq!((read.token, read.authorization_id), ("a.b-c_d", None));
        let named = BearerMessage::parse(b"n,a=alice,\x01auth=bearer  t\x01\x01").unwrap();
        assert_eq!((named.token, named.authorization_id), ("t", Some("alice")));
    }

    #[test]
    fn message_that_is_none_is_refused() {
        for text in [
            "",
            "n,,",
            "n,,\x01\x01",
            "n,,\x01\x01\x01",
            "n,,\x01auth=Bearer t\x01",
            "n,,\x01auth=Basic t\x01\x01",
            "n,,\x01auth=Bearer \x01\x01",
            "n,,\x01auth=Bearer t\x01auth=Bearer u\x01\x01",
            "n,,\x01k1=v\x01auth=Bearer t\x01\x01",
            "n,,\x01auth=Bearer t\x01k=\x01\x01",
            "p=x,,\x01auth=Bearer t\x01\x01",
            "n,a=,\x01auth=Bearer t\x01\x01",
        ] {
            assert!(BearerMessage::parse(text.as_bytes()).is_none(), "{text:?}");
        }
    }
}
