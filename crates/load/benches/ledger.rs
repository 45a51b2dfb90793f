//! Instructions that the ledger takes for a record: writing what says which record it is, and
//! checking and noting it when it comes back.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Run with `cargo bench -p moldau-lab --bench ledger`.

use std::error::Error;
use std::hint::black_box;

use moldau_load::ledger::DeliveryLedger;
use moldau_load::payload::{Account, Filler, Header, PayloadWriter};

#[path = "../../../benches/callgrind.rs"]
mod callgrind;

/// Bytes of a record.
const SIZES: [usize; 3] = [100, 1_000, 64_000];
/// Records that are counted.
const RECORDS: u64 = 1_000;
const PARTITIONS: u16 = 6;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, bytes] = &arguments[..] {
        let values = Values::of(bytes.parse()?)?;
        counted(what, &values);
        return Ok(());
    }
    println!("{:<16} {:>12} {:>12}", "bytes a record", "written", "noted");
    for bytes in SIZES {
        println!("{bytes:<16} {:>12} {:>12}", count("write", bytes)?, count("note", bytes)?);
    }
    Ok(())
}

/// Instructions for a record in [`counted`].
fn count(what: &str, bytes: usize) -> Result<u64, Box<dyn Error>> {
    Ok(callgrind::instructions("ledger::counted*", &[what, &bytes.to_string()])? / RECORDS)
}

struct Values {
    writer: PayloadWriter,
    /// One record after the other.
    written: Vec<u8>,
    bytes: usize,
}

impl Values {
    fn of(bytes: usize) -> Result<Self, Box<dyn Error>> {
        let writer = PayloadWriter::new(Filler::Text, Account::default(), 1, bytes)?;
        let (mut written, mut value) = (Vec::new(), Vec::new());
        for header in headers() {
            writer.write(header, &mut value);
            written.extend_from_slice(&value);
        }
        Ok(Self { writer, written, bytes })
    }
}

fn headers() -> impl Iterator<Item = Header> {
    (0..RECORDS).map(|n| {
        let partition = u16::try_from(n % u64::from(PARTITIONS)).unwrap_or(0);
        let sequence = n / u64::from(PARTITIONS);
        Header { run: 7, producer: 0, partition, sequence, intended_ns: n }
    })
}

/// What is counted. Callgrind knows it by its name.
#[inline(never)]
fn counted(what: &str, values: &Values) {
    if what == "write" {
        let mut value = Vec::with_capacity(values.bytes);
        for header in headers() {
            values.writer.write(black_box(header), &mut value);
        }
        black_box(value);
        return;
    }
    let mut ledger = DeliveryLedger::new(7, 1, PARTITIONS);
    for (header, value) in headers().zip(values.written.chunks(values.bytes)) {
        black_box(ledger.observe(header.partition, header.sequence, black_box(value)));
    }
}
