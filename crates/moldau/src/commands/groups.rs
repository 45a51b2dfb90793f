//! `moldau groups`.

use std::process::ExitCode;

use moldau_client::{Admin, Cluster, OffsetSpec, TopicPartition};
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

async fn describe(cluster: &Cluster, admin: &Admin, group: &str, json: bool) -> anyhow::Result<()> {
    let found = admin.describe_group(group).await?;
    let members = found.members.into_iter().map(|member| Member {
        member_id: member.member_id,
        client_id: member.client_id,
        host: member.client_host,
    });
    let described = DescribedGroup {
        group: group.to_owned(),
        state: found.group_state,
        assignor: found.protocol_data,
        members: members.collect(),
        offsets: offsets(cluster, admin, group).await?,
    };
    if json { print_json(&described) } else { print_described(&described) }
}

async fn offsets(
    cluster: &Cluster,
    admin: &Admin,
    group: &str,
) -> anyhow::Result<Vec<CommittedOffset>> {
    let committed = cluster.committed_offsets(group).await?;
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
    Ok(offsets)
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
