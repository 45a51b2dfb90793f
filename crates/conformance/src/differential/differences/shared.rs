//! Differences of brokers without disks.

use moldau_protocol::ApiKey;

use super::{Difference, Differing};

/// Whether a row is only about a broker with a journal.
pub(super) fn replaces(row: &Difference) -> bool {
    row.api == ApiKey::ApiVersions || row.cases == ["a leader epoch of -2"]
}

pub(super) const ROWS: &[Difference] = &[
    Difference {
        api: ApiKey::ApiVersions,
        cases: &[
            "a body that ends early",
            "a client without a name",
            "a client without a version",
            "a name that is not allowed",
        ],
        versions: (0, 2),
        fields: &[("ApiKeys", "27, 34*", "")],
        reason: APIS,
    },
    Difference {
        api: ApiKey::ApiVersions,
        cases: &[
            "a broker without a cluster",
            "a cluster without a broker",
            "another broker",
            "another cluster",
        ],
        versions: (0, 4),
        fields: API_FIELDS,
        reason: APIS,
    },
    Difference {
        api: ApiKey::ApiVersions,
        cases: &["a client", "no rights: a client", "this broker"],
        versions: (0, 5),
        fields: API_FIELDS,
        reason: APIS,
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["*"],
        versions: (4, 18),
        fields: &[
            ("Responses.Partitions.Records", "[0 to 1*", "[0 to 1*"),
            ("Responses.Partitions.Records", "[2 to 3*", "[2 to 3*"),
        ],
        reason: "a partition is answered with 64 batches at most",
    },
    Difference {
        api: ApiKey::Fetch,
        cases: &["a leader epoch to come"],
        versions: (9, 18),
        fields: &[
            ("Responses.Partitions.ErrorCode", "75", "0"),
            ("Responses.Partitions.HighWatermark", "-1", "*"),
            ("Responses.Partitions.LastStableOffset", "-1", "*"),
            ("Responses.Partitions.LogStartOffset", "-1", "0"),
            ("Responses.Partitions.Records", "", "[0 to 1*"),
        ],
        reason: LEADERS,
    },
    Difference {
        api: ApiKey::ListOffsets,
        cases: &["a leader epoch to come"],
        versions: (4, 11),
        fields: &[
            ("Topics.Partitions.ErrorCode", "75", "0"),
            ("Topics.Partitions.Offset", "-1", "*"),
            ("Topics.Partitions.LeaderEpoch", "-1", "<leader epoch>"),
        ],
        reason: LEADERS,
    },
    Difference {
        api: ApiKey::OffsetForLeaderEpoch,
        cases: &["a leader epoch to come"],
        versions: (2, 4),
        fields: &[
            ("Topics.Partitions.ErrorCode", "75", "0"),
            ("Topics.Partitions.LeaderEpoch", "-1", "<leader epoch>"),
            ("Topics.Partitions.EndOffset", "-1", "*"),
        ],
        reason: LEADERS,
    },
    Difference {
        api: ApiKey::OffsetForLeaderEpoch,
        cases: &["an epoch to come"],
        versions: (2, 4),
        fields: &[
            ("Topics.Partitions.LeaderEpoch", "-1", "1000000"),
            ("Topics.Partitions.EndOffset", "-1", "*"),
        ],
        reason: "every epoch ends at the high watermark: nothing that was read is ever cut off",
    },
    Difference {
        api: ApiKey::CreateTopics,
        cases: &["an assignment"],
        versions: (2, 7),
        fields: &[
            ("Topics.ErrorCode", "0", "39"),
            ("Topics.ErrorMessage", "null", "<text>"),
            ("Topics.NumPartitions", "1", "-1"),
            ("Topics.ReplicationFactor", "1", "-1"),
            ("Topics.Configs", "*", ""),
        ],
        reason: ASSIGNED,
    },
    Difference {
        api: ApiKey::CreateTopics,
        cases: &["32767 replicas", "two replicas"],
        versions: (2, 7),
        fields: &[
            ("Topics.ErrorCode", "38", "0"),
            ("Topics.ErrorMessage", "<text>", "null"),
            ("Topics.NumPartitions", "-1", "1"),
            ("Topics.ReplicationFactor", "-1", "1"),
            ("Topics.Configs", "", "*"),
        ],
        reason: "the store replicates, so every number of replicas is accepted",
    },
    Difference {
        api: ApiKey::DescribeConfigs,
        cases: &["a changed default of the broker", "a topic with a changed default"],
        versions: (1, 4),
        fields: &[
            ("Results.Configs.Value", "2000000", "3000000"),
            ("Results.Configs.ConfigSource", "2", "3"),
            ("Results.Configs.Synonyms.Value", "2000000", "3000000"),
            ("Results.Configs.Synonyms.Source", "2", "3"),
            ("Results.Configs.Synonyms.Value", "3000000", "-1"),
            ("Results.Configs.Synonyms.Source", "3", "5"),
            ("Results.Configs.Synonyms", "log.retention.bytes", ""),
        ],
        reason: DEFAULTS,
    },
    Difference {
        api: ApiKey::AlterConfigs,
        cases: &["a default of a broker"],
        versions: (0, 2),
        fields: &[("Responses.ErrorCode", "0", "42"), ("Responses.ErrorMessage", "null", "<text>")],
        reason: DEFAULTS,
    },
    Difference {
        api: ApiKey::IncrementalAlterConfigs,
        cases: &[
            "append to a default",
            "delete a default of a broker",
            "set a default of a broker",
        ],
        versions: (0, 1),
        fields: &[("Responses.ErrorCode", "0", "42"), ("Responses.ErrorMessage", "null", "<text>")],
        reason: DEFAULTS,
    },
    Difference {
        api: ApiKey::IncrementalAlterConfigs,
        cases: &["append to a default of no list"],
        versions: (0, 1),
        fields: &[("Responses.ErrorCode", "40", "42")],
        reason: DEFAULTS,
    },
    Difference {
        api: ApiKey::CreatePartitions,
        cases: &["an assignment"],
        versions: (0, 3),
        fields: &[("Results.ErrorCode", "0", "39"), ("Results.ErrorMessage", "null", "<text>")],
        reason: ASSIGNED,
    },
];

/// What differs in a list of APIs and features.
const API_FIELDS: &[Differing] = &[
    ("ApiKeys", "27, 34*", ""),
    ("SupportedFeatures", "*", "*"),
    ("FinalizedFeatures", "eligible.leader.replicas.versi*", ""),
];

const LEADERS: &str = "every broker reads every record, so no epoch of a leader is checked";

const ASSIGNED: &str = "every broker serves every partition, so none can be assigned";

const APIS: &str = "the APIs that only a journal has are missing";

const DEFAULTS: &str = "all brokers have the same defaults of topics";
