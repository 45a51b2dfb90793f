//! The settings of the filter `audit`, and the thread that writes its lines.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use moldau_filters::{AUDITED_APIS, Audit, AuditSettings, WhenFull};
use moldau_proxy::Filter;
use moldau_threads::{Supervisor, fault_point};
use serde::Deserialize;
use tokio::sync::mpsc;

use super::api;
use crate::config::problem::{At, Problem, nowhere};
use crate::config::{Sources, at_least_one};

/// Lines that wait to be written: some seconds of a busy proxy, and a few MiB.
const LINES_MAX: usize = 8192;

/// Between two tries to write where that failed.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The keys of the filter.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// File that lines are appended to. Default: standard output.
    file: Option<At<PathBuf>>,
    /// The APIs to log, by Kafka's names. Default: those that change or reveal something.
    apis: Option<Vec<At<String>>>,
    /// Seconds after which a session sums up what it produces and fetches. Default 60.
    #[serde(default = "default_summary_interval_s")]
    summary_interval_s: At<u32>,
    /// How lines without room in the queue are handled. Default `drop`.
    #[serde(default)]
    when_full: WhenFullKeys,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
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
    pub(crate) fn start(self, working: Sender<()>, supervisor: &Supervisor) -> Result<(), String> {
        let Self { file, lines } = self;
        let name =
            file.as_ref().map_or("standard output".to_owned(), |path| path.display().to_string());
        let open = move || -> io::Result<Box<dyn Write + Send>> {
            Ok(match &file {
                Some(path) => Box::new(append(path, true)?),
                None => Box::new(io::stdout()),
            })
        };
        let out = open().map_err(|error| format!("{name}: {error}"))?;
        let write = move || {
            write_all(out, open, lines, |error| {
                eprintln!("moldau proxy: failed to write audit lines to {name}: {error}");
                std::thread::sleep(RETRY_PAUSE);
            });
            drop(working);
        };
        let thread = supervisor.spawn("audit", write);
        thread.map(drop).map_err(|error| format!("failed to start a thread: {error}"))
    }
}

/// Writes lines until all senders are gone. After a line that cannot be written, `failed` is called
/// and the line is tried again with the next result of `open`. A disk that was full for a while
/// costs only the lines for which there was no room meanwhile.
fn write_all<W: Write>(
    mut out: W,
    mut open: impl FnMut() -> io::Result<W>,
    mut lines: mpsc::Receiver<Vec<u8>>,
    mut failed: impl FnMut(&io::Error),
) {
    while let Some(line) = lines.blocking_recv() {
        fault_point("audit");
        let mut written = write(&mut out, &line, lines.is_empty());
        while let Err(error) = written {
            failed(&error);
            if lines.is_closed() {
                return;
            }
            written = open().and_then(|anew| {
                out = anew;
                // Ends what was written of the line.
                out.write_all(b"\n")?;
                write(&mut out, &line, lines.is_empty())
            });
        }
    }
}

/// Writes a line at once, so that lines of several writers to one file do not mix.
fn write(out: &mut impl Write, line: &[u8], is_last: bool) -> io::Result<()> {
    out.write_all(line)?;
    if is_last { out.flush() } else { Ok(()) }
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

/// Does not create a missing file: a mere check may run as another user.
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    /// Takes some bytes, and fails once there is no room.
    struct Disk {
        bytes: Rc<RefCell<Vec<u8>>>,
        room: usize,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let taken = bytes.len().min(self.room);
            if taken == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.room -= taken;
            self.bytes.borrow_mut().extend_from_slice(&bytes[..taken]);
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A disk that was full once ended the audit for good.
    #[test]
    fn a_line_that_finds_no_room_is_written_once_there_is() {
        let (sink, lines) = mpsc::channel(9);
        for line in ["{1}\n", "{2}\n", "{3}\n"] {
            sink.try_send(line.as_bytes().to_vec()).unwrap();
        }
        let bytes: Rc<RefCell<Vec<u8>>> = Rc::default();
        let disk = |room| Disk { bytes: Rc::clone(&bytes), room };
        let (mut sink, mut failures) = (Some(sink), 0);
        let mut rooms = [0, 1, 5].into_iter();
        let open = || Ok(disk(rooms.next().expect("a fourth try has room")));
        write_all(disk(6), open, lines, |_| {
            failures += 1;
            // The proxy ends while the last line waits.
            if failures == 4 {
                drop(sink.take());
            }
        });
        assert_eq!(failures, 4);
        let written = String::from_utf8(bytes.take()).unwrap();
        assert_eq!(written, "{1}\n{2\n\n{2}\n");
    }
}
