//! Shared parts of the client tools: a runtime, a connection to the cluster, and output for
//! programs.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use moldau_client::{Cluster, ClusterOptions as ClientOptions, ConnectionOptions};
use serde::Serialize;
use tokio::runtime::Builder;

use crate::arguments::ClusterOptions;
use crate::config;
use crate::output;

/// How long a tool tries to reach the cluster: a person is waiting.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs a tool's work on a runtime of its own.
///
/// # Errors
/// What the work says.
pub(crate) fn run(
    options: &ClusterOptions,
    create_topics: bool,
    work: impl AsyncFnOnce(Cluster) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let security = options.security.as_deref().map(config::client::load).transpose()?;
    let connection =
        ConnectionOptions { security: security.unwrap_or_default(), ..Default::default() };
    let client = ClientOptions {
        operation_timeout: PATIENCE,
        create_topics,
        connection,
        ..ClientOptions::default()
    };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let bootstrap = &options.bootstrap;
    runtime.block_on(async {
        let cluster = Cluster::connect(bootstrap, client)
            .await
            .with_context(|| format!("no Kafka cluster at {}", bootstrap.join(", ")))?;
        work(cluster).await
    })?;
    // What still runs in the background, such as a fetch that waits, ends with the process.
    runtime.shutdown_background();
    Ok(ExitCode::SUCCESS)
}

/// Prints a document for programs.
///
/// # Errors
/// Stdout is closed.
pub(crate) fn print_json<T: Serialize>(document: &T) -> anyhow::Result<()> {
    use std::io::Write;
    let mut stdout = output::stdout();
    serde_json::to_writer(&mut stdout, document)?;
    writeln!(stdout)?;
    Ok(())
}
