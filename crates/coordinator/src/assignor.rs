//! Who gets which partitions: the assignors `uniform` and `range` of Kafka.
//!
//! Both are functions of the members, in the order of their names, and of the topics. `uniform`
//! spreads all partitions evenly and leaves as many as it can where they are. `range` gives each
//! member the same part of every topic, so that partitions of one index meet at one member.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::Uuid;

use crate::consumer_member::Partitions;

/// An assignor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignor {
    /// Spreads all partitions evenly and moves few.
    Uniform,
    /// Cuts every topic into one range for each member.
    Range,
}

/// What an assignor works on.
pub(crate) struct Assignment<'a> {
    pub(crate) members: Vec<MemberTopics<'a>>,
    /// Partitions of each topic that a member subscribes to.
    pub(crate) sizes: BTreeMap<Uuid, i32>,
}

/// A member as assignors see it.
pub(crate) struct MemberTopics<'a> {
    pub(crate) id: &'a str,
    pub(crate) instance_id: Option<&'a str>,
    pub(crate) topics: BTreeSet<Uuid>,
    /// Its part of the target before.
    pub(crate) current: Option<&'a Partitions>,
}

impl Assignor {
    /// The name that clients and the configuration use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::Range => "range",
        }
    }

    /// The assignor of a name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Uniform, Self::Range].into_iter().find(|assignor| assignor.name() == name)
    }

    /// The target of every member.
    pub(crate) fn assign(self, assignment: &Assignment<'_>) -> BTreeMap<String, Partitions> {
        let members = &assignment.members;
        let targets = match self {
            Self::Range => range(assignment),
            Self::Uniform => {
                let is_homogeneous = members.windows(2).all(|pair| match pair {
                    [one, other] => one.topics == other.topics,
                    _ => true,
                });
                let kept = match is_homogeneous {
                    true => keep_quota(assignment),
                    false => keep_all(assignment),
                };
                spread(assignment, kept, is_homogeneous)
            }
        };
        members.iter().map(|member| member.id.to_owned()).zip(targets).collect()
    }
}

/// What members have and may keep, and what is left over.
struct Kept {
    targets: Vec<Partitions>,
    rest: Vec<(Uuid, i32)>,
}

/// How many partitions each of `members` members gets, the first ones one more than the others.
struct Quota {
    least: usize,
    extras: usize,
}

impl Quota {
    fn of(partitions: usize, members: usize) -> Self {
        let members = members.max(1);
        Self { least: partitions / members, extras: partitions % members }
    }
}

/// Lets each member keep up to its even share of what it has.
fn keep_quota(assignment: &Assignment<'_>) -> Kept {
    let all = assignment.sizes.values().map(|count| usize::try_from(*count).unwrap_or(0));
    let mut quota = Quota::of(all.sum(), assignment.members.len());
    let mut taken = BTreeSet::new();
    let targets = assignment.members.iter().map(|member| {
        let mut room = quota.least;
        let mut target = Partitions::new();
        for key in current(assignment, member) {
            if room == 0 {
                if quota.extras == 0 {
                    break;
                }
                quota.extras -= 1;
                // One more than the others is the most.
                if taken.insert(key) {
                    target.entry(key.0).or_default().insert(key.1);
                }
                break;
            }
            if taken.insert(key) {
                target.entry(key.0).or_default().insert(key.1);
                room -= 1;
            }
        }
        target
    });
    let targets = targets.collect();
    Kept { targets, rest: left_over(assignment, &taken) }
}

/// Lets each member keep all of what it has, for the balance to take from those with most.
fn keep_all(assignment: &Assignment<'_>) -> Kept {
    let mut taken = BTreeSet::new();
    let targets = assignment.members.iter().map(|member| {
        let mut target = Partitions::new();
        for key in current(assignment, member) {
            if taken.insert(key) {
                target.entry(key.0).or_default().insert(key.1);
            }
        }
        target
    });
    let targets = targets.collect();
    Kept { targets, rest: left_over(assignment, &taken) }
}

/// What a member has of the topics that it still subscribes to and that still have it.
fn current<'a>(
    assignment: &'a Assignment<'_>,
    member: &'a MemberTopics<'_>,
) -> impl Iterator<Item = (Uuid, i32)> + 'a {
    let topics = member.current.into_iter().flatten();
    topics.flat_map(move |(topic, partitions)| {
        let size = assignment.sizes.get(topic).filter(|_| member.topics.contains(topic));
        let size = size.copied().unwrap_or(0);
        partitions.iter().filter(move |index| **index < size).map(|index| (*topic, *index))
    })
}

