//! Instructions that the hot path takes, for each record and for each message: figures that do not
//! depend on what else the machine does.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Valgrind shows a processor with AVX2, so that ciphers and checksums take more
//! instructions here than on one with AVX-512. Run with
//! `cargo bench -p moldau-proxy --bench instructions`.

use std::error::Error;
use std::hint::black_box;

use bytes::Bytes;
use moldau_protocol::ApiKey;
use moldau_protocol::walk::Walker;
use moldau_proxy::{RequestFrame, ResponseFrame};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor};

#[path = "../../../benches/callgrind.rs"]
mod callgrind;
#[path = "../tests/it/filter_any.rs"]
#[expect(dead_code, reason = "the tests need more of it")]
mod filter_any;

use self::filter_any::{World, fetch_response, produce_request, request_bytes, response_bytes};

const VALUE_BYTES: usize = 1024;
/// Records of a batch: single ones, and what fills 16 KB and 128 KB.
const RECORDS: [usize; 3] = [1, 15, 125];
const WORK: [&str; 3] = ["produce", "fetch", "walk"];
/// Messages that are counted, after as many that are not, by which all buffers have grown.
const ROUNDS: u64 = 20;

const PRODUCE_VERSION: i16 = 12;
const FETCH_VERSION: i16 = 17;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [work, records] = &arguments[..] {
        let message = Messages::new(records.parse()?);
        message.pass(work);
        counted(&message, work);
        return Ok(());
    }
    println!("{:<44} {:>12} {:>12}", "records of 1 KB, one partition", "message", "record");
    for (work, what) in WORK.iter().zip([
        "produce request, sealed and written anew",
        "fetch answer, opened and written anew",
        "fetch answer, walked as it passes",
    ]) {
        for records in RECORDS {
            let message = count(work, records)? / ROUNDS;
            let each = message / u64::try_from(records)?;
            let what = format!("{what}, {records}");
            println!("{what:<44} {message:>12} {each:>12}");
        }
    }
    Ok(())
}

/// Instructions of a run in [`counted`].
fn count(work: &str, records: usize) -> Result<u64, Box<dyn Error>> {
    callgrind::instructions("instructions::counted*", &[work, &records.to_string()])
}

/// What is counted. Callgrind knows it by its name.
#[inline(never)]
fn counted(messages: &Messages, work: &str) {
    messages.pass(work);
}

/// Messages of one partition with a batch.
struct Messages {
    world: World,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Messages {
    fn new(records: usize) -> Self {
        let world = World::new();
        let plain = batch(records);
        let sealed = world.seal(&plain);
        let request = request_bytes(PRODUCE_VERSION, &produce_request(&[&plain]));
        let answer = response_bytes(FETCH_VERSION, &fetch_response(&[&sealed]));
        Self { world, request, answer }
    }

    /// Passes the same message as often as is counted. That includes the copy of its bytes, which
    /// a session makes too.
    fn pass(&self, work: &str) {
        for _ in 0..ROUNDS {
            match work {
                "produce" => {
                    let request = RequestFrame::parse(self.request.clone(), true);
                    black_box(self.world.request(request.expect("it is whole")));
                }
                "fetch" => {
                    let bytes = self.answer.clone();
                    let answer = ResponseFrame::parse(bytes, ApiKey::Fetch, FETCH_VERSION);
                    black_box(self.world.response(answer.expect("it is whole")));
                }
                _ => walk(self.answer.get(HEAD_BYTES..).unwrap_or_default()),
            }
        }
    }
}

fn walk(body: &[u8]) {
    let mut walker = Walker::fetch_response(FETCH_VERSION, body.len()).expect("a known version");
    let mut rest = body;
    while !rest.is_empty() {
        let run = walker.next_run(rest).expect("it is whole");
        rest = rest.get(black_box(run).len..).unwrap_or_default();
    }
}

/// Length and correlation id, which the walker does not see.
const HEAD_BYTES: usize = 8;

fn batch(records: usize) -> Bytes {
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..records {
        builder.append(0, None, Some(&[7; VALUE_BYTES]), []).expect("a small record");
    }
    builder.finish_bytes(Compression::None, &mut Compressor::default()).expect("a small batch")
}
