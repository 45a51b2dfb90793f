//! A system under test: started for one part, looked at, killed, and diagnosed when it fails.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use super::Plan;
use super::operator::{Alive, Operator, Trouble};
use super::wall::{self, Evidence};
use crate::experiments::bench;
use crate::experiments::side_by_side::System;
use crate::partitions::{Failure, How};
use crate::systems::{
    KAFKA_HEAP_BYTES, KafkaNode, Process, ProcessSpec, Ready, free_addresses, http_get,
    kafka_broker, moldau_broker, prepare_kafka_node, tail,
};
use moldau_measure::Error;
use moldau_measure::resources::{Limits, Resources, gauge, occupied_bytes};

/// The end of a system's output that is searched for the reason of a failure.
const LOG_BYTES_MAX: u64 = 8 << 20;

/// How long a failing process may take to end before it counts as running: a JVM that halts
/// writes out what it knows first.
const END_TIMEOUT: Duration = Duration::from_secs(3);

/// Topics that are deleted by one request.
const TOPICS_PER_DELETION: usize = 100;

/// Pause between two looks at a process.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// A system that runs.
pub(super) struct Subject {
    /// How the bench reaches it.
    pub(super) path: bench::Path,
    pub(super) operator: Operator,
    pub(super) limits: Limits,
    directory: Option<PathBuf>,
    spec: Option<ProcessSpec>,
    process: Option<Process>,
    /// Further nodes of its cluster.
    others: Vec<Process>,
    admin: Option<SocketAddr>,
    held: Option<Resources>,
    /// Topics to delete from a cluster that the laboratory did not start.
    topics: Vec<String>,
}

impl Subject {
    /// Starts a system over an empty directory.
    pub(super) fn start(system: &System, plan: &Plan) -> Result<Self, Error> {
        Self::start_nodes(system, plan, 1)
    }

    /// Starts a system of several nodes, where it can have them.
    pub(super) fn start_nodes(system: &System, plan: &Plan, nodes: u16) -> Result<Self, Error> {
        let directory = plan.conditions.work_directory.join(system.name());
        let [listen, other] = free_addresses()?;
        let mut others = Vec::new();
        let (spec, admin) = match system {
            System::External { bootstrap, .. } => {
                let mut subject = Self::new(system, bootstrap.clone(), plan.call_limit)?;
                subject.path.control = subject.path.control.lasting(true);
                return Ok(subject);
            }
            System::Moldau { program, durability } => {
                make(&directory)?;
                let data = directory.join("data");
                (moldau_broker(program, &data, listen, other, *durability), Some(other))
            }
            System::Kafka(installation) => {
                let mut specs = Vec::new();
                for id in 1..=nodes {
                    let [of_node] = free_addresses()?;
                    let listen = if id == 1 { listen } else { of_node };
                    let home = directory.join(format!("node-{id}"));
                    make(&home)?;
                    let node = KafkaNode { id, listen, controller: other };
                    prepare_kafka_node(installation, &home, node)?;
                    specs.push((kafka_broker(installation, &home, listen)?, home));
                }
                let mut specs = specs.into_iter();
                let (first, _) = specs.next().expect("at least one node was asked for");
                // The others find no controller until the first runs, and try again until then.
                for (spec, home) in specs {
                    others.push((Process::launch(&spec, &home)?, spec.ready));
                }
                (first, None)
            }
        };
        let mut subject = Self::new(system, listen.to_string(), plan.call_limit)?;
        let process = Process::start(&spec, &directory)?;
        subject.limits = Limits::of(process.pid());
        if matches!(system, System::Kafka(_)) {
            subject.limits.heap_bytes = Some(KAFKA_HEAP_BYTES);
        }
        for (mut node, ready) in others {
            node.wait_until_ready(&ready, plan.call_limit)?;
            subject.others.push(node);
        }
        subject.path.processes = vec![(process.role().to_string(), process.pid())];
        (subject.spec, subject.admin) = (Some(spec), admin);
        (subject.process, subject.directory) = (Some(process), Some(directory));
        Ok(subject)
    }

    fn new(system: &System, bootstrap: String, limit: Duration) -> Result<Self, Error> {
        Ok(Self {
            operator: Operator::new(&bootstrap, limit)?,
            path: bench::Path::to(system.name(), bootstrap, Vec::new())?,
            limits: Limits::default(),
            directory: None,
            spec: None,
            process: None,
            others: Vec::new(),
            admin: None,
            held: None,
            topics: Vec::new(),
        })
    }

    /// Whether the laboratory started it, so that it can be looked at and killed.
    pub(super) fn is_ours(&self) -> bool {
        self.process.is_some()
    }

