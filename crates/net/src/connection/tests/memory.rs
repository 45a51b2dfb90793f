//! Memory use of connections, and how a budget bounds it.

use super::*;
use crate::memory::MemoryReading;

fn limits_with(memory: &MemoryBudget) -> ConnectionLimits {
    ConnectionLimits { memory: memory.account(), ..ConnectionLimits::default() }
}

fn used(memory: &MemoryBudget, of: MemoryUse) -> usize {
    memory.read(of).used
}

/// Ten peers that stalled within frames of 95 MB made the process hold 0.9 GB.
#[test]
fn peers_that_stall_within_large_frames_hold_what_the_budget_gives() {
    run(async {
        let memory = MemoryBudget::new(64 << 20);
        let most = memory.most(MemoryUse::Request);
        let mut stalled = Vec::new();
        for _ in 0..10 {
            let mut world = World::start(Script::default(), limits_with(&memory));
            world.peer.write_u32(u32::try_from(most).unwrap() - 4).await.unwrap();
            stalled.push(world);
        }
        let bytes = vec![0; 60 * 1024];
        let mut taken = 0;
        for world in &mut stalled {
            for _ in 0..40 {
                let written = world.peer.write_all(&bytes);
                taken += match tokio::time::timeout(Duration::ZERO, written).await {
                    Ok(_) => bytes.len(),
                    Err(_) => 0,
                };
                world.settle().await;
            }
        }
        let MemoryReading { used, waiting, .. } = memory.read(MemoryUse::Request);
        assert_eq!((used, waiting), (most, 9));
        assert!(taken <= most + 10 * 128 * 1024, "{taken} bytes were taken");
        // Small requests of others are served meanwhile, and those who stall make way for the next.
        let mut honest = World::start(Script::default(), limits_with(&memory));
        honest.send(&[b"r1"]).await;
        assert_eq!(read_frame(&mut honest.peer).await, b"r1");
        for _ in 0..12 {
            tokio::time::advance(Duration::from_secs(1)).await;
            honest.settle().await;
        }
        let slow = |world: &&World| world.metrics.refused(Refusal::SlowWriter) == 1;
        assert_eq!(stalled.iter().filter(slow).count(), 1);
        assert_eq!(memory.read(MemoryUse::Request).waiting, 8);
    });
}

#[test]
fn a_frame_that_the_budget_never_has_room_for_closes_after_earlier_answers() {
    run(async {
        let memory = MemoryBudget::new(1 << 20);
        let mut world = World::start(Script::default(), limits_with(&memory));
        world.send(&[b"r1"]).await;
        world.peer.write_u32(1 << 20).await.unwrap();
        assert_eq!(read_frame(&mut world.peer).await, b"r1");
        assert_eq!(world.peer.read(&mut [0; 1]).await.unwrap(), 0);
        let closed = world.served.await.unwrap();
        assert!(
            matches!(closed, Closed::Memory(error) if error.bytes == (1 << 20) + 4),
            "{closed}"
        );
        assert_eq!(world.metrics.refused(Refusal::MemoryBudget), 1);
        assert_eq!(memory.read(MemoryUse::Request).exceeded, 1);
    });
}

#[test]
fn memory_of_a_frame_is_kept_for_the_next_unless_others_wait() {
    run(async {
        let memory = MemoryBudget::new(64 << 20);
        let frame = vec![b'n'; 300 * 1024];
        let mut world = World::start(Script::default(), limits_with(&memory));
        for _ in 0..2 {
            world.send(&[&frame, b"r"]).await;
            assert_eq!(read_frame(&mut world.peer).await, b"r");
            assert_eq!(used(&memory, MemoryUse::Request), framed(&frame).len());
        }
        // One that wants all there is waits for it.
        let account = memory.account();
        let take = || account.try_acquire(MemoryUse::Request, 300 * 1024);
        let held: Vec<_> = std::iter::from_fn(take).collect();
        let waiting = account.acquire(MemoryUse::Request, 300 * 1024..=300 * 1024).unwrap();
        let waiting = spawn_local(waiting);
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            world.settle().await;
        }
        assert!(waiting.is_finished(), "what was kept went to the one that waited");
        drop((held, waiting.await.unwrap()));
        assert_eq!(used(&memory, MemoryUse::Request), 0);
        // It goes on, with memory that it gets anew.
        world.send(&[&frame, b"r"]).await;
        assert_eq!(read_frame(&mut world.peer).await, b"r");
        drop(world.peer);
        world.served.await.unwrap();
        assert_eq!(used(&memory, MemoryUse::Request), 0);
    });
}

/// Small answers that were not read came to 4 MiB for each connection.
#[test]
fn small_answers_that_nothing_covers_are_few() {
    run(async {
        let world = World::start_over(duplex(100), Script::default(), ConnectionLimits::default());
        let (_reading, mut writing) = tokio::io::split(world.peer);
        let frame = framed(&[b'r'; 1000]);
        spawn_local(async move { while writing.write_all(&frame).await.is_ok() {} });
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        assert_eq!(world.script.calls.get(), LOOSE_BYTES_MAX.div_ceil(1004));
    });
}

#[test]
fn a_long_answer_counts_until_it_is_written() {
    run(async {
        let memory = MemoryBudget::new(64 << 20);
        let frame = vec![b'r'; 1 << 20];
        let mut world = World::start_over(duplex(2 << 20), Script::default(), limits_with(&memory));
        let gate = world.gate();
        let slow = [b'l'; 20_000];
        world.send(&[&slow, &frame]).await;
        world.settle().await;
        assert_eq!(used(&memory, MemoryUse::Answer), framed(&frame).len());
        gate.send(()).unwrap();
        assert_eq!(read_frame(&mut world.peer).await, slow);
        assert_eq!(read_frame(&mut world.peer).await, frame);
        assert_eq!(used(&memory, MemoryUse::Answer), 0);
    });
}

/// Requests that wait were all read and kept, 64 of each connection.
#[test]
fn requests_that_are_kept_until_they_are_answered_are_few() {
    run(async {
        let mut world = World::start(Script::default(), ConnectionLimits::default());
        let (first, second) = (world.gate(), world.gate());
        world.send(&[&[b'k'; KEPT_REQUEST_BYTES_MAX], b"k2", b"r3"]).await;
        world.settle().await;
        assert_eq!(world.script.calls.get(), 1);
        first.send(()).unwrap();
        world.settle().await;
        assert_eq!(world.script.calls.get(), 3);
        drop(second);
    });
}
