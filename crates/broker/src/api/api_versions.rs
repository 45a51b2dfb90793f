//! ApiVersions, versions 0-4 (KIP-35, KIP-511, KIP-584).
//!
//! Lists exactly what the table of `dispatch` serves. A request of a version above 4 is answered in
//! version 0 with `UNSUPPORTED_VERSION` and the range of this API: the client can ask again.

use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use moldau_protocol::{ApiKey, ErrorCode, VersionRange};

/// Produce is advertised from version 0, since librdkafka takes a higher minimum for a broker
/// that cannot compress (KAFKA-18659); a request below 3 is refused all the same.
const PRODUCE_VERSION_ADVERTISED_MIN: i16 = 0;

/// The answer: every API that is served.
pub(crate) fn respond(
    request: &ApiVersionsRequest,
    served: impl Iterator<Item = (ApiKey, VersionRange)>,
) -> ApiVersionsResponse {
    // KIP-511: the name and version of a client's software are words of a restricted alphabet.
    let fields = [&request.client_software_name, &request.client_software_version];
    let error_code = match fields.iter().all(|word| word.is_empty() || is_software_word(word)) {
        true => ErrorCode::None,
        false => ErrorCode::InvalidRequest,
    };
    ApiVersionsResponse {
        error_code: error_code.into(),
        api_keys: served.map(advertised).collect(),
        ..ApiVersionsResponse::default()
    }
}

/// The answer to a request of an unknown version, to be encoded as version 0.
pub(crate) fn unsupported(
    served: impl Iterator<Item = (ApiKey, VersionRange)>,
) -> ApiVersionsResponse {
    let own = served.filter(|(key, _)| *key == ApiKey::ApiVersions);
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.into(),
        api_keys: own.map(advertised).collect(),
        ..ApiVersionsResponse::default()
    }
}

fn advertised((key, versions): (ApiKey, VersionRange)) -> ApiVersion {
    let min_version = match key {
        ApiKey::Produce => PRODUCE_VERSION_ADVERTISED_MIN,
        _ => versions.min,
    };
    ApiVersion {
        api_key: key.into(),
        min_version,
        max_version: versions.max,
        ..ApiVersion::default()
    }
}

fn is_software_word(word: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    word.bytes().all(inner) && edge(word.bytes().next()) && edge(word.bytes().last())
}
