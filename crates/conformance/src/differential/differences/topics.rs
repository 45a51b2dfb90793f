//! Differences about topics and configurations.

use moldau_protocol::ApiKey;

use super::Difference;

pub(super) const ROWS: &[Difference] = &[
    Difference {
        api: ApiKey::CreateTopics,
        cases: &[
            "a configuration",
            "a configuration twice",
            "a topic, to validate",
            "an assignment",
            "compression",
            "good and bad topics",
            "two policies",
        ],
        versions: (7, 7),
        fields: &[("Topics.TopicId", "<id>", "<no id>")],
        reason: VALIDATED,
    },
    Difference {
        api: ApiKey::CreateTopics,
        cases: &["a name that collides"],
        versions: (2, 7),
        fields: &[
            ("Topics.ErrorCode", "0", "17"),
            ("Topics.ErrorMessage", "null", "<text>"),
            ("Topics.NumPartitions", "1", "-1"),
            ("Topics.ReplicationFactor", "1", "-1"),
            ("Topics.Configs", "cleanup.policy*", ""),
            ("Topics.TopicId", "<id>", "<no id>"),
        ],
        reason: "names that differ only in . and _ collide also within one request",
    },
    Difference {
        api: ApiKey::CreateTopics,
        cases: &["a timeout of -1"],
        versions: (2, 7),
        fields: &[
            ("Topics.ErrorCode", "7", "0"),
            ("Topics.ErrorMessage", "<text>", "null"),
            ("Topics.NumPartitions", "-1", "1"),
            ("Topics.ReplicationFactor", "-1", "1"),
            ("Topics.Configs", "", "cleanup.policy*"),
        ],
        reason: "a negative timeout is ignored; Kafka returns REQUEST_TIMED_OUT at once",
    },
    Difference {
        api: ApiKey::CreateTopics,
        cases: &["an internal topic"],
        versions: (2, 7),
        fields: &[
            ("Topics.ErrorCode", "0", "17"),
            ("Topics.ErrorMessage", "null", "<text>"),
            ("Topics.NumPartitions", "1", "-1"),
            ("Topics.ReplicationFactor", "1", "-1"),
            ("Topics.Configs", "cleanup.policy*", ""),
            ("Topics.TopicId", "<id>", "<no id>"),
        ],
        reason: INTERNAL,
    },
    Difference {
        api: ApiKey::CreateTopics,
        cases: &["replicas in sync"],
        versions: (7, 7),
        fields: &[("Topics.TopicId", "<id>", "<no id>")],
        reason: VALIDATED,
    },
    Difference {
        api: ApiKey::CreateTopics,
        cases: &["the metadata log"],
        versions: (2, 7),
        fields: &[("Topics.ErrorCode", "42", "17")],
        reason: INTERNAL,
    },
    Difference {
        api: ApiKey::DescribeConfigs,
        cases: &["a resource twice"],
        versions: (1, 4),
        fields: &[
            ("Results.ErrorCode", "0", "42"),
            ("Results.ErrorMessage", "", "<text>"),
            ("Results.Configs", "retention.ms", ""),
        ],
        reason: "a resource given twice is described once, to bound the response",
    },
    Difference {
        api: ApiKey::IncrementalAlterConfigs,
        cases: &["operation -1", "operation 9"],
        versions: (0, 1),
        fields: &[("Responses.ErrorCode", "-1", "42")],
        reason: "an unknown operation is INVALID_REQUEST; Kafka returns UNKNOWN_SERVER_ERROR",
    },
];

const VALIDATED: &str = "with validateOnly there is no topic id; Kafka sends a random one";

const INTERNAL: &str = "names of Kafka's internal topics are refused with INVALID_TOPIC_EXCEPTION";
