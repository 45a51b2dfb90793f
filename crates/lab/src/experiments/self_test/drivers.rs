//! Another driver at the same work: librdkafka, which shares no line with our generator, offers the
//! same records at the same intended times to the same broker, in turns with it.
//!
//! Latencies of both are those of the target, and of what linger and batch size make of a record's
//! wait, which is nearly the same in both: their timers count whole milliseconds. If they differ by
//! more, one of them measures itself.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::librdkafka;
use super::target::Target;
use super::{Findings, Plan, shape};
use crate::checks::{Check, Weight};
use crate::experiments::bench::Bench;
use crate::punctuality::lag_limit_ns;
use crate::result::Arm;
use crate::self_test::{Cell, Curves, Line, Table};
use moldau_load::generator::{Setup, nanos, produce, read_back_offsets};
use moldau_load::ledger::{SentLedger, audit};
use moldau_load::schedule::{Arrivals, Slice};
use moldau_load::workload::{Pace, Workload};
use moldau_measure::Error;
use moldau_measure::cpu::generator_among;
use moldau_measure::statistics::{
    PAIRS_MIN, PairedEffect, float, log_ratios, median, paired_effect,
};

/// Records per second. At the lower rate the linger ends a batch, at the higher one its size.
const RATES: [u64; 2] = [1_000, 5_000];

const RECORD_BYTES: usize = 1_024;
const BATCH_BYTES: usize = 64 * 1_024;

/// So long that a millisecond of a timer is half of what is allowed, while a record's wait for its
/// batch is nearly all of its time.
const LINGER_MS: u64 = 20;

/// How far the drivers may be apart, the one's percentile by the other's.
const ALLOWED: f64 = 0.1;

const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];
const QUANTILE_NAMES: [&str; 4] = ["p50", "p90", "p99", "p99.9"];

/// Percentiles that are judged: the last thousandth of a window is what one moment's stop decides.
const JUDGED: usize = 3;

const OURS: &str = "moldau lab";
const THEIRS: &str = librdkafka::NAME;

/// What the drivers are compared by.
#[derive(Clone, Debug)]
pub struct Drivers {
    /// Python with confluent-kafka, which brings librdkafka along.
    pub python: Option<PathBuf>,
    /// Rounds at each rate in which both drivers have to be in time.
    pub rounds: u32,
    /// Time before the measured window of a run, ms.
    pub warmup_ms: u64,
    /// The measured window, ms.
    pub window_ms: u64,
}

impl Drivers {
    /// The comparison as it is usually made.
    #[must_use]
    pub fn usual(python: Option<PathBuf>, quick: bool) -> Self {
        let (rounds, window_ms) = if quick { (5, 3_000) } else { (8, 6_000) };
        Self { python, rounds, warmup_ms: 1_000, window_ms }
    }
}

pub(super) fn steps(plan: &Plan) -> u32 {
    let rates = u32::try_from(RATES.len()).unwrap_or(u32::MAX);
    2 * plan.drivers.rounds * rates
}

pub(super) fn arms(_plan: &Plan) -> Vec<Arm> {
    vec![
        Arm::of(OURS, "the generator of every experiment"),
        Arm::of(THEIRS, "librdkafka through Python's confluent-kafka"),
    ]
}

pub(super) fn run(
    plan: &Plan,
    bench: &mut Bench<'_>,
    findings: &mut Findings,
) -> Result<(), Error> {
    let python = plan.drivers.python.as_ref().ok_or_else(|| {
        Error::Plan("the other driver takes a Python that has confluent-kafka".into())
    })?;
    let target = Target::broker(plan)?;
    for rate in RATES {
        let stage = Stage { plan, python, target: &target, rate };
        let compared = stage.compare(bench, findings)?;
        compared.judge(findings);
        findings.record.tables.push(compared.table());
        findings.record.curves.extend(compared.curves());
    }
    Ok(())
}

/// Both drivers before the broker, at one rate.
struct Stage<'a> {
    plan: &'a Plan,
    python: &'a Path,
    target: &'a Target,
    rate: u64,
}

