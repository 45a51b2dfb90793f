//! `moldau cluster status`: three sentences that answer, and then the figures behind them.

use std::process::ExitCode;

use anyhow::Context;
use moldau_cluster::{BrokerStatus, Status, Table};
use serde::Serialize;

use super::{Services, bucket_name, cluster_id, count, problem_of_store, size};
use crate::arguments::ClusterFile;
use crate::commands::session::print_json;
use crate::commands::table::print_table;

pub(super) async fn run(file: &ClusterFile) -> anyhow::Result<ExitCode> {
    let Services { settings, postgres, bucket } =
        Services::of(&file.path, "moldau cluster status").await?;
    let status = postgres.status().await.context("PostgreSQL")?;
    let name = bucket_name(&settings);
    let mut problems = problems(&status);
    if let Some(problem) = problem_of_store(&bucket).await {
        problems.push(format!("the {name} cannot be used: {problem}"));
    }
    if file.json {
        print_json(&document(&status, &problems))?;
    } else {
        println!("{}", brokers(&status));
        println!("{}", contents(&status));
        println!("{}", verdict(&problems));
        print_details(&status, &name)?;
    }
    Ok(if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn brokers(status: &Status) -> String {
    let alive = match status.brokers.len() {
        0 => "No broker is alive".to_owned(),
        1 => "1 broker is alive".to_owned(),
        brokers => format!("{brokers} brokers are alive"),
    };
    let since = |since: &str| format!(" since {since} UTC");
    let since = status.owner_since.as_deref().map(since).unwrap_or_default();
    match &status.owner {
        Some(owner) => format!("{alive}; broker {} is the controller{since}.", owner.broker),
        None => format!("{alive}; there is no controller."),
    }
}

fn contents(status: &Status) -> String {
    let hold = if status.objects == 1 { "holds" } else { "hold" };
    format!(
        "{} {hold} {} of records, in {} with {}.",
        count(status.objects, "object"),
        size(status.bytes),
        count(status.topics, "topic"),
        count(status.partitions, "partition"),
    )
}

fn verdict(problems: &[String]) -> String {
    match problems {
        [] => "Nothing is wrong.".to_owned(),
        [problem] => format!("Wrong: {problem}."),
        problems => format!("Wrong, {} things: {}.", problems.len(), problems.join("; ")),
    }
}

/// What an operator should look at. A controller that is missing for some seconds is no problem for
/// clients, but who asks twice should see it.
fn problems(status: &Status) -> Vec<String> {
    let mut problems = Vec::new();
    if status.brokers.is_empty() {
        problems.push("no broker is alive".to_owned());
    } else if status.owner.is_none() {
        problems.push("no broker is the controller; one takes over within seconds".to_owned());
    }
    if !status.is_durable {
        let what = "PostgreSQL runs with fsync or synchronous_commit off";
        problems.push(format!("{what}, so a crash of its machine loses acknowledged records"));
    }
    if status.frames > FRAMES_MAX {
        let frames = count(status.frames, "frame");
        problems.push(format!("the metadata log has {frames}; the controller takes no snapshots"));
    }
    if status.objects_dead > OBJECTS_DEAD_MAX {
        let dead = count(status.objects_dead, "object");
        problems.push(format!("{dead} without records wait for their deletion"));
    }
    problems
}

fn print_details(status: &Status, bucket: &str) -> anyhow::Result<()> {
    println!();
    let rows: Vec<[String; 4]> = status.brokers.iter().map(row).collect();
    print_table(["BROKER", "ADDRESS", "RACK", "ALIVE SINCE (UTC)"], &rows)?;
    println!();
    let figures = [
        ["cluster id".to_owned(), cluster_id(status)],
        ["store".to_owned(), bucket.to_owned()],
        ["PostgreSQL".to_owned(), status.server_version.clone()],
        ["schema".to_owned(), status.schema_version.to_string()],
        ["offsets".to_owned(), count(status.offsets, "offset")],
        ["metadata log".to_owned(), count(status.frames, "frame")],
        ["open transactions".to_owned(), status.transactions_open.to_string()],
        ["objects to delete".to_owned(), status.objects_dead.to_string()],
        ["partitions with rows to delete".to_owned(), status.logs_unswept.to_string()],
        ["deleted topics with rows".to_owned(), status.topics_deleted.to_string()],
    ];
    print_table(["FIGURE", "VALUE"], &figures)?;
    println!();
    let table = |table: &Table| [table.name.clone(), table.rows.to_string(), size(table.bytes)];
    let tables: Vec<[String; 3]> = status.tables.iter().map(table).collect();
    print_table(["TABLE", "ROWS (ABOUT)", "SIZE"], &tables)
}

fn row(broker: &BrokerStatus) -> [String; 4] {
    let BrokerStatus { row, since } = broker;
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    [row.id.to_string(), format!("{}:{}", row.host, row.port), or_dash(&row.rack), or_dash(since)]
}

#[derive(Serialize)]
struct Document<'a> {
    cluster_id: String,
    problems: &'a [String],
    controller: Option<i32>,
    controller_since: Option<String>,
    brokers: Vec<DocumentBroker<'a>>,
    topics: i64,
    partitions: i64,
    offsets: i64,
    objects: i64,
    bytes: i64,
    objects_to_delete: i64,
    transactions_open: i64,
    metadata_frames: i64,
    schema_version: i32,
    postgres_version: &'a str,
}

#[derive(Serialize)]
struct DocumentBroker<'a> {
    id: i32,
    host: &'a str,
    port: u16,
    rack: Option<&'a str>,
    since: Option<String>,
}

fn document<'a>(status: &'a Status, problems: &'a [String]) -> Document<'a> {
    let broker = |broker: &'a BrokerStatus| DocumentBroker {
        id: broker.row.id,
        host: &broker.row.host,
        port: broker.row.port,
        rack: broker.row.rack.as_deref(),
        since: broker.since.as_deref().map(iso_8601),
    };
    Document {
        cluster_id: cluster_id(status),
        problems,
        controller: status.owner.as_ref().map(|owner| owner.broker),
        controller_since: status.owner_since.as_deref().map(iso_8601),
        brokers: status.brokers.iter().map(broker).collect(),
        topics: status.topics,
        partitions: status.partitions,
        offsets: status.offsets,
        objects: status.objects,
        bytes: status.bytes,
        objects_to_delete: status.objects_dead,
        transactions_open: status.transactions_open,
        metadata_frames: status.frames,
        schema_version: status.schema_version,
        postgres_version: &status.server_version,
    }
}

/// A time of the database, in UTC.
fn iso_8601(time: &str) -> String {
    format!("{}Z", time.replace(' ', "T"))
}

/// A snapshot takes the place of frames long before.
const FRAMES_MAX: i64 = 1_000_000;
/// The collector deletes them every few minutes.
const OBJECTS_DEAD_MAX: i64 = 100_000;
