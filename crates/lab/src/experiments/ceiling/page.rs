//! The highest rate that systems sustain, as a page.

use crate::ceiling::search::{Bounds, Found, Outcome};
use crate::ceiling::{CeilingRecord, Miss, SearchRecord, Trial, producers_in_words};
use crate::page::{
    At, Axis, Cell, Chart, Column, Detail, Estimate, Group, Guide, Line, Mark, Page, Plot, Point,
    Scale, Series, Style, Table,
};
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::slug;
use crate::run_figures::NONE;
use moldau_load::workload::BYTES_PER_MB;
use moldau_measure::numbers::{Unit, number, plain, rough};

/// Charts of single searches that stand beside the answer.
const SEARCHES_SHOWN_MAX: usize = 2;

/// Fewest numbers of producers that are drawn as a curve.
const CURVE_POINTS_MIN: usize = 3;

/// The page of a result.
#[must_use]
pub fn page(result: &RunResult) -> Page {
    let mut page = result_page::blank(result, "Which rate is sustained?");
    let Some(record) = &result.ceiling else { return page };
    if page.standing.has_figures() {
        let sentences = [answer(record), result_page::records(result)];
        page.answer = sentences.into_iter().flatten().collect();
    }
    page.table = Some(ceilings(record));
    let loads = loads(record);
    page.charts.push(match loads.len() {
        CURVE_POINTS_MIN.. => by_producers(result, record),
        _ => by_load(result, record, &loads),
    });
    let searches: Vec<Chart> = record
        .searches
        .iter()
        .enumerate()
        .map(|(at, search)| Chart {
            id: format!("search-{}-{}", at + 1, slug(&search.arm)),
            ..trials_chart(search, record)
        })
        .collect();
    let (shown, folded) = match searches.len() {
        0..=SEARCHES_SHOWN_MAX => (searches, Vec::new()),
        _ => (Vec::new(), searches),
    };
    page.charts.extend(shown);
    let trials =
        record.searches.iter().map(|search| trials(search, record.demand.p99_ms)).collect();
    page.details = vec![Detail::of("Searches", folded, trials), result_page::audit(result)];
    page.details.retain(|detail| !detail.is_empty());
    page
}

/// What each system sustains with the number of producers with which the first sustains most.
fn answer(record: &CeilingRecord) -> Option<String> {
    let first = record.searches.first()?;
    let of_first = record.searches.iter().filter(|search| search.arm == first.arm);
    let best = of_first.max_by(|one, other| one.found.rate.total_cmp(&other.found.rate))?;
    let mut arms: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    let of_load = record.searches.iter().filter(|search| search.producers == best.producers);
    for search in of_load {
        if arms.contains(&search.arm.as_str()) {
            continue;
        }
        arms.push(&search.arm);
        parts.push(of_search(search));
    }
    Some(format!(
        "With {}, {}; 99 % are answered within {} ms.",
        producers_in_words(best.producers),
        parts.join(" and "),
        plain(record.demand.p99_ms)
    ))
}

fn of_search(search: &SearchRecord) -> String {
    let rates = search.trials.iter().map(|trial| trial.rate);
    let arm = &search.arm;
    match search.found.bounds {
        Bounds::Both => format!(
            "{arm} sustains {} records/s, {} MB/s",
            whole(search.found.rate),
            rough(megabytes(search, search.found.rate))
        ),
        Bounds::Above => format!(
            "{arm} sustains every rate that was tried, up to {} records/s",
            whole(rates.fold(0.0, f64::max))
        ),
        Bounds::Below => format!(
            "{arm} sustains no rate that was tried, down to {} records/s",
            whole(rates.fold(f64::MAX, f64::min))
        ),
        Bounds::Neither => format!("the trials of {arm} do not agree"),
    }
}

