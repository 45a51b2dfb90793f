//! What errors of a store mean.
//!
//! S3 tells more in the code of its answer than in the HTTP status: a bucket and an object that are
//! missing have the same status. `object_store` keeps the answer only as the text of its errors.

use crate::sequencer::ObjectKey;
use crate::{Error, StoreRefusal};

/// What a request does, and the action that a policy of S3 must allow.
pub(super) const PUT: &str = "create objects (s3:PutObject)";
pub(super) const GET: &str = "read objects (s3:GetObject)";
pub(super) const LIST: &str = "list objects (s3:ListBucket)";
pub(super) const DELETE: &str = "delete objects (s3:DeleteObject)";

/// What an error means for a request, and for the object that it was for.
pub(super) fn meaning(request: &'static str, key: ObjectKey, error: &object_store::Error) -> Error {
    let text = error.to_string();
    if text.contains(ROLE) {
        return Error::StoreAway(format!("{NO_KEYS} ({})", cause(error)));
    }
    if text.contains(BARE_REDIRECT) {
        return Error::StoreRefused(StoreRefusal::OtherRegion);
    }
    let (status, code) = (status(&text), code(&text));
    if let Some(code) = code
        && let Some(refusal) = refusal(request, code)
    {
        return Error::StoreRefused(refusal);
    }
    let told = || match (status, code) {
        (Some(status), Some(code)) => format!("{status} {code}"),
        (Some(status), None) => format!("HTTP status {status}"),
        (None, Some(code)) => code.to_owned(),
        (None, None) => cause(error),
    };
    match (status, code) {
        (_, Some("NoSuchKey")) => Error::ObjectMissing(key),
        (Some(304 | 412), _) => Error::ObjectExists(key),
        // Bytes were lost on their way.
        (_, Some("RequestTimeout" | "IncompleteBody" | "BadDigest")) => Error::StoreAway(told()),
        // A conflict is no proof that either of two PUTs has taken effect.
        (Some(408 | 409 | 429 | 500 | 502..=599) | None, _) => Error::StoreAway(told()),
        (Some(300..=399), _) => Error::StoreRefused(StoreRefusal::OtherRegion),
        (Some(401 | 403), _) => Error::StoreRefused(StoreRefusal::AccessDenied(request)),
        (Some(_), Some(code)) => Error::StoreRefused(StoreRefusal::Other(code.to_owned())),
        (Some(_), None) => Error::StoreRefused(StoreRefusal::Other(told())),
    }
}

/// Whether a range begins behind the last byte.
pub(super) fn is_behind_end(error: &object_store::Error) -> bool {
    let text = error.to_string();
    status(&text) == Some(416) || code(&text) == Some("InvalidRange")
}

fn refusal(request: &'static str, code: &str) -> Option<StoreRefusal> {
    Some(match code {
        "NoSuchBucket" | "InvalidBucketName" => StoreRefusal::NoBucket,
        "PermanentRedirect" | "AuthorizationHeaderMalformed" | "IncorrectEndpoint" => {
            StoreRefusal::OtherRegion
        }
        "InvalidAccessKeyId" | "NotSignedUp" => StoreRefusal::UnknownAccessKey,
        "SignatureDoesNotMatch" => StoreRefusal::WrongSecretKey,
        "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => StoreRefusal::InvalidToken,
        "AccessDenied" | "AllAccessDisabled" | "AccountProblem" => {
            StoreRefusal::AccessDenied(request)
        }
        "RequestTimeTooSkewed" | "RequestExpired" => StoreRefusal::ClockSkew,
        _ => return None,
    })
}

/// The status in "non-2xx status code: 404 Not Found: ...".
fn status(text: &str) -> Option<u16> {
    let (_, after) = text.split_once("status code: ")?;
    after.get(..3)?.parse().ok()
}

/// The code of an answer in XML, or of one key of a deletion.
fn code(text: &str) -> Option<&str> {
    let within =
        |from: &str, to: &str| text.split_once(from)?.1.split_once(to).map(|(code, _)| code);
    let code = within("<Code>", "</Code>").or_else(|| within("(code: ", ")"))?;
    let is_code = code.len() <= CODE_LEN_MAX && code.chars().all(|c| c.is_ascii_alphanumeric());
    is_code.then_some(code)
}

/// The innermost error: whatever is around it repeats the address.
fn cause(error: &object_store::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    let text = cause.to_string();
    if text.contains("InvalidContentType") {
        return "the store does not speak TLS at this endpoint, which https:// asks for".into();
    }
    if text.contains("UnknownIssuer") {
        return format!("{text}: trust_file of the bucket can name the authority of the store");
    }
    text
}

/// Addresses that give the keys of the role of a machine or of a container, and none elsewhere.
const ROLE: &str = "http://169.254.";
const NO_KEYS: &str = "no keys were found: the bucket has no credentials_file, the environment no \
    AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and the machine gives no keys of a role";
/// As `object_store` tells of a redirect without an address.
const BARE_REDIRECT: &str = "redirect without LOCATION";
/// Codes of S3 have up to 40 letters.
const CODE_LEN_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Error {
        let source = text.to_owned().into();
        meaning(
            GET,
            ObjectKey(uuid::Uuid::nil()),
            &object_store::Error::Generic { store: "S3", source },
        )
    }

    #[test]
    fn the_code_of_an_answer_decides_before_its_status() {
        let key = ObjectKey(uuid::Uuid::nil());
        let refused = Error::StoreRefused;
        for (text, expected) in [
            ("status code: 404 Not Found: <Code>NoSuchKey</Code>", Error::ObjectMissing(key)),
            (
                "status code: 404 Not Found: <Code>NoSuchBucket</Code>",
                refused(StoreRefusal::NoBucket),
            ),
            ("status code: 403 Forbidden: ", refused(StoreRefusal::AccessDenied(GET))),
            (
                "status code: 403 Forbidden: <Code>RequestTimeTooSkewed</Code>",
                refused(StoreRefusal::ClockSkew),
            ),
            ("status code: 412 Precondition Failed: ", Error::ObjectExists(key)),
            (
                "status code: 409 Conflict: <Code>ConditionalRequestConflict</Code>",
                Error::StoreAway("409 ConditionalRequestConflict".into()),
            ),
            (
                "status code: 503 Service Unavailable: <Code>SlowDown</Code>",
                Error::StoreAway("503 SlowDown".into()),
            ),
            (
                "DeleteObjects request failed for key a: no (code: AccessDenied)",
                refused(StoreRefusal::AccessDenied(GET)),
            ),
            ("Received redirect without LOCATION, this", refused(StoreRefusal::OtherRegion)),
            // A page of something that is no store proves nothing about an object.
            (
                "status code: 404 Not Found: <html>",
                refused(StoreRefusal::Other("HTTP status 404".into())),
            ),
            (
                "Error performing PUT http://169.254.169.254/latest/api/token: timed out",
                Error::StoreAway(format!(
                    "{NO_KEYS} (Error performing PUT http://169.254.169.254/latest/api/token: \
                     timed out)"
                )),
            ),
            (
                "received corrupt message of type InvalidContentType",
                Error::StoreAway(
                    "the store does not speak TLS at this endpoint, which https:// asks for".into(),
                ),
            ),
            ("connection reset", Error::StoreAway("connection reset".into())),
            ("status code: x", Error::StoreAway("status code: x".into())),
        ] {
            assert_eq!(of(text), expected, "{text}");
        }
    }
}
