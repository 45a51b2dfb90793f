//! Whether a run sustained its rate.

use serde::{Deserialize, Serialize};

use super::Demand;
use super::search::{Evidence, Outcome};
use crate::punctuality::foreign_share;
use moldau_load::run::{RunRecord, Slot};
use moldau_measure::statistics::slope::Slope;
use moldau_measure::statistics::{Interval, float};

/// Share of what was intended in the window that has to be acknowledged in it, and delivered of
/// what was acknowledged: the rest is on its way at the window's end.
const REACHED_SHARE_MIN: f64 = 0.97;

/// Shares of the machine that the hypervisor, beside what own traffic with the disk costs there,
/// and other processes take at most from a trial that counts: it moves the ceiling by as much.
const STEAL_SHARE_MAX: f64 = 0.03;
const FOREIGN_SHARE_MAX: f64 = 0.1;

/// A backlog that grows by less does not, however surely: near the ceiling it wanders. It is what a
/// rate of 0.1 % above what can be done makes of it, ms for each second, or where that is less a
/// share of the demanded response time in the window.
const GROWTH_MIN_MS: f64 = 1.0;
const GROWTH_SHARE_MIN: f64 = 0.5;

/// Shares of the slots of a window: that a moment takes at most, and that are late beside it.
const MOMENT_SHARE_MAX: f64 = 1.0 / 3.0;
const LATE_BESIDE_MAX: f64 = 0.08;

/// Shares of a window that stops take at most to be set aside, and its slots with all that waited
/// for them: a system that stops all the time, or as long again as it works, does so at that rate.
const STOPPED_SHARE_MAX: f64 = 0.05;
const SET_ASIDE_SHARE_MAX: f64 = 0.5;

/// Records that are due in the demanded time, at the least, for a silence of that length to be a
/// stop: where fewer are, acknowledgements lie as far apart by themselves.
const DUE_IN_STOP_MIN: f64 = 20.0;

/// One trial at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trial {
    /// Records per second that were offered.
    pub rate: f64,
    /// How fast the machine was held to be when that was chosen, in relation to its usual speed;
    /// absent where nobody asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<f64>,
    /// What came of it.
    pub outcome: Outcome,
    /// What was not as demanded.
    pub misses: Vec<Miss>,
    /// 99th percentile of response times, from the intended time, ms.
    pub p99_ms: f64,
    /// The same without what stops of the system made late; absent where there was nothing to set
    /// aside, or too much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_stops_p99_ms: Option<f64>,
    /// The longest time in which nothing was acknowledged, ms.
    #[serde(default)]
    pub silence_ms: f64,
    /// Whether what was late was so in one short time, and nearly all else in time.
    #[serde(default)]
    pub moment: bool,
    /// How the backlog went over the window; absent where slots were too few.
    pub growth: Option<Growth>,
    /// Share of what was intended in the window that was acknowledged in it.
    pub reached: f64,
    /// Share of a processor that the busiest thread of the generator took.
    pub generator_thread: f64,
    /// Share of the machine that other processes and the hypervisor took, beside what the machine's
    /// own traffic with its disk costs there.
    pub taken: f64,
}

/// What a rate that is not sustained falls short of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Miss {
    /// The 99th percentile of response times is too long.
    Response,
    /// The backlog grows.
    Backlog,
    /// Less is acknowledged than was intended.
    Rate,
    /// Operations were never offered, or never answered.
    Unanswered,
    /// Less is delivered than was acknowledged.
    Delivery,
    /// Records were lost or damaged.
    Records,
}

impl Miss {
    /// In tables.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Response => "p99",
            Self::Backlog => "backlog grows",
            Self::Rate => "rate not reached",
            Self::Unanswered => "no answer",
            Self::Delivery => "consumers behind",
            Self::Records => "records lost",
        }
    }
}

