//! Connections over a stream in memory, whose service answers as each frame asks.

mod memory;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use super::*;
use crate::refusal::Refusal;
use crate::watch::Silence;

/// Echoes frames; the first byte says how: `r` at once, `l` when its gate opens, `k` likewise and
/// keeps the request until then, `n` not at all, `c` closes, `x` closes late, `s` in three
/// segments.
#[derive(Clone, Default)]
struct Script {
    calls: Rc<Cell<usize>>,
    gates: Rc<RefCell<VecDeque<oneshot::Receiver<()>>>>,
    ready: Option<watch::Receiver<bool>>,
    /// Nothing is taken from the peer until this is over.
    muted: Rc<RefCell<Option<Pin<Box<Sleep>>>>>,
    stood_back: Rc<Cell<bool>>,
}

impl Service for Script {
    type Future = Pin<Box<dyn Future<Output = Response>>>;

    fn poll_open(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut muted = self.muted.borrow_mut();
        muted.as_mut().map_or(Poll::Ready(()), |time| time.as_mut().poll(cx))
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>, _: usize) -> Poll<()> {
        let Some(ready) = &mut self.ready else { return Poll::Ready(()) };
        let waiting = ready.wait_for(|open| *open);
        match std::pin::pin!(waiting).poll(cx) {
            Poll::Ready(_) => Poll::Ready(()),
            // The wait registers with the channel only as long as it lives: poll again soon.
            Poll::Pending => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    fn stand_back(&mut self) {
        self.stood_back.set(true);
    }

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        self.calls.set(self.calls.get() + 1);
        let echo = Bytes::from(framed(frame));
        match frame.first() {
            Some(first @ (b'l' | b'k')) => {
                let gate = self.gates.borrow_mut().pop_front().unwrap();
                let answer = Box::pin(async move {
                    gate.await.unwrap();
                    echo.into()
                });
                Reply::Later(answer, if *first == b'k' { frame.len() } else { 0 })
            }
            Some(b'n') => Reply::NoResponse,
            Some(b'c') => Reply::Close("asked to"),
            Some(b'x') => {
                Reply::Later(Box::pin(async { Response::closing("as turned out late") }), 0)
            }
            Some(b's') => {
                let rest = vec![echo.slice(4..5), Bytes::new(), echo.slice(5..)];
                Reply::Ready(Response { head: echo.slice(..4), rest, ..Response::default() })
            }
            _ => Reply::Ready(echo.into()),
        }
    }
}

fn framed(frame: &[u8]) -> Vec<u8> {
    let mut bytes = u32::try_from(frame.len()).unwrap().to_be_bytes().to_vec();
    bytes.extend_from_slice(frame);
    bytes
}

async fn read_frame(stream: &mut DuplexStream) -> Vec<u8> {
    let length = stream.read_u32().await.unwrap();
    let mut frame = vec![0; usize::try_from(length).unwrap()];
    stream.read_exact(&mut frame).await.unwrap();
    frame
}

/// A peer that never stops sending one frame.
struct Endless {
    frame: Vec<u8>,
    sent: usize,
}

impl AsyncRead for Endless {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while buffer.remaining() > 0 {
            let rest = &self.frame[self.sent..];
            let count = rest.len().min(buffer.remaining());
            buffer.put_slice(&rest[..count]);
            self.sent = (self.sent + count) % self.frame.len();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Endless {
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

/// The thread's other connections waited for as long as such a peer went on.
#[tokio::test(start_paused = true)]
async fn peer_that_never_stops_sending_is_left_for_others_to_be_served() {
    for (frame, calls_max) in [(framed(b"n"), 1024), (framed(&[b'n'; 2044]), 1023)] {
        let (script, shutdown) = (Script::default(), Shutdown::new());
        let limits = ConnectionLimits::default();
        let stream = Endless { frame, sent: 0 };
        let served = serve_connection(stream, script.clone(), limits, &shutdown, Arc::default());
        let mut served = std::pin::pin!(served);
        for turn in 1..=3 {
            let before = script.calls.get();
            let polled = std::future::poll_fn(|cx| Poll::Ready(served.as_mut().poll(cx)));
            assert!(polled.await.is_pending());
            let calls = script.calls.get() - before;
            assert!((1..=calls_max).contains(&calls), "{calls} requests in turn {turn}");
            tokio::task::yield_now().await;
        }
    }
}

struct World {
    peer: DuplexStream,
    script: Script,
    shutdown: Shutdown,
    metrics: Arc<Metrics>,
    served: JoinHandle<Closed>,
}

impl World {
    fn start(script: Script, limits: ConnectionLimits) -> Self {
        Self::start_over(duplex(64 * 1024), script, limits)
    }

    fn start_over(
        (peer, stream): (DuplexStream, DuplexStream),
        script: Script,
        limits: ConnectionLimits,
    ) -> Self {
        let (shutdown, metrics) = (Shutdown::new(), Arc::new(Metrics::default()));
        let (service, signal, counters) = (script.clone(), shutdown.clone(), metrics.clone());
        let served = spawn_local(async move {
            serve_connection(stream, service, limits, &signal, counters).await
        });
        Self { peer, script, shutdown, metrics, served }
    }

    async fn send(&mut self, frames: &[&[u8]]) {
        let bytes: Vec<u8> = frames.iter().flat_map(|frame| framed(frame)).collect();
        self.peer.write_all(&bytes).await.unwrap();
    }

    fn gate(&self) -> oneshot::Sender<()> {
        let (open, gate) = oneshot::channel();
        self.script.gates.borrow_mut().push_back(gate);
        open
    }

    /// Lets the connection do all it can without time passing.
    async fn settle(&self) {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }
}

fn run<F: Future>(test: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test)
}

#[test]
fn answers_keep_request_order_behind_a_slow_one() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        let (first, second) = (world.gate(), world.gate());
        world.send(&[b"l1", b"r2", b"l3", b"s4", b"n5", b"r6"]).await;
        world.settle().await;
        assert_eq!(world.script.calls.get(), 6, "all are served while the first waits");
        second.send(()).unwrap();
        world.settle().await;
        assert_eq!(world.metrics.bytes_out.load(Ordering::Relaxed), 0);
        first.send(()).unwrap();
        for expected in [b"l1", b"r2", b"l3", b"s4", b"r6"] {
            assert_eq!(read_frame(&mut world.peer).await, expected);
        }
        drop(world.peer);
        assert!(matches!(world.served.await.unwrap(), Closed::ByPeer));
    });
}

