//! Where the records of each partition stand in a message.
//!
//! Only lengths are read, so that the bytes around the records can be copied as they came.

use std::ops::Range;

use moldau_protocol::messages::{FetchResponse, ProduceRequest};
use moldau_protocol::{ApiKey, DecodeError, Message, Reader, Uuid};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};

/// The records of one partition, where there are any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place<'f> {
    pub(crate) topic: Topic<'f>,
    pub(crate) partition: i32,
    /// Which topic and partition of the message this is, each from 0.
    pub(crate) ordinals: (usize, usize),
    /// Where in the body the length of the records stands.
    pub(crate) length_at: usize,
    /// Where in the body the records stand.
    pub(crate) records: Range<usize>,
}

/// What a message calls a topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Topic<'f> {
    Name(&'f str),
    Id(Uuid),
}

/// The records of a Produce request, its structure checked.
pub(crate) fn of_produce(request: &RequestFrame) -> Result<Vec<Place<'_>>, FilterError> {
    let version = request.api_version();
    let mut walk = Walk::new(request.body(), version >= ProduceRequest::FLEXIBLE_FROM);
    walk.reader.str(walk.flexible, true)?;
    walk.reader.take(ACKS_AND_TIMEOUT_BYTES, "acks and timeout")?;
    walk.topics(version >= PRODUCE_IDS_SINCE, |walk, topic, ordinals| {
        let partition = walk.reader.i32()?;
        walk.records(topic, partition, ordinals)
    })?;
    walk.end_struct()?;
    Ok(walk.places)
}

/// The records of a Fetch answer, its structure checked.
pub(crate) fn of_fetch(response: &ResponseFrame) -> Result<Vec<Place<'_>>, FilterError> {
    let version = response.api_version();
    let mut walk = Walk::new(response.body(), version >= FetchResponse::FLEXIBLE_FROM);
    walk.reader.i32()?;
    if version >= 7 {
        walk.reader.take(ERROR_AND_SESSION_BYTES, "error and session")?;
    }
    walk.topics(version >= FETCH_IDS_SINCE, |walk, topic, ordinals| {
        let partition = walk.reader.i32()?;
        walk.reader.take(if version >= 5 { 26 } else { 18 }, "error and offsets")?;
        let aborted = walk.reader.count(walk.flexible, true, ABORTED_BYTES)?.unwrap_or_default();
        for _ in 0..aborted {
            walk.reader.take(ABORTED_BYTES, "an aborted transaction")?;
            walk.end_struct()?;
        }
        if version >= 11 {
            walk.reader.i32()?;
        }
        walk.records(topic, partition, ordinals)
    })?;
    walk.end_struct()?;
    Ok(walk.places)
}

/// The records of a ShareFetch answer, its structure checked.
pub(crate) fn of_share_fetch(response: &ResponseFrame) -> Result<Vec<Place<'_>>, FilterError> {
    let mut walk = Walk::new(response.body(), true);
    walk.reader.take(THROTTLE_AND_ERROR_BYTES, "throttle time and error")?;
    walk.reader.str(true, true)?;
    walk.reader.i32()?;
    walk.topics(true, |walk, topic, ordinals| {
        let partition = walk.reader.i32()?;
        for _ in 0..2 {
            walk.reader.i16()?;
            walk.reader.str(true, true)?;
        }
        walk.reader.take(LEADER_BYTES, "a leader")?;
        walk.end_struct()?;
        walk.records_before(topic, partition, ordinals, |walk| {
            let acquired = walk.reader.count(true, false, ACQUIRED_BYTES)?.unwrap_or_default();
            for _ in 0..acquired {
                walk.reader.take(ACQUIRED_BYTES, "acquired records")?;
                walk.end_struct()?;
            }
            Ok(())
        })
    })?;
    // Endpoints follow. They hold no records; decoding the message checks them.
    Ok(walk.places)
}

/// The records of an answer of either API.
pub(crate) fn of_answer(response: &ResponseFrame) -> Result<Vec<Place<'_>>, FilterError> {
    match response.api_key() {
        ApiKey::Fetch => of_fetch(response),
        ApiKey::ShareFetch => of_share_fetch(response),
        _ => Ok(Vec::new()),
    }
}

