//! `moldau lab latency`, `compression` and `threads`: experiment files that are part of the
//! program, with what an operator wants otherwise; and what `faults` and `soak` take.

use std::path::Path;
use std::time::Duration;

use anyhow::{bail, ensure};
use moldau_lab::experiments::asked::{Payload, Times};
use moldau_lab::experiments::survey::{Factor, Settings, SurveyFile};
use moldau_lab::experiments::threads::ThreadsFile;
use moldau_lab::soak::LEGS_MIN;
use moldau_lab::survey::{Asks, CompressionQuestion, LatencyQuestion};
use moldau_lab::systems::{SystemFile, keep_records};
use moldau_load::payload::Filler;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Pace, Tuning, Workload};

use super::experiment_file::{self, Asked};
use crate::arguments::{
    AskedOptions, CeilingOptions, CompressionOptions, LatencyOptions, OfferedOptions,
    PayloadChoice, SoakOptions, ThreadsOptions,
};

/// How long one thread reads where records hold it, us: ten seconds, and a quarter with `--quick`.
const READING_US: u64 = 10_000_000;

/// Fewest records of each thread: fewer are not dealt out evenly.
const RECORDS_PER_THREAD_MIN: u32 = 20;

/// How long a soak takes unless it is said, in how many legs, and the shortest of these.
const SOAK: Duration = Duration::from_hours(1);
const QUICK_SOAK: Duration = Duration::from_mins(4);
const LEGS: u32 = 60;
const LEG_MIN: Duration = Duration::from_secs(10);

/// What `moldau lab latency` measures.
///
/// # Errors
/// Names the option that cannot be.
pub(super) fn latency(options: &LatencyOptions) -> anyhow::Result<Asked> {
    let mut file: SurveyFile = experiment_file::question("latency")?;
    file.systems = systems(&options.asked, &file.systems);
    file.load = offered(&options.offered, &file.load)?;
    if !options.rates.is_empty() {
        let level =
            |rate: &u64| Settings { records_per_second: Some(*rate), ..Settings::default() };
        let from = file.scenarios.first().map(|scenario| scenario.name.clone()).unwrap_or_default();
        let levels = options.rates.iter().map(level).collect();
        file.factors = vec![Factor { from, levels, quick: true }];
        file.asks = Some(Asks::Latency(LatencyQuestion::default()));
    }
    experiment_file::survey("latency", file, Path::new("."))
}

/// What `moldau lab compression` measures.
///
/// # Errors
/// Names the option that cannot be.
pub(super) fn compression(options: &CompressionOptions) -> anyhow::Result<Asked> {
    let mut file: SurveyFile = experiment_file::question("compression")?;
    file.systems = systems(&options.asked, &file.systems);
    file.load = offered(&options.offered, &file.load)?;
    file.load.payload = options.payload.map(payload).or(file.load.payload);
    let rate = per_second(options.rate, file.load.record_bytes.unwrap_or(1024))?;
    for scenario in &mut file.scenarios {
        scenario.load.records_per_second = scenario.load.records_per_second.map(|_| rate);
    }
    let gigabyte_is_worth_cpu_s = options.gigabyte_worth;
    file.asks = Some(Asks::Compression(CompressionQuestion { gigabyte_is_worth_cpu_s }));
    experiment_file::survey("compression", file, Path::new("."))
}

/// What `moldau lab threads` measures.
///
/// # Errors
/// Names the option that cannot be.
pub(super) fn threads(options: &ThreadsOptions) -> anyhow::Result<Asked> {
    let mut file: ThreadsFile = experiment_file::question("threads")?;
    file.systems = systems(&options.asked, &file.systems);
    let grid = &mut file.threads;
    grid.counts.clone_from(&options.threads);
    grid.topics.clone_from(&options.topics);
    grid.partitions = options.partitions;
    grid.record_bytes = usize::try_from(options.record)?;
    let most = options.threads.iter().copied().max().unwrap_or(1);
    ensure!(
        options.partitions >= most,
        "--partitions: {} are too few for {most} threads",
        options.partitions
    );
    if let Some(work_ms) = options.work {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive by its parser; the cast saturates, and the file's check refuses more"
        )]
        let work_us = (work_ms * 1e3).round() as u64;
        ensure!(work_us > 0, "--work: less than a microsecond");
        grid.work_us = work_us;
        let records = u32::try_from(READING_US / work_us).unwrap_or(u32::MAX);
        let fewest = RECORDS_PER_THREAD_MIN * u32::from(most);
        grid.records = records.max(fewest).min(grid.records);
    }
    experiment_file::threads("threads", file, Path::new("."))
}

/// The systems that `moldau lab faults` and `soak` work on, with their names.
///
/// # Errors
/// Names the system that is unknown, or that they cannot work on.
pub(super) fn named(options: &AskedOptions) -> anyhow::Result<(Vec<String>, Vec<SystemFile>)> {
    let names = systems(options, &["moldau".to_owned()]);
    let files = files(&names)?;
    if let Some((name, _)) = names.iter().zip(&files).find(|(_, file)| file.processes.is_empty()) {
        bail!("{name}: the lab starts no process of this system");
    }
    Ok((names, files))
}

