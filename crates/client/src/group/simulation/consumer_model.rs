//! A coordinator of the consumer protocol: partitions go round, and nobody gets one before its
//! former owner has given it up.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::messages::consumer_group_heartbeat_response::{Assignment, TopicPartitions};
use moldau_protocol::messages::{ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse};
use moldau_protocol::{ErrorCode, Uuid};

use super::{Answer, Ask, Model, PARTITIONS, Token};

pub(super) fn topic_id() -> Uuid {
    Uuid::from_bytes([7; 16])
}

#[derive(Default)]
struct Known {
    epoch: i32,
    previous_epoch: i32,
    /// What it may hold.
    given: BTreeSet<i32>,
    /// What it was told to give up, and may hold.
    taken: BTreeSet<i32>,
}

#[derive(Default)]
pub(super) struct ConsumerModel {
    members: BTreeMap<String, Known>,
    epoch: i32,
    answers: Vec<(Token, Answer)>,
}

impl ConsumerModel {
    fn beat(&mut self, request: &ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse {
        let refused = |code: ErrorCode| ConsumerGroupHeartbeatResponse {
            error_code: code.code(),
            ..Default::default()
        };
        let id = request.member_id.clone();
        if request.member_epoch == -1 {
            self.expel(&id);
            return ConsumerGroupHeartbeatResponse { member_epoch: -1, ..Default::default() };
        }
        let reported = request.topic_partitions.as_ref().map(|topics| {
            let partitions = topics.iter().flat_map(|topic| topic.partitions.iter().copied());
            partitions.collect::<BTreeSet<i32>>()
        });
        if request.member_epoch == 0 {
            assert_eq!(reported, Some(BTreeSet::new()), "who joins holds nothing");
            assert!(request.subscribed_topic_names.is_some(), "who joins subscribes");
            self.epoch += 1;
            self.members.insert(id.clone(), Known::default());
        }
        let Some(known) = self.members.get_mut(&id) else {
            return refused(ErrorCode::UnknownMemberId);
        };
        let is_repeated = request.member_epoch == known.previous_epoch
            && reported.as_ref().is_some_and(|it| it.is_subset(&known.given));
        if request.member_epoch != 0 && request.member_epoch != known.epoch && !is_repeated {
            self.members.remove(&id);
            self.epoch += 1;
            return refused(ErrorCode::FencedMemberEpoch);
        }
        if let Some(reported) = reported {
            known.taken.retain(|partition| reported.contains(partition));
        }
        self.reconcile(&id);
        let known = &self.members[&id];
        let topic = TopicPartitions {
            topic_id: topic_id(),
            partitions: known.given.iter().copied().collect(),
            ..Default::default()
        };
        let assignment = Assignment { topic_partitions: vec![topic], ..Default::default() };
        ConsumerGroupHeartbeatResponse {
            member_id: Some(id),
            member_epoch: known.epoch,
            heartbeat_interval_ms: 1_000,
            assignment: Some(assignment),
            ..Default::default()
        }
    }

    fn reconcile(&mut self, id: &str) {
        let count = self.members.len();
        let place = self.members.keys().position(|known| known == id).unwrap();
        let target: BTreeSet<i32> =
            (0..PARTITIONS).filter(|it| usize::try_from(*it).unwrap() % count == place).collect();
        let others: BTreeSet<i32> = self
            .members
            .iter()
            .filter(|(other, _)| *other != id)
            .flat_map(|(_, known)| known.given.union(&known.taken).copied())
            .collect();
        let known = self.members.get_mut(id).unwrap();
        let surplus: Vec<i32> = known.given.difference(&target).copied().collect();
        known.given.retain(|partition| target.contains(partition));
        known.taken.extend(surplus);
        if known.taken.is_empty() {
            known.given.extend(target.difference(&others));
            if known.epoch != self.epoch {
                known.previous_epoch = known.epoch;
                known.epoch = self.epoch;
            }
        }
    }
}

impl Model for ConsumerModel {
    fn ask(&mut self, token: Token, ask: Ask) {
        let Ask::Beat(request) = ask else { panic!("{ask:?}") };
        let answer = self.beat(&request);
        self.answers.push((token, Answer::Beat(answer)));
    }

    fn answers(&mut self) -> Vec<(Token, Answer)> {
        std::mem::take(&mut self.answers)
    }

    fn expel(&mut self, id: &str) {
        if self.members.remove(id).is_some() {
            self.epoch += 1;
        }
    }

    fn has(&self, id: &str) -> bool {
        self.members.contains_key(id)
    }

    fn rebalance_timeout(&mut self) {
        let slow = |(_, known): &(&String, &Known)| !known.taken.is_empty();
        let slow: Vec<String> =
            self.members.iter().filter(slow).map(|(id, _)| id.clone()).collect();
        slow.iter().for_each(|id| self.expel(id));
    }
}
