//! What an experiment is asked to show: a ratio of two arms, or a figure of one, and its bound.

use crate::checks::{Check, Weight};
use crate::metric::{Metric, compare_one};
use crate::punctuality::latencies_are_withheld;
use moldau_load::run::RunRecord;
use moldau_measure::numbers::Unit;
use moldau_measure::statistics::median;

/// One thing that an experiment should show.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    /// What is claimed, without figures.
    pub name: String,
    /// The case whose runs show it.
    pub case: String,
    /// The figure.
    pub metric: Metric,
    /// The arm that is judged.
    pub arm: String,
    /// The demand.
    pub bound: Bound,
}

/// What is demanded of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Bound {
    /// The ratio to another arm, as the mean over pairs, is at most this.
    RatioAtMost {
        /// The arm that is divided by.
        baseline: String,
        /// Largest ratio.
        ratio: f64,
    },
    /// The ratio to another arm, as the mean over pairs, is at least this.
    RatioAtLeast {
        /// The arm that is divided by.
        baseline: String,
        /// Smallest ratio.
        ratio: f64,
    },
    /// The arm is not worse than another by more than a margin: the 90 % interval of the ratio
    /// stays within it (a one-sided test at 5 %).
    NotWorse {
        /// The other arm.
        baseline: String,
        /// Allowed share, such as 0.05.
        margin: f64,
    },
    /// The median over the runs is at least this, in the figure's unit.
    FigureAtLeast(f64),
    /// The median over the runs is at most this, in the figure's unit.
    FigureAtMost(f64),
}

impl Objective {
    /// Whether `runs` show it. What cannot be judged for want of runs is not shown.
    #[must_use]
    pub fn check(&self, runs: &[RunRecord], seed: u64) -> Check {
        let (passed, found, demanded) = match &self.bound {
            Bound::FigureAtLeast(least) => {
                self.figure(runs, format!(">= {least}"), |found| found >= *least)
            }
            Bound::FigureAtMost(most) => {
                self.figure(runs, format!("<= {most}"), |found| found <= *most)
            }
            Bound::RatioAtMost { baseline, ratio } => {
                let demanded = format!("<= {ratio} x {baseline}");
                self.ratio(runs, baseline, seed, demanded, |found| found.mean <= *ratio)
            }
            Bound::RatioAtLeast { baseline, ratio } => {
                let demanded = format!(">= {ratio} x {baseline}");
                self.ratio(runs, baseline, seed, demanded, |found| found.mean >= *ratio)
            }
            Bound::NotWorse { baseline, margin } => {
                let demanded = format!("not worse than {baseline} by {:.0} %", margin * 100.0);
                let less_is_better = self.metric.unit().less_is_better();
                self.ratio(runs, baseline, seed, demanded, |found| {
                    if less_is_better {
                        found.high_90 <= 1.0 + margin
                    } else {
                        found.low_90 >= 1.0 - margin
                    }
                })
            }
        };
        let weight = if self.is_unknown(runs) { Weight::Validity } else { Weight::Objective };
        Check { name: self.name.clone(), passed, weight, found, demanded }
    }

    /// Whether it is about a latency that is unknown, since the generator was late.
    fn is_unknown(&self, runs: &[RunRecord]) -> bool {
        let baseline = match &self.bound {
            Bound::RatioAtMost { baseline, .. }
            | Bound::RatioAtLeast { baseline, .. }
            | Bound::NotWorse { baseline, .. } => Some(baseline),
            Bound::FigureAtLeast(_) | Bound::FigureAtMost(_) => None,
        };
        let arms = std::iter::once(&self.arm).chain(baseline);
        self.metric.unit() == Unit::Milliseconds
            && arms.into_iter().any(|arm| {
                let is_of = |run: &&RunRecord| run.case == self.case && &run.arm == arm;
                let of_arm: Vec<&RunRecord> = runs.iter().filter(is_of).collect();
                latencies_are_withheld(&of_arm)
            })
    }