#[test]
fn in_flight_bound_holds_back_further_requests() {
    run(async {
        let limits = ConnectionLimits { in_flight_requests_max: 2, ..Default::default() };
        let mut world = World::start(Script::default(), limits);
        let (first, second) = (world.gate(), world.gate());
        world.send(&[b"l1", b"l2", b"r3", b"r4"]).await;
        world.settle().await;
        assert_eq!(world.script.calls.get(), 2);
        first.send(()).unwrap();
        assert_eq!(read_frame(&mut world.peer).await, b"l1");
        world.settle().await;
        assert_eq!(world.script.calls.get(), 3);
        second.send(()).unwrap();
        for expected in [b"l2", b"r3", b"r4"] {
            assert_eq!(read_frame(&mut world.peer).await, expected);
        }
    });
}

#[test]
fn peer_that_does_not_read_stops_being_served() {
    run(async {
        let limits = ConnectionLimits { answer_bytes_max: 1, ..Default::default() };
        let mut world = World::start(Script::default(), limits);
        let large = [b'r'; 60_000];
        let (mut reading, mut writing) = tokio::io::split(world.peer);
        let writer = spawn_local(async move {
            for _ in 0..20 {
                writing.write_all(&framed(&large)).await.unwrap();
            }
            writing
        });
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        assert!(world.script.calls.get() <= 3, "served {}", world.script.calls.get());
        let mut answers = vec![0; 20 * 60_004];
        reading.read_exact(&mut answers).await.unwrap();
        drop((writer.await.unwrap(), reading));
        assert!(matches!((&mut world.served).await.unwrap(), Closed::ByPeer));
    });
}

#[test]
fn frame_is_held_until_the_service_is_ready() {
    run(async {
        let (open, ready) = watch::channel(false);
        let script = Script { ready: Some(ready), ..Script::default() };
        let mut world = World::start(script, ConnectionLimits::default());
        world.send(&[b"r1", b"r2"]).await;
        world.settle().await;
        assert_eq!(world.script.calls.get(), 0);
        open.send(true).unwrap();
        assert_eq!(read_frame(&mut world.peer).await, b"r1");
        assert_eq!(read_frame(&mut world.peer).await, b"r2");
    });
}

