//! An archive of the classes that Apache Kafka loads at its start.
//!
//! A JVM that maps it starts in half the time: it neither reads nor verifies these classes. It is
//! of one Java and one class path; a JVM that cannot use it starts without it.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use moldau_conformance::peers::Peers;

use super::finish;

pub(super) fn install(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    let directory = tempfile::tempdir()?;
    let mut java = Command::new("java");
    java.arg(format!("-XX:ArchiveClassesAtExit={}", peers.class_archive().display()));
    // It warns of each class that it leaves out.
    java.args(["-Xlog:disable", "-Xlog:all=error", "-Xmx512m", "-XX:TieredStopAtLevel=1"]);
    java.args(["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", &peers.kafka_classpath()?]);
    // Run from its source: classes outside of jars cannot be on the class path of an archive.
    java.arg(&inputs[0]).arg(directory.path());
    finish(java).map(drop)
}

pub(super) fn verify(peers: &Peers) -> Result<String> {
    let mut java = Command::new("java");
    // It does not start if it cannot use the archive.
    java.args(["-Xshare:on", &peers.class_archive_flag(), "-cp", &peers.kafka_classpath()?]);
    java.args(["org.apache.kafka.tools.TopicCommand", "--version"]);
    finish(java)
}