/// The topics that a Produce request calls by id.
pub(crate) fn produce_topic_ids(request: &RequestFrame) -> Result<Vec<Uuid>, FilterError> {
    if request.api_version() < PRODUCE_IDS_SINCE {
        return Ok(Vec::new());
    }
    let ids = of_produce(request)?.into_iter().filter_map(|place| match place.topic {
        Topic::Id(id) => Some(id),
        Topic::Name(_) => None,
    });
    let mut ids: Vec<Uuid> = ids.collect();
    ids.dedup();
    Ok(ids)
}

/// A body that is being read.
struct Walk<'f> {
    reader: Reader<'f>,
    flexible: bool,
    places: Vec<Place<'f>>,
}

impl<'f> Walk<'f> {
    fn new(body: &'f [u8], flexible: bool) -> Self {
        Self { reader: Reader::new(body), flexible, places: Vec::new() }
    }

    fn topics(
        &mut self,
        by_id: bool,
        mut partition: impl FnMut(&mut Self, Topic<'f>, (usize, usize)) -> Result<(), FilterError>,
    ) -> Result<(), FilterError> {
        let topics = self.reader.count(self.flexible, false, TOPIC_BYTES_MIN)?;
        for topic_at in 0..topics.unwrap_or_default() {
            let topic = match by_id {
                true => Topic::Id(self.reader.uuid()?),
                false => Topic::Name(self.reader.str(self.flexible, false)?.unwrap_or_default()),
            };
            let partitions = self.reader.count(self.flexible, false, PARTITION_BYTES_MIN)?;
            for partition_at in 0..partitions.unwrap_or_default() {
                partition(self, topic, (topic_at, partition_at))?;
            }
            self.end_struct()?;
        }
        Ok(())
    }

    /// Reads the records, which end a partition but for tagged fields.
    fn records(
        &mut self,
        topic: Topic<'f>,
        partition: i32,
        ordinals: (usize, usize),
    ) -> Result<(), FilterError> {
        self.records_before(topic, partition, ordinals, |_| Ok(()))
    }

    /// Reads the records and what `rest` reads behind them.
    fn records_before(
        &mut self,
        topic: Topic<'f>,
        partition: i32,
        ordinals: (usize, usize),
        rest: impl FnOnce(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), FilterError> {
        let length_at = self.reader.position();
        let records = self.reader.slice(self.flexible, true)?.unwrap_or_default();
        let end = self.reader.position();
        if !records.is_empty() {
            if self.places.len() >= PLACES_MAX {
                return Err("a message has records for too many partitions".into());
            }
            let records = end - records.len()..end;
            self.places.push(Place { topic, partition, ordinals, length_at, records });
        }
        rest(self)?;
        Ok(self.end_struct()?)
    }

    fn end_struct(&mut self) -> Result<(), DecodeError> {
        if self.flexible {
            self.reader.skip_tagged_fields()?;
        }
        Ok(())
    }
}

/// The first versions that call topics by id (KIP-516).
const PRODUCE_IDS_SINCE: i16 = 13;
const FETCH_IDS_SINCE: i16 = 13;

const ACKS_AND_TIMEOUT_BYTES: usize = 6;
const ERROR_AND_SESSION_BYTES: usize = 6;
const THROTTLE_AND_ERROR_BYTES: usize = 6;
const ABORTED_BYTES: usize = 16;
const LEADER_BYTES: usize = 8;
const ACQUIRED_BYTES: usize = 18;

/// Partitions with records in one message: far more than a client asks one broker for, and what
/// is noted of them is larger than the fewest bytes that they take.
const PLACES_MAX: usize = 100_000;

/// Fewest bytes of a topic, a name of no letter and no partition; what bounds how often it is
/// looked for one.
const TOPIC_BYTES_MIN: usize = 2;
/// Fewest bytes of a partition: its index and the length of its records.
const PARTITION_BYTES_MIN: usize = 5;
