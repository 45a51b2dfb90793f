use std::io;
use std::path::PathBuf;

/// Everything that can keep the laboratory from finishing a measurement. A run that finishes but
/// cannot be trusted is a [`crate::checks::Verdict`], not an error.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The operator asked for something that cannot be measured.
    #[error("invalid plan: {0}")]
    Plan(String),
    /// The operator asked for records that cannot hold the payload header.
    #[error("a record of {bytes} bytes cannot hold the {bytes_min}-byte payload header")]
    RecordTooSmall {
        /// The size that was asked for.
        bytes: usize,
        /// Size of the header.
        bytes_min: usize,
    },
    /// The machine refused a file, a process or a socket.
    #[error("{action}: {source}")]
    Machine {
        /// What was being done, to what.
        action: String,
        /// The reason given by the operating system.
        source: io::Error,
    },
    /// A system under test did not open for business.
    #[error("{system} was not ready after {seconds} s; its output is in {}", log.display())]
    NotReady {
        /// The role of the process.
        system: String,
        /// How long it was waited for.
        seconds: u64,
        /// The file that holds its output.
        log: PathBuf,
    },
    /// A system under test ended by itself.
    #[error("{system} ended with {status}; its output is in {}", log.display())]
    Ended {
        /// The role of the process.
        system: String,
        /// Its exit status in words.
        status: String,
        /// The file that holds its output.
        log: PathBuf,
    },
    /// The system under test answered with an error, or not at all.
    #[error("{action}: {reason}")]
    Target {
        /// What was asked of it.
        action: String,
        /// Its answer.
        reason: String,
    },
    /// A worker, or the coordinator of one, was lost or is not what it should be.
    #[error("{peer}: {reason}")]
    Peer {
        /// Which one.
        peer: String,
        /// What became of it.
        reason: String,
    },
    /// Something else went wrong in the run that this was part of.
    #[error("the run was given up")]
    GivenUp,
    /// The output of another tool that cannot be read.
    #[error("{0}")]
    Output(String),
    /// A result document that this crate did not write, or of another format version.
    #[error("result document: {0}")]
    Document(String),
}

impl Error {
    /// Wraps an operating-system error with what was being done.
    pub(crate) fn machine(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Machine { action, source }
    }
}
