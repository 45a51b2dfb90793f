//! What the coordinator knows of topics: nothing but what its caller says.

use std::collections::BTreeSet;

use moldau_protocol::Uuid;

/// A topic that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopicShape {
    /// Its id.
    pub id: Uuid,
    /// How many partitions it has.
    pub partitions: i32,
}

/// The topics of the broker, as the client of one request may see them.
pub trait Topics {
    /// A number that changes whenever a topic is created or deleted or gets partitions.
    fn version(&self) -> u64;

    /// The topic of a name.
    fn by_name(&self, name: &str) -> Option<TopicShape>;

    /// The topics that a pattern accepts and that the client may describe.
    fn matching(&self, accepts: &dyn Fn(&str) -> bool) -> Vec<String>;
}

/// A number that changes with these topics, their ids and their partitions. It is stored, so it
/// must not depend on the process: FNV-1a of 64 bits. It is never 0.
pub(crate) fn hash_of<'a>(names: impl Iterator<Item = &'a str>, topics: &dyn Topics) -> i64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    for name in names.collect::<BTreeSet<_>>() {
        if let Some(topic) = topics.by_name(name) {
            add(name.as_bytes());
            add(&[0]);
            add(topic.id.as_bytes());
            add(&topic.partitions.to_be_bytes());
        }
    }
    // 0 stands for "not known".
    i64::from_be_bytes(hash.max(1).to_be_bytes())
}
