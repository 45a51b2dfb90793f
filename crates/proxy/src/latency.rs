//! How long requests take, and where: waiting for bytes of the client or for its socket, in
//! filters, and upstream.
//!
//! The clock is read once in each turn of a session, not for each request: within a turn nothing
//! waits. Each thread adds to counters of its own, so that an addition costs a load and a store.

use std::array;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Instant;

use moldau_net::Principal;
use moldau_protocol::ApiKey;
use moldau_threads::{Mutex, MutexGuard};

use crate::context::SessionContext;
use crate::traffic::add_alone;

/// Principals of a virtual cluster with series of their own; a thread has about 6 KiB for each.
/// Those that come later are counted together.
const PRINCIPALS_MAX: usize = 100;

/// The label of principals beyond those.
const OTHERS: &str = "others";

/// API keys with a series of their own; Kafka 4.4 ends at 94. The last one stands for those that
/// are not known.
const API_KEYS: usize = 128;

/// The upper bound of the first bucket is 2^6 = 64 µs, below which nothing passes a socket; each
/// is twice the one before, up to 16.8 s.
const FIRST_BUCKET_BITS: u32 = 6;
const BUCKETS: usize = 20;

/// A time in microseconds since the session began. It turns over after 71 minutes; no request
/// takes as long.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Micros(u32);

impl Micros {
    /// The time that has gone by since `start`.
    // Apart, as all that counts, so that the bench `counting` can tell what it costs.
    #[inline(never)]
    pub(crate) fn since(start: Instant) -> Self {
        let [.., b0, b1, b2, b3] = start.elapsed().as_micros().to_be_bytes();
        Self(u32::from_be_bytes([b0, b1, b2, b3]))
    }
}

/// Where the time of a request goes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Part {
    /// For bytes of the client, for room in a socket, or for answers to requests before it.
    Wait,
    /// In filters, on the way there and back.
    Filter,
    /// Between the request's last byte and the answer's first.
    Upstream,
}

impl Part {
    pub(crate) const ALL: [Self; 3] = [Self::Wait, Self::Filter, Self::Upstream];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Filter => "filter",
            Self::Upstream => "upstream",
        }
    }
}

/// The time that one request has taken so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Timing {
    since: Micros,
    spent: [u32; 3],
}

impl Timing {
    pub(crate) fn begun(now: Micros) -> Self {
        Self { since: now, spent: [0; 3] }
    }

    /// Microseconds by [`Part`].
    pub(crate) fn spent(&self) -> [u32; 3] {
        self.spent
    }

    /// What has gone by since the last call was spent on `part`.
    #[inline(never)]
    pub(crate) fn spend(&mut self, part: Part, now: Micros) {
        let [wait, filter, upstream] = &mut self.spent;
        let spent = match part {
            Part::Wait => wait,
            Part::Filter => filter,
            Part::Upstream => upstream,
        };
        *spent = spent.wrapping_add(now.0.wrapping_sub(self.since.0));
        self.since = now;
    }
}

/// What each thread adds to, by principal.
type Principals = BTreeMap<String, Vec<(ThreadId, Arc<Shard>)>>;

/// The latencies of a virtual cluster.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    /// Guards which principals have series; held when a session begins, and to read them.
    principals: Mutex<Principals>,
}

/// What sessions of one principal on one thread add to.
#[derive(Debug)]
struct Shard {
    apis: [OnceLock<Box<ApiLatencies>>; API_KEYS],
}

#[derive(Debug, Default)]
struct ApiLatencies {
    parts: [Histogram; 3],
}

#[derive(Debug, Default)]
struct Histogram {
    buckets: [AtomicU64; BUCKETS],
    sum_micros: AtomicU64,
}

/// A histogram of all threads, as it is read.
#[derive(Debug)]
pub(crate) struct Series {
    pub(crate) principal: String,
    pub(crate) api: &'static str,
    pub(crate) part: Part,
    /// Upper bounds in seconds, each with the number of requests between it and the one before.
    pub(crate) buckets: Vec<(f64, u64)>,
    pub(crate) sum_seconds: f64,
    pub(crate) count: u64,
}

