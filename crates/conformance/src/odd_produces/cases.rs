//! The odd produces: what is sent to one partition, in order.

use std::io::Write;

use lz4_flex::frame::{BlockMode, BlockSize, FrameEncoder, FrameInfo};

use super::batch::{
    Batch, GZIP, LOG_APPEND_TIME, LZ4, NONE, Record, SNAPPY, ZSTD, bare_snappy, header, pack,
    varint,
};

/// A minute in milliseconds.
const MINUTE: i64 = 60_000;

/// All codecs.
const CODECS: [(&str, i16); 5] =
    [("plain", NONE), ("gzip", GZIP), ("snappy", SNAPPY), ("lz4", LZ4), ("zstd", ZSTD)];

const TRANSACTIONAL: i16 = 0x10;
const CONTROL: i16 = 0x20;

/// Topics, each with its configuration.
pub(super) const TOPICS: [(&str, &[(&str, &str)]); 11] = [
    ("plain", &[]),
    ("stamped", &[("message.timestamp.type", "LogAppendTime")]),
    ("compacted", &[("cleanup.policy", "compact")]),
    ("small", &[("max.message.bytes", "150")]),
    ("recent", &[("message.timestamp.before.max.ms", "3600000")]),
    ("to-uncompressed", &[("compression.type", "uncompressed")]),
    ("to-gzip", &[("compression.type", "gzip"), ("compression.gzip.level", "9")]),
    ("to-snappy", &[("compression.type", "snappy")]),
    ("to-lz4", &[("compression.type", "lz4"), ("compression.lz4.level", "12")]),
    ("to-zstd", &[("compression.type", "zstd"), ("compression.zstd.level", "-5")]),
    (
        "to-zstd-stamped-compacted",
        &[
            ("compression.type", "zstd"),
            ("message.timestamp.type", "LogAppendTime"),
            ("cleanup.policy", "compact"),
        ],
    ),
];

/// What is sent at once.
pub(super) struct Send {
    pub(super) version: i16,
    pub(super) acks: i16,
    pub(super) transactional_id: Option<&'static str>,
    pub(super) records: Option<Vec<u8>>,
    pub(super) target: Target,
}

/// Where records go.
#[derive(Clone, Copy)]
pub(super) enum Target {
    /// To the partition of the case.
    Own,
    /// There, twice in one request.
    OwnTwice,
    /// To a partition that does not exist.
    NoPartition,
    /// To a topic that does not exist.
    NoTopic,
}

/// What is sent to a partition of its own.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) topic: &'static str,
    pub(super) sends: Vec<Send>,
}

/// The newest version without compact fields; it names records at fault.
const VERSION: i16 = 8;

impl Send {
    fn of(records: Vec<u8>) -> Self {
        Self {
            version: VERSION,
            acks: -1,
            transactional_id: None,
            records: Some(records),
            target: Target::Own,
        }
    }
}

/// Collects cases.
struct Cases {
    /// The time of the run, from which timestamps count.
    now: i64,
    all: Vec<Case>,
}

/// All cases of a run at this time.
pub(super) fn all(now: i64) -> Vec<Case> {
    let mut cases = Cases { now, all: Vec::new() };
    cases.formats();
    cases.lengths();
    cases.headers();
    cases.attributes();
    cases.timestamps();
    cases.producers();
    cases.records();
    cases.varints();
    cases.codecs();
    cases.streams();
    cases.topics();
    cases.packed();
    cases.requests();
    cases.all
}

impl Cases {
    /// Two records.
    fn batch(&self) -> Batch {
        Batch::of(self.now, &[Record::at(0), Record::at(1)])
    }

    fn sends(&mut self, topic: &'static str, name: &str, sends: Vec<Send>) {
        self.all.push(Case { name: name.to_owned(), topic, sends });
    }

    fn bytes(&mut self, name: &str, records: Vec<u8>) {
        self.sends("plain", name, vec![Send::of(records)]);
    }

    /// A sound batch with a change.
    fn changed(&mut self, name: &str, change: impl FnOnce(&mut Batch)) {
        self.changed_in("plain", name, change);
    }

    fn changed_in(&mut self, topic: &'static str, name: &str, change: impl FnOnce(&mut Batch)) {
        let mut batch = self.batch();
        change(&mut batch);
        self.sends(topic, name, vec![Send::of(batch.encode())]);
    }

