//! Transactions, request by request.

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_coordinator::transactions::{
    Decision, Ending, Outcome, TransactionConfig, TransactionState, TransactionVersion,
    Transactions,
};
use moldau_coordinator::{CommittedOffset, TopicOffsets};
use moldau_protocol::{ErrorCode, Uuid};

const TIMEOUT_MS: i32 = 60_000;
const V1: TransactionVersion = TransactionVersion::V1;
const V2: TransactionVersion = TransactionVersion::V2;

struct World {
    transactions: Transactions,
    next_id: i64,
}

impl World {
    fn new() -> Self {
        Self { transactions: Transactions::new(TransactionConfig::default()), next_id: 100 }
    }

    /// Applies what was decided.
    fn take<T>(&mut self, decision: Decision<T>) -> (Result<T, ErrorCode>, Vec<Ending>) {
        let mut endings = Vec::new();
        for change in decision.changes {
            endings.extend(change.ending);
            self.transactions.apply(change.record);
        }
        (decision.reply, endings)
    }

    fn init(
        &mut self,
        now_ms: i64,
        current: Option<ProducerIdentity>,
    ) -> (Result<ProducerIdentity, ErrorCode>, Vec<Ending>) {
        let fresh = self.next_id;
        let decision = self.transactions.init(now_ms, "t", TIMEOUT_MS, current, || Ok(fresh));
        self.next_id += 1;
        self.take(decision)
    }

    fn initialized(&mut self) -> ProducerIdentity {
        self.init(0, None).0.expect("an identity")
    }

    fn add(&mut self, producer: ProducerIdentity, partition: i32) -> Result<(), ErrorCode> {
        let decision = self.transactions.add_partitions(1, "t", producer, &[(topic(), partition)]);
        self.take(decision).0
    }

    fn pend(
        &mut self,
        producer: ProducerIdentity,
        version: TransactionVersion,
        offset: i64,
    ) -> Result<(), ErrorCode> {
        let offsets = ("g", vec![offset_of(offset)]);
        let decision = self.transactions.commit_offsets(1, "t", producer, version, offsets);
        self.take(decision).0
    }

    fn end(
        &mut self,
        producer: ProducerIdentity,
        version: TransactionVersion,
        outcome: Outcome,
    ) -> (Result<ProducerIdentity, ErrorCode>, Vec<Ending>) {
        let fresh = self.next_id;
        let how = (version, outcome);
        let decision = self.transactions.end(2, "t", producer, how, || Ok(fresh));
        self.next_id += 1;
        self.take(decision)
    }

    fn state(&self) -> TransactionState {
        self.transactions.describe("t").expect("the id is known").state
    }
}

fn topic() -> Uuid {
    Uuid::from_bytes([7; 16])
}

fn offset_of(offset: i64) -> TopicOffsets {
    let committed = CommittedOffset {
        offset,
        leader_epoch: -1,
        metadata: String::new(),
        commit_timestamp_ms: 1,
        expire_timestamp_ms: None,
    };
    TopicOffsets { topic: "in".to_owned(), partitions: vec![(0, committed)] }
}

fn bumped(producer: ProducerIdentity, by: i16) -> ProducerIdentity {
    ProducerIdentity { epoch: producer.epoch + by, ..producer }
}

#[test]
fn a_commit_ends_all_partitions_and_offsets_at_once() {
    let mut world = World::new();
    let producer = world.initialized();
    assert_eq!(world.add(producer, 0), Ok(()));
    assert_eq!(world.add(producer, 1), Ok(()));
    assert_eq!(world.pend(producer, V2, 5), Ok(()));
    assert_eq!(world.pend(producer, V2, 9), Ok(()));
    assert!(world.transactions.has_pending_offset("g", "in", 0));
    assert!(!world.transactions.has_pending_offset("g", "in", 1));
    let (reply, endings) = world.end(producer, V2, Outcome::Commit);
    assert_eq!(reply, Ok(bumped(producer, 1)));
    let ending = Ending {
        producer: bumped(producer, 1),
        outcome: Outcome::Commit,
        partitions: vec![(topic(), 0), (topic(), 1)],
        offsets: vec![("g".to_owned(), offset_of(9))],
    };
    assert_eq!(endings, [ending]);
    assert_eq!(world.state(), TransactionState::CompleteCommit);
    assert!(!world.transactions.has_pending_offset("g", "in", 0));
}

#[test]
fn an_abort_commits_no_offset() {
    let mut world = World::new();
    let producer = world.initialized();
    assert_eq!(world.pend(producer, V2, 5), Ok(()));
    let (_, endings) = world.end(producer, V2, Outcome::Abort);
    assert_eq!((endings.len(), endings[0].offsets.len()), (1, 0));
    assert_eq!(world.state(), TransactionState::CompleteAbort);
}

