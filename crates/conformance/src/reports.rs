//! Reports of the laboratory, made anew from published results and opened in a real browser.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::check::Check;
use crate::peers::Peers;
use crate::process::Process;

/// Largest report, bytes: a page that is sent as an attachment.
const REPORT_BYTES_MAX: u64 = 2_000_000;

/// How long a browser may take for all reports.
const TIMEOUT: Duration = Duration::from_mins(3);

/// Makes the report of every result below `results` in `directory`, and opens each in the browser.
///
/// # Errors
/// When a program cannot be run, or there is no result.
pub fn run(binary: &Path, peers: &Peers, results: &Path, directory: &Path) -> Result<Vec<Check>> {
    let mut checks = Vec::new();
    let mut pages = Vec::new();
    for result in results_below(results)? {
        let name = result.file_name().context("a result stands in a directory")?;
        let copy = directory.join(name);
        fs::create_dir(&copy)?;
        fs::copy(result.join("result.json"), copy.join("result.json"))?;
        let mut report = Command::new(binary);
        report.args(["lab", "report"]).arg(&copy);
        let made = Process::run(report, "moldau-lab-report", directory, "", TIMEOUT)?;
        let page = copy.join("report.html");
        let bytes = fs::metadata(&page)
            .map(|page| page.len())
            .with_context(|| format!("{} has no report: {}", name.display(), made.explanation()))?;
        checks.push(Check::new(
            &format!("{}: is at most 2 MB", name.display()),
            bytes <= REPORT_BYTES_MAX,
            &format!("{bytes} bytes"),
        ));
        pages.push(page);
    }
    ensure!(!pages.is_empty(), "no result below {}", results.display());
    let mut browser = peers.browser_command();
    browser.args(&pages);
    let browser = Process::run(browser, "browser", directory, "", TIMEOUT)?;
    ensure!(browser.success(), "{}", browser.explanation());
    checks.extend(Check::parse_lines(&browser.stdout)?);
    Ok(checks)
}

/// Directories with a `result.json`, in the order of their names.
fn results_below(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut found: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .filter(|path| path.as_ref().map_or(true, |path| path.join("result.json").is_file()))
        .collect::<Result<_>>()?;
    found.sort();
    Ok(found)
}
