//! Systems under test, described in files: their processes, and how each is started, checked for
//! readiness, stopped and accounted.
//!
//! Texts of a file may hold variables, each known when the system is started:
//!
//! | variable | stands for |
//! |---|---|
//! | `${address.NAME}`, `${port.NAME}` | a free loopback address of that name, and its port |
//! | `${dir}` | the directory of the process, made for it and empty |
//! | `${temporary}` | a directory of the system that other users can look into |
//! | `${secret}` | a random word, the same in the whole system |
//! | `${moldau}`, `${java}` | executables |
//! | `${kafka}`, `${kafka-zookeeper}` | class paths of Apache Kafka, and of one with ZooKeeper |
//! | `${kroxylicious}` | directory of Kroxylicious |
//! | `${certificates}` | directory of [`FrontFiles`], made for the system |
//! | `${external}` | where a cluster is that runs already |

mod installations;
mod links;
mod running;
mod told;

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::temporary::TemporaryDirectory;
use super::{FrontFiles, Process, ProcessSpec, Ready, free_addresses, prepare};
use moldau_load::security::SecurityFile;
use moldau_measure::Error;

pub use installations::Installations;
pub use links::{LinkEnd, LinkFile};
pub use running::RunningSystem;

/// Role of the processes that keep records.
const BROKER_ROLE: &str = "broker";

/// Roles of what brokers stand on.
const DATABASE_ROLE: &str = "database";
const STORE_ROLE: &str = "store";

/// What the role of a process may be.
const ROLES: [&str; 4] = [BROKER_ROLE, "proxy", DATABASE_ROLE, STORE_ROLE];

/// Where the broker of a system keeps its data, if it may fail.
const DATA_DIRECTORY: &str = "${dir}/data";

/// Most processes of a system: three brokers with a proxy before each, and some to spare.
const PROCESSES_MAX: usize = 8;

/// Most addresses of a system: each process has a few.
const ADDRESSES_MAX: usize = 32;

/// Longest wait for a process to end: what needs more has to be killed.
const STOP_WITHIN_MS_MAX: u64 = 60_000;

/// The variables that have no name of the file's own.
const PLAIN_VARIABLES: [&str; 11] = [
    "dir",
    TEMPORARY,
    "secret",
    "moldau",
    "java",
    "kafka",
    "kafka-zookeeper",
    "kroxylicious",
    "stream-consumer",
    CERTIFICATES,
    "external",
];

/// Seed of the key encryption key among the files; what proxies of system files encrypt is nothing.
const KEY_SEED: u64 = 1;

/// The variable of the directory of certificates, which is made where a file speaks of it.
const CERTIFICATES: &str = "certificates";

/// The variable of the directory that other users can look into, made in the same way.
const TEMPORARY: &str = "temporary";

/// What begins a variable that has one.
const NAMED_VARIABLES: [&str; 2] = ["address.", "port."];

/// A system, as its file says.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SystemFile {
    /// What it is, for people.
    pub description: String,
    /// Where clients connect.
    pub bootstrap: String,
    /// How they secure their connections.
    #[serde(default)]
    pub security: SecurityFile,
    /// Whether clients reach every broker at the first address, since what stands there rewrites
    /// none.
    #[serde(default)]
    pub bootstrap_only: bool,
    /// Brokers that the cluster has before it counts as started.
    #[serde(default = "one_broker")]
    pub brokers: u16,
    /// Whether it keeps records, so that they can be read back.
    #[serde(default = "keeps_records")]
    pub keeps_records: bool,
    /// What makes it acknowledge without waiting for flushes, if it does.
    #[serde(default)]
    pub without_flush: Vec<Replacement>,
    /// Its processes, in the order in which they are started; none for a cluster that runs already.
    #[serde(default)]
    pub processes: Vec<ProcessFile>,
    /// Connections between its parts that can be disturbed. The laboratory carries them itself, so
    /// nothing is measured of such a system.
    #[serde(default)]
    pub links: Vec<LinkFile>,
}

fn one_broker() -> u16 {
    1
}

fn keeps_records() -> bool {
    true
}

/// A placeholder for a text in commands and files. Plans print it as they print those.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replacement {
    /// The text.
    pub text: String,
    /// What stands in its place.
    pub by: String,
}