    fn formats(&mut self) {
        self.changed("a sound batch", |_| {});
        for magic in [0, 1, 3, 4, 127, -1] {
            self.changed(&format!("magic {magic}"), |batch| batch.magic = magic);
        }
        for magic in [0, 1] {
            let message = legacy_message(magic, self.now);
            self.bytes(&format!("a message of format {magic}"), message);
        }
        self.changed("a CRC that does not match", |batch| batch.crc = Some(7));
    }

    fn lengths(&mut self) {
        for length in [-1, 0, 13, 14, 48, 49, i32::MAX] {
            self.changed(&format!("length {length}"), |batch| batch.length = Some(length));
        }
        let sound = self.batch().encode();
        let length = i32::try_from(sound.len()).expect("short") - 12;
        self.changed("length one too small", |batch| batch.length = Some(length - 1));
        self.changed("length one too large", |batch| batch.length = Some(length + 1));
        for cut in [0, 5, 12, 16, 17, 40, 61, sound.len() - 1] {
            self.bytes(&format!("cut to {cut} bytes"), sound[..cut].to_vec());
        }
        self.bytes("two batches", [&sound[..], &sound].concat());
        self.bytes("a batch and half of one", [&sound[..], &sound[..40]].concat());
        self.bytes("a batch and a byte", [&sound[..], &[0]].concat());
        self.bytes("a batch and 20 zeros", [&sound[..], &[0; 20]].concat());
        self.changed("a header without records", |batch| batch.payload.clear());
    }

    fn headers(&mut self) {
        for offset in [1, -1, i64::MAX] {
            self.changed(&format!("base offset {offset}"), |batch| batch.base_offset = offset);
        }
        self.changed("a leader epoch", |batch| batch.leader_epoch = 7);
        for (count, delta) in [
            (1, 0),
            (3, 2),
            (0, -1),
            (0, 0),
            (-1, -2),
            (2, 0),
            (2, 2),
            (2, -1),
            (2, i32::MAX),
            (i32::MAX, i32::MAX - 1),
            (i32::MIN, i32::MAX),
        ] {
            let name = format!("count {count} and last offset delta {delta} of two records");
            self.changed(&name, |batch| {
                batch.count = count;
                batch.last_offset_delta = delta;
            });
        }
    }

    fn attributes(&mut self) {
        for (name, bits) in [
            ("codec 5", 5),
            ("codec 6", 6),
            ("codec 7", 7),
            ("LogAppendTime", LOG_APPEND_TIME),
            ("transactional", TRANSACTIONAL),
            ("control", CONTROL),
            ("transactional control", TRANSACTIONAL | CONTROL),
            ("delete horizon", 0x40),
            ("unused bits", 0x0100),
            ("all unused bits", !0x7f),
        ] {
            self.changed(&format!("attributes: {name}"), |batch| batch.attributes = bits);
        }
        for (name, bits) in [("transactional", TRANSACTIONAL), ("control", CONTROL)] {
            self.changed(&format!("attributes: {name}, of a producer"), |batch| {
                batch.attributes = bits;
                batch.producer = (4_242, 0, 0);
            });
        }
        self.changed("attributes: LogAppendTime without a time", |batch| {
            batch.attributes = LOG_APPEND_TIME;
            batch.max_timestamp = -1;
        });
    }

    fn timestamps(&mut self) {
        let now = self.now;
        for (name, max) in
            [("too low", now - 5), ("too high", now + 5), ("absent", -1), ("huge", i64::MAX)]
        {
            self.changed(&format!("max timestamp {name}"), |batch| batch.max_timestamp = max);
            let mut batch = self.batch().packed(LZ4);
            batch.max_timestamp = max;
            self.bytes(&format!("max timestamp {name}, lz4"), batch.encode());
        }
        for (name, base) in [
            ("none", -1),
            ("negative", -7),
            ("0", 0),
            ("least", i64::MIN),
            ("greatest", i64::MAX),
            ("in two hours", now + 120 * MINUTE),
            ("two hours ago", now - 120 * MINUTE),
        ] {
            for topic in ["plain", "recent", "stamped"] {
                self.changed_in(topic, &format!("timestamp {name}, {topic}"), |batch| {
                    batch.base_timestamp = base;
                    batch.max_timestamp = base.wrapping_add(1);
                });
            }
        }
        let mut late = Record::at(1);
        late.timestamp_delta = 120 * MINUTE;
        let records = [Record::at(0), late, Record::at(2)];
        for (name, codec) in CODECS {
            let batch = Batch::of(now, &records).packed(codec);
            self.bytes(&format!("one timestamp in two hours, {name}"), batch.encode());
        }
        self.changed_in("stamped", "LogAppendTime, stamped", |batch| {
            batch.attributes = LOG_APPEND_TIME;
        });
    }

