//! Profiles: where the processes of an arm spent their processor time, as folded stacks in files
//! beside the result document, which holds their hashes.
//!
//! One is taken of every case and arm after the measured runs, over the window of a probe of its
//! own, so that it disturbs no figure. A profile whose bytes or whose program are others than those
//! that the result names is stale, and never shown.

mod categories;
mod perf;
mod stacks;
mod taking;

use std::fs;
use std::io::Read;
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use crate::error::Error;
pub use categories::{Category, SHOWN};
pub use stacks::{Change, Stacks};
pub use taking::Profiler;
pub use taking::{Profiled, Taking, least_share, profile_window_ms};

/// Directory of the profiles beside the result document.
const DIRECTORY: &str = "profiles";

/// Fewest samples that are shared out: with these a share is off by a seventh of itself at best.
const SAMPLES_MIN: u64 = 50;

/// Largest profile that is read: hours of distinct stacks stay far below it.
const BYTES_MAX: u64 = 64 << 20;

/// The profiles of an experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfilesRecord {
    /// SHA-256 of the `moldau` executable with which the runs were made, in hexadecimal.
    pub moldau_sha256: String,
    /// Profiles that were taken.
    pub taken: Vec<ProfileRecord>,
    /// Those that could not be, and why.
    pub missing: Vec<MissingProfile>,
}

/// One profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileRecord {
    /// The case whose load was on.
    pub case: String,
    /// The arm.
    pub arm: String,
    /// The process: `broker`, `proxy`; further ones of one role have a number.
    pub role: String,
    /// What took it.
    pub tool: Tool,
    /// Its file, from the directory of the result.
    pub file: String,
    /// Length of the file.
    pub bytes: u64,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// SHA-256 of the executable that was profiled, in hexadecimal.
    pub program_sha256: String,
    /// Start of the window, ms since 1970.
    pub started_unix_ms: u64,
    /// Length of the window, ms.
    pub window_ms: u64,
    /// The file's text, where it was found.
    #[serde(skip)]
    pub text: Option<String>,
}

/// A process without a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingProfile {
    /// The case.
    pub case: String,
    /// The arm.
    pub arm: String,
    /// The process.
    pub role: String,
    /// Why there is none.
    pub reason: String,
}

/// What takes profiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    /// The process itself, asked by its admin port.
    Moldau,
    /// async-profiler, loaded into a Java machine.
    AsyncProfiler,
    /// `perf` of Linux, which sees what the kernel does as well.
    Perf,
}

impl Tool {
    /// Name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Moldau => "the process itself",
            Self::AsyncProfiler => "async-profiler",
            Self::Perf => "perf",
        }
    }
}

impl ProfilesRecord {
    /// The stacks of one of the profiles.
    ///
    /// # Errors
    /// Why it is not shown: its file is missing, it is stale, it holds something else, or so little
    /// that its shares would be chance.
    pub fn stacks<'a>(&self, of: &'a ProfileRecord) -> Result<Stacks<'a>, String> {
        let text = of.text.as_deref().ok_or_else(|| format!("{} is not there", of.file))?;
        if sha256(text.as_bytes()) != of.sha256 {
            return Err(format!("stale: {} is not the file that was taken", of.file));
        }
        if of.tool == Tool::Moldau && of.program_sha256 != self.moldau_sha256 {
            return Err(format!("stale: {} is of another program than the runs", of.file));
        }
        let stacks = Stacks::parse(text).map_err(|why| format!("{}: {why}", of.file))?;
        match stacks.samples() {
            samples @ ..SAMPLES_MIN => {
                let seconds = of.window_ms / 1_000;
                Err(format!("{samples} samples in {seconds} s, of {SAMPLES_MIN} at least"))
            }
            _ => Ok(stacks),
        }
    }

    /// Writes the profiles below the directory of the result.
    ///
    /// # Errors
    /// [`Error::Machine`] when a file cannot be written.
    pub fn write(&self, result_directory: &Path) -> Result<(), Error> {
        let directory = result_directory.join(DIRECTORY);
        fs::create_dir_all(&directory)
            .map_err(Error::machine(format!("making {}", directory.display())))?;
        for profile in &self.taken {
            let (path, Some(text)) = (result_directory.join(&profile.file), &profile.text) else {
                continue;
            };
            // A file that is not what the result says of it stays as it is found.
            if sha256(text.as_bytes()) == profile.sha256 {
                fs::write(&path, text)
                    .map_err(Error::machine(format!("writing {}", path.display())))?;
            }
        }
        Ok(())
    }

    /// Reads the profiles that are still where they were written. The report lists the others as
    /// missing.
    pub fn read(&mut self, result_directory: &Path) {
        for profile in &mut self.taken {
            let is_below = profile.file == file_name(&profile.case, &profile.arm, &profile.role);
            profile.text =
                is_below.then(|| read_text(&result_directory.join(&profile.file))).flatten();
        }
    }
}

/// The text of a file; `None` if there is none of a sane size, which the caller reports.
fn read_text(path: &Path) -> Option<String> {
    let file = fs::File::open(path).ok()?;
    let mut text = String::new();
    let read = file.take(BYTES_MAX + 1).read_to_string(&mut text).ok()?;
    (u64::try_from(read).ok()? <= BYTES_MAX).then_some(text)
}

/// `profiles/CASE-ARM-ROLE.folded`, in letters that no shell and no page has to escape.
fn file_name(case: &str, arm: &str, role: &str) -> String {
    let plain = |name: &str| {
        let mut plain = String::new();
        for letter in name.chars().flat_map(char::to_lowercase) {
            match letter {
                'a'..='z' | '0'..='9' | '.' => plain.push(letter),
                _ if plain.ends_with('_') => {}
                _ => plain.push('_'),
            }
        }
        plain
    };
    format!("{DIRECTORY}/{}-{}-{}.folded", plain(case), plain(arm), plain(role))
}

/// SHA-256 of `bytes`, in hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hexadecimal(aws_lc_rs::digest::digest(&SHA256, bytes).as_ref())
}

/// The hash of a file.
pub fn sha256_of(path: &Path) -> Result<String, Error> {
    let reading = || Error::machine(format!("reading {}", path.display()));
    let mut file = fs::File::open(path).map_err(reading())?;
    let (mut context, mut block) = (Context::new(&SHA256), vec![0; HASH_BLOCK_BYTES]);
    loop {
        let read = file.read(&mut block).map_err(reading())?;
        match block.get(..read) {
            Some(part) if !part.is_empty() => context.update(part),
            _ => return Ok(hexadecimal(context.finish().as_ref())),
        }
    }
}

/// Bytes of an executable that are hashed at once.
const HASH_BLOCK_BYTES: usize = 64 * 1024;

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
