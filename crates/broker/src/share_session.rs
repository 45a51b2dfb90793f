//! Share sessions (KIP-932): the partitions that a member of a share group reads, kept between its
//! requests. A session ends with its last request, or with the connection that it was opened by.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use moldau_coordinator::share_partitions::ShareKey;
use moldau_protocol::{ErrorCode, Uuid};

use crate::fetch_session::lock;

/// Most sessions at a time: Kafka's `group.share.max.share.sessions`.
const SESSIONS_MAX: usize = 2_000;

/// Partitions of all sessions: each takes some tens of bytes. A client may name any number,
/// whether they exist or not.
const PARTITIONS_MAX: usize = 1_000_000;

/// The epoch of a request that opens a session.
pub(crate) const INITIAL_EPOCH: i32 = 0;

/// The epoch of a request that ends a session.
pub(crate) const FINAL_EPOCH: i32 = -1;

/// A partition, as requests name it.
pub(crate) type TopicPartition = (Uuid, i32);

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ShareMember {
    pub(crate) group_id: Arc<str>,
    pub(crate) member_id: Arc<str>,
}

impl ShareMember {
    /// A partition as the member's group reads it.
    pub(crate) fn key(&self, (topic_id, partition): TopicPartition) -> ShareKey {
        ShareKey { group_id: Arc::clone(&self.group_id), topic_id, partition }
    }
}

/// One connection of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConnectionId(u64);

#[derive(Debug)]
struct Session {
    /// Of the next request.
    epoch: i32,
    partitions: BTreeSet<TopicPartition>,
    connection: ConnectionId,
}

/// What a request says of its session.
#[derive(Debug, Default)]
pub(crate) struct SessionChange {
    pub(crate) epoch: i32,
    pub(crate) added: Vec<TopicPartition>,
    pub(crate) forgotten: Vec<TopicPartition>,
}

/// All share sessions of the broker.
#[derive(Debug, Default)]
pub(crate) struct ShareSessions {
    /// Guards the sessions and the number of their partitions.
    inner: Mutex<Inner>,
    connections: AtomicU64,
}

#[derive(Debug, Default)]
struct Inner {
    sessions: HashMap<ShareMember, Session>,
    partitions: usize,
}

impl ShareSessions {
    /// A connection that differs from all others.
    pub(crate) fn connect(&self) -> ConnectionId {
        ConnectionId(self.connections.fetch_add(1, Ordering::Relaxed))
    }

    /// Opens or updates a session, and returns the partitions to read, each time beginning with
    /// another. None are read by the request that ends a session.
    ///
    /// # Errors
    /// `SHARE_SESSION_NOT_FOUND`, `INVALID_SHARE_SESSION_EPOCH` and `SHARE_SESSION_LIMIT_REACHED`.
    pub(crate) fn fetch(
        &self,
        member: &ShareMember,
        change: SessionChange,
        connection: ConnectionId,
    ) -> Result<Vec<TopicPartition>, ErrorCode> {
        let mut inner = lock(&self.inner);
        match change.epoch {
            FINAL_EPOCH if inner.sessions.contains_key(member) => return Ok(Vec::new()),
            FINAL_EPOCH => return Err(ErrorCode::ShareSessionNotFound),
            INITIAL_EPOCH => {
                inner.remove(member);
                if inner.sessions.len() >= SESSIONS_MAX {
                    return Err(ErrorCode::ShareSessionLimitReached);
                }
                let session = Session { epoch: 1, partitions: BTreeSet::new(), connection };
                inner.sessions.insert(member.clone(), session);
            }
            epoch => inner.advance(member, epoch)?,
        }
        let has_room = inner.partitions + change.added.len() <= PARTITIONS_MAX;
        if !has_room {
            inner.remove(member);
            return Err(ErrorCode::ShareSessionLimitReached);
        }
        let Some(session) = inner.sessions.get_mut(member) else { return Ok(Vec::new()) };
        let before = session.partitions.len();
        session.partitions.extend(change.added);
        for gone in &change.forgotten {
            session.partitions.remove(gone);
        }
        let partitions: Vec<_> = session.partitions.iter().copied().collect();
        inner.partitions = inner.partitions - before + partitions.len();
        Ok(rotated(partitions, change.epoch))
    }

    /// Updates a session by a request that only acknowledges.
    ///
    /// # Errors
    /// As [`ShareSessions::fetch`]; such a request opens no session.
    pub(crate) fn acknowledge(&self, member: &ShareMember, epoch: i32) -> Result<(), ErrorCode> {
        let mut inner = lock(&self.inner);
        match epoch {
            INITIAL_EPOCH => Err(ErrorCode::InvalidShareSessionEpoch),
            FINAL_EPOCH => {
                let known = inner.sessions.contains_key(member);
                known.then_some(()).ok_or(ErrorCode::ShareSessionNotFound)
            }
            epoch => inner.advance(member, epoch),
        }
    }

    /// Ends a session, and returns its partitions.
    pub(crate) fn close(&self, member: &ShareMember) -> Option<BTreeSet<TopicPartition>> {
        lock(&self.inner).remove(member)
    }

