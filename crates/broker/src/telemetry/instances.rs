//! When a client may ask for its subscription and push its metrics.
//!
//! As in Kafka, an instance is known until its connection ends, or some intervals after its last
//! request; of too many, the one goes that would be forgotten first.

use std::collections::{BTreeSet, HashMap};

use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::Crc32c;

use super::subscriptions::{Client, Subscriptions, Wanted};
use crate::error::Refusal;
use crate::share_session::ConnectionId;

/// Most instances that are known, as in Kafka.
const INSTANCES_MAX: usize = 16_384;

/// An instance is known for at least so long after a request, in milliseconds, as in Kafka.
const KNOWN_FOR_MS_MIN: i64 = 60_000;

/// Intervals after which a client that does not push is gone.
const KNOWN_FOR_INTERVALS: i64 = 3;

/// How long after a request a client of this interval counts as gone, in milliseconds.
pub(super) fn known_for_ms(interval_ms: i32) -> i64 {
    KNOWN_FOR_MS_MIN.max(KNOWN_FOR_INTERVALS * i64::from(interval_ms))
}

/// What a push says of itself.
pub(crate) struct Push {
    pub(crate) subscription_id: i32,
    pub(crate) is_terminating: bool,
    pub(crate) compression_type: i8,
    pub(crate) bytes: usize,
}

/// One client.
#[derive(Debug)]
struct Instance {
    wanted: Wanted,
    subscription_id: i32,
    /// The generation of subscriptions from which this is.
    generation: u64,
    connection: ConnectionId,
    /// Times of the last requests that were accepted, in milliseconds.
    last_get_ms: i64,
    last_push_ms: i64,
    last_error: ErrorCode,
    is_terminating: bool,
    forgotten_ms: i64,
}

/// The clients that are known.
#[derive(Debug, Default)]
pub(crate) struct Instances {
    by_id: HashMap<Uuid, Instance>,
    /// Which is forgotten when.
    forgotten: BTreeSet<(i64, Uuid)>,
    by_connection: HashMap<ConnectionId, Uuid>,
}

/// A change of what is wanted makes a new instance, which may ask at once.
impl Instances {
    /// How many are known.
    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// What a client is to push, with the id of its subscription.
    ///
    /// # Errors
    /// `THROTTLING_QUOTA_EXCEEDED` for a client that asks too early.
    pub(crate) fn get(
        &mut self,
        (subscriptions, generation): (&Subscriptions, u64),
        (client, connection): (&Client, ConnectionId),
        now_ms: i64,
    ) -> Result<(Wanted, i32), Refusal> {
        let instance = self.instance((subscriptions, generation), (client, connection), now_ms);
        let since_ms = now_ms.saturating_sub(instance.last_get_ms.max(instance.last_push_ms));
        let is_due = since_ms >= i64::from(instance.wanted.interval_ms);
        let must_ask = matches!(
            instance.last_error,
            ErrorCode::UnknownSubscriptionId | ErrorCode::UnsupportedCompressionType
        );
        if !is_due && !must_ask {
            return Err(too_early());
        }
        if is_due {
            instance.last_get_ms = now_ms;
        }
        instance.last_error = ErrorCode::None;
        Ok((instance.wanted.clone(), instance.subscription_id))
    }

    /// Accepts a push, and returns the interval of the client in milliseconds.
    ///
    /// # Errors
    /// Kafka's code of what is wrong with it.
    pub(crate) fn push(
        &mut self,
        (subscriptions, generation): (&Subscriptions, u64),
        (client, connection): (&Client, ConnectionId),
        push: &Push,
        bytes_max: usize,
        now_ms: i64,
    ) -> Result<i32, Refusal> {
        let instance = self.instance((subscriptions, generation), (client, connection), now_ms);
        let accepted = instance.accept(push, bytes_max, now_ms);
        instance.last_error = accepted.as_ref().err().map_or(ErrorCode::None, |it| it.code);
        instance.is_terminating = push.is_terminating;
        accepted.map(|()| instance.wanted.interval_ms)
    }

