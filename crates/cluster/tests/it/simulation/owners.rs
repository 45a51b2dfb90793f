//! Brokers that own the log of frames in turn. The owner decides how transactions end, and writes
//! their markers. It loses its session without a word, goes on as if nothing had happened, or ends
//! with markers under way; then another one reads the frames, and goes on.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{Answer, Error, Frame, Frames, Memory, Outcome, Ownership, Writer};
use moldau_records::Marker;
use tokio::task::JoinHandle;

use super::log;
use crate::batches::ending;
use crate::faults::{Faults, pass};

/// How a transaction of a producer ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Decision {
    pub(super) producer: i64,
    /// Counts the transactions of the producer.
    pub(super) number: u32,
    /// That of the markers: a greater one than that of the batches fences these.
    pub(super) epoch: i16,
    pub(super) commits: bool,
    /// Partitions that the transaction may have batches in.
    pub(super) partitions: Vec<i32>,
}

/// What brokers and clients of a life have in common.
#[derive(Clone)]
pub(super) struct Owners {
    faults: Faults,
    memory: Memory,
    writers: Arc<[Writer; 2]>,
    truth: Arc<Mutex<Truth>>,
}

/// What happened, whatever anyone was told.
#[derive(Default)]
struct Truth {
    epoch: i64,
    /// All that were ever appended.
    frames: Vec<Bytes>,
    /// State after so many frames.
    states: Vec<u64>,
    /// Whether a transaction commits, by producer and number.
    decided: BTreeMap<(i64, u32), bool>,
    /// The ends that producers wait for.
    wanted: BTreeMap<i64, Decision>,
    /// Transactions whose ends were acknowledged, and whether they commit.
    answered: BTreeMap<(i64, u32), bool>,
    takeovers: u32,
    snapshots_loaded: u32,
}

/// What an owner or a follower knows.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Coordinator {
    /// Sequence of the next frame.
    next: i64,
    /// Of each producer: the last decision, its sequence, and whether its markers are written.
    last: BTreeMap<i64, (i64, Decision, bool)>,
}

/// Why an owner goes on no more.
enum Ended {
    /// Another epoch began, or its process ended.
    Lost,
}

impl Owners {
    pub(super) fn new(faults: Faults, memory: Memory, writers: Arc<[Writer; 2]>) -> Self {
        let truth = Truth { states: vec![Coordinator::default().state()], ..Truth::default() };
        Self { faults, memory, writers, truth: Arc::new(Mutex::new(truth)) }
    }

    /// Ends a transaction, whoever owns the log meanwhile; says whether it commits.
    pub(super) async fn end(&self, decision: Decision) -> bool {
        let transaction = (decision.producer, decision.number);
        self.with(|truth| truth.wanted.insert(decision.producer, decision));
        for _ in 0..ANSWER_POLLS_MAX {
            if let Some(commits) = self.with(|truth| truth.answered.get(&transaction).copied()) {
                return commits;
            }
            pass(Duration::from_millis(100)).await;
        }
        panic!("no owner ends transaction {transaction:?}");
    }

    /// Whether the transaction was decided to commit.
    pub(super) fn commits(&self, transaction: (i64, u32)) -> bool {
        self.with(|truth| truth.decided.get(&transaction) == Some(&true))
    }

    /// Later epochs than the first, and snapshots that took the place of frames.
    pub(super) fn counts(&self) -> (u32, u32) {
        self.with(|truth| (truth.takeovers, truth.snapshots_loaded))
    }

    pub(super) fn broker(&self, id: i32, seed: u64) -> JoinHandle<()> {
        let broker = Broker {
            id,
            random: fastrand::Rng::with_seed(seed),
            owners: self.clone(),
            state: Coordinator::default(),
        };
        tokio::spawn(broker.run())
    }

    fn with<T>(&self, look: impl FnOnce(&mut Truth) -> T) -> T {
        look(&mut self.truth.lock().unwrap())
    }

    async fn run<T, F>(&self, request: F) -> Answer<T>
    where
        T: Send + 'static,
        F: Future<Output = Answer<T>> + Send + 'static,
    {
        self.faults.run(request, Error::SequencerAway).await
    }

    async fn claim(&self, broker: i32) -> Answer<Option<Ownership>> {
        let Self { memory, truth, .. } = self.clone();
        let claim = async move {
            let owned = memory.claim(broker, "address").await?;
            if let Some(owned) = &owned {
                let mut truth = truth.lock().unwrap();
                assert!(owned.epoch > truth.epoch, "an epoch begins twice");
                assert_eq!(owned.next_sequence, count(&truth.frames), "a successor misses frames");
                truth.takeovers += u32::from(truth.epoch > 0);
                truth.epoch = owned.epoch;
            }
            Ok(owned)
        };
        self.run(claim).await
    }

