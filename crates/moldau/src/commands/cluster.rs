//! `moldau cluster`: what an operator does to a cluster beside running its brokers. Nothing that is
//! printed holds a password or a key.

mod check;
pub(super) mod demo;
mod status;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use moldau_broker::ClusterSettings;
use moldau_cluster::{Answer, Bucket, Postgres, Status, garbage};
use serde::Serialize;
use tokio::runtime::Builder;

use crate::arguments::{ClusterAction, GcOptions, InitOptions};
use crate::commands::session::print_json;
use crate::config::{self, Sources};

pub(crate) fn run(action: &ClusterAction) -> anyhow::Result<ExitCode> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let code = runtime.block_on(async {
        match action {
            ClusterAction::Init(options) => init(options).await,
            ClusterAction::Status(file) => status::run(file).await,
            ClusterAction::Check(file) => check::run(file).await,
            ClusterAction::Gc(options) => collect(options).await,
            ClusterAction::Demo(options) => demo::run(options).await,
        }
    });
    // A connection that does not answer ends with the process.
    runtime.shutdown_background();
    code
}

/// The services that the file names.
struct Services {
    settings: ClusterSettings,
    postgres: Postgres,
    bucket: Bucket,
}

impl Services {
    /// Connects to a cluster that has been set up.
    async fn of(path: &Path, command: &str) -> anyhow::Result<Self> {
        let settings = load(path, command)?;
        let postgres = match Postgres::connect(&settings.postgres).await {
            Err(error @ moldau_cluster::Error::SchemaVersion { .. }) => {
                let file = path.display();
                let hint = format!("PostgreSQL: {error}; `moldau cluster init --cluster {file}`");
                anyhow::bail!("{hint} creates what is missing")
            }
            connected => connected.context("PostgreSQL")?,
        };
        let bucket = open(&settings)?;
        of_place(postgres.expect_store(&bucket).await, &settings)?;
        Ok(Self { settings, postgres, bucket })
    }

    /// The same with a bucket that answers and is that of the cluster: what refuses or is not there
    /// is told at once.
    async fn reached(path: &Path, command: &str) -> anyhow::Result<Self> {
        let services = Self::of(path, command).await?;
        services.claim_store().await?;
        Ok(services)
    }

    async fn take_over_store(&self) -> anyhow::Result<bool> {
        of_place(self.bucket.reach().await, &self.settings)?;
        of_place(self.postgres.take_over_store(&self.bucket).await, &self.settings)
    }

    async fn claim_store(&self) -> anyhow::Result<()> {
        of_place(self.bucket.reach().await, &self.settings)?;
        of_place(self.postgres.claim_store(&self.bucket).await, &self.settings)
    }
}

fn load(path: &Path, command: &str) -> anyhow::Result<ClusterSettings> {
    config::cluster::load_shared(path, command, &mut Sources::default())
}

fn open(settings: &ClusterSettings) -> anyhow::Result<Bucket> {
    Bucket::open(&settings.bucket).with_context(|| bucket_name(settings))
}

/// An answer of either service, whose error names it.
fn of_place<T>(answer: Answer<T>, settings: &ClusterSettings) -> anyhow::Result<T> {
    match answer {
        Err(
            error @ (moldau_cluster::Error::SequencerAway(_)
            | moldau_cluster::Error::DatabaseRefused(_)
            | moldau_cluster::Error::Refused(_)),
        ) => Err(error).context("PostgreSQL"),
        answer => answer.with_context(|| bucket_name(settings)),
    }
}

/// How messages name the bucket.
fn bucket_name(settings: &ClusterSettings) -> String {
    let bucket = &settings.bucket;
    let place = match &bucket.endpoint {
        Some(endpoint) => format!("bucket {} at {endpoint}", bucket.bucket),
        None => format!("bucket {} in {}", bucket.bucket, bucket.region),
    };
    match bucket.prefix.as_str() {
        "" => place,
        prefix => format!("{place}, prefix {prefix}"),
    }
}

#[derive(Serialize)]
struct Init {
    schema_version: i32,
    schema_steps: usize,
    cluster_id: String,
    bucket: String,
}

async fn init(options: &InitOptions) -> anyhow::Result<ExitCode> {
    let InitOptions { file, restored } = options;
    let settings = load(&file.path, "moldau cluster init")?;
    let bucket = open(&settings)?;
    let schema_steps = Postgres::migrate(&settings.postgres).await.context("PostgreSQL")?;
    let postgres = Postgres::connect(&settings.postgres).await.context("PostgreSQL")?;
    let services = Services { settings, postgres, bucket };
    let has_taken_over = *restored && services.take_over_store().await?;
    services.claim_store().await?;
    let Services { settings, postgres, bucket } = services;
    bucket.verify().await.with_context(|| bucket_name(&settings))?;
    let status = postgres.status().await.context("PostgreSQL")?;
    let (schema_version, cluster_id) = (status.schema_version, cluster_id(&status));
    let bucket = bucket_name(&settings);
    if file.json {
        print_json(&Init { schema_version, schema_steps, cluster_id, bucket })?;
        return Ok(ExitCode::SUCCESS);
    }
    match schema_steps {
        0 => println!("PostgreSQL has the schema {schema_version} already: nothing was changed."),
        _ => println!("PostgreSQL has the schema {schema_version}, made in {schema_steps} steps."),
    }
    println!("The {bucket} creates, reads, lists and deletes objects, and overwrites none.");
    if has_taken_over {
        println!("This database owns the objects now: an older copy of it deletes none any more.");
    } else if *restored {
        println!("This database owned the objects before: nothing was taken over.");
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Default, Serialize)]
struct Collected {
    dead: usize,
    uncommitted: usize,
}

async fn collect(options: &GcOptions) -> anyhow::Result<ExitCode> {
    let Services { postgres, bucket, .. } =
        Services::reached(&options.file.path, "moldau cluster gc").await?;
    let dead = garbage::collect(&postgres, &bucket).await?;
    let mut collected = Collected { dead, uncommitted: 0 };
    let mut last = None;
    loop {
        let age = options.uncommitted_for;
        let orphans = garbage::collect_orphans(&postgres, &bucket, last, age).await?;
        collected.uncommitted += orphans.deleted;
        last = orphans.last;
        if last.is_none() {
            break;
        }
    }
    if options.file.json {
        print_json(&collected)?;
        return Ok(ExitCode::SUCCESS);
    }
    let Collected { dead, uncommitted } = collected;
    println!("Deleted {}.", count(dead + uncommitted, "object"));
    println!("{dead} held records that were deleted or moved, {uncommitted} were never committed.");
    Ok(ExitCode::SUCCESS)
}

/// The id of the cluster as Kafka's tools show it.
fn cluster_id(status: &Status) -> String {
    moldau_protocol::Uuid::from_bytes(status.cluster_id.into_bytes()).to_string()
}

/// A number with its noun.
fn count<N: TryInto<u64>>(number: N, noun: &str) -> String {
    let number = number.try_into().unwrap_or(0);
    let end = if number == 1 { "" } else { "s" };
    format!("{} {noun}{end}", moldau_measure::numbers::thousands(number))
}

/// A size as the database tells it.
fn size(bytes: i64) -> String {
    moldau_measure::numbers::bytes(u64::try_from(bytes).unwrap_or(0))
}

/// What keeps the store from answering, if anything does.
async fn problem_of_store(bucket: &Bucket) -> Option<String> {
    bucket.reach().await.err().map(|error| error.to_string())
}
