//! Instructions that each filter takes for a message of 16 KB, and record encryption for smaller
//! and larger ones: figures that do not depend on what else the machine does.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Valgrind shows a processor with AVX2, so that ciphers and checksums take more
//! instructions here than on one with AVX-512. Run with
//! `cargo bench -p moldau-filters --bench instructions`.

use std::error::Error;
use std::hint::black_box;

use bytes::Bytes;
use moldau_protocol::ApiKey;
use moldau_proxy::{RequestFrame, ResponseFrame};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

#[path = "../../../benches/callgrind.rs"]
mod callgrind;
#[path = "../tests/it/filter_any.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod filter_any;
#[path = "../tests/it/messages.rs"]
mod messages;

use self::filter_any::{World, fetch_response, produce_request, request_bytes, response_bytes};
use self::messages::{FETCH, PRODUCE, Session};

/// Records of a message: what fills 16 KB.
const RECORDS: usize = 15;
/// Records of a message that is sealed or opened: single ones, and what fills 16 KB and 128 KB.
const RECORDS_SEALED: [usize; 3] = [1, 15, 125];
const ENCRYPTION: &str = "record_encryption";
const VALUE_BYTES: usize = 1024;
const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 17;
/// Messages that are counted, after as many that are not, by which all buffers have grown.
const ROUNDS: u64 = 20;
const CODECS: [Compression; 2] = [Compression::None, Compression::Lz4];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [api, filter, records, codec] = &arguments[..] {
        let (records, codec) = (records.parse()?, Compression::from_id(codec.parse()?)?);
        if filter == ENCRYPTION {
            let sealing = Sealing::new(records, codec);
            sealing.pass(api);
            counted(&|| sealing.pass(api));
        } else {
            let session = Session::new(filter, records, codec);
            pass(&session, api);
            counted(&|| pass(&session, api));
        }
        return Ok(());
    }
    println!("{:<44} {:>12} {:>12}", "15 records of 1 KB, one partition", "not packed", "lz4");
    for (api, filters) in [("produce", &PRODUCE[..]), ("fetch", &FETCH)] {
        for filter in filters {
            let [plain, packed] = count(api, filter, RECORDS)?;
            println!("{:<44} {plain:>12} {packed:>12}", format!("{api} through {filter}"));
        }
    }
    for api in ["produce", "fetch"] {
        for records in RECORDS_SEALED {
            let [plain, packed] = count(api, ENCRYPTION, records)?;
            let what = format!("{api} through {ENCRYPTION}, {records} records");
            println!("{what:<44} {plain:>12} {packed:>12}");
        }
    }
    Ok(())
}

/// Instructions for a message in [`counted`], with each codec.
fn count(api: &str, filter: &str, records: usize) -> Result<[u64; 2], Box<dyn Error>> {
    let records = records.to_string();
    let [plain, packed] = CODECS.map(|codec| codec.id().to_string()).map(|codec| {
        callgrind::instructions("instructions::counted*", &[api, filter, &records, &codec])
    });
    Ok([plain? / ROUNDS, packed? / ROUNDS])
}

/// The counted function. Callgrind finds it by its name.
#[inline(never)]
fn counted(work: &dyn Fn()) {
    work();
}

/// Passes the same message as often as is counted. That includes the copy of its bytes, which a
/// session of the proxy makes too, and the answer to a request.
fn pass(session: &Session, api: &str) {
    for _ in 0..ROUNDS {
        match api {
            "produce" => drop(black_box(session.produce())),
            _ => drop(black_box(session.fetch())),
        }
    }
}

/// Messages of one partition with a batch, for record encryption.
struct Sealing {
    world: World,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Sealing {
    fn new(records: usize, codec: Compression) -> Self {
        let world = World::new();
        let plain = batch(records, codec);
        let sealed = world.seal(&plain);
        let request = request_bytes(PRODUCE_VERSION, &produce_request(&[&plain]));
        let answer = response_bytes(FETCH_VERSION, &fetch_response(&[&sealed]));
        Self { world, request, answer }
    }

    fn pass(&self, api: &str) {
        for _ in 0..ROUNDS {
            if api == "produce" {
                let request = RequestFrame::parse(self.request.clone(), true);
                black_box(self.world.request(request.expect("it is whole")));
            } else {
                let bytes = self.answer.clone();
                let answer = ResponseFrame::parse(bytes, ApiKey::Fetch, FETCH_VERSION);
                black_box(self.world.response(answer.expect("it is whole")));
            }
        }
    }
}

fn batch(records: usize, codec: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..records {
        builder.append(0, None, Some(&[7; VALUE_BYTES]), []).expect("a small record");
    }
    builder.finish_bytes(codec, &mut Compressor::default()).expect("a small batch")
}
