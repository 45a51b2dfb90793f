//! Hostile peers: memory stays bounded and other peers are not disturbed.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use moldau_net::proxy_protocol::{self, Mode};
use moldau_net::tls::ServerTls;
use moldau_net::{
    ConnectionLimits, Listener, ListenerLimits, Metrics, Refusal, Shutdown, Stream,
    serve_connection,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::LocalSet;

use crate::authority::Authority;
use crate::world::{
    Echo, PATIENCE, World, ask, await_refusals, client_tls, framed, is_closed, run, server_settings,
};

const SOON: Duration = Duration::from_millis(80);

/// Connects from another address of this machine.
async fn connect_from(source: &str, world: &World) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
    socket.connect(world.address).await.unwrap()
}

#[test]
fn unfinished_handshakes_end_in_time_while_others_are_served() {
    let authority = Authority::new("ca");
    let settings = server_settings(&authority.issue("server", &["localhost"]));
    let tls = Arc::new(ServerTls::new(settings).unwrap());
    let limits = ListenerLimits { handshake_timeout: PATIENCE, ..ListenerLimits::default() };
    let patient = World::start(Some(Arc::clone(&tls)), limits, ConnectionLimits::default());
    let limits = ListenerLimits { handshake_timeout: SOON, ..ListenerLimits::default() };
    let strict = World::start(Some(tls), limits, ConnectionLimits::default());
    run(async {
        let client = client_tls(&authority, None);
        let mut half_open = Vec::new();
        for world in [&patient, &strict] {
            for n in 0..100 {
                let mut stream = world.connect().await;
                // Nothing at all, the start of a hello, or a record that never ends.
                let start: &[u8] = [&[][..], &[22, 3], &[22, 3, 1, 2, 0, 1, 0, 1]][n % 3];
                stream.write_all(start).await.unwrap();
                half_open.push(stream);
            }
        }
        let mut active = client.connect(patient.connect().await, "localhost").await.unwrap();
        for _ in 0..100 {
            ask(&mut active, b"frame").await.unwrap();
        }
        await_refusals(&strict.metrics(), Refusal::TlsTimeout, 100).await;
        for stream in &mut half_open[100..] {
            assert!(is_closed(stream).await);
        }
        assert_eq!(patient.metrics().refused(Refusal::TlsTimeout), 0);
        assert_eq!(patient.network.handle().connections_open(), 101);
    });
}

#[test]
fn flood_of_handshakes_leaves_an_active_client_served() {
    let authority = Authority::new("ca");
    let settings = server_settings(&authority.issue("server", &["localhost"]));
    let tls = Arc::new(ServerTls::new(settings).unwrap());
    let world = World::start(Some(tls), ListenerLimits::default(), ConnectionLimits::default());
    run(async {
        let mut active = {
            let client = client_tls(&authority, None);
            client.connect(world.connect().await, "localhost").await.unwrap()
        };
        let flood = async {
            let mut hellos = Vec::new();
            for _ in 0..64 {
                let stream = world.connect().await;
                let client = client_tls(&authority, None);
                hellos.push(async move { client.connect(stream, "localhost").await.is_ok() });
            }
            let mut done = 0;
            for hello in hellos {
                done += u32::from(hello.await);
            }
            done
        };
        let asking = async {
            for _ in 0..200 {
                assert_eq!(ask(&mut active, b"frame").await.unwrap(), b"frame");
            }
        };
        let (done, ()) = tokio::join!(flood, asking);
        assert_eq!(done, 64, "all of them get through too");
    });
}

#[test]
fn one_address_gets_no_more_than_its_share() {
    let limits = ListenerLimits { connections_per_address_max: 8, ..ListenerLimits::default() };
    let world = World::start(None, limits, ConnectionLimits::default());
    run(async {
        let mut active = world.connect().await;
        let mut flood = Vec::new();
        for n in 0..500 {
            flood.push(connect_from("127.0.0.2", &world).await);
            if n % 50 == 0 {
                ask(&mut active, b"frame").await.unwrap();
            }
        }
        await_refusals(&world.metrics(), Refusal::AddressLimit, 492).await;
        assert_eq!(world.network.handle().connections_open(), 9);
        for stream in &mut flood[8..] {
            assert!(is_closed(stream).await);
        }
        ask(&mut flood[0], b"one of the eight").await.unwrap();
        drop(flood);
        let deadline = Instant::now() + PATIENCE;
        while world.network.handle().connections_open() > 1 {
            assert!(Instant::now() < deadline);
            tokio::task::yield_now().await;
        }
        let mut again = connect_from("127.0.0.2", &world).await;
        ask(&mut again, b"room again").await.unwrap();
    });
}

