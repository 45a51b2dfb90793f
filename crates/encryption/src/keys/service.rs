//! Calls to a key management service: attempts, pauses, and what is counted of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};

use super::circuit::{CALL_TIME_MAX, Circuit, Turn};
use super::counters::{KeyCounters, Operation};
use crate::{Kms, KmsError, KmsFuture};

/// A service as all who need it share it.
pub(super) struct Service {
    kms: Arc<dyn Kms>,
    pub(super) counters: KeyCounters,
    /// Guards when the service may be asked, and the randomness of pauses.
    state: Mutex<State>,
}

struct State {
    circuit: Circuit,
    random: fastrand::Rng,
}

impl Service {
    /// `seed` decides how pauses vary.
    pub(super) fn new(kms: Arc<dyn Kms>, seed: u64) -> Self {
        let state = State { circuit: Circuit::default(), random: fastrand::Rng::with_seed(seed) };
        Self { kms, counters: KeyCounters::default(), state: Mutex::new(state) }
    }

    /// Asks until there is an answer, a few times at most.
    pub(super) async fn call<'a, T>(
        &'a self,
        operation: Operation,
        ask: impl Fn(&'a dyn Kms) -> KmsFuture<'a, T>,
    ) -> Result<T, KmsError> {
        let mut outcome = self.attempt(operation, &ask).await;
        for delay in RETRY_DELAYS {
            if !matches!(outcome, Err(KmsError::Unavailable(_))) {
                break;
            }
            let jitter = self.state().random.f64();
            sleep(delay.mul_f64(0.75 + jitter / 2.0)).await;
            outcome = self.attempt(operation, &ask).await;
        }
        outcome
    }

    async fn attempt<'a, T>(
        &'a self,
        operation: Operation,
        ask: impl Fn(&'a dyn Kms) -> KmsFuture<'a, T>,
    ) -> Result<T, KmsError> {
        self.state().circuit.admit(Instant::now())?;
        let outcome = timeout(CALL_TIME_MAX, ask(&*self.kms)).await.unwrap_or_else(|_| {
            let seconds = CALL_TIME_MAX.as_secs();
            Err(KmsError::Unavailable(format!("no answer within {seconds} s")))
        });
        let error = outcome.as_ref().err();
        self.counters.count_call(operation, error);
        let turn = {
            let mut state = self.state();
            let jitter = state.random.f64();
            state.circuit.observe(Instant::now(), error, jitter)
        };
        match (turn, error) {
            (Some(Turn::Down), Some(error)) => {
                tracing::warn!(%error, "the key service does not answer; cached keys stay in use")
            }
            (Some(Turn::Up), _) => tracing::info!("the key service answers again"),
            _ => {}
        }
        outcome
    }

    /// Lets the service do what is due.
    pub(super) async fn maintain(&self) -> Result<(), KmsError> {
        self.kms.maintain().await
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // No code under this lock can panic half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delays before the second and the third attempt, each varied by a quarter.
const RETRY_DELAYS: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(1)];
