//! What sessions hold in memory, and which clients are too slow for it.

use moldau_net::MemoryBudget;
use moldau_protocol::messages::{FetchRequest, FetchResponse};

use super::*;
use crate::unserved::unserved_within;

const MIB: usize = 1 << 20;

/// Runs `test` in virtual time with a cluster whose sessions share a budget.
fn within<F: Future<Output = ()>>(
    memory: &MemoryBudget,
    filters: Vec<Scripted>,
    test: impl FnOnce(Arc<Cluster>) -> F,
) {
    let filters = filters.into_iter().map(|filter| Arc::new(filter) as Arc<dyn Filter>);
    let (_threads, cluster) = unserved_within(memory.clone(), filters.collect());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, test(cluster));
}

/// Lets sessions do all they can within this time.
async fn settle(time: Duration) {
    tokio::time::advance(time).await;
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Sends what the session takes of it.
async fn offer(client: &mut DuplexStream, bytes: &[u8]) {
    drop(timeout(Duration::from_millis(10), client.write_all(bytes)).await);
}

fn passing() -> Scripted {
    Scripted::requests(ApiKey::Produce, |request, _| {
        Box::pin(async move { Ok(RequestOutcome::Forward(request)) })
    })
}

/// Ten clients that stalled within large requests for filters made the proxy hold all they sent.
#[test]
fn requests_for_filters_that_stall_hold_what_the_budget_gives() {
    let memory = MemoryBudget::new(64 * MIB);
    within(&memory, vec![passing()], async |cluster| {
        let large = encoded(3, 1, &produce(1, 5 * MIB));
        let mut stalled = Vec::new();
        for _ in 0..10 {
            let mut world = World::of(Arc::clone(&cluster));
            offer(&mut world.client, &large[..4 * MIB]).await;
            stalled.push(world);
        }
        settle(Duration::ZERO).await;
        let reading = memory.read(MemoryUse::Request);
        assert!(reading.used <= reading.limit, "{reading:?}");
        assert_eq!((reading.used / (10 * MIB), reading.waiting), (1, 9), "{reading:?}");
        // What is small is served meanwhile.
        let mut honest = World::of(Arc::clone(&cluster));
        honest.send(3, 2, &produce(1, 100)).await;
        assert_eq!(honest.arrives::<ProduceRequest>().await.1, 2);
        // Who stalls while others wait makes way for the next.
        for _ in 0..12 {
            settle(Duration::from_secs(1)).await;
        }
        let ended = stalled.iter().filter(|world| world.session.is_finished()).count();
        assert_eq!((ended, memory.read(MemoryUse::Request).waiting), (1, 8));
        drop((stalled, honest));
        settle(2 * CLOSE_WITHIN).await;
        settle(HALF_CLOSED_MAX).await;
    });
}

#[test]
fn a_request_for_filters_that_can_never_be_held_ends_its_session() {
    let memory = MemoryBudget::new(8 * MIB);
    within(&memory, vec![passing()], async |cluster| {
        let mut world = World::of(cluster);
        offer(&mut world.client, &encoded(3, 1, &produce(1, 2 * MIB))).await;
        let ended = world.closed().await;
        assert!(matches!(ended, Ended::Memory(_)), "{ended}");
        assert_eq!(ended.cause(), Some(Refusal::MemoryBudget));
    });
}

/// A consumer whose answers could not be held lost its connection again and again.
#[test]
fn a_fetch_for_filters_asks_for_no_more_than_can_be_held() {
    let memory = MemoryBudget::new(64 * MIB);
    let limit = i32::try_from(MIB).unwrap();
    assert!(memory.most(MemoryUse::Answer) / 16 < MIB);
    let claims = Scripted {
        claims: vec![(ApiKey::Fetch, Direction::Response)],
        ..Scripted::requests(ApiKey::Fetch, |request, _| {
            Box::pin(async move { Ok(RequestOutcome::Forward(request)) })
        })
    };
    within(&memory, vec![claims], async |cluster| {
        let mut world = World::of(cluster);
        for version in [4, 11, 12, 14, 15, 17] {
            for (min_bytes, max_bytes) in [(1, 100), (55 << 20, 55 << 20), (1, i32::MAX)] {
                let request = FetchRequest { min_bytes, max_bytes, ..FetchRequest::default() };
                world.send(version, 1, &request).await;
                let (_, _, arrived) = world.arrives::<FetchRequest>().await;
                let expected = FetchRequest {
                    min_bytes: min_bytes.min(limit),
                    max_bytes: max_bytes.min(limit),
                    ..request
                };
                assert_eq!(arrived, expected, "version {version}");
                world.answer(ApiKey::Fetch, version, 1, &FetchResponse::default()).await;
                world.comes::<FetchResponse>(ApiKey::Fetch, version, 1).await;
            }
        }
    });
}

#[test]
fn memory_of_a_held_request_and_its_answer_comes_back() {
    let memory = MemoryBudget::new(64 * MIB);
    let filter = passing().and_responses(|response| Box::pin(async { Ok(response) }));
    within(&memory, vec![filter], async |cluster| {
        let mut world = World::of(cluster);
        let (mut sending, bytes) = (world.client, encoded(3, 1, &produce(1, MIB)));
        let sent = spawn_local(async move {
            sending.write_all(&bytes).await.unwrap();
            sending
        });
        let frame = read_frame(&mut world.broker).await;
        assert!(frame.len() > MIB);
        world.client = sent.await.unwrap();
        world.answer(ApiKey::Produce, 3, 1, &ProduceResponse::default()).await;
        world.comes::<ProduceResponse>(ApiKey::Produce, 3, 1).await;
        settle(Duration::ZERO).await;
        // Buffers are kept for a while, with their permits.
        let used = |of| memory.read(of).used;
        assert!(used(MemoryUse::Request) <= 256 << 10 && used(MemoryUse::Answer) <= 256 << 10);
    });
}

/// A byte per step kept a session, with all that it held.
#[test]
fn a_client_that_takes_a_byte_now_and_then_is_left() {
    let memory = MemoryBudget::unlimited();
    within(&memory, Vec::new(), async |cluster| {
        let mut world = World::of(cluster);
        world.send(4, 1, &heartbeat("g")).await;
        assert_eq!(world.arrives::<HeartbeatRequest>().await.1, 1);
        let mut answer = vec![0; 20_000];
        answer[..8].copy_from_slice(&[0, 0, 0x4e, 0x1c, 0, 0, 0, 1]);
        offer(&mut world.broker, &answer).await;
        let mut steps = 0;
        while !world.session.is_finished() {
            settle(Limits::default().slow_reader_timeout / 8).await;
            if !world.session.is_finished() {
                world.client.read_u8().await.unwrap();
            }
            steps += 1;
        }
        assert!((8..=10).contains(&steps), "{steps}");
        let ended = world.session.await.unwrap();
        assert!(matches!(ended, Ended::Silent(Silence::SlowReader)), "{ended}");
    });
}

#[test]
fn a_client_that_sends_a_byte_now_and_then_is_left() {
    let memory = MemoryBudget::unlimited();
    within(&memory, Vec::new(), async |cluster| {
        let mut world = World::of(cluster);
        let request = encoded(3, 1, &produce(1, 10_000));
        let mut sent = 0;
        while !world.session.is_finished() {
            offer(&mut world.client, &request[sent..=sent]).await;
            sent += 1;
            settle(Limits::default().slow_reader_timeout / 8).await;
        }
        assert!((8..=11).contains(&sent), "{sent}");
        let ended = world.session.await.unwrap();
        assert!(matches!(ended, Ended::Silent(Silence::SlowWriter)), "{ended}");
    });
}

/// A client is not to blame for a cluster that takes nothing.
#[test]
fn a_client_whose_request_the_cluster_does_not_take_is_kept() {
    let memory = MemoryBudget::unlimited();
    within(&memory, Vec::new(), async |cluster| {
        let mut world = World::of(cluster);
        offer(&mut world.client, &encoded(3, 1, &produce(1, 100_000))).await;
        for _ in 0..30 {
            settle(Limits::default().slow_reader_timeout / 8).await;
        }
        assert!(!world.session.is_finished());
    });
}
