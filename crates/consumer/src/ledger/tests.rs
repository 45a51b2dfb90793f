//! The ledger against a model of single offsets, its metadata as golden text and over restarts.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// A ledger at `base` with these offsets delivered and those of them done.
fn ledger(base: i64, delivered: impl IntoIterator<Item = i64>, done: &[i64]) -> Ledger {
    let mut ledger = Ledger::at(base);
    for offset in delivered {
        assert_eq!(ledger.deliver(offset), Delivery::Open);
    }
    for offset in done {
        assert!(ledger.done(*offset));
    }
    ledger
}

fn restored(ledger: &Ledger) -> Ledger {
    let commit = ledger.committable();
    Ledger::restore(commit.offset, &commit.metadata)
}

#[test]
fn records_done_in_order_need_no_metadata() {
    let ledger = ledger(5, 5..8, &[5, 6]);
    assert_eq!(ledger.committable(), Commit { offset: 7, metadata: String::new() });
    assert_eq!((ledger.open(), ledger.next()), (1, 8));
}

#[test]
fn metadata_has_its_golden_forms() {
    let done: Vec<i64> = (7..40).collect();
    let runs = ledger(5, 5..41, &done).committable();
    assert_eq!(runs, Commit { offset: 5, metadata: "m1.BQACIQ".to_owned() });
    let odd: Vec<i64> = (0..20).map(|index| 1001 + 2 * index).collect();
    let bits = ledger(1000, 1000..1041, &odd).committable();
    assert_eq!(bits, Commit { offset: 1000, metadata: "m1.6AcBqqqqqqo".to_owned() });
}

#[test]
fn a_restart_skips_what_was_done() {
    let mut restored = restored(&ledger(0, 0..10, &[3, 4, 9]));
    let open: Vec<i64> = (0..12).filter(|it| restored.deliver(*it) == Delivery::Open).collect();
    assert_eq!(open, [0, 1, 2, 5, 6, 7, 8, 10, 11]);
}

#[test]
fn offsets_without_a_record_count_as_done() {
    let mut ledger = Ledger::at(0);
    assert_eq!(ledger.deliver(4), Delivery::Open);
    assert_eq!(ledger.base(), 4);
    assert_eq!(ledger.deliver(9), Delivery::Open);
    ledger.pass(20);
    assert!(ledger.done(4));
    assert_eq!(ledger.base(), 9);
    assert!(ledger.done(9));
    assert_eq!(ledger.base(), 20);
}

#[test]
fn a_record_is_done_once() {
    let mut ledger = ledger(0, 0..3, &[1]);
    assert!(!ledger.done(1), "again");
    assert!(!ledger.done(3), "never delivered");
    assert_eq!(ledger.deliver(2), Delivery::Known, "delivered again");
    assert_eq!(ledger.open(), 2);
}

#[test]
fn metadata_of_another_offset_or_origin_is_ignored() {
    let metadata = ledger(5, 5..10, &[7, 8]).committable().metadata;
    assert!(Ledger::restore(5, &metadata).is_done(7));
    assert_eq!(Ledger::restore(6, &metadata), Ledger::at(6));
    let longer = format!("{metadata}A");
    for foreign in ["", "host-17", "m2.BQACAg", "m1.", "m1.BQ", "m1.BQAC", "m1.BQAAAg", &longer] {
        assert_eq!(Ledger::restore(5, foreign), Ledger::at(5), "{foreign}");
    }
}

#[test]
fn delivery_waits_where_the_metadata_could_grow_too_large() {
    let mut ledger = Ledger::at(0);
    let mut offset = 0;
    while ledger.has_room(offset) {
        ledger.deliver(offset);
        offset += 1_000_000;
    }
    let open = ledger.open();
    assert!(open >= 500, "{open}");
    // The first stays open, so nothing is forgotten.
    for offset in (1..1_000_000_i64).map(|it| it * 1_000_000).take(open - 1) {
        assert!(ledger.done(offset));
    }
    let commit = ledger.committable();
    assert!(commit.metadata.len() <= METADATA_BYTES_MAX);
    assert!(restored(&ledger).is_done(1_000_000));
    assert!(ledger.has_room(offset), "one record is open");
}

