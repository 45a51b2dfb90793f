//! Requests to the owner of the log of frames, in memory.

use bytes::Bytes;
use uuid::Uuid;

use crate::frames::Asked;
use crate::requests::{Fate, Requests};

use super::Memory;

/// A request, and what came of it.
#[derive(Debug)]
pub(super) struct Row {
    id: Uuid,
    request: Bytes,
    /// Of the owner that took it.
    epoch: Option<i64>,
    answer: Option<(Bytes, i64)>,
}

impl Requests for Memory {
    fn ask(&self, requests: Vec<(Uuid, Bytes)>) -> Asked<'_, ()> {
        self.with_log(|log| {
            for (id, request) in requests {
                if log.requests.iter().all(|row| row.id != id) {
                    log.requests.push(Row { id, request, epoch: None, answer: None });
                }
            }
            Ok(())
        })
    }

    fn take(&self, epoch: i64) -> Asked<'_, Vec<(Uuid, Bytes)>> {
        self.with_log(|log| {
            if epoch != log.state.epoch() {
                return Ok(Vec::new());
            }
            let rows = log.requests.iter_mut().filter(|row| {
                let is_own = row.epoch.is_none_or(|taken| taken == epoch);
                is_own && row.answer.is_none()
            });
            let taken = rows.take(TAKEN_MAX).map(|row| {
                row.epoch = Some(epoch);
                (row.id, row.request.clone())
            });
            Ok(taken.collect())
        })
    }

    fn answer(&self, answers: Vec<(Uuid, Bytes)>) -> Asked<'_, ()> {
        self.with_log(|log| {
            let next_sequence = log.state.next_sequence();
            for (id, answer) in answers {
                if let Some(row) = log.requests.iter_mut().find(|row| row.id == id) {
                    row.answer = Some((answer, next_sequence));
                }
            }
            Ok(())
        })
    }

    fn look(&self, ids: Vec<Uuid>) -> Asked<'_, Vec<(Uuid, Fate)>> {
        self.with_log(|log| {
            let current = log.state.epoch();
            let rows = log.requests.iter().filter(|row| ids.contains(&row.id));
            let fates = rows.filter_map(|row| match &row.answer {
                Some((answer, next_sequence)) => {
                    let (answer, next_sequence) = (answer.clone(), *next_sequence);
                    Some((row.id, Fate::Answered { answer, next_sequence }))
                }
                None if row.epoch.is_some_and(|epoch| epoch != current) => {
                    Some((row.id, Fate::Unknown))
                }
                None => None,
            });
            Ok(fates.collect())
        })
    }

    fn forget(&self, ids: Vec<Uuid>) -> Asked<'_, ()> {
        self.with_log(|log| {
            log.requests.retain(|row| !ids.contains(&row.id));
            Ok(())
        })
    }
}

/// As in PostgreSQL.
const TAKEN_MAX: usize = 100;