    fn producers(&mut self) {
        for producer in [
            (-1, 3, 4),
            (-2, 0, 0),
            (5, -1, 0),
            (5, -1, -1),
            (5, 0, -1),
            (5, 0, -2),
            (i64::MIN, i16::MIN, i32::MIN),
            (i64::MAX, i16::MAX, i32::MAX),
        ] {
            self.changed(&format!("producer {producer:?}"), |batch| batch.producer = producer);
        }
        let histories: [(&str, &[(i16, i32)]); 9] = [
            ("in order", &[(0, 0), (0, 2), (0, 4)]),
            ("repeated", &[(0, 0), (0, 0)]),
            ("the second again", &[(0, 0), (0, 2), (0, 2), (0, 0)]),
            ("with a gap", &[(0, 0), (0, 3)]),
            ("back", &[(0, 0), (0, 2), (0, 1)]),
            ("from the middle", &[(0, 7), (0, 9)]),
            ("around the end", &[(0, i32::MAX - 1), (0, 0), (0, 2)]),
            ("of a later epoch", &[(0, 0), (1, 0), (0, 2), (1, 2)]),
            ("of a later epoch from the middle", &[(0, 0), (1, 2)]),
        ];
        for (name, history) in histories {
            let sends = history.iter().map(|(epoch, sequence)| {
                let batch = Batch { producer: (77, *epoch, *sequence), ..self.batch() };
                Send::of(batch.encode())
            });
            let sends = sends.collect();
            self.sends("plain", &format!("sequences {name}"), sends);
        }
    }

    fn records(&mut self) {
        let sound = self.batch().payload;
        self.changed("bytes behind the last record", |batch| batch.payload.push(0));
        self.changed("text behind the last record", |batch| batch.payload.extend(b"JUNK"));
        self.changed("records of noise", |batch| batch.payload = vec![0xff; 40]);
        self.changed("records of zeros", |batch| batch.payload = vec![0; 40]);
        let first = Record::at(0).encode();
        let places: [(&str, usize, u8); 9] = [
            ("length 2 less", 0, first[0] - 2),
            ("length 2 more", 0, first[0] + 2),
            ("a negative length", 0, 1),
            ("attributes set", 1, 0xff),
            ("a null key before bytes", 4, 1),
            ("a key beyond the record", 4, 0x7e),
            ("a null value before bytes", 8, 1),
            ("a header too many", first.len() - 1, 2),
            ("a negative count of headers", first.len() - 1, 1),
        ];
        for (name, place, byte) in places {
            self.changed(&format!("a record with {name}"), |batch| {
                batch.payload = sound.clone();
                batch.payload[place] = byte;
            });
        }
        let headers: [(&str, i64, Vec<u8>); 5] = [
            ("one header", 1, header(Some(b"k"), Some(b"v"))),
            ("a null header", 1, header(Some(b""), None)),
            ("a header without a key", 1, header(None, Some(b"v"))),
            ("two headers, one of them counted", 1, header(Some(b"k"), None).repeat(2)),
            ("one header, two of them counted", 2, header(Some(b"k"), None)),
        ];
        for (name, count, bytes) in headers {
            let record = Record { headers: (count, bytes), ..Record::at(0) };
            let batch = Batch::of(self.now, &[record, Record::at(1)]);
            self.bytes(&format!("a record with {name}"), batch.encode());
        }
        for deltas in [[0, 5], [5, 0], [1, 0], [0, 0], [1, 2], [-1, 0], [0, 1 << 31]] {
            for (name, codec) in CODECS {
                let records =
                    deltas.map(|delta| Record { timestamp_delta: 0, ..Record::at(delta) });
                let batch = Batch::of(self.now, &records).packed(codec);
                self.bytes(&format!("offset deltas {deltas:?}, {name}"), batch.encode());
            }
        }
        let nulls = Record { key: None, value: None, ..Record::at(0) };
        self.bytes("a null record", Batch::of(self.now, &[nulls]).encode());
    }

    fn varints(&mut self) {
        let rest = |record: &Record| record.encode().split_off(1);
        let with_length = |length: &[u8]| [length, &rest(&Record::at(0))].concat();
        let mut length = Vec::new();
        varint(&mut length, i64::try_from(rest(&Record::at(0)).len()).expect("short"));
        for padding in [1, 4, 5] {
            let mut padded = vec![length[0] | 0x80];
            padded.extend(std::iter::repeat_n(0x80, padding - 1));
            padded.push(0);
            let payload = with_length(&padded);
            self.changed(&format!("a length padded by {padding} bytes"), |batch| {
                batch.payload = payload;
                (batch.count, batch.last_offset_delta) = (1, 0);
            });
        }
    }

