//! A topology with the topics that exist: how many tasks there are, which topics are missing, and
//! how many partitions those must have. After `InternalTopicManager` of Kafka 4.4.

use std::collections::{BTreeMap, BTreeSet};

use moldau_protocol::{ErrorCode, Uuid};

use crate::reply::Refused;
use crate::streams_config::TASKS_MAX;
use crate::streams_heartbeat::{StreamsStatus, StreamsStatusCode};
use crate::streams_topology::{InternalTopic, StreamsTopology, Subtopology};
use crate::topics::Topics;

/// Names of topics in one message, so that it stays short.
const NAMES_SHOWN_MAX: usize = 3;

/// A topology with its topics as they are.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Why the application cannot work.
    pub(super) problem: Option<StreamsStatus>,
    /// Internal topics that are to be created.
    pub(super) missing: Vec<InternalTopic>,
    /// How many tasks each subtopology has; none where topics of the user are not as they must be.
    tasks: Option<BTreeMap<String, i32>>,
    /// Partitions of the internal topics as they must be.
    counts: BTreeMap<String, i32>,
    /// Partitions of the topics that exist.
    sizes: BTreeMap<String, i32>,
    /// The subtopology that reads a topic.
    readers: BTreeMap<Uuid, String>,
}

/// Why a topology cannot be configured: by topics, or by itself.
enum Unfit {
    Topics(StreamsStatus),
    Topology(Refused),
}

/// Decides how many partitions internal topics have.
struct Deciding<'a> {
    topology: &'a StreamsTopology,
    sizes: &'a BTreeMap<String, i32>,
    counts: BTreeMap<String, i32>,
}

impl Configured {
    /// # Errors
    ///
    /// Says what is wrong with the topology itself.
    pub(super) fn of(topology: &StreamsTopology, topics: &dyn Topics) -> Result<Self, Refused> {
        let mut configured = Self::default();
        for name in topology.required_topics() {
            if let Some(topic) = topics.by_name(name) {
                configured.sizes.insert(name.to_owned(), topic.partitions);
            }
        }
        for (id, part) in &topology.subtopologies {
            let inputs = part.inputs().filter_map(|name| topics.by_name(name));
            configured.readers.extend(inputs.map(|topic| (topic.id, id.clone())));
        }
        match configured.decide(topology) {
            Ok(()) => {}
            Err(Unfit::Topics(problem)) => configured.problem = Some(problem),
            Err(Unfit::Topology(refused)) => return Err(refused),
        }
        Ok(configured)
    }

    pub(super) fn is_ready(&self) -> bool {
        self.problem.is_none()
    }

    /// How many tasks a subtopology has; `None` where there is no such one.
    pub(super) fn tasks_of(&self, subtopology: &str) -> Option<i32> {
        self.tasks.as_ref()?.get(subtopology).copied()
    }

    /// Subtopologies and the number of their tasks.
    pub(super) fn tasks(&self) -> impl Iterator<Item = (&str, i32)> {
        self.tasks.iter().flatten().map(|(id, count)| (id.as_str(), *count))
    }

    /// Partitions of a topic of the topology; 0 where it does not exist.
    pub(super) fn size_of(&self, topic: &str) -> i32 {
        self.sizes.get(topic).copied().unwrap_or(0)
    }

    /// The subtopology that reads a topic.
    pub(super) fn reader_of(&self, topic: Uuid) -> Option<&str> {
        self.readers.get(&topic).map(String::as_str)
    }

    /// The topology with the partitions of its internal topics.
    pub(super) fn described(&self, mut topology: StreamsTopology) -> StreamsTopology {
        for part in topology.subtopologies.values_mut() {
            for topic in part.repartition_sources.iter_mut().chain(&mut part.changelog_topics) {
                if let Some(count) = self.counts.get(&topic.name)
                    && topic.partitions == 0
                {
                    topic.partitions = *count;
                }
            }
        }
        topology
    }

