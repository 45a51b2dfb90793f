//! The topology of a Streams application, as its members describe it (KIP-1071), and its binary
//! form.

use std::collections::{BTreeMap, BTreeSet};

use crate::consumer_record::ascending;
use crate::error::Error;
use crate::wire::{Put, Take, list};

/// What a Streams application reads, writes and keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamsTopology {
    /// Grows with the versions of the application.
    pub epoch: i32,
    /// Its parts, by their ids.
    pub subtopologies: BTreeMap<String, Subtopology>,
}

/// A part of a topology whose partitions are processed on their own: one task each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Subtopology {
    /// Topics of the user that it reads.
    pub source_topics: Vec<String>,
    /// Topics that hold the changes of its state.
    pub changelog_topics: Vec<InternalTopic>,
    /// Repartition topics that it writes.
    pub repartition_sinks: Vec<String>,
    /// Repartition topics that it reads.
    pub repartition_sources: Vec<InternalTopic>,
    /// Topics that must have the same number of partitions.
    pub copartition_groups: Vec<CopartitionGroup>,
}

/// A topic that belongs to the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InternalTopic {
    /// Its name.
    pub name: String,
    /// 0 where the number follows from other topics.
    pub partitions: i32,
    /// 0 for the default.
    pub replication_factor: i16,
    /// Keys and values of its configuration.
    pub configs: BTreeMap<String, String>,
}

/// Indexes into the topics of the subtopology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CopartitionGroup {
    /// Into the source topics.
    pub source_topics: Vec<i16>,
    /// Into the repartition topics that the subtopology reads.
    pub repartition_sources: Vec<i16>,
}

impl StreamsTopology {
    /// The source topics and the internal topics.
    pub(crate) fn required_topics(&self) -> BTreeSet<&str> {
        let topics = self.subtopologies.values().flat_map(|part| {
            let internal = part.repartition_sources.iter().chain(&part.changelog_topics);
            part.inputs().chain(internal.map(|topic| topic.name.as_str()))
        });
        topics.collect()
    }

    /// The topics that members read.
    pub(crate) fn inputs(&self) -> BTreeSet<&str> {
        self.subtopologies.values().flat_map(Subtopology::inputs).collect()
    }

    /// Bytes of all names, and of what holds them.
    pub(crate) fn bytes(&self) -> usize {
        let texts = |texts: &[String]| {
            texts.iter().map(|text| text.len() + size_of::<String>()).sum::<usize>()
        };
        let internal = |topics: &[InternalTopic]| {
            let bytes = topics.iter().map(|topic| {
                let configs = topic.configs.iter();
                let configs = configs.map(|(key, value)| key.len() + value.len() + 64);
                size_of::<InternalTopic>() + topic.name.len() + configs.sum::<usize>()
            });
            bytes.sum::<usize>()
        };
        let parts = self.subtopologies.iter().map(|(id, part)| {
            let groups = part.copartition_groups.iter().map(|group| {
                size_of::<CopartitionGroup>()
                    + 2 * (group.source_topics.len() + group.repartition_sources.len())
            });
            size_of::<Subtopology>()
                + id.len()
                + texts(&part.source_topics)
                + texts(&part.repartition_sinks)
                + internal(&part.changelog_topics)
                + internal(&part.repartition_sources)
                + groups.sum::<usize>()
        });
        parts.sum()
    }
}

impl Subtopology {
    /// All topics that it reads.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &str> {
        let repartition = self.repartition_sources.iter().map(|topic| topic.name.as_str());
        self.source_topics.iter().map(String::as_str).chain(repartition)
    }
}

pub(crate) fn put_topology(put: &mut Put<'_>, topology: &StreamsTopology) {
    put.i32(topology.epoch);
    put.count(topology.subtopologies.len());
    for (id, part) in &topology.subtopologies {
        put.string(id);
        put_strings(put, &part.source_topics);
        put_topics(put, &part.changelog_topics);
        put_strings(put, &part.repartition_sinks);
        put_topics(put, &part.repartition_sources);
        put.count(part.copartition_groups.len());
        for group in &part.copartition_groups {
            for indexes in [&group.source_topics, &group.repartition_sources] {
                put.count(indexes.len());
                indexes.iter().for_each(|index| put.i16(*index));
            }
        }
    }
}

fn put_strings(put: &mut Put<'_>, texts: &[String]) {
    put.count(texts.len());
    texts.iter().for_each(|text| put.string(text));
}

fn put_topics(put: &mut Put<'_>, topics: &[InternalTopic]) {
    put.count(topics.len());
    for topic in topics {
        put.string(&topic.name);
        put.i32(topic.partitions);
        put.i16(topic.replication_factor);
        put_map(put, &topic.configs);
    }
}

pub(crate) fn put_map(put: &mut Put<'_>, map: &BTreeMap<String, String>) {
    put.count(map.len());
    for (key, value) in map {
        put.string(key);
        put.string(value);
    }
}

pub(crate) fn take_topology(take: &mut Take<'_>) -> Result<StreamsTopology, Error> {
    let epoch = take.i32("topology epoch")?;
    let parts = list(take, "subtopologies", |take| {
        Ok((take.string("subtopology")?, take_subtopology(take)?))
    })?;
    Ok(StreamsTopology { epoch, subtopologies: ascending(parts, "subtopologies")? })
}

fn take_subtopology(take: &mut Take<'_>) -> Result<Subtopology, Error> {
    let indexes =
        |take: &mut Take<'_>| list(take, "copartition group", |take| take.i16("topic index"));
    Ok(Subtopology {
        source_topics: list(take, "source topics", |take| take.string("source topic"))?,
        changelog_topics: list(take, "changelog topics", take_topic)?,
        repartition_sinks: list(take, "sink topics", |take| take.string("sink topic"))?,
        repartition_sources: list(take, "repartition topics", take_topic)?,
        copartition_groups: list(take, "copartition groups", |take| {
            Ok(CopartitionGroup {
                source_topics: indexes(take)?,
                repartition_sources: indexes(take)?,
            })
        })?,
    })
}

fn take_topic(take: &mut Take<'_>) -> Result<InternalTopic, Error> {
    Ok(InternalTopic {
        name: take.string("internal topic")?,
        partitions: take.i32("partitions")?,
        replication_factor: take.i16("replication factor")?,
        configs: take_map(take, "topic configs")?,
    })
}

pub(crate) fn take_map(
    take: &mut Take<'_>,
    field: &'static str,
) -> Result<BTreeMap<String, String>, Error> {
    let entries = list(take, field, |take| Ok((take.string("key")?, take.string("value")?)))?;
    ascending(entries, field)
}
