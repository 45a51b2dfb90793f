//! Why an app ends, grouped by who can do something about it.

use std::sync::Arc;

use crate::failure::BoxError;

/// Why an app could not start, or ended by itself.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // The caller described an app that cannot run.
    /// The app has no group.
    #[error("the app has no group")]
    NoGroup,
    /// The app has no route.
    #[error("the app has no route")]
    NoRoute,
    /// Two routes are for the same topic.
    #[error("two routes are for topic {topic}")]
    RouteTwice {
        /// The topic.
        topic: Arc<str>,
    },

    /// A handler or job takes state that the app was not given.
    #[error("a handler takes {0}, which the app was not given: see App::state")]
    NoState(&'static str),
    /// A route reads the topic to which it sends dead letters: each would come back to it.
    #[error("the route of topic {topic} sends dead letters to the same topic")]
    OwnDeadLetters {
        /// The topic.
        topic: String,
    },
    /// The admin port cannot listen.
    #[error("cannot listen at {address}: {source}")]
    Admin {
        /// The address.
        address: String,
        /// Why.
        source: std::io::Error,
    },
    /// A recurring task is not valid.
    #[error("recurring task {task}: {reason}")]
    Task {
        /// Its name.
        task: Arc<str>,
        /// Why.
        reason: String,
    },
    /// Topics of the cluster cannot be made as declared.
    #[error("topics cannot be made as declared: {reasons}")]
    Topics {
        /// Why, topic by topic.
        reasons: String,
    },
    /// Some routes are for partitions, others for topics, which a group assigns.
    #[error("an app reads either partitions of its own or topics that a group assigns")]
    AssignedAndSubscribed,
    /// Records of a share group cannot be read so.
    #[error("a share group has no {0}")]
    NotShared(&'static str),
    /// The index of a segment is not below the number of segments.
    #[error("there is no segment {index} of {count}")]
    NoSegment {
        /// Its index.
        index: u32,
        /// The number of segments.
        count: u32,
    },

    // A topic that refuses records is to blame. No app ends by this: it is what the log says.
    /// What came of a record is refused for good, such as with `MESSAGE_TOO_LARGE` or
    /// `TOPIC_AUTHORIZATION_FAILED`, and no layer takes it. It is tried again every 1 to 30 s.
    #[error("{topic}-{partition} is blocked at offset {offset}: {cause}")]
    Blocked {
        /// Topic of the record.
        topic: String,
        /// Its partition.
        partition: i32,
        /// Its offset.
        offset: i64,
        /// The refusal in words.
        cause: String,
    },

    // Another process is to blame, or who configured it.
    /// Another process is the static member of this id (`group.instance.id`). In classic groups the
    /// one that joins later goes on, and this is `FENCED_INSTANCE_ID`; in groups of the consumer
    /// protocol the earlier one does, and this is `UNRELEASED_INSTANCE_ID`.
    #[error("static member {instance_id} of group {group}: another process has the id: {source}")]
    StaticMember {
        /// The group.
        group: String,
        /// The id.
        instance_id: String,
        /// The coordinator's words.
        source: moldau_client::Error,
    },

    // A part of the app is to blame.
    /// A task that runs beside the handlers failed or panicked.
    #[error("{name}: {source}")]
    Background {
        /// Which.
        name: &'static str,
        /// Why.
        source: BoxError,
    },

    // The cluster is to blame, or does not let this app in.
    /// The cluster cannot be reached, or refuses the app.
    #[error(transparent)]
    Client(#[from] moldau_client::Error),

    // The operating system is to blame.
    /// The thread of the group member could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// The thread of the group member ended.
    #[error("the thread of the group member ended")]
    MemberGone,
    /// The thread of a shard ended.
    #[error("the thread of shard {0} ended")]
    ShardGone(usize),
}
