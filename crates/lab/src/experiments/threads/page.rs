//! Consumers of several topics on several threads, as a page: what another topic costs, every place
//! of the grid, and the outcome of each claim.

use crate::page::{Axis, Chart, Detail, Line, Page, Plot, Point, Scale, Series, Style, Table};
use crate::result::RunResult;
use crate::result_page;
use crate::run_charts::slug;
use crate::run_figures::NONE;
use crate::survey::{Estimate, Outcome};
use crate::survey_page::expected;
use crate::threads::{
    CaseReading, ClientCase, Figure, Reading, ThreadsClaim, ThreadsRecord, TopicCost,
};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain, thousands};
use moldau_measure::statistics::float;

/// The page of consuming threads.
pub fn page(result: &RunResult, record: &ThreadsRecord) -> Page {
    let mut page = result_page::answered(result, &record.question, sentences(result, record));
    page.table = Some(summary(result, record));
    for arm in arms(result) {
        page.charts.extend(over_threads(result, record, arm));
    }
    if page.standing.has_figures() {
        page.details.push(Detail::words("Claims in words", answers(result, record)));
    }
    page.details.push(expected(&record.hypothesis, record.source.as_ref(), &record.remarks));
    let mut tables = vec![compared(result, record), claims(result, record), costs(result, record)];
    for arm in arms(result) {
        tables.extend(maps(record).iter().map(|map| map.table(result, record, arm)));
    }
    page.details.extend(tables.into_iter().map(Detail::table));
    page.details.retain(|detail| !detail.is_empty());
    page
}

/// What another topic costs on each system, and where most is read.
fn sentences(result: &RunResult, record: &ThreadsRecord) -> Vec<String> {
    // Of one number of topics the question is how many threads.
    let told = if record.topics.len() > 1 { answer } else { enough };
    let answers: Vec<String> = arms(result).filter_map(|arm| told(result, record, arm)).collect();
    if answers.is_empty() {
        return vec!["There was no second number of topics to compare with.".into()];
    }
    answers
}

/// Records per second of every number of threads.
fn summary(result: &RunResult, record: &ThreadsRecord) -> Table {
    let mut columns = vec!["consumers of".to_owned(), "threads".into()];
    columns.extend(record.topics.iter().map(|topics| counted(*topics, "topic")));
    let rows = arms(result).flat_map(|arm| {
        record.threads.iter().map(move |threads| {
            let cells = record.topics.iter().map(|topics| {
                let found = record.cell(arm, *topics, *threads, result.seed, Reading::rate);
                found.map_or(NONE.into(), interval)
            });
            [arm.to_owned(), threads.to_string()].into_iter().chain(cells).collect()
        })
    });
    let about = "Records per second of all threads together: geometric means over the rounds with \
                 95 % intervals.";
    Table::of("", about, &columns, rows.collect::<Vec<_>>().into_iter())
}

/// Records per second over threads, a line for each number of topics.
fn over_threads(result: &RunResult, record: &ThreadsRecord, arm: &str) -> Option<Chart> {
    let line = |(series, topics): (usize, &u16)| {
        let point = |threads: &u16| {
            let found = record.cell(arm, *topics, *threads, result.seed, Reading::rate)?;
            Some(Point { x: f64::from(*threads), y: found.into() })
        };
        let points: Vec<Point> = record.threads.iter().filter_map(point).collect();
        Line { series, style: Style::Joined, points }
    };
    let lines: Vec<Line> = record.topics.iter().enumerate().map(line).collect();
    let name = |(tone, topics): (usize, &u16)| Series { name: counted(*topics, "topic"), tone };
    let has_points = lines.iter().any(|line| line.points.len() > 1);
    has_points.then(|| Chart {
        id: format!("threads-{}", slug(arm)),
        title: format!("Records per second over threads, consumers of {arm}"),
        about: "More is better; whiskers are 95 % intervals.".into(),
        series: (1..).zip(&record.topics).map(name).collect(),
        plot: Plot::Lines {
            x: Axis::new("threads", "", Scale::Linear),
            y: Axis::new("records of all threads", "records/s", Scale::Linear),
            lines,
            guides: Vec::new(),
        },
    })
}

