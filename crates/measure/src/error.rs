//! Errors that prevent a measurement.

use std::io;

/// Everything that can keep the laboratory from finishing a measurement. A run that finishes but
/// cannot be trusted has a verdict that says so, and is no error.
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
    #[error("{system} was not ready after {seconds} s{}", said(output))]
    NotReady {
        /// The role of the process.
        system: String,
        /// How long it was waited for.
        seconds: u64,
        /// The end of its output, whose file may go with the run.
        output: String,
    },
    /// A system under test ended by itself.
    #[error("{system} ended with {status}{}", said(output))]
    Ended {
        /// The role of the process.
        system: String,
        /// Its exit status in words.
        status: String,
        /// The end of its output, whose file may go with the run.
        output: String,
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
    /// It without the output of a system, for where there is room for a line.
    pub fn brief(&self) -> String {
        match self {
            Self::Ended { system, status, .. } => format!("{system} ended with {status}"),
            Self::NotReady { system, seconds, .. } => {
                format!("{system} was not ready after {seconds} s")
            }
            error => error.to_string(),
        }
    }

    /// Wraps an operating-system error with what was being done.
    pub fn machine(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |source| Self::Machine { action, source }
    }
}

/// Lines of a system's output that an error shows.
const LINES_SHOWN: usize = 12;

/// The end of a system's output, without what would steer a terminal.
fn said(output: &str) -> String {
    let lines: Vec<&str> = output.lines().filter(|line| !line.trim().is_empty()).collect();
    if lines.is_empty() {
        return " and said nothing".into();
    }
    let shown = lines.iter().skip(lines.len().saturating_sub(LINES_SHOWN));
    let line = |line: &&str| format!("\n  {}", line.replace(char::is_control, " ").trim_end());
    shown.map(line).fold("; the last that it said:".into(), |text, line| text + &line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_the_output_is_shown_without_control_characters() {
        let ended = |output: &str| {
            let (system, status) = ("broker".into(), "exit status: 1".into());
            Error::Ended { system, status, output: output.into() }.to_string()
        };
        assert_eq!(ended("\n"), "broker ended with exit status: 1 and said nothing");
        let output: String = (0..20).map(|number| format!("line {number}\x1b[2J\n\n")).collect();
        let told = ended(&output);
        assert!(
            told.starts_with("broker ended with exit status: 1; the last that it said:\n  line 8")
        );
        assert!(told.ends_with("\n  line 19 [2J") && !told.contains('\x1b'), "{told}");
    }
}
