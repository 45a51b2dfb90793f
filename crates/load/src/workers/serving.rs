//! The worker's side: one coordinator after another, and its loads one after another.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc as answers, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::channel::Channel;
use super::frames::Side;
use super::messages::{FromWorker, Load, ToWorker};
use super::{ALIVE_INTERVAL, HANDSHAKE_TIMEOUT, Token};
use crate::generator::{Accord, Part, nanos, produce_part, runtime};
use moldau_measure::Error;

/// Pause after a connection that could not be accepted, which would fail again at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Connections that may have yet to say who they are.
const ARRIVING_MAX: usize = 16;

/// What a load and its coordinator have to say to each other at most: that it is ready, its start,
/// that its producers are done, and what came of it.
const SAYINGS_MAX: usize = 4;

/// A worker that listens.
#[derive(Debug)]
pub struct Worker {
    listener: TcpListener,
    token: Token,
    /// Version of the program.
    version: String,
    /// What its clock counts from.
    epoch: Instant,
}

/// How long a worker stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stay {
    /// As long as its process.
    Always,
    /// Until an experiment that it took part in is over.
    OneExperiment,
}

/// What a worker does, for its operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A coordinator that has the token is served.
    Serves(SocketAddr),
    /// It is over: that it is, or why.
    Ended(SocketAddr, Result<(), String>),
}

impl Worker {
    /// A worker behind `listener`.
    #[must_use]
    pub fn new(listener: TcpListener, token: Token, version: String) -> Self {
        Self { listener, token, version, epoch: Instant::now() }
    }

    /// Serves coordinators one after another. The failure of one does not end the worker.
    ///
    /// # Errors
    /// [`Error::Machine`] when it cannot listen or start threads.
    pub fn run(&self, stay: Stay, tell: &mut dyn FnMut(&Event)) -> Result<(), Error> {
        runtime()?.block_on(async {
            let listening = Error::machine("listening");
            let listener = self.listener.try_clone().and_then(|listener| {
                listener.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(listener)
            });
            let listener = listener.map_err(listening)?;
            // A silent peer does not delay others.
            let mut arriving = FuturesUnordered::new();
            loop {
                let (address, arrived) = tokio::select! {
                    accepted = listener.accept(), if arriving.len() < ARRIVING_MAX => {
                        match accepted {
                            Ok((stream, address)) => arriving.push(async move {
                                (address, self.greet(stream, address).await)
                            }),
                            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
                        }
                        continue;
                    }
                    Some(arrived) = arriving.next() => arrived,
                };
                let ended = match arrived {
                    Ok(channel) => self.serve(channel, address, tell).await,
                    Err(error) => Err(error),
                };
                let is_done = ended.as_ref().is_ok_and(|loads| *loads > 0);
                let ended = ended.map(|_| ()).map_err(|error| error.to_string());
                tell(&Event::Ended(address, ended));
                if is_done && stay == Stay::OneExperiment {
                    return Ok(());
                }
            }
        })
    }

    /// Checks that the peer is a coordinator of this version that has the token.
    async fn greet(
        &self,
        stream: tokio::net::TcpStream,
        address: SocketAddr,
    ) -> Result<Channel, Error> {
        let peer = format!("coordinator {address}");
        let mut channel = Channel::begin(stream, &self.token, Side::Worker, peer).await?;
        let greeting = timeout(HANDSHAKE_TIMEOUT, channel.receive()).await;
        match greeting.map_err(|_| channel.lost("it did not greet"))?? {
            ToWorker::Greeting { version } if version == self.version => Ok(channel),
            ToWorker::Greeting { version } => {
                // Sent before the connection ends: a holder of the token may know the reason.
                channel.send(&self.greeting()?).await?;
                Err(channel.lost(format_args!("its version is {version}")))
            }
            _ => Err(channel.lost("it did not greet")),
        }
    }

    /// Serves a coordinator to its end; gives how many loads it had.
    async fn serve(
        &self,
        mut channel: Channel,
        address: SocketAddr,
        tell: &mut dyn FnMut(&Event),
    ) -> Result<u32, Error> {
        channel.send(&self.greeting()?).await?;
        tell(&Event::Serves(address));
        let mut run = None;
        let ended = self.follow(&mut channel, &mut run).await;
        if let Some(run) = run {
            run.give_up();
        }
        ended
    }

    fn greeting(&self) -> Result<FromWorker, Error> {
        Ok(FromWorker::Greeting { version: self.version.clone(), machine: machine()? })
    }

