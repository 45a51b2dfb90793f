//! What the coordinator knows of topics: nothing but what its caller says.

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
