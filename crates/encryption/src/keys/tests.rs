//! Keys over a service that is slow, fails or is down, on time that the tests let pass.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use tokio::time::{Instant, advance, sleep_until};

use super::*;
use crate::{DataKey, WrappedDataKey};

/// A service in memory that can be made slow, failing or down.
struct Fake {
    mood: Mutex<Mood>,
    made: AtomicU32,
}

#[derive(Clone)]
struct Mood {
    latency: Duration,
    /// The share of calls that fail, at random.
    failing: f64,
    random: fastrand::Rng,
    /// Answers this to all, or nothing ever.
    down: Option<Down>,
}

#[derive(Clone)]
enum Down {
    Says(KmsError),
    Hangs,
}

impl Fake {
    fn new() -> Arc<Self> {
        let mood = Mood {
            latency: Duration::from_millis(5),
            failing: 0.0,
            random: fastrand::Rng::with_seed(7),
            down: None,
        };
        Arc::new(Self { mood: Mutex::new(mood), made: AtomicU32::new(0) })
    }

    fn change(&self, change: impl FnOnce(&mut Mood)) {
        change(&mut self.mood.lock().unwrap());
    }

    fn goes_down(&self) {
        self.change(|mood| mood.down = Some(Down::Says(unavailable())));
    }

    fn comes_up(&self) {
        self.change(|mood| mood.down = None);
    }

    async fn answer(&self) -> Result<(), KmsError> {
        let (mood, fails) = {
            let mut mood = self.mood.lock().unwrap();
            let fails = mood.random.f64() < mood.failing;
            (mood.clone(), fails)
        };
        pass(mood.latency).await;
        match mood.down {
            Some(Down::Says(error)) => Err(error),
            Some(Down::Hangs) => std::future::pending().await,
            None if fails => Err(unavailable()),
            None => Ok(()),
        }
    }
}

impl Kms for Fake {
    fn resolve_alias<'a>(&'a self, alias: &'a str) -> KmsFuture<'a, KekId> {
        Box::pin(async move {
            self.answer().await?;
            match alias.strip_prefix("KEK_") {
                Some(name) => Ok(KekId(name.into())),
                None => Err(KmsError::UnknownKey(alias.to_owned())),
            }
        })
    }

    fn generate_data_key<'a>(&'a self, kek: &'a KekId) -> KmsFuture<'a, WrappedDataKey> {
        Box::pin(async move {
            self.answer().await?;
            let number = self.made.fetch_add(1, Ordering::Relaxed);
            let edek = Edek(format!("{}/{number}", kek.0).into_bytes().into());
            Ok(WrappedDataKey { key: DataKey::random(), edek })
        })
    }

    fn decrypt_edek<'a>(&'a self, edek: &'a Edek) -> KmsFuture<'a, DataKey> {
        Box::pin(async move {
            self.answer().await?;
            if edek.0.starts_with(b"forged") {
                return Err(KmsError::DamagedEdek("forged"));
            }
            Ok(DataKey::random())
        })
    }
}

/// Lets time pass, which stands still but where all wait for it.
async fn pass(duration: Duration) {
    sleep_until(Instant::now() + duration).await;
}

fn unavailable() -> KmsError {
    KmsError::Unavailable("down".into())
}

fn kek(name: &str) -> KekId {
    KekId(name.into())
}

fn world(settings: &KeySettings) -> (Arc<Fake>, Arc<DataKeys>) {
    let fake = Fake::new();
    let keys = DataKeys::new(Arc::clone(&fake) as Arc<dyn Kms>, settings, 42);
    (fake, Arc::new(keys))
}

fn calls(keys: &DataKeys, operation: Operation) -> u64 {
    Outcome::ALL.iter().map(|outcome| keys.counters().calls(operation, *outcome)).sum()
}

