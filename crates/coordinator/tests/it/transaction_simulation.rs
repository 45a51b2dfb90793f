//! Random producers against the transactions of a simulated broker, from printed seeds.
//!
//! Producers of both protocol versions share transactional ids. They write, commit offsets, end
//! their transactions, lose answers and ask again; requests arrive late; time passes; the broker
//! crashes, loses what was not durable, and comes back from its records. In the end every
//! transaction must have come out in one way in all partitions, in the way that its producer was
//! told.

use std::collections::{BTreeMap, HashMap};

use fastrand::Rng;
use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{
    Decision, Outcome, TransactionConfig, TransactionRecord, TransactionVersion, Transactions,
};
use moldau_coordinator::{CommittedOffset, TopicOffsets};
use moldau_protocol::{ErrorCode, Uuid};

const SCHEDULES: u64 = 1_000;
const STEPS: usize = 300;
const PARTITIONS: i32 = 4;
const PRODUCERS: usize = 5;
const IDS: [&str; 3] = ["a", "b", "c"];
const TIMEOUT_MS: i32 = 5_000;
const EXPIRATION_MS: i64 = 40_000;

#[test]
fn random_producers_see_whole_transactions() {
    let mut seen = Seen::default();
    for seed in 0..SCHEDULES {
        let run = std::panic::catch_unwind(|| Simulation::new(seed).run());
        let Ok(run) = run else { panic!("the schedule of seed {seed} broke a promise, see above") };
        seen.committed += run.committed;
        seen.aborted += run.aborted;
        seen.fenced += run.fenced;
        seen.restarts += run.restarts;
    }
    // A simulation in which nothing happens would keep every promise.
    assert!(seen.committed > 4 * SCHEDULES, "{seen:?}");
    assert!(seen.aborted > 4 * SCHEDULES, "{seen:?}");
    assert!(seen.fenced > 4 * SCHEDULES, "{seen:?}");
    assert!(seen.restarts > 2 * SCHEDULES, "{seen:?}");
}

/// How much happened.
#[derive(Debug, Default)]
struct Seen {
    committed: u64,
    aborted: u64,
    fenced: u64,
    restarts: u64,
}

/// What was written at once.
#[derive(Clone, Debug, Default)]
struct Frame {
    records: Vec<Vec<u8>>,
    /// Partition, producer, transaction.
    data: Option<(i32, ProducerIdentity, u64)>,
    markers: Vec<(i32, ProducerIdentity, Outcome)>,
    /// Each offset is the number of the transaction that commits it.
    offsets: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    Data { producer: ProducerIdentity, transaction: u64 },
    Marker { producer: ProducerIdentity, outcome: Outcome },
}

/// What a producer knows of one of its transactions.
#[derive(Clone, Debug, Default)]
struct Known {
    asked: Option<Outcome>,
    answered: Option<Outcome>,
    written: Vec<i32>,
    has_offset: bool,
}

#[derive(Debug)]
struct Producer {
    id: &'static str,
    version: TransactionVersion,
    identity: Option<ProducerIdentity>,
    /// The transaction under way.
    transaction: Option<u64>,
}

/// A produce that is still on its way.
struct Late {
    id: &'static str,
    identity: ProducerIdentity,
    partition: i32,
    transaction: u64,
}

struct Simulation {
    rng: Rng,
    seen: Seen,
    now_ms: i64,
    transactions: Transactions,
    frames: Vec<Frame>,
    /// Frames before this survive a crash.
    durable: usize,
    logs: BTreeMap<i32, Vec<Entry>>,
    producers: Vec<Producer>,
    known: BTreeMap<u64, Known>,
    late: Vec<Late>,
    owners: HashMap<ProducerIdentity, usize>,
    next_transaction: u64,
    next_id: i64,
}

fn config() -> TransactionConfig {
    TransactionConfig { id_expiration_ms: EXPIRATION_MS, ..TransactionConfig::default() }
}

