//! Who gets which partitions of a share group: the assignor `simple` of Kafka 4.4.
//!
//! Members may share a partition. All partitions get the same number of members, the least with
//! which every member gets some, and the members get even parts. A member keeps what it has as far
//! as that allows. If members subscribe to different topics, each topic is assigned by itself.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use moldau_protocol::Uuid;

use crate::assignor::Assignment;
use crate::consumer_member::Partitions;

/// The name that ShareGroupDescribe shows.
pub(crate) const NAME: &str = "simple";

/// The target of every member.
pub(crate) fn assign(assignment: &Assignment<'_>) -> BTreeMap<String, Partitions> {
    let members = &assignment.members;
    let mut targets = vec![Partitions::new(); members.len()];
    let is_homogeneous = members.windows(2).all(|pair| match pair {
        [one, other] => one.topics == other.topics,
        _ => true,
    });
    let all = assignment.sizes.keys().copied();
    let pools: Vec<BTreeSet<Uuid>> = match is_homogeneous {
        true => vec![all.collect()],
        false => all.map(|topic| [topic].into()).collect(),
    };
    for topics in pools {
        let is_subscribed = |index: &usize| {
            let member = members.get(*index);
            member.is_some_and(|member| topics.iter().any(|topic| member.topics.contains(topic)))
        };
        let subscribers: Vec<usize> = (0..members.len()).filter(is_subscribed).collect();
        Pool::new(assignment, &topics, subscribers).assign(&mut targets);
    }
    members.iter().map(|member| member.id.to_owned()).zip(targets).collect()
}

/// Topics and those who subscribe to all of them.
struct Pool<'a> {
    assignment: &'a Assignment<'a>,
    partitions: Vec<(Uuid, i32)>,
    subscribers: Vec<Subscriber>,
    /// Members of each partition; as many as `sharing` are wanted.
    sharers: HashMap<(Uuid, i32), usize>,
    sharing: usize,
}

struct Subscriber {
    /// Among all members.
    index: usize,
    /// How many partitions it is still to get.
    room: usize,
}

impl<'a> Pool<'a> {
    fn new(
        assignment: &'a Assignment<'a>,
        topics: &BTreeSet<Uuid>,
        subscribers: Vec<usize>,
    ) -> Self {
        let sizes = assignment.sizes.iter().filter(|(topic, _)| topics.contains(topic));
        let partitions: Vec<_> =
            sizes.flat_map(|(topic, size)| (0..*size).map(|index| (*topic, index))).collect();
        let members = subscribers.len().max(1);
        let sharing = subscribers.len().div_ceil(partitions.len().max(1));
        let slots = sharing * partitions.len();
        let until = |position: usize| (slots * position).div_ceil(members);
        let subscribers = subscribers.into_iter().enumerate();
        let subscribers = subscribers.map(|(position, index)| Subscriber {
            index,
            room: until(position + 1) - until(position),
        });
        let subscribers = subscribers.collect();
        Self { assignment, sharers: HashMap::new(), partitions, subscribers, sharing }
    }

    fn assign(mut self, targets: &mut [Partitions]) {
        self.keep(targets);
        self.fill(targets);
    }

    /// Lets each member keep what it has, up to its own part and that of each partition.
    fn keep(&mut self, targets: &mut [Partitions]) {
        self.sharers = self.partitions.iter().map(|partition| (*partition, 0)).collect();
        for subscriber in &mut self.subscribers {
            let member = self.assignment.members.get(subscriber.index);
            let current = member.and_then(|member| member.current).into_iter().flatten();
            let current =
                current.flat_map(|(topic, held)| held.iter().map(|index| (*topic, *index)));
            let Some(target) = targets.get_mut(subscriber.index) else { continue };
            for partition in current {
                let Some(sharers) = self.sharers.get_mut(&partition) else { continue };
                if subscriber.room > 0 && *sharers < self.sharing {
                    subscriber.room -= 1;
                    *sharers += 1;
                    target.entry(partition.0).or_default().insert(partition.1);
                }
            }
        }
    }

