//! Client libraries that read the same backlogs, each in a process of its own.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use moldau_client::{
    Cluster, ClusterOptions, ConnectionOptions, Delivery, Producer, ProducerOptions, Record,
};
use serde::Deserialize;

use super::{BATCH_BYTES, Bench, PLACES_MAX, Plan, RECORDS_MAX, Running};
use crate::reader::{Handling, Outcome};
use crate::survey::LeftOut;
use crate::systems::{NEVER, ProcessSpec, run_to_end};
use crate::threads::{CaseReading, ClientCase, ClientsRecord};
use crate::wall_clock::timestamp_ms;
use moldau_load::generator::{runtime, target};
use moldau_measure::Error;

/// Most clients of a file.
const CLIENTS_MAX: usize = 8;

/// Most topics of a case.
const TOPICS_MAX: u32 = 10_000;

/// Most cases of a file.
const CASES_MAX: usize = 16;

/// A reading ends this time after its first record if records are left: handlers that wait take
/// hours for a million records if they run one after the other.
const WITHIN: Duration = Duration::from_secs(5);
const WITHIN_QUICK: Duration = Duration::from_secs(2);

/// How long a client may take besides: to start, to join its group, and to leave it.
const BESIDES: Duration = Duration::from_secs(60);

/// The value of records is this text over and over.
const TEXT: &[u8] = b"All records of a backlog have the same value, which codecs shorten well. ";

/// A client library.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientFile {
    /// Its name.
    pub name: String,
    /// Its command. The lab adds the arguments of `moldau lab reader`, and expects its output.
    pub command: Vec<String>,
    /// Texts of files that are written into `${dir}` before, by their names.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
}

/// What all clients read.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    /// Its name.
    pub name: String,
    /// Topics.
    pub topics: u32,
    /// Partitions of each topic.
    pub partitions: u16,
    /// Records of each topic.
    pub records: u32,
    /// Keys, used in turn.
    pub keys: u32,
    /// Threads of the client.
    pub threads: u16,
    /// What the handler does with each record: `nothing`, `compute:US`, `wait:US`.
    #[serde(default = "nothing")]
    pub handling: String,
}

fn nothing() -> String {
    "nothing".to_owned()
}

/// Refuses what cannot be measured.
///
/// # Errors
/// [`Error::Plan`].
pub(super) fn check(clients: &[ClientFile], cases: &[CaseFile]) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::Plan(text));
    if clients.is_empty() != cases.is_empty() {
        return refuse("clients and cases: both or none".into());
    }
    if clients.len() > CLIENTS_MAX || cases.len() > CASES_MAX {
        return refuse(format!("at most {CLIENTS_MAX} clients and {CASES_MAX} cases"));
    }
    let names = clients.iter().map(|it| &it.name).chain(cases.iter().map(|it| &it.name));
    let names: Vec<&String> = names.collect();
    if let Some(twin) = crate::experiments::running::twin(&names) {
        return refuse(format!("the name {twin} is there twice"));
    }
    for ClientFile { name, command, files } in clients {
        let is_plain = |file: &String| !file.contains('/') && !file.starts_with('.');
        if command.is_empty() || !files.keys().all(is_plain) {
            return refuse(format!("client {name}: a command, and files without directories"));
        }
    }
    for case in cases {
        let name = &case.name;
        let CaseFile { topics, partitions, records, keys, threads, handling, .. } = case;
        let records_in_all = u64::from(*topics) * u64::from(*records);
        if !(1..=TOPICS_MAX).contains(topics)
            || !(1..=PLACES_MAX).contains(threads)
            || *partitions == 0
            || *keys == 0
            || !(4..=u64::from(RECORDS_MAX) * 10).contains(&records_in_all)
        {
            return refuse(format!(
                "case {name}: topics to {TOPICS_MAX}, threads to {PLACES_MAX}, at least one \
                 partition and key, 4 to {} records in all",
                u64::from(RECORDS_MAX) * 10
            ));
        }
        handling
            .parse::<Handling>()
            .map_err(|wrong| Error::Plan(format!("case {name}: {wrong}")))?;
    }
    Ok(())
}

