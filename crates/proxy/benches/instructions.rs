//! Instructions that a fetch answer takes which is walked as it passes: figures that do not depend
//! on what else the machine does. Those of filters are counted by the bench of their crate.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Run with `cargo bench -p moldau-proxy --bench instructions`.

use std::error::Error;
use std::hint::black_box;

use moldau_protocol::walk::Walker;

#[path = "../../../benches/callgrind.rs"]
mod callgrind;
#[path = "../../../benches/exchange.rs"]
#[expect(dead_code, reason = "another bench needs more of it")]
mod exchange;

/// Records of a batch: single ones, and what fills 16 KB and 128 KB.
const RECORDS: [usize; 3] = [1, 15, 125];
/// Answers that are counted.
const ROUNDS: u64 = 20;
/// Length and correlation id, which the walker does not see.
const HEAD_BYTES: usize = 8;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [records] = &arguments[..]
        && let Ok(records) = records.parse()
    {
        let answer = exchange::fetch(1, 1, records).answer;
        counted(answer.get(HEAD_BYTES..).unwrap_or_default());
        return Ok(());
    }
    println!("{:<34} {:>12} {:>12}", "records of 1 KB, one partition", "answer", "record");
    for records in RECORDS {
        let all = callgrind::instructions("instructions::counted*", &[&records.to_string()])?;
        let answer = all / ROUNDS;
        let what = format!("fetch answer, walked, {records}");
        println!("{what:<34} {answer:>12} {:>12}", answer / u64::try_from(records)?);
    }
    Ok(())
}

/// The counted function. Callgrind finds it by its name.
#[inline(never)]
fn counted(body: &[u8]) {
    for _ in 0..ROUNDS {
        let mut walker =
            Walker::fetch_response(exchange::FETCH_VERSION, body.len()).expect("known");
        let mut rest = body;
        while !rest.is_empty() {
            let run = walker.next_run(rest).expect("it is whole");
            rest = rest.get(black_box(run).len..).unwrap_or_default();
        }
    }
}
