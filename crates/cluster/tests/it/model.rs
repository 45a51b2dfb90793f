//! All orders of events in a small world: two brokers with an object each, a compactor, a trim, and
//! a collector. Requests and answers are lost, repeated, and take effect late.

mod owners;
mod transactions;

use std::collections::BTreeMap;

use moldau_cluster::{
    BatchEntry, Commit, Error, Extent, Find, LogId, ObjectKey, Outcome, Part, ProducerBatch, State,
    Swap, Topic,
};
use stateright::{Checker, Model, Property};
use uuid::Uuid;

#[test]
fn no_order_of_events_loses_an_acknowledged_batch() {
    for sends in [Sends::Apart, Sends::SameBatch] {
        let cluster = Cluster { garbage: Garbage::ByKey, sends };
        cluster.checker().threads(2).spawn_bfs().join().assert_properties();
    }
}

#[test]
fn the_model_finds_that_an_age_alone_deletes_what_is_committed_late() {
    let cluster = Cluster { garbage: Garbage::ByAge, sends: Sends::Apart };
    let checker = cluster.checker().threads(2).spawn_bfs().join();
    assert!(checker.discovery(READABLE).is_some());
}

/// When the collector deletes an object that nobody reads.
#[derive(Clone, Copy, PartialEq)]
enum Garbage {
    /// After its key was condemned.
    ByKey,
    /// Once it is old.
    ByAge,
}

#[derive(Clone, Copy, PartialEq)]
enum Sends {
    /// The brokers have batches of two producers.
    Apart,
    /// A producer sends its batch to both brokers.
    SameBatch,
}

