//! Owned records, ways to make them, and the batches out of them.

use moldau_records::{
    BatchBuilder, BatchOptions, BatchView, Compression, Compressor, Decompressor, Error, HeaderView,
};
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) const BYTES_MAX: usize = 8 << 20;

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
        Self { timestamp: 0, key: None, value: Some(value.to_vec()), headers: Vec::new() }
    }

    pub(crate) fn header_views(&self) -> impl Iterator<Item = HeaderView<'_>> + Clone {
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

pub(crate) fn build(options: BatchOptions, samples: &[Sample], compression: Compression) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for sample in samples {
        let (key, value) = (sample.key.as_deref(), sample.value.as_deref());
        builder.append(sample.timestamp, key, value, sample.header_views()).unwrap();
    }
    builder.finish(compression, &mut Compressor::default()).unwrap().to_vec()
}

pub(crate) fn plain(samples: &[Sample], compression: Compression) -> Bytes {
    build(BatchOptions::default(), samples, compression)
}

/// All that a reader can see of the records; the first error if there is one.
pub(crate) fn read(batch: &BatchView<'_>) -> Result<Vec<Sample>, Error> {
    let mut decompressor = Decompressor::default();
    batch
        .records(&mut decompressor, BYTES_MAX)?
        .map(|record| {
            let record = record?;
            Ok(Sample {
                timestamp: record.stored_timestamp(),
                key: record.key().map(<[u8]>::to_vec),
                value: record.value().map(<[u8]>::to_vec),
                headers: record
                    .headers()?
                    .map(|h| (h.key.to_vec(), h.value.map(<[u8]>::to_vec)))
                    .collect(),
            })
        })
        .collect()
}
