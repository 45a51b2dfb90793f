//! The journal's bytes on disk, against bytes made from `docs/formats.md` by other means.

use std::path::Path;
use std::sync::Arc;

use moldau_storage::{Drive, Options, Storage};

use crate::sim_disk::SimDisk;
use crate::world::{Owner, TOPIC, one, small};

/// A frame with the batch of one record (value `v`, timestamp 1000, leader epoch 9) of partition 3
/// and the metadata `topic`, as hexadecimal digits.
const FRAME: &str = include_str!("frame.hex");

#[test]
fn a_frame_has_the_documented_bytes() {
    let disk = SimDisk::new(1);
    let options = Options { drive: Drive::Stepped, ..small("/data".as_ref()) };
    let storage = Storage::open_on(Arc::new(disk.clone()), options, &mut Owner::default()).unwrap();
    storage.log(TOPIC, 3).append(&one(b"v"), 9).unwrap();
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
