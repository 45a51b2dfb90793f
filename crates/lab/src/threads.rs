//! Consumers that read a backlog of several topics on several threads: what each reading took, and
//! what another topic costs.
//!
//! A reading is one number of topics on one number of threads, once. Costs are slopes over the
//! number of topics within a round and a number of threads, so that what drifts from round to round
//! cancels; rounds are the replicates.

mod clients;

use serde::{Deserialize, Serialize};

use crate::survey::{Band, Estimate, LeftOut, Outcome, Source};
use moldau_measure::cpu::HostUsage;
use moldau_measure::statistics::float;

/// Everything that such an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadsRecord {
    /// The question.
    pub question: String,
    /// What was expected and why, before anything was measured.
    pub hypothesis: String,
    /// Where the claims were published.
    pub source: Option<Source>,
    /// Numbers of topics, rising.
    pub topics: Vec<u16>,
    /// Numbers of threads, rising.
    pub threads: Vec<u16>,
    /// Records of each topic.
    pub records: u32,
    /// Size of a record's value, bytes.
    pub record_bytes: usize,
    /// Partitions of each topic.
    pub partitions: u16,
    /// How long each record holds its thread without taking its processor, us.
    #[serde(default, skip_serializing_if = "moldau_measure::numbers::is_zero")]
    pub work_us: u64,
    /// Every reading.
    pub readings: Vec<Reading>,
    /// Readings that compare clients; without them, the laboratory read itself.
    #[serde(default, skip_serializing_if = "ClientsRecord::is_empty")]
    pub clients: ClientsRecord,
    /// What was claimed.
    pub claims: Vec<ThreadsClaim>,
    /// What else is to be said of the source.
    pub remarks: Vec<String>,
    /// Systems that were not there.
    pub left_out: Vec<LeftOut>,
}

pub use clients::{CaseReading, ClientCase, ClientsRecord};

/// So many topics read from start to end by so many threads, as often as takes a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Name of the system.
    pub arm: String,
    /// Its round, from 0.
    pub round: u32,
    /// Topics.
    pub topics: u16,
    /// Threads, each with a connection of its own.
    pub threads: u16,
    /// Records that came, each offset once and in order from start to end.
    pub records: u64,
    /// From the first fetch of any thread to the last record, every time, ns.
    pub wall_ns: u64,
    /// Processor time of the consuming threads, ns.
    pub consumer_cpu_ns: u64,
    /// Processor time of the system, ns.
    pub system_cpu_ns: u64,
    /// Times that a consuming thread gave up its processor by waiting.
    pub voluntary_switches: u64,
    /// Times that one was made to yield it.
    pub involuntary_switches: u64,
    /// Time that they were runnable and waited for a processor, ns.
    pub run_queue_wait_ns: u64,
    /// What the machine did meanwhile.
    pub host: HostUsage,
}

/// A published statement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadsClaim {
    /// The statement with its figure.
    pub says: String,
    /// Where in the source it stands.
    pub at: String,
    /// The figure that it is about.
    pub figure: Figure,
    /// Topics of the figure; what is about all of them has none.
    pub topics: Option<u16>,
    /// Threads of the figure.
    pub threads: Option<u16>,
    /// The published figure.
    pub published: f64,
    /// Where the statement holds.
    pub holds: Band,
}

/// What a statement may be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Figure {
    /// Records per second of all topics together.
    RecordsPerSecond,
    /// By how many percent a message takes longer for each topic more, over all numbers of threads
    /// or those of one.
    TopicCostPercent,
    /// Records per second of each topic, divided by those of the fewest topics on the fewest
    /// threads.
    ShareOfAlone,
}

impl Figure {
    /// Unit of the figure.
    #[must_use]
    pub fn unit(self) -> &'static str {
        match self {
            Self::RecordsPerSecond => "records/s",
            Self::TopicCostPercent => "%",
            Self::ShareOfAlone => "x",
        }
    }
}

/// What another topic costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopicCost {
    /// Per message, ns.
    pub ns: Estimate,
    /// Relative to a message of the fewest topics, percent.
    pub percent: Estimate,
}

