//! Differences about producers and transactions.

use moldau_protocol::ApiKey;

use super::Difference;

pub(super) const ROWS: &[Difference] = &[
    Difference {
        api: ApiKey::InitProducerId,
        cases: &["epoch -2"],
        versions: (3, 5),
        fields: &[("ErrorCode", "47", "42"), ("ErrorCode", "90", "42")],
        reason: "an epoch below -1 is INVALID_REQUEST; Kafka takes it for an old one",
    },
    Difference {
        api: ApiKey::TxnOffsetCommit,
        cases: &["a generation"],
        versions: (3, 6),
        fields: &[("Topics.Partitions.ErrorCode", "25", "22")],
        reason: "a generation of a group without members is ILLEGAL_GENERATION; Kafka says \
                 UNKNOWN_MEMBER_ID",
    },
    Difference {
        api: ApiKey::TxnOffsetCommit,
        cases: &["an unknown transactional id"],
        versions: (0, 6),
        fields: &[("Topics.Partitions.ErrorCode", "0", "49")],
        reason: "offsets without a transaction are refused with INVALID_PRODUCER_ID_MAPPING; \
                 Kafka accepts them",
    },
    Difference {
        api: ApiKey::WriteTxnMarkers,
        cases: &["no partitions"],
        versions: (1, 2),
        fields: &[("Markers", "", "")],
        reason: "a marker without partitions is answered; Kafka leaves it out",
    },
    Difference {
        api: ApiKey::DescribeTransactions,
        cases: &["one twice"],
        versions: (0, 0),
        fields: &[("TransactionStates", "init-0", "")],
        reason: "a name that stands twice in a request is answered once, so that an answer is \
                 bounded by what exists",
    },
    Difference {
        api: ApiKey::ListTransactions,
        cases: &["of an hour"],
        versions: (1, 2),
        fields: &[("TransactionStates", "init-0*", "")],
        reason: "a transactional id without an open transaction has no duration; Kafka lists it \
                 for every duration",
    },
];
