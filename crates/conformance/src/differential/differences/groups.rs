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
        reason: "each mention of a group is answered; Kafka answers once",
    },
    Difference {
        api: ApiKey::OffsetFetch,
        cases: &["a partition twice"],
        versions: (1, 10),
        fields: &[("Topics.Partitions", "0", ""), ("Groups.Topics.Partitions", "0", "")],
        reason: ONCE,
    },
];

const ONCE: &str = "a name that stands twice in a request is answered once, so that an answer is \
     bounded by what exists";

const NO_GROUP: &str = "a join that is refused leaves no group behind; in Kafka an empty one stays";
