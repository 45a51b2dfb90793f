//! `moldau lab omb`: workloads and drivers of the OpenMessaging Benchmark as they are, run as a
//! survey.
//!
//! What has no equal here is refused with its line. What is done in another way, and what has no
//! effect, becomes a remark of the report. The benchmark itself passes over keys that it does not
//! know; here they are mistakes.

mod driver;
mod properties;
mod workload;

use std::path::Path;

use anyhow::{anyhow, bail, ensure};
use moldau_lab::experiments::survey::{Scenario, Settings, SurveyFile};
use moldau_lab::systems::{SystemFile, keep_records};
use moldau_load::workload::{Pace, Workload};

use super::experiment_file::read_system;
use crate::arguments::OmbOptions;
use crate::config::{self, Problem};
use driver::Driver;

/// What is to be run, and on what.
pub(super) struct Translation {
    /// The workloads as a survey.
    pub(super) survey: SurveyFile,
    /// Its systems, in its order.
    pub(super) systems: Vec<SystemFile>,
    /// The cluster of the drivers, where nothing is started.
    pub(super) external: Option<String>,
}

impl Translation {
    /// The workload whose highest rate is searched for: the only one, without a rate, and with
    /// consumers that are to keep up.
    pub(super) fn searched(&self) -> Option<Workload> {
        let [Scenario { load, .. }] = self.survey.scenarios.as_slice() else { return None };
        let [warmup_ms, window_ms] =
            [load.warmup_ms, load.window_ms].map(Option::unwrap_or_default);
        let workload = load.workload(warmup_ms, window_ms);
        let is_searched = workload.pace == Pace::Unpaced && workload.consume;
        is_searched.then_some(workload)
    }
}

/// The system for workloads that come without a driver.
const DEFAULT_SYSTEM: &str = "moldau";

/// The system that is where the driver says.
const EXTERNAL: &str = "external";

/// Reads the files and translates them.
///
/// # Errors
/// Everything that is wrong with the files, each with its file and line.
pub(super) fn read(options: &OmbOptions) -> anyhow::Result<Translation> {
    let mut problems = Vec::new();
    let workloads = each(&options.workloads, &mut problems, workload::parse);
    let drivers = each(&options.drivers, &mut problems, driver::parse);
    ensure!(problems.is_empty(), "{}", problems.join("\n"));
    translate(options, &workloads, &drivers)
}

/// What would be run, a line for each load.
pub(super) fn described(translation: &Translation) -> String {
    let Translation { survey, external, .. } = translation;
    let mut text = String::new();
    let free = match translation.searched() {
        Some(_) => "the highest rate that is sustained",
        None => "full speed",
    };
    for Scenario { name, load, .. } in &survey.scenarios {
        let rate = load
            .records_per_second
            .map_or(free.into(), |rate| format!("{rate} records/s of all topics together"));
        let sizes = match (&load.record_sizes, load.record_bytes) {
            (Some(_), _) => format!("{} bytes on average", load.workload(0, 1).record_bytes),
            (None, bytes) => format!("{} bytes", bytes.unwrap_or_default()),
        };
        text += &format!(
            "{name}: {rate}, {sizes}, {} topics of {} partitions and {} producers each, \
             {} consumers, {} s after {} s\n",
            load.topics.unwrap_or_default(),
            load.partitions.unwrap_or_default(),
            load.producers.unwrap_or_default(),
            load.consumers.unwrap_or_default(),
            load.window_ms.unwrap_or_default() / 1_000,
            load.warmup_ms.unwrap_or_default() / 1_000,
        );
    }
    let place = external.as_ref().map(|address| format!(" at {address}")).unwrap_or_default();
    text + &format!("on {}{place}\n", survey.systems.join(", "))
}

/// The files that are sound; what is wrong with the others is added to `problems`.
fn each<T>(
    paths: &[std::path::PathBuf],
    problems: &mut Vec<String>,
    parse: impl Fn(&str) -> Result<T, Vec<Problem>>,
) -> Vec<(String, T)> {
    let mut found = Vec::new();
    for path in paths {
        let place = path.display();
        match config::text(path) {
            Err(error) => problems.push(format!("{error:#}")),
            Ok(text) => match parse(&text) {
                Err(all) => problems.extend(all.iter().map(|problem| format!("{place}{problem}"))),
                Ok(file) => {
                    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                    found.push((stem.into_owned(), file));
                }
            },
        }
    }
    found
}