impl Latencies {
    /// Every histogram that holds anything.
    pub(crate) fn read(&self) -> Vec<Series> {
        let mut series = Vec::new();
        for (principal, shards) in &*self.lock() {
            for key in 0..API_KEYS {
                let of_api = shards.iter().filter_map(|(_, shard)| shard.apis.get(key)?.get());
                let apis: Vec<_> = of_api.map(|api| &**api).collect();
                if !apis.is_empty() {
                    series.extend(Part::ALL.map(|part| Series::sum(principal, key, part, &apis)));
                }
            }
        }
        series
    }

    /// What sessions of `principal` on this thread add to.
    fn shard(&self, principal: &Principal) -> Arc<Shard> {
        let mut principals = self.lock();
        let mut label = principal.to_string();
        if principals.len() >= PRINCIPALS_MAX && !principals.contains_key(&label) {
            label = OTHERS.to_owned();
        }
        let (shards, here) = (principals.entry(label).or_default(), thread::current().id());
        if let Some((_, shard)) = shards.iter().find(|(thread, _)| *thread == here) {
            return Arc::clone(shard);
        }
        let shard = Arc::new(Shard { apis: array::from_fn(|_| OnceLock::new()) });
        shards.push((here, Arc::clone(&shard)));
        shard
    }

    fn lock(&self) -> MutexGuard<'_, Principals> {
        self.principals.lock()
    }
}

impl Series {
    fn sum(principal: &str, key: usize, part: Part, apis: &[&ApiLatencies]) -> Self {
        let key = i16::try_from(key).ok().and_then(|key| ApiKey::try_from(key).ok());
        let (mut counts, mut sum_micros) = ([0; BUCKETS], 0);
        for histogram in apis.iter().map(|api| api.part(part)) {
            sum_micros += histogram.sum_micros.load(Ordering::Relaxed);
            for (count, bucket) in counts.iter_mut().zip(&histogram.buckets) {
                *count += bucket.load(Ordering::Relaxed);
            }
        }
        let bounds = (FIRST_BUCKET_BITS..).map(|bits| seconds(1 << bits));
        let bounds = bounds.take(BUCKETS - 1).chain([f64::INFINITY]);
        Self {
            principal: principal.to_owned(),
            api: key.map_or("unknown", ApiKey::name),
            part,
            count: counts.iter().sum(),
            buckets: bounds.zip(counts).collect(),
            sum_seconds: seconds(sum_micros),
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "a sum of 285 years is as exact as it is shown")]
fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

impl ApiLatencies {
    fn part(&self, part: Part) -> &Histogram {
        let [wait, filter, upstream] = &self.parts;
        match part {
            Part::Wait => wait,
            Part::Filter => filter,
            Part::Upstream => upstream,
        }
    }
}

impl Histogram {
    /// Counts a request. Only one thread does so.
    fn add(&self, micros: u32) {
        let bits = (u32::BITS - micros.saturating_sub(1).leading_zeros()).max(FIRST_BUCKET_BITS);
        let last = BUCKETS - 1;
        let bucket = usize::try_from(bits - FIRST_BUCKET_BITS).map_or(last, |it| it.min(last));
        if let Some(bucket) = self.buckets.get(bucket) {
            add_alone(bucket, 1);
        }
        add_alone(&self.sum_micros, u64::from(micros));
    }
}

/// What one session adds to the latencies of its virtual cluster.
#[derive(Debug)]
pub(crate) struct SessionLatencies {
    latencies: Arc<Latencies>,
    context: SessionContext,
    /// Of the principal that is known by `principal`; none before the first request.
    shard: Option<Arc<Shard>>,
    /// How often the principal had changed when the shard was looked up.
    changes: u32,
}

impl SessionLatencies {
    pub(crate) fn new(latencies: Arc<Latencies>, context: SessionContext) -> Self {
        Self { latencies, context, shard: None, changes: 0 }
    }

