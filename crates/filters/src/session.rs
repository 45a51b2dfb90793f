use std::cell::RefCell;
use std::rc::Rc;

use moldau_proxy::{FilterError, RequestFrame, SessionContext, TopicNames, Upstream};

use crate::batches::Names;
use crate::batches::names::{self, MissingNames};

/// What filters of records keep of a session.
#[derive(Debug)]
pub(crate) struct RecordSession {
    pub(crate) context: SessionContext,
    missing: MissingNames,
    /// As stated by the last request; answers do not repeat it.
    client_id: RefCell<Rc<str>>,
}

impl RecordSession {
    pub(crate) fn new(context: &SessionContext) -> Self {
        Self {
            context: context.clone(),
            missing: MissingNames::default(),
            client_id: RefCell::new("".into()),
        }
    }

    /// The client's name for itself, empty if it has none.
    pub(crate) fn client_id(&self) -> Rc<str> {
        Rc::clone(&self.client_id.borrow())
    }

    /// Remembers what answers do not tell: whose request it is, and what its topics are called.
    pub(crate) async fn learn(
        &self,
        request: &RequestFrame,
        topic_names: &TopicNames,
        upstream: &mut Upstream,
    ) -> Result<(), FilterError> {
        self.note_client_id(request);
        names::learn(topic_names, &self.missing, request, upstream).await
    }

    /// The names that an answer needs. Those that are missing are asked for with the next request.
    pub(crate) fn names<'n>(&'n self, known: &'n TopicNames) -> Names<'n> {
        Names { known, missing: Some(&self.missing) }
    }

    pub(crate) fn note_client_id(&self, request: &RequestFrame) {
        let client_id = request.client_id().unwrap_or_default();
        if **self.client_id.borrow() != *client_id {
            self.client_id.replace(client_id.into());
        }
    }
}