fn ceilings(record: &CeilingRecord) -> Table {
    let row = |search: &SearchRecord| {
        let Found { rate, bracket, unstable, bounds } = search.found;
        let between = |low, high| format!("{} to {}", whole(low), whole(high));
        let [rate, interval, megabytes] = match bounds {
            Bounds::Both => {
                [whole(rate), between(bracket.low, bracket.high), plain(megabytes(search, rate))]
            }
            Bounds::Above => ["higher".into(), NONE.into(), NONE.into()],
            Bounds::Below => ["lower".into(), NONE.into(), NONE.into()],
            Bounds::Neither => ["unknown".into(), NONE.into(), NONE.into()],
        };
        vec![
            search.arm.clone(),
            search.producers.to_string(),
            rate,
            megabytes,
            interval,
            whole(search.full_speed),
            unstable.map_or(NONE.into(), |band| between(band.low, band.high)),
        ]
    };
    Table {
        title: String::new(),
        about: format!(
            "The highest rate at which two trials were sustained, and the lowest above it at which \
             two were missed: the ceiling lies between them. Sustained: 99 % are answered within \
             {} ms of their intended time, the backlog does not grow, consumers keep up, nothing \
             is lost. Unstable: rates at which trials went both ways.",
            plain(record.demand.p99_ms),
        ),
        columns: vec![
            Column::words("system"),
            Column::figures("producers", ""),
            Column::figures("sustained", "records/s"),
            Column::figures("", "MB/s"),
            Column::figures("ceiling between", "records/s"),
            Column::figures("full speed", "records/s"),
            Column::figures("unstable", "records/s"),
        ],
        rows: record.searches.iter().map(row).collect(),
    }
    .without_empty(NONE)
}

/// The numbers of producers that were searched with.
fn loads(record: &CeilingRecord) -> Vec<u16> {
    let mut loads: Vec<u16> = Vec::new();
    for search in &record.searches {
        if !loads.contains(&search.producers) {
            loads.push(search.producers);
        }
    }
    loads
}

/// The ceilings of every load, a group for each number of producers.
fn by_load(result: &RunResult, record: &CeilingRecord, loads: &[u16]) -> Chart {
    let cell = |search: Option<&SearchRecord>| match search {
        None => Cell::Absent,
        Some(search) if search.found.bounds == Bounds::Both => {
            Cell::Figure(bracketed(search, |rate| megabytes(search, rate)))
        }
        Some(search) => Cell::Words(of_search(search)),
    };
    let group = |producers: &u16| Group {
        name: producers_in_words(*producers),
        cells: result
            .arms
            .iter()
            .map(|arm| {
                let is_it = |it: &&SearchRecord| it.arm == arm.name && it.producers == *producers;
                cell(record.searches.iter().find(is_it))
            })
            .collect(),
    };
    Chart {
        id: "ceilings".into(),
        title: "Sustained throughput".into(),
        about: "The bar ends at the highest rate that was sustained, the whisker at the lowest \
                above it that was missed. More is better."
            .into(),
        series: series(result),
        plot: Plot::Bars {
            axis: Axis::new("throughput", "MB/s", Scale::Linear),
            mark: Mark::Bar,
            groups: loads.iter().map(group).collect(),
        },
    }
}

/// The ceilings over producers.
fn by_producers(result: &RunResult, record: &CeilingRecord) -> Chart {
    let at = |arm: &str| result.arms.iter().position(|it| it.name == arm).unwrap_or(0);
    let mut lines = Vec::new();
    for arm in &result.arms {
        let of_arm = record.searches.iter().filter(|search| search.arm == arm.name);
        let bounded = of_arm.filter(|search| search.found.bounds == Bounds::Both);
        let mut points: Vec<Point> = bounded
            .map(|search| Point { x: search.producers.into(), y: bracketed(search, |rate| rate) })
            .collect();
        points.sort_by(|one, other| one.x.total_cmp(&other.x));
        lines.push(Line { series: at(&arm.name), style: Style::Joined, points });
    }
    Chart {
        id: "scaling".into(),
        title: "Sustained rate by producers".into(),
        about: "Points are ceilings, from the highest rate that was sustained to the lowest above \
                it that was missed."
            .into(),
        series: series(result),
        plot: Plot::Lines {
            x: Axis::new("producers", "", Scale::Linear),
            y: Axis::new("sustained", "records/s", Scale::Linear),
            lines,
            guides: Vec::new(),
        },
    }
}