#[test]
fn a_repeated_end_has_the_same_answer_and_the_other_outcome_is_refused() {
    for version in [V1, V2] {
        for outcome in [Outcome::Commit, Outcome::Abort] {
            let mut world = World::new();
            let producer = world.initialized();
            assert_eq!(world.add(producer, 0), Ok(()));
            let first = world.end(producer, version, outcome).0;
            let (repeated, endings) = world.end(producer, version, outcome);
            assert_eq!(repeated, first);
            assert_eq!(endings, []);
            let other = match outcome {
                Outcome::Commit => Outcome::Abort,
                Outcome::Abort => Outcome::Commit,
            };
            let refused = world.end(producer, version, other).0;
            assert_eq!(refused, Err(ErrorCode::InvalidTxnState));
        }
    }
}

#[test]
fn the_epoch_of_a_transaction_that_ended_is_fenced_in_version_2_and_goes_on_in_version_1() {
    let mut world = World::new();
    let first = world.initialized();
    assert_eq!(world.add(first, 0), Ok(()));
    let second = world.end(first, V2, Outcome::Commit).0.expect("committed");
    assert_eq!(world.add(first, 0), Err(ErrorCode::ProducerFenced));
    assert_eq!(world.add(second, 0), Ok(()));
    assert_eq!(world.end(first, V2, Outcome::Commit).0, Err(ErrorCode::ProducerFenced));
    assert_eq!(world.end(second, V1, Outcome::Commit).0, Ok(second));
    assert_eq!(world.add(second, 0), Ok(()));
}

#[test]
fn a_producer_that_takes_over_aborts_what_is_open_and_fences_its_owner() {
    let mut world = World::new();
    let first = world.initialized();
    assert_eq!(world.add(first, 3), Ok(()));
    let (second, endings) = world.init(5, None);
    assert_eq!(second, Ok(bumped(first, 2)));
    assert_eq!(endings.len(), 1);
    assert_eq!((endings[0].producer, endings[0].outcome), (bumped(first, 1), Outcome::Abort));
    assert_eq!(endings[0].partitions, [(topic(), 3)]);
    assert_eq!(world.add(first, 3), Err(ErrorCode::ProducerFenced));
    assert_eq!(world.end(first, V1, Outcome::Commit).0, Err(ErrorCode::ProducerFenced));
}

#[test]
fn a_producer_that_names_its_identity_gets_the_next_and_may_ask_again() {
    let mut world = World::new();
    let first = world.initialized();
    let second = world.init(1, Some(first)).0.expect("an identity");
    assert_eq!(second, bumped(first, 1));
    assert_eq!(world.init(2, Some(first)).0, Ok(second));
    assert_eq!(world.add(second, 0), Ok(()));
    assert_eq!(world.init(3, Some(first)).0, Err(ErrorCode::ProducerFenced));
    let stranger = ProducerIdentity { id: 1, epoch: 0 };
    assert_eq!(world.init(3, Some(stranger)).0, Err(ErrorCode::ProducerFenced));
    assert_eq!(world.state(), TransactionState::Ongoing, "a refused producer aborts nothing");
}

#[test]
fn a_transaction_that_is_open_for_too_long_is_aborted_and_its_producer_fenced() {
    let mut world = World::new();
    let producer = world.initialized();
    assert_eq!(world.add(producer, 0), Ok(()));
    let deadline = world.transactions.next_deadline().expect("a transaction is open");
    assert_eq!(deadline, 1 + i64::from(TIMEOUT_MS));
    assert_eq!(world.transactions.due(deadline - 1), None);
    let change = world.transactions.due(deadline).expect("the time is over");
    assert_eq!(change.ending.as_ref().map(|ending| ending.producer), Some(bumped(producer, 1)));
    world.transactions.apply(change.record);
    assert_eq!(world.state(), TransactionState::CompleteAbort);
    assert_eq!(world.end(producer, V2, Outcome::Commit).0, Err(ErrorCode::ProducerFenced));
}

#[test]
fn an_id_that_is_not_used_is_forgotten() {
    let mut world = World::new();
    let producer = world.initialized();
    let deadline = world.transactions.next_deadline().expect("ids expire");
    assert_eq!(deadline, TransactionConfig::default().id_expiration_ms);
    let change = world.transactions.due(deadline).expect("the time is over");
    assert_eq!(change.ending, None);
    world.transactions.apply(change.record);
    assert_eq!(world.transactions.describe("t"), None);
    assert_eq!(world.transactions.next_deadline(), None);
    assert_eq!(world.add(producer, 0), Err(ErrorCode::InvalidProducerIdMapping));
}