/// How long a record waits, over the time of the window: the median response time of slots.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// ms by which it grows per second.
    pub ms_per_second: f64,
    /// Its interval at 95 %.
    pub interval_95: Interval,
}

impl Growth {
    /// The slope of slots, see [`Slope`].
    #[must_use]
    pub fn of(series: &[Slot], slot_ms: u64) -> Option<Self> {
        let seconds = float(slot_ms) / 1e3;
        let points: Vec<(f64, f64)> = (0_u32..)
            .zip(series)
            .filter(|(_, slot)| slot.response_p50_ns > 0)
            .map(|(index, slot)| (f64::from(index) * seconds, float(slot.response_p50_ns) / 1e6))
            .collect();
        let slope = Slope::of(&points)?;
        Some(Self { ms_per_second: slope.rise, interval_95: slope.interval_95 })
    }
}

impl Trial {
    /// What came of a run at a fixed `rate`.
    #[must_use]
    pub fn of(run: &RunRecord, rate: f64, demand: Demand) -> Self {
        let response = run.latency.as_ref().map(|latency| latency.response.summary);
        let p99_ms = response.map_or(f64::INFINITY, |summary| float(summary.p99_ns) / 1e6);
        let growth = Growth::of(&run.series, run.slot_ms);
        let seconds = float(run.window_ns) / 1e9;
        let reached = float(run.produced_records) / float(run.offered.max(1));
        // Each tail reads all of it once more.
        let due = float(run.produced_records.max(1)) * (1.0 + f64::from(run.workload.tails));
        let delivered = float(run.consumed_records) / due;
        let growth_min_ms = GROWTH_MIN_MS.min(GROWTH_SHARE_MIN * demand.p99_ms / seconds);
        let grows = |growth: Option<Growth>| {
            let is_sure = |it: &Growth| it.interval_95.low > 0.0;
            growth.is_some_and(|it| is_sure(&it) && it.ms_per_second >= growth_min_ms)
        };
        let misses: Vec<Miss> = [
            (Miss::Response, p99_ms > demand.p99_ms),
            (Miss::Backlog, grows(growth)),
            (Miss::Rate, reached < REACHED_SHARE_MIN),
            (Miss::Unanswered, run.shed > 0 || run.answered < run.offered),
            (Miss::Delivery, run.workload.consume && delivered < REACHED_SHARE_MIN),
            (Miss::Records, run.audit.faults() > 0),
        ]
        .into_iter()
        .filter_map(|(miss, is_so)| is_so.then_some(miss))
        .collect();
        let (steal, foreign) =
            (run.host.steal_share_of_others(), foreign_share(run).unwrap_or(0.0));
        let between = between_stops(&run.series, run.slot_ms, rate, demand);
        let between_stops_p99_ms = between.as_deref().map(p99_ms_of);
        let is_stop = between_stops_p99_ms.is_some_and(|p99_ms| p99_ms <= demand.p99_ms)
            && !grows(between.as_deref().and_then(|series| Growth::of(series, run.slot_ms)))
            && misses.iter().all(|miss| matches!(miss, Miss::Response | Miss::Backlog));
        // Whatever came of it: to leave out only what was missed would favour high rates.
        let is_disturbed = steal >= STEAL_SHARE_MAX || foreign >= FOREIGN_SHARE_MAX;
        let outcome = match (is_disturbed, misses.is_empty(), is_stop) {
            (true, _, _) => Outcome::Disturbed,
            (false, true, _) => Outcome::Sustained,
            (false, false, true) => Outcome::Stopped,
            (false, false, false) => Outcome::Missed,
        };
        Self {
            rate,
            machine: None,
            outcome,
            misses,
            p99_ms,
            between_stops_p99_ms,
            silence_ms: float(run.longest_silence_ns) / 1e6,
            moment: is_late_for_a_moment(between.as_ref().unwrap_or(&run.series), demand),
            growth,
            reached,
            generator_thread: run.generator_thread_share(),
            taken: steal + foreign,
        }
    }