/// One process of a system. An experiment's plan lists files, environment and arguments by their
/// SHA-256: they may hold passwords, and the plan is kept beside the result.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessFile {
    /// Its name, which its directory has too.
    pub name: String,
    /// What its processor time is accounted as: `broker`, `proxy`, `database` or `store`.
    pub role: String,
    /// Texts written to its directory before it starts, by file name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Commands that run to their end before it starts, each a program and its arguments.
    #[serde(default)]
    pub prepare: Vec<Vec<String>>,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Command that lets a standby take the place of the database; none of others.
    #[serde(default)]
    pub promote: Vec<String>,
    /// Environment variables on top of the inherited ones.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// How it shows that it is ready.
    pub ready: ReadyFile,
    /// How it is ended.
    #[serde(default)]
    pub stop: Stop,
}

/// How a process shows that it is ready.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadyFile {
    /// This address accepts a connection.
    Tcp(String),
    /// `IP:PORT/PATH` answers a GET with status 200.
    Http(String),
    /// PostgreSQL takes sessions at this address.
    Postgres(String),
}

/// How a process is ended: by a signal, and by SIGKILL if it is still there after a time.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Stop {
    /// The signal.
    pub signal: StopSignal,
    /// The time, ms.
    pub within_ms: u64,
}

impl Default for Stop {
    fn default() -> Self {
        Self { signal: StopSignal::Term, within_ms: 10_000 }
    }
}

/// A signal that asks a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopSignal {
    /// SIGTERM.
    Term,
    /// SIGINT.
    Int,
    /// SIGQUIT.
    Quit,
    /// SIGKILL.
    Kill,
}