    /// Gives the rest to those who have room, in turn. A partition may stay short of members, if
    /// all who have room have it; it never stays without any.
    fn fill(self, targets: &mut [Partitions]) {
        let mut open: VecDeque<Subscriber> =
            self.subscribers.into_iter().filter(|subscriber| subscriber.room > 0).collect();
        for partition in self.partitions {
            let sharers = self.sharers.get(&partition).copied().unwrap_or(0);
            let mut wanted = self.sharing.saturating_sub(sharers);
            for _turn in 0..open.len() {
                if wanted == 0 {
                    break;
                }
                let Some(mut subscriber) = open.pop_front() else { break };
                let Some(target) = targets.get_mut(subscriber.index) else { continue };
                if target.entry(partition.0).or_default().insert(partition.1) {
                    subscriber.room -= 1;
                    wanted -= 1;
                }
                if subscriber.room > 0 {
                    open.push_back(subscriber);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;
    use crate::assignor::MemberTopics;

    fn topic(number: u8) -> Uuid {
        Uuid::from_bytes([number; 16])
    }

    fn names(count: usize) -> Vec<String> {
        (0..count).map(|index| format!("member-{index:03}")).collect()
    }

    /// Assigns topics of these sizes to members with these subscriptions.
    fn assigned(
        sizes: &[i32],
        subscriptions: &[BTreeSet<u8>],
        before: &BTreeMap<String, Partitions>,
    ) -> BTreeMap<String, Partitions> {
        let names = names(subscriptions.len());
        let sizes = (0..).zip(sizes);
        let sizes =
            sizes.filter(|(number, _)| subscriptions.iter().any(|topics| topics.contains(number)));
        let sizes: BTreeMap<Uuid, i32> =
            sizes.map(|(number, size)| (topic(number), *size)).collect();
        let members = names.iter().zip(subscriptions).map(|(name, topics)| MemberTopics {
            id: name,
            instance_id: None,
            topics: topics
                .iter()
                .map(|it| topic(*it))
                .filter(|it| sizes.contains_key(it))
                .collect(),
            current: before.get(name),
        });
        assign(&Assignment { members: members.collect(), sizes: sizes.clone() })
    }

    /// Members who all subscribe to the same.
    fn same(topics: &[u8], members: usize) -> Vec<BTreeSet<u8>> {
        vec![topics.iter().copied().collect(); members]
    }

    fn count(partitions: &Partitions) -> usize {
        partitions.values().map(BTreeSet::len).sum()
    }

    /// How many members each partition has.
    fn sharers(targets: &BTreeMap<String, Partitions>) -> BTreeMap<(Uuid, i32), usize> {
        let mut sharers = BTreeMap::new();
        for (topic, held) in targets.values().flatten() {
            held.iter().for_each(|index| *sharers.entry((*topic, *index)).or_default() += 1);
        }
        sharers
    }

    #[test]
    fn fewer_members_than_partitions_get_even_parts() {
        let targets = assigned(&[4, 3], &same(&[0, 1], 3), &BTreeMap::new());
        let counts: Vec<usize> = targets.values().map(count).collect();
        assert_eq!(counts, [3, 2, 2]);
        assert!(sharers(&targets).values().all(|members| *members == 1));
    }

    #[test]
    fn more_members_than_partitions_share_them() {
        let targets = assigned(&[2], &same(&[0], 3), &BTreeMap::new());
        let counts: Vec<usize> = targets.values().map(count).collect();
        assert_eq!(counts, [2, 1, 1]);
        assert_eq!(sharers(&targets).into_values().collect::<Vec<_>>(), [2, 2]);
    }

    #[test]
    fn a_member_that_joins_moves_few_partitions() {
        let before = assigned(&[6], &same(&[0], 2), &BTreeMap::new());
        let after = assigned(&[6], &same(&[0], 3), &before);
        for (member, held) in &before {
            let kept = held.values().flatten().filter(|it| after[member][&topic(0)].contains(*it));
            assert_eq!((kept.count(), count(&after[member])), (2, 2), "{member}");
        }
    }

    #[test]
    fn members_of_other_topics_get_even_parts_of_each() {
        let subscriptions: [BTreeSet<u8>; 3] = [[0].into(), [1].into(), [0, 1].into()];
        let targets = assigned(&[2, 2], &subscriptions, &BTreeMap::new());
        let counts: Vec<usize> = targets.values().map(count).collect();
        assert_eq!(counts, [1, 1, 2]);
    }

    proptest! {
        #[test]
        fn every_partition_has_members_and_every_member_partitions(
            sizes in vec(0..9_i32, 1..4),
            subscriptions in vec(btree_set(0..4_u8, 0..4), 1..12),
            former in vec(btree_set(0..4_u8, 0..4), 1..12),
            former_sizes in vec(0..9_i32, 1..4),
        ) {
            let before = assigned(&former_sizes, &former, &BTreeMap::new());
            let targets = assigned(&sizes, &subscriptions, &before);
            let sharers = sharers(&targets);
            for (member, topics) in targets.values().zip(&subscriptions) {
                for (topic_id, held) in member {
                    let number = topic_id.as_bytes()[0];
                    prop_assert!(topics.contains(&number), "{number} is not subscribed to");
                    prop_assert!(held.iter().all(|index| *index < sizes[usize::from(number)]));
                }
                let has_any = topics.iter().any(|it| sizes.get(usize::from(*it)) > Some(&0));
                prop_assert_eq!(has_any, count(member) > 0);
            }
            for (number, size) in (0..).zip(&sizes) {
                let is_wanted = subscriptions.iter().any(|topics| topics.contains(&number));
                for index in 0..*size {
                    prop_assert_eq!(is_wanted, sharers.contains_key(&(topic(number), index)));
                }
            }
            prop_assert_eq!(assigned(&sizes, &subscriptions, &targets), targets);
        }
    }
}
