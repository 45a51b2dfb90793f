//! Odd produces: what Apache Kafka and our broker answer to them, and what they store.
//!
//! The same bytes go to both, each case to a partition of its own: wrong lengths, counts, codecs,
//! timestamps, sequences. Codes, offsets, the records that are named and what can be fetched
//! afterwards must be those of Apache Kafka but for the differences listed in `differences`.

pub(crate) mod batch;
mod cases;
mod differences;
mod wire;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::SystemTime;

use anyhow::Result;

use self::cases::{Case, TOPICS, Target};
use self::differences::{DIFFERENCES, Difference};
use self::wire::{Client, Produce, UNANSWERED};
use crate::check::Check;
use crate::kafka::Kafka;
use crate::moldau::Moldau;
use crate::peers::Peers;

/// The name of each case and what came of it.
type Outcomes = BTreeMap<String, String>;

/// Sends the cases to both, and returns what is to be held of our broker.
pub fn run(peers: &Peers, binary: &Path, directory: &Path) -> Result<Vec<Check>> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis();
    let now = i64::try_from(now)?;
    let cases = cases::all(now);
    let kafka = Kafka::start(peers, directory)?;
    let wanted = outcomes(&cases, kafka.bootstrap(), now)?;
    drop(kafka);
    let broker = Moldau::broker(binary, directory)?;
    let found = outcomes(&cases, broker.bootstrap(), now)?;
    broker.stop()?;
    Ok(compare(&wanted, &found))
}

fn outcomes(cases: &[Case], address: &str, now: i64) -> Result<Outcomes> {
    let mut client = Client::new(address);
    let mut outcomes = Outcomes::new();
    for (topic, configs) in TOPICS {
        let own: Vec<_> = cases.iter().filter(|case| case.topic == topic).collect();
        client.create(topic, i32::try_from(own.len())?, configs)?;
        for (partition, case) in (0..).zip(own) {
            let outcome = outcome(&mut client, case, partition, now)?;
            outcomes.insert(case.name.clone(), outcome);
        }
    }
    Ok(outcomes)
}

/// Answers, then what is stored.
fn outcome(client: &mut Client, case: &Case, partition: i32, now: i64) -> Result<String> {
    let mut told = Vec::new();
    for send in &case.sends {
        let topic = match send.target {
            Target::NoTopic => "no-such-topic",
            _ => case.topic,
        };
        let parts = match send.target {
            Target::Own | Target::NoTopic => vec![(partition, send.records.clone())],
            Target::OwnTwice => vec![(partition, send.records.clone()); 2],
            Target::NoPartition => vec![(i32::MAX, send.records.clone())],
        };
        let produce = Produce {
            version: send.version,
            acks: send.acks,
            transactional_id: send.transactional_id,
            topics: vec![(topic.to_owned(), parts)],
        };
        told.push(client.produce(&produce)?);
    }
    // What is not answered may be stored a moment later.
    let max_wait_ms = if told.iter().any(|told| told == UNANSWERED) { 1_000 } else { 0 };
    let stored = client.fetch_within(case.topic, partition, max_wait_ms)?;
    let stored = batch::describe(&stored, now);
    Ok(format!("{}; stored {stored}", told.join(", then ")))
}

/// One check for each case, and one for each difference that is there no more.
fn compare(wanted: &Outcomes, found: &Outcomes) -> Vec<Check> {
    let mut checks = Vec::new();
    for (case, wanted) in wanted {
        let found = found.get(case).map_or("nothing", String::as_str);
        let decided = DIFFERENCES.iter().find(|difference| difference.covers(case));
        let ok = match decided {
            Some(it) => {
                it.kafka.iter().any(|kafka| wanted.starts_with(kafka)) && found.starts_with(it.ours)
            }
            None => wanted == found,
        };
        let mut detail = format!("the broker: {found}\nKafka:      {wanted}");
        if let Some(Difference { kafka, ours, reason, .. }) = decided {
            let kafka = kafka.join(" or ");
            detail += &format!("\ndecided: {ours} for {kafka} since {reason}");
        }
        checks.push(Check::new(case, ok, &detail));
    }
    for difference in DIFFERENCES {
        let is_met = wanted.keys().any(|case| difference.covers(case));
        let name = format!("a case for the difference {:?}", difference.cases);
        checks.push(Check::new(&name, is_met, "there is none"));
    }
    checks
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn outcomes(all: &[(&str, &str)]) -> Outcomes {
        all.iter().map(|(case, told)| ((*case).to_owned(), (*told).to_owned())).collect()
    }

    fn failed(wanted: &Outcomes, found: &Outcomes) -> Vec<String> {
        let checks = compare(wanted, found).into_iter();
        checks.filter(|it| !it.ok && wanted.contains_key(&it.name)).map(|it| it.name).collect()
    }

    #[test]
    fn another_outcome_fails_unless_it_is_decided() {
        let kafka = outcomes(&[("a", "at 0; stored [x]"), ("length 0", "error 2; stored ")]);
        let ours = outcomes(&[("a", "at 0; stored [x]"), ("length 0", "error 87; stored ")]);
        assert_eq!(failed(&kafka, &ours), Vec::<String>::new());
        assert_eq!(failed(&kafka, &kafka), ["length 0"]);
        let odd = outcomes(&[("a", "error 3; stored ")]);
        assert_eq!(failed(&kafka, &odd), ["a", "length 0"]);
    }

    #[test]
    fn every_case_has_a_name_of_its_own_and_a_topic() {
        let cases = cases::all(1 << 40);
        let names: BTreeSet<_> = cases.iter().map(|case| case.name.as_str()).collect();
        assert_eq!(names.len(), cases.len());
        assert!(cases.iter().all(|case| TOPICS.iter().any(|(topic, _)| *topic == case.topic)));
    }
}
