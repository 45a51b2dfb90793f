//! All orders of events of two transactions of one producer. The first is aborted, the second is
//! committed. Two brokers write the marker of the first; batches and markers are lost, repeated,
//! and take effect late, and the log is sorted and trimmed meanwhile. It forgets the producer
//! once its batches cannot be late any more, while markers can.

use std::collections::BTreeSet;
use std::time::Duration;

use moldau_cluster::{
    BatchEntry, Commit, Extent, Find, Marker, Outcome, Part, ProducerBatch, State, Swap, Topic,
};
use stateright::{Checker, Model, Property};

use super::{LOG, key};

#[test]
fn no_order_of_events_shows_what_is_not_committed_or_hides_what_is() {
    let transactions = Transactions { markers: Markers::OfDecision };
    transactions.checker().threads(2).spawn_bfs().join().assert_properties();
}

#[test]
fn the_model_finds_that_a_late_marker_without_a_decision_ends_the_next_transaction() {
    let transactions = Transactions { markers: Markers::OfWhatIsOpen };
    let checker = transactions.checker().threads(2).spawn_bfs().join();
    assert!(checker.discovery(COMPLETE).is_some());
}

/// What a marker ends.
#[derive(Clone, Copy, PartialEq)]
enum Markers {
    OfDecision,
    OfWhatIsOpen,
}

struct Transactions {
    markers: Markers,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    sequencer: State,
    /// Commits under way, by object. Each may take effect at any time, or never.
    requests: BTreeSet<u8>,
    stage: Stage,
    /// The producer gave up its first transaction, so another epoch ended it.
    gave_up: bool,
    /// The object of each offset.
    objects: Vec<u8>,
    is_sorted: bool,
    is_trimmed: bool,
    has_forgotten: bool,
}

/// How far the producer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    SendsFirst,
    /// The abort is decided.
    EndsFirst,
    SendsSecond,
    /// The commit is decided.
    EndsSecond,
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Ask(u8),
    /// The request takes effect, and is answered.
    Effect(u8),
    /// The request takes effect, and the answer is lost.
    Silent(u8),
    GiveUp,
    Sort,
    Trim,
    Expire,
}

