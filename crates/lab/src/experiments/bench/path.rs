//! Paths to systems, as loads and accounts take them.

use std::net::SocketAddr;

use crate::experiments::control::Control;
use crate::systems::RunningSystem;
use moldau_load::generator::Clients;
use moldau_measure::Error;
use moldau_measure::profile::Profiled;

/// One path to one system.
pub(in crate::experiments) struct Path {
    /// Name of the arm.
    pub(in crate::experiments) arm: String,
    /// Where clients connect.
    pub(in crate::experiments) bootstrap: String,
    /// How they connect, and what they should see.
    pub(in crate::experiments) clients: Clients,
    /// Administration of the same cluster.
    pub(in crate::experiments) control: Control,
    /// Measured processes by role.
    pub(in crate::experiments) processes: Vec<(String, u32)>,
    /// Admin ports of those that have one, by process id.
    pub(in crate::experiments) admin_ports: Vec<(u32, SocketAddr)>,
}

impl Path {
    /// The path to a cluster at its advertised addresses, administered through itself.
    pub(in crate::experiments) fn to(
        arm: &str,
        bootstrap: String,
        processes: Vec<(String, u32)>,
    ) -> Result<Self, Error> {
        let control = Control::new(&bootstrap)?;
        Ok(Self {
            arm: arm.into(),
            bootstrap,
            clients: Clients::default(),
            control,
            processes,
            admin_ports: Vec::new(),
        })
    }

    /// Its processes, as profiles are taken of them.
    pub(super) fn profiled(&self) -> Vec<Profiled> {
        let profiled = self.processes.iter().map(|(role, pid)| {
            let port = self.admin_ports.iter().find(|(of, _)| of == pid);
            Profiled { role: role.clone(), pid: *pid, admin: port.map(|(_, port)| *port) }
        });
        profiled.collect()
    }

    /// The same to a system that was started from its file, over connections as it says.
    pub(in crate::experiments) fn to_system(
        arm: &str,
        system: &RunningSystem,
    ) -> Result<Self, Error> {
        let (bootstrap, security) = (system.bootstrap().to_string(), system.security().clone());
        let is_lasting = system.brokers() == 0;
        let control = Control::secured(&bootstrap, security.clone())?.lasting(is_lasting);
        let credentials = Some(system.credentials().clone());
        let bootstrap_only = system.bootstrap_only();
        let clients = Clients { security, credentials, bootstrap_only, ..Clients::default() };
        Ok(Self {
            arm: arm.into(),
            bootstrap,
            clients,
            control,
            processes: system.accounted(),
            admin_ports: system.admin_ports(),
        })
    }
}
