//! `moldau lab`: asks a question, draws a bar while it is measured, and answers.

mod check;
mod list;
mod services;

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use moldau_lab::ceiling::Demand;
use moldau_lab::checks::Verdict;
use moldau_lab::experiments::fronts::Front;
use moldau_lab::experiments::overhead::{self, Planted};
use moldau_lab::experiments::partitions;
use moldau_lab::experiments::side_by_side::{self, System};
use moldau_lab::experiments::{
    Conditions, ceiling, cores, explain, faults, file, self_test, soak, storage, survey, threads,
};
use moldau_lab::explain::About;
use moldau_lab::result::RunRecord;
use moldau_lab::systems::{
    Durability, Installations, KafkaInstallation, Kroxylicious, keep_records,
};
use moldau_load::workers::Workers;
use moldau_load::workload::Workload;
use moldau_load::{bare_disk, null_sink, relay};
use moldau_measure::profile::Profiler;

use super::experiment_file::{self, Asked};
use super::lab_answer::{self, answer};
use super::lab_directory::WorkDirectory;
use super::lab_reader::{self, Reader, Reading};
use super::lab_sittings::{self, Bar};
use super::{lab_cores, lab_omb, lab_questions, lab_results, lab_self_test, lab_workers, one_line};
use crate::arguments::{
    AboutChoice, AskedOptions, CeilingOptions, CoresOptions, ExplainOptions, FaultsOptions,
    LabQuestion, NullSinkOptions, OmbOptions, OutputOptions, OverheadOptions, PartChoice,
    PartitionsOptions, PeerOptions, PlantChoice, ProfileOptions, ReaderChoice, ReaderOptions,
    RelayOptions, ResultImportOptions, RunOptions, SelftestOptions, SizeOptions, SoakOptions,
    StorageOptions,
};

/// A planted stall begins this long after its run, in the middle of the window.
const STALL_AFTER: Duration = Duration::from_secs(3);
const STALL_LENGTH: Duration = Duration::from_secs(1);

pub(crate) fn run(question: LabQuestion) -> anyhow::Result<ExitCode> {
    // A failure that kept the experiment from its end is the environment's fault.
    ask(question).or_else(|error| {
        eprintln!("moldau lab: {}", one_line(&error));
        Ok(ExitCode::from(Verdict::Environment.exit_code()))
    })
}

