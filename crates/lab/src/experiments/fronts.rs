//! The fronts of an experiment: what stands between the clients and one broker, each started as a
//! process of its own and reached as an arm of its own.

mod catalog;

use std::net::SocketAddr;
use std::path::PathBuf;

use moldau_client::Security;

use self::catalog::{Between, Gateway};
use super::bench::Path;
use super::control::Control;
use super::rounds::Subject;
use crate::result::Arm;
use crate::systems::{
    FrontAddresses, FrontFiles, Kroxylicious, LabKey, Process, ProcessSpec, bare_relay,
    free_addresses, kroxylicious_proxy, moldau_proxy,
};
use moldau_load::generator::Clients;
use moldau_measure::Error;
use moldau_measure::resources::Resources;

pub use self::catalog::Front;

/// What fronts are started from.
#[derive(Clone, Debug)]
pub struct FrontPlan {
    /// The `moldau` executable.
    pub moldau: PathBuf,
    /// Where Kroxylicious lies, if it is there.
    pub kroxylicious: Option<Kroxylicious>,
    /// Below it each front gets a directory of its own; must exist.
    pub work_directory: PathBuf,
    /// What their configurations name.
    pub files: FrontFiles,
    /// Where the broker listens.
    pub upstream: SocketAddr,
    /// Where it listens with TLS, if it does.
    pub upstream_tls: Option<SocketAddr>,
    /// Its node id.
    pub node: u16,
    /// Role and process id of the broker, which is measured in every arm.
    pub broker: (String, u32),
    /// Its admin port, by its process id.
    pub broker_admin: Option<(u32, SocketAddr)>,
    /// Seed of the key encryption key.
    pub seed: u64,
}

/// A front that runs, ended when it is dropped.
pub(super) struct RunningFront {
    front: Front,
    path: Path,
    description: String,
    files: FrontFiles,
    /// None stands before the broker in [`Front::DIRECT`].
    process: Option<Process>,
}

impl Front {
    /// The process that it is, whose configuration is written below the plan's directory; none for
    /// [`Front::DIRECT`].
    ///
    /// # Errors
    /// [`Error::Plan`] for Kroxylicious where it is not there and for a broker without TLS where
    /// that is needed, [`Error::Machine`] when a file cannot be written.
    pub fn spec(
        self,
        plan: &FrontPlan,
        addresses: FrontAddresses,
    ) -> Result<Option<ProcessSpec>, Error> {
        let directory = plan.work_directory.join(self.name());
        std::fs::create_dir_all(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        let spec = match self.between {
            Between::Nothing => return Ok(None),
            Between::Relay => bare_relay(&plan.moldau, addresses.bootstrap, plan.upstream),
            Between::Moldau(Gateway { upstream, keys, .. }) => {
                let [upstream, keys] = [upstream, keys].map(|text| plan.filled(text));
                moldau_proxy(&plan.moldau, &directory, addresses, &upstream?, &keys?)?
            }
            Between::Kroxylicious { sealing } => {
                let absent = || Error::Plan(format!("Kroxylicious is not there for arm {self}"));
                let installation = plan.kroxylicious.as_ref().ok_or_else(absent)?;
                let key = sealing.then(|| LabKey::of(plan.seed));
                let (upstream, node) = (plan.upstream, plan.node);
                kroxylicious_proxy(installation, &directory, addresses, upstream, node, key)?
            }
        };
        Ok(Some(spec))
    }

    /// Starts the front and waits until it is ready.
    ///
    /// # Errors
    /// As [`Front::spec`] and [`Process::start`].
    pub(super) fn start(self, plan: &FrontPlan) -> Result<RunningFront, Error> {
        let [bootstrap, broker, admin] = free_addresses()?;
        let spec = self.spec(plan, FrontAddresses { bootstrap, broker, admin })?;
        let bootstrap = if spec.is_some() { bootstrap } else { plan.upstream };
        let directory = plan.work_directory.join(self.name());
        let process = spec.map(|spec| Process::start(&spec, &directory)).transpose()?;
        let mut processes = vec![plan.broker.clone()];
        processes.extend(process.iter().map(|process| (process.role().into(), process.pid())));
        let front = process.as_ref().and_then(Process::admin_port);
        let admin_ports = plan.broker_admin.into_iter().chain(front).collect();
        let control = if self.renames_topics() { bootstrap } else { plan.upstream };
        let path = Path {
            arm: self.name().into(),
            bootstrap: bootstrap.to_string(),
            clients: Clients {
                bootstrap_only: self == Self::RELAY,
                security: plan.files.security(self.security())?,
                account: self.account(),
                ..Clients::default()
            },
            control: Control::new(&control.to_string())?,
            processes,
            admin_ports,
        };
        let description = self.description(plan);
        Ok(RunningFront { front: self, path, description, files: plan.files.clone(), process })
    }

    /// What the arm is, for people.
    fn description(self, plan: &FrontPlan) -> String {
        let behind = match self.between {
            Between::Nothing => return "client to broker over loopback".into(),
            Between::Relay => self.about.to_string(),
            Between::Moldau(_) => format!("moldau proxy {}", self.about),
            Between::Kroxylicious { .. } => {
                let version = plan.kroxylicious.as_ref().and_then(Kroxylicious::version);
                self.about.replace("$VERSION", &version.unwrap_or_default())
            }
        };
        format!("the same broker behind {behind}")
    }
}

impl FrontPlan {
    /// A text of the catalog with what its words stand for.
    fn filled(&self, text: &str) -> Result<String, Error> {
        let mut text = text
            .replace("$BROKER", &self.upstream.to_string())
            .replace("$FILES", &self.files.directory().display().to_string())
            .replace("$KEY_ID", LabKey::UUID)
            .replace("$KEY", LabKey::ALIAS);
        if text.contains("$TLS_BROKER") {
            let absent = || Error::Plan("the broker of this experiment has no TLS".into());
            text = text.replace("$TLS_BROKER", &self.upstream_tls.ok_or_else(absent)?.to_string());
        }
        Ok(text)
    }
}

impl RunningFront {
    /// Its arm, with what it holds at this moment.
    pub(super) fn arm(&self) -> Arm {
        let idle = self.idle_memory();
        Arm { idle, ..Arm::of(&self.path.arm, self.description.as_str()) }
    }

    /// What it holds at this moment: what it needs when idle, if it has rested after its start and
    /// nothing has passed through it. None for [`Front::DIRECT`].
    pub(super) fn idle_memory(&self) -> Option<Resources> {
        self.process.as_ref().and_then(|process| Resources::of(process.pid()))
    }

    /// Role and process id of what stands before the broker, if anything does.
    pub(super) fn measured(&self) -> Option<(String, u32)> {
        self.process.as_ref().map(|process| (process.role().to_string(), process.pid()))
    }

    /// What a client secures its first connection with: no session is left to resume.
    ///
    /// # Errors
    /// As [`FrontFiles::security`].
    pub(super) fn fresh_security(&self) -> Result<Security, Error> {
        self.files.security(self.front.security())
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
