//! `moldau groups`.

use std::collections::HashMap;
use std::process::ExitCode;

use moldau_client::{Admin, Cluster, OffsetSpec, TopicPartition};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{
    ConsumerGroupDescribeRequest, DescribeShareGroupOffsetsRequest, ShareGroupDescribeRequest,
    describe_share_group_offsets_request as share_offsets,
};
use serde::Serialize;

use crate::arguments::{GroupsAction, GroupsOptions};
use crate::commands::session::{self, print_json};
use crate::commands::table::print_table;

pub(crate) fn run(options: GroupsOptions) -> anyhow::Result<ExitCode> {
    let json = options.cluster.json;
    let action = options.action.unwrap_or(GroupsAction::List);
    session::run(&options.cluster, false, async |cluster| {
        let admin = Admin::new(&cluster);
        match action {
            GroupsAction::List => list(&admin, json).await,
            GroupsAction::Describe { group } => describe(&cluster, &admin, &group, json).await,
            GroupsAction::Delete { group } => {
                admin.delete_group(&group).await?;
                eprintln!("deleted group {group}");
                Ok(())
            }
        }
    })
}

#[derive(Serialize)]
struct ListedGroup {
    group: String,
    state: String,
    protocol_type: String,
}

async fn list(admin: &Admin, json: bool) -> anyhow::Result<()> {
    let groups = admin.list_groups().await?.into_iter().map(|group| ListedGroup {
        group: group.group_id,
        state: group.group_state,
        protocol_type: group.protocol_type,
    });
    let groups: Vec<_> = groups.collect();
    if json {
        return print_json(&groups);
    }
    if groups.is_empty() {
        eprintln!("there are no consumer groups");
        return Ok(());
    }
    let rows =
        groups.iter().map(|it| [it.group.clone(), it.state.clone(), it.protocol_type.clone()]);
    print_table(["GROUP", "STATE", "TYPE"], &rows.collect::<Vec<_>>())
}

#[derive(Serialize)]
struct DescribedGroup {
    group: String,
    state: String,
    assignor: String,
    members: Vec<Member>,
    offsets: Vec<CommittedOffset>,
}

#[derive(Serialize)]
struct Member {
    member_id: String,
    client_id: String,
    host: String,
}

#[derive(Serialize)]
struct CommittedOffset {
    topic: String,
    partition: i32,
    committed: i64,
    end: Option<i64>,
    lag: Option<i64>,
}

/// DescribeGroups knows classic groups alone.
async fn describe(cluster: &Cluster, admin: &Admin, group: &str, json: bool) -> anyhow::Result<()> {
    let unknown = match admin.describe_group(group).await {
        Ok(found) => {
            let members = found.members.into_iter();
            let members = members.map(|it| member(it.member_id, it.client_id, it.client_host));
            let described = DescribedGroup {
                group: group.to_owned(),
                state: found.group_state,
                assignor: found.protocol_data,
                members: members.collect(),
                offsets: offsets(admin, cluster.committed_offsets(group).await?).await,
            };
            return print(&described, json);
        }
        Err(error) if error.code() == Some(ErrorCode::GroupIdNotFound) => error,
        Err(error) => return Err(error.into()),
    };
    if let Some(described) = consumer_group(cluster, admin, group).await? {
        return print(&described, json);
    }
    match share_group(cluster, admin, group).await? {
        Some(described) => print(&described, json),
        None => Err(unknown.into()),
    }
}

/// A group of KIP-848.
async fn consumer_group(
    cluster: &Cluster,
    admin: &Admin,
    group: &str,
) -> anyhow::Result<Option<DescribedGroup>> {
    let coordinator = cluster.group_coordinator(group).await?;
    let request =
        ConsumerGroupDescribeRequest { group_ids: vec![group.to_owned()], ..Default::default() };
    // Of a broker that does not know the protocol, no group has it.
    let Ok(answer) = coordinator.send(&request).await else { return Ok(None) };
    let Some(found) = answer.groups.into_iter().find(|it| it.error_code == 0) else {
        return Ok(None);
    };
    let members = found.members.into_iter();
    let members = members.map(|it| member(it.member_id, it.client_id, it.client_host));
    Ok(Some(DescribedGroup {
        group: group.to_owned(),
        state: found.group_state,
        assignor: found.assignor_name,
        members: members.collect(),
        offsets: offsets(admin, cluster.committed_offsets(group).await?).await,
    }))
}

