//! `moldau lab check`: clients and faults, and the history of what they did.

use std::fs::File;
use std::io::{self, BufReader, BufWriter};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use moldau_checker::History;
use moldau_lab::check::Fault;
use moldau_lab::experiments::Conditions;
use moldau_lab::experiments::check::{self, HISTORY_FILE, LENGTH, Plan, QUICK_LENGTH};
use moldau_measure::Error;

use super::super::lab_directory::WorkDirectory;
use super::super::lab_results;
use super::super::lab_sittings::Bar;
use super::super::{experiment_file, lab_answer};
use super::{conditions, installations, version};
use crate::arguments::{CheckOptions, FaultChoice};

pub(super) fn run(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    match &options.history {
        Some(file) => of_file(file, options),
        None => of_system(options),
    }
}

fn of_system(options: &CheckOptions) -> anyhow::Result<ExitCode> {
    let external = options.cluster.external.as_deref();
    let usual = if external.is_some() { "external" } else { "moldau" };
    let name = options.system.clone().unwrap_or_else(|| usual.to_owned());
    let system = experiment_file::read_checked_system(&name)?;
    let installations = installations(&options.peers, external)?;
    let work = WorkDirectory::make(&options.output.out)?;
    let seed = options.seed.unwrap_or_else(|| fastrand::u32(..).into());
    let conditions = Conditions { seed, ..conditions(&work, options.quick) };
    let length = if options.quick { QUICK_LENGTH } else { LENGTH };
    let faults = faults(options.faults.as_deref(), system.is_on_services());
    let plan = Plan {
        name,
        system,
        installations,
        conditions,
        clients: options.clients,
        partitions: options.partitions,
        length: options.length.unwrap_or(length),
        faults,
    };
    eprintln!("seed {seed}");
    let mut file = None;
    let mut keep = |id: &str, history: &History| {
        let path = options.output.directory(id).join(HISTORY_FILE);
        write(history, &path, &mut file)
            .map_err(Error::machine(format!("writing {}", path.display())))
    };
    let (result, _) = check::run(&plan, &mut Bar::new(), &mut keep)?;
    lab_answer::answer(result, &options.output)
}

fn of_file(file: &Path, options: &CheckOptions) -> anyhow::Result<ExitCode> {
    let place = || file.display().to_string();
    let source = BufReader::new(File::open(file).with_context(place)?);
    let history = History::read(source).with_context(place)?;
    let conditions = Conditions {
        version: version(),
        work_directory: options.output.out.clone(),
        seed: 0,
        quick: false,
    };
    let mut result = check::of_history(&history, file, &conditions).with_context(place)?;
    lab_results::name_apart(&mut result, &options.output)?;
    lab_answer::answer(result, &options.output)
}

fn faults(chosen: Option<&[FaultChoice]>, is_on_services: bool) -> Vec<Fault> {
    let fault = |choice: &FaultChoice| match choice {
        FaultChoice::None => None,
        FaultChoice::Kill => Some(Fault::Kill),
        FaultChoice::Stop => Some(Fault::Stop),
        FaultChoice::Cut => Some(Fault::Cut),
        FaultChoice::Client => Some(Fault::Client),
        FaultChoice::Power => Some(Fault::Power),
        FaultChoice::Disk => Some(Fault::Disk),
        FaultChoice::Slow => Some(Fault::Slow),
        FaultChoice::Clock => Some(Fault::Clock),
        FaultChoice::Database => Some(Fault::Database),
        FaultChoice::Failover => Some(Fault::Failover),
        FaultChoice::DatabaseCut => Some(Fault::DatabaseCut),
        FaultChoice::StoreCut => Some(Fault::StoreCut),
        FaultChoice::Store => Some(Fault::Store),
    };
    match chosen {
        Some(chosen) => chosen.iter().filter_map(fault).collect(),
        None => Fault::usual(is_on_services),
    }
}

/// Writes operations to a file, after those that were written before.
fn write(history: &History, path: &Path, file: &mut Option<File>) -> io::Result<()> {
    let file = match file {
        Some(file) => file,
        None => {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            file.insert(File::create(path)?)
        }
    };
    history.write(BufWriter::new(file))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::arguments::{Arguments, Command, LabQuestion};

    fn parsed(arguments: &[&str]) -> Result<CheckOptions, clap::Error> {
        let all = ["moldau", "lab", "check"].iter().chain(arguments);
        match Arguments::try_parse_from(all)?.command {
            Command::Lab(LabQuestion::Check(options)) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    fn faults_of(arguments: &[&str]) -> Vec<Fault> {
        faults(parsed(arguments).expect("it is sound").faults.as_deref(), false)
    }

    #[test]
    fn faults_are_all_unless_some_are_chosen() {
        assert_eq!(faults_of(&[]), Fault::usual(false));
        assert_eq!(faults_of(&["--faults", "store-cut"]), [Fault::StoreCut]);
        assert_eq!(faults_of(&["--faults", "cut,kill"]), [Fault::Cut, Fault::Kill]);
        assert_eq!(faults_of(&["--faults", "none"]), []);
    }

    #[test]
    fn a_history_of_a_file_takes_no_option_of_a_run() {
        assert!(parsed(&["--history", "h.jsonl"]).is_ok());
        for more in ["--quick", "--faults=kill", "--seed=1", "--system=kafka", "--external=h:1"] {
            assert!(parsed(&["--history", "h.jsonl", more]).is_err(), "{more}");
        }
    }
}
