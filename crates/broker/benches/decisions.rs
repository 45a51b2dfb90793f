//! Instructions that a decision of the authorizer takes, by the number of ACLs: figures that do not
//! depend on what else the machine does. A connection remembers its decisions until an ACL changes,
//! so that a request pays this for names that are new to it.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Run with `cargo bench -p moldau-broker --bench decisions`.

use std::error::Error;
use std::hint::black_box;

use moldau_broker::Decisions;

#[path = "../../../benches/callgrind.rs"]
mod callgrind;

const OTHERS: [usize; 3] = [0, 100, 10_000];
/// Decisions that are counted.
const ROUNDS: u64 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [work, others] = &arguments[..] {
        counted(&Decisions::new(others.parse()?), work);
        return Ok(());
    }
    println!("{:<44} {:>10} {:>10} {:>10}", "other ACLs", OTHERS[0], OTHERS[1], OTHERS[2]);
    for (work, what) in
        [("write", "produce, the topic's own ACL"), ("read", "fetch, by prefixes only, refused")]
    {
        let counts = OTHERS.map(|others| count(work, others));
        let [none, some, many] = counts;
        println!("{what:<44} {:>10} {:>10} {:>10}", none?, some?, many?);
    }
    Ok(())
}

/// Instructions of a decision in [`counted`].
fn count(work: &str, others: usize) -> Result<u64, Box<dyn Error>> {
    Ok(callgrind::instructions("decisions::counted*", &[work, &others.to_string()])? / ROUNDS)
}

/// What is counted. Callgrind knows it by its name.
#[inline(never)]
fn counted(decisions: &Decisions, work: &str) {
    for _ in 0..ROUNDS {
        let may = match work {
            "write" => black_box(decisions).may_write(),
            _ => black_box(decisions).may_read_other(),
        };
        assert_eq!(black_box(may), work == "write");
    }
}
