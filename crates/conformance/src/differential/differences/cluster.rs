//! Differences about the cluster and its security.

use moldau_protocol::ApiKey;

use super::Difference;

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
        fields: &[("ApiKeys", "34*", "")],
        reason: FEATURES,
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
        fields: &[
            ("ApiKeys", "34*", ""),
            ("SupportedFeatures", "*", "*"),
            ("FinalizedFeatures", "eligible.leader.replicas.versi*", ""),
        ],
        reason: FEATURES,
    },
    Difference {
        api: ApiKey::ApiVersions,
        cases: &["a client", "no rights: a client", "this broker"],
        versions: (0, 5),
        fields: &[
            ("ApiKeys", "34*", ""),
            ("SupportedFeatures", "*", "*"),
            ("FinalizedFeatures", "eligible.leader.replicas.versi*", ""),
        ],
        reason: FEATURES,
    },
    Difference {
        api: ApiKey::Metadata,
        cases: &["no id and no name"],
        versions: (12, 13),
        fields: &[
            ("Brokers", "", "127.0.0.1"),
            ("ClusterId", "null", "<cluster>"),
            ("ControllerId", "-1", "<broker>"),
            ("Topics", " <no id>", "null <no id>"),
            ("ErrorCode", "-1", "0"),
        ],
        reason: "a topic without name and id gets UNKNOWN_TOPIC_ID; Kafka refuses the whole \
                 request",
    },
    Difference {
        api: ApiKey::DescribeTopicPartitions,
        cases: &["a cursor at an unknown topic"],
        versions: (0, 0),
        fields: &[
            ("Topics.ErrorCode", "42", "0"),
            ("Topics.TopicId", "<no id>", "<id of *"),
            ("Topics.Partitions", "", "0"),
            ("Topics.Partitions", "", "0, 1"),
            ("Topics.TopicAuthorizedOperations", "-2147483648", "3576"),
        ],
        reason: CURSOR,
    },
    Difference {
        api: ApiKey::DescribeTopicPartitions,
        cases: &["a cursor at partition -1"],
        versions: (0, 0),
        fields: &[
            ("Topics.ErrorCode", "42", "0"),
            ("Topics.TopicId", "<no id>", "<id of orders>"),
            ("Topics.Partitions", "", "0, 1"),
            ("Topics.TopicAuthorizedOperations", "-2147483648", "3576"),
        ],
        reason: CURSOR,
    },
    Difference {
        api: ApiKey::DescribeTopicPartitions,
        cases: &["a cursor beyond all topics"],
        versions: (0, 0),
        fields: &[("Topics", "orders", "")],
        reason: CURSOR,
    },
    Difference {
        api: ApiKey::DescribeTopicPartitions,
        cases: &["an empty name"],
        versions: (0, 0),
        fields: &[
            ("Topics.ErrorCode", "-1", "17"),
            ("Topics.TopicAuthorizedOperations", "-2147483648", "3576"),
        ],
        reason: "an empty name is INVALID_TOPIC_EXCEPTION; Kafka returns UNKNOWN_SERVER_ERROR",
    },
    Difference {
        api: ApiKey::CreateAcls,
        cases: &[
            "a pattern that matches",
            "a pattern that matches any",
            "a resource of type 1",
            "operation 1",
            "permission 1",
        ],
        versions: (1, 3),
        fields: &[("Results.ErrorCode", "-1", "42")],
        reason: "types for filters only (ANY, MATCH) are INVALID_REQUEST; Kafka returns \
                 UNKNOWN_SERVER_ERROR",
    },
    Difference {
        api: ApiKey::CreateAcls,
        cases: &["a resource of type 0", "operation 0", "permission 0"],
        versions: (1, 3),
        fields: &[("", "closed", "{ThrottleTimeMs=0 Results=[{Er*")],
        reason: ZERO,
    },
    Difference {
        api: ApiKey::DescribeAcls,
        cases: &["a pattern of type 0", "a resource of type 0", "operation 0", "permission 0"],
        versions: (1, 3),
        fields: &[("", "closed", "{ThrottleTimeMs=0 ErrorCode=42*")],
        reason: ZERO,
    },
    Difference {
        api: ApiKey::DescribeAcls,
        cases: &["a pattern of type 9", "a resource of type 99", "operation 99", "permission 9"],
        versions: (1, 3),
        fields: &[("ErrorCode", "0", "42"), ("ErrorMessage", "", "<text>")],
        reason: "an unknown type in a filter is INVALID_REQUEST; Kafka returns an empty list \
                 without an error",
    },
    Difference {
        api: ApiKey::DeleteAcls,
        cases: &["a pattern of type 0", "a resource of type 0", "operation 0", "permission 0"],
        versions: (1, 3),
        fields: &[("", "closed", "{ThrottleTimeMs=0 FilterResult*")],
        reason: ZERO,
    },
    Difference {
        api: ApiKey::ElectLeaders,
        cases: &["of all partitions"],
        versions: (0, 2),
        fields: &[(
            "ReplicaElectionResults",
            "__consumer_offsets, __share_group_state, __transaction_state*",
            "",
        )],
        reason: "there are no internal topics",
    },
    Difference {
        api: ApiKey::DescribeQuorum,
        cases: &["metadata"],
        versions: (0, 2),
        fields: &[
            ("Topics.Partitions.LeaderEpoch", "*", "<leader epoch>"),
            ("Topics.Partitions.HighWatermark", "*", "*"),
            ("Topics.Partitions.CurrentVoters.LogEndOffset", "*", "*"),
        ],
        reason: "offsets of the metadata log are positions in the journal; the leader never \
                 changes, so its epoch is 0",
    },
    Difference {
        api: ApiKey::DescribeQuorum,
        cases: &["metadata"],
        versions: (2, 2),
        fields: &[("Nodes.Listeners", "CONTROLLER*", "PLAINTEXT*")],
        reason: "the controller is reached by the listener that the client uses",
    },
    Difference {
        api: ApiKey::DescribeQuorum,
        cases: &["another partition", "another topic", "partitions", "topics"],
        versions: (0, 2),
        fields: &[("Topics.Partitions.LeaderId", "0", "<broker>")],
        reason: "the leader beside an error is 0 as in Kafka, which is the number of this broker",
    },
];

const FEATURES: &str = "this table lists the APIs; the features are group.version, share.version, \
     streams.version and transaction.version";

const CURSOR: &str = "a cursor at a missing topic or partition continues behind it, because a \
     topic can be deleted between two pages; Kafka returns INVALID_REQUEST";

const ZERO: &str = "the type UNKNOWN (0) is INVALID_REQUEST; Kafka closes the connection";
