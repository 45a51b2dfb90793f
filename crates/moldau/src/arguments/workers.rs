//! The arguments of `moldau lab worker`, and of experiments whose loads workers offer.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

/// Who offers the loads.
#[derive(Args, Clone, Debug)]
pub(crate) struct WorkersOptions {
    /// Workers that offer the loads together, in place of this process [default: none].
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',', requires = "token_file")]
    pub(crate) workers: Vec<String>,
    /// File with the token that the workers were given.
    #[arg(long, value_name = "FILE", requires = "workers")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
pub(crate) struct WorkerOptions {
    /// Address to listen on.
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) listen: SocketAddr,
    /// File with a token of 32 random characters or more, in one line; only who has it is served.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: PathBuf,
    /// End with the first experiment that is carried through.
    #[arg(long)]
    pub(crate) once: bool,
}
