//! The admin port of an app: figures, health, dead letters.
//!
//! | path | content |
//! |---|---|
//! | `/` | a page for people |
//! | `/metrics` | figures in the OpenMetrics text format |
//! | `/healthz`, `/readyz` | 200, or 503 and why, in a sentence |
//! | `/asyncapi.json` | AsyncAPI document of the routes |
//! | `/api/...` | what the page shows and does |
//!
//! It has a thread and a connection to the cluster of its own, so that it answers while a handler
//! blocks every thread of the app.
//!
//! | module | what it holds |
//! |---|---|
//! | `server` | connections, and the thread that serves them |
//! | `site` | which request is answered by what, and who may ask |
//! | `sampling` | what is asked every few seconds |
//! | `watch` | what was answered |
//! | `health` | whether the app lives, and is ready: no I/O |
//! | `metrics` | the figures as OpenMetrics |
//! | `letters` | dead letters: read, filtered, replayed |

mod health;
mod letters;
mod metrics;
mod sampling;
mod server;
mod site;
mod watch;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use moldau_client::ClusterOptions;

use crate::background::Background;
use crate::status::{Inquiry, RouteName};
use crate::{Error, Result};

/// Options of the admin port.
///
/// An address that only this machine reaches serves everything. Any other address serves metrics
/// and health alone, unless there is a token.
#[derive(Clone)]
pub struct Admin {
    address: String,
    token: Option<String>,
    stalled_max: Duration,
}

impl Admin {
    /// Listens on this address (`host:port`); port 0 takes a free one.
    pub fn at(address: impl Into<String>) -> Self {
        Self { address: address.into(), token: None, stalled_max: STALLED_MAX }
    }

    /// Asks for this token as `Authorization: Bearer ...`, but for metrics and health. The page
    /// asks its reader for it.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// The app is no longer alive once a handler has made no progress for this time. 10 minutes
    /// unless said otherwise.
    #[must_use]
    pub fn stalled_max(mut self, stalled_max: Duration) -> Self {
        self.stalled_max = stalled_max;
        self
    }
}

impl<A: Into<String>> From<A> for Admin {
    fn from(address: A) -> Self {
        Self::at(address)
    }
}

/// Shows no secrets.
impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("address", &self.address).finish_non_exhaustive()
    }
}

/// What the admin port tells about.
pub(crate) struct Subject {
    pub(crate) group: String,
    pub(crate) bootstrap: Vec<String>,
    pub(crate) cluster: ClusterOptions,
    /// How long the member may take to join.
    pub(crate) rebalance_timeout: Duration,
    /// Whether it reads partitions of its own, without a member.
    pub(crate) is_direct: bool,
    /// Topics that it names.
    pub(crate) topics: Vec<Arc<str>>,
    pub(crate) routes: Arc<[RouteName]>,
    pub(crate) inquiry: Inquiry,
    pub(crate) asyncapi: serde_json::Value,
}

/// An admin port that listens.
pub(crate) struct Port {
    admin: Admin,
    listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Port {
    /// Listens.
    ///
    /// # Errors
    /// [`Error::Admin`]: the address cannot be used, or the token cannot be sent in a header.
    pub(crate) fn bind(admin: Admin) -> Result<Self> {
        let failed = |source| Error::Admin { address: admin.address.clone(), source };
        let can_be_sent =
            |token: &String| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !admin.token.as_ref().is_none_or(can_be_sent) {
            let why = "the token is empty or has other letters than visible ones of ASCII";
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, why)));
        }
        let listener = TcpListener::bind(&admin.address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { admin, listener, address })
    }

    /// The task that serves it.
    pub(crate) fn background(self, subject: Subject) -> Background {
        Background::new("admin port", async move |services, lifecycle| {
            let site = site::Site::new(subject, &self, services.clock.clone(), lifecycle.clone());
            Ok(server::serve(self.listener, site, lifecycle).await?)
        })
    }
}

/// Twice Kafka's `max.poll.interval.ms`.
const STALLED_MAX: Duration = Duration::from_mins(10);
