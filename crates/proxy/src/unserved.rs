use std::net::SocketAddr;
use std::sync::Arc;

use moldau_net::{MemoryBudget, NetworkThreads};

use crate::cluster::{Cluster, Serve};
use crate::config::{Gateway, VirtualCluster};
use crate::filter::Filter;
use crate::gateway::Entrance;
use crate::traces::Tracer;

/// A virtual cluster to which no client comes, with threads that serve none, for tests.
pub(crate) fn unserved(filters: Vec<Arc<dyn Filter>>) -> (NetworkThreads, Arc<Cluster>) {
    unserved_within(MemoryBudget::unlimited(), filters)
}

/// As [`unserved`], for sessions that share this budget.
pub(crate) fn unserved_within(
    memory: MemoryBudget,
    filters: Vec<Arc<dyn Filter>>,
) -> (NetworkThreads, Arc<Cluster>) {
    let threads = NetworkThreads::start_within("test", 1, memory).unwrap();
    let bootstrap = SocketAddr::from(([127, 0, 0, 1], 0));
    let gateway = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    let config = VirtualCluster { filters, ..VirtualCluster::plain("main", gateway, Vec::new()) };
    let entrance = Entrance::new(&config.gateway, bootstrap, config.proxy_protocol, None).unwrap();
    let serve: Serve = |_, _, _, _, _| Box::pin(std::future::ready(()));
    let (net, (tracer, _)) = (threads.handle(), Tracer::new(Arc::default()));
    let cluster = Cluster::new(config, entrance, serve, net, Arc::default(), tracer);
    (threads, cluster)
}
