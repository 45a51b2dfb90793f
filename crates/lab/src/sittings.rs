//! An experiment in several sittings: what is finished lies on the disk as soon as it is, so that
//! an experiment that was interrupted, by whatever, goes on where it was.
//!
//! | file of the directory | content |
//! |---|---|
//! | `manifest.json` | the [`Manifest`]: what a later sitting has to be the same in |
//! | `plan.txt` | what is measured, whole |
//! | `finished.jsonl` | a line for each run, reading or part, flushed to the disk |
//!
//! A sitting that ends in the middle of a line leaves a torn one, which is cut off. Every other
//! line that cannot be read is an error: a round that is left out would be a choice.

use std::collections::VecDeque;
use std::fs::{self, File, TryLockError};
use std::io::{
    self, BufRead as _, BufReader, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checks::{Check, Weight};
use crate::environment::Environment;
use crate::result::result_id;
use crate::wall_clock::unix_ms;
use moldau_load::run::RunRecord;
use moldau_measure::Error;
use moldau_measure::profile::sha256_of;

/// Version of the files.
const FORMAT_VERSION: u32 = 1;

const MANIFEST: &str = "manifest.json";
const PLAN: &str = "plan.txt";
const FINISHED: &str = "finished.jsonl";

/// Most bytes of finished runs, about ten thousand runs. All are held in memory, as the result is.
const FINISHED_BYTES_MAX: u64 = 1 << 30;

/// What every sitting of an experiment has to be the same in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the files.
    pub format_version: u32,
    /// Start of the first sitting, ms since 1970; it names the result.
    pub started_unix_ms: u64,
    /// SHA-256 of the executable.
    pub program_sha256: String,
    /// The machine.
    pub environment: Environment,
    /// Arguments of the command, without its name.
    pub arguments: Vec<String>,
}

impl Manifest {
    /// That of an experiment which begins.
    ///
    /// # Errors
    /// [`Error::Machine`] when the executable cannot be read.
    pub fn of(
        program: &Path,
        environment: Environment,
        arguments: Vec<String>,
    ) -> Result<Self, Error> {
        Ok(Self {
            format_version: FORMAT_VERSION,
            started_unix_ms: unix_ms(),
            program_sha256: sha256_of(program)?,
            environment,
            arguments,
        })
    }

    /// That of the experiment in a directory.
    ///
    /// # Errors
    /// [`Error::Machine`] when there is none, [`Error::Document`] when it cannot be read.
    pub fn read(directory: &Path) -> Result<Self, Error> {
        let path = directory.join(MANIFEST);
        let text = fs::read_to_string(&path)
            .map_err(Error::machine(format!("reading {}", path.display())))?;
        let manifest: Self = serde_json::from_str(&text)
            .map_err(|error| Error::Document(format!("{}: {error}", path.display())))?;
        if manifest.format_version != FORMAT_VERSION {
            let version = manifest.format_version;
            return Err(Error::Document(format!("{}: version {version}", path.display())));
        }
        Ok(manifest)
    }

    /// Why an experiment of this manifest cannot go on as `present`; `None` where it can.
    fn differs(&self, present: &Self) -> Option<String> {
        if self.program_sha256 != present.program_sha256 {
            return Some("it was begun by another build of moldau".into());
        }
        if self.environment != present.environment {
            let [then, since] =
                [self, present].map(|it| serde_json::to_value(&it.environment).ok());
            let fields = then.iter().flat_map(|it| it.as_object()).flatten();
            let is_other = |(name, value): &(&String, &Value)| {
                since.as_ref().and_then(|it| it.get(name.as_str())) != Some(*value)
            };
            let names: Vec<&str> = fields.filter(is_other).map(|(name, _)| name.as_str()).collect();
            return Some(format!("the machine is another in its {}", names.join(", ")));
        }
        (self.arguments != present.arguments).then(|| "its arguments are others".into())
    }
}

/// What was finished.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Finished {
    /// A case on an arm in a round.
    Case { case: String, arm: String, pair: u32, runs: Vec<RunRecord> },
    /// What an arm took at full speed, from which rates were made.
    FullSpeed { arm: String, records_per_second: f64 },
    /// What is no run of a case, by its name, with the runs that it took.
    Found { name: String, found: Value, runs: Vec<RunRecord> },
}

/// The files of an experiment that goes on.
#[derive(Debug)]
pub struct Sittings {
    directory: PathBuf,
    started_unix_ms: u64,
    file: File,
    bytes: u64,
    /// Runs that earlier sittings finished and that were not recalled yet.
    finished: VecDeque<Finished>,
    /// What was measured before this sitting; absent in the first.
    recalled: Option<usize>,
}

