//! The fronts of an experiment: what stands between the clients and one broker, each started as a
//! process of its own and reached as an arm of its own.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;

use super::bench::Path;
use super::control::Control;
use super::rounds::Subject;
use crate::error::Error;
use crate::resources::Resources;
use crate::result::Arm;
use crate::systems::{
    FrontAddresses, Kroxylicious, LabKey, Process, bare_relay, free_addresses, kroxylicious_proxy,
    moldau_proxy,
};

/// What may stand between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Front {
    /// Nothing.
    Direct,
    /// A bare TCP relay.
    Relay,
    /// Our proxy without a filter.
    Passthrough,
    /// Our proxy with record encryption.
    Encryption,
    /// Kroxylicious without a filter.
    Kroxylicious,
    /// Kroxylicious with record encryption.
    KroxyliciousEncryption,
}

impl Front {
    /// All of them, in the order of tables.
    pub const ALL: [Self; 6] = [
        Self::Direct,
        Self::Relay,
        Self::Passthrough,
        Self::Encryption,
        Self::Kroxylicious,
        Self::KroxyliciousEncryption,
    ];

    /// Name of its arm.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Relay => "relay",
            Self::Passthrough => "passthrough",
            Self::Encryption => "encryption",
            Self::Kroxylicious => "kroxylicious",
            Self::KroxyliciousEncryption => "kroxylicious-encryption",
        }
    }

    /// Whether it is Kroxylicious, which has to be fetched first.
    #[must_use]
    pub fn is_kroxylicious(self) -> bool {
        matches!(self, Self::Kroxylicious | Self::KroxyliciousEncryption)
    }

    /// Whether it seals values.
    #[must_use]
    pub fn is_encrypting(self) -> bool {
        matches!(self, Self::Encryption | Self::KroxyliciousEncryption)
    }

    /// What the arm is, for people.
    fn description(self, plan: &FrontPlan) -> String {
        let version = plan.kroxylicious.as_ref().and_then(Kroxylicious::version);
        let kroxylicious = format!("Kroxylicious {}", version.unwrap_or_default());
        let key = "one key encryption key for all topics, in memory";
        let behind = match self {
            Self::Direct => return "client to broker over loopback".into(),
            Self::Relay => {
                "a bare TCP relay, two threads per connection that read and write; the client \
                 reaches the broker through it whatever it advertises"
                    .into()
            }
            Self::Passthrough => "moldau proxy without a filter".into(),
            Self::Encryption => format!("moldau proxy with record_encryption, {key}"),
            Self::Kroxylicious => format!("{kroxylicious} without a filter, 512 MiB heap"),
            Self::KroxyliciousEncryption => {
                format!("{kroxylicious} with RecordEncryption, {key}, 512 MiB heap")
            }
        };
        format!("the same broker behind {behind}")
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What fronts are started from.
#[derive(Clone, Debug)]
pub struct FrontPlan {
    /// The `moldau` executable.
    pub moldau: PathBuf,
    /// Where Kroxylicious lies, if it is there.
    pub kroxylicious: Option<Kroxylicious>,
    /// Below it each front gets a directory of its own; must exist.
    pub work_directory: PathBuf,
    /// Where the broker listens.
    pub upstream: SocketAddr,
    /// Its node id.
    pub node: u16,
    /// Role and process id of the broker, which is measured in every arm.
    pub broker: (String, u32),
    /// Seed of the key encryption key.
    pub seed: u64,
}

/// A front that runs, ended when it is dropped.
pub(super) struct RunningFront {
    path: Path,
    description: String,
    /// None stands before the broker in [`Front::Direct`].
    process: Option<Process>,
}

impl Front {
    /// Starts the front and waits until it is ready.
    ///
    /// # Errors
    /// [`Error::Plan`] for Kroxylicious where it is not there, otherwise as [`Process::start`].
    pub(super) fn start(self, plan: &FrontPlan) -> Result<RunningFront, Error> {
        let process = self.process(plan)?;
        let (bootstrap, process) = match process {
            None => (plan.upstream, None),
            Some((bootstrap, process)) => (bootstrap, Some(process)),
        };
        let mut processes = vec![plan.broker.clone()];
        processes.extend(process.iter().map(|process| (process.role().into(), process.pid())));
        let path = Path {
            arm: self.name().into(),
            bootstrap: bootstrap.to_string(),
            bootstrap_only: self == Self::Relay,
            control: Control::new(&plan.upstream.to_string())?,
            processes,
        };
        Ok(RunningFront { path, description: self.description(plan), process })
    }

    fn process(self, plan: &FrontPlan) -> Result<Option<(SocketAddr, Process)>, Error> {
        let [bootstrap, broker, admin] = free_addresses()?;
        let addresses = FrontAddresses { bootstrap, broker, admin };
        let directory = plan.work_directory.join(self.name());
        std::fs::create_dir_all(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        let key = self.is_encrypting().then(|| LabKey::of(plan.seed));
        let upstream = plan.upstream;
        let spec = match self {
            Self::Direct => return Ok(None),
            Self::Relay => bare_relay(&plan.moldau, bootstrap, upstream),
            Self::Passthrough | Self::Encryption => {
                moldau_proxy(&plan.moldau, &directory, addresses, upstream, key)?
            }
            Self::Kroxylicious | Self::KroxyliciousEncryption => {
                let absent = || Error::Plan(format!("Kroxylicious is not there for arm {self}"));
                let installation = plan.kroxylicious.as_ref().ok_or_else(absent)?;
                kroxylicious_proxy(installation, &directory, addresses, upstream, plan.node, key)?
            }
        };
        Ok(Some((bootstrap, Process::start(&spec, &directory)?)))
    }
}

impl RunningFront {
    /// Its arm, with what it holds at this moment.
    pub(super) fn arm(&self) -> Arm {
        let idle = self.idle_memory();
        Arm { idle, ..Arm::of(&self.path.arm, self.description.as_str()) }
    }

    /// What it holds at this moment: what it needs when idle, if it has rested after its start and
    /// nothing has passed through it. None for [`Front::Direct`].
    pub(super) fn idle_memory(&self) -> Option<Resources> {
        self.process.as_ref().and_then(|process| Resources::of(process.pid()))
    }

    /// Asks it to end and waits.
    ///
    /// # Errors
    /// [`Error::Machine`] when the operating system refuses.
    pub(super) fn stop(self) -> Result<(), Error> {
        self.process.map_or(Ok(()), |process| process.stop().map(|_| ()))
    }
}

impl Subject for RunningFront {
    fn path(&self) -> &Path {
        &self.path
    }

    fn check(&mut self) -> Result<(), Error> {
        self.process.as_mut().map_or(Ok(()), Process::check_alive)
    }
}
