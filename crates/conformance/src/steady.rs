//! A client that writes at a rate and reads what it wrote, until it is told to stop.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::check::Check;
use crate::client::Library;
use crate::connection::{Connection, Session};
use crate::peers::Peers;
use crate::process::Process;

/// What the line on standard error begins with by which a program tells how far it is.
const PROGRESS: &str = "progress ";

/// The same of how long acknowledgements took.
const LATENCY: &str = "latency_us ";

/// A program waits 40 s for what it has not read, and as long for acknowledgements.
const END_TIMEOUT: Duration = Duration::from_secs(120);

/// A running program; dropped, it is stopped.
#[derive(Debug)]
pub struct Steady {
    name: String,
    process: Process,
    stop: PathBuf,
}

/// How far a program is.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Progress {
    /// Records that the server acknowledged.
    pub acknowledged: u64,
    /// Records that the program read.
    pub read: u64,
    /// The value of the last header that it read; empty before.
    pub generation: String,
    /// Connections that producer and consumer have made.
    pub connections: u64,
}

/// How long acknowledgements took, as franz-go's program tells.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// The median.
    pub p50: Duration,
    /// What one in a hundred exceeded.
    pub p99: Duration,
}

impl Steady {
    /// Starts the program of `library` on a topic and group of its own; `rate` is in records of
    /// 1,000 bytes a second, 0 for as many as it can.
    pub fn start(
        library: Library,
        topic: &str,
        rate: u32,
        connection: &Connection,
        peers: &Peers,
        directory: &Path,
    ) -> Result<Self> {
        let (stop, input) =
            (directory.join(format!("{topic}.stop")), directory.join(format!("{topic}.in")));
        let columns = connection.columns();
        fs::write(&input, format!("{topic}\t{rate}\t{}\t{columns}\n", stop.display()))?;
        let mut command = Session::Steady.program(library, peers)?;
        command.stdin(File::open(&input)?);
        let process = Process::spawn(command, topic, directory)?;
        Ok(Self { name: library.name().to_owned(), process, stop })
    }

    /// The library's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How far it is.
    pub fn progress(&self) -> Result<Progress> {
        let line = self.process.last_line(PROGRESS)?;
        Ok(line.as_deref().and_then(Progress::parse).unwrap_or_default())
    }

    /// Waits until the program is as far as `is_there` says; an error where it ends before.
    pub fn await_progress(
        &mut self,
        timeout: Duration,
        is_there: impl Fn(&Progress) -> bool,
    ) -> Result<Progress> {
        let reached = |process: &Process| {
            let line = process.last_line(PROGRESS).ok().flatten();
            line.as_deref().and_then(Progress::parse).filter(&is_there)
        };
        self.process.await_ready(timeout, |process| reached(process).is_some())?;
        self.progress()
    }

    /// Lets some time go by; an error where the program ends meanwhile.
    pub fn pause(&mut self, time: Duration) -> Result<()> {
        match self.process.exits_within(time)? {
            Some(status) => bail!("{} ended with {status}:\n{}", self.name, self.process.tail()),
            None => Ok(()),
        }
    }

    /// Stops it, and waits until it has read what it wrote.
    pub fn finish(mut self) -> Result<(Vec<Check>, Option<Latency>)> {
        fs::write(&self.stop, "")?;
        let ended = self.process.exits_within(END_TIMEOUT)?;
        ended.with_context(|| format!("{} does not end:\n{}", self.name, self.process.tail()))?;
        let checks =
            Check::parse_lines(&self.process.stdout_text()).with_context(|| self.process.tail())?;
        let latency = self.process.last_line(LATENCY)?;
        Ok((checks, latency.as_deref().and_then(Latency::parse)))
    }
}

impl Progress {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let acknowledged = words.next()?.parse().ok()?;
        let read = words.next()?.parse().ok()?;
        let generation = words.next()?.to_owned();
        let connections = words.next()?.parse().ok()?;
        Some(Self { acknowledged, read, generation, connections })
    }
}

impl Latency {
    fn parse(line: &str) -> Option<Self> {
        let (p50, p99) = line.split_once(' ')?;
        let duration = |text: &str| text.parse().ok().map(Duration::from_micros);
        Some(Self { p50: duration(p50)?, p99: duration(p99)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_tells_is_read() {
        let progress = Progress::parse("12 11 7 3").unwrap();
        let (acknowledged, read, connections) = (12, 11, 3);
        let generation = "7".to_owned();
        assert_eq!(progress, Progress { acknowledged, read, generation, connections });
        assert_eq!(Progress::parse("12 11"), None);
        let [p50, p99] = [250, 1500].map(Duration::from_micros);
        assert_eq!(Latency::parse("250 1500"), Some(Latency { p50, p99 }));
    }
}