#[tokio::test(start_paused = true)]
async fn a_warm_topic_costs_no_call() {
    let (_, keys) = world(&KeySettings::default());
    let template = KekTemplate::parse("KEK_$(topicName)").unwrap();
    assert!(keys.kek_now(&template.alias("orders")).is_none(), "a call is under way");
    let id = keys.kek(&template.alias("orders")).await.unwrap();
    let first = keys.sealing_key(&id, 100).await.unwrap();
    keys.opening_key(b"edek").await.unwrap();
    for _ in 0..1000 {
        assert_eq!(keys.kek_now("KEK_orders"), Some(Ok(id.clone())));
        let key = keys.sealing_key_now(&id, 100).unwrap().unwrap();
        assert!(Arc::ptr_eq(&key, &first));
        keys.opening_key_now(b"edek").unwrap().unwrap();
    }
    for operation in Operation::ALL {
        assert_eq!(keys.counters().calls(operation, Outcome::Ok), 1, "{}", operation.name());
    }
    for cache in KeyCache::ALL {
        let counters = keys.counters();
        assert_eq!((counters.hits(cache), counters.waits(cache)), (1000, 1), "{}", cache.name());
    }
    assert_eq!(keys.counters().records_reserved(), 100_100);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_alias_is_asked_for_once_in_thirty_seconds() {
    let (_, keys) = world(&KeySettings::default());
    let unknown = Err(KmsError::UnknownKey("orders".into()));
    assert_eq!(keys.kek("orders").await, unknown);
    advance(Duration::from_secs(29)).await;
    assert_eq!(keys.kek_now("orders"), Some(unknown));
    advance(Duration::from_secs(1)).await;
    assert_eq!(keys.kek_now("orders"), None);
    keys.kek("orders").await.unwrap_err();
    assert_eq!(calls(&keys, Operation::ResolveAlias), 2, "it is not retried either");
}

#[tokio::test(start_paused = true)]
async fn all_who_need_a_key_share_one_call() {
    let (_, keys) = world(&KeySettings::default());
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let keys = Arc::clone(&keys);
            tokio::spawn(async move { keys.sealing_key(&kek("orders"), 1).await.is_ok() })
        })
        .collect();
    for task in tasks {
        assert!(task.await.unwrap());
    }
    assert_eq!(calls(&keys, Operation::GenerateDataKey), 1);
}

#[test]
fn threads_with_runtimes_of_their_own_share_one_call() {
    let (_, keys) = world(&KeySettings::default());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.unwrap().block_on(async {
                    keys.opening_key(b"edek").await.unwrap();
                    // The call may be this thread's, so it stays until all have their answer.
                    assert!(keys.opening_key_now(b"edek").is_some());
                });
            });
        }
    });
    assert_eq!(calls(&keys, Operation::DecryptEdek), 1);
}

