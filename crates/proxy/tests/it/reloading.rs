//! A configuration takes the place of another while clients are at work.

use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::{Arc, Mutex, mpsc};

use moldau_protocol::ApiKey;
use moldau_protocol::messages::{
    HeartbeatRequest, HeartbeatResponse, MetadataRequest, MetadataResponse,
};
use moldau_proxy::{
    Config, Direction, Error, Filter, FilterFuture, Gateway, Proxy, RequestFrame, RequestOutcome,
    ResponseFrame, SessionContext, SessionFilter, Upstream, VirtualCluster,
};

use crate::world::{
    Act, Broker, Client, Seen, admin_page, answer, any_ports, await_counter, bootstrap, cluster,
    config, counter, decode, encode, metadata_broker, request_of,
};

/// Writes its number into the generation of heartbeats, and ends the session if an answer is for
/// another number: then a request and its answer took different filters.
#[derive(Debug)]
struct Numbered(i32);

impl Filter for Numbered {
    fn name(&self) -> &'static str {
        "numbered"
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        api == ApiKey::Heartbeat
    }

    fn session(self: Arc<Self>, _: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Numbering(self.0))
    }
}

struct Numbering(i32);

impl SessionFilter for Numbering {
    fn request(self: Rc<Self>, request: RequestFrame, _: Upstream) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            let mut heartbeat: HeartbeatRequest = request.decode()?;
            heartbeat.generation_id = self.0;
            Ok(RequestOutcome::Forward(request.with_message(&heartbeat)?))
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            let heartbeat: HeartbeatResponse = response.decode()?;
            if heartbeat.throttle_time_ms == self.0 { Ok(response) } else { Err("another".into()) }
        })
    }
}

/// Tells in its answer which number a heartbeat came with.
fn echo(seen: &Seen) -> Act {
    let heartbeat: HeartbeatRequest = request_of(seen);
    let throttle_time_ms = heartbeat.generation_id;
    let response = HeartbeatResponse { throttle_time_ms, ..Default::default() };
    Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &response))
}

fn numbered(upstream: SocketAddr, number: i32) -> Config {
    let filters: Vec<Arc<dyn Filter>> = vec![Arc::new(Numbered(number))];
    config(vec![VirtualCluster { filters, ..cluster("main", any_ports(), &[upstream]) }])
}

fn number_of(frame: &[u8], correlation_id: i32) -> i32 {
    decode::<HeartbeatResponse>(ApiKey::Heartbeat, 4, correlation_id, frame).throttle_time_ms
}

#[test]
fn a_hundred_reloads_under_traffic_cost_no_request_and_no_connection() {
    const WINDOW: i32 = 20;
    let broker = Broker::start(echo);
    let proxy = Proxy::start(numbered(broker.address, 0)).unwrap();
    let mut clients: Vec<Client> = (0..4).map(|_| Client::connect(bootstrap(&proxy))).collect();
    let mut id = 0;
    for number in 1..=100 {
        // Requests are under way when the filters change.
        for client in &mut clients {
            (id..id + WINDOW).for_each(|id| client.send(&encode(4, id, &heartbeat())));
        }
        proxy.reload(numbered(broker.address, number)).unwrap();
        for client in &mut clients {
            client.send(&encode(4, id + WINDOW, &heartbeat()));
            let mut last = number - 1;
            for id in id..=id + WINDOW {
                let took = number_of(&client.receive(), id);
                assert!((last..=number).contains(&took), "{took} after {last} at {number}");
                last = took;
            }
            assert_eq!(last, number);
        }
        id += WINDOW + 1;
    }
    assert_eq!(counter(&proxy, "reloads_total"), 100);
    assert_eq!(counter(&proxy, "filter_errors_total{virtual_cluster=\"main\",filter=\"numb"), 0);
    assert_eq!(counter(&proxy, "connections_open"), 4);
}

fn heartbeat() -> HeartbeatRequest {
    HeartbeatRequest::default()
}

