//! Network threads with an echo service behind real sockets of the loopback interface.

use std::io::{Read, Write};
use std::net::TcpStream as StdStream;
use std::sync::mpsc as std_mpsc;

use bytes::Bytes;

use super::*;
use crate::{ConnectionLimits, Refusal, Reply, Response, Service, serve_connection};

struct Echo;

impl Service for Echo {
    type Future = std::future::Ready<Response>;

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        Reply::Ready(Bytes::from(framed(frame)).into())
    }
}

fn framed(frame: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(frame.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(frame);
    bytes
}

fn loopback() -> Listener {
    Listener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap()
}

/// Starts an echo server; the receiver gets the serving thread's name for each connection.
fn start(
    threads: usize,
    limits: ListenerLimits,
) -> (NetworkThreads, SocketAddr, std_mpsc::Receiver<String>) {
    let network = NetworkThreads::start("echo", threads).unwrap();
    let handle = network.handle();
    let listener = loopback();
    let address = listener.local_addr();
    let (names, seen) = std_mpsc::channel();
    let served = handle.clone();
    handle
        .serve(listener, limits, move |stream, _, _| {
            let name = std::thread::current().name().unwrap().to_owned();
            names.send(name).unwrap();
            let served = served.clone();
            async move {
                let metrics = Arc::clone(served.metrics());
                let limits = ConnectionLimits::default();
                serve_connection(stream, Echo, limits, served.shutdown(), metrics).await;
            }
        })
        .unwrap();
    (network, address, seen)
}

fn exchange(stream: &mut StdStream, frame: &[u8]) {
    stream.write_all(&framed(frame)).unwrap();
    let mut answer = vec![0; frame.len() + 4];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, framed(frame));
}

#[test]
fn connections_spread_over_the_threads_and_drain_ends_them() {
    let (network, address, seen) = start(3, ListenerLimits::default());
    let mut streams: Vec<StdStream> = Vec::new();
    let mut names = Vec::new();
    for _ in 0..6 {
        let mut stream = StdStream::connect(address).unwrap();
        exchange(&mut stream, b"hello");
        exchange(&mut stream, &vec![7; 3_000_000]);
        names.push(seen.recv().unwrap());
        streams.push(stream);
    }
    names.sort();
    assert_eq!(names, ["echo-0", "echo-0", "echo-1", "echo-1", "echo-2", "echo-2"]);
    let metrics = Arc::clone(network.handle().metrics());
    assert_eq!(metrics.connections_open.load(Ordering::Relaxed), 6);
    assert_eq!(metrics.requests.load(Ordering::Relaxed), 12);
    assert_eq!(network.drain(Duration::from_secs(30)), 0);
    for mut stream in streams {
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    }
    assert!(StdStream::connect(address).is_err());
    assert_eq!(metrics.connections_open.load(Ordering::Relaxed), 0);
}

#[test]
fn connection_above_the_limit_is_closed_and_counted() {
    let (network, address, _seen) =
        start(1, ListenerLimits { connections_max: 1, ..Default::default() });
    let mut first = StdStream::connect(address).unwrap();
    exchange(&mut first, b"hello");
    let mut second = StdStream::connect(address).unwrap();
    assert_eq!(second.read(&mut [0; 1]).unwrap(), 0);
    exchange(&mut first, b"still here");
    let metrics = Arc::clone(network.handle().metrics());
    assert_eq!(metrics.refused(Refusal::ConnectionLimit), 1);
    drop(network);
    assert_eq!(metrics.connections_open.load(Ordering::Relaxed), 0);
}

#[test]
fn address_in_use_is_named() {
    let taken = loopback();
    let error = Listener::bind(taken.local_addr()).unwrap_err();
    assert!(matches!(error, Error::AddressInUse { .. }));
    assert!(error.to_string().contains(&taken.local_addr().to_string()));
}

#[test]
fn tasks_run_on_the_thread_that_was_named() {
    let network = NetworkThreads::start("task", 2).unwrap();
    let (names, seen) = std_mpsc::channel();
    for index in [1, 0, 3] {
        let names = names.clone();
        let start = move || async move {
            names.send(std::thread::current().name().unwrap().to_owned()).unwrap();
        };
        network.handle().spawn_on_blocking(index, "a task", start).unwrap();
    }
    let mut seen: Vec<String> = (0..3).map(|_| seen.recv().unwrap()).collect();
    seen.sort();
    assert_eq!(seen, ["task-0", "task-1", "task-1"]);
}