/// How many threads are enough on a system, and what more of them give.
fn enough(result: &RunResult, record: &ThreadsRecord, arm: &str) -> Option<String> {
    let found = record.enough(arm, result.seed)?;
    let work = match record.work_us {
        0 => String::new(),
        us => format!(", each holding its thread for {} ms", plain(float(us) / 1e3)),
    };
    let mut text = format!(
        "Of {arm} {} take {} records/s{work}",
        counted(found.threads, "thread"),
        interval(found.rate)
    );
    text += &match found.most {
        Some((most, gain)) => format!(
            "; more are not shown to give 5 % more: {} take {} times as many.",
            counted(most, "thread"),
            interval(gain)
        ),
        None if record.threads.last() == Some(&found.threads) => {
            "; that is the most that was tried, and more may help.".into()
        }
        None => "; more are not shown to give 5 % more.".into(),
    };
    Some(text)
}

fn answer(result: &RunResult, record: &ThreadsRecord, arm: &str) -> Option<String> {
    let wall = record.topic_cost(arm, None, result.seed, Reading::wall_per_record)?;
    let cpu = record.topic_cost(arm, None, result.seed, Reading::cpu_per_record)?;
    let ((topics, threads), rate) = best(result, record, arm)?;
    Some(format!(
        "On {arm} each topic more makes a message take {} ns longer ({} %), and {} ns more of the \
         consumers' processor time ({} %), with 95 % intervals over all numbers of threads; most \
         is read from {} on {}: {} records/s.",
        interval(wall.ns),
        interval(wall.percent),
        interval(cpu.ns),
        interval(cpu.percent),
        counted(topics, "topic"),
        counted(threads, "thread"),
        number(rate, Unit::RecordsPerSecond),
    ))
}

/// The place of the grid with the highest mean rate.
fn best(result: &RunResult, record: &ThreadsRecord, arm: &str) -> Option<((u16, u16), f64)> {
    let places = record
        .topics
        .iter()
        .flat_map(|topics| record.threads.iter().map(move |threads| (*topics, *threads)));
    let rates = places.filter_map(|(topics, threads)| {
        let found = record.cell(arm, topics, threads, result.seed, Reading::rate)?;
        Some(((topics, threads), found.mean))
    });
    rates.max_by(|one, other| one.1.total_cmp(&other.1))
}

fn claims(result: &RunResult, record: &ThreadsRecord) -> Table {
    let rows = record.claims.iter().flat_map(|claim| {
        arms(result).map(move |arm| {
            let (outcome, found) = record.tested(claim, arm, result.seed);
            vec![
                claim.says.clone(),
                arm.to_string(),
                outcome.word().into(),
                of_figure(claim, claim.published),
                found.map_or(NONE.into(), |it| format!("{} {}", interval(it), claim.figure.unit())),
                claim.at.clone(),
            ]
        })
    });
    let rows: Vec<Vec<String>> = rows.collect();
    Table::of(
        "Claims",
        "Means over the rounds with 95 % intervals. Reproduced: the whole interval lies where the \
         claim holds; not reproduced: none of it does.",
        &["claim", "consumers of", "outcome", "published", "measured", "where it stands"],
        rows.into_iter(),
    )
}

/// What each client reads of each case.
fn compared(result: &RunResult, record: &ThreadsRecord) -> Table {
    let clients = &record.clients;
    let mut rows = Vec::new();
    for case in &clients.cases {
        for arm in arms(result) {
            for client in &clients.names {
                let place = [arm, case.name.as_str(), client.as_str()];
                let rate = clients.figure(place, result.seed, CaseReading::rate);
                let cpu = clients.figure(place, result.seed, CaseReading::cpu_per_record);
                let ratio = clients.ratio(place, result.seed);
                let cells = [rate, ratio, cpu].map(|it| it.map_or(NONE.into(), interval));
                let names = [case.name.clone(), arm.to_owned(), client.clone()];
                rows.push(names.into_iter().chain(cells).collect());
            }
        }
    }
    let of = |case: &ClientCase| {
        format!(
            "{}: {} of {} records in {} partitions with {} keys, {} threads, handler {}.",
            case.name,
            counted_topics(case.topics),
            thousands(case.records.into()),
            case.partitions,
            thousands(case.keys.into()),
            case.threads,
            case.handling
        )
    };
    let cases: Vec<String> = clients.cases.iter().map(of).collect();
    Table::of(
        "Clients",
        &format!(
            "Each client reads the same backlog in a process of its own; the first quarter is not \
             measured. Geometric means over the rounds with 95 % intervals. {}",
            cases.join(" ")
        ),
        &["case", "system", "client", "records/s", "of the first client", "CPU, ns a record"],
        rows.into_iter(),
    )
}

