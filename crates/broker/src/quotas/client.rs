//! The quotas of one connection: its limits, remembered, and whether it is muted.
//!
//! While no quota exists, all of this costs a request one comparison.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use moldau_net::Principal;
use moldau_protocol::ErrorCode;
use tokio::time::{Instant, Sleep, sleep_until};

use super::rate::whole;
use super::{ClientQuotas, Limit};
use crate::error::Refusal;
use crate::fetch_session::lock;
use crate::quota_entity::QuotaKey;

/// Keys of users and clients.
const KEYS: [QuotaKey; 4] = [
    QuotaKey::ProducerByteRate,
    QuotaKey::ConsumerByteRate,
    QuotaKey::RequestPercentage,
    QuotaKey::ControllerMutationRate,
];

/// The client of a connection, as quotas see it.
pub(crate) struct QuotaClient {
    quotas: Arc<ClientQuotas>,
    /// Who the client is; it may authenticate anew.
    user: RefCell<Box<str>>,
    remembered: RefCell<Remembered>,
    /// Set while nothing is taken from the client.
    muted: RefCell<Option<Pin<Box<Sleep>>>>,
    muted_until: Cell<Option<Instant>>,
}

/// The limits of the last request.
#[derive(Default)]
struct Remembered {
    /// The generation of quotas from which the limits are.
    generation: u64,
    client_id: Box<str>,
    limits: [Option<Limit>; KEYS.len()],
}

impl QuotaClient {
    pub(crate) fn new(quotas: Arc<ClientQuotas>, user: &str) -> Self {
        Self {
            quotas,
            user: RefCell::new(user.into()),
            remembered: RefCell::default(),
            muted: RefCell::default(),
            muted_until: Cell::new(None),
        }
    }

    /// The client has authenticated as this user.
    pub(crate) fn become_user(&self, user: &str) {
        *self.user.borrow_mut() = user.into();
        *self.remembered.borrow_mut() = Remembered::default();
    }

    /// Who the client is.
    pub(crate) fn user(&self) -> String {
        self.user.borrow().to_string()
    }

    /// Whether the client has not said who it is.
    pub(crate) fn is_anonymous(&self) -> bool {
        **self.user.borrow() == *Principal::anonymous().name()
    }

    /// Whether there may be a limit for anyone.
    pub(crate) fn may_be_limited(&self) -> bool {
        self.quotas.exist()
    }

    /// The limit of a key for this client.
    fn limit(&self, key: QuotaKey, client_id: &str, now_ms: i64) -> Option<Limit> {
        if !self.quotas.exist() {
            return None;
        }
        let generation = self.quotas.generation();
        let mut remembered = self.remembered.borrow_mut();
        if remembered.generation != generation || *remembered.client_id != *client_id {
            let user = self.user.borrow();
            let limits = KEYS.map(|key| self.quotas.limit(key, &user, client_id, now_ms));
            *remembered = Remembered { generation, client_id: client_id.into(), limits };
        }
        let index = KEYS.iter().position(|known| *known == key)?;
        remembered.limits.get(index)?.clone()
    }

    /// Adds what the client used, and returns for how many milliseconds it is throttled.
    pub(crate) fn record(&self, key: QuotaKey, client_id: &str, value: f64, now_ms: i64) -> i32 {
        match self.limit(key, client_id, now_ms) {
            Some(limit) => self.quotas.record(key, &limit, value, now_ms),
            None => 0,
        }
    }

    /// Takes back what [`record`](Self::record) added: the client does not get it.
    pub(crate) fn unrecord(&self, key: QuotaKey, client_id: &str, value: f64, now_ms: i64) {
        if let Some(limit) = self.limit(key, client_id, now_ms) {
            lock(&limit.meter).record(self.quotas.window, limit.rate, -value, now_ms);
        }
    }

    /// Whether the time of the client's requests is limited.
    pub(crate) fn is_timed(&self, client_id: &str, now_ms: i64) -> bool {
        self.limit(QuotaKey::RequestPercentage, client_id, now_ms).is_some()
    }

    /// Adds the time that the client's request took.
    pub(crate) fn record_time(&self, client_id: &str, time: Duration, now_ms: i64) -> i32 {
        let percent_seconds = time.as_secs_f64() * 100.0;
        self.record(QuotaKey::RequestPercentage, client_id, percent_seconds, now_ms)
    }

    /// Most bytes that one fetch of the client gets: what its full windows allow.
    pub(crate) fn fetch_bytes_max(&self, client_id: &str, now_ms: i64) -> Option<u64> {
        let limit = self.limit(QuotaKey::ConsumerByteRate, client_id, now_ms)?;
        Some(whole(limit.rate * self.quotas.window.full_ms() as f64 / 1_000.0))
    }

    /// Adds partitions that the client is about to create or delete, and returns for how many
    /// milliseconds it is throttled.
    ///
    /// # Errors
    /// `THROTTLING_QUOTA_EXCEEDED`, with the time, where `is_strict` and the client has exceeded
    /// its quota before (KIP-599); nothing is added then.
    pub(crate) fn record_mutations(
        &self,
        client_id: &str,
        partitions: f64,
        is_strict: bool,
        now_ms: i64,
    ) -> Result<i32, (i32, Refusal)> {
        let key = QuotaKey::ControllerMutationRate;
        let Some(limit) = self.limit(key, client_id, now_ms) else { return Ok(0) };
        let mut meter = lock(&limit.meter);
        let owed_ms = meter.throttle_ms(self.quotas.window, limit.rate, now_ms);
        if is_strict && owed_ms > 0.0 {
            let refusal = Refusal::new(
                ErrorCode::ThrottlingQuotaExceeded,
                "the quota of partitions created and deleted a second is exceeded",
            );
            return Err((self.quotas.throttled(key, owed_ms), refusal));
        }
        meter.record(self.quotas.window, limit.rate, partitions, now_ms);
        let owed_ms = meter.throttle_ms(self.quotas.window, limit.rate, now_ms);
        drop(meter);
        Ok(self.quotas.throttled(key, owed_ms))
    }

    /// Takes nothing from the client for so many milliseconds, or longer where it is muted for
    /// longer.
    pub(crate) fn mute(&self, throttle_ms: i32) {
        let time = Duration::from_millis(u64::try_from(throttle_ms).unwrap_or(0));
        let until = Instant::now() + time;
        if throttle_ms > 0 && self.muted_until.get().is_none_or(|before| before < until) {
            self.muted_until.set(Some(until));
            *self.muted.borrow_mut() = Some(Box::pin(sleep_until(until)));
        }
    }

    /// Ready once anything is taken from the client.
    pub(crate) fn poll_open(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut muted = self.muted.borrow_mut();
        let Some(time) = muted.as_mut() else { return Poll::Ready(()) };
        let is_over = time.as_mut().poll(cx).is_ready();
        if !is_over {
            return Poll::Pending;
        }
        *muted = None;
        self.muted_until.set(None);
        Poll::Ready(())
    }
}
