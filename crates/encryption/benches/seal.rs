//! What sealing and opening batches cost beside bare AES-256-GCM over the same values: CPU time of
//! this thread per record and per megabyte of values.
//!
//! Both run in the order bare, batch, batch, bare. The bare arm copies each value to where it is
//! sealed or opened, as no one can do without. Run with `cargo bench -p moldau-encryption`; the
//! number of rounds and the codec may follow after `--`.

#![expect(clippy::cast_precision_loss, reason = "figures for people")]

use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, Tag, UnboundKey};
use moldau_encryption::{DataKey, Edek, OpeningKey, SealingKey};
use moldau_records::{BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Rewriter};
use rustix::time::{ClockId, clock_gettime};

#[path = "../tests/it/editors.rs"]
mod editors;

use self::editors::{OpenAll, SealAll};

/// What Vault Transit makes of a data key under a key with a name of 10 letters.
const EDEK_LEN: usize = 100;
/// Bytes of values that one leg seals or opens.
const LEG_BYTES: usize = 64 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.iter().find_map(|text| text.parse().ok()).unwrap_or(5);
    let codec = arguments.iter().find_map(|text| Compression::from_name(text)).unwrap_or_default();
    println!(
        "median of {rounds} rounds, codec {codec}; ms are CPU-ms per MB (2^20 bytes) of values"
    );
    println!(
        "{:<16} {:>5} {:>9} {:>9} {:>9} {:>6} {:>8} {:>9}",
        "values", "arm", "bare ns", "batch ns", "bare ms", "ms", "ratio", "MB/CPU-s"
    );
    for value_len in [100, 1024] {
        for (name, batch_len) in [("1 record", 0), ("16 KB", 16 << 10), ("128 KB", 128 << 10)] {
            let records = (batch_len / (value_len + 10)).max(1);
            let case = Case::new(value_len, records, codec)?;
            case.measure(&format!("{value_len} B, {name}"), rounds)?;
        }
    }
    Ok(())
}

/// A value, and a batch of such values; both plain and sealed.
struct Case {
    records: usize,
    value: Vec<u8>,
    ciphertext: Vec<u8>,
    bare_tag: Tag,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    bare: LessSafeKey,
    sealing: RefCell<SealAll>,
    opening_key: OpeningKey,
}

impl Case {
    fn new(value_len: usize, records: usize, codec: Compression) -> Result<Self, Box<dyn Error>> {
        let key = DataKey::random();
        let mut value = vec![0; value_len];
        let mut builder = BatchBuilder::new(BatchOptions::default());
        for at in 0..records {
            // Half of it compresses.
            value.iter_mut().step_by(2).for_each(|byte| *byte = fastrand::u8(..));
            let key = format!("{at:08}");
            builder.append(0, Some(key.as_bytes()), Some(&value), [])?;
        }
        let plain = builder.finish(codec, &mut Compressor::default())?.to_vec();
        let sealing_key = SealingKey::new(&key, &Edek(vec![7; EDEK_LEN].into()))?;
        let opening_key = OpeningKey::new(&key);
        let mut sealed = Vec::new();
        let mut sealing = SealAll::new(sealing_key);
        let batch = BatchView::parse(&plain)?;
        let counted = sealing.seal(&mut Rewriter::default(), &batch, &mut sealed);
        counted.map_err(|failure| format!("{failure:?}"))?;
        let bare = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key.bytes())?);
        let mut ciphertext = value.clone();
        let bare_tag = bare.seal_in_place_separate_tag(nonce(), Aad::empty(), &mut ciphertext)?;
        Ok(Self {
            records,
            value,
            ciphertext,
            bare_tag,
            plain,
            sealed,
            bare,
            sealing: RefCell::new(sealing),
            opening_key,
        })
    }

    fn measure(&self, name: &str, rounds: usize) -> Result<(), Box<dyn Error>> {
        let (mut rewriter, mut out) = (Rewriter::default(), Vec::new());
        let mut sealing = self.sealing.borrow_mut();
        let mut opening = OpenAll::new(|_: &[u8]| Some(&self.opening_key), false);
        let (mut one, mut other) = (Vec::new(), Vec::new());
        let plain = BatchView::parse(&self.plain)?;
        let sealed = BatchView::parse(&self.sealed)?;
        self.compare(
            name,
            "seal",
            rounds,
            || self.seal_bare(&mut one),
            || {
                out.clear();
                let sealed = sealing.seal(&mut rewriter, &plain, &mut out);
                black_box(&out);
                sealed.map(drop).map_err(|failure| format!("{failure:?}").into())
            },
        )?;
        self.compare(
            name,
            "open",
            rounds,
            || self.open_bare(&mut other),
            || {
                out.clear();
                let opened = opening.open(&mut rewriter, &sealed, &mut out);
                black_box(&out);
                opened.map(drop).map_err(|failure| format!("{failure:?}").into())
            },
        )
    }

    fn compare(
        &self,
        name: &str,
        arm: &str,
        rounds: usize,
        mut bare: impl FnMut() -> Result<(), Box<dyn Error>>,
        mut batch: impl FnMut() -> Result<(), Box<dyn Error>>,
    ) -> Result<(), Box<dyn Error>> {
        let batches = (LEG_BYTES / (self.records * self.value.len())).min(200_000);
        let (mut bares, mut costs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let first = leg(batches, &mut bare)?;
            let cost = leg(batches, &mut batch)? + leg(batches, &mut batch)?;
            let bare = first + leg(batches, &mut bare)?;
            let per_record =
                |time: Duration| time.as_nanos() as f64 / (2 * batches * self.records) as f64;
            bares.push(per_record(bare));
            costs.push(per_record(cost));
            ratios.push(cost.as_secs_f64() / bare.as_secs_f64());
        }
        let (bare, cost, ratio) = (median(&mut bares), median(&mut costs), median(&mut ratios));
        let ms = |ns: f64| ns / self.value.len() as f64 * f64::from(1 << 20) / 1e6;
        println!(
            "{name:<16} {arm:>5} {bare:>9.1} {cost:>9.1} {:>9.3} {:>6.3} {ratio:>8.2} {:>9.0}",
            ms(bare),
            ms(cost),
            1e3 / ms(cost),
        );
        Ok(())
    }

    /// Seals as many copies of a value.
    fn seal_bare(&self, place: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
        for _ in 0..self.records {
            place.clear();
            place.extend_from_slice(&self.value);
            let tag = self.bare.seal_in_place_separate_tag(nonce(), Aad::empty(), place)?;
            black_box(tag.as_ref());
        }
        Ok(())
    }

    /// Opens as many copies of a ciphertext.
    fn open_bare(&self, place: &mut Vec<u8>) -> Result<(), Box<dyn Error>> {
        let (tag, ciphertext) = (self.bare_tag.as_ref(), &self.ciphertext);
        for _ in 0..self.records {
            place.clear();
            place.extend_from_slice(ciphertext);
            let opened = self.bare.open_in_place_separate_tag(nonce(), Aad::empty(), tag, place)?;
            black_box(opened);
        }
        Ok(())
    }
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([1; 12])
}

/// CPU time of this thread over as many calls.
fn leg(
    calls: usize,
    call: &mut impl FnMut() -> Result<(), Box<dyn Error>>,
) -> Result<Duration, Box<dyn Error>> {
    let start = cpu_time()?;
    for _ in 0..calls {
        call()?;
    }
    Ok(cpu_time()? - start)
}

fn cpu_time() -> Result<Duration, Box<dyn Error>> {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Ok(Duration::new(time.tv_sec.try_into()?, time.tv_nsec.try_into()?))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