/// Figures of one run by a driver.
#[derive(Clone, Copy, Debug)]
struct Driven {
    /// At [`QUANTILES`].
    response_ms: [f64; 4],
    lag_p99_ms: f64,
    cpu_us_per_record: f64,
    records_per_batch: f64,
}

/// Figures of one round by both drivers.
#[derive(Clone, Copy, Debug)]
struct Pair {
    ours: Driven,
    theirs: Driven,
}

/// The comparison over the rounds at one rate.
#[derive(Debug)]
struct Compared {
    rate: u64,
    seed: u64,
    /// Version of librdkafka.
    version: String,
    wanted: u32,
    tried: u32,
    /// Rounds in which ours was late, and in which librdkafka was.
    late: [u32; 2],
    /// The rounds in which both drivers were in time.
    pairs: Vec<Pair>,
}

impl Stage<'_> {
    /// Rounds until enough are in time, and as many again as were wanted at most.
    fn compare(&self, bench: &mut Bench<'_>, findings: &mut Findings) -> Result<Compared, Error> {
        let (seed, rounds) = (self.plan.conditions.seed, self.plan.drivers.rounds);
        let mut compared = Compared::none_yet(self.rate, seed, rounds);
        while compared.lacks_rounds() && compared.tried < 2 * compared.wanted {
            let round = compared.tried;
            if round >= rounds {
                bench.expect_steps(2);
            }
            // Each goes first in every other round.
            let (ours, (theirs, version)) = if round.is_multiple_of(2) {
                let theirs = self.theirs(bench, findings, round)?;
                (self.ours(bench, findings, round)?, theirs)
            } else {
                let ours = self.ours(bench, findings, round)?;
                (ours, self.theirs(bench, findings, round)?)
            };
            compared.add(Pair { ours, theirs });
            compared.version = version;
        }
        Ok(compared)
    }

    fn ours(
        &self,
        bench: &mut Bench<'_>,
        findings: &mut Findings,
        round: u32,
    ) -> Result<Driven, Error> {
        let setup = self.prepare(bench, round, OURS)?;
        let measured = produce(&setup)?;
        if measured.answered < measured.offered {
            let reason = format!("{} of {} records", measured.answered, measured.offered);
            return Err(Error::Target { action: format!("waiting for answers to {OURS}"), reason });
        }
        let records_per_batch = self.read(&setup, &measured.sent, findings)?;
        let cpu_ns = generator_among(&measured.processes).map_or(0, |usage| usage.cpu_ns);
        let (response, lag) = (&measured.latencies.response, &measured.latencies.lag);
        Ok(Driven {
            response_ms: QUANTILES.map(|quantile| float(response.quantile_ns(quantile)) / 1e6),
            lag_p99_ms: float(lag.quantile_ns(0.99)) / 1e6,
            cpu_us_per_record: float(cpu_ns) / 1e3 / float(measured.offered.max(1)),
            records_per_batch,
        })
    }

    /// The same by librdkafka, with its version.
    fn theirs(
        &self,
        bench: &mut Bench<'_>,
        findings: &mut Findings,
        round: u32,
    ) -> Result<(Driven, String), Error> {
        let setup = self.prepare(bench, round, THEIRS)?;
        let end = setup.workload.length();
        let schedule = Slice::new(Arrivals::Constant, self.rate, 0, 1, nanos(end));
        let directory = &self.plan.conditions.work_directory;
        let (told, sent) = librdkafka::offer(self.python, directory, &setup, schedule)?;
        let records_per_batch = self.read(&setup, &[sent], findings)?;
        let driven = Driven {
            response_ms: told.response_ms,
            lag_p99_ms: told.lag_p99_ms,
            cpu_us_per_record: told.cpu_us_per_record,
            records_per_batch,
        };
        Ok((driven, told.version))
    }

    /// A run on a topic of its own; those of a round take the same seed.
    fn prepare(&self, bench: &mut Bench<'_>, round: u32, driver: &str) -> Result<Setup, Error> {
        bench.step(&format!("{} records/s, {driver}, {}", self.rate, round + 1));
        let workload = Workload {
            pace: Pace::Scheduled { per_second: self.rate, arrivals: Arrivals::Constant },
            partitions: 1,
            linger_us: 1_000 * LINGER_MS,
            warmup_ms: self.plan.drivers.warmup_ms,
            window_ms: self.plan.drivers.window_ms,
            ..shape(RECORD_BYTES, BATCH_BYTES)
        };
        let setup = bench.setup(&self.target.path, round, &workload);
        self.target.path.control.create_topic(&setup.topic, 1)?;
        Ok(setup)
    }

    /// Reads back all that the broker has of a run and holds it against what the driver sent; gives
    /// the mean size of its batches.
    fn read(
        &self,
        setup: &Setup,
        sent: &[SentLedger],
        findings: &mut Findings,
    ) -> Result<f64, Error> {
        let control = &self.target.path.control;
        let workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..setup.workload.clone() };
        let held = control.records_held(&setup.topic, 1)?;
        let read = read_back_offsets(&Setup { workload, ..setup.clone() }, held, Duration::MAX)?;
        let delivered = read.delivered.as_ref().expect("a reading delivers");
        findings.audit = findings.audit.plus(audit(sent, delivered));
        control.delete_topic(&setup.topic)?;
        Ok(float(read.consumed_records) / float(read.consumed_batches.max(1)))
    }
}