#[test]
fn a_request_in_flight_ends_with_the_filters_that_it_began_with() {
    let (release, released) = mpsc::sync_channel::<()>(1);
    let (arrived, arrives) = mpsc::sync_channel::<()>(1);
    let released = Mutex::new(released);
    let broker = Broker::start(move |seen| {
        arrived.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        echo(seen)
    });
    let proxy = Proxy::start(numbered(broker.address, 1)).unwrap();
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&encode(4, 1, &heartbeat()));
    arrives.recv().unwrap();
    let reloaded = proxy.reload(numbered(broker.address, 2)).unwrap();
    assert_eq!(reloaded.refiltered, ["main"]);
    client.send(&encode(4, 2, &heartbeat()));
    release.send(()).unwrap();
    assert_eq!(number_of(&client.receive(), 1), 1);
    arrives.recv().unwrap();
    release.send(()).unwrap();
    assert_eq!(number_of(&client.receive(), 2), 2);
}

#[test]
fn a_filter_that_stays_is_not_exchanged() {
    let broker = Broker::start(echo);
    let first = numbered(broker.address, 1);
    let proxy = Proxy::start(first.clone()).unwrap();
    assert_eq!(proxy.reload(first).unwrap().refiltered, Vec::<String>::new());
}

#[test]
fn a_wrong_configuration_changes_nothing() {
    let broker = Broker::start(echo);
    let proxy = Proxy::start(numbered(broker.address, 1)).unwrap();
    let mut client = Client::connect(bootstrap(&proxy));
    let before = proxy.bootstrap_addresses();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bootstrap = taken.local_addr().unwrap();
    let taken_ports = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    let upstream = [broker.address];
    let other = || cluster("other", any_ports(), &upstream);
    let with = |more: VirtualCluster| {
        let Config { virtual_clusters, .. } = numbered(broker.address, 2);
        config(virtual_clusters.into_iter().chain([other(), more]).collect())
    };
    let sni = |host: &str| Gateway::Sni {
        listen: "127.0.0.1:0".parse().unwrap(),
        bootstrap_host: host.to_owned(),
        broker_host: "b-$(nodeId).example".to_owned(),
        advertised_port: None,
    };
    let wrong = [
        with(cluster("taken", taken_ports, &upstream)),
        with(cluster("nowhere", any_ports(), &[])),
        with(other()),
        with(cluster("no-tls", sni("a.example"), &upstream)),
        Config { admin: None, ..numbered(broker.address, 2) },
        Config { network_threads: 7, ..numbered(broker.address, 2) },
    ];
    let count = wrong.len() as u64;
    for config in wrong {
        assert!(proxy.reload(config).is_err());
    }
    assert_eq!(proxy.bootstrap_addresses(), before);
    client.send(&encode(4, 1, &heartbeat()));
    assert_eq!(number_of(&client.receive(), 1), 1);
    assert_eq!(counter(&proxy, "reload_failures_total"), count);
    assert_eq!(counter(&proxy, "reloads_total"), 0);
}

/// What is handed over to a thread fills its queue, while the thread waits for the lock under which
/// the configuration changes.
#[test]
fn hundreds_of_clusters_are_added_while_metrics_are_read() {
    let broker = Broker::start(echo);
    let cluster = |name: &str| cluster(name, any_ports(), &[broker.address]);
    let proxy = Arc::new(Proxy::start(config(vec![cluster("main")])).unwrap());
    let names: Vec<String> = (0..300).map(|number| format!("added-{number}")).collect();
    let all = std::iter::once("main").chain(names.iter().map(String::as_str));
    let wanted = config(all.map(cluster).collect());
    let reload = std::thread::spawn({
        let proxy = Arc::clone(&proxy);
        move || proxy.reload(wanted)
    });
    while !reload.is_finished() {
        counter(&proxy, "reloads_total");
    }
    assert_eq!(reload.join().unwrap().unwrap().added, names);
    let last = proxy.bootstrap_addresses().last().unwrap().1;
    Client::connect(last).call(4, &heartbeat());
    assert_eq!(proxy.reload(config(vec![cluster("main")])).unwrap().removed, names);
}

#[test]
fn an_address_in_use_amid_hundreds_of_clusters_changes_nothing() {
    let broker = Broker::start(echo);
    let proxy = Proxy::start(numbered(broker.address, 1)).unwrap();
    let mut client = Client::connect(bootstrap(&proxy));
    let before = proxy.bootstrap_addresses();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let bootstrap = taken.local_addr().unwrap();
    let taken = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    let mut wrong = numbered(broker.address, 2);
    for number in 0..300 {
        let gateway = if number == 150 { taken.clone() } else { any_ports() };
        let added = cluster(&format!("added-{number}"), gateway, &[broker.address]);
        wrong.virtual_clusters.push(added);
    }
    assert!(matches!(proxy.reload(wrong), Err(Error::Net(_))));
    assert_eq!(proxy.bootstrap_addresses(), before);
    client.send(&encode(4, 1, &heartbeat()));
    assert_eq!(number_of(&client.receive(), 1), 1);
    let (_, page) = admin_page(&proxy, "/metrics");
    assert!(!page.contains("added-"), "{page}");
}

