//! Sealing and opening allocate nothing once their buffers have grown.

use moldau_records::{BatchOptions, BatchView, Compression, Rewriter};

use crate::editors::{OpenAll, SealAll};
use crate::sample::{Keys, Sample, build, sealing_key};

const RECORDS: usize = 1000;

#[test]
fn neither_sealing_nor_opening_allocates_after_the_first_batch() {
    let sample = Sample::of_value(&[b'v'; 300]).with_header(b"h", Some(b"1"));
    let (mut sealing, keys) = (SealAll::new(sealing_key(1)), Keys::of(&[1]));
    let mut opening = OpenAll::new(|edek: &[u8]| keys.get(edek), false);
    let mut rewriter = Rewriter::default();
    // Nonces differ from batch to batch, and so does the size of what is compressed.
    let (mut sealed, mut opened) = (Vec::with_capacity(1 << 20), Vec::new());
    for codec in Compression::ALL {
        let bytes = build(BatchOptions::default(), &vec![sample.clone(); RECORDS], codec);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut seal = || {
            sealed.clear();
            let count = sealing.seal(&mut rewriter, &batch, &mut sealed).unwrap();
            assert_eq!(count as usize, RECORDS);
        };
        seal();
        assert_eq!(allocation_counter::measure(seal).count_total, 0, "{codec}");

        let batch = BatchView::parse(&sealed).unwrap();
        let mut open = || {
            opened.clear();
            let outcome = opening.open(&mut rewriter, &batch, &mut opened).unwrap();
            assert!(outcome.is_rewritten);
        };
        open();
        assert_eq!(allocation_counter::measure(open).count_total, 0, "{codec}");
        assert_eq!(opened, bytes);
    }
}