/// The thread that made the call went away with the call unfinished, and the others waited on.
#[test]
fn a_runtime_that_ends_leaves_no_one_waiting() {
    let (fake, keys) = world(&KeySettings::default());
    fake.change(|mood| mood.down = Some(Down::Hangs));
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    first.block_on(async { assert!(keys.opening_key_now(b"edek").is_none()) });
    drop(first);
    fake.comes_up();
    runtime().block_on(async {
        let failed = keys.opening_key(b"edek").await.err();
        assert_eq!(failed, Some(KmsError::Unavailable("the call was given up".into())));
    });
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_gives_up_leaves_the_call_to_the_others() {
    let (_, keys) = world(&KeySettings::default());
    let id = kek("orders");
    tokio::select! {
        biased;
        _ = keys.sealing_key(&id, 1) => panic!("the service takes longer"),
        () = pass(Duration::from_millis(1)) => {}
    }
    keys.sealing_key(&id, 1).await.unwrap();
    assert_eq!(calls(&keys, Operation::GenerateDataKey), 1);
}

/// A load of many producers on one key with a small maximum.
#[tokio::test(start_paused = true)]
async fn rotation_by_count_under_load_neither_delays_nor_fails_calls() {
    const RECORDS_MAX: u64 = 10_000;
    let settings = KeySettings { records_per_key_max: RECORDS_MAX, ..KeySettings::default() };
    let (_, keys) = world(&settings);
    keys.sealing_key(&kek("orders"), 0).await.unwrap();
    let sealed = Arc::new(Mutex::new(HashMap::new()));
    let tasks: Vec<_> = (0..4)
        .map(|task| {
            let (keys, sealed) = (Arc::clone(&keys), Arc::clone(&sealed));
            tokio::spawn(async move {
                let mut random = fastrand::Rng::with_seed(task);
                for _ in 0..5000 {
                    let records = random.u32(1..100);
                    let key = keys.sealing_key_now(&kek("orders"), records).unwrap().unwrap();
                    let (_, count) = *sealed
                        .lock()
                        .unwrap()
                        .entry(Arc::as_ptr(&key) as usize)
                        .and_modify(|(_, count): &mut (Arc<SealingKey>, u64)| {
                            *count += u64::from(records)
                        })
                        .or_insert((key, u64::from(records)));
                    assert!(count <= RECORDS_MAX);
                    pass(Duration::from_millis(1)).await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let sealed = sealed.lock().unwrap();
    let total: u64 = sealed.values().map(|(_, count)| count).sum();
    assert_eq!(total, keys.counters().records_reserved());
    // Each key seals between half of the maximum and what comes in during the call after that.
    let made = keys.counters().calls(Operation::GenerateDataKey, Outcome::Ok);
    assert!((total / RECORDS_MAX..=total / (RECORDS_MAX / 2) + 1).contains(&made), "{made}");
    assert_eq!(keys.counters().sealing_keys_replaced(), made - 1);
    assert_eq!(keys.counters().waits(KeyCache::SealingKeys), 1);
}

#[tokio::test(start_paused = true)]
async fn a_batch_above_the_maximum_gets_a_key_of_its_own() {
    let settings = KeySettings { records_per_key_max: 100, ..KeySettings::default() };
    let (_, keys) = world(&settings);
    let id = kek("orders");
    let small = keys.sealing_key(&id, 10).await.unwrap();
    let large = keys.sealing_key(&id, 1000).await.unwrap();
    assert!(!Arc::ptr_eq(&small, &large));
    let after = keys.sealing_key(&id, 1).await.unwrap();
    assert!(!Arc::ptr_eq(&large, &after));
}

#[tokio::test(start_paused = true)]
async fn rotation_by_age_delays_no_call() {
    let (_, keys) = world(&KeySettings::default());
    let id = kek("orders");
    let first = keys.sealing_key(&id, 1).await.unwrap();
    advance(Duration::from_secs(3600)).await;
    let still = keys.sealing_key_now(&id, 1).unwrap().unwrap();
    assert!(Arc::ptr_eq(&first, &still));
    pass(Duration::from_millis(10)).await;
    let next = keys.sealing_key_now(&id, 1).unwrap().unwrap();
    assert!(!Arc::ptr_eq(&first, &next));
    advance(Duration::from_secs(7200)).await;
    assert!(keys.sealing_key_now(&id, 1).is_none(), "nothing seals past the expiry");
}

#[tokio::test(start_paused = true)]
async fn a_revoked_key_stops_reads() {
    let (fake, keys) = world(&KeySettings::default());
    keys.opening_key(b"edek").await.unwrap();
    let revoked = KmsError::UnknownKey("orders".into());
    fake.change(|mood| mood.down = Some(Down::Says(revoked.clone())));
    advance(Duration::from_secs(3599)).await;
    assert!(keys.opening_key_now(b"edek").unwrap().is_ok());
    advance(Duration::from_secs(1)).await;
    assert!(keys.opening_key_now(b"edek").unwrap().is_ok(), "the service is being asked");
    pass(Duration::from_millis(10)).await;
    assert_eq!(keys.opening_key_now(b"edek").unwrap().err(), Some(revoked));
}

#[tokio::test(start_paused = true)]
async fn idle_opening_keys_leave_memory() {
    let (_, keys) = world(&KeySettings::default());
    let held = Arc::downgrade(&keys.opening_key(b"edek").await.unwrap());
    advance(Duration::from_secs(3599)).await;
    keys.upkeep().await.unwrap();
    assert!(held.upgrade().is_some());
    advance(Duration::from_secs(1)).await;
    keys.upkeep().await.unwrap();
    assert!(held.upgrade().is_none());
}

#[tokio::test(start_paused = true)]
async fn forged_edeks_are_remembered_and_bounded() {
    let settings = KeySettings { opening_keys_max: 10, ..KeySettings::default() };
    let (_, keys) = world(&settings);
    keys.opening_key(b"edek").await.unwrap();
    for number in 0..100 {
        let edek = format!("forged {number}").into_bytes();
        for _ in 0..3 {
            assert!(matches!(keys.opening_key(&edek).await, Err(KmsError::DamagedEdek(_))));
        }
    }
    assert_eq!(calls(&keys, Operation::DecryptEdek), 101);
    assert!(keys.opening_key_now(b"edek").unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_is_tried_three_times() {
    let (fake, keys) = world(&KeySettings::default());
    fake.goes_down();
    let start = Instant::now();
    assert_eq!(keys.opening_key(b"edek").await.err(), Some(unavailable()));
    assert_eq!(keys.counters().calls(Operation::DecryptEdek, Outcome::Unavailable), 3);
    let delays = start.elapsed();
    assert!((1125..=1900).contains(&delays.as_millis()), "{delays:?}");
    fake.change(|mood| mood.down = Some(Down::Says(KmsError::Refused("no".into()))));
    pass(Duration::from_secs(1)).await;
    assert_eq!(keys.opening_key(b"edek").await.err(), Some(KmsError::Refused("no".into())));
    assert_eq!(keys.counters().calls(Operation::DecryptEdek, Outcome::Refused), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_hangs_delays_calls_briefly_and_is_not_waited_for_twice() {
    let (fake, keys) = world(&KeySettings::default());
    fake.change(|mood| mood.down = Some(Down::Hangs));
    let silent = Some(KmsError::Unavailable("no key within 2 s".into()));
    let start = Instant::now();
    assert_eq!(keys.sealing_key(&kek("orders"), 1).await.err(), silent);
    let waited = start.elapsed();
    assert!((2000..2100).contains(&waited.as_millis()), "{waited:?}");
    assert_eq!(keys.sealing_key(&kek("orders"), 1).await.err(), silent);
    assert!(start.elapsed() < waited + Duration::from_millis(100));
    // The call ends all the same, as often as it is tried.
    pass(Duration::from_secs(15)).await;
    let ended = Some(KmsError::Unavailable("no answer within 5 s".into()));
    assert_eq!(keys.sealing_key(&kek("orders"), 1).await.err(), ended);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_comes_too_late_for_one_is_there_for_the_next() {
    let (fake, keys) = world(&KeySettings::default());
    fake.change(|mood| mood.latency = Duration::from_secs(3));
    assert!(keys.sealing_key(&kek("orders"), 1).await.is_err());
    pass(Duration::from_millis(1100)).await;
    assert!(keys.sealing_key_now(&kek("orders"), 1).unwrap().is_ok());
}

/// What one topic saw while its producer sent a batch every 100 ms.
#[derive(Default)]
struct Seen {
    /// When a batch failed, and with what.
    errors: Vec<(Instant, KmsError)>,
    sealed: u32,
}

async fn produce(keys: Arc<DataKeys>, topic: String, until: Instant) -> Seen {
    let mut seen = Seen::default();
    while Instant::now() < until {
        let outcome = async {
            let id = keys.kek(&format!("KEK_{topic}")).await?;
            keys.sealing_key(&id, 50).await?;
            keys.opening_key(topic.as_bytes()).await
        };
        match outcome.await {
            Ok(_) => seen.sealed += 1,
            Err(error) => seen.errors.push((Instant::now(), error)),
        }
        pass(Duration::from_millis(100)).await;
    }
    seen
}

/// The service is down for a minute, for warm topics at the worst time: when their keys are due.
#[tokio::test(start_paused = true)]
async fn a_minute_without_the_service_is_noticed_by_cold_topics_only() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let settings = KeySettings {
            alias_refresh: Duration::from_secs(random.u64(10..50)),
            sealing_key_refresh: Duration::from_secs(random.u64(10..50)),
            opening_key_refresh: Duration::from_secs(random.u64(10..50)),
            ..KeySettings::default()
        };
        let (fake, keys) = world(&settings);
        fake.change(|mood| mood.latency = Duration::from_millis(random.u64(1..200)));
        let start = Instant::now();
        let down = start + Duration::from_secs(30);
        let up = down + Duration::from_secs(60);
        let end = up + Duration::from_secs(60);
        let produce = |name: String| tokio::spawn(produce(Arc::clone(&keys), name, end));
        let warm: Vec<_> = (0..10).map(|n| produce(format!("warm{n}"))).collect();
        sleep_until(down).await;
        let before: u64 = Operation::ALL.iter().map(|o| calls(&keys, *o)).sum();
        let says = Down::Says(unavailable());
        fake.change(|mood| mood.down = Some(if random.bool() { says } else { Down::Hangs }));
        let cold: Vec<_> = (0..10).map(|n| produce(format!("cold{n}"))).collect();
        sleep_until(up).await;
        let after: u64 = Operation::ALL.iter().map(|o| calls(&keys, *o)).sum();
        assert!(after - before < 160, "seed {seed}: {} calls while down", after - before);
        fake.comes_up();
        for task in warm {
            let seen = task.await.unwrap();
            assert_eq!(seen.errors, [], "seed {seed}");
            assert!(seen.sealed > 500);
        }
        for task in cold {
            let seen = task.await.unwrap();
            assert!(!seen.errors.is_empty(), "seed {seed}");
            assert!(seen.sealed > 400, "seed {seed}: {} sealed", seen.sealed);
            for (at, error) in seen.errors {
                assert!(matches!(error, KmsError::Unavailable(_)), "seed {seed}: {error}");
                // A call that hangs holds the trial for 5 s, and the pause after it is 5 s.
                assert!(at < up + Duration::from_secs(11), "seed {seed}: {:?}", at - up);
            }
        }
    }
}

/// A third of all calls fails, at random, while keys rotate every few seconds.
#[tokio::test(start_paused = true)]
async fn a_service_that_fails_often_is_noticed_by_no_warm_topic() {
    for seed in 0..10 {
        let settings = KeySettings {
            records_per_key_max: 10_000,
            sealing_key_refresh: Duration::from_secs(5),
            opening_key_refresh: Duration::from_secs(5),
            alias_refresh: Duration::from_secs(5),
            ..KeySettings::default()
        };
        let (fake, keys) = world(&settings);
        let end = Instant::now() + Duration::from_secs(120);
        let topics: Vec<String> = (0..10).map(|n| format!("topic{n}")).collect();
        for topic in &topics {
            let id = keys.kek(&format!("KEK_{topic}")).await.unwrap();
            keys.sealing_key(&id, 1).await.unwrap();
            keys.opening_key(topic.as_bytes()).await.unwrap();
        }
        fake.change(|mood| {
            mood.failing = 0.33;
            mood.random = fastrand::Rng::with_seed(seed);
        });
        let tasks: Vec<_> = topics
            .into_iter()
            .map(|topic| tokio::spawn(produce(Arc::clone(&keys), topic, end)))
            .collect();
        for task in tasks {
            assert_eq!(task.await.unwrap().errors, [], "seed {seed}");
        }
        assert!(keys.counters().sealing_keys_replaced() > 100);
    }
}
