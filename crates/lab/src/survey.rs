//! Surveys: the same loads on several systems, most of them one setting apart, and tests of
//! published claims.
//!
//! A claim names the change that its source measured and the band in which its figure holds. Where
//! that change was of several settings at once, the claim may name changes of one setting each
//! that test its cause. Every estimate is over rounds: the ratio of two cells is taken within a
//! round, so that what drifts from round to round cancels.

use serde::{Deserialize, Serialize};

use crate::metric::Metric;
use crate::totals::PublishedTotal;
use moldau_load::run::RunRecord;
use moldau_measure::statistics::{Interval, PairedEffect, paired_effect};

/// What a survey is, for its report.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SurveyRecord {
    /// The question.
    pub question: String,
    /// What was expected and why, before anything was measured.
    pub hypothesis: String,
    /// Where the claims were published.
    pub source: Option<Source>,
    /// The loads, in the order of tables; the name of each is that of its runs' case.
    pub cells: Vec<Cell>,
    /// Systems that are compared with each other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<SystemPair>,
    /// What was claimed.
    pub claims: Vec<Claim>,
    /// What was published of loads over many topics, whose totals are audited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub totals: Vec<PublishedTotal>,
    /// What it is asked beyond its tables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<Asks>,
    /// What else is to be said of the source.
    pub remarks: Vec<String>,
    /// Systems that were not there.
    pub left_out: Vec<LeftOut>,
}

/// What a survey is asked beyond its tables; [`crate::asks`] answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asks {
    /// How does latency grow with the load?
    Latency(LatencyQuestion),
    /// Which codec?
    Compression(CompressionQuestion),
}

/// Latency over the rates of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencyQuestion {
    /// Rates as percentages of what the fastest system takes at full speed, rising; empty where
    /// the factors of the file give rates.
    #[serde(default)]
    pub full_speed_percent: Vec<u16>,
}

/// What a codec is chosen by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CompressionQuestion {
    /// Seconds of processor time that a GB less to send and to store is worth.
    pub gigabyte_is_worth_cpu_s: u32,
}

/// A publication.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// Its title, with version and date.
    pub title: String,
    /// Where it is.
    pub url: String,
}

/// One load of a survey.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// Its name.
    pub name: String,
    /// What sets it apart: every setting that it names itself.
    pub settings: Vec<Setting>,
    /// The scenario that it differs from in one setting; absent from scenarios.
    pub from: Option<String>,
}

/// One setting of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Setting {
    /// Its key in the file.
    pub key: String,
    /// Its value.
    pub value: String,
}

/// A system and its baseline, usually one setting apart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemPair {
    /// What sets them apart.
    pub name: String,
    /// The system.
    pub of: String,
    /// The system that is divided by.
    pub over: String,
}

/// A system that was not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its name.
    pub system: String,
    /// Why not.
    pub reason: String,
}

/// A published statement and how it is tested.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// The statement with its figure.
    pub says: String,
    /// Where in the source it stands.
    pub at: String,
    /// The figure that it is about.
    pub figure: Metric,
    /// The ratio that was published, or the figure where nothing is divided by; absent where the
    /// source gives a direction and no figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// Where the statement holds.
    pub holds: Band,
    /// What was compared.
    pub measured: Contrast,
    /// Changes of one setting each, which show whether the statement names the right cause.
    #[serde(default)]
    pub isolated: Vec<Contrast>,
    /// The systems that it is tested on; all, if none is named.
    #[serde(default)]
    pub systems: Vec<String>,
    /// The pair of systems whose ratio it is about, by its name; such a claim compares no loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pair: Option<String>,
}

/// A range of values, open where an end is left out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Band {
    /// Its lower end.
    pub at_least: Option<f64>,
    /// Its upper end.
    pub at_most: Option<f64>,
}

/// A figure of one cell, divided by that of another if there is one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contrast {
    /// The cell.
    pub of: String,
    /// The cell that is divided by.
    pub over: Option<String>,
}

/// What a contrast came to on one system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean over the rounds; geometric for a ratio.
    pub mean: f64,
    /// Its interval at 95 %; absent with too few rounds, where the estimate decides nothing.
    pub interval: Option<Interval>,
    /// What the rounds say of it, of a ratio of its logarithm; absent with too few of them.
    pub effect: Option<PairedEffect>,
}

/// What a claim came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It holds; where causes were tested one by one, by them.
    Reproduced,
    /// The cause that it names does not have that effect.
    Corrected,
    /// It does not hold.
    NotReproduced,
    /// The interval lies across an end of the band, or there is none.
    Undecided,
}

impl Outcome {
    /// In words.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Corrected => "corrected",
            Self::NotReproduced => "not reproduced",
            Self::Undecided => "not decided",
        }
    }
}

