//! What listens in place of a broker.

use std::net::SocketAddr;
use std::sync::Arc;

use moldau_net::{
    ConnectionLimits, Listener, ListenerLimits, NetworkThreads, Service, serve_connection,
};
use moldau_protocol::ApiKey;
use moldau_protocol::messages::ApiVersionsResponse;
use moldau_protocol::messages::api_versions_response::ApiVersion;

/// Starts what `make` gives for an address, which each connection has a copy of and takes so many
/// requests of at a time; it ends with the threads.
pub(crate) fn start<S>(
    make: impl FnOnce(SocketAddr) -> S,
    in_flight_requests_max: usize,
) -> (S, NetworkThreads)
where
    S: Service + Clone + Send + Sync + 'static,
{
    let network = NetworkThreads::start("broker", 1).unwrap();
    let handle = network.handle();
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let fake = make(listener.local_addr());
    let (shutdown, metrics) = (handle.shutdown().clone(), Arc::clone(handle.metrics()));
    let service = fake.clone();
    let serve = move |stream, _, _| {
        let (service, shutdown) = (service.clone(), shutdown.clone());
        let metrics = Arc::clone(&metrics);
        async move {
            let limits = ConnectionLimits { in_flight_requests_max, ..Default::default() };
            serve_connection(stream, service, limits, &shutdown, metrics).await;
        }
    };
    handle.serve(listener, ListenerLimits::default(), serve).unwrap();
    (fake, network)
}

/// These APIs from version 0 on, each with its highest version.
pub(crate) fn api_versions(apis: &[(ApiKey, i16)]) -> ApiVersionsResponse {
    let api = |(key, max): &(ApiKey, i16)| ApiVersion {
        api_key: key.key(),
        max_version: *max,
        ..Default::default()
    };
    ApiVersionsResponse { api_keys: apis.iter().map(api).collect(), ..Default::default() }
}
