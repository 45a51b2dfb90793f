//! Producer ids for idempotent producers (KIP-98, KIP-360), in durable blocks.
//!
//! Ids come from a block that was recorded before the first of them was given out. What a restart
//! leaves of a block is never used, so no id is given out twice.

use std::collections::HashMap;

use crate::error::Error;
use crate::wire::{Put, Take};

/// Ids in one block, as in Kafka. At one restart per second it would take longer than the age of
/// the universe to use up 63 bits.
pub const PRODUCER_ID_BLOCK_SIZE: i64 = 1_000;

const FORMAT_VERSION: u8 = 1;

/// A block of ids that no later block may contain. Stored as one byte of format version and the
/// end as a big-endian i64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdBlock {
    /// The first id after the block.
    pub end: i64,
}

impl ProducerIdBlock {
    /// Appends the binary form to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut put = Put(out);
        put.u8(FORMAT_VERSION);
        put.i64(self.end);
    }

    /// Reads a block, which must fill `bytes` to their end.
    ///
    /// # Errors
    ///
    /// Bytes that are no block.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        let mut take = Take(bytes);
        let version = take.u8("version")?;
        if version != FORMAT_VERSION {
            return Err(Error::Version { version });
        }
        let end = take.i64("end of block")?;
        take.end()?;
        if end < 0 { Err(Error::Invalid { field: "end of block" }) } else { Ok(Self { end }) }
    }
}

/// A producer's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProducerIdentity {
    /// Unique in the cluster.
    pub id: i64,
    /// Grows with each InitProducerId of the same id.
    pub epoch: i16,
}

/// An identity, and the block that must be durable before it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// For the producer.
    pub identity: ProducerIdentity,
    /// Present where the id is the first of a block.
    pub record: Option<ProducerIdBlock>,
}

/// Ids of which an epoch above 0 is remembered, 16 bytes and a map entry each. A producer beyond
/// them gets another id in place of another epoch.
pub const BUMPED_EPOCHS_MAX: usize = 100_000;

/// Gives out producer ids.
#[derive(Debug, Default)]
pub struct ProducerIds {
    next: i64,
    block_end: i64,
    /// Ids below this one were given out before the restart, with epochs that are lost.
    known_from: i64,
    /// The epoch given out last, of those ids where it is not 0.
    bumped: HashMap<i64, i16>,
}

impl ProducerIds {
    /// InitProducerId without a transactional id. `current` is what the producer has (version 3
    /// and later): it keeps its id and gets the next epoch (KIP-360), if what it has is what was
    /// given out last. Anything else, such as an identity of another cluster, might belong to a
    /// second producer, whose batches would then pass for repetitions: it gets a fresh id, as it
    /// always does from Kafka. `None` where 63 bits are used up.
    ///
    /// Answers must follow the order of allocation: an id of a block may go out only after the
    /// record of that block is durable, whichever call returned it.
    pub fn init(&mut self, current: Option<ProducerIdentity>) -> Option<Allocated> {
        if let Some(identity) = current.and_then(|own| self.bump(own)) {
            return Some(Allocated { identity, record: None });
        }
        let mut record = None;
        if self.next == self.block_end {
            let end = self.block_end.checked_add(PRODUCER_ID_BLOCK_SIZE)?;
            self.block_end = end;
            record = Some(ProducerIdBlock { end });
        }
        let identity = ProducerIdentity { id: self.next, epoch: 0 };
        self.next += 1;
        Some(Allocated { identity, record })
    }

    fn bump(&mut self, own: ProducerIdentity) -> Option<ProducerIdentity> {
        let last = self.bumped.get(&own.id).copied();
        let known = own.id >= self.known_from && own.id < self.next;
        let full = last.is_none() && self.bumped.len() >= BUMPED_EPOCHS_MAX;
        // The largest epoch is reserved for fencing.
        if !known || full || own.epoch != last.unwrap_or(0) || own.epoch >= i16::MAX - 1 {
            return None;
        }
        let epoch = own.epoch + 1;
        self.bumped.insert(own.id, epoch);
        Some(ProducerIdentity { id: own.id, epoch })
    }