    /// The metrics of a client could not be read.
    pub(crate) fn refused(&mut self, id: Uuid, code: ErrorCode) {
        if let Some(instance) = self.by_id.get_mut(&id) {
            instance.last_error = code;
        }
    }

    /// Forgets the client of a connection.
    pub(crate) fn disconnected(&mut self, connection: ConnectionId) {
        if let Some(id) = self.by_connection.remove(&connection) {
            self.forget(id);
        }
    }

    fn forget(&mut self, id: Uuid) {
        let Some(instance) = self.by_id.remove(&id) else { return };
        self.forgotten.remove(&(instance.forgotten_ms, id));
        if self.by_connection.get(&instance.connection) == Some(&id) {
            self.by_connection.remove(&instance.connection);
        }
    }

    fn instance(
        &mut self,
        (subscriptions, generation): (&Subscriptions, u64),
        (client, connection): (&Client, ConnectionId),
        now_ms: i64,
    ) -> &mut Instance {
        let id = client.instance_id;
        while let Some((forgotten_ms, oldest)) = self.forgotten.first().copied()
            && (forgotten_ms <= now_ms
                || (self.by_id.len() >= INSTANCES_MAX && !self.by_id.contains_key(&id)))
        {
            self.forget(oldest);
        }
        let known = self.by_id.remove(&id);
        if let Some(known) = &known {
            self.forgotten.remove(&(known.forgotten_ms, id));
            if known.connection != connection {
                self.by_connection.remove(&known.connection);
            }
        }
        let instance = match known {
            Some(known) if known.generation == generation => known,
            _ => Instance::new(subscriptions.wanted(client), generation, client, connection),
        };
        let forgotten_ms = now_ms.saturating_add(known_for_ms(instance.wanted.interval_ms));
        self.forgotten.insert((forgotten_ms, id));
        self.by_connection.insert(connection, id);
        let instance = Instance { connection, forgotten_ms, ..instance };
        self.by_id.entry(id).insert_entry(instance).into_mut()
    }
}

impl Instance {
    fn new(wanted: Wanted, generation: u64, client: &Client, connection: ConnectionId) -> Self {
        Self {
            subscription_id: subscription_id(&wanted, client.instance_id),
            wanted,
            generation,
            connection,
            last_get_ms: 0,
            last_push_ms: 0,
            last_error: ErrorCode::None,
            is_terminating: false,
            forgotten_ms: 0,
        }
    }

    fn accept(&mut self, push: &Push, bytes_max: usize, now_ms: i64) -> Result<(), Refusal> {
        if self.is_terminating {
            let message = "the client said before that it sends no more metrics";
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        // Clients spread their first push over the interval.
        let is_first = self.last_get_ms > self.last_push_ms;
        let since_ms = now_ms.saturating_sub(self.last_push_ms);
        let is_due = is_first || since_ms >= i64::from(self.wanted.interval_ms);
        if is_due {
            self.last_push_ms = now_ms;
        } else if !push.is_terminating {
            return Err(too_early());
        }
        if push.subscription_id != self.subscription_id {
            let message = "the client's subscription has changed";
            return Err(Refusal::new(ErrorCode::UnknownSubscriptionId, message));
        }
        if !(0..=4).contains(&push.compression_type) {
            let message = format!("there is no compression type {}", push.compression_type);
            return Err(Refusal::new(ErrorCode::UnsupportedCompressionType, message));
        }
        if push.bytes > bytes_max {
            let message = format!("the limit is {bytes_max} bytes");
            return Err(Refusal::new(ErrorCode::TelemetryTooLarge, message));
        }
        Ok(())
    }
}

fn too_early() -> Refusal {
    let message = "the interval between two requests for metrics has not passed";
    Refusal::new(ErrorCode::ThrottlingQuotaExceeded, message)
}

/// The same for the same client that is to push the same.
fn subscription_id(wanted: &Wanted, id: Uuid) -> i32 {
    let mut crc = Crc32c::new();
    for metric in &wanted.metrics {
        crc.update(metric.as_bytes());
        crc.update(b",");
    }
    crc.update(&wanted.interval_ms.to_be_bytes());
    crc.update(id.as_bytes());
    i32::from_ne_bytes(crc.value().to_ne_bytes())
}
