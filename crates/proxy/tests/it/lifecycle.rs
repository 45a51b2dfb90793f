//! Connecting, closing and draining.

use std::net::{Shutdown, TcpListener};
use std::sync::{Arc, Barrier, mpsc};

use moldau_protocol::messages::{ApiKey, HeartbeatRequest, HeartbeatResponse};
use moldau_proxy::{Error, Proxy};

use crate::world::{
    Act, Broker, Client, answer, any_ports, await_counter, bootstrap, cluster, config, encode,
    proxy,
};

fn heartbeat(correlation_id: i32) -> Act {
    Act::Send(answer(ApiKey::Heartbeat, 4, correlation_id, &HeartbeatResponse::default()))
}

/// An address on which nothing listens.
fn nowhere() -> std::net::SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn the_next_upstream_server_is_tried_when_one_is_down() {
    let broker = Broker::start(|seen| heartbeat(seen.correlation_id));
    let proxy = proxy(&[nowhere(), broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    client.call(4, &HeartbeatRequest::default());
}

#[test]
fn a_client_is_closed_when_no_upstream_server_answers() {
    let proxy = proxy(&[nowhere()]);
    let mut client = Client::connect(bootstrap(&proxy));
    assert!(client.is_closed());
    assert!(crate::world::counter(&proxy, "upstream_connect_errors") > 0);
}

#[test]
fn a_client_that_closed_its_sending_side_gets_its_answers() {
    let (answered, answers) = mpsc::sync_channel::<()>(0);
    let answers = std::sync::Mutex::new(answers);
    let broker = Broker::start(move |seen| {
        answers.lock().unwrap().recv().unwrap();
        heartbeat(seen.correlation_id)
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&encode(4, 1, &HeartbeatRequest::default()));
    client.stream.shutdown(Shutdown::Write).unwrap();
    answered.send(()).unwrap();
    client.receive();
    assert!(client.is_closed());
}

#[test]
fn a_session_ends_when_the_broker_closes() {
    let broker = Broker::start(|_| Act::Close);
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&encode(4, 1, &HeartbeatRequest::default()));
    assert!(client.is_closed());
    await_counter(&proxy, "frames_malformed_total{side=\"upstream\"}", 0);
}

#[test]
fn drain_lets_requests_in_flight_finish() {
    let arrived = Arc::new(Barrier::new(2));
    let (answered, answers) = mpsc::sync_channel::<()>(0);
    let answers = std::sync::Mutex::new(answers);
    let at_broker = Arc::clone(&arrived);
    let broker = Broker::start(move |seen| {
        at_broker.wait();
        answers.lock().unwrap().recv().unwrap();
        heartbeat(seen.correlation_id)
    });
    let proxy = proxy(&[broker.address]);
    let mut idle = Client::connect(bootstrap(&proxy));
    let mut busy = Client::connect(bootstrap(&proxy));
    busy.send(&encode(4, 1, &HeartbeatRequest::default()));
    arrived.wait();
    let draining = std::thread::spawn(move || proxy.drain());
    assert!(idle.is_closed());
    answered.send(()).unwrap();
    busy.receive();
    assert!(busy.is_closed());
    assert_eq!(draining.join().unwrap(), 0);
}

#[test]
fn a_cluster_without_upstream_servers_is_refused() {
    let refused = Proxy::start(config(vec![cluster("empty", any_ports(), &[])]));
    assert!(matches!(refused, Err(Error::NoUpstream { cluster }) if cluster == "empty"));
}
