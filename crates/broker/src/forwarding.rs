//! The way of forwarded requests: a broker leaves them to the controller, which serves them as it
//! serves its own clients, with the rights of the client that asked.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{Fate, Requests, Wakes};
use moldau_net::{Reply, Response};
use tokio::sync::{mpsc, oneshot};
use tokio::task::yield_now;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::call::Served;
use crate::dispatch;
use crate::forwards::{Enveloped, Forward};
use crate::state::State;
use crate::submissions::Submissions;
use crate::troubles::Troubles;

/// How often a broker looks for requests and answers, whether it is told of them or not.
const POLL: Duration = Duration::from_millis(500);

/// The pause after answers that the database did not confirm.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Requests that are left to the controller at a time.
const ASKED_MAX: usize = 100;

/// The port of a client that another broker serves is not known.
const NO_PORT: u16 = 0;

/// Forwards requests of this broker's clients, and serves those of others as the controller.
pub(crate) struct Forwarding {
    pub(crate) requests: Arc<dyn Requests>,
    pub(crate) wakes: Arc<Wakes>,
    pub(crate) submissions: Arc<Submissions>,
    pub(crate) state: Arc<State>,
    pub(crate) troubles: Troubles,
}

/// A request that waits for the answer of the controller.
struct Asked {
    id: Uuid,
    answer: oneshot::Sender<(Bytes, i64)>,
}

impl Forwarding {
    /// Takes part until the returned future is dropped.
    pub(crate) async fn run(self) {
        let asked = self.submissions.forwards.take().expect("one task takes what is forwarded");
        tokio::join!(self.ask(asked), self.serve());
    }

    /// Leaves requests to the controller, and takes its answers.
    async fn ask(&self, mut waiting: mpsc::Receiver<Forward>) {
        let mut told = self.wakes.requests();
        let mut pending: Vec<Asked> = Vec::new();
        loop {
            let mut forwards = Vec::new();
            tokio::select! {
                _ = waiting.recv_many(&mut forwards, ASKED_MAX) => {
                    pending.extend(self.leave(forwards).await);
                }
                _ = timeout(POLL, told.changed()), if !pending.is_empty() => {}
            }
            told.borrow_and_update();
            self.look(&mut pending).await;
        }
    }

    async fn leave(&self, forwards: Vec<Forward>) -> Vec<Asked> {
        let (mut asked, mut requests) = (Vec::new(), Vec::new());
        for Forward { envelope, answer } in forwards {
            let id = Uuid::new_v4();
            requests.push((id, envelope));
            asked.push(Asked { id, answer });
        }
        let left = self.requests.ask(requests).await;
        if self.troubles.note("leave requests to the controller", left).is_err() {
            // It may have taken effect, so their clients have to ask again.
            return Vec::new();
        }
        self.wakes.announce_requests();
        asked
    }

    async fn look(&self, pending: &mut Vec<Asked>) {
        // Of some, the client is gone or waits no longer.
        let done = pending.extract_if(.., |asked| asked.answer.is_closed());
        let mut done: Vec<Uuid> = done.map(|asked| asked.id).collect();
        let ids: Vec<Uuid> = pending.iter().map(|asked| asked.id).collect();
        if !ids.is_empty() {
            let fates = self.requests.look(ids).await;
            let fates = self.troubles.note("look for answers of the controller", fates);
            for (id, fate) in fates.unwrap_or_default() {
                let Some(at) = pending.iter().position(|asked| asked.id == id) else { continue };
                let asked = pending.swap_remove(at);
                done.push(id);
                if let Fate::Answered { answer, next_sequence } = fate {
                    // Its client may have gone.
                    drop(asked.answer.send((answer, next_sequence)));
                }
            }
        }
        if !done.is_empty()
            && let Err(error) = self.requests.forget(done).await
        {
            tracing::debug!(%error, "failed to remove answered requests, which go later");
        }
    }

    /// Serves the requests of other brokers for as long as this one is the controller.
    async fn serve(&self) {
        let mut told = self.wakes.requests();
        loop {
            told.borrow_and_update();
            if let Some(epoch) = self.submissions.epoch() {
                let taken = self.requests.take(epoch).await;
                let taken = self.troubles.note("look for requests of other brokers", taken);
                if let Ok(taken) = taken
                    && !taken.is_empty()
                {
                    self.answer(epoch, taken).await;
                    continue;
                }
            }
            drop(timeout(POLL, told.changed()).await);
        }
    }

    async fn answer(&self, epoch: i64, taken: Vec<(Uuid, Bytes)>) {
        // All are decided before the first waits, so they become durable together.
        let mut served = Vec::with_capacity(taken.len());
        for (id, envelope) in taken {
            served.push((id, self.decide(&envelope)));
            // The others of the thread have their turn between two of them.
            yield_now().await;
        }
        let mut answers = Vec::with_capacity(served.len());
        for (id, served) in served {
            answers.push((id, answered(served).await));
        }
        // Whoever owns the log no longer does not know what came of its decisions.
        while self.submissions.epoch() == Some(epoch) {
            let answered = self.requests.answer(answers.clone()).await;
            match self.troubles.note("answer requests of other brokers", answered) {
                Ok(()) => return self.wakes.announce_requests(),
                Err(_) => sleep(RETRY_PAUSE).await,
            }
        }
    }

    /// Serves a request as that of a client of this broker; `None` if it is of another version.
    fn decide(&self, envelope: &Bytes) -> Option<Served> {
        let Enveloped { principal, address, frame } = Enveloped::of(envelope)?;
        let peer = SocketAddr::new(address, NO_PORT);
        dispatch::serve_deferred(&self.state, &principal, peer, &frame)
    }
}

/// The bytes of an answer; none for one that closes its connection.
async fn answered(served: Option<Served>) -> Bytes {
    let response = match served {
        Some(Reply::Ready(response)) => response,
        Some(Reply::Later(answer, _) | Reply::Last(answer, _)) => answer.await,
        Some(Reply::Close(reason)) => {
            tracing::warn!(reason, "a request of another broker was not answered");
            Response::none()
        }
        Some(Reply::NoResponse) | None => Response::none(),
    };
    match response.rest.is_empty() {
        true => response.head,
        false => [vec![response.head], response.rest].concat().concat().into(),
    }
}
