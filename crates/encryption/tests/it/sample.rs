//! Records and keys, batches of them, and batches sealed.

use std::collections::HashMap;

use moldau_encryption::{DataKey, Edek, OpeningKey, SealingKey};
use moldau_records::{
    BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor, HeaderView,
    Rewriter,
};
use proptest::collection::vec;
use proptest::prelude::*;
use zeroize::Zeroizing;

use crate::editors::{Failure, OpenAll, Opened, SealAll};

const BYTES_MAX: usize = 8 << 20;

pub(crate) type Bytes = Vec<u8>;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) timestamp: i64,
    pub(crate) key: Option<Bytes>,
    pub(crate) value: Option<Bytes>,
    pub(crate) headers: Vec<(Bytes, Option<Bytes>)>,
}

impl Sample {
    pub(crate) fn of_value(value: &[u8]) -> Self {
        Self { timestamp: 7, key: None, value: Some(value.to_vec()), headers: Vec::new() }
    }

    pub(crate) fn tombstone() -> Self {
        Self { timestamp: 8, key: Some(b"gone".to_vec()), value: None, headers: Vec::new() }
    }

    pub(crate) fn with_header(mut self, key: &[u8], value: Option<&[u8]>) -> Self {
        self.headers.push((key.to_vec(), value.map(<[u8]>::to_vec)));
        self
    }

    fn header_views(&self) -> impl Iterator<Item = HeaderView<'_>> + Clone {
        self.headers.iter().map(|(key, value)| HeaderView { key, value: value.as_deref() })
    }
}

pub(crate) fn codecs() -> impl Strategy<Value = Compression> {
    proptest::sample::select(&Compression::ALL[..])
}

pub(crate) fn samples() -> impl Strategy<Value = Vec<Sample>> {
    vec(sample(), 1..20)
}

fn sample() -> impl Strategy<Value = Sample> {
    let bytes = || {
        prop_oneof![
            vec(any::<u8>(), 0..40),
            (any::<u8>(), 0..5000usize).prop_map(|(byte, len)| vec![byte; len]),
        ]
    };
    let headers = vec((bytes(), proptest::option::of(bytes())), 0..4);
    (any::<i64>(), proptest::option::of(bytes()), proptest::option::of(bytes()), headers)
        .prop_map(|(timestamp, key, value, headers)| Sample { timestamp, key, value, headers })
}

pub(crate) fn build(options: BatchOptions, samples: &[Sample], codec: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for sample in samples {
        let (key, value) = (sample.key.as_deref(), sample.value.as_deref());
        builder.append(sample.timestamp, key, value, sample.header_views()).unwrap();
    }
    builder.finish(codec, &mut Compressor::default()).unwrap().to_vec()
}

pub(crate) fn plain(samples: &[Sample]) -> Bytes {
    build(BatchOptions::default(), samples, Compression::None)
}

/// All that a reader can see of the records.
pub(crate) fn read(bytes: &[u8]) -> Vec<Sample> {
    let mut decompressor = Decompressor::default();
    let batch = BatchView::parse(bytes).unwrap();
    batch.check_crc().unwrap();
    let records = batch.records(&mut decompressor, BYTES_MAX).unwrap().map(Result::unwrap);
    let sample = |record: moldau_records::RecordView<'_>| Sample {
        timestamp: record.stored_timestamp(),
        key: record.key().map(<[u8]>::to_vec),
        value: record.value().map(<[u8]>::to_vec),
        headers: record
            .headers()
            .unwrap()
            .map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec)))
            .collect(),
    };
    records.map(sample).collect()
}

/// A data key with every byte set to `seed`.
pub(crate) fn data_key(seed: u8) -> DataKey {
    DataKey::new(Zeroizing::new([seed; 32]))
}

pub(crate) fn edek(seed: u8) -> Edek {
    Edek(vec![seed; 89].into())
}

pub(crate) fn sealing_key(seed: u8) -> SealingKey {
    SealingKey::new(&data_key(seed), &edek(seed)).unwrap()
}

/// The keys that a reader has.
pub(crate) struct Keys(HashMap<Bytes, OpeningKey>);

impl Keys {
    pub(crate) fn of(seeds: &[u8]) -> Self {
        let key = |&seed: &u8| (edek(seed).0.to_vec(), OpeningKey::new(&data_key(seed)));
        Self(seeds.iter().map(key).collect())
    }

    pub(crate) fn get(&self, edek: &[u8]) -> Option<&OpeningKey> {
        self.0.get(edek)
    }
}

pub(crate) fn seal(bytes: &[u8], seed: u8) -> Bytes {
    let mut out = Vec::new();
    let batch = BatchView::parse(bytes).unwrap();
    SealAll::new(sealing_key(seed)).seal(&mut Rewriter::default(), &batch, &mut out).unwrap();
    out
}

/// What comes of a batch for a reader with these keys, and what is appended of it.
pub(crate) fn open_with(
    passes_damaged: bool,
    bytes: &[u8],
    keys: &Keys,
) -> (Result<Opened, Failure>, Bytes) {
    let mut out = b"before".to_vec();
    let batch = BatchView::parse(bytes).unwrap();
    let mut opening = OpenAll::new(|edek: &[u8]| keys.get(edek), passes_damaged);
    let opened = opening.open(&mut Rewriter::default(), &batch, &mut out);
    assert!(out.starts_with(b"before"));
    (opened, out.split_off(b"before".len()))
}

/// The batch as a reader with the key of `seed` gets it.
pub(crate) fn open(bytes: &[u8], seed: u8) -> Bytes {
    let (opened, out) = open_with(false, bytes, &Keys::of(&[seed]));
    if opened.unwrap().is_rewritten { out } else { bytes.to_vec() }
}
