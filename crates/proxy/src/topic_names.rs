use std::collections::HashMap;
use std::sync::Arc;

use moldau_protocol::messages::MetadataRequest;
use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::{ErrorCode, Uuid};
use moldau_threads::{Mutex, MutexGuard};

use crate::upstream::{FilterError, Upstream};

/// The first version that can ask for topics by id alone (KIP-516).
const METADATA_VERSION: i16 = 12;

/// Names that are remembered. An id never changes its name, so that forgetting them costs no more
/// than asking again.
const NAMES_MAX: usize = 100_000;

/// The names of topics by id, as the cluster tells them. For the filters of one cluster: what one
/// session learned, the others know.
#[derive(Debug, Default)]
pub struct TopicNames {
    /// Guards the names that are known; never held across a wait.
    by_id: Mutex<HashMap<Uuid, Arc<str>>>,
}

impl TopicNames {
    /// The name of a topic, if it was learned.
    #[must_use]
    pub fn get(&self, id: Uuid) -> Option<Arc<str>> {
        self.lock().get(&id).cloned()
    }

    /// Asks for those of `ids` that are not known. Those that are not known then either, the
    /// cluster does not know, or does not show to this client.
    ///
    /// # Errors
    /// The cluster does not answer, or not in a way that can be read.
    pub async fn learn(
        &self,
        ids: impl Iterator<Item = Uuid>,
        upstream: &mut Upstream,
    ) -> Result<(), FilterError> {
        let unknown = {
            let known = self.lock();
            let unknown = ids.filter(|id| !known.contains_key(id));
            let topics = unknown.map(|topic_id| MetadataRequestTopic {
                topic_id,
                name: None,
                ..Default::default()
            });
            topics.collect::<Vec<_>>()
        };
        if unknown.is_empty() {
            return Ok(());
        }
        let request = MetadataRequest {
            topics: Some(unknown),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let answer = upstream.send(METADATA_VERSION, &request).await?;
        let mut known = self.lock();
        for topic in answer.topics {
            let found = topic.error_code == i16::from(ErrorCode::None);
            if let Some(name) = topic.name.filter(|_| found) {
                if known.len() >= NAMES_MAX {
                    known.clear();
                }
                known.insert(topic.topic_id, name.into());
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, Arc<str>>> {
        self.by_id.lock()
    }
}