/// The systems among which `moldau lab ceiling` searches, with their names.
///
/// # Errors
/// Names the system that is unknown, or whose records cannot be read back.
pub(super) fn searched(options: &CeilingOptions) -> anyhow::Result<(Vec<String>, Vec<SystemFile>)> {
    let first = options.system.clone().unwrap_or_else(|| "moldau".to_owned());
    let names: Vec<String> = std::iter::once(first).chain(options.against.clone()).collect();
    let files = files(&names)?;
    Ok((names, files))
}

fn files(names: &[String]) -> anyhow::Result<Vec<SystemFile>> {
    let files = names.iter().map(|name| experiment_file::read_system(name, Path::new(".")));
    let files: Vec<SystemFile> = files.collect::<anyhow::Result<_>>()?;
    keep_records(names, &files)?;
    Ok(files)
}

/// The legs of a soak: how many, and what is offered in each.
///
/// # Errors
/// Names the option that cannot be.
pub(super) fn legs(options: &SoakOptions) -> anyhow::Result<(u32, Workload)> {
    let usual = if options.asked.quick { QUICK_SOAK } else { SOAK };
    let length = options.length.unwrap_or(usual);
    let leg = (length / LEGS).max(LEG_MIN);
    let legs = length.as_millis() / leg.as_millis();
    let least = u128::from(LEGS_MIN);
    ensure!(
        legs >= least,
        "--for: at least {} s, because the answer needs {least} legs",
        least * u128::from(LEG_MIN.as_secs())
    );
    let per_second = per_second(options.rate, usize::try_from(options.record)?)?;
    let workload = Workload {
        pace: Pace::Scheduled { per_second, arrivals: Arrivals::Constant },
        record_bytes: usize::try_from(options.record)?,
        filler: Filler::Text,
        partitions: 10,
        producers: 1,
        batch_bytes: 16 * 1024,
        linger_us: 0,
        consume: true,
        tails: 0,
        warmup_ms: 0,
        window_ms: u64::try_from(leg.as_millis())?,
        tuning: Tuning::default(),
    };
    Ok((u32::try_from(legs)?, workload))
}

/// Records per second of a rate in bytes.
fn per_second(rate: f64, record_bytes: usize) -> anyhow::Result<u64> {
    let per_second = rate / f64::from(u32::try_from(record_bytes)?);
    ensure!(per_second >= 1.0, "--rate: less than a record per second");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1, and 2^50 at most by its parser"
    )]
    let whole = per_second as u64;
    Ok(whole)
}

/// The systems of the options, in place of those of the file where one is named.
fn systems(options: &AskedOptions, usual: &[String]) -> Vec<String> {
    let first = options.system.clone().map_or_else(|| usual.to_vec(), |system| vec![system]);
    first.into_iter().chain(options.against.iter().cloned()).collect()
}

/// The load of the options over that of the file.
fn offered(options: &OfferedOptions, usual: &Settings) -> anyhow::Result<Settings> {
    let own = experiment_file::settings(&options.load)?;
    let mut load = own.over(usual);
    // What a file of the user says of sizes takes the place of the usual size.
    let has_lines = matches!(own.payload, Some(Payload::File(_)));
    if has_lines || matches!(own.arrivals, Some(Times::Trace { .. })) {
        load.record_bytes = own.record_bytes;
    }
    if let Some(record) = options.record {
        load.record_bytes = Some(usize::try_from(record)?);
    }
    if let Some(batch) = options.batch {
        load.batch_bytes = Some(usize::try_from(batch)?);
    }
    Ok(load)
}

