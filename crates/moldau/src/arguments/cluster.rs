//! `moldau cluster`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum ClusterAction {
    /// Create or migrate the schema in PostgreSQL, and try the bucket.
    Init(InitOptions),
    /// Show whether the cluster is well, and what it holds. The exit code is 1 if it is not.
    Status(ClusterFile),
    /// Compare the records that PostgreSQL names with the objects of the bucket.
    ///
    /// The exit code is 1 if an object is missing or too short.
    Check(ClusterFile),
    /// Delete the objects that hold no records of the cluster. The controller does the same every
    /// few minutes.
    Gc(GcOptions),
    /// Run three brokers with PostgreSQL on this machine, and kill one while records are written.
    ///
    /// The exit code is 1 if an acknowledged record is lost, or a record is there twice.
    Demo(DemoOptions),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct DemoOptions {
    /// Leave the cluster running until Ctrl-C.
    #[arg(long)]
    pub(crate) keep: bool,
    /// How long records are written; the controller is killed at half of it.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::duration)]
    pub(crate) time: Duration,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ClusterFile {
    /// File of a broker of the cluster (YAML).
    #[arg(long = "cluster", value_name = "FILE")]
    pub(crate) path: PathBuf,
    /// Print one JSON document on stdout.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct InitOptions {
    #[command(flatten)]
    pub(crate) file: ClusterFile,
    /// The database was restored from a backup or moved to another server: make it the owner of the
    /// objects, in the place of the older one.
    #[arg(long)]
    pub(crate) restored: bool,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct GcOptions {
    #[command(flatten)]
    pub(crate) file: ClusterFile,
    /// Age of an object that no broker has committed. A broker puts a younger one again.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = units::duration)]
    pub(crate) uncommitted_for: Duration,
}