fn ask(question: LabQuestion) -> anyhow::Result<ExitCode> {
    match question {
        LabQuestion::Overhead(options) => overhead(&options),
        LabQuestion::Ceiling(options) => find_ceiling(&options),
        LabQuestion::Latency(options) => {
            let asked = lab_questions::latency(&options)?;
            run_question(asked, &options.asked, options.cluster.external.as_deref())
        }
        LabQuestion::Compression(options) => {
            let asked = lab_questions::compression(&options)?;
            run_question(asked, &options.asked, options.cluster.external.as_deref())
        }
        LabQuestion::Threads(options) => {
            let asked = lab_questions::threads(&options)?;
            run_question(asked, &options.asked, options.cluster.external.as_deref())
        }
        LabQuestion::Faults(options) => faults(&options),
        LabQuestion::Check(options) => check::run(&options),
        LabQuestion::Soak(options) => soak(&options),
        LabQuestion::Partitions(options) => partitions(&options),
        LabQuestion::Storage(options) => storage(&options),
        LabQuestion::Cores(options) => cores(&options),
        LabQuestion::Size(options) => size(&options),
        LabQuestion::Run(options) => run_file(&options),
        LabQuestion::Omb(options) => omb(&options),
        LabQuestion::Import(options) => import(&options),
        LabQuestion::Compare(options) => lab_results::compare_two(&options),
        LabQuestion::History(options) => lab_results::history_of(&options),
        LabQuestion::Page(options) => lab_results::page(&options),
        LabQuestion::Explain(options) => explain(&options),
        LabQuestion::Worker(options) => lab_workers::serve(&options, version()),
        LabQuestion::Reader(options) => read_backlog(options),
        LabQuestion::Relay(options) => bare_relay(options),
        LabQuestion::NullSink(options) => null_sink(options),
        LabQuestion::Database(options) => services::database(&options),
        LabQuestion::Store(options) => services::store(&options),
        LabQuestion::Selftest(options) => self_test(&options),
        LabQuestion::BareDisk { task } => bare_disk(&task),
        LabQuestion::Resume { dir } => ask(lab_sittings::resumed(&dir)?),
        LabQuestion::Report { dir, goals } => lab_answer::again(&dir, &goals),
        LabQuestion::List => {
            list::lines().iter().for_each(|line| println!("{line}"));
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn overhead(options: &OverheadOptions) -> anyhow::Result<ExitCode> {
    let work = WorkDirectory::make(&options.output.out)?;
    let conditions = conditions(&work, options.quick);
    let mut plan = overhead::Plan::usual(std::env::current_exe()?, conditions);
    if options.arms.iter().any(|arm| arm == "gateway") {
        plan = plan.gateway();
    }
    plan.fronts = fronts(&options.arms);
    plan.rates = options.rate.map_or(plan.rates, |rate| vec![rate]);
    if plan.fronts.iter().any(|front| front.is_kroxylicious()) {
        plan.kroxylicious = kroxylicious(options)?;
    }
    plan.profiler = profiler(&options.profiles, false)?;
    plan.planted = options.plant.map(|fault| match fault {
        PlantChoice::Stall => Planted::Stall { after: STALL_AFTER, length: STALL_LENGTH },
        PlantChoice::Loss => Planted::Loss,
        PlantChoice::Generator => Planted::Generator,
    });
    let mut bar = Bar::kept(&plan, &plan.conditions, &options.output)?;
    let result = overhead::run(&plan, &mut bar)?;
    answer(result, &options.output)
}

fn fronts(arms: &[String]) -> Vec<Front> {
    arms.iter().flat_map(|arm| Front::named(arm)).collect()
}

/// Where Kroxylicious lies, if it is there; its absence is said here and in the report.
fn kroxylicious(options: &OverheadOptions) -> anyhow::Result<Option<Kroxylicious>> {
    let found = kroxylicious_at(options.kroxylicious.as_deref(), &options.java)?;
    if found.version().is_none() {
        let directory = found.directory.display();
        eprintln!("Kroxylicious is not in {directory}; fetch it with: cargo xtask peers");
        return Ok(None);
    }
    Ok(Some(found))
}

fn kroxylicious_at(directory: Option<&Path>, java: &Path) -> anyhow::Result<Kroxylicious> {
    let directory = match directory {
        Some(directory) => directory.to_owned(),
        None => cache_directory()?.join("moldau/kroxylicious"),
    };
    Ok(Kroxylicious { java: java.to_owned(), directory })
}

fn find_ceiling(options: &CeilingOptions) -> anyhow::Result<ExitCode> {
    if options.full_speed {
        return full_speed(options);
    }
    if options.profiles.profile {
        anyhow::bail!("--profile: needs --full-speed; a search cannot be profiled");
    }
    let (names, systems) = lab_questions::searched(options)?;
    let installations = installations(&options.peers, options.cluster.external.as_deref())?;
    let work = WorkDirectory::make(&options.output.out)?;
    let conditions = conditions(&work, options.quick);
    let plan = ceiling::Plan::usual(names, systems, installations, conditions);
    let plan = searched(plan, options)?;
    let mut bar = Bar::kept(&plan, &plan.conditions, &options.output)?;
    let result = ceiling::run(&plan, &mut bar)?;
    answer(result, &options.output)
}

fn full_speed(options: &CeilingOptions) -> anyhow::Result<ExitCode> {
    let ours = System::Moldau { program: std::env::current_exe()?, durability: Durability::Fsync };
    let mut systems = vec![ours];
    for against in &options.against {
        anyhow::ensure!(against == "kafka", "--full-speed: {against} is not kafka");
        let peers = &options.peers;
        systems.push(System::Kafka(kafka(peers.kafka_classpath.as_deref(), &peers.java)?));
    }
    let work = WorkDirectory::make(&options.output.out)?;
    let plan = side_by_side::Plan::usual(systems, conditions(&work, options.quick));
    let plan = side_by_side::Plan { profiler: profiler(&options.profiles, false)?, ..plan };
    let mut bar = Bar::kept(&plan, &plan.conditions, &options.output)?;
    let result = side_by_side::run(&plan, &mut bar)?;
    answer(result, &options.output)
}

/// The plan with the load and the demand that were asked for.
fn searched(plan: ceiling::Plan, options: &CeilingOptions) -> anyhow::Result<ceiling::Plan> {
    let workload = Workload {
        record_bytes: usize::try_from(options.record)?,
        batch_bytes: usize::try_from(options.batch)?,
        partitions: options.partitions,
        ..plan.workload
    };
    let demand = Demand { p99_ms: options.p99 };
    Ok(ceiling::Plan { workload, demand, producers: options.producers.clone(), ..plan })
}

fn partitions(options: &PartitionsOptions) -> anyhow::Result<ExitCode> {
    let work = WorkDirectory::make(&options.output.out)?;
    let ours = System::Moldau { program: std::env::current_exe()?, durability: Durability::Fsync };
    let mut systems = vec![ours];
    for against in options.against.iter().filter(|against| *against != "none") {
        systems.push(match against.as_str() {
            "kafka" => System::Kafka(kafka(options.kafka_classpath.as_deref(), &options.java)?),
            address => {
                anyhow::ensure!(address.contains(':'), "{address} is not kafka, none or HOST:PORT");
                System::External { name: address.to_owned(), bootstrap: address.to_owned() }
            }
        });
    }
    let mut plan = partitions::Plan::usual(systems, conditions(&work, options.quick));
    keep_parts(&mut plan, &options.parts);
    if !options.partitions.is_empty() {
        if let Some(curve) = &mut plan.curve {
            curve.partitions.clone_from(&options.partitions);
        }
        if let Some(creation) = &mut plan.creation {
            creation.at_once.clone_from(&options.partitions);
        }
    }
    let mut bar = Bar::kept(&plan, &plan.conditions, &options.output)?;
    let result = partitions::run(&plan, &mut bar)?;
    answer(result, &options.output)
}

/// Takes the parts that were not chosen out of the plan; none chosen is all.
fn keep_parts(plan: &mut partitions::Plan, chosen: &[PartChoice]) {
    let keeps = |part| chosen.is_empty() || chosen.contains(&part);
    plan.curve = plan.curve.take().filter(|_| keeps(PartChoice::Curve));
    plan.creation = plan.creation.take().filter(|_| keeps(PartChoice::Creation));
    plan.restart = plan.restart.take().filter(|_| keeps(PartChoice::Restart));
    plan.reassignment = plan.reassignment.filter(|_| keeps(PartChoice::Reassignment));
}

fn storage(options: &StorageOptions) -> anyhow::Result<ExitCode> {
    let work = WorkDirectory::make(&options.output.out)?;
    let conditions = conditions(&work, options.quick);
    let mut plan = storage::Plan::usual(std::env::current_exe()?, conditions);
    plan.scan_bytes = options.bytes.unwrap_or(plan.scan_bytes);
    let result = storage::run(&plan, &mut Bar::new())?;
    answer(result, &options.output)
}

fn cores(options: &CoresOptions) -> anyhow::Result<ExitCode> {
    let work = WorkDirectory::make(&options.output.out)?;
    let (moldau, conditions) = (std::env::current_exe()?, conditions(&work, options.quick));
    let plan = cores::Plan::usual(moldau, conditions, lab_cores::load(&options.load)?);
    let plan = cores::Plan { fronts: fronts(&options.arms), ..plan };
    let mut bar = Bar::kept(&plan, &plan.conditions, &options.output)?;
    let result = cores::run(&plan, &mut bar)?;
    answer(result, &options.output)
}

fn size(options: &SizeOptions) -> anyhow::Result<ExitCode> {
    println!("{}", lab_cores::size(options)?);
    Ok(ExitCode::SUCCESS)
}

fn run_file(options: &RunOptions) -> anyhow::Result<ExitCode> {
    let asked = experiment_file::read(&options.file)?;
    let workers = lab_workers::connected(&options.workers, &version())?;
    let profiles_all = options.profiles.profile;
    let profiler = profiler(&options.profiles, asked.profiles_itself() && !options.quick)?;
    let with = (profiler, profiles_all, workers);
    let external = options.cluster.external.as_deref();
    run_asked(asked, &options.peers, external, with, options.quick, &options.output)
}

/// A command that asks one question by an experiment file of the program.
fn run_question(
    asked: Asked,
    options: &AskedOptions,
    external: Option<&str>,
) -> anyhow::Result<ExitCode> {
    let with = (None, false, None);
    run_asked(asked, &options.peers, external, with, options.quick, &options.output)
}

/// Runs an experiment file, with a profiler, whether that is for all loads, and workers.
fn run_asked(
    asked: Asked,
    peers: &PeerOptions,
    external: Option<&str>,
    (profiler, profiles_all, mut workers): (Option<Profiler>, bool, Option<Workers>),
    quick: bool,
    output: &OutputOptions,
) -> anyhow::Result<ExitCode> {
    let work = WorkDirectory::make(&output.out)?;
    let conditions = conditions(&work, quick);
    let result = match asked {
        Asked::Factor(_) | Asked::Threads(..) if workers.is_some() => {
            anyhow::bail!("--workers: only surveys support workers")
        }
        Asked::Factor(file) => {
            let moldau = std::env::current_exe()?;
            let plan = file::Plan { file, moldau, conditions, profiler };
            file::run(&plan, &mut Bar::kept(&plan, &plan.conditions, output)?)?
        }
        Asked::Survey(file, systems) => {
            keep_records(&file.systems, &systems)?;
            let (file, installations) = (*file, installations(peers, external)?);
            let plan =
                survey::Plan { file, systems, installations, conditions, profiler, profiles_all };
            let mut bar = Bar::kept(&plan, &plan.conditions, output)?;
            survey::run_from(&plan, workers.as_mut(), &mut bar)?
        }
        Asked::Threads(..) if profiler.is_some() => {
            anyhow::bail!("--profile: not supported for topics on threads")
        }
        Asked::Threads(file, systems) => {
            keep_records(&file.systems, &systems)?;
            let installations = installations(peers, external)?;
            let plan = threads::Plan { file, systems, installations, conditions };
            threads::run(&plan, &mut Bar::kept(&plan, &plan.conditions, output)?)?
        }
    };
    answer(result, output)
}

fn faults(options: &FaultsOptions) -> anyhow::Result<ExitCode> {
    let (names, systems) = lab_questions::named(&options.asked)?;
    let asked = &options.asked;
    let work = WorkDirectory::make(&asked.output.out)?;
    let plan = faults::Plan {
        names,
        systems,
        installations: installations(&asked.peers, None)?,
        conditions: conditions(&work, asked.quick),
        rounds: if asked.quick { 3 } else { 6 },
        // A JVM needs the time to come back.
        window_ms: if asked.quick { 8_000 } else { 15_000 },
        rate: options.rate,
        record_bytes: usize::try_from(options.record)?,
    };
    let mut bar = Bar::kept(&plan, &plan.conditions, &asked.output)?;
    let result = faults::run(&plan, &mut bar)?;
    answer(result, &asked.output)
}

fn soak(options: &SoakOptions) -> anyhow::Result<ExitCode> {
    let asked = &options.asked;
    let (names, systems) = lab_questions::named(asked)?;
    let (legs, workload) = lab_questions::legs(options)?;
    let work = WorkDirectory::make(&asked.output.out)?;
    let plan = soak::Plan {
        names,
        systems,
        installations: installations(&asked.peers, None)?,
        conditions: conditions(&work, asked.quick),
        workload,
        legs,
    };
    let result = soak::run(&plan, &mut Bar::new())?;
    answer(result, &asked.output)
}

fn omb(options: &OmbOptions) -> anyhow::Result<ExitCode> {
    let translation = lab_omb::read(options)?;
    for remark in &translation.survey.remarks {
        eprintln!("note: {remark}");
    }
    if options.check {
        print!("{}", lab_omb::described(&translation));
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(workload) = translation.searched() {
        return search_of_omb(options, translation, workload);
    }
    let work = WorkDirectory::make(&options.output.out)?;
    let plan = survey::Plan {
        file: translation.survey,
        systems: translation.systems,
        installations: installations(&options.peers, translation.external.as_deref())?,
        conditions: conditions(&work, false),
        profiler: None,
        profiles_all: false,
    };
    let mut workers = lab_workers::connected(&options.workers, &version())?;
    let mut bar = Bar::kept(&plan, &plan.conditions, &options.output)?;
    let result = survey::run_from(&plan, workers.as_mut(), &mut bar)?;
    write_for_omb(&result.runs, &options.output.directory(&result.id))?;
    answer(result, &options.output)
}

/// Searches for the highest rate of a workload, by trials as long as those of `lab ceiling`.
fn search_of_omb(
    options: &OmbOptions,
    translation: lab_omb::Translation,
    workload: Workload,
) -> anyhow::Result<ExitCode> {
    anyhow::ensure!(options.rounds == 1, "--rounds: a search for a rate runs once");
    anyhow::ensure!(
        options.workers.workers.is_empty(),
        "--workers: not supported for a search for a rate"
    );
    let work = WorkDirectory::make(&options.output.out)?;
    let lab_omb::Translation { survey, systems, external } = translation;
    let installations = installations(&options.peers, external.as_deref())?;
    let conditions = conditions(&work, options.quick);
    let name = survey.scenarios.first().map(|it| it.name.clone()).unwrap_or_default();
    let plan = ceiling::Plan::usual(survey.systems, systems, installations, conditions);
    let Workload { warmup_ms, window_ms, .. } = plan.workload;
    let producers = vec![workload.producers];
    let workload = Workload { warmup_ms, window_ms, ..workload };
    let plan = ceiling::Plan { workload, producers, ..plan };
    let mut bar = Bar::kept(&plan, &plan.conditions, &options.output)?;
    let result = ceiling::run(&plan, &mut bar)?;
    let highest = result.ceiling.iter().flat_map(|found| found.highest(&result.runs));
    let named = highest.map(|run| RunRecord { case: name.clone(), ..run });
    let named: Vec<RunRecord> = named.collect();
    write_for_omb(&named, &options.output.directory(&result.id))?;
    answer(result, &options.output)
}

/// Writes runs as the benchmark would have.
fn write_for_omb(runs: &[RunRecord], directory: &Path) -> anyhow::Result<()> {
    let directory = directory.join("omb");
    std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    for (name, document) in moldau_lab::omb::documents(runs)? {
        let path = directory.join(name);
        std::fs::write(&path, document).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn import(options: &ResultImportOptions) -> anyhow::Result<ExitCode> {
    let mut result = lab_results::import(options)?;
    lab_results::name_apart(&mut result, &options.output)?;
    answer(result, &options.output)
}

fn explain(options: &ExplainOptions) -> anyhow::Result<ExitCode> {
    let (system, load) = experiment_file::explained(&options.system, &options.load)?;
    let work = WorkDirectory::make(&options.output.out)?;
    let plan = explain::Plan {
        name: options.system.clone(),
        system,
        load,
        about: options.about.map(|about| match about {
            AboutChoice::Rate => About::Rate,
            AboutChoice::Latency => About::Latency,
        }),
        installations: installations(&options.peers, options.cluster.external.as_deref())?,
        conditions: conditions(&work, options.quick),
    };
    let result = explain::run(&plan, &mut Bar::new())?;
    answer(result, &options.output)
}

fn read_backlog(options: ReaderOptions) -> anyhow::Result<ExitCode> {
    let outcome = lab_reader::read(&Reading {
        reader: match options.reader {
            ReaderChoice::Raw => Reader::Raw,
            ReaderChoice::Batch => Reader::Batch,
            ReaderChoice::Record => Reader::Record,
            ReaderChoice::Key => Reader::Key,
        },
        bootstrap: options.bootstrap,
        group: options.group,
        prefix: options.topic_prefix,
        topics: options.topics,
        threads: options.threads,
        records: options.records,
        handling: options.handling,
        within: Duration::from_millis(options.within_ms),
    })?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(ExitCode::SUCCESS)
}

fn bare_relay(options: RelayOptions) -> anyhow::Result<ExitCode> {
    let listener = TcpListener::bind(options.listen)
        .with_context(|| format!("listening on {}", options.listen))?;
    relay::run(&listener, options.to)?;
    Ok(ExitCode::SUCCESS)
}

fn null_sink(options: NullSinkOptions) -> anyhow::Result<ExitCode> {
    let listener = TcpListener::bind(options.listen)
        .with_context(|| format!("listening on {}", options.listen))?;
    null_sink::run(&listener)?;
    Ok(ExitCode::SUCCESS)
}

fn self_test(options: &SelftestOptions) -> anyhow::Result<ExitCode> {
    let python = lab_self_test::python(options, cache_directory)?;
    let work = WorkDirectory::make(&options.output.out)?;
    let plan = self_test::Plan {
        test: lab_self_test::promise(options.test),
        moldau: std::env::current_exe()?,
        conditions: Conditions { seed: options.seed, ..conditions(&work, options.quick) },
        drivers: self_test::Drivers::usual(python, options.quick),
    };
    let result = self_test::run(&plan, &mut Bar::new())?;
    answer(result, &options.output)
}

fn bare_disk(task: &str) -> anyhow::Result<ExitCode> {
    let outcome = bare_disk::run(&bare_disk::Task::from_json(task)?)?;
    println!("{}", serde_json::to_string(&outcome)?);
    Ok(ExitCode::SUCCESS)
}

/// Under what conditions all commands measure, but for those that ask for a seed.
fn conditions(work: &WorkDirectory, quick: bool) -> Conditions {
    Conditions { version: version(), work_directory: work.path.clone(), seed: 1, quick }
}

/// What systems can be started from; what is not there is said in the report.
fn installations(peers: &PeerOptions, external: Option<&str>) -> anyhow::Result<Installations> {
    let text = |path: &Path| path.to_str().map(str::to_owned);
    let kafka = kafka(peers.kafka_classpath.as_deref(), &peers.java).ok();
    let kroxylicious = kroxylicious_at(peers.kroxylicious.as_deref(), &peers.java)?;
    let kroxylicious = Some(kroxylicious).filter(|found| found.version().is_some());
    Ok(Installations {
        moldau: text(&std::env::current_exe()?).context("the path of moldau is not UTF-8")?,
        java: text(&peers.java).context("the path of Java is not UTF-8")?,
        kafka: kafka.map(|found| found.class_path()).transpose()?,
        kafka_zookeeper: kafka_zookeeper(&peers.java)?,
        kroxylicious: kroxylicious.and_then(|found| text(&found.directory)),
        stream_consumer: stream_consumer()?,
        external: external.map(str::to_owned),
    })
}

/// Class path of the Apache Kafka that knows ZooKeeper, if it is in the cache.
fn kafka_zookeeper(java: &Path) -> anyhow::Result<Option<String>> {
    let class_path_file = cache_directory()?.join("moldau/kafka-zookeeper/classpath");
    let there = class_path_file.is_file();
    let found = there.then(|| KafkaInstallation { java: java.to_owned(), class_path_file });
    Ok(found.map(|found| found.class_path()).transpose()?)
}

/// The executable that reads by rdkafka, if it is in the cache.
fn stream_consumer() -> anyhow::Result<Option<String>> {
    let file = cache_directory()?.join("moldau/stream-consumer/bin/stream-consumer");
    Ok(file.to_str().filter(|_| file.is_file()).map(str::to_owned))
}

/// What profiles are taken with, where they are asked for, by options or by the experiment itself.
fn profiler(options: &ProfileOptions, by_itself: bool) -> anyhow::Result<Option<Profiler>> {
    if !options.profile && !by_itself {
        return Ok(None);
    }
    let library = match &options.async_profiler {
        Some(library) => library.clone(),
        None => cache_directory()?.join("moldau/async-profiler/libasyncProfiler.so"),
    };
    Ok(Some(Profiler::new(std::env::current_exe()?, Some(library))?))
}

fn kafka(class_path: Option<&Path>, java: &Path) -> anyhow::Result<KafkaInstallation> {
    let class_path_file = match class_path {
        Some(file) => file.to_owned(),
        None => cache_directory()?.join("moldau/kafka/classpath"),
    };
    anyhow::ensure!(
        class_path_file.is_file(),
        "Apache Kafka is not in {}; fetch it with: cargo xtask peers",
        class_path_file.display()
    );
    Ok(KafkaInstallation { java: java.to_owned(), class_path_file })
}

fn cache_directory() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = variable("XDG_CACHE_HOME") {
        return Ok(PathBuf::from(cache));
    }
    let home =
        variable("HOME").context("HOME is not set; give --kafka-classpath or --kroxylicious")?;
    Ok(PathBuf::from(home).join(".cache"))
}

fn version() -> String {
    env!("CARGO_PKG_VERSION").to_owned()
}