    /// Takes over a stored block: its ids may all be in use.
    pub fn replay(&mut self, block: ProducerIdBlock) {
        self.block_end = self.block_end.max(block.end);
        self.next = self.block_end;
        self.known_from = self.block_end;
    }

    /// The block that stands for all blocks before, for compaction; `None` before the first.
    pub fn snapshot(&self) -> Option<ProducerIdBlock> {
        (self.block_end > 0).then_some(ProducerIdBlock { end: self.block_end })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restart_never_gives_out_an_id_again() {
        let mut seen = std::collections::HashSet::new();
        let mut stored = Vec::new();
        for _ in 0..5 {
            let mut ids = ProducerIds::default();
            stored.iter().for_each(|block| ids.replay(*block));
            for _ in 0..1_500 {
                let allocated = ids.init(None).expect("ids are left");
                stored.extend(allocated.record);
                assert!(seen.insert(allocated.identity.id));
                assert_eq!(allocated.identity.epoch, 0);
            }
        }
        assert_eq!(stored.len(), 10, "one record for a thousand ids");
    }

    #[test]
    fn an_id_comes_with_the_record_of_its_block() {
        let mut ids = ProducerIds::default();
        let first = ids.init(None).expect("ids are left");
        assert_eq!(first.record, Some(ProducerIdBlock { end: PRODUCER_ID_BLOCK_SIZE }));
        assert_eq!(ids.init(None).expect("ids are left").record, None);
        assert_eq!(ids.snapshot(), first.record);
    }

    #[test]
    fn a_known_producer_keeps_its_id_until_its_epochs_are_used_up() {
        let mut ids = ProducerIds::default();
        let mut own = ids.init(None).expect("ids are left").identity;
        for epoch in 1..i16::MAX {
            own = ids.init(Some(own)).expect("ids are left").identity;
            assert_eq!(own, ProducerIdentity { id: 0, epoch });
        }
        let replaced = ids.init(Some(own)).expect("ids are left").identity;
        assert_eq!(replaced, ProducerIdentity { id: 1, epoch: 0 });
    }

    #[test]
    fn no_identity_is_given_out_twice_to_those_who_claim_the_same_one() {
        let mut ids = ProducerIds::default();
        let own = ids.init(None).expect("ids are left").identity;
        let first = ids.init(Some(own)).expect("ids are left").identity;
        let second = ids.init(Some(own)).expect("ids are left").identity;
        assert_ne!(first, second);
        assert_eq!(second, ProducerIdentity { id: 1, epoch: 0 });
    }

    #[test]
    fn an_id_that_was_not_given_out_since_the_restart_is_not_taken_over() {
        let mut ids = ProducerIds::default();
        ids.replay(ProducerIdBlock { end: 50 });
        for id in [-1, 7, 77] {
            let claimed = ProducerIdentity { id, epoch: 0 };
            assert!(ids.init(Some(claimed)).expect("ids are left").identity.id >= 50);
        }
    }

    #[test]
    fn remembered_epochs_are_bounded() {
        let mut ids = ProducerIds::default();
        for _ in 0..=BUMPED_EPOCHS_MAX {
            let own = ids.init(None).expect("ids are left").identity;
            ids.init(Some(own)).expect("ids are left");
        }
        assert_eq!(ids.bumped.len(), BUMPED_EPOCHS_MAX);
    }

    #[test]
    fn a_used_up_id_space_gives_no_id() {
        let mut ids = ProducerIds::default();
        ids.replay(ProducerIdBlock { end: i64::MAX - 10 });
        assert_eq!(ids.init(None), None);
    }

    #[test]
    fn a_block_is_stored_in_nine_bytes() {
        let block = ProducerIdBlock { end: 2_000 };
        let mut bytes = Vec::new();
        block.encode(&mut bytes);
        assert_eq!(bytes, [1, 0, 0, 0, 0, 0, 0, 0x07, 0xd0]);
        assert_eq!(ProducerIdBlock::decode(&bytes), Ok(block));
        for length in 0..bytes.len() {
            assert!(ProducerIdBlock::decode(&bytes[..length]).is_err());
        }
    }
}