#[test]
fn a_dense_span_is_remembered_in_the_worst_order() {
    let mut ledger = Ledger::at(i64::MAX / 2);
    let mut offset = ledger.next();
    while ledger.has_room(offset) {
        ledger.deliver(offset);
        offset += 1;
    }
    assert!(ledger.open() > 24_000);
    for offset in (ledger.base() + 1..offset).step_by(2) {
        ledger.done(offset);
    }
    let commit = ledger.committable();
    assert!(commit.metadata.len() <= METADATA_BYTES_MAX, "{}", commit.metadata.len());
    assert!(commit.metadata.len() > METADATA_BYTES_MAX - 32, "{}", commit.metadata.len());
    assert_eq!(restored(&ledger).done, ledger.done);
}

/// The ledger as sets of offsets.
#[derive(Default)]
struct Model {
    open: BTreeSet<i64>,
    known: BTreeSet<i64>,
    next: i64,
}

impl Model {
    fn base(&self) -> i64 {
        let first_open = self.open.first().copied().unwrap_or(self.next);
        (first_open.min(self.next)..).find(|it| !self.known.contains(it)).expect("open or unknown")
    }
}

#[derive(Clone, Debug)]
enum Step {
    Deliver { skip: i64 },
    Pass { by: i64 },
    Done { index: usize },
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_i64..3).prop_map(|skip| Step::Deliver { skip }),
        1 => (0_i64..5).prop_map(|by| Step::Pass { by }),
        8 => any::<usize>().prop_map(|index| Step::Done { index }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #[test]
    fn the_ledger_agrees_with_a_set_of_offsets(
        start in 0_i64..1000,
        steps in prop::collection::vec(step(), 1..200),
    ) {
        let mut ledger = Ledger::at(start);
        let mut model = Model { next: start, ..Model::default() };
        for step in steps {
            match step {
                Step::Deliver { skip } => {
                    let offset = model.next + skip;
                    model.known.extend(model.next..offset);
                    model.next = offset + 1;
                    let delivery = ledger.deliver(offset);
                    let is_known = model.known.contains(&offset);
                    prop_assert_eq!(delivery == Delivery::Known, is_known);
                    if !is_known {
                        model.open.insert(offset);
                    }
                }
                Step::Pass { by } => {
                    model.known.extend(model.next..model.next + by);
                    model.next += by;
                    ledger.pass(model.next);
                }
                Step::Done { index } => {
                    let Some(at) = index.checked_rem(model.open.len()) else { continue };
                    let offset = *model.open.iter().nth(at).expect("within");
                    model.open.remove(&offset);
                    model.known.insert(offset);
                    prop_assert!(ledger.done(offset));
                }
                Step::Restart => {
                    ledger = restored(&ledger);
                    model.next = model.base();
                    model.open.clear();
                }
            }
            model.next = model.next.max(model.base());
            prop_assert_eq!(ledger.base(), model.base());
            prop_assert_eq!(ledger.open(), model.open.len());
            let done: BTreeSet<i64> =
                ledger.done.iter().flat_map(|(start, end)| *start..*end).collect();
            let expected: BTreeSet<i64> = model.known.range(model.base()..).copied().collect();
            prop_assert_eq!(done, expected);
        }
    }

    #[test]
    fn what_fits_the_metadata_comes_back(
        base in prop_oneof![Just(0_i64), 0_i64..1 << 20, 0_i64..i64::MAX / 2],
        runs in prop::collection::vec((1_i64..400, 1_i64..400), 0..1000),
    ) {
        let mut ledger = Ledger::at(base);
        let mut from = base;
        for (open, done) in runs {
            ledger.done.insert(from + open, from + open + done);
            from += open + done;
        }
        let commit = ledger.committable();
        prop_assert!(commit.metadata.len() <= METADATA_BYTES_MAX);
        let restored = Ledger::restore(commit.offset, &commit.metadata);
        let kept = restored.done.iter().filter(|run| ledger.done.get(run.0) == Some(run.1)).count();
        // The last one may be cut short.
        prop_assert!(kept + 1 >= restored.done.len());
        if encoding::runs_bytes(base, &ledger.done) <= PAYLOAD_BYTES_MAX {
            prop_assert_eq!(restored, ledger);
        }
    }

    #[test]
    fn any_metadata_is_read_or_ignored(offset in -5_i64..50, payload in any::<Vec<u8>>()) {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(payload);
        let ledger = Ledger::restore(offset, &format!("m1.{text}"));
        prop_assert_eq!(ledger.base(), offset);
        prop_assert_eq!(restored(&ledger), ledger);
    }
}