/// When a peer that is muted now is heard again.
fn hour_from_now() -> Sleep {
    tokio::time::sleep_until(tokio::time::Instant::now() + Duration::from_hours(1))
}

/// KIP-219: the answer says how long the client is throttled, so it goes out before.
#[test]
fn a_muted_peer_gets_its_answers_and_nothing_is_taken_from_it() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        let gate = world.gate();
        world.send(&[b"l1"]).await;
        world.settle().await;
        *world.script.muted.borrow_mut() = Some(Box::pin(hour_from_now()));
        world.send(&[b"r2", b"r3"]).await;
        gate.send(()).unwrap();
        assert_eq!(read_frame(&mut world.peer).await, b"l1");
        for _ in 0..59 {
            tokio::time::advance(Duration::from_mins(1)).await;
            world.settle().await;
            assert_eq!(world.script.calls.get(), 1);
        }
        tokio::time::advance(Duration::from_mins(1)).await;
        assert_eq!(read_frame(&mut world.peer).await, b"r2");
        assert_eq!(read_frame(&mut world.peer).await, b"r3");
        *world.script.muted.borrow_mut() = Some(Box::pin(hour_from_now()));
        world.settle().await;
        world.shutdown.advance(Phase::Draining);
        assert!(matches!(world.served.await.unwrap(), Closed::Drained));
    });
}

/// All others waited for what it had been granted and could not use.
#[test]
fn a_frame_that_cannot_be_taken_any_more_stands_back() {
    run(async {
        let limits = ConnectionLimits { answer_bytes_max: 1000, ..Default::default() };
        let (open, ready) = watch::channel(true);
        let script = Script { ready: Some(ready), ..Script::default() };
        let world = World::start_over(duplex(100), script, limits);
        let gate = world.gate();
        let (mut reading, mut writing) = tokio::io::split(world.peer);
        let large = [b'l'; 2000];
        writing.write_all(&framed(&large)).await.unwrap();
        while world.script.calls.get() == 0 {
            tokio::task::yield_now().await;
        }
        open.send(false).unwrap();
        writing.write_all(&framed(b"r2")).await.unwrap();
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert_eq!((world.script.calls.get(), world.script.stood_back.get()), (1, false));
        // The peer does not read the answer.
        gate.send(()).unwrap();
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert_eq!((world.script.calls.get(), world.script.stood_back.get()), (1, true));
        open.send(true).unwrap();
        let mut answers = vec![0; 2004 + 6];
        reading.read_exact(&mut answers).await.unwrap();
        assert!(answers.ends_with(b"r2"));
    });
}

/// Each connection held as many answers as it may have requests in flight, however large.
#[test]
fn answers_that_wait_for_one_before_them_count_against_the_limit() {
    run(async {
        let limits = ConnectionLimits { answer_bytes_max: 1000, ..Default::default() };
        let mut world = World::start(Script::default(), limits);
        let gate = world.gate();
        let answer = [b'r'; 300];
        let frames: Vec<&[u8]> =
            [b"l".as_slice()].into_iter().chain([answer.as_slice(); 9]).collect();
        world.send(&frames).await;
        world.settle().await;
        assert_eq!(world.script.calls.get(), 1 + 4);
        gate.send(()).unwrap();
        for frame in frames {
            assert_eq!(read_frame(&mut world.peer).await, frame);
        }
    });
}

#[test]
fn bad_length_closes_after_earlier_answers_and_is_counted() {
    for (prefix, negative, empty, oversized) in
        [(-5_i32, 1, 0, 0), (0, 0, 1, 0), (i32::MAX, 0, 0, 1)]
    {
        run(async move {
            let mut world = World::start(Script::default(), ConnectionLimits::default());
            let open = world.gate();
            world.send(&[b"l1"]).await;
            world.peer.write_all(&prefix.to_be_bytes()).await.unwrap();
            world.settle().await;
            open.send(()).unwrap();
            assert_eq!(read_frame(&mut world.peer).await, b"l1");
            assert_eq!(world.peer.read(&mut [0; 1]).await.unwrap(), 0);
            assert!(matches!(world.served.await.unwrap(), Closed::Frame(_)));
            let of = [Refusal::FrameNegative, Refusal::FrameEmpty, Refusal::FrameOversized];
            let counted = of.map(|cause| world.metrics.refused(cause));
            assert_eq!(counted, [negative, empty, oversized]);
        });
    }
}