fn payload(choice: PayloadChoice) -> Payload {
    match choice {
        PayloadChoice::Json => Payload::Json,
        PayloadChoice::Text => Payload::Text,
        PayloadChoice::Logs => Payload::Logs,
        PayloadChoice::Avro => Payload::Avro,
        PayloadChoice::Random => Payload::Random,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{Arguments, Command, LabQuestion};

    fn asked(arguments: &[&str]) -> anyhow::Result<Asked> {
        let all = ["moldau", "lab"].iter().chain(arguments);
        let Command::Lab(question) = Arguments::try_parse_from(all)?.command else { panic!() };
        match question {
            LabQuestion::Latency(options) => latency(&options),
            LabQuestion::Compression(options) => compression(&options),
            LabQuestion::Threads(options) => threads(&options),
            _ => panic!(),
        }
    }

    fn survey(arguments: &[&str]) -> SurveyFile {
        let Asked::Survey(file, systems) = asked(arguments).unwrap() else { panic!() };
        assert_eq!(systems.len(), file.systems.len());
        *file
    }

    fn refused(arguments: &[&str]) -> String {
        match asked(arguments) {
            Err(error) => format!("{error:#}"),
            Ok(_) => panic!("{arguments:?} was taken"),
        }
    }

    #[test]
    fn latency_is_asked_of_shares_of_full_speed_or_of_rates() {
        let file = survey(&["latency", "--against", "kafka,external", "--record", "100"]);
        assert_eq!(file.systems, ["moldau", "kafka", "external"]);
        assert_eq!((file.load.record_bytes, file.load.batch_bytes), (Some(100), Some(16_384)));
        assert!(file.factors.is_empty());
        let file = survey(&["latency", "--rates", "1000,2000", "--load", "producers: 4"]);
        let rates: Vec<Option<u64>> =
            file.factors[0].levels.iter().map(|level| level.records_per_second).collect();
        assert_eq!((rates, file.load.producers), (vec![Some(1_000), Some(2_000)], Some(4)));
        assert!(refused(&["latency", "--load", "produsers: 4"]).contains("producers"));
        assert!(refused(&["latency", "--system", "kavka"]).contains("kafka"));
    }

    #[test]
    fn a_load_may_have_other_arrivals_and_lines_of_a_file() {
        for command in ["latency", "compression"] {
            let file = survey(&[command, "--load", "arrivals: {poisson: {seed: 1}}"]);
            assert_eq!(file.load.arrivals, Some(Times::Poisson { seed: 1 }));
        }
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("events.jsonl");
        std::fs::write(&path, "{\"event\":1}\n").unwrap();
        let lines = format!("payload: {{file: {}}}", path.display());
        assert_eq!(survey(&["latency", "--load", &lines]).load.record_bytes, None);
        let sized = refused(&["latency", "--load", &lines, "--record", "100"]);
        assert!(sized.contains("record_bytes: has no effect"), "{sized}");
    }

    #[test]
    fn faults_and_soaks_are_of_systems_that_the_laboratory_starts() {
        let parsed = |arguments: &[&str]| {
            let all = ["moldau", "lab"].iter().chain(arguments);
            Arguments::try_parse_from(all)
        };
        assert!(parsed(&["latency", "--external", "h:1"]).is_ok());
        for command in ["faults", "soak"] {
            assert!(parsed(&[command, "--external", "h:1"]).is_err(), "{command}");
        }
        let named_by = |arguments: &[&str]| match parsed(arguments).unwrap().command {
            Command::Lab(LabQuestion::Faults(options)) => named(&options.asked),
            other => panic!("{other:?}"),
        };
        let (names, files) = named_by(&["faults", "--against", "kafka"]).unwrap();
        assert_eq!((names, files.len()), (vec!["moldau".into(), "kafka".into()], 2));
        let problem = named_by(&["faults", "--against", "external"]).unwrap_err().to_string();
        assert_eq!(problem, "external: the lab starts no process of this system");
    }

    #[test]
    fn codecs_are_compared_at_the_rate_that_is_asked_for() {
        let line = ["compression", "--payload", "logs", "--rate", "1MB/s", "--record", "2KB"];
        let file = survey(&line);
        assert_eq!(file.scenarios[0].load.records_per_second, Some(512));
        assert_eq!(file.scenarios[1].load.records_per_second, None);
        assert_eq!(file.load.payload, Some(Payload::Logs));
        let worth = survey(&["compression", "--gigabyte-worth", "7"]).asks;
        let expected = CompressionQuestion { gigabyte_is_worth_cpu_s: 7 };
        assert_eq!(worth, Some(Asks::Compression(expected)));
        assert!(refused(&["compression", "--rate", "10B/s"]).contains("less than a record"));
    }

    #[test]
    fn a_soak_is_made_of_legs_that_take_its_time() {
        let soak = |arguments: &[&str]| {
            let all = ["moldau", "lab", "soak"].iter().chain(arguments);
            let asked = Arguments::try_parse_from(all).unwrap().command;
            let Command::Lab(LabQuestion::Soak(options)) = asked else { panic!() };
            legs(&options).map(|(legs, workload)| (legs, workload.window_ms, workload.pace))
        };
        let pace = Pace::Scheduled { per_second: 5_120, arrivals: Arrivals::Constant };
        assert_eq!(soak(&[]).unwrap(), (60, 60_000, pace));
        let (legs, window_ms, _) = soak(&["--quick"]).unwrap();
        assert_eq!((legs, window_ms), (24, 10_000));
        assert_eq!(soak(&["--for", "2h", "--rate", "1KB/s"]).unwrap().1, 120_000);
        assert!(soak(&["--for", "5s"]).is_err());
    }

    #[test]
    fn work_makes_backlogs_that_are_read_in_seconds() {
        let grid = |arguments: &[&str]| {
            let Asked::Threads(file, _) = asked(arguments).unwrap() else { panic!() };
            file.threads
        };
        let free = grid(&["threads"]);
        assert_eq!((free.records, free.work_us, free.topics), (1_000_000, 0, vec![1]));
        let held = grid(&["threads", "--work", "5ms", "--threads", "1,4"]);
        assert_eq!((held.records, held.work_us, held.counts), (2_000, 5_000, vec![1, 4]));
        let long = grid(&["threads", "--work", "1s", "--threads", "1,4"]);
        assert_eq!(long.records, 80);
        assert!(refused(&["threads", "--work", "2s"]).contains("threads.work_us"));
        assert!(refused(&["threads", "--partitions", "8"]).contains("are too few for"));
    }
}
