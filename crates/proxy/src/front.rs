//! From a socket that was accepted to a session: who the client is, where it leads, and the
//! connection upstream.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use moldau_net::tls::{Accepted, ClientHello};
use moldau_net::{Phase, Principal, Refusal, Shutdown, Stream, TlsError};
use moldau_threads::Mutex;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::cluster::Cluster;
use crate::config::Sasl;
use crate::context::SessionContext;
use crate::dial::{self, Connected, OnBehalf};
use crate::gateway::{Destination, Entrance, normal};
use crate::metrics::{Metrics, add};
use crate::rewrite::Rewriter;
use crate::sasl::{self, Renewal};
use crate::session::{Session, Terms};

/// A listener at which clients connect first.
#[derive(Debug)]
pub(crate) struct Front {
    pub(crate) address: SocketAddr,
    pub(crate) closed: Shutdown,
    /// Guards where clients lead that come.
    route: Mutex<Route>,
    metrics: Arc<Metrics>,
}

/// Where clients of a listener lead.
#[derive(Clone, Debug)]
pub(crate) enum Route {
    /// To bootstrap servers of one cluster.
    Bootstrap(Arc<Cluster>),
    /// To the host that their TLS handshake names, in one of these clusters.
    Hosts(Arc<[Arc<Cluster>]>),
}

/// A client that may speak.
struct Admitted {
    stream: Stream,
    /// Where it is.
    address: SocketAddr,
    /// The address by which it came.
    local: SocketAddr,
    /// Principal of the client certificate.
    principal: Option<Principal>,
    /// When it has to have authenticated.
    deadline: Instant,
}

/// Why a client may not speak.
#[derive(Debug, thiserror::Error)]
enum Denied {
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("socket error: {0}")]
    Io(#[from] std::io::Error),
}

impl Front {
    pub(crate) fn new(address: SocketAddr, route: Route, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { address, closed: Shutdown::new(), route: Mutex::new(route), metrics })
    }

    /// Lets clients that come lead elsewhere.
    pub(crate) fn set_route(&self, route: Route) {
        *self.route.lock() = route;
    }

    /// Serves a client to its end. TLS and SASL have to be done by `deadline`.
    pub(crate) fn serve(
        self: &Arc<Self>,
        socket: TcpStream,
        peer: SocketAddr,
        deadline: Instant,
    ) -> Pin<Box<dyn Future<Output = ()>>> {
        let route = self.route.lock().clone();
        match route {
            Route::Bootstrap(cluster) => {
                serve(cluster, Destination::Bootstrap, socket, peer, deadline)
            }
            Route::Hosts(clusters) => {
                Box::pin(Arc::clone(self).serve_host(clusters, socket, peer, deadline))
            }
        }
    }

    async fn serve_host(
        self: Arc<Self>,
        clusters: Arc<[Arc<Cluster>]>,
        socket: TcpStream,
        peer: SocketAddr,
        deadline: Instant,
    ) {
        let Some(first) = clusters.first() else { return };
        let found = Box::pin(self.find(&clusters, socket, peer, deadline)).await;
        match found {
            Ok(Some((cluster, destination, admitted))) => {
                Box::pin(relay(cluster, destination, admitted)).await;
            }
            Ok(None) => {}
            Err(denied) => log_denied(first, peer, &denied),
        }
    }

    /// Reads which host a client wants, and answers its handshake as that cluster.
    async fn find(
        &self,
        clusters: &[Arc<Cluster>],
        socket: TcpStream,
        address: SocketAddr,
        deadline: Instant,
    ) -> Result<Option<(Arc<Cluster>, Destination, Admitted)>, Denied> {
        let local = socket.local_addr()?;
        let hello = ClientHello::read(socket, deadline).await?;
        let host = hello.server_name().map(normal);
        let wanted = host.as_deref().and_then(|host| {
            clusters.iter().find_map(|cluster| {
                let settings = cluster.settings();
                let Entrance::Sni { hosts, .. } = &settings.entrance else { return None };
                let tls = settings.config.downstream.tls.clone()?;
                Some((Arc::clone(cluster), hosts.destination(host)?, tls))
            })
        });
        let Some((cluster, destination, tls)) = wanted else {
            add(&self.metrics.unknown_hosts, 1);
            let error = hello.refuse().await;
            if let Some(any) = clusters.first() {
                let net = any.net_metrics();
                net.refuse((&error).into(), Some(address), &self.address, &error);
            }
            return Ok(None);
        };
        let Accepted { stream, principal, .. } = tls.answer(hello).await?;
        Ok(Some((cluster, destination, Admitted { stream, address, local, principal, deadline })))
    }
}

