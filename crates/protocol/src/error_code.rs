//! Kafka's error codes, as of Kafka 4.4.0.

use std::fmt;

use thiserror::Error;

/// A number that is no error code known here.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("unknown error code {0}")]
pub struct UnknownErrorCode(pub i16);

/// Whether trying again can help, as the Java client's exception classes have it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Retry {
    Retriable,
    Final,
}

macro_rules! retry {
    (retriable) => {
        Retry::Retriable
    };
    (final) => {
        Retry::Final
    };
}

/// One row for each code: number, variant, Kafka's name, whether to retry, meaning.
macro_rules! error_codes {
    ($($code:literal $variant:ident $name:ident $retry:ident $message:literal;)*) => {
        /// The outcome of a request, or of a part of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(i16)]
        pub enum ErrorCode {
            $(#[doc = $message] $variant = $code,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Kafka's name of the code.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($name),)*
                }
            }

            /// What the code means, as a sentence.
            #[must_use]
            pub const fn message(self) -> &'static str {
                match self {
                    $(Self::$variant => $message,)*
                }
            }

            const fn retry(self) -> Retry {
                match self {
                    $(Self::$variant => retry!($retry),)*
                }
            }
        }

        impl TryFrom<i16> for ErrorCode {
            type Error = UnknownErrorCode;

            fn try_from(code: i16) -> Result<Self, UnknownErrorCode> {
                match code {
                    $($code => Ok(Self::$variant),)*
                    _ => Err(UnknownErrorCode(code)),
                }
            }
        }
    };
}

