//! A wall clock of each broker that can be set, while the clock of the machine stays as it is.
//!
//! A library that stands before libc's shifts what the broker reads. The monotonic clock, which
//! cannot be set on a real machine either, is left alone.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::systems::SystemFile;

const LIBRARY: &str = include_str!("shifted_clock.c");

/// The file that holds the shift, as the library knows it.
const SHIFT_VARIABLE: &str = "MOLDAU_CLOCK_SHIFT";

/// The clocks of a system's brokers, in the order of its file.
#[derive(Debug)]
pub(super) struct BrokerClocks(Vec<File>);

/// Which way a clock is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Forward,
    Back,
}

impl BrokerClocks {
    /// Makes each broker of `system` read a clock of its own once it is started. Files are kept in
    /// `directory`.
    ///
    /// # Errors
    /// Why there can be no such clocks: no C compiler, or a broker that has a library before libc.
    pub(super) fn give(system: &mut SystemFile, directory: &Path) -> Result<Self, String> {
        let directory = directory.join("clock");
        let shown = directory.display().to_string();
        let describe = |error: std::io::Error| format!("{shown}: {error}");
        fs::create_dir_all(&directory).map_err(describe)?;
        // The broker may have another working directory.
        let directory = directory.canonicalize().map_err(describe)?;
        let library = compile(&directory)?;
        let brokers: Vec<_> = system.broker_files_mut().collect();
        if brokers.is_empty() {
            return Err("the system has no process of the role broker".into());
        }
        if brokers.iter().any(|broker| broker.environment.contains_key("LD_PRELOAD")) {
            return Err("the broker has an LD_PRELOAD of its own".into());
        }
        let mut shifts = Vec::new();
        for broker in brokers {
            let path = directory.join(&broker.name);
            let mut options = File::options();
            let shift = options.read(true).write(true).create(true).truncate(true).open(&path);
            let shift = shift.map_err(describe)?;
            shift.write_all_at(&0_i64.to_ne_bytes(), 0).map_err(describe)?;
            broker.environment.insert("LD_PRELOAD".into(), library.display().to_string());
            broker.environment.insert(SHIFT_VARIABLE.into(), path.display().to_string());
            shifts.push(shift);
        }
        Ok(Self(shifts))
    }

    /// Sets the clock of one broker off from that of the machine.
    pub(super) fn set(
        &self,
        broker: usize,
        direction: Direction,
        by: Duration,
    ) -> std::io::Result<()> {
        let nanos = i64::try_from(by.as_nanos()).unwrap_or(i64::MAX);
        let shift = match direction {
            Direction::Forward => nanos,
            Direction::Back => -nanos,
        };
        let file = self.0.get(broker).ok_or(std::io::ErrorKind::NotFound)?;
        file.write_all_at(&shift.to_ne_bytes(), 0)
    }
}

/// Compiles the library; gives its path.
fn compile(directory: &Path) -> Result<PathBuf, String> {
    let (source, library) = (directory.join("clock.c"), directory.join("clock.so"));
    fs::write(&source, LIBRARY).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source).arg("-ldl");
    let output = compiler.output().map_err(|error| format!("no C compiler `cc`: {error}"))?;
    match output.status.success() {
        true => Ok(library),
        false => Err(format!("cc: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_reads_the_clock_that_was_set() {
        let directory = tempfile::tempdir().unwrap();
        let library = compile(directory.path()).unwrap();
        let path = directory.path().join("shift");
        let clocks = BrokerClocks(vec![File::create(&path).unwrap()]);
        let read = |direction, by| -> i64 {
            clocks.set(0, direction, by).unwrap();
            let mut date = Command::new("date");
            date.arg("+%s").env("LD_PRELOAD", &library).env(SHIFT_VARIABLE, &path);
            let output = date.output().unwrap();
            String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
        };
        let now = read(Direction::Forward, Duration::ZERO);
        let hour = Duration::from_secs(3600);
        // A test does not take half an hour.
        assert!((1800..5400).contains(&(read(Direction::Forward, hour) - now)));
        assert!((1800..5400).contains(&(now - read(Direction::Back, hour))));
    }
}
