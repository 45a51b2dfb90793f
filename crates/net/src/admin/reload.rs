//! `POST /reload`: reloads the configuration for a client that has the token, and answers with the
//! result.
//!
//! | status | when |
//! |---|---|
//! | 200 | the configuration was applied; the text says what changed |
//! | 401 | the token is missing or wrong |
//! | 404 | no token is configured |
//! | 405 | the method is not POST |
//! | 422 | the configuration was refused and nothing changed; the text says why |
//! | 503 | the process drains |

use std::fmt;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, HeaderValue};
use hyper::{Request, StatusCode};
use tokio::sync::{mpsc, oneshot};
use zeroize::Zeroizing;

use super::{Page, text};
use crate::sasl::secrets_equal;
use crate::shutdown::{Phase, Shutdown};

/// Limit of reloads that are queued. Further ones wait in their connections; the admin port has few
/// of those.
const WANTED_MAX: usize = 1;

/// Token that permits a reload (RFC 6750). Clones share it.
#[derive(Clone)]
pub struct BearerToken(Arc<Zeroizing<String>>);

impl BearerToken {
    /// A token; `None` if no client could send it: it is empty or has other letters than the
    /// visible ones of ASCII.
    #[must_use]
    pub fn new(token: Zeroizing<String>) -> Option<Self> {
        let can_be_sent = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        can_be_sent.then(|| Self(Arc::new(token)))
    }
}

/// Shows no secrets.
impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken").finish_non_exhaustive()
    }
}

/// The page as one token opens it.
#[derive(Clone, Debug)]
pub struct ReloadPage {
    token: BearerToken,
    wanted: mpsc::Sender<ReloadWanted>,
}

/// Someone who knows the token waits for the configuration to be taken anew.
#[derive(Debug)]
pub struct ReloadWanted {
    answer: oneshot::Sender<Result<String, String>>,
}

impl ReloadWanted {
    /// A queue of those who wait.
    #[must_use]
    pub fn channel() -> (mpsc::Sender<Self>, mpsc::Receiver<Self>) {
        mpsc::channel(WANTED_MAX)
    }

    /// Tells what changed, or why nothing did.
    pub fn answer(self, outcome: Result<String, String>) {
        // The requester may be gone.
        drop(self.answer.send(outcome));
    }
}

impl ReloadPage {
    /// A page by which `wanted` learns of those who know the token.
    #[must_use]
    pub fn new(token: BearerToken, wanted: mpsc::Sender<ReloadWanted>) -> Self {
        Self { token, wanted }
    }

    /// Whether a request has the token, by a comparison whose time tells nothing about it.
    pub(super) fn is_open_to(&self, request: &Request<Incoming>) -> bool {
        let given = request.headers().get(AUTHORIZATION).map_or(&[][..], HeaderValue::as_bytes);
        let (scheme, token) = given.split_at_checked(SCHEME.len()).unwrap_or_default();
        let is_known = secrets_equal(self.token.0.as_bytes(), token);
        // The name of a scheme has no case (RFC 9110, 11.1).
        is_known && scheme.eq_ignore_ascii_case(SCHEME)
    }

    /// Has the configuration taken anew.
    pub(super) async fn answer(&self, shutdown: &Shutdown) -> Page {
        let (answer, answered) = oneshot::channel();
        let outcome = async {
            self.wanted.send(ReloadWanted { answer }).await.ok()?;
            answered.await.ok()
        };
        let outcome = tokio::select! {
            outcome = outcome => outcome,
            () = shutdown.reached(Phase::Draining) => None,
        };
        match outcome {
            Some(Ok(changed)) => text(StatusCode::OK, changed),
            Some(Err(why)) => text(StatusCode::UNPROCESSABLE_ENTITY, why),
            None => text(StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned()),
        }
    }
}

const SCHEME: &[u8] = b"Bearer ";
