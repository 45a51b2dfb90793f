//! One entry for arbitrary bytes into all that reads sealed records. The fuzz target includes this
//! file as well.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use moldau_encryption::{DataKey, Edek, MARKER_KEY, OpeningKey, Parcel, SealingKey};
use moldau_records::{
    BATCH_HEADER_LEN, BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor,
    HeaderView, Rewriter, crc32c, iter_batches, write_header_like,
};
use zeroize::Zeroizing;

use super::editors::{OpenAll, SealAll};

/// Most bytes that a batch may unpack to, and that a sealed one may take.
const BYTES_MAX: usize = 8 << 20;
/// An EDEK that the reader has the key of.
const EDEK: [u8; 40] = [0x55; 40];

/// What the reads and writes of one thread need, so that an input costs little.
pub(crate) struct World {
    sealing: SealAll,
    opening_key: OpeningKey,
    cipher: LessSafeKey,
    rewriter: Rewriter,
    decompressors: [Decompressor; 2],
    compressor: Compressor,
    builder: BatchBuilder,
}

impl World {
    /// A world with one data key.
    pub(crate) fn new() -> Self {
        let key = DataKey::new(Zeroizing::new([9; 32]));
        let cipher = UnboundKey::new(&AES_256_GCM, key.bytes()).expect("a key of 32 bytes");
        Self {
            sealing: SealAll::new(SealingKey::new(&key, &Edek(EDEK.into())).expect("short")),
            opening_key: OpeningKey::new(&key),
            cipher: LessSafeKey::new(cipher),
            rewriter: Rewriter::default(),
            decompressors: Default::default(),
            compressor: Compressor::default(),
            builder: BatchBuilder::new(BatchOptions::default()),
        }
    }

    /// Reads `data` in one of four ways, by its first byte.
    ///
    /// # Panics
    /// If a promise of the crate is broken.
    pub(crate) fn read(&mut self, data: &[u8]) {
        let Some((&selector, data)) = data.split_first() else { return };
        // Most inputs are not compressed, so that more of them are read in a second.
        let codec = Compression::from_id(selector >> 3).unwrap_or_default();
        match selector & 3 {
            0 => self.read_batches(data),
            1 => self.read_changed(data, codec),
            2 => self.read_value(data, codec),
            _ => self.read_parcel(data, codec),
        }
    }

    /// Arbitrary bytes as batches with right checksums.
    fn read_batches(&mut self, data: &[u8]) {
        let mut bytes = data.to_vec();
        let mut start = 0;
        for batch in iter_batches(data).map_while(Result::ok) {
            let end = start + batch.bytes().len();
            mend(&mut bytes[start..end]);
            start = end;
        }
        for batch in iter_batches(&bytes).map_while(Result::ok) {
            self.open(&batch);
            self.seal(&batch);
        }
    }

    /// A sealed batch with bytes of its records changed: each change is a place and a byte.
    fn read_changed(&mut self, data: &[u8], codec: Compression) {
        let headers = [HeaderView { key: b"h", value: Some(b"1") }];
        self.builder.start(BatchOptions::default());
        self.builder.append(5, Some(b"key"), Some(b"some value"), headers).expect("it is small");
        self.builder.append(6, None, Some(b""), []).expect("it is small");
        self.builder.append(7, Some(b"key"), None, []).expect("it is small");
        let plain = self.builder.finish(Compression::None, &mut self.compressor).expect("small");
        let batch = BatchView::parse(plain).expect("the builder writes whole batches");
        let mut sealed = Vec::new();
        self.sealing.seal(&mut self.rewriter, &batch, &mut sealed).expect("it is small");
        let mut records = sealed.split_off(BATCH_HEADER_LEN);
        for change in data.chunks_exact(3) {
            let at = usize::from(u16::from_le_bytes([change[0], change[1]]));
            let at = at % records.len();
            records[at] ^= change[2];
        }
        let mut bytes = sealed;
        self.compressor.compress(codec, &records, &mut bytes).expect("it is small");
        write_header_like(&mut bytes, &batch, codec).expect("it has room for a header");
        self.open(&BatchView::parse(&bytes).expect("its header is whole"));
    }

    /// Arbitrary bytes as the value of a sealed record; what they are wrapped with stands in front
    /// of half of them, so that more than the first field is read.
    fn read_value(&mut self, data: &[u8], codec: Compression) {
        let head = [&[0, 40][..], &EDEK, &[0]].concat();
        let value = match data.split_first() {
            Some((first, rest)) if first & 1 == 1 => [&head, rest].concat(),
            _ => data.to_vec(),
        };
        self.open_value(&value, codec);
    }