impl SystemFile {
    /// Refuses what cannot be started.
    ///
    /// # Errors
    /// [`Error::Plan`], naming the process.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |text: String| Err(Error::Plan(text));
        if self.processes.len() > PROCESSES_MAX {
            return refuse(format!("processes: at most {PROCESSES_MAX} of them"));
        }
        for (at, process) in self.processes.iter().enumerate() {
            let name = &process.name;
            let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-';
            if name.is_empty() || !name.chars().all(is_word) {
                let problem = "has characters that are not letters or digits";
                return refuse(format!("processes.name: {name:?} {problem}"));
            }
            if self.processes.iter().take(at).any(|other| other.name == *name) {
                return refuse(format!("processes.name: {name:?} is there twice"));
            }
            if !ROLES.contains(&process.role.as_str()) {
                let (role, roles) = (&process.role, ROLES.join(", "));
                return refuse(format!("process {name}: role: {role:?} is not one of {roles}"));
            }
            if process.command.is_empty() || process.prepare.iter().any(Vec::is_empty) {
                return refuse(format!("process {name}: a command has a program at least"));
            }
            if process.files.keys().any(|file| Path::new(file).file_name() != Some(file.as_ref())) {
                return refuse(format!("process {name}: files: a name is no path"));
            }
            if process.stop.within_ms > STOP_WITHIN_MS_MAX {
                return refuse(format!(
                    "process {name}: stop.within_ms: {STOP_WITHIN_MS_MAX} at most"
                ));
            }
        }
        self.check_links()?;
        self.security.check()?;
        match self.address_names().len() {
            0..=ADDRESSES_MAX => Ok(()),
            _ => refuse(format!("at most {ADDRESSES_MAX} names of addresses")),
        }
    }

    /// The system with texts replaced in the commands and files of its processes; `None` where one
    /// of them stands nowhere, or there is none.
    #[must_use]
    pub fn replaced(&self, replacements: &[Replacement]) -> Option<Self> {
        let mut system = self.clone();
        for Replacement { text, by } in replacements {
            let mut found = false;
            for process in &mut system.processes {
                for place in process.command.iter_mut().chain(process.files.values_mut()) {
                    found |= place.contains(text);
                    *place = place.replace(text, by);
                }
            }
            if !found {
                return None;
            }
        }
        (!replacements.is_empty()).then_some(system)
    }

    /// The first variable of the file that is none, as it stands there, and the known ones.
    #[must_use]
    pub fn unknown_variable(&self) -> Option<(String, Vec<String>)> {
        let is_known = |name: &str| {
            PLAIN_VARIABLES.contains(&name) || NAMED_VARIABLES.iter().any(|it| has_name(name, it))
        };
        let texts = self.texts();
        let unknown = texts.iter().flat_map(|text| variables(text)).find(|name| !is_known(name))?;
        let names = self.address_names();
        let named = names.iter().flat_map(|name| NAMED_VARIABLES.map(|it| format!("{it}{name}")));
        let known = PLAIN_VARIABLES.iter().map(ToString::to_string).chain(named);
        Some((unknown.to_string(), known.collect()))
    }

    /// What the system needs and is not there, in words.
    #[must_use]
    pub fn missing(&self, installations: &Installations) -> Option<&'static str> {
        installations.missing(&self.texts())
    }

    /// The directory below that of the system in which its first broker keeps its data, if its
    /// file says so.
    #[must_use]
    pub fn data_directory(&self) -> Option<PathBuf> {
        let broker = self.processes.iter().find(|process| process.role == BROKER_ROLE)?;
        let texts = broker.files.values().chain(&broker.command);
        let is_there = texts.into_iter().any(|text| text.contains(DATA_DIRECTORY));
        is_there.then(|| Path::new(&broker.name).join("data"))
    }

    /// The processes of the role broker.
    pub(crate) fn broker_files_mut(&mut self) -> impl Iterator<Item = &mut ProcessFile> {
        self.processes.iter_mut().filter(|process| process.role == BROKER_ROLE)
    }

    /// Whether its brokers stand on a database and a store, as those of a cluster of ours.
    #[must_use]
    pub fn is_on_services(&self) -> bool {
        let has = |role| self.processes.iter().any(|process| process.role == role);
        has(DATABASE_ROLE) && has(STORE_ROLE)
    }

    /// Whether any text holds this variable.
    fn needs(&self, name: &str) -> bool {
        self.texts().into_iter().any(|text| variables(text).any(|it| it == name))
    }

    /// Starts the processes one after the other below `directory`, which must exist.
    ///
    /// # Errors
    /// [`Error::Plan`] for a variable that is not known or whose installation is not there, and for
    /// a command that leaves the work to processes that it starts; otherwise as [`Process::start`].
    pub fn start(
        &self,
        installations: &Installations,
        directory: &Path,
    ) -> Result<RunningSystem, Error> {
        self.check()?;
        let certificates = if self.needs(CERTIFICATES) {
            Some(FrontFiles::make(&directory.join(CERTIFICATES), KEY_SEED)?)
        } else {
            None
        };
        let temporary = match self.needs(TEMPORARY) {
            true => Some(TemporaryDirectory::make()?),
            false => None,
        };
        let mut scope = Scope {
            installations,
            addresses: self.addresses()?,
            directory: None,
            temporary: temporary.as_ref().map(|it| it.path().display().to_string()),
            secret: format!("{:032x}", fastrand::u128(..)),
            certificates: certificates.map(|files| files.directory().display().to_string()),
        };
        let bootstrap = scope.expand(&self.bootstrap)?;
        let credentials = self.security.read(&|text| scope.expand(text))?;
        let security = credentials.security()?;
        let links = self.start_links(&|text| scope.expand(text))?;
        let mut running = RunningSystem {
            bootstrap,
            bootstrap_only: self.bootstrap_only,
            security,
            credentials,
            processes: Vec::new(),
            links,
            promotion: None,
            _temporary: temporary,
        };
        for file in &self.processes {
            let own = directory.join(&file.name);
            fs::create_dir_all(&own)
                .map_err(Error::machine(format!("making {}", own.display())))?;
            scope.directory = Some(own.display().to_string());
            running.processes.push((file.start(&scope, &own)?, file.stop));
            if !file.promote.is_empty() {
                running.promotion = Some((scope.expand_all(&file.promote)?, own));
            }
        }
        Ok(running)
    }

    fn addresses(&self) -> Result<BTreeMap<String, SocketAddr>, Error> {
        let names = self.address_names();
        Ok(names.into_iter().zip(free_addresses::<ADDRESSES_MAX>()?).collect())
    }

    fn address_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for text in self.texts() {
            for name in variables(text) {
                let stripped = NAMED_VARIABLES.iter().find_map(|prefix| name.strip_prefix(prefix));
                if let Some(name) = stripped
                    && !names.iter().any(|known| known == name)
                {
                    names.push(name.to_string());
                }
            }
        }
        names
    }

    /// Every text that may hold variables.
    fn texts(&self) -> Vec<&str> {
        let mut texts = vec![self.bootstrap.as_str()];
        texts.extend(self.security.texts());
        texts.extend(self.links.iter().flat_map(|link| [link.listen.as_str(), &link.to]));
        texts.extend(self.links.iter().filter_map(|link| link.then_to.as_deref()));
        for process in &self.processes {
            texts.extend(process.promote.iter().map(String::as_str));
            let (ReadyFile::Tcp(ready) | ReadyFile::Http(ready) | ReadyFile::Postgres(ready)) =
                &process.ready;
            texts.push(ready);
            texts.extend(process.files.values().map(String::as_str));
            texts.extend(process.prepare.iter().flatten().map(String::as_str));
            texts.extend(process.command.iter().map(String::as_str));
            texts.extend(process.environment.values().map(String::as_str));
        }
        texts
    }
}