fn series(result: &RunResult) -> Vec<Series> {
    let arms = (1..).zip(&result.arms);
    arms.map(|(tone, arm)| Series { name: arm.name.clone(), tone }).collect()
}

/// A ceiling with its bracket, in another unit.
fn bracketed(search: &SearchRecord, unit: impl Fn(f64) -> f64) -> Estimate {
    let Found { rate, bracket, .. } = search.found;
    Estimate { value: unit(rate), interval: Some((unit(bracket.low), unit(bracket.high))) }
}

/// Response times of the trials over their rates, by outcome.
fn trials_chart(search: &SearchRecord, record: &CeilingRecord) -> Chart {
    const OUTCOMES: [(Outcome, usize); 3] =
        [(Outcome::Sustained, 3), (Outcome::Missed, 7), (Outcome::Disturbed, 0)];
    let present = || OUTCOMES.into_iter().filter(|(outcome, _)| search.count(*outcome) > 0);
    let line = |(series, (outcome, _)): (usize, (Outcome, usize))| {
        let of = search.trials.iter().filter(|trial| trial.outcome == outcome);
        let points = of.map(|trial| Point { x: trial.rate, y: trial.p99_ms.into() });
        Line { series, style: Style::Points, points: points.collect() }
    };
    Chart {
        id: String::new(),
        title: format!("Trials: {}, {}", search.arm, producers_in_words(search.producers)),
        about: format!(
            "Each point is a trial at a rate. It is sustained if p99 stays below {} ms, and no \
             backlog grows.",
            plain(record.demand.p99_ms)
        ),
        series: present()
            .map(|(outcome, tone)| Series { name: outcome.word().into(), tone })
            .collect(),
        plot: Plot::Lines {
            x: Axis::new("offered", "records/s", Scale::Span),
            y: Axis::new("response time, p99", "ms", Scale::Log),
            lines: present().enumerate().map(line).collect(),
            guides: vec![Guide { name: "demanded".into(), at: At::Y(record.demand.p99_ms) }],
        },
    }
}

