//! The page of each experiment's result, and the files of a result's directory.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use crate::details::{details, flames};
use crate::experiments::{
    ceiling, check, compression, cores, explain, faults, file, imports, latency, overhead,
    partitions, self_test, side_by_side, soak, storage, survey, threads,
};
use crate::logs;
use crate::page::{self, Chart, Link, Page};
use crate::result::{Experiment, RunResult};
use crate::survey::Asks;
use moldau_measure::Error;

/// File of the flame graphs beside a report.
const FLAMES: &str = "flames.html";

/// The page of a result.
///
/// # Errors
/// [`Error::Document`] when a histogram of the result cannot be read.
pub fn page(result: &RunResult) -> Result<Page, Error> {
    let mut page = of_experiment(result)?;
    page.details.extend(details(result));
    if flames(result).is_some() {
        page.links.push(Link { text: "flame graphs".into(), path: FLAMES.into() });
    }
    Ok(page)
}

fn of_experiment(result: &RunResult) -> Result<Page, Error> {
    Ok(match &result.experiment {
        Experiment::Overhead => overhead::page(result)?,
        Experiment::SideBySide => side_by_side::page(result)?,
        Experiment::Ceiling => ceiling::page(result),
        Experiment::File(question) => file::page(result, question)?,
        Experiment::Survey(record) => match &record.asks {
            Some(Asks::Latency(_)) => latency::page(result, record)?,
            Some(Asks::Compression(asked)) => compression::page(result, record, asked),
            None => survey::page(result, record),
        },
        Experiment::Partitions => partitions::page(result),
        Experiment::Storage => storage::page(result)?,
        Experiment::SelfTest(test) => self_test::page(result, *test),
        Experiment::Cores => cores::page(result),
        Experiment::Explain(record) => explain::page(result, record),
        Experiment::Soak(record) => soak::page(result, record),
        Experiment::Faults(record) => faults::page(result, record),
        Experiment::Check(record) => check::page(result, record),
        Experiment::Imported(record) => imports::page(result, record),
        Experiment::Threads(record) => threads::page(result, record),
    })
}

/// Writes the reports of a result, and then `result.json`: where it is, the rest is.
///
/// # Errors
/// [`Error::Machine`] when a file cannot be written.
pub fn save(result: &RunResult, directory: &Path) -> Result<(), Error> {
    save_reports(result, directory)?;
    write_whole(&directory.join("result.json"), &result.to_json()?)
}

/// Writes `report.html` and `report.md` with its charts into `directory`, which is made, the
/// profiles of the result, and for other tools `latency.hlog` and `series.csv` where it has such.
///
/// # Errors
/// [`Error::Machine`] when a file cannot be written.
pub fn save_reports(result: &RunResult, directory: &Path) -> Result<(), Error> {
    make(directory)?;
    let page = page(result)?;
    save_charts(&page, directory)?;
    let files = [
        ("report.html", Some(page::html(&page))),
        ("report.md", Some(page::markdown(&page))),
        (FLAMES, flames(result)),
        ("latency.hlog", logs::histogram_log(result)),
        ("series.csv", logs::series_csv(result)),
    ];
    for (name, content) in files {
        let path = directory.join(name);
        if let Some(content) = content {
            write_whole(&path, &content)?;
        }
    }
    result.profiles.as_ref().map_or(Ok(()), |profiles| profiles.write(directory))
}

/// Writes the pictures that the Markdown of a page shows.
fn save_charts(page: &Page, directory: &Path) -> Result<(), Error> {
    let mut charts = page.all_charts().peekable();
    if charts.peek().is_some() {
        make(&directory.join("charts"))?;
    }
    charts.try_for_each(|chart: &Chart| {
        write_whole(&directory.join(page::chart_path(chart)), &page::picture(chart))
    })
}

fn make(directory: &Path) -> Result<(), Error> {
    std::fs::create_dir_all(directory)
        .map_err(Error::machine(format!("making {}", directory.display())))
}

/// Writes a file so that under its name there is all of it, or what was there before.
fn write_whole(path: &Path, content: &str) -> Result<(), Error> {
    let unfinished = path.with_added_extension("unfinished");
    let write = || {
        let mut file = File::create(&unfinished)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)
    };
    write().map_err(Error::machine(format!("writing {}", path.display())))
}
