//! Kafka's messages, written by `cargo xtask codegen` from the definitions in
//! `kafka-clients`; not to be edited.

#![expect(unused_variables, reason = "not every message looks at its version")]
#![expect(clippy::field_reassign_with_default, reason = "fields depend on the version")]

use crate::api_key::ApiKey;
use crate::message::Layout;

/// What every message needs.
mod prelude {
    pub(super) use bytes::Bytes;

    pub(super) use crate::api_key::ApiKey;
    pub(super) use crate::error::{DecodeError, EncodeError};
    pub(super) use crate::layout::{Entity, Field, Kind, Structure};
    pub(super) use crate::message::{Message, Request, Response};
    #[cfg(test)]
    pub(super) use crate::random::{Generator, Random};
    pub(super) use crate::reader::{FromWire, Reader};
    pub(super) use crate::tagged::RawTaggedField;
    pub(super) use crate::uuid::Uuid;
    pub(super) use crate::versions::VersionRange;
    pub(super) use crate::writer::{ToWire, Writer};
}

pub mod aborted_txn;
pub mod add_offsets_to_txn_request;
pub mod add_offsets_to_txn_response;
pub mod add_partitions_to_txn_request;
pub mod add_partitions_to_txn_response;
pub mod add_raft_voter_request;
pub mod add_raft_voter_response;
pub mod allocate_producer_ids_request;
pub mod allocate_producer_ids_response;
pub mod alter_client_quotas_request;
pub mod alter_client_quotas_response;
pub mod alter_configs_request;
pub mod alter_configs_response;
pub mod alter_partition_reassignments_request;
pub mod alter_partition_reassignments_response;
pub mod alter_partition_request;
pub mod alter_partition_response;
pub mod alter_replica_log_dirs_request;
pub mod alter_replica_log_dirs_response;
pub mod alter_share_group_offsets_request;
pub mod alter_share_group_offsets_response;
pub mod alter_user_scram_credentials_request;
pub mod alter_user_scram_credentials_response;
pub mod api_versions_request;
pub mod api_versions_response;
pub mod assign_replicas_to_dirs_request;
pub mod assign_replicas_to_dirs_response;
pub mod begin_quorum_epoch_request;
pub mod begin_quorum_epoch_response;
pub mod broker_heartbeat_request;
pub mod broker_heartbeat_response;
pub mod broker_registration_request;
pub mod broker_registration_response;
pub mod consumer_group_describe_request;
pub mod consumer_group_describe_response;
pub mod consumer_group_heartbeat_request;
pub mod consumer_group_heartbeat_response;
pub mod consumer_protocol_assignment;
pub mod consumer_protocol_subscription;
pub mod control_record_type_schema;
pub mod controller_registration_request;
pub mod controller_registration_response;
pub mod create_acls_request;
pub mod create_acls_response;
pub mod create_delegation_token_request;
pub mod create_delegation_token_response;
pub mod create_partitions_request;
pub mod create_partitions_response;
pub mod create_topics_request;
pub mod create_topics_response;
pub mod default_principal_data;
pub mod delete_acls_request;
pub mod delete_acls_response;
pub mod delete_groups_request;
pub mod delete_groups_response;
pub mod delete_records_request;
pub mod delete_records_response;
pub mod delete_share_group_offsets_request;
pub mod delete_share_group_offsets_response;
pub mod delete_share_group_state_request;
pub mod delete_share_group_state_response;
pub mod delete_topics_request;
pub mod delete_topics_response;
pub mod describe_acls_request;
pub mod describe_acls_response;
pub mod describe_client_quotas_request;
pub mod describe_client_quotas_response;
pub mod describe_cluster_request;
pub mod describe_cluster_response;
pub mod describe_configs_request;
pub mod describe_configs_response;
pub mod describe_delegation_token_request;
pub mod describe_delegation_token_response;
pub mod describe_groups_request;
pub mod describe_groups_response;
pub mod describe_log_dirs_request;
pub mod describe_log_dirs_response;
pub mod describe_producers_request;
pub mod describe_producers_response;
pub mod describe_quorum_request;
pub mod describe_quorum_response;
pub mod describe_share_group_offsets_request;
pub mod describe_share_group_offsets_response;
pub mod describe_topic_partitions_request;
pub mod describe_topic_partitions_response;
pub mod describe_transactions_request;
pub mod describe_transactions_response;
pub mod describe_user_scram_credentials_request;
pub mod describe_user_scram_credentials_response;
pub mod elect_leaders_request;
pub mod elect_leaders_response;
pub mod end_quorum_epoch_request;
pub mod end_quorum_epoch_response;
pub mod end_txn_marker;
pub mod end_txn_request;
pub mod end_txn_response;
pub mod envelope_request;
pub mod envelope_response;
pub mod expire_delegation_token_request;
pub mod expire_delegation_token_response;
pub mod fetch_request;
pub mod fetch_response;
pub mod fetch_snapshot_request;
pub mod fetch_snapshot_response;
pub mod find_coordinator_request;
pub mod find_coordinator_response;
pub mod get_telemetry_subscriptions_request;
pub mod get_telemetry_subscriptions_response;
pub mod heartbeat_request;
pub mod heartbeat_response;
pub mod incremental_alter_configs_request;
pub mod incremental_alter_configs_response;
pub mod init_producer_id_request;
pub mod init_producer_id_response;
pub mod initialize_share_group_state_request;
pub mod initialize_share_group_state_response;
pub mod join_group_request;
pub mod join_group_response;
pub mod kraft_version_record;
pub mod leader_change_message;
pub mod leave_group_request;
pub mod leave_group_response;
pub mod list_config_resources_request;
pub mod list_config_resources_response;
pub mod list_groups_request;
pub mod list_groups_response;
pub mod list_offsets_request;
pub mod list_offsets_response;
pub mod list_partition_reassignments_request;
pub mod list_partition_reassignments_response;
pub mod list_transactions_request;
pub mod list_transactions_response;
pub mod metadata_request;
pub mod metadata_response;
pub mod offset_commit_request;
pub mod offset_commit_response;
pub mod offset_delete_request;
pub mod offset_delete_response;
pub mod offset_fetch_request;
pub mod offset_fetch_response;
pub mod offset_for_leader_epoch_request;
pub mod offset_for_leader_epoch_response;
pub mod produce_request;
pub mod produce_response;
pub mod push_telemetry_request;
pub mod push_telemetry_response;
pub mod read_share_group_state_request;
pub mod read_share_group_state_response;
pub mod read_share_group_state_summary_request;
pub mod read_share_group_state_summary_response;
pub mod remove_raft_voter_request;
pub mod remove_raft_voter_response;
pub mod renew_delegation_token_request;
pub mod renew_delegation_token_response;
pub mod request_header;
pub mod response_header;
pub mod sasl_authenticate_request;
pub mod sasl_authenticate_response;
pub mod sasl_handshake_request;
pub mod sasl_handshake_response;
pub mod share_acknowledge_request;
pub mod share_acknowledge_response;
pub mod share_fetch_request;
pub mod share_fetch_response;
pub mod share_group_describe_request;
pub mod share_group_describe_response;
pub mod share_group_heartbeat_request;
pub mod share_group_heartbeat_response;
pub mod snapshot_footer_record;
pub mod snapshot_header_record;
pub mod streams_group_describe_request;
pub mod streams_group_describe_response;
pub mod streams_group_heartbeat_request;
pub mod streams_group_heartbeat_response;
pub mod streams_group_topology_description_update_request;
pub mod streams_group_topology_description_update_response;
pub mod sync_group_request;
pub mod sync_group_response;
pub mod txn_offset_commit_request;
pub mod txn_offset_commit_response;
pub mod unregister_broker_request;
pub mod unregister_broker_response;
pub mod unregister_controller_request;
pub mod unregister_controller_response;
pub mod update_features_request;
pub mod update_features_response;
pub mod update_raft_voter_request;
pub mod update_raft_voter_response;
pub mod vote_request;
pub mod vote_response;
pub mod voters_record;
pub mod write_share_group_state_request;
pub mod write_share_group_state_response;
pub mod write_txn_markers_request;
pub mod write_txn_markers_response;

