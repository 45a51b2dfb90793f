//! Partitions made and moved, in the report of a survey.

use super::NONE;
use crate::administration::{AdministrationClaim, AdministrationRecord};
use crate::page::Table;
use crate::survey::{Estimate, Finding, SystemPair};
use moldau_measure::numbers::{plain, thousands};

/// What making and moving took on each system and between the systems of a pair, and then what
/// became of each claim.
pub(super) fn answers(
    record: &AdministrationRecord,
    pairs: &[SystemPair],
    seed: u64,
) -> Vec<String> {
    let told = record.duties().into_iter().filter_map(|(duty, partitions)| {
        let each = record.arms().into_iter().filter_map(|arm| {
            let found = record.estimate(arm, duty, partitions, seed)?;
            Some(format!("{arm} {}", words(Some(found), duty.unit())))
        });
        let ratios = measured(record, pairs).into_iter().filter_map(|pair| {
            let found = record.ratio(pair, duty, partitions, seed)?;
            Some(format!("{} {}", pair.name, words(Some(found), "x")))
        });
        let parts: Vec<String> = each.chain(ratios).collect();
        let what = capitalized(&duty.words(partitions));
        (!parts.is_empty()).then(|| format!("{what}: {}.", parts.join(", ")))
    });
    let claims = record.claims.iter().map(|claim| answer(record, claim, pairs, seed));
    told.chain(claims).collect()
}

fn answer(
    record: &AdministrationRecord,
    claim: &AdministrationClaim,
    pairs: &[SystemPair],
    seed: u64,
) -> String {
    let findings = record.findings(claim, pairs, seed);
    let each = findings.iter().map(|Finding { system, outcome, measured, .. }| {
        format!("{} on {system}, {}", outcome.word(), words(*measured, unit(claim)))
    });
    let found =
        if findings.is_empty() { "not tested".into() } else { each.collect::<Vec<_>>().join("; ") };
    format!("{}: {found} ({}; {}).", claim.says, published(claim), claim.at)
}

fn unit(claim: &AdministrationClaim) -> &'static str {
    if claim.pair.is_some() { "x" } else { claim.figure.unit() }
}

fn published(claim: &AdministrationClaim) -> String {
    match claim.published {
        Some(value) => format!("published: {} {}", plain(value), unit(claim)),
        None => "published without a figure".into(),
    }
}

/// The tables: figures, and claims.
pub(super) fn tables(record: &AdministrationRecord, pairs: &[SystemPair], seed: u64) -> [Table; 2] {
    let duties = record.duties().into_iter();
    let figures = duties.flat_map(|(duty, partitions)| {
        let row = move |name: &str, found: Option<Estimate>, unit: &str| {
            let what = capitalized(&duty.words(partitions));
            found.map(|found| vec![what, name.to_string(), words(Some(found), unit)])
        };
        let systems = record.arms().into_iter();
        let each: Vec<Vec<String>> = systems
            .filter_map(|arm| row(arm, record.estimate(arm, duty, partitions, seed), duty.unit()))
            .collect();
        let ratios = measured(record, pairs).into_iter().filter_map(move |pair| {
            row(&pair.name, record.ratio(pair, duty, partitions, seed), "x")
        });
        each.into_iter().chain(ratios).collect::<Vec<_>>()
    });
    let records: u64 = record.reassignments.iter().map(|it| it.records).sum();
    let about = format!(
        "Geometric means over the rounds with 95 % intervals; x is a ratio within rounds. Making: \
         from the request until each broker knows a leader of every partition, with the replicas \
         that the system gives a topic. Moving: both replicas of each partition go to the next \
         broker, until all are there and no other is left; {} records lay in the moved \
         partitions, and all of them were read back afterwards. At rest: processors that all \
         processes of the system take without a client.",
        thousands(records)
    );
    let figures =
        Table::of("Partitions made and moved", &about, &["what", "system", "figure"], figures);
    let claims = record.claims.iter().flat_map(|claim| {
        record.findings(claim, pairs, seed).into_iter().map(move |finding| {
            vec![
                claim.says.clone(),
                finding.system,
                finding.outcome.word().into(),
                claim.published.map_or(NONE.into(), |it| format!("{} {}", plain(it), unit(claim))),
                words(finding.measured, unit(claim)),
            ]
        })
    });
    let columns = ["claim", "system", "outcome", "published", "measured"];
    let about = "As the claims above; without a figure the source gives a direction.";
    [figures, Table::of("Claims about making and moving partitions", about, &columns, claims)]
}

/// The pairs with measurements of both systems.
fn measured<'a>(record: &AdministrationRecord, pairs: &'a [SystemPair]) -> Vec<&'a SystemPair> {
    let arms = record.arms();
    pairs.iter().filter(|pair| pair.is_among(&arms)).collect()
}

fn words(found: Option<Estimate>, unit: &str) -> String {
    let Some(Estimate { mean, interval, .. }) = found else { return NONE.into() };
    interval.map_or_else(
        || format!("{} {unit} (too few rounds)", plain(mean)),
        |it| format!("{} {unit} [{}, {}]", plain(mean), plain(it.low), plain(it.high)),
    )
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::administration::Duty;
    use crate::administration::tests::{claim, pair, record};

    #[test]
    fn making_and_moving_are_reported_with_ratios_and_claims() {
        let record = AdministrationRecord { claims: vec![claim()], ..record() };
        let told = answers(&record, &[pair()], 1);
        let [made, moved, idle, claimed] = told.try_into().unwrap();
        assert!(made.starts_with("Making 100 partitions: kraft 2.21 s ["), "{made}");
        assert!(made.ends_with("KRaft by ZooKeeper 0.500 x [0.500, 0.500]."), "{made}");
        assert!(moved.starts_with("Moving 50 partitions: kraft 6.64 s"), "{moved}");
        assert!(idle.starts_with("At rest with 100 partitions: kraft 0.050 processors"), "{idle}");
        assert_eq!(
            claimed,
            "KRaft makes partitions sooner: reproduced on KRaft by ZooKeeper, 0.500 x [0.500, \
             0.500] (published without a figure; part 2)."
        );
        let [figures, claims] = tables(&record, &[pair()], 1);
        assert_eq!((figures.rows.len(), claims.rows.len()), (9, 1));
        assert!(figures.about.contains("80,000 records lay in the moved partitions"));
    }

    #[test]
    fn a_claim_about_systems_that_were_not_there_is_not_tested() {
        let record = AdministrationRecord { claims: vec![claim()], ..record() };
        let told = answers(&record, &[], 1);
        assert!(told[3].contains("sooner: not tested (published"), "{}", told[3]);
    }

    #[test]
    fn operations_are_named_with_their_unit() {
        let told = [Duty::Creation, Duty::Reassignment, Duty::IdleProcessors].map(Duty::unit);
        assert_eq!(told, ["s", "s", "processors"]);
    }
}
