//! What must hold of logs and topics: plain lists in memory.

use std::collections::{BTreeMap, HashMap};

use moldau_records::Producer;
use moldau_storage::{Compaction, Lsn, TopicId};

/// A record as it was appended, or as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
}

/// A batch as it was appended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Batch {
    pub(crate) base: i64,
    pub(crate) size: usize,
    pub(crate) producer: Option<Producer>,
}

/// An attempt to clean a log.
#[derive(Debug, Clone, Copy)]
struct Cleaning {
    now_ms: i64,
    /// Records from here on were not touched.
    end: i64,
}

/// What must hold of one log.
#[derive(Debug, Default)]
pub(crate) struct LogModel {
    /// Every record by offset.
    pub(crate) records: Vec<Record>,
    /// Offsets that were once seen to be cleaned away, which they stay.
    gone: Vec<bool>,
    /// Offsets below this are acknowledged.
    pub(crate) acknowledged: usize,
    /// Appends that wait for the flush: position and end offset.
    flying: Vec<(Lsn, usize)>,
    pub(crate) batches: Vec<Batch>,
    /// Log start offset: acknowledged, and as last asked for.
    pub(crate) start: (i64, i64),
    starts_flying: Vec<(Lsn, i64)>,
    cleanings: Vec<Cleaning>,
    /// Bytes of all batches as they were sent.
    pub(crate) bytes: u64,
}

impl LogModel {
    pub(crate) fn end(&self) -> i64 {
        self.records.len() as i64
    }

    pub(crate) fn append(&mut self, records: Vec<Record>, producer: Option<Producer>) {
        let (base, size) = (self.end(), records.len());
        self.batches.push(Batch { base, size, producer });
        self.records.extend(records);
        self.gone.resize(self.records.len(), false);
    }

    pub(crate) fn flies(&mut self, lsn: Lsn) {
        self.flying.push((lsn, self.records.len()));
    }

    pub(crate) fn trimmed(&mut self, start_offset: i64, lsn: Lsn) {
        assert!(start_offset >= self.start.1, "a log start never goes back");
        self.start.1 = start_offset;
        self.starts_flying.push((lsn, start_offset));
    }

    pub(crate) fn cleaned(&mut self, now_ms: i64, end: i64) {
        self.cleanings.push(Cleaning { now_ms, end });
    }

    /// A cleaning that was begun has touched nothing that was not durable at its end.
    pub(crate) fn cleaning_ended(&mut self) {
        let end = self.acknowledged as i64;
        for cleaning in &mut self.cleanings {
            cleaning.end = cleaning.end.min(end);
        }
    }

    pub(crate) fn acknowledge(&mut self, durable: Lsn) {
        for (_, end) in self.flying.extract_if(.., |(lsn, _)| *lsn <= durable) {
            self.acknowledged = self.acknowledged.max(end);
        }
        for (_, start) in self.starts_flying.extract_if(.., |(lsn, _)| *lsn <= durable) {
            self.start.0 = self.start.0.max(start);
        }
    }

    /// The last batches of a producer in its latest epoch, latest first.
    pub(crate) fn batches_of(&self, id: i64) -> impl Iterator<Item = (Batch, Producer)> {
        let of_producer = move |batch: &Batch| {
            batch.producer.filter(|producer| producer.id == id).map(|producer| (*batch, producer))
        };
        let mut batches = self.batches.iter().rev().filter_map(of_producer).peekable();
        let epoch = batches.peek().map(|(_, producer)| producer.epoch);
        batches.take_while(move |(_, producer)| Some(producer.epoch) == epoch)
    }

    /// What the producer must send next.
    pub(crate) fn next_of(&self, id: i64) -> Producer {
        let last = self.batches_of(id).next();
        last.map_or(Producer { id, epoch: 0, base_sequence: 0 }, |(batch, producer)| Producer {
            base_sequence: producer.base_sequence + batch.size as i32,
            ..producer
        })
    }

    /// After a restart the log is what was found, which must lie within what may be.
    pub(crate) fn recover(&mut self, start: i64, end: i64) {
        let acknowledged = self.acknowledged as i64;
        assert!(end >= acknowledged, "{end} of {acknowledged} acknowledged offsets are left");
        assert!(end <= self.end(), "there are {} offsets, found {end}", self.end());
        let (low, high) = self.start;
        assert!(low <= start && start <= high, "{start} is not between {low} and {high}");
        self.records.truncate(end as usize);
        self.gone.truncate(end as usize);
        self.acknowledged = end as usize;
        self.flying.clear();
        self.starts_flying.clear();
        self.start = (start, start);
        self.batches.retain(|batch| batch.base < end);
        let is_whole = |batch: &Batch| batch.base + batch.size as i64 == end;
        assert!(self.batches.last().is_none_or(is_whole), "a batch is whole or absent");
    }

    /// Compares some records that were read with what was appended.
    pub(crate) fn check_some(&self, found: &[(i64, Record)]) {
        for (offset, record) in found {
            let expected = self.records.get(*offset as usize);
            assert_eq!(Some(record), expected, "offset {offset} is another record");
            assert!(!self.gone[*offset as usize], "offset {offset} was cleaned away");
        }
        assert!(found.is_sorted_by(|(one, _), (next, _)| one < next), "offsets ascend");
    }