#[test]
fn refusal_by_the_service_closes_after_earlier_answers() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        world.send(&[b"r1", b"c2", b"r3"]).await;
        assert_eq!(read_frame(&mut world.peer).await, b"r1");
        assert_eq!(world.peer.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(matches!(world.served.await.unwrap(), Closed::ByService("asked to")));
        assert_eq!(world.script.calls.get(), 2);
    });
}

#[test]
fn truncated_frame_ends_cleanly() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        world.peer.write_all(&[0, 0, 0, 9, b'r', 1]).await.unwrap();
        drop(world.peer);
        assert!(matches!(world.served.await.unwrap(), Closed::ByPeer));
        assert_eq!(world.script.calls.get(), 0);
    });
}

#[test]
fn drain_answers_what_is_in_flight_and_takes_nothing_more() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        let open = world.gate();
        world.send(&[b"l1"]).await;
        world.settle().await;
        world.shutdown.advance(Phase::Draining);
        world.settle().await;
        world.send(&[b"r2"]).await;
        world.settle().await;
        open.send(()).unwrap();
        assert_eq!(read_frame(&mut world.peer).await, b"l1");
        assert!(matches!(world.served.await.unwrap(), Closed::Drained));
        assert_eq!(world.script.calls.get(), 1);
    });
}

#[test]
fn drain_closes_an_idle_connection_at_once() {
    run(async {
        let world = World::start(Script::default(), ConnectionLimits::default());
        world.settle().await;
        world.shutdown.advance(Phase::Draining);
        assert!(matches!(world.served.await.unwrap(), Closed::Drained));
    });
}

#[test]
fn peer_that_trickles_bytes_is_closed_as_slow() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        world.peer.write_all(&[0, 0, 1, 0]).await.unwrap();
        let mut sent = 0;
        while !world.served.is_finished() {
            // A step of the watch.
            tokio::time::advance(Duration::from_secs(15)).await;
            world.settle().await;
            if world.peer.write_all(b"r").await.is_ok() {
                sent += 1;
            }
        }
        let closed = world.served.await.unwrap();
        assert!(matches!(closed, Closed::Silent(Silence::SlowWriter)), "{closed}");
        assert!((8..=10).contains(&sent), "closed after {sent} steps");
    });
}

#[test]
fn connection_waiting_for_its_answer_is_not_idle() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        let open = world.gate();
        world.send(&[b"l1"]).await;
        for _ in 0..60 {
            tokio::time::advance(Duration::from_mins(1)).await;
            world.settle().await;
        }
        open.send(()).unwrap();
        assert_eq!(read_frame(&mut world.peer).await, b"l1");
    });
}

#[test]
fn a_large_answer_gives_other_tasks_their_turn() {
    run(async {
        let frame = vec![b'r'; 6 * WRITE_BYTES_PER_TURN];
        let pipe = duplex(4 * frame.len());
        let mut world = World::start_over(pipe, Script::default(), ConnectionLimits::default());
        world.send(&[&frame]).await;
        let mut before = 0;
        while before < framed(&frame).len() as u64 {
            tokio::task::yield_now().await;
            let written = world.metrics.bytes_out.load(Ordering::Relaxed);
            assert!(written - before <= WRITE_BYTES_PER_TURN as u64, "{before} to {written}");
            before = written;
        }
        assert_eq!(read_frame(&mut world.peer).await, frame);
    });
}

/// An answer that could not be given was left out, and the peer waited for it for ever or took the
/// next one for it.
#[test]
fn an_answer_that_turns_out_late_not_to_be_possible_closes_after_earlier_ones() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        world.send(&[b"r1", b"x2", b"r3"]).await;
        assert_eq!(read_frame(&mut world.peer).await, b"r1");
        assert_eq!(world.peer.read(&mut [0; 1]).await.unwrap(), 0);
        assert!(matches!(world.served.await.unwrap(), Closed::ByService("as turned out late")));
    });
}
