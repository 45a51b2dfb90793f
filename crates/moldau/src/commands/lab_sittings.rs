//! The progress of an experiment: a bar, and for those that may be interrupted the files by which
//! `moldau lab resume` goes on with them.

use std::fmt::Debug;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use clap::Parser as _;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use moldau_lab::environment::Environment;
use moldau_lab::experiments::{Conditions, Progress};
use moldau_lab::sittings::{Manifest, Sittings};

use crate::arguments::{Arguments, Command, LabQuestion, OutputOptions};

/// A step that is over sooner was finished by an earlier sitting: what is measured takes longer.
const STEP_MIN: Duration = Duration::from_millis(100);

/// The progress bar on stderr.
pub(super) struct Bar {
    bar: ProgressBar,
    pace: Pace,
    sittings: Option<Sittings>,
}

/// How long steps take: on average of all, since what a rate of the last seconds says is nothing
/// where one step takes a minute and the next three.
#[derive(Default)]
struct Pace {
    /// Begin of the step that goes on, and how many were done before it.
    begun: Option<(Instant, u32)>,
    /// Steps that were done in this sitting, and the time that they took.
    steps: u32,
    time: Duration,
}

impl Pace {
    /// After `done` of `total` steps another begins; the time for what is left, once a step tells.
    fn step(&mut self, present: Instant, done: u32, total: u32) -> Option<Duration> {
        if let Some((begun, before)) = self.begun.replace((present, done)) {
            let took = present.saturating_duration_since(begun);
            if took >= STEP_MIN {
                self.steps += done.saturating_sub(before);
                self.time += took;
            }
        }
        self.time.saturating_mul(total.saturating_sub(done)).checked_div(self.steps)
    }
}

impl Bar {
    /// That of an experiment which begins anew if it is interrupted.
    pub(super) fn new() -> Self {
        let template = "{elapsed_precise} {bar:30} {pos}/{len} {prefix}{msg}";
        let style = ProgressStyle::with_template(template).expect("the template is constant");
        let bar = ProgressBar::new(1).with_style(style);
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, pace: Pace::default(), sittings: None }
    }

    /// That of an experiment whose finished runs are kept, and which goes on with those that are.
    ///
    /// # Errors
    /// Says what differs from what was begun.
    pub(super) fn kept(
        plan: &impl Debug,
        conditions: &Conditions,
        output: &OutputOptions,
    ) -> anyhow::Result<Self> {
        let Conditions { version, work_directory, .. } = conditions;
        let environment = Environment::inspect(version, work_directory);
        let plan = format!("{plan:#?}");
        let arguments = match &output.resumed {
            Some(directory) => Manifest::read(directory)?.arguments,
            None => std::env::args_os()
                .skip(1)
                .map(|it| it.into_string().ok().context("an argument is not UTF-8"))
                .collect::<anyhow::Result<_>>()?,
        };
        let manifest = Manifest::of(&std::env::current_exe()?, environment, arguments)?;
        let sittings = match &output.resumed {
            Some(directory) => Sittings::resume(directory, &manifest, &plan)?,
            None => Sittings::begin(&output.out, &manifest, &plan)?,
        };
        let directory = sittings.directory().display();
        eprintln!("to resume after an interruption: moldau lab resume {directory}");
        let mut bar = Self::new();
        bar.sittings = Some(sittings);
        Ok(bar)
    }
}

impl Progress for Bar {
    fn step(&mut self, done: u32, total: u32, what: &str) {
        self.bar.set_length(u64::from(total));
        self.bar.set_position(u64::from(done));
        let left = self.pace.step(Instant::now(), done, total);
        let left = left.map(|left| format!("about {:#} left, ", HumanDuration(left)));
        self.bar.set_prefix(left.unwrap_or_default());
        self.bar.set_message(what.to_owned());
    }