#[test]
fn drain_cuts_off_what_does_not_end() {
    let network = NetworkThreads::start("stuck", 1).unwrap();
    let listener = loopback();
    let address = listener.local_addr();
    let (entered, seen) = std_mpsc::channel();
    let limits = ListenerLimits::default();
    network
        .handle()
        .serve(listener, limits, move |stream, _, _| {
            entered.send(()).unwrap();
            async move {
                std::future::pending::<()>().await;
                drop(stream);
            }
        })
        .unwrap();
    let mut stream = StdStream::connect(address).unwrap();
    seen.recv().unwrap();
    assert_eq!(network.drain(Duration::from_millis(10)), 1);
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}

#[test]
fn listener_can_be_added_from_one_of_the_threads() {
    let network = NetworkThreads::start("inner", 1).unwrap();
    let handle = network.handle();
    let (added, address) = std_mpsc::channel();
    let start = move || async move {
        let listener = loopback();
        added.send(listener.local_addr()).unwrap();
        let serve = |stream, _, _| async move { drop::<TcpStream>(stream) };
        handle.serve_here(listener, ListenerLimits::default(), serve).await;
    };
    network.handle().spawn_on_blocking(0, "a task", start).unwrap();
    let mut stream = StdStream::connect(address.recv().unwrap()).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
}

/// Each step had the whole time anew.
#[test]
fn time_for_the_handshake_counts_from_accept() {
    let network = NetworkThreads::start("deadline", 1).unwrap();
    let listener = loopback().with_proxy_protocol(Mode::Required);
    let address = listener.local_addr();
    let (limits, (told, deadline)) = (ListenerLimits::default(), std_mpsc::channel());
    let timeout = limits.handshake_timeout;
    let serve = move |_, _, deadline| {
        told.send(deadline).unwrap();
        std::future::ready(())
    };
    network.handle().serve(listener, limits, serve).unwrap();
    let mut stream = StdStream::connect(address).unwrap();
    let patience = Instant::now() + Duration::from_secs(60);
    while network.handle().connections_open() == 0 {
        assert!(Instant::now() < patience, "the connection is not accepted");
        std::thread::yield_now();
    }
    let accepted = Instant::now();
    while Instant::now() == accepted {}
    stream.write_all(b"PROXY TCP4 192.0.2.1 192.0.2.9 50000 9092\r\n").unwrap();
    assert!(deadline.recv().unwrap() <= accepted + timeout);
}

/// A panic as a connection began took its thread, and all of the thread's connections, with it.
#[test]
fn a_connection_that_panics_ends_alone_unless_it_holds_a_lock() {
    let network = NetworkThreads::start("contained", 1).unwrap();
    let (listener, handle) = (loopback(), network.handle());
    let address = listener.local_addr();
    let (accepted, shared) = (AtomicUsize::new(0), Arc::new(Mutex::new(())));
    let serve = move |stream, _, _| {
        let number = accepted.fetch_add(1, Ordering::Relaxed);
        assert!(number != 0, "a defect as it begins");
        let shared = Arc::clone(&shared);
        async move {
            let mut stream: TcpStream = stream;
            let mut byte = [0];
            tokio::io::AsyncReadExt::read_exact(&mut stream, &mut byte).await.unwrap();
            assert!(number != 1, "a defect in the middle");
            let _guard = (number == 2).then(|| shared.lock());
            assert!(number != 2, "a defect under a lock");
        }
    };
    handle.serve(listener, ListenerLimits::default(), serve).unwrap();
    let end = |sent: &[u8]| {
        let mut stream = StdStream::connect(address).unwrap();
        stream.write_all(sent).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 0);
    };
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let refused = || {
        // The thread answers once it has counted what it was at.
        assert!(runtime.block_on(handle.silent_threads(Duration::from_secs(60))).is_empty());
        handle.metrics().refused(Refusal::Defect)
    };
    let mut first = StdStream::connect(address).unwrap();
    assert_eq!(first.read(&mut [0; 1]).unwrap(), 0);
    end(b"x");
    assert_eq!((refused(), handle.supervisor().failure()), (2, None));
    end(b"x");
    let cause = runtime.block_on(handle.supervisor().failed());
    assert!(cause.contains("a defect under a lock"), "{cause}");
    end(b"x");
    assert_eq!(refused(), 3);
}