/// The clients that are there, and why the others are not.
pub(super) fn split(plan: &Plan) -> (Vec<&ClientFile>, Vec<LeftOut>) {
    let (mut there, mut left_out) = (Vec::new(), Vec::new());
    for client in &plan.file.clients {
        let texts: Vec<&str> = client.command.iter().map(String::as_str).collect();
        match plan.installations.missing(&texts) {
            None => there.push(client),
            Some(reason) => {
                left_out.push(LeftOut { system: client.name.clone(), reason: reason.into() });
            }
        }
    }
    (there, left_out)
}

/// Steps of [`read_all`].
pub(super) fn steps(plan: &Plan, clients: usize, systems: usize) -> usize {
    let rounds = usize::try_from(plan.rounds()).unwrap_or(usize::MAX);
    systems * plan.file.cases.len() * (1 + clients * rounds)
}

/// Every client reads every case in every round, forwards in even rounds and backwards in odd ones.
pub(super) fn read_all(
    plan: &Plan,
    bench: &mut Bench<'_>,
    clients: &[&ClientFile],
    systems: &mut [Running],
) -> Result<ClientsRecord, Error> {
    let cases: Vec<ClientCase> = plan.file.cases.iter().map(|case| plan.case(case)).collect();
    let mut readings = Vec::new();
    for running in systems {
        for (number, case) in cases.iter().enumerate() {
            bench.step(&format!("Write the backlog of {}: {}", case.name, running.path.arm));
            let prefix = format!("clients-{}-{number}-", fastrand::u32(..));
            let backlog = Written { running, case, prefix };
            let topics = backlog.write(plan.file.threads.record_bytes)?;
            for round in 0..plan.rounds() {
                let mut order = clients.to_vec();
                if !round.is_multiple_of(2) {
                    order.reverse();
                }
                for client in order {
                    let arm = &backlog.running.path.arm;
                    let what = format!("{arm}: {} by {}, {}", case.name, client.name, round + 1);
                    bench.step(&what);
                    let read = |_: &mut Bench<'_>| backlog.read(plan, client, round);
                    readings.push(bench.once_if(&what, |_| true, read)?);
                }
                backlog.running.system.check_alive()?;
            }
            running.path.control.delete_topics(&topics)?;
        }
    }
    let names = clients.iter().map(|client| client.name.clone()).collect();
    Ok(ClientsRecord { names, cases, readings })
}

impl Plan {
    fn case(&self, case: &CaseFile) -> ClientCase {
        let share = if self.conditions.quick { super::QUICK_SHARE } else { 1 };
        ClientCase {
            name: case.name.clone(),
            topics: case.topics,
            partitions: case.partitions,
            records: (case.records / share).max(1),
            keys: case.keys,
            threads: case.threads,
            handling: case.handling.clone(),
        }
    }
}

/// The backlog of a case on a system.
struct Written<'a> {
    running: &'a mut Running,
    case: &'a ClientCase,
    prefix: String,
}

