//! The binary form of transaction records.

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{Outcome, TransactionChange, TransactionRecord};
use moldau_coordinator::{CommittedOffset, Error, TopicOffsets};
use moldau_protocol::Uuid;
use proptest::collection::vec;
use proptest::prelude::*;

fn encoded(record: &TransactionRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

fn record(change: TransactionChange) -> TransactionRecord {
    TransactionRecord { transactional_id: "t".to_owned(), time_ms: 0x0102, change }
}

const HEAD: [u8; 10] = [1, b't', 0, 0, 0, 0, 0, 0, 1, 2];
const PRODUCER: [u8; 10] = [0, 0, 0, 0, 0, 0, 0, 9, 0, 3];
const NONE: [u8; 10] = [255; 10];

fn golden(kind: u8, fields: &[&[u8]]) -> Vec<u8> {
    [&[1, kind][..], &HEAD, &fields.concat()].concat()
}

#[test]
fn every_kind_has_its_golden_bytes() {
    let producer = ProducerIdentity { id: 9, epoch: 3 };
    let previous = ProducerIdentity { id: -1, epoch: -1 };
    let offset = CommittedOffset {
        offset: 0x0203,
        leader_epoch: -1,
        metadata: "m".to_owned(),
        commit_timestamp_ms: 4,
        expire_timestamp_ms: None,
    };
    let topics = vec![TopicOffsets { topic: "u".to_owned(), partitions: vec![(5, offset)] }];
    #[rustfmt::skip]
    let offset_bytes = [
        1, 1, b'u', 1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 2, 3, 255, 255, 255, 255, 1, b'm',
        0, 0, 0, 0, 0, 0, 0, 4, 0,
    ];
    let cases = [
        (
            TransactionChange::Initialized { producer, previous, timeout_ms: 7 },
            golden(1, &[&PRODUCER, &NONE, &[0, 0, 0, 7]]),
        ),
        (
            TransactionChange::PartitionsAdded(vec![(Uuid::from_bytes([6; 16]), vec![1, 2])]),
            golden(2, &[&[1], &[6; 16], &[2, 0, 0, 0, 1, 0, 0, 0, 2]]),
        ),
        (TransactionChange::GroupAdded("g".to_owned()), golden(3, &[&[1, b'g']])),
        (
            TransactionChange::OffsetsPending { group_id: "g".to_owned(), topics },
            golden(4, &[&[1, b'g'], &offset_bytes]),
        ),
        (
            TransactionChange::Ended { outcome: Outcome::Commit, producer, previous },
            golden(5, &[&[1], &PRODUCER, &NONE]),
        ),
        (
            TransactionChange::Ended { outcome: Outcome::Abort, producer, previous },
            golden(5, &[&[0], &PRODUCER, &NONE]),
        ),
        (TransactionChange::Forgotten, golden(6, &[])),
        (
            TransactionChange::Decided {
                outcome: Outcome::Commit,
                producer,
                previous,
                marker: producer,
                decision: 8,
            },
            golden(7, &[&[1], &PRODUCER, &NONE, &PRODUCER, &[0, 0, 0, 0, 0, 0, 0, 8]]),
        ),
        (TransactionChange::Marked { decision: 8 }, golden(8, &[&[0, 0, 0, 0, 0, 0, 0, 8]])),
    ];
    for (change, bytes) in cases {
        let record = record(change);
        assert_eq!(encoded(&record), bytes);
        assert_eq!(TransactionRecord::decode(&bytes), Ok(record));
        for length in 0..bytes.len() {
            assert!(TransactionRecord::decode(&bytes[..length]).is_err());
        }
    }
}

#[test]
fn what_is_no_record_is_refused() {
    let bytes = golden(6, &[]);
    let changed = |at: usize, value: u8| {
        let mut changed = bytes.clone();
        changed[at] = value;
        TransactionRecord::decode(&changed)
    };
    assert_eq!(changed(0, 2), Err(Error::Version { version: 2 }));
    assert_eq!(changed(1, 0), Err(Error::Kind { kind: 0 }));
    assert_eq!(changed(1, 9), Err(Error::Kind { kind: 9 }));
    let outcome = TransactionRecord::decode(&golden(5, &[&[2], &PRODUCER, &NONE]));
    assert_eq!(outcome, Err(Error::Invalid { field: "outcome" }));
    let trailing = TransactionRecord::decode(&golden(6, &[&[0]]));
    assert_eq!(trailing, Err(Error::Trailing { bytes: 1 }));
}

fn producers() -> impl Strategy<Value = ProducerIdentity> {
    (any::<i64>(), any::<i16>()).prop_map(|(id, epoch)| ProducerIdentity { id, epoch })
}

fn changes() -> impl Strategy<Value = TransactionChange> {
    let offset = (any::<i64>(), any::<i32>(), ".{0,5}", any::<i64>()).prop_map(
        |(offset, leader_epoch, metadata, commit_timestamp_ms)| CommittedOffset {
            offset,
            leader_epoch,
            metadata,
            commit_timestamp_ms,
            expire_timestamp_ms: None,
        },
    );
    let topic = (".{0,5}", vec((any::<i32>(), offset), 0..3))
        .prop_map(|(topic, partitions)| TopicOffsets { topic, partitions });
    let added = (any::<[u8; 16]>().prop_map(Uuid::from_bytes), vec(any::<i32>(), 0..4));
    prop_oneof![
        (producers(), producers(), any::<i32>()).prop_map(|(producer, previous, timeout_ms)| {
            TransactionChange::Initialized { producer, previous, timeout_ms }
        }),
        vec(added, 0..4).prop_map(TransactionChange::PartitionsAdded),
        ".{0,9}".prop_map(TransactionChange::GroupAdded),
        (".{0,9}", vec(topic, 0..3)).prop_map(|(group_id, topics)| {
            TransactionChange::OffsetsPending { group_id, topics }
        }),
        (any::<bool>(), producers(), producers()).prop_map(|(commits, producer, previous)| {
            let outcome = if commits { Outcome::Commit } else { Outcome::Abort };
            TransactionChange::Ended { outcome, producer, previous }
        }),
        Just(TransactionChange::Forgotten),
        (any::<bool>(), producers(), producers(), any::<i64>()).prop_map(
            |(commits, producer, previous, decision)| {
                let outcome = if commits { Outcome::Commit } else { Outcome::Abort };
                let marker = previous;
                TransactionChange::Decided { outcome, producer, previous, marker, decision }
            }
        ),
        any::<i64>().prop_map(|decision| TransactionChange::Marked { decision }),
    ]
}

proptest! {
    #[test]
    fn a_record_comes_back_as_it_was(
        transactional_id in ".{0,20}",
        time_ms: i64,
        change in changes(),
    ) {
        let record = TransactionRecord { transactional_id, time_ms, change };
        prop_assert_eq!(TransactionRecord::decode(&encoded(&record)), Ok(record));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_mut() {
            *first = 1;
        }
        if let Ok(record) = TransactionRecord::decode(&bytes) {
            prop_assert_eq!(encoded(&record), bytes);
        }
    }
}
