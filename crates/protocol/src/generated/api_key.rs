//! The table of API keys.

use crate::api_key::{ApiRow, row};

/// The kind of a request, as its header's first two bytes give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i16)]
pub enum ApiKey {
    /// `Produce`, key 0.
    Produce = 0,
    /// `Fetch`, key 1.
    Fetch = 1,
    /// `ListOffsets`, key 2.
    ListOffsets = 2,
    /// `Metadata`, key 3.
    Metadata = 3,
    /// `OffsetCommit`, key 8.
    OffsetCommit = 8,
    /// `OffsetFetch`, key 9.
    OffsetFetch = 9,
    /// `FindCoordinator`, key 10.
    FindCoordinator = 10,
    /// `JoinGroup`, key 11.
    JoinGroup = 11,
    /// `Heartbeat`, key 12.
    Heartbeat = 12,
    /// `LeaveGroup`, key 13.
    LeaveGroup = 13,
    /// `SyncGroup`, key 14.
    SyncGroup = 14,
    /// `DescribeGroups`, key 15.
    DescribeGroups = 15,
    /// `ListGroups`, key 16.
    ListGroups = 16,
    /// `SaslHandshake`, key 17.
    SaslHandshake = 17,
    /// `ApiVersions`, key 18.
    ApiVersions = 18,
    /// `CreateTopics`, key 19.
    CreateTopics = 19,
    /// `DeleteTopics`, key 20.
    DeleteTopics = 20,
    /// `DeleteRecords`, key 21.
    DeleteRecords = 21,
    /// `InitProducerId`, key 22.
    InitProducerId = 22,
    /// `OffsetForLeaderEpoch`, key 23.
    OffsetForLeaderEpoch = 23,
    /// `AddPartitionsToTxn`, key 24.
    AddPartitionsToTxn = 24,
    /// `AddOffsetsToTxn`, key 25.
    AddOffsetsToTxn = 25,
    /// `EndTxn`, key 26.
    EndTxn = 26,
    /// `WriteTxnMarkers`, key 27.
    WriteTxnMarkers = 27,
    /// `TxnOffsetCommit`, key 28.
    TxnOffsetCommit = 28,
    /// `DescribeAcls`, key 29.
    DescribeAcls = 29,
    /// `CreateAcls`, key 30.
    CreateAcls = 30,
    /// `DeleteAcls`, key 31.
    DeleteAcls = 31,
    /// `DescribeConfigs`, key 32.
    DescribeConfigs = 32,
    /// `AlterConfigs`, key 33.
    AlterConfigs = 33,
    /// `AlterReplicaLogDirs`, key 34.
    AlterReplicaLogDirs = 34,
    /// `DescribeLogDirs`, key 35.
    DescribeLogDirs = 35,
    /// `SaslAuthenticate`, key 36.
    SaslAuthenticate = 36,
    /// `CreatePartitions`, key 37.
    CreatePartitions = 37,
    /// `CreateDelegationToken`, key 38.
    CreateDelegationToken = 38,
    /// `RenewDelegationToken`, key 39.
    RenewDelegationToken = 39,
    /// `ExpireDelegationToken`, key 40.
    ExpireDelegationToken = 40,
    /// `DescribeDelegationToken`, key 41.
    DescribeDelegationToken = 41,
    /// `DeleteGroups`, key 42.
    DeleteGroups = 42,
    /// `ElectLeaders`, key 43.
    ElectLeaders = 43,
    /// `IncrementalAlterConfigs`, key 44.
    IncrementalAlterConfigs = 44,
    /// `AlterPartitionReassignments`, key 45.
    AlterPartitionReassignments = 45,
    /// `ListPartitionReassignments`, key 46.
    ListPartitionReassignments = 46,
    /// `OffsetDelete`, key 47.
    OffsetDelete = 47,
    /// `DescribeClientQuotas`, key 48.
    DescribeClientQuotas = 48,
    /// `AlterClientQuotas`, key 49.
    AlterClientQuotas = 49,
    /// `DescribeUserScramCredentials`, key 50.
    DescribeUserScramCredentials = 50,
    /// `AlterUserScramCredentials`, key 51.
    AlterUserScramCredentials = 51,
    /// `Vote`, key 52.
    Vote = 52,
    /// `BeginQuorumEpoch`, key 53.
    BeginQuorumEpoch = 53,
    /// `EndQuorumEpoch`, key 54.
    EndQuorumEpoch = 54,
    /// `DescribeQuorum`, key 55.
    DescribeQuorum = 55,
    /// `AlterPartition`, key 56.
    AlterPartition = 56,
    /// `UpdateFeatures`, key 57.
    UpdateFeatures = 57,
    /// `Envelope`, key 58.
    Envelope = 58,
    /// `FetchSnapshot`, key 59.
    FetchSnapshot = 59,
    /// `DescribeCluster`, key 60.
    DescribeCluster = 60,
    /// `DescribeProducers`, key 61.
    DescribeProducers = 61,
    /// `BrokerRegistration`, key 62.
    BrokerRegistration = 62,
    /// `BrokerHeartbeat`, key 63.
    BrokerHeartbeat = 63,
    /// `UnregisterBroker`, key 64.
    UnregisterBroker = 64,
    /// `DescribeTransactions`, key 65.
    DescribeTransactions = 65,
    /// `ListTransactions`, key 66.
    ListTransactions = 66,
    /// `AllocateProducerIds`, key 67.
    AllocateProducerIds = 67,
    /// `ConsumerGroupHeartbeat`, key 68.
    ConsumerGroupHeartbeat = 68,
    /// `ConsumerGroupDescribe`, key 69.
    ConsumerGroupDescribe = 69,
    /// `ControllerRegistration`, key 70.
    ControllerRegistration = 70,
    /// `GetTelemetrySubscriptions`, key 71.
    GetTelemetrySubscriptions = 71,
    /// `PushTelemetry`, key 72.
    PushTelemetry = 72,
    /// `AssignReplicasToDirs`, key 73.
    AssignReplicasToDirs = 73,
    /// `ListConfigResources`, key 74.
    ListConfigResources = 74,
    /// `DescribeTopicPartitions`, key 75.
    DescribeTopicPartitions = 75,
    /// `ShareGroupHeartbeat`, key 76.
    ShareGroupHeartbeat = 76,
    /// `ShareGroupDescribe`, key 77.
    ShareGroupDescribe = 77,
    /// `ShareFetch`, key 78.
    ShareFetch = 78,
    /// `ShareAcknowledge`, key 79.
    ShareAcknowledge = 79,
    /// `AddRaftVoter`, key 80.
    AddRaftVoter = 80,
    /// `RemoveRaftVoter`, key 81.
    RemoveRaftVoter = 81,
    /// `UpdateRaftVoter`, key 82.
    UpdateRaftVoter = 82,
    /// `InitializeShareGroupState`, key 83.
    InitializeShareGroupState = 83,
    /// `ReadShareGroupState`, key 84.
    ReadShareGroupState = 84,
    /// `WriteShareGroupState`, key 85.
    WriteShareGroupState = 85,
    /// `DeleteShareGroupState`, key 86.
    DeleteShareGroupState = 86,
    /// `ReadShareGroupStateSummary`, key 87.
    ReadShareGroupStateSummary = 87,
    /// `StreamsGroupHeartbeat`, key 88.
    StreamsGroupHeartbeat = 88,
    /// `StreamsGroupDescribe`, key 89.
    StreamsGroupDescribe = 89,
    /// `DescribeShareGroupOffsets`, key 90.
    DescribeShareGroupOffsets = 90,
    /// `AlterShareGroupOffsets`, key 91.
    AlterShareGroupOffsets = 91,
    /// `DeleteShareGroupOffsets`, key 92.
    DeleteShareGroupOffsets = 92,
}