/// A claim on one system.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The system, or the name of the pair of systems.
    pub system: String,
    /// What it came to.
    pub outcome: Outcome,
    /// What was compared; absent where a cell has no figure.
    pub measured: Option<Estimate>,
    /// The changes of one setting each, in the order of the claim.
    pub isolated: Vec<Option<Estimate>>,
}

impl Claim {
    /// The loads that it compares.
    pub fn loads(&self) -> impl Iterator<Item = &str> {
        let contrasts = std::iter::once(&self.measured).chain(&self.isolated);
        contrasts.flat_map(|it| std::iter::once(&it.of).chain(&it.over)).map(String::as_str)
    }

    /// Whether a figure of it is a ratio.
    #[must_use]
    pub fn is_ratio(&self, contrast: &Contrast) -> bool {
        contrast.over.is_some() || self.pair.is_some()
    }

    /// What the claim came to on each of `systems` that it is tested on, or between the two of its
    /// pair.
    #[must_use]
    pub fn findings(
        &self,
        runs: &[RunRecord],
        systems: &[&str],
        pairs: &[SystemPair],
        seed: u64,
    ) -> Vec<Finding> {
        if let Some(name) = &self.pair {
            let pair = pairs.iter().find(|pair| pair.name == *name && pair.is_among(systems));
            let find = |pair: &SystemPair| {
                let measured = pair.estimate(runs, &self.measured.of, self.figure, seed);
                let outcome = self.outcome(measured, &[]);
                Finding { system: name.clone(), outcome, measured, isolated: Vec::new() }
            };
            return pair.map(find).into_iter().collect();
        }
        // Loads may be for some systems alone.
        let is_of =
            |run: &RunRecord, system: &str| run.arm == system && run.case == self.measured.of;
        let is_tested = |system: &&&str| match self.systems.is_empty() {
            true => runs.iter().any(|run| is_of(run, system)),
            false => self.systems.iter().any(|wanted| wanted == *system),
        };
        let find = |system: &&str| {
            let estimate = |contrast: &Contrast| contrast.estimate(runs, system, self.figure, seed);
            let measured = estimate(&self.measured);
            let isolated: Vec<_> = self.isolated.iter().map(estimate).collect();
            let outcome = self.outcome(measured, &isolated);
            Finding { system: (*system).to_string(), outcome, measured, isolated }
        };
        systems.iter().filter(is_tested).map(find).collect()
    }

    fn outcome(&self, measured: Option<Estimate>, isolated: &[Option<Estimate>]) -> Outcome {
        if isolated.is_empty() {
            return self.holds.outcome(measured);
        }
        let positions: Vec<Position> = isolated.iter().map(|it| self.holds.position(*it)).collect();
        if positions.contains(&Position::Outside) {
            Outcome::Corrected
        } else if positions.contains(&Position::Across) {
            Outcome::Undecided
        } else {
            Outcome::Reproduced
        }
    }
}

/// Where an interval lies in relation to a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Inside,
    Outside,
    Across,
}

impl Band {
    /// The ends, infinite where open.
    fn ends(self) -> (f64, f64) {
        (self.at_least.unwrap_or(f64::NEG_INFINITY), self.at_most.unwrap_or(f64::INFINITY))
    }

    /// Whether a value lies in it.
    #[must_use]
    pub fn contains(self, value: f64) -> bool {
        let (low, high) = self.ends();
        (low..=high).contains(&value)
    }

    /// What a claim came to that has no causes to test.
    #[must_use]
    pub(crate) fn outcome(self, estimate: Option<Estimate>) -> Outcome {
        match self.position(estimate) {
            Position::Inside => Outcome::Reproduced,
            Position::Outside => Outcome::NotReproduced,
            Position::Across => Outcome::Undecided,
        }
    }

    fn position(self, estimate: Option<Estimate>) -> Position {
        let (low, high) = self.ends();
        match estimate.and_then(|estimate| estimate.interval) {
            Some(found) if low <= found.low && found.high <= high => Position::Inside,
            Some(found) if found.high < low || high < found.low => Position::Outside,
            Some(_) | None => Position::Across,
        }
    }
}

impl Contrast {
    /// The estimated contrast on a system; `None` if no round has it.
    #[must_use]
    pub fn estimate(
        &self,
        runs: &[RunRecord],
        system: &str,
        figure: Metric,
        seed: u64,
    ) -> Option<Estimate> {
        let of = by_round(runs, &self.of, system, figure);
        let Some(over) = &self.over else {
            let values: Vec<f64> = of.into_iter().map(|(_, value)| value).collect();
            return Estimate::of(&values, seed, |value| value);
        };
        Estimate::of_ratios(&of, &by_round(runs, over, system, figure), seed)
    }
}

impl SystemPair {
    /// Whether both are among `systems`.
    #[must_use]
    pub fn is_among(&self, systems: &[&str]) -> bool {
        [&self.of, &self.over].into_iter().all(|system| systems.contains(&system.as_str()))
    }

