//! Differences about consumer groups and their offsets.

use moldau_protocol::ApiKey;

use super::Difference;

pub(super) const ROWS: &[Difference] = &[
    Difference {
        api: ApiKey::DescribeGroups,
        cases: &["a group twice"],
        versions: (0, 6),
        fields: &[("Groups", "described", "")],
        reason: ONCE,
    },
    Difference {
        api: ApiKey::ListGroups,
        cases: &["a body that ends early"],
        versions: (0, 2),
        fields: &[("Groups", "readers*", "")],
        reason: NO_GROUP,
    },
    Difference {
        api: ApiKey::ListGroups,
        cases: &["all"],
        versions: (0, 5),
        fields: &[("Groups", "refused-0*", "")],
        reason: NO_GROUP,
    },
    Difference {
        api: ApiKey::ListGroups,
        cases: &["state [Empty]"],
        versions: (4, 5),
        fields: &[("Groups", "refused-0*", "")],
        reason: NO_GROUP,
    },
    Difference {
        api: ApiKey::ListGroups,
        cases: &["type [Classic]", "type [classic]"],
        versions: (5, 5),
        fields: &[("Groups", "refused-0*", "")],
        reason: NO_GROUP,
    },
    Difference {
        api: ApiKey::OffsetFetch,
        cases: &["a partition twice"],
        versions: (1, 10),
        fields: &[("Topics.Partitions", "0", ""), ("Groups.Topics.Partitions", "0", "")],
        reason: ONCE,
    },
    Difference {
        api: ApiKey::ShareGroupHeartbeat,
        cases: &["a first member of a topic"],
        versions: (1, 1),
        fields: &[("Assignment.TopicPartitions", "", "<id of orders>")],
        reason: "a member gets partitions with its first heartbeat; Kafka first stores a state of \
                 each, and assigns it with a later heartbeat",
    },
    Difference {
        api: ApiKey::ShareGroupDescribe,
        cases: &["a group twice"],
        versions: (1, 1),
        fields: &[("Groups", "shared", "")],
        reason: ONCE,
    },
    Difference {
        api: ApiKey::ShareFetch,
        cases: &["no group"],
        versions: (1, 2),
        fields: &[
            ("Responses.Partitions.ErrorCode", "-1", "69"),
            ("Responses.Partitions.CurrentLeader.LeaderId", "0", "<broker>"),
        ],
        reason: UNNAMED,
    },
    Difference {
        api: ApiKey::ShareFetch,
        cases: &["another member after that"],
        versions: (1, 2),
        fields: &[("Responses.Partitions.CurrentLeader.LeaderId", "0", "<broker>")],
        reason: LEADER,
    },
    Difference {
        api: ApiKey::ShareAcknowledge,
        cases: &["no group"],
        versions: (1, 1),
        fields: &[("Responses.Partitions.CurrentLeader.LeaderId", "0", "<broker>")],
        reason: LEADER,
    },
    Difference {
        api: ApiKey::DescribeShareGroupOffsets,
        cases: &["no group"],
        versions: (0, 1),
        fields: &[("Groups.ErrorCode", "-1", "24")],
        reason: "a group without a name is INVALID_GROUP_ID; Kafka returns UNKNOWN_SERVER_ERROR",
    },
    Difference {
        api: ApiKey::StreamsGroupHeartbeat,
        cases: &["a member with an endpoint"],
        versions: (0, 1),
        fields: &[("EndpointInformationEpoch", "0", "1")],
        reason: "the endpoint of the first member of a group counts at once; Kafka forgets it \
                 until the member gets tasks",
    },
    Difference {
        api: ApiKey::ListGroups,
        cases: &["groups without topics"],
        versions: (5, 5),
        fields: &[("Groups", "", "without-source")],
        reason: "the state NotReady finds the groups in it; Kafka finds them as not_ready only",
    },
    Difference {
        api: ApiKey::OffsetFetch,
        cases: &["a partition, of a streams group"],
        versions: (9, 10),
        fields: &[("Groups.ErrorCode", "-1", "25")],
        reason: "an epoch without a member is UNKNOWN_MEMBER_ID in streams groups; Kafka answers \
                 UNKNOWN_SERVER_ERROR",
    },
];

const LEADER: &str = "the broker has the number 0, which Kafka sends where it names no leader";

const UNNAMED: &str = "a group without a name is GROUP_ID_NOT_FOUND; Kafka returns \
     UNKNOWN_SERVER_ERROR. The broker has the number 0, which Kafka sends where it names no leader";

const ONCE: &str = "a name given twice is answered once, to bound the response";

const NO_GROUP: &str = "a refused join creates no group; Kafka keeps an empty group";
