//! kafka-streams-groups, with a Streams application that runs and one that was killed.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::{GROUPS, Tools, both_outputs};
use crate::process::Process;

const STREAMS_GROUPS: &str = "org.apache.kafka.tools.streams.StreamsGroupCommand";

/// The start of an application, or the session of a killed one, which is 45 s. Each look is a JVM
/// that starts.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(100);

impl Tools<'_> {
    pub(super) fn streams_groups(&mut self) -> Result<()> {
        let group = self.topic;
        for name in ["words", "left", "right", "counts", "joined"] {
            let topic = format!("{group}-{name}");
            let create = ["--create", "--topic", &topic, "--partitions", "2"];
            self.tool(super::TOPICS, &create)?;
        }
        let words = format!("{group}-words");
        self.produce_to(&words, "one:1\ntwo:2\nthree:3\nfour:4\n")?;
        let state = self.directory.join(format!("{group}-state")).display().to_string();
        let mut command = self.peers.java_tool("StreamsExactlyOnce")?;
        command.args(["job", self.bootstrap, group, &state, "streams"]);
        let mut application = Process::spawn(command, group, self.directory)?;
        let running = self.await_state("an application gets its tasks", "Stable");
        let described = running.and_then(|()| self.describe_running());
        application.kill()?;
        described?;
        self.await_state("a killed application is put out", "Empty")?;
        self.change_offsets()
    }

    fn describe_running(&mut self) -> Result<()> {
        let group = self.topic;
        let listed = self.tool(STREAMS_GROUPS, &["--list", "--state"])?;
        self.has_row("the group is listed", &listed, &[group, "Stable"]);
        let members = self.tool(STREAMS_GROUPS, &["--describe", "--group", group, "--members"])?;
        let shows_tasks = ["0:[0,1]", "1:[0,1]"].iter().all(|it| members.stdout.contains(it));
        self.check("its member has all tasks", shows_tasks, &members.explanation());
        let topics = self.tool(super::TOPICS, &["--list"])?;
        let changelog = format!("{group}-KSTREAM-AGGREGATE-STATE-STORE-0000000001-changelog");
        self.shows("its internal topics exist", &topics, &changelog);
        let deleted = self.tool(STREAMS_GROUPS, &["--delete", "--group", group])?;
        let is_kept = both_outputs(&deleted).contains("not");
        self.check("a group with members is kept", is_kept, &both_outputs(&deleted));
        let all = self.tool(GROUPS, &["--list"])?;
        self.lacks("it is no consumer group", &all, group);
        Ok(())
    }

    fn change_offsets(&mut self) -> Result<()> {
        let group = self.topic;
        let words = format!("{group}-words");
        let reset = ["--reset-offsets", "--group", group, "--input-topic", &words];
        let earliest =
            self.tool(STREAMS_GROUPS, &[&reset[..], &["--to-earliest", "--execute"]].concat())?;
        let mut rows = earliest.stdout.lines();
        let is_reset = rows.any(|row| row.starts_with(group) && row.contains(&words));
        self.check("its offsets are reset", is_reset, &both_outputs(&earliest));
        let offsets = self.tool(STREAMS_GROUPS, &["--describe", "--group", group, "--offsets"])?;
        self.check("its offsets are described", offsets.success(), &both_outputs(&offsets));
        let deleted = self.tool(STREAMS_GROUPS, &["--delete", "--group", group])?;
        self.shows("it is deleted", &deleted, "was successful");
        let listed = self.tool(STREAMS_GROUPS, &["--list"])?;
        self.lacks("a deleted group is not listed", &listed, group);
        Ok(())
    }

    fn await_state(&mut self, name: &str, state: &str) -> Result<()> {
        let deadline = Instant::now() + CHANGE_TIMEOUT;
        loop {
            let describe = ["--describe", "--group", self.topic, "--state"];
            let described = self.tool(STREAMS_GROUPS, &describe)?;
            let is_there = described.stdout.contains(state);
            if is_there || Instant::now() > deadline {
                self.check(name, is_there, &both_outputs(&described));
                return Ok(());
            }
        }
    }
}
