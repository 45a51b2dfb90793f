//! Bytes on disk, against bytes made from `docs/formats.md` by other means.

use std::path::Path;
use std::sync::Arc;

use moldau_records::Producer;
use moldau_storage::{Compaction, Drive, Options, Storage};

use crate::sim_disk::SimDisk;
use crate::world::{AppendBytes, Owner, TOPIC, batch, keyed, one, small};

/// A frame with the batch of one record (value `v`, timestamp 1000, leader epoch 9) of partition 3
/// and the metadata `topic`, as hexadecimal digits.
const FRAME: &str = include_str!("frame.hex");

#[test]
fn a_frame_has_the_documented_bytes() {
    let disk = SimDisk::new(1);
    let options = Options { drive: Drive::Stepped, ..small("/data".as_ref()) };
    let storage = Storage::open_on(Arc::new(disk.clone()), options, &mut Owner::default()).unwrap();
    storage.log(TOPIC, 3).append_bytes(&one(b"v"), 9).unwrap();
    storage.append_metadata(b"topic").unwrap();
    storage.step();
    let digits: Vec<u8> = FRAME.bytes().filter(u8::is_ascii_hexdigit).collect();
    let expected: Vec<u8> = digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect();
    let bytes = disk.bytes(Path::new("/data/journal/0000000001.journal"));
    let (frame, rest) = bytes[4096..].split_at(expected.len());
    assert_eq!(frame, expected);
    assert!(rest.iter().all(|byte| *byte == 0));
    let header = &bytes[..64];
    assert_eq!(&header[..16], b"MOLDAUJF\x02\0\0\0\0\0\0\0");
    assert_eq!(header[16..32], storage.info().cluster_id);
    assert_eq!(header[32..56], [&[1][..], &[0; 17], &[1], &[0; 5]].concat());
    assert_eq!(header[60..], moldau_records::crc32c(&header[..60]).to_le_bytes());
}

/// The identity of node 0 with cluster id 0x10 to 0x1f.
const META: &str = include_str!("meta.hex");
/// A segment of one data block: a batch of partition 3 and two of partition 4.
const SEGMENT: &str = include_str!("segment.hex");
/// A checkpoint with the metadata `topic` and a log of two batches, epochs and producers.
const CHECKPOINT: &str = include_str!("checkpoint.hex");

/// The bytes of lines `offset: digits`, zeros in between; the last line ends the file.
fn bytes_of(lines: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in lines.lines() {
        let (offset, digits) = line.split_once(':').unwrap();
        bytes.resize(offset.parse().unwrap(), 0);
        let digits = digits.trim().as_bytes();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        bytes.extend(pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()));
    }
    bytes
}

fn golden_directory() -> (SimDisk, Storage) {
    let disk = SimDisk::new(1);
    let meta = Path::new("/data/moldau.meta");
    moldau_storage::Disk::open(&disk, meta, moldau_storage::Access::Buffered, true).unwrap();
    disk.change(meta, |bytes| *bytes = bytes_of(META));
    let options = Options { drive: Drive::Stepped, ..small("/data".as_ref()) };
    let storage = Storage::open_on(Arc::new(disk.clone()), options, &mut Owner::default()).unwrap();
    (disk, storage)
}

#[test]
fn a_segment_has_the_documented_bytes() {
    let (disk, storage) = golden_directory();
    let batches = [(3, 1_000, "k", "v"), (4, 2_000, "k1", "v1"), (4, 1_500, "k2", "v2")];
    for (partition, timestamp, key, value) in batches {
        let batch = keyed(timestamp, key.as_bytes(), value.as_bytes());
        storage.log(TOPIC, partition).append_bytes(&batch, 9).unwrap();
        storage.step();
    }
    let compaction = Compaction {
        min_lag_ms: 0,
        max_lag_ms: i64::MAX,
        delete_retention_ms: 0,
        min_dirty_ratio: 0.0,
    };
    let logs = [4, 3].map(|partition| (storage.log(TOPIC, partition), compaction));
    assert_eq!(storage.compact(&logs, 5_000).unwrap().logs, 2);
    let written = disk.bytes(Path::new("/data/segments/0000000001.segment"));
    assert_eq!(written, bytes_of(SEGMENT));
}

#[test]
fn a_checkpoint_has_the_documented_bytes() {
    let (disk, storage) = golden_directory();
    let log = storage.log(TOPIC, 3);
    log.append_bytes(&one(b"v"), 9).unwrap();
    storage.step();
    let producer = Producer { id: 5, epoch: 1, base_sequence: 7 };
    log.append_bytes(&batch(&[(900, b"w")], Some(producer)), 11).unwrap();
    storage.step();
    storage
        .checkpoint(|writer| {
            writer.metadata(b"topic");
            Ok(())
        })
        .unwrap();
    assert_eq!(disk.bytes(Path::new("/data/checkpoint")), bytes_of(CHECKPOINT));
    drop((storage, log));
    let options = Options { drive: Drive::Stepped, ..small("/data".as_ref()) };
    let mut owner = Owner::default();
    let storage = Storage::open_on(Arc::new(disk), options, &mut owner).unwrap();
    assert_eq!((owner.0, storage.info().recovered_frames), (vec![b"topic".to_vec()], 0));
    let again =
        storage.log(TOPIC, 3).append_bytes(&batch(&[(900, b"w")], Some(producer)), 11).unwrap();
    assert_eq!((again.base_offset, again.is_duplicate), (1, true));
}