impl ProcessFile {
    fn start(&self, scope: &Scope<'_>, directory: &Path) -> Result<Process, Error> {
        for (name, text) in &self.files {
            let path = directory.join(name);
            write_secret(&path, &scope.expand(text)?)
                .map_err(Error::machine(format!("writing {}", path.display())))?;
        }
        for command in &self.prepare {
            self.prepare(&scope.expand_all(command)?, directory)?;
        }
        let mut command = scope.expand_all(&self.command)?.into_iter();
        let program = command.next().unwrap_or_default();
        let environment = self.environment.iter();
        let spec = ProcessSpec {
            role: self.role.clone(),
            program: program.into(),
            args: command.map(Into::into).collect(),
            env: environment
                .map(|(name, value)| Ok((name.clone(), scope.expand(value)?)))
                .collect::<Result<_, Error>>()?,
            ready: self.ready.expand(scope)?,
        };
        let process = Process::start(&spec, directory)?;
        // PostgreSQL starts a process for each session.
        if self.role != DATABASE_ROLE {
            process.check_alone()?;
        }
        Ok(process)
    }

    fn prepare(&self, command: &[String], directory: &Path) -> Result<(), Error> {
        let Some((program, arguments)) = command.split_first() else { return Ok(()) };
        let role = format!("what prepares {}", self.name);
        prepare(role, program.as_ref(), arguments.iter().map(Into::into).collect(), directory)
    }
}

impl ReadyFile {
    fn expand(&self, scope: &Scope<'_>) -> Result<Ready, Error> {
        let address = |text: &str| links::address("ready", text);
        match self {
            Self::Tcp(text) => Ok(Ready::Tcp(address(&scope.expand(text)?)?)),
            Self::Postgres(text) => Ok(Ready::Postgres(address(&scope.expand(text)?)?)),
            Self::Http(text) => {
                let text = scope.expand(text)?;
                let (host, path) = text.split_once('/').unwrap_or((&text, ""));
                Ok(Ready::Http(address(host)?, format!("/{path}")))
            }
        }
    }
}

/// What variables stand for.
struct Scope<'a> {
    installations: &'a Installations,
    addresses: BTreeMap<String, SocketAddr>,
    /// Directory of the process; a system as such has none.
    directory: Option<String>,
    /// Directory of the system's certificates, if it has some.
    certificates: Option<String>,
    /// The directory that other users can look into, if it has one.
    temporary: Option<String>,
    secret: String,
}

impl Scope<'_> {
    fn expand_all(&self, texts: &[String]) -> Result<Vec<String>, Error> {
        texts.iter().map(|text| self.expand(text)).collect()
    }

    fn expand(&self, text: &str) -> Result<String, Error> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some((before, name, after)) = next_variable(rest) {
            expanded += before;
            expanded += &self.value(name)?;
            rest = after;
        }
        Ok(expanded + rest)
    }

    fn value(&self, name: &str) -> Result<String, Error> {
        let Installations {
            moldau,
            java,
            kafka,
            kafka_zookeeper,
            kroxylicious,
            stream_consumer,
            external,
        } = self.installations;
        let address = |prefix| self.addresses.get(name.strip_prefix(prefix)?);
        let value = match name {
            "dir" => self.directory.clone(),
            TEMPORARY => self.temporary.clone(),
            "secret" => Some(self.secret.clone()),
            "moldau" => Some(moldau.clone()),
            "java" => Some(java.clone()),
            "kafka" => kafka.clone(),
            "kafka-zookeeper" => kafka_zookeeper.clone(),
            CERTIFICATES => self.certificates.clone(),
            "kroxylicious" => kroxylicious.clone(),
            "stream-consumer" => stream_consumer.clone(),
            "external" => external.clone(),
            _ => address("address.")
                .map(ToString::to_string)
                .or_else(|| address("port.").map(|address| address.port().to_string())),
        };
        value.ok_or_else(|| Error::Plan(format!("${{{name}}} stands for nothing here")))
    }
}

/// Writes a file that only this user reads: it may hold passwords.
fn write_secret(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = fs::File::options();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// The names of the variables of a text.
fn variables(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (_, name, after) = next_variable(rest)?;
        rest = after;
        Some(name)
    })
}

/// The text before the next variable, its name, and the text after it.
fn next_variable(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once("${")?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

fn has_name(variable: &str, prefix: &str) -> bool {
    variable.strip_prefix(prefix).is_some_and(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    })
}

#[cfg(test)]
mod tests;
