//! What a reader that audits has to wait for.

use moldau_lab::generator::{self, Setup};
use moldau_lab::ledger::{SentLedger, audit};
use moldau_lab::schedule::Arrivals;
use moldau_lab::workload::{Pace, Workload};

use crate::{workers, world};

#[test]
fn records_whose_answers_are_missing_do_not_stand_in_for_those_that_were_acknowledged() {
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
