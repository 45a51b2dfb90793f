//! Which records of a Fetch answer are damaged, and how.

use std::collections::HashMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};
use moldau_protocol::fetch::FetchResponseView;
use moldau_protocol::messages::FetchResponse;
use moldau_protocol::{ApiKey, DecodeError, EncodeError, Message, frame};
use moldau_records::{BATCH_HEADER_LEN, BatchView, crc32c, iter_batches, varint};

use crate::ledger::{Audit, Fault};

/// Fewest records of a batch that is damaged: never the first nor the last two of it, so that a
/// fault and its neighbours lie in one batch.
const BATCH_RECORDS_MIN: u64 = 5;

/// The places of a batch's fields that follow from its records.
const LENGTH: Range<usize> = 8..12;
const CRC: Range<usize> = 17..21;
const COUNT: Range<usize> = 57..61;

/// Bytes before those that the length counts.
const LENGTH_OVERHEAD: usize = 12;

/// Faults of each kind, and what a ledger that finds everything says of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Injected {
    /// In the order of [`Fault::ALL`].
    pub(super) counts: [u64; 5],
    /// The faults alone; the totals are those of the stream.
    pub(super) expected: Audit,
    /// Records that passed, each once.
    pub(super) records: u64,
}

/// Chooses faults and makes them, at most one in each answer.
pub(super) struct Damage {
    random: fastrand::Rng,
    distance: u64,
    /// Records to pass before the next fault.
    left: u64,
    /// The offset up to which each partition has passed, so that what is fetched twice counts and
    /// suffers once.
    passed: HashMap<(usize, i32), i64>,
    injected: Injected,
}

/// Why an answer could not be damaged.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error(transparent)]
    Records(#[from] moldau_records::Error),
}

/// A batch that passes for the first time.
#[derive(Clone)]
struct Fresh {
    topic: usize,
    partition: usize,
    /// Its place among the partition's records.
    place: Range<usize>,
    count: u64,
}

impl Damage {
    pub(super) fn new(seed: u64, distance: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let left = random.u64(1..=2 * distance);
        let passed = HashMap::new();
        Self { random, distance, left, passed, injected: Injected::default() }
    }

    pub(super) fn injected(&self) -> Injected {
        self.injected
    }

    /// The frame to send in place of an answer (header included, length not), if it is damaged.
    pub(super) fn apply(
        &mut self,
        answer: &[u8],
        version: i16,
    ) -> Result<Option<BytesMut>, Refusal> {
        let (correlation, body) = frame::parse_response(answer, ApiKey::Fetch, version)?;
        let fresh = self.fresh_batches(body, version)?;
        let count: u64 = fresh.iter().map(|batch| batch.count).sum();
        self.injected.records += count;
        let Some((chosen, record)) = self.choose(&fresh) else { return Ok(None) };
        let mut response = FetchResponse::from_bytes(&Bytes::copy_from_slice(body), version)?;
        self.damage(&mut response, &fresh, chosen, record)?;
        let mut out = BytesMut::new();
        frame::encode_response(&mut out, ApiKey::Fetch, version, correlation, &response)?;
        Ok(Some(out))
    }

    fn fresh_batches(&mut self, body: &[u8], version: i16) -> Result<Vec<Fresh>, Refusal> {
        let view = FetchResponseView::parse(body, version)?;
        let mut fresh = Vec::new();
        for (topic, of_topic) in view.topics().enumerate() {
            for (partition, of_partition) in of_topic?.partitions().enumerate() {
                let of_partition = of_partition?;
                let passed = self.passed.entry((topic, of_partition.index)).or_default();
                let mut at = 0;
                for batch in iter_batches(of_partition.records.unwrap_or_default()) {
                    // The last one may be cut off, and comes again.
                    let Ok(batch) = batch else { break };
                    let place = at..at + batch.bytes().len();
                    at = place.end;
                    if batch.base_offset() >= *passed {
                        *passed = batch.next_offset();
                        let count = u64::try_from(batch.records_count()).unwrap_or(0);
                        fresh.push(Fresh { topic, partition, place, count });
                    }
                }
            }
        }
        Ok(fresh)
    }

    /// Which batch and which record of it the next fault falls on, if any.
    fn choose(&mut self, fresh: &[Fresh]) -> Option<(usize, u64)> {
        let mut chosen = None;
        for (index, batch) in fresh.iter().enumerate() {
            if chosen.is_none() && self.left < batch.count && batch.count >= BATCH_RECORDS_MIN {
                chosen = Some((index, self.left.clamp(1, batch.count - 3)));
                self.left = self.random.u64(1..=2 * self.distance) + batch.count;
            }
            self.left = self.left.saturating_sub(batch.count);
        }
        chosen
    }

