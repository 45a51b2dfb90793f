//! librdkafka as a driver: a Python program that offers the records of the generator, each at the
//! time in its header, and reports the outcome.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use serde::Deserialize;

use crate::systems::{Process, ProcessSpec, Ready};
use moldau_load::generator::Setup;
use moldau_load::ledger::SentLedger;
use moldau_load::payload::{Header, PayloadWriter};
use moldau_load::schedule::Slice;
use moldau_measure::Error;

pub(super) const NAME: &str = "librdkafka";

/// Takes how to offer as JSON, and the file of values.
const PROGRAM: &str = include_str!("../../../assets/librdkafka_driver.py");

/// How long the program may take beyond its schedule. It waits half a minute for the cluster, and
/// as long for the last answers.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The report in the last line of the program's output.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Told {
    /// Version of librdkafka.
    pub(super) version: String,
    /// p50, p90, p99 and p99.9 from the intended time to the acknowledgement, of the window.
    pub(super) response_ms: [f64; 4],
    /// How late the program was itself.
    pub(super) lag_p99_ms: f64,
    /// Processor time that it took in the window.
    pub(super) cpu_us_per_record: f64,
    /// Numbers of first records, their offsets, and how many are at the offsets that follow.
    acknowledged: Vec<[u64; 3]>,
}

/// Offers the records of `setup`, which go to the first partition of its topic, through the
/// librdkafka of `python`. Returns the program's report and the ledger of its records.
pub(super) fn offer(
    python: &Path,
    directory: &Path,
    setup: &Setup,
    schedule: Slice,
) -> Result<(Told, SentLedger), Error> {
    let values = directory.join("values");
    let records = write_values(setup, schedule, &values)?;
    let spec = ProcessSpec {
        role: NAME.into(),
        program: python.to_owned(),
        args: vec!["-c".into(), PROGRAM.into(), plan(setup).into(), values.clone().into()],
        env: Vec::new(),
        // It needs no readiness check: it serves nothing and ends by itself.
        ready: Ready::Http(([127, 0, 0, 1], 0).into(), "/".into()),
    };
    let program = Process::launch(&spec, directory)?;
    let log = program.log().to_owned();
    let workload = &setup.workload;
    let status = program.wait(workload.length() + TIMEOUT)?;
    let text =
        fs::read_to_string(&log).map_err(Error::machine(format!("reading {}", log.display())))?;
    fs::remove_file(&values).map_err(Error::machine("removing values"))?;
    let told = told(status, &text)?;
    let ledger = ledger(&told.acknowledged, records)?;
    Ok((told, ledger))
}

/// What the program is to do, with what the options of both clients have in common.
fn plan(setup: &Setup) -> String {
    let workload = &setup.workload;
    let plan = serde_json::json!({
        "topic": setup.topic,
        "record_bytes": workload.record_bytes,
        "warmup_ns": 1_000_000 * workload.warmup_ms,
        "producer": {
            "bootstrap.servers": setup.bootstrap,
            "acks": "all",
            "enable.idempotence": true,
            "max.in.flight.requests.per.connection": workload.tuning.in_flight_max,
            "linger.ms": workload.linger_us / 1_000,
            "batch.size": workload.batch_bytes,
            "socket.nagle.disable": true,
        },
    });
    plan.to_string()
}

/// Writes what the generator would send, one value after the other; gives their number.
fn write_values(setup: &Setup, schedule: Slice, path: &Path) -> Result<u64, Error> {
    let writing = || Error::machine(format!("writing {}", path.display()));
    let workload = &setup.workload;
    let account = setup.clients.account;
    let payloads = PayloadWriter::new(workload.filler, account, setup.seed, workload.record_bytes)?;
    let mut file = BufWriter::new(File::create(path).map_err(writing())?);
    let (mut value, mut sequence) = (Vec::new(), 0);
    for intended_ns in schedule {
        let (run, producer, partition) = (setup.run, setup.first_producer, 0);
        payloads.write(Header { run, producer, partition, sequence, intended_ns }, &mut value);
        file.write_all(&value).map_err(writing())?;
        sequence += 1;
    }
    file.flush().map_err(writing())?;
    Ok(sequence)
}