    /// The ratio of a load's figure on the two systems; `None` if no round has both.
    #[must_use]
    pub fn estimate(
        &self,
        runs: &[RunRecord],
        load: &str,
        figure: Metric,
        seed: u64,
    ) -> Option<Estimate> {
        let on = |system: &str| by_round(runs, load, system, figure);
        Estimate::of_ratios(&on(&self.of), &on(&self.over), seed)
    }
}

impl Estimate {
    /// The geometric mean of ratios of figures that stand with their rounds, each within a round.
    pub(crate) fn of_ratios(of: &[(u32, f64)], over: &[(u32, f64)], seed: u64) -> Option<Self> {
        let in_round = |round: u32| over.iter().find(|(it, _)| *it == round).map(|(_, it)| *it);
        let ratios = of.iter().filter_map(|(round, value)| {
            let divisor = in_round(*round)?;
            (*value > 0.0 && divisor > 0.0).then(|| (value / divisor).ln())
        });
        Self::of(&ratios.collect::<Vec<_>>(), seed, f64::exp)
    }

    /// The geometric mean, for figures that may differ by a large factor between rounds; the
    /// arithmetic mean if a figure is 0.
    pub(crate) fn typical(values: &[f64], seed: u64) -> Option<Self> {
        if values.iter().any(|value| *value <= 0.0) {
            return Self::of(values, seed, |value| value);
        }
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        Self::of(&logs, seed, f64::exp)
    }

    /// The mean of `values` and its interval, both put through `shown`.
    pub(crate) fn of(values: &[f64], seed: u64, shown: impl Fn(f64) -> f64) -> Option<Self> {
        if let Some(effect) = paired_effect(values, seed) {
            let Interval { low, high } = effect.interval_95;
            let interval = Some(Interval { low: shown(low), high: shown(high) });
            return Some(Self { mean: shown(effect.mean), interval, effect: Some(effect) });
        }
        let count = u32::try_from(values.len()).ok().filter(|count| *count > 0)?;
        let mean = values.iter().sum::<f64>() / f64::from(count);
        Some(Self { mean: shown(mean), interval: None, effect: None })
    }
}

