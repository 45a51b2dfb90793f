//! One module per subcommand.

use std::path::Path;

use crate::config::Sources;

pub(crate) mod broker;
pub(crate) mod broker_import;
pub(crate) mod cluster;
pub(crate) mod config_check;
pub(crate) mod consume;
mod experiment_file;
pub(crate) mod groups;
pub(crate) mod lab;
mod lab_answer;
mod lab_cores;
mod lab_directory;
mod lab_omb;
mod lab_questions;
mod lab_reader;
mod lab_results;
mod lab_self_test;
mod lab_sittings;
mod lab_workers;
pub(crate) mod produce;
pub(crate) mod proxy;
pub(crate) mod proxy_import;
pub(crate) mod proxy_keys;
pub(crate) mod repair;
pub(crate) mod run;
pub(crate) mod topics;
pub(crate) mod users;

mod reload;
mod session;
mod signals;
mod table;
mod watch;

/// Exit code of a service that failed.
const FAILED: i32 = 1;

/// Tells, as `process`, what an operator should know of a configuration that is valid.
fn tell_warnings(process: &str, path: Option<&Path>, sources: &Sources) {
    let place = path.map(|path| path.display().to_string()).unwrap_or_default();
    for warning in &sources.warnings {
        eprintln!("{process}: warning: {place}{warning}");
    }
}

/// The error and its causes, leaving out a cause that the text before it already tells.
pub(crate) fn one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.ends_with(&cause) {
            line = format!("{line}: {cause}");
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_printed_once() {
        let gone = || std::io::Error::other("no such file");
        let told = anyhow::Error::new(gone()).context("reading a: no such file").context("resume");
        assert_eq!(one_line(&told), "resume: reading a: no such file");
        assert_eq!(one_line(&anyhow::Error::new(gone()).context("a")), "a: no such file");
    }
}
