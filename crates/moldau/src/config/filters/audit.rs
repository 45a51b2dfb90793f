//! The settings of the filter `audit`, and the thread that writes its lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use moldau_filters::{AUDITED_APIS, Audit, AuditSettings, WhenFull};
use moldau_proxy::Filter;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::api;
use crate::config::problem::{At, Problem, nowhere};
use crate::config::{Sources, at_least_one};

/// Lines that wait to be written: some seconds of a busy proxy, and a few MiB.
const LINES_MAX: usize = 8192;

/// The keys of the filter.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// File that lines are appended to. Default: standard output.
    file: Option<At<PathBuf>>,
    /// The APIs that are told of, by Kafka's names. Default: those that change or reveal something.
    apis: Option<Vec<At<String>>>,
    /// Seconds after which a session sums up what it produces and fetches. Default 60.
    #[serde(default = "default_summary_interval_s")]
    summary_interval_s: At<u32>,
    /// What happens to lines for which there is no room. Default `drop`.
    #[serde(default)]
    when_full: WhenFullKeys,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum WhenFullKeys {
    #[default]
    Drop,
    Hold,
}

fn default_summary_interval_s() -> At<u32> {
    nowhere(60)
}

/// What writes the lines of a filter, for as long as any of its sessions goes on.
pub(crate) struct Writer {
    file: Option<PathBuf>,
    lines: mpsc::Receiver<Vec<u8>>,
}

impl Writer {
    /// Writes on a thread of its own, so that a slow disk holds no session but those that wait for
    /// room. Drops `working` once all is written.
    ///
    /// # Errors
    /// Says why the file cannot be opened, or no thread be had.
    pub(crate) fn start(self, working: Sender<()>) -> Result<(), String> {
        let Self { file, lines } = self;
        let name =
            file.as_ref().map_or("standard output".to_owned(), |path| path.display().to_string());
        let out: io::Result<Box<dyn Write + Send>> = match file {
            Some(path) => append(&path, true).map(|file| Box::new(file) as _),
            None => Ok(Box::new(io::stdout())),
        };
        let out = out.map_err(|error| format!("{name}: {error}"))?;
        let write = move || {
            if let Err(error) = write_all(out, lines) {
                eprintln!("moldau proxy: the audit ends: {name}: {error}");
            }
            drop(working);
        };
        let thread = std::thread::Builder::new().name("audit".to_owned());
        thread.spawn(write).map(drop).map_err(|error| format!("no thread for it: {error}"))
    }
}

fn write_all(mut out: impl Write, mut lines: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = lines.blocking_recv() {
        // At once, so that lines of several writers to one file do not mix.
        out.write_all(&line)?;
        if lines.is_empty() {
            out.flush()?;
        }
    }
    out.flush()
}

fn append(path: &Path, create: bool) -> io::Result<File> {
    OpenOptions::new().append(true).create(create).open(path)
}

/// Makes the filter, and leaves its writer with the sources.
///
/// # Errors
/// Names the key that is at fault.
pub(crate) fn filter(keys: Keys, sources: &mut Sources) -> Result<Arc<dyn Filter>, Problem> {
    at_least_one(&keys.summary_interval_s, "summary_interval_s")?;
    let apis = match &keys.apis {
        Some(names) => names.iter().map(api).collect::<Result<_, _>>()?,
        None => AUDITED_APIS.to_vec(),
    };
    if let Some(file) = &keys.file {
        check_writable(file)?;
    }
    let settings = AuditSettings {
        apis,
        summary_interval: Duration::from_secs(keys.summary_interval_s.value.into()),
        when_full: match keys.when_full {
            WhenFullKeys::Drop => WhenFull::Drop,
            WhenFullKeys::Hold => WhenFull::Hold,
        },
    };
    let (sink, lines) = mpsc::channel(LINES_MAX);
    sources.writers.push(Writer { file: keys.file.map(|file| file.value.clone()), lines });
    Ok(Arc::new(Audit::new(settings, sink)))
}

/// A file that is not there yet is not made: whoever only checks may be another user.
fn check_writable(file: &At<PathBuf>) -> Result<(), Problem> {
    let path = &file.value;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let checked = match append(path, false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            std::fs::metadata(parent.unwrap_or(Path::new("."))).map(drop)
        }
        opened => opened.map(drop),
    };
    checked.map_err(|error| Problem::at(file, format_args!("{}: {error}", path.display())))
}
