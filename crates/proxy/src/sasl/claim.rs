//! Who a client says it is, read from the messages of its mechanism. No secret of theirs is kept.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moldau_net::Principal;
use moldau_net::sasl::{Mechanism, bearer_token};
use serde_json::Value;

/// The principal that a client's message names, if it names one.
pub(super) fn claimed(mechanism: Mechanism, message: &[u8]) -> Option<Principal> {
    let name = match mechanism {
        Mechanism::Plain => plain(message)?,
        Mechanism::ScramSha256 | Mechanism::ScramSha512 => scram(message)?,
        Mechanism::OAuthBearer => bearer(message)?,
    };
    (!name.is_empty()).then(|| Principal::user(&name))
}

/// Whether the cluster's answer, which tells of no error, ends the exchange with success.
pub(super) fn is_final(mechanism: Mechanism, answer: &[u8]) -> bool {
    match mechanism {
        Mechanism::Plain => true,
        // RFC 5802: the verifier; an error would begin with `e=`.
        Mechanism::ScramSha256 | Mechanism::ScramSha512 => answer.starts_with(b"v="),
        // RFC 7628: a refusal has a body.
        Mechanism::OAuthBearer => answer.is_empty(),
    }
}

/// RFC 4616: `authzid NUL authcid NUL passwd`. Kafka takes the second.
fn plain(message: &[u8]) -> Option<String> {
    let mut fields = message.split(|byte| *byte == 0);
    let _authorization_id = fields.next()?;
    let name = fields.next()?;
    fields.next()?;
    String::from_utf8(name.to_vec()).ok()
}

/// RFC 5802: `n,a=authzid,n=name,r=nonce,extensions`. Only the cluster knows the owner of a
/// delegation token (KIP-48). The second message begins with `c=`; an extension of it may look like
/// a name.
fn scram(message: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(message).ok()?;
    let mut fields = text.split(',');
    fields.next().filter(|binding| matches!(*binding, "n" | "y"))?;
    let _authorization_id = fields.next()?;
    let name = fields.next()?.strip_prefix("n=")?;
    if fields.any(|field| field.eq_ignore_ascii_case("tokenauth=true")) {
        return None;
    }
    Some(name.replace("=2C", ",").replace("=3D", "="))
}

/// RFC 7628: `n,a=authzid, ^A auth=Bearer token ^A ^A`. The principal is the claim `sub` by
/// default. A message with two tokens names no principal: the cluster may believe the other.
fn bearer(message: &[u8]) -> Option<String> {
    let token = bearer_token(message)?;
    let payload = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&payload).ok()?;
    claims.get("sub")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(mechanism: Mechanism, message: &str) -> Option<String> {
        claimed(mechanism, message.as_bytes()).map(|principal| principal.to_string())
    }

    #[test]
    fn names_are_read_from_each_mechanism() {
        let alice = Some("User:alice".to_owned());
        assert_eq!(name(Mechanism::Plain, "\0alice\0secret"), alice);
        assert_eq!(name(Mechanism::Plain, "admin\0alice\0secret"), alice);
        assert_eq!(name(Mechanism::ScramSha256, "n,,n=alice,r=abc"), alice);
        let odd = Some("User:a,b=c".to_owned());
        assert_eq!(name(Mechanism::ScramSha512, "n,a=x,n=a=2Cb=3Dc,r=abc"), odd);
        let payload = URL_SAFE_NO_PAD.encode(r#"{"sub":"alice","exp":1}"#);
        let token = format!("n,,\u{1}auth=Bearer e30.{payload}.sig\u{1}\u{1}");
        assert_eq!(name(Mechanism::OAuthBearer, &token), alice);
    }

    #[test]
    fn a_message_without_a_name_is_not_believed() {
        let token = |name: &str| {
            let payload = URL_SAFE_NO_PAD.encode(format!(r#"{{"sub":"{name}"}}"#));
            format!("auth=Bearer e30.{payload}.sig")
        };
        let two = format!("n,,\u{1}{}\u{1}{}\u{1}\u{1}", token("admin"), token("mallory"));
        for (mechanism, message) in [
            (Mechanism::OAuthBearer, two.as_str()),
            (Mechanism::ScramSha256, "n,,n=token-id,r=abc,tokenauth=TRUE"),
            (Mechanism::Plain, ""),
            (Mechanism::Plain, "\0alice"),
            (Mechanism::Plain, "\0\0secret"),
            (Mechanism::ScramSha256, "c=biws,r=abc,p=proof"),
            (Mechanism::ScramSha256, "c=biws,r=abc,n=admin,p=proof"),
            (Mechanism::ScramSha256, "n,,n=token-id,r=abc,tokenauth=true"),
            (Mechanism::OAuthBearer, "\u{1}"),
            (Mechanism::OAuthBearer, "n,,\u{1}auth=Bearer e30.!.sig\u{1}\u{1}"),
            (Mechanism::OAuthBearer, "n,,\u{1}auth=Bearer e30.e30.sig\u{1}\u{1}"),
        ] {
            assert_eq!(name(mechanism, message), None, "{message:?}");
        }
    }
}