/// How many threads are enough.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enough {
    /// The fewest threads that no larger number outdoes: by [`GAIN_MIN`], and by the whole interval
    /// at all.
    pub threads: u16,
    /// Their records per second.
    pub rate: Estimate,
    /// The number with the highest rate, and that by the rate of `threads`; absent where that is
    /// the same.
    pub most: Option<(u16, Estimate)>,
}

/// A gain that is worth another thread: less is lost in what differs between machines.
pub const GAIN_MIN: f64 = 1.05;

impl Reading {
    /// This reading and the same once more.
    #[must_use]
    pub fn plus(self, more: Self) -> Self {
        Self {
            records: self.records + more.records,
            wall_ns: self.wall_ns + more.wall_ns,
            consumer_cpu_ns: self.consumer_cpu_ns + more.consumer_cpu_ns,
            system_cpu_ns: self.system_cpu_ns + more.system_cpu_ns,
            voluntary_switches: self.voluntary_switches + more.voluntary_switches,
            involuntary_switches: self.involuntary_switches + more.involuntary_switches,
            run_queue_wait_ns: self.run_queue_wait_ns + more.run_queue_wait_ns,
            host: self.host.plus(more.host),
            ..self
        }
    }

    /// Time by the clock for each message, ns.
    #[must_use]
    pub fn wall_per_record(&self) -> f64 {
        float(self.wall_ns) / float(self.records.max(1))
    }

    /// Processor time of the consumers for each message, ns.
    #[must_use]
    pub fn cpu_per_record(&self) -> f64 {
        float(self.consumer_cpu_ns) / float(self.records.max(1))
    }

    /// Records per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        float(self.records) * 1e9 / float(self.wall_ns.max(1))
    }
}

impl ThreadsRecord {
    /// A figure of one place of the grid over its rounds.
    #[must_use]
    pub fn cell(
        &self,
        arm: &str,
        topics: u16,
        threads: u16,
        seed: u64,
        figure: impl Fn(&Reading) -> f64,
    ) -> Option<Estimate> {
        let is_of = |it: &&Reading| it.arm == arm && it.topics == topics && it.threads == threads;
        let values: Vec<f64> = self.readings.iter().filter(is_of).map(figure).collect();
        Estimate::typical(&values, seed)
    }

    /// What another topic costs in a figure per message, on so many threads or, without a number,
    /// on the mean of all; `None` where there are fewer than two numbers of topics.
    #[must_use]
    pub fn topic_cost(
        &self,
        arm: &str,
        threads: Option<u16>,
        seed: u64,
        figure: impl Fn(&Reading) -> f64,
    ) -> Option<TopicCost> {
        let (mut ns, mut percent) = (Vec::new(), Vec::new());
        for round in self.rounds() {
            let counted = self.threads.iter().filter(|it| threads.is_none_or(|only| only == **it));
            let fits = counted.filter_map(|count| {
                let points = self
                    .readings
                    .iter()
                    .filter(|it| it.arm == arm && it.round == round && it.threads == *count);
                Line::through(points.map(|it| (f64::from(it.topics), figure(it))))
            });
            let fits: Vec<Line> = fits.collect();
            let Some(count) = u32::try_from(fits.len()).ok().filter(|count| *count > 0) else {
                continue;
            };
            let mean = |of: fn(&Line) -> f64| fits.iter().map(of).sum::<f64>() / f64::from(count);
            ns.push(mean(|line| line.slope));
            percent.push(mean(|line| line.slope / line.first * 100.0));
        }
        let estimate = |values: &[f64]| Estimate::of(values, seed, |value| value);
        Some(TopicCost { ns: estimate(&ns)?, percent: estimate(&percent)? })
    }

    /// What a claim came to on a system.
    #[must_use]
    pub fn tested(
        &self,
        claim: &ThreadsClaim,
        arm: &str,
        seed: u64,
    ) -> (Outcome, Option<Estimate>) {
        let topics = claim.topics.or(self.topics.first().copied()).unwrap_or_default();
        let threads = claim.threads.or(self.threads.first().copied()).unwrap_or_default();
        let found = match claim.figure {
            Figure::RecordsPerSecond => self.cell(arm, topics, threads, seed, Reading::rate),
            Figure::TopicCostPercent => self
                .topic_cost(arm, claim.threads, seed, Reading::wall_per_record)
                .map(|cost| cost.percent),
            Figure::ShareOfAlone => self.share_of_alone(arm, topics, threads, seed),
        };
        (claim.holds.outcome(found), found)
    }

