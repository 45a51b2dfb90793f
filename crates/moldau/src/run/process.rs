//! One process of a route: it is started, says hello, gets requests, and is started again when it
//! ends.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::child::Child;
use super::dispatch::Blame;
use super::frames::{Decoder, encode};
use super::reply::{Reply, check_hello, shown};
use super::requests::{Answer, Shared};

/// Keeps a process running until `stop`. Says on `started` whether the first one said hello.
pub(super) async fn supervise(
    shared: Arc<Shared>,
    slot: usize,
    mut stop: watch::Receiver<bool>,
    started: oneshot::Sender<Result<(), String>>,
) {
    let mut started = Some(started);
    let mut pause = RESTART_PAUSE;
    let name = format!("handler process {slot} of {}", shared.settings.name);
    while !*stop.borrow_and_update() {
        let began = tokio::select! {
            began = begin(&shared, slot) => began,
            _ = stop.changed() => return,
        };
        let problem = match began {
            Ok(process) => {
                if let Some(started) = started.take() {
                    // Whoever has given up the start drops the pool.
                    drop(started.send(Ok(())));
                }
                match Box::pin(serve(&shared, slot, process, &mut stop)).await {
                    None => return,
                    Some((problem, Progress::Some)) => {
                        pause = RESTART_PAUSE;
                        problem
                    }
                    Some((problem, Progress::None)) => problem,
                }
            }
            Err(problem) => problem,
        };
        let problem = format!("{name} {problem}");
        if let Some(started) = started.take() {
            drop(started.send(Err(problem)));
            return;
        }
        eprintln!("moldau run: {problem}; it is started again in {pause:?}");
        tokio::select! {
            () = sleep(pause) => {}
            _ = stop.changed() => return,
        }
        pause = (pause * 2).min(RESTART_PAUSE_MAX);
    }
}

/// Whether a process has answered anything.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Progress {
    None,
    Some,
}

/// A process that has said hello.
struct Process {
    child: Child,
    decoder: Decoder,
    out: BytesMut,
    progress: Progress,
    /// The oldest request without an answer, and since when it is that.
    oldest: Option<(u64, Instant)>,
}

/// How a process ended.
enum End {
    Stopped,
    /// It closed its stdout.
    Gone,
    /// It closed its stdin, and does not get what it is sent.
    Deaf,
    /// It wrote something else than replies.
    Garbage(String),
    /// It did not answer this request in time.
    Hung(u64),
}

/// Starts a process and waits for its hello.
async fn begin(shared: &Shared, slot: usize) -> Result<Process, String> {
    let settings = &shared.settings;
    let program = settings.command.first().map_or("", String::as_str);
    let child = Child::start(settings, slot, &shared.guard);
    let mut child = child.map_err(|error| format!("cannot be started: {program}: {error}"))?;
    let mut decoder = Decoder::new(settings.protocol);
    let hello = async {
        loop {
            if let Some(document) = decoder.next().map_err(|error| error.to_string())? {
                return check_hello(&document).map(|()| true);
            }
            if !matches!(child.stdout.read_buf(&mut decoder.buffer).await, Ok(1..)) {
                return Ok(false);
            }
        }
    };
    match timeout(settings.start_timeout, hello).await {
        Ok(Ok(true)) => {
            let (out, progress) = (BytesMut::new(), Progress::None);
            Ok(Process { child, decoder, out, progress, oldest: None })
        }
        Ok(Ok(false)) => {
            Err(format!("{} before it wrote {{\"moldau\":1}}", child.ended("stdout").await))
        }
        Ok(Err(problem)) => {
            child.kill().await;
            Err(problem)
        }
        Err(_) => {
            child.kill().await;
            Err(format!("did not write {{\"moldau\":1}} within {:?}", settings.start_timeout))
        }
    }
}