impl Sittings {
    /// Makes the directory of an experiment below `out`, named as its result will be.
    ///
    /// # Errors
    /// [`Error::Machine`] when it cannot be written, or there is one.
    pub fn begin(out: &Path, manifest: &Manifest, plan: &str) -> Result<Self, Error> {
        let directory = out.join(result_id(manifest.started_unix_ms));
        fs::create_dir_all(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        let text = serde_json::to_string_pretty(manifest)
            .map_err(|error| Error::Document(error.to_string()))?;
        // The manifest is written last: where it exists, the other files do too.
        let file = write_durably(&directory.join(FINISHED), "")?;
        hold(&file, &directory)?;
        write_durably(&directory.join(PLAN), plan)?;
        write_durably(&directory.join(MANIFEST), &text)?;
        let started_unix_ms = manifest.started_unix_ms;
        let (bytes, finished) = (0, VecDeque::new());
        Ok(Self { directory, started_unix_ms, file, bytes, finished, recalled: None })
    }

    /// Goes on with the experiment in `directory`.
    ///
    /// # Errors
    /// [`Error::Plan`] where executable, machine, arguments or plan are others than at its
    /// beginning, otherwise as [`Manifest::read`].
    pub fn resume(directory: &Path, present: &Manifest, plan: &str) -> Result<Self, Error> {
        let manifest = Manifest::read(directory)?;
        let path = directory.join(PLAN);
        let begun_with = fs::read_to_string(&path)
            .map_err(Error::machine(format!("reading {}", path.display())))?;
        let differs = manifest.differs(present);
        let differs = differs.or_else(|| {
            (begun_with != plan).then(|| format!("its plan is another than {}", path.display()))
        });
        if let Some(differs) = differs {
            let directory = directory.display();
            return Err(Error::Plan(format!("{directory} cannot be resumed: {differs}")));
        }
        let path = directory.join(FINISHED);
        let reading = || format!("reading {}", path.display());
        let options = File::options().read(true).write(true).open(&path);
        let mut file = options.map_err(Error::machine(reading()))?;
        hold(&file, directory)?;
        let (finished, bytes) = read_finished(&file, &path)?;
        file.set_len(bytes).map_err(Error::machine(reading()))?;
        file.seek(SeekFrom::End(0)).map_err(Error::machine(reading()))?;
        let is_measured = |it: &&Finished| !matches!(it, Finished::FullSpeed { .. });
        Ok(Self {
            directory: directory.to_owned(),
            started_unix_ms: manifest.started_unix_ms,
            file,
            bytes,
            recalled: Some(finished.iter().filter(is_measured).count()),
            finished,
        })
    }

    /// Where its files are.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Start of the first sitting, ms since 1970, and the time since.
    pub(crate) fn started(&self) -> (u64, Duration) {
        let started = self.started_unix_ms;
        (started, Duration::from_millis(unix_ms().saturating_sub(started)))
    }

    /// The runs of a case on an arm in a round, if an earlier sitting finished it.
    pub(crate) fn recall(&mut self, case: &str, arm: &str, pair: u32) -> Option<Vec<RunRecord>> {
        let is_it = |it: &Finished| {
            matches!(it, Finished::Case { case: of, arm: on, pair: in_round, .. }
                if of == case && on == arm && *in_round == pair)
        };
        let at = self.finished.iter().position(is_it)?;
        match self.finished.remove(at)? {
            Finished::Case { runs, .. } => Some(runs),
            Finished::FullSpeed { .. } | Finished::Found { .. } => None,
        }
    }

    /// What was found under a name, and the runs that it took, if an earlier sitting found it.
    pub(crate) fn recall_found<T: DeserializeOwned>(
        &mut self,
        name: &str,
    ) -> Result<Option<(T, Vec<RunRecord>)>, Error> {
        let is_it = |it: &Finished| matches!(it, Finished::Found { name: of, .. } if of == name);
        let at = self.finished.iter().position(is_it);
        let Some(Finished::Found { found, runs, .. }) = at.and_then(|at| self.finished.remove(at))
        else {
            return Ok(None);
        };
        let place = || self.directory.join(FINISHED).display().to_string();
        let found = serde_json::from_value(found)
            .map_err(|error| Error::Document(format!("{}, {name}: {error}", place())))?;
        Ok(Some((found, runs)))
    }

    /// What an arm took at full speed, if an earlier sitting asked.
    pub(crate) fn recall_full_speed(&self, arm: &str) -> Option<f64> {
        self.finished.iter().find_map(|it| match it {
            Finished::FullSpeed { arm: of, records_per_second } if of == arm => {
                Some(*records_per_second)
            }
            Finished::FullSpeed { .. } | Finished::Case { .. } | Finished::Found { .. } => None,
        })
    }

    /// Keeps the runs of a case on an arm in a round.
    pub(crate) fn keep(
        &mut self,
        case: &str,
        arm: &str,
        pair: u32,
        runs: &[RunRecord],
    ) -> Result<(), Error> {
        let (case, arm, runs) = (case.to_owned(), arm.to_owned(), runs.to_vec());
        self.append(&Finished::Case { case, arm, pair, runs })
    }

    /// Keeps what an arm took at full speed.
    pub(crate) fn keep_full_speed(
        &mut self,
        arm: &str,
        records_per_second: f64,
    ) -> Result<(), Error> {
        self.append(&Finished::FullSpeed { arm: arm.to_owned(), records_per_second })
    }

    /// Keeps what was found under a name, with the runs that it took.
    pub(crate) fn keep_found<T: Serialize>(
        &mut self,
        name: &str,
        found: &T,
        runs: &[RunRecord],
    ) -> Result<(), Error> {
        let found =
            serde_json::to_value(found).map_err(|error| Error::Document(error.to_string()))?;
        self.append(&Finished::Found { name: name.to_owned(), found, runs: runs.to_vec() })
    }

    /// The note in the report, if this is not the first sitting.
    pub(crate) fn check(&self) -> Option<Check> {
        let recalled = self.recalled?;
        Some(Check {
            name: "the experiment was resumed after an interruption".into(),
            passed: false,
            weight: Weight::Note,
            found: format!("{recalled} runs are of earlier sittings"),
            demanded: "one sitting; executable, machine and plan are the same".into(),
        })
    }

    fn append(&mut self, finished: &Finished) -> Result<(), Error> {
        let mut line =
            serde_json::to_string(finished).map_err(|error| Error::Document(error.to_string()))?;
        line.push('\n');
        let bytes = self.bytes + u64::try_from(line.len()).unwrap_or(u64::MAX);
        if bytes > FINISHED_BYTES_MAX {
            return Err(Error::Plan("the experiment has more runs than a result may hold".into()));
        }
        let written = self.file.write_all(line.as_bytes()).and_then(|()| self.file.sync_data());
        let path = self.directory.join(FINISHED);
        written.map_err(Error::machine(format!("writing {}", path.display())))?;
        self.bytes = bytes;
        Ok(())
    }
}

/// Every whole line, and their bytes.
fn read_finished(file: &File, path: &Path) -> Result<(VecDeque<Finished>, u64), Error> {
    let (mut finished, mut bytes) = (VecDeque::new(), 0);
    let mut reader = BufReader::new(file.take(FINISHED_BYTES_MAX));
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = reader
            .read_until(b'\n', &mut line)
            .map_err(Error::machine(format!("reading {}", path.display())))?;
        // A line without an end was torn, as the last of a sitting may be.
        if !line.ends_with(b"\n") {
            return Ok((finished, bytes));
        }
        let number = finished.len() + 1;
        finished.push_back(serde_json::from_slice(&line).map_err(|error| {
            Error::Document(format!("{}, line {number}: {error}", path.display()))
        })?);
        bytes += u64::try_from(length).unwrap_or(u64::MAX);
    }
}