    /// What it says of the ceiling.
    #[must_use]
    pub fn evidence(&self, demand: Demand) -> Evidence {
        let lateness = self.between_stops_p99_ms.unwrap_or(self.p99_ms) / demand.p99_ms;
        let is_by_response = match self.outcome {
            Outcome::Missed => self.misses == [Miss::Response] && lateness > 1.0,
            _ => true,
        };
        let is_stop = is_stop_possible(self.rate, demand) && self.silence_ms >= demand.p99_ms;
        Evidence {
            outcome: self.outcome,
            lateness: is_by_response.then_some(lateness),
            is_momentary: self.moment || is_stop && self.between_stops_p99_ms.is_none(),
        }
    }
}

/// Whether enough is due in the demanded time that a silence of that length is a stop.
fn is_stop_possible(rate: f64, demand: Demand) -> bool {
    rate * demand.p99_ms / 1e3 >= DUE_IN_STOP_MIN
}

/// The course of a window between stops, with slots of nothing in place of those that a stop made
/// late and of those behind it that are late without a break, since they work off what waited. What
/// is left shows whether the rate is below what the system can do, which no rate has it do in a
/// stop. `None` where no stop made anything late, and where too much would be set aside.
fn between_stops(series: &[Slot], slot_ms: u64, rate: f64, demand: Demand) -> Option<Vec<Slot>> {
    let silence_ms = |slot: &Slot| float(slot.silence_ns) / 1e6;
    let is_stop = |slot: &Slot| silence_ms(slot) >= demand.p99_ms;
    let stopped_ms: f64 = series.iter().filter(|slot| is_stop(slot)).map(silence_ms).sum();
    let share = |slots: usize| float(slots as u64) / float(series.len() as u64);
    let window_ms = float(slot_ms) * float(series.len() as u64);
    if !is_stop_possible(rate, demand) || stopped_ms > STOPPED_SHARE_MAX * window_ms {
        return None;
    }
    let mut between = series.to_vec();
    let (mut at, mut set_aside) = (0, 0);
    for late in series.split(|slot| is_in_time(slot, demand)) {
        let end = at + late.len();
        // The silence of its last slot may have gone on into the one behind it.
        if late.iter().chain(series.get(end)).any(is_stop) && !late.is_empty() {
            between[at..end].fill(Slot::default());
            set_aside += late.len();
        }
        at = end + 1;
    }
    (set_aside > 0 && share(set_aside) < SET_ASIDE_SHARE_MAX).then_some(between)
}

/// The 99th percentile of response times of a course, ms, from what its slots tell, all of which
/// have as much due; those of nothing count for nothing.
fn p99_ms_of(series: &[Slot]) -> f64 {
    let slots = || series.iter().filter(|slot| slot.response_max_ns > 0);
    let count = float(slots().count().max(1) as u64);
    let late_share = |ns: f64| slots().map(|slot| share_above(slot, ns)).sum::<f64>() / count;
    let (mut low, mut high) =
        (0.0, slots().map(|slot| float(slot.response_max_ns)).fold(0.0, f64::max));
    for _ in 0..f64::MANTISSA_DIGITS {
        let middle = 0.5 * (low + high);
        if late_share(middle) > 0.01 { low = middle } else { high = middle }
    }
    high / 1e6
}

/// The share of a slot's response times that are longer, with those between the percentiles that it
/// tells taken to lie evenly.
fn share_above(slot: &Slot, ns: f64) -> f64 {
    let [p50, p99, max] =
        [slot.response_p50_ns, slot.response_p99_ns, slot.response_max_ns].map(float);
    let part = |from: f64, to: f64| ((to - ns) / (to - from).max(1.0)).clamp(0.0, 1.0);
    0.01 * part(p99, max) + 0.49 * part(p50, p99) + 0.5 * part(0.0, p50)
}