impl ApiKey {
    /// Every API, by ascending key.
    pub const ALL: &'static [Self] = &[
        Self::Produce,
        Self::Fetch,
        Self::ListOffsets,
        Self::Metadata,
        Self::OffsetCommit,
        Self::OffsetFetch,
        Self::FindCoordinator,
        Self::JoinGroup,
        Self::Heartbeat,
        Self::LeaveGroup,
        Self::SyncGroup,
        Self::DescribeGroups,
        Self::ListGroups,
        Self::SaslHandshake,
        Self::ApiVersions,
        Self::CreateTopics,
        Self::DeleteTopics,
        Self::DeleteRecords,
        Self::InitProducerId,
        Self::OffsetForLeaderEpoch,
        Self::AddPartitionsToTxn,
        Self::AddOffsetsToTxn,
        Self::EndTxn,
        Self::WriteTxnMarkers,
        Self::TxnOffsetCommit,
        Self::DescribeAcls,
        Self::CreateAcls,
        Self::DeleteAcls,
        Self::DescribeConfigs,
        Self::AlterConfigs,
        Self::AlterReplicaLogDirs,
        Self::DescribeLogDirs,
        Self::SaslAuthenticate,
        Self::CreatePartitions,
        Self::CreateDelegationToken,
        Self::RenewDelegationToken,
        Self::ExpireDelegationToken,
        Self::DescribeDelegationToken,
        Self::DeleteGroups,
        Self::ElectLeaders,
        Self::IncrementalAlterConfigs,
        Self::AlterPartitionReassignments,
        Self::ListPartitionReassignments,
        Self::OffsetDelete,
        Self::DescribeClientQuotas,
        Self::AlterClientQuotas,
        Self::DescribeUserScramCredentials,
        Self::AlterUserScramCredentials,
        Self::Vote,
        Self::BeginQuorumEpoch,
        Self::EndQuorumEpoch,
        Self::DescribeQuorum,
        Self::AlterPartition,
        Self::UpdateFeatures,
        Self::Envelope,
        Self::FetchSnapshot,
        Self::DescribeCluster,
        Self::DescribeProducers,
        Self::BrokerRegistration,
        Self::BrokerHeartbeat,
        Self::UnregisterBroker,
        Self::DescribeTransactions,
        Self::ListTransactions,
        Self::AllocateProducerIds,
        Self::ConsumerGroupHeartbeat,
        Self::ConsumerGroupDescribe,
        Self::ControllerRegistration,
        Self::GetTelemetrySubscriptions,
        Self::PushTelemetry,
        Self::AssignReplicasToDirs,
        Self::ListConfigResources,
        Self::DescribeTopicPartitions,
        Self::ShareGroupHeartbeat,
        Self::ShareGroupDescribe,
        Self::ShareFetch,
        Self::ShareAcknowledge,
        Self::AddRaftVoter,
        Self::RemoveRaftVoter,
        Self::UpdateRaftVoter,
        Self::InitializeShareGroupState,
        Self::ReadShareGroupState,
        Self::WriteShareGroupState,
        Self::DeleteShareGroupState,
        Self::ReadShareGroupStateSummary,
        Self::StreamsGroupHeartbeat,
        Self::StreamsGroupDescribe,
        Self::DescribeShareGroupOffsets,
        Self::AlterShareGroupOffsets,
        Self::DeleteShareGroupOffsets,
    ];

    /// The API with this key.
    #[must_use]
    pub const fn from_key(key: i16) -> Option<Self> {
        Some(match key {
            0 => Self::Produce,
            1 => Self::Fetch,
            2 => Self::ListOffsets,
            3 => Self::Metadata,
            8 => Self::OffsetCommit,
            9 => Self::OffsetFetch,
            10 => Self::FindCoordinator,
            11 => Self::JoinGroup,
            12 => Self::Heartbeat,
            13 => Self::LeaveGroup,
            14 => Self::SyncGroup,
            15 => Self::DescribeGroups,
            16 => Self::ListGroups,
            17 => Self::SaslHandshake,
            18 => Self::ApiVersions,
            19 => Self::CreateTopics,
            20 => Self::DeleteTopics,
            21 => Self::DeleteRecords,
            22 => Self::InitProducerId,
            23 => Self::OffsetForLeaderEpoch,
            24 => Self::AddPartitionsToTxn,
            25 => Self::AddOffsetsToTxn,
            26 => Self::EndTxn,
            27 => Self::WriteTxnMarkers,
            28 => Self::TxnOffsetCommit,
            29 => Self::DescribeAcls,
            30 => Self::CreateAcls,
            31 => Self::DeleteAcls,
            32 => Self::DescribeConfigs,
            33 => Self::AlterConfigs,
            34 => Self::AlterReplicaLogDirs,
            35 => Self::DescribeLogDirs,
            36 => Self::SaslAuthenticate,
            37 => Self::CreatePartitions,
            38 => Self::CreateDelegationToken,
            39 => Self::RenewDelegationToken,
            40 => Self::ExpireDelegationToken,
            41 => Self::DescribeDelegationToken,
            42 => Self::DeleteGroups,
            43 => Self::ElectLeaders,
            44 => Self::IncrementalAlterConfigs,
            45 => Self::AlterPartitionReassignments,
            46 => Self::ListPartitionReassignments,
            47 => Self::OffsetDelete,
            48 => Self::DescribeClientQuotas,
            49 => Self::AlterClientQuotas,
            50 => Self::DescribeUserScramCredentials,
            51 => Self::AlterUserScramCredentials,
            52 => Self::Vote,
            53 => Self::BeginQuorumEpoch,
            54 => Self::EndQuorumEpoch,
            55 => Self::DescribeQuorum,
            56 => Self::AlterPartition,
            57 => Self::UpdateFeatures,
            58 => Self::Envelope,
            59 => Self::FetchSnapshot,
            60 => Self::DescribeCluster,
            61 => Self::DescribeProducers,
            62 => Self::BrokerRegistration,
            63 => Self::BrokerHeartbeat,
            64 => Self::UnregisterBroker,
            65 => Self::DescribeTransactions,
            66 => Self::ListTransactions,
            67 => Self::AllocateProducerIds,
            68 => Self::ConsumerGroupHeartbeat,
            69 => Self::ConsumerGroupDescribe,
            70 => Self::ControllerRegistration,
            71 => Self::GetTelemetrySubscriptions,
            72 => Self::PushTelemetry,
            73 => Self::AssignReplicasToDirs,
            74 => Self::ListConfigResources,
            75 => Self::DescribeTopicPartitions,
            76 => Self::ShareGroupHeartbeat,
            77 => Self::ShareGroupDescribe,
            78 => Self::ShareFetch,
            79 => Self::ShareAcknowledge,
            80 => Self::AddRaftVoter,
            81 => Self::RemoveRaftVoter,
            82 => Self::UpdateRaftVoter,
            83 => Self::InitializeShareGroupState,
            84 => Self::ReadShareGroupState,
            85 => Self::WriteShareGroupState,
            86 => Self::DeleteShareGroupState,
            87 => Self::ReadShareGroupStateSummary,
            88 => Self::StreamsGroupHeartbeat,
            89 => Self::StreamsGroupDescribe,
            90 => Self::DescribeShareGroupOffsets,
            91 => Self::AlterShareGroupOffsets,
            92 => Self::DeleteShareGroupOffsets,
            _ => return None,
        })
    }

    pub(crate) const fn row(self) -> ApiRow {
        match self {
            Self::Produce => row::<super::ProduceRequest, super::ProduceResponse>("Produce"),
            Self::Fetch => row::<super::FetchRequest, super::FetchResponse>("Fetch"),
            Self::ListOffsets => {
                row::<super::ListOffsetsRequest, super::ListOffsetsResponse>("ListOffsets")
            }
            Self::Metadata => row::<super::MetadataRequest, super::MetadataResponse>("Metadata"),
            Self::OffsetCommit => {
                row::<super::OffsetCommitRequest, super::OffsetCommitResponse>("OffsetCommit")
            }
            Self::OffsetFetch => {
                row::<super::OffsetFetchRequest, super::OffsetFetchResponse>("OffsetFetch")
            }
            Self::FindCoordinator => row::<
                super::FindCoordinatorRequest,
                super::FindCoordinatorResponse,
            >("FindCoordinator"),
            Self::JoinGroup => {
                row::<super::JoinGroupRequest, super::JoinGroupResponse>("JoinGroup")
            }
            Self::Heartbeat => {
                row::<super::HeartbeatRequest, super::HeartbeatResponse>("Heartbeat")
            }
            Self::LeaveGroup => {
                row::<super::LeaveGroupRequest, super::LeaveGroupResponse>("LeaveGroup")
            }
            Self::SyncGroup => {
                row::<super::SyncGroupRequest, super::SyncGroupResponse>("SyncGroup")
            }
            Self::DescribeGroups => {
                row::<super::DescribeGroupsRequest, super::DescribeGroupsResponse>("DescribeGroups")
            }
            Self::ListGroups => {
                row::<super::ListGroupsRequest, super::ListGroupsResponse>("ListGroups")
            }
            Self::SaslHandshake => {
                row::<super::SaslHandshakeRequest, super::SaslHandshakeResponse>("SaslHandshake")
            }
            Self::ApiVersions => {
                row::<super::ApiVersionsRequest, super::ApiVersionsResponse>("ApiVersions")
            }
            Self::CreateTopics => {
                row::<super::CreateTopicsRequest, super::CreateTopicsResponse>("CreateTopics")
            }
            Self::DeleteTopics => {
                row::<super::DeleteTopicsRequest, super::DeleteTopicsResponse>("DeleteTopics")
            }
            Self::DeleteRecords => {
                row::<super::DeleteRecordsRequest, super::DeleteRecordsResponse>("DeleteRecords")
            }
            Self::InitProducerId => {
                row::<super::InitProducerIdRequest, super::InitProducerIdResponse>("InitProducerId")
            }
            Self::OffsetForLeaderEpoch => row::<
                super::OffsetForLeaderEpochRequest,
                super::OffsetForLeaderEpochResponse,
            >("OffsetForLeaderEpoch"),
            Self::AddPartitionsToTxn => row::<
                super::AddPartitionsToTxnRequest,
                super::AddPartitionsToTxnResponse,
            >("AddPartitionsToTxn"),
            Self::AddOffsetsToTxn => row::<
                super::AddOffsetsToTxnRequest,
                super::AddOffsetsToTxnResponse,
            >("AddOffsetsToTxn"),
            Self::EndTxn => row::<super::EndTxnRequest, super::EndTxnResponse>("EndTxn"),
            Self::WriteTxnMarkers => row::<
                super::WriteTxnMarkersRequest,
                super::WriteTxnMarkersResponse,
            >("WriteTxnMarkers"),
            Self::TxnOffsetCommit => row::<
                super::TxnOffsetCommitRequest,
                super::TxnOffsetCommitResponse,
            >("TxnOffsetCommit"),
            Self::DescribeAcls => {
                row::<super::DescribeAclsRequest, super::DescribeAclsResponse>("DescribeAcls")
            }
            Self::CreateAcls => {
                row::<super::CreateAclsRequest, super::CreateAclsResponse>("CreateAcls")
            }
            Self::DeleteAcls => {
                row::<super::DeleteAclsRequest, super::DeleteAclsResponse>("DeleteAcls")
            }
            Self::DescribeConfigs => row::<
                super::DescribeConfigsRequest,
                super::DescribeConfigsResponse,
            >("DescribeConfigs"),
            Self::AlterConfigs => {
                row::<super::AlterConfigsRequest, super::AlterConfigsResponse>("AlterConfigs")
            }
            Self::AlterReplicaLogDirs => row::<
                super::AlterReplicaLogDirsRequest,
                super::AlterReplicaLogDirsResponse,
            >("AlterReplicaLogDirs"),
            Self::DescribeLogDirs => row::<
                super::DescribeLogDirsRequest,
                super::DescribeLogDirsResponse,
            >("DescribeLogDirs"),
            Self::SaslAuthenticate => row::<
                super::SaslAuthenticateRequest,
                super::SaslAuthenticateResponse,
            >("SaslAuthenticate"),
            Self::CreatePartitions => row::<
                super::CreatePartitionsRequest,
                super::CreatePartitionsResponse,
            >("CreatePartitions"),
            Self::CreateDelegationToken => row::<
                super::CreateDelegationTokenRequest,
                super::CreateDelegationTokenResponse,
            >("CreateDelegationToken"),
            Self::RenewDelegationToken => row::<
                super::RenewDelegationTokenRequest,
                super::RenewDelegationTokenResponse,
            >("RenewDelegationToken"),
            Self::ExpireDelegationToken => row::<
                super::ExpireDelegationTokenRequest,
                super::ExpireDelegationTokenResponse,
            >("ExpireDelegationToken"),
            Self::DescribeDelegationToken => row::<
                super::DescribeDelegationTokenRequest,
                super::DescribeDelegationTokenResponse,
            >("DescribeDelegationToken"),
            Self::DeleteGroups => {
                row::<super::DeleteGroupsRequest, super::DeleteGroupsResponse>("DeleteGroups")
            }
            Self::ElectLeaders => {
                row::<super::ElectLeadersRequest, super::ElectLeadersResponse>("ElectLeaders")
            }
            Self::IncrementalAlterConfigs => row::<
                super::IncrementalAlterConfigsRequest,
                super::IncrementalAlterConfigsResponse,
            >("IncrementalAlterConfigs"),
            Self::AlterPartitionReassignments => row::<
                super::AlterPartitionReassignmentsRequest,
                super::AlterPartitionReassignmentsResponse,
            >("AlterPartitionReassignments"),
            Self::ListPartitionReassignments => row::<
                super::ListPartitionReassignmentsRequest,
                super::ListPartitionReassignmentsResponse,
            >("ListPartitionReassignments"),
            Self::OffsetDelete => {
                row::<super::OffsetDeleteRequest, super::OffsetDeleteResponse>("OffsetDelete")
            }
            Self::DescribeClientQuotas => row::<
                super::DescribeClientQuotasRequest,
                super::DescribeClientQuotasResponse,
            >("DescribeClientQuotas"),
            Self::AlterClientQuotas => row::<
                super::AlterClientQuotasRequest,
                super::AlterClientQuotasResponse,
            >("AlterClientQuotas"),
            Self::DescribeUserScramCredentials => row::<
                super::DescribeUserScramCredentialsRequest,
                super::DescribeUserScramCredentialsResponse,
            >("DescribeUserScramCredentials"),
            Self::AlterUserScramCredentials => row::<
                super::AlterUserScramCredentialsRequest,
                super::AlterUserScramCredentialsResponse,
            >("AlterUserScramCredentials"),
            Self::Vote => row::<super::VoteRequest, super::VoteResponse>("Vote"),
            Self::BeginQuorumEpoch => row::<
                super::BeginQuorumEpochRequest,
                super::BeginQuorumEpochResponse,
            >("BeginQuorumEpoch"),
            Self::EndQuorumEpoch => {
                row::<super::EndQuorumEpochRequest, super::EndQuorumEpochResponse>("EndQuorumEpoch")
            }
            Self::DescribeQuorum => {
                row::<super::DescribeQuorumRequest, super::DescribeQuorumResponse>("DescribeQuorum")
            }
            Self::AlterPartition => {
                row::<super::AlterPartitionRequest, super::AlterPartitionResponse>("AlterPartition")
            }
            Self::UpdateFeatures => {
                row::<super::UpdateFeaturesRequest, super::UpdateFeaturesResponse>("UpdateFeatures")
            }
            Self::Envelope => row::<super::EnvelopeRequest, super::EnvelopeResponse>("Envelope"),
            Self::FetchSnapshot => {
                row::<super::FetchSnapshotRequest, super::FetchSnapshotResponse>("FetchSnapshot")
            }
            Self::DescribeCluster => row::<
                super::DescribeClusterRequest,
                super::DescribeClusterResponse,
            >("DescribeCluster"),
            Self::DescribeProducers => row::<
                super::DescribeProducersRequest,
                super::DescribeProducersResponse,
            >("DescribeProducers"),
            Self::BrokerRegistration => row::<
                super::BrokerRegistrationRequest,
                super::BrokerRegistrationResponse,
            >("BrokerRegistration"),
            Self::BrokerHeartbeat => row::<
                super::BrokerHeartbeatRequest,
                super::BrokerHeartbeatResponse,
            >("BrokerHeartbeat"),
            Self::UnregisterBroker => row::<
                super::UnregisterBrokerRequest,
                super::UnregisterBrokerResponse,
            >("UnregisterBroker"),
            Self::DescribeTransactions => row::<
                super::DescribeTransactionsRequest,
                super::DescribeTransactionsResponse,
            >("DescribeTransactions"),
            Self::ListTransactions => row::<
                super::ListTransactionsRequest,
                super::ListTransactionsResponse,
            >("ListTransactions"),
            Self::AllocateProducerIds => row::<
                super::AllocateProducerIdsRequest,
                super::AllocateProducerIdsResponse,
            >("AllocateProducerIds"),
            Self::ConsumerGroupHeartbeat => row::<
                super::ConsumerGroupHeartbeatRequest,
                super::ConsumerGroupHeartbeatResponse,
            >("ConsumerGroupHeartbeat"),
            Self::ConsumerGroupDescribe => row::<
                super::ConsumerGroupDescribeRequest,
                super::ConsumerGroupDescribeResponse,
            >("ConsumerGroupDescribe"),
            Self::ControllerRegistration => row::<
                super::ControllerRegistrationRequest,
                super::ControllerRegistrationResponse,
            >("ControllerRegistration"),
            Self::GetTelemetrySubscriptions => row::<
                super::GetTelemetrySubscriptionsRequest,
                super::GetTelemetrySubscriptionsResponse,
            >("GetTelemetrySubscriptions"),
            Self::PushTelemetry => {
                row::<super::PushTelemetryRequest, super::PushTelemetryResponse>("PushTelemetry")
            }
            Self::AssignReplicasToDirs => row::<
                super::AssignReplicasToDirsRequest,
                super::AssignReplicasToDirsResponse,
            >("AssignReplicasToDirs"),
            Self::ListConfigResources => row::<
                super::ListConfigResourcesRequest,
                super::ListConfigResourcesResponse,
            >("ListConfigResources"),
            Self::DescribeTopicPartitions => row::<
                super::DescribeTopicPartitionsRequest,
                super::DescribeTopicPartitionsResponse,
            >("DescribeTopicPartitions"),
            Self::ShareGroupHeartbeat => row::<
                super::ShareGroupHeartbeatRequest,
                super::ShareGroupHeartbeatResponse,
            >("ShareGroupHeartbeat"),
            Self::ShareGroupDescribe => row::<
                super::ShareGroupDescribeRequest,
                super::ShareGroupDescribeResponse,
            >("ShareGroupDescribe"),
            Self::ShareFetch => {
                row::<super::ShareFetchRequest, super::ShareFetchResponse>("ShareFetch")
            }
            Self::ShareAcknowledge => row::<
                super::ShareAcknowledgeRequest,
                super::ShareAcknowledgeResponse,
            >("ShareAcknowledge"),
            Self::AddRaftVoter => {
                row::<super::AddRaftVoterRequest, super::AddRaftVoterResponse>("AddRaftVoter")
            }
            Self::RemoveRaftVoter => row::<
                super::RemoveRaftVoterRequest,
                super::RemoveRaftVoterResponse,
            >("RemoveRaftVoter"),
            Self::UpdateRaftVoter => row::<
                super::UpdateRaftVoterRequest,
                super::UpdateRaftVoterResponse,
            >("UpdateRaftVoter"),
            Self::InitializeShareGroupState => row::<
                super::InitializeShareGroupStateRequest,
                super::InitializeShareGroupStateResponse,
            >("InitializeShareGroupState"),
            Self::ReadShareGroupState => row::<
                super::ReadShareGroupStateRequest,
                super::ReadShareGroupStateResponse,
            >("ReadShareGroupState"),
            Self::WriteShareGroupState => row::<
                super::WriteShareGroupStateRequest,
                super::WriteShareGroupStateResponse,
            >("WriteShareGroupState"),
            Self::DeleteShareGroupState => row::<
                super::DeleteShareGroupStateRequest,
                super::DeleteShareGroupStateResponse,
            >("DeleteShareGroupState"),
            Self::ReadShareGroupStateSummary => row::<
                super::ReadShareGroupStateSummaryRequest,
                super::ReadShareGroupStateSummaryResponse,
            >("ReadShareGroupStateSummary"),
            Self::StreamsGroupHeartbeat => row::<
                super::StreamsGroupHeartbeatRequest,
                super::StreamsGroupHeartbeatResponse,
            >("StreamsGroupHeartbeat"),
            Self::StreamsGroupDescribe => row::<
                super::StreamsGroupDescribeRequest,
                super::StreamsGroupDescribeResponse,
            >("StreamsGroupDescribe"),
            Self::DescribeShareGroupOffsets => row::<
                super::DescribeShareGroupOffsetsRequest,
                super::DescribeShareGroupOffsetsResponse,
            >("DescribeShareGroupOffsets"),
            Self::AlterShareGroupOffsets => row::<
                super::AlterShareGroupOffsetsRequest,
                super::AlterShareGroupOffsetsResponse,
            >("AlterShareGroupOffsets"),
            Self::DeleteShareGroupOffsets => row::<
                super::DeleteShareGroupOffsetsRequest,
                super::DeleteShareGroupOffsetsResponse,
            >("DeleteShareGroupOffsets"),
        }
    }
}
