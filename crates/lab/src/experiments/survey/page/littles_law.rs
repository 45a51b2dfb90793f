//! Little's law in the report of a survey: what it predicted, and what came.

use super::ratio;
use crate::littles_law::{LawRecord, TOLERANCE};
use crate::page::Table;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, thousands};

/// What the law says for each system, and how far it was off at most.
pub(super) fn answers(record: &LawRecord, seed: u64) -> Vec<String> {
    let answer = |arm: &str| {
        let (response, needed) = (record.response(arm)?, record.needed(arm)?);
        let (partitions, off) = record.worst(arm, seed)?;
        let verdict = if off <= TOLERANCE { "holds" } else { "does not hold" };
        Some(format!(
            "Little's law {verdict} on {arm}: {} records/s, each handled for {} ms, take {} \
             partitions; measured on fewer, as many and more, the rates are within {:.1} % of the \
             predicted ones (the furthest on {partitions}, {:.0} % allowed).",
            thousands(record.records_per_second),
            number(response * 1e3, Unit::Milliseconds),
            number(needed, Unit::Times),
            off * 100.0,
            TOLERANCE * 100.0,
        ))
    };
    record.arms().into_iter().filter_map(answer).collect()
}

/// Predicted and measured rates.
pub(super) fn table(record: &LawRecord, seed: u64) -> Table {
    let rows = record.arms().into_iter().flat_map(|arm| {
        record.tested(arm).into_iter().filter_map(move |partitions| {
            let predicted = record.predicted(arm, partitions)?;
            let agreement = record.agreement(arm, partitions, seed)?;
            Some(vec![
                arm.to_string(),
                partitions.to_string(),
                number(predicted, Unit::RecordsPerSecond),
                number(predicted * agreement.mean, Unit::RecordsPerSecond),
                ratio(Some(agreement)),
            ])
        })
    });
    Table::of(
        "Little's law: partitions = throughput x response time",
        &format!(
            "A consumer handles one record of each partition at a time, for {} ms and what its \
             timer adds. The time is measured on one partition; it predicts the rate, partitions \
             by time but no more than is offered. Means over the rounds, the share with its 95 % \
             interval; {:.0} % off is allowed.",
            record.work_ms,
            TOLERANCE * 100.0
        ),
        &[
            "consumers of",
            "partitions",
            "predicted, records/s",
            "measured, records/s",
            "share of the predicted",
        ],
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::littles_law::tests::record;

    #[test]
    fn the_answer_names_the_partitions_and_how_far_the_law_was_off() {
        let [answer] = answers(&record(), 1).try_into().unwrap();
        assert!(answer.starts_with("Little's law holds on ours: 400 records/s"), "{answer}");
        assert!(answer.contains("each handled for 21.0 ms, take 8.40 partitions"), "{answer}");
        assert!(answer.contains("within 5.5 % of the predicted ones (the furthest on 4"));
        let table = table(&record(), 1);
        assert_eq!(table.rows[1], ["ours", "4", "190", "180", "0.945"]);
        let mut off = record();
        off.points[1].handled /= 2;
        assert!(answers(&off, 1)[0].starts_with("Little's law does not hold on ours"));
    }
}
