//! Our own broker.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use super::{ProcessSpec, Ready};
use moldau_measure::Error;

/// When the broker acknowledges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After the flush to the disk.
    #[default]
    Fsync,
    /// After handing the bytes to the operating system.
    Os,
}

impl Durability {
    /// As the broker's configuration calls it.
    fn name(self) -> &'static str {
        match self {
            Self::Fsync => "fsync",
            Self::Os => "os",
        }
    }
}

/// `moldau broker` with an empty data directory.
#[must_use]
pub fn moldau_broker(
    program: &Path,
    data_directory: &Path,
    listen: SocketAddr,
    admin: SocketAddr,
    durability: Durability,
) -> ProcessSpec {
    let mut spec = broker(program, data_directory, admin, durability);
    spec.args.extend(["--listen".into(), listen.to_string().into()]);
    spec
}

/// `moldau broker` with an empty data directory below `directory` and further keys of its
/// configuration, given as YAML lines, which say where it listens; the file is written to
/// `directory`.
///
/// # Errors
/// [`Error::Machine`] when the configuration cannot be written.
pub fn moldau_broker_configured(
    program: &Path,
    directory: &Path,
    admin: SocketAddr,
    durability: Durability,
    lines: &str,
) -> Result<ProcessSpec, Error> {
    let path = directory.join("broker.yaml");
    fs::write(&path, lines).map_err(Error::machine(format!("writing {}", path.display())))?;
    let mut spec = broker(program, &directory.join("data"), admin, durability);
    spec.args.extend(["--config".into(), path.into()]);
    Ok(spec)
}

fn broker(
    program: &Path,
    data_directory: &Path,
    admin: SocketAddr,
    durability: Durability,
) -> ProcessSpec {
    ProcessSpec {
        role: "broker".into(),
        program: program.into(),
        args: vec![
            "broker".into(),
            "--data-dir".into(),
            data_directory.into(),
            "--admin".into(),
            admin.to_string().into(),
            "--durability".into(),
            durability.name().into(),
        ],
        env: Vec::new(),
        ready: Ready::Http(admin, "/readyz".into()),
    }
}
