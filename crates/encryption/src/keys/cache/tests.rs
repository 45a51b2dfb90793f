//! The cache over made-up histories.

use super::*;

const LIMITS: Limits = Limits {
    refresh: seconds(60),
    expiry: seconds(120),
    idle_max: seconds(100),
    unknown: seconds(30),
    slots_max: 3,
};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn unavailable() -> KmsError {
    KmsError::Unavailable("down".into())
}

fn unknown() -> KmsError {
    KmsError::UnknownKey("a".into())
}

/// A cache at a time of its own.
struct World {
    cache: Cache<str, u32>,
    now: Instant,
}

impl World {
    fn new() -> Self {
        Self { cache: Cache::new(LIMITS), now: Instant::now() }
    }

    fn wait(&mut self, count: u64) {
        self.now += seconds(count);
    }

    /// Looks a key up and says what came of it in a word.
    fn look(&mut self, key: &str) -> (&'static str, u32) {
        word(self.cache.look(self.now, key, |value| Use::Fresh(*value)))
    }

    fn land(&mut self, key: &str, result: Result<u32, KmsError>) -> Change {
        self.cache.land(self.now, key, result)
    }

    fn load(&mut self, key: &str, value: u32) {
        assert_eq!(self.look(key), ("load", 0));
        assert_eq!(self.land(key, Ok(value)), Change::Loaded);
    }
}

fn word(look: Look<u32>) -> (&'static str, u32) {
    match look {
        Look::Ready(value) => ("ready", value),
        Look::ReadyLoad(value, _) => ("ready, load", value),
        Look::Load(_) => ("load", 0),
        Look::Wait(..) => ("wait", 0),
        Look::Failed(_) => ("failed", 0),
    }
}

#[test]
fn one_call_loads_what_many_look_up() {
    let mut world = World::new();
    assert_eq!(world.look("a"), ("load", 0));
    assert_eq!(world.look("a"), ("wait", 0));
    assert_eq!(world.land("a", Ok(1)), Change::Loaded);
    assert_eq!(world.look("a"), ("ready", 1));
}

#[test]
fn an_ageing_value_serves_while_one_call_replaces_it() {
    let mut world = World::new();
    world.load("a", 1);
    world.wait(60);
    assert_eq!(world.look("a"), ("ready, load", 1));
    assert_eq!(world.look("a"), ("ready", 1));
    assert_eq!(world.land("a", Ok(2)), Change::Replaced);
    assert_eq!(world.look("a"), ("ready", 2));
    world.wait(59);
    assert_eq!(world.look("a"), ("ready", 2));
}

#[test]
fn a_value_serves_on_while_calls_fail_until_it_expires() {
    let mut world = World::new();
    world.load("a", 1);
    world.wait(60);
    for _ in 60..119 {
        assert_eq!(world.look("a"), ("ready, load", 1));
        assert_eq!(world.land("a", Err(unavailable())), Change::ServesOn);
        assert_eq!(world.look("a"), ("ready", 1), "the pause after a failure");
        world.wait(1);
    }
    world.wait(1);
    assert_eq!(world.look("a"), ("load", 0));
}

#[test]
fn an_unused_value_is_forgotten() {
    let mut world = World::new();
    world.load("a", 1);
    world.wait(99);
    world.cache.sweep(world.now);
    assert_eq!(world.cache.len(), 1);
    world.wait(1);
    assert_eq!(world.look("a"), ("load", 0));
    world.land("a", Ok(2));
    world.wait(100);
    world.cache.sweep(world.now);
    assert_eq!(world.cache.len(), 0);
}

#[test]
fn a_key_that_is_gone_serves_no_more() {
    for error in [unknown(), KmsError::DamagedEdek("no")] {
        let mut world = World::new();
        world.load("a", 1);
        world.wait(60);
        assert_eq!(world.look("a"), ("ready, load", 1));
        assert_eq!(world.land("a", Err(error)), Change::Missing);
        assert_eq!(world.look("a"), ("failed", 0));
    }
}

