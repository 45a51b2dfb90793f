//! A broker of a cluster catches up with the log of metadata before it says that a topic is
//! unknown: another broker may have created it a moment ago.

use std::future::Future;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

/// How long a request waits. The database does not answer if it takes longer.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(1);

/// The requests that wait for the end of the log. One read of the log is for all that came before
/// it.
#[derive(Default)]
pub(crate) struct CatchingUp {
    /// The number of the last request.
    asked: watch::Sender<u64>,
    /// The number of the last request before a read that reached the end of the log.
    reached: watch::Sender<u64>,
}

impl CatchingUp {
    /// Waits until this broker has applied all that is in the log, or for [`CAUGHT_UP_WITHIN`].
    pub(crate) fn wait(&self) -> impl Future<Output = ()> + use<> {
        let mut number = 0;
        self.asked.send_modify(|asked| {
            *asked += 1;
            number = *asked;
        });
        let mut reached = self.reached.subscribe();
        async move {
            drop(timeout(CAUGHT_UP_WITHIN, reached.wait_for(|reached| *reached >= number)).await);
        }
    }

    /// Changes with each request.
    pub(crate) fn asked(&self) -> watch::Receiver<u64> {
        self.asked.subscribe()
    }

    /// A read that began after this request reached the end of the log.
    pub(crate) fn reached(&self, request: u64) {
        self.reached.send_replace(request);
    }
}
