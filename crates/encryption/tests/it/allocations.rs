//! Sealing and opening allocate nothing once their buffers have grown.

use moldau_encryption::{Opened, Opener, Sealer};
use moldau_records::{BatchOptions, BatchView, Compression};

use crate::sample::{Keys, OPEN_OPTIONS, SEAL_OPTIONS, Sample, build, sealing_key};

const RECORDS: usize = 1000;

#[test]
fn neither_sealing_nor_opening_allocates_after_the_first_batch() {
    let sample = Sample::of_value(&[b'v'; 300]).with_header(b"h", Some(b"1"));
    let (key, keys) = (sealing_key(1), Keys::of(&[1]));
    let mut sealer = Sealer::new(SEAL_OPTIONS);
    let mut opener = Opener::new(OPEN_OPTIONS);
    // Nonces differ from batch to batch, and so does the size of what is compressed.
    let (mut sealed, mut opened) = (Vec::with_capacity(1 << 20), Vec::new());
    for codec in Compression::ALL {
        let bytes = build(BatchOptions::default(), &vec![sample.clone(); RECORDS], codec);
        let batch = BatchView::parse(&bytes).unwrap();
        let mut seal = || {
            sealed.clear();
            let count = sealer.seal(&batch, &key, &mut sealed).unwrap();
            assert_eq!(count as usize, RECORDS);
        };
        seal();
        assert_eq!(allocation_counter::measure(seal).count_total, 0, "{codec}");

        let batch = BatchView::parse(&sealed).unwrap();
        let mut open = || {
            opened.clear();
            let mut edeks = 0;
            opener.edeks(&batch, |_| edeks += 1).unwrap();
            assert_eq!(edeks, 1);
            let outcome = opener.open(&batch, |edek| keys.lookup(edek), &mut opened).unwrap();
            assert!(matches!(outcome, Opened::Rewritten(_)));
        };
        open();
        assert_eq!(allocation_counter::measure(open).count_total, 0, "{codec}");
        assert_eq!(opened, bytes);
    }
}