fn left_over(assignment: &Assignment<'_>, taken: &BTreeSet<(Uuid, i32)>) -> Vec<(Uuid, i32)> {
    let all = assignment.sizes.iter();
    let all = all.flat_map(|(topic, count)| (0..*count).map(|index| (*topic, index)));
    all.filter(|key| !taken.contains(key)).collect()
}

/// Gives each partition that is left over to the subscriber that has fewest, and then moves
/// partitions from members that have too many.
fn spread(assignment: &Assignment<'_>, kept: Kept, is_homogeneous: bool) -> Vec<Partitions> {
    let members = &assignment.members;
    let mut targets = kept.targets;
    let mut loads: Vec<usize> =
        targets.iter().map(|target| target.values().map(BTreeSet::len).sum()).collect();
    let mut by_load: BTreeSet<(usize, usize)> =
        loads.iter().enumerate().map(|(member, load)| (*load, member)).collect();
    for (topic, index) in kept.rest {
        let subscribed = |(_, member): &&(usize, usize)| {
            members.get(*member).is_some_and(|it| it.topics.contains(&topic))
        };
        let Some((load, member)) = by_load.iter().find(subscribed).copied() else { continue };
        by_load.remove(&(load, member));
        by_load.insert((load + 1, member));
        if let (Some(target), Some(load)) = (targets.get_mut(member), loads.get_mut(member)) {
            target.entry(topic).or_default().insert(index);
            *load += 1;
        }
    }
    if !is_homogeneous {
        balance(assignment, &mut targets, &mut loads);
    }
    targets
}

/// Moves partitions of a topic from its busiest subscriber to its idlest while they are two or more
/// apart. Each move makes the sum of the squares of all loads smaller, so this ends.
fn balance(assignment: &Assignment<'_>, targets: &mut [Partitions], loads: &mut [usize]) {
    loop {
        let mut moved = false;
        for topic in assignment.sizes.keys() {
            while let Some((from, to)) = unbalanced(assignment, targets, loads, topic) {
                let Some(held) = targets.get_mut(from).and_then(|it| it.get_mut(topic)) else {
                    break;
                };
                let Some(index) = held.pop_last() else { break };
                if held.is_empty()
                    && let Some(target) = targets.get_mut(from)
                {
                    target.remove(topic);
                }
                if let Some(target) = targets.get_mut(to) {
                    target.entry(*topic).or_default().insert(index);
                }
                loads.get_mut(from).into_iter().for_each(|load| *load -= 1);
                loads.get_mut(to).into_iter().for_each(|load| *load += 1);
                moved = true;
            }
        }
        if !moved {
            return;
        }
    }
}

/// The subscriber of a topic that holds some of it and has most, and the one that has fewest.
fn unbalanced(
    assignment: &Assignment<'_>,
    targets: &[Partitions],
    loads: &[usize],
    topic: &Uuid,
) -> Option<(usize, usize)> {
    let members = assignment.members.iter().zip(targets).zip(loads).enumerate();
    let subscribers = members.filter(|(_, ((member, _), _))| member.topics.contains(topic));
    let mut most: Option<(usize, usize)> = None;
    let mut fewest: Option<(usize, usize)> = None;
    for (place, ((_, target), load)) in subscribers {
        if target.contains_key(topic) && most.is_none_or(|(load_max, _)| *load > load_max) {
            most = Some((*load, place));
        }
        if fewest.is_none_or(|(load_min, _)| *load < load_min) {
            fewest = Some((*load, place));
        }
    }
    let ((load_max, from), (load_min, to)) = (most?, fewest?);
    (load_max >= load_min + 2).then_some((from, to))
}