impl Driven {
    /// As every run of the laboratory is judged.
    fn is_late(&self) -> bool {
        let [_, _, response_p99_ms, _] = self.response_ms;
        1e6 * self.lag_p99_ms >= lag_limit_ns(1e6 * response_p99_ms)
    }
}

/// What the rounds say of a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Agreement {
    /// The drivers agree.
    Shown,
    /// They do not.
    Refuted,
    /// Neither is shown.
    Open,
}

impl Agreement {
    /// Of the logarithm of the ratio.
    fn of(effect: &PairedEffect) -> Self {
        let allowed = ALLOWED.ln_1p();
        let is_beyond = effect.interval_95.low > allowed || effect.interval_95.high < -allowed;
        if effect.interval_90.is_within(allowed) {
            Self::Shown
        } else if is_beyond {
            Self::Refuted
        } else {
            Self::Open
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Shown => "the drivers agree",
            Self::Refuted => "the drivers disagree",
            Self::Open => "the rounds differ too much to tell",
        }
    }
}

impl Compared {
    /// Before the first of so many rounds, or of as many as an interval takes.
    fn none_yet(rate: u64, seed: u64, rounds: u32) -> Self {
        let (version, pairs) = (String::new(), Vec::new());
        let wanted = rounds.max(u32::try_from(PAIRS_MIN).unwrap_or(u32::MAX));
        Self { rate, seed, version, wanted, tried: 0, late: [0; 2], pairs }
    }

    fn add(&mut self, pair: Pair) {
        self.tried += 1;
        let is_late = [&pair.ours, &pair.theirs].map(Driven::is_late);
        if is_late == [false; 2] {
            self.pairs.push(pair);
        }
        for (late, is_late) in self.late.iter_mut().zip(is_late) {
            *late += u32::from(is_late);
        }
    }

    fn lacks_rounds(&self) -> bool {
        u32::try_from(self.pairs.len()).is_ok_and(|count| count < self.wanted)
    }

    /// Both of each round in one figure, librdkafka first.
    fn both(&self, figure: impl Fn(&Driven) -> f64) -> Vec<(f64, f64)> {
        self.pairs.iter().map(|pair| (figure(&pair.theirs), figure(&pair.ours))).collect()
    }

