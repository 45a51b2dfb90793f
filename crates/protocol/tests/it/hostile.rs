//! Seeded random and damaged bytes; what the fuzz target does without end, done for a while.

use bytes::{BufMut, BytesMut};
use moldau_protocol::messages::DeleteGroupsRequest;
use moldau_protocol::names::{self, Verdict, Visitor};
use moldau_protocol::{
    DecodeError, Entity, Layout, Message, Reader, RewriteError, Writer, messages,
};

use crate::decode::decode;

/// Messages and headers that a random input selects by its first byte.
const SELECTORS: u8 = u8::MAX;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("less than a usize")
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }
}

#[test]
fn random_bytes_break_no_decoder() {
    let mut random = Random(1);
    for selector in 0..=SELECTORS {
        for _ in 0..400 {
            let len = random.below(120);
            // Mostly small bytes, which are plausible lengths and counts.
            let mut data: Vec<u8> = (0..len).map(|_| random.byte() & random.byte()).collect();
            data.splice(0..0, [selector, random.byte(), random.byte()]);
            decode(&data);
        }
    }
}

/// Encodes a message that has some of everything.
fn fetch_response() -> (Vec<u8>, i16) {
    let version = 17;
    let partition = messages::fetch_response::PartitionData {
        high_watermark: 5,
        records: Some(vec![9; 40].into()),
        current_leader: messages::fetch_response::LeaderIdAndEpoch {
            leader_id: 2,
            ..Default::default()
        },
        ..Default::default()
    };
    let topic = messages::fetch_response::FetchableTopicResponse {
        partitions: vec![partition.clone(), partition],
        ..Default::default()
    };
    let endpoint = messages::fetch_response::NodeEndpoint {
        host: "localhost".to_owned(),
        ..Default::default()
    };
    let response = messages::FetchResponse {
        responses: vec![topic.clone(), topic],
        node_endpoints: vec![endpoint],
        ..Default::default()
    };
    let mut out = BytesMut::new();
    response.encode(&mut Writer::new(&mut out), version).expect("valid");
    (out.to_vec(), version)
}

#[test]
fn damaged_messages_break_no_decoder() {
    let (bytes, version) = fetch_response();
    let selector = u8::try_from(version - messages::FetchResponse::VERSIONS.min).expect("small");
    let mut random = Random(2);
    for round in 0..60_000 {
        let mut data = bytes.clone();
        for _ in 0..=random.below(3) {
            let at = random.below(data.len());
            data[at] = random.byte();
        }
        data.truncate(data.len() - random.below(2) * random.below(8));
        let message = u8::try_from(round % 256).expect("a byte");
        data.splice(0..0, [message, selector, random.byte()]);
        decode(&data);
    }
}

#[test]
fn counts_that_the_bytes_cannot_hold_are_refused_before_any_element_is_read() {
    // 2,147,483,647 elements in an array of 16-byte ids, of which one is there.
    let mut bytes = vec![0x7f, 0xff, 0xff, 0xff];
    bytes.extend_from_slice(&[0; 16]);
    let ids = Reader::new(&bytes).array::<moldau_protocol::Uuid>(0, false);
    let needed = 0x7fff_ffff * 16;
    let remaining = 16;
    assert_eq!(ids, Err(DecodeError::Truncated { what: "array", at: 4, needed, remaining }));
}

#[test]
fn lengths_beyond_the_bytes_are_refused() {
    for bytes in [&[0x7f, 0xff, 0xff, 0xff, 1, 2][..], &[0x80, 0, 0, 0], &[0xff, 0xff, 0xff, 0xfe]]
    {
        assert!(Reader::new(bytes).bytes(false).is_err(), "{bytes:?}");
    }
    for bytes in [&[0xff, 0xff, 0xff, 0xff, 0x0f, 1, 2][..], &[0xff; 6], &[0x80, 0x80], &[]] {
        assert!(Reader::new(bytes).bytes(true).is_err(), "{bytes:?}");
        assert!(Reader::new(bytes).string(true).is_err(), "{bytes:?}");
    }
}

#[test]
fn a_tag_that_comes_twice_is_refused() {
    // The same unknown tag twice, with no content.
    let bytes = [2, 9, 0, 9, 0];
    let result = Reader::new(&bytes).unknown_tagged_fields(&mut Vec::new());
    assert_eq!(result, Err(DecodeError::DuplicateTag { tag: 9, at: 5 }));
}

/// A frame of a hundred megabytes took gigabytes.
#[test]
fn messages_of_tiny_elements_take_no_more_memory_than_any_may() {
    let mut bytes = vec![0; 64 << 20];
    // Groups without a character, of two bytes each; in memory each takes twelve times that.
    let count = i32::try_from((bytes.len() - 4) / 2).unwrap();
    bytes[..4].copy_from_slice(&count.to_be_bytes());
    let decoded = DeleteGroupsRequest::decode(&mut Reader::new(&bytes), 1);
    assert!(matches!(decoded, Err(DecodeError::Memory { .. })), "{:?}", decoded.err());
    let layout = Layout::of::<DeleteGroupsRequest>();
    let keep = |body: &[u8]| names::visit(&layout, 1, body, &mut Keep).map(|_| ());
    let kept = keep(&bytes);
    assert!(matches!(kept, Err(RewriteError::Decode(DecodeError::Memory { .. }))), "{kept:?}");
    // A million of them are not too many.
    let count = 1_000_000;
    bytes[..4].copy_from_slice(&i32::to_be_bytes(count));
    let count = usize::try_from(count).unwrap();
    let decoded = DeleteGroupsRequest::decode(&mut Reader::new(&bytes[..4 + 2 * count]), 1);
    assert_eq!(decoded.unwrap().groups_names.len(), count);
    assert_eq!(keep(&bytes[..4 + 2 * count]), Ok(()));
}

struct Keep;

impl Visitor for Keep {
    fn text(&mut self, _: Entity, _: &str, _: &mut String) -> Verdict {
        Verdict::Keep
    }
}

/// Each field was put in its place among all that came before it, which took minutes.
#[test]
fn tagged_fields_in_the_wrong_order_are_put_in_order_at_once() {
    const COUNT: u32 = 1 << 20;
    let mut bytes = BytesMut::new();
    let varint = |mut value: u32, bytes: &mut BytesMut| {
        while value >= 0x80 {
            bytes.put_u8(u8::try_from(value & 0x7f).unwrap() | 0x80);
            value >>= 7;
        }
        bytes.put_u8(u8::try_from(value).unwrap());
    };
    varint(COUNT, &mut bytes);
    for tag in (0..COUNT).rev() {
        varint(tag, &mut bytes);
        bytes.put_u8(0);
    }
    let mut fields = Vec::new();
    Reader::new(&bytes).unknown_tagged_fields(&mut fields).unwrap();
    assert!(fields.iter().map(|field| field.tag).eq(0..COUNT));
}