pub use aborted_txn::AbortedTxn;
pub use add_offsets_to_txn_request::AddOffsetsToTxnRequest;
pub use add_offsets_to_txn_response::AddOffsetsToTxnResponse;
pub use add_partitions_to_txn_request::AddPartitionsToTxnRequest;
pub use add_partitions_to_txn_response::AddPartitionsToTxnResponse;
pub use add_raft_voter_request::AddRaftVoterRequest;
pub use add_raft_voter_response::AddRaftVoterResponse;
pub use allocate_producer_ids_request::AllocateProducerIdsRequest;
pub use allocate_producer_ids_response::AllocateProducerIdsResponse;
pub use alter_client_quotas_request::AlterClientQuotasRequest;
pub use alter_client_quotas_response::AlterClientQuotasResponse;
pub use alter_configs_request::AlterConfigsRequest;
pub use alter_configs_response::AlterConfigsResponse;
pub use alter_partition_reassignments_request::AlterPartitionReassignmentsRequest;
pub use alter_partition_reassignments_response::AlterPartitionReassignmentsResponse;
pub use alter_partition_request::AlterPartitionRequest;
pub use alter_partition_response::AlterPartitionResponse;
pub use alter_replica_log_dirs_request::AlterReplicaLogDirsRequest;
pub use alter_replica_log_dirs_response::AlterReplicaLogDirsResponse;
pub use alter_share_group_offsets_request::AlterShareGroupOffsetsRequest;
pub use alter_share_group_offsets_response::AlterShareGroupOffsetsResponse;
pub use alter_user_scram_credentials_request::AlterUserScramCredentialsRequest;
pub use alter_user_scram_credentials_response::AlterUserScramCredentialsResponse;
pub use api_versions_request::ApiVersionsRequest;
pub use api_versions_response::ApiVersionsResponse;
pub use assign_replicas_to_dirs_request::AssignReplicasToDirsRequest;
pub use assign_replicas_to_dirs_response::AssignReplicasToDirsResponse;
pub use begin_quorum_epoch_request::BeginQuorumEpochRequest;
pub use begin_quorum_epoch_response::BeginQuorumEpochResponse;
pub use broker_heartbeat_request::BrokerHeartbeatRequest;
pub use broker_heartbeat_response::BrokerHeartbeatResponse;
pub use broker_registration_request::BrokerRegistrationRequest;
pub use broker_registration_response::BrokerRegistrationResponse;
pub use consumer_group_describe_request::ConsumerGroupDescribeRequest;
pub use consumer_group_describe_response::ConsumerGroupDescribeResponse;
pub use consumer_group_heartbeat_request::ConsumerGroupHeartbeatRequest;
pub use consumer_group_heartbeat_response::ConsumerGroupHeartbeatResponse;
pub use consumer_protocol_assignment::ConsumerProtocolAssignment;
pub use consumer_protocol_subscription::ConsumerProtocolSubscription;
pub use control_record_type_schema::ControlRecordTypeSchema;
pub use controller_registration_request::ControllerRegistrationRequest;
pub use controller_registration_response::ControllerRegistrationResponse;
pub use create_acls_request::CreateAclsRequest;
pub use create_acls_response::CreateAclsResponse;
pub use create_delegation_token_request::CreateDelegationTokenRequest;
pub use create_delegation_token_response::CreateDelegationTokenResponse;
pub use create_partitions_request::CreatePartitionsRequest;
pub use create_partitions_response::CreatePartitionsResponse;
pub use create_topics_request::CreateTopicsRequest;
pub use create_topics_response::CreateTopicsResponse;
pub use default_principal_data::DefaultPrincipalData;
pub use delete_acls_request::DeleteAclsRequest;
pub use delete_acls_response::DeleteAclsResponse;
pub use delete_groups_request::DeleteGroupsRequest;
pub use delete_groups_response::DeleteGroupsResponse;
pub use delete_records_request::DeleteRecordsRequest;
pub use delete_records_response::DeleteRecordsResponse;
pub use delete_share_group_offsets_request::DeleteShareGroupOffsetsRequest;
pub use delete_share_group_offsets_response::DeleteShareGroupOffsetsResponse;
pub use delete_share_group_state_request::DeleteShareGroupStateRequest;
pub use delete_share_group_state_response::DeleteShareGroupStateResponse;
pub use delete_topics_request::DeleteTopicsRequest;
pub use delete_topics_response::DeleteTopicsResponse;
pub use describe_acls_request::DescribeAclsRequest;
pub use describe_acls_response::DescribeAclsResponse;
pub use describe_client_quotas_request::DescribeClientQuotasRequest;
pub use describe_client_quotas_response::DescribeClientQuotasResponse;
pub use describe_cluster_request::DescribeClusterRequest;
pub use describe_cluster_response::DescribeClusterResponse;
pub use describe_configs_request::DescribeConfigsRequest;
pub use describe_configs_response::DescribeConfigsResponse;
pub use describe_delegation_token_request::DescribeDelegationTokenRequest;
pub use describe_delegation_token_response::DescribeDelegationTokenResponse;
pub use describe_groups_request::DescribeGroupsRequest;
pub use describe_groups_response::DescribeGroupsResponse;
pub use describe_log_dirs_request::DescribeLogDirsRequest;
pub use describe_log_dirs_response::DescribeLogDirsResponse;
pub use describe_producers_request::DescribeProducersRequest;
pub use describe_producers_response::DescribeProducersResponse;
pub use describe_quorum_request::DescribeQuorumRequest;
pub use describe_quorum_response::DescribeQuorumResponse;
pub use describe_share_group_offsets_request::DescribeShareGroupOffsetsRequest;
pub use describe_share_group_offsets_response::DescribeShareGroupOffsetsResponse;
pub use describe_topic_partitions_request::DescribeTopicPartitionsRequest;
pub use describe_topic_partitions_response::DescribeTopicPartitionsResponse;
pub use describe_transactions_request::DescribeTransactionsRequest;
pub use describe_transactions_response::DescribeTransactionsResponse;
pub use describe_user_scram_credentials_request::DescribeUserScramCredentialsRequest;
pub use describe_user_scram_credentials_response::DescribeUserScramCredentialsResponse;
pub use elect_leaders_request::ElectLeadersRequest;
pub use elect_leaders_response::ElectLeadersResponse;
pub use end_quorum_epoch_request::EndQuorumEpochRequest;
pub use end_quorum_epoch_response::EndQuorumEpochResponse;
pub use end_txn_marker::EndTxnMarker;
pub use end_txn_request::EndTxnRequest;
pub use end_txn_response::EndTxnResponse;
pub use envelope_request::EnvelopeRequest;
pub use envelope_response::EnvelopeResponse;
pub use expire_delegation_token_request::ExpireDelegationTokenRequest;
pub use expire_delegation_token_response::ExpireDelegationTokenResponse;
pub use fetch_request::FetchRequest;
pub use fetch_response::FetchResponse;
pub use fetch_snapshot_request::FetchSnapshotRequest;
pub use fetch_snapshot_response::FetchSnapshotResponse;
pub use find_coordinator_request::FindCoordinatorRequest;
pub use find_coordinator_response::FindCoordinatorResponse;
pub use get_telemetry_subscriptions_request::GetTelemetrySubscriptionsRequest;
pub use get_telemetry_subscriptions_response::GetTelemetrySubscriptionsResponse;
pub use heartbeat_request::HeartbeatRequest;
pub use heartbeat_response::HeartbeatResponse;
pub use incremental_alter_configs_request::IncrementalAlterConfigsRequest;
pub use incremental_alter_configs_response::IncrementalAlterConfigsResponse;
pub use init_producer_id_request::InitProducerIdRequest;
pub use init_producer_id_response::InitProducerIdResponse;
pub use initialize_share_group_state_request::InitializeShareGroupStateRequest;
pub use initialize_share_group_state_response::InitializeShareGroupStateResponse;
pub use join_group_request::JoinGroupRequest;
pub use join_group_response::JoinGroupResponse;
pub use kraft_version_record::KRaftVersionRecord;
pub use leader_change_message::LeaderChangeMessage;
pub use leave_group_request::LeaveGroupRequest;
pub use leave_group_response::LeaveGroupResponse;
pub use list_config_resources_request::ListConfigResourcesRequest;
pub use list_config_resources_response::ListConfigResourcesResponse;
pub use list_groups_request::ListGroupsRequest;
pub use list_groups_response::ListGroupsResponse;
pub use list_offsets_request::ListOffsetsRequest;
pub use list_offsets_response::ListOffsetsResponse;
pub use list_partition_reassignments_request::ListPartitionReassignmentsRequest;
pub use list_partition_reassignments_response::ListPartitionReassignmentsResponse;
pub use list_transactions_request::ListTransactionsRequest;
pub use list_transactions_response::ListTransactionsResponse;
pub use metadata_request::MetadataRequest;
pub use metadata_response::MetadataResponse;
pub use offset_commit_request::OffsetCommitRequest;
pub use offset_commit_response::OffsetCommitResponse;
pub use offset_delete_request::OffsetDeleteRequest;
pub use offset_delete_response::OffsetDeleteResponse;
pub use offset_fetch_request::OffsetFetchRequest;
pub use offset_fetch_response::OffsetFetchResponse;
pub use offset_for_leader_epoch_request::OffsetForLeaderEpochRequest;
pub use offset_for_leader_epoch_response::OffsetForLeaderEpochResponse;
pub use produce_request::ProduceRequest;
pub use produce_response::ProduceResponse;
pub use push_telemetry_request::PushTelemetryRequest;
pub use push_telemetry_response::PushTelemetryResponse;
pub use read_share_group_state_request::ReadShareGroupStateRequest;
pub use read_share_group_state_response::ReadShareGroupStateResponse;
pub use read_share_group_state_summary_request::ReadShareGroupStateSummaryRequest;
pub use read_share_group_state_summary_response::ReadShareGroupStateSummaryResponse;
pub use remove_raft_voter_request::RemoveRaftVoterRequest;
pub use remove_raft_voter_response::RemoveRaftVoterResponse;
pub use renew_delegation_token_request::RenewDelegationTokenRequest;
pub use renew_delegation_token_response::RenewDelegationTokenResponse;
pub use request_header::RequestHeader;
pub use response_header::ResponseHeader;
pub use sasl_authenticate_request::SaslAuthenticateRequest;
pub use sasl_authenticate_response::SaslAuthenticateResponse;
pub use sasl_handshake_request::SaslHandshakeRequest;
pub use sasl_handshake_response::SaslHandshakeResponse;
pub use share_acknowledge_request::ShareAcknowledgeRequest;
pub use share_acknowledge_response::ShareAcknowledgeResponse;
pub use share_fetch_request::ShareFetchRequest;
pub use share_fetch_response::ShareFetchResponse;
pub use share_group_describe_request::ShareGroupDescribeRequest;
pub use share_group_describe_response::ShareGroupDescribeResponse;
pub use share_group_heartbeat_request::ShareGroupHeartbeatRequest;
pub use share_group_heartbeat_response::ShareGroupHeartbeatResponse;
pub use snapshot_footer_record::SnapshotFooterRecord;
pub use snapshot_header_record::SnapshotHeaderRecord;
pub use streams_group_describe_request::StreamsGroupDescribeRequest;
pub use streams_group_describe_response::StreamsGroupDescribeResponse;
pub use streams_group_heartbeat_request::StreamsGroupHeartbeatRequest;
pub use streams_group_heartbeat_response::StreamsGroupHeartbeatResponse;
pub use streams_group_topology_description_update_request::StreamsGroupTopologyDescriptionUpdateRequest;
pub use streams_group_topology_description_update_response::StreamsGroupTopologyDescriptionUpdateResponse;
pub use sync_group_request::SyncGroupRequest;
pub use sync_group_response::SyncGroupResponse;
pub use txn_offset_commit_request::TxnOffsetCommitRequest;
pub use txn_offset_commit_response::TxnOffsetCommitResponse;
pub use unregister_broker_request::UnregisterBrokerRequest;
pub use unregister_broker_response::UnregisterBrokerResponse;
pub use unregister_controller_request::UnregisterControllerRequest;
pub use unregister_controller_response::UnregisterControllerResponse;
pub use update_features_request::UpdateFeaturesRequest;
pub use update_features_response::UpdateFeaturesResponse;
pub use update_raft_voter_request::UpdateRaftVoterRequest;
pub use update_raft_voter_response::UpdateRaftVoterResponse;
pub use vote_request::VoteRequest;
pub use vote_response::VoteResponse;
pub use voters_record::VotersRecord;
pub use write_share_group_state_request::WriteShareGroupStateRequest;
pub use write_share_group_state_response::WriteShareGroupStateResponse;
pub use write_txn_markers_request::WriteTxnMarkersRequest;
pub use write_txn_markers_response::WriteTxnMarkersResponse;

