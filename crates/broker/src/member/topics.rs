//! Topics as the sequencer knows them: those that take appends.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use moldau_cluster::{Error, Sequencer, Store, Topic};
use tokio::time::sleep;
use uuid::Uuid;

use super::{Member, RETRY_PAUSE};
use crate::metadata_record::MetadataRecord;
use crate::submissions::records_of;

/// What frames do to topics.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    created: Vec<Topic>,
    /// With their numbers of partitions.
    grown: Vec<(Uuid, i32)>,
    deleted: Vec<Uuid>,
}

/// What frames do to topics.
///
/// # Errors
/// A frame that is none.
pub(super) fn changes(frames: &[Bytes]) -> Result<Changes, String> {
    let mut changes = Changes::default();
    for frame in frames {
        for record in records_of(frame)? {
            match record.first() {
                Some(
                    &(MetadataRecord::TOPIC_CREATED
                    | MetadataRecord::PARTITIONS_GROWN
                    | MetadataRecord::TOPIC_DELETED),
                ) => {}
                _ => continue,
            }
            match MetadataRecord::decode(record)? {
                MetadataRecord::TopicCreated { id, name, partitions, .. } => {
                    changes.created.push(known_as(id, &name, partitions));
                }
                MetadataRecord::PartitionsGrown { id, partitions } => {
                    changes.grown.push((Uuid::from_bytes(id), count(partitions)));
                }
                MetadataRecord::TopicDeleted { id } => changes.deleted.push(Uuid::from_bytes(id)),
                _ => {}
            }
        }
    }
    Ok(changes)
}

/// The sequencer's names are unique, also while a topic is deleted and another of its name made.
fn known_as(id: [u8; 16], name: &str, partitions: u32) -> Topic {
    let id = Uuid::from_bytes(id);
    Topic { id, name: format!("{name}:{id}"), partitions: count(partitions) }
}

fn count(partitions: u32) -> i32 {
    i32::try_from(partitions).unwrap_or(i32::MAX)
}

impl<Q: Sequencer, S: Store> Member<Q, S> {
    pub(super) async fn create_and_grow_topics(&self, changes: &Changes) {
        for topic in &changes.created {
            loop {
                let created = match self.sequencer.create_topic(topic).await {
                    // Of the same id, as no other topic has the name.
                    Err(Error::TopicExists(_)) => Ok(()),
                    created => created,
                };
                match self.troubles.note("create a topic", created) {
                    Ok(()) => break,
                    Err(_) => sleep(RETRY_PAUSE).await,
                }
            }
        }
        self.grow_topics(changes).await;
    }

    async fn grow_topics(&self, changes: &Changes) {
        for (id, partitions) in &changes.grown {
            loop {
                let grown = match self.sequencer.grow_topic(*id, *partitions).await {
                    // It is deleted meanwhile.
                    Err(Error::UnknownLog) => Ok(0),
                    grown => grown,
                };
                match self.troubles.note("add partitions to a topic", grown) {
                    Ok(_) => break,
                    Err(_) => sleep(RETRY_PAUSE).await,
                }
            }
        }
    }

    pub(super) async fn delete_topics(&self, changes: &Changes) {
        for id in &changes.deleted {
            loop {
                let deleted = match self.sequencer.delete_topic(*id).await {
                    Err(Error::UnknownLog) => Ok(()),
                    deleted => deleted,
                };
                match self.troubles.note("delete a topic", deleted) {
                    Ok(()) => break,
                    Err(_) => sleep(RETRY_PAUSE).await,
                }
            }
        }
    }

    /// Ends what the owner before has left half done.
    pub(super) async fn settle_topics(&self) {
        let known = loop {
            let listed = self.sequencer.topics().await;
            match self.troubles.note("list the topics of the sequencer", listed) {
                Ok(known) => break known,
                Err(_) => sleep(RETRY_PAUSE).await,
            }
        };
        let known: HashMap<Uuid, i32> =
            known.iter().map(|topic| (topic.id, topic.partitions)).collect();
        let wanted = self.state.catalog.all();
        let wanted: Vec<Topic> = wanted
            .iter()
            .map(|topic| known_as(topic.id.into_bytes(), &topic.name, topic.partitions))
            .collect();
        let ids: HashSet<Uuid> = wanted.iter().map(|topic| topic.id).collect();
        let deleted = known.keys().filter(|id| !ids.contains(id)).copied().collect();
        let grown = wanted.iter().filter(|topic| {
            known.get(&topic.id).is_some_and(|partitions| *partitions < topic.partitions)
        });
        let grown = grown.map(|topic| (topic.id, topic.partitions)).collect();
        let created = wanted.into_iter().filter(|topic| !known.contains_key(&topic.id)).collect();
        let changes = Changes { created, grown, deleted };
        self.create_and_grow_topics(&changes).await;
        self.delete_topics(&changes).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::submissions::frame_of;
    use crate::topic_config::TopicOverrides;

    #[test]
    fn frames_tell_which_topics_they_create_grow_and_delete() {
        let (id, name, overrides) = ([7; 16], "a".to_owned(), TopicOverrides::new());
        let created = MetadataRecord::TopicCreated { id, name, partitions: 3, overrides }.encode();
        let other = MetadataRecord::Group(vec![1, 2]).encode();
        let grown = MetadataRecord::PartitionsGrown { id, partitions: 5 }.encode();
        let deleted = MetadataRecord::TopicDeleted { id }.encode();
        let frame = |records: &[&[u8]]| frame_of(records.iter().copied());
        let frames = [frame(&[&other, &created]), frame(&[&grown]), frame(&[&deleted])];
        let changes = changes(&frames).unwrap();
        let name = "a:07070707-0707-0707-0707-070707070707".to_owned();
        let id = Uuid::from_bytes(id);
        assert_eq!(changes.created, [Topic { id, name, partitions: 3 }]);
        assert_eq!(changes.grown, [(id, 5)]);
        assert_eq!(changes.deleted, [id]);
    }
}
