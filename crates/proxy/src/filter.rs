//! What a filter is: the interface between the proxy and code that looks at messages or changes
//! them.
//!
//! A virtual cluster has a list of filters. Requests go through them in the order of the list, and
//! answers in the reverse order, so that the first filter stands next to the client. A filter says
//! once which messages it needs; all others pass it unread.

use std::fmt;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use moldau_protocol::ApiKey;

use crate::context::SessionContext;
use crate::frame::{RequestFrame, ResponseFrame};
use crate::upstream::{FilterError, Upstream};

/// Which way a message goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Direction {
    /// From the client to the cluster.
    Request,
    /// From the cluster to the client.
    Response,
}

/// Result of a filter, at once or later. While the filter waits, its connection keeps the order of
/// messages, further ones wait in the sockets, and other connections go on.
pub type FilterFuture<T> = Pin<Box<dyn Future<Output = Result<T, FilterError>>>>;

/// A filter of a virtual cluster, shared by all its sessions.
pub trait Filter: fmt::Debug + Send + Sync {
    /// Names the kind of filter in logs and metrics.
    fn name(&self) -> &'static str;

    /// Whether the filter needs these messages; asked once for each when its chain is made. They
    /// are held whole until it has seen them. A version that is not known to the proxy cannot pass
    /// by a filter: it is not offered, and ends the session that uses it.
    fn claims(&self, api: ApiKey, direction: Direction) -> bool;

    /// Whether clients may use an API at all, asked once when the proxy starts; `None` is one that
    /// the proxy does not know. What is refused is not offered, and ends the session that uses it
    /// all the same, as Kafka does with an API that it does not have.
    fn admits(&self, _api: Option<ApiKey>) -> bool {
        true
    }

    /// What handles the messages of one session, on one thread. A reload may give a session that
    /// stands other filters, between two requests.
    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter>;

    /// Work beside the sessions, started with a chain that the filter is in, and stopped with it.
    fn background(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Counters of the filter, for the metrics page.
    fn metrics(&self) -> Vec<FilterMetric> {
        Vec::new()
    }
}

/// A filter at work on one session. It sees requests one at a time and in order, and answers
/// likewise, but an answer may come while a request waits. For each request that it forwarded, that
/// expects a response, and whose answer it did not decline, it sees exactly one answer if it claims
/// that.
///
/// An error ends the session; it is logged and counted.
pub trait SessionFilter {
    /// Handles a request that the filter claims.
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        drop(upstream);
        Box::pin(std::future::ready(Ok(RequestOutcome::Forward(request))))
    }

    /// Handles an answer that the filter claims.
    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(std::future::ready(Ok(response)))
    }
}

/// How a request is handled.
#[derive(Debug)]
pub enum RequestOutcome {
    /// It goes on to the next filter, and at last to the cluster.
    Forward(RequestFrame),
    /// It goes on likewise, and this filter declines the answer although it claims such ones. What
    /// no filter wants passes as it arrives, and is not held.
    ForwardOnly(RequestFrame),
    /// It is answered, in its turn; the cluster never sees it. A client that expects no answer is
    /// disconnected instead, so that it learns of the trouble, as Kafka does.
    Respond(ResponseFrame),
    /// It is answered, in its turn, and the session ends once that answer and all before it were
    /// sent.
    RespondAndClose(ResponseFrame),
    /// The session ends once this request was sent, if there is one, and all answers have come.
    Close(Option<RequestFrame>),
}

/// One value of a counter. Metrics of one name should have the same help and labels.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FilterMetric {
    /// The name without the prefix of the proxy and the suffix of counters.
    pub name: &'static str,
    /// What is counted.
    pub help: &'static str,
    /// Further labels beside the virtual cluster's.
    pub labels: Vec<(&'static str, String)>,
    /// How much was counted.
    pub value: u64,
}