/// The layouts of an API's request and response.
pub(crate) const fn layouts(api: ApiKey) -> (Layout, Layout) {
    match api {
        ApiKey::AddOffsetsToTxn => {
            (Layout::of::<AddOffsetsToTxnRequest>(), Layout::of::<AddOffsetsToTxnResponse>())
        }
        ApiKey::AddPartitionsToTxn => {
            (Layout::of::<AddPartitionsToTxnRequest>(), Layout::of::<AddPartitionsToTxnResponse>())
        }
        ApiKey::AddRaftVoter => {
            (Layout::of::<AddRaftVoterRequest>(), Layout::of::<AddRaftVoterResponse>())
        }
        ApiKey::AllocateProducerIds => (
            Layout::of::<AllocateProducerIdsRequest>(),
            Layout::of::<AllocateProducerIdsResponse>(),
        ),
        ApiKey::AlterClientQuotas => {
            (Layout::of::<AlterClientQuotasRequest>(), Layout::of::<AlterClientQuotasResponse>())
        }
        ApiKey::AlterConfigs => {
            (Layout::of::<AlterConfigsRequest>(), Layout::of::<AlterConfigsResponse>())
        }
        ApiKey::AlterPartitionReassignments => (
            Layout::of::<AlterPartitionReassignmentsRequest>(),
            Layout::of::<AlterPartitionReassignmentsResponse>(),
        ),
        ApiKey::AlterPartition => {
            (Layout::of::<AlterPartitionRequest>(), Layout::of::<AlterPartitionResponse>())
        }
        ApiKey::AlterReplicaLogDirs => (
            Layout::of::<AlterReplicaLogDirsRequest>(),
            Layout::of::<AlterReplicaLogDirsResponse>(),
        ),
        ApiKey::AlterShareGroupOffsets => (
            Layout::of::<AlterShareGroupOffsetsRequest>(),
            Layout::of::<AlterShareGroupOffsetsResponse>(),
        ),
        ApiKey::AlterUserScramCredentials => (
            Layout::of::<AlterUserScramCredentialsRequest>(),
            Layout::of::<AlterUserScramCredentialsResponse>(),
        ),
        ApiKey::ApiVersions => {
            (Layout::of::<ApiVersionsRequest>(), Layout::of::<ApiVersionsResponse>())
        }
        ApiKey::AssignReplicasToDirs => (
            Layout::of::<AssignReplicasToDirsRequest>(),
            Layout::of::<AssignReplicasToDirsResponse>(),
        ),
        ApiKey::BeginQuorumEpoch => {
            (Layout::of::<BeginQuorumEpochRequest>(), Layout::of::<BeginQuorumEpochResponse>())
        }
        ApiKey::BrokerHeartbeat => {
            (Layout::of::<BrokerHeartbeatRequest>(), Layout::of::<BrokerHeartbeatResponse>())
        }
        ApiKey::BrokerRegistration => {
            (Layout::of::<BrokerRegistrationRequest>(), Layout::of::<BrokerRegistrationResponse>())
        }
        ApiKey::ConsumerGroupDescribe => (
            Layout::of::<ConsumerGroupDescribeRequest>(),
            Layout::of::<ConsumerGroupDescribeResponse>(),
        ),
        ApiKey::ConsumerGroupHeartbeat => (
            Layout::of::<ConsumerGroupHeartbeatRequest>(),
            Layout::of::<ConsumerGroupHeartbeatResponse>(),
        ),
        ApiKey::ControllerRegistration => (
            Layout::of::<ControllerRegistrationRequest>(),
            Layout::of::<ControllerRegistrationResponse>(),
        ),
        ApiKey::CreateAcls => {
            (Layout::of::<CreateAclsRequest>(), Layout::of::<CreateAclsResponse>())
        }
        ApiKey::CreateDelegationToken => (
            Layout::of::<CreateDelegationTokenRequest>(),
            Layout::of::<CreateDelegationTokenResponse>(),
        ),
        ApiKey::CreatePartitions => {
            (Layout::of::<CreatePartitionsRequest>(), Layout::of::<CreatePartitionsResponse>())
        }
        ApiKey::CreateTopics => {
            (Layout::of::<CreateTopicsRequest>(), Layout::of::<CreateTopicsResponse>())
        }
        ApiKey::DeleteAcls => {
            (Layout::of::<DeleteAclsRequest>(), Layout::of::<DeleteAclsResponse>())
        }
        ApiKey::DeleteGroups => {
            (Layout::of::<DeleteGroupsRequest>(), Layout::of::<DeleteGroupsResponse>())
        }
        ApiKey::DeleteRecords => {
            (Layout::of::<DeleteRecordsRequest>(), Layout::of::<DeleteRecordsResponse>())
        }
        ApiKey::DeleteShareGroupOffsets => (
            Layout::of::<DeleteShareGroupOffsetsRequest>(),
            Layout::of::<DeleteShareGroupOffsetsResponse>(),
        ),
        ApiKey::DeleteShareGroupState => (
            Layout::of::<DeleteShareGroupStateRequest>(),
            Layout::of::<DeleteShareGroupStateResponse>(),
        ),
        ApiKey::DeleteTopics => {
            (Layout::of::<DeleteTopicsRequest>(), Layout::of::<DeleteTopicsResponse>())
        }
        ApiKey::DescribeAcls => {
            (Layout::of::<DescribeAclsRequest>(), Layout::of::<DescribeAclsResponse>())
        }
        ApiKey::DescribeClientQuotas => (
            Layout::of::<DescribeClientQuotasRequest>(),
            Layout::of::<DescribeClientQuotasResponse>(),
        ),
        ApiKey::DescribeCluster => {
            (Layout::of::<DescribeClusterRequest>(), Layout::of::<DescribeClusterResponse>())
        }
        ApiKey::DescribeConfigs => {
            (Layout::of::<DescribeConfigsRequest>(), Layout::of::<DescribeConfigsResponse>())
        }
        ApiKey::DescribeDelegationToken => (
            Layout::of::<DescribeDelegationTokenRequest>(),
            Layout::of::<DescribeDelegationTokenResponse>(),
        ),
        ApiKey::DescribeGroups => {
            (Layout::of::<DescribeGroupsRequest>(), Layout::of::<DescribeGroupsResponse>())
        }
        ApiKey::DescribeLogDirs => {
            (Layout::of::<DescribeLogDirsRequest>(), Layout::of::<DescribeLogDirsResponse>())
        }
        ApiKey::DescribeProducers => {
            (Layout::of::<DescribeProducersRequest>(), Layout::of::<DescribeProducersResponse>())
        }
        ApiKey::DescribeQuorum => {
            (Layout::of::<DescribeQuorumRequest>(), Layout::of::<DescribeQuorumResponse>())
        }
        ApiKey::DescribeShareGroupOffsets => (
            Layout::of::<DescribeShareGroupOffsetsRequest>(),
            Layout::of::<DescribeShareGroupOffsetsResponse>(),
        ),
        ApiKey::DescribeTopicPartitions => (
            Layout::of::<DescribeTopicPartitionsRequest>(),
            Layout::of::<DescribeTopicPartitionsResponse>(),
        ),
        ApiKey::DescribeTransactions => (
            Layout::of::<DescribeTransactionsRequest>(),
            Layout::of::<DescribeTransactionsResponse>(),
        ),
        ApiKey::DescribeUserScramCredentials => (
            Layout::of::<DescribeUserScramCredentialsRequest>(),
            Layout::of::<DescribeUserScramCredentialsResponse>(),
        ),
        ApiKey::ElectLeaders => {
            (Layout::of::<ElectLeadersRequest>(), Layout::of::<ElectLeadersResponse>())
        }
        ApiKey::EndQuorumEpoch => {
            (Layout::of::<EndQuorumEpochRequest>(), Layout::of::<EndQuorumEpochResponse>())
        }
        ApiKey::EndTxn => (Layout::of::<EndTxnRequest>(), Layout::of::<EndTxnResponse>()),
        ApiKey::Envelope => (Layout::of::<EnvelopeRequest>(), Layout::of::<EnvelopeResponse>()),
        ApiKey::ExpireDelegationToken => (
            Layout::of::<ExpireDelegationTokenRequest>(),
            Layout::of::<ExpireDelegationTokenResponse>(),
        ),
        ApiKey::Fetch => (Layout::of::<FetchRequest>(), Layout::of::<FetchResponse>()),
        ApiKey::FetchSnapshot => {
            (Layout::of::<FetchSnapshotRequest>(), Layout::of::<FetchSnapshotResponse>())
        }
        ApiKey::FindCoordinator => {
            (Layout::of::<FindCoordinatorRequest>(), Layout::of::<FindCoordinatorResponse>())
        }
        ApiKey::GetTelemetrySubscriptions => (
            Layout::of::<GetTelemetrySubscriptionsRequest>(),
            Layout::of::<GetTelemetrySubscriptionsResponse>(),
        ),
        ApiKey::Heartbeat => (Layout::of::<HeartbeatRequest>(), Layout::of::<HeartbeatResponse>()),
        ApiKey::IncrementalAlterConfigs => (
            Layout::of::<IncrementalAlterConfigsRequest>(),
            Layout::of::<IncrementalAlterConfigsResponse>(),
        ),
        ApiKey::InitProducerId => {
            (Layout::of::<InitProducerIdRequest>(), Layout::of::<InitProducerIdResponse>())
        }
        ApiKey::InitializeShareGroupState => (
            Layout::of::<InitializeShareGroupStateRequest>(),
            Layout::of::<InitializeShareGroupStateResponse>(),
        ),
        ApiKey::JoinGroup => (Layout::of::<JoinGroupRequest>(), Layout::of::<JoinGroupResponse>()),
        ApiKey::LeaveGroup => {
            (Layout::of::<LeaveGroupRequest>(), Layout::of::<LeaveGroupResponse>())
        }
        ApiKey::ListConfigResources => (
            Layout::of::<ListConfigResourcesRequest>(),
            Layout::of::<ListConfigResourcesResponse>(),
        ),
        ApiKey::ListGroups => {
            (Layout::of::<ListGroupsRequest>(), Layout::of::<ListGroupsResponse>())
        }
        ApiKey::ListOffsets => {
            (Layout::of::<ListOffsetsRequest>(), Layout::of::<ListOffsetsResponse>())
        }
        ApiKey::ListPartitionReassignments => (
            Layout::of::<ListPartitionReassignmentsRequest>(),
            Layout::of::<ListPartitionReassignmentsResponse>(),
        ),
        ApiKey::ListTransactions => {
            (Layout::of::<ListTransactionsRequest>(), Layout::of::<ListTransactionsResponse>())
        }
        ApiKey::Metadata => (Layout::of::<MetadataRequest>(), Layout::of::<MetadataResponse>()),
        ApiKey::OffsetCommit => {
            (Layout::of::<OffsetCommitRequest>(), Layout::of::<OffsetCommitResponse>())
        }
        ApiKey::OffsetDelete => {
            (Layout::of::<OffsetDeleteRequest>(), Layout::of::<OffsetDeleteResponse>())
        }
        ApiKey::OffsetFetch => {
            (Layout::of::<OffsetFetchRequest>(), Layout::of::<OffsetFetchResponse>())
        }
        ApiKey::OffsetForLeaderEpoch => (
            Layout::of::<OffsetForLeaderEpochRequest>(),
            Layout::of::<OffsetForLeaderEpochResponse>(),
        ),
        ApiKey::Produce => (Layout::of::<ProduceRequest>(), Layout::of::<ProduceResponse>()),
        ApiKey::PushTelemetry => {
            (Layout::of::<PushTelemetryRequest>(), Layout::of::<PushTelemetryResponse>())
        }
        ApiKey::ReadShareGroupState => (
            Layout::of::<ReadShareGroupStateRequest>(),
            Layout::of::<ReadShareGroupStateResponse>(),
        ),
        ApiKey::ReadShareGroupStateSummary => (
            Layout::of::<ReadShareGroupStateSummaryRequest>(),
            Layout::of::<ReadShareGroupStateSummaryResponse>(),
        ),
        ApiKey::RemoveRaftVoter => {
            (Layout::of::<RemoveRaftVoterRequest>(), Layout::of::<RemoveRaftVoterResponse>())
        }
        ApiKey::RenewDelegationToken => (
            Layout::of::<RenewDelegationTokenRequest>(),
            Layout::of::<RenewDelegationTokenResponse>(),
        ),
        ApiKey::SaslAuthenticate => {
            (Layout::of::<SaslAuthenticateRequest>(), Layout::of::<SaslAuthenticateResponse>())
        }
        ApiKey::SaslHandshake => {
            (Layout::of::<SaslHandshakeRequest>(), Layout::of::<SaslHandshakeResponse>())
        }
        ApiKey::ShareAcknowledge => {
            (Layout::of::<ShareAcknowledgeRequest>(), Layout::of::<ShareAcknowledgeResponse>())
        }
        ApiKey::ShareFetch => {
            (Layout::of::<ShareFetchRequest>(), Layout::of::<ShareFetchResponse>())
        }
        ApiKey::ShareGroupDescribe => {
            (Layout::of::<ShareGroupDescribeRequest>(), Layout::of::<ShareGroupDescribeResponse>())
        }
        ApiKey::ShareGroupHeartbeat => (
            Layout::of::<ShareGroupHeartbeatRequest>(),
            Layout::of::<ShareGroupHeartbeatResponse>(),
        ),
        ApiKey::StreamsGroupDescribe => (
            Layout::of::<StreamsGroupDescribeRequest>(),
            Layout::of::<StreamsGroupDescribeResponse>(),
        ),
        ApiKey::StreamsGroupHeartbeat => (
            Layout::of::<StreamsGroupHeartbeatRequest>(),
            Layout::of::<StreamsGroupHeartbeatResponse>(),
        ),
        ApiKey::StreamsGroupTopologyDescriptionUpdate => (
            Layout::of::<StreamsGroupTopologyDescriptionUpdateRequest>(),
            Layout::of::<StreamsGroupTopologyDescriptionUpdateResponse>(),
        ),
        ApiKey::SyncGroup => (Layout::of::<SyncGroupRequest>(), Layout::of::<SyncGroupResponse>()),
        ApiKey::TxnOffsetCommit => {
            (Layout::of::<TxnOffsetCommitRequest>(), Layout::of::<TxnOffsetCommitResponse>())
        }
        ApiKey::UnregisterBroker => {
            (Layout::of::<UnregisterBrokerRequest>(), Layout::of::<UnregisterBrokerResponse>())
        }
        ApiKey::UnregisterController => (
            Layout::of::<UnregisterControllerRequest>(),
            Layout::of::<UnregisterControllerResponse>(),
        ),
        ApiKey::UpdateFeatures => {
            (Layout::of::<UpdateFeaturesRequest>(), Layout::of::<UpdateFeaturesResponse>())
        }
        ApiKey::UpdateRaftVoter => {
            (Layout::of::<UpdateRaftVoterRequest>(), Layout::of::<UpdateRaftVoterResponse>())
        }
        ApiKey::Vote => (Layout::of::<VoteRequest>(), Layout::of::<VoteResponse>()),
        ApiKey::WriteShareGroupState => (
            Layout::of::<WriteShareGroupStateRequest>(),
            Layout::of::<WriteShareGroupStateResponse>(),
        ),
        ApiKey::WriteTxnMarkers => {
            (Layout::of::<WriteTxnMarkersRequest>(), Layout::of::<WriteTxnMarkersResponse>())
        }
    }
}

