//! Measures both passes of a cleaning over a log in memory, per record.
//!
//! `cargo bench -p moldau-records --bench clean -- [RECORDS] [KEYS]`: records in the log (default
//! 2,000,000) in batches of 100, and different keys among them (default 1,000,000); keys of 16
//! bytes, values of 100. "map" is the first pass; "half goes" filters a log; the map keeps the last
//! record of each key; "all stay" the log that this leaves, against a map of other keys. Each is
//! the best of three runs.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::time::{Duration, Instant};

use moldau_records::{
    BatchBuilder, BatchOptions, BatchView, CleanPolicy, Cleaned, Cleaner, Compression, Compressor,
    Error, KeyMap, iter_batches,
};

const RECORDS_PER_BATCH: u64 = 100;
const VALUE_LEN: usize = 100;
const BYTES_MAX: usize = 1 << 20;
const TIME: i64 = 1_700_000_000_000;

fn log(records: u64, keys: u64, codec: Compression) -> Result<Vec<u8>, Error> {
    let mut random = fastrand::Rng::with_seed(9);
    let mut compressor = Compressor::default();
    let mut builder = BatchBuilder::new(BatchOptions::default());
    let mut value = [0; VALUE_LEN];
    let mut log = Vec::new();
    let mut base_offset = 0;
    for _ in 0..records / RECORDS_PER_BATCH {
        builder.start(BatchOptions { base_offset, ..Default::default() });
        for at in 0..RECORDS_PER_BATCH {
            value.iter_mut().take(VALUE_LEN / 2).for_each(|byte| *byte = random.u8(..));
            let key = format!("key-{:012}", random.u64(..keys));
            let timestamp = TIME.saturating_add_unsigned(at);
            builder.append(timestamp, Some(key.as_bytes()), Some(&value), [])?;
        }
        let batch = builder.finish(codec, &mut compressor)?;
        base_offset = BatchView::parse(batch)?.next_offset();
        log.extend_from_slice(batch);
    }
    Ok(log)
}

/// The first pass.
fn map(cleaner: &mut Cleaner, map: &mut KeyMap, log: &[u8], end: i64) -> Result<Duration, Error> {
    best_of_three(|| {
        map.start(0, end);
        let begin = Instant::now();
        for batch in iter_batches(log) {
            cleaner.map_batch(&batch?, map)?;
        }
        Ok(begin.elapsed())
    })
}

/// The second pass; leaves the cleaned log in `cleaned`.
fn clean(
    cleaner: &mut Cleaner,
    map: &KeyMap,
    log: &[u8],
    cleaned: &mut Vec<u8>,
) -> Result<Duration, Error> {
    best_of_three(|| {
        cleaned.clear();
        let begin = Instant::now();
        for batch in iter_batches(log) {
            let batch = batch?;
            match cleaner.clean_batch(&batch, map, false)? {
                Cleaned::Unchanged => cleaned.extend_from_slice(batch.bytes()),
                Cleaned::Rewritten(bytes) | Cleaned::Emptied(bytes) => {
                    cleaned.extend_from_slice(bytes);
                }
                Cleaned::Removed => {}
            }
        }
        Ok(begin.elapsed())
    })
}

fn best_of_three(mut run: impl FnMut() -> Result<Duration, Error>) -> Result<Duration, Error> {
    Ok(run()?.min(run()?).min(run()?))
}

fn print(codec: Compression, pass: &str, records: u64, elapsed: Duration) {
    let per_record = elapsed.as_nanos() as f64 / records as f64;
    let codec = codec.name();
    println!("{codec:<8} {pass:<10} {records:>9} records {per_record:>8.1} ns/record");
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let numbers = std::env::args().skip(1).filter_map(|text| text.parse().ok());
    let numbers: Vec<u64> = numbers.collect();
    let records = numbers.first().copied().unwrap_or(2_000_000);
    let keys = numbers.get(1).copied().unwrap_or(1_000_000);
    let end = i64::try_from(records)?;
    let policy =
        CleanPolicy { now_ms: TIME, delete_retention_ms: 1000, first_uncleanable_offset: end };
    for codec in Compression::ALL {
        let dirty = log(records, keys, codec)?;
        let mut cleaner = Cleaner::new(BYTES_MAX, policy);
        let mut keys_map = KeyMap::new(128 << 20, fastrand::u64(..));
        print(codec, "map", records, map(&mut cleaner, &mut keys_map, &dirty, end)?);
        let mut cleaned = Vec::new();
        print(codec, "half goes", records, clean(&mut cleaner, &keys_map, &dirty, &mut cleaned)?);

        cleaner.start(policy);
        let mut others = KeyMap::new(128 << 20, fastrand::u64(..));
        others.start(0, end);
        for key in 0..keys_map.len() {
            others.insert(&key.to_be_bytes(), 0)?;
        }
        others.advance_to(end);
        let left: i32 = iter_batches(&cleaned).flatten().map(|batch| batch.records_count()).sum();
        let elapsed = clean(&mut cleaner, &others, &cleaned, &mut Vec::new())?;
        print(codec, "all stay", u64::try_from(left)?, elapsed);
    }
    Ok(())
}
