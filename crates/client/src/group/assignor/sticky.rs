//! The cooperative-sticky assignor: members keep what they hold as far as an even assignment
//! allows. A partition that moves is assigned to nobody until its owner has given it up.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::group::assignor::Subscriber;
use crate::offsets::TopicPartition;

/// Rounds of balancing. Each moves partitions from every member that has too many, so a few
/// suffice; the limit only keeps a leader from computing for longer than a rebalance may take.
const ROUNDS_MAX: usize = 64;

/// Place of a member in their order.
type Place = usize;

/// Who holds what, by the places of members.
struct Plan<'a> {
    members: &'a [Subscriber],
    /// Members that subscribe to a topic.
    readers: HashMap<&'a str, Vec<Place>>,
    assigned: Vec<BTreeSet<TopicPartition>>,
}

/// What each member gets; `partitions` holds the number of partitions by topic.
pub(super) fn assign(
    members: &[Subscriber],
    partitions: &HashMap<String, usize>,
) -> BTreeMap<String, Vec<TopicPartition>> {
    let mut readers: HashMap<&str, Vec<Place>> = HashMap::new();
    for (place, member) in members.iter().enumerate() {
        for topic in member.topics.iter().collect::<BTreeSet<_>>() {
            readers.entry(topic).or_default().push(place);
        }
    }
    let owners = owners(members, partitions);
    let mut plan = Plan { members, readers, assigned: vec![BTreeSet::new(); members.len()] };
    let mut free = Vec::new();
    let names: BTreeMap<&String, &usize> = partitions.iter().collect();
    for (name, count) in names {
        let topic: Arc<str> = name.as_str().into();
        for partition in 0..i32::try_from(*count).unwrap_or(i32::MAX) {
            let partition = TopicPartition { topic: topic.clone(), partition };
            match owners.get(&partition) {
                Some(place) => plan.give(*place, partition),
                None => free.push(partition),
            }
        }
    }
    for partition in free {
        if let Some(place) = plan.least(&partition.topic) {
            plan.give(place, partition);
        }
    }
    plan.balance();
    let held = owners;
    let of = |(member, assigned): (&Subscriber, &BTreeSet<TopicPartition>)| {
        let is_free = |partition: &&TopicPartition| {
            held.get(*partition)
                .is_none_or(|place| members.get(*place).is_some_and(|owner| owner.id == member.id))
        };
        (member.id.clone(), assigned.iter().filter(is_free).cloned().collect())
    };
    members.iter().zip(&plan.assigned).map(of).collect()
}

/// Who holds each partition that still exists and is still wanted. Of several claims that of the
/// highest generation counts; claims of the same generation contradict each other, and none does.
fn owners(
    members: &[Subscriber],
    partitions: &HashMap<String, usize>,
) -> HashMap<TopicPartition, Place> {
    let mut claims: HashMap<&TopicPartition, (i32, Option<Place>)> = HashMap::new();
    for (place, member) in members.iter().enumerate() {
        for partition in &member.held {
            let count = partitions.get(&*partition.topic).copied().unwrap_or(0);
            let exists = usize::try_from(partition.partition).is_ok_and(|index| index < count);
            let is_wanted = member.topics.iter().any(|topic| **topic == *partition.topic);
            if !exists || !is_wanted {
                continue;
            }
            let claim = claims.entry(partition).or_insert((i32::MIN, None));
            if member.generation > claim.0 {
                *claim = (member.generation, Some(place));
            } else if member.generation == claim.0 {
                claim.1 = None;
            }
        }
    }
    let undisputed = claims.into_iter();
    undisputed.filter_map(|(partition, claim)| Some((partition.clone(), claim.1?))).collect()
}

