//! Frames that no client would send: none panics, none leaves an answer that cannot be encoded.

use std::panic::{AssertUnwindSafe, catch_unwind};

use moldau_net::{Reply, Response};
use moldau_protocol::frame::RequestHeader;
use moldau_protocol::messages::{
    ApiVersionsResponse, FindCoordinatorRequest, FindCoordinatorResponse,
};
use moldau_protocol::{ApiKey, ErrorCode};

use super::versions::ask_everything;
use super::world::{World, code, decoded, request_frame};
use crate::call::{Later, NOT_ENCODED, Outcome, answer};
use crate::dispatch::served_versions;

const SEED: u64 = 0x6d6f_6c64_6175;

/// Mutations of each frame of the corpus, which has several for each version.
const MUTATIONS: usize = 30;

/// Random bodies for each version of each API.
const BODIES: usize = 40;

/// Hands frames to a world, and looks at what becomes of them.
struct Attack {
    world: World,
    random: fastrand::Rng,
    waiting: Vec<Later<Response>>,
}

impl Attack {
    fn on(world: World, seed: u64) -> Self {
        Self { world, random: fastrand::Rng::with_seed(seed), waiting: Vec::new() }
    }

    /// Sends one frame at any time, and polls its answer once.
    fn send(&mut self, frame: &[u8]) {
        let now_ms = self.random.i64(..);
        let outcome = catch_unwind(AssertUnwindSafe(|| match self.world.send_at(now_ms, frame) {
            Reply::Last(..) => panic!("no client of these has to say who it is"),
            Reply::Later(mut answer, _) => match self.world.poll_answer(&mut answer) {
                Some(response) => assert!(!response.is_empty(), "{NOT_ENCODED}"),
                None => self.waiting.push(answer),
            },
            Reply::Ready(response) => assert!(!response.is_empty(), "{NOT_ENCODED}"),
            Reply::Close(reason) => assert_ne!(reason, NOT_ENCODED),
            Reply::NoResponse => {}
        }));
        assert!(outcome.is_ok(), "seed {SEED}, at {now_ms}: {frame:02x?}");
    }

    /// Looks at the answers that waited for the disk; what still waits is for other members.
    fn finish(mut self) {
        let end = self.world.state.storage.end();
        self.world.wait(self.world.state.storage.wait_durable(end)).unwrap();
        for answer in &mut self.waiting {
            let response = self.world.poll_answer(answer);
            assert!(response.is_none_or(|response| !response.is_empty()), "{NOT_ENCODED}");
        }
    }

    /// One to four changes behind the API key and version.
    fn mutated(&mut self, frame: &[u8]) -> Vec<u8> {
        const KEPT: usize = 4;
        let mut frame = frame.to_vec();
        for _ in 0..self.random.usize(1..=4) {
            if frame.len() <= KEPT {
                break;
            }
            let at = self.random.usize(KEPT..frame.len());
            match self.random.u8(0..6) {
                0 => frame[at] ^= 1 << self.random.u8(0..8),
                1 => frame[at] = self.random.u8(..),
                2 => frame.truncate(at),
                3 => frame.insert(at, self.random.u8(..)),
                4 => {
                    let extremes = [i32::MIN, -1, 0, 1, 255, i32::MAX];
                    let extreme = self.random.choice(extremes).unwrap().to_be_bytes();
                    frame.iter_mut().skip(at).zip(extreme).for_each(|(byte, new)| *byte = new);
                }
                _ => {
                    let again = frame[at..].to_vec();
                    frame.extend_from_slice(&again);
                }
            }
        }
        frame
    }
}

#[test]
fn a_mutated_request_never_panics() {
    let world = World::new();
    ask_everything(&world);
    let corpus = world.frames();
    for (index, (key, _)) in (0u64..).zip(served_versions()) {
        // A world for each API, so that topics of many partitions stay with those who made them.
        let mut attack = Attack::on(World::new(), SEED ^ index);
        attack.world.create("orders", 3);
        attack.world.lead("readers");
        let of_api = |frame: &&bytes::BytesMut| frame[..2] == key.key().to_be_bytes();
        for frame in corpus.iter().filter(of_api) {
            for _ in 0..MUTATIONS {
                let mutated = attack.mutated(frame);
                attack.send(&mutated);
            }
        }
        attack.finish();
    }
}

#[test]
fn a_random_body_never_panics() {
    let mut attack = Attack::on(World::new(), SEED);
    for (key, versions) in served_versions() {
        for version in versions.iter() {
            for _ in 0..BODIES {
                let mut frame = Vec::new();
                frame.extend_from_slice(&key.key().to_be_bytes());
                frame.extend_from_slice(&version.to_be_bytes());
                // Correlation id, a null client id, and no tagged fields where there may be some.
                frame.extend_from_slice(&[0, 0, 0, 1, 0xff, 0xff]);
                if key.is_flexible(version) {
                    frame.push(0);
                }
                let length = attack.random.usize(0..200);
                // Small numbers are lengths that fit.
                let small = attack.random.bool();
                frame.extend((0..length).map(|_| match small {
                    true => attack.random.u8(0..4),
                    false => attack.random.u8(..),
                }));
                attack.send(&frame);
            }
        }
    }
    attack.finish();
}

#[test]
fn a_random_frame_never_panics() {
    let mut attack = Attack::on(World::new(), SEED);
    for _ in 0..5_000 {
        let length = attack.random.usize(0..64);
        let mut frame: Vec<u8> = (0..length).map(|_| attack.random.u8(..)).collect();
        if let Some(key) = frame.first_chunk_mut::<2>() {
            *key = attack.random.i16(-2..100).to_be_bytes();
        }
        attack.send(&frame);
    }
    attack.finish();
}

#[test]
fn unknown_api_or_version_closes_except_api_versions() {
    let world = World::new();
    let frame = |key: i16, version: i16| {
        let mut frame = [key.to_be_bytes(), version.to_be_bytes()].concat();
        frame.extend_from_slice(&[0, 0, 0, 77, 0xff, 0xff]);
        frame
    };
    for refused in [frame(4, 0), frame(-1, 0), frame(3, 14), frame(0, 2), frame(1, -1)] {
        assert!(matches!(world.send(&refused), Reply::Close(_)), "{refused:?}");
    }
    let Reply::Ready(response) = world.send(&frame(18, 99)) else {
        panic!("a client that is too new must be told which versions there are")
    };
    let told: ApiVersionsResponse = decoded(ApiKey::ApiVersions, 0, &response);
    assert_eq!(code(told.error_code), ErrorCode::UnsupportedVersion);
    assert_eq!((told.api_keys[0].api_key, told.api_keys[0].max_version), (18, 5));
}

/// Such an answer was left out, and the client waited for it for ever.
#[test]
fn unencodable_late_response_closes_the_connection() {
    let world = World::new();
    let request = request_frame(0, &FindCoordinatorRequest::default());
    let (header, _) = RequestHeader::parse(&request).unwrap();
    let host = "x".repeat(usize::from(u16::MAX));
    let response = FindCoordinatorResponse { host, ..FindCoordinatorResponse::default() };
    let outcome = Outcome::Later(Box::pin(async move { response }));
    let Reply::Later(answer, _) = answer(&header, outcome, 0) else { panic!("it comes late") };
    assert_eq!(world.wait(answer).closes, Some(NOT_ENCODED));
}
