//! Which shard owns which partition, and what each of them is told. No I/O.

use std::collections::HashMap;

use moldau_client::{CommittedOffset, TopicPartition};
use tokio::sync::mpsc::Sender;
use tokio::sync::mpsc::error::TrySendError;

use super::{Event, Seen};

/// The shards of an app, from the member's side. A shard is named by its index.
pub(super) struct Shards {
    all: Vec<Shard>,
    owners: HashMap<TopicPartition, usize>,
}

struct Shard {
    /// Absent once it has ended, or has stopped taking events: it then ends the app.
    events: Option<Sender<Event>>,
    /// Number of partitions that it owns.
    partitions: usize,
    /// What it was sent that makes its earlier commits void.
    told: Seen,
    presence: Presence,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Presence {
    Running,
    /// It has given everything back.
    Left,
}

impl Shards {
    pub(super) fn new(events: impl IntoIterator<Item = Sender<Event>>) -> Self {
        let shard = |events| Shard {
            events: Some(events),
            partitions: 0,
            told: Seen::default(),
            presence: Presence::Running,
        };
        Self { all: events.into_iter().map(shard).collect(), owners: HashMap::new() }
    }

    /// Gives each partition to the shard that has the fewest.
    pub(super) fn assigned(&mut self, partitions: Vec<(TopicPartition, Option<CommittedOffset>)>) {
        let mut by_shard: HashMap<usize, Vec<_>> = HashMap::new();
        for (partition, committed) in partitions {
            let fewest = self.all.iter_mut().enumerate().min_by_key(|(_, it)| it.partitions);
            let Some((index, shard)) = fewest else { return };
            shard.partitions += 1;
            self.owners.insert(partition.clone(), index);
            by_shard.entry(index).or_default().push((partition, committed));
        }
        for (index, partitions) in by_shard {
            self.tell(index, Event::Assigned(partitions));
        }
    }

    /// Asks for partitions back; returns who is asked for which.
    pub(super) fn revoked(
        &mut self,
        partitions: Vec<TopicPartition>,
    ) -> HashMap<usize, Vec<TopicPartition>> {
        let by_shard = self.by_owner(partitions);
        for (index, partitions) in &by_shard {
            self.tell(*index, Event::Revoked(partitions.clone()));
        }
        by_shard
    }

    /// Takes partitions away.
    pub(super) fn lost(&mut self, partitions: Vec<TopicPartition>) {
        for (index, partitions) in self.by_owner(partitions) {
            self.disown(index, &partitions);
            if let Some(shard) = self.all.get_mut(index) {
                shard.told.losses += 1;
            }
            self.tell(index, Event::Lost(partitions));
        }
    }

    /// The shard gave partitions back.
    pub(super) fn disown(&mut self, index: usize, partitions: &[TopicPartition]) {
        for partition in partitions {
            if self.owners.get(partition) == Some(&index) {
                self.owners.remove(partition);
                if let Some(shard) = self.all.get_mut(index) {
                    shard.partitions -= 1;
                }
            }
        }
    }

    /// The shard owns nothing any more, and takes nothing.
    pub(super) fn left(&mut self, index: usize) {
        if let Some(shard) = self.all.get_mut(index) {
            shard.presence = Presence::Left;
        }
    }

    /// Lets the shard handle partitions again from what is committed of them.
    pub(super) fn rewound(
        &mut self,
        index: usize,
        partitions: Vec<(TopicPartition, Option<CommittedOffset>)>,
    ) {
        if let Some(shard) = self.all.get_mut(index) {
            shard.told.rewinds += 1;
        }
        self.tell(index, Event::Rewound(partitions));
    }

    /// Whether a commit of the shard means what it holds: it has seen all that it was told of.
    pub(super) fn is_current(&self, index: usize, seen: Seen) -> bool {
        self.all.get(index).is_some_and(|shard| shard.told == seen)
    }

    /// Whether the shard means the partitions that it owns.
    pub(super) fn has_seen_losses(&self, index: usize, seen: Seen) -> bool {
        self.all.get(index).is_some_and(|shard| shard.told.losses == seen.losses)
    }

    pub(super) fn owns(&self, index: usize, partition: &TopicPartition) -> bool {
        self.owners.get(partition) == Some(&index)
    }

    /// Number of shards that have not left.
    pub(super) fn running(&self) -> usize {
        self.all.iter().filter(|shard| shard.presence == Presence::Running).count()
    }

