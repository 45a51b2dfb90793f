//! Filters on their way through sockets, among them the one of the example.

use std::rc::Rc;
use std::sync::{Arc, Mutex};

use moldau_protocol::frame;
use moldau_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, HeartbeatRequest, HeartbeatResponse,
    ProduceRequest, ProduceResponse, api_versions_response::ApiVersion,
};
use moldau_proxy::{Direction, Filter, SessionContext, SessionFilter};

use crate::client_id::ClientIdPrefix;
use crate::world::{Act, Broker, Client, answer, bootstrap, counter, encode, proxy_with};

/// Answers anything that the tests send, and notes the API and the client id of each request.
fn noting(seen_ids: &Arc<Mutex<Vec<(i16, String)>>>) -> Broker {
    let seen_ids = Arc::clone(seen_ids);
    Broker::start(move |seen| {
        let client_id = frame::peek(&seen.frame).unwrap().client_id.unwrap_or("none").to_owned();
        seen_ids.lock().unwrap().push((seen.api_key, client_id));
        let id = seen.correlation_id;
        Act::Send(match ApiKey::try_from(seen.api_key).unwrap() {
            ApiKey::Produce => {
                answer(ApiKey::Produce, seen.api_version, id, &ProduceResponse::default())
            }
            _ => answer(ApiKey::Heartbeat, 4, id, &HeartbeatResponse::default()),
        })
    })
}

#[test]
fn the_example_renames_the_clients_of_what_it_claims() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let broker = noting(&seen);
    let prefix = "tenant-a.".to_owned();
    let proxy = proxy_with(&[broker.address], vec![Arc::new(ClientIdPrefix(prefix))]);
    let mut client = Client::connect(bootstrap(&proxy));
    for version in ApiKey::Produce.valid_versions().iter() {
        let request = ProduceRequest { acks: -1, ..Default::default() };
        assert_eq!(client.call(version, &request), ProduceResponse::default());
        let (api_key, client_id) = seen.lock().unwrap().pop().unwrap();
        assert_eq!((api_key, &*client_id), (ApiKey::Produce.key(), "tenant-a.test"));
    }
    client.call(4, &HeartbeatRequest::default());
    assert_eq!(seen.lock().unwrap().pop().unwrap().1, "test");
}

#[test]
fn versions_that_a_filter_cannot_read_are_not_offered() {
    let broker = Broker::start(|seen| {
        let old = |api: ApiKey| ApiVersion {
            api_key: api.key(),
            min_version: 0,
            max_version: i16::MAX,
            ..Default::default()
        };
        let api_keys = vec![old(ApiKey::Produce), old(ApiKey::ListOffsets)];
        let response = ApiVersionsResponse { api_keys, ..Default::default() };
        Act::Send(answer(ApiKey::ApiVersions, 3, seen.correlation_id, &response))
    });
    let proxy = proxy_with(&[broker.address], vec![Arc::new(ClientIdPrefix(String::new()))]);
    let mut client = Client::connect(bootstrap(&proxy));
    let offered = client.call(3, &ApiVersionsRequest::default()).api_keys;
    let produce = ApiKey::Produce.valid_versions();
    assert_eq!((offered[0].min_version, offered[0].max_version), (produce.min, produce.max));
    assert_eq!(offered[1].min_version, 0);
}

/// Refuses heartbeats and what the proxy does not know.
#[derive(Debug)]
struct Refusing;

impl Filter for Refusing {
    fn name(&self) -> &'static str {
        "refusing"
    }

    fn claims(&self, _: ApiKey, _: Direction) -> bool {
        false
    }

    fn admits(&self, api: Option<ApiKey>) -> bool {
        api.is_some_and(|api| api != ApiKey::Heartbeat)
    }

    fn session(self: Arc<Self>, _: &SessionContext) -> Rc<dyn SessionFilter> {
        struct Nothing;
        impl SessionFilter for Nothing {}
        Rc::new(Nothing)
    }
}

#[test]
fn what_a_filter_refuses_is_not_offered_and_ends_the_session() {
    let broker = Broker::start(|seen| {
        let offered = [ApiKey::Heartbeat, ApiKey::SyncGroup].map(|api| ApiVersion {
            api_key: api.key(),
            max_version: 4,
            ..Default::default()
        });
        let response = ApiVersionsResponse { api_keys: offered.to_vec(), ..Default::default() };
        Act::Send(answer(ApiKey::ApiVersions, 3, seen.correlation_id, &response))
    });
    let proxy = proxy_with(&[broker.address], vec![Arc::new(Refusing)]);
    let mut client = Client::connect(bootstrap(&proxy));
    let offered = client.call(3, &ApiVersionsRequest::default()).api_keys;
    assert_eq!(offered.iter().map(|api| api.api_key).collect::<Vec<_>>(), [14]);
    let heartbeat = encode(4, 1, &HeartbeatRequest::default());
    client.send(&heartbeat);
    assert!(client.is_closed());
    let mut unknown = heartbeat;
    unknown[4..6].copy_from_slice(&120_i16.to_be_bytes());
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&unknown);
    assert!(client.is_closed());
}

#[test]
fn what_a_filter_does_not_claim_passes_although_it_is_unknown() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let broker = noting(&seen);
    let proxy = proxy_with(&[broker.address], vec![Arc::new(ClientIdPrefix("x".to_owned()))]);
    let mut unknown = encode(13, 1, &ProduceRequest { acks: -1, ..Default::default() });
    unknown[6..8].copy_from_slice(&77_i16.to_be_bytes());
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&unknown);
    assert!(client.is_closed());
    let mut heartbeat = encode(4, 1, &HeartbeatRequest::default());
    heartbeat[6..8].copy_from_slice(&77_i16.to_be_bytes());
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&heartbeat);
    client.receive();
    assert_eq!(seen.lock().unwrap().pop().unwrap(), (ApiKey::Heartbeat.key(), "test".to_owned()));
    assert!(seen.lock().unwrap().is_empty());
    assert_eq!(counter(&proxy, "filter_errors_total{virtual_cluster=\"main\""), 0);
}
