//! A log that is appended to and cleaned, round after round, against a model of what must be left.

use std::collections::BTreeMap;

use moldau_records::{
    Attributes, BatchOptions, BatchView, CleanPolicy, Cleaned, Cleaner, Compression, Decompressor,
    KeyMap, Mapped, Producer, TimestampType,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::sample::{BYTES_MAX, Bytes, Sample, build, codecs};

const START_MS: i64 = 1_700_000_000_000;
const DELETE_RETENTION_MS: i64 = 1000;

#[derive(Debug, Clone)]
struct Append {
    /// Offsets that the log leaves out before the batch.
    gap: i64,
    codec: Compression,
    is_log_append_time: bool,
    producer_id: Option<i64>,
    /// Key, value, and ms by which the timestamp differs from that of the round.
    records: Vec<(Option<u8>, Option<u8>, i8)>,
}

#[derive(Debug, Clone)]
struct Round {
    appends: Vec<Append>,
    elapsed_ms: i64,
    map_slots: usize,
    /// Whether all of the log may be cleaned, or all but its last batch.
    is_whole: bool,
}

fn appends() -> impl Strategy<Value = Append> {
    let record = (option::weighted(0.95, 0..12u8), option::weighted(0.7, any::<u8>()), any::<i8>());
    (0..3i64, codecs(), any::<bool>(), option::of(0..3i64), vec(record, 1..10)).prop_map(
        |(gap, codec, is_log_append_time, producer_id, records)| Append {
            gap,
            codec,
            is_log_append_time,
            producer_id,
            records,
        },
    )
}

fn rounds() -> impl Strategy<Value = Vec<Round>> {
    let round = (vec(appends(), 0..6), 0..2 * DELETE_RETENTION_MS, 2..24usize, any::<bool>());
    vec(
        round.prop_map(|(appends, elapsed_ms, map_slots, is_whole)| Round {
            appends,
            elapsed_ms,
            map_slots,
            is_whole,
        }),
        1..6,
    )
}

/// A record as a consumer sees it, and the horizon of its batch.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    offset: i64,
    timestamp: i64,
    key: Option<Bytes>,
    value: Option<Bytes>,
    horizon: Option<i64>,
}

fn view(bytes: &Bytes) -> BatchView<'_> {
    BatchView::parse(bytes).unwrap()
}

fn seen(log: &[Bytes]) -> Vec<Seen> {
    let mut all = Vec::new();
    for bytes in log {
        let batch = view(bytes);
        batch.check_crc().unwrap();
        let mut decompressor = Decompressor::default();
        for record in batch.records(&mut decompressor, BYTES_MAX).unwrap().map(Result::unwrap) {
            assert!(record.offset() <= batch.last_offset());
            all.push(Seen {
                offset: record.offset(),
                timestamp: record.timestamp(),
                key: record.key().map(<[u8]>::to_vec),
                value: record.value().map(<[u8]>::to_vec),
                horizon: batch.delete_horizon(),
            });
        }
    }
    assert!(all.is_sorted_by(|a, b| a.offset < b.offset));
    all
}

/// What a consumer that reads the whole log takes for the state of the keys.
fn state(records: &[Seen]) -> BTreeMap<&[u8], &[u8]> {
    let mut state = BTreeMap::new();
    for record in records {
        match (record.key.as_deref(), record.value.as_deref()) {
            (None, _) => {}
            (Some(key), Some(value)) => {
                state.insert(key, value);
            }
            (Some(key), None) => {
                state.remove(key);
            }
        }
    }
    state
}

/// The records of `before` that stay, by the rules and without a map of hashes.
fn expected(before: &[Seen], map: &KeyMap, now_ms: i64) -> Vec<(i64, i64)> {
    let (from, end) = (map.from_offset(), map.end_offset());
    let mut last = BTreeMap::new();
    for record in before.iter().filter(|record| (from..end).contains(&record.offset)) {
        last.insert(&record.key, record.offset);
    }
    before
        .iter()
        .filter(|record| {
            let is_last = last.get(&record.key).is_none_or(|last| record.offset >= *last);
            let is_expired =
                record.value.is_none() && record.horizon.is_some_and(|at| now_ms >= at);
            record.offset >= end || record.key.is_some() && is_last && !is_expired
        })
        .map(|record| (record.offset, record.timestamp))
        .collect()
}

struct Log {
    batches: Vec<Bytes>,
    end_offset: i64,
    dirty_offset: i64,
    now_ms: i64,
    /// Last offset of each producer.
    producers: BTreeMap<i64, i64>,
}

