//! Connections to the real cluster, secured and authenticated as its settings say.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use moldau_net::{SaslError, Stream, TlsError, proxy_protocol};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::cluster::Cluster;
use crate::config::UpstreamSettings;
use crate::gateway::Destination;
use crate::metrics::add;
use crate::upstream::CLIENT_ID;

/// A server that does not accept for this long counts as unreachable; Kafka's
/// `socket.connection.setup.timeout.ms`.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long TLS and SASL may take.
const SECURE_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to a server of the cluster.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) stream: Stream,
    /// How long the cluster takes the authentication for granted (KIP-368); `None` for ever.
    pub(crate) session_lifetime: Option<Duration>,
}

/// Between which addresses the connection is that this one stands for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnBehalf {
    pub(crate) client: SocketAddr,
    pub(crate) local: SocketAddr,
}

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
enum Unusable {
    #[error("{0}")]
    Connect(io::Error),
    #[error("no response in time")]
    TimedOut,
    #[error("TLS: {0}")]
    Tls(#[from] TlsError),
    #[error("SASL: {0}")]
    Sasl(#[from] SaslError),
}

/// Connects to `destination`; bootstrap servers are tried in turn. Failures are counted and logged,
/// and let the brokers be asked for anew.
pub(crate) async fn connect(
    cluster: &Cluster,
    destination: Destination,
    on_behalf: Option<OnBehalf>,
) -> Option<Connected> {
    if let Destination::Broker(node_id) = destination
        && timeout(CONNECT_TIMEOUT, cluster.knows(node_id)).await.is_err()
    {
        refused(cluster, destination, &format_args!("unknown broker id"));
        return None;
    }
    let settings = cluster.settings();
    for server in cluster.servers(destination) {
        match connect_to(&server, &settings.config.upstream, on_behalf).await {
            Ok(connected) => {
                add(&cluster.metrics().upstream_connects, 1);
                if destination == Destination::Bootstrap {
                    cluster.served(&server);
                }
                return Some(connected);
            }
            Err(error) => refused(cluster, destination, &format_args!("{server}: {error}")),
        }
    }
    cluster.want_discovery();
    None
}

fn refused(cluster: &Cluster, destination: Destination, error: &dyn fmt::Display) {
    add(&cluster.metrics().upstream_connect_errors, 1);
    cluster.logs.connect.log(|unlogged| {
        let cluster = cluster.name();
        tracing::warn!(cluster, ?destination, %error, unlogged, "failed to connect to a server");
    });
}

async fn connect_to(
    server: &str,
    settings: &UpstreamSettings,
    on_behalf: Option<OnBehalf>,
) -> Result<Connected, Unusable> {
    let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect(server)).await;
    let mut socket = connected.map_err(|_| Unusable::TimedOut)?.map_err(Unusable::Connect)?;
    // Small requests must not wait for the server's delayed acknowledgement.
    socket.set_nodelay(true).map_err(Unusable::Connect)?;
    let secured = timeout(SECURE_TIMEOUT, async {
        if settings.proxy_protocol {
            // Without a client the proxy speaks for itself.
            let own = socket.local_addr().map_err(Unusable::Connect)?;
            let told = on_behalf.unwrap_or(OnBehalf { client: own, local: own });
            let header = proxy_protocol::encode_v2(told.client, told.local);
            socket.write_all(&header).await.map_err(Unusable::Connect)?;
        }
        let mut stream = match &settings.tls {
            Some(tls) => tls.connect(socket, host_of(server)).await?,
            None => Stream::from(socket),
        };
        let session_lifetime = match &settings.sasl {
            Some(sasl) => sasl.authenticate(&mut stream, CLIENT_ID).await?,
            None => None,
        };
        Ok(Connected { stream, session_lifetime })
    });
    secured.await.map_err(|_| Unusable::TimedOut)?
}

/// The host of `host:port`, where an IPv6 address stands in brackets.
fn host_of(server: &str) -> &str {
    let host = server.rsplit_once(':').map_or(server, |(host, _)| host);
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::host_of;

    #[test]
    fn the_host_of_a_server_is_split_from_its_port() {
        for (server, host) in [("b.example:9092", "b.example"), ("[::1]:9092", "::1")] {
            assert_eq!(host_of(server), host);
        }
    }
}