/// Calls a macro with the path of every message's type: for tests and fuzz targets.
#[macro_export]
macro_rules! with_every_message {
    ($callback:ident) => {
        $callback! {
        $crate::messages::AbortedTxn,
        $crate::messages::AddOffsetsToTxnRequest,
        $crate::messages::AddOffsetsToTxnResponse,
        $crate::messages::AddPartitionsToTxnRequest,
        $crate::messages::AddPartitionsToTxnResponse,
        $crate::messages::AddRaftVoterRequest,
        $crate::messages::AddRaftVoterResponse,
        $crate::messages::AllocateProducerIdsRequest,
        $crate::messages::AllocateProducerIdsResponse,
        $crate::messages::AlterClientQuotasRequest,
        $crate::messages::AlterClientQuotasResponse,
        $crate::messages::AlterConfigsRequest,
        $crate::messages::AlterConfigsResponse,
        $crate::messages::AlterPartitionReassignmentsRequest,
        $crate::messages::AlterPartitionReassignmentsResponse,
        $crate::messages::AlterPartitionRequest,
        $crate::messages::AlterPartitionResponse,
        $crate::messages::AlterReplicaLogDirsRequest,
        $crate::messages::AlterReplicaLogDirsResponse,
        $crate::messages::AlterShareGroupOffsetsRequest,
        $crate::messages::AlterShareGroupOffsetsResponse,
        $crate::messages::AlterUserScramCredentialsRequest,
        $crate::messages::AlterUserScramCredentialsResponse,
        $crate::messages::ApiVersionsRequest,
        $crate::messages::ApiVersionsResponse,
        $crate::messages::AssignReplicasToDirsRequest,
        $crate::messages::AssignReplicasToDirsResponse,
        $crate::messages::BeginQuorumEpochRequest,
        $crate::messages::BeginQuorumEpochResponse,
        $crate::messages::BrokerHeartbeatRequest,
        $crate::messages::BrokerHeartbeatResponse,
        $crate::messages::BrokerRegistrationRequest,
        $crate::messages::BrokerRegistrationResponse,
        $crate::messages::ConsumerGroupDescribeRequest,
        $crate::messages::ConsumerGroupDescribeResponse,
        $crate::messages::ConsumerGroupHeartbeatRequest,
        $crate::messages::ConsumerGroupHeartbeatResponse,
        $crate::messages::ConsumerProtocolAssignment,
        $crate::messages::ConsumerProtocolSubscription,
        $crate::messages::ControlRecordTypeSchema,
        $crate::messages::ControllerRegistrationRequest,
        $crate::messages::ControllerRegistrationResponse,
        $crate::messages::CreateAclsRequest,
        $crate::messages::CreateAclsResponse,
        $crate::messages::CreateDelegationTokenRequest,
        $crate::messages::CreateDelegationTokenResponse,
        $crate::messages::CreatePartitionsRequest,
        $crate::messages::CreatePartitionsResponse,
        $crate::messages::CreateTopicsRequest,
        $crate::messages::CreateTopicsResponse,
        $crate::messages::DefaultPrincipalData,
        $crate::messages::DeleteAclsRequest,
        $crate::messages::DeleteAclsResponse,
        $crate::messages::DeleteGroupsRequest,
        $crate::messages::DeleteGroupsResponse,
        $crate::messages::DeleteRecordsRequest,
        $crate::messages::DeleteRecordsResponse,
        $crate::messages::DeleteShareGroupOffsetsRequest,
        $crate::messages::DeleteShareGroupOffsetsResponse,
        $crate::messages::DeleteShareGroupStateRequest,
        $crate::messages::DeleteShareGroupStateResponse,
        $crate::messages::DeleteTopicsRequest,
        $crate::messages::DeleteTopicsResponse,
        $crate::messages::DescribeAclsRequest,
        $crate::messages::DescribeAclsResponse,
        $crate::messages::DescribeClientQuotasRequest,
        $crate::messages::DescribeClientQuotasResponse,
        $crate::messages::DescribeClusterRequest,
        $crate::messages::DescribeClusterResponse,
        $crate::messages::DescribeConfigsRequest,
        $crate::messages::DescribeConfigsResponse,
        $crate::messages::DescribeDelegationTokenRequest,
        $crate::messages::DescribeDelegationTokenResponse,
        $crate::messages::DescribeGroupsRequest,
        $crate::messages::DescribeGroupsResponse,
        $crate::messages::DescribeLogDirsRequest,
        $crate::messages::DescribeLogDirsResponse,
        $crate::messages::DescribeProducersRequest,
        $crate::messages::DescribeProducersResponse,
        $crate::messages::DescribeQuorumRequest,
        $crate::messages::DescribeQuorumResponse,
        $crate::messages::DescribeShareGroupOffsetsRequest,
        $crate::messages::DescribeShareGroupOffsetsResponse,
        $crate::messages::DescribeTopicPartitionsRequest,
        $crate::messages::DescribeTopicPartitionsResponse,
        $crate::messages::DescribeTransactionsRequest,
        $crate::messages::DescribeTransactionsResponse,
        $crate::messages::DescribeUserScramCredentialsRequest,
        $crate::messages::DescribeUserScramCredentialsResponse,
        $crate::messages::ElectLeadersRequest,
        $crate::messages::ElectLeadersResponse,
        $crate::messages::EndQuorumEpochRequest,
        $crate::messages::EndQuorumEpochResponse,
        $crate::messages::EndTxnMarker,
        $crate::messages::EndTxnRequest,
        $crate::messages::EndTxnResponse,
        $crate::messages::EnvelopeRequest,
        $crate::messages::EnvelopeResponse,
        $crate::messages::ExpireDelegationTokenRequest,
        $crate::messages::ExpireDelegationTokenResponse,
        $crate::messages::FetchRequest,
        $crate::messages::FetchResponse,
        $crate::messages::FetchSnapshotRequest,
        $crate::messages::FetchSnapshotResponse,
        $crate::messages::FindCoordinatorRequest,
        $crate::messages::FindCoordinatorResponse,
        $crate::messages::GetTelemetrySubscriptionsRequest,
        $crate::messages::GetTelemetrySubscriptionsResponse,
        $crate::messages::HeartbeatRequest,
        $crate::messages::HeartbeatResponse,
        $crate::messages::IncrementalAlterConfigsRequest,
        $crate::messages::IncrementalAlterConfigsResponse,
        $crate::messages::InitProducerIdRequest,
        $crate::messages::InitProducerIdResponse,
        $crate::messages::InitializeShareGroupStateRequest,
        $crate::messages::InitializeShareGroupStateResponse,
        $crate::messages::JoinGroupRequest,
        $crate::messages::JoinGroupResponse,
        $crate::messages::KRaftVersionRecord,
        $crate::messages::LeaderChangeMessage,
        $crate::messages::LeaveGroupRequest,
        $crate::messages::LeaveGroupResponse,
        $crate::messages::ListConfigResourcesRequest,
        $crate::messages::ListConfigResourcesResponse,
        $crate::messages::ListGroupsRequest,
        $crate::messages::ListGroupsResponse,
        $crate::messages::ListOffsetsRequest,
        $crate::messages::ListOffsetsResponse,
        $crate::messages::ListPartitionReassignmentsRequest,
        $crate::messages::ListPartitionReassignmentsResponse,
        $crate::messages::ListTransactionsRequest,
        $crate::messages::ListTransactionsResponse,
        $crate::messages::MetadataRequest,
        $crate::messages::MetadataResponse,
        $crate::messages::OffsetCommitRequest,
        $crate::messages::OffsetCommitResponse,
        $crate::messages::OffsetDeleteRequest,
        $crate::messages::OffsetDeleteResponse,
        $crate::messages::OffsetFetchRequest,
        $crate::messages::OffsetFetchResponse,
        $crate::messages::OffsetForLeaderEpochRequest,
        $crate::messages::OffsetForLeaderEpochResponse,
        $crate::messages::ProduceRequest,
        $crate::messages::ProduceResponse,
        $crate::messages::PushTelemetryRequest,
        $crate::messages::PushTelemetryResponse,
        $crate::messages::ReadShareGroupStateRequest,
        $crate::messages::ReadShareGroupStateResponse,
        $crate::messages::ReadShareGroupStateSummaryRequest,
        $crate::messages::ReadShareGroupStateSummaryResponse,
        $crate::messages::RemoveRaftVoterRequest,
        $crate::messages::RemoveRaftVoterResponse,
        $crate::messages::RenewDelegationTokenRequest,
        $crate::messages::RenewDelegationTokenResponse,
        $crate::messages::RequestHeader,
        $crate::messages::ResponseHeader,
        $crate::messages::SaslAuthenticateRequest,
        $crate::messages::SaslAuthenticateResponse,
        $crate::messages::SaslHandshakeRequest,
        $crate::messages::SaslHandshakeResponse,
        $crate::messages::ShareAcknowledgeRequest,
        $crate::messages::ShareAcknowledgeResponse,
        $crate::messages::ShareFetchRequest,
        $crate::messages::ShareFetchResponse,
        $crate::messages::ShareGroupDescribeRequest,
        $crate::messages::ShareGroupDescribeResponse,
        $crate::messages::ShareGroupHeartbeatRequest,
        $crate::messages::ShareGroupHeartbeatResponse,
        $crate::messages::SnapshotFooterRecord,
        $crate::messages::SnapshotHeaderRecord,
        $crate::messages::StreamsGroupDescribeRequest,
        $crate::messages::StreamsGroupDescribeResponse,
        $crate::messages::StreamsGroupHeartbeatRequest,
        $crate::messages::StreamsGroupHeartbeatResponse,
        $crate::messages::StreamsGroupTopologyDescriptionUpdateRequest,
        $crate::messages::StreamsGroupTopologyDescriptionUpdateResponse,
        $crate::messages::SyncGroupRequest,
        $crate::messages::SyncGroupResponse,
        $crate::messages::TxnOffsetCommitRequest,
        $crate::messages::TxnOffsetCommitResponse,
        $crate::messages::UnregisterBrokerRequest,
        $crate::messages::UnregisterBrokerResponse,
        $crate::messages::UnregisterControllerRequest,
        $crate::messages::UnregisterControllerResponse,
        $crate::messages::UpdateFeaturesRequest,
        $crate::messages::UpdateFeaturesResponse,
        $crate::messages::UpdateRaftVoterRequest,
        $crate::messages::UpdateRaftVoterResponse,
        $crate::messages::VoteRequest,
        $crate::messages::VoteResponse,
        $crate::messages::VotersRecord,
        $crate::messages::WriteShareGroupStateRequest,
        $crate::messages::WriteShareGroupStateResponse,
        $crate::messages::WriteTxnMarkersRequest,
        $crate::messages::WriteTxnMarkersResponse,
        }
    };
}