impl Log {
    fn append(&mut self, append: &Append) {
        let samples: Vec<Sample> = append
            .records
            .iter()
            .map(|(key, value, late_ms)| Sample {
                timestamp: self.now_ms + i64::from(*late_ms),
                key: key.map(|key| vec![key; usize::from(key)]),
                value: value.map(|value| vec![value; 5]),
                headers: vec![(b"h".to_vec(), value.map(|value| vec![value]))],
            })
            .collect();
        let timestamp_type = match append.is_log_append_time {
            true => TimestampType::LogAppendTime,
            false => TimestampType::CreateTime,
        };
        let options = BatchOptions {
            base_offset: self.end_offset + append.gap,
            partition_leader_epoch: 4,
            attributes: Attributes::default().with_timestamp_type(timestamp_type),
            max_timestamp: append.is_log_append_time.then_some(self.now_ms),
            producer: append.producer_id.map(|id| Producer { id, epoch: 1, base_sequence: 9 }),
            ..Default::default()
        };
        let bytes = build(options, &samples, append.codec);
        self.end_offset = view(&bytes).next_offset();
        if let Some(id) = append.producer_id {
            self.producers.insert(id, self.end_offset - 1);
        }
        self.batches.push(bytes);
    }

    /// The log as one round of cleaning leaves it. Checks each batch that stays against its header.
    fn cleaned(&self, cleaner: &mut Cleaner, map: &KeyMap, end: i64) -> Vec<Bytes> {
        let mut cleaned = Vec::new();
        for bytes in &self.batches {
            let batch = view(bytes);
            let is_last = self
                .producers
                .get(&batch.producer_id())
                .is_some_and(|at| *at == batch.last_offset());
            match cleaner.clean_batch(&batch, map, is_last).unwrap() {
                Cleaned::Unchanged => cleaned.push(bytes.clone()),
                Cleaned::Removed => assert!(!is_last && batch.next_offset() != end),
                Cleaned::Rewritten(rewritten) => {
                    check_place(&batch, rewritten);
                    let attributes = BatchView::parse(rewritten).unwrap().attributes();
                    let has_horizon = attributes.has_delete_horizon();
                    assert_eq!(batch.attributes().with_delete_horizon(has_horizon), attributes);
                    cleaned.push(rewritten.to_vec());
                }
                Cleaned::Emptied(emptied) => {
                    check_place(&batch, emptied);
                    assert!(is_last || batch.next_offset() == end);
                    assert_eq!(BatchView::parse(emptied).unwrap().records_count(), 0);
                    cleaned.push(emptied.to_vec());
                }
            }
        }
        cleaned
    }
}

fn check_place(before: &BatchView<'_>, after: &[u8]) {
    assert_ne!(before.bytes(), after, "it is unchanged");
    let after = BatchView::parse(after).unwrap();
    let place = |batch: &BatchView<'_>| {
        let options = BatchOptions::of(batch);
        let kept = (options.base_offset, options.last_offset_delta, options.partition_leader_epoch);
        (kept, options.producer, batch.timestamp_type(), batch.is_transactional())
    };
    assert_eq!(place(before), place(&after));
}

fn run(rounds: &[Round]) {
    let mut log = Log {
        batches: Vec::new(),
        end_offset: 0,
        dirty_offset: 0,
        now_ms: START_MS,
        producers: BTreeMap::new(),
    };
    for round in rounds {
        log.now_ms += round.elapsed_ms;
        round.appends.iter().for_each(|append| log.append(append));
        let end = match log.batches.last() {
            Some(last) if !round.is_whole => view(last).base_offset().max(log.dirty_offset),
            _ => log.end_offset,
        };
        let policy = CleanPolicy {
            now_ms: log.now_ms,
            delete_retention_ms: DELETE_RETENTION_MS,
            first_uncleanable_offset: end,
        };
        let mut cleaner = Cleaner::new(BYTES_MAX, policy);
        let mut map = KeyMap::new(24 * round.map_slots, 11);
        map.start(log.dirty_offset, end);
        let dirty = log.batches.iter().map(view).filter(|batch| batch.next_offset() <= end);
        for batch in dirty {
            if cleaner.map_batch(&batch, &mut map).unwrap() == Mapped::Full {
                break;
            }
        }
        assert!(map.end_offset() >= log.dirty_offset && map.end_offset() <= end);

        let before = seen(&log.batches);
        let batches = log.cleaned(&mut cleaner, &map, end);
        let after = seen(&batches);
        let left: Vec<(i64, i64)> =
            after.iter().map(|seen| (seen.offset, seen.timestamp)).collect();
        assert_eq!(left, expected(&before, &map, log.now_ms));
        assert_eq!(state(&after), state(&before));
        for record in after.iter().filter(|record| record.value.is_none()) {
            let is_new = record.offset >= map.end_offset();
            assert!(is_new || record.horizon.is_some_and(|horizon| horizon > log.now_ms));
        }

        log.batches = batches;
        assert_eq!(log.cleaned(&mut cleaner, &map, end), log.batches, "a second time");
        log.dirty_offset = map.end_offset();
    }
}

proptest! {
    #[test]
    fn every_round_leaves_what_the_rules_leave_and_the_state_of_all_keys(rounds in rounds()) {
        run(&rounds);
    }
}
