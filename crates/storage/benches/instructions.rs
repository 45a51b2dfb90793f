//! Instructions for a record on its way from a request into the journal: the check of its batch and
//! the append. Figures that do not depend on what else the machine does.
//!
//! Runs itself under Valgrind's Callgrind, which must be installed and counts only what happens in
//! one function. Run with `cargo bench -p moldau-storage --bench instructions`.

use std::error::Error;
use std::hint::black_box;
use std::sync::Arc;

use moldau_records::{AppendRules, BatchBuilder, BatchOptions, Compression, Compressor, Validator};
use moldau_storage::{Drive, Log, Options, Replay, Storage, TopicId};

#[path = "../../../benches/callgrind.rs"]
mod callgrind;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Appends that are counted, after as many that are not, by which all buffers have grown.
const ROUNDS: u64 = 10;

/// Bytes of a record's value, and records of a batch.
const BATCHES: [(usize, u64); 5] = [(100, 1), (100, 100), (100, 5_000), (1_000, 15), (1_000, 900)];

struct NoMetadata;

impl Replay for NoMetadata {
    fn metadata(&mut self, _bytes: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [value_bytes, records, codec] = &arguments[..] {
        let codec = Compression::from_id(codec.parse()?)?;
        return run(&batch(value_bytes.parse()?, records.parse()?, codec)?);
    }
    let codecs = Compression::ALL.map(|codec| format!("{:>10}", codec.name())).concat();
    println!("{:<24}{codecs}", "instructions a record");
    for (value_bytes, records) in BATCHES {
        let counts: Outcome<Vec<u64>> = Compression::ALL
            .into_iter()
            .map(|codec| {
                let arguments =
                    [value_bytes.to_string(), records.to_string(), codec.id().to_string()];
                let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
                let all = callgrind::instructions("instructions::counted*", &arguments)?;
                Ok(all / ROUNDS / records)
            })
            .collect();
        let counts: String = counts?.iter().map(|count| format!("{count:>10}")).collect();
        println!("{:<24}{counts}", format!("{records} of {value_bytes} B"));
    }
    Ok(())
}

fn run(batch: &[u8]) -> Outcome<()> {
    let dir = tempfile::tempdir()?;
    let options = Options { drive: Drive::Stepped, ..Options::new(dir.path()) };
    let storage = Storage::open(options, &mut NoMetadata)?;
    let log = storage.log(TopicId([1; 16]), 0);
    let mut validator = Validator::default();
    for _ in 0..ROUNDS {
        append(&log, &mut validator, batch)?;
        while storage.step() {}
    }
    for _ in 0..ROUNDS {
        counted(&log, &mut validator, batch)?;
        while storage.step() {}
    }
    Ok(())
}

/// The counted function. Callgrind finds it by its name.
#[inline(never)]
fn counted(log: &Arc<Log>, validator: &mut Validator, batch: &[u8]) -> Outcome<()> {
    append(log, validator, batch)
}

fn append(log: &Arc<Log>, validator: &mut Validator, batch: &[u8]) -> Outcome<()> {
    let batch = validator.check(black_box(batch), &AppendRules::LENIENT);
    let batch = batch.map_err(|invalid| invalid.error)?;
    black_box(log.append(&batch, 0)?);
    Ok(())
}

/// A batch of records as an application writes them: texts that repeat their field names.
fn batch(value_bytes: usize, records: u64, codec: Compression) -> Outcome<Vec<u8>> {
    let mut random = fastrand::Rng::with_seed(7);
    let mut builder = BatchBuilder::new(BatchOptions::default());
    for at in 0..records {
        let mut value = String::new();
        while value.len() < value_bytes {
            let number = random.u32(..);
            value.push_str(&format!("{{\"order\":{number},\"state\":\"shipped\"}},"));
        }
        let value = value.as_bytes().get(..value_bytes).unwrap_or_default();
        let timestamp = 1_700_000_000_000 + i64::try_from(at)?;
        let key = at.to_string();
        builder.append(timestamp, Some(key.as_bytes()), Some(value), [])?;
    }
    Ok(builder.finish(codec, &mut Compressor::default())?.to_vec())
}