    fn codecs(&mut self) {
        for (name, codec) in CODECS {
            let sound = self.batch().packed(codec);
            self.bytes(&format!("a sound batch, {name}"), sound.encode());
            for count in [1, 3] {
                let batch = Batch { count, last_offset_delta: count - 1, ..sound.clone() };
                self.bytes(&format!("count {count} of two records, {name}"), batch.encode());
            }
            let mut behind = self.batch();
            behind.payload.extend(b"JUNK");
            let behind = behind.packed(codec);
            self.bytes(&format!("text behind the last record, {name}"), behind.encode());
            let noise = Batch { payload: vec![0xff; 40], ..self.batch() }.packed(codec);
            self.bytes(&format!("records of noise, {name}"), noise.encode());
        }
        for (name, codec) in CODECS.into_iter().skip(1) {
            let plain = Batch { attributes: codec, ..self.batch() };
            self.bytes(&format!("plain records as {name}"), plain.encode());
            let sound = self.batch().packed(codec);
            let as_plain = Batch { attributes: 0, ..sound.clone() };
            self.bytes(&format!("{name} as plain records"), as_plain.encode());
            let mut cut = sound.clone();
            cut.payload.truncate(cut.payload.len() - 3);
            self.bytes(&format!("a stream that ends early, {name}"), cut.encode());
            let empty = Batch { payload: Vec::new(), ..sound.clone() };
            self.bytes(&format!("no stream at all, {name}"), empty.encode());
            let mut followed = sound;
            followed.payload.extend(b"JUNK");
            self.bytes(&format!("text behind the stream, {name}"), followed.encode());
        }
    }