/// A group of KIP-932, whose offsets are the first that are not done.
async fn share_group(
    cluster: &Cluster,
    admin: &Admin,
    group: &str,
) -> anyhow::Result<Option<DescribedGroup>> {
    let coordinator = cluster.group_coordinator(group).await?;
    let request =
        ShareGroupDescribeRequest { group_ids: vec![group.to_owned()], ..Default::default() };
    // As above.
    let Ok(answer) = coordinator.send(&request).await else { return Ok(None) };
    let Some(found) = answer.groups.into_iter().find(|it| it.error_code == 0) else {
        return Ok(None);
    };
    let group_id = group.to_owned();
    let all = share_offsets::DescribeShareGroupOffsetsRequestGroup {
        group_id,
        topics: None,
        ..Default::default()
    };
    let request = DescribeShareGroupOffsetsRequest { groups: vec![all], ..Default::default() };
    let answer = coordinator.send(&request).await?;
    let mut starts = HashMap::new();
    for topic in answer.groups.into_iter().flat_map(|group| group.topics) {
        for partition in topic.partitions.iter().filter(|it| it.start_offset >= 0) {
            let name = TopicPartition::of(&topic.topic_name, partition.partition_index);
            starts.insert(name, partition.start_offset);
        }
    }
    let members = found.members.into_iter();
    let members = members.map(|it| member(it.member_id, it.client_id, it.client_host));
    Ok(Some(DescribedGroup {
        group: group.to_owned(),
        state: found.group_state,
        assignor: found.assignor_name,
        members: members.collect(),
        offsets: offsets(admin, starts).await,
    }))
}

fn member(member_id: String, client_id: String, host: String) -> Member {
    Member { member_id, client_id, host }
}

fn print(described: &DescribedGroup, json: bool) -> anyhow::Result<()> {
    if json { print_json(described) } else { print_described(described) }
}

/// Committed offsets beside the ends of their partitions.
async fn offsets(admin: &Admin, committed: HashMap<TopicPartition, i64>) -> Vec<CommittedOffset> {
    let wanted: Vec<(TopicPartition, OffsetSpec)> =
        committed.keys().map(|partition| (partition.clone(), OffsetSpec::Latest)).collect();
    let mut ends = admin.list_offsets(&wanted).await;
    let mut offsets: Vec<_> = committed
        .into_iter()
        .map(|(partition, committed)| {
            // A topic that was deleted since has no end.
            let end = ends.remove(&partition).and_then(Result::ok).map(|end| end.offset);
            CommittedOffset {
                topic: partition.topic.to_string(),
                partition: partition.partition,
                committed,
                end,
                lag: end.map(|end| end - committed),
            }
        })
        .collect();
    offsets
        .sort_by(|left, right| (&left.topic, left.partition).cmp(&(&right.topic, right.partition)));
    offsets
}

fn print_described(group: &DescribedGroup) -> anyhow::Result<()> {
    println!("{}: {}, {} members", group.group, group.state, group.members.len());
    if !group.assignor.is_empty() {
        println!("assignor {}", group.assignor);
    }
    println!();
    let text = |number: Option<i64>| number.map_or("-".to_owned(), |number| number.to_string());
    let rows = group.offsets.iter().map(|it| {
        let numbers = [Some(i64::from(it.partition)), Some(it.committed), it.end, it.lag];
        let [partition, committed, end, lag] = numbers.map(text);
        [it.topic.clone(), partition, committed, end, lag]
    });
    let headings = ["TOPIC", "PARTITION", "COMMITTED", "END", "LAG"];
    print_table(headings, &rows.collect::<Vec<_>>())?;
    if group.members.is_empty() {
        return Ok(());
    }
    println!();
    let rows = group
        .members
        .iter()
        .map(|it| [it.member_id.clone(), it.client_id.clone(), it.host.clone()]);
    print_table(["MEMBER", "CLIENT", "HOST"], &rows.collect::<Vec<_>>())
}