    /// Counts a request whose answer has gone out.
    #[inline(never)]
    pub(crate) fn add(&mut self, api_key: i16, timing: Timing) {
        if self.changes != self.context.principal_changes() {
            (self.shard, self.changes) = (None, self.context.principal_changes());
        }
        let (latencies, context) = (&self.latencies, &self.context);
        let shard = self.shard.get_or_insert_with(|| latencies.shard(&context.principal()));
        let known = usize::try_from(api_key).unwrap_or(API_KEYS).min(API_KEYS - 1);
        let Some(api) = shard.apis.get(known) else { return };
        let api = api.get_or_init(Box::default);
        for (histogram, micros) in api.parts.iter().zip(timing.spent) {
            histogram.add(micros);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> SessionContext {
        let peer = "192.0.2.7:50000".parse().unwrap();
        SessionContext::new("main", peer, Principal::anonymous())
    }

    fn spent(parts: [u32; 3]) -> Timing {
        Timing { since: Micros(0), spent: parts }
    }

    #[test]
    fn a_request_is_counted_in_the_bucket_whose_bound_it_keeps() {
        for (micros, bucket) in [(0, 0), (64, 0), (65, 1), (128, 1), (129, 2), (u32::MAX, 19)] {
            let histogram = Histogram::default();
            histogram.add(micros);
            let counts = histogram.buckets.each_ref().map(|count| count.load(Ordering::Relaxed));
            assert_eq!(counts.iter().position(|count| *count == 1), Some(bucket), "{micros}");
        }
    }

    #[test]
    fn time_is_spent_on_the_part_that_is_named_even_when_the_clock_turns_over() {
        let mut timing = Timing::begun(Micros(u32::MAX - 9));
        timing.spend(Part::Wait, Micros(u32::MAX));
        timing.spend(Part::Filter, Micros(4));
        timing.spend(Part::Upstream, Micros(34));
        timing.spend(Part::Filter, Micros(40));
        assert_eq!(timing.spent, [9, 11, 30]);
    }

    #[test]
    fn sessions_of_a_principal_share_a_series_and_the_last_bucket_has_no_bound() {
        let latencies = Arc::new(Latencies::default());
        let context = context();
        let mut session = SessionLatencies::new(Arc::clone(&latencies), context.clone());
        session.add(3, spent([0, 0, 100]));
        context.set_principal(Principal::user("alice"));
        session.add(3, spent([0, 0, u32::MAX]));
        let alices = latencies.read();
        let mut other = SessionLatencies::new(Arc::clone(&latencies), context);
        other.add(3, spent([0, 0, 100]));
        let upstream = |series: Vec<Series>| {
            let is_upstream = |series: &Series| series.part == Part::Upstream;
            let found = series.into_iter().filter(is_upstream);
            found.map(|it| (it.principal, it.api, it.count)).collect::<Vec<_>>()
        };
        assert_eq!(
            upstream(latencies.read()),
            [
                ("User:ANONYMOUS".to_owned(), "Metadata", 1),
                ("User:alice".to_owned(), "Metadata", 2)
            ]
        );
        let alice =
            alices.iter().find(|it| it.principal == "User:alice" && it.part == Part::Upstream);
        assert_eq!(alice.unwrap().buckets.last(), Some(&(f64::INFINITY, 1)));
    }

    #[test]
    fn principals_beyond_the_limit_are_counted_together() {
        let latencies = Arc::new(Latencies::default());
        for name in 0..3 * PRINCIPALS_MAX {
            let context = context();
            context.set_principal(Principal::user(&name.to_string()));
            SessionLatencies::new(Arc::clone(&latencies), context).add(3, spent([0; 3]));
        }
        let counted: u64 = latencies.read().iter().map(|series| series.count).sum();
        assert_eq!(counted, 3 * 3 * PRINCIPALS_MAX as u64);
        assert_eq!(latencies.lock().len(), PRINCIPALS_MAX + 1);
    }
}
