//! How each API is handled, as data.

use moldau_protocol::{ApiKey, names};

use crate::names::{has_texts, names_any};

/// How the messages of an API are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// They pass as they are: they name nothing that belongs to a tenant.
    Passes,
    /// Names get the prefix on their way to the cluster and lose it on their way back; what belongs
    /// to others is left out of answers and refused in requests.
    Prefixed,
    /// The API is the operator's, or for brokers among themselves: it is not offered, and ends the
    /// session that uses it all the same.
    Refused,
}

use Decision::{Passes, Prefixed, Refused};

/// Every API of Kafka 4.4 with its decision and the reason.
pub(super) const DECISIONS: &[(ApiKey, Decision, &str)] = &[
    (ApiKey::Produce, Prefixed, "topics, transactional ids"),
    (ApiKey::Fetch, Prefixed, "topics"),
    (ApiKey::ListOffsets, Prefixed, "topics"),
    (ApiKey::Metadata, Prefixed, "topics; all topics are the tenant's"),
    (ApiKey::OffsetCommit, Prefixed, "groups, topics"),
    (ApiKey::OffsetFetch, Prefixed, "groups, topics"),
    (ApiKey::FindCoordinator, Prefixed, "groups, transactional ids; not share partitions"),
    (ApiKey::JoinGroup, Prefixed, "groups, topics in what consumers tell their leader"),
    (ApiKey::Heartbeat, Prefixed, "groups"),
    (ApiKey::LeaveGroup, Prefixed, "groups"),
    (ApiKey::SyncGroup, Prefixed, "groups, topics in what the leader assigns to consumers"),
    (ApiKey::DescribeGroups, Prefixed, "groups, topics of consumers"),
    (ApiKey::ListGroups, Prefixed, "only the tenant's groups are listed"),
    (ApiKey::SaslHandshake, Passes, "names nothing"),
    (ApiKey::ApiVersions, Passes, "names nothing"),
    (ApiKey::CreateTopics, Prefixed, "topics"),
    (ApiKey::DeleteTopics, Prefixed, "topics"),
    (ApiKey::DeleteRecords, Prefixed, "topics"),
    (ApiKey::InitProducerId, Prefixed, "transactional ids"),
    (ApiKey::OffsetForLeaderEpoch, Prefixed, "topics"),
    (ApiKey::AddPartitionsToTxn, Prefixed, "transactional ids, topics"),
    (ApiKey::AddOffsetsToTxn, Prefixed, "transactional ids, groups"),
    (ApiKey::EndTxn, Prefixed, "transactional ids"),
    (ApiKey::WriteTxnMarkers, Refused, "for brokers"),
    (ApiKey::TxnOffsetCommit, Prefixed, "transactional ids, groups, topics"),
    (ApiKey::DescribeAcls, Refused, "who may do what, the operator decides"),
    (ApiKey::CreateAcls, Refused, "who may do what, the operator decides"),
    (ApiKey::DeleteAcls, Refused, "who may do what, the operator decides"),
    (ApiKey::DescribeConfigs, Prefixed, "topics, groups; nothing else may be described"),
    (ApiKey::AlterConfigs, Prefixed, "topics, groups; nothing else may be changed"),
    (ApiKey::AlterReplicaLogDirs, Refused, "where replicas lie, the operator decides"),
    (ApiKey::DescribeLogDirs, Prefixed, "only the tenant's topics are listed, without the disk"),
    (ApiKey::SaslAuthenticate, Passes, "names nothing"),
    (ApiKey::CreatePartitions, Prefixed, "topics"),
    (ApiKey::CreateDelegationToken, Refused, "principals are shared"),
    (ApiKey::RenewDelegationToken, Refused, "principals are shared"),
    (ApiKey::ExpireDelegationToken, Refused, "principals are shared"),
    (ApiKey::DescribeDelegationToken, Refused, "principals are shared"),
    (ApiKey::DeleteGroups, Prefixed, "groups"),
    (ApiKey::ElectLeaders, Refused, "without topics it is about all"),
    (ApiKey::IncrementalAlterConfigs, Prefixed, "topics, groups; nothing else may be changed"),
    (ApiKey::AlterPartitionReassignments, Refused, "where replicas lie, the operator decides"),
    (
        ApiKey::ListPartitionReassignments,
        Prefixed,
        "only the tenant's topics are listed, without the disk",
    ),
    (ApiKey::OffsetDelete, Prefixed, "groups, topics"),
    (ApiKey::DescribeClientQuotas, Refused, "quotas are the operator's"),
    (ApiKey::AlterClientQuotas, Refused, "quotas are the operator's"),
    (ApiKey::DescribeUserScramCredentials, Refused, "principals are shared"),
    (ApiKey::AlterUserScramCredentials, Refused, "principals are shared"),
    (ApiKey::Vote, Refused, "for controllers"),
    (ApiKey::BeginQuorumEpoch, Refused, "for controllers"),
    (ApiKey::EndQuorumEpoch, Refused, "for controllers"),
    (ApiKey::DescribeQuorum, Refused, "of the whole cluster"),
    (ApiKey::AlterPartition, Refused, "for brokers"),
    (ApiKey::UpdateFeatures, Refused, "of the whole cluster"),
    (ApiKey::Envelope, Refused, "for brokers"),
    (ApiKey::FetchSnapshot, Refused, "for controllers"),
    (ApiKey::DescribeCluster, Passes, "the brokers, which all tenants share"),
    (ApiKey::DescribeProducers, Prefixed, "topics"),
    (ApiKey::BrokerRegistration, Refused, "for brokers"),
    (ApiKey::BrokerHeartbeat, Refused, "for brokers"),
    (ApiKey::UnregisterBroker, Refused, "of the whole cluster"),
    (ApiKey::DescribeTransactions, Prefixed, "transactional ids, topics"),
    (ApiKey::ListTransactions, Prefixed, "only the tenant's transactions are listed"),
    (ApiKey::AllocateProducerIds, Refused, "for brokers"),
    (ApiKey::ConsumerGroupHeartbeat, Prefixed, "groups, topics, expressions over topics"),
    (ApiKey::ConsumerGroupDescribe, Prefixed, "groups, topics, expressions over topics"),
    (ApiKey::ControllerRegistration, Refused, "for controllers"),
    (ApiKey::GetTelemetrySubscriptions, Passes, "names metrics only"),
    (ApiKey::PushTelemetry, Passes, "what the client tells the operator"),
    (ApiKey::AssignReplicasToDirs, Refused, "for brokers"),
    (ApiKey::ListConfigResources, Prefixed, "only the tenant's topics and groups are listed"),
    (ApiKey::DescribeTopicPartitions, Prefixed, "topics; all topics are the tenant's"),
    (ApiKey::ShareGroupHeartbeat, Prefixed, "groups, topics"),
    (ApiKey::ShareGroupDescribe, Prefixed, "groups, topics"),
    (ApiKey::ShareFetch, Prefixed, "groups, topics"),
    (ApiKey::ShareAcknowledge, Prefixed, "groups, topics"),
    (ApiKey::AddRaftVoter, Refused, "of the whole cluster"),
    (ApiKey::RemoveRaftVoter, Refused, "of the whole cluster"),
    (ApiKey::UpdateRaftVoter, Refused, "for controllers"),
    (ApiKey::InitializeShareGroupState, Refused, "for brokers"),
    (ApiKey::ReadShareGroupState, Refused, "for brokers"),
    (ApiKey::WriteShareGroupState, Refused, "for brokers"),
    (ApiKey::DeleteShareGroupState, Refused, "for brokers"),
    (ApiKey::ReadShareGroupStateSummary, Refused, "for brokers"),
    (ApiKey::StreamsGroupHeartbeat, Prefixed, "groups, topics, expressions over topics"),
    (ApiKey::StreamsGroupDescribe, Prefixed, "groups, topics"),
    (ApiKey::DescribeShareGroupOffsets, Prefixed, "groups, topics"),
    (ApiKey::AlterShareGroupOffsets, Prefixed, "groups, topics"),
    (ApiKey::DeleteShareGroupOffsets, Prefixed, "groups, topics"),
    (ApiKey::StreamsGroupTopologyDescriptionUpdate, Prefixed, "groups, topics"),
    (ApiKey::UnregisterController, Refused, "of the whole cluster"),
];

