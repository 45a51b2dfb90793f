//! Instructions per record that the broker's check of a produced batch takes: of the header with
//! its checksum alone, and of all records with it, as the broker does. Batches of 16 KB.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Run with `cargo bench -p moldau-records --bench instructions`.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::error::Error;
use std::hint::black_box;

use moldau_records::{
    AppendRules, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Validator,
};

#[path = "../../../benches/callgrind.rs"]
mod callgrind;

const BATCH_BYTES: usize = 16 << 10;
const VALUE_BYTES: [usize; 2] = [100, 1024];
/// Batches that are counted, after as many that are not, by which all buffers have grown.
const ROUNDS: usize = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [what, value_bytes, codec] = &arguments[..] {
        let batch = batch(value_bytes.parse()?, Compression::from_id(codec.parse()?)?)?;
        let mut validator = Validator::default();
        let mut check = || match what.as_str() {
            "header" => header(&batch),
            _ => records(&mut validator, &batch),
        };
        (0..ROUNDS).try_for_each(|_| check())?;
        return Ok(counted(&mut check)?);
    }
    println!("{:<22} {:>10} {:>10} {:>8}", "per record", "header", "all", "ratio");
    for value_bytes in VALUE_BYTES {
        for codec in Compression::ALL {
            let (bytes, id) = (value_bytes.to_string(), codec.id().to_string());
            let per_record = |what| -> Result<f64, Box<dyn Error>> {
                let arguments = [what, bytes.as_str(), id.as_str()];
                let count = callgrind::instructions("instructions::counted*", &arguments)?;
                Ok(count as f64 / (ROUNDS * BATCH_BYTES / value_bytes) as f64)
            };
            let (header, all) = (per_record("header")?, per_record("records")?);
            let what = format!("{value_bytes} B, {codec:?}");
            println!("{what:<22} {header:>10.1} {all:>10.1} {:>8.2}", all / header);
        }
    }
    Ok(())
}

/// Records whose values are halfway random, as texts are to a codec.
fn batch(value_bytes: usize, codec: Compression) -> Result<Vec<u8>, moldau_records::Error> {
    let mut random = fastrand::Rng::with_seed(5);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for _ in 0..BATCH_BYTES / value_bytes {
        let value: Vec<u8> = (0..value_bytes)
            .map(|at| if at % 2 == 0 { random.alphanumeric() as u8 } else { b'.' })
            .collect();
        builder.append(1_700_000_000_000, None, Some(&value), [])?;
    }
    Ok(builder.finish(codec, &mut Compressor::default())?.to_vec())
}

fn header(batch: &[u8]) -> Result<(), moldau_records::Error> {
    let batch = BatchView::parse(black_box(batch))?;
    batch.check_crc()?;
    batch.check_count()
}

fn records(validator: &mut Validator, batch: &[u8]) -> Result<(), moldau_records::Error> {
    let checked = validator.check(black_box(batch), &AppendRules::LENIENT);
    checked.map(|_| ()).map_err(|invalid| invalid.error)
}

#[inline(never)]
fn counted(
    check: &mut dyn FnMut() -> Result<(), moldau_records::Error>,
) -> Result<(), moldau_records::Error> {
    (0..ROUNDS).try_for_each(|_| check())
}