fn translate(
    options: &OmbOptions,
    workloads: &[(String, workload::Workload)],
    drivers: &[(String, Driver)],
) -> anyhow::Result<Translation> {
    let mut remarks: Vec<String> = Vec::new();
    let mut remark = |text: &str| {
        if !remarks.iter().any(|known| known == text) {
            remarks.push(text.to_owned());
        }
    };
    let no_driver = [(String::new(), Driver::default())];
    let drivers = if drivers.is_empty() { &no_driver[..] } else { drivers };
    let external = external(options, drivers)?;
    let mut scenarios = Vec::new();
    for (stem, workload) in workloads {
        let name = unique(stem, &workload.name, workloads.iter().map(|(_, it)| &it.name));
        for (driver_stem, driver) in drivers {
            let names = drivers.iter().map(|(_, it)| &it.name);
            let name = match drivers.len() {
                1 => name.to_owned(),
                _ => format!("{name}, {}", unique(driver_stem, &driver.name, names)),
            };
            let load = joined(workload, driver).map_err(|reason| anyhow!("{name}: {reason}"))?;
            scenarios.push(Scenario::of(name, load));
            workload.remarks.iter().chain(&driver.remarks).for_each(|text| remark(text));
        }
    }
    let names = names(options, external.as_deref());
    if options.quick {
        remark("Each minute of a workload ran as a second.");
        for scenario in &mut scenarios {
            let seconds = |ms: Option<u64>| ms.map(|ms| ms / SECONDS_PER_MINUTE);
            scenario.load.warmup_ms = seconds(scenario.load.warmup_ms);
            scenario.load.window_ms = seconds(scenario.load.window_ms);
        }
    }
    remark(
        "Publish latency counts from the intended time of a record; the benchmark counts from \
         sending. The files in omb/ follow the benchmark's definitions.",
    );
    let survey = SurveyFile {
        question: format!(
            "How do OpenMessaging Benchmark workloads run on {}?",
            names.join(" and ")
        ),
        hypothesis: "none; a workload of the benchmark states no expectation.".into(),
        source: None,
        systems: names.clone(),
        rounds: options.rounds,
        within_s: None,
        warmup_ms: 0,
        window_ms: 0,
        load: Settings::default(),
        scenarios,
        factors: Vec::new(),
        pairs: Vec::new(),
        littles_law: None,
        administration: None,
        claims: Vec::new(),
        totals: Vec::new(),
        asks: None,
        remarks,
    };
    survey.check()?;
    let systems = names.iter().map(|name| read_system(name, Path::new(".")));
    let systems: Vec<SystemFile> = systems.collect::<anyhow::Result<_>>()?;
    keep_records(&names, &systems)?;
    Ok(Translation { survey, systems, external })
}

/// The names of the systems.
fn names(options: &OmbOptions, external: Option<&str>) -> Vec<String> {
    match options.systems.as_slice() {
        [] if external.is_some() => vec![EXTERNAL.to_owned()],
        [] => vec![DEFAULT_SYSTEM.to_owned()],
        systems => systems.to_vec(),
    }
}

/// The address of the cluster that exists already, if that is what is to be measured.
fn external(options: &OmbOptions, drivers: &[(String, Driver)]) -> anyhow::Result<Option<String>> {
    let is_wanted = options.systems.is_empty() || options.systems.iter().any(|it| it == EXTERNAL);
    if !is_wanted {
        return Ok(None);
    }
    if options.cluster.external.is_some() {
        return Ok(options.cluster.external.clone());
    }
    let mut found: Option<&str> = None;
    for (stem, driver) in drivers {
        match (found, &driver.bootstrap) {
            (Some(known), Some(other)) if known != other => bail!(
                "{stem}: bootstrap.servers is {other}, and {known} in another driver: one run \
                 measures one cluster"
            ),
            (_, Some(address)) => found = Some(address),
            (_, None) => {}
        }
    }
    Ok(found.map(str::to_owned))
}

/// The name that a file gives itself, or that of the file where it is not the only one with it.
fn unique<'a>(
    stem: &'a str,
    name: &'a Option<String>,
    all: impl Iterator<Item = &'a Option<String>>,
) -> &'a str {
    match name {
        Some(own) if all.filter(|it| it.as_ref() == Some(own)).count() == 1 => own,
        _ => stem,
    }
}

/// The load of a workload by the clients of a driver.
fn joined(workload: &workload::Workload, driver: &Driver) -> Result<Settings, String> {
    if workload.is_half_random && driver.settings.compression.is_some() {
        return Err("randomBytesRatio below 1 with a compression.type: values here are text or \
                    completely random, so codecs shorten them differently"
            .into());
    }
    // Without consumers nothing fetches, so the driver's fetch settings do not matter.
    let consumes = workload.settings.consumers.is_some_and(|consumers| consumers > 0);
    Ok(Settings {
        batch_bytes: driver.settings.batch_bytes,
        linger_us: driver.settings.linger_us,
        compression: driver.settings.compression,
        acks: driver.settings.acks,
        in_flight_max: driver.settings.in_flight_max,
        fetch_min_bytes: driver.settings.fetch_min_bytes.filter(|_| consumes),
        fetch_max_wait_ms: driver.settings.fetch_max_wait_ms.filter(|_| consumes),
        ..workload.settings.clone()
    })
}

/// What the short form divides by.
const SECONDS_PER_MINUTE: u64 = 60;

#[cfg(test)]
mod tests;
