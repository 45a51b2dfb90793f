//! Questions of a survey beyond its tables, and the loads and figures that they need.

use super::super::bench::Bench;
use super::super::running::Running;
use super::{CELLS_MAX, Factor, Load, Plan, Settings, SurveyFile, refuse};
use crate::asks::{self, Reached};
use crate::checks::{Check, Weight};
use crate::survey::{Asks, SurveyRecord};
use moldau_load::run::RunRecord;
use moldau_measure::Error;

/// A curve of fewer points is none.
const CURVE_POINTS_MIN: usize = 3;

impl SurveyFile {
    pub(super) fn check_asked(&self) -> Result<(), Error> {
        match &self.asks {
            None => Ok(()),
            Some(Asks::Latency(asked)) => {
                let percent = &asked.full_speed_percent;
                let scenario = self.scenarios.first();
                let is_free = scenario.is_some_and(|it| it.load.over(&self.load).paces() == 0);
                if percent.is_empty() || is_free && percent.len() < CELLS_MAX {
                    return shares_rise(percent);
                }
                let most = CELLS_MAX - 1;
                refuse(format!(
                    "asks.latency.full_speed_percent: at most {most} of them, of a first scenario \
                     without a rate"
                ))
            }
            Some(Asks::Compression(_)) => {
                let of_codec = |factor: &&Factor| {
                    factor.levels.iter().any(|level| level.compression.is_some())
                };
                match self.factors.iter().find(of_codec) {
                    Some(_) => Ok(()),
                    None => refuse("asks.compression: a factor with levels of compression".into()),
                }
            }
        }
    }

    /// The rates that are asked for as shares of full speed, as a factor of the first scenario.
    fn rates(&self, full_speed: f64) -> Option<Factor> {
        let Some(Asks::Latency(asked)) = &self.asks else { return None };
        let rate = |percent: &u16| round_rate(full_speed * f64::from(*percent) / 100.0);
        let mut rates: Vec<u64> = asked.full_speed_percent.iter().map(rate).collect();
        rates.dedup();
        let level = |rate| Settings { records_per_second: Some(rate), ..Settings::default() };
        let from = self.scenarios.first()?.name.clone();
        let levels: Vec<Settings> = rates.into_iter().map(level).collect();
        (!levels.is_empty()).then_some(Factor { from, levels, quick: true })
    }
}

fn shares_rise(percent: &[u16]) -> Result<(), Error> {
    let rises = percent.windows(2).all(|pair| matches!(pair, [low, high] if low < high));
    if rises && percent.iter().all(|share| (1..=100).contains(share)) {
        return Ok(());
    }
    refuse("asks.latency.full_speed_percent: 1 to 100 each, rising".into())
}

/// A rate with two significant digits, at least 1.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a whole number of records per second, not negative; the cast saturates"
)]
fn round_rate(rate: f64) -> u64 {
    let scale = 10_f64.powf((rate.max(1.0).log10().floor() - 1.0).max(0.0));
    ((rate / scale).round() * scale).max(1.0) as u64
}

/// The loads at rates that are asked for as shares of what the fastest system takes at full speed.
pub(super) fn rates(
    plan: &Plan,
    bench: &mut Bench<'_>,
    running: &[Running],
) -> Result<Vec<Load>, Error> {
    let file = &plan.file;
    let Some(scenario) = file.scenarios.first().filter(|_| file.rates(1.0).is_some()) else {
        return Ok(Vec::new());
    };
    let workload = file.workload(&scenario.load.over(&file.load), plan.conditions.quick);
    let mut fastest = 0.0_f64;
    for system in running {
        bench.expect_steps(1);
        fastest = fastest.max(bench.calibrate(&system.path, &workload)?);
    }
    let mut rated = file.clone();
    rated.factors.extend(file.rates(fastest));
    let known: Vec<String> = file.loads().into_iter().map(|load| load.cell.name).collect();
    let mut loads = rated.loads();
    loads.retain(|load| !known.contains(&load.cell.name));
    let rounds = usize::try_from(plan.rounds()).unwrap_or(0);
    bench.expect_steps(loads.len().saturating_mul(rounds).saturating_mul(running.len()));
    Ok(loads)
}

pub(super) fn curves_are_known(
    record: &SurveyRecord,
    runs: &[RunRecord],
    systems: &[&str],
) -> Check {
    let rates = asks::rates(record, runs);
    let points = |system: &&str| {
        let has_ms = |case: &str| matches!(asks::reached(runs, case, system, 1), Reached::Ms(_));
        rates.iter().filter(|(_, case)| has_ms(case)).count()
    };
    let fewest = systems.iter().map(points).min().unwrap_or(0);
    Check {
        name: "rates at which latencies are known, fewest of any system".into(),
        passed: fewest >= CURVE_POINTS_MIN.min(rates.len()) && fewest > 0,
        weight: Weight::Validity,
        found: format!("{fewest} of {}", rates.len()),
        demanded: format!(">= {}", CURVE_POINTS_MIN.min(rates.len())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::survey::{CompressionQuestion, LatencyQuestion};

    fn file(percent: &[u16], scenario: &str) -> SurveyFile {
        let text = format!(
            r#"{{"question": "q", "hypothesis": "h", "systems": ["moldau"], "rounds": 3,
                "warmup_ms": 0, "window_ms": 1000,
                "scenarios": [{{"name": "full speed", "load": {scenario}}}]}}"#
        );
        let mut file: SurveyFile = serde_json::from_str(&text).unwrap();
        let asked = LatencyQuestion { full_speed_percent: percent.to_vec() };
        file.asks = Some(Asks::Latency(asked));
        file
    }

    #[test]
    fn rates_are_round_shares_of_full_speed() {
        let file = file(&[1, 10, 50], "{}");
        file.check().unwrap();
        let factor = file.rates(123_456.0).unwrap();
        let rates: Vec<Option<u64>> =
            factor.levels.iter().map(|level| level.records_per_second).collect();
        assert_eq!(rates, [Some(1_200), Some(12_000), Some(62_000)]);
        let names: Vec<String> = SurveyFile { factors: vec![factor], ..file.clone() }
            .loads()
            .into_iter()
            .map(|load| load.cell.name)
            .collect();
        assert_eq!(names[1], "full speed, records_per_second 1200");
        // Shares of next to nothing fall together.
        assert_eq!(file.rates(3.0).unwrap().levels.len(), 2);
    }

    #[test]
    fn what_cannot_be_answered_is_refused() {
        assert!(file(&[], "{}").check().is_ok());
        let refused = |file: SurveyFile| file.check().unwrap_err().to_string();
        assert!(refused(file(&[10, 10], "{}")).contains("rising"));
        assert!(refused(file(&[50, 101], "{}")).contains("1 to 100"));
        let paced = r#"{"records_per_second": 10}"#;
        assert!(refused(file(&[10], paced)).contains("without a rate"));
        let mut codec = file(&[], "{}");
        let asked = CompressionQuestion { gigabyte_is_worth_cpu_s: 1 };
        codec.asks = Some(Asks::Compression(asked));
        assert!(refused(codec).contains("levels of compression"));
    }
}