    /// Does what the coordinator says until it takes its leave.
    async fn follow(&self, channel: &mut Channel, run: &mut Option<Run>) -> Result<u32, Error> {
        let mut alive = interval(ALIVE_INTERVAL);
        alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut loads = 0;
        loop {
            tokio::select! {
                message = channel.receive() => match message? {
                    ToWorker::Alive => {}
                    ToWorker::Clock => {
                        let received_ns = self.now_ns();
                        let answered_ns = self.now_ns();
                        channel.send(&FromWorker::Clock { received_ns, answered_ns }).await?;
                    }
                    ToWorker::Prepare(load) if run.is_none() => *run = Some(Run::start(*load)?),
                    ToWorker::Begin { start_ns } => {
                        let start = self.epoch + Duration::from_nanos(start_ns);
                        Run::tell(run, channel, Told::Begin(start))?;
                    }
                    ToWorker::Finish { ends } => Run::tell(run, channel, Told::Finish(ends))?,
                    ToWorker::Goodbye if run.is_none() => return Ok(loads),
                    ToWorker::Goodbye => return Err(channel.lost("it gave a load up")),
                    ToWorker::Greeting { .. } | ToWorker::Prepare(_) => {
                        return Err(channel.lost("it says what has no place here"));
                    }
                },
                answer = answer_of(run) => {
                    if let FromWorker::Outcome(_) | FromWorker::Failed { .. } = &answer {
                        loads += 1;
                        *run = None;
                    }
                    channel.send(&answer).await?;
                }
                _ = alive.tick() => channel.send(&FromWorker::Alive).await?,
            }
        }
    }

    /// Its clock.
    fn now_ns(&self) -> u64 {
        nanos(self.epoch.elapsed())
    }
}

/// What the coordinator has to say about a load that is offered.
enum Told {
    Begin(Instant),
    Finish(Vec<u64>),
}

/// A load that is offered.
struct Run {
    thread: JoinHandle<()>,
    answers: answers::Receiver<FromWorker>,
    told: mpsc::SyncSender<Told>,
    /// The run is given up once this is gone.
    stop: watch::Sender<()>,
}

impl Run {
    fn start(load: Load) -> Result<Self, Error> {
        let (answer, answers) = answers::channel(SAYINGS_MAX);
        let (told, heard) = mpsc::sync_channel(SAYINGS_MAX);
        let (stop, stopped) = watch::channel(());
        let offer = move || {
            let last = match offer(load, stopped, Answering { answer: answer.clone(), heard }) {
                Ok(outcome) => outcome,
                Err(error) => FromWorker::Failed { reason: error.to_string() },
            };
            // Sending fails if the coordinator is gone.
            drop(answer.blocking_send(last));
        };
        let thread = thread::Builder::new().name("lab-load".into()).spawn(offer);
        let thread = thread.map_err(Error::machine("starting a thread"))?;
        Ok(Self { thread, answers, told, stop })
    }

    fn tell(run: &mut Option<Self>, channel: &Channel, told: Told) -> Result<(), Error> {
        let Some(run) = run else { return Err(channel.lost("it begins nothing")) };
        match run.told.try_send(told) {
            // A run that has failed hears nothing more, and says why by itself.
            Ok(()) | Err(mpsc::TrySendError::Disconnected(_)) => Ok(()),
            Err(mpsc::TrySendError::Full(_)) => Err(channel.lost("it says too much")),
        }
    }

    /// Ends the load, so that none is under way when the next coordinator comes.
    fn give_up(self) {
        let Self { thread, answers, told, stop } = self;
        drop((answers, told, stop));
        if thread.join().is_err() {
            tracing::error!("a load ended in a panic");
        }
    }
}

/// What a load has to say, once it has; nothing where none is offered.
async fn answer_of(run: &mut Option<Run>) -> FromWorker {
    match run {
        Some(run) => match run.answers.recv().await {
            Some(answer) => answer,
            None => FromWorker::Failed { reason: "the load ended in a panic".into() },
        },
        None => std::future::pending().await,
    }
}

fn offer(
    load: Load,
    stop: watch::Receiver<()>,
    mut accord: Answering,
) -> Result<FromWorker, Error> {
    let share = load.share;
    let setup = load.into_setup()?;
    if !share.is_possible() {
        return Err(Error::Plan("a share beyond the last".into()));
    }
    let part = Part { share, accord: &mut accord, stop };
    let measured = produce_part(&setup, part, &mut || {})?;
    Ok(FromWorker::Outcome(Box::new(measured.into_share()?)))
}

/// Agrees with the coordinator.
struct Answering {
    answer: answers::Sender<FromWorker>,
    heard: mpsc::Receiver<Told>,
}

impl Answering {
    fn say(&self, answer: FromWorker) -> Result<Told, Error> {
        self.answer.blocking_send(answer).map_err(|_| Error::GivenUp)?;
        self.heard.recv().map_err(|_| Error::GivenUp)
    }
}

impl Accord for Answering {
    fn start(&mut self) -> Result<Instant, Error> {
        let Told::Begin(start) = self.say(FromWorker::Ready)? else { return Err(Error::GivenUp) };
        if start <= Instant::now() {
            let reason = "the word to start came after the start".into();
            return Err(Error::Target { action: "starting the run".into(), reason });
        }
        Ok(start)
    }

    fn settled(&mut self, ends: Vec<u64>) -> Result<Vec<u64>, Error> {
        match self.say(FromWorker::Settled { ends })? {
            Told::Finish(ends) => Ok(ends),
            Told::Begin(_) => Err(Error::GivenUp),
        }
    }
}

/// What the kernel of this machine calls itself since it was started.
pub(super) fn machine() -> Result<String, Error> {
    let path = "/proc/sys/kernel/random/boot_id";
    let id = std::fs::read_to_string(path);
    let id = id.and_then(|id| match id.trim() {
        "" => Err(io::Error::other("it is empty")),
        id => Ok(id.to_string()),
    });
    id.map_err(Error::machine(format!("reading {path}")))
}