fn topic() -> Uuid {
    Uuid::from_bytes([1; 16])
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let producers = (0..PRODUCERS).map(|index| Producer {
            id: IDS[index % IDS.len()],
            version: if rng.bool() { TransactionVersion::V1 } else { TransactionVersion::V2 },
            identity: None,
            transaction: None,
        });
        let producers = producers.collect();
        Self {
            rng,
            seen: Seen::default(),
            now_ms: 0,
            transactions: Transactions::new(config()),
            frames: Vec::new(),
            durable: 0,
            logs: BTreeMap::new(),
            producers,
            known: BTreeMap::new(),
            late: Vec::new(),
            owners: HashMap::new(),
            next_transaction: 0,
            next_id: 0,
        }
    }

    fn run(mut self) -> Seen {
        for _ in 0..STEPS {
            self.now_ms += self.rng.i64(0..200);
            self.pass_time();
            let producer = self.rng.usize(..PRODUCERS);
            match self.rng.u8(..60) {
                0 => self.restart(),
                1 => self.now_ms += self.rng.i64(0..2 * i64::from(TIMEOUT_MS)),
                2 if self.rng.u8(..10) == 0 => self.now_ms += EXPIRATION_MS,
                3 => self.producers[producer].identity = None,
                4..8 => self.late_arrives(),
                _ => self.act(producer),
            }
        }
        while !self.late.is_empty() {
            self.late_arrives();
        }
        self.now_ms += i64::from(TIMEOUT_MS);
        self.pass_time();
        self.check();
        self.seen
    }

    fn pass_time(&mut self) {
        while let Some(change) = self.transactions.due(self.now_ms) {
            self.write(Decision { reply: Ok(()), changes: vec![change] }, None);
        }
    }

    /// Writes what was decided, and a batch with it. False if the producer does not learn of it.
    fn write<T>(
        &mut self,
        decision: Decision<T>,
        data: Option<(i32, ProducerIdentity, u64)>,
    ) -> Option<Result<T, ErrorCode>> {
        let mut frame = Frame::default();
        let mut records = Vec::new();
        for change in decision.changes {
            let mut bytes = Vec::new();
            change.record.encode(&mut bytes);
            frame.records.push(bytes);
            if let Some(ending) = change.ending {
                let (producer, outcome) = (ending.producer, ending.outcome);
                let markers =
                    ending.partitions.iter().map(|(_, index)| (*index, producer, outcome));
                frame.markers.extend(markers);
                let offsets = ending.offsets.iter().flat_map(|(_, topic)| &topic.partitions);
                frame
                    .offsets
                    .extend(offsets.map(|(_, committed)| committed.offset.cast_unsigned()));
            }
            records.push(change.record);
        }
        frame.data = data;
        apply_to_logs(&mut self.logs, &frame);
        self.frames.push(frame);
        records.into_iter().for_each(|record| self.transactions.apply(record));
        // Some answers are lost; the others are given once all before them is durable.
        let is_answered = self.rng.u8(..8) > 0;
        if is_answered {
            self.durable = self.frames.len();
        }
        is_answered.then_some(decision.reply)
    }

    fn act(&mut self, index: usize) {
        let Some(identity) = self.producers[index].identity else {
            // Those that share an id would fence each other all the time.
            if self.rng.u8(..8) == 0 {
                self.init(index, None);
            }
            return;
        };
        let own = &self.producers[index];
        let partition = self.rng.i32(..PARTITIONS);
        let Some(transaction) = own.transaction else {
            if self.rng.u8(..30) == 0 {
                return self.init(index, Some(identity));
            }
            self.producers[index].transaction = Some(self.next_transaction);
            self.known.insert(self.next_transaction, Known::default());
            self.next_transaction += 1;
            return;
        };
        let asked = self.known[&transaction].asked;
        match (asked, self.rng.u8(..10)) {
            (Some(outcome), _) => self.end(index, identity, transaction, outcome),
            (None, 0) => self.end(index, identity, transaction, Outcome::Abort),
            (None, 1..=2) => self.end(index, identity, transaction, Outcome::Commit),
            (None, 3) => self.commit_offset(index, identity, transaction),
            // In version 1 a batch that comes late may become part of the transaction that
            // follows: only version 2 closes this hole.
            (None, 4) if own.version == TransactionVersion::V2 => {
                let id = own.id;
                self.late.push(Late { id, identity, partition, transaction });
            }
            (None, _) => self.produce(index, identity, partition, transaction),
        }
    }

    fn init(&mut self, index: usize, current: Option<ProducerIdentity>) {
        let (now_ms, fresh) = (self.now_ms, self.next_id);
        self.next_id += 1;
        let id = self.producers[index].id;
        let decision = self.transactions.init(now_ms, id, TIMEOUT_MS, current, || Ok(fresh));
        self.producers[index].transaction = None;
        match self.write(decision, None) {
            Some(Ok(identity)) => self.gets(index, identity),
            Some(Err(error)) => self.refused(index, error),
            None => {}
        }
    }

    /// A producer learns of an identity, which no other may have.
    fn gets(&mut self, index: usize, identity: ProducerIdentity) {
        let owner = *self.owners.entry(identity).or_insert(index);
        assert_eq!(owner, index, "{identity:?} was given to two producers");
        self.producers[index].identity = Some(identity);
    }

    fn refused(&mut self, index: usize, error: ErrorCode) {
        let is_expected = matches!(
            error,
            ErrorCode::ProducerFenced
                | ErrorCode::InvalidProducerIdMapping
                | ErrorCode::InvalidTxnState
                | ErrorCode::TransactionAbortable
        );
        assert!(is_expected, "{error:?}");
        self.seen.fenced += u64::from(error == ErrorCode::ProducerFenced);
        self.producers[index].identity = None;
        self.producers[index].transaction = None;
    }

    fn produce(&mut self, index: usize, identity: ProducerIdentity, at: i32, transaction: u64) {
        let Producer { id, version, .. } = self.producers[index];
        if version == TransactionVersion::V1 {
            let partitions = [(topic(), at)];
            let now_ms = self.now_ms;
            let added = self.transactions.add_partitions(now_ms, id, identity, &partitions);
            match self.write(added, None) {
                Some(Ok(())) => {}
                Some(Err(error)) => return self.refused(index, error),
                None => return,
            }
        }
        match self.append(id, version, identity, at, transaction) {
            Some(Ok(())) => {
                self.known.entry(transaction).or_default().written.push(at);
            }
            Some(Err(error)) => self.refused(index, error),
            None => {}
        }
    }

    /// What the broker does with a batch.
    fn append(
        &mut self,
        id: &str,
        version: TransactionVersion,
        identity: ProducerIdentity,
        at: i32,
        transaction: u64,
    ) -> Option<Result<(), ErrorCode>> {
        let partition = (topic(), at);
        let decision = match version {
            TransactionVersion::V1 => Decision {
                reply: self.transactions.verify_partition(id, identity, partition),
                changes: Vec::new(),
            },
            TransactionVersion::V2 => {
                self.transactions.add_partitions(self.now_ms, id, identity, &[partition])
            }
        };
        let data = decision.reply.is_ok().then_some((at, identity, transaction));
        self.write(decision, data)
    }

    fn late_arrives(&mut self) {
        if self.late.is_empty() {
            return;
        }
        let Late { id, identity, partition, transaction } =
            self.late.swap_remove(self.rng.usize(..self.late.len()));
        // Its producer does not wait for the answer any more.
        self.append(id, TransactionVersion::V2, identity, partition, transaction);
    }

    fn commit_offset(&mut self, index: usize, identity: ProducerIdentity, transaction: u64) {
        let Producer { id, version, .. } = self.producers[index];
        let now_ms = self.now_ms;
        if version == TransactionVersion::V1 {
            let added = self.transactions.add_group(now_ms, id, identity, "g");
            match self.write(added, None) {
                Some(Ok(())) => {}
                Some(Err(error)) => return self.refused(index, error),
                None => return,
            }
        }
        let committed = CommittedOffset {
            offset: transaction.cast_signed(),
            leader_epoch: -1,
            metadata: String::new(),
            commit_timestamp_ms: now_ms,
            expire_timestamp_ms: None,
        };
        let topics = vec![TopicOffsets { topic: id.to_owned(), partitions: vec![(0, committed)] }];
        let offsets = ("g", topics);
        let decision = self.transactions.commit_offsets(now_ms, id, identity, version, offsets);
        match self.write(decision, None) {
            Some(Ok(())) => {
                assert!(self.transactions.has_pending_offset("g", id, 0));
                self.known.entry(transaction).or_default().has_offset = true;
            }
            Some(Err(error)) => self.refused(index, error),
            None => {}
        }
    }

    fn end(
        &mut self,
        index: usize,
        identity: ProducerIdentity,
        transaction: u64,
        outcome: Outcome,
    ) {
        let known = self.known.entry(transaction).or_default();
        known.asked = Some(outcome);
        let (now_ms, fresh) = (self.now_ms, self.next_id);
        self.next_id += 1;
        let Producer { id, version, .. } = self.producers[index];
        let how = (version, outcome);
        let decision = self.transactions.end(now_ms, id, identity, how, || Ok(fresh));
        match self.write(decision, None) {
            Some(Ok(identity)) => {
                self.known.entry(transaction).or_default().answered = Some(outcome);
                self.gets(index, identity);
                self.producers[index].transaction = None;
            }
            Some(Err(error)) => self.refused(index, error),
            None => {}
        }
    }

    /// The broker dies, loses what was not durable, and comes back from its records.
    fn restart(&mut self) {
        self.seen.restarts += 1;
        self.assert_same(&restored(&self.frames));
        let mut compacted = Transactions::new(config());
        for record in self.transactions.snapshot() {
            compacted.apply(record);
        }
        self.assert_same(&compacted);
        let kept = self.rng.usize(self.durable..=self.frames.len());
        let is_whole = kept == self.frames.len();
        self.frames.truncate(kept);
        self.durable = kept;
        self.logs.clear();
        for frame in &self.frames {
            apply_to_logs(&mut self.logs, frame);
        }
        let starts_compacted = is_whole && self.rng.bool();
        self.transactions = if starts_compacted { compacted } else { restored(&self.frames) };
    }

    fn assert_same(&self, others: &Transactions) {
        let all = |transactions: &Transactions| {
            let all = transactions.list().map(|(id, shown)| (id.to_owned(), shown));
            let mut all: Vec<_> = all.collect();
            all.sort_by(|one, other| one.0.cmp(&other.0));
            let pending = IDS.map(|topic| transactions.has_pending_offset("g", topic, 0));
            (all, pending, transactions.next_deadline())
        };
        assert_eq!(all(others), all(&self.transactions));
    }

    /// All transactions have come to their end: each in one way, and in the way that was told.
    fn check(&mut self) {
        let mut outcomes: BTreeMap<u64, Outcome> = BTreeMap::new();
        for (partition, log) in &self.logs {
            let mut open: HashMap<i64, Vec<u64>> = HashMap::new();
            let mut ended: Vec<u64> = Vec::new();
            for entry in log {
                match *entry {
                    Entry::Data { producer, transaction } => {
                        let is_over = ended.contains(&transaction);
                        assert!(!is_over, "{transaction} goes on behind its end in {partition}");
                        open.entry(producer.id).or_default().push(transaction);
                    }
                    Entry::Marker { producer, outcome } => {
                        for transaction in open.remove(&producer.id).unwrap_or_default() {
                            let before = *outcomes.entry(transaction).or_insert(outcome);
                            assert_eq!(before, outcome, "{transaction} is torn in {partition}");
                            ended.push(transaction);
                        }
                    }
                }
            }
            assert!(open.is_empty(), "transactions stay open for ever in {partition}: {open:?}");
        }
        let committed_offsets: Vec<u64> =
            self.frames.iter().flat_map(|frame| frame.offsets.iter().copied()).collect();
        for (transaction, known) in &self.known {
            let outcome = outcomes.get(transaction).copied();
            self.seen.committed += u64::from(outcome == Some(Outcome::Commit));
            self.seen.aborted += u64::from(outcome == Some(Outcome::Abort));
            if known.asked != Some(Outcome::Commit) {
                assert_ne!(outcome, Some(Outcome::Commit), "{transaction} was not to be committed");
                assert!(!committed_offsets.contains(transaction));
            }
            if known.answered == Some(Outcome::Commit) {
                assert_ne!(outcome, Some(Outcome::Abort), "{transaction} was told to be committed");
                assert!(!known.has_offset || committed_offsets.contains(transaction));
                for partition in &known.written {
                    let is_there = |entry: &Entry| {
                        matches!(entry,
                        Entry::Data { transaction: of, .. } if of == transaction)
                    };
                    assert!(
                        self.logs[partition].iter().any(is_there),
                        "{transaction} lost a batch"
                    );
                }
            }
            if outcome == Some(Outcome::Abort) {
                assert!(!committed_offsets.contains(transaction), "{transaction} is torn");
            }
        }
    }
}

fn restored(frames: &[Frame]) -> Transactions {
    let mut transactions = Transactions::new(config());
    for bytes in frames.iter().flat_map(|frame| &frame.records) {
        let record = TransactionRecord::decode(bytes).expect("what was encoded can be decoded");
        transactions.apply(record);
    }
    transactions
}

fn apply_to_logs(logs: &mut BTreeMap<i32, Vec<Entry>>, frame: &Frame) {
    for (partition, producer, outcome) in &frame.markers {
        let marker = Entry::Marker { producer: *producer, outcome: *outcome };
        logs.entry(*partition).or_default().push(marker);
    }
    if let Some((partition, producer, transaction)) = frame.data {
        logs.entry(partition).or_default().push(Entry::Data { producer, transaction });
    }
}
