//! What `moldau lab` does with results that exist: imports outputs of other tools, compares two
//! results, lays many over time, makes a reference page.

use std::path::{Component, Path, PathBuf};
use std::process::ExitCode;
use std::time::UNIX_EPOCH;

use anyhow::{Context, ensure};
use moldau_lab::compared::{self, Choice, compare};
use moldau_lab::experiments::imports;
use moldau_lab::imported::{OUTPUT_BYTES_MAX, read};
use moldau_lab::page::{self, Extent};
use moldau_lab::reference_page::reference_page;
use moldau_lab::result::RunResult;
use moldau_lab::{history, pages};

use super::lab_answer;
use crate::arguments::{
    CompareOptions, HistoryOptions, OutputOptions, PageOptions, ResultImportOptions,
};

/// Longest result document that is read: that of an experiment of an hour has some 10 MB.
const RESULT_BYTES_MAX: u64 = 1 << 30;

/// Most results of a history.
const RESULTS_MAX: usize = 10_000;

/// Seed of the intervals.
const SEED: u64 = 1;

/// Reads outputs of other tools as one result, whose time is that of the newest file.
pub(super) fn import(options: &ResultImportOptions) -> anyhow::Result<RunResult> {
    let mut outputs = Vec::new();
    let mut written_unix_ms = 0;
    for path in &options.files {
        let place = || path.display().to_string();
        let about = std::fs::metadata(path).with_context(place)?;
        ensure!(about.len() <= OUTPUT_BYTES_MAX as u64, "{}: is too large", path.display());
        let modified = about.modified().with_context(place)?;
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        written_unix_ms = written_unix_ms.max(u64::try_from(since.as_millis()).unwrap_or(0));
        let text = std::fs::read_to_string(path).with_context(place)?;
        let mut output = read(&place(), &text)?;
        let name = path.file_name().unwrap_or_default();
        output.file = name.to_string_lossy().into_owned();
        output.arm = options.arm.clone().unwrap_or(output.arm);
        output.case = options.case.clone().unwrap_or(output.case);
        outputs.push(output);
    }
    Ok(imports::result(outputs, env!("CARGO_PKG_VERSION"), written_unix_ms)?)
}

/// Gives an import another name where its own belongs to another result: files have the same time,
/// or an experiment began in that second.
pub(super) fn name_apart(result: &mut RunResult, output: &OutputOptions) -> anyhow::Result<()> {
    let (own, mut number) = (result.id.clone(), 1_u32);
    loop {
        let directory = output.directory(&result.id);
        let known = std::fs::read_to_string(directory.join("result.json")).ok();
        if !directory.exists() || known.is_some_and(|text| result.to_json().ok() == Some(text)) {
            return Ok(());
        }
        number = number.checked_add(1).context("too many imports of one second")?;
        result.id = format!("{own}-{number}");
    }
}

/// Compares two results.
pub(super) fn compare_two(options: &CompareOptions) -> anyhow::Result<ExitCode> {
    let pair = |names: &[String]| match names {
        [first, second] => Some([first.clone(), second.clone()]),
        _ => None,
    };
    let choice = Choice { cases: pair(&options.cases), arms: pair(&options.arms) };
    let (first, second) = (result(&options.first)?, result(&options.second)?);
    let compared = compare(&first, &second, &choice, SEED);
    let page = compared::page(&compared);
    print!("{}", page::terminal(&page, "", lab_answer::width(), Extent::Verbose));
    Ok(ExitCode::from(compared.verdict().exit_code()))
}

/// Lays the results of a directory over time.
pub(super) fn history_of(options: &HistoryOptions) -> anyhow::Result<ExitCode> {
    let place = options.dir.display();
    let entries = std::fs::read_dir(&options.dir).with_context(|| place.to_string())?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.with_context(|| place.to_string())?.path().join("result.json");
        if path.is_file() {
            paths.push(path);
        }
    }
    ensure!(!paths.is_empty(), "{place}: no subdirectory has a result.json");
    ensure!(paths.len() <= RESULTS_MAX, "{place}: more than {RESULTS_MAX} results");
    paths.sort();
    let results = paths.iter().map(|path| result(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let history = history::history(&results);
    let page = history::page(&history);
    let file = options.html.clone().unwrap_or_else(|| options.dir.join("history.html"));
    std::fs::write(&file, page::html(&page)).with_context(|| file.display().to_string())?;
    let report = file.display().to_string();
    print!("{}", page::terminal(&page, &report, lab_answer::width(), Extent::Verbose));
    Ok(ExitCode::SUCCESS)
}

/// Makes a reference page.
pub(super) fn page(options: &PageOptions) -> anyhow::Result<ExitCode> {
    let base = match &options.out {
        Some(out) => out.parent().unwrap_or(Path::new("")).to_owned(),
        None => PathBuf::new(),
    };
    let mut results = Vec::new();
    for path in &options.results {
        let file = file_of(path);
        let result = result(&file)?;
        let page = pages::page(&result)?;
        results.push((link(&base, &file)?, result, page));
    }
    let text = reference_page(&results);
    match &options.out {
        Some(out) => std::fs::write(out, text).with_context(|| out.display().to_string())?,
        None => print!("{text}"),
    }
    Ok(ExitCode::SUCCESS)
}

/// The result in a file, or in a directory's `result.json`.
fn result(path: &Path) -> anyhow::Result<RunResult> {
    let file = file_of(path);
    let place = || file.display().to_string();
    let bytes = std::fs::metadata(&file).with_context(place)?.len();
    ensure!(bytes <= RESULT_BYTES_MAX, "{}: is too large for a result", file.display());
    let text = std::fs::read_to_string(&file).with_context(place)?;
    RunResult::from_json(&text).with_context(place)
}

fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() { path.join("result.json") } else { path.to_owned() }
}

/// The relative path from a directory to a file; both are relative to the current directory.
fn link(base: &Path, file: &Path) -> anyhow::Result<String> {
    let absolute = |path: &Path| {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        std::fs::canonicalize(path).with_context(|| path.display().to_string())
    };
    let (base, file) = (absolute(base)?, absolute(file)?);
    let shared = base.components().zip(file.components()).take_while(|(one, other)| one == other);
    let shared = shared.count();
    let up = base.components().skip(shared).map(|_| Component::ParentDir);
    let way: PathBuf = up.chain(file.components().skip(shared)).collect();
    Ok(way.to_string_lossy().replace(' ', "%20"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_from_the_page_to_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let below = directory.path().join("docs/results/a b");
        std::fs::create_dir_all(&below).unwrap();
        std::fs::write(below.join("result.json"), "{}").unwrap();
        let file = below.join("result.json");
        let from = |base: &str| link(&directory.path().join(base), &file).unwrap();
        assert_eq!(from("docs"), "results/a%20b/result.json");
        std::fs::create_dir_all(directory.path().join("site/pages")).unwrap();
        assert_eq!(from("site/pages"), "../../docs/results/a%20b/result.json");
    }
}
