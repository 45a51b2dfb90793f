//! Totals over many topics: as the harness of the source computes them, as they are counted, and
//! what the wait of fetches says of them.

use super::{NONE, systems};
use crate::page::Table;
use crate::result::RunResult;
use crate::survey::SurveyRecord;
use crate::totals::{Audited, PublishedTotal, Reading};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain};

/// A published total with what its load came to on a system.
struct Found<'a> {
    published: &'a PublishedTotal,
    system: &'a str,
    audited: Audited,
}

fn found<'a>(result: &'a RunResult, record: &'a SurveyRecord) -> Vec<Found<'a>> {
    let of = |published: &'a PublishedTotal| {
        let systems = systems(result).into_iter();
        systems.filter_map(move |system| {
            let audited = Audited::of(&result.runs, &published.load, system)?;
            Some(Found { published, system, audited })
        })
    };
    record.totals.iter().flat_map(of).collect()
}

/// What was found, in sentences: how far the totals are off, and what the latencies say.
pub(super) fn sentences(result: &RunResult, record: &SurveyRecord) -> Vec<String> {
    let found = found(result, record);
    let of_load = |published: &PublishedTotal| {
        let same: Vec<&Found<'_>> =
            found.iter().filter(|it| it.published.load == published.load).collect();
        let first = same.first()?.audited;
        (first.factor > 1.0).then(|| sentence(published, &first, &same))
    };
    record.totals.iter().filter_map(of_load).collect()
}

/// Which of the published totals were those of one topic, and how far that puts them off.
pub(super) fn lead(result: &RunResult, record: &SurveyRecord) -> Option<String> {
    let found = found(result, record);
    let too_high = record.totals.iter().filter_map(|published| {
        let same = found.iter().find(|it| it.published.load == published.load)?;
        let rate = published.records_per_second / same.audited.factor;
        let is_of_all = same.audited.explains(rate, published.end_to_end_mean_ms);
        let is_too_high = same.audited.factor > 1.0 && is_of_all == Some(Reading::OfAll);
        is_too_high.then(|| format!("{} x ({})", plain(same.audited.factor), published.load))
    });
    let too_high: Vec<String> = too_high.collect();
    (!too_high.is_empty()).then(|| {
        let words = too_high.join(" and ");
        format!("By the wait of their own fetches the published totals are too high by {words}.")
    })
}

