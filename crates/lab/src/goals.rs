//! Goals: what an operator wants figures of a result to reach.
//!
//! A goal is a line: an arm, a figure, a bound, and perhaps the cases that it is about.
//!
//! ```text
//! encryption cpu_ms_per_mb <= 2
//! passthrough cpu_ms_per_mb <= 1.5 x relay in 16 KB batches
//! passthrough consumed_mb_per_s >= 0.95 x direct in Catch up
//! passthrough idle_mb <= 20
//! ```
//!
//! Behind `x` stands the arm whose figure is multiplied; behind `in` a part of the names of cases,
//! without which a goal is about all cases of the arm. It is reached where all of them reach it.

use std::fmt;
use std::str::FromStr;

use crate::ceiling::search::Bounds;
use crate::ceiling::{SearchRecord, producers_in_words};
use crate::checks::{Check, Verdict, Weight};
use crate::metric::{Metric, compare_one};
use crate::objective::{Bound, Objective};
use crate::punctuality::{cannot_keep_up, is_scheduled};
use crate::result::RunResult;
use moldau_load::run::RunRecord;
use moldau_load::workload::BYTES_PER_MB;
use moldau_measure::numbers::plain;
use moldau_measure::statistics::float;

/// The figures that goals may name, with what they are.
const FIGURES: [(&str, Figure); 21] = [
    ("publish_mean_ms", Figure::Run(Metric::ResponseMean)),
    ("publish_p50_ms", Figure::Run(Metric::ResponseP50)),
    ("publish_p99_ms", Figure::Run(Metric::ResponseP99)),
    ("publish_p999_ms", Figure::Run(Metric::ResponseP999)),
    ("end_to_end_mean_ms", Figure::Run(Metric::EndToEndMean)),
    ("end_to_end_p50_ms", Figure::Run(Metric::EndToEndP50)),
    ("end_to_end_p99_ms", Figure::Run(Metric::EndToEndP99)),
    ("end_to_end_p999_ms", Figure::Run(Metric::EndToEndP999)),
    ("produced_mb_per_s", Figure::Run(Metric::ProduceThroughput)),
    ("produced_records_per_s", Figure::Run(Metric::ProduceRecords)),
    ("consumed_mb_per_s", Figure::Run(Metric::ConsumeThroughput)),
    ("consumed_records_per_s", Figure::Run(Metric::ConsumeRecords)),
    ("consumed_of_produced", Figure::Run(Metric::FanOut)),
    ("compression_ratio", Figure::Run(Metric::CompressionRatio)),
    ("cpu_ms_per_mb", Figure::Run(Metric::ProxyCpu)),
    ("broker_cpu_ms_per_mb", Figure::Run(Metric::BrokerCpu)),
    ("broker_cpu_ms_per_delivered_mb", Figure::Run(Metric::BrokerCpuDelivered)),
    ("client_cpu_ms_per_mb", Figure::Run(Metric::GeneratorCpu)),
    ("idle_mb", Figure::IdleMegabytes),
    ("sustained_mb_per_s", Figure::SustainedMegabytes),
    ("sustained_records_per_s", Figure::SustainedRecords),
];

/// Longest line of a goal.
const LINE_BYTES_MAX: usize = 1_000;

/// Most goals of a file.
const GOALS_MAX: usize = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Figure {
    /// Of each case.
    Run(Metric),
    /// Resident memory of what stands before the target, ahead of all cases.
    IdleMegabytes,
    /// The ceiling of each number of producers, per second.
    SustainedMegabytes,
    SustainedRecords,
}

