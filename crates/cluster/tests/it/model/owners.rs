//! All orders of events of two brokers that own the log of frames in turn. A session ends at any
//! time, requests and answers are lost, repeated, and take effect late.

use std::collections::BTreeMap;

use bytes::Bytes;
use moldau_cluster::{Error, FrameState};
use stateright::{Checker, Model, Property};

#[test]
fn no_order_of_events_lets_two_owners_append() {
    let owners = Owners { fence: Fence::Epoch };
    owners.checker().threads(2).spawn_bfs().join().assert_properties();
}

#[test]
fn the_model_finds_that_a_session_alone_lets_two_owners_append() {
    let owners = Owners { fence: Fence::Session };
    let checker = owners.checker().threads(2).spawn_bfs().join();
    assert!(checker.discovery(FENCED).is_some());
}

/// What refuses an owner that does not know of its successor.
#[derive(Clone, Copy, PartialEq)]
enum Fence {
    Epoch,
    /// Nothing, as it believes in its session.
    Session,
}

struct Owners {
    fence: Fence,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct World {
    log: FrameState,
    /// Under way. Each may take effect at any time, or never.
    requests: BTreeMap<Request, u8>,
    brokers: [Broker; 2],
    /// The epoch of the owner of each frame that was ever appended.
    frames: Vec<u8>,
    /// First sequence of each epoch.
    epochs: Vec<usize>,
    /// Epoch and sequence of the frames whose owner was told.
    acknowledged: Vec<(u8, usize)>,
    snapshots_loaded: u8,
    /// Something that cannot be.
    broken: Option<&'static str>,
}

/// A broker knows the state that frames lead to: here, the frames themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Broker {
    known: Vec<u8>,
    /// Of an owner.
    epoch: Option<u8>,
    /// It waits for its append.
    appends: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Request {
    /// By the owner of an epoch, at a sequence.
    Append(u8, usize),
    /// Of what the owner of an epoch knows.
    Snapshot(u8, Vec<u8>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Action {
    /// The broker becomes the owner, as the session of the last one has ended.
    Claim(usize),
    /// It becomes so, and is not told.
    ClaimSilently,
    Read(usize),
    Append(usize),
    Snapshot(usize),
    /// The request takes effect, and is answered.
    Effect(Request),
    /// The request takes effect, and the answer is lost.
    Silent(Request),
}

impl Model for Owners {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::default()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        let may_claim = world.epochs.len() < EPOCHS_MAX;
        for (at, broker) in world.brokers.iter().enumerate() {
            match broker.epoch {
                None if may_claim => actions.push(Action::Claim(at)),
                Some(_) if broker.appends || broker.known.len() < FRAMES_MAX => {
                    actions.push(Action::Append(at));
                }
                _ => {}
            }
            if broker.epoch.is_some() && !broker.appends && !broker.known.is_empty() {
                actions.push(Action::Snapshot(at));
            }
            if broker.epoch.is_none() && broker.known.len() < world.frames.len() {
                actions.push(Action::Read(at));
            }
        }
        if may_claim {
            actions.push(Action::ClaimSilently);
        }
        for request in world.requests.keys() {
            actions.push(Action::Effect(request.clone()));
            actions.push(Action::Silent(request.clone()));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut world = world.clone();
        match action {
            Action::Claim(at) => {
                let epoch = world.begin_epoch();
                while world.brokers[at].known.len() < world.frames.len() {
                    world.read(at);
                }
                world.brokers[at].epoch = Some(epoch);
            }
            Action::ClaimSilently => {
                world.begin_epoch();
            }
            Action::Read(at) => world.read(at),
            Action::Append(at) => {
                let broker = &mut world.brokers[at];
                broker.appends = true;
                let request = Request::Append(broker.epoch?, broker.known.len());
                world.ask(request, 2)?;
            }
            Action::Snapshot(at) => {
                let broker = &world.brokers[at];
                let request = Request::Snapshot(broker.epoch?, broker.known.clone());
                world.ask(request, 1)?;
            }
            Action::Effect(request) => self.effect(&mut world, &request, true),
            Action::Silent(request) => self.effect(&mut world, &request, false),
        }
        Some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always(FENCED, |_, world: &World| {
                let is_of_time = |(epoch, first): (usize, &usize)| {
                    let later = world.frames.get(*first..).unwrap_or_default();
                    later.iter().all(|by| usize::from(*by) > epoch)
                };
                world.epochs.iter().enumerate().all(is_of_time)
            }),
            Property::always("an acknowledged frame is in the log", |_, world: &World| {
                let is_there = |(epoch, at): &(u8, usize)| world.frames.get(*at) == Some(epoch);
                world.acknowledged.iter().all(is_there)
            }),
            Property::always("all know what the frames say", |_, world: &World| {
                let is_right = |broker: &Broker| world.frames.starts_with(&broker.known);
                world.broken.is_none() && world.brokers.iter().all(is_right)
            }),
            Property::always("a snapshot and the frames behind it are all", |_, world: &World| {
                let mut whole = Vec::new();
                world.log_from(&mut whole);
                whole == world.frames
            }),
            Property::sometimes("a frame is refused", |_, world: &World| {
                let late = |request: &Request| match request {
                    Request::Append(epoch, _) => usize::from(*epoch) < world.epochs.len(),
                    Request::Snapshot(..) => false,
                };
                world.requests.keys().any(late)
            }),
            Property::sometimes("an owner goes on", |_, world: &World| {
                world.acknowledged.len() == FRAMES_MAX && world.frames.first() < world.frames.last()
            }),
            Property::sometimes("a snapshot is loaded", |_, world: &World| {
                world.snapshots_loaded > 0
            }),
        ]
    }
}

impl Owners {
    fn effect(&self, world: &mut World, request: &Request, is_answered: bool) {
        match world.requests.get_mut(request) {
            Some(count @ 2..) => *count -= 1,
            _ => drop(world.requests.remove(request)),
        }
        match request {
            Request::Append(epoch, at) => {
                let told = self.append(world, *epoch, *at);
                if is_answered {
                    world.is_told(*epoch, *at, &told);
                }
            }
            Request::Snapshot(epoch, known) => {
                let (sequence, bytes) = (sequence(known.len()), known.clone().into());
                let put = world.log.put_snapshot((*epoch).into(), sequence, bytes);
                if let (true, Err(Error::Fenced { .. })) = (is_answered, put) {
                    world.end(*epoch);
                }
            }
        }
    }

    fn append(&self, world: &mut World, epoch: u8, at: usize) -> Result<(), Error> {
        let by = match self.fence {
            Fence::Epoch => epoch.into(),
            Fence::Session => sequence(world.epochs.len()),
        };
        world.log.append(by, sequence(at), vec![Bytes::from(vec![epoch])])?;
        match world.frames.get(at) {
            None => world.frames.push(epoch),
            Some(there) if *there == epoch => {}
            Some(_) => world.broken = Some("two owners appended at one sequence"),
        }
        Ok(())
    }
}

impl World {
    fn ask(&mut self, request: Request, most: u8) -> Option<()> {
        let count = self.requests.entry(request).or_default();
        *count += 1;
        (*count <= most).then_some(())
    }

    fn begin_epoch(&mut self) -> u8 {
        let (epoch, next) = self.log.begin_epoch();
        if next != sequence(self.frames.len()) {
            self.broken = Some("an owner begins elsewhere than at the end");
        }
        self.epochs.push(self.frames.len());
        u8::try_from(epoch).unwrap()
    }

    /// The broker follows the log, one frame at a time.
    fn read(&mut self, at: usize) {
        let known = &mut self.brokers[at].known;
        match self.log.read(sequence(known.len()), 1) {
            Ok(frames) => known.extend(frames.iter().flat_map(|frame| frame.bytes.to_vec())),
            Err(Error::FramesReplaced { by }) => {
                let (next, bytes) = self.log.snapshot().unwrap();
                *known = bytes.to_vec();
                self.snapshots_loaded = 1;
                if next != by || next != sequence(known.len()) {
                    self.broken = Some("a snapshot of another sequence");
                }
            }
            Err(_) => self.broken = Some("frames cannot be read"),
        }
    }

    /// Follows the log as a broker that begins does.
    fn log_from(&self, whole: &mut Vec<u8>) {
        whole.extend(self.log.snapshot().into_iter().flat_map(|(_, bytes)| bytes.to_vec()));
        let frames = self.log.read(sequence(whole.len()), 100).unwrap();
        whole.extend(frames.iter().flat_map(|frame| frame.bytes.to_vec()));
    }

    fn is_told(&mut self, epoch: u8, at: usize, told: &Result<(), Error>) {
        let is_of = |broker: &&mut Broker| broker.epoch == Some(epoch);
        let Some(broker) = self.brokers.iter_mut().find(is_of) else { return };
        if !broker.appends || broker.known.len() != at {
            return;
        }
        match told {
            Ok(()) => {
                broker.appends = false;
                broker.known.push(epoch);
                self.acknowledged.push((epoch, at));
            }
            Err(Error::Fenced { .. }) => self.end(epoch),
            Err(_) => self.broken = Some("an owner is out of sequence"),
        }
    }

    /// What an owner asked for last may be in the log or not, so it begins again.
    fn end(&mut self, epoch: u8) {
        let is_of = |broker: &&mut Broker| broker.epoch == Some(epoch);
        if let Some(broker) = self.brokers.iter_mut().find(is_of) {
            *broker = Broker::default();
        }
    }
}

fn sequence(at: usize) -> i64 {
    i64::try_from(at).unwrap()
}

const FENCED: &str = "no frame of an owner comes behind the beginning of a later one";
const EPOCHS_MAX: usize = 3;
const FRAMES_MAX: usize = 2;
