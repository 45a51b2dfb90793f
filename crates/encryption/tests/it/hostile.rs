//! Seeded random and damaged bytes; what the fuzz target does without end, done for a while.

use crate::open_any::World;
use crate::sample::{Sample, build, seal};
use moldau_records::{BatchOptions, Compression};

const ROUNDS: usize = 2000;

#[test]
fn random_values_and_parcels_break_no_reader() {
    let mut random = fastrand::Rng::with_seed(1);
    let mut world = World::new();
    for selector in 0..=u8::MAX {
        for _ in 0..ROUNDS / 64 {
            // Mostly small bytes, which are plausible lengths and counts.
            let len = random.usize(..60);
            let mut data: Vec<u8> = (0..len).map(|_| random.u8(..) & random.u8(..)).collect();
            data.insert(0, selector);
            world.read(&data);
        }
    }
}

#[test]
fn damaged_batches_break_no_reader() {
    let mut random = fastrand::Rng::with_seed(2);
    let mut world = World::new();
    let samples = [Sample::of_value(b"value").with_header(b"h", None), Sample::tombstone()];
    for codec in Compression::ALL {
        let sealed = seal(&build(BatchOptions::default(), &samples, codec), 1);
        for _ in 0..ROUNDS {
            let mut data = sealed.clone();
            for _ in 0..random.usize(1..4) {
                let at = random.usize(..data.len());
                data[at] = random.u8(..) & random.u8(..);
            }
            data.truncate(random.usize(data.len() / 2..data.len() * 2));
            data.insert(0, 0);
            world.read(&data);
        }
    }
}
