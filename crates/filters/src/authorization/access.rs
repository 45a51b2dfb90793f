//! What the use of each API takes, as data: Kafka 4.4's `KafkaApis` and `ControllerApis`.

use moldau_protocol::ApiKey;

use super::rules::Operation::{
    self, Alter, AlterConfigs, ClusterAction, Create, Delete, Describe, DescribeConfigs, Read,
    Write,
};

/// Access that an API needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Nothing: every client that may connect may use it.
    Free,
    /// Something for the whole request, and something for each of its parts.
    Guarded {
        /// Without any of these the whole request is refused.
        whole: &'static [Need],
        /// Without one of these a part is refused by itself.
        parts: &'static [Need],
        /// Without one of these, answers omit a part that the client did not ask for by name.
        shown: &'static [Need],
    },
    /// It is not offered, and ends the session that uses it all the same: between controllers, or
    /// about principals that rules know nothing of.
    Refused,
}

/// An operation, and on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    Topic(Operation),
    Group(Operation),
    TransactionalId(Operation),
    Cluster(Operation),
    /// On topics, groups, or else the cluster, as the configuration is whose.
    Resource(Operation),
}

use Access::{Free, Refused};
use Need::{Cluster, Group, Resource, Topic, TransactionalId};

const fn whole(whole: &'static [Need]) -> Access {
    guarded(whole, &[])
}

const fn parts(parts: &'static [Need]) -> Access {
    guarded(&[], parts)
}

const fn guarded(whole: &'static [Need], parts: &'static [Need]) -> Access {
    Access::Guarded { whole, parts, shown: &[] }
}

const fn shown(parts: &'static [Need], shown: &'static [Need]) -> Access {
    Access::Guarded { whole: &[], parts, shown }
}