/// The decision about an API; what the table does not know is refused.
pub(super) fn decision(api: ApiKey) -> Decision {
    let row = DECISIONS.iter().find(|(key, ..)| *key == api);
    row.map_or(Refused, |(_, decision, _)| *decision)
}

/// What answers of these APIs name, the layouts do not tell.
const BY_HAND: [ApiKey; 7] = [
    ApiKey::FindCoordinator,
    ApiKey::JoinGroup,
    ApiKey::SyncGroup,
    ApiKey::DescribeConfigs,
    ApiKey::AlterConfigs,
    ApiKey::IncrementalAlterConfigs,
    ApiKey::ListConfigResources,
];

/// Whether the answers of an API name anything, or can be completed by what was refused.
pub(super) fn answer_matters(api: ApiKey) -> bool {
    BY_HAND.contains(&api) || names_any(names::response_layout(api).fields)
}

/// Whether such an answer has names of a tenant's in this version. Topic ids are the cluster's.
pub(super) fn answer_names(api: ApiKey, version: i16) -> bool {
    answer_matters(api)
        && (BY_HAND.contains(&api) || has_texts(names::response_layout(api).fields, version))
}

#[cfg(test)]
mod tests {
    use moldau_protocol::{Field, Kind};

    use super::*;

    #[test]
    fn every_api_is_decided_once() {
        let decided: Vec<ApiKey> = DECISIONS.iter().map(|(api, ..)| *api).collect();
        assert_eq!(decided, ApiKey::ALL);
    }