/// Static members come first, in the order of their instance ids, then the others.
fn range(assignment: &Assignment<'_>) -> Vec<Partitions> {
    let members = &assignment.members;
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|place| {
        members.get(*place).map(|it| (it.instance_id.is_none(), it.instance_id, it.id))
    });
    let mut targets = vec![Partitions::new(); members.len()];
    for (topic, count) in &assignment.sizes {
        let subscribes =
            |place: &usize| members.get(*place).is_some_and(|it| it.topics.contains(topic));
        let subscribers: Vec<usize> = order.iter().copied().filter(subscribes).collect();
        let quota = Quota::of(usize::try_from(*count).unwrap_or(0), subscribers.len());
        let mut partitions = 0..*count;
        for (place, member) in subscribers.into_iter().enumerate() {
            let share = quota.least + usize::from(place < quota.extras);
            let range: BTreeSet<i32> = partitions.by_ref().take(share).collect();
            if !range.is_empty()
                && let Some(target) = targets.get_mut(member)
            {
                target.insert(*topic, range);
            }
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOPIC: fn(u8) -> Uuid = |index| Uuid::from_bytes([index; 16]);

    fn assign(
        assignor: Assignor,
        sizes: &[(u8, i32)],
        members: &[(&str, &[u8])],
        current: &BTreeMap<String, Partitions>,
    ) -> BTreeMap<String, Partitions> {
        let members = members.iter().map(|(id, topics)| MemberTopics {
            id,
            instance_id: None,
            topics: topics.iter().map(|index| TOPIC(*index)).collect(),
            current: current.get(*id),
        });
        let sizes = sizes.iter().map(|(index, count)| (TOPIC(*index), *count)).collect();
        assignor.assign(&Assignment { members: members.collect(), sizes })
    }

    fn count(target: &Partitions) -> usize {
        target.values().map(BTreeSet::len).sum()
    }

    #[test]
    fn uniform_moves_only_what_balance_asks_for() {
        let none = BTreeMap::new();
        let one = assign(Assignor::Uniform, &[(1, 7)], &[("a", &[1])], &none);
        let two = assign(Assignor::Uniform, &[(1, 7)], &[("a", &[1]), ("b", &[1])], &one);
        assert_eq!(two.values().map(count).collect::<Vec<_>>(), [4, 3]);
        assert!(two["a"][&TOPIC(1)].is_subset(&one["a"][&TOPIC(1)]));
        let three =
            assign(Assignor::Uniform, &[(1, 7)], &[("a", &[1]), ("b", &[1]), ("c", &[1])], &two);
        assert_eq!(three.values().map(count).collect::<Vec<_>>(), [3, 2, 2]);
        for id in ["a", "b"] {
            assert!(three[id][&TOPIC(1)].is_subset(&two[id][&TOPIC(1)]), "{id}");
        }
    }

    /// `a` shares a topic with each of the others.
    #[test]
    fn uniform_balances_members_that_share_a_topic() {
        let members: [(&str, &[u8]); 3] = [("a", &[1, 2]), ("b", &[1]), ("c", &[2])];
        let sizes = [(1, 6), (2, 6)];
        let alone = assign(Assignor::Uniform, &sizes, &members[..1], &BTreeMap::new());
        assert_eq!(count(&alone["a"]), 12);
        for before in [BTreeMap::new(), alone] {
            let targets = assign(Assignor::Uniform, &sizes, &members, &before);
            let counts: Vec<_> = targets.values().map(count).collect();
            assert_eq!(counts.iter().sum::<usize>(), 12);
            assert!(counts[0].abs_diff(counts[1]) <= 1, "{counts:?}");
            assert!(counts[0].abs_diff(counts[2]) <= 1, "{counts:?}");
        }
    }

    #[test]
    fn range_gives_members_the_same_part_of_every_topic() {
        let members: [(&str, &[u8]); 2] = [("a", &[1, 2]), ("b", &[1, 2])];
        let targets = assign(Assignor::Range, &[(1, 3), (2, 3)], &members, &BTreeMap::new());
        for topic in [1, 2] {
            assert_eq!(targets["a"][&TOPIC(topic)], [0, 1].into());
            assert_eq!(targets["b"][&TOPIC(topic)], [2].into());
        }
    }

    #[test]
    fn partitions_of_topics_that_shrank_or_went_are_dropped() {
        let none = BTreeMap::new();
        let before = assign(Assignor::Uniform, &[(1, 4), (2, 4)], &[("a", &[1, 2])], &none);
        let after = assign(Assignor::Uniform, &[(1, 2)], &[("a", &[1])], &before);
        assert_eq!(after["a"], [(TOPIC(1), [0, 1].into())].into());
    }

    #[test]
    fn members_without_topics_get_nothing() {
        let none = BTreeMap::new();
        let targets = assign(Assignor::Uniform, &[(1, 1)], &[("a", &[1]), ("b", &[])], &none);
        assert_eq!(count(&targets["a"]), 1);
        assert_eq!(count(&targets["b"]), 0);
    }
}