impl Written<'_> {
    /// Writes all topics, and gives their names.
    fn write(&self, record_bytes: usize) -> Result<Vec<String>, Error> {
        let ClientCase { topics, partitions, records, .. } = *self.case;
        let names: Vec<String> =
            (0..topics).map(|index| format!("{}{index}", self.prefix)).collect();
        let path = &self.running.path;
        for some in names.chunks(TOPICS_AT_A_TIME) {
            path.control.create_topics(some, partitions)?;
        }
        let value: Vec<u8> = TEXT.iter().copied().cycle().take(record_bytes).collect();
        let written = runtime()?.block_on(self.produce(&names, &value))?;
        let wanted = u64::from(topics) * u64::from(records);
        if written == wanted {
            return Ok(names);
        }
        let reason = format!("{written} records of {wanted} were acknowledged");
        Err(Error::Target { action: "writing a backlog".into(), reason })
    }

    /// Gives how many records were acknowledged.
    async fn produce(&self, names: &[String], value: &[u8]) -> Result<u64, Error> {
        let security = self.running.path.clients.security.clone();
        let connection = ConnectionOptions { security, ..ConnectionOptions::default() };
        let options = ClusterOptions { connection, ..ClusterOptions::default() };
        let connected = Cluster::connect(&[&self.running.path.bootstrap], options).await;
        let cluster = connected.map_err(target("connecting a producer"))?;
        let acknowledged = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&acknowledged);
        let sink = move |delivery: &Delivery<'_>| {
            if delivery.error.is_none() {
                let records = u64::try_from(delivery.tokens.len()).unwrap_or(0);
                counted.fetch_add(records, Ordering::Relaxed);
            }
        };
        let options = ProducerOptions { batch_bytes: BATCH_BYTES, ..ProducerOptions::default() };
        let producer = Producer::start(&cluster, options, sink);
        let producer = producer.await.map_err(target("starting a producer"))?;
        let loaded = cluster.load_topics(names.iter().map(String::as_str)).await;
        loaded.map_err(target("asking for topics"))?;
        let ClientCase { partitions, records, keys, .. } = *self.case;
        for name in names {
            let mut handles = Vec::new();
            for partition in 0..i32::from(partitions) {
                let handle = producer.partition(name, partition).await;
                handles.push(handle.map_err(target("finding a partition"))?);
            }
            // Retention counts from the timestamp.
            let timestamp = timestamp_ms();
            for index in 0..records {
                let key = (index % keys).to_be_bytes();
                // All records of a key are in one partition.
                let place = usize::try_from(index % keys).unwrap_or(0) % handles.len();
                let Some(handle) = handles.get(place) else { continue };
                let record = Record {
                    token: 0,
                    timestamp,
                    key: Some(&key),
                    value: Some(value),
                    headers: &[],
                };
                producer.room_for(&record).await;
                producer.send(*handle, &record).map_err(target("producing"))?;
            }
        }
        producer.flush().await;
        producer.close().await;
        Ok(acknowledged.load(Ordering::Relaxed))
    }

    /// Lets a client read it.
    fn read(&self, plan: &Plan, client: &ClientFile, round: u32) -> Result<CaseReading, Error> {
        let within = if plan.conditions.quick { WITHIN_QUICK } else { WITHIN };
        let path = &self.running.path;
        let case = self.case;
        let records = u64::from(case.topics) * u64::from(case.records);
        let texts = [
            ("--bootstrap", path.bootstrap.clone()),
            ("--group", format!("clients-{}", fastrand::u64(..))),
            ("--topic-prefix", self.prefix.clone()),
            ("--topics", case.topics.to_string()),
            ("--threads", case.threads.to_string()),
            ("--records", records.to_string()),
            ("--handling", case.handling.clone()),
            ("--within-ms", within.as_millis().to_string()),
        ];
        let arguments = texts.into_iter().flat_map(|(name, value)| [name.to_owned(), value]);
        let outcome = run(plan, client, arguments.collect(), within + BESIDES)?;
        Ok(CaseReading {
            case: case.name.clone(),
            system: path.arm.clone(),
            client: client.name.clone(),
            round,
            records: outcome.records,
            wall_ns: outcome.wall_ns,
            cpu_ns: outcome.cpu_ns,
        })
    }
}

/// Runs a client to its end.
fn run(
    plan: &Plan,
    client: &ClientFile,
    arguments: Vec<String>,
    within: Duration,
) -> Result<Outcome, Error> {
    let directory = plan.conditions.directory("client")?;
    for (name, text) in &client.files {
        let file = directory.join(name);
        let written = fs::write(&file, text);
        written.map_err(Error::machine(format!("writing {}", file.display())))?;
    }
    let command = plan.installations.expand(&client.command, &directory)?;
    let (program, own) = command.split_first().ok_or_else(|| Error::Plan("no command".into()))?;
    let spec = ProcessSpec {
        role: client.name.clone(),
        program: program.into(),
        args: own.iter().cloned().chain(arguments).map(Into::into).collect(),
        env: Vec::new(),
        ready: NEVER,
    };
    let printed = run_to_end(&spec, &directory, within)?;
    let outcome = printed.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    outcome.ok_or_else(|| Error::Target {
        action: format!("reading by {}", client.name),
        reason: format!("it has printed no outcome: {printed}"),
    })
}

/// Topics that one request creates.
const TOPICS_AT_A_TIME: usize = 100;