/// Whether what was late was so in one short time, ahead of the end, and nearly all else in time:
/// what is above the ceiling of a system is late again and again, or ever more.
fn is_late_for_a_moment(series: &[Slot], demand: Demand) -> bool {
    let times = series.split(|slot| is_in_time(slot, demand)).map(<[Slot]>::len);
    let late: usize = times.clone().sum();
    let longest = times.max().unwrap_or(0);
    let share = |slots: usize| float(slots as u64) / float(series.len() as u64);
    longest > 0
        && share(longest) <= MOMENT_SHARE_MAX
        && share(late - longest) <= LATE_BESIDE_MAX
        && series.last().is_some_and(|slot| is_in_time(slot, demand))
}

fn is_in_time(slot: &Slot, demand: Demand) -> bool {
    float(slot.response_p99_ns) / 1e6 <= demand.p99_ms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::sample;
    use moldau_measure::cpu::HostUsage;

    /// Slots of 200 ms whose median response is `ms` at each.
    fn series(ms: impl Iterator<Item = f64>) -> Vec<Slot> {
        let slot = |ms: f64| Slot {
            response_p50_ns: format!("{:.0}", ms * 1e6).parse().unwrap(),
            ..Slot::default()
        };
        ms.map(slot).collect()
    }

    fn growth(ms: impl Iterator<Item = f64>) -> Growth {
        Growth::of(&series(ms), 200).unwrap()
    }

    #[test]
    fn a_backlog_that_grows_is_told_from_one_that_wavers() {
        let mut random = fastrand::Rng::with_seed(3);
        let grown = growth((0..20).map(|i| 5.0 + f64::from(i) + random.f64()));
        assert!((grown.ms_per_second - 5.0).abs() < 0.5 && grown.interval_95.low > 4.0);
        let level = growth((0..20).map(|_| 5.0 + random.f64()));
        assert!(!level.interval_95.excludes(0.0), "{level:?}");
        // Half a wave has a slope, but neighbours that are alike are few witnesses.
        let wave = growth((0..20).map(|i| 5.0 + (f64::from(i) / 4.0).sin()));
        assert!(!wave.interval_95.excludes(0.0), "{wave:?}");
        assert_eq!(Growth::of(&series([1.0; 4].into_iter()), 200), None);
    }

    #[test]
    fn growth_is_claimed_of_a_level_backlog_about_as_rarely_as_the_level_says() {
        let mut random = fastrand::Rng::with_seed(4);
        let claimed = (0..400).filter(|_| {
            let mut state = 0.0;
            let level = growth((0..20).map(|_| {
                state = 0.5 * state + random.f64() - 0.5;
                10.0 + state
            }));
            level.interval_95.low > 0.0
        });
        let claimed = claimed.count();
        assert!(claimed <= 18, "{claimed} of 400");
    }

    fn run() -> RunRecord {
        let mut run = sample::result().runs.swap_remove(0);
        let own_ticks = run.processes.iter().map(|usage| usage.cpu_ns).sum::<u64>() / 10_000_000;
        run.host = HostUsage { busy_ticks: own_ticks, idle_ticks: 1_000, ..run.host };
        run.series = series([0.7; 20].into_iter());
        run
    }

    fn trial(run: &RunRecord, p99_ms: f64) -> Trial {
        Trial::of(run, 20_000.0, Demand { p99_ms })
    }

    #[test]
    fn a_rate_is_sustained_if_nothing_falls_short() {
        let sustained = trial(&run(), 50.0);
        assert_eq!((sustained.outcome, sustained.misses.len()), (Outcome::Sustained, 0));
        assert!((sustained.reached - 1.0).abs() < 1e-9);
        let slow = trial(&run(), 0.1);
        let late = slow.evidence(Demand { p99_ms: 0.1 }).lateness.unwrap();
        assert!(late > 1.0 && (late - 10.0 * slow.p99_ms).abs() < 1e-9, "{late}");
        assert_eq!((slow.outcome, slow.misses), (Outcome::Missed, vec![Miss::Response]));
    }

    #[test]
    fn each_thing_that_falls_short_is_named() {
        let mut short = run();
        short.series = series((0..20).map(|i| 1.0 + f64::from(i)));
        short.produced_records = 100_000;
        short.consumed_records = 90_000;
        short.shed = 1;
        short.audit.lost = 1;
        let found = trial(&short, 50.0);
        let all = [Miss::Backlog, Miss::Rate, Miss::Unanswered, Miss::Delivery, Miss::Records];
        assert_eq!(found.misses, all);
        let evidence = found.evidence(Demand { p99_ms: 50.0 });
        assert_eq!(evidence.lateness, None, "in time, and yet missed");
    }

    #[test]
    fn a_backlog_grows_from_a_thousandth_above_what_can_be_done_on() {
        let misses = |ms_per_second: f64, p99_ms: f64| {
            let mut run = run();
            let rise = ms_per_second * float(run.slot_ms) / 1e3;
            run.series = series((0..20).map(|i| 5.0 + rise * f64::from(i)));
            trial(&run, p99_ms).misses
        };
        assert_eq!(misses(0.9, 50.0), []);
        assert_eq!(misses(1.1, 50.0), [Miss::Backlog]);
        assert_eq!(misses(1.1, 1_000.0), [Miss::Backlog], "however long responses may take");
    }

    #[test]
    fn a_tail_that_reads_makes_up_for_no_consumer_that_does_not() {
        let mut run = run();
        run.workload.tails = 1;
        assert_eq!(trial(&run, 50.0).misses, [Miss::Delivery]);
        run.consumed_records *= 2;
        assert_eq!(trial(&run, 50.0).misses, []);
    }

    /// Slots of 200 ms, in time, late (`-`), and late with a silence of 150 ms (`#`).
    fn course(slots: &str) -> Vec<Slot> {
        let slot = |p99_ms: u64, silence_ms: u64| Slot {
            silence_ns: silence_ms * 1_000_000,
            response_p50_ns: 700_000,
            response_p99_ns: p99_ms * 1_000_000,
            response_max_ns: (p99_ms + 10) * 1_000_000,
            ..Slot::default()
        };
        let of = |kind| match kind {
            '#' => slot(140, 150),
            '-' => slot(90, 0),
            _ => slot(20, 3),
        };
        slots.chars().map(of).collect()
    }

    /// What comes of a run with such a course that misses its p99.
    fn silent(slots: &str, rate: f64) -> Trial {
        let mut run = run();
        (run.slot_ms, run.series) = (200, course(slots));
        let p99_ns = &mut run.latency.as_mut().unwrap().response.summary.p99_ns;
        *p99_ns = 120_000_000;
        let trial = Trial::of(&run, rate, Demand { p99_ms: 50.0 });
        assert_eq!(trial.misses, [Miss::Response]);
        trial
    }

    #[test]
    fn what_a_stop_made_late_is_set_aside() {
        let outcome = |slots: &str| silent(slots, 20_000.0).outcome;
        assert_eq!(outcome("...#--.............."), Outcome::Stopped);
        assert_eq!(outcome(".................-#-"), Outcome::Stopped, "at its end");
        assert_eq!(outcome("...---.............."), Outcome::Missed, "nothing was silent");
        assert_eq!(outcome("...#--......--......"), Outcome::Missed, "and late beside it");
        assert_eq!(outcome("...#------------...."), Outcome::Missed, "late for most of the window");
        assert_eq!(outcome("...#---..#......#-.."), Outcome::Missed, "it stops all the time");
        let few_due = silent("...#--..............", 20.0);
        assert_eq!(few_due.outcome, Outcome::Missed, "nothing was due for so long");
    }

    #[test]
    fn a_silence_that_ends_in_time_is_that_of_the_slot_before() {
        let mut run = run();
        (run.slot_ms, run.series) = (200, course("...-................"));
        run.latency.as_mut().unwrap().response.summary.p99_ns = 120_000_000;
        let demand = Demand { p99_ms: 50.0 };
        assert_eq!(Trial::of(&run, 20_000.0, demand).outcome, Outcome::Missed);
        run.series[4].silence_ns = 60_000_000;
        assert_eq!(Trial::of(&run, 20_000.0, demand).outcome, Outcome::Stopped);
    }

    #[test]
    fn a_stopped_trial_says_of_its_rate_what_it_did_between_its_stops() {
        let demand = Demand { p99_ms: 50.0 };
        let stopped = silent("...#--..............", 20_000.0);
        let evidence = stopped.evidence(demand);
        // All slots but those that are set aside have a p99 of 20 ms.
        let lateness = evidence.lateness.unwrap();
        assert!((lateness - 20.0 / 50.0).abs() < 1e-6 && !evidence.is_momentary, "{evidence:?}");
        let late_too = silent("...#--......--......", 20_000.0).evidence(demand);
        assert!(late_too.lateness.unwrap() > 1.0 && late_too.is_momentary, "{late_too:?}");
    }

    #[test]
    fn the_percentile_of_a_course_is_that_of_all_its_slots() {
        let all = |series: &[Slot]| p99_ms_of(series);
        assert!((all(&course("....")) - 20.0).abs() < 1e-6);
        // Of four slots one is late: 4 % of it are 1 % of all, between its median and its p99.
        let late = all(&course("-..."));
        assert!((84.0..90.0).contains(&late), "{late}");
        let mut of_nothing = course("-...");
        of_nothing[0] = Slot::default();
        assert!((all(&of_nothing) - 20.0).abs() < 1e-6);
        assert!(all(&[]).abs() < 1e-9);
    }

    #[test]
    fn a_stop_that_a_lower_rate_might_have_made_good_is_a_sign_of_a_mishap() {
        let is_momentary = |silence_ms: f64, rate: f64| {
            let trial = Trial { silence_ms, rate, ..trial(&run(), 50.0) };
            trial.evidence(Demand { p99_ms: 50.0 }).is_momentary
        };
        assert_eq!((is_momentary(60.0, 20_000.0), is_momentary(40.0, 20_000.0)), (true, false));
        assert!(!is_momentary(60.0, 300.0), "few were due");
    }

    #[test]
    fn what_is_late_in_one_short_time_is_late_for_a_moment() {
        // Slots of a window, `#` late.
        let is_moment = |slots: &str| {
            let slot = |response_p99_ns| Slot { response_p99_ns, ..Slot::default() };
            let series: Vec<Slot> = slots
                .chars()
                .map(|it| slot(if it == '#' { 60_000_000 } else { 40_000_000 }))
                .collect();
            is_late_for_a_moment(&series, Demand { p99_ms: 50.0 })
        };
        assert!(is_moment("...###..................."));
        assert!(is_moment("..##.......#.........#..."), "two more are few");
        assert!(!is_moment("........................."));
        assert!(!is_moment("..##...#...#........#...."), "again and again");
        assert!(!is_moment(".....##########.........."), "for long");
        assert!(!is_moment("......................###"), "nobody knows how it goes on");
        assert!(!is_moment(""));
    }

    #[test]
    fn a_trial_in_which_others_took_the_machine_says_nothing() {
        let mut stolen = run();
        stolen.host.steal_ticks = 100;
        assert_eq!(trial(&stolen, 50.0).outcome, Outcome::Disturbed);
        stolen.host.own_steal_ticks = stolen.host.steal_ticks;
        assert_eq!(trial(&stolen, 50.0).outcome, Outcome::Sustained, "its disk's emulation");
        let mut crowded = run();
        crowded.host.busy_ticks += 300;
        assert_eq!(trial(&crowded, 0.1).outcome, Outcome::Disturbed);
    }
}
