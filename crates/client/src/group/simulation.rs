//! Members of both protocols against a model of their coordinator, with answers that are lost,
//! members that are put out or die, and owners that are slow to give partitions up.

mod classic_model;
mod consumer_model;

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use tokio::time::Instant;

use crate::Error;
use crate::group::classic::ClassicMember;
use crate::group::consumer::ConsumerMember;
use crate::group::driver::Machine;
use crate::group::holding::MembershipEvent;
use crate::group::machine::{
    Answer, Ask, Effect, Found, Input, Look, Member, MemberStage, Patience,
};
use crate::group::options::{GroupProtocol, MembershipOptions};
use crate::metadata::TopicRef;
use crate::offsets::TopicPartition;
use classic_model::ClassicModel;
use consumer_model::ConsumerModel;

const TOPIC: &str = "t";
const PARTITIONS: i32 = 7;
const STEPS: usize = 3_000;
/// Steps without faults, after which every member must be stable.
const CALM_STEPS: usize = 3_000;
const SEEDS: u64 = 60;

/// Names a request, so that the answer to one that was given up goes nowhere.
type Token = u64;

/// A coordinator that answers at once or later.
trait Model {
    fn ask(&mut self, token: Token, ask: Ask);
    /// Answers that are ready.
    fn answers(&mut self) -> Vec<(Token, Answer)>;
    /// Puts a member out.
    fn expel(&mut self, id: &str);
    fn has(&self, id: &str) -> bool;
    /// Puts out those who keep the others waiting.
    fn rebalance_timeout(&mut self);
}

/// A member with its owner.
struct Node {
    machine: Machine,
    in_flight: Option<Token>,
    looking: Option<Look>,
    /// What the owner was told that it holds.
    held: BTreeSet<TopicPartition>,
    losses: u64,
    /// Partitions that the owner is asked for and has not given up.
    asked: Vec<(u64, Vec<TopicPartition>)>,
    ended: Option<Result<(), Error>>,
}

struct World<M> {
    random: fastrand::Rng,
    seed: u64,
    now: Instant,
    model: M,
    nodes: Vec<Node>,
    next_token: Token,
    protocol: GroupProtocol,
    assignor: Option<&'static str>,
}

impl Node {
    fn id(&mut self) -> String {
        self.machine.tell().id
    }
}

impl<M: Model> World<M> {
    fn new(seed: u64, model: M, protocol: GroupProtocol, assignor: Option<&'static str>) -> Self {
        Self {
            random: fastrand::Rng::with_seed(seed),
            seed,
            now: Instant::now(),
            model,
            nodes: Vec::new(),
            next_token: 0,
            protocol,
            assignor,
        }
    }

    fn add(&mut self) {
        let options = MembershipOptions {
            protocol: self.protocol,
            topics: vec![TOPIC.to_owned()],
            assignor: self.assignor.map(str::to_owned),
            ..MembershipOptions::default()
        };
        let patience = Patience {
            backoff: Duration::from_millis(100),
            backoff_max: Duration::from_secs(1),
            start: Duration::from_hours(1_000),
            metadata_age_max: Duration::from_mins(5),
        };
        let member = Member::new("g", options, patience, self.now, self.random.u64(..));
        let machine = match self.protocol {
            GroupProtocol::Classic => {
                Machine::Classic(Box::new(ClassicMember::new(member).unwrap()))
            }
            GroupProtocol::Consumer => {
                let id = format!("member-{}", self.random.u64(..));
                Machine::Consumer(Box::new(ConsumerMember::new(member, id)))
            }
        };
        self.nodes.push(Node {
            machine,
            in_flight: None,
            looking: None,
            held: BTreeSet::new(),
            losses: 0,
            asked: Vec::new(),
            ended: None,
        });
        self.step(self.nodes.len() - 1, Input::Due);
    }

    fn step(&mut self, place: usize, input: Input) {
        let node = &mut self.nodes[place];
        if node.ended.is_some() {
            return;
        }
        for effect in node.machine.step(self.now, input) {
            match effect {
                Effect::Ask(ask) => {
                    self.next_token += 1;
                    node.in_flight = Some(self.next_token);
                    self.model.ask(self.next_token, ask);
                }
                Effect::Look(look) => node.looking = Some(look),
                Effect::ForgetCoordinator => {}
                Effect::End(outcome) => node.ended = Some(outcome),
            }
        }
        self.check();
    }

    /// No two members that the coordinator knows hold the same partition.
    fn check(&mut self) {
        let mut owners: HashMap<TopicPartition, usize> = HashMap::new();
        for (place, node) in self.nodes.iter_mut().enumerate() {
            let id = node.id();
            if node.ended.is_some() || !self.model.has(&id) {
                continue;
            }
            for partition in node.machine.member().holding.held() {
                let other = owners.insert(partition.clone(), place);
                assert_eq!(other, None, "seed {}: {partition:?} of {place} too", self.seed);
            }
        }
    }

    fn deliver(&mut self) {
        for (token, answer) in self.model.answers() {
            let asked = |node: &Node| node.in_flight == Some(token);
            if let Some(place) = self.nodes.iter().position(asked) {
                self.nodes[place].in_flight = None;
                self.step(place, Input::Answered(answer));
            }
        }
    }

