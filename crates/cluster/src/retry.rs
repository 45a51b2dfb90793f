//! Requests that are asked until there is an answer.

use std::future::Future;
use std::time::Duration;

use tokio::time::{Instant, sleep, timeout_at};

use crate::{Answer, Error};

/// Asks until there is an answer, or the time is over: then the last error is the answer. The
/// request may be under way still.
pub(crate) async fn insist<T, F: Future<Output = Answer<T>>>(
    deadline: Instant,
    ask: impl Fn() -> F,
) -> Answer<T> {
    let mut pause = PAUSE_MIN;
    let mut last = Error::StoreAway("the time is over".into());
    while let Ok(answer) = timeout_at(deadline, ask()).await {
        match answer {
            Err(error) if error.is_retriable() => last = error,
            answer => return answer,
        }
        if Instant::now() + pause >= deadline {
            break;
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
    Err(last)
}

const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