    fn figure(
        &self,
        runs: &[RunRecord],
        demanded: String,
        holds: impl Fn(f64) -> bool,
    ) -> (bool, String, String) {
        let of_arm = runs.iter().filter(|run| run.case == self.case && run.arm == self.arm);
        let figures: Vec<f64> = of_arm.filter_map(|run| self.metric.of(run)).collect();
        let unit = self.metric.unit().symbol();
        let demanded = format!("{demanded} {unit}");
        if figures.is_empty() {
            return (false, "no run has it".into(), demanded);
        }
        let found = median(&figures);
        (holds(found), format!("{found:.2} {unit}"), demanded)
    }

    fn ratio(
        &self,
        runs: &[RunRecord],
        baseline: &str,
        seed: u64,
        demanded: String,
        holds: impl Fn(&Ratio) -> bool,
    ) -> (bool, String, String) {
        let compared = compare_one(runs, &self.case, baseline, &self.arm, self.metric, seed);
        let Some(effect) = compared.effect else {
            return (false, "too few pairs".into(), demanded);
        };
        let log = effect.log_ratio;
        let ratio = Ratio {
            mean: log.mean.exp(),
            low_90: log.interval_90.low.exp(),
            high_90: log.interval_90.high.exp(),
        };
        let (low, high) = (log.interval_95.low.exp(), log.interval_95.high.exp());
        let found = format!("{:.2} x [{low:.2}, {high:.2}]", ratio.mean);
        (holds(&ratio), found, demanded)
    }
}

/// A ratio of two arms: its geometric mean over the pairs, and the ends of its 90 % interval.
struct Ratio {
    mean: f64,
    low_90: f64,
    high_90: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn objective(metric: Metric, bound: Bound) -> Objective {
        Objective {
            name: "a claim".into(),
            case: sample::FIXED.into(),
            metric,
            arm: "proxy".into(),
            bound,
        }
    }

    fn passes(metric: Metric, bound: Bound) -> bool {
        objective(metric, bound).check(&sample::result().runs, 1).passed
    }

    #[test]
    fn a_ratio_is_held_against_its_bound() {
        let direct = || "direct".to_string();
        // The sample's proxy adds about a third to the latency.
        let most = |ratio| Bound::RatioAtMost { baseline: direct(), ratio };
        assert!(passes(Metric::ResponseP50, most(1.5)));
        assert!(!passes(Metric::ResponseP50, most(1.1)));
        let least = |ratio| Bound::RatioAtLeast { baseline: direct(), ratio };
        assert!(passes(Metric::ResponseP50, least(1.1)));
        assert!(!passes(Metric::ResponseP50, least(1.5)));
    }

    #[test]
    fn worse_is_more_of_a_latency_and_less_of_a_throughput() {
        let margin = |margin| Bound::NotWorse { baseline: "direct".into(), margin };
        assert!(!passes(Metric::ResponseP50, margin(0.05)));
        assert!(passes(Metric::ResponseP50, margin(0.6)));
        let throughput = |case: &str, arm: &str, baseline: &str| Objective {
            case: case.into(),
            arm: arm.into(),
            ..objective(
                Metric::ProduceThroughput,
                Bound::NotWorse { baseline: baseline.into(), margin: 0.05 },
            )
        };
        let runs = sample::result().runs;
        let case = "Produce at full speed";
        assert!(!throughput(case, "proxy", "direct").check(&runs, 1).passed);
        assert!(throughput(case, "direct", "proxy").check(&runs, 1).passed);
    }

    #[test]
    fn an_objective_without_runs_fails() {
        let absent = Objective {
            case: "another case".into(),
            ..objective(Metric::FanOut, Bound::FigureAtLeast(0.0))
        };
        assert!(!absent.check(&sample::result().runs, 1).passed);
        let ratio = Bound::RatioAtMost { baseline: "absent".into(), ratio: 100.0 };
        assert!(!passes(Metric::ResponseP50, ratio));
        assert!(passes(Metric::ProduceThroughput, Bound::FigureAtLeast(19.0)));
        assert!(!passes(Metric::ProduceThroughput, Bound::FigureAtLeast(20.0)));
        assert!(passes(Metric::ProduceThroughput, Bound::FigureAtMost(20.0)));
        assert!(!passes(Metric::ProduceThroughput, Bound::FigureAtMost(19.0)));
    }
}