    /// Arbitrary bytes as a parcel that was sealed with the right key.
    fn read_parcel(&mut self, data: &[u8], codec: Compression) {
        let parcel = Parcel::parse(data);
        let nonce = [3; 12];
        let mut sealed = data.to_vec();
        self.cipher
            .seal_in_place_append_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut sealed,
            )
            .expect("it is small");
        let value = [&[0, 40][..], &EDEK, &[0], &nonce, &sealed].concat();
        assert_eq!(self.open_value(&value, codec), parcel.is_ok());
    }

    /// Whether a sealed record with this value opens.
    fn open_value(&mut self, value: &[u8], codec: Compression) -> bool {
        let marker = HeaderView { key: MARKER_KEY.as_bytes(), value: Some(&[2]) };
        let other = HeaderView { key: b"h", value: None };
        self.builder.start(BatchOptions { base_offset: 9, ..Default::default() });
        self.builder.append(0, None, Some(value), [marker, other]).expect("it is small");
        let bytes = self.builder.finish(codec, &mut self.compressor).expect("small").to_vec();
        self.open(&BatchView::parse(&bytes).expect("the builder writes whole batches"))
    }

    /// Whether all sealed records of the batch open, and there is one.
    fn open(&mut self, batch: &BatchView<'_>) -> bool {
        let mut opens = false;
        let [decompressor, _] = &mut self.decompressors;
        for passes_damaged in [false, true] {
            let mut out = b"before".to_vec();
            let opened = OpenAll::new(lookup(&self.opening_key), passes_damaged).open(
                &mut self.rewriter,
                batch,
                &mut out,
            );
            let (before, out) = out.split_at(6);
            assert_eq!(before, b"before");
            if let Ok(opened) = opened
                && opened.is_rewritten
            {
                check_rewritten(batch, out, decompressor);
                opens = opened.passed == 0;
            } else {
                assert_eq!(out, b"");
            }
        }
        opens
    }

    /// Seals any batch, and opens it to the same records.
    fn seal(&mut self, batch: &BatchView<'_>) {
        let mut sealed = Vec::new();
        let Ok(count) = self.sealing.seal(&mut self.rewriter, batch, &mut sealed) else { return };
        let outer = BatchView::parse(&sealed).expect("a sealed batch is whole");
        if count == 0 {
            assert_eq!(outer.bytes(), batch.bytes());
            return;
        }
        let [one, other] = &mut self.decompressors;
        check_rewritten(batch, &sealed, one);
        // A null value is not sealed, and may have a forged marker, with which it passes.
        let mut out = Vec::new();
        let opened = OpenAll::new(lookup(&self.opening_key), true)
            .open(&mut self.rewriter, &outer, &mut out)
            .expect("what was sealed opens");
        assert_eq!(opened.opened, count);
        let inner = BatchView::parse(&out).expect("an opened batch is whole");
        let before = batch.records(one, BYTES_MAX).expect("it was sealed");
        let after = inner.records(other, BYTES_MAX).expect("it was opened");
        for (before, after) in before.raw().zip(after.raw()) {
            let before = before.expect("it was sealed");
            let after = after.expect("it was opened");
            assert_eq!(before.before_value(), after.before_value());
            if before.value().is_some() {
                assert_eq!(before.value(), after.value());
                assert_eq!(before.headers(), after.headers());
            }
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

fn lookup<'k>(key: &'k OpeningKey) -> impl Fn(&[u8]) -> Option<&'k OpeningKey> {
    move |edek| (edek == EDEK).then_some(key)
}

fn check_rewritten(batch: &BatchView<'_>, out: &[u8], decompressor: &mut Decompressor) {
    let rewritten = BatchView::parse(out).expect("a rewritten batch is whole");
    assert_eq!(rewritten.bytes().len(), out.len());
    assert_eq!(rewritten.check_crc(), Ok(()));
    assert_eq!(BatchOptions::of(&rewritten), BatchOptions::of(batch));
    assert_eq!(rewritten.records_count(), batch.records_count());
    let records = rewritten.records(decompressor, 4 * BYTES_MAX).expect("it unpacks");
    assert!(records.into_iter().all(|record| record.is_ok()));
}

/// Gives a whole batch its right CRC.
fn mend(batch: &mut [u8]) {
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}
