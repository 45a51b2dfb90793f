//! Instructions that each filter takes for a message of 16 KB: figures that do not depend on what
//! else the machine does.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Run with `cargo bench -p moldau-filters --bench instructions`.

use std::error::Error;
use std::hint::black_box;

use moldau_records::Compression;

#[path = "../../../benches/callgrind.rs"]
mod callgrind;
#[path = "../tests/it/messages.rs"]
mod messages;

use self::messages::{FETCH, PRODUCE, Session};

/// Records of a message: what fills 16 KB.
const RECORDS: usize = 15;
/// Messages that are counted, after as many that are not, by which all buffers have grown.
const ROUNDS: u64 = 20;
const CODECS: [Compression; 2] = [Compression::None, Compression::Lz4];

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [api, filter, codec] = &arguments[..] {
        let session = Session::new(filter, RECORDS, Compression::from_id(codec.parse()?)?);
        pass(&session, api);
        counted(&session, api);
        return Ok(());
    }
    println!("{:<44} {:>12} {:>12}", "15 records of 1 KB, one partition", "not packed", "lz4");
    for (api, filters) in [("produce", &PRODUCE[..]), ("fetch", &FETCH)] {
        for filter in filters {
            let [plain, packed] = [count(api, filter, CODECS[0])?, count(api, filter, CODECS[1])?];
            println!("{:<44} {plain:>12} {packed:>12}", format!("{api} through {filter}"));
        }
    }
    Ok(())
}

/// Instructions for a message in [`counted`].
fn count(api: &str, filter: &str, codec: Compression) -> Result<u64, Box<dyn Error>> {
    Ok(callgrind::instructions("instructions::counted*", &[api, filter, &codec.id().to_string()])?
        / ROUNDS)
}

/// What is counted. Callgrind knows it by its name.
#[inline(never)]
fn counted(session: &Session, api: &str) {
    pass(session, api);
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
