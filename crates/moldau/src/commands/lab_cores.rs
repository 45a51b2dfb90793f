//! `moldau lab size`, and the load that it and `moldau lab cores` are asked about.

use std::path::Path;

use anyhow::{Context, ensure};
use moldau_lab::checks::Verdict;
use moldau_lab::page::{self, Extent};
use moldau_lab::pages;
use moldau_lab::result::RunResult;
use moldau_lab::sizing::Load;

use super::lab_answer;
use crate::arguments::{LoadOptions, SizeOptions};

/// What `moldau lab size` prints.
///
/// # Errors
/// The file is no result of `moldau lab cores` whose figures hold, or the load cannot be.
pub(super) fn size(options: &SizeOptions) -> anyhow::Result<String> {
    let load = load(&options.load)?;
    let mut result = read(&options.from)?;
    let verdict = result.verdict;
    ensure!(
        matches!(verdict, Verdict::Ok | Verdict::ObjectiveFailed),
        "the figures of {} do not hold; measure again with: moldau lab cores",
        options.from.display()
    );
    let seed = result.seed;
    let record = result.sizing.as_mut().with_context(|| {
        format!("{} is not a result of moldau lab cores", options.from.display())
    })?;
    record.load = load;
    if !options.json {
        let page = pages::page(&result)?;
        return Ok(page::terminal(&page, "", lab_answer::width(), Extent::Short));
    }
    let findings = record.findings(seed);
    let answers = findings.iter().map(|finding| (finding.arm.as_str(), &finding.answer));
    let answers: serde_json::Map<_, _> = answers
        .map(|(arm, answer)| Ok((arm.to_owned(), serde_json::to_value(answer)?)))
        .collect::<anyhow::Result<_>>()?;
    let document =
        serde_json::json!({ "from": result.id, "load": record.load, "answers": answers });
    Ok(document.to_string())
}

/// The result document of a file, or of `result.json` in a directory.
fn read(path: &Path) -> anyhow::Result<RunResult> {
    let file = if path.is_dir() { path.join("result.json") } else { path.to_owned() };
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    RunResult::from_json(&text).with_context(|| file.display().to_string())
}

/// The load that is asked for.
///
/// # Errors
/// It cannot be.
pub(super) fn load(options: &LoadOptions) -> anyhow::Result<Load> {
    let load = Load {
        produce_bytes_per_second: options.produce,
        record_bytes: options.record,
        batch_bytes: options.batch,
        groups: options.groups,
        partitions: u32::from(options.topics) * u32::from(options.partitions),
        batches_per_request: options.batches_per_request,
        batches_per_fetch: options.batches_per_fetch,
    };
    load.check()?;
    Ok(load)
}