struct Cluster {
    garbage: Garbage,
    sends: Sends,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    sequencer: State,
    /// Objects in the store, by number.
    store: Vec<u8>,
    /// Requests under way. Each may take effect at any time, or never.
    requests: BTreeMap<Request, u8>,
    brokers: [Broker; 2],
    compactor: Compactor,
    is_trimmed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Request {
    Put(u8),
    Commit(u8),
    Swap,
    Condemn(u8),
    Delete(u8),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Broker {
    Puts,
    Commits,
    Acknowledged(i64),
    Failed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Compactor {
    Idle,
    Puts(Vec<(LogId, Extent)>),
    Swaps(Vec<(LogId, Extent)>),
    Done,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Action {
    /// A broker or the compactor asks, perhaps again.
    Ask(Request),
    /// The request takes effect, and is answered.
    Effect(Request),
    /// The request takes effect, and the answer is lost.
    Silent(Request),
    /// The broker gives up, or ends.
    GiveUp(u8),
    Plan,
    Trim,
}

impl Model for Cluster {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        let mut sequencer = State::default();
        sequencer.create_topic(&Topic { id: LOG.topic, name: "t".into(), partitions: 1 }).unwrap();
        vec![World {
            sequencer,
            store: vec![],
            requests: BTreeMap::new(),
            brokers: [Broker::Puts; 2],
            compactor: Compactor::Idle,
            is_trimmed: false,
        }]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        for (i, broker) in (0..).zip(&world.brokers) {
            let asks = match broker {
                Broker::Puts => Request::Put(i),
                Broker::Commits => Request::Commit(i),
                _ => continue,
            };
            actions.push(Action::Ask(asks));
            // The other would add nothing but the mirror image.
            if i == 0 {
                actions.push(Action::GiveUp(i));
            }
        }
        match &world.compactor {
            Compactor::Idle if world.extents().len() == 2 => actions.push(Action::Plan),
            Compactor::Puts(_) => actions.push(Action::Ask(Request::Put(SORTED))),
            Compactor::Swaps(_) => actions.push(Action::Ask(Request::Swap)),
            _ => {}
        }
        for object in &world.store {
            let request = match self.garbage {
                Garbage::ByKey => Request::Condemn(*object),
                Garbage::ByAge if world.reads(*object) => continue,
                Garbage::ByAge => Request::Delete(*object),
            };
            actions.push(Action::Ask(request));
        }
        if !world.is_trimmed && world.high_watermark() > 0 {
            actions.push(Action::Trim);
        }
        for request in world.requests.keys() {
            actions.push(Action::Effect(*request));
            // The collector does not need its answers.
            if !matches!(request, Request::Condemn(_) | Request::Delete(_)) {
                actions.push(Action::Silent(*request));
            }
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut world = world.clone();
        match action {
            Action::Ask(request) => world.ask(request)?,
            Action::GiveUp(broker) => world.brokers[usize::from(broker)] = Broker::Failed,
            Action::Plan => {
                let extents = world.extents().into_iter().map(|extent| (LOG, extent));
                world.compactor = Compactor::Puts(extents.collect());
            }
            Action::Trim => {
                world.is_trimmed = true;
                world.sequencer.trim(LOG, 1).unwrap();
                while world.sequencer.sweep(10) {}
            }
            Action::Effect(request) => self.effect(&mut world, request, true),
            Action::Silent(request) => self.effect(&mut world, request, false),
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![
            Property::always("an acknowledged batch is in the log", |_, world: &World| {
                let start = world.start_offset();
                let is_there = |offset: i64| {
                    let covers = |extent: &Extent| {
                        (extent.base_offset..=extent.last_offset).contains(&offset)
                    };
                    offset < start || world.extents().iter().any(covers)
                };
                world.offsets().into_iter().all(is_there)
            }),
            Property::always(READABLE, |_, world: &World| {
                let is_there = |extent: &Extent| world.store.contains(&number(extent.object));
                world.extents().iter().all(is_there)
            }),
            Property::always("no offset is given twice", |cluster: &Self, world: &World| {
                let offsets = world.offsets();
                let is_same = offsets.len() == 2 && offsets[0] == offsets[1];
                let ends = world
                    .extents()
                    .windows(2)
                    .all(|pair| pair[0].last_offset < pair[1].base_offset);
                ends && is_same == (cluster.sends == Sends::SameBatch && offsets.len() == 2)
            }),
            Property::sometimes("both are acknowledged", |_, world: &World| {
                world.offsets().len() == 2
            }),
            Property::sometimes("a commit is late", |_, world: &World| {
                let mut sequencer = world.sequencer.clone();
                world.brokers[0] == Broker::Failed
                    && sequencer.condemn(&[key(0)]) == [key(0)]
                    && world.requests.contains_key(&Request::Commit(0))
            }),
            Property::sometimes("a PUT is late", |_, world: &World| {
                !world.store.contains(&0)
                    && world.requests.contains_key(&Request::Put(0))
                    && !world.sequencer.dead(9).is_empty()
            }),
        ];
        if self.sends == Sends::Apart {
            properties.push(Property::sometimes("extents are swapped", |_, world: &World| {
                world.extents().iter().any(|extent| extent.sorted) && !world.store.contains(&0)
            }));
        }
        properties
    }
}

impl Cluster {
    fn effect(&self, world: &mut World, request: Request, is_answered: bool) {
        match world.requests.get_mut(&request) {
            Some(count @ 2..) => *count -= 1,
            _ => drop(world.requests.remove(&request)),
        }
        match request {
            Request::Put(object) => {
                if !world.store.contains(&object) {
                    world.store.push(object);
                    world.store.sort_unstable();
                }
                if is_answered {
                    world.put_is_answered(object);
                }
            }
            Request::Commit(object) => {
                let outcome = world.sequencer.commit(&self.commit(object));
                let broker = &mut world.brokers[usize::from(object)];
                if is_answered && *broker == Broker::Commits {
                    *broker = match outcome.as_deref() {
                        Ok([Outcome::Appended { base_offset, .. }])
                        | Ok([Outcome::Duplicate { base_offset, .. }]) => {
                            Broker::Acknowledged(*base_offset)
                        }
                        _ => Broker::Failed,
                    };
                }
            }
            Request::Swap => {
                if let Compactor::Swaps(sources) = world.compactor.clone() {
                    let last = sources.last().copied().into_iter();
                    let targets = last.map(|(log, last)| (log, Extent { base_offset: 0, ..last }));
                    let targets = targets.collect();
                    let swap = Swap { key: key(SORTED), sources, targets };
                    let answer = world.sequencer.swap(&swap);
                    if is_answered || answer == Err(Error::SourcesChanged) {
                        world.compactor = Compactor::Done;
                    }
                }
            }
            Request::Condemn(object) => {
                if !world.sequencer.condemn(&[key(object)]).is_empty() {
                    world.requests.insert(Request::Delete(object), 1);
                }
            }
            Request::Delete(object) => world.store.retain(|other| *other != object),
        }
    }

    fn commit(&self, object: u8) -> Commit {
        let id = if self.sends == Sends::SameBatch { 0 } else { i64::from(object) };
        let producer = ProducerBatch { id, epoch: 0, first_sequence: 0, last_sequence: 0 };
        let batch = BatchEntry {
            log: LOG,
            leader_epoch: -1,
            position: 0,
            size: 100,
            offsets_count: 1,
            max_timestamp: 0,
            producer: Some(producer),
            part: Part::Outside,
        };
        Commit { key: key(object), batches: vec![batch] }
    }
}

impl World {
    /// At most two of each at a time.
    fn ask(&mut self, request: Request) -> Option<()> {
        let most = if matches!(request, Request::Put(0) | Request::Commit(0)) { 2 } else { 1 };
        let count = self.requests.entry(request).or_default();
        *count += 1;
        (*count <= most).then_some(())
    }

    fn put_is_answered(&mut self, object: u8) {
        if let Some(broker @ Broker::Puts) = self.brokers.get_mut(usize::from(object)) {
            *broker = Broker::Commits;
        }
        if let Compactor::Puts(sources) = &self.compactor
            && object == SORTED
        {
            self.compactor = Compactor::Swaps(sources.clone());
        }
    }

    fn extents(&self) -> Vec<Extent> {
        let find = Find { log: LOG, offset: self.start_offset(), extents_max: 9 };
        self.sequencer.find(&find).unwrap().extents
    }

    fn start_offset(&self) -> i64 {
        let find = Find { log: LOG, offset: 0, extents_max: 0 };
        self.sequencer.find(&find).unwrap().start_offset
    }

    fn high_watermark(&self) -> i64 {
        let find = Find { log: LOG, offset: 0, extents_max: 0 };
        self.sequencer.find(&find).unwrap().high_watermark
    }

    fn reads(&self, object: u8) -> bool {
        self.extents().iter().any(|extent| extent.object == key(object))
    }

    fn offsets(&self) -> Vec<i64> {
        let acknowledged = |broker: &Broker| match broker {
            Broker::Acknowledged(offset) => Some(*offset),
            _ => None,
        };
        self.brokers.iter().filter_map(acknowledged).collect()
    }
}

fn key(object: u8) -> ObjectKey {
    ObjectKey(Uuid::from_u128(u128::from(object)))
}

fn number(key: ObjectKey) -> u8 {
    u8::try_from(key.0.as_u128()).unwrap()
}

const READABLE: &str = "what can be read is in the store";
const LOG: LogId = LogId { topic: Uuid::nil(), partition: 0 };
/// The object of the compactor.
const SORTED: u8 = 2;