    /// How many threads are enough for the fewest topics on a system.
    #[must_use]
    pub fn enough(&self, arm: &str, seed: u64) -> Option<Enough> {
        let topics = *self.topics.first()?;
        let rate = |threads: u16| self.cell(arm, topics, threads, seed, Reading::rate);
        let rated = self.threads.iter().filter_map(|threads| Some((*threads, rate(*threads)?)));
        let rated: Vec<(u16, Estimate)> = rated.collect();
        let (most, _) = *rated.iter().max_by(|one, other| one.1.mean.total_cmp(&other.1.mean))?;
        let gain = |threads: u16, more: u16| self.gain(arm, topics, [threads, more], seed);
        let pays = |threads: u16, more: u16| {
            let gain = gain(threads, more);
            gain.is_some_and(|it| it.mean > GAIN_MIN && it.interval.is_none_or(|it| it.low > 1.0))
        };
        let is_enough =
            |threads: u16| !rated.iter().any(|(more, _)| *more > threads && pays(threads, *more));
        let (threads, rate) = rated.iter().copied().find(|(threads, _)| is_enough(*threads))?;
        let most = (most != threads).then(|| Some((most, gain(threads, most)?))).flatten();
        Some(Enough { threads, rate, most })
    }

    /// The rate on the second number of threads by that on the first, within rounds.
    fn gain(&self, arm: &str, topics: u16, threads: [u16; 2], seed: u64) -> Option<Estimate> {
        let rate = |round: u32, threads: u16| {
            let is_of = |it: &&Reading| {
                it.arm == arm && it.round == round && (it.topics, it.threads) == (topics, threads)
            };
            self.readings.iter().find(is_of).map(Reading::rate)
        };
        let [few, more] = threads;
        let gain = |round| Some(rate(round, more)? / rate(round, few)?);
        Estimate::typical(&self.rounds().filter_map(gain).collect::<Vec<_>>(), seed)
    }

    fn share_of_alone(&self, arm: &str, topics: u16, threads: u16, seed: u64) -> Option<Estimate> {
        let (alone, fewest) = (*self.topics.first()?, *self.threads.first()?);
        let each = |round: u32, topics: u16, threads: u16| {
            let is_of = |it: &&Reading| {
                it.arm == arm && it.round == round && (it.topics, it.threads) == (topics, threads)
            };
            self.readings.iter().find(is_of).map(|it| it.rate() / f64::from(topics))
        };
        let share = |round| Some(each(round, topics, threads)? / each(round, alone, fewest)?);
        Estimate::typical(&self.rounds().filter_map(share).collect::<Vec<_>>(), seed)
    }

    fn rounds(&self) -> std::ops::Range<u32> {
        0..self.readings.iter().map(|it| it.round + 1).max().unwrap_or(0)
    }
}

/// A straight line through points by least squares.
struct Line {
    slope: f64,
    /// The figure at the first point.
    first: f64,
}

