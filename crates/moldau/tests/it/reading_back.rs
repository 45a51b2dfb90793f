//! What a reader that audits has to wait for.

use moldau_load::generator::{self, Measured, Setup};
use moldau_load::ledger::{Audit, SentLedger, audit};
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};

use crate::{workers, world};

#[test]
fn unanswered_records_do_not_replace_acknowledged_ones() {
    let directory = tempfile::tempdir().unwrap();
    let broker = world::Process::broker(&directory.path().join("data"), &["--durability", "os"]);
    let setup = workers::setup(&broker, "known", 1_000);
    // More than comes in one fetch, so that a reader could end in between.
    let pace = Pace::Scheduled { per_second: 10_000, arrivals: Arrivals::Constant };
    let workload =
        Workload { pace, record_bytes: 1_024, partitions: 1, producers: 1, ..setup.workload };
    let setup = Setup { workload, ..setup };
    let written = generator::produce(&setup).unwrap().acked_records;
    assert!(written > 5_000, "{written}");
    // As if the first answer that came were that to a record in the middle.
    let middle = written / 2;
    let mut sent = SentLedger::new(0, 1);
    (0..written).for_each(|_| sent.sent(0));
    sent.acked(0, middle, written - middle, middle);
    let workload = Workload { pace: Pace::ReadBack, warmup_ms: 0, ..setup.workload.clone() };
    let read = generator::read_back(&Setup { workload, ..setup }, std::slice::from_ref(&sent));
    let found = audit(&[sent], read.unwrap().delivered.as_ref().unwrap());
    assert_eq!((found.unknown, found.lost, found.delivered), (middle, 0, written), "{found:?}");
}

/// Its fetches would wait for an hour once nothing more is produced, and the rest would be lost.
#[test]
fn remaining_records_are_read_without_a_full_fetch() {
    let directory = tempfile::tempdir().unwrap();
    let broker = world::Process::broker(&directory.path().join("data"), &["--durability", "os"]);
    let setup = workers::setup(&broker, "usual", 100);
    for (name, pace) in [("rest", Pace::Unpaced), ("closed", Pace::Closed { outstanding: 24 })] {
        let (found, measured) = read_in_waiting_fetches(&setup, name, pace, 3_600_000);
        assert!(found.is_clean() && found.delivered == measured.acked_records, "{found:?}");
    }
    // The times of the window are those of fetches that wait, and all of them are there.
    let pace = Pace::Scheduled { per_second: 1_000, arrivals: Arrivals::Constant };
    let (found, measured) = read_in_waiting_fetches(&setup, "times", pace, 300);
    assert!(found.is_clean() && found.delivered == measured.acked_records, "{found:?}");
    let end_to_end = &measured.latencies.end_to_end;
    assert_eq!(end_to_end.count(), measured.answered);
    assert!(end_to_end.quantile_ns(0.9) > 100_000_000, "{:?}", end_to_end.summary());
}

/// A run over three topics whose fetches wait for a gigabyte, and its audit.
fn read_in_waiting_fetches(
    setup: &Setup,
    name: &str,
    pace: Pace,
    wait_ms: u32,
) -> (Audit, Measured) {
    let usual = setup.workload.clone();
    let tuning = Tuning {
        topics: 3,
        fetch_min_bytes: 1 << 30,
        fetch_max_wait_ms: wait_ms,
        ..usual.tuning.clone()
    };
    let workload = Workload { pace, partitions: 2, tails: 1, tuning, ..usual };
    let setup = Setup { topic: name.into(), workload, ..setup.clone() };
    for topic in setup.topics() {
        let two = ["--partitions", "2", "--bootstrap", &setup.bootstrap];
        let created = world::run(["topics", "create", &topic].into_iter().chain(two));
        assert!(created.status.success(), "{created:?}");
    }
    let measured = generator::produce(&setup).unwrap();
    assert!(measured.acked_records > 0);
    (audit(&measured.sent, measured.delivered.as_ref().unwrap()), measured)
}
