//! A broker of a cluster makes sure that it knows all of the log of metadata, before it says that a
//! topic is unknown, or reads the offsets of a group. One that follows the log reads it to its end:
//! another broker may have created the topic a moment ago. The owner asks whether it still owns the
//! log: it may have been paused for so long that another broker took over.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a request waits. The database does not answer if it takes longer.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(1);

/// The requests that wait for the end of the log. One look at the log is for all that came before
/// it.
#[derive(Default)]
pub(crate) struct CatchingUp {
    /// The number of the last request.
    asked: watch::Sender<u64>,
    /// The number of the last request before a look after which this broker knew all of the log.
    reached: watch::Sender<u64>,
}

impl CatchingUp {
    /// Waits until this broker knows all that is in the log; `false` after [`CAUGHT_UP_WITHIN`].
    pub(crate) fn wait(&self) -> impl Future<Output = bool> + use<> {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        let mut reached = self.reached.subscribe();
        async move {
            let reached = reached.wait_for(|reached| *reached >= number);
            matches!(timeout(CAUGHT_UP_WITHIN, reached).await, Ok(Ok(_)))
        }
    }

    /// Changes with each request.
    pub(crate) fn asked(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }

    /// A look that began after this request has found all that is in the log.
    pub(crate) fn reached(&self, request: u64) {
        self.reached.send_replace(request);
    }
}