impl Plan<'_> {
    fn load(&self, place: Place) -> usize {
        self.assigned.get(place).map_or(0, BTreeSet::len)
    }

    fn give(&mut self, place: Place, partition: TopicPartition) {
        if let Some(assigned) = self.assigned.get_mut(place) {
            assigned.insert(partition);
        }
    }

    /// The reader of a topic that has the fewest partitions.
    fn least(&self, topic: &str) -> Option<Place> {
        let readers = self.readers.get(topic)?;
        readers.iter().copied().min_by_key(|place| (self.load(*place), *place))
    }

    /// Moves partitions to members that have at least two fewer.
    fn balance(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let mut places: Vec<Place> = (0..self.members.len()).collect();
            places.sort_by_key(|place| std::cmp::Reverse(self.load(*place)));
            let moved = places.into_iter().map(|place| self.relieve(place)).sum::<usize>();
            if moved == 0 {
                return;
            }
        }
    }

    /// Moves what a member has too many of; the number of partitions moved.
    fn relieve(&mut self, place: Place) -> usize {
        let mine: Vec<TopicPartition> =
            self.assigned.get(place).into_iter().flatten().cloned().collect();
        let mut moved = 0;
        for partition in mine.into_iter().rev() {
            let Some(least) = self.least(&partition.topic) else { continue };
            if self.load(least) + 1 < self.load(place) {
                if let Some(assigned) = self.assigned.get_mut(place) {
                    assigned.remove(&partition);
                }
                self.give(least, partition);
                moved += 1;
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::assignor::Assignor;

    fn member(id: &str, topics: &[&str], held: &[(&str, i32)], generation: i32) -> Subscriber {
        Subscriber {
            order: id.to_owned(),
            id: id.to_owned(),
            topics: topics.iter().map(|topic| (*topic).to_owned()).collect(),
            held: held.iter().map(|(topic, n)| TopicPartition::of(topic, *n)).collect(),
            generation,
        }
    }

    fn assigned(members: &[Subscriber], counts: &[(&str, usize)]) -> Vec<Vec<String>> {
        let partitions = counts.iter().map(|(topic, n)| ((*topic).to_owned(), *n)).collect();
        let mut members = members.to_vec();
        let assigned = Assignor::CooperativeSticky.assign(&mut members, &partitions);
        let name = |p: &TopicPartition| format!("{}{}", p.topic, p.partition);
        assigned.values().map(|partitions| partitions.iter().map(name).collect()).collect()
    }

    #[test]
    fn partitions_that_move_are_assigned_once_they_are_given_up() {
        let all = [("t", 0), ("t", 1), ("t", 2), ("t", 3)];
        let members = [member("a", &["t"], &all, 3), member("b", &["t"], &[], -1)];
        assert_eq!(assigned(&members, &[("t", 4)]), [vec!["t0", "t1"], vec![]]);
        let members = [member("a", &["t"], &all[..2], 4), member("b", &["t"], &[], 4)];
        assert_eq!(assigned(&members, &[("t", 4)]), [vec!["t0", "t1"], vec!["t2", "t3"]]);
    }

    #[test]
    fn members_get_only_topics_that_they_read() {
        let members = [member("a", &["t", "u"], &[], -1), member("b", &["u"], &[], -1)];
        let assigned = assigned(&members, &[("t", 3), ("u", 3), ("missing", 0)]);
        assert_eq!(assigned, [vec!["t0", "t1", "t2"], vec!["u0", "u1", "u2"]]);
    }

    #[test]
    fn later_generation_wins_and_equal_claims_void_each_other() {
        let members = [
            member("a", &["t"], &[("t", 0), ("t", 1)], 5),
            member("b", &["t"], &[("t", 0)], 6),
            member("c", &["t"], &[("t", 1), ("t", 9), ("gone", 0)], 5),
        ];
        let assigned = assigned(&members, &[("t", 2)]);
        assert_eq!(assigned, [vec!["t1".to_owned()], vec!["t0".to_owned()], vec![]]);
    }

    #[test]
    fn assignment_is_even_and_complete_after_two_rounds() {
        let mut random = fastrand::Rng::with_seed(7);
        for case in 0..200 {
            let count = random.usize(1..40);
            let places = random.usize(1..8);
            let mut members: Vec<_> =
                (0..places).map(|n| member(&n.to_string(), &["t"], &[], 1)).collect();
            for partition in 0..i32::try_from(count).unwrap() {
                if random.bool() {
                    let place = random.usize(0..places);
                    members[place].held.push(TopicPartition::of("t", partition));
                }
            }
            let partitions = HashMap::from([("t".to_owned(), count)]);
            for _ in 0..2 {
                let assigned = Assignor::CooperativeSticky.assign(&mut members, &partitions);
                for member in &mut members {
                    member.held.clone_from(&assigned[&member.id]);
                }
            }
            let loads: Vec<usize> = members.iter().map(|member| member.held.len()).collect();
            assert_eq!(loads.iter().sum::<usize>(), count, "case {case}");
            let (most, least) = (loads.iter().max().unwrap(), loads.iter().min().unwrap());
            assert!(most - least <= 1, "case {case}: {loads:?}");
        }
    }
}
