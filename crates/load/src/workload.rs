//! The load of a run and the settings of its clients.

use std::time::Duration;

use moldau_records::Compression;
use serde::{Deserialize, Serialize};

use crate::payload::Filler;
use crate::schedule::Arrivals;
use crate::shape::Shape;
use moldau_measure::Error;

/// Most partitions of a run: the payload header has 16 bits for them.
pub const PARTITIONS_MAX: u16 = u16::MAX;

/// Largest record of a run: Kafka's own default limit of a message, 1 MiB.
pub const RECORD_BYTES_MAX: usize = 1 << 20;

/// Most further consumers of a run: each is a thread, and a machine runs only so many at once.
pub const TAILS_MAX: u16 = 64;

/// Most topics of a run: each has a connection of each of its producers and consumers.
pub const TOPICS_MAX: u16 = 256;

/// Most producers of all topics: each has connections of its own.
pub const PRODUCERS_MAX: u16 = 1_024;

/// Most records of a closed loop: beyond, the producers' buffers set the pace and not the loop.
pub const OUTSTANDING_MAX: u32 = 1 << 16;

/// Bytes that may wait for acknowledgement: a second of 64 MB/s, Kafka's default being half.
pub const BUFFER_BYTES_USUAL: u32 = 64 << 20;

/// Bytes of one MB in every figure of the laboratory.
pub const BYTES_PER_MB: f64 = 1_048_576.0;

/// What a run offers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// How fast operations come.
    pub pace: Pace,
    /// Size of a record's value, payload header included; the mean where sizes differ.
    pub record_bytes: usize,
    /// What a value is made of beside the payload header.
    pub filler: Filler,
    /// Partitions of each topic; one batch goes to one, the next to the next, unless records have
    /// keys.
    pub partitions: u16,
    /// Producer threads of each topic.
    pub producers: u16,
    /// A batch is sent once its values have this size.
    pub batch_bytes: usize,
    /// A batch is sent once its first record has waited this long, microseconds.
    pub linger_us: u64,
    /// Whether a consumer reads meanwhile.
    pub consume: bool,
    /// Further consumers that read meanwhile, each everything over a connection of its own; they
    /// check offsets, not payloads.
    #[serde(default)]
    pub tails: u16,
    /// Time before the measured window, ms.
    pub warmup_ms: u64,
    /// The measured window, ms.
    pub window_ms: u64,
    /// Settings that most experiments leave alone.
    #[serde(default)]
    pub tuning: Tuning,
}

/// Settings that most experiments leave alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tuning {
    /// Codec of the batches.
    pub compression: Codec,
    /// When the target answers.
    pub acks: Acks,
    /// Requests that a producer may have on their way to a broker at once
    /// (`max.in.flight.requests.per.connection`). Beyond 5 it is not idempotent.
    pub in_flight_max: u16,
    /// Bytes of a producer's records that may wait for acknowledgement (`buffer.memory`).
    pub buffer_bytes: u32,
    /// Topics, over which records are spread one by one; the rate of a schedule is that of all.
    /// Each has its own producers, and each consumer a connection for each.
    pub topics: u16,
    /// Bytes that end the wait of a fetch of the consumers (`fetch.min.bytes`).
    pub fetch_min_bytes: u32,
    /// How long the target may wait for them, ms (`fetch.max.wait.ms`).
    pub fetch_max_wait_ms: u32,
    /// How long a load at intended times goes on after the window, ms, where fetches wait; as long
    /// as one may wait if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_ms: Option<u32>,
    /// Records of a transaction; absent where producers make none. Consumers then read committed
    /// records alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_records: Option<u32>,
    /// How records differ.
    #[serde(skip_serializing_if = "is_default")]
    pub shape: Shape,
}

fn is_default(shape: &Shape) -> bool {
    *shape == Shape::default()
}

impl Default for Tuning {
    /// One topic, records that are alike, and what Kafka's clients have.
    fn default() -> Self {
        Self {
            compression: Codec::None,
            acks: Acks::All,
            in_flight_max: 5,
            buffer_bytes: BUFFER_BYTES_USUAL,
            topics: 1,
            fetch_min_bytes: 1,
            fetch_max_wait_ms: 500,
            cooldown_ms: None,
            transaction_records: None,
            shape: Shape::default(),
        }
    }
}

