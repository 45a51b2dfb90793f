//! Jars from Maven: found in the local repository, fetched through `mvn` when absent.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// The Kafka release whose jars the tasks read.
pub(crate) const KAFKA_VERSION: &str = "4.4.0";

/// The path of `group:artifact:version` in the local Maven repository, fetching it if absent.
pub(crate) fn jar(group: &str, artifact: &str, version: &str) -> Result<PathBuf> {
    let home = std::env::var_os("HOME").context("HOME is not set, so there is no ~/.m2")?;
    let jar = Path::new(&home)
        .join(".m2/repository")
        .join(group.replace('.', "/"))
        .join(artifact)
        .join(version)
        .join(format!("{artifact}-{version}.jar"));
    if !jar.is_file() {
        let status = Command::new("mvn")
            .args(["-q", "dependency:get", "-Dtransitive=false"])
            .arg(format!("-Dartifact={group}:{artifact}:{version}"))
            .status()
            .context("cannot start mvn; install Maven to fetch Kafka's jars")?;
        ensure!(status.success(), "mvn could not fetch {group}:{artifact}:{version}: {status}");
    }
    ensure!(jar.is_file(), "{} is missing after mvn fetched it", jar.display());
    Ok(jar)
}