/// Calls a macro with the name, request and response of every API: for tests.
#[cfg(test)]
macro_rules! with_every_api {
($callback:ident) => {
$callback! {
AddOffsetsToTxn AddOffsetsToTxnRequest AddOffsetsToTxnResponse,
AddPartitionsToTxn AddPartitionsToTxnRequest AddPartitionsToTxnResponse,
AddRaftVoter AddRaftVoterRequest AddRaftVoterResponse,
AllocateProducerIds AllocateProducerIdsRequest AllocateProducerIdsResponse,
AlterClientQuotas AlterClientQuotasRequest AlterClientQuotasResponse,
AlterConfigs AlterConfigsRequest AlterConfigsResponse,
AlterPartitionReassignments AlterPartitionReassignmentsRequest AlterPartitionReassignmentsResponse,
AlterPartition AlterPartitionRequest AlterPartitionResponse,
AlterReplicaLogDirs AlterReplicaLogDirsRequest AlterReplicaLogDirsResponse,
AlterShareGroupOffsets AlterShareGroupOffsetsRequest AlterShareGroupOffsetsResponse,
AlterUserScramCredentials AlterUserScramCredentialsRequest AlterUserScramCredentialsResponse,
ApiVersions ApiVersionsRequest ApiVersionsResponse,
AssignReplicasToDirs AssignReplicasToDirsRequest AssignReplicasToDirsResponse,
BeginQuorumEpoch BeginQuorumEpochRequest BeginQuorumEpochResponse,
BrokerHeartbeat BrokerHeartbeatRequest BrokerHeartbeatResponse,
BrokerRegistration BrokerRegistrationRequest BrokerRegistrationResponse,
ConsumerGroupDescribe ConsumerGroupDescribeRequest ConsumerGroupDescribeResponse,
ConsumerGroupHeartbeat ConsumerGroupHeartbeatRequest ConsumerGroupHeartbeatResponse,
ControllerRegistration ControllerRegistrationRequest ControllerRegistrationResponse,
CreateAcls CreateAclsRequest CreateAclsResponse,
CreateDelegationToken CreateDelegationTokenRequest CreateDelegationTokenResponse,
CreatePartitions CreatePartitionsRequest CreatePartitionsResponse,
CreateTopics CreateTopicsRequest CreateTopicsResponse,
DeleteAcls DeleteAclsRequest DeleteAclsResponse,
DeleteGroups DeleteGroupsRequest DeleteGroupsResponse,
DeleteRecords DeleteRecordsRequest DeleteRecordsResponse,
DeleteShareGroupOffsets DeleteShareGroupOffsetsRequest DeleteShareGroupOffsetsResponse,
DeleteShareGroupState DeleteShareGroupStateRequest DeleteShareGroupStateResponse,
DeleteTopics DeleteTopicsRequest DeleteTopicsResponse,
DescribeAcls DescribeAclsRequest DescribeAclsResponse,
DescribeClientQuotas DescribeClientQuotasRequest DescribeClientQuotasResponse,
DescribeCluster DescribeClusterRequest DescribeClusterResponse,
DescribeConfigs DescribeConfigsRequest DescribeConfigsResponse,
DescribeDelegationToken DescribeDelegationTokenRequest DescribeDelegationTokenResponse,
DescribeGroups DescribeGroupsRequest DescribeGroupsResponse,
DescribeLogDirs DescribeLogDirsRequest DescribeLogDirsResponse,
DescribeProducers DescribeProducersRequest DescribeProducersResponse,
DescribeQuorum DescribeQuorumRequest DescribeQuorumResponse,
DescribeShareGroupOffsets DescribeShareGroupOffsetsRequest DescribeShareGroupOffsetsResponse,
DescribeTopicPartitions DescribeTopicPartitionsRequest DescribeTopicPartitionsResponse,
DescribeTransactions DescribeTransactionsRequest DescribeTransactionsResponse,
DescribeUserScramCredentials DescribeUserScramCredentialsRequest DescribeUserScramCredentialsResponse,
ElectLeaders ElectLeadersRequest ElectLeadersResponse,
EndQuorumEpoch EndQuorumEpochRequest EndQuorumEpochResponse,
EndTxn EndTxnRequest EndTxnResponse,
Envelope EnvelopeRequest EnvelopeResponse,
ExpireDelegationToken ExpireDelegationTokenRequest ExpireDelegationTokenResponse,
Fetch FetchRequest FetchResponse,
FetchSnapshot FetchSnapshotRequest FetchSnapshotResponse,
FindCoordinator FindCoordinatorRequest FindCoordinatorResponse,
GetTelemetrySubscriptions GetTelemetrySubscriptionsRequest GetTelemetrySubscriptionsResponse,
Heartbeat HeartbeatRequest HeartbeatResponse,
IncrementalAlterConfigs IncrementalAlterConfigsRequest IncrementalAlterConfigsResponse,
InitProducerId InitProducerIdRequest InitProducerIdResponse,
InitializeShareGroupState InitializeShareGroupStateRequest InitializeShareGroupStateResponse,
JoinGroup JoinGroupRequest JoinGroupResponse,
LeaveGroup LeaveGroupRequest LeaveGroupResponse,
ListConfigResources ListConfigResourcesRequest ListConfigResourcesResponse,
ListGroups ListGroupsRequest ListGroupsResponse,
ListOffsets ListOffsetsRequest ListOffsetsResponse,
ListPartitionReassignments ListPartitionReassignmentsRequest ListPartitionReassignmentsResponse,
ListTransactions ListTransactionsRequest ListTransactionsResponse,
Metadata MetadataRequest MetadataResponse,
OffsetCommit OffsetCommitRequest OffsetCommitResponse,
OffsetDelete OffsetDeleteRequest OffsetDeleteResponse,
OffsetFetch OffsetFetchRequest OffsetFetchResponse,
OffsetForLeaderEpoch OffsetForLeaderEpochRequest OffsetForLeaderEpochResponse,
Produce ProduceRequest ProduceResponse,
PushTelemetry PushTelemetryRequest PushTelemetryResponse,
ReadShareGroupState ReadShareGroupStateRequest ReadShareGroupStateResponse,
ReadShareGroupStateSummary ReadShareGroupStateSummaryRequest ReadShareGroupStateSummaryResponse,
RemoveRaftVoter RemoveRaftVoterRequest RemoveRaftVoterResponse,
RenewDelegationToken RenewDelegationTokenRequest RenewDelegationTokenResponse,
SaslAuthenticate SaslAuthenticateRequest SaslAuthenticateResponse,
SaslHandshake SaslHandshakeRequest SaslHandshakeResponse,
ShareAcknowledge ShareAcknowledgeRequest ShareAcknowledgeResponse,
ShareFetch ShareFetchRequest ShareFetchResponse,
ShareGroupDescribe ShareGroupDescribeRequest ShareGroupDescribeResponse,
ShareGroupHeartbeat ShareGroupHeartbeatRequest ShareGroupHeartbeatResponse,
StreamsGroupDescribe StreamsGroupDescribeRequest StreamsGroupDescribeResponse,
StreamsGroupHeartbeat StreamsGroupHeartbeatRequest StreamsGroupHeartbeatResponse,
StreamsGroupTopologyDescriptionUpdate StreamsGroupTopologyDescriptionUpdateRequest StreamsGroupTopologyDescriptionUpdateResponse,
SyncGroup SyncGroupRequest SyncGroupResponse,
TxnOffsetCommit TxnOffsetCommitRequest TxnOffsetCommitResponse,
UnregisterBroker UnregisterBrokerRequest UnregisterBrokerResponse,
UnregisterController UnregisterControllerRequest UnregisterControllerResponse,
UpdateFeatures UpdateFeaturesRequest UpdateFeaturesResponse,
UpdateRaftVoter UpdateRaftVoterRequest UpdateRaftVoterResponse,
Vote VoteRequest VoteResponse,
WriteShareGroupState WriteShareGroupStateRequest WriteShareGroupStateResponse,
WriteTxnMarkers WriteTxnMarkersRequest WriteTxnMarkersResponse,
}
};
}
#[cfg(test)]
pub(crate) use with_every_api;