/// Every API of Kafka 4.4. A heartbeat takes its topics as a whole.
pub(super) const ACCESS: &[(ApiKey, Access)] = &[
    (ApiKey::Produce, guarded(&[TransactionalId(Write)], &[Topic(Write)])),
    (ApiKey::Fetch, parts(&[Topic(Read)])),
    (ApiKey::ListOffsets, parts(&[Topic(Describe)])),
    (ApiKey::Metadata, shown(&[Topic(Describe)], &[Topic(Describe)])),
    (ApiKey::OffsetCommit, guarded(&[Group(Read)], &[Topic(Read)])),
    (ApiKey::OffsetFetch, shown(&[Group(Describe), Topic(Describe)], &[Topic(Describe)])),
    (
        ApiKey::FindCoordinator,
        parts(&[Group(Describe), TransactionalId(Describe), Cluster(ClusterAction)]),
    ),
    (ApiKey::JoinGroup, whole(&[Group(Read)])),
    (ApiKey::Heartbeat, whole(&[Group(Read)])),
    (ApiKey::LeaveGroup, whole(&[Group(Read)])),
    (ApiKey::SyncGroup, whole(&[Group(Read)])),
    (ApiKey::DescribeGroups, parts(&[Group(Describe)])),
    (ApiKey::ListGroups, shown(&[], &[Group(Describe)])),
    (ApiKey::SaslHandshake, Free),
    (ApiKey::ApiVersions, Free),
    (ApiKey::CreateTopics, parts(&[Topic(Create)])),
    (ApiKey::DeleteTopics, parts(&[Topic(Delete)])),
    (ApiKey::DeleteRecords, parts(&[Topic(Delete)])),
    (ApiKey::InitProducerId, whole(&[TransactionalId(Write)])),
    (ApiKey::OffsetForLeaderEpoch, parts(&[Topic(Describe)])),
    (ApiKey::AddPartitionsToTxn, guarded(&[TransactionalId(Write)], &[Topic(Write)])),
    (ApiKey::AddOffsetsToTxn, whole(&[TransactionalId(Write), Group(Read)])),
    (ApiKey::EndTxn, whole(&[TransactionalId(Write)])),
    (ApiKey::WriteTxnMarkers, Refused),
    (ApiKey::TxnOffsetCommit, guarded(&[TransactionalId(Write), Group(Read)], &[Topic(Read)])),
    (ApiKey::DescribeAcls, whole(&[Cluster(Describe)])),
    (ApiKey::CreateAcls, whole(&[Cluster(Alter)])),
    (ApiKey::DeleteAcls, whole(&[Cluster(Alter)])),
    (ApiKey::DescribeConfigs, parts(&[Resource(DescribeConfigs)])),
    (ApiKey::AlterConfigs, parts(&[Resource(AlterConfigs)])),
    (ApiKey::AlterReplicaLogDirs, whole(&[Cluster(Alter)])),
    (ApiKey::DescribeLogDirs, whole(&[Cluster(Describe)])),
    (ApiKey::SaslAuthenticate, Free),
    (ApiKey::CreatePartitions, parts(&[Topic(Alter)])),
    (ApiKey::CreateDelegationToken, Refused),
    (ApiKey::RenewDelegationToken, Refused),
    (ApiKey::ExpireDelegationToken, Refused),
    (ApiKey::DescribeDelegationToken, Refused),
    (ApiKey::DeleteGroups, parts(&[Group(Delete)])),
    (ApiKey::ElectLeaders, whole(&[Cluster(Alter)])),
    (ApiKey::IncrementalAlterConfigs, parts(&[Resource(AlterConfigs)])),
    (ApiKey::AlterPartitionReassignments, whole(&[Cluster(Alter)])),
    (ApiKey::ListPartitionReassignments, whole(&[Cluster(Describe)])),
    (ApiKey::OffsetDelete, guarded(&[Group(Delete)], &[Topic(Read)])),
    (ApiKey::DescribeClientQuotas, whole(&[Cluster(DescribeConfigs)])),
    (ApiKey::AlterClientQuotas, whole(&[Cluster(AlterConfigs)])),
    (ApiKey::DescribeUserScramCredentials, whole(&[Cluster(Describe)])),
    (ApiKey::AlterUserScramCredentials, whole(&[Cluster(Alter)])),
    (ApiKey::Vote, Refused),
    (ApiKey::BeginQuorumEpoch, Refused),
    (ApiKey::EndQuorumEpoch, Refused),
    (ApiKey::DescribeQuorum, whole(&[Cluster(Describe)])),
    (ApiKey::AlterPartition, Refused),
    (ApiKey::UpdateFeatures, whole(&[Cluster(Alter)])),
    (ApiKey::Envelope, Refused),
    (ApiKey::FetchSnapshot, Refused),
    (ApiKey::DescribeCluster, Free),
    (ApiKey::DescribeProducers, parts(&[Topic(Read)])),
    (ApiKey::BrokerRegistration, Refused),
    (ApiKey::BrokerHeartbeat, Refused),
    (ApiKey::UnregisterBroker, whole(&[Cluster(Alter)])),
    (ApiKey::DescribeTransactions, shown(&[TransactionalId(Describe)], &[Topic(Describe)])),
    (ApiKey::ListTransactions, shown(&[], &[TransactionalId(Describe)])),
    (ApiKey::AllocateProducerIds, Refused),
    (ApiKey::ConsumerGroupHeartbeat, whole(&[Group(Read), Topic(Describe)])),
    (ApiKey::ConsumerGroupDescribe, parts(&[Group(Describe)])),
    (ApiKey::ControllerRegistration, Refused),
    (ApiKey::GetTelemetrySubscriptions, Free),
    (ApiKey::PushTelemetry, Free),
    (ApiKey::AssignReplicasToDirs, Refused),
    (ApiKey::ListConfigResources, whole(&[Cluster(DescribeConfigs)])),
    (ApiKey::DescribeTopicPartitions, shown(&[Topic(Describe)], &[Topic(Describe)])),
    (ApiKey::ShareGroupHeartbeat, whole(&[Group(Read), Topic(Describe)])),
    (ApiKey::ShareGroupDescribe, parts(&[Group(Describe)])),
    (ApiKey::ShareFetch, guarded(&[Group(Read)], &[Topic(Read)])),
    (ApiKey::ShareAcknowledge, guarded(&[Group(Read)], &[Topic(Read)])),
    (ApiKey::AddRaftVoter, whole(&[Cluster(Alter)])),
    (ApiKey::RemoveRaftVoter, whole(&[Cluster(Alter)])),
    (ApiKey::UpdateRaftVoter, Refused),
    (ApiKey::InitializeShareGroupState, Refused),
    (ApiKey::ReadShareGroupState, Refused),
    (ApiKey::WriteShareGroupState, Refused),
    (ApiKey::DeleteShareGroupState, Refused),
    (ApiKey::ReadShareGroupStateSummary, Refused),
    (ApiKey::StreamsGroupHeartbeat, whole(&[Group(Read), Topic(Describe)])),
    (ApiKey::StreamsGroupDescribe, parts(&[Group(Describe)])),
    (
        ApiKey::DescribeShareGroupOffsets,
        shown(&[Group(Describe), Topic(Describe)], &[Topic(Describe)]),
    ),
    (ApiKey::AlterShareGroupOffsets, guarded(&[Group(Read)], &[Topic(Read)])),
    (ApiKey::DeleteShareGroupOffsets, guarded(&[Group(Delete)], &[Topic(Read)])),
    (ApiKey::StreamsGroupTopologyDescriptionUpdate, whole(&[Group(Read)])),
    (ApiKey::UnregisterController, whole(&[Cluster(Alter)])),
];

/// The access that an API needs. APIs missing from the table are refused.
pub(super) fn access(api: ApiKey) -> Access {
    let row = ACCESS.iter().find(|(key, _)| *key == api);
    row.map_or(Refused, |(_, access)| *access)
}

#[cfg(test)]
mod tests {
    use moldau_protocol::names;

    use super::*;
    use crate::names::names_any;

    #[test]
    fn every_api_is_decided_once() {
        let decided: Vec<ApiKey> = ACCESS.iter().map(|(api, _)| *api).collect();
        assert_eq!(decided, ApiKey::ALL);
    }

    #[test]
    fn no_api_that_names_anything_is_free() {
        for api in ApiKey::ALL {
            let layouts = [names::request_layout(*api), names::response_layout(*api)];
            let names = layouts.iter().any(|layout| names_any(layout.fields));
            assert!(!names || access(*api) != Free, "{api}");
        }
    }
}