    /// Compares all records from `from` to below `to`.
    pub(crate) fn check_all(&mut self, found: &[(i64, Record)], from: i64, to: i64) {
        self.check_some(found);
        let is_within = |(offset, _): &(i64, Record)| (from..to).contains(offset);
        assert!(found.iter().all(is_within), "a record outside of {from} to {to}");
        let mut found = found.iter().map(|(offset, _)| *offset).peekable();
        let mut missing = Vec::new();
        for offset in from..to {
            if found.next_if_eq(&offset).is_none() {
                missing.push(offset);
            }
        }
        if missing.is_empty() {
            return;
        }
        let may_be_gone = self.may_be_gone();
        for offset in &missing {
            let record = &self.records[*offset as usize];
            assert!(may_be_gone(*offset), "offset {offset} is lost: {record:?}");
        }
        drop(may_be_gone);
        missing.into_iter().for_each(|offset| self.gone[offset as usize] = true);
    }

    /// Tells of an offset whether the cleanings so far may have taken its record away.
    pub(crate) fn may_be_gone(&self) -> impl Fn(i64) -> bool {
        let end = self.cleanings.iter().map(|cleaning| cleaning.end).max().unwrap_or(0);
        let cleaned = self.records.iter().take(end as usize).enumerate();
        let last: HashMap<&[u8], usize> =
            cleaned.filter_map(|(offset, record)| Some((record.key.as_deref()?, offset))).collect();
        move |offset| {
            let record = &self.records[offset as usize];
            let is_superseded = match record.key.as_deref() {
                Some(key) => last.get(key).is_some_and(|last| *last as i64 > offset),
                None => offset < end,
            };
            is_superseded || record.value.is_none() && self.expires(offset)
        }
    }

    /// Whether a tombstone was cleaned twice, the second time after its horizon.
    fn expires(&self, offset: i64) -> bool {
        let mut over = self.cleanings.iter().filter(|cleaning| cleaning.end > offset);
        let first = over.next();
        first.is_some_and(|first| {
            over.any(|later| later.now_ms >= first.now_ms + DELETE_RETENTION_MS)
        })
    }
}

/// How the logs of a topic are kept small.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cleanup {
    pub(crate) compaction: Option<Compaction>,
    pub(crate) retention_ms: Option<i64>,
    pub(crate) retention_bytes: Option<u64>,
}

/// A topic and whether it is there.
#[derive(Debug)]
pub(crate) struct Topic {
    pub(crate) id: TopicId,
    pub(crate) cleanup: Cleanup,
    pub(crate) logs: Vec<LogModel>,
    /// The deletion that was asked for, if one was; without a position it has failed, and the topic
    /// may be there again after a restart.
    pub(crate) deletion: Option<Option<Lsn>>,
}

/// All that storage was given.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) topics: BTreeMap<u32, Topic>,
    /// Topics whose deletion is acknowledged.
    pub(crate) gone: Vec<TopicId>,
    pub(crate) topics_made: u32,
    pub(crate) metadata: Vec<Vec<u8>>,
    pub(crate) metadata_acknowledged: usize,
    pub(crate) metadata_flying: Vec<(Lsn, usize)>,
    pub(crate) entries: u32,
}

impl Model {
    pub(crate) fn create(&mut self, partitions: usize, cleanup: Cleanup) {
        self.topics_made += 1;
        let mut id = [0; 16];
        id[..4].copy_from_slice(&self.topics_made.to_be_bytes());
        id[15] = self.topics_made as u8;
        let mut logs = Vec::new();
        logs.resize_with(partitions, LogModel::default);
        let topic = Topic { id: TopicId(id), cleanup, logs, deletion: None };
        self.topics.insert(self.topics_made, topic);
    }

    pub(crate) fn acknowledge(&mut self, durable: Lsn) {
        for topic in self.topics.values_mut() {
            for log in &mut topic.logs {
                log.acknowledge(durable);
            }
        }
        for (lsn, end) in &self.metadata_flying {
            if *lsn <= durable {
                self.metadata_acknowledged = self.metadata_acknowledged.max(*end);
            }
        }
        self.metadata_flying.retain(|(lsn, _)| *lsn > durable);
        let is_deleted = |topic: &mut Topic| {
            topic.deletion.is_some_and(|lsn| lsn.is_some_and(|lsn| lsn <= durable))
        };
        for (_, topic) in self.topics.extract_if(.., |_, topic| is_deleted(topic)) {
            self.gone.push(topic.id);
        }
    }

    /// After a restart the metadata is what was found.
    pub(crate) fn recover_metadata(&mut self, found: &[Vec<u8>]) {
        let acknowledged = self.metadata_acknowledged;
        assert!(found.len() >= acknowledged, "{} of {acknowledged} entries", found.len());
        assert!(self.metadata.starts_with(found), "{found:?}");
        self.metadata.truncate(found.len());
        self.metadata_acknowledged = found.len();
        self.metadata_flying.clear();
    }
}

/// `delete.retention.ms` of all compacted topics.
pub(crate) const DELETE_RETENTION_MS: i64 = 2_000;