    fn damage(
        &mut self,
        response: &mut FetchResponse,
        fresh: &[Fresh],
        chosen: usize,
        record: u64,
    ) -> Result<(), Refusal> {
        let Some(batch) = fresh.get(chosen) else { return Ok(()) };
        let elsewhere = |other: &&Fresh| {
            (other.topic, other.partition) != (batch.topic, batch.partition)
                && other.count >= BATCH_RECORDS_MIN
        };
        let other = fresh.iter().find(elsewhere);
        let mut fault = self.random.choice(Fault::ALL).unwrap_or(Fault::Loss);
        if fault == Fault::Misroute && other.is_none() {
            fault = Fault::Loss;
        }
        let mut bytes = taken(response, batch);
        let record = usize::try_from(record).unwrap_or(usize::MAX);
        let is_made = match (fault, other) {
            (Fault::Misroute, Some(other)) => {
                let mut others = taken(response, other);
                let is_made = misroute(&mut bytes, &mut others, record)?;
                put(response, other, others);
                is_made
            }
            _ => self.change(fault, &mut bytes, record)?,
        };
        put(response, batch, bytes);
        if is_made {
            fault.note(&mut self.injected.expected);
            let kinds = Fault::ALL.iter().zip(&mut self.injected.counts);
            kinds.filter(|(kind, _)| **kind == fault).for_each(|(_, count)| *count += 1);
        }
        Ok(())
    }

    /// Makes a fault of one batch alone; whether it could be made.
    fn change(
        &mut self,
        fault: Fault,
        bytes: &mut Vec<u8>,
        record: usize,
    ) -> Result<bool, Refusal> {
        let places = places(bytes)?;
        let (Some(mine), Some(next)) = (places.get(record), places.get(record + 1)) else {
            return Ok(false);
        };
        match fault {
            Fault::Loss | Fault::Misroute => {
                bytes.drain(mine.record.clone());
                set_count(bytes, places.len() - 1);
            }
            Fault::Duplicate => {
                let copy = bytes.get(mine.record.clone()).unwrap_or_default().to_vec();
                bytes.splice(mine.record.end..mine.record.end, copy);
                set_count(bytes, places.len() + 1);
            }
            Fault::Swap => {
                let (head, tail) = bytes.split_at_mut(next.value.start);
                let values = (head.get_mut(mine.value.clone()), tail.get_mut(..next.value.len()));
                return Ok(exchange(values));
            }
            Fault::BitFlip => {
                let bit = self.random.usize(0..8 * mine.value.len().max(1));
                let Some(byte) = bytes.get_mut(mine.value.start + bit / 8) else {
                    return Ok(false);
                };
                *byte ^= 1 << (bit % 8);
            }
        }
        Ok(true)
    }
}

/// Exchanges the value of a record with that of one in a batch of another partition.
fn misroute(bytes: &mut [u8], others: &mut [u8], record: usize) -> Result<bool, Refusal> {
    let (mine, theirs) = (places(bytes)?, places(others)?);
    let (Some(mine), Some(theirs)) = (mine.get(record), theirs.get(1)) else { return Ok(false) };
    let values = (bytes.get_mut(mine.value.clone()), others.get_mut(theirs.value.clone()));
    Ok(exchange(values))
}

/// Exchanges two values of the same size; whether they are.
fn exchange(values: (Option<&mut [u8]>, Option<&mut [u8]>)) -> bool {
    match values {
        (Some(a), Some(b)) if a.len() == b.len() => {
            a.swap_with_slice(b);
            true
        }
        _ => false,
    }
}

/// Where a record and its value lie in their batch.
struct Place {
    record: Range<usize>,
    value: Range<usize>,
}

fn places(batch: &[u8]) -> Result<Vec<Place>, Refusal> {
    let view = BatchView::parse(batch)?;
    let mut at = BATCH_HEADER_LEN;
    let mut places = Vec::new();
    for record in view.records_of_payload(view.payload())?.raw() {
        let record = record?;
        let end = at + record.bytes().len();
        let headers_count = i32::try_from(record.headers_count()).unwrap_or(i32::MAX);
        let value_end = end - record.headers().len() - varint::len_i32(headers_count);
        let value_len = record.value().map_or(0, <[u8]>::len);
        places.push(Place { record: at..end, value: value_end - value_len..value_end });
        at = end;
    }
    Ok(places)
}

fn set_count(batch: &mut [u8], count: usize) {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    if let Some(field) = batch.get_mut(COUNT) {
        field.copy_from_slice(&count.to_be_bytes());
    }
}

fn records<'a>(response: &'a mut FetchResponse, batch: &Fresh) -> Option<&'a mut Bytes> {
    let topic = response.responses.get_mut(batch.topic)?;
    topic.partitions.get_mut(batch.partition)?.records.as_mut()
}

fn taken(response: &mut FetchResponse, batch: &Fresh) -> Vec<u8> {
    let bytes = records(response, batch).and_then(|records| records.get(batch.place.clone()));
    bytes.unwrap_or_default().to_vec()
}