    /// Each percentile has to be the same in both but for what is allowed.
    fn judge(&self, findings: &mut Findings) {
        let Self { rate, tried, late: [ours, theirs], ref pairs, .. } = *self;
        findings.checks.push(Check {
            name: format!("{rate} records/s: rounds in which both drivers were in time"),
            passed: !self.lacks_rounds(),
            weight: Weight::Validity,
            found: format!(
                "{} of {tried}, {OURS} was late in {ours} and {THEIRS} in {theirs}",
                pairs.len()
            ),
            demanded: format!("at least {}", self.wanted),
        });
        for (at, name) in QUANTILE_NAMES.iter().enumerate().take(JUDGED) {
            let both = self.both(|it| it.response_ms.get(at).copied().unwrap_or_default());
            // None has too few rounds, which is judged above.
            let Some(effect) = paired_effect(&log_ratios(&both), self.seed) else { continue };
            let agreement = Agreement::of(&effect);
            let interval = effect.interval_90;
            let [off, low, high] = [effect.mean, interval.low, interval.high]
                .map(|log_ratio| 100.0 * log_ratio.exp_m1());
            findings.checks.push(Check {
                name: format!("{rate} records/s: {name} of {OURS} against that of {THEIRS}"),
                passed: agreement == Agreement::Shown,
                weight: Weight::Validity,
                found: format!("{off:+.1} % [{low:+.1}, {high:+.1}], {}", agreement.words()),
                demanded: format!("90 % interval within {:.0} %", 100.0 * ALLOWED),
            });
        }
    }

    fn table(&self) -> Table {
        type Figure = fn(&Driven) -> f64;
        let figures: [(&str, Figure); 7] = [
            ("response p50, ms", |it| it.response_ms[0]),
            ("response p90, ms", |it| it.response_ms[1]),
            ("response p99, ms", |it| it.response_ms[2]),
            ("response p99.9, ms", |it| it.response_ms[3]),
            ("schedule lag p99, ms", |it| it.lag_p99_ms),
            ("processor time of the driver, us/record", |it| it.cpu_us_per_record),
            ("records per batch", |it| it.records_per_batch),
        ];
        let row = |(name, figure): (&str, Figure)| {
            let both = self.both(figure);
            let (theirs, ours): (Vec<f64>, Vec<f64>) = both.iter().copied().unzip();
            let effect = paired_effect(&log_ratios(&both), self.seed);
            let ratio = effect.map_or("-".into(), |effect| {
                let interval = effect.interval_95;
                let [ratio, low, high] = [effect.mean, interval.low, interval.high].map(f64::exp);
                format!("{ratio:.2} [{low:.2}, {high:.2}]")
            });
            vec![name.into(), middle(&ours), middle(&theirs), ratio.into()]
        };
        Table {
            title: format!("{} records/s by both drivers", self.rate),
            about: format!(
                "{RECORD_BYTES} B records to one partition at constant distances, linger \
                 {LINGER_MS} ms, batches of {} KB at most, acks=all, idempotent. librdkafka {} \
                 sends the same but for the number of the run. Medians of {} rounds in which the \
                 drivers took turns; the ratio is their geometric mean with its 95 % interval. \
                 Batches were counted when they were read back.",
                BATCH_BYTES / 1_024,
                self.version,
                self.pairs.len()
            ),
            columns: ["figure", OURS, THEIRS, "ratio"].map(String::from).to_vec(),
            rows: figures.into_iter().map(row).collect(),
        }
    }

    /// The medians as a chart, if there are any.
    fn curves(&self) -> Option<Curves> {
        let line = |name: &str, of: fn(&Pair) -> &Driven| {
            let at = |index: usize| {
                let ms = |pair: &Pair| of(pair).response_ms.get(index).copied().unwrap_or_default();
                median(&self.pairs.iter().map(ms).collect::<Vec<_>>())
            };
            Line { name: name.into(), ms: (0..QUANTILES.len()).map(at).collect() }
        };
        (!self.pairs.is_empty()).then(|| Curves {
            title: format!("{} records/s", self.rate),
            quantiles: QUANTILES.to_vec(),
            lines: vec![line(OURS, |pair| &pair.ours), line(THEIRS, |pair| &pair.theirs)],
        })
    }
}