    fn streams(&mut self) {
        let records = self.batch().payload;
        let (first, second) = records.split_at(records.len() / 2);
        for (name, codec) in CODECS.into_iter().skip(1) {
            let payload = [pack(codec, first), pack(codec, second)].concat();
            let batch = Batch { payload, attributes: codec, ..self.batch() };
            self.bytes(&format!("two streams, {name}"), batch.encode());
        }
        let bare = Batch { payload: bare_snappy(&records), attributes: SNAPPY, ..self.batch() };
        self.bytes("snappy without a frame", bare.encode());
        let mut checked = self.batch().packed(GZIP);
        let place = checked.payload.len() - 6;
        checked.payload[place] ^= 1;
        self.bytes("gzip with a wrong checksum", checked.encode());
        let mut checked = self.batch().packed(LZ4);
        checked.payload[6] ^= 1;
        self.bytes("lz4 with a wrong header checksum", checked.encode());
        let many: Vec<_> = (0..4_000).map(Record::at).collect();
        let many = Batch::of(self.now, &many);
        for (name, payload) in lz4_frames(&many.payload) {
            let batch = Batch { payload, attributes: LZ4, ..many.clone() };
            self.bytes(&format!("lz4 with {name}"), batch.encode());
        }
        let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 1, 2][..], &pack(ZSTD, &records)];
        let batch = Batch { payload: skippable.concat(), attributes: ZSTD, ..self.batch() };
        self.bytes("zstd behind a frame that is skipped", batch.encode());
    }

    fn topics(&mut self) {
        let keyless = Record { key: None, ..Record::at(1) };
        for (name, codec) in CODECS {
            for topic in ["compacted", "stamped"] {
                let batch = self.batch().packed(codec);
                self.sends(topic, &format!("{topic}, {name}"), vec![Send::of(batch.encode())]);
            }
            let records = [Record::at(0), keyless.clone()];
            let batch = Batch::of(self.now, &records).packed(codec);
            let name = format!("compacted, a record without a key, {name}");
            self.sends("compacted", &name, vec![Send::of(batch.encode())]);
        }
        for (name, codec) in CODECS {
            let batch = Batch::of(self.now, &[Record::at(0), Record::at(5)]).packed(codec);
            let name = format!("compacted, offset deltas with a gap, {name}");
            self.sends("compacted", &name, vec![Send::of(batch.encode())]);
        }
        let long = [Record { value: Some("v".repeat(200)), ..Record::at(0) }];
        for (name, codec) in CODECS {
            let batch = Batch::of(self.now, &long).packed(codec);
            let name = format!("a value of 200 bytes for a limit of 150, {name}");
            self.sends("small", &name, vec![Send::of(batch.encode())]);
        }
    }

    /// To topics with a codec of their own.
    fn packed(&mut self) {
        let late = Record { timestamp_delta: -3, ..Record::at(2) };
        let headers = (2, header(Some(b"k"), Some(b"")).repeat(2));
        let rich = Record { headers, value: None, ..Record::at(1) };
        let records = [Record::at(0), rich, late];
        for (topic, _) in TOPICS.into_iter().filter(|(topic, _)| topic.starts_with("to-")) {
            for (name, codec) in CODECS {
                let mut batch = Batch::of(self.now, &records).packed(codec);
                batch.max_timestamp += 9;
                let first = Batch { producer: (9, 1, 0), ..batch.clone() };
                let second = Batch { producer: (9, 1, 3), leader_epoch: 4, ..batch.clone() };
                let sends = [first, second].map(|batch| Send::of(batch.encode()));
                self.sends(topic, &format!("{topic}: {name}"), sends.into());
                let damaged = Batch { crc: Some(7), ..batch };
                let name = format!("{topic}: damaged {name}");
                self.sends(topic, &name, vec![Send::of(damaged.encode())]);
            }
            let wrong = Batch { count: 2, last_offset_delta: 1, ..Batch::of(self.now, &records) };
            self.sends(topic, &format!("{topic}: a wrong count"), vec![Send::of(wrong.encode())]);
        }
    }

    fn requests(&mut self) {
        let sound = self.batch().encode();
        let send = || Send::of(sound.clone());
        let torn = Send { acks: 0, ..Send::of(sound[..40].to_vec()) };
        let transactional = Batch { attributes: TRANSACTIONAL, ..self.batch() }.encode();
        let zstd = self.batch().packed(ZSTD).encode();
        let mut all = vec![
            ("null records".to_owned(), Send { records: None, ..send() }),
            (
                "no partition of this index".to_owned(),
                Send { target: Target::NoPartition, ..send() },
            ),
            ("no topic of this name".to_owned(), Send { target: Target::NoTopic, ..send() }),
            ("a partition twice".to_owned(), Send { target: Target::OwnTwice, ..send() }),
            ("half a batch without acks".to_owned(), torn),
            ("zstd, version 6".to_owned(), Send { version: 6, ..Send::of(zstd) }),
        ];
        for acks in [-2, 0, 1, 2] {
            all.push((format!("acks {acks}"), Send { acks, ..send() }));
        }
        for version in 0..=8 {
            all.push((format!("version {version}"), Send { version, ..send() }));
        }
        for id in [Some(""), Some("odd")] {
            for acks in [-1, 0] {
                let name = format!("transactional id {id:?}, acks {acks}");
                all.push((name, Send { transactional_id: id, acks, ..send() }));
            }
        }
        for id in [None, Some(""), Some("odd")] {
            let send = Send { transactional_id: id, ..Send::of(transactional.clone()) };
            all.push((format!("a transactional batch with id {id:?}"), send));
        }
        for (name, send) in all {
            self.sends("plain", &format!("request: {name}"), vec![send]);
        }
    }
}

/// LZ4 frames that the format allows, of which Kafka's producers write the first.
fn lz4_frames(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let plain = || FrameInfo::new().block_size(BlockSize::Max64KB);
    let frames = [
        ("independent blocks", plain()),
        ("linked blocks", plain().block_mode(BlockMode::Linked)),
        ("large blocks", plain().block_size(BlockSize::Max4MB)),
        ("block checksums", plain().block_checksums(true)),
        ("a content checksum", plain().content_checksum(true)),
        ("a content size", plain().content_size(Some(bytes.len() as u64))),
    ];
    let encode = |info: FrameInfo| {
        let mut out = FrameEncoder::with_frame_info(info, Vec::new());
        out.write_all(bytes).expect("nothing fails in memory");
        out.finish().expect("nothing fails in memory")
    };
    frames.map(|(name, info)| (name, encode(info))).into()
}

/// A message of format 0 or 1.
fn legacy_message(magic: u8, timestamp: i64) -> Vec<u8> {
    let mut covered = vec![magic, 0];
    if magic == 1 {
        covered.extend_from_slice(&timestamp.to_be_bytes());
    }
    for text in ["k", "v"] {
        covered.extend_from_slice(&1i32.to_be_bytes());
        covered.extend_from_slice(text.as_bytes());
    }
    let mut crc = flate2::Crc::new();
    crc.update(&covered);
    let mut message = 0i64.to_be_bytes().to_vec();
    let length = i32::try_from(covered.len() + 4).expect("short");
    message.extend_from_slice(&length.to_be_bytes());
    message.extend_from_slice(&crc.sum().to_be_bytes());
    message.extend_from_slice(&covered);
    message
}