    async fn append(&self, epoch: i64, first_sequence: i64, frame: Bytes) -> Answer<()> {
        let Self { memory, truth, .. } = self.clone();
        let append = async move {
            memory.append(epoch, first_sequence, vec![frame.clone()]).await?;
            truth.lock().unwrap().appended(epoch, first_sequence, frame);
            Ok(())
        };
        self.run(append).await
    }

    async fn read(&self, from: i64) -> Answer<Vec<Frame>> {
        let memory = self.memory.clone();
        self.run(async move { memory.read(from, 100).await }).await
    }

    async fn snapshot(&self) -> Answer<Option<(i64, Bytes)>> {
        let memory = self.memory.clone();
        self.run(async move { memory.snapshot().await }).await
    }

    async fn put_snapshot(&self, epoch: i64, sequence: i64, bytes: Bytes) -> Answer<()> {
        let Self { memory, truth, .. } = self.clone();
        let put = async move {
            memory.put_snapshot(epoch, sequence, bytes).await?;
            assert_eq!(epoch, truth.lock().unwrap().epoch, "a snapshot of a fenced owner");
            Ok(())
        };
        self.run(put).await
    }
}

impl Truth {
    fn appended(&mut self, epoch: i64, sequence: i64, frame: Bytes) {
        if let Some(there) = usize::try_from(sequence).ok().and_then(|at| self.frames.get(at)) {
            assert_eq!(*there, frame, "two owners appended at sequence {sequence}");
            return;
        }
        assert_eq!(epoch, self.epoch, "the frame of a fenced owner is in the log");
        assert_eq!(sequence, count(&self.frames), "frames are missing");
        let mut state = Coordinator::default();
        self.frames.push(frame);
        for (sequence, bytes) in (0..).zip(&self.frames) {
            state.apply(&Frame { sequence, bytes: bytes.clone() });
        }
        self.states.push(state.state());
        for (_, decision, _) in state.last.values() {
            let transaction = (decision.producer, decision.number);
            let before = self.decided.insert(transaction, decision.commits);
            assert!(before.is_none_or(|before| before == decision.commits), "{decision:?}");
        }
    }
}

impl Coordinator {
    fn apply(&mut self, frame: &Frame) {
        assert_eq!(frame.sequence, self.next, "frames follow one another");
        self.next += 1;
        let text = std::str::from_utf8(&frame.bytes).unwrap();
        match text.split_once(' ').unwrap() {
            ("ended", producer) => {
                let last = self.last.get_mut(&producer.parse().unwrap());
                last.expect("what ends was decided").2 = true;
            }
            (_, decision) => {
                let decision = Decision::parse(decision);
                self.last.insert(decision.producer, (frame.sequence, decision, false));
            }
        }
    }

    fn state(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    fn encode(&self) -> Bytes {
        let line = |(sequence, decision, ended): &(i64, Decision, bool)| {
            format!("{sequence} {ended} {}\n", decision.text())
        };
        self.last.values().map(line).collect::<String>().into()
    }

    fn decode(next: i64, bytes: &Bytes) -> Self {
        let mut state = Self { next, ..Self::default() };
        for line in std::str::from_utf8(bytes).unwrap().lines() {
            let (sequence, rest) = line.split_once(' ').unwrap();
            let (ended, decision) = rest.split_once(' ').unwrap();
            let decision = Decision::parse(decision);
            let row = (sequence.parse().unwrap(), decision.clone(), ended.parse().unwrap());
            state.last.insert(decision.producer, row);
        }
        state
    }
}

impl Decision {
    fn text(&self) -> String {
        let Self { producer, number, epoch, commits, partitions } = self;
        let partitions: Vec<String> = partitions.iter().map(ToString::to_string).collect();
        format!("{producer} {number} {epoch} {commits} {}", partitions.join(","))
    }

    fn parse(text: &str) -> Self {
        let mut words = text.split(' ');
        let mut word = || words.next().unwrap();
        Self {
            producer: word().parse().unwrap(),
            number: word().parse().unwrap(),
            epoch: word().parse().unwrap(),
            commits: word().parse().unwrap(),
            partitions: word().split(',').map(|text| text.parse().unwrap()).collect(),
        }
    }
}

struct Broker {
    id: i32,
    random: fastrand::Rng,
    owners: Owners,
    state: Coordinator,
}

impl Broker {
    async fn run(mut self) {
        loop {
            match self.owners.claim(self.id).await {
                Ok(Some(owned)) => {
                    let Ended::Lost = self.own(&owned).await;
                    drop(owned);
                    // What it decided last may not be in the log.
                    self.state = Coordinator::default();
                    pass(Duration::from_millis(self.random.u64(..3_000))).await;
                }
                Ok(None) => self.follow().await,
                Err(error) => assert!(error.is_retriable(), "{error}"),
            }
            pass(Duration::from_millis(self.random.u64(..1_000))).await;
        }
    }