/// One goal.
#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    text: String,
    arm: String,
    figure: Figure,
    is_at_most: bool,
    bound: f64,
    baseline: Option<String>,
    cases: String,
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Goal {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let usage = || {
            format!("`{}` is no goal such as `encryption cpu_ms_per_mb <= 2`", line.escape_debug())
        };
        if line.len() > LINE_BYTES_MAX {
            return Err(format!("a goal has {LINE_BYTES_MAX} bytes at most"));
        }
        let mut words = line.split_whitespace();
        let mut next = || words.next().ok_or_else(usage);
        let (arm, figure, sign, bound) = (next()?, next()?, next()?, next()?);
        let figure = named(figure)?;
        let is_at_most = match sign {
            "<=" => true,
            ">=" => false,
            _ => return Err(format!("{}: `{sign}` is neither <= nor >=", usage())),
        };
        let bound: f64 = bound.parse().map_err(|_| format!("`{bound}` is no number"))?;
        if !bound.is_finite() {
            return Err(format!("`{bound}` is no number that a figure can reach"));
        }
        let mut rest = words.collect::<Vec<_>>().into_iter().peekable();
        let mut baseline = None;
        if rest.next_if_eq(&"x").is_some() {
            baseline = Some(rest.next().ok_or_else(usage)?.to_owned());
        }
        let mut cases = String::new();
        if rest.next_if_eq(&"in").is_some() {
            cases = rest.by_ref().collect::<Vec<_>>().join(" ");
            if cases.is_empty() {
                return Err(usage());
            }
        }
        if let Some(word) = rest.next() {
            return Err(format!("`{word}`: behind the bound stand `x ARM` and `in CASES`"));
        }
        let text = line.split_whitespace().collect::<Vec<_>>().join(" ");
        Ok(Self { text, arm: arm.into(), figure, is_at_most, bound, baseline, cases })
    }
}

fn named(name: &str) -> Result<Figure, String> {
    let found = FIGURES.iter().find(|(known, _)| *known == name).map(|(_, figure)| *figure);
    let known = || FIGURES.map(|(known, _)| known).join(", ");
    found.ok_or_else(|| format!("`{name}` is no figure; there are {}", known()))
}

/// The goals of a file: one in each line, but for empty lines and those that begin with `#`.
///
/// # Errors
/// Says what is wrong, and in which line.
pub fn read(text: &str) -> Result<Vec<Goal>, String> {
    let lines = (1_usize..).zip(text.lines().map(str::trim));
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let parsed = lines.map(|(number, line)| {
        line.parse::<Goal>().map_err(|error| format!("line {number}: {error}"))
    });
    let goals = parsed.collect::<Result<Vec<Goal>, String>>()?;
    if goals.len() > GOALS_MAX {
        return Err(format!("{} goals are more than {GOALS_MAX}", goals.len()));
    }
    Ok(goals)
}

/// Adds what comes of `goals` to the checks of a result, and with it to its verdict.
pub fn judge(result: &mut RunResult, goals: &[Goal]) {
    let checks: Vec<Check> = goals.iter().map(|goal| goal.check(result)).collect();
    if !checks.is_empty() && result.verdict != Verdict::Environment {
        result.checks.extend(checks);
        result.verdict = Verdict::of(&result.checks);
    }
}

impl Goal {
    /// What comes of the goal. One that no figure answers makes the result invalid: it is neither
    /// reached nor missed.
    fn check(&self, result: &RunResult) -> Check {
        let found = match self.figure {
            Figure::IdleMegabytes => vec![self.idle(result)],
            Figure::SustainedMegabytes => self.sustained(result, |search| {
                search.found.rate * float(search.record_bytes) / BYTES_PER_MB
            }),
            Figure::SustainedRecords => self.sustained(result, |search| search.found.rate),
            Figure::Run(metric) => self.cases(result, metric),
        };
        let has = |of: Found| found.iter().any(|(is, _)| *is == of);
        let words: Vec<String> = found.iter().map(|(_, words)| words.clone()).collect();
        Check {
            name: self.text.clone(),
            passed: !found.is_empty() && !has(Found::Unknown) && !has(Found::Missed),
            weight: match found.is_empty() || has(Found::Unknown) {
                true => Weight::Validity,
                false => Weight::Objective,
            },
            found: if words.is_empty() { self.absence(result) } else { words.join(", ") },
            demanded: self.demanded(),
        }
    }