/// A figure of the runs of a cell on a system, with their rounds.
fn by_round(runs: &[RunRecord], cell: &str, system: &str, figure: Metric) -> Vec<(u32, f64)> {
    let of_cell = runs.iter().filter(|run| run.case == cell && run.arm == system);
    figure.told_of(of_cell).map(|(run, value)| (run.pair, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    /// Runs of cells at full speed whose records per second are given round by round.
    fn runs(cells: &[(&str, &[u64])]) -> Vec<RunRecord> {
        let result = sample::result();
        let like = result.runs.last().unwrap();
        let of_cell = |(cell, records): &(&str, &[u64])| {
            let rounds = (0..).zip(records.iter().copied());
            let run = |(pair, records): (u32, u64)| RunRecord {
                case: (*cell).to_string(),
                arm: "ours".into(),
                pair,
                produced_records: records,
                window_ns: 1_000_000_000,
                ..like.clone()
            };
            rounds.map(run).collect::<Vec<_>>()
        };
        cells.iter().flat_map(of_cell).collect()
    }

    fn contrast(of: &str, over: Option<&str>) -> Contrast {
        Contrast { of: of.into(), over: over.map(str::to_string) }
    }

    fn claim(isolated: &[Contrast]) -> Claim {
        Claim {
            says: "the codec more than doubles the rate".into(),
            at: "table 1".into(),
            figure: Metric::ProduceRecords,
            published: Some(2.4),
            holds: Band { at_least: Some(2.0), at_most: Some(3.0) },
            measured: contrast("all at once", Some("plain")),
            isolated: isolated.to_vec(),
            systems: Vec::new(),
            pair: None,
        }
    }

    const PLAIN: (&str, &[u64]) = ("plain", &[100, 200, 300, 400]);
    const ALL: (&str, &[u64]) = ("all at once", &[241, 480, 725, 960]);
    const CODEC: (&str, &[u64]) = ("codec", &[101, 198, 303, 400]);
    const MORE: (&str, &[u64]) = ("more at once", &[240, 481, 720, 961]);

    fn outcome(claim: &Claim, runs: &[RunRecord]) -> Outcome {
        let [finding] = claim.findings(runs, &["ours"], &[], 1).try_into().unwrap();
        finding.outcome
    }

    #[test]
    fn a_ratio_is_taken_within_rounds_so_that_drift_cancels() {
        let runs = runs(&[PLAIN, ALL]);
        let ratio = contrast("all at once", Some("plain"));
        let found = ratio.estimate(&runs, "ours", Metric::ProduceRecords, 1).unwrap();
        // The plain rate quadruples over the rounds, while the ratios differ by half a percent.
        assert!((found.mean - 2.406).abs() < 0.002, "{found:?}");
        let interval = found.interval.unwrap();
        assert!(interval.low > 2.38 && interval.high < 2.44, "{interval:?}");
        let plain = contrast("plain", None);
        let found = plain.estimate(&runs, "ours", Metric::ProduceRecords, 1).unwrap();
        assert!((found.mean - 250.0).abs() < 1e-9);
    }

    #[test]
    fn rounds_without_a_partner_and_cells_without_a_figure_make_no_estimate() {
        let runs = runs(&[PLAIN, ("short", &[240])]);
        let of = |contrast: &Contrast, system| {
            contrast.estimate(&runs, system, Metric::ProduceRecords, 1)
        };
        let one = of(&contrast("short", Some("plain")), "ours").unwrap();
        assert_eq!((one.mean.round(), one.interval), (2.0, None));
        assert_eq!(of(&contrast("nothing", Some("plain")), "ours"), None);
        assert_eq!(of(&contrast("plain", None), "theirs"), None);
        let latency = contrast("plain", None).estimate(&runs, "ours", Metric::ResponseP50, 1);
        assert_eq!(latency, None);
    }

    #[test]
    fn a_claim_without_causes_to_test_is_reproduced_or_not() {
        let claim = claim(&[]);
        assert_eq!(outcome(&claim, &runs(&[PLAIN, ALL])), Outcome::Reproduced);
        let same: (&str, &[u64]) = ("all at once", CODEC.1);
        assert_eq!(outcome(&claim, &runs(&[PLAIN, same])), Outcome::NotReproduced);
        let wild: (&str, &[u64]) = ("all at once", &[100, 700, 500, 1_500]);
        assert_eq!(outcome(&claim, &runs(&[PLAIN, wild])), Outcome::Undecided);
        let few: (&str, &[u64]) = ("all at once", &[240, 480]);
        assert_eq!(outcome(&claim, &runs(&[PLAIN, few])), Outcome::Undecided);
    }

    #[test]
    fn a_claim_whose_cause_has_no_such_effect_is_corrected() {
        let by_codec = claim(&[contrast("codec", Some("plain"))]);
        assert_eq!(outcome(&by_codec, &runs(&[PLAIN, ALL, CODEC])), Outcome::Corrected);
        let by_more = claim(&[contrast("more at once", Some("plain"))]);
        assert_eq!(outcome(&by_more, &runs(&[PLAIN, ALL, MORE])), Outcome::Reproduced);
        assert_eq!(outcome(&by_more, &runs(&[PLAIN, ALL])), Outcome::Undecided);
        // What was measured all at once does not make up for a cause without an effect.
        let both = [contrast("more at once", Some("plain")), contrast("codec", Some("plain"))];
        let all = runs(&[PLAIN, ALL, CODEC, MORE]);
        assert_eq!(outcome(&claim(&both), &all), Outcome::Corrected);
    }

    #[test]
    fn a_claim_is_tested_on_the_systems_that_it_names() {
        let mut named = claim(&[]);
        named.systems = vec!["theirs".into()];
        let runs = runs(&[PLAIN, ALL]);
        assert!(named.findings(&runs, &["ours"], &[], 1).is_empty());
        let [finding] = named.findings(&runs, &["ours", "theirs"], &[], 1).try_into().unwrap();
        assert_eq!((finding.system.as_str(), finding.measured), ("theirs", None));
    }

    #[test]
    fn a_claim_about_a_pair_takes_the_ratio_of_two_systems_within_rounds() {
        let mut all = runs(&[PLAIN]);
        let mut doubled = all.clone();
        for run in &mut doubled {
            run.arm = "theirs".into();
            run.produced_records *= 2;
        }
        all.extend(doubled);
        let (of, over) = ("theirs".to_string(), "ours".to_string());
        let pairs = [SystemPair { name: "theirs by ours".into(), of, over }];
        let of_pair = Claim {
            measured: contrast("plain", None),
            pair: Some("theirs by ours".into()),
            ..claim(&[])
        };
        let found = of_pair.findings(&all, &["ours", "theirs"], &pairs, 1);
        let [finding] = found.try_into().unwrap();
        assert_eq!(
            (finding.system.as_str(), finding.outcome.word()),
            ("theirs by ours", "reproduced")
        );
        assert!((finding.measured.unwrap().mean - 2.0).abs() < 1e-9);
        assert!(
            of_pair.findings(&all, &["ours"], &pairs, 1).is_empty(),
            "one of them was not there"
        );
    }

    #[test]
    fn an_open_band_ends_on_one_side() {
        let band = Band { at_least: None, at_most: Some(1.0) };
        assert!(band.contains(-5.0) && band.contains(1.0) && !band.contains(1.1));
    }
}
