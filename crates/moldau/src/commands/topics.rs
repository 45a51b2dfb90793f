//! `moldau topics`.

use std::process::ExitCode;

use anyhow::{Context, bail};
use moldau_client::{
    Admin, Cluster, ConfigResource, ConfigSource, OffsetSpec, TopicPartition, TopicSpec,
};
use serde::Serialize;

use crate::arguments::{TopicsAction, TopicsOptions};
use crate::commands::session::{self, print_json};
use crate::commands::table::print_table;

pub(crate) fn run(options: TopicsOptions) -> anyhow::Result<ExitCode> {
    let json = options.cluster.json;
    let action = options.action.unwrap_or(TopicsAction::List);
    session::run(&options.cluster, false, async |cluster| {
        let admin = Admin::new(&cluster);
        match action {
            TopicsAction::List => list(&cluster, json).await,
            TopicsAction::Describe { topic } => describe(&cluster, &admin, &topic, json).await,
            TopicsAction::Create { topic, partitions, configs } => {
                create(&admin, &topic, partitions, &configs).await
            }
            TopicsAction::Grow { topic, partitions } => {
                admin.create_partitions(&topic, partitions).await?;
                eprintln!("topic {topic} has {partitions} partitions");
                Ok(())
            }
            TopicsAction::Delete { topic } => {
                let deleted = admin.delete_topics(std::slice::from_ref(&topic)).await?;
                deleted.into_iter().collect::<Result<(), _>>()?;
                eprintln!("deleted topic {topic}");
                Ok(())
            }
        }
    })
}

#[derive(Serialize)]
struct ListedTopic {
    name: String,
    id: String,
    partitions: usize,
}

async fn list(cluster: &Cluster, json: bool) -> anyhow::Result<()> {
    let metadata = cluster.all_topics().await?;
    let mut topics: Vec<_> = metadata
        .topics
        .values()
        .map(|topic| ListedTopic {
            name: topic.topic.name.to_string(),
            id: topic.topic.id.to_string(),
            partitions: topic.partitions.len(),
        })
        .collect();
    topics.sort_by(|left, right| left.name.cmp(&right.name));
    if json {
        return print_json(&topics);
    }
    if topics.is_empty() {
        eprintln!("there are no topics; create one with: moldau topics create NAME");
        return Ok(());
    }
    let row = |topic: &ListedTopic| [topic.name.clone(), topic.partitions.to_string()];
    print_table(["TOPIC", "PARTITIONS"], &topics.iter().map(row).collect::<Vec<_>>())
}

#[derive(Serialize)]
struct DescribedTopic {
    name: String,
    id: String,
    partitions: Vec<DescribedPartition>,
    configs: Vec<DescribedConfig>,
}

#[derive(Serialize)]
struct DescribedPartition {
    partition: i32,
    leader: Option<i32>,
    /// Absent of a partition whose leader does not tell.
    start_offset: Option<i64>,
    end_offset: Option<i64>,
}

#[derive(Serialize)]
struct DescribedConfig {
    name: String,
    value: Option<String>,
    /// `topic`, `broker` or `default`.
    source: &'static str,
}

async fn describe(cluster: &Cluster, admin: &Admin, name: &str, json: bool) -> anyhow::Result<()> {
    let topic = cluster.topic(name).await?;
    let indexes = topic.partitions.iter().map(|partition| partition.index);
    let starts = offsets(admin, name, indexes.clone(), OffsetSpec::Earliest).await?;
    let ends = offsets(admin, name, indexes, OffsetSpec::Latest).await?;
    let partitions = topic.partitions.iter().zip(starts.into_iter().zip(ends));
    let partitions = partitions.map(|(partition, (start_offset, end_offset))| DescribedPartition {
        partition: partition.index,
        leader: partition.leader.map(|leader| leader.node),
        start_offset,
        end_offset,
    });
    let configs = admin.describe_configs(&ConfigResource::Topic(name.to_owned())).await?;
    let configs = configs.into_iter().map(|config| DescribedConfig {
        name: config.name,
        value: config.value,
        source: match config.source {
            ConfigSource::Own => "topic",
            ConfigSource::Broker => "broker",
            ConfigSource::Default => "default",
        },
    });
    let described = DescribedTopic {
        name: name.to_owned(),
        id: topic.topic.id.to_string(),
        partitions: partitions.collect(),
        configs: configs.collect(),
    };
    if json { print_json(&described) } else { print_described(&described) }
}

async fn offsets(
    admin: &Admin,
    topic: &str,
    partitions: impl Iterator<Item = i32>,
    spec: OffsetSpec,
) -> anyhow::Result<Vec<Option<i64>>> {
    let wanted: Vec<_> = partitions.map(|index| (TopicPartition::of(topic, index), spec)).collect();
    let mut found = admin.list_offsets(&wanted).await;
    let mut offsets = Vec::with_capacity(wanted.len());
    for (partition, _) in &wanted {
        let listed =
            found.remove(partition).context("the cluster did not answer for a partition")?;
        offsets.push(match listed {
            Ok(listed) => Some(listed.offset),
            // Its leader does not answer; the others are shown.
            Err(error) if error.is_retriable() => None,
            Err(error) => return Err(error.into()),
        });
    }
    Ok(offsets)
}

fn print_described(topic: &DescribedTopic) -> anyhow::Result<()> {
    println!("{} ({})\n", topic.name, topic.id);
    let rows = topic.partitions.iter().map(|it| {
        let leader = it.leader.map_or("none".to_owned(), |node| node.to_string());
        let records = it.end_offset.zip(it.start_offset).map(|(end, start)| end - start);
        let numbers = [it.start_offset, it.end_offset, records];
        let [start, end, records] =
            numbers.map(|number| number.map_or("-".to_owned(), |number| number.to_string()));
        [it.partition.to_string(), leader, start, end, records]
    });
    let headings = ["PARTITION", "LEADER", "START", "END", "OFFSETS"];
    print_table(headings, &rows.collect::<Vec<_>>())?;
    println!();
    let rows = topic.configs.iter().map(|config| {
        let value = config.value.clone().unwrap_or_default();
        [config.name.clone(), value, config.source.to_owned()]
    });
    print_table(["CONFIG", "VALUE", "SOURCE"], &rows.collect::<Vec<_>>())
}

async fn create(
    admin: &Admin,
    topic: &str,
    partitions: i32,
    configs: &[String],
) -> anyhow::Result<()> {
    let mut spec = TopicSpec::new(topic, partitions);
    for config in configs {
        let Some((key, value)) = config.split_once('=') else {
            bail!("--config {config}: is not KEY=VALUE");
        };
        spec.configs.push((key.to_owned(), value.to_owned()));
    }
    let created = admin.create_topics(&[spec], false).await?;
    created.into_iter().collect::<Result<(), _>>()?;
    eprintln!("created topic {topic} with {partitions} partitions");
    Ok(())
}