#[test]
fn oversized_frame_closes_its_own_connection_only() {
    let world = World::start(None, ListenerLimits::default(), ConnectionLimits::default());
    run(async {
        let mut active = world.connect().await;
        ask(&mut active, b"one").await.unwrap();
        for n in 1..=20 {
            let mut stream = world.connect().await;
            stream.write_all(&i32::MAX.to_be_bytes()).await.unwrap();
            assert!(is_closed(&mut stream).await);
            await_refusals(&world.metrics(), Refusal::FrameOversized, n).await;
        }
        ask(&mut active, b"two").await.unwrap();
    });
}

#[test]
fn peer_that_never_reads_is_closed() {
    let limits = ConnectionLimits { slow_reader_timeout: SOON, ..ConnectionLimits::default() };
    let world = World::start(None, ListenerLimits::default(), limits);
    run(async {
        let mut active = world.connect().await;
        let mut greedy = world.connect().await;
        greedy.write_all(&framed(b"!")).await.unwrap();
        let metrics = world.metrics();
        let deadline = Instant::now() + PATIENCE;
        while metrics.refused(Refusal::SlowReader) == 0 {
            assert!(Instant::now() < deadline);
            ask(&mut active, b"frame").await.unwrap();
        }
        assert_eq!(metrics.refused(Refusal::Idle), 0);
    });
}

#[test]
fn proxy_protocol_gives_the_address_that_counts() {
    let start = |handshake_timeout| {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listener.with_proxy_protocol(Mode::Required);
        let limits = ListenerLimits {
            connections_per_address_max: 1,
            handshake_timeout,
            ..ListenerLimits::default()
        };
        World::start_on(listener, None, limits, ConnectionLimits::default())
    };
    let (world, strict) = (start(PATIENCE), start(SOON));
    run(async {
        let real = |address: &str| {
            proxy_protocol::encode_v2(address.parse().unwrap(), "10.0.0.9:9092".parse().unwrap())
        };
        let mut first = world.connect().await;
        first.write_all(b"PROXY TCP4 10.0.0.1 10.0.0.9 1 9092\r\n").await.unwrap();
        assert_eq!(ask(&mut first, b"?").await.unwrap(), b"peer=10.0.0.1");
        let mut second = world.connect().await;
        // The header in one piece with what follows it.
        let bytes = [&real("10.0.0.2:5")[..], &framed(b"?")].concat();
        second.write_all(&bytes).await.unwrap();
        assert_eq!(second.read_u32().await.unwrap(), 13);
        let mut same = world.connect().await;
        same.write_all(&real("10.0.0.2:6")).await.unwrap();
        assert!(is_closed(&mut same).await);
        await_refusals(&world.metrics(), Refusal::AddressLimit, 1).await;
        for (n, world, start) in [
            (1, &world, &b"GET / HTTP/1.1"[..]),
            (2, &world, b"PROXY TCP9 \r\n"),
            (1, &strict, b"PROXY T"),
        ] {
            let mut stream = world.connect().await;
            stream.write_all(start).await.unwrap();
            assert!(is_closed(&mut stream).await);
            await_refusals(&world.metrics(), Refusal::ProxyProtocol, n).await;
        }
    });
}

#[test]
fn proxy_protocol_is_optional_where_allowed() {
    let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = listener.with_proxy_protocol(Mode::Allowed);
    let (limits, connection_limits) = (ListenerLimits::default(), ConnectionLimits::default());
    let world = World::start_on(listener, None, limits, connection_limits);
    run(async {
        let mut plain = world.connect().await;
        assert_eq!(ask(&mut plain, b"?").await.unwrap(), b"peer=127.0.0.1");
        let mut behind = world.connect().await;
        behind.write_all(b"PROXY UNKNOWN\r\n").await.unwrap();
        assert_eq!(ask(&mut behind, b"?").await.unwrap(), b"peer=127.0.0.1");
    });
}