impl Line {
    fn through(points: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let count = f64::from(u32::try_from(points.len()).ok()?);
        let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
        let common: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let (_, first) = *points.first()?;
        (spread > 0.0 && first > 0.0).then(|| Self { slope: common / spread, first })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// On so many threads the message of one topic takes 1000 ns by the number of threads, and each
    /// further topic 50 ns on top; rounds differ in all by a percent.
    pub(crate) fn record() -> ThreadsRecord {
        let mut readings = Vec::new();
        for round in 0..4_u32 {
            for threads in 1..=2_u16 {
                for topics in 1..=4_u16 {
                    let ns = (1_000 / u64::from(threads) + 50 * u64::from(topics - 1)) * 1_000;
                    readings.push(Reading {
                        arm: "ours".into(),
                        round,
                        topics,
                        threads,
                        records: 1_000 * u64::from(topics),
                        wall_ns: ns * u64::from(topics) * (100 + u64::from(round)) / 100,
                        consumer_cpu_ns: ns * u64::from(topics) / 2,
                        voluntary_switches: 40,
                        run_queue_wait_ns: 5_000,
                        ..Reading::default()
                    });
                }
            }
        }
        let claim = |figure, topics, threads, published, at_most| ThreadsClaim {
            says: "another topic costs up to 11 %".into(),
            at: "a chart".into(),
            figure,
            topics,
            threads,
            published,
            holds: Band { at_least: Some(1.0), at_most },
        };
        ThreadsRecord {
            question: "What does another topic cost?".into(),
            hypothesis: "Little.".into(),
            source: None,
            topics: vec![1, 2, 3, 4],
            threads: vec![1, 2],
            records: 1_000,
            record_bytes: 100,
            partitions: 6,
            work_us: 0,
            readings,
            clients: ClientsRecord::default(),
            claims: vec![
                claim(Figure::TopicCostPercent, None, None, 11.0, Some(11.0)),
                claim(Figure::RecordsPerSecond, Some(1), Some(1), 30_000.0, Some(33_000.0)),
            ],
            remarks: vec!["A remark.".into()],
            left_out: Vec::new(),
        }
    }

    #[test]
    fn another_topic_costs_the_slope_whatever_drifts_between_rounds() {
        let record = record();
        let cost =
            |threads| record.topic_cost("ours", threads, 1, Reading::wall_per_record).unwrap();
        let one = cost(Some(1));
        assert!((one.ns.mean - 50.75).abs() < 0.01, "{one:?}");
        assert!((one.percent.mean - 5.0).abs() < 0.01, "{one:?}");
        let interval = one.percent.interval.unwrap();
        assert!((interval.high - interval.low).abs() < 0.01, "{interval:?}");
        assert!((cost(Some(2)).percent.mean - 10.0).abs() < 0.01);
        assert!((cost(None).percent.mean - 7.5).abs() < 0.01);
        assert!(record.topic_cost("theirs", None, 1, Reading::wall_per_record).is_none());
    }

    #[test]
    fn claims_are_held_against_their_place_of_the_grid() {
        let record = record();
        let (outcome, found) = record.tested(&record.claims[0], "ours", 1);
        assert_eq!(outcome, Outcome::Reproduced, "{found:?}");
        let (outcome, found) = record.tested(&record.claims[1], "ours", 1);
        assert!((found.unwrap().mean - 985_000.0).abs() < 1_000.0, "{found:?}");
        assert_eq!(outcome, Outcome::NotReproduced);
        assert_eq!(record.tested(&record.claims[0], "theirs", 1), (Outcome::Undecided, None));
    }

    /// One topic on 1 to 8 threads, whose rates rounds shift by a percent each.
    pub(crate) fn scaling(rates: [u64; 4]) -> ThreadsRecord {
        let mut readings = Vec::new();
        for round in 0..4_u32 {
            for (threads, rate) in [1, 2, 4, 8].into_iter().zip(rates) {
                readings.push(Reading {
                    arm: "ours".into(),
                    round,
                    topics: 1,
                    threads,
                    records: rate * u64::from(100 + round),
                    wall_ns: 100_000_000_000,
                    ..Reading::default()
                });
            }
        }
        let mut record = record();
        (record.topics, record.threads) = (vec![1], vec![1, 2, 4, 8]);
        (record.readings, record.claims, record.work_us) = (readings, Vec::new(), 2_000);
        record
    }

    #[test]
    fn threads_are_enough_where_no_more_are_shown_to_give_more() {
        let enough = |rates| scaling(rates).enough("ours", 1).unwrap();
        let found = enough([1_000, 1_800, 1_850, 1_700]);
        assert_eq!((found.threads, found.rate.mean.round()), (2, 1_827.0));
        let (most, gain) = found.most.unwrap();
        assert!(most == 4 && (gain.mean - 1_850.0 / 1_800.0).abs() < 1e-9, "{gain:?}");
        let found = enough([1_000, 2_000, 4_000, 8_000]);
        assert_eq!((found.threads, found.most), (8, None));
        assert!(scaling([1, 2, 4, 8]).enough("theirs", 1).is_none());
    }

    #[test]
    fn each_of_four_topics_on_one_thread_has_less_than_a_quarter() {
        let mut claim = record().claims[0].clone();
        (claim.figure, claim.topics, claim.threads) = (Figure::ShareOfAlone, Some(4), Some(1));
        let (_, found) = record().tested(&claim, "ours", 1);
        assert!((found.unwrap().mean - 0.25 / 1.15).abs() < 1e-6, "{found:?}");
    }
}