/// The program's report, or the end of its output if it failed.
fn told(status: ExitStatus, text: &str) -> Result<Told, Error> {
    let last = text.trim_end().lines().last().unwrap_or_default();
    if !status.success() {
        return Err(failed(format!("{status}: {last}")));
    }
    serde_json::from_str(last).map_err(|error| failed(format!("{error} in its last line: {last}")))
}

/// The ledger of the only producer of `records` records to the only partition.
fn ledger(acknowledged: &[[u64; 3]], records: u64) -> Result<SentLedger, Error> {
    let mut ledger = SentLedger::new(0, 1);
    (0..records).for_each(|_| ledger.sent(0));
    for [first, offset, count] in acknowledged {
        let end = first.checked_add(*count).filter(|end| *end <= records);
        if end.is_none() || offset.checked_add(*count).is_none() {
            return Err(failed(format!("it reports {count} records from {first} on")));
        }
        ledger.acked(0, *first, *count, *offset);
    }
    match ledger.acked_count() {
        answered if answered == records => Ok(ledger),
        answered => Err(failed(format!("{answered} of {records} records have an answer"))),
    }
}

fn failed(reason: String) -> Error {
    Error::Target { action: format!("offering records through {NAME}"), reason }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt as _;

    use super::*;
    use moldau_load::ledger::{DeliveryLedger, audit};
    use moldau_load::payload::{Account, Filler};

    const LINE: &str = r#"{"version": "2.16.0", "response_ms": [1.5, 2, 3, 4],
        "lag_p99_ms": 0.2, "cpu_us_per_record": 30.5, "acknowledged": [[0, 0, 7], [7, 8, 3]]}"#;

    fn ended(code: i32, text: &str) -> Result<Told, Error> {
        told(ExitStatus::from_raw(code << 8), text)
    }

    #[test]
    fn the_last_line_of_the_program_is_its_report() {
        let text = format!("%4|a warning of the library\n{}\n", LINE.replace('\n', ""));
        let told = ended(0, &text).unwrap();
        assert_eq!((&*told.version, told.response_ms), ("2.16.0", [1.5, 2.0, 3.0, 4.0]));
        assert_eq!((told.lag_p99_ms, told.cpu_us_per_record), (0.2, 30.5));
        assert_eq!(told.acknowledged, [[0, 0, 7], [7, 8, 3]]);
    }

    #[test]
    fn a_failed_program_is_reported_with_the_end_of_its_output() {
        let words = "this Python has no confluent-kafka: No module named 'confluent_kafka'";
        for (code, text) in [(1, format!("{words}\n")), (0, words.into()), (0, String::new())] {
            let problem = ended(code, &text).unwrap_err().to_string();
            assert!(problem.starts_with("offering records through librdkafka: "), "{problem}");
            assert!(problem.contains(text.trim_end()), "{problem}");
        }
        assert!(ended(1, &LINE.replace('\n', "")).is_err(), "what it told before does not count");
    }

    #[test]
    fn records_that_librdkafka_acknowledged_are_audited_like_our_own() {
        let value = |sequence| {
            let payloads = PayloadWriter::new(Filler::Random, Account::Clear, 1, 64);
            let mut value = Vec::new();
            let header = Header { run: 3, producer: 0, partition: 0, sequence, intended_ns: 5 };
            payloads.unwrap().write(header, &mut value);
            value
        };
        let mut delivered = DeliveryLedger::new(3, 1, 1);
        for sequence in 0..9 {
            delivered.observe(0, sequence, &value(sequence));
        }
        let all = ledger(&[[0, 0, 9]], 9).unwrap();
        assert!(audit(&[all], &delivered).is_clean());
        let more = ledger(&[[0, 0, 9], [9, 9, 1]], 10).unwrap();
        assert_eq!(audit(&[more], &delivered).lost, 1);
        let elsewhere = ledger(&[[0, 0, 7], [7, 8, 2]], 9).unwrap();
        assert_eq!(audit(&[elsewhere], &delivered).misplaced, 2);
    }

    #[test]
    fn a_report_with_too_few_or_unknown_records_is_refused() {
        let acknowledged: [&[[u64; 3]]; 5] =
            [&[], &[[0, 0, 9]], &[[0, 0, 11]], &[[5, 0, u64::MAX]], &[[0, u64::MAX, 10]]];
        for acknowledged in acknowledged {
            let problem = ledger(acknowledged, 10).unwrap_err().to_string();
            assert!(problem.contains(" records "), "{problem}");
        }
    }
}