/// Sends requests to a process until it ends; `None` if it was stopped.
async fn serve(
    shared: &Shared,
    slot: usize,
    mut process: Process,
    stop: &mut watch::Receiver<bool>,
) -> Option<(String, Progress)> {
    shared.with(|dispatch| dispatch.up(slot));
    let end = process.exchange(shared, slot, stop).await;
    let Process { child, progress, .. } = process;
    let timeout = shared.settings.timeout;
    let (problem, blame) = match end {
        End::Stopped => {
            child.stop(shared.settings.stop_timeout).await;
            // Those that wait for an answer are told by its absence.
            shared.with(|dispatch| dispatch.fail(slot, Blame::Any));
            return None;
        }
        End::Gone => (child.ended("stdout").await, Blame::Any),
        End::Deaf => (child.ended("stdin").await, Blame::Any),
        End::Garbage(problem) => {
            child.kill().await;
            (problem, Blame::Any)
        }
        End::Hung(id) => {
            child.kill().await;
            (format!("did not answer within {timeout:?} and was killed"), Blame::One(id))
        }
    };
    if let Some(call) = shared.with(|dispatch| dispatch.fail(slot, blame)) {
        let answer = match blame {
            Blame::Any => Answer::Died(format!("the handler {problem}")),
            Blame::One(_) => Answer::TimedOut,
        };
        // A caller that was cancelled does not wait.
        drop(call.answer.send(answer));
    }
    Some((problem, progress))
}

impl Process {
    async fn exchange(
        &mut self,
        shared: &Shared,
        slot: usize,
        stop: &mut watch::Receiver<bool>,
    ) -> End {
        loop {
            self.gather(shared, slot);
            let deadline = self.deadline(shared, slot);
            let Child { stdin, stdout, .. } = &mut self.child;
            let Some(stdin) = stdin else { return End::Deaf };
            tokio::select! {
                biased;
                _ = stop.changed() => return End::Stopped,
                read = stdout.read_buf(&mut self.decoder.buffer) => {
                    if !matches!(read, Ok(1..)) {
                        return End::Gone;
                    }
                    if let Err(problem) = self.settle(shared, slot) {
                        return End::Garbage(problem);
                    }
                }
                written = stdin.write(&self.out), if !self.out.is_empty() => match written {
                    Ok(bytes) => self.out.advance(bytes),
                    Err(_) => return End::Deaf,
                },
                // While more waits to be written than a pipe holds, nothing is gathered.
                () = shared.wake.get(slot).expect("each process has its own").notified(),
                    if self.out.len() < WRITE_BYTES => {}
                id = hangs(deadline) => return End::Hung(id),
            }
        }
    }

    /// Takes the requests that it is to be sent.
    fn gather(&mut self, shared: &Shared, slot: usize) {
        while self.out.len() < WRITE_BYTES {
            let out = &mut self.out;
            let is_some = shared.with(|dispatch| {
                let call = dispatch.take(slot, |call| !call.answer.is_closed());
                let encoded = call.map(|it| encode(shared.settings.protocol, &it.document, out));
                encoded.is_some()
            });
            if !is_some {
                break;
            }
        }
    }

    /// The oldest request without an answer, and when its time is up. Of a process that handles
    /// one request after the other, only that which it handles counts.
    fn deadline(&mut self, shared: &Shared, slot: usize) -> Option<(u64, Instant)> {
        let oldest = shared.oldest(slot);
        if oldest != self.oldest.map(|(id, _)| id) {
            self.oldest = oldest.map(|id| (id, Instant::now()));
        }
        let (id, since) = self.oldest?;
        Some((id, since.checked_add(shared.settings.timeout)?))
    }

    /// Hands out the replies that were read.
    fn settle(&mut self, shared: &Shared, slot: usize) -> Result<(), String> {
        while let Some(document) = self.decoder.next().map_err(|error| error.to_string())? {
            let json = document.json.clone();
            let reply = Reply::parse(document, shared.settings.form).map_err(|problem| {
                let hint = "stdout is for replies, stderr for messages";
                format!("wrote {}, a reply {problem}; {hint}", shown(&json))
            })?;
            let Some(call) = shared.with(|dispatch| dispatch.settle(slot, reply.id)) else {
                return Err(format!("answered request {}, which it was not sent", reply.id));
            };
            self.progress = Progress::Some;
            // A caller that was cancelled does not wait.
            drop(call.answer.send(Answer::Replied(reply.outcome)));
        }
        Ok(())
    }
}

/// Waits until the time of a request is up.
async fn hangs(deadline: Option<(u64, Instant)>) -> u64 {
    match deadline {
        Some((id, at)) => {
            sleep_until(at).await;
            id
        }
        None => std::future::pending().await,
    }
}

/// Pause before a process is started again; doubles until it answers a request.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// Longest such pause.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Bytes gathered for one write: what a pipe holds on Linux.
const WRITE_BYTES: usize = 64 * 1024;