    fn decide(&mut self, topology: &StreamsTopology) -> Result<(), Unfit> {
        let sources = topology.subtopologies.values().flat_map(|part| &part.source_topics);
        let absent: BTreeSet<&String> =
            sources.filter(|name| !self.sizes.contains_key(*name)).collect();
        if !absent.is_empty() {
            let detail = format!("source topics do not exist: {}", shown(absent.into_iter()));
            return Err(unfit(StreamsStatusCode::MissingSourceTopics, detail));
        }
        let mut deciding = Deciding { topology, sizes: &self.sizes, counts: BTreeMap::new() };
        deciding.repartition_topics()?;
        let parts = topology.subtopologies.values();
        let repartition = parts.clone().flat_map(|part| &part.repartition_sources);
        // Whether the user gave the number of partitions.
        let repartition: BTreeMap<&str, bool> =
            repartition.map(|topic| (topic.name.as_str(), topic.partitions != 0)).collect();
        for part in parts {
            deciding.copartition(part, &repartition)?;
        }
        let mut tasks = BTreeMap::new();
        for (id, part) in &topology.subtopologies {
            tasks.insert(id.clone(), deciding.most(id, part)?);
        }
        let all = tasks.values().fold(0_i32, |all, count| all.saturating_add(*count));
        if all > TASKS_MAX {
            let message = format!("the topology has {all} tasks; at most {TASKS_MAX} are allowed");
            return Err(invalid(message));
        }
        for (id, part) in &topology.subtopologies {
            let count = tasks.get(id).copied().unwrap_or(0);
            let changelogs = part.changelog_topics.iter();
            deciding.counts.extend(changelogs.map(|topic| (topic.name.clone(), count)));
        }
        self.counts = deciding.counts;
        self.missing = self.absent_internal(topology)?;
        self.tasks = Some(tasks);
        if !self.missing.is_empty() {
            let names = shown(self.missing.iter().map(|topic| &topic.name));
            let code = StreamsStatusCode::MissingInternalTopics;
            let detail = format!("internal topics do not exist: {names}");
            self.problem = Some(StreamsStatus::new(code, detail));
        }
        Ok(())
    }

    /// Internal topics that are to be created. Those that exist must have their partitions.
    fn absent_internal(&self, topology: &StreamsTopology) -> Result<Vec<InternalTopic>, Unfit> {
        let mut absent = BTreeMap::new();
        let parts = topology.subtopologies.values();
        let internal =
            parts.flat_map(|part| part.repartition_sources.iter().chain(&part.changelog_topics));
        for topic in internal {
            let decided = self.counts.get(&topic.name).copied().unwrap_or(0);
            let partitions = if topic.partitions == 0 { decided } else { topic.partitions };
            match self.sizes.get(&topic.name) {
                Some(size) if *size != partitions => {
                    let detail = format!(
                        "topic {} has {size} partitions, but must have {partitions}",
                        topic.name
                    );
                    return Err(unfit(StreamsStatusCode::IncorrectlyPartitionedTopics, detail));
                }
                Some(_) => {}
                None => {
                    let topic = InternalTopic { partitions, ..topic.clone() };
                    absent.insert(topic.name.clone(), topic);
                }
            }
        }
        Ok(absent.into_values().collect())
    }
}