    fn demanded(&self) -> String {
        let sign = if self.is_at_most { "<=" } else { ">=" };
        let times = self.baseline.as_ref().map_or(String::new(), |arm| format!(" x {arm}"));
        format!("{sign} {}{times}", self.bound)
    }

    /// Why no case answers it.
    fn absence(&self, result: &RunResult) -> String {
        let arms: Vec<&str> = result.arms.iter().map(|arm| arm.name.as_str()).collect();
        if !arms.contains(&self.arm.as_str()) {
            return format!("no arm {}; there are {}", self.arm, arms.join(", "));
        }
        format!("no case has it; there are {}", result.cases().join("; "))
    }

    /// What was found in each case.
    fn cases(&self, result: &RunResult, metric: Metric) -> Vec<(Found, String)> {
        let is_ms = metric.unit().symbol() == "ms";
        let of_arm = |case: &str| -> Vec<&RunRecord> {
            let is_of = |run: &&RunRecord| run.case == case && run.arm == self.arm;
            result.runs.iter().filter(is_of).collect()
        };
        // A latency that is not known is one of the case all the same.
        let has = |run: &&RunRecord| metric.of(run).is_some() || is_ms && is_scheduled(run);
        let cases = result.cases().into_iter().filter(|case| case.contains(&self.cases));
        let cases: Vec<&str> = cases.filter(|case| of_arm(case).iter().any(has)).collect();
        let judged = cases.iter().map(|case| {
            let (found, words) = self.of_case(result, metric, case, &of_arm(case));
            (found, if cases.len() == 1 { words } else { format!("{case}: {words}") })
        });
        judged.collect()
    }

    fn of_case(
        &self,
        result: &RunResult,
        metric: Metric,
        case: &str,
        runs: &[&RunRecord],
    ) -> (Found, String) {
        let bound = match (&self.baseline, self.is_at_most) {
            (None, true) => Bound::FigureAtMost(self.bound),
            (None, false) => Bound::FigureAtLeast(self.bound),
            (Some(arm), true) => Bound::RatioAtMost { baseline: arm.clone(), ratio: self.bound },
            (Some(arm), false) => Bound::RatioAtLeast { baseline: arm.clone(), ratio: self.bound },
        };
        if metric.unit().symbol() == "ms" && cannot_keep_up(runs) {
            return (Found::Missed, "saturated".into());
        }
        if let Some(arm) = &self.baseline
            && result.runs_of(case, arm).next().is_none()
        {
            return (Found::Unknown, format!("{arm} was not measured"));
        }
        if let Some(arm) = &self.baseline
            && !has_effect(result, case, [arm, &self.arm], metric)
        {
            return (Found::Unknown, "too few rounds for a ratio".into());
        }
        let objective = Objective {
            name: String::new(),
            case: case.to_owned(),
            metric,
            arm: self.arm.clone(),
            bound,
        };
        let check = objective.check(&result.runs, result.seed);
        let found = match (check.passed, check.weight) {
            (true, _) => Found::Reached,
            (false, Weight::Validity) => Found::Unknown,
            (false, _) => Found::Missed,
        };
        (found, check.found)
    }

    fn idle(&self, result: &RunResult) -> (Found, String) {
        let of = |name: &str| {
            let arm = result.arms.iter().find(|arm| arm.name == name)?;
            Some(float(arm.idle?.resident_bytes) / BYTES_PER_MB)
        };
        let Some(megabytes) = of(&self.arm) else { return (Found::Unknown, "not measured".into()) };
        let bound = match &self.baseline {
            None => Some(self.bound),
            Some(arm) => of(arm).map(|of_other| of_other * self.bound),
        };
        let Some(bound) = bound else {
            return (Found::Unknown, "not measured of what it is compared with".into());
        };
        (self.against(megabytes, bound), format!("{megabytes:.1} MB"))
    }

