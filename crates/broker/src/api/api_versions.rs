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

/// The answer: every API that is served, or none to a client that does not name its software.
pub(crate) fn respond(
    request: &ApiVersionsRequest,
    version: i16,
    served: impl Iterator<Item = (ApiKey, VersionRange)>,
) -> ApiVersionsResponse {
    if !request.names_software(version) {
        let error_code = ErrorCode::InvalidRequest.into();
        return ApiVersionsResponse { error_code, ..ApiVersionsResponse::default() };
    }
    let api_keys = served.map(advertised).collect();
    ApiVersionsResponse { api_keys, ..ApiVersionsResponse::default() }
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