    pub(super) fn tell(&mut self, index: usize, event: Event) {
        let Some(shard) = self.all.get_mut(index) else { return };
        // A shard that has ended does not ask.
        let sent = shard.events.as_ref().map(|events| events.try_send(event));
        if let Some(Err(TrySendError::Full(_))) = sent {
            tracing::error!(shard = index, "a shard takes no events");
            shard.events = None;
        }
    }

    pub(super) fn tell_all(&mut self, event: impl Fn() -> Event) {
        for index in 0..self.all.len() {
            self.tell(index, event());
        }
    }

    fn by_owner(&self, partitions: Vec<TopicPartition>) -> HashMap<usize, Vec<TopicPartition>> {
        let mut by_shard: HashMap<usize, Vec<_>> = HashMap::new();
        for partition in partitions {
            if let Some(index) = self.owners.get(&partition) {
                by_shard.entry(*index).or_default().push(partition);
            }
        }
        by_shard
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::{Receiver, channel};

    use super::*;

    fn partitions(numbers: &[i32]) -> Vec<TopicPartition> {
        numbers.iter().map(|number| TopicPartition::of("t", *number)).collect()
    }

    fn two() -> (Shards, [Receiver<Event>; 2]) {
        let (first, second) = (channel(8), channel(8));
        (Shards::new([first.0, second.0]), [first.1, second.1])
    }

    fn assign(shards: &mut Shards, numbers: &[i32]) {
        shards.assigned(partitions(numbers).into_iter().map(|it| (it, None)).collect());
    }

    fn told(events: &mut Receiver<Event>) -> Vec<(&'static str, Vec<i32>)> {
        let numbers = |all: Vec<TopicPartition>| all.into_iter().map(|it| it.partition).collect();
        std::iter::from_fn(|| events.try_recv().ok())
            .map(|event| match event {
                Event::Assigned(all) => {
                    ("assigned", numbers(all.into_iter().map(|(it, _)| it).collect()))
                }
                Event::Revoked(all) => ("revoked", numbers(all)),
                Event::Lost(all) => ("lost", numbers(all)),
                Event::Committed { failed } => ("failed", numbers(failed)),
                Event::Rewound(all) => {
                    ("rewound", numbers(all.into_iter().map(|(it, _)| it).collect()))
                }
                Event::Ended => ("ended", Vec::new()),
            })
            .collect()
    }

    #[test]
    fn partitions_go_to_the_shard_with_the_fewest() {
        let (mut shards, [mut first, mut second]) = two();
        assign(&mut shards, &[0, 1, 2]);
        assert_eq!(told(&mut first), [("assigned", vec![0, 2])]);
        assert_eq!(told(&mut second), [("assigned", vec![1])]);
        shards.disown(0, &partitions(&[0, 1, 2]));
        assign(&mut shards, &[0]);
        assert_eq!(told(&mut first), [("assigned", vec![0])]);
        assert!(shards.owns(1, &partitions(&[1])[0]), "others cannot give it back");
    }

    #[test]
    fn a_loss_concerns_its_shard_alone() {
        let (mut shards, [mut first, mut second]) = two();
        assign(&mut shards, &[0, 1]);
        shards.lost(partitions(&[0, 7]));
        assert_eq!(told(&mut first), [("assigned", vec![0]), ("lost", vec![0])]);
        assert_eq!(told(&mut second), [("assigned", vec![1])]);
        let (nothing, one) = (Seen::default(), Seen { losses: 1, rewinds: 0 });
        assert!(!shards.is_current(0, nothing) && shards.is_current(0, one));
        assert!(shards.is_current(1, nothing));
        assert!(!shards.owns(0, &partitions(&[0])[0]));
    }

    #[test]
    fn each_shard_is_asked_for_what_it_owns() {
        let (mut shards, [mut first, mut second]) = two();
        assign(&mut shards, &[0, 1, 2]);
        let asked = shards.revoked(partitions(&[1, 2]));
        assert_eq!(asked[&0], partitions(&[2]));
        assert_eq!(told(&mut first)[1], ("revoked", vec![2]));
        assert_eq!(told(&mut second)[1], ("revoked", vec![1]));
        shards.left(0);
        assert_eq!(shards.running(), 1);
    }

    #[test]
    fn a_shard_that_takes_no_events_loses_its_channel() {
        let (mut shards, [mut first, _second]) = two();
        for _ in 0..9 {
            shards.tell(0, Event::Committed { failed: Vec::new() });
        }
        let mut taken = 0;
        while first.try_recv().is_ok() {
            taken += 1;
        }
        assert_eq!(taken, 8);
        assert!(first.is_closed());
    }
}