/// Serves a client that came to the listener of `destination`, to its end. TLS and SASL have to be
/// done by `deadline`.
pub(crate) fn serve(
    cluster: Arc<Cluster>,
    destination: Destination,
    socket: TcpStream,
    peer: SocketAddr,
    deadline: Instant,
) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        match Box::pin(admit(&cluster, socket, peer, deadline)).await {
            Ok(admitted) => relay(cluster, destination, admitted).await,
            Err(denied) => log_denied(&cluster, peer, &denied),
        }
    })
}

async fn admit(
    cluster: &Cluster,
    socket: TcpStream,
    address: SocketAddr,
    deadline: Instant,
) -> Result<Admitted, Denied> {
    let settings = cluster.settings();
    let local = socket.local_addr()?;
    let Some(tls) = &settings.config.downstream.tls else {
        return Ok(Admitted { stream: socket.into(), address, local, principal: None, deadline });
    };
    let Accepted { stream, principal, .. } = tls.accept(socket, deadline).await?;
    Ok(Admitted { stream, address, local, principal, deadline })
}

/// Authenticates the client if that is the proxy's part, connects upstream and relays to the end.
async fn relay(cluster: Arc<Cluster>, destination: Destination, client: Admitted) {
    let Admitted { mut stream, address, local, principal, deadline } = client;
    let principal = principal.unwrap_or_else(Principal::anonymous);
    let settings = cluster.settings();
    let frame_bytes_max = settings.config.limits.frame_bytes_max;
    let name = cluster.shared_name();
    let memory = cluster.memory().account();
    let context = SessionContext::with_limits(name, address, principal, frame_bytes_max, memory);
    let shutdown = cluster.shutdown().clone();
    if let Sasl::Terminate(server) = &settings.config.downstream.sasl {
        let authenticated =
            Box::pin(sasl::authenticate(&mut stream, &cluster, server, &context, deadline));
        let outcome = tokio::select! {
            outcome = authenticated => outcome,
            () = shutdown.reached(Phase::Draining) => return,
        };
        if let Err(refused) = outcome {
            if let Some(cause) = refused.cause() {
                add(&cluster.metrics().authentication_failures, 1);
                refuse(&cluster, cause, address, &refused);
            }
            return;
        }
        add(&cluster.metrics().authentications, 1);
    }
    let on_behalf = OnBehalf { client: address, local };
    let connected = tokio::select! {
        connected = Box::pin(dial::connect(&cluster, destination, Some(on_behalf))) => connected,
        () = shutdown.reached(Phase::Draining) => None,
    };
    let Some(Connected { stream: upstream, session_lifetime }) = connected else { return };
    let renewal = settings.config.upstream.sasl.as_ref().zip(session_lifetime);
    let renewal = renewal.map(|(client, lifetime)| Renewal::new(Arc::clone(client), lifetime));
    let limits = &settings.config.limits;
    let terms = Terms {
        renewal,
        frame_bytes_max,
        idle_timeout: limits.idle_timeout,
        slow_reader_timeout: limits.slow_reader_timeout,
    };
    drop(settings);
    let rewriter = Rewriter::new(Arc::clone(&cluster), local.ip());
    let ended = Session::new(stream, upstream, rewriter, &context, terms).run(&shutdown).await;
    if let Some(cause) = ended.cause() {
        refuse(&cluster, cause, address, &ended);
    }
    // An authentication that is repeated is refused within the session.
    if let Some(sasl) = context.sasl().filter(|sasl| !sasl.borrow().refusal().is_empty()) {
        add(&cluster.metrics().authentication_failures, 1);
        refuse(&cluster, Refusal::Authentication, address, &sasl.borrow().refusal());
    }
    let cluster = cluster.name();
    tracing::debug!(cluster, %address, ?destination, %ended, "a session ended");
}

fn log_denied(cluster: &Cluster, peer: SocketAddr, denied: &Denied) {
    add(&cluster.metrics().handshake_failures, 1);
    match denied {
        Denied::Tls(error) => refuse(cluster, error.into(), peer, error),
        Denied::Io(error) => tracing::debug!(%peer, %error, "client disconnected"),
    }
}

fn refuse(cluster: &Cluster, cause: Refusal, peer: SocketAddr, why: &dyn fmt::Display) {
    cluster.net_metrics().refuse(cause, Some(peer), &cluster.name(), why);
}

#[cfg(test)]
mod tests;
