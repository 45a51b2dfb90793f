//! Frames as they must be, and everything that must not open.

use proptest::prelude::*;

use super::*;
use crate::workers::tests::token;

const COORDINATOR: Hello = Hello { random: [1; RANDOM_BYTES] };
const WORKER: Hello = Hello { random: [2; RANDOM_BYTES] };

/// What the coordinator seals with and the worker opens with.
fn there() -> (Sealer, Opener) {
    let (sealer, _) = ends(&token('a'), COORDINATOR, WORKER, Side::Coordinator);
    let (_, opener) = ends(&token('a'), COORDINATOR, WORKER, Side::Worker);
    (sealer, opener)
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// All messages of bytes that come at once.
fn opened(opener: &mut Opener, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Broken> {
    let mut came = BytesMut::from(bytes);
    let mut messages = Vec::new();
    while let Some(message) = opener.open(&mut came)? {
        messages.push(message);
    }
    Ok(messages)
}

#[test]
fn a_connection_begins_with_these_bytes() {
    let hello = COORDINATOR.to_bytes();
    assert_eq!(hexadecimal(&hello), format!("4d4c44574f524b31{}", "01".repeat(32)));
    assert_eq!(Hello::read(&hello), Ok(COORDINATOR));
    let (mut to_worker, _) = there();
    let (mut to_coordinator, _) = ends(&token('a'), COORDINATOR, WORKER, Side::Worker);
    // As another implementation of HKDF and AES-GCM makes them. A length of 24: the byte that ends
    // a message, its 7 bytes, and the tag.
    for (sealer, frames) in [
        (
            &mut to_worker,
            [
                "000000181978457b4bc391040c99432127b31ed5b29eee7e3ef71fce",
                "000000184a3ff384a20942600df6dd4d5fb1fefbfdce8c70a588a0d6",
            ],
        ),
        (
            &mut to_coordinator,
            [
                "000000181d4ab514e10ac47e054dee8ab493364b02fea50e1912639e",
                "000000186b720d7a1a217715481aee58b8afdf641369cfa74254e5c0",
            ],
        ),
    ] {
        assert_eq!(frames.map(|_| hexadecimal(&sealer.seal(b"\"alive\""))), frames);
    }
}

#[test]
fn a_hello_of_another_program_or_version_is_refused() {
    for at in 0..MAGIC.len() {
        let mut bytes = WORKER.to_bytes();
        bytes[at] ^= 1;
        assert_eq!(Hello::read(&bytes), Err(Broken::Hello));
    }
}

#[test]
fn a_frame_that_is_changed_left_out_repeated_or_turned_back_does_not_open() {
    let (mut sealer, _) = there();
    let [first, second] = [b"first", b"other"].map(|message| sealer.seal(message));
    for at in LENGTH_BYTES..first.len() {
        let mut bytes = first.clone();
        bytes[at] ^= 1;
        assert_eq!(opened(&mut there().1, &bytes), Err(Broken::Sealed));
    }
    assert_eq!(opened(&mut there().1, &second), Err(Broken::Sealed));
    assert_eq!(
        opened(&mut there().1, &[first.clone(), first.clone()].concat()),
        Err(Broken::Sealed)
    );
    let (_, mut coordinator) = ends(&token('a'), COORDINATOR, WORKER, Side::Coordinator);
    assert_eq!(opened(&mut coordinator, &first), Err(Broken::Sealed));
    let found = opened(&mut there().1, &[first, second].concat());
    assert_eq!(found.unwrap(), [b"first".to_vec(), b"other".to_vec()]);
}

#[test]
fn a_frame_of_another_token_or_connection_does_not_open() {
    let frame = there().0.seal(b"message");
    let (_, mut other) = ends(&token('b'), COORDINATOR, WORKER, Side::Worker);
    assert_eq!(opened(&mut other, &frame), Err(Broken::Sealed));
    for (coordinator, worker) in [(COORDINATOR, COORDINATOR), (WORKER, WORKER)] {
        let (_, mut other) = ends(&token('a'), coordinator, worker, Side::Worker);
        assert_eq!(opened(&mut other, &frame), Err(Broken::Sealed));
    }
}

#[test]
fn a_length_that_no_frame_has_is_refused_before_the_frame_comes() {
    for bytes in [0, 16, u32::try_from(SEALED_BYTES_MAX).unwrap() + 1, u32::MAX] {
        assert_eq!(opened(&mut there().1, &bytes.to_be_bytes()), Err(Broken::Length(bytes)));
    }
    let longest = u32::try_from(SEALED_BYTES_MAX).unwrap();
    assert_eq!(opened(&mut there().1, &longest.to_be_bytes()), Ok(vec![]));
}

proptest! {
    #[test]
    fn messages_come_as_they_left_however_their_bytes_come(
        lengths in proptest::collection::vec(0_usize..3 * PIECE_BYTES_MAX, 1..4),
        step in 1_usize..PIECE_BYTES_MAX,
        seed in any::<u64>(),
    ) {
        let mut random = fastrand::Rng::with_seed(seed);
        let message = |length: &usize| (0..*length).map(|_| random.u8(..)).collect::<Vec<u8>>();
        let messages: Vec<Vec<u8>> = lengths.iter().map(message).collect();
        let (mut sealer, mut opener) = there();
        let bytes: Vec<u8> = messages.iter().flat_map(|message| sealer.seal(message)).collect();
        let (mut came, mut found) = (BytesMut::new(), Vec::new());
        for part in bytes.chunks(step) {
            came.extend_from_slice(part);
            while let Some(message) = opener.open(&mut came).unwrap() {
                found.push(message);
            }
        }
        prop_assert!(came.is_empty());
        prop_assert_eq!(found, messages);
    }

    #[test]
    fn arbitrary_bytes_are_no_message(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let found = opened(&mut there().1, &bytes);
        prop_assert!(found.is_err() || found.is_ok_and(|messages| messages.is_empty()));
    }
}
