//! What is encoded decodes to the same value; broken bytes are refused without a panic.

use bytes::Bytes;

use crate::error::DecodeError;
use crate::message::Message;
use crate::random::{Generator, Random};
use crate::reader::Reader;

/// Random values tried for each message and version.
const VALUES: u64 = 24;

/// Random values that are cut at every byte.
const VALUES_TO_CUT: u64 = 3;

/// Calls a function with every version of a message and a few seeds.
fn each<M: Message + Random>(values: u64, mut check: impl FnMut(M, i16, Bytes)) {
    for version in M::VERSIONS.iter() {
        for seed in 0..values {
            let mut generator = Generator::new(seed);
            let value = M::random(&mut generator, version, version >= M::FLEXIBLE_FROM);
            let bytes = value
                .to_bytes(version)
                .unwrap_or_else(|error| panic!("{} v{version} seed {seed}: {error}", M::NAME));
            check(value, version, bytes);
        }
    }
}

fn round_trip<M: Message + Random + PartialEq + std::fmt::Debug>() {
    each::<M>(VALUES, |value, version, bytes| {
        assert_eq!(M::from_bytes(&bytes, version).as_ref(), Ok(&value), "{} v{version}", M::NAME);
        let copied = M::decode(&mut Reader::new(&bytes), version);
        assert_eq!(copied.as_ref(), Ok(&value), "{} v{version} copied", M::NAME);
    });
}

fn truncation<M: Message + Random>() {
    each::<M>(VALUES_TO_CUT, |_, version, bytes| {
        for len in 0..bytes.len() {
            let error = M::decode(&mut Reader::new(&bytes[..len]), version).err();
            assert!(error.is_some(), "{} v{version} cut at {len} decodes", M::NAME);
        }
    });
}

/// An array is refused if the bytes that are left cannot hold its elements; the bound must not be
/// too high for the smallest elements.
fn smallest<M: Message + Random + PartialEq + std::fmt::Debug>() {
    for version in M::VERSIONS.iter() {
        let flexible = version >= M::FLEXIBLE_FROM;
        let value = M::random(&mut Generator::smallest(), version, flexible);
        let bytes = value.to_bytes(version).expect("valid");
        assert!(bytes.len() >= M::SIZE_MIN, "{} v{version}", M::NAME);
        assert_eq!(M::from_bytes(&bytes, version), Ok(value), "{} v{version}", M::NAME);
    }
}

macro_rules! in_every_message {
    ($($message:path,)*) => {
        #[test]
        fn every_message_decodes_to_what_was_encoded() {
            $(round_trip::<$message>();)*
        }

        #[test]
        fn arrays_of_the_smallest_elements_decode() {
            $(smallest::<$message>();)*
        }

        #[test]
        fn every_truncated_message_is_refused() {
            $(truncation::<$message>();)*
        }

        #[test]
        fn unknown_versions_are_refused() {
            $(
                let version = <$message as Message>::VERSIONS.max + 1;
                let decoded = <$message>::decode(&mut Reader::new(&[]), version);
                assert!(matches!(decoded, Err(DecodeError::UnsupportedVersion { .. })));
            )*
        }
    };
}

crate::with_every_message!(in_every_message);