    fn sittings(&mut self) -> Option<&mut Sittings> {
        self.sittings.as_mut()
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The question of an experiment that was interrupted, by the arguments that it was begun with.
///
/// # Errors
/// Says why it cannot go on.
pub(super) fn resumed(directory: &Path) -> anyhow::Result<LabQuestion> {
    let result = directory.join("result.json");
    ensure!(!result.exists(), "{} exists: the experiment is complete", result.display());
    let manifest = Manifest::read(directory)?;
    let arguments = std::iter::once("moldau").chain(manifest.arguments.iter().map(String::as_str));
    let Command::Lab(mut question) = Arguments::try_parse_from(arguments)?.command else {
        bail!("{} is not an experiment", directory.display());
    };
    let output = match &mut question {
        LabQuestion::Run(options) => &mut options.output,
        LabQuestion::Omb(options) => &mut options.output,
        LabQuestion::Latency(options) => &mut options.asked.output,
        LabQuestion::Compression(options) => &mut options.asked.output,
        LabQuestion::Threads(options) => &mut options.asked.output,
        LabQuestion::Faults(options) => &mut options.asked.output,
        LabQuestion::Overhead(options) => &mut options.output,
        LabQuestion::Ceiling(options) => &mut options.output,
        LabQuestion::Partitions(options) => &mut options.output,
        LabQuestion::Cores(options) => &mut options.output,
        _ => bail!("{} belongs to a command that cannot be resumed", directory.display()),
    };
    output.resumed = Some(directory.to_owned());
    Ok(question)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// The directory of an experiment that was begun with these arguments.
    fn begun(out: &Path, arguments: &[&str], started_unix_ms: u64) -> PathBuf {
        let manifest = Manifest {
            format_version: 1,
            started_unix_ms,
            program_sha256: String::new(),
            environment: Environment::default(),
            arguments: arguments.iter().map(|it| (*it).to_owned()).collect(),
        };
        Sittings::begin(out, &manifest, "").unwrap().directory().to_owned()
    }

    #[test]
    fn the_time_left_follows_from_the_steps_that_took_time() {
        let seconds = Duration::from_secs;
        let start = Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.step(start, 0, 12), None);
        // Six steps of an earlier sitting take next to nothing, and tell nothing.
        for done in 1..=6 {
            let present = start + Duration::from_millis(done.into());
            assert_eq!(pace.step(present, done, 12), None);
        }
        let begun = start + Duration::from_millis(6);
        assert_eq!(pace.step(begun + seconds(10), 7, 12), Some(seconds(50)));
        // One of 10 s and two of 25 s average 20 s; four are left, then one.
        assert_eq!(pace.step(begun + seconds(60), 9, 13), Some(seconds(80)));
        assert_eq!(pace.step(begun + seconds(60), 12, 13), Some(seconds(20)));
    }

    #[test]
    fn experiments_go_on_in_the_directory_of_their_first_sitting() {
        let out = tempfile::tempdir().unwrap();
        let asked = [
            vec!["run", "my.yaml"],
            vec!["omb", "my.yaml"],
            vec!["latency", "--quick"],
            vec!["compression"],
            vec!["threads", "--work", "5ms"],
            vec!["faults"],
            vec!["overhead", "--arms", "gateway"],
            vec!["ceiling", "--full-speed"],
            vec!["partitions", "--quick"],
            vec!["cores"],
        ];
        for (second, command) in (1..).zip(&asked) {
            let arguments = [&["lab"], command.as_slice()].concat();
            let directory = begun(out.path(), &arguments, second * 1_000);
            let question = resumed(&directory).unwrap();
            // With any options, they name where it goes on.
            let options = format!("{question:?}");
            assert!(options.contains(&format!("resumed: Some({directory:?})")), "{options}");
        }
        let soak = begun(out.path(), &["lab", "soak"], 60_000);
        assert!(resumed(&soak).unwrap_err().to_string().contains("cannot be resumed"));
    }
}