#[test]
fn a_failure_is_remembered_as_long_as_its_kind_says() {
    for (error, pause) in [(unknown(), 30), (KmsError::Refused("no".into()), 5), (unavailable(), 1)]
    {
        let mut world = World::new();
        world.look("a");
        assert_eq!(world.land("a", Err(error)), Change::Missing);
        world.wait(pause - 1);
        assert_eq!(world.look("a"), ("failed", 0));
        world.wait(1);
        assert_eq!(world.look("a"), ("load", 0));
    }
}

#[test]
fn a_spent_value_is_waited_for_and_an_ageing_one_is_not() {
    let mut world = World::new();
    world.load("a", 1);
    let ageing = world.cache.look(world.now, "a", |value| Use::Ageing(*value));
    assert_eq!(word(ageing), ("ready, load", 1));
    let spent = world.cache.look(world.now, "a", |_| Use::<u32>::Spent);
    assert_eq!(word(spent), ("wait", 0));
    world.land("a", Err(unavailable()));
    let spent = world.cache.look(world.now, "a", |_| Use::<u32>::Spent);
    assert_eq!(word(spent), ("failed", 0));
    assert_eq!(world.look("a"), ("ready", 1), "it may serve another use");
}

#[test]
fn unknown_keys_evict_none_in_use() {
    let mut world = World::new();
    world.load("a", 1);
    world.wait(1);
    world.load("b", 2);
    for forged in 0..100 {
        let key = format!("forged {forged}");
        assert_eq!(world.look(&key), ("load", 0));
        world.land(&key, Err(unknown()));
        assert!(world.cache.len() <= LIMITS.slots_max);
    }
    assert_eq!((world.look("a"), world.look("b")), (("ready", 1), ("ready", 2)));
    world.load("c", 3);
    world.wait(1);
    assert_eq!((world.look("a"), world.look("c")), (("ready", 1), ("ready", 3)));
    world.load("d", 4);
    assert_eq!(world.look("b"), ("load", 0), "it was not used for the longest time");
}

#[test]
fn more_calls_than_slots_are_refused() {
    let mut world = World::new();
    for key in ["a", "b", "c"] {
        assert_eq!(world.look(key), ("load", 0));
    }
    assert_eq!(world.look("d"), ("failed", 0));
    world.land("b", Ok(2));
    assert_eq!(world.look("d"), ("load", 0));
}

/// Random uses and results: no value serves past its limits, and no key has two calls at once.
#[test]
fn no_history_makes_a_value_outlive_its_limits() {
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut world = World::new();
        let mut loaded = HashMap::new();
        let mut used = HashMap::new();
        let mut under_way = Vec::new();
        for step in 0..500_u32 {
            world.wait(random.u64(0..20));
            let key = ["a", "b", "c", "d", "e"][random.usize(0..5)];
            let idle = used.insert(key, world.now).map(|at| world.now.duration_since(at));
            let (outcome, value) = world.look(key);
            if outcome.starts_with("ready") {
                let (expected, at) = loaded[key];
                assert_eq!(value, expected, "seed {seed}, step {step}");
                assert!(world.now.duration_since(at) < LIMITS.expiry, "seed {seed}, step {step}");
                assert!(idle.unwrap() < LIMITS.idle_max, "seed {seed}, step {step}");
            }
            if outcome.ends_with("load") {
                assert!(!under_way.contains(&key), "seed {seed}, step {step}");
                under_way.push(key);
            }
            if !under_way.is_empty() && random.bool() {
                let key = under_way.swap_remove(random.usize(..under_way.len()));
                let result = match random.u8(0..4) {
                    0 => Err(unavailable()),
                    1 => Err(unknown()),
                    _ => Ok(step),
                };
                if result.is_ok() {
                    loaded.insert(key, (step, world.now));
                }
                world.land(key, result);
            }
            assert!(world.cache.len() <= LIMITS.slots_max);
        }
    }
}