error_codes! {
    -1 UnknownServerError UNKNOWN_SERVER_ERROR final
        "The server failed in a way that no other code describes.";
    0 None NONE final "Success.";
    1 OffsetOutOfRange OFFSET_OUT_OF_RANGE final
        "The offset lies before the log's start or after its end.";
    2 CorruptMessage CORRUPT_MESSAGE retriable
        "A record batch fails its checksum or breaks a rule of the format.";
    3 UnknownTopicOrPartition UNKNOWN_TOPIC_OR_PARTITION retriable
        "The broker knows no such topic or partition.";
    4 InvalidFetchSize INVALID_FETCH_SIZE final "The number of bytes to fetch makes no sense.";
    5 LeaderNotAvailable LEADER_NOT_AVAILABLE retriable
        "The partition has no leader at the moment.";
    6 NotLeaderOrFollower NOT_LEADER_OR_FOLLOWER retriable
        "The broker does not lead the partition, or holds no replica of it.";
    7 RequestTimedOut REQUEST_TIMED_OUT retriable "The time allowed for the request is over.";
    8 BrokerNotAvailable BROKER_NOT_AVAILABLE final "The broker cannot be reached.";
    9 ReplicaNotAvailable REPLICA_NOT_AVAILABLE retriable "The replica cannot be reached.";
    10 MessageTooLarge MESSAGE_TOO_LARGE final
        "A record batch exceeds the size that the topic allows.";
    11 StaleControllerEpoch STALE_CONTROLLER_EPOCH final "Another controller has taken over.";
    12 OffsetMetadataTooLarge OFFSET_METADATA_TOO_LARGE final
        "The metadata committed beside an offset is too long.";
    13 NetworkException NETWORK_EXCEPTION retriable "The connection ended before the answer came.";
    14 CoordinatorLoadInProgress COORDINATOR_LOAD_IN_PROGRESS retriable
        "The coordinator is still loading its state.";
    15 CoordinatorNotAvailable COORDINATOR_NOT_AVAILABLE retriable
        "There is no coordinator at the moment.";
    16 NotCoordinator NOT_COORDINATOR retriable
        "Another broker coordinates this group or transaction.";
    17 InvalidTopicException INVALID_TOPIC_EXCEPTION final
        "The topic's name or use is not allowed.";
    18 RecordListTooLarge RECORD_LIST_TOO_LARGE final
        "A record batch is larger than a segment of the log.";
    19 NotEnoughReplicas NOT_ENOUGH_REPLICAS retriable
        "Too few replicas are in sync to accept the records.";
    20 NotEnoughReplicasAfterAppend NOT_ENOUGH_REPLICAS_AFTER_APPEND retriable
        "The records are written, but to too few replicas in sync.";
    21 InvalidRequiredAcks INVALID_REQUIRED_ACKS final
        "The number of required acknowledgements is not -1, 0 or 1.";
    22 IllegalGeneration ILLEGAL_GENERATION final "The group's generation is another one.";
    23 InconsistentGroupProtocol INCONSISTENT_GROUP_PROTOCOL final
        "The member shares no assignment protocol with its group.";
    24 InvalidGroupId INVALID_GROUP_ID final "The group's id is empty or malformed.";
    25 UnknownMemberId UNKNOWN_MEMBER_ID final "The group has no such member.";
    26 InvalidSessionTimeout INVALID_SESSION_TIMEOUT final
        "The session timeout lies outside the broker's limits.";
    27 RebalanceInProgress REBALANCE_IN_PROGRESS final
        "The group rebalances, so the member has to join again.";
    28 InvalidCommitOffsetSize INVALID_COMMIT_OFFSET_SIZE final
        "The committed offset is too large to store.";
    29 TopicAuthorizationFailed TOPIC_AUTHORIZATION_FAILED final
        "The principal may not do this to the topic.";
    30 GroupAuthorizationFailed GROUP_AUTHORIZATION_FAILED final
        "The principal may not do this to the group.";
    31 ClusterAuthorizationFailed CLUSTER_AUTHORIZATION_FAILED final
        "The principal may not do this to the cluster.";
    32 InvalidTimestamp INVALID_TIMESTAMP final
        "A record's timestamp is too far from the broker's clock.";
    33 UnsupportedSaslMechanism UNSUPPORTED_SASL_MECHANISM final
        "The broker does not offer this SASL mechanism.";
    34 IllegalSaslState ILLEGAL_SASL_STATE final
        "The request does not fit the state of the authentication.";
    35 UnsupportedVersion UNSUPPORTED_VERSION final
        "The broker does not speak this version of the API.";
    36 TopicAlreadyExists TOPIC_ALREADY_EXISTS final "There is a topic of this name.";
    37 InvalidPartitions INVALID_PARTITIONS final "The number of partitions is not allowed.";
    38 InvalidReplicationFactor INVALID_REPLICATION_FACTOR final
        "The cluster cannot hold so many replicas, or so few.";
    39 InvalidReplicaAssignment INVALID_REPLICA_ASSIGNMENT final
        "The assignment of replicas to brokers is not allowed.";
    40 InvalidConfig INVALID_CONFIG final "A configuration key or value is not allowed.";
    41 NotController NOT_CONTROLLER retriable "Another node is the controller.";
    42 InvalidRequest INVALID_REQUEST final "The request contradicts itself or the protocol.";
    43 UnsupportedForMessageFormat UNSUPPORTED_FOR_MESSAGE_FORMAT final
        "The topic's message format cannot do this.";
    44 PolicyViolation POLICY_VIOLATION final "A policy of the operator forbids the request.";
    45 OutOfOrderSequenceNumber OUT_OF_ORDER_SEQUENCE_NUMBER final
        "The producer's sequence number skips records.";
    46 DuplicateSequenceNumber DUPLICATE_SEQUENCE_NUMBER final
        "The producer's sequence number was used before.";
    47 InvalidProducerEpoch INVALID_PRODUCER_EPOCH final "The producer's epoch is outdated.";
    48 InvalidTxnState INVALID_TXN_STATE final
        "The transaction's state does not allow this operation.";
    49 InvalidProducerIdMapping INVALID_PRODUCER_ID_MAPPING final
        "The transactional id belongs to another producer id.";
    50 InvalidTransactionTimeout INVALID_TRANSACTION_TIMEOUT final
        "The transaction timeout exceeds the broker's limit.";
    51 ConcurrentTransactions CONCURRENT_TRANSACTIONS retriable
        "Another operation on the same transaction is under way.";
    52 TransactionCoordinatorFenced TRANSACTION_COORDINATOR_FENCED final
        "The coordinator that wrote the marker was replaced.";
    53 TransactionalIdAuthorizationFailed TRANSACTIONAL_ID_AUTHORIZATION_FAILED final
        "The principal may not use the transactional id.";
    54 SecurityDisabled SECURITY_DISABLED final "The broker runs without authorisation.";
    55 OperationNotAttempted OPERATION_NOT_ATTEMPTED final
        "The operation was skipped because another one of its batch failed.";
    56 KafkaStorageError KAFKA_STORAGE_ERROR retriable "The broker's disk failed.";
    57 LogDirNotFound LOG_DIR_NOT_FOUND final "The broker has no such log directory.";
    58 SaslAuthenticationFailed SASL_AUTHENTICATION_FAILED final "The credentials were refused.";
    59 UnknownProducerId UNKNOWN_PRODUCER_ID final
        "The partition remembers nothing of the producer.";
    60 ReassignmentInProgress REASSIGNMENT_IN_PROGRESS final
        "The partition's replicas are being moved.";
    61 DelegationTokenAuthDisabled DELEGATION_TOKEN_AUTH_DISABLED final
        "The broker does not offer delegation tokens.";
    62 DelegationTokenNotFound DELEGATION_TOKEN_NOT_FOUND final
        "There is no such delegation token.";
    63 DelegationTokenOwnerMismatch DELEGATION_TOKEN_OWNER_MISMATCH final
        "The principal neither owns nor may renew the delegation token.";
    64 DelegationTokenRequestNotAllowed DELEGATION_TOKEN_REQUEST_NOT_ALLOWED final
        "Delegation tokens need a better authenticated connection.";
    65 DelegationTokenAuthorizationFailed DELEGATION_TOKEN_AUTHORIZATION_FAILED final
        "The principal may not do this to delegation tokens.";
    66 DelegationTokenExpired DELEGATION_TOKEN_EXPIRED final "The delegation token's time is over.";
    67 InvalidPrincipalType INVALID_PRINCIPAL_TYPE final "The type of principal is not supported.";
    68 NonEmptyGroup NON_EMPTY_GROUP final "The group still has members.";
    69 GroupIdNotFound GROUP_ID_NOT_FOUND final "There is no such group.";
    70 FetchSessionIdNotFound FETCH_SESSION_ID_NOT_FOUND retriable
        "The broker has no such fetch session.";
    71 InvalidFetchSessionEpoch INVALID_FETCH_SESSION_EPOCH retriable
        "The fetch session expects another epoch.";
    72 ListenerNotFound LISTENER_NOT_FOUND retriable
        "The leader has no listener of the name that the client used.";
    73 TopicDeletionDisabled TOPIC_DELETION_DISABLED final
        "The broker does not allow topics to be deleted.";
    74 FencedLeaderEpoch FENCED_LEADER_EPOCH retriable
        "The request's leader epoch is older than the broker's.";
    75 UnknownLeaderEpoch UNKNOWN_LEADER_EPOCH retriable
        "The request's leader epoch is newer than the broker's.";
    76 UnsupportedCompressionType UNSUPPORTED_COMPRESSION_TYPE final
        "The version of the request does not allow this compression.";
    77 StaleBrokerEpoch STALE_BROKER_EPOCH final "The broker has registered again since.";
    78 OffsetNotAvailable OFFSET_NOT_AVAILABLE retriable
        "The leader is too recently elected to know its high watermark.";
    79 MemberIdRequired MEMBER_ID_REQUIRED final
        "The member has to join again with the id that it was given.";
    80 PreferredLeaderNotAvailable PREFERRED_LEADER_NOT_AVAILABLE retriable
        "The preferred leader cannot be elected.";
    81 GroupMaxSizeReached GROUP_MAX_SIZE_REACHED final
        "The group has as many members as it may have.";
    82 FencedInstanceId FENCED_INSTANCE_ID final
        "Another member has taken over the static instance id.";
    83 EligibleLeadersNotAvailable ELIGIBLE_LEADERS_NOT_AVAILABLE retriable
        "No replica can be elected as leader.";
    84 ElectionNotNeeded ELECTION_NOT_NEEDED retriable
        "The partition has the leader that it should have.";
    85 NoReassignmentInProgress NO_REASSIGNMENT_IN_PROGRESS final
        "The partition's replicas are not being moved.";
    86 GroupSubscribedToTopic GROUP_SUBSCRIBED_TO_TOPIC final "The group still consumes the topic.";
    87 InvalidRecord INVALID_RECORD final "A record breaks a rule of the broker.";
    88 UnstableOffsetCommit UNSTABLE_OFFSET_COMMIT retriable
        "An open transaction holds offsets of the partition.";
    89 ThrottlingQuotaExceeded THROTTLING_QUOTA_EXCEEDED retriable
        "A quota is used up for the moment.";
    90 ProducerFenced PRODUCER_FENCED final "A newer producer has taken over the transactional id.";
    91 ResourceNotFound RESOURCE_NOT_FOUND final "The request names something that does not exist.";
    92 DuplicateResource DUPLICATE_RESOURCE final "The request names the same thing twice.";
    93 UnacceptableCredential UNACCEPTABLE_CREDENTIAL final
        "The credential does not meet the broker's rules.";
    94 InconsistentVoterSet INCONSISTENT_VOTER_SET final
        "Sender or receiver is not one of the quorum's voters.";
    95 InvalidUpdateVersion INVALID_UPDATE_VERSION final "The update carries a wrong version.";
    96 FeatureUpdateFailed FEATURE_UPDATE_FAILED final
        "The finalized features could not be changed.";
    97 PrincipalDeserializationFailure PRINCIPAL_DESERIALIZATION_FAILURE final
        "The forwarded request's principal cannot be read.";
    98 SnapshotNotFound SNAPSHOT_NOT_FOUND final "There is no such snapshot.";
    99 PositionOutOfRange POSITION_OUT_OF_RANGE final "The position lies outside the snapshot.";
    100 UnknownTopicId UNKNOWN_TOPIC_ID retriable "The broker knows no topic of this id.";
    101 DuplicateBrokerRegistration DUPLICATE_BROKER_REGISTRATION final
        "Another broker runs under this id.";
    102 BrokerIdNotRegistered BROKER_ID_NOT_REGISTERED final
        "No broker is registered under this id.";
    103 InconsistentTopicId INCONSISTENT_TOPIC_ID retriable
        "The topic's log carries another topic id.";
    104 InconsistentClusterId INCONSISTENT_CLUSTER_ID final
        "The request is meant for another cluster.";
    105 TransactionalIdNotFound TRANSACTIONAL_ID_NOT_FOUND final
        "There is no such transactional id.";
    106 FetchSessionTopicIdError FETCH_SESSION_TOPIC_ID_ERROR retriable
        "The fetch session mixes topics by name and by id.";
    107 IneligibleReplica INELIGIBLE_REPLICA final "A replica may not become one in sync.";
    108 NewLeaderElected NEW_LEADER_ELECTED final
        "The partition was changed and has another leader since.";
    109 OffsetMovedToTieredStorage OFFSET_MOVED_TO_TIERED_STORAGE final
        "The offset lies in tiered storage only.";
    110 FencedMemberEpoch FENCED_MEMBER_EPOCH final
        "The member must give up its partitions and join again.";
    111 UnreleasedInstanceId UNRELEASED_INSTANCE_ID final
        "Another member still uses the static instance id.";
    112 UnsupportedAssignor UNSUPPORTED_ASSIGNOR final "The group cannot use this assignor.";
    113 StaleMemberEpoch STALE_MEMBER_EPOCH final
        "The member has to learn its epoch by a heartbeat first.";
    114 MismatchedEndpointType MISMATCHED_ENDPOINT_TYPE final
        "The request belongs to another kind of endpoint.";
    115 UnsupportedEndpointType UNSUPPORTED_ENDPOINT_TYPE final
        "The kind of endpoint is not supported.";
    116 UnknownControllerId UNKNOWN_CONTROLLER_ID final "There is no such controller.";
    117 UnknownSubscriptionId UNKNOWN_SUBSCRIPTION_ID final
        "The telemetry subscription does not exist or has changed.";
    118 TelemetryTooLarge TELEMETRY_TOO_LARGE final
        "The pushed telemetry exceeds the broker's limit.";
    119 InvalidRegistration INVALID_REGISTRATION final
        "The controller refuses the broker's registration.";
    120 TransactionAbortable TRANSACTION_ABORTABLE final
        "The transaction failed and has to be aborted.";
    121 InvalidRecordState INVALID_RECORD_STATE final
        "The shared record is in no state to be acknowledged.";
    122 ShareSessionNotFound SHARE_SESSION_NOT_FOUND retriable
        "The broker has no such share session.";
    123 InvalidShareSessionEpoch INVALID_SHARE_SESSION_EPOCH retriable
        "The share session expects another epoch.";
    124 FencedStateEpoch FENCED_STATE_EPOCH final "The share group's state carries another epoch.";
    125 InvalidVoterKey INVALID_VOTER_KEY final "The voter's key is not that of the receiver.";
    126 DuplicateVoter DUPLICATE_VOTER final "The quorum has this voter already.";
    127 VoterNotFound VOTER_NOT_FOUND final "The quorum has no such voter.";
    128 InvalidRegularExpression INVALID_REGULAR_EXPRESSION final
        "The regular expression cannot be compiled.";
    129 RebootstrapRequired REBOOTSTRAP_REQUIRED final
        "The client must start again from its bootstrap servers.";
    130 StreamsInvalidTopology STREAMS_INVALID_TOPOLOGY final "The streams topology is malformed.";
    131 StreamsInvalidTopologyEpoch STREAMS_INVALID_TOPOLOGY_EPOCH final
        "The streams topology carries a wrong epoch.";
    132 StreamsTopologyFenced STREAMS_TOPOLOGY_FENCED final "A newer streams topology is in use.";
    133 ShareSessionLimitReached SHARE_SESSION_LIMIT_REACHED retriable
        "The broker has as many share sessions as it may have.";
    134 GroupDeletionFailed GROUP_DELETION_FAILED final
        "The group was not deleted; the message of its result says why.";
    135 StreamsTopologyDescriptionUpdateFailed STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED final
        "The description of the streams topology was not taken; the message says why.";
    136 ControllerIdNotRegistered CONTROLLER_ID_NOT_REGISTERED final
        "No controller is registered with this id.";
}

impl ErrorCode {
    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> i16 {
        self as i16
    }

    /// Whether the same request can succeed later.
    #[must_use]
    pub fn is_retriable(self) -> bool {
        self.retry() == Retry::Retriable
    }
}

impl From<ErrorCode> for i16 {
    fn from(code: ErrorCode) -> Self {
        code.code()
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_the_wire() {
        assert_eq!(ErrorCode::ALL.len(), 138);
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::try_from(i16::from(*code)), Ok(*code));
        }
        assert_eq!(ErrorCode::try_from(137), Err(UnknownErrorCode(137)));
        assert_eq!(ErrorCode::try_from(-2), Err(UnknownErrorCode(-2)));
    }

    #[test]
    fn names_are_those_of_kafka() {
        assert_eq!(ErrorCode::NotLeaderOrFollower.to_string(), "NOT_LEADER_OR_FOLLOWER");
        assert!(ErrorCode::NotLeaderOrFollower.is_retriable());
        assert!(!ErrorCode::RebalanceInProgress.is_retriable());
    }
}
