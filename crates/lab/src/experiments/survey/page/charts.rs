//! Charts of a survey: ratios of claims, Little's law, partitions made and moved, throughput and
//! latency of every load, and sweeps.

use super::{cases, findings, middle, sweeps, systems};
use crate::administration::Duty;
use crate::metric::Metric;
use crate::page::{Axis, Cell, Chart, Group, Mark, Plot, Scale, Series};
use crate::result::RunResult;
use crate::run_charts::{self, Compared, tone};
use crate::survey::{Contrast, Estimate, SurveyRecord};

/// Charts that stand beside the answer.
pub(super) const SHOWN_MAX: usize = 5;

/// The charts, those that answer first.
pub(super) fn all(result: &RunResult, record: &SurveyRecord) -> Vec<Chart> {
    let first = [
        claims(result, record),
        littles_law(result),
        administration(result),
        throughput(result),
        latency(result),
    ];
    first.into_iter().flatten().chain(sweeps::charts(result, record)).collect()
}

/// What was published beside what was measured the same way and with one setting changed alone.
fn claims(result: &RunResult, record: &SurveyRecord) -> Option<Chart> {
    let systems = systems(result);
    let group = |name: String, published: Option<f64>, of: &dyn Fn(&str) -> Option<Estimate>| {
        let cell = |found: Option<Estimate>| {
            found.map_or(Cell::Absent, |found| Cell::Figure(found.into()))
        };
        let published = published.map_or(Cell::Absent, |it| Cell::Figure(it.into()));
        let cells = systems.iter().map(|system| cell(of(system)));
        Group { name, cells: std::iter::once(published).chain(cells).collect() }
    };
    let mut groups = Vec::new();
    for claim in record.claims.iter().filter(|claim| claim.is_ratio(&claim.measured)) {
        let findings = findings(result, claim);
        let of = |system: &str| findings.iter().find(|finding| finding.system == system);
        groups.push(group(claim.says.clone(), claim.published, &|system| of(system)?.measured));
        for (at, contrast) in claim.isolated.iter().enumerate() {
            let last = contrast.of.rsplit_once(", ").map_or(&*contrast.of, |(_, last)| last);
            groups.push(group(format!("one setting: {last}"), None, &|system| {
                of(system)?.isolated.get(at).copied().flatten()
            }));
        }
    }
    let own = systems.iter().map(|name| Series { name: (*name).into(), tone: tone(result, name) });
    let published = Series { name: "published".into(), tone: 0 };
    (!groups.is_empty()).then(|| Chart {
        id: "claims".into(),
        title: "Claims: published and measured".into(),
        about: "Ratios with 95 % intervals, measured as the source did and then with one setting \
                changed alone."
            .into(),
        series: std::iter::once(published).chain(own).collect(),
        plot: Plot::Bars { axis: Axis::new("ratio", "x", Scale::Log), mark: Mark::Dot, groups },
    })
}

/// A figure of several arms, a group for each row.
fn measured<'a>(
    result: &RunResult,
    (id, title, about): (&str, &str, &str),
    axis: Axis,
    rows: impl Iterator<Item = (String, Vec<(&'a str, Option<Estimate>)>)>,
) -> Option<Chart> {
    let systems = systems(result);
    let group = |(name, found): (String, Vec<(&str, Option<Estimate>)>)| {
        let cell = |system: &&str| {
            let found = found.iter().find(|(arm, _)| arm == system).and_then(|(_, it)| *it);
            found.map_or(Cell::Absent, |found| Cell::Figure(found.into()))
        };
        Group { name, cells: systems.iter().map(cell).collect() }
    };
    let groups: Vec<Group> = rows.map(group).collect();
    let series = systems.iter();
    let series = series.map(|name| Series { name: (*name).into(), tone: tone(result, name) });
    (!groups.is_empty()).then(|| Chart {
        id: id.into(),
        title: title.into(),
        about: about.into(),
        series: series.collect(),
        plot: Plot::Bars { axis, mark: Mark::Dot, groups },
    })
}

/// Measured rates by those that Little's law predicts.
fn littles_law(result: &RunResult) -> Option<Chart> {
    let law = result.littles_law.as_ref()?;
    let mut tested: Vec<u16> = law.arms().iter().flat_map(|arm| law.tested(arm)).collect();
    tested.sort_unstable();
    tested.dedup();
    let rows = tested.into_iter().map(|partitions| {
        let agreement = |arm| (arm, law.agreement(arm, partitions, result.seed));
        (format!("{partitions} partitions"), law.arms().into_iter().map(agreement).collect())
    });
    let about = "Measured rate by the predicted one, with 95 % intervals. At 1 the law holds.";
    let words = ("littles-law", "Little's law", about);
    measured(result, words, Axis::new("measured by predicted", "x", Scale::Log), rows)
}

/// Seconds that partitions take to be made and moved.
fn administration(result: &RunResult) -> Option<Chart> {
    let administration = result.administration.as_ref()?;
    let takes_time = |(duty, _): &(Duty, u16)| *duty != Duty::IdleProcessors;
    let rows = administration.duties().into_iter().filter(takes_time).map(|(duty, partitions)| {
        let of = |arm| (arm, administration.estimate(arm, duty, partitions, result.seed));
        (duty.words(partitions), administration.arms().into_iter().map(of).collect())
    });
    let about = "Geometric means with 95 % intervals. Less is better.";
    let words = ("administration", "Partitions made and moved", about);
    measured(result, words, Axis::new("time", "s", Scale::Log), rows)
}

/// Records per second of every load on each system.
fn throughput(result: &RunResult) -> Option<Chart> {
    let rows = cases(result).into_iter().map(|case| {
        let of = |system| {
            let contrast = Contrast { of: case.into(), over: None };
            let metric = Metric::ProduceRecords;
            (system, contrast.estimate(&result.runs, system, metric, result.seed))
        };
        (case.to_owned(), systems(result).into_iter().map(of).collect())
    });
    let about = "Means over the rounds with 95 % intervals. More is better.";
    let words = ("throughput", "Throughput of every load", about);
    measured(result, words, Axis::new("acknowledged", "records/s", Scale::Log), rows)
}

/// The 99th percentile of every load on each system.
fn latency(result: &RunResult) -> Option<Chart> {
    let compared = Compared {
        id: "latency",
        title: "99th percentile of every load",
        about: "From sending with records outstanding, from the intended time at a rate: medians \
                over the rounds. Less is better.",
        axis: Axis::new("p99", "ms", Scale::Log),
        mark: Mark::Dot,
    };
    let cases = cases(result);
    run_charts::bars(
        result,
        &cases,
        compared,
        |arm| tone(result, arm),
        |runs| {
            let place = runs.first().map(|run| (run.case.as_str(), run.arm.as_str()));
            let of = |metric| place.and_then(|(case, arm)| middle(result, case, arm, metric));
            of(Metric::ServiceP99)
                .or_else(|| of(Metric::ResponseP99))
                .map_or(Cell::Absent, |value| Cell::Figure(value.into()))
        },
    )
}
