//! Acknowledgements of a member, checked as a whole before any of them counts.

use moldau_protocol::ErrorCode;

use super::DeliverySettings;
use super::partition::{SharePartition, State};
use super::record::{Cause, Changes, StoredRun, StoredState};

/// What a member says of records. With one kind it is that of all records; otherwise there is one
/// for each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acknowledgement {
    /// The first offset.
    pub first: i64,
    /// The last offset.
    pub last: i64,
    /// As Kafka numbers them: 0 gap, 1 accept, 2 release, 3 reject, 4 renew.
    pub kinds: Vec<i8>,
}

/// What acknowledgements mean.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Decided {
    /// What is to be stored.
    pub(super) changes: Option<Changes>,
    /// Records whose locks begin anew.
    pub(super) renewed: Vec<(i64, i64)>,
}

#[derive(Clone, Copy)]
enum Kind {
    Accept,
    Release,
    Reject,
    /// A record that is not there is done with.
    Gap,
    Renew,
}

impl Kind {
    fn of(code: i8) -> Result<Self, ErrorCode> {
        match code {
            0 => Ok(Self::Gap),
            1 => Ok(Self::Accept),
            2 => Ok(Self::Release),
            3 => Ok(Self::Reject),
            4 => Ok(Self::Renew),
            _ => Err(ErrorCode::InvalidRequest),
        }
    }
}

/// Decides acknowledgements of a member: all of them or none.
///
/// # Errors
/// `INVALID_RECORD_STATE` for a record that the member does not hold, `INVALID_REQUEST` for one
/// that was never delivered.
pub(super) fn decide(
    partition: &SharePartition,
    member: &str,
    acknowledgements: &[Acknowledgement],
    settings: &DeliverySettings,
) -> Result<Decided, ErrorCode> {
    let mut decided = Decided { changes: None, renewed: Vec::new() };
    let mut changed = Vec::new();
    let mut next = partition.start();
    for Acknowledgement { first, last, kinds } in acknowledgements {
        if first > last || *first < 0 || kinds.is_empty() {
            return Err(ErrorCode::InvalidRequest);
        }
        for (first, last, kind) in ranges(*first, *last, kinds)? {
            // What lies before the start offset is done with, whatever the member says.
            if last < partition.start() {
                continue;
            }
            let first = first.max(partition.start());
            if last >= partition.end() {
                return Err(ErrorCode::InvalidRequest);
            }
            // Each record is acknowledged once.
            if first < next {
                return Err(ErrorCode::InvalidRecordState);
            }
            next = last + 1;
            for (first, run) in partition.runs_within(first, last) {
                let State::Acquired(lock) = run.state else {
                    return Err(ErrorCode::InvalidRecordState);
                };
                if *lock.member != *member {
                    return Err(ErrorCode::InvalidRecordState);
                }
                let state = match kind {
                    Kind::Renew => {
                        decided.renewed.push((first, run.last));
                        continue;
                    }
                    Kind::Accept => StoredState::Acknowledged,
                    Kind::Release => settings.released(run.deliveries),
                    Kind::Reject => settings.given_up(Cause::Rejected),
                    Kind::Gap => StoredState::Archived,
                };
                let (last, deliveries) = (run.last, run.deliveries);
                changed.push(StoredRun { first, last, state, deliveries });
            }
        }
    }
    let changes = Changes { start: partition.start(), runs: changed };
    decided.changes = (!changes.runs.is_empty()).then_some(changes);
    Ok(decided)
}

/// Neighbours of the same kind as one range.
fn ranges(first: i64, last: i64, kinds: &[i8]) -> Result<Vec<(i64, i64, Kind)>, ErrorCode> {
    if let [kind] = kinds {
        return Ok(vec![(first, last, Kind::of(*kind)?)]);
    }
    if i64::try_from(kinds.len()).ok().and_then(|records| first.checked_add(records - 1))
        != Some(last)
    {
        return Err(ErrorCode::InvalidRequest);
    }
    let mut ranges = Vec::new();
    let mut at = first;
    for alike in kinds.chunk_by(|one, next| one == next) {
        let records = i64::try_from(alike.len()).map_err(|_| ErrorCode::InvalidRequest)?;
        let kind = alike.first().ok_or(ErrorCode::InvalidRequest)?;
        ranges.push((at, at + (records - 1), Kind::of(*kind)?));
        at = at.saturating_add(records);
    }
    Ok(ranges)
}
