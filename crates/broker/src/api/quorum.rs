//! DescribeQuorum 0-2 (KIP-595, KIP-836, KIP-853) and UpdateFeatures 0-2 (KIP-584, KIP-778).
//!
//! Metadata is in the journal of the one broker, which is the only voter. The offsets of the
//! metadata log are positions in the journal. Levels of features are those of the program: an
//! update to the level in force is accepted, any other is refused.

use moldau_protocol::messages::describe_quorum_response::{
    Listener, Node, PartitionData, ReplicaState, TopicData,
};
use moldau_protocol::messages::update_features_request::FeatureUpdateKey;
use moldau_protocol::messages::update_features_response::UpdatableFeatureResult;
use moldau_protocol::messages::{
    DescribeQuorumRequest, DescribeQuorumResponse, UpdateFeaturesRequest, UpdateFeaturesResponse,
};
use moldau_protocol::{ErrorCode, Uuid};

use crate::api::api_versions::finalized_level;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::config::{LEADER_EPOCH, NODE_ID};
use crate::error::{Refusal, denied};
use crate::topic_config::shown;

/// The one partition of metadata, by Kafka's name.
const METADATA_TOPIC: &str = "__cluster_metadata";

/// The first version with directories and addresses of voters.
const NODES_SINCE: i16 = 2;

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeQuorumRequest,
) -> Outcome<DescribeQuorumResponse> {
    if !call.rights.allow_on_cluster(Operation::Describe) {
        let refusal = denied(ResourceType::Cluster);
        return Outcome::Now(DescribeQuorumResponse {
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            ..DescribeQuorumResponse::default()
        });
    }
    let is_metadata = match request.topics.as_slice() {
        [topic] => {
            let indexes: Vec<_> = topic.partitions.iter().map(|it| it.partition_index).collect();
            topic.topic_name == METADATA_TOPIC && indexes == [0]
        }
        _ => false,
    };
    let topics = request.topics.into_iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| match is_metadata {
            true => described(call),
            false => PartitionData {
                partition_index: partition.partition_index,
                error_code: ErrorCode::UnknownTopicOrPartition.into(),
                error_message: Some("only the partition of metadata has a quorum".to_owned()),
                ..PartitionData::default()
            },
        });
        let partitions = partitions.collect();
        TopicData { topic_name: topic.topic_name, partitions, ..TopicData::default() }
    });
    let topics = topics.collect();
    let nodes = match is_metadata && call.version >= NODES_SINCE {
        true => vec![node(call)],
        false => Vec::new(),
    };
    Outcome::Now(DescribeQuorumResponse { topics, nodes, ..DescribeQuorumResponse::default() })
}

fn described(call: &Call<'_>) -> PartitionData {
    let position = |lsn: crate::logs::Lsn| i64::try_from(lsn.0).unwrap_or(i64::MAX);
    let voter = ReplicaState {
        replica_id: NODE_ID,
        // As of a quorum that does not change (KIP-853).
        replica_directory_id: Uuid::ZERO,
        log_end_offset: position(call.state.storage.end()),
        last_fetch_timestamp: call.now_ms,
        last_caught_up_timestamp: call.now_ms,
        ..ReplicaState::default()
    };
    PartitionData {
        partition_index: 0,
        leader_id: NODE_ID,
        leader_epoch: LEADER_EPOCH,
        high_watermark: position(call.state.storage.durable()),
        current_voters: vec![voter],
        ..PartitionData::default()
    }
}

fn node(call: &Call<'_>) -> Node {
    let endpoint = call.endpoint();
    let listener = Listener {
        name: call.listener.name.clone(),
        host: endpoint.host,
        port: u16::try_from(endpoint.port).unwrap_or_default(),
        ..Listener::default()
    };
    Node { node_id: NODE_ID, listeners: vec![listener], ..Node::default() }
}

pub(crate) fn update_features(
    call: &Call<'_>,
    request: UpdateFeaturesRequest,
) -> Outcome<UpdateFeaturesResponse> {
    let updated = match call.rights.allow_on_cluster(Operation::Alter) {
        true => request.feature_updates.iter().try_for_each(|update| check(update, call.version)),
        false => Err(denied(ResourceType::Cluster)),
    };
    let refusal = updated.err();
    let results = request.feature_updates.into_iter().map(|update| UpdatableFeatureResult {
        feature: update.feature,
        // As in Kafka.
        error_message: Some("NONE".to_owned()),
        ..UpdatableFeatureResult::default()
    });
    let results = match (&refusal, call.version) {
        (None, ..RESULTS_UNTIL) => results.collect(),
        _ => Vec::new(),
    };
    Outcome::Now(UpdateFeaturesResponse {
        error_code: refusal.as_ref().map_or(ErrorCode::None, |refusal| refusal.code).into(),
        error_message: refusal.map(|refusal| refusal.message),
        results,
        ..UpdateFeaturesResponse::default()
    })
}

/// From this version on a response has no results of features.
const RESULTS_UNTIL: i16 = 2;

/// A level can only be what it is.
fn check(update: &FeatureUpdateKey, version: i16) -> Result<(), Refusal> {
    let (feature, wanted) = (shown(&update.feature), update.max_version_level);
    let invalid = |problem: &str| {
        let message = format!(
            "The update failed for all features since the following feature had an error: Invalid \
             update version {wanted} for feature {feature}. {problem}"
        );
        Err(Refusal::new(ErrorCode::InvalidUpdateVersion, message))
    };
    let Some(level) = finalized_level(&update.feature) else {
        return invalid(&format!("Local controller {NODE_ID} does not support this feature."));
    };
    if version > 0 && !UPDATES.contains(&update.upgrade_type) {
        return invalid("The controller does not support the given upgrade type.");
    }
    let is_upgrade = match version {
        0 => !update.allow_downgrade,
        _ => update.upgrade_type == UPGRADE,
    };
    match wanted {
        same if same == level => Ok(()),
        ..0 => invalid("A feature version cannot be less than 0."),
        higher if higher > level => {
            invalid(&format!("Local controller {NODE_ID} only supports versions 0-{level}"))
        }
        _ if is_upgrade => invalid(
            "Can't downgrade the version of this feature without setting the upgrade type to \
             either safe or unsafe downgrade.",
        ),
        _ => invalid(&format!("The level is always {level} here.")),
    }
}

/// Kafka's numbers of updates: upgrade, safe and unsafe downgrade.
const UPDATES: std::ops::RangeInclusive<i8> = 1..=3;

/// Kafka's number of an upgrade.
const UPGRADE: i8 = 1;