    /// The ceilings of the arm, each against that of the other with as many producers.
    fn sustained(
        &self,
        result: &RunResult,
        rate: impl Fn(&SearchRecord) -> f64,
    ) -> Vec<(Found, String)> {
        let searches = || result.ceiling.iter().flat_map(|record| &record.searches);
        // Of a ceiling that was seen from above alone, the rate is one that was not sustained.
        let known =
            |search: &&SearchRecord| matches!(search.found.bounds, Bounds::Both | Bounds::Above);
        let name = |search: &SearchRecord| producers_in_words(search.producers);
        let is_of = |it: &&SearchRecord| it.arm == self.arm && name(it).contains(&self.cases);
        let judged = searches().filter(is_of).map(|search| {
            let Some(own) = Some(search).filter(known).map(&rate) else {
                return (Found::Missed, format!("{}: none", name(search)));
            };
            let bound = match &self.baseline {
                None => Some(self.bound),
                Some(arm) => {
                    let beside =
                        |it: &&SearchRecord| &it.arm == arm && it.producers == search.producers;
                    let other = searches().find(beside).filter(known);
                    other.map(|it| rate(it) * self.bound)
                }
            };
            let words = format!("{}: {}", name(search), plain(own));
            (bound.map_or(Found::Unknown, |bound| self.against(own, bound)), words)
        });
        judged.collect()
    }

    fn against(&self, figure: f64, bound: f64) -> Found {
        let holds = if self.is_at_most { figure <= bound } else { figure >= bound };
        if holds { Found::Reached } else { Found::Missed }
    }
}

/// Whether enough rounds of two arms have a figure.
fn has_effect(result: &RunResult, case: &str, [one, other]: [&str; 2], metric: Metric) -> bool {
    compare_one(&result.runs, case, one, other, metric, result.seed).effect.is_some()
}

