//! Sends records on to other topics.

use std::fmt;
use std::sync::Arc;

use super::Layer;
use super::headers::{self, Origin, pipe_header};
use crate::context::Context;
use crate::failure::Failure;
use crate::handler::{Handler, Work};
use crate::message::MessageRef;
use crate::outbox::To;

/// Sends each record to another topic once it is handled, or before, with its key and headers and
/// the headers of [`pipe_header`]. If the topic does not take it, the handling failed. A record
/// that is handled again is sent again.
#[derive(Clone)]
pub struct Pipe {
    topic: Arc<Topic>,
    value: Option<Arc<Value>>,
    when: When,
}

type Topic = dyn Fn(MessageRef<'_>) -> Option<String> + Send + Sync;
type Value = dyn Fn(MessageRef<'_>) -> Option<Vec<u8>> + Send + Sync;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum When {
    Before,
    After,
}

impl Pipe {
    /// Sends records to `topic`, which must exist: to the partition of their key, or to that with
    /// their partition's number modulo the number of partitions.
    pub fn to(topic: impl Into<String>) -> Self {
        let topic = topic.into();
        Self::by(move |_| Some(topic.clone()))
    }

    /// Sends each record to the topic that `choose` names, or to none.
    pub fn by(choose: impl Fn(MessageRef<'_>) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { topic: Arc::new(choose), value: None, when: When::After }
    }

    /// Sends the value that `derive` makes of the record, instead of its own; `None` is null.
    #[must_use]
    pub fn value(
        mut self,
        derive: impl Fn(MessageRef<'_>) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Self {
        self.value = Some(Arc::new(derive));
        self
    }

    /// Sends records before they are handled; each attempt, and each wait of an inner layer, then
    /// sends them again.
    #[must_use]
    pub fn before_handling(mut self) -> Self {
        self.when = When::Before;
        self
    }

    async fn send(&self, work: &impl Work, context: Context<'_>) -> Result<(), Failure> {
        for message in work.messages() {
            let Some(topic) = (self.topic)(message) else { continue };
            let origin = Origin::of(message);
            let partition = origin.partition;
            let added = [
                (pipe_header::TOPIC, origin.topic),
                (pipe_header::PARTITION, partition.to_string()),
                (pipe_header::OFFSET, origin.offset.to_string()),
            ];
            let to = To { topic: &topic, partition, keeps_partition: false };
            let derived = self.value.as_ref().map(|derive| derive(message));
            let value = match &derived {
                Some(derived) => derived.as_deref(),
                None => message.value(),
            };
            headers::send(message, to, value, &added, context).await?;
        }
        Ok(())
    }
}

impl fmt::Debug for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("when", &self.when).finish_non_exhaustive()
    }
}

impl<W: Work> Layer<W> for Pipe {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        if self.when == When::Before {
            self.send(&work, context).await?;
            return inner.call(work, context).await;
        }
        inner.call(work.clone(), context).await?;
        self.send(&work, context).await
    }
}
