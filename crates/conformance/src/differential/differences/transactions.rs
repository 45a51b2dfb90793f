//! Differences about producers and transactions.

use moldau_protocol::ApiKey;

use super::Difference;

pub(super) const ROWS: &[Difference] = &[
    Difference {
        api: ApiKey::InitProducerId,
        cases: &["epoch -2"],
        versions: (3, 5),
        fields: &[("ErrorCode", "47", "42"), ("ErrorCode", "90", "42")],
        reason: "an epoch below -1 is INVALID_REQUEST; Kafka treats it as fenced",
    },
    Difference {
        api: ApiKey::TxnOffsetCommit,
        cases: &["a generation"],
        versions: (3, 6),
        fields: &[("Topics.Partitions.ErrorCode", "25", "22")],
        reason: "a generation without a member is ILLEGAL_GENERATION; Kafka returns \
                 UNKNOWN_MEMBER_ID",
    },
    Difference {
        api: ApiKey::TxnOffsetCommit,
        cases: &["an unknown transactional id"],
        versions: (0, 6),
        fields: &[("Topics.Partitions.ErrorCode", "0", "49")],
        reason: "an unknown transactional id is INVALID_PRODUCER_ID_MAPPING; Kafka accepts the \
                 offsets",
    },
    Difference {
        api: ApiKey::DescribeTransactions,
        cases: &["one twice"],
        versions: (0, 0),
        fields: &[("TransactionStates", "init-0", "")],
        reason: "a name given twice is answered once, to bound the response",
    },
    Difference {
        api: ApiKey::ListTransactions,
        cases: &["of an hour"],
        versions: (1, 2),
        fields: &[("TransactionStates", "init-0*", "")],
        reason: "a duration filter matches open transactions only; Kafka lists ids without a \
                 transaction too",
    },
];