impl Deciding<'_> {
    fn count_of(&self, topic: &str) -> Option<i32> {
        self.sizes.get(topic).or_else(|| self.counts.get(topic)).copied()
    }

    /// The most partitions of a topic that the subtopology reads.
    fn most(&self, id: &str, part: &Subtopology) -> Result<i32, Unfit> {
        let counts = part.inputs().map(|name| self.count_of(name).unwrap_or(0));
        counts.max().ok_or_else(|| invalid(format!("subtopology {id} reads no topic")))
    }

    /// A repartition topic has as many partitions as the topics have that it is made of.
    fn repartition_topics(&mut self) -> Result<(), Unfit> {
        let parts = || self.topology.subtopologies.values();
        let given = parts().flat_map(|part| &part.repartition_sources);
        let given = given.filter(|topic| topic.partitions != 0);
        let mut counts: BTreeMap<String, i32> =
            given.map(|topic| (topic.name.clone(), topic.partitions)).collect();
        let mut pending: Vec<&Subtopology> = parts().collect();
        loop {
            let before = pending.len();
            pending.retain(|part| {
                let mut undecided =
                    part.repartition_sinks.iter().filter(|sink| !counts.contains_key(*sink));
                if undecided.next().is_none() {
                    return false;
                }
                let repartition = part.repartition_sources.iter();
                let repartition = repartition.filter_map(|topic| counts.get(&topic.name));
                let sources = part.source_topics.iter();
                let sources = sources.filter_map(|topic| self.sizes.get(topic));
                let Some(count) = repartition.chain(sources).max().copied() else { return true };
                for sink in &part.repartition_sinks {
                    counts.entry(sink.clone()).or_insert(count);
                }
                false
            });
            if pending.is_empty() {
                break;
            }
            if pending.len() == before {
                let message = "the partitions of repartition topics cannot be decided: they depend \
                               on each other";
                return Err(invalid(message.to_owned()));
            }
        }
        let mut read = parts().flat_map(|part| &part.repartition_sources);
        if let Some(topic) = read.find(|topic| !counts.contains_key(&topic.name)) {
            let message = format!("nothing writes the repartition topic {}", topic.name);
            return Err(invalid(message));
        }
        self.counts = counts;
        Ok(())
    }

    /// Gives the topics that are read together the same number of partitions.
    fn copartition(
        &mut self,
        part: &Subtopology,
        repartition: &BTreeMap<&str, bool>,
    ) -> Result<(), Unfit> {
        for group in &part.copartition_groups {
            let sources = named(&part.source_topics, &group.source_topics)?;
            let own = named(&part.repartition_sources, &group.repartition_sources)?;
            let names = sources.into_iter().map(String::as_str);
            let names = names.chain(own.into_iter().map(|topic| topic.name.as_str()));
            let (flexible, others): (Vec<&str>, Vec<&str>) =
                names.partition(|name| repartition.contains_key(name));
            let is_fixed = |name: &&&str| repartition.get(**name) == Some(&true);
            let fixed: Vec<&str> = flexible.iter().filter(is_fixed).copied().collect();
            let leading = match (others.is_empty(), fixed.is_empty()) {
                (false, _) => others,
                (true, false) => fixed.clone(),
                (true, true) => Vec::new(),
            };
            let count = match leading.first() {
                Some(first) => self.same(first, &leading)?,
                None => flexible.iter().filter_map(|name| self.count_of(name)).max().unwrap_or(0),
            };
            if let Some(name) = fixed.iter().find(|name| self.count_of(name) != Some(count)) {
                let detail = format!("repartition topic {name} does not have {count} partitions");
                return Err(unfit(StreamsStatusCode::IncorrectlyPartitionedTopics, detail));
            }
            self.counts.extend(flexible.into_iter().map(|name| (name.to_owned(), count)));
        }
        Ok(())
    }

    /// The number of partitions that all of these have.
    fn same(&self, first: &str, topics: &[&str]) -> Result<i32, Unfit> {
        let count = self.count_of(first);
        if topics.iter().all(|name| self.count_of(name) == count) {
            return Ok(count.unwrap_or(0));
        }
        let sizes: BTreeSet<String> = topics
            .iter()
            .map(|name| format!("{name} has {}", self.count_of(name).unwrap_or(0)))
            .collect();
        let detail =
            format!("topics must have the same number of partitions: {}", shown(sizes.iter()));
        Err(unfit(StreamsStatusCode::IncorrectlyPartitionedTopics, detail))
    }
}

/// The elements that indexes of a copartition group name.
fn named<'a, T>(elements: &'a [T], indexes: &[i16]) -> Result<Vec<&'a T>, Unfit> {
    let element = |index: &i16| usize::try_from(*index).ok().and_then(|it| elements.get(it));
    let found: Option<Vec<&T>> = indexes.iter().map(element).collect();
    found.ok_or_else(|| invalid("a copartition group names a topic that is not there".to_owned()))
}

fn unfit(code: StreamsStatusCode, detail: String) -> Unfit {
    Unfit::Topics(StreamsStatus::new(code, detail))
}

fn invalid(message: String) -> Unfit {
    Unfit::Topology((ErrorCode::StreamsInvalidTopology, message))
}

/// The first of these names, and how many more there are.
fn shown<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN_MAX);
    let names: Vec<&str> = names.take(NAMES_SHOWN_MAX).map(String::as_str).collect();
    let names = names.join(", ");
    if more == 0 { names } else { format!("{names} and {more} more") }
}
