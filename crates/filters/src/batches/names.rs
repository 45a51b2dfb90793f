//! The names of topics that messages call by id.

use std::cell::RefCell;

use moldau_protocol::messages::{FetchRequest, ShareFetchRequest};
use moldau_protocol::{ApiKey, Uuid};
use moldau_proxy::{FilterError, RequestFrame, TopicNames, Upstream};

use super::places;

/// Asks for the names of all topics that a request calls by id, and of those that were `missing`
/// when an answer came.
pub(crate) async fn learn(
    names: &TopicNames,
    missing: &MissingNames,
    request: &RequestFrame,
    upstream: &mut Upstream,
) -> Result<(), FilterError> {
    let mut ids = missing.0.take();
    match request.api_key() {
        ApiKey::Produce => ids.extend(places::produce_topic_ids(request)?),
        ApiKey::Fetch if request.api_version() >= FETCH_IDS_SINCE => {
            let request: FetchRequest = request.decode()?;
            ids.extend(request.topics.iter().map(|topic| topic.topic_id));
        }
        ApiKey::ShareFetch => {
            let request: ShareFetchRequest = request.decode()?;
            ids.extend(request.topics.iter().map(|topic| topic.topic_id));
        }
        _ => {}
    }
    if ids.is_empty() {
        return Ok(());
    }
    names.learn(ids.into_iter(), upstream).await
}

/// Ids that were unknown when an answer came. The cluster can be asked only while a request is
/// held, so the next request of the session does it.
#[derive(Debug, Default)]
pub(crate) struct MissingNames(RefCell<Vec<Uuid>>);

impl MissingNames {
    pub(crate) fn note(&self, id: Uuid) {
        let mut missing = self.0.borrow_mut();
        if missing.len() < MISSING_MAX && !missing.contains(&id) {
            missing.push(id);
        }
    }
}

/// The first version of Fetch that calls topics by id (KIP-516).
const FETCH_IDS_SINCE: i16 = 13;

/// Ids that are kept for the next request. A client asks again for what it did not get, so that
/// those beyond have their turn.
const MISSING_MAX: usize = 100;
