//! The report on a soak: what grows under a steady load, by the hour.

use super::chart::{self, Chart};
use super::grid::Grid;
use super::html::plot;
use super::table::NONE;
use crate::faults::audit;
use crate::result::RunResult;
use crate::soak::{Drift, Figure, SoakRecord};
use moldau_measure::numbers::{plain, thousands};

/// Whether anything grew, for each system.
pub(super) fn sentence(result: &RunResult, record: &SoakRecord) -> String {
    let answers = result.arms.iter().map(|arm| answer(result, record, &arm.name));
    answers.collect::<Vec<_>>().join(" ")
}

fn answer(result: &RunResult, record: &SoakRecord, system: &str) -> String {
    let drifts = Figure::ALL.into_iter().filter(|figure| figure.must_not_grow());
    let drifts: Vec<(Figure, Drift)> = drifts
        .filter_map(|figure| Some((figure, drift(result, record, system, figure)?)))
        .collect();
    let lost = audit(result.runs.iter().filter(|run| run.arm == system));
    let hours = hours(record, system);
    let ledger =
        format!("{} of {} acknowledged records lost", thousands(lost.lost), thousands(lost.acked));
    if drifts.is_empty() {
        return format!("On {system} there were too few legs for a slope: {ledger}.");
    }
    let grown: Vec<&str> =
        drifts.iter().filter(|(_, drift)| drift.grows).map(|(it, _)| it.label()).collect();
    let told = drifts.iter().map(|(figure, drift)| {
        format!("{} {} {}/h", figure.label(), per_hour(drift), figure.unit())
    });
    let verdict = match grown.as_slice() {
        [] => "no growth is shown".into(),
        grown => format!("{} grows", grown.join(" and ")),
    };
    format!(
        "On {system} {verdict} in {} h: {}; {ledger}.",
        plain(hours),
        told.collect::<Vec<_>>().join(", ")
    )
}

/// From the first look to the last.
fn hours(record: &SoakRecord, system: &str) -> f64 {
    let times = || record.holdings.iter().filter(|it| it.arm == system).map(|it| it.at_ms);
    let span = times().max().unwrap_or(0) - times().min().unwrap_or(0);
    moldau_measure::statistics::float(span) / 3.6e6
}

fn drift(result: &RunResult, record: &SoakRecord, system: &str, figure: Figure) -> Option<Drift> {
    Drift::of(&figure.course(record, &result.runs, system))
}

fn per_hour(drift: &Drift) -> String {
    let slope = drift.per_hour;
    let signed =
        |value: f64| format!("{}{}", if value < 0.0 { "-" } else { "+" }, plain(value.abs()));
    let [low, high] = [slope.interval_95.low, slope.interval_95.high].map(signed);
    format!("{} [{low}, {high}]", signed(slope.rise))
}

/// A table for each system.
pub(super) fn grids(result: &RunResult, record: &SoakRecord) -> Vec<Grid> {
    result.arms.iter().map(|arm| grid(result, record, &arm.name)).collect()
}

fn grid(result: &RunResult, record: &SoakRecord, system: &str) -> Grid {
    let rows = Figure::ALL.into_iter().map(|figure| {
        let course = figure.course(record, &result.runs, system);
        let end = |point: Option<&(f64, f64)>| point.map_or(NONE.into(), |(_, it)| plain(*it));
        let drift = Drift::of(&course);
        vec![
            format!("{}, {}", figure.label(), figure.unit()),
            end(course.first()),
            end(course.last()),
            drift.map_or(NONE.into(), |drift| plain(drift.level)),
            drift.map_or(NONE.into(), |drift| per_hour(&drift)),
            match drift {
                None => "too few legs".into(),
                Some(drift) if drift.grows => "rises".into(),
                Some(_) => "no rise shown".into(),
            },
        ]
    });
    Grid::of(
        &format!("The course of {system}"),
        "After each leg. The slope is that of all legs after the first quarter, which fills caches \
         and warms compilers up, with its 95 % interval; neighbouring legs that are alike count as \
         fewer. A rise is shown if the whole interval lies above 0 and it comes to 2 % of the \
         median in that time. Memory is that of the processes without what they say they keep for \
         readers.",
        &["", "first leg", "last leg", "median", "by the hour", ""],
        rows,
    )
}

/// The sections of the page.
pub(super) fn html(result: &RunResult, record: &SoakRecord, charts: &mut Vec<Chart>) -> String {
    let mut html: String = grids(result, record).iter().map(Grid::html).collect();
    for figure in Figure::ALL {
        let lines: Vec<(&str, Vec<(f64, f64)>)> = result
            .arms
            .iter()
            .map(|arm| (arm.name.as_str(), figure.course(record, &result.runs, &arm.name)))
            .collect();
        if lines.iter().any(|(_, points)| points.len() > 1) {
            let title = format!("{}, {}", figure.label(), figure.unit());
            html += &plot(&title, chart::over_time(figure.unit(), &lines), charts);
        }
    }
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{html, markdown, sample, sentence, text};
    use crate::result::{Arm, Experiment};
    use crate::soak::{Holding, LEG};
    use moldau_measure::resources::Resources;

    /// 24 legs of a minute; the memory grows by so many KB in each.
    fn soak(kilobytes: u64) -> RunResult {
        let like = sample::result().runs.swap_remove(0);
        let (mut runs, mut holdings) = (Vec::new(), Vec::new());
        for leg in 0..24_u32 {
            let mut run = like.clone();
            (run.case, run.arm, run.pair) = (LEG.into(), "ours".into(), leg);
            runs.push(run);
            let wavers = u64::from(leg * 7 % 5) << 18;
            holdings.push(Holding {
                arm: "ours".into(),
                leg,
                at_ms: u64::from(leg) * 60_000,
                held: Resources {
                    resident_bytes: (100 << 20) + wavers + ((u64::from(leg) * kilobytes) << 10),
                    cache_bytes: Some(20 << 20),
                    descriptors: 40,
                    ..Resources::default()
                },
                disk_bytes: 1 << 30,
            });
        }
        let mut result = sample::result();
        result.experiment = Experiment::Soak(SoakRecord { holdings, left_out: Vec::new() });
        (result.runs, result.comparisons) = (runs, Vec::new());
        result.arms = vec![Arm::of("ours", "a broker")];
        result
    }

    #[test]
    fn the_answer_says_whether_memory_grows_and_by_how_much_an_hour() {
        let told = sentence(&soak(0));
        for part in [
            "On ours no growth is shown in 0.383 h: memory ",
            "MB/h, descriptors +0.000 [+0.000, +0.000] open/h; 0 of 2,880,000 acknowledged",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        let told = sentence(&soak(1_024));
        assert!(told.contains("On ours memory grows in 0.383 h: memory +"), "{told}");
    }

    #[test]
    fn every_figure_has_its_row_and_its_course() {
        let result = soak(1_024);
        let page = html(&result).unwrap();
        assert!(page.contains("memory, MB</h3>") && page.len() < 2 << 20);
        for report in [page, markdown(&result), text(&result)] {
            assert!(report.contains("The course of ours"), "{report}");
        }
        let [grid] = grids(&result, result.soak().unwrap()).try_into().ok().unwrap();
        let memory = &grid.rows[0];
        assert_eq!((&*memory[1], &*memory[5]), ("80.0", "rises"));
        assert_eq!(grid.rows.len(), Figure::ALL.len());
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert!(back == result);
    }
}