fn sentence(published: &PublishedTotal, first: &Audited, same: &[&Found<'_>]) -> String {
    let range = |of: &dyn Fn(&Audited) -> Option<f64>| {
        let values = same.iter().filter_map(|it| of(&it.audited));
        let ends = values.fold(None, |ends: Option<(f64, f64)>, value| {
            let (low, high) = ends.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        ends.map(|(low, high)| format!("{} to {}", plain(low), plain(high)))
    };
    let mut text = format!(
        "{}: multiplied as the harness does, its total is {} times what the brokers hold",
        published.load,
        range(&|it| Some(it.excess())).unwrap_or_default(),
    );
    if let (Some(audited), Some(multiplied)) =
        (range(&|it| it.proxy_cpu), range(&Audited::proxy_cpu_multiplied))
    {
        text +=
            &format!(", which makes {multiplied} CPU-ms/MB out of {audited} that the proxies take");
    }
    let rate = published.records_per_second / first.factor;
    text += &match first.explains(rate, published.end_to_end_mean_ms) {
        Some(Reading::OfAll) => format!(
            ". The published {} ms from end to end on average are those of {} records/s in all, \
             and not of the {} told: the total was {} times too high",
            plain(published.end_to_end_mean_ms),
            plain(rate),
            plain(published.records_per_second),
            plain(first.factor),
        ),
        Some(Reading::OfEach) => format!(
            ". The published {} ms from end to end on average are those of the reported {} \
             records/s: that total was right",
            plain(published.end_to_end_mean_ms),
            plain(published.records_per_second),
        ),
        None => format!(
            ". The published {} ms from end to end on average decide nothing",
            plain(published.end_to_end_mean_ms)
        ),
    };
    if let Some(measured) = range(&|it| it.end_to_end_mean) {
        let offered = plain(first.held);
        text += &format!("; at {offered} records/s counted, {measured} ms were measured here");
    }
    text + "."
}

/// The tables.
pub(super) fn tables(result: &RunResult, record: &SurveyRecord) -> Vec<Table> {
    let found = found(result, record);
    vec![totals(&found), waits(&found)]
}

fn totals(found: &[Found<'_>]) -> Table {
    let optional = |value: Option<f64>| value.map_or(NONE.into(), plain);
    let rows = found.iter().map(|Found { published, system, audited }| {
        vec![
            published.load.clone(),
            (*system).to_string(),
            rate(audited.printed),
            rate(audited.multiplied()),
            rate(audited.held),
            plain(audited.excess()),
            optional(audited.proxy_cpu_multiplied()),
            optional(audited.proxy_cpu),
            optional(published.proxy_cpu),
            optional(published.proxy_cpu.map(|cpu| cpu * audited.excess())),
        ]
    });
    Table::of(
        "Totals as the harness computes them, and audited",
        "Medians over the rounds. Printed: records acknowledged in the window, of all topics, as \
         the generator prints them. Multiplied: by topics and producers, as the scripts of the \
         source do. Held: what the broker's end offsets say of the whole run. CPU-ms/MB is \
         millicores for each MB/s that passes the proxy, in and out; the published figure is that \
         of one core, and stands beside itself times the excess.",
        &[
            "load",
            "system",
            "printed, records/s",
            "multiplied",
            "held",
            "too high, x",
            "CPU-ms/MB, multiplied",
            "audited",
            "published",
            "published, audited",
        ],
        rows,
    )
}

fn waits(found: &[Found<'_>]) -> Table {
    let mut rows = Vec::new();
    for (at, Found { published, system, audited }) in found.iter().enumerate() {
        let is_first = found.iter().take(at).all(|it| it.published.load != published.load);
        if is_first {
            let PublishedTotal { end_to_end_mean_ms, end_to_end_p99_ms, .. } = **published;
            let printed = published.records_per_second / audited.factor;
            let measured = (Some(end_to_end_mean_ms), Some(end_to_end_p99_ms));
            rows.push(wait_row(published, "published", audited, printed, measured));
        }
        let measured = (audited.end_to_end_mean, audited.end_to_end_p99);
        rows.push(wait_row(published, system, audited, audited.printed, measured));
    }
    Table::of(
        "What the wait of fetches says of the totals",
        "A fetch asks for one topic and waits until that has fetch.min.bytes, fetch.max.wait.ms \
         at most; on average a record waits for half of that. Predicted from the printed rate, \
         read as that of each topic (as multiplying it means) and as that of all topics, in ms, \
         mean and longest; the reading that explains a measured mean is at most a factor of 1.5 \
         off.",
        &[
            "load",
            "whose",
            "printed, records/s",
            "if of each topic, ms",
            "if of all topics, ms",
            "end-to-end mean, ms",
            "p99, ms",
            "explained by",
        ],
        rows.into_iter(),
    )
}

fn wait_row(
    published: &PublishedTotal,
    whose: &str,
    audited: &Audited,
    printed: f64,
    (mean, p99): (Option<f64>, Option<f64>),
) -> Vec<String> {
    let predicted = |reading| {
        let longest = audited.wait(printed, reading);
        format!("{} / {}", plain(longest / 2.0), plain(longest))
    };
    let explained = match mean.and_then(|mean| audited.explains(printed, mean)) {
        Some(Reading::OfEach) => "of each",
        Some(Reading::OfAll) => "of all",
        None => NONE,
    };
    let optional =
        |value: Option<f64>| value.map_or(NONE.into(), |value| number(value, Unit::Milliseconds));
    vec![
        published.load.clone(),
        whose.into(),
        rate(printed),
        predicted(Reading::OfEach),
        predicted(Reading::OfAll),
        optional(mean),
        optional(p99),
        explained.into(),
    ]
}

fn rate(value: f64) -> String {
    number(value, Unit::RecordsPerSecond)
}