fn trials(search: &SearchRecord, p99_ms: f64) -> Table {
    let row = |(at, trial): (usize, &Trial)| {
        let growth = trial.growth.map_or(NONE.into(), |growth| {
            let [slope, low, high] =
                [growth.ms_per_second, growth.interval_95.low, growth.interval_95.high].map(plain);
            format!("{slope} [{low}, {high}]")
        });
        let misses: Vec<&str> = trial.misses.iter().map(|miss| Miss::words(*miss)).collect();
        vec![
            at.to_string(),
            whole(trial.rate),
            trial.outcome.word().into(),
            plain(trial.p99_ms),
            growth,
            format!("{:.1} %", trial.reached * 100.0),
            format!("{:.0} %", trial.taken * 100.0),
            format!("{:.0} %", trial.generator_thread * 100.0),
            if misses.is_empty() { NONE.into() } else { misses.join(", ") },
        ]
    };
    Table {
        title: format!("Trials: {}, {}", search.arm, producers_in_words(search.producers)),
        about: format!(
            "In their order; the first was at full speed. Demanded of p99: {} ms. The backlog is \
             the median response time, and its growth the slope over the window with its interval \
             at 95 %. Taken: the share of the machine that other processes and the hypervisor \
             took.",
            plain(p99_ms)
        ),
        columns: vec![
            Column::words("trial"),
            Column::figures("offered", "records/s"),
            Column::words("outcome"),
            Column::figures("p99", "ms"),
            Column::figures("backlog grows by", "ms/s"),
            Column::figures("reached", ""),
            Column::figures("taken", ""),
            Column::figures("generator thread", ""),
            Column::words("missed by"),
        ],
        rows: (2..).zip(&search.trials).map(row).collect(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "bytes of a record")]
fn megabytes(search: &SearchRecord, rate: f64) -> f64 {
    rate * search.record_bytes as f64 / BYTES_PER_MB
}

fn whole(rate: f64) -> String {
    number(rate, Unit::RecordsPerSecond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Extent, LINES_MAX, html, markdown, terminal};
    use crate::sample;
    use moldau_measure::statistics::Interval;

    /// A search of each system with one number of producers.
    fn pair() -> RunResult {
        let mut result = sample::ceiling();
        result.ceiling.as_mut().unwrap().searches.retain(|search| search.producers == 2);
        result
    }

    #[test]
    fn the_answer_names_what_each_system_sustains() {
        let result = pair();
        let searches = &result.ceiling.as_ref().unwrap().searches;
        let rates: Vec<String> = searches.iter().map(|search| whole(search.found.rate)).collect();
        let page = page(&result);
        let said = &page.answer[0];
        assert!(
            said.starts_with(&format!("With 2 producers, moldau sustains {}", rates[0])),
            "{said}"
        );
        assert!(said.contains(&format!(" and kafka sustains {}", rates[1])), "{said}");
        assert!(said.ends_with("; 99 % are answered within 50.0 ms."), "{said}");
        let ids: Vec<&str> = page.charts.iter().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids, ["ceilings", "search-1-moldau", "search-2-kafka"]);
        assert_eq!(
            page.table.unwrap().rows[1][..3],
            ["kafka".into(), "2".into(), rates[1].clone()]
        );
    }

    #[test]
    fn numbers_of_producers_are_a_curve() {
        let page = page(&sample::ceiling());
        assert!(page.answer[0].contains("producers, moldau sustains "), "{:?}", page.answer);
        let [chart] = page.charts.as_slice() else { panic!("{:?}", page.charts.len()) };
        let Plot::Lines { lines, .. } = &chart.plot else { panic!("a curve") };
        assert_eq!((chart.id.as_str(), lines.len(), lines[0].points.len()), ("scaling", 2, 4));
        let details: Vec<&str> = page.details.iter().map(|detail| detail.title.as_str()).collect();
        assert_eq!(details[..1], ["Searches"]);
        assert_eq!((page.details[0].charts.len(), page.details[0].tables.len()), (8, 8));
        let text = terminal(&page, "report.html", 80, Extent::Short);
        assert!(text.lines().count() <= LINES_MAX, "{text}");
        assert!(html(&page).len() < 2_000_000 && markdown(&page).contains("### Trials: kafka, 4"));
    }

    #[test]
    fn one_sided_bounds_are_named_as_such() {
        let mut result = pair();
        let found = |result: &mut RunResult, bounds| {
            let searches = &mut result.ceiling.as_mut().unwrap().searches;
            searches[0].found = Found { bounds, ..searches[0].found };
            (page(result).answer[0].clone(), page(result).table.unwrap().rows[0][2].clone())
        };
        let (said, cell) = found(&mut result, Bounds::Above);
        assert!(said.contains("sustains every rate that was tried, up to") && cell == "higher");
        let (said, cell) = found(&mut result, Bounds::Below);
        assert!(said.contains("sustains no rate that was tried, down to") && cell == "lower");
        let (said, _) = found(&mut result, Bounds::Neither);
        assert!(said.contains("the trials of moldau do not agree"), "{said}");
    }

    #[test]
    fn rates_at_which_trials_disagree_have_a_column() {
        let mut result = pair();
        let has = |result: &RunResult| {
            page(result).table.unwrap().columns.iter().any(|column| column.name == "unstable")
        };
        assert!(!has(&result));
        let found = &mut result.ceiling.as_mut().unwrap().searches[0].found;
        found.unstable = Some(Interval { low: 1_000.0, high: 2_000.0 });
        assert!(has(&result));
    }
}
