//! Requests that filters send of their own.

use std::cell::RefCell;
use std::rc::Rc;

use bytes::BytesMut;
use moldau_protocol::frame::{self, LENGTH_SIZE};
use moldau_protocol::{Message, Reader, Request};
use tokio::sync::oneshot;

use crate::expected::{Expected, Readers};

/// The client id of requests that are not a client's.
pub(crate) const CLIENT_ID: &str = "moldau-proxy";

/// The correlation id of a filter's own requests. Answers come in the order of requests, so that
/// one that the client uses too does no harm.
const CORRELATION_ID: i32 = i32::MIN;

/// Any error of a filter. Its text goes to the log and must hold no secret.
pub type FilterError = Box<dyn std::error::Error + Send + Sync>;

/// A filter's own request, on its way to the scanner that sends it.
#[derive(Debug)]
pub(crate) struct OwnRequest {
    pub(crate) frame: Vec<u8>,
    pub(crate) expected: Expected,
    pub(crate) answer: oneshot::Sender<Vec<u8>>,
}

/// Holds what the filter that is at work wants to be sent.
pub(crate) type Outbox = Rc<RefCell<Option<OwnRequest>>>;

/// Sends requests to the broker to which the session leads.
///
/// They go over the session's own connection and thus with the rights of its client, whatever
/// SASL mechanism it authenticated by: the proxy itself knows no credentials. Only a filter that
/// holds a request can send them. Their answers come behind those to the requests before them,
/// which could not be read while an answer is held.
#[derive(Debug)]
pub struct Upstream {
    /// None if it leads nowhere.
    outbox: Option<Outbox>,
}

impl Upstream {
    pub(crate) fn new(outbox: Outbox) -> Self {
        Self { outbox: Some(outbox) }
    }

    /// One that leads nowhere: every request over it fails. It serves to try a filter without a
    /// session.
    #[must_use]
    pub fn nowhere() -> Self {
        Self { outbox: None }
    }

    /// Sends a request and waits for its answer, while the request at hand waits and nothing
    /// behind it is sent.
    ///
    /// # Errors
    /// The version cannot express the request, the answer cannot be read, or this leads nowhere.
    pub async fn send<Q: Request>(
        &mut self,
        version: i16,
        request: &Q,
    ) -> Result<Q::Response, FilterError> {
        let outbox = self.outbox.as_ref().ok_or("no connection to the cluster")?;
        let mut bytes = BytesMut::new();
        frame::encode_request(&mut bytes, version, CORRELATION_ID, Some(CLIENT_ID), request)?;
        let expected = Expected {
            correlation_id: CORRELATION_ID,
            api_key: Q::KEY.key(),
            api_version: version,
            readers: Readers::ALL,
        };
        let (answer, answered) = oneshot::channel();
        *outbox.borrow_mut() = Some(OwnRequest { frame: bytes.into(), expected, answer });
        let bytes = answered.await?;
        let frame = bytes.get(LENGTH_SIZE..).unwrap_or_default();
        let (_correlation_id, body) = frame::parse_response(frame, Q::KEY, version)?;
        Ok(Q::Response::decode(&mut Reader::new(body), version)?)
    }
}
