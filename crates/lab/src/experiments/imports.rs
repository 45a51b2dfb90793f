//! Outputs of other tools as a result document, for reports and comparisons.

mod page;

use crate::checks::{Check, Weight};
use crate::environment::Environment;
use crate::imported::{ImportedRecord, Output};
use crate::result::{Arm, Experiment, RunResult};
use moldau_measure::Error;

pub use page::page;
#[cfg(test)]
pub(crate) use page::tests::sample as imported_sample;

/// A result document of imported outputs. Nothing was audited, and the machine is not known.
///
/// # Errors
/// [`Error::Output`] where there are none.
pub fn result(
    outputs: Vec<Output>,
    version: &str,
    measured_unix_ms: u64,
) -> Result<RunResult, Error> {
    if outputs.is_empty() {
        return Err(Error::Output("there is nothing to import".into()));
    }
    let mut arms: Vec<Arm> = Vec::new();
    for output in &outputs {
        if arms.iter().all(|arm| arm.name != output.arm) {
            arms.push(Arm::of(&output.arm, format!("as reported by {}", output.tool.name())));
        }
    }
    let checks = warnings(&outputs);
    let experiment = Experiment::Imported(ImportedRecord { outputs });
    let environment = Environment { binary_version: version.into(), ..Environment::default() };
    Ok(RunResult { arms, ..RunResult::bare(experiment, measured_unix_ms, environment, checks) })
}

/// Each warning once, as a note with the files that it is about.
fn warnings(outputs: &[Output]) -> Vec<Check> {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for output in outputs {
        for warning in &output.warnings {
            match found.iter_mut().find(|(known, _)| known == warning) {
                Some((_, files)) => files.push(&output.file),
                None => found.push((warning, vec![&output.file])),
            }
        }
    }
    let note = |(warning, files): (&str, Vec<&str>)| Check {
        name: warning.into(),
        passed: false,
        weight: Weight::Note,
        found: files.join(", "),
        demanded: "to be considered in comparisons".into(),
    };
    found.into_iter().map(note).collect()
}