/// Keeps other sittings of the same experiment away as long as the file is open, where the file
/// system has locks.
fn hold(file: &File, directory: &Path) -> Result<(), Error> {
    let is_without = |error: &io::Error| {
        let nolck = io::Error::from(Errno::NOLCK).raw_os_error();
        error.kind() == ErrorKind::Unsupported || error.raw_os_error() == nolck
    };
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::Error(error)) if is_without(&error) => Ok(()),
        Err(TryLockError::Error(error)) => {
            Err(Error::machine(format!("locking {FINISHED} in {}", directory.display()))(error))
        }
        Err(TryLockError::WouldBlock) => {
            Err(Error::Plan(format!("{}: another sitting of it goes on", directory.display())))
        }
    }
}

/// Writes a file that must not be there yet, and flushes it.
fn write_durably(path: &Path, text: &str) -> Result<File, Error> {
    let writing = || format!("writing {}", path.display());
    let mut file = File::create_new(path).map_err(Error::machine(writing()))?;
    file.write_all(text.as_bytes()).map_err(Error::machine(writing()))?;
    file.sync_all().map_err(Error::machine(writing()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn manifest() -> Manifest {
        Manifest {
            format_version: FORMAT_VERSION,
            started_unix_ms: 951_827_696_000,
            program_sha256: "ab".into(),
            environment: Environment { kernel: "6".into(), ..Environment::default() },
            arguments: vec!["lab".into(), "latency".into()],
        }
    }

    fn refused(directory: &Path, present: &Manifest, plan: &str) -> String {
        Sittings::resume(directory, present, plan).unwrap_err().to_string()
    }

    #[test]
    fn a_later_sitting_finds_finished_runs_and_cuts_off_a_torn_line() {
        let out = tempfile::tempdir().unwrap();
        let run = sample::result().runs.swap_remove(0);
        let mut first = Sittings::begin(out.path(), &manifest(), "plan").unwrap();
        let directory = first.directory().to_owned();
        assert!(directory.ends_with("20000229-123456") && first.check().is_none());
        first.keep_full_speed("direct", 1_234.5).unwrap();
        first.keep("case", "direct", 0, std::slice::from_ref(&run)).unwrap();
        drop(first);
        let path = directory.join(FINISHED);
        let whole = fs::read_to_string(&path).unwrap();
        let torn = format!("{whole}{}", &whole[whole.len() / 2..whole.len() - 1]);
        fs::write(&path, torn).unwrap();
        // The second sitting begins a line of its own, which the third finds.
        let mut second = Sittings::resume(&directory, &manifest(), "plan").unwrap();
        assert_eq!(second.recall("case", "proxy", 0), None);
        assert_eq!(second.recall("case", "direct", 1), None);
        assert_eq!(second.recall("case", "direct", 0), Some(vec![run.clone()]));
        assert_eq!(second.recall("case", "direct", 0), None);
        assert_eq!(second.recall_full_speed("direct"), Some(1_234.5));
        assert!(second.check().unwrap().found.starts_with("1 runs"));
        second.keep("case", "direct", 1, &[run.clone(), run.clone()]).unwrap();
        second.keep_found("sizes", &[3, 4], std::slice::from_ref(&run)).unwrap();
        drop(second);
        let mut third = Sittings::resume(&directory, &manifest(), "plan").unwrap();
        assert_eq!(third.recall("case", "direct", 1).unwrap().len(), 2);
        assert_eq!(third.recall("case", "direct", 0), Some(vec![run.clone()]));
        assert!(third.check().unwrap().found.starts_with("3 runs"));
        assert_eq!(third.recall_found::<[u32; 2]>("weights").unwrap(), None);
        assert_eq!(third.recall_found("sizes").unwrap(), Some(([3, 4], vec![run])));
        assert_eq!(third.recall_found::<[u32; 2]>("sizes").unwrap(), None);
    }

    #[test]
    fn a_changed_experiment_is_refused_and_the_change_named() {
        let out = tempfile::tempdir().unwrap();
        let directory =
            Sittings::begin(out.path(), &manifest(), "plan").unwrap().directory().to_owned();
        let other_build = Manifest { program_sha256: "cd".into(), ..manifest() };
        assert!(refused(&directory, &other_build, "plan").contains("another build"));
        let environment = Environment { kernel: "7".into(), ..Environment::default() };
        let other_machine = Manifest { environment, ..manifest() };
        assert!(refused(&directory, &other_machine, "plan").ends_with("in its kernel"));
        let others = Manifest { arguments: Vec::new(), ..manifest() };
        assert!(refused(&directory, &others, "plan").contains("arguments"));
        assert!(refused(&directory, &manifest(), "plans").contains("plan is another"));
        // A later start of the same is no other experiment.
        let later = Manifest { started_unix_ms: 951_827_697_000, ..manifest() };
        Sittings::resume(&directory, &later, "plan").unwrap();
        assert!(Sittings::begin(out.path(), &manifest(), "plan").is_err());
    }

    #[test]
    fn two_sittings_of_one_experiment_do_not_go_on_at_once() {
        let out = tempfile::tempdir().unwrap();
        let first = Sittings::begin(out.path(), &manifest(), "plan").unwrap();
        let directory = first.directory().to_owned();
        assert!(refused(&directory, &manifest(), "plan").contains("another sitting of it goes on"));
        drop(first);
        let second = Sittings::resume(&directory, &manifest(), "plan").unwrap();
        assert!(refused(&directory, &manifest(), "plan").contains("another sitting of it goes on"));
        drop(second);
    }

    #[test]
    fn a_damaged_line_before_the_last_is_not_passed_over() {
        let out = tempfile::tempdir().unwrap();
        let mut sittings = Sittings::begin(out.path(), &manifest(), "plan").unwrap();
        sittings.keep_full_speed("direct", 1.0).unwrap();
        let directory = sittings.directory().to_owned();
        drop(sittings);
        let path = directory.join(FINISHED);
        let text = fs::read_to_string(&path).unwrap().replacen('{', "<", 1);
        fs::write(&path, text).unwrap();
        assert!(refused(&directory, &manifest(), "plan").contains("line 1"));
        assert!(Manifest::read(out.path()).is_err());
    }
}