/// What one case says of a goal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Reached,
    Missed,
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use moldau_measure::resources::Resources;

    fn goal(line: &str) -> Goal {
        line.parse().unwrap()
    }

    fn verdict(lines: &[&str]) -> (Verdict, Vec<String>) {
        let mut result = sample::result();
        let idle = Resources { resident_bytes: 12 << 20, ..Resources::default() };
        result.arms[1].idle = Some(idle);
        let before = result.checks.len();
        judge(&mut result, &lines.iter().map(|line| goal(line)).collect::<Vec<_>>());
        let found = result.checks[before..].iter().map(|check| check.found.clone());
        (result.verdict, found.collect())
    }

    #[test]
    fn a_goal_is_an_arm_a_figure_and_a_bound() {
        let read = goal("passthrough  cpu_ms_per_mb <= 1.5 x relay in 16 KB batches");
        assert_eq!(read.to_string(), "passthrough cpu_ms_per_mb <= 1.5 x relay in 16 KB batches");
        assert_eq!(
            (read.baseline.as_deref(), read.cases.as_str()),
            (Some("relay"), "16 KB batches")
        );
        assert_eq!(read.demanded(), "<= 1.5 x relay");
        for broken in [
            "",
            "proxy",
            "proxy cpu_ms_per_mb <= ",
            "proxy cpu <= 1",
            "proxy cpu_ms_per_mb < 1",
            "proxy cpu_ms_per_mb <= one",
            "proxy cpu_ms_per_mb <= inf",
            "proxy cpu_ms_per_mb <= 1 x",
            "proxy cpu_ms_per_mb <= 1 in",
            "proxy cpu_ms_per_mb <= 1 ms",
        ] {
            assert!(broken.parse::<Goal>().is_err(), "{broken}");
        }
    }

    #[test]
    fn a_file_has_a_goal_in_each_line() {
        let goals = read("# ours\n\nproxy idle_mb <= 20\n  proxy cpu_ms_per_mb <= 2\n").unwrap();
        assert_eq!(goals, [goal("proxy idle_mb <= 20"), goal("proxy cpu_ms_per_mb <= 2")]);
        assert!(read("\nproxy idle_mb\n").unwrap_err().starts_with("line 2: "));
    }

    #[test]
    fn the_verdict_follows_from_goals_that_are_set() {
        // 260 ms over 240,000 records of 1 KB is 1.11 ms/MB, and at full speed it is 0.22 of them.
        let (verdict_of, found) = verdict(&[]);
        assert_eq!((verdict_of, found.len()), (Verdict::Ok, 0));
        assert_eq!(verdict(&["proxy cpu_ms_per_mb <= 1.2", "proxy idle_mb <= 12"]).0, Verdict::Ok);
        let missed = verdict(&["proxy cpu_ms_per_mb <= 1.2", "proxy idle_mb <= 11.9"]);
        assert_eq!((missed.0, missed.1[1].as_str()), (Verdict::ObjectiveFailed, "12.0 MB"));
        assert_eq!(verdict(&["proxy cpu_ms_per_mb <= 1"]).0, Verdict::ObjectiveFailed);
        assert_eq!(verdict(&["proxy cpu_ms_per_mb <= 1 in full speed"]).0, Verdict::Ok);
        assert_eq!(verdict(&["proxy publish_p50_ms <= 1.5 x direct"]).0, Verdict::Ok);
        assert_eq!(verdict(&["proxy publish_p50_ms <= 1.1 x direct"]).0, Verdict::ObjectiveFailed);
    }

    #[test]
    fn a_goal_that_nothing_answers_is_neither_reached_nor_missed() {
        for unknown in [
            "nothing idle_mb <= 1",
            "nothing cpu_ms_per_mb <= 1",
            "direct cpu_ms_per_mb <= 1",
            "direct idle_mb <= 1",
            "proxy cpu_ms_per_mb <= 1 x nothing",
            "proxy cpu_ms_per_mb <= 1 in no such case",
        ] {
            assert_eq!(verdict(&[unknown]).0, Verdict::Invalid, "{unknown}");
        }
    }

    #[test]
    fn ceilings_are_judged_by_number_of_producers() {
        let judged = |line: &str| {
            let mut result = sample::ceiling();
            judge(&mut result, &[goal(line)]);
            result.verdict
        };
        // The sample's systems sustain the same: 76,000 to 100,000 records/s for each producer.
        assert_eq!(judged("kafka sustained_records_per_s >= 60000"), Verdict::Ok);
        assert_eq!(judged("kafka sustained_records_per_s >= 150000"), Verdict::ObjectiveFailed);
        assert_eq!(judged("kafka sustained_records_per_s >= 150000 in 4 producers"), Verdict::Ok);
        assert_eq!(judged("kafka sustained_mb_per_s >= 0.99 x moldau"), Verdict::Ok);
        assert_eq!(judged("kafka sustained_mb_per_s >= 1.1 x moldau"), Verdict::ObjectiveFailed);
        assert_eq!(judged("kafka sustained_mb_per_s >= 1 x nothing"), Verdict::Invalid);
    }

    #[test]
    fn a_latency_that_is_not_known_reaches_no_goal() {
        let lines = ["proxy publish_p99_ms <= 1000".parse().unwrap()];
        let judged = |change: fn(&mut RunRecord)| {
            let mut result = sample::result();
            let is_it = |run: &&mut RunRecord| run.arm == "proxy" && run.case == sample::FIXED;
            result.runs.iter_mut().filter(is_it).for_each(change);
            judge(&mut result, &lines);
            result.verdict
        };
        assert_eq!(judged(|_| {}), Verdict::Ok);
        assert_eq!(judged(|run| sample::make_late(run, 20_000_000, 50)), Verdict::Invalid);
        assert_eq!(judged(|run| run.produced_records /= 2), Verdict::ObjectiveFailed);
    }
}