    fn look_up(&mut self, place: usize) {
        let Some(look) = self.nodes[place].looking.take() else { return };
        let id = consumer_model::topic_id();
        let partitions = usize::try_from(PARTITIONS).unwrap();
        let found = Found { topic: TopicRef { name: TOPIC.into(), id }, partitions };
        let is_asked = match look {
            Look::Every => true,
            Look::Named(names) => names.iter().any(|name| name == TOPIC),
            Look::Ids(ids) => ids.contains(&id),
        };
        self.step(place, Input::Looked(Ok(is_asked.then_some(found).into_iter().collect())));
    }

    /// The owner takes an event.
    fn take_event(&mut self, place: usize) {
        let node = &mut self.nodes[place];
        let holding = &mut node.machine.member().holding;
        let Some(event) = holding.next_event() else { return };
        node.losses = holding.losses();
        match event {
            MembershipEvent::Assigned(partitions) => {
                for partition in partitions {
                    assert!(node.held.insert(partition), "seed {}: assigned twice", self.seed);
                }
            }
            MembershipEvent::Revoked(partitions) => {
                assert!(partitions.iter().all(|it| node.held.contains(it)), "seed {}", self.seed);
                node.asked.push((node.losses, partitions));
            }
            MembershipEvent::Lost(partitions) => {
                // It may have given up some of them meanwhile.
                let lost: BTreeSet<_> = partitions.into_iter().collect();
                assert!(node.held.is_subset(&lost), "seed {}: all is lost", self.seed);
                node.held.clear();
                node.asked.clear();
            }
        }
    }

    fn give_up(&mut self, place: usize) {
        let Some((losses, partitions)) = self.nodes[place].asked.pop() else { return };
        for partition in &partitions {
            self.nodes[place].held.remove(partition);
        }
        self.step(place, Input::GivenUp(losses, partitions));
    }

    /// What happens in any case, sooner or later.
    fn go_on(&mut self, place: usize) {
        match self.random.u8(0..6) {
            0 => self.deliver(),
            1 => self.look_up(place),
            2 => self.take_event(place),
            3 => self.give_up(place),
            _ => {
                self.now += Duration::from_millis(self.random.u64(0..400));
                if self.nodes[place].machine.due().is_some_and(|due| due <= self.now) {
                    self.step(place, Input::Due);
                }
            }
        }
    }

    fn fault(&mut self, place: usize) {
        match self.random.u8(0..8) {
            // The answer is lost, or the request was.
            0 | 1 if self.nodes[place].in_flight.take().is_some() => {
                let error =
                    Error::Disconnected { address: "broker".into(), reason: "a fault".into() };
                self.step(place, Input::Failed(error));
            }
            2 => {
                let id = self.nodes[place].id();
                self.model.expel(&id);
            }
            3 => self.model.rebalance_timeout(),
            4 if self.nodes.len() < 5 => self.add(),
            5 if self.nodes.len() > 1 => {
                let mut node = self.nodes.swap_remove(place);
                // It dies; its session ends.
                self.model.expel(&node.id());
            }
            6 if self.nodes.len() > 1 => {
                self.step(place, Input::Leave);
                while self.nodes[place].ended.is_none() {
                    self.deliver();
                }
                let node = self.nodes.swap_remove(place);
                assert!(node.ended.is_some_and(|it| it.is_ok()), "seed {}", self.seed);
            }
            _ => {}
        }
    }

    fn run(mut self) {
        (0..3).for_each(|_| self.add());
        for _ in 0..STEPS {
            let place = self.random.usize(0..self.nodes.len());
            match self.random.u8(0..30) {
                0 => self.fault(place),
                _ => self.go_on(place),
            }
        }
        for _ in 0..CALM_STEPS {
            let place = self.random.usize(0..self.nodes.len());
            self.go_on(place);
        }
        let mut all = BTreeSet::new();
        for node in &mut self.nodes {
            assert_eq!(node.machine.tell().stage, MemberStage::Stable, "seed {}", self.seed);
            assert_eq!(*node.machine.member().holding.held(), node.held, "seed {}", self.seed);
            all.extend(node.held.iter().cloned());
        }
        assert_eq!(all.len(), usize::try_from(PARTITIONS).unwrap(), "seed {}", self.seed);
    }
}

#[test]
fn members_of_the_consumer_protocol_share_all_partitions_and_none_twice() {
    for seed in 0..SEEDS {
        World::new(seed, ConsumerModel::default(), GroupProtocol::Consumer, None).run();
    }
}

#[test]
fn eager_members_share_all_partitions_and_none_twice() {
    for seed in 0..SEEDS {
        World::new(seed, ClassicModel::default(), GroupProtocol::Classic, None).run();
    }
}

#[test]
fn cooperative_members_share_all_partitions_and_none_twice() {
    let assignor = Some("cooperative-sticky");
    for seed in 0..SEEDS {
        World::new(seed, ClassicModel::default(), GroupProtocol::Classic, assignor).run();
    }
}
