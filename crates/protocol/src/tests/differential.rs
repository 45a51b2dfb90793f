//! The crate `kafka-protocol` reads what we write, and writes the same bytes again.
//!
//! It stops at Kafka 4.1, so that newer APIs and versions are left out.

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{ApiKey as OracleKey, RequestKind, ResponseKind};

use crate::generated::with_every_api;
use crate::message::Message;
use crate::messages::ApiKey;
use crate::random::{Generator, Random};

/// Random values tried for each message and version.
const VALUES: u64 = 12;

/// Why the oracle cannot judge a message in a version, if it cannot.
fn oracle_defect(name: &str, version: i16) -> Option<&'static str> {
    match (name, version) {
        ("OffsetCommitRequest" | "OffsetFetchRequest", 10) => {
            Some("version 10 was unstable in Kafka 4.1: its API table has it, its message has not")
        }
        _ => None,
    }
}

/// Decodes and encodes by the oracle.
type Echo = fn(OracleKey, &mut Bytes, i16) -> Result<BytesMut, String>;

fn echo_request(key: OracleKey, bytes: &mut Bytes, version: i16) -> Result<BytesMut, String> {
    let mut out = BytesMut::new();
    let decoded = RequestKind::decode(key, bytes, version).map_err(|error| error.to_string())?;
    decoded.encode(&mut out, version).map_err(|error| error.to_string())?;
    Ok(out)
}

fn echo_response(key: OracleKey, bytes: &mut Bytes, version: i16) -> Result<BytesMut, String> {
    let mut out = BytesMut::new();
    let decoded = ResponseKind::decode(key, bytes, version).map_err(|error| error.to_string())?;
    decoded.encode(&mut out, version).map_err(|error| error.to_string())?;
    Ok(out)
}

/// Compares all versions that both know, and counts them.
fn compare<M: Message + Random>(api: ApiKey, echo: Echo, failures: &mut Vec<String>) -> usize {
    let Ok(key) = OracleKey::try_from(api.key()) else { return 0 };
    let known = key.valid_versions();
    let shared = M::VERSIONS.iter().filter(|version| (known.min..=known.max).contains(version));
    let mut compared = 0;
    for version in shared.filter(|version| oracle_defect(M::NAME, *version).is_none()) {
        compared += 1;
        for seed in 0..VALUES {
            let flexible = version >= M::FLEXIBLE_FROM;
            let value = M::random(&mut Generator::new(seed), version, flexible);
            let bytes = value.to_bytes(version).expect("valid");
            let mut read = bytes.clone();
            match echo(key, &mut read, version) {
                Ok(echoed) if echoed == bytes && read.is_empty() => continue,
                Ok(_) => failures.push(format!("{} v{version} seed {seed}: differs", M::NAME)),
                Err(error) => failures.push(format!("{} v{version} seed {seed}: {error}", M::NAME)),
            }
            break;
        }
    }
    compared
}

macro_rules! in_every_api {
    ($($api:ident $request:ident $response:ident,)*) => {
        #[test]
        fn the_oracle_reads_what_is_written_and_writes_the_same() {
            let mut failures = Vec::new();
            let mut compared = 0;
            $(
                compared += compare::<crate::messages::$request>(
                    ApiKey::$api,
                    echo_request,
                    &mut failures,
                );
                compared += compare::<crate::messages::$response>(
                    ApiKey::$api,
                    echo_response,
                    &mut failures,
                );
            )*
            assert!(failures.is_empty(), "{}", failures.join("\n"));
            assert!(compared > 400, "only {compared} messages and versions were compared");
        }
    };
}

with_every_api!(in_every_api);
