//! The walker agrees with the generated codec, however the frame is cut.

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::frame::{self, LENGTH_SIZE};
use crate::message::Message;
use crate::messages::{ApiKey, FetchResponse, ProduceRequest};
use crate::random::{Generator, Random};
use crate::reader::Reader;

/// The bytes of each kind, and where the tag of the endpoints stands.
#[derive(Debug, Default, PartialEq)]
struct Walked {
    structure: Vec<u8>,
    records: Vec<u8>,
    endpoints_at: Option<usize>,
}

/// Walks a frame that arrives in chunks of the given sizes, the last of which repeats.
fn walk(mut walker: Walker, frame: &[u8], sizes: &[usize]) -> Result<Walked, DecodeError> {
    let mut walked = Walked::default();
    let mut at = 0;
    let mut sizes = sizes.iter().copied().chain(std::iter::repeat(*sizes.last().expect("sizes")));
    while at < frame.len() {
        let end = frame.len().min(at + sizes.next().expect("endless").max(1));
        while at < end {
            let run = walker.next_run(&frame[at..end])?;
            assert!(run.len > 0, "a run of no bytes at {at}");
            let bytes = &frame[at..at + run.len];
            match run.kind {
                RunKind::Structure => walked.structure.extend_from_slice(bytes),
                RunKind::Records => walked.records.extend_from_slice(bytes),
                RunKind::NodeEndpointsTag => {
                    assert_eq!((bytes, walked.endpoints_at), (&[0][..], None));
                    walked.endpoints_at = Some(at);
                    walked.structure.extend_from_slice(bytes);
                }
            }
            at += run.len;
        }
    }
    assert!(walker.is_complete(), "incomplete at the end of the frame");
    assert_eq!(walker.structure_bytes(), walked.structure.len() as u64);
    assert_eq!(walker.record_bytes(), walked.records.len() as u64);
    Ok(walked)
}

/// A response after its correlation id, and its records one after the other.
fn random_response(version: i16, seed: u64) -> (FetchResponse, Bytes, Vec<u8>) {
    let flexible = version >= FetchResponse::FLEXIBLE_FROM;
    let response = FetchResponse::random(&mut Generator::new(seed), version, flexible);
    let mut out = BytesMut::new();
    frame::encode_response(&mut out, ApiKey::Fetch, version, 1, &response).expect("valid");
    let records = response.responses.iter().flat_map(|topic| &topic.partitions);
    let records = records.filter_map(|partition| partition.records.as_ref());
    let records = records.flat_map(|records| records.to_vec()).collect();
    (response, out.freeze().slice(LENGTH_SIZE + 4..), records)
}

fn random_request(version: i16, seed: u64) -> (Bytes, Vec<u8>) {
    let flexible = version >= ProduceRequest::FLEXIBLE_FROM;
    let request = ProduceRequest::random(&mut Generator::new(seed), version, flexible);
    let records = request.topic_data.iter().flat_map(|topic| &topic.partition_data);
    let records = records.filter_map(|partition| partition.records.as_ref());
    let records = records.flat_map(|records| records.to_vec()).collect();
    (request.to_bytes(version).expect("valid"), records)
}

fn fetch_walker(version: i16, frame: &[u8]) -> Walker {
    Walker::fetch_response(version, frame.len()).expect("a version")
}

fn produce_walker(version: i16, frame: &[u8]) -> Walker {
    Walker::produce_request(version, frame.len()).expect("a version")
}

#[test]
fn responses_cut_anywhere_are_walked_alike() {
    for version in FetchResponse::VERSIONS.iter() {
        for seed in 0..30 {
            let (response, frame, records) = random_response(version, seed);
            let whole = walk(fetch_walker(version, &frame), &frame, &[frame.len()]).expect("valid");
            assert_eq!(whole.records, records, "version {version} seed {seed}");
            assert_eq!(whole.endpoints_at.is_some(), !response.node_endpoints.is_empty());
            for cut in 1..frame.len() {
                let pieces = walk(fetch_walker(version, &frame), &frame, &[cut, frame.len()]);
                assert_eq!(pieces.as_ref(), Ok(&whole), "version {version} seed {seed} cut {cut}");
            }
            let bytewise = walk(fetch_walker(version, &frame), &frame, &[1]);
            assert_eq!(bytewise, Ok(whole), "version {version} seed {seed}");
        }
    }
}

#[test]
fn requests_cut_anywhere_are_walked_alike() {
    for version in ProduceRequest::VERSIONS.iter() {
        for seed in 0..30 {
            let (frame, records) = random_request(version, seed);
            for cut in 1..frame.len() {
                let pieces = walk(produce_walker(version, &frame), &frame, &[cut, frame.len()]);
                assert_eq!(pieces.expect("valid").records, records, "version {version} cut {cut}");
            }
        }
    }
}

#[test]
fn the_tag_that_is_shown_hides_the_endpoints_when_overwritten() {
    let mut hidden = 0;
    for seed in 0..200 {
        let (mut response, frame, _) = random_response(16, seed);
        response.unknown_tagged_fields.clear();
        let walked = walk(fetch_walker(16, &frame), &frame, &[7]).expect("valid");
        let Some(at) = walked.endpoints_at else { continue };
        let mut frame = frame.to_vec();
        frame[at] = HIDING_TAG;
        let mut reader = Reader::new(&frame[1..]);
        let mut decoded = FetchResponse::decode(&mut reader, 16).expect("valid");
        let unknown = std::mem::take(&mut decoded.unknown_tagged_fields);
        assert!(unknown.iter().any(|field| field.tag == u32::from(HIDING_TAG)));
        assert!(decoded.node_endpoints.is_empty());
        response.node_endpoints.clear();
        assert_eq!(decoded, response);
        hidden += 1;
    }
    assert!(hidden > 20, "only {hidden} responses had endpoints");
}

proptest! {
    #[test]
    fn chunks_of_any_size_give_the_same_records(
        version in 4_i16..=18,
        seed: u64,
        sizes in prop::collection::vec(1_usize..400, 1..20),
    ) {
        let (_, frame, records) = random_response(version, seed);
        let walked = walk(fetch_walker(version, &frame), &frame, &sizes);
        prop_assert_eq!(walked.expect("valid").records, records);
    }

    #[test]
    fn damaged_frames_end_in_an_error_or_at_the_end(
        version in 4_i16..=18,
        seed: u64,
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let (_, frame, _) = random_response(version, seed);
        let mut frame = frame.to_vec();
        for (at, byte) in damage {
            let at = at.index(frame.len());
            frame[at] = byte;
        }
        let mut walker = fetch_walker(version, &frame);
        let mut rest = &frame[..cut.index(frame.len() + 1)];
        while let Ok(run) = walker.next_run(rest) && !rest.is_empty() {
            prop_assert!(run.len > 0 && run.len <= rest.len());
            rest = &rest[run.len..];
        }
    }
}
