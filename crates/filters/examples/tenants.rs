//! Virtual clusters for tenants who share one Kafka, each on an address of its own.
//!
//! ```text
//! cargo run --example tenants -- 127.0.0.1:9092 blue=127.0.0.1:19092 green=127.0.0.1:19192
//! ```

use std::sync::Arc;
use std::time::Duration;

use moldau_filters::{MultiTenant, MultiTenantSettings};
use moldau_proxy::{Config, Gateway, Proxy, VirtualCluster};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let upstream = arguments.next().ok_or("usage: tenants UPSTREAM NAME=LISTEN...")?;
    let mut virtual_clusters = Vec::new();
    for tenant in arguments {
        let (name, bootstrap) = tenant.split_once('=').ok_or("a tenant is NAME=LISTEN")?;
        let gateway = Gateway::Ports {
            bootstrap: bootstrap.parse()?,
            advertised_host: None,
            broker_port_start: 0,
        };
        let filter = MultiTenant::new(&MultiTenantSettings::default())?;
        virtual_clusters.push(VirtualCluster {
            filters: vec![Arc::new(filter)],
            ..VirtualCluster::plain(name, gateway, vec![upstream.clone()])
        });
    }
    let proxy = Proxy::start(Config {
        admin: None,
        memory_bytes: 1 << 30,
        network_threads: 1,
        traces: None,
        drain_timeout: Duration::from_secs(10),
        virtual_clusters,
    })?;
    println!("clients connect to {:?}", proxy.bootstrap_addresses());
    loop {
        std::thread::park();
    }
}
