//! The operating system's side of a handler process: start, messages, end.
//!
//! A process has a process group of its own, so that a signal of the terminal does not end it
//! before its records are done, and so that what it has started ends with it.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, sink};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::guard::Guard;
use super::reply::VERSION;
use super::requests::PoolSettings;

/// A process that was started. Dropping it kills it.
pub(super) struct Child {
    child: tokio::process::Child,
    pub(super) stdin: Option<ChildStdin>,
    pub(super) stdout: ChildStdout,
    messages: JoinHandle<()>,
    group: Pid,
    guard: Arc<Guard>,
}

impl Child {
    /// Starts process number `process` of a route. It inherits the environment.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn start(
        settings: &PoolSettings,
        process: usize,
        guard: &Arc<Guard>,
    ) -> io::Result<Self> {
        let mut words = settings.command.iter();
        let mut command = Command::new(words.next().map_or("", String::as_str));
        command.args(words).envs(&settings.environment);
        command.env("MOLDAU_PROTOCOL", VERSION.to_string());
        command.env("MOLDAU_PROCESS", process.to_string());
        if let Some(directory) = &settings.directory {
            command.current_dir(directory);
        }
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let stdout = child.stdout.take().expect("stdout is piped");
        let stderr = child.stderr.take().expect("stderr is piped");
        let prefix = format!("{}[{process}]: ", settings.name);
        let messages = tokio::spawn(show_messages(prefix, stderr));
        let group = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let group = group.expect("it was not waited for");
        let guard = Arc::clone(guard);
        let child = Self { stdin: child.stdin.take(), stdout, child, messages, group, guard };
        child.guard.watch(group, settings.stop_timeout)?;
        Ok(child)
    }

    /// Waits for the end of a process that has closed its end of `pipe`, and kills it if it goes
    /// on. Says how it ended.
    pub(super) async fn ended(mut self, pipe: &str) -> String {
        let Ok(Ok(status)) = timeout(END_TIMEOUT, self.child.wait()).await else {
            self.kill().await;
            return format!("closed its {pipe}");
        };
        self.show_last_messages().await;
        in_words(status)
    }

    /// Kills it.
    pub(super) async fn kill(mut self) {
        self.signal(Signal::KILL);
        // It fails only if the process is gone.
        drop(self.child.wait().await);
        self.show_last_messages().await;
    }

    /// Closes stdin, which asks the process to end. Sends SIGTERM after `patience`, and SIGKILL
    /// after the same time again.
    pub(super) async fn stop(mut self, patience: Duration) {
        drop(self.stdin.take());
        // A process that waits until its replies are read could not end.
        let Self { child, stdout, .. } = &mut self;
        let mut nowhere = sink();
        let ended = async {
            drop(tokio::io::copy(stdout, &mut nowhere).await);
            child.wait().await
        };
        if timeout(patience, ended).await.is_err() {
            self.signal(Signal::TERM);
            drop(timeout(patience, self.child.wait()).await);
        }
        self.kill().await;
    }

    fn signal(&self, signal: Signal) {
        // The number of a process that was waited for may be that of another.
        if self.child.id().is_some() {
            // It fails only if the process is gone.
            let _ = kill_process_group(self.group, signal);
        }
    }

    async fn show_last_messages(&mut self) {
        // What it has started may have its stderr, and go on.
        drop(timeout(END_TIMEOUT, &mut self.messages).await);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        self.guard.forget(self.group);
        self.messages.abort();
    }
}

fn in_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exited with status {code}"),
        (None, Some(signal)) => format!("exited with signal {signal}"),
        (None, None) => "exited".to_owned(),
    }
}

/// Writes what the process says on stderr to stderr of this process, with the name of the route
/// and the number of the process.
async fn show_messages(prefix: String, mut stderr: ChildStderr) {
    let mut text = Vec::new();
    while let Ok(1..) = stderr.read_buf(&mut text).await {
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            eprintln!("{prefix}{}", String::from_utf8_lossy(line.trim_ascii_end()));
        }
        if text.len() > MESSAGE_BYTES_MAX {
            eprintln!("{prefix}{}", String::from_utf8_lossy(&text));
            text.clear();
        }
    }
    if !text.is_empty() {
        eprintln!("{prefix}{}", String::from_utf8_lossy(&text));
    }
}

/// How long a process may take to end after its stdout has.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest line of stderr that is kept together.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
