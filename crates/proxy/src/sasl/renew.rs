use std::pin::Pin;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;

use moldau_net::sasl::{SaslClient, SaslExchange, SaslStep};
use tokio::time::{Instant, Sleep, sleep_until, timeout};

use crate::upstream::{FilterError, Upstream};

/// The first version that tells a lifetime is 1; every broker that tells one serves 2.
const AUTHENTICATE_VERSION: i16 = 2;

/// How long the cluster may take for it. The client waits meanwhile, and is not watched.
const RENEWED_WITHIN: Duration = Duration::from_secs(30);

/// What comes of it: how long the cluster takes the authentication for granted from now on.
pub(crate) type Renewing = Pin<Box<dyn Future<Output = Result<Option<Duration>, FilterError>>>>;

/// The proxy's own authentication with the cluster, which ends while the session goes on
/// (KIP-368). It is renewed between two requests while no answer is awaited, since the cluster
/// takes nothing else meanwhile.
pub(crate) struct Renewal {
    client: Arc<SaslClient>,
    due: Pin<Box<Sleep>>,
    is_due: bool,
}

impl Renewal {
    pub(crate) fn new(client: Arc<SaslClient>, lifetime: Duration) -> Self {
        let due = Box::pin(sleep_until(Instant::now() + early(lifetime)));
        Self { client, due, is_due: false }
    }

    /// Whether it is time; the task is woken when it will be.
    pub(crate) fn poll_due(&mut self, cx: &mut Context<'_>) -> bool {
        self.is_due = self.is_due || self.due.as_mut().poll(cx).is_ready();
        self.is_due
    }

    /// Whether it was time when that was last asked.
    pub(crate) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Authenticates anew over `upstream`.
    pub(crate) fn begin(&self, mut upstream: Upstream) -> Renewing {
        let client = Arc::clone(&self.client);
        let renewing = async move {
            let mut exchange = client.begin().await?;
            let version = SaslExchange::HANDSHAKE_VERSION;
            let agreed = upstream.send(version, &exchange.handshake()).await?;
            let mut message = exchange.chosen(&agreed)?;
            loop {
                let answer = upstream.send(AUTHENTICATE_VERSION, &message).await?;
                match exchange.answered(&answer)? {
                    SaslStep::Send(next) => message = next,
                    SaslStep::Done { lifetime } => return Ok(lifetime),
                }
            }
        };
        Box::pin(async {
            let renewed = timeout(RENEWED_WITHIN, renewing).await;
            renewed.unwrap_or_else(|_| Err("the cluster does not answer".into()))
        })
    }

    /// The cluster has accepted it for `lifetime`.
    pub(crate) fn renewed(&mut self, lifetime: Option<Duration>) {
        // Without a lifetime it never ends; a session of a year will have ended before.
        let lifetime = lifetime.unwrap_or(Duration::from_hours(24 * 365));
        self.is_due = false;
        self.due.as_mut().reset(Instant::now() + early(lifetime));
    }
}

/// Between 85 and 95 % of the lifetime, as Kafka's clients do, so that not all come at once.
fn early(lifetime: Duration) -> Duration {
    lifetime.mul_f64(fastrand::f64().mul_add(0.1, 0.85))
}
