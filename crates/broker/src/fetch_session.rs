//! Incremental fetch sessions (KIP-227).
//!
//! A consumer names its partitions once; later requests name only what changed, and answers leave
//! out the partitions of which there is nothing to say. The cache is bounded: a consumer that
//! finds it full of busier sessions is served without one, which is correct and only costs bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_protocol::{ErrorCode, Uuid};

/// Sessions kept at a time, as in Kafka's `max.incremental.fetch.session.cache.slots`.
const SESSIONS_MAX: usize = 1_000;

/// Bytes that the partitions of all sessions may take: those of a million. A client may name any
/// number of partitions, whether they exist or not.
const BYTES_MAX: usize = 256 << 20;

/// Bytes that a partition takes but for its topic's name.
const PARTITION_BYTES: usize = 256;

/// A session that was not used for this long gives way to another (Kafka: two minutes).
const EVICTABLE_AFTER_MS: i64 = 120_000;

/// How a request names a topic: by id from Fetch 13 on, by name before.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TopicRef {
    Name(Arc<str>),
    Id(Uuid),
}

/// What a consumer asks of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FetchPartition {
    pub(crate) topic: TopicRef,
    pub(crate) partition: i32,
    /// The epoch that the consumer believes in; -1 if it does not say (KIP-320).
    pub(crate) current_leader_epoch: i32,
    pub(crate) fetch_offset: i64,
    /// Epoch of the last batch that the consumer has; -1 if it does not say.
    pub(crate) last_fetched_epoch: i32,
    pub(crate) bytes_max: i32,
}

/// What the last answer said of a partition; a difference puts it into the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) high_watermark: i64,
    pub(crate) log_start_offset: i64,
}

impl FetchPartition {
    /// Bytes that it takes in a session, at most.
    fn bytes(&self) -> usize {
        let name_bytes = match &self.topic {
            TopicRef::Name(name) => name.len(),
            TopicRef::Id(_) => 0,
        };
        PARTITION_BYTES + name_bytes
    }
}

#[derive(Debug)]
struct SessionPartition {
    asked: FetchPartition,
    told: Option<Told>,
}

/// The partitions of one session, in the order in which they are served.
///
/// A partition that returned records moves to the end, so that a small `max_bytes` cannot starve
/// those behind it.
#[derive(Debug, Default)]
pub(crate) struct Session {
    by_turn: BTreeMap<u64, SessionPartition>,
    turns: HashMap<(TopicRef, i32), u64>,
    next_turn: u64,
    next_epoch: i32,
    last_used_ms: i64,
    /// Bytes of the partitions, and of those of all sessions.
    bytes: usize,
    all_bytes: Arc<AtomicUsize>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.all_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Session {
    fn begun(now_ms: i64, all_bytes: &Arc<AtomicUsize>) -> Self {
        Self {
            by_turn: BTreeMap::new(),
            turns: HashMap::new(),
            next_turn: 0,
            next_epoch: 1,
            last_used_ms: now_ms,
            bytes: 0,
            all_bytes: Arc::clone(all_bytes),
        }
    }

    fn upsert(&mut self, asked: FetchPartition) {
        let key = (asked.topic.clone(), asked.partition);
        if let Some(entry) = self.turns.get(&key).and_then(|turn| self.by_turn.get_mut(turn)) {
            entry.asked = asked;
            return;
        }
        self.bytes += asked.bytes();
        self.all_bytes.fetch_add(asked.bytes(), Ordering::Relaxed);
        self.turns.insert(key, self.next_turn);
        self.by_turn.insert(self.next_turn, SessionPartition { asked, told: None });
        self.next_turn += 1;
    }

    fn forget(&mut self, topic: &TopicRef, partition: i32) {
        let turn = self.turns.remove(&(topic.clone(), partition));
        if let Some(SessionPartition { asked, .. }) = turn.and_then(|it| self.by_turn.remove(&it)) {
            self.bytes -= asked.bytes();
            self.all_bytes.fetch_sub(asked.bytes(), Ordering::Relaxed);
        }
    }

    /// The partitions in serving order.
    pub(crate) fn partitions(&self) -> Vec<FetchPartition> {
        self.by_turn.values().map(|entry| entry.asked.clone()).collect()
    }

    /// Whether an answer must mention the partition, given what it would say; notes it as told.
    ///
    /// `noteworthy` is true for records and errors, which are always said.
    pub(crate) fn tell(
        &mut self,
        topic: &TopicRef,
        partition: i32,
        told: Told,
        noteworthy: Noteworthy,
    ) -> bool {
        let key = (topic.clone(), partition);
        let Some(turn) = self.turns.get(&key).copied() else { return true };
        let Some(mut entry) = self.by_turn.remove(&turn) else { return true };
        let changed = entry.told != Some(told);
        // An error is sent again until it is gone, since the consumer acts on it each time.
        entry.told = if noteworthy == Noteworthy::Error { None } else { Some(told) };
        if noteworthy == Noteworthy::Records {
            self.turns.insert(key, self.next_turn);
            self.by_turn.insert(self.next_turn, entry);
            self.next_turn += 1;
        } else {
            self.by_turn.insert(turn, entry);
        }
        changed || noteworthy != Noteworthy::Nothing
    }
}

/// What an answer has to say of a partition apart from its offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noteworthy {
    Nothing,
    Records,
    Error,
}

