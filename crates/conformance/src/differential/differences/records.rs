//! Differences about produced and read records.

use moldau_protocol::ApiKey;

use super::Difference;

pub(super) const ROWS: &[Difference] = &[
    Difference {
        api: ApiKey::Produce,
        cases: &["a topic without partitions"],
        versions: (3, 13),
        fields: &[("Responses", "", "*")],
        reason: NO_PARTITIONS,
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["-1 bytes", "-1 bytes of the partition"],
        versions: (4, 18),
        fields: &[
            ("Responses.Partitions.ErrorCode", "-1", "0"),
            ("Responses.Partitions.HighWatermark", "-1", "*"),
            ("Responses.Partitions.LastStableOffset", "-1", "*"),
            ("Responses.Partitions.Records", "", "[0 to 1*"),
            ("Responses.Partitions.LogStartOffset", "-1", "0"),
        ],
        reason: "a negative limit counts as 0; Kafka returns UNKNOWN_SERVER_ERROR",
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["a last epoch to come"],
        versions: (12, 18),
        fields: &[
            ("Responses.Partitions.ErrorCode", "1", "0"),
            ("Responses.Partitions.HighWatermark", "-1", "*"),
            ("Responses.Partitions.LastStableOffset", "-1", "*"),
            ("Responses.Partitions.LogStartOffset", "-1", "0"),
            ("Responses.Partitions.Records", "", "[0 to 1*"),
        ],
        reason: "a LastFetchedEpoch ahead of the log is ignored; Kafka returns OFFSET_OUT_OF_RANGE",
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["a leader epoch of -2"],
        versions: (9, 18),
        fields: &[
            ("Responses.Partitions.ErrorCode", "0", "74"),
            ("Responses.Partitions.HighWatermark", "*", "-1"),
            ("Responses.Partitions.LastStableOffset", "*", "-1"),
            ("Responses.Partitions.LogStartOffset", "0", "-1"),
            ("Responses.Partitions.Records", "[0 to 1*", ""),
        ],
        reason: "CurrentLeaderEpoch below -1 is fenced; Kafka ignores it",
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["a partition twice"],
        versions: (4, 18),
        fields: &[
            ("Responses.Partitions.Records", "[2 to 3*", "[0 to 1*"),
            ("Responses.Partitions", "", "0"),
        ],
        reason: "a partition named twice is answered twice; Kafka answers the last one",
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["an isolation level of 9"],
        versions: (4, 18),
        fields: &[
            ("Responses.Partitions.ErrorCode", "-1", "0"),
            ("Responses.Partitions.HighWatermark", "-1", "*"),
            ("Responses.Partitions.LastStableOffset", "-1", "*"),
            ("Responses.Partitions.AbortedTransactions", "[]", "null"),
            ("Responses.Partitions.Records", "", "[0 to 1*"),
            ("Responses.Partitions.LogStartOffset", "-1", "0"),
            ("ErrorCode", "-1", "0"),
            ("Responses", "", "<id of orders>"),
        ],
        reason: ISOLATION,
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["beyond the end", "offset -1", "the last offset that a number can name"],
        versions: (5, 18),
        fields: &[("Responses.Partitions.LogStartOffset", "-1", "0")],
        reason: LOG_START,
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["records that are gone"],
        versions: (5, 18),
        fields: &[("Responses.Partitions.LogStartOffset", "-1", "*")],
        reason: LOG_START,
    },
    Difference {
        api: ApiKey::ListOffsets,
        cases: &["an isolation level of 9"],
        versions: (2, 11),
        fields: &[
            ("Topics.Partitions.ErrorCode", "-1", "0"),
            ("Topics.Partitions.Offset", "-1", "*"),
            ("Topics.Partitions.LeaderEpoch", "-1", "<leader epoch>"),
        ],
        reason: ISOLATION,
    },
    Difference {
        api: ApiKey::DescribeProducers,
        cases: &["a partition twice"],
        versions: (0, 0),
        fields: &[("Topics.Partitions", "0", "")],
        reason: "a name given twice is answered once, to bound the response",
    },
];

const NO_PARTITIONS: &str = "a topic without partitions is in the response; Kafka omits it";

const ISOLATION: &str = "an unknown isolation level counts as READ_UNCOMMITTED; Kafka returns \
     UNKNOWN_SERVER_ERROR";

const LOG_START: &str = "LogStartOffset is set with OFFSET_OUT_OF_RANGE; Kafka sends -1";