/// Who sent no header had no share that could be used up.
#[test]
fn connections_that_send_no_header_count_for_their_socket_and_are_bounded() {
    for (mode, count_max) in [(Mode::Allowed, 8), (Mode::Required, 1024)] {
        let listener = Listener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = listener.with_proxy_protocol(mode);
        let limits = ListenerLimits {
            connections_per_address_max: 8,
            handshake_timeout: PATIENCE,
            ..ListenerLimits::default()
        };
        let world = World::start_on(listener, None, limits, ConnectionLimits::default());
        run(async {
            let mut silent = Vec::new();
            for _ in 0..count_max {
                silent.push(world.connect().await);
            }
            assert!(is_closed(&mut world.connect().await).await);
            assert_eq!(world.network.handle().connections_open(), count_max);
        });
    }
}

/// A peer that sends one frame and then neither sends nor goes away.
struct Silent {
    frame: Option<bytes::Bytes>,
}

impl AsyncRead for Silent {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(frame) = self.frame.take() else { return Poll::Pending };
        buffer.put_slice(&frame);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Silent {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Serves connections until each has answered its frame, gone quiet and holds no more than
/// `bytes_max`.
fn hold_little_when_idle<S, F>(connections: impl FnOnce() -> Vec<F>, count: u64, bytes_max: u64)
where
    S: AsyncRead + AsyncWrite + Unpin + 'static,
    F: Future<Output = S> + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = LocalSet::new();
    let (shutdown, metrics) = (Shutdown::new(), Arc::new(Metrics::default()));
    // Steps of 10 ms in which quiet buffers are given back.
    let limits = ConnectionLimits { slow_reader_timeout: SOON, ..ConnectionLimits::default() };
    let mut held = allocation_counter::measure(|| {
        for stream in connections() {
            let (limits, shutdown) = (limits.clone(), shutdown.clone());
            let metrics = Arc::clone(&metrics);
            local.spawn_local(async move {
                let stream = stream.await;
                serve_connection(stream, Echo::default(), limits, &shutdown, metrics).await
            });
        }
    })
    .bytes_current;
    let deadline = Instant::now() + PATIENCE;
    let each = |held: i64| u64::try_from(held).unwrap() / count;
    while metrics.requests.load(Relaxed) < count || each(held) > bytes_max {
        let answered = metrics.requests.load(Relaxed);
        assert!(Instant::now() < deadline, "{answered} answered, {} bytes each", each(held));
        let turn = allocation_counter::measure(|| {
            local.block_on(&runtime, async {
                for _ in 0..100 {
                    tokio::task::yield_now().await;
                }
            });
        });
        held += turn.bytes_current;
    }
    assert_eq!(metrics.refused(Refusal::Idle), 0);
}

#[test]
fn ten_thousand_idle_connections_hold_little() {
    let count = 10_000;
    let silent = || Silent { frame: Some(framed(b"frame")) };
    let connections = || (0..count).map(|_| std::future::ready(silent())).collect();
    hold_little_when_idle(connections, count, 4 * 1024);
}

#[test]
fn idle_tls_connections_hold_little() {
    const COUNT: usize = 50;
    let authority = Authority::new("ca");
    let settings = server_settings(&authority.issue("server", &["localhost"]));
    let tls = Arc::new(ServerTls::new(settings).unwrap());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let client = client_tls(&authority, None);
    let (done, wait) = tokio::sync::oneshot::channel::<()>();
    let clients = std::thread::spawn(move || {
        run(async move {
            let mut sockets = Vec::new();
            for _ in 0..COUNT {
                sockets.push(TcpStream::connect(address).await.unwrap());
            }
            let mut streams = Vec::new();
            for socket in sockets {
                let mut stream = client.connect(socket, "localhost").await.unwrap();
                ask(&mut stream, &vec![7; 100_000]).await.unwrap();
                streams.push(stream);
            }
            // They stay open until the server has been looked at.
            wait.await.unwrap_err();
        });
    });
    let sockets: Vec<_> = (0..COUNT).map(|_| listener.accept().unwrap().0).collect();
    let connections = || {
        let accept = |socket: std::net::TcpStream| {
            let tls = Arc::clone(&tls);
            async move {
                socket.set_nonblocking(true).unwrap();
                let socket = TcpStream::from_std(socket).unwrap();
                let deadline = tokio::time::Instant::now() + PATIENCE;
                tls.accept(socket, deadline).await.unwrap().stream
            }
        };
        sockets.into_iter().map(accept).collect()
    };
    hold_little_when_idle::<Stream, _>(connections, COUNT as u64, 32 * 1024);
    drop(done);
    clients.join().unwrap();
}
