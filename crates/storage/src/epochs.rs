//! Leader epochs of one log and the offsets they start at, as Kafka's `LeaderEpochFileCache` keeps
//! them (KIP-101, KIP-279), so that a consumer can tell whether the log was truncated.

use crate::format::Fields;

/// Epochs in ascending order, each with the offset of its first batch.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct LeaderEpochs {
    starts: Vec<(i32, i64)>,
}

/// Answer to OffsetForLeaderEpoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochEnd {
    /// The largest epoch that is not above the one asked for; -1 if undefined.
    pub leader_epoch: i32,
    /// Offset at which it ends, exclusive; -1 if undefined.
    pub end_offset: i64,
}

impl EpochEnd {
    /// No answer: the log knows no such epoch.
    pub const UNDEFINED: EpochEnd = EpochEnd { leader_epoch: -1, end_offset: -1 };
}

impl LeaderEpochs {
    /// Notes that a batch of this epoch starts at `offset`. Negative epochs mean none.
    pub(crate) fn assign(&mut self, leader_epoch: i32, offset: i64) {
        let known = self.starts.last().map_or(-1, |(epoch, _)| *epoch);
        if leader_epoch > known {
            self.starts.push((leader_epoch, offset));
        }
    }

    /// Epoch of the batch at `offset`.
    pub(crate) fn at(&self, offset: i64) -> Option<i32> {
        let after = self.starts.partition_point(|(_, start)| *start <= offset);
        self.starts.get(after.checked_sub(1)?).map(|(epoch, _)| *epoch)
    }

    /// Newest epoch.
    pub(crate) fn latest(&self) -> Option<i32> {
        self.starts.last().map(|(epoch, _)| *epoch)
    }

    /// Where `leader_epoch` ends in a log that ends at `end_offset`.
    pub(crate) fn end_of(&self, leader_epoch: i32, end_offset: i64) -> EpochEnd {
        if leader_epoch < 0 {
            return EpochEnd::UNDEFINED;
        }
        if self.latest() == Some(leader_epoch) {
            return EpochEnd { leader_epoch, end_offset };
        }
        let after = self.starts.partition_point(|(epoch, _)| *epoch <= leader_epoch);
        let Some((_, end_offset)) = self.starts.get(after).copied() else {
            return EpochEnd::UNDEFINED;
        };
        let floor = after.checked_sub(1).and_then(|at| self.starts.get(at));
        EpochEnd { leader_epoch: floor.map_or(leader_epoch, |(epoch, _)| *epoch), end_offset }
    }

    /// Forgets the epochs that ended at or before `offset`; the one that holds it starts there.
    pub(crate) fn trim_to(&mut self, offset: i64) {
        let after = self.starts.partition_point(|(_, start)| *start <= offset);
        if after > 0 {
            self.starts.drain(..after - 1);
            if let Some((_, start)) = self.starts.first_mut() {
                *start = offset;
            }
        }
    }

    /// Appends the state to `out`: number of epochs, then epoch and start offset of each.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let count = u32::try_from(self.starts.len()).expect("epochs are i32 and distinct");
        out.extend_from_slice(&count.to_le_bytes());
        for (epoch, start) in &self.starts {
            out.extend_from_slice(&epoch.to_le_bytes());
            out.extend_from_slice(&start.to_le_bytes());
        }
    }

    /// Reads what [`LeaderEpochs::encode`] wrote.
    pub(crate) fn decode(fields: &mut Fields<'_>) -> Option<LeaderEpochs> {
        let mut epochs = LeaderEpochs::default();
        for _ in 0..fields.u32()? {
            epochs.starts.push((fields.i32()?, fields.i64()?));
        }
        Some(epochs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epochs() -> LeaderEpochs {
        let mut epochs = LeaderEpochs::default();
        [(2, 10), (2, 15), (4, 20), (7, 30)].iter().for_each(|(e, o)| epochs.assign(*e, *o));
        epochs
    }

    #[test]
    fn ends_are_those_of_kafka() {
        let end = |epoch| {
            let EpochEnd { leader_epoch, end_offset } = epochs().end_of(epoch, 40);
            (leader_epoch, end_offset)
        };
        assert_eq!(end(7), (7, 40));
        assert_eq!(end(8), (-1, -1));
        assert_eq!(end(5), (4, 30));
        assert_eq!(end(4), (4, 30));
        assert_eq!(end(3), (2, 20));
        assert_eq!(end(1), (1, 10));
        assert_eq!(end(-1), (-1, -1));
        assert_eq!(LeaderEpochs::default().end_of(0, 5), EpochEnd::UNDEFINED);
    }

    #[test]
    fn trimming_keeps_the_epoch_of_the_first_offset() {
        let mut epochs = epochs();
        epochs.trim_to(25);
        assert_eq!((epochs.at(25), epochs.at(24), epochs.at(30)), (Some(4), None, Some(7)));
        assert_eq!(epochs.end_of(2, 40), EpochEnd { leader_epoch: 2, end_offset: 25 });
    }

    #[test]
    fn decoding_gives_back_what_was_encoded() {
        let mut bytes = Vec::new();
        epochs().encode(&mut bytes);
        assert_eq!(LeaderEpochs::decode(&mut Fields(&bytes)), Some(epochs()));
        assert_eq!(LeaderEpochs::decode(&mut Fields(&bytes[..bytes.len() - 1])), None);
    }
}