/// How a fetch request is to be answered.
#[derive(Debug)]
pub(crate) enum FetchScope {
    /// Every partition of the request, no session.
    Sessionless(Vec<FetchPartition>),
    /// Every partition of the request; the session begins with this answer.
    Full { session_id: i32, session: Arc<Mutex<Session>> },
    /// Only what changed.
    Incremental { session_id: i32, session: Arc<Mutex<Session>> },
}

/// The session part of a fetch request.
pub(crate) struct SessionRequest {
    pub(crate) session_id: i32,
    pub(crate) session_epoch: i32,
    pub(crate) partitions: Vec<FetchPartition>,
    pub(crate) forgotten: Vec<(TopicRef, i32)>,
}

/// All sessions of the broker.
#[derive(Debug, Default)]
pub(crate) struct FetchSessions {
    /// Guards the table only; a session has a lock of its own, taken after this one or alone.
    sessions: Mutex<HashMap<i32, Arc<Mutex<Session>>>>,
    /// Bytes of the partitions of all sessions.
    bytes: Arc<AtomicUsize>,
}

impl FetchSessions {
    /// Finds, opens, updates or closes the session that a request names.
    ///
    /// # Errors
    /// `FETCH_SESSION_ID_NOT_FOUND` and `INVALID_FETCH_SESSION_EPOCH`, after either of which the
    /// consumer begins again with a full fetch.
    pub(crate) fn resolve(
        &self,
        now_ms: i64,
        request: SessionRequest,
    ) -> Result<FetchScope, ErrorCode> {
        match request.session_epoch {
            -1 => {
                lock(&self.sessions).remove(&request.session_id);
                Ok(FetchScope::Sessionless(request.partitions))
            }
            0 => Ok(self.open(now_ms, request)),
            _ => self.update(now_ms, request),
        }
    }

    /// Number of open sessions.
    pub(crate) fn len(&self) -> usize {
        lock(&self.sessions).len()
    }

    fn open(&self, now_ms: i64, request: SessionRequest) -> FetchScope {
        let mut sessions = lock(&self.sessions);
        sessions.remove(&request.session_id);
        let has_room = |sessions: &HashMap<_, _>| {
            sessions.len() < SESSIONS_MAX && self.has_room(&request.partitions)
        };
        if !has_room(&sessions) {
            evict_idle(&mut sessions, now_ms);
            if !has_room(&sessions) {
                return FetchScope::Sessionless(request.partitions);
            }
        }
        let mut session = Session::begun(now_ms, &self.bytes);
        for partition in request.partitions {
            session.upsert(partition);
        }
        let session_id = loop {
            let candidate = fastrand::i32(1..);
            if !sessions.contains_key(&candidate) {
                break candidate;
            }
        };
        let session = Arc::new(Mutex::new(session));
        sessions.insert(session_id, Arc::clone(&session));
        FetchScope::Full { session_id, session }
    }

    fn has_room(&self, partitions: &[FetchPartition]) -> bool {
        let wanted: usize = partitions.iter().map(FetchPartition::bytes).sum();
        self.bytes.load(Ordering::Relaxed).saturating_add(wanted) <= BYTES_MAX
    }

    fn update(&self, now_ms: i64, request: SessionRequest) -> Result<FetchScope, ErrorCode> {
        let mut sessions = lock(&self.sessions);
        let session = sessions.get(&request.session_id).cloned();
        let session = session.ok_or(ErrorCode::FetchSessionIdNotFound)?;
        if !request.partitions.is_empty() && !self.has_room(&request.partitions) {
            sessions.remove(&request.session_id);
            return Err(ErrorCode::FetchSessionIdNotFound);
        }
        drop(sessions);
        let mut state = lock(&session);
        if state.next_epoch != request.session_epoch {
            return Err(ErrorCode::InvalidFetchSessionEpoch);
        }
        // The epoch wraps to 1: 0 and -1 mean to open and to close a session.
        state.next_epoch = state.next_epoch.checked_add(1).unwrap_or(1);
        state.last_used_ms = now_ms;
        for (topic, partition) in &request.forgotten {
            state.forget(topic, *partition);
        }
        for partition in request.partitions {
            state.upsert(partition);
        }
        drop(state);
        Ok(FetchScope::Incremental { session_id: request.session_id, session })
    }
}

