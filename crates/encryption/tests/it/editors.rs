//! Sealing and opening of whole batches, with the editors that a filter would write.

use std::sync::Arc;

use moldau_encryption::{Damage, OpeningKey, SealedRecord, Sealer, SealingKey};
use moldau_records::{
    BatchView, Compression, Edit, Error, RawRecord, RecordEditor, RewriteLimits, Rewriter,
};

/// Why a batch is not sealed or opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Batch(Error),
    Damaged { offset: i64, damage: Damage },
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Batch(error)
    }
}

/// Seals batches.
pub(crate) struct SealAll {
    pub(crate) key: Arc<SealingKey>,
    /// The codec of the sealed batch, if not that of the batch.
    pub(crate) codec: Option<Compression>,
    sealer: Option<Sealer>,
    sealed: u32,
}

impl SealAll {
    pub(crate) fn new(key: SealingKey) -> Self {
        Self { key: Arc::new(key), codec: None, sealer: None, sealed: 0 }
    }

    /// Appends the batch, and returns how many records of it were sealed.
    pub(crate) fn seal(
        &mut self,
        rewriter: &mut Rewriter,
        batch: &BatchView<'_>,
        out: &mut Vec<u8>,
    ) -> Result<u32, Failure> {
        self.sealed = 0;
        if !rewriter.rewrite(batch, self, LIMITS, out, |_| {})? {
            out.extend_from_slice(batch.bytes());
        }
        Ok(self.sealed)
    }
}

impl RecordEditor for SealAll {
    type Error = Failure;

    fn begin(&mut self, batch: &BatchView<'_>) -> Result<Compression, Failure> {
        let records = u32::try_from(batch.records_count()).expect("it was checked");
        self.sealer = Some(Sealer::new(Arc::clone(&self.key), records));
        Ok(self.codec.unwrap_or(batch.compression()?))
    }

    fn record(
        &mut self,
        _: i32,
        record: &RawRecord<'_>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Failure> {
        let sealer = self.sealer.as_mut().expect("a batch began");
        self.sealed += u32::from(sealer.seal(record, edit)?);
        Ok(())
    }
}

/// Opens batches with the keys that `lookup` finds; the service refuses others.
pub(crate) struct OpenAll<L> {
    lookup: L,
    passes_damaged: bool,
    /// The codec of the opened batch, if not that of the batch.
    pub(crate) codec: Option<Compression>,
    base_offset: i64,
    opened: Opened,
}

/// What opening a batch did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Whether the batch changed.
    pub(crate) is_rewritten: bool,
    /// Records that were opened.
    pub(crate) opened: u32,
    /// Records that could not be opened and passed.
    pub(crate) passed: u32,
    /// Where the first of them was, and what is wrong with it.
    pub(crate) first_passed: Option<(i64, Damage)>,
}

impl<'k, L: Fn(&[u8]) -> Option<&'k OpeningKey>> OpenAll<L> {
    pub(crate) fn new(lookup: L, passes_damaged: bool) -> Self {
        Self { lookup, passes_damaged, codec: None, base_offset: 0, opened: Opened::default() }
    }

    /// Appends the batch if it changes.
    pub(crate) fn open(
        &mut self,
        rewriter: &mut Rewriter,
        batch: &BatchView<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Opened, Failure> {
        let start = out.len();
        self.opened = Opened::default();
        let rewritten = rewriter.rewrite(batch, self, LIMITS, out, |_| {});
        if rewritten != Ok(true) {
            out.truncate(start);
        }
        Ok(Opened { is_rewritten: rewritten?, ..self.opened })
    }
}

impl<'k, L: Fn(&[u8]) -> Option<&'k OpeningKey>> RecordEditor for OpenAll<L> {
    type Error = Failure;

    fn begin(&mut self, batch: &BatchView<'_>) -> Result<Compression, Failure> {
        self.base_offset = batch.base_offset();
        Ok(self.codec.unwrap_or(batch.compression()?))
    }

    fn record(
        &mut self,
        _: i32,
        record: &RawRecord<'_>,
        edit: &mut Edit<'_>,
    ) -> Result<(), Failure> {
        let Some(sealed) = SealedRecord::find(record)? else { return Ok(()) };
        let opened = sealed.and_then(|sealed| {
            let key = (self.lookup)(sealed.edek()).ok_or(Damage::Edek)?;
            sealed.open(key, edit)
        });
        let Err(damage) = opened else {
            self.opened.opened += 1;
            return Ok(());
        };
        let offset = self.base_offset.wrapping_add(i64::from(record.offset_delta()));
        if !self.passes_damaged {
            return Err(Failure::Damaged { offset, damage });
        }
        self.opened.passed += 1;
        self.opened.first_passed.get_or_insert((offset, damage));
        Ok(())
    }
}

/// More than any batch of the tests takes.
const LIMITS: RewriteLimits = RewriteLimits {
    unpacked_bytes_max: 8 << 20,
    records_bytes_max: 8 << 20,
    batch_bytes_max: 8 << 20,
};