#[test]
fn used_up_epochs_give_another_producer_id() {
    let mut world = World::new();
    let mut producer = world.initialized();
    while producer.epoch < i16::MAX - 1 {
        assert_eq!(world.add(producer, 0), Ok(()));
        producer = world.end(producer, V2, Outcome::Commit).0.expect("committed");
    }
    assert_eq!(world.add(producer, 0), Ok(()));
    let (next, endings) = world.end(producer, V2, Outcome::Commit);
    let next = next.expect("committed");
    assert_ne!(next.id, producer.id);
    assert_eq!(next.epoch, 0);
    assert_eq!(endings[0].producer, bumped(producer, 1), "the marker fences the former id");
    assert_eq!(world.end(producer, V2, Outcome::Commit).0, Ok(next));
    assert_eq!(world.add(producer, 0), Err(ErrorCode::InvalidProducerIdMapping));
}

#[test]
fn version_1_asks_for_partitions_and_groups_to_be_added_first() {
    let mut world = World::new();
    let producer = world.initialized();
    let verify = |world: &World, partition| {
        world.transactions.verify_partition("t", producer, (topic(), partition))
    };
    assert_eq!(verify(&world, 0), Err(ErrorCode::TransactionAbortable));
    assert_eq!(world.add(producer, 0), Ok(()));
    assert_eq!(verify(&world, 0), Ok(()));
    assert_eq!(verify(&world, 1), Err(ErrorCode::TransactionAbortable));
    assert_eq!(world.pend(producer, V1, 1), Err(ErrorCode::TransactionAbortable));
    let decision = world.transactions.add_group(1, "t", producer, "g");
    assert_eq!(world.take(decision).0, Ok(()));
    assert_eq!(world.pend(producer, V1, 1), Ok(()));
    assert_eq!(world.end(producer, V1, Outcome::Commit).0, Ok(producer));
    assert_eq!(verify(&world, 0), Err(ErrorCode::TransactionAbortable));
}

#[test]
fn an_end_without_a_transaction_is_refused_but_for_an_abort_of_version_2() {
    for (version, outcome, is_taken) in [
        (V1, Outcome::Commit, false),
        (V1, Outcome::Abort, false),
        (V2, Outcome::Commit, false),
        (V2, Outcome::Abort, true),
    ] {
        let mut world = World::new();
        let producer = world.initialized();
        let (reply, endings) = world.end(producer, version, outcome);
        let taken = Ok(bumped(producer, 1));
        let expected = if is_taken { taken } else { Err(ErrorCode::InvalidTxnState) };
        assert_eq!(reply, expected);
        assert_eq!(endings, [], "nothing is open");
    }
}

#[test]
fn timeouts_beyond_the_limit_and_empty_ids_are_refused() {
    let world = World::new();
    let init = |id, timeout_ms| {
        world.transactions.init(0, id, timeout_ms, None, || Ok(1)).reply.map(|_| ())
    };
    assert_eq!(init("t", 15 * 60 * 1_000), Ok(()));
    assert_eq!(init("t", 15 * 60 * 1_000 + 1), Err(ErrorCode::InvalidTransactionTimeout));
    assert_eq!(init("t", 0), Err(ErrorCode::InvalidTransactionTimeout));
    assert_eq!(init("", 1), Err(ErrorCode::InvalidRequest));
}

#[test]
fn what_open_transactions_hold_is_limited() {
    let limits = TransactionConfig {
        ids_max: 2,
        open_entries_max: 3,
        ending_bytes_max: 1_000,
        ..TransactionConfig::default()
    };
    let mut world = World { transactions: Transactions::new(limits), next_id: 1 };
    let producer = world.initialized();
    let other = world.transactions.init(0, "u", 1, None, || Ok(50));
    let other = world.take(other).0.expect("an identity");
    let third = world.transactions.init(0, "v", 1, None, || Ok(60)).reply;
    assert_eq!(third, Err(ErrorCode::PolicyViolation));
    assert_eq!(world.add(producer, 0), Ok(()));
    assert_eq!(world.add(producer, 1), Ok(()));
    let two = [(topic(), 0), (topic(), 1)];
    let refused = world.transactions.add_partitions(1, "u", other, &two).reply;
    assert_eq!(refused, Err(ErrorCode::ConcurrentTransactions));
    let many: Vec<_> = (0..10).map(|index| (topic(), index)).collect();
    let refused = world.transactions.add_partitions(1, "u", other, &many).reply;
    assert_eq!(refused, Err(ErrorCode::PolicyViolation));
    world.end(producer, V2, Outcome::Commit).0.expect("committed");
    assert_eq!(world.transactions.add_partitions(1, "u", other, &two).reply, Ok(()));
}