/// Puts a batch back in its place with its length and checksum set right.
fn put(response: &mut FetchResponse, batch: &Fresh, mut bytes: Vec<u8>) {
    let length = i32::try_from(bytes.len().saturating_sub(LENGTH_OVERHEAD)).unwrap_or(i32::MAX);
    if let Some(field) = bytes.get_mut(LENGTH) {
        field.copy_from_slice(&length.to_be_bytes());
    }
    let crc = crc32c(bytes.get(CRC.end..).unwrap_or_default());
    if let Some(field) = bytes.get_mut(CRC) {
        field.copy_from_slice(&crc.to_be_bytes());
    }
    if let Some(records) = records(response, batch) {
        let (before, after) =
            (records.slice(..batch.place.start), records.slice(batch.place.end..));
        *records = [before.as_ref(), &bytes, &after].concat().into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{DeliveryLedger, SentLedger, audit};
    use crate::payload::{Account, Filler, Header, PayloadWriter};
    use moldau_protocol::Uuid;
    use moldau_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor, Decompressor};

    const VERSION: i16 = 17;
    const PARTITIONS: u16 = 2;
    const BATCH_RECORDS: u64 = 40;
    const ANSWERS: u64 = 60;

    /// The batch of a partition in answer number `answer`, whose records the ledger knows of.
    fn batch(sent: &mut SentLedger, writer: &PayloadWriter, partition: u16, answer: u64) -> Bytes {
        let base = answer * BATCH_RECORDS;
        let base_offset = i64::try_from(base).unwrap();
        let mut builder = BatchBuilder::new(BatchOptions { base_offset, ..Default::default() });
        for sequence in base..base + BATCH_RECORDS {
            sent.sent(partition);
            let header = Header { run: 1, producer: 0, partition, sequence, intended_ns: 0 };
            let mut value = Vec::new();
            writer.write(header, &mut value);
            builder.append(7, None, Some(&value), []).unwrap();
        }
        sent.acked(partition, base, BATCH_RECORDS, base);
        builder.finish_bytes(Compression::None, &mut Compressor::default()).unwrap()
    }

    fn answer(batches: Vec<Bytes>) -> Bytes {
        let partition = |(index, records)| PartitionData {
            partition_index: index,
            records: Some(records),
            ..Default::default()
        };
        let topic = FetchableTopicResponse {
            topic_id: Uuid::from_bytes([3; 16]),
            partitions: (0..).zip(batches).map(partition).collect(),
            ..Default::default()
        };
        let response = FetchResponse { responses: vec![topic], ..Default::default() };
        let mut out = BytesMut::new();
        frame::encode_response(&mut out, ApiKey::Fetch, VERSION, 9, &response).unwrap();
        out.freeze()
    }

    fn observe(delivered: &mut DeliveryLedger, frame: &[u8]) {
        let (correlation, body) =
            frame::parse_response(&frame[4..], ApiKey::Fetch, VERSION).unwrap();
        assert_eq!(correlation, 9);
        let response = FetchResponse::from_bytes(&Bytes::copy_from_slice(body), VERSION).unwrap();
        for partition in &response.responses[0].partitions {
            let index = u16::try_from(partition.partition_index).unwrap();
            for batch in iter_batches(partition.records.as_ref().unwrap()) {
                let batch = batch.unwrap();
                batch.check_crc().unwrap();
                for record in batch.records(&mut Decompressor::default(), 1 << 20).unwrap() {
                    let record = record.unwrap();
                    let offset = u64::try_from(record.offset()).unwrap();
                    delivered.observe(index, offset, record.value().unwrap());
                }
            }
        }
    }

    #[test]
    fn every_fault_that_is_made_is_found_and_named_whatever_the_seed() {
        let writer = PayloadWriter::new(Filler::Random, Account::Clear, 1, 100).unwrap();
        let mut kinds = [0; 5];
        for seed in 0..40 {
            let mut sent = SentLedger::new(0, PARTITIONS);
            let mut delivered = DeliveryLedger::new(1, 1, PARTITIONS);
            let mut damage = Damage::new(seed, 150);
            for number in 0..ANSWERS {
                let batches =
                    (0..PARTITIONS).map(|p| batch(&mut sent, &writer, p, number)).collect();
                let plain = answer(batches);
                let damaged = damage.apply(&plain[4..], VERSION).unwrap();
                observe(&mut delivered, damaged.as_deref().unwrap_or(&plain));
            }
            let found = audit(&[sent], &delivered);
            let Injected { counts, expected, records } = damage.injected();
            let Audit { sent, acked, delivered, .. } = found;
            assert_eq!(found, Audit { sent, acked, delivered, ..expected }, "seed {seed}");
            assert_eq!(records, acked);
            kinds.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        assert!(kinds.iter().all(|count| *count > 20), "{kinds:?}");
    }

    #[test]
    fn a_batch_fetched_twice_is_damaged_at_most_once() {
        let writer = PayloadWriter::new(Filler::Random, Account::Clear, 1, 100).unwrap();
        let mut sent = SentLedger::new(0, 1);
        let plain = answer(vec![batch(&mut sent, &writer, 0, 0)]);
        let mut damage = Damage::new(1, 1);
        assert!(damage.apply(&plain[4..], VERSION).unwrap().is_some());
        assert!(damage.apply(&plain[4..], VERSION).unwrap().is_none());
        assert_eq!(damage.injected().records, BATCH_RECORDS);
    }
}
