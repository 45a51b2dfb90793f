//! The binary form of records of share partitions.

use moldau_coordinator::Error;
use moldau_coordinator::share_partitions::{
    Cause, Changes, ShareKey, ShareRecord, StoredRun, StoredState,
};
use moldau_protocol::Uuid;
use proptest::collection::vec;
use proptest::prelude::*;

fn encoded(record: &ShareRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

fn key() -> ShareKey {
    ShareKey { group_id: "g".into(), topic_id: Uuid::from_bytes([6; 16]), partition: 5 }
}

fn run(first: i64, last: i64, state: StoredState, deliveries: i16) -> StoredRun {
    StoredRun { first, last, state, deliveries }
}

const KEY: [u8; 22] = [1, b'g', 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 0, 0, 0, 5];

#[rustfmt::skip]
const CHANGES: [u8; 66] = [
    0, 0, 0, 0, 0, 0, 1, 2, 3,
    0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 1,
    0, 0, 0, 0, 0, 0, 1, 5, 0, 0, 0, 0, 0, 0, 1, 5, 2, 0, 2,
    0, 0, 0, 0, 0, 0, 1, 7, 0, 0, 0, 0, 0, 0, 1, 9, 4, 0, 5,
];

fn changes() -> Changes {
    let runs = vec![
        run(0x103, 0x104, StoredState::Available, 1),
        run(0x105, 0x105, StoredState::Acknowledged, 2),
        run(0x107, 0x109, StoredState::Archived, 5),
    ];
    Changes { start: 0x102, runs }
}

#[test]
fn every_kind_has_its_golden_bytes() {
    let (group_id, topic_id) = ("g".into(), Some(Uuid::from_bytes([6; 16])));
    let cases = [
        (
            ShareRecord::Placed { key: key(), is_initial: true, state: changes() },
            [&[1, 1][..], &KEY, &[1], &CHANGES].concat(),
        ),
        (
            ShareRecord::Changed { key: key(), changes: changes() },
            [&[1, 2][..], &KEY, &CHANGES].concat(),
        ),
        (ShareRecord::Removed { group_id, topic_id }, [&[1, 3, 1, b'g'][..], &[6; 16]].concat()),
        (
            ShareRecord::Removed { group_id: "g".into(), topic_id: None },
            [&[1, 3, 1, b'g'][..], &[0; 16]].concat(),
        ),
    ];
    for (record, bytes) in cases {
        assert_eq!(encoded(&record), bytes);
        assert_eq!(ShareRecord::decode(&bytes), Ok(record));
        for length in 0..bytes.len() {
            assert!(ShareRecord::decode(&bytes[..length]).is_err());
        }
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let bytes = [&[1, 1][..], &KEY, &[1], &CHANGES].concat();
    let changed = |at: usize, value: u8| {
        let mut changed = bytes.clone();
        changed[at] = value;
        ShareRecord::decode(&changed)
    };
    assert_eq!(changed(0, 2), Err(Error::Version { version: 2 }));
    assert_eq!(changed(1, 4), Err(Error::Kind { kind: 4 }));
    assert_eq!(changed(24, 2), Err(Error::Invalid { field: "initial" }));
    let runs = 25 + 9;
    assert_eq!(changed(25, 255), Err(Error::Invalid { field: "start offset" }));
    assert_eq!(changed(runs + 7, 5), Err(Error::Invalid { field: "records" }), "it ends too early");
    assert_eq!(
        changed(runs + 15, 5),
        Err(Error::Invalid { field: "records" }),
        "it is twice there"
    );
    assert_eq!(changed(runs + 16, 1), Err(Error::Invalid { field: "state" }));
    assert_eq!(changed(runs + 17, 128), Err(Error::Invalid { field: "records" }));
    let trailing = ShareRecord::decode(&[&bytes[..], &[0]].concat());
    assert_eq!(trailing, Err(Error::Trailing { bytes: 1 }));
}

fn states() -> impl Strategy<Value = StoredState> {
    prop_oneof![
        Just(StoredState::Available),
        Just(StoredState::Acknowledged),
        Just(StoredState::Archiving(Cause::Rejected)),
        Just(StoredState::Archiving(Cause::Spent)),
        Just(StoredState::Archived)
    ]
}

fn any_changes() -> impl Strategy<Value = Changes> {
    let part = (0..1_000i64, 0..1_000i64, states(), 0..=i16::MAX);
    (0..i64::MAX, 0..1i64 << 40, vec(part, 0..5)).prop_map(|(start, base, parts)| {
        let mut next = base;
        let runs = parts.into_iter().map(|(gap, length, state, deliveries)| {
            let first = next + gap;
            next = first + length + 1;
            run(first, next - 1, state, deliveries)
        });
        Changes { start, runs: runs.collect() }
    })
}

fn records() -> impl Strategy<Value = ShareRecord> {
    let id = any::<[u8; 16]>().prop_map(Uuid::from_bytes);
    let key = (".{0,9}", id.clone(), any::<i32>()).prop_map(|(group_id, topic_id, partition)| {
        ShareKey { group_id: group_id.into(), topic_id, partition }
    });
    prop_oneof![
        (key.clone(), any::<bool>(), any_changes())
            .prop_map(|(key, is_initial, state)| ShareRecord::Placed { key, is_initial, state }),
        (key, any_changes()).prop_map(|(key, changes)| ShareRecord::Changed { key, changes }),
        (".{0,9}", any::<bool>(), id).prop_map(|(group_id, is_all, id)| {
            let topic_id = (!is_all).then_some(id).filter(|id| !id.is_zero());
            ShareRecord::Removed { group_id: group_id.into(), topic_id }
        }),
    ]
}

proptest! {
    #[test]
    fn a_record_comes_back_as_it_was(record in records()) {
        prop_assert_eq!(ShareRecord::decode(&encoded(&record)), Ok(record));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = 1;
        }
        if let Ok(record) = ShareRecord::decode(&bytes) {
            prop_assert_eq!(encoded(&record), bytes);
        }
    }
}