#[test]
fn the_start_of_the_last_transaction_outlives_its_end_and_a_restart() {
    let mut world = World::new();
    let producer = world.initialized();
    let start_ms = |transactions: &Transactions| transactions.describe("t").map(|it| it.start_ms);
    assert_eq!(start_ms(&world.transactions), Some(-1));
    world.add(producer, 0).unwrap();
    world.end(producer, V1, Outcome::Commit).0.unwrap();
    assert_eq!(start_ms(&world.transactions), Some(1));
    let mut restored = Transactions::new(TransactionConfig::default());
    world.transactions.snapshot().for_each(|record| restored.apply(record));
    assert_eq!(restored.describe("t"), world.transactions.describe("t"));
    world.init(10, None).0.unwrap();
    assert_eq!(start_ms(&world.transactions), Some(-1));
}

/// A world whose partitions are elsewhere.
fn remote() -> World {
    let config = TransactionConfig { markers_follow: true, ..TransactionConfig::default() };
    World { transactions: Transactions::new(config), next_id: 100 }
}

fn restored(world: &World) -> Transactions {
    let mut restored = Transactions::new(TransactionConfig::default());
    world.transactions.snapshot().for_each(|record| restored.apply(record));
    restored
}

/// All markers of the last decision are written.
fn mark(world: &mut World) {
    let (_, unmarked) = world.transactions.unmarked().next().expect("a decision");
    let marked = world.transactions.marked(3, "t", unmarked.decision);
    world.take(marked).0.expect("marked");
}

#[test]
fn an_id_takes_no_request_until_the_markers_of_its_decision_are_written() {
    let mut world = remote();
    let producer = world.initialized();
    world.add(producer, 0).unwrap();
    let next = world.end(producer, V2, Outcome::Commit).0.unwrap();
    assert_eq!(next, bumped(producer, 1));
    assert_eq!(world.state(), TransactionState::PrepareCommit);
    let busy = Err(ErrorCode::ConcurrentTransactions);
    assert_eq!(world.add(next, 1), busy);
    assert_eq!(world.end(producer, V2, Outcome::Commit).0, Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(world.init(2, None).0, Err(ErrorCode::ConcurrentTransactions));
    let known = restored(&world);
    let of = |transactions: &Transactions| {
        let unmarked = transactions.unmarked();
        unmarked.map(|(id, it)| (id.to_owned(), it.clone())).collect::<Vec<_>>()
    };
    assert_eq!(of(&known), of(&world.transactions));
    let (_, unmarked) = &of(&known)[0];
    assert_eq!((unmarked.decision, unmarked.producer), (1, next));
    assert_eq!(unmarked.partitions.iter().copied().collect::<Vec<_>>(), [(topic(), 0)]);
    let late = world.transactions.marked(3, "t", 0);
    assert!(late.changes.is_empty(), "that of another decision");
    mark(&mut world);
    assert_eq!(world.state(), TransactionState::CompleteCommit);
    assert_eq!(world.end(producer, V2, Outcome::Commit).0, Ok(next), "the answer was lost");
    assert_eq!(restored(&world).undecided("t"), Some((next, 1)));
    world.add(next, 0).unwrap();
    world.end(next, V2, Outcome::Abort).0.unwrap();
    assert_eq!(world.transactions.unmarked().next().unwrap().1.decision, 2);
}

#[test]
fn a_producer_that_takes_over_finds_the_markers_of_the_abort_to_be_written() {
    let mut world = remote();
    let producer = world.initialized();
    world.add(producer, 0).unwrap();
    assert_eq!(world.init(2, None).0, Ok(bumped(producer, 2)));
    for transactions in [&world.transactions, &restored(&world)] {
        assert_eq!(transactions.describe("t").unwrap().state, TransactionState::PrepareAbort);
        assert_eq!(transactions.unmarked().next().unwrap().1.producer, bumped(producer, 1));
        assert_eq!(transactions.next_deadline(), Some(i64::MAX), "it is not forgotten");
    }
}

#[test]
fn partitions_that_logs_know_are_added_unless_the_transaction_is_decided() {
    let mut world = remote();
    let producer = world.initialized();
    let found = |world: &World, decision| {
        let of = (producer.id, decision);
        world.transactions.add_found(1, "t", of, &[(topic(), 0), (topic(), 1)])
    };
    let begun = found(&world, 0);
    world.take(begun).0.unwrap();
    assert_eq!(world.state(), TransactionState::Ongoing);
    assert!(found(&world, 0).changes.is_empty(), "they are there");
    let (_, endings) = world.end(producer, V1, Outcome::Commit);
    assert_eq!(endings[0].partitions, [(topic(), 0), (topic(), 1)]);
    assert_eq!(found(&world, 0).reply, Err(ErrorCode::ConcurrentTransactions));
    mark(&mut world);
    assert_eq!(found(&world, 0).reply, Err(ErrorCode::ConcurrentTransactions));
    assert_eq!(found(&world, 1).reply, Ok(()));
}
