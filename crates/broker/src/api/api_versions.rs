//! ApiVersions, versions 0-4 (KIP-35, KIP-511, KIP-584).
//!
//! Lists exactly what [`crate::dispatch`] serves. A request of a version above 4 is answered in
//! version 0 with `UNSUPPORTED_VERSION` and the range of this API, so that the client can ask again.

use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use moldau_protocol::{ApiKey, ErrorCode};

use crate::dispatch::{self, Call, Outcome};

/// Produce is advertised from version 0, since librdkafka takes a higher minimum for a broker
/// that cannot compress (KAFKA-18659); a request below 3 is refused all the same.
const PRODUCE_VERSION_ADVERTISED_MIN: i16 = 0;

pub(crate) fn handle(
    _call: &Call<'_>,
    request: ApiVersionsRequest,
) -> Outcome<ApiVersionsResponse> {
    // KIP-511: the name and version of a client's software are words of a restricted alphabet.
    let fields = [&request.client_software_name, &request.client_software_version];
    let error_code = match fields.iter().all(|word| word.is_empty() || is_software_word(word)) {
        true => ErrorCode::None,
        false => ErrorCode::InvalidRequest,
    };
    Outcome::Now(ApiVersionsResponse {
        error_code: error_code.into(),
        api_keys: served(),
        ..ApiVersionsResponse::default()
    })
}

/// The answer to a request of an unknown version, to be encoded as version 0.
pub(crate) fn unsupported() -> ApiVersionsResponse {
    let own = served().into_iter().filter(|api| api.api_key == i16::from(ApiKey::ApiVersions));
    ApiVersionsResponse {
        error_code: ErrorCode::UnsupportedVersion.into(),
        api_keys: own.collect(),
        ..ApiVersionsResponse::default()
    }
}

fn served() -> Vec<ApiVersion> {
    let ranges = dispatch::served_versions().map(|(key, versions)| ApiVersion {
        api_key: key.into(),
        min_version: match key {
            ApiKey::Produce => PRODUCE_VERSION_ADVERTISED_MIN,
            _ => versions.min,
        },
        max_version: versions.max,
        ..ApiVersion::default()
    });
    ranges.collect()
}

fn is_software_word(word: &str) -> bool {
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'-';
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    word.bytes().all(inner) && edge(word.bytes().next()) && edge(word.bytes().last())
}
