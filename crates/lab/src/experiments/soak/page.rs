//! What grows under a steady load by the hour, as a page.

use crate::page::{Axis, Chart, Detail, Page, Scale, Table};
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::{self, Drawn, slug};
use crate::run_figures::NONE;
use crate::soak::{Drift, Figure, SoakRecord};
use moldau_measure::numbers::plain;

/// Figures whose course stands beside the answer.
const SHOWN: [Figure; 2] = [Figure::Memory, Figure::Publish];

/// The page of a soak.
pub fn page(result: &RunResult, record: &SoakRecord) -> Page {
    let answers = result.arms.iter().map(|arm| answer(result, record, &arm.name));
    let mut page = result_page::answered(result, "Does anything grow?", answers.collect());
    page.table = Some(table(result, record));
    page.charts = SHOWN.iter().filter_map(|figure| course(result, record, *figure)).collect();
    let others = Figure::ALL.into_iter().filter(|figure| !SHOWN.contains(figure));
    let charts = others.filter_map(|figure| course(result, record, figure)).collect();
    page.details.push(Detail::of("Other courses", charts, Vec::new()));
    page.details.push(result_page::audit(result));
    page
}

fn course(result: &RunResult, record: &SoakRecord, figure: Figure) -> Option<Chart> {
    let label = figure.label();
    let drawn = Drawn {
        id: &slug(label),
        title: &format!("Course of {label}"),
        about: "A point after each leg.",
        x: Axis::new("time of the experiment", "s", Scale::Span),
        y: Axis::new(label, figure.unit(), Scale::Linear),
    };
    run_charts::lines(result, drawn, |arm| figure.course(record, &result.runs, arm))
}

fn answer(result: &RunResult, record: &SoakRecord, system: &str) -> String {
    let drifts = Figure::ALL.into_iter().filter(|figure| figure.must_not_grow());
    let drifts: Vec<(Figure, Drift)> = drifts
        .filter_map(|figure| Some((figure, drift(result, record, system, figure)?)))
        .collect();
    let hours = hours(record, system);
    if drifts.is_empty() {
        return format!("On {system} there were too few legs for a slope.");
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
    format!("On {system} {verdict} in {} h: {}.", plain(hours), told.collect::<Vec<_>>().join(", "))
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

/// A row for each figure of each system.
fn table(result: &RunResult, record: &SoakRecord) -> Table {
    let row = |system: &str, figure: Figure| {
        let course = figure.course(record, &result.runs, system);
        let end = |point: Option<&(f64, f64)>| point.map_or(NONE.into(), |(_, it)| plain(*it));
        let drift = Drift::of(&course);
        vec![
            system.to_owned(),
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
    };
    let arms = result.arms.iter();
    let rows = arms.flat_map(|arm| Figure::ALL.map(|figure| row(&arm.name, figure)));
    Table::of(
        "",
        "After each leg. The slope is that of all legs after the first quarter, which fills caches \
         and warms compilers up, with its 95 % interval; neighbouring legs that are alike count as \
         fewer. A rise is shown if the whole interval lies above 0 and it comes to 2 % of the \
         median in that time. Memory excludes what the processes say they cache for readers.",
        &["system", "figure", "first leg", "last leg", "median", "by the hour", ""],
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::result::{Arm, Experiment};
    use crate::sample;
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

    fn page_of(result: &RunResult) -> Page {
        page(result, result.soak().unwrap())
    }

    #[test]
    fn the_answer_says_whether_memory_grows_and_by_how_much_an_hour() {
        let told = page_of(&soak(0)).answer;
        assert_eq!(told.len(), 2);
        for part in [
            "On ours no growth is shown in 0.383 h: memory ",
            "descriptors +0.000 [+0.000, +0.000]",
        ] {
            assert!(told[0].contains(part), "{part}: {}", told[0]);
        }
        let told = page_of(&soak(1_024)).answer;
        assert!(told[0].contains("On ours memory grows in 0.383 h: memory +"), "{}", told[0]);
    }

    #[test]
    fn every_figure_has_its_row_and_its_course() {
        let result = soak(1_024);
        let page = page_of(&result);
        let rows = &page.table.as_ref().unwrap().rows;
        assert_eq!((&*rows[0][2], &*rows[0][6]), ("80.0", "rises"));
        assert_eq!(rows.len(), Figure::ALL.len());
        let ids: Vec<&str> = page.all_charts().map(|chart| chart.id.as_str()).collect();
        let expected =
            ["memory", "publish-p99", "descriptors", "disk", "end-to-end-p99", "acknowledged"];
        assert_eq!(ids, expected);
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert!(back == result);
    }
}
