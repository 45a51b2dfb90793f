//! The report on consumers of several topics on several threads: what another topic costs, every
//! place of the grid, and what became of each claim.

use super::answers::Answers;
use super::grid::Grid;
use super::html::escape;
use super::table::NONE;
use crate::checks::Verdict;
use crate::result::RunResult;
use crate::survey::{Estimate, Outcome};
use crate::threads::{Figure, Reading, ThreadsClaim, ThreadsRecord, TopicCost};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain, thousands};
use moldau_measure::statistics::float;
use moldau_measure::statistics::scalability::Coefficient;

/// What another topic costs on each system, and where most is read.
pub(super) fn sentence(result: &RunResult, record: &ThreadsRecord) -> String {
    // Of one number of topics the question is how many threads.
    let told = if record.topics.len() > 1 { answer } else { enough };
    let answers: Vec<String> = arms(result).filter_map(|arm| told(result, record, arm)).collect();
    if answers.is_empty() {
        return "There was no second number of topics to compare with.".into();
    }
    answers.join(" ")
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

/// The law that the rate follows over the threads.
fn laws(result: &RunResult, record: &ThreadsRecord) -> Grid {
    let rows = arms(result).filter_map(|arm| {
        let law = record.law(arm, result.seed)?;
        let percent = |of: Coefficient| {
            let [value, low, high] =
                [of.value, of.interval_95.low, of.interval_95.high].map(|it| plain(it * 100.0));
            format!("{value} [{low}, {high}]")
        };
        Some(vec![
            arm.to_string(),
            plain(law.rate.value),
            percent(law.contention),
            percent(law.coherence),
            law.peak().map_or("none".into(), plain),
            law.throughput_max().map_or("no end seen".into(), plain),
            format!("{} %", plain(law.error * 100.0)),
        ])
    });
    Grid::of(
        "How threads scale",
        "The universal scalability law over all rounds, with 95 % intervals: what one thread alone \
         reads, the share of the work that only one does at a time, what each pair costs, and the \
         number of threads beyond which the rate falls.",
        &[
            "consumers of",
            "one alone, records/s",
            "contention, %",
            "coherence, %",
            "peak, threads",
            "most, records/s",
            "median error",
        ],
        rows,
    )
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

/// The tables.
pub(super) fn grids(result: &RunResult, record: &ThreadsRecord) -> Vec<Grid> {
    let mut grids = vec![claims(result, record), costs(result, record), laws(result, record)];
    for arm in arms(result) {
        grids.extend(maps(record).iter().map(|map| map.grid(result, record, arm)));
    }
    grids.into_iter().filter(|grid| !grid.rows.is_empty()).collect()
}

fn claims(result: &RunResult, record: &ThreadsRecord) -> Grid {
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
    Grid::of(
        "Claims",
        "Means over the rounds with 95 % intervals. Reproduced: the whole interval lies where the \
         claim holds; not reproduced: none of it does.",
        &["claim", "consumers of", "outcome", "published", "measured", "where it stands"],
        rows.into_iter(),
    )
}

fn costs(result: &RunResult, record: &ThreadsRecord) -> Grid {
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
    Grid::of(
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
    /// Whether the report draws it as well.
    is_drawn: bool,
}

fn maps(record: &ThreadsRecord) -> Vec<Map> {
    let map = |title, about, figure, is_drawn| Map { title, about, figure, is_drawn };
    let all = vec![
        map("records/s", "Records per second of all threads together.", Reading::rate, true),
        map(
            "consumer CPU, ns a record",
            "Processor time of the consuming threads for each record.",
            Reading::cpu_per_record,
            true,
        ),
        map(
            "context switches a million records",
            "Times that a consuming thread waited for something or was made to yield.",
            |it| per_million(it, it.voluntary_switches + it.involuntary_switches),
            false,
        ),
        map(
            "of them involuntary",
            "Times that a consuming thread was made to yield its processor.",
            |it| per_million(it, it.involuntary_switches),
            false,
        ),
        map(
            "waiting for a processor, ns a record",
            "Time that consuming threads could have run and had no processor.",
            |it| float(it.run_queue_wait_ns) / float(it.records.max(1)),
            true,
        ),
        map(
            "system CPU, ns a record",
            "Processor time of what serves them.",
            |it| float(it.system_cpu_ns) / float(it.records.max(1)),
            false,
        ),
    ];
    if record.readings.is_empty() { Vec::new() } else { all }
}

fn per_million(reading: &Reading, count: u64) -> f64 {
    float(count) * 1e6 / float(reading.records.max(1))
}

impl Map {
    fn grid(&self, result: &RunResult, record: &ThreadsRecord, arm: &str) -> Grid {
        let mut columns = vec!["threads".to_string()];
        columns.extend(record.topics.iter().map(|topics| counted(*topics, "topic")));
        let rows = record.threads.iter().map(|threads| {
            let cells = record.topics.iter().map(|topics| {
                let found = record.cell(arm, *topics, *threads, result.seed, self.figure);
                found.map_or(NONE.into(), interval)
            });
            std::iter::once(threads.to_string()).chain(cells).collect()
        });
        Grid::of(
            &format!("Consumers of {arm}: {}", self.title),
            &format!("{} Geometric means over the rounds with 95 % intervals.", self.about),
            &columns,
            rows,
        )
    }

    /// A heatmap: the darker, the more.
    fn svg(&self, result: &RunResult, record: &ThreadsRecord, arm: &str) -> String {
        const LABELS: f64 = 90.0;
        const WIDTH: f64 = 640.0;
        const ROW: f64 = 34.0;
        let (rows, columns) = (count(record.threads.len()), count(record.topics.len()));
        let cell_width = (WIDTH - LABELS) / columns.max(1.0);
        let at = |topics: u16, threads: u16| {
            record.cell(arm, topics, threads, result.seed, self.figure).map(|found| found.mean)
        };
        let places = record
            .threads
            .iter()
            .flat_map(|threads| record.topics.iter().map(move |topics| (*topics, *threads)));
        let most = places.filter_map(|(topics, threads)| at(topics, threads)).fold(0.0, f64::max);
        let mut svg = format!(
            "<svg class=\"intervals\" viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" \
             aria-label=\"{}, by topics and threads\">",
            ROW * (rows + 1.0),
            escape(self.title)
        );
        for (row, threads) in (0_u32..).zip(&record.threads) {
            let y = ROW * f64::from(row);
            svg += &format!(
                "<text x=\"0\" y=\"{:.0}\">{}</text>",
                y + ROW * 0.6,
                counted(*threads, "thread")
            );
            for (column, topics) in (0_u32..).zip(&record.topics) {
                let Some(value) = at(*topics, *threads) else { continue };
                let x = LABELS + cell_width * f64::from(column);
                svg += &format!(
                    "<rect class=\"system-0\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" \
                     height=\"{:.1}\" fill-opacity=\"{:.3}\" stroke=\"none\"/>\
                     <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                    cell_width - 2.0,
                    ROW - 2.0,
                    0.08 + 0.6 * value / most.max(f64::MIN_POSITIVE),
                    x + cell_width / 2.0,
                    y + ROW * 0.6,
                    plain(value)
                );
            }
        }
        for (column, topics) in (0_u32..).zip(&record.topics) {
            svg += &format!(
                "<text class=\"tick\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                LABELS + cell_width * (f64::from(column) + 0.5),
                ROW * rows + ROW * 0.6,
                counted(*topics, "topic")
            );
        }
        svg + "</svg>"
    }
}

/// What stands around the tables.
pub(super) fn words<'a>(result: &RunResult, record: &'a ThreadsRecord) -> Answers<'a> {
    Answers {
        answers: answers(result, record),
        hypothesis: &record.hypothesis,
        source: record.source.as_ref(),
        remarks: &record.remarks,
    }
}

/// The sections of the page.
pub(super) fn html(result: &RunResult, record: &ThreadsRecord) -> String {
    let mut html = String::new();
    for answer in answers(result, record) {
        html += &format!("<div class=\"card\"><p>{}</p></div>", escape(&answer));
    }
    html += &words(result, record).html();
    for arm in arms(result) {
        for map in maps(record).into_iter().filter(|map| map.is_drawn) {
            html += &format!(
                "<div class=\"card\"><h3>Consumers of {}: {}</h3>{}</div>",
                escape(arm),
                escape(map.title),
                map.svg(result, record, arm)
            );
        }
    }
    html.extend(grids(result, record).iter().map(Grid::html));
    html
}

/// What became of each claim, on all systems; a refused result has none.
fn answers(result: &RunResult, record: &ThreadsRecord) -> Vec<String> {
    let holds = matches!(result.verdict, Verdict::Ok | Verdict::ObjectiveFailed);
    let claims = record.claims.iter().filter(|_| holds);
    claims.map(|claim| told(result, record, claim)).collect()
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

fn count(length: usize) -> f64 {
    f64::from(u32::try_from(length).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{html, markdown, sample, text};
    use crate::result::{Arm, Experiment};
    use crate::threads::tests::{record, scaling};

    fn result() -> RunResult {
        let mut result = sample::result();
        result.experiment = Experiment::Threads(record());
        result.arms = vec![Arm::of("ours", "a broker")];
        result
    }

    #[test]
    fn the_answer_names_what_a_topic_costs_and_where_most_is_read() {
        let sentence = crate::report::sentence(&result());
        let cost = "each topic more makes a message take 50.8 [49.7, 51.8] ns longer (7.50 [";
        assert!(sentence.starts_with("On ours ") && sentence.contains(cost), "{sentence}");
        assert!(sentence.contains("most is read from 1 topic on 2 threads"), "{sentence}");
    }

    #[test]
    fn of_one_topic_the_answer_is_a_number_of_threads() {
        let mut result = result();
        result.experiment = Experiment::Threads(scaling([1_000, 1_800, 1_850, 1_700]));
        let sentence = crate::report::sentence(&result);
        for part in [
            "Of ours 2 threads take 1827 [",
            "records/s, each holding its thread for 2.00 ms; \
             more are not shown to give 5 % more: 4 threads take 1.03",
        ] {
            assert!(sentence.contains(part), "{part}: {sentence}");
        }
        assert!(markdown(&result).contains("## How threads scale"));
        result.experiment = Experiment::Threads(scaling([1_000, 2_000, 4_000, 8_000]));
        let sentence = crate::report::sentence(&result);
        assert!(sentence.contains("8 threads") && sentence.contains("more may help"), "{sentence}");
    }

    #[test]
    fn every_form_has_the_grid_and_the_claims() {
        let result = result();
        for report in [html(&result).unwrap(), markdown(&result), text(&result)] {
            for part in ["another topic costs up to 11 %", "What another topic costs", "A remark."]
            {
                assert!(report.contains(part), "{part} in {report}");
            }
            assert!(report.contains("Consumers of ours: records/s"), "{report}");
        }
        assert!(html(&result).unwrap().contains("by topics and threads"));
    }

    #[test]
    fn a_refused_result_says_nothing_of_claims() {
        let mut result = result();
        result.verdict = Verdict::Invalid;
        assert!(answers(&result, &record()).is_empty());
    }

    #[test]
    fn the_document_holds_the_record() {
        let result = result();
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert!(back == result && back.threads().is_some());
    }
}
