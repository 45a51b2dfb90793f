//! The table of API keys, written by `cargo xtask codegen`; not to be edited.

use super::ApiRow;
use crate::versions::VersionRange;

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
    /// `StreamsGroupTopologyDescriptionUpdate`, key 93.
    StreamsGroupTopologyDescriptionUpdate = 93,
    /// `UnregisterController`, key 94.
    UnregisterController = 94,
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
        Self::StreamsGroupTopologyDescriptionUpdate,
        Self::UnregisterController,
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
            93 => Self::StreamsGroupTopologyDescriptionUpdate,
            94 => Self::UnregisterController,
            _ => return None,
        })
    }

    pub(super) const fn row(self) -> ApiRow {
        match self {
            Self::Produce => ApiRow {
                name: "Produce",
                versions: VersionRange::new(3, 13),
                request_flexible_from: 9,
                response_flexible_from: 9,
            },
            Self::Fetch => ApiRow {
                name: "Fetch",
                versions: VersionRange::new(4, 18),
                request_flexible_from: 12,
                response_flexible_from: 12,
            },
            Self::ListOffsets => ApiRow {
                name: "ListOffsets",
                versions: VersionRange::new(1, 11),
                request_flexible_from: 6,
                response_flexible_from: 6,
            },
            Self::Metadata => ApiRow {
                name: "Metadata",
                versions: VersionRange::new(0, 13),
                request_flexible_from: 9,
                response_flexible_from: 9,
            },
            Self::OffsetCommit => ApiRow {
                name: "OffsetCommit",
                versions: VersionRange::new(2, 10),
                request_flexible_from: 8,
                response_flexible_from: 8,
            },
            Self::OffsetFetch => ApiRow {
                name: "OffsetFetch",
                versions: VersionRange::new(1, 10),
                request_flexible_from: 6,
                response_flexible_from: 6,
            },
            Self::FindCoordinator => ApiRow {
                name: "FindCoordinator",
                versions: VersionRange::new(0, 6),
                request_flexible_from: 3,
                response_flexible_from: 3,
            },
            Self::JoinGroup => ApiRow {
                name: "JoinGroup",
                versions: VersionRange::new(0, 9),
                request_flexible_from: 6,
                response_flexible_from: 6,
            },
            Self::Heartbeat => ApiRow {
                name: "Heartbeat",
                versions: VersionRange::new(0, 4),
                request_flexible_from: 4,
                response_flexible_from: 4,
            },
            Self::LeaveGroup => ApiRow {
                name: "LeaveGroup",
                versions: VersionRange::new(0, 5),
                request_flexible_from: 4,
                response_flexible_from: 4,
            },
            Self::SyncGroup => ApiRow {
                name: "SyncGroup",
                versions: VersionRange::new(0, 5),
                request_flexible_from: 4,
                response_flexible_from: 4,
            },
            Self::DescribeGroups => ApiRow {
                name: "DescribeGroups",
                versions: VersionRange::new(0, 6),
                request_flexible_from: 5,
                response_flexible_from: 5,
            },
            Self::ListGroups => ApiRow {
                name: "ListGroups",
                versions: VersionRange::new(0, 5),
                request_flexible_from: 3,
                response_flexible_from: 3,
            },
            Self::SaslHandshake => ApiRow {
                name: "SaslHandshake",
                versions: VersionRange::new(0, 1),
                request_flexible_from: i16::MAX,
                response_flexible_from: i16::MAX,
            },
            Self::ApiVersions => ApiRow {
                name: "ApiVersions",
                versions: VersionRange::new(0, 5),
                request_flexible_from: 3,
                response_flexible_from: 3,
            },
            Self::CreateTopics => ApiRow {
                name: "CreateTopics",
                versions: VersionRange::new(2, 7),
                request_flexible_from: 5,
                response_flexible_from: 5,
            },
            Self::DeleteTopics => ApiRow {
                name: "DeleteTopics",
                versions: VersionRange::new(1, 6),
                request_flexible_from: 4,
                response_flexible_from: 4,
            },
            Self::DeleteRecords => ApiRow {
                name: "DeleteRecords",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::InitProducerId => ApiRow {
                name: "InitProducerId",
                versions: VersionRange::new(0, 5),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::OffsetForLeaderEpoch => ApiRow {
                name: "OffsetForLeaderEpoch",
                versions: VersionRange::new(2, 4),
                request_flexible_from: 4,
                response_flexible_from: 4,
            },
            Self::AddPartitionsToTxn => ApiRow {
                name: "AddPartitionsToTxn",
                versions: VersionRange::new(0, 5),
                request_flexible_from: 3,
                response_flexible_from: 3,
            },
            Self::AddOffsetsToTxn => ApiRow {
                name: "AddOffsetsToTxn",
                versions: VersionRange::new(0, 4),
                request_flexible_from: 3,
                response_flexible_from: 3,
            },
            Self::EndTxn => ApiRow {
                name: "EndTxn",
                versions: VersionRange::new(0, 5),
                request_flexible_from: 3,
                response_flexible_from: 3,
            },
            Self::WriteTxnMarkers => ApiRow {
                name: "WriteTxnMarkers",
                versions: VersionRange::new(1, 2),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::TxnOffsetCommit => ApiRow {
                name: "TxnOffsetCommit",
                versions: VersionRange::new(0, 6),
                request_flexible_from: 3,
                response_flexible_from: 3,
            },
            Self::DescribeAcls => ApiRow {
                name: "DescribeAcls",
                versions: VersionRange::new(1, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::CreateAcls => ApiRow {
                name: "CreateAcls",
                versions: VersionRange::new(1, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::DeleteAcls => ApiRow {
                name: "DeleteAcls",
                versions: VersionRange::new(1, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::DescribeConfigs => ApiRow {
                name: "DescribeConfigs",
                versions: VersionRange::new(1, 4),
                request_flexible_from: 4,
                response_flexible_from: 4,
            },
            Self::AlterConfigs => ApiRow {
                name: "AlterConfigs",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::AlterReplicaLogDirs => ApiRow {
                name: "AlterReplicaLogDirs",
                versions: VersionRange::new(1, 2),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::DescribeLogDirs => ApiRow {
                name: "DescribeLogDirs",
                versions: VersionRange::new(1, 5),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::SaslAuthenticate => ApiRow {
                name: "SaslAuthenticate",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::CreatePartitions => ApiRow {
                name: "CreatePartitions",
                versions: VersionRange::new(0, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::CreateDelegationToken => ApiRow {
                name: "CreateDelegationToken",
                versions: VersionRange::new(1, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::RenewDelegationToken => ApiRow {
                name: "RenewDelegationToken",
                versions: VersionRange::new(1, 2),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::ExpireDelegationToken => ApiRow {
                name: "ExpireDelegationToken",
                versions: VersionRange::new(1, 2),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::DescribeDelegationToken => ApiRow {
                name: "DescribeDelegationToken",
                versions: VersionRange::new(1, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::DeleteGroups => ApiRow {
                name: "DeleteGroups",
                versions: VersionRange::new(0, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::ElectLeaders => ApiRow {
                name: "ElectLeaders",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::IncrementalAlterConfigs => ApiRow {
                name: "IncrementalAlterConfigs",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::AlterPartitionReassignments => ApiRow {
                name: "AlterPartitionReassignments",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ListPartitionReassignments => ApiRow {
                name: "ListPartitionReassignments",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::OffsetDelete => ApiRow {
                name: "OffsetDelete",
                versions: VersionRange::new(0, 0),
                request_flexible_from: i16::MAX,
                response_flexible_from: i16::MAX,
            },
            Self::DescribeClientQuotas => ApiRow {
                name: "DescribeClientQuotas",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::AlterClientQuotas => ApiRow {
                name: "AlterClientQuotas",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::DescribeUserScramCredentials => ApiRow {
                name: "DescribeUserScramCredentials",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::AlterUserScramCredentials => ApiRow {
                name: "AlterUserScramCredentials",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::Vote => ApiRow {
                name: "Vote",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::BeginQuorumEpoch => ApiRow {
                name: "BeginQuorumEpoch",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::EndQuorumEpoch => ApiRow {
                name: "EndQuorumEpoch",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::DescribeQuorum => ApiRow {
                name: "DescribeQuorum",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::AlterPartition => ApiRow {
                name: "AlterPartition",
                versions: VersionRange::new(2, 3),
                request_flexible_from: 2,
                response_flexible_from: 2,
            },
            Self::UpdateFeatures => ApiRow {
                name: "UpdateFeatures",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::Envelope => ApiRow {
                name: "Envelope",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::FetchSnapshot => ApiRow {
                name: "FetchSnapshot",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::DescribeCluster => ApiRow {
                name: "DescribeCluster",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::DescribeProducers => ApiRow {
                name: "DescribeProducers",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::BrokerRegistration => ApiRow {
                name: "BrokerRegistration",
                versions: VersionRange::new(0, 4),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::BrokerHeartbeat => ApiRow {
                name: "BrokerHeartbeat",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::UnregisterBroker => ApiRow {
                name: "UnregisterBroker",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::DescribeTransactions => ApiRow {
                name: "DescribeTransactions",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ListTransactions => ApiRow {
                name: "ListTransactions",
                versions: VersionRange::new(0, 2),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::AllocateProducerIds => ApiRow {
                name: "AllocateProducerIds",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ConsumerGroupHeartbeat => ApiRow {
                name: "ConsumerGroupHeartbeat",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ConsumerGroupDescribe => ApiRow {
                name: "ConsumerGroupDescribe",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ControllerRegistration => ApiRow {
                name: "ControllerRegistration",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::GetTelemetrySubscriptions => ApiRow {
                name: "GetTelemetrySubscriptions",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::PushTelemetry => ApiRow {
                name: "PushTelemetry",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::AssignReplicasToDirs => ApiRow {
                name: "AssignReplicasToDirs",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ListConfigResources => ApiRow {
                name: "ListConfigResources",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::DescribeTopicPartitions => ApiRow {
                name: "DescribeTopicPartitions",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ShareGroupHeartbeat => ApiRow {
                name: "ShareGroupHeartbeat",
                versions: VersionRange::new(1, 1),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::ShareGroupDescribe => ApiRow {
                name: "ShareGroupDescribe",
                versions: VersionRange::new(1, 1),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::ShareFetch => ApiRow {
                name: "ShareFetch",
                versions: VersionRange::new(1, 2),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::ShareAcknowledge => ApiRow {
                name: "ShareAcknowledge",
                versions: VersionRange::new(1, 2),
                request_flexible_from: 1,
                response_flexible_from: 1,
            },
            Self::AddRaftVoter => ApiRow {
                name: "AddRaftVoter",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::RemoveRaftVoter => ApiRow {
                name: "RemoveRaftVoter",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::UpdateRaftVoter => ApiRow {
                name: "UpdateRaftVoter",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::InitializeShareGroupState => ApiRow {
                name: "InitializeShareGroupState",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ReadShareGroupState => ApiRow {
                name: "ReadShareGroupState",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::WriteShareGroupState => ApiRow {
                name: "WriteShareGroupState",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::DeleteShareGroupState => ApiRow {
                name: "DeleteShareGroupState",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::ReadShareGroupStateSummary => ApiRow {
                name: "ReadShareGroupStateSummary",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::StreamsGroupHeartbeat => ApiRow {
                name: "StreamsGroupHeartbeat",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::StreamsGroupDescribe => ApiRow {
                name: "StreamsGroupDescribe",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::DescribeShareGroupOffsets => ApiRow {
                name: "DescribeShareGroupOffsets",
                versions: VersionRange::new(0, 1),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::AlterShareGroupOffsets => ApiRow {
                name: "AlterShareGroupOffsets",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::DeleteShareGroupOffsets => ApiRow {
                name: "DeleteShareGroupOffsets",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::StreamsGroupTopologyDescriptionUpdate => ApiRow {
                name: "StreamsGroupTopologyDescriptionUpdate",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
            Self::UnregisterController => ApiRow {
                name: "UnregisterController",
                versions: VersionRange::new(0, 0),
                request_flexible_from: 0,
                response_flexible_from: 0,
            },
        }
    }
}