/// A codec of record batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the codec of that name")]
pub enum Codec {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

impl From<Codec> for Compression {
    fn from(codec: Codec) -> Self {
        match codec {
            Codec::None => Self::None,
            Codec::Gzip => Self::Gzip,
            Codec::Snappy => Self::Snappy,
            Codec::Lz4 => Self::Lz4,
            Codec::Zstd => Self::Zstd,
        }
    }
}

/// When the target answers a producer. Kafka's third choice, never, returns no offsets, which the
/// audit needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Acks {
    /// Once all in-sync replicas have the batch; the producer is idempotent.
    #[default]
    All,
    /// Once the leader has it; the producer is not idempotent.
    Leader,
}

/// How fast operations come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// An open-loop schedule.
    Scheduled {
        /// Operations per second of all producers together.
        per_second: u64,
        /// Their distances.
        arrivals: Arrivals,
    },
    /// A closed loop: so many records are on their way at once, and each is followed by the next
    /// when its answer comes. The target sets the pace, so latencies are those of a client that
    /// waits for it, and stalls hide all operations that they keep from being sent.
    Closed {
        /// Records on their way, of all producers together.
        outstanding: u32,
    },
    /// As fast as the target acknowledges: a search for its throughput. Latencies of such a run
    /// say nothing, since the target sets the pace.
    Unpaced,
    /// No producing: an existing topic is read from its start to its end.
    ReadBack,
}

impl Workload {
    /// Refuses what cannot be measured.
    ///
    /// # Errors
    /// [`Error::Plan`] and [`Error::RecordTooSmall`].
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: &str| Err(Error::Plan(text.to_string()));
        let bytes_min = self.filler.record_bytes_min();
        if self.record_bytes < bytes_min {
            return Err(Error::RecordTooSmall { bytes: self.record_bytes, bytes_min });
        }
        self.tuning.shape.check(bytes_min)?;
        if self.record_bytes > RECORD_BYTES_MAX || self.batch_bytes > RECORD_BYTES_MAX {
            return refuse("records and batches hold at most 1 MiB");
        }
        if self.partitions == 0 || self.producers == 0 || self.tuning.topics == 0 {
            return refuse("a run needs a topic, a partition and a producer");
        }
        let of_all = |count: u16| u32::from(self.tuning.topics) * u32::from(count);
        if self.tuning.topics > TOPICS_MAX || of_all(self.producers) > PRODUCERS_MAX.into() {
            return refuse("a run has at most 256 topics, and 1024 producers of all topics");
        }
        if of_all(self.partitions) > PARTITIONS_MAX.into() {
            return refuse("the topics of a run have at most 65535 partitions together");
        }
        if self.tails > TAILS_MAX {
            return refuse("a run has at most 64 further consumers");
        }
        if self.window_ms == 0 {
            return refuse("the measured window is empty");
        }
        if self.tuning.buffer_bytes > BUFFER_BYTES_USUAL {
            return refuse("at most 64 MiB wait for acknowledgement");
        }
        if self.tuning.in_flight_max == 0 {
            return refuse("a producer has a request in flight at least");
        }
        if self.tuning.transaction_records == Some(0) {
            return refuse("a transaction holds a record at least");
        }
        let is_idempotent = self.tuning.acks == Acks::All && self.tuning.in_flight_max <= 5;
        if self.tuning.transaction_records.is_some() && !is_idempotent {
            return refuse("transactions need acks of all and 5 requests in flight at most");
        }
        if matches!(self.pace, Pace::Scheduled { per_second: 0, .. }) {
            return refuse("a schedule needs a rate");
        }
        if let Pace::Closed { outstanding } = self.pace
            && !(of_all(self.producers)..=OUTSTANDING_MAX).contains(&outstanding)
        {
            return refuse("a closed loop has a record for each producer, and at most 65536");
        }
        self.check_trace()
    }

    /// A trace has to say what is due until the end of the window; a moment less is no mistake.
    fn check_trace(&self) -> Result<(), Error> {
        let is_traced = matches!(self.pace, Pace::Scheduled { arrivals: Arrivals::Trace, .. });
        let Some(trace) = self.tuning.shape.trace.as_ref().filter(|_| is_traced) else {
            let sentence = "a trace needs a file of instants";
            return if is_traced { Err(Error::Plan(sentence.into())) } else { Ok(()) };
        };
        let span_ms = trace.span_ns() / 1_000_000;
        let needed_ms = self.warmup_ms + self.window_ms - self.window_ms / 10;
        if span_ms < needed_ms {
            return Err(Error::Plan(format!(
                "{}: its instants end after {span_ms} ms, and warm-up and window take {} ms",
                trace.file,
                self.warmup_ms + self.window_ms
            )));
        }
        Ok(())
    }

    /// Producers of all topics.
    #[must_use]
    pub fn all_producers(&self) -> u16 {
        self.tuning.topics.saturating_mul(self.producers)
    }

    /// Partitions of all topics, each a lane of the ledger.
    #[must_use]
    pub fn lanes(&self) -> u16 {
        self.tuning.topics.saturating_mul(self.partitions)
    }

    /// Bytes of a producer's records that may wait for acknowledgement.
    pub fn buffer_bytes(&self) -> usize {
        usize::try_from(self.tuning.buffer_bytes).unwrap_or(usize::MAX)
    }

    /// Time before the window.
    #[must_use]
    pub fn warmup(&self) -> Duration {
        Duration::from_millis(self.warmup_ms)
    }

    /// The measured window.
    #[must_use]
    pub fn window(&self) -> Duration {
        Duration::from_millis(self.window_ms)
    }

    /// Whether its fetches wait for more bytes than a record may have.
    pub fn fetches_wait(&self) -> bool {
        self.consume && self.tuning.fetch_min_bytes > 1
    }

    /// How long a load at intended times goes on after the window, so that its last records are
    /// fetched like all others: once nothing follows them, a fetch that waits for more bytes than
    /// are left waits as long as it may.
    #[must_use]
    pub fn cooldown(&self) -> Duration {
        match self.pace {
            Pace::Scheduled { .. } if self.fetches_wait() => {
                let Tuning { cooldown_ms, fetch_max_wait_ms, .. } = self.tuning;
                Duration::from_millis(cooldown_ms.unwrap_or(fetch_max_wait_ms).into())
            }
            _ => Duration::ZERO,
        }
    }

    /// The same with no longer a cooldown than it takes to fill two fetches, where that is known:
    /// the last record of the window is then followed by more than a fetch waits for.
    #[must_use]
    pub fn with_short_cooldown(mut self) -> Self {
        let max_ms = self.tuning.fetch_max_wait_ms;
        self.tuning.cooldown_ms = self.fetch_fills_ms().map(|ms| ms.saturating_mul(2).min(max_ms));
        self
    }

    /// How long it takes at most until a fetch, which is of one topic, is full, ms; `None` where
    /// records come at distances or in sizes that vary, are stored in fewer bytes than they have,
    /// are to be committed first, or no fetch waits.
    fn fetch_fills_ms(&self) -> Option<u32> {
        let Pace::Scheduled { per_second, arrivals: Arrivals::Constant } = self.pace else {
            return None;
        };
        let Tuning { fetch_min_bytes, topics, shape, .. } = &self.tuning;
        let is_stored_whole = self.tuning.compression == Codec::None && shape.is_plain();
        let is_seen_at_once = self.tuning.transaction_records.is_none();
        let is_known = self.fetches_wait() && is_stored_whole && is_seen_at_once;
        let per_second = u128::from(per_second) * self.record_bytes as u128;
        let bytes = u128::from(*fetch_min_bytes) * u128::from(*topics);
        let fills_ms = (is_known && per_second > 0).then(|| (bytes * 1_000).div_ceil(per_second));
        fills_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX))
    }

    /// From the first operation to the end of the last: warm-up, window and what follows it.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.warmup() + self.window() + self.cooldown()
    }

    /// MB of `records` records of the usual size.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "bytes of a measurement stay below 2^53")]
    pub fn megabytes(&self, records: u64) -> f64 {
        records as f64 * self.record_bytes as f64 / BYTES_PER_MB
    }
}

