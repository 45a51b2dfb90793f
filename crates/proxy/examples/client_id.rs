//! A filter in few lines: puts a prefix before the client id of requests that quotas count, so that
//! the clients of one virtual cluster share a quota of their own upstream.
//!
//! ```text
//! cargo run --example client_id -- 127.0.0.1:19092 127.0.0.1:9092 tenant-a.
//! ```

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use moldau_protocol::ApiKey;
use moldau_proxy::{
    Config, Direction, Filter, FilterFuture, Gateway, Proxy, RequestFrame, RequestOutcome,
    SessionContext, SessionFilter, Upstream, VirtualCluster,
};

/// The filter, one for each virtual cluster.
#[derive(Debug)]
pub(crate) struct ClientIdPrefix(pub(crate) String);

impl Filter for ClientIdPrefix {
    fn name(&self) -> &'static str {
        "client_id_prefix"
    }

    fn claims(&self, api: ApiKey, direction: Direction) -> bool {
        direction == Direction::Request && matches!(api, ApiKey::Produce | ApiKey::Fetch)
    }

    fn session(self: Arc<Self>, _: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Renaming(self))
    }
}

/// The filter at work on one session.
struct Renaming(Arc<ClientIdPrefix>);

impl SessionFilter for Renaming {
    fn request(self: Rc<Self>, request: RequestFrame, _: Upstream) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let ClientIdPrefix(prefix) = &*self.0;
            let client_id = format!("{prefix}{}", request.client_id().unwrap_or_default());
            Ok(RequestOutcome::Forward(request.with_client_id(Some(&client_id))?))
        })
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [bootstrap, upstream, prefix] = &arguments[..] else {
        return Err("usage: client_id LISTEN UPSTREAM PREFIX".into());
    };
    let bootstrap = bootstrap.parse()?;
    let gateway = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    let proxy = Proxy::start(Config {
        admin: None,
        memory_bytes: 1 << 30,
        network_threads: 1,
        traces: None,
        drain_timeout: Duration::from_secs(10),
        virtual_clusters: vec![VirtualCluster {
            filters: vec![Arc::new(ClientIdPrefix(prefix.clone()))],
            ..VirtualCluster::plain("main", gateway, vec![upstream.clone()])
        }],
    })?;
    println!("clients connect to {:?}", proxy.bootstrap_addresses());
    loop {
        std::thread::park();
    }
}