/// Takes a lock whose holder cannot leave the state half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn evict_idle(sessions: &mut HashMap<i32, Arc<Mutex<Session>>>, now_ms: i64) {
    let oldest = sessions
        .iter()
        .map(|(id, session)| (lock(session).last_used_ms, *id))
        .min()
        .filter(|(last_used_ms, _)| now_ms - last_used_ms >= EVICTABLE_AFTER_MS);
    if let Some((_, id)) = oldest {
        sessions.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(partition: i32, fetch_offset: i64) -> FetchPartition {
        FetchPartition {
            topic: TopicRef::Name("orders".into()),
            partition,
            current_leader_epoch: -1,
            fetch_offset,
            last_fetched_epoch: -1,
            bytes_max: 1 << 20,
        }
    }

    fn request(
        session_id: i32,
        session_epoch: i32,
        partitions: Vec<FetchPartition>,
    ) -> SessionRequest {
        SessionRequest { session_id, session_epoch, partitions, forgotten: Vec::new() }
    }

    fn opened(sessions: &FetchSessions, partitions: Vec<FetchPartition>) -> i32 {
        match sessions.resolve(0, request(0, 0, partitions)).unwrap() {
            FetchScope::Full { session_id, .. } => session_id,
            other => panic!("{other:?}"),
        }
    }

    fn incremental(scope: FetchScope) -> Arc<Mutex<Session>> {
        match scope {
            FetchScope::Incremental { session, .. } => session,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn session_remembers_and_updates_partitions() {
        let sessions = FetchSessions::default();
        let id = opened(&sessions, vec![asked(0, 10), asked(1, 20)]);
        let mut change = request(id, 1, vec![asked(1, 25), asked(2, 0)]);
        change.forgotten = vec![(TopicRef::Name("orders".into()), 0)];
        let session = incremental(sessions.resolve(1, change).unwrap());
        assert_eq!(lock(&session).partitions(), [asked(1, 25), asked(2, 0)]);
    }

    #[test]
    fn a_wrong_epoch_and_an_unknown_session_are_refused() {
        let sessions = FetchSessions::default();
        let id = opened(&sessions, vec![asked(0, 0)]);
        let wrong = sessions.resolve(0, request(id, 2, Vec::new())).unwrap_err();
        assert_eq!(wrong, ErrorCode::InvalidFetchSessionEpoch);
        assert!(sessions.resolve(0, request(id, -1, Vec::new())).is_ok());
        let gone = sessions.resolve(0, request(id, 1, Vec::new())).unwrap_err();
        assert_eq!(gone, ErrorCode::FetchSessionIdNotFound);
    }

    #[test]
    fn unchanged_partition_is_left_out() {
        let topic = TopicRef::Name("orders".into());
        let mut session = Session::default();
        session.upsert(asked(0, 0));
        let told = Told { high_watermark: 5, log_start_offset: 0 };
        assert!(session.tell(&topic, 0, told, Noteworthy::Nothing));
        assert!(!session.tell(&topic, 0, told, Noteworthy::Nothing));
        let moved = Told { high_watermark: 6, ..told };
        assert!(session.tell(&topic, 0, moved, Noteworthy::Nothing));
        assert!(session.tell(&topic, 0, moved, Noteworthy::Error));
        assert!(session.tell(&topic, 0, moved, Noteworthy::Nothing), "the error is over");
    }

    #[test]
    fn a_partition_that_returned_records_moves_to_the_end() {
        let topic = TopicRef::Name("orders".into());
        let mut session = Session::default();
        session.upsert(asked(0, 0));
        session.upsert(asked(1, 0));
        let told = Told { high_watermark: 5, log_start_offset: 0 };
        assert!(session.tell(&topic, 0, told, Noteworthy::Records));
        assert_eq!(session.partitions(), [asked(1, 0), asked(0, 0)]);
    }

    #[test]
    fn a_full_cache_serves_without_a_session_until_one_is_idle() {
        let sessions = FetchSessions::default();
        for _ in 0..SESSIONS_MAX {
            opened(&sessions, vec![asked(0, 0)]);
        }
        let now = sessions.resolve(1, request(0, 0, vec![asked(0, 0)])).unwrap();
        assert!(matches!(now, FetchScope::Sessionless(_)));
        let later = sessions.resolve(EVICTABLE_AFTER_MS, request(0, 0, vec![asked(0, 0)])).unwrap();
        assert!(matches!(later, FetchScope::Full { .. }));
        assert_eq!(sessions.len(), SESSIONS_MAX);
    }

    /// A client that named ever more partitions in one session had the broker keep all of them.
    #[test]
    fn sessions_respect_the_partition_limit() {
        let sessions = FetchSessions::default();
        let named =
            |first: i32, count: i32| (first..first + count).map(|it| asked(it, 0)).collect();
        let id = opened(&sessions, vec![asked(0, 0)]);
        let per_request = 200_000;
        let mut epoch = 0;
        let refused = loop {
            epoch += 1;
            let more: Vec<_> = named(epoch * per_request, per_request);
            match sessions.resolve(0, request(id, epoch, more)) {
                Ok(_) => assert!(epoch < 100, "there is no end"),
                Err(code) => break code,
            }
        };
        assert_eq!(refused, ErrorCode::FetchSessionIdNotFound);
        assert_eq!((sessions.len(), sessions.bytes.load(Ordering::Relaxed)), (0, 0));
        let all = named(0, 1 + i32::try_from(BYTES_MAX / PARTITION_BYTES).unwrap());
        let scope = sessions.resolve(0, request(0, 0, all)).unwrap();
        assert!(matches!(scope, FetchScope::Sessionless(_)));
        opened(&sessions, vec![asked(0, 0)]);
    }
}