impl Model for Transactions {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut sequencer = State::default();
        sequencer.create_topic(&Topic { id: LOG.topic, name: "t".into(), partitions: 1 }).unwrap();
        vec![World {
            sequencer,
            requests: BTreeSet::new(),
            stage: Stage::SendsFirst,
            gave_up: false,
            objects: vec![],
            is_sorted: false,
            is_trimmed: false,
            has_forgotten: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions.extend(world.asks().iter().map(|object| Action::Ask(*object)));
        if !world.objects.contains(&PLAIN) && world.stage >= Stage::EndsFirst {
            actions.push(Action::Ask(PLAIN));
        }
        if world.stage == Stage::SendsFirst {
            actions.push(Action::GiveUp);
        }
        for object in &world.requests {
            actions.push(Action::Effect(*object));
            // Nobody waits for the other batch.
            if *object != PLAIN {
                actions.push(Action::Silent(*object));
            }
        }
        if !world.is_sorted && world.extents().len() > 1 {
            actions.push(Action::Sort);
        }
        if !world.has_forgotten && ![FIRST, SECOND].iter().any(|it| world.requests.contains(it)) {
            actions.push(Action::Expire);
        }
        if !world.is_trimmed && world.high_watermark() > 1 {
            actions.push(Action::Trim);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut world = world.clone();
        match action {
            Action::Ask(object) => world.requests.insert(object).then_some(())?,
            Action::GiveUp => (world.gave_up, world.stage) = (true, Stage::EndsFirst),
            Action::Sort => world.sort(),
            Action::Trim => {
                world.is_trimmed = true;
                world.sequencer.trim(LOG, 1).unwrap();
                while world.sequencer.sweep(10) {}
            }
            Action::Expire => {
                let expired = world.sequencer.expire_producers(None, Duration::ZERO, 10);
                world.has_forgotten = true;
                (expired.forgotten > 0).then_some(())?;
            }
            Action::Effect(object) => self.effect(&mut world, object, true),
            Action::Silent(object) => self.effect(&mut world, object, false),
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("only what is committed is seen", |_, world: &World| {
                let is_due = |object: u8| match object {
                    PLAIN => true,
                    SECOND => world.stage >= Stage::EndsSecond,
                    _ => false,
                };
                world.visible().into_iter().all(is_due)
            }),
            Property::always(COMPLETE, |_, world: &World| {
                let (stable, visible) = (world.stable(), world.visible());
                let is_seen = |object: &u8| {
                    let is_data = matches!(*object, PLAIN | SECOND);
                    !is_data || visible.contains(object)
                };
                stable.iter().all(is_seen)
            }),
            Property::always("nothing stays open", |_, world: &World| {
                let is_over = world.stage == Stage::Done && world.requests.is_empty();
                !is_over || world.find().last_stable_offset == world.high_watermark()
            }),
            Property::sometimes("a marker is late", |_, world: &World| {
                world.stage == Stage::SendsSecond
                    && world.objects.contains(&SECOND)
                    && FIRST_ENDS.iter().any(|end| world.requests.contains(end))
            }),
            Property::sometimes(
                "a marker is late where the producer was forgotten",
                |_, world: &World| {
                    world.has_forgotten
                        && world.stage == Stage::EndsSecond
                        && world.find().last_stable_offset < world.high_watermark()
                        && FIRST_ENDS.iter().any(|end| world.requests.contains(end))
                },
            ),
            Property::sometimes("a batch is late", |_, world: &World| {
                world.stage == Stage::SendsSecond
                    && !world.objects.contains(&FIRST)
                    && world.requests.contains(&FIRST)
            }),
            Property::sometimes("all is seen of a log that was sorted", |_, world: &World| {
                world.is_sorted && world.visible().len() == 2
            }),
        ]
    }
}

impl Transactions {
    fn effect(&self, world: &mut World, object: u8, is_answered: bool) {
        world.requests.remove(&object);
        let before = world.high_watermark();
        let outcome = world.sequencer.commit(&self.commit(world, object)).unwrap().remove(0);
        if world.high_watermark() > before {
            world.objects.push(object);
        }
        let is_there = !matches!(outcome, Outcome::Refused(_));
        if is_answered && is_there && world.asks().contains(&object) {
            world.stage = match world.stage {
                Stage::SendsFirst => Stage::EndsFirst,
                Stage::EndsFirst => Stage::SendsSecond,
                Stage::SendsSecond => Stage::EndsSecond,
                Stage::EndsSecond | Stage::Done => Stage::Done,
            };
        }
    }

    fn commit(&self, world: &World, object: u8) -> Commit {
        let later = i16::from(world.gave_up);
        let marker = |commits, decision| {
            let decision = if self.markers == Markers::OfDecision { decision } else { -1 };
            (1, later, -1, Part::Marker(Marker { commits, decision }))
        };
        let (id, epoch, sequence, part) = match object {
            FIRST => (1, 0, 0, Part::Inside),
            SECOND => (1, later, if world.gave_up { 0 } else { 1 }, Part::Inside),
            PLAIN => (2, 0, 0, Part::Outside),
            end if FIRST_ENDS.contains(&end) => marker(false, 0),
            _ => marker(true, 1),
        };
        let (first_sequence, last_sequence) = (sequence, sequence);
        let batch = BatchEntry {
            log: LOG,
            leader_epoch: -1,
            position: 0,
            size: 100,
            offsets_count: 1,
            max_timestamp: 0,
            producer: Some(ProducerBatch { id, epoch, first_sequence, last_sequence }),
            part,
        };
        Commit { key: key(object), batches: vec![batch] }
    }
}

impl World {
    /// What is asked for, perhaps again.
    fn asks(&self) -> &'static [u8] {
        match self.stage {
            Stage::SendsFirst => &[FIRST],
            Stage::EndsFirst => &FIRST_ENDS,
            Stage::SendsSecond => &[SECOND],
            Stage::EndsSecond => &[SECOND_END],
            Stage::Done => &[],
        }
    }

    fn find(&self) -> moldau_cluster::Found {
        self.sequencer.find(&Find { log: LOG, offset: 0, extents_max: 0 }).unwrap()
    }

    fn high_watermark(&self) -> i64 {
        self.find().high_watermark
    }

    fn extents(&self) -> Vec<Extent> {
        let find = Find { log: LOG, offset: self.find().start_offset, extents_max: 20 };
        self.sequencer.find(&find).unwrap().extents
    }

    fn sort(&mut self) {
        self.is_sorted = true;
        let extents = self.extents();
        let sources = extents.iter().map(|extent| (LOG, *extent)).collect();
        let (first, last) = (extents[0], extents[extents.len() - 1]);
        let targets = vec![(LOG, Extent { base_offset: first.base_offset, ..last })];
        self.sequencer.swap(&Swap { key: key(SORTED), sources, targets }).unwrap();
    }

    /// Objects of the offsets that a reader of what is committed passes.
    fn stable(&self) -> Vec<u8> {
        self.stable_offsets().map(|(_, object)| object).collect()
    }

    fn stable_offsets(&self) -> impl Iterator<Item = (i64, u8)> {
        let found = self.find();
        let is_stable = move |(offset, _): &(i64, u8)| {
            (found.start_offset..found.last_stable_offset).contains(offset)
        };
        (0..).zip(self.objects.iter().copied()).filter(is_stable)
    }

    /// Objects whose records such a reader gives to its application.
    fn visible(&self) -> Vec<u8> {
        let found = self.find();
        let (start, end) = (found.start_offset, found.last_stable_offset);
        let aborted = self.sequencer.aborted(LOG, start, end).unwrap();
        let is_aborted = |offset: i64, object: u8| {
            let is_within = |transaction: &moldau_cluster::AbortedTransaction| {
                let offsets = transaction.first_offset..=transaction.last_offset;
                transaction.producer_id == 1 && offsets.contains(&offset)
            };
            object != PLAIN && aborted.iter().any(is_within)
        };
        let is_data = |object: u8| matches!(object, FIRST | SECOND | PLAIN);
        self.stable_offsets()
            .filter(|(offset, object)| is_data(*object) && !is_aborted(*offset, *object))
            .map(|(_, object)| object)
            .collect()
    }
}

const COMPLETE: &str = "nothing that is committed is missing";
const FIRST: u8 = 0;
/// Of one broker and of another.
const FIRST_ENDS: [u8; 2] = [1, 2];
const SECOND: u8 = 3;
const SECOND_END: u8 = 4;
/// A batch of another producer.
const PLAIN: u8 = 6;
const SORTED: u8 = 7;
