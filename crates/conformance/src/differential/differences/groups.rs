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
        api: ApiKey::DeleteGroups,
        cases: &["a group twice"],
        versions: (0, 3),
        fields: &[("Results", "", "absent-group")],
        reason: "a group named twice is answered twice; Kafka answers once",
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
];

const ONCE: &str = "a name given twice is answered once, to bound the response";

const NO_GROUP: &str = "a refused join creates no group; Kafka keeps an empty group";