fn counted_topics(topics: u32) -> String {
    if topics == 1 { "1 topic".into() } else { format!("{} topics", thousands(topics.into())) }
}

fn costs(result: &RunResult, record: &ThreadsRecord) -> Table {
    let counts = record.threads.iter().map(|count| Some(*count)).chain([None]);
    let counts: Vec<Option<u16>> = counts.collect();
    let rows = arms(result).flat_map(|arm| {
        counts.iter().filter_map(move |threads| {
            let wall = record.topic_cost(arm, *threads, result.seed, Reading::wall_per_record)?;
            let cpu = record.topic_cost(arm, *threads, result.seed, Reading::cpu_per_record)?;
            let TopicCost { ns, percent } = wall;
            Some(vec![
                arm.to_string(),
                threads.map_or("all".into(), |count| count.to_string()),
                interval(ns),
                interval(percent),
                interval(cpu.ns),
                interval(cpu.percent),
            ])
        })
    });
    Table::of(
        "What another topic costs",
        &format!(
            "Slope over {} of {} records of {} B in {} partitions each, for each message, with \
             95 % intervals over the rounds. Time is by the clock for all threads together; \
             processor time is that of the consuming threads.",
            range(&record.topics, "topic"),
            thousands(record.records.into()),
            record.record_bytes,
            record.partitions,
        ),
        &["consumers of", "threads", "time, ns", "time, %", "CPU, ns", "CPU, %"],
        rows.collect::<Vec<_>>().into_iter(),
    )
}

/// One figure over the whole grid.
struct Map {
    title: &'static str,
    about: &'static str,
    figure: fn(&Reading) -> f64,
}

fn maps(record: &ThreadsRecord) -> Vec<Map> {
    let map = |title, about, figure| Map { title, about, figure };
    let all = vec![
        map(
            "consumer CPU, ns a record",
            "Processor time of the consuming threads for each record.",
            Reading::cpu_per_record,
        ),
        map(
            "context switches a million records",
            "Times that a consuming thread waited for something or was made to yield.",
            |it| per_million(it, it.voluntary_switches + it.involuntary_switches),
        ),
        map(
            "of them involuntary",
            "Times that a consuming thread was made to yield its processor.",
            |it| per_million(it, it.involuntary_switches),
        ),
        map(
            "waiting for a processor, ns a record",
            "Time that consuming threads could have run and had no processor.",
            |it| float(it.run_queue_wait_ns) / float(it.records.max(1)),
        ),
        map("system CPU, ns a record", "Processor time of what serves them.", |it| {
            float(it.system_cpu_ns) / float(it.records.max(1))
        }),
    ];
    if record.readings.is_empty() { Vec::new() } else { all }
}

fn per_million(reading: &Reading, count: u64) -> f64 {
    float(count) * 1e6 / float(reading.records.max(1))
}

impl Map {
    fn table(&self, result: &RunResult, record: &ThreadsRecord, arm: &str) -> Table {
        let mut columns = vec!["threads".to_string()];
        columns.extend(record.topics.iter().map(|topics| counted(*topics, "topic")));
        let rows = record.threads.iter().map(|threads| {
            let cells = record.topics.iter().map(|topics| {
                let found = record.cell(arm, *topics, *threads, result.seed, self.figure);
                found.map_or(NONE.into(), interval)
            });
            std::iter::once(threads.to_string()).chain(cells).collect()
        });
        Table::of(
            &format!("Consumers of {arm}: {}", self.title),
            &format!("{} Geometric means over the rounds with 95 % intervals.", self.about),
            &columns,
            rows,
        )
    }
}

/// The outcome of each claim on all systems.
fn answers(result: &RunResult, record: &ThreadsRecord) -> Vec<String> {
    record.claims.iter().map(|claim| told(result, record, claim)).collect()
}