fn middle(figures: &[f64]) -> Cell {
    if figures.is_empty() { "-".into() } else { median(figures).into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Verdict;

    fn driven(p50_ms: f64) -> Driven {
        Driven {
            response_ms: [p50_ms, 2.0 * p50_ms, 2.0 * p50_ms, 90.0],
            lag_p99_ms: 0.2,
            cpu_us_per_record: 4.0,
            records_per_batch: 20.0,
        }
    }

    /// Rounds whose medians are `theirs` and so much more.
    fn compared(theirs: &[f64], more: &[f64]) -> Compared {
        let mut compared = Compared::none_yet(1_000, 1, 5);
        compared.version = "2.16.0".into();
        for (theirs, more) in theirs.iter().zip(more) {
            compared.add(Pair { ours: driven(theirs + more), theirs: driven(*theirs) });
        }
        compared
    }

    const THEIR_P50S: [f64; 5] = [10.0, 10.2, 10.1, 10.4, 9.9];

    fn judged(compared: &Compared) -> (Vec<Check>, Verdict) {
        let mut findings = Findings::default();
        compared.judge(&mut findings);
        let verdict = Verdict::of(&findings.checks);
        (findings.checks, verdict)
    }

    #[test]
    fn drivers_that_differ_by_what_their_timers_explain_agree() {
        let (checks, verdict) = judged(&compared(&THEIR_P50S, &[0.2, 0.3, 0.25, 0.3, 0.2]));
        assert_eq!((checks.len(), verdict), (1 + JUDGED, Verdict::Ok));
        assert!(checks[1].found.ends_with("the drivers agree"), "{:?}", checks[1]);
    }

    #[test]
    fn drivers_that_differ_by_more_disagree_in_either_direction() {
        // A generator that counted from the sending of a batch would report half the linger less.
        for off in [-10.0, -5.0, 5.0, 10.0] {
            let more = [0.1, -0.1, 0.0, 0.05, 0.0].map(|noise| off + noise);
            let (checks, verdict) = judged(&compared(&[20.0; 5], &more));
            assert_eq!(verdict, Verdict::Invalid, "{off}");
            for check in &checks[1..] {
                assert!(!check.passed && check.found.ends_with("the drivers disagree"));
            }
        }
    }

    #[test]
    fn rounds_that_differ_too_much_show_nothing_and_fail_the_figures() {
        let (checks, verdict) = judged(&compared(&THEIR_P50S, &[3.0, -3.0, 2.5, -2.0, 0.5]));
        assert_eq!(verdict, Verdict::Invalid);
        assert!(checks[1].found.ends_with("too much to tell"), "{:?}", checks[1]);
    }

    #[test]
    fn a_round_in_which_one_driver_was_late_does_not_count() {
        let mut compared = compared(&THEIR_P50S, &[0.0; 5]);
        assert!(!compared.lacks_rounds());
        compared.wanted = 6;
        let late = Driven { lag_p99_ms: 1.1, ..driven(10.0) };
        for (ours, theirs) in [(late, driven(10.0)), (driven(10.0), late)] {
            compared.add(Pair { ours, theirs });
        }
        assert_eq!((compared.tried, compared.pairs.len()), (7, 5));
        let (checks, verdict) = judged(&compared);
        assert!(
            checks[0].found.starts_with("5 of 7, moldau lab was late in 1 and librdkafka in 1")
        );
        assert_eq!(verdict, Verdict::Invalid);
        // Where responses take long, as much lag is a small part of them.
        compared
            .add(Pair { ours: driven(10.0), theirs: Driven { lag_p99_ms: 1.1, ..driven(20.0) } });
        assert!(judged(&compared).0[0].passed && compared.tried == 8);
    }

    #[test]
    fn table_and_chart_show_both_drivers() {
        let compared = compared(&[10.0; 5], &[10.0; 5]);
        let table = compared.table();
        let cells: [Cell; 3] = [20.0.into(), 10.0.into(), "2.00 [2.00, 2.00]".into()];
        assert_eq!(table.rows[0][1..], cells);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
        assert!(table.about.contains("librdkafka 2.16.0"));
        let lines = compared.curves().unwrap().lines;
        assert_eq!([lines[0].ms[1], lines[1].ms[1]], [40.0, 20.0]);
    }

    #[test]
    fn without_any_round_in_time_nothing_is_claimed() {
        let none = compared(&[], &[]);
        let (checks, verdict) = judged(&none);
        assert_eq!((checks.len(), verdict), (1, Verdict::Invalid));
        assert!(none.curves().is_none());
        let dashes: [Cell; 3] = ["-".into(), "-".into(), "-".into()];
        assert!(none.table().rows.iter().all(|row| row[1..] == dashes));
    }
}