    /// Reads what is there.
    async fn follow(&mut self) {
        match self.owners.read(self.state.next).await {
            Ok(frames) => frames.iter().for_each(|frame| self.state.apply(frame)),
            Err(Error::FramesReplaced { .. }) => match self.owners.snapshot().await {
                Ok(snapshot) => {
                    let (next, bytes) = snapshot.expect("it took the place of frames");
                    self.state = Coordinator::decode(next, &bytes);
                    self.owners.with(|truth| truth.snapshots_loaded += 1);
                }
                Err(error) => assert!(error.is_retriable(), "{error}"),
            },
            Err(error) => assert!(error.is_retriable(), "{error}"),
        }
        let at = usize::try_from(self.state.next).unwrap();
        let expected = self.owners.with(|truth| truth.states[at]);
        assert_eq!(self.state.state(), expected, "a follower knows what the frames say");
    }

    async fn own(&mut self, owned: &Ownership) -> Ended {
        while self.state.next < owned.next_sequence {
            self.follow().await;
        }
        assert_eq!(self.state.next, owned.next_sequence);
        loop {
            let wanted: Vec<Decision> =
                self.owners.with(|truth| truth.wanted.values().cloned().collect());
            for decision in wanted {
                if self.end_transaction(owned.epoch, decision).await.is_none() {
                    return Ended::Lost;
                }
            }
            if self.random.u32(..4) == 0 {
                let bytes = self.state.encode();
                match self.owners.put_snapshot(owned.epoch, self.state.next, bytes).await {
                    Ok(()) => {}
                    Err(Error::Fenced { .. }) => return Ended::Lost,
                    Err(error) => assert!(error.is_retriable(), "{error}"),
                }
            }
            match self.random.u32(..10) {
                // Its session ends, and it does not know.
                0 => self.owners.memory.end_sessions(self.id),
                1 => return Ended::Lost,
                _ => pass(Duration::from_millis(self.random.u64(..500))).await,
            }
        }
    }

    /// Decides a transaction unless an owner before has, and writes what is missing of its end;
    /// nothing if it is the owner no more.
    async fn end_transaction(&mut self, epoch: i64, wanted: Decision) -> Option<()> {
        let (producer, number) = (wanted.producer, wanted.number);
        let known = self.state.last.get(&producer).filter(|last| last.1.number >= number).cloned();
        let (sequence, decision, is_ended) = match known {
            Some(known) => known,
            None => {
                let sequence = self.state.next;
                self.append(epoch, format!("decided {}", wanted.text())).await?;
                (sequence, wanted, false)
            }
        };
        if !is_ended {
            // Nobody waits for those of a broker that ends.
            let markers = tokio::spawn(write_markers(
                self.owners.writers.clone(),
                (sequence, decision.clone()),
                self.random.fork(),
            ));
            if self.random.u32(..10) == 0 {
                return None;
            }
            markers.await.unwrap();
            self.append(epoch, format!("ended {producer}")).await?;
        }
        let transaction = (producer, decision.number);
        self.owners.with(|truth| truth.answered.insert(transaction, decision.commits));
        Some(())
    }

    async fn append(&mut self, epoch: i64, text: String) -> Option<()> {
        let bytes = Bytes::from(text);
        loop {
            match self.owners.append(epoch, self.state.next, bytes.clone()).await {
                Ok(()) => {
                    self.state.apply(&Frame { sequence: self.state.next, bytes });
                    return Some(());
                }
                Err(Error::Fenced { by }) => {
                    assert!(by > epoch, "an owner is fenced by a later one");
                    return None;
                }
                Err(error) => assert!(error.is_retriable(), "{error}"),
            }
        }
    }
}

/// Writes the markers of a decision that is durable, whoever owns the log meanwhile.
async fn write_markers(
    writers: Arc<[Writer; 2]>,
    (sequence, decision): (i64, Decision),
    mut random: fastrand::Rng,
) {
    let end = if decision.commits { Marker::Commit } else { Marker::Abort };
    for partition in decision.partitions {
        let producer = (decision.producer, decision.epoch);
        let marker = ending(log(partition), producer, end, sequence);
        loop {
            let answer = match writers[random.usize(..2)].append(vec![marker.clone()]) {
                Ok(pending) => pending.outcomes().await,
                Err(error) => Err(error),
            };
            match answer.as_deref() {
                Ok([Outcome::Appended { .. } | Outcome::Duplicate { .. }]) => break,
                Err(error) if error.is_retriable() => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

fn count(frames: &[Bytes]) -> i64 {
    i64::try_from(frames.len()).unwrap()
}

/// Far more than any answer takes, in virtual time.
const ANSWER_POLLS_MAX: u32 = 100_000;
