//! How `moldau lab` answers: goals, files, what the terminal shows, and the exit code.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use moldau_lab::goals::{self, Goal};
use moldau_lab::page::{self, Extent};
use moldau_lab::pages;
use moldau_lab::result::RunResult;
use terminal_size::{Width, terminal_size};

use crate::arguments::{GoalOptions, OutputOptions};

/// Width of output that goes to no terminal.
const WIDTH_USUAL: usize = 100;

/// Longest file of goals.
const GOALS_BYTES_MAX: u64 = 1 << 20;

/// The goals of a command, read before anything is measured.
pub(super) fn wanted(options: &GoalOptions) -> anyhow::Result<Vec<Goal>> {
    let mut wanted = options.goals.clone();
    if let Some(path) = &options.goals_file {
        let place = || path.display().to_string();
        let bytes = std::fs::metadata(path).with_context(place)?.len();
        ensure!(bytes <= GOALS_BYTES_MAX, "{}: is too large for goals", place());
        let text = std::fs::read_to_string(path).with_context(place)?;
        wanted.extend(goals::read(&text).map_err(anyhow::Error::msg).with_context(place)?);
    }
    Ok(wanted)
}

/// Judges a result by its goals, writes its files, and answers.
pub(super) fn answer(mut result: RunResult, output: &OutputOptions) -> anyhow::Result<ExitCode> {
    goals::judge(&mut result, &wanted(&output.goals)?);
    let directory = output.directory(&result.id);
    pages::save(&result, &directory)?;
    if output.json {
        println!("{}", result.to_json()?);
        eprintln!("report: {}", directory.join("report.html").display());
    } else {
        show(&result, &directory, output.goals.verbose)?;
    }
    Ok(ExitCode::from(result.verdict.exit_code()))
}

/// Makes the reports of a directory again from its result, judged by other goals if there are any.
pub(super) fn again(directory: &Path, options: &GoalOptions) -> anyhow::Result<ExitCode> {
    let file = directory.join("result.json");
    let place = || file.display().to_string();
    let text = std::fs::read_to_string(&file).with_context(place)?;
    let mut result = RunResult::from_json(&text).with_context(place)?;
    if let Some(profiles) = &mut result.profiles {
        profiles.read(directory);
    }
    let wanted = wanted(options)?;
    goals::judge(&mut result, &wanted);
    pages::save_reports(&result, directory)?;
    show(&result, directory, options.verbose)?;
    // Making a report succeeds with any result; goals ask for a verdict.
    Ok(if wanted.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(result.verdict.exit_code())
    })
}

fn show(result: &RunResult, directory: &Path, is_verbose: bool) -> anyhow::Result<()> {
    let path = directory.join("report.html").display().to_string();
    let extent = if is_verbose { Extent::Verbose } else { Extent::Short };
    print!("{}", page::terminal(&pages::page(result)?, &path, width(), extent));
    Ok(())
}

/// Columns of the terminal, or those of output that goes to none.
pub(super) fn width() -> usize {
    terminal_size().map_or(WIDTH_USUAL, |(Width(width), _)| width.into())
}