fn told(result: &RunResult, record: &ThreadsRecord, claim: &ThreadsClaim) -> String {
    let found = arms(result).map(|arm| {
        let (outcome, found) = record.tested(claim, arm, result.seed);
        let figure = found.map_or(NONE.into(), interval);
        let word = match outcome {
            // What another program does is not refuted by what this one does.
            Outcome::NotReproduced => "otherwise here",
            outcome => outcome.word(),
        };
        format!("{word} with consumers of {arm}: {figure} {}", claim.figure.unit())
    });
    let found: Vec<String> = found.collect();
    let published = of_figure(claim, claim.published);
    format!("\u{201c}{}\u{201d} (published {published}): {}.", claim.says, found.join("; "))
}

fn arms(result: &RunResult) -> impl Iterator<Item = &str> {
    result.arms.iter().map(|arm| arm.name.as_str())
}

fn of_figure(claim: &ThreadsClaim, value: f64) -> String {
    let figure = match claim.figure {
        Figure::RecordsPerSecond => number(value, Unit::RecordsPerSecond),
        Figure::TopicCostPercent | Figure::ShareOfAlone => plain(value),
    };
    format!("{figure} {}", claim.figure.unit())
}

/// A mean with its interval, where there is one.
fn interval(Estimate { mean, interval, .. }: Estimate) -> String {
    match interval {
        Some(it) => format!("{} [{}, {}]", plain(mean), plain(it.low), plain(it.high)),
        None => plain(mean),
    }
}

fn counted(count: u16, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn range(numbers: &[u16], what: &str) -> String {
    match (numbers.first(), numbers.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last} {what}s"),
        (Some(only), _) => counted(*only, what),
        (None, _) => format!("no {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::Verdict;
    use crate::result::{Arm, Experiment};
    use crate::sample;
    use crate::threads::tests::{record, scaling};

    fn result() -> RunResult {
        let mut result = sample::result();
        result.experiment = Experiment::Threads(record());
        result.arms = vec![Arm::of("ours", "a broker")];
        result
    }

    fn page_of(result: &RunResult) -> Page {
        page(result, result.threads().unwrap())
    }

    #[test]
    fn the_answer_names_what_a_topic_costs_and_where_most_is_read() {
        let sentence = page_of(&result()).answer.remove(0);
        let cost = "each topic more makes a message take 50.8 [49.7, 51.8] ns longer (7.50 [";
        assert!(sentence.starts_with("On ours ") && sentence.contains(cost), "{sentence}");
        assert!(sentence.contains("most is read from 1 topic on 2 threads"), "{sentence}");
    }

    #[test]
    fn of_one_topic_the_answer_is_a_number_of_threads() {
        let mut result = result();
        result.experiment = Experiment::Threads(scaling([1_000, 1_800, 1_850, 1_700]));
        let page = page_of(&result);
        for part in [
            "Of ours 2 threads take 1827 [",
            "records/s, each holding its thread for 2.00 ms; \
             more are not shown to give 5 % more: 4 threads take 1.03",
        ] {
            assert!(page.answer[0].contains(part), "{part}: {:?}", page.answer);
        }
        result.experiment = Experiment::Threads(scaling([1_000, 2_000, 4_000, 8_000]));
        let sentence = page_of(&result).answer.remove(0);
        assert!(sentence.contains("8 threads") && sentence.contains("more may help"), "{sentence}");
    }

    #[test]
    fn the_page_has_the_grid_the_claims_and_a_line_for_each_number_of_topics() {
        let page = page_of(&result());
        let titles: Vec<&str> = page.details.iter().map(|detail| detail.title.as_str()).collect();
        assert_eq!(
            titles[..4],
            ["Claims in words", "What was expected", "Claims", "What another topic costs"]
        );
        assert!(page.details[2].tables[0].rows[0][0].contains("another topic costs up to 11 %"));
        assert!(page.details[1].text.iter().any(|it| it == "A remark."));
        let table = page.table.as_ref().unwrap();
        assert_eq!(table.rows.len(), record().threads.len());
        assert_eq!(page.charts[0].series.len(), record().topics.len());
    }

    #[test]
    fn a_refused_result_judges_no_claims() {
        let mut result = result();
        result.verdict = Verdict::Invalid;
        assert!(page_of(&result).details.iter().all(|detail| detail.title != "Claims in words"));
    }

    #[test]
    fn the_document_holds_the_record() {
        let result = result();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert!(back == result && back.threads().is_some());
    }
}