#[cfg(test)]
impl Workload {
    /// Full speed for a moment: one producer, one partition, records of 1 KB that are consumed.
    pub fn of_tests() -> Self {
        Self {
            pace: Pace::Unpaced,
            record_bytes: 1024,
            filler: Filler::Random,
            partitions: 1,
            producers: 1,
            batch_bytes: 16_384,
            linger_us: 1_000,
            consume: true,
            tails: 0,
            warmup_ms: 0,
            window_ms: 1,
            tuning: Tuning::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::Keys;

    fn workload() -> Workload {
        Workload::of_tests()
    }

    #[test]
    fn a_load_whose_fetches_wait_goes_on_as_long_as_they_may() {
        let pace = Pace::Scheduled { per_second: 10, arrivals: Arrivals::Constant };
        let tuning = Tuning { fetch_min_bytes: 2, fetch_max_wait_ms: 700, ..Tuning::default() };
        let waiting = Workload {
            consume: true,
            pace,
            warmup_ms: 100,
            window_ms: 1_000,
            tuning,
            ..workload()
        };
        let lengths = |load: &Workload| [load.cooldown(), load.length()].map(|it| it.as_millis());
        assert_eq!(lengths(&waiting), [700, 1_800]);
        let at_once = Tuning { fetch_min_bytes: 1, ..waiting.tuning.clone() };
        for load in [
            Workload { tuning: at_once, ..waiting.clone() },
            Workload { consume: false, ..waiting.clone() },
            Workload { pace: Pace::Unpaced, ..waiting.clone() },
        ] {
            assert_eq!(lengths(&load), [0, 1_100], "{load:?}");
        }
    }

    #[test]
    fn a_load_goes_on_for_two_fetches_where_it_is_known_when_they_are_full() {
        let constant = Pace::Scheduled { per_second: 10_000, arrivals: Arrivals::Constant };
        let tuning = Tuning { fetch_min_bytes: 100_000, ..Tuning::default() };
        let one = Workload { record_bytes: 1_000, pace: constant, tuning, ..workload() };
        let cooldown = |load: &Workload| load.clone().with_short_cooldown().cooldown().as_millis();
        let tuned = |change: &dyn Fn(&mut Tuning)| {
            let mut load = one.clone();
            change(&mut load.tuning);
            cooldown(&load)
        };
        assert_eq!(cooldown(&one), 20);
        assert_eq!(tuned(&|it| it.fetch_min_bytes = 100_001), 22);
        assert_eq!(tuned(&|it| it.topics = 10), 200);
        // A fetch waits no longer than it may.
        assert_eq!(tuned(&|it| it.topics = 100), 500);
        assert_eq!(tuned(&|it| it.fetch_min_bytes = 1), 0);
        // The time until these are full is unknown.
        assert_eq!(tuned(&|it| it.compression = Codec::Lz4), 500);
        assert_eq!(tuned(&|it| it.transaction_records = Some(10)), 500);
        assert_eq!(tuned(&|it| it.shape.keys = Some(Keys::RoundRobin { count: 9 })), 500);
        let poisson = Arrivals::Poisson { seed: 1 };
        let pace = Pace::Scheduled { per_second: 10_000, arrivals: poisson };
        assert_eq!(cooldown(&Workload { pace, ..one.clone() }), 500);
        assert_eq!(cooldown(&Workload { pace: Pace::Unpaced, ..one }), 0);
    }

    #[test]
    fn impossible_workloads_are_refused() {
        assert!(workload().check().is_ok());
        let scheduled = Pace::Scheduled { per_second: 0, arrivals: Arrivals::Constant };
        let empty = Pace::Closed { outstanding: 0 };
        let crowded = Pace::Closed { outstanding: OUTSTANDING_MAX + 1 };
        let tuning = Tuning::default;
        for broken in [
            Workload { record_bytes: 31, ..workload() },
            Workload { record_bytes: 32, filler: Filler::Json, ..workload() },
            Workload { record_bytes: 2 << 20, ..workload() },
            Workload { partitions: 0, ..workload() },
            Workload { producers: 0, ..workload() },
            Workload { tails: 65, ..workload() },
            Workload { tuning: Tuning { topics: 0, ..tuning() }, ..workload() },
            Workload { tuning: Tuning { topics: 257, ..tuning() }, ..workload() },
            Workload { tuning: Tuning { topics: 256, ..tuning() }, producers: 5, ..workload() },
            Workload { tuning: Tuning { topics: 256, ..tuning() }, partitions: 256, ..workload() },
            Workload { window_ms: 0, ..workload() },
            Workload { tuning: Tuning { in_flight_max: 0, ..tuning() }, ..workload() },
            Workload { pace: scheduled, ..workload() },
            Workload { tuning: Tuning { transaction_records: Some(0), ..tuning() }, ..workload() },
            Workload {
                tuning: Tuning { transaction_records: Some(9), acks: Acks::Leader, ..tuning() },
                ..workload()
            },
            Workload { pace: empty, ..workload() },
            Workload { pace: crowded, ..workload() },
        ] {
            assert!(broken.check().is_err(), "{broken:?}");
        }
    }

    #[test]
    fn settings_that_a_document_leaves_out_are_those_of_one_topic() {
        let found: Tuning = serde_json::from_str(r#"{"compression": "lz4"}"#).unwrap();
        assert_eq!(found, Tuning { compression: Codec::Lz4, ..Tuning::default() });
        assert_eq!((found.topics, found.fetch_min_bytes, found.fetch_max_wait_ms), (1, 1, 500));
        let ten = Workload {
            tuning: Tuning { topics: 10, ..found.clone() },
            partitions: 3,
            ..workload()
        };
        assert_eq!((ten.all_producers(), ten.lanes()), (10, 30));
    }

    #[test]
    fn a_megabyte_is_two_to_the_twentieth() {
        assert!((workload().megabytes(1_024) - 1.0).abs() < 1e-12);
    }
}
