//! ApiVersions, versions 0-5 (KIP-35, KIP-511, KIP-584, KIP-1242).
//!
//! Lists exactly what the table of `dispatch` serves. A request of a version above 5 is answered in
//! version 0 with `UNSUPPORTED_VERSION` and the range of this API: the client can ask again. From
//! version 5 a client may name the broker that it means; another one sends it back to its bootstrap
//! servers.

use moldau_protocol::messages::api_versions_response::{
    ApiVersion, FinalizedFeatureKey, SupportedFeatureKey,
};
use moldau_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use moldau_protocol::{ApiKey, ErrorCode, VersionRange};

/// Produce is advertised from version 0, since librdkafka takes a higher minimum for a broker
/// that cannot compress (KAFKA-18659); a request below 3 is refused all the same.
const PRODUCE_VERSION_ADVERTISED_MIN: i16 = 0;

/// Features, their finalized levels, and an API of each. Producers choose their protocol by that of
/// transactions (KIP-890), consumers need that of groups for the consumer protocol (KIP-848),
/// Streams that of its own (KIP-1071). Level 2 of share groups means dead-letter queues (KIP-1191).
const FEATURES: [(&str, i16, ApiKey); 4] = [
    ("group.version", 1, ApiKey::ConsumerGroupHeartbeat),
    ("share.version", 2, ApiKey::ShareGroupHeartbeat),
    ("streams.version", 1, ApiKey::StreamsGroupHeartbeat),
    ("transaction.version", 2, ApiKey::AddPartitionsToTxn),
];

/// What a client says that means no node.
const NO_NODE: i32 = -1;

/// Before this version Kafka's clients do not understand a range that begins at 0 (KAFKA-17011).
const FEATURES_FROM_ZERO_SINCE: i16 = 4;

/// The answer: every API that is served, or none to a client that does not name its software, or
/// means another broker.
pub(crate) fn respond(
    request: &ApiVersionsRequest,
    version: i16,
    (cluster_id, node_id): (&str, i32),
    served: impl Iterator<Item = (ApiKey, VersionRange)>,
) -> ApiVersionsResponse {
    let refused = |code: ErrorCode| ApiVersionsResponse {
        error_code: code.into(),
        ..ApiVersionsResponse::default()
    };
    if !request.names_software(version) {
        return refused(ErrorCode::InvalidRequest);
    }
    // As in Kafka, a cluster and a node come together. Both are absent below version 5.
    if request.cluster_id.is_some() != (request.node_id != NO_NODE) {
        return refused(ErrorCode::InvalidRequest);
    }
    if let Some(meant) = &request.cluster_id
        && (meant != cluster_id || request.node_id != node_id)
    {
        return refused(ErrorCode::RebootstrapRequired);
    }
    let served: Vec<_> = served.collect();
    // A feature needs its APIs.
    let is_served = |key| served.iter().any(|(served, _)| *served == key);
    let features = FEATURES.iter().filter(|(.., key)| is_served(*key));
    let supported = features.clone().map(|(name, level, _)| SupportedFeatureKey {
        name: (*name).to_owned(),
        min_version: 0,
        max_version: *level,
        ..SupportedFeatureKey::default()
    });
    let finalized = features.map(|(name, level, _)| FinalizedFeatureKey {
        name: (*name).to_owned(),
        max_version_level: *level,
        min_version_level: *level,
        ..FinalizedFeatureKey::default()
    });
    ApiVersionsResponse {
        api_keys: served.iter().copied().map(advertised).collect(),
        supported_features: match version {
            FEATURES_FROM_ZERO_SINCE.. => supported.collect(),
            _ => Vec::new(),
        },
        finalized_features_epoch: 0,
        finalized_features: finalized.collect(),
        ..ApiVersionsResponse::default()
    }
}

/// The level of a feature, if there is one of this name.
pub(crate) fn finalized_level(feature: &str) -> Option<i16> {
    FEATURES.iter().find(|(name, ..)| *name == feature).map(|(_, level, _)| *level)
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