#[test]
fn two_virtual_clusters_on_one_port_are_refused() {
    let bootstrap = "127.0.0.1:9".parse().unwrap();
    let gateway = Gateway::Ports { bootstrap, advertised_host: None, broker_port_start: 0 };
    let clusters = ["a", "b"].map(|name| cluster(name, gateway.clone(), &[bootstrap]));
    let refused = Proxy::start(config(clusters.into()));
    assert!(matches!(refused, Err(Error::SharedAddress { cluster, .. }) if cluster == "b"));
}

#[test]
fn a_virtual_cluster_that_is_gone_is_drained_and_others_are_left_alone() {
    let (release, released) = mpsc::sync_channel::<()>(1);
    let (arrived, arrives) = mpsc::sync_channel::<()>(1);
    let released = Mutex::new(released);
    let slow = Broker::start(move |seen| {
        arrived.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        echo(seen)
    });
    let broker = Broker::start(echo);
    let kept = || cluster("kept", any_ports(), &[broker.address]);
    let gone = cluster("gone", any_ports(), &[slow.address]);
    let proxy = Proxy::start(config(vec![kept(), gone])).unwrap();
    let [(_, kept_at), (_, gone_at)] = &proxy.bootstrap_addresses()[..] else { panic!() };
    let mut staying = Client::connect(*kept_at);
    let mut leaving = Client::connect(*gone_at);
    leaving.send(&encode(4, 1, &heartbeat()));
    arrives.recv().unwrap();
    let added = cluster("added", any_ports(), &[broker.address]);
    let reloaded = proxy.reload(config(vec![kept(), added])).unwrap();
    assert_eq!(
        (&reloaded.added[..], &reloaded.removed[..]),
        (&["added".into()][..], &["gone".into()][..])
    );
    release.send(()).unwrap();
    assert_eq!(number_of(&leaving.receive(), 1), 0);
    assert!(leaving.is_closed());
    staying.call(4, &heartbeat());
    Client::connect(proxy.bootstrap_addresses()[1].1).call(4, &heartbeat());
    refuses_soon(*gone_at);
}

/// Waits until `address` has no listener.
fn refuses_soon(address: SocketAddr) {
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while TcpStream::connect(address).is_ok() {
        assert!(std::time::Instant::now() < deadline, "{address} still accepts");
        std::thread::yield_now();
    }
}

#[test]
fn a_virtual_cluster_that_moves_keeps_its_connections_and_tells_them_its_ports() {
    let broker = Broker::start_with(|address| {
        move |seen: &Seen| {
            let brokers = vec![metadata_broker(1, address)];
            let response = MetadataResponse { brokers, ..Default::default() };
            Act::Send(answer(ApiKey::Metadata, 9, seen.correlation_id, &response))
        }
    });
    let proxy =
        Proxy::start(config(vec![cluster("main", any_ports(), &[broker.address])])).unwrap();
    let mut client = Client::connect(bootstrap(&proxy));
    let before = client.call(9, &MetadataRequest::default()).brokers.remove(0);
    let old = bootstrap(&proxy);
    let elsewhere = "127.0.0.2:0".parse().unwrap();
    let gateway = Gateway::Ports {
        bootstrap: elsewhere,
        advertised_host: Some("moved.example".to_owned()),
        broker_port_start: 0,
    };
    let reloaded = proxy.reload(config(vec![cluster("main", gateway, &[broker.address])])).unwrap();
    assert_eq!(reloaded.moved, ["main"]);
    let after = client.call(9, &MetadataRequest::default()).brokers.remove(0);
    assert_eq!((before.host.as_str(), after.host.as_str()), ("127.0.0.1", "moved.example"));
    Client::connect(bootstrap(&proxy)).call(9, &MetadataRequest::default());
    let port = u16::try_from(after.port).unwrap();
    Client::connect(SocketAddr::new(elsewhere.ip(), port)).call(9, &MetadataRequest::default());
    refuses_soon(old);
    refuses_soon(SocketAddr::new(old.ip(), u16::try_from(before.port).unwrap()));
    await_counter(&proxy, "reloads_total", 1);
}
