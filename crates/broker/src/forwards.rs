//! Requests of clients on their way to the controller of a cluster (KIP-590).
//!
//! A client may ask any broker to change metadata, and only the controller decides. The broker
//! authenticates the client, and leaves the request to the controller with the client's principal
//! and address, in the form of Kafka's Envelope. It goes through the database that all brokers
//! share, so the controller takes it from nobody else.

use std::future::Future;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use moldau_net::Principal;
use moldau_protocol::Message;
use moldau_protocol::messages::EnvelopeRequest;
use moldau_threads::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

/// How long a request may be on its way: a controller that ends has a successor by then, and
/// Kafka's clients wait as long for an answer.
const FORWARDED_WITHIN: Duration = Duration::from_secs(30);

/// Requests that wait to be left to the controller. More are refused: the database does not answer.
const WAITING_MAX: usize = 1_024;

/// Bytes of a request. Longer ones are not forwarded, so that rows of the database stay small.
const REQUEST_BYTES_MAX: usize = 8 << 20;

/// The version of Envelope.
const ENVELOPE: i16 = 0;

/// The requests of one broker that another one is to answer.
pub(crate) struct Forwards {
    waiting: mpsc::Sender<Forward>,
    /// Guards what takes them, until that is taken itself.
    taken: Mutex<Option<mpsc::Receiver<Forward>>>,
    /// The first frame of the log that this broker has not applied.
    applied: watch::Sender<i64>,
}

/// A request that is to be left to the controller.
pub(crate) struct Forward {
    /// An encoded Envelope.
    pub(crate) envelope: Bytes,
    /// Takes the answer, and the frame before which all have to be applied first. Its end says that
    /// nobody knows what came of the request.
    pub(crate) answer: oneshot::Sender<(Bytes, i64)>,
}

/// A request as the controller sees it.
pub(crate) struct Enveloped {
    pub(crate) principal: Principal,
    pub(crate) address: IpAddr,
    pub(crate) frame: Bytes,
}

impl Default for Forwards {
    fn default() -> Self {
        let (waiting, taken) = mpsc::channel(WAITING_MAX);
        Self { waiting, taken: Mutex::new(Some(taken)), applied: watch::Sender::default() }
    }
}

impl Forwards {
    /// The first frame of the log that this broker has not applied.
    pub(crate) fn position(&self) -> i64 {
        *self.applied.borrow()
    }

    /// Leaves a request to the controller. The answer comes once this broker follows what it tells
    /// of; without one, nobody knows what came of the request. `None` where it cannot be left.
    pub(crate) fn ask(
        &self,
        principal: &Principal,
        address: IpAddr,
        frame: &[u8],
    ) -> Option<impl Future<Output = Option<Bytes>> + use<>> {
        if frame.len() > REQUEST_BYTES_MAX {
            return None;
        }
        let octets = match address {
            IpAddr::V4(address) => Bytes::copy_from_slice(&address.octets()),
            IpAddr::V6(address) => Bytes::copy_from_slice(&address.octets()),
        };
        let envelope = EnvelopeRequest {
            request_data: Bytes::copy_from_slice(frame),
            request_principal: Some(Bytes::from(principal.to_string())),
            client_host_address: octets,
            ..EnvelopeRequest::default()
        };
        let (answer, answered) = oneshot::channel();
        let forward = Forward { envelope: envelope.to_bytes(ENVELOPE).ok()?, answer };
        // A full queue refuses it.
        self.waiting.try_send(forward).ok()?;
        let mut applied = self.applied.subscribe();
        let answered = async move {
            let (answer, next_sequence) = answered.await.ok()?;
            applied.wait_for(|applied| *applied >= next_sequence).await.ok()?;
            Some(answer)
        };
        Some(async move { timeout(FORWARDED_WITHIN, answered).await.ok().flatten() })
    }

    /// What takes the requests, for the one task that leaves them to the controller.
    pub(crate) fn take(&self) -> Option<mpsc::Receiver<Forward>> {
        self.taken.lock().take()
    }

    /// Frames before this one are applied.
    pub(crate) fn applied(&self, next_sequence: i64) {
        self.applied.send_replace(next_sequence);
    }
}

impl Enveloped {
    /// Reads what another broker has left; `None` for what is of another version.
    pub(crate) fn of(envelope: &Bytes) -> Option<Self> {
        let envelope = EnvelopeRequest::from_bytes(envelope, ENVELOPE).ok()?;
        let principal = envelope.request_principal?;
        let principal = std::str::from_utf8(&principal).ok()?.parse().ok()?;
        let octets = envelope.client_host_address.as_ref();
        let address = match <[u8; 4]>::try_from(octets) {
            Ok(octets) => IpAddr::from(octets),
            Err(_) => IpAddr::from(<[u8; 16]>::try_from(octets).ok()?),
        };
        Some(Self { principal, address, frame: envelope.request_data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_tells_who_asks_and_for_what() {
        for address in ["192.0.2.7", "2001:db8::7"] {
            let (forwards, address) = (Forwards::default(), address.parse().unwrap());
            let principal = Principal::new("User", "CN=a:b");
            assert!(forwards.ask(&principal, address, b"frame").is_some());
            let forward = forwards.take().unwrap().try_recv().unwrap();
            let enveloped = Enveloped::of(&forward.envelope).unwrap();
            assert_eq!((enveloped.principal, enveloped.address), (principal, address));
            assert_eq!(enveloped.frame, b"frame"[..]);
        }
        assert!(Enveloped::of(&Bytes::from_static(b"of another version")).is_none());
    }

    #[test]
    fn a_request_that_is_too_long_or_one_too_many_is_not_left_to_the_controller() {
        let (forwards, anonymous) = (Forwards::default(), Principal::anonymous());
        let address = IpAddr::from([192, 0, 2, 7]);
        assert!(forwards.ask(&anonymous, address, &vec![0; REQUEST_BYTES_MAX + 1]).is_none());
        for _ in 0..WAITING_MAX {
            assert!(forwards.ask(&anonymous, address, b"frame").is_some());
        }
        assert!(forwards.ask(&anonymous, address, b"frame").is_none());
    }
}