    /// The operator, and a look whether the system still runs.
    pub(super) fn operate<T>(
        &mut self,
        work: impl FnOnce(&Operator, Alive<'_>) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let _making = self.path.control.making(&[])?;
        let process = &mut self.process;
        let mut alive = || process.as_mut().map_or(Ok(()), Process::check_alive);
        work(&self.operator, &mut alive)
    }

    /// A name for a topic that no other run uses; the topic is deleted in the end.
    pub(super) fn topic(&mut self, name: &str) -> String {
        let topic = format!("lab-{name}-{:08x}", fastrand::u32(..));
        // Where no more may be made, making it is refused.
        drop(self.path.control.making(std::slice::from_ref(&topic)));
        self.topics.push(topic.clone());
        topic
    }

    /// What it holds; `None` where that cannot be seen.
    pub(super) fn look(&mut self) -> Option<Resources> {
        let mut found = Resources::of(self.process.as_ref()?.pid())?;
        let page = self.admin.and_then(|admin| http_get(admin, "/metrics"));
        found.cache_bytes = page.and_then(|page| gauge(&page, "cache_bytes"));
        self.held = Some(found);
        Some(found)
    }

    /// What its data occupies on the disk.
    pub(super) fn disk_bytes(&self) -> Option<u64> {
        self.directory.as_deref().map(occupied_bytes)
    }

    /// Kills it with SIGKILL and starts it again over what it left. Returns once its port is
    /// open, with the moment of the start.
    pub(super) fn kill_and_launch(
        &mut self,
        limit: Duration,
    ) -> Result<(Instant, Duration), Trouble> {
        let (Some(process), Some(spec), Some(directory)) =
            (self.process.take(), &self.spec, &self.directory)
        else {
            let reason = "the system was not started by the laboratory".into();
            return Err(Error::Plan(reason).into());
        };
        process.kill()?;
        let start = Instant::now();
        let process = self.process.insert(Process::launch(spec, directory)?);
        self.path.processes = vec![(process.role().to_string(), process.pid())];
        let port: SocketAddr = self.path.bootstrap.parse().expect("a system of ours has a port");
        while !Ready::Tcp(port).is_met() {
            process.check_alive()?;
            if start.elapsed() > limit {
                let last = "the port is closed".to_string();
                return Err(Trouble::Slow { seconds: limit.as_secs(), last });
            }
            thread::sleep(POLL_INTERVAL);
        }
        Ok((start, start.elapsed()))
    }

    /// What a trouble means: how the system failed, in whose words, and at which wall.
    pub(super) fn failure(&mut self, during: impl Into<String>, trouble: &Trouble) -> Failure {
        let status = match trouble {
            Trouble::Client(error) if error.code().is_some() => None,
            _ => self.status_if_ended(),
        };
        let words = words(trouble);
        let log = self
            .process
            .as_ref()
            .map(|process| tail(process.log(), LOG_BYTES_MAX))
            .unwrap_or_default();
        let wall = wall::find(&Evidence {
            words: &words,
            // What a log says of earlier refusals is no reason for this one.
            log: if matches!(how(trouble), How::Refused { .. }) { "" } else { &log },
            held: self.held,
            limits: self.limits,
        });
        let how = status.map_or_else(|| how(trouble), |status| How::Ended { status });
        Failure { during: during.into(), how, words, wall }
    }

    /// Exit status in words once the process has ended; waits a moment for it.
    fn status_if_ended(&mut self) -> Option<String> {
        let process = self.process.as_mut()?;
        let end = Instant::now() + END_TIMEOUT;
        loop {
            match process.check_alive() {
                Err(Error::Ended { status, .. }) => return Some(status),
                _ if Instant::now() > end => return None,
                _ => thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Ends it and removes its data, or the topics where it is not ours to end.
    pub(super) fn remove(mut self) -> Result<(), Error> {
        if self.spec.is_none() {
            for topics in self.topics.chunks(TOPICS_PER_DELETION) {
                match self.operator.delete(topics) {
                    Ok(()) => self.path.control.forget(topics),
                    Err(trouble) => {
                        tracing::warn!(reason = words(&trouble), "topics may be left");
                    }
                }
            }
            return Ok(());
        }
        for node in self.others.drain(..) {
            node.kill()?;
        }
        if let Some(process) = self.process.take() {
            // Nothing of it is read any more, and an orderly end of a system that failed, or of
            // one with many partitions, takes its time.
            process.kill()?;
        }
        let Some(directory) = self.directory.take() else { return Ok(()) };
        std::fs::remove_dir_all(&directory)
            .map_err(Error::machine(format!("removing {}", directory.display())))
    }
}

fn make(directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory)
        .map_err(Error::machine(format!("making {}", directory.display())))
}

fn words(trouble: &Trouble) -> String {
    match trouble {
        Trouble::Client(error) => error.to_string(),
        Trouble::Slow { seconds, last } => format!("not done after {seconds} s; last: {last}"),
        Trouble::Lab(error) => error.brief(),
    }
}

fn how(trouble: &Trouble) -> How {
    match trouble {
        Trouble::Client(error) => match (error, error.code()) {
            (moldau_client::Error::TimedOut { .. }, _) => How::TimedOut,
            (_, Some(code)) if code.name() == "REQUEST_TIMED_OUT" => How::TimedOut,
            (_, Some(code)) => How::Refused { code: code.name().to_string() },
            (_, None) => How::Broken,
        },
        Trouble::Slow { .. } | Trouble::Lab(Error::NotReady { .. }) => How::TimedOut,
        Trouble::Lab(Error::Ended { status, .. }) => How::Ended { status: status.clone() },
        Trouble::Lab(_) => How::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_trouble_are_distinguished() {
        let ended = Error::Ended {
            system: "broker".into(),
            status: "exit status: 1".into(),
            output: "a line".into(),
        };
        let ended = Trouble::Lab(ended);
        assert_eq!(how(&ended), How::Ended { status: "exit status: 1".into() });
        assert_eq!(words(&ended), "broker ended with exit status: 1");
        let slow = Trouble::Slow { seconds: 60, last: "no leader".into() };
        assert_eq!(how(&slow), How::TimedOut);
        let code = moldau_client::Error::check(44, "create topic t", Some("too large"));
        let refused = Trouble::Client(code.unwrap_err());
        assert_eq!(how(&refused), How::Refused { code: "POLICY_VIOLATION".into() });
        assert!(words(&refused).contains("too large"), "{}", words(&refused));
    }
}
