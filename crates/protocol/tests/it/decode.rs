//! One entry for arbitrary bytes into every decoder. The fuzz target includes this file as well.

use bytes::{Bytes, BytesMut};
use moldau_protocol::fetch::FetchResponseView;
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::messages::{FetchResponse, ProduceRequest};
use moldau_protocol::produce::ProduceRequestView;
use moldau_protocol::walk::{RunKind, Walker};
use moldau_protocol::{Message, Reader, Writer};

/// Feeds `data` to the decoder that its first byte selects, in the version that its second byte
/// selects, and to everything else that reads bytes of that kind.
///
/// # Panics
/// A decoder breaks a promise of the crate.
pub(crate) fn decode(data: &[u8]) {
    let Some(([message, version, cut], body)) = data.split_first_chunk() else { return };
    let body = Bytes::copy_from_slice(body);
    let decoder = DECODERS[usize::from(*message) % DECODERS.len()];
    decoder(&body, *version);
    if let Ok((header, rest)) = RequestHeader::parse(&body) {
        assert!(rest.len() < body.len());
        assert_eq!(frame::peek(&body).expect("a header").correlation_id, header.correlation_id);
    }
    fetch_response(&body, *version, *cut);
    produce_request(&body, *version, *cut);
}

type Decoder = fn(&Bytes, u8);

macro_rules! decoders {
    ($($message:path,)*) => {
        const DECODERS: &[Decoder] = &[$(decode_message::<$message>),*];
    };
}

moldau_protocol::with_every_message!(decoders);

/// A version of the message.
fn version_of<M: Message>(selector: u8) -> i16 {
    let count = M::VERSIONS.max - M::VERSIONS.min + 1;
    M::VERSIONS.min + i16::from(selector) % count
}

fn encoded<M: Message>(message: &M, version: i16) -> Bytes {
    let mut out = BytesMut::new();
    message.encode(&mut Writer::new(&mut out), version).expect("what decodes can be encoded");
    out.freeze()
}

/// What is decoded can be encoded; after that, decoding and encoding change nothing.
fn decode_message<M: Message>(bytes: &Bytes, selector: u8) {
    let version = version_of::<M>(selector);
    let copied = M::decode(&mut Reader::new(bytes), version);
    let shared = M::decode(&mut Reader::shared(bytes), version);
    assert_eq!(copied.is_ok(), shared.is_ok());
    let Ok(message) = shared else { return };
    let once = encoded(&message, version);
    let again = M::from_bytes(&once, version).expect("what was encoded decodes");
    assert_eq!(encoded(&again, version), once);
}

fn fetch_response(bytes: &Bytes, selector: u8, cut: u8) {
    let version = version_of::<FetchResponse>(selector);
    let view = FetchResponseView::parse(bytes, version);
    if let Ok(view) = &view {
        for topic in view.topics() {
            let topic = topic.expect("the view was checked");
            for partition in topic.partitions() {
                partition.expect("the view was checked");
            }
        }
    }
    let Ok(message) = FetchResponse::from_bytes(bytes, version) else { return };
    assert!(view.is_ok(), "the view refuses what the message's decoder reads");
    // Over-long integers are legal but the walker may refuse them; the encoder writes none.
    let body = encoded(&message, version);
    let mut frame = BytesMut::new();
    if version >= FetchResponse::FLEXIBLE_FROM {
        frame.extend_from_slice(&[0]);
    }
    frame.extend_from_slice(&body);
    let walker = Walker::fetch_response(version, frame.len()).expect("a version");
    let partitions = message.responses.iter().flat_map(|topic| &topic.partitions);
    let records = partitions.filter_map(|partition| partition.records.as_ref());
    assert_eq!(walk(walker, &frame, cut), records.map(Bytes::len).sum::<usize>());
}

fn produce_request(bytes: &Bytes, selector: u8, cut: u8) {
    let version = version_of::<ProduceRequest>(selector);
    let view = ProduceRequestView::parse(bytes, version).and_then(|view| view.check());
    let Ok(message) = ProduceRequest::from_bytes(bytes, version) else { return };
    assert!(view.is_ok(), "the view refuses what the message's decoder reads");
    let body = encoded(&message, version);
    let walker = Walker::produce_request(version, body.len()).expect("a version");
    let partitions = message.topic_data.iter().flat_map(|topic| &topic.partition_data);
    let records = partitions.filter_map(|partition| partition.records.as_ref());
    assert_eq!(walk(walker, &body, cut), records.map(Bytes::len).sum::<usize>());
}

/// Walks a frame in chunks of `size`, or as a whole for 0, and counts its record bytes.
fn walk(mut walker: Walker, frame: &[u8], size: u8) -> usize {
    let size = if size == 0 { frame.len() } else { usize::from(size) };
    let mut records = 0;
    for chunk in frame.chunks(size.max(1)) {
        let mut rest = chunk;
        while !rest.is_empty() {
            let run = walker.next_run(rest).expect("the frame is valid");
            assert!(run.len > 0);
            if run.kind == RunKind::Records {
                records += run.len;
            }
            rest = &rest[run.len..];
        }
    }
    assert!(walker.is_complete());
    records
}