    /// Ends the sessions that a connection has opened.
    pub(crate) fn disconnected(
        &self,
        connection: ConnectionId,
    ) -> Vec<(ShareMember, BTreeSet<TopicPartition>)> {
        let mut inner = lock(&self.inner);
        let of_connection =
            |(_, session): &(&ShareMember, &Session)| session.connection == connection;
        let gone: Vec<_> =
            inner.sessions.iter().filter(of_connection).map(|(member, _)| member.clone()).collect();
        let closed = gone.into_iter().filter_map(|member| {
            let partitions = inner.remove(&member)?;
            Some((member, partitions))
        });
        closed.collect()
    }
}

impl Inner {
    fn advance(&mut self, member: &ShareMember, epoch: i32) -> Result<(), ErrorCode> {
        let session = self.sessions.get_mut(member).ok_or(ErrorCode::ShareSessionNotFound)?;
        if session.epoch != epoch {
            return Err(ErrorCode::InvalidShareSessionEpoch);
        }
        // The epoch wraps to 1: 0 and -1 mean to open and to end a session.
        session.epoch = epoch.checked_add(1).unwrap_or(1);
        Ok(())
    }

    fn remove(&mut self, member: &ShareMember) -> Option<BTreeSet<TopicPartition>> {
        let session = self.sessions.remove(member)?;
        self.partitions -= session.partitions.len();
        Some(session.partitions)
    }
}

/// No partition is always served first, so that none waits for ever behind another.
fn rotated(mut partitions: Vec<TopicPartition>, epoch: i32) -> Vec<TopicPartition> {
    let by = usize::try_from(epoch).unwrap_or(0);
    if !partitions.is_empty() {
        let by = by % partitions.len();
        partitions.rotate_left(by);
    }
    partitions
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ConnectionId = ConnectionId(1);
    const OTHER: ConnectionId = ConnectionId(2);

    fn member(id: &str) -> ShareMember {
        ShareMember { group_id: "g".into(), member_id: id.into() }
    }

    fn partition(index: i32) -> TopicPartition {
        (Uuid::from_bytes([1; 16]), index)
    }

    fn change(epoch: i32, added: &[i32], forgotten: &[i32]) -> SessionChange {
        let of = |indexes: &[i32]| indexes.iter().map(|index| partition(*index)).collect();
        SessionChange { epoch, added: of(added), forgotten: of(forgotten) }
    }

    #[test]
    fn a_session_remembers_partitions_and_begins_with_another_each_time() {
        let sessions = ShareSessions::default();
        let opened = sessions.fetch(&member("a"), change(0, &[0, 1, 2], &[]), ONE).unwrap();
        assert_eq!(opened, [partition(0), partition(1), partition(2)]);
        let next = sessions.fetch(&member("a"), change(1, &[3], &[0]), ONE).unwrap();
        assert_eq!(next, [partition(2), partition(3), partition(1)]);
        assert_eq!(lock(&sessions.inner).partitions, 3);
    }

    #[test]
    fn epochs_follow_each_other() {
        let sessions = ShareSessions::default();
        let fetch = |epoch| sessions.fetch(&member("a"), change(epoch, &[], &[]), ONE);
        assert_eq!(fetch(1), Err(ErrorCode::ShareSessionNotFound));
        assert_eq!(fetch(-1), Err(ErrorCode::ShareSessionNotFound));
        assert_eq!(sessions.acknowledge(&member("a"), 1), Err(ErrorCode::ShareSessionNotFound));
        assert!(fetch(0).is_ok());
        assert_eq!(fetch(2), Err(ErrorCode::InvalidShareSessionEpoch));
        assert_eq!(sessions.acknowledge(&member("a"), 0), Err(ErrorCode::InvalidShareSessionEpoch));
        assert_eq!(sessions.acknowledge(&member("a"), 1), Ok(()));
        assert!(fetch(2).is_ok());
        assert_eq!(fetch(-1), Ok(Vec::new()));
        assert!(sessions.close(&member("a")).is_some());
        assert_eq!(fetch(3), Err(ErrorCode::ShareSessionNotFound));
    }

    #[test]
    fn a_connection_takes_its_sessions_with_it() {
        let sessions = ShareSessions::default();
        sessions.fetch(&member("a"), change(0, &[0], &[]), ONE).unwrap();
        sessions.fetch(&member("b"), change(0, &[1], &[]), OTHER).unwrap();
        let gone = sessions.disconnected(ONE);
        assert_eq!(gone, [(member("a"), BTreeSet::from([partition(0)]))]);
        assert!(sessions.fetch(&member("b"), change(1, &[], &[]), OTHER).is_ok());
        assert_eq!(lock(&sessions.inner).partitions, 1);
    }

    #[test]
    fn there_is_a_limit_of_sessions_and_of_their_partitions() {
        let sessions = ShareSessions::default();
        for index in 0..SESSIONS_MAX {
            sessions.fetch(&member(&index.to_string()), change(0, &[], &[]), ONE).unwrap();
        }
        let one_more = sessions.fetch(&member("x"), change(0, &[], &[]), ONE);
        assert_eq!(one_more, Err(ErrorCode::ShareSessionLimitReached));
        let again = sessions.fetch(&member("0"), change(0, &[7], &[]), ONE);
        assert_eq!(again, Ok(vec![partition(7)]));
        let many: Vec<i32> = (0..i32::try_from(PARTITIONS_MAX).unwrap()).collect();
        let too_many = sessions.fetch(&member("0"), change(1, &many, &[]), ONE);
        assert_eq!(too_many, Err(ErrorCode::ShareSessionLimitReached));
        assert_eq!(lock(&sessions.inner).partitions, 0);
    }
}