    #[test]
    fn no_api_that_names_anything_passes() {
        for api in ApiKey::ALL {
            let layouts = [names::request_layout(*api), names::response_layout(*api)];
            let names = layouts.iter().any(|layout| names_any(layout.fields));
            assert!(!names || decision(*api) != Passes, "{api}");
        }
    }

    /// Texts of APIs that are not refused which the layouts do not tell to be names: those that the
    /// filter treats by hand, and those that were looked at and name nothing of a tenant's.
    #[test]
    fn every_other_text_was_looked_at() {
        let by_hand = [
            "Key",
            "CoordinatorKeys",
            "ResourceName",
            "SubscribedTopicRegex",
            "SourceTopicRegex",
            "TransactionalIdPattern",
            "Metadata",
            "Assignment",
            "MemberMetadata",
            "MemberAssignment",
        ];
        let harmless = [
            "AssignorName",
            "ClientHost",
            "ClientId",
            "ClientSoftwareName",
            "ClientSoftwareVersion",
            "ClusterId",
            "CommittedMetadata",
            "ConfigurationKeys",
            "Documentation",
            "GroupInstanceId",
            "GroupState",
            "GroupType",
            "Host",
            "InstanceId",
            "Leader",
            "LogDir",
            "Mechanism",
            "Mechanisms",
            "MemberId",
            "Metrics",
            "Name",
            "ProcessId",
            "ProtocolData",
            "ProtocolName",
            "ProtocolType",
            "Rack",
            "RackId",
            "Reason",
            "Records",
            "RequestedMetrics",
            "ServerAssignor",
            "StateFilters",
            "StatesFilter",
            "Stores",
            "Successors",
            "SubtopologyId",
            "TransactionState",
            "TypesFilter",
            "UnknownStateFilters",
            "Value",
            "AuthBytes",
        ];
        for api in ApiKey::ALL.iter().filter(|api| decision(**api) != Refused) {
            for layout in [names::request_layout(*api), names::response_layout(*api)] {
                for name in unnamed_texts(layout.fields) {
                    let known = by_hand.contains(&name) || harmless.contains(&name);
                    assert!(known, "{}: {name}", layout.name);
                }
            }
        }
    }

    fn unnamed_texts(fields: &[Field]) -> Vec<&'static str> {
        let mut found = Vec::new();
        for field in fields {
            let mut kind = field.kind;
            while let Kind::Array(element) = kind {
                kind = *element;
            }
            match kind {
                Kind::Text | Kind::Bytes if field.entity.is_none() => found.push(field.name),
                Kind::Struct(fields) => found.extend(unnamed_texts(fields)),
                _ => {}
            }
        }
        found
    }
}
