//! The arguments of `moldau lab worker`, and of experiments with workers.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Load workers.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkersOptions {
    /// Workers that generate the load together, instead of this process [default: none].
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', requires = "token_file")]
    pub(crate) workers: Vec<String>,
    /// File with the token of the workers.
    #[arg(long, value_name = "FILE", requires = "workers")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerOptions {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// File with one line: a token of at least 32 random characters, which clients must know.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// Exit after the first completed experiment.
    #[arg(long)]
    pub(crate) once: bool,
}
