//! The coordinator's side: workers that offer a load together, as if they were one generator.

use std::net::IpAddr;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use moldau_client::Security;
use tokio::net::TcpStream;
use tokio::sync::{mpsc as orders, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::channel::{Channel, lost};
use super::frames::Side;
use super::messages::{FromWorker, Load, ToWorker};
use super::serving::machine;
use super::{ALIVE_INTERVAL, HANDSHAKE_TIMEOUT, Token, WORKERS_MAX};
use crate::clocks::{Exchange, Offset};
use crate::generator::{
    Measured, Parts, Setup, Share, ShareRecord, measure_window, nanos, raise, runtime,
};
use crate::run::WorkerRecord;
use crate::shape::Shape;
use crate::workload::Workload;
use moldau_measure::Error;
use moldau_measure::cpu::{GENERATOR_ROLE, ProcessUsage};

/// Questions to a clock before and after each run: of so many, some meet nothing on their way.
const EXCHANGES: usize = 64;

/// How long workers may take to connect their threads: longer than each of them allows itself.
const READY_TIMEOUT: Duration = Duration::from_secs(40);

/// Time between the last worker's readiness and the start, so that each has learnt of it.
const LEAD: Duration = Duration::from_millis(500);

/// Orders of a worker that are not carried out yet: each is answered before the next.
const ORDERS_MAX: usize = 8;

/// Workers that are connected, all of them for this coordinator alone.
#[derive(Debug)]
pub struct Workers {
    members: Vec<Member>,
    answers: mpsc::Receiver<(usize, Result<Answer, Error>)>,
    /// What this clock counts from.
    epoch: Instant,
    /// What keeps the connections, which end with the orders.
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Member {
    /// Where it listens.
    name: String,
    /// The number of its machine among those of all.
    machine: u16,
    orders: orders::Sender<Order>,
}

/// What a connection is to do.
enum Order {
    Say(ToWorker),
    /// Asks the clock.
    Ask,
}

/// What it gives.
#[derive(Debug)]
enum Answer {
    Said(FromWorker),
    Asked(Vec<Exchange>),
}

type Answers = mpsc::SyncSender<(usize, Result<Answer, Error>)>;

impl Workers {
    /// Connects to workers, each given as host and port.
    ///
    /// # Errors
    /// [`Error::Plan`] for none, too many or one that is there twice; [`Error::Peer`] for one that
    /// is not reached, has another token or another version than `version`.
    pub fn connect(names: &[String], token: &Token, version: &str) -> Result<Self, Error> {
        if names.is_empty() || names.len() > WORKERS_MAX {
            return Err(Error::Plan(format!("workers: 1 to {WORKERS_MAX} of them")));
        }
        let is_there_twice = |at: usize, name| names.iter().skip(at + 1).any(|other| other == name);
        let mut numbered = names.iter().enumerate();
        if let Some((_, twin)) = numbered.find(|(at, name)| is_there_twice(*at, *name)) {
            return Err(Error::Plan(format!("workers: {twin} is there twice")));
        }
        let (epoch, runtime) = (Instant::now(), runtime()?);
        let mut machines = vec![machine()?];
        let (mut members, mut channels) = (Vec::new(), Vec::new());
        let connected = runtime.block_on(connect_all(names, token, version))?;
        for (name, (channel, machine)) in names.iter().zip(connected) {
            let number = machines.iter().position(|known| *known == machine);
            let number = number.unwrap_or_else(|| {
                machines.push(machine);
                machines.len() - 1
            });
            let machine = u16::try_from(number).expect("there are far fewer workers");
            let (orders, given) = orders::channel(ORDERS_MAX);
            members.push(Member { name: name.clone(), machine, orders });
            channels.push((channel, given));
        }
        // Each has one answer under way, and its end.
        let (answer, answers) = mpsc::sync_channel(2 * names.len());
        let keep_all = move || {
            runtime.block_on(async {
                let mut all = JoinSet::new();
                for (index, (channel, given)) in channels.into_iter().enumerate() {
                    all.spawn(keep(index, channel, given, answer.clone(), epoch));
                }
                while all.join_next().await.is_some() {}
            });
        };
        let thread = thread::Builder::new().name("lab-workers".into()).spawn(keep_all);
        let thread = Some(thread.map_err(Error::machine("starting a thread"))?);
        Ok(Self { members, answers, epoch, thread })
    }

    /// Refuses a load that cannot be dealt to all of them.
    ///
    /// # Errors
    /// [`Error::Plan`].
    pub fn check(&self, workload: &Workload) -> Result<(), Error> {
        let (workers, producers) = (self.members.len(), workload.all_producers());
        if workers > producers.into() {
            return Err(Error::Plan(format!(
                "{workers} workers for {producers} producers: each needs a producer at least"
            )));
        }
        let Shape { corpus, trace, .. } = &workload.tuning.shape;
        if corpus.is_some() || trace.is_some() {
            return Err(Error::Plan("workers have no files for records and traces".into()));
        }
        if workload.tuning.transaction_records.is_some() {
            return Err(Error::Plan("workers do not report transactions".into()));
        }
        Ok(())
    }

    /// Refuses a system that not all of them can reach.
    fn check_reach(&self, setup: &Setup) -> Result<(), Error> {
        let Security { tls, sasl } = &setup.clients.security;
        if (tls.is_some() || sasl.is_some()) && setup.clients.credentials.is_none() {
            let text = "workers cannot be given the keys of this system's clients";
            return Err(Error::Plan(text.into()));
        }
        let host = setup.bootstrap.rsplit_once(':').map_or(&*setup.bootstrap, |(host, _)| host);
        let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
        let is_here = host == "localhost" || address.is_ok_and(|it| it.is_loopback());
        match self.members.iter().find(|member| is_here && member.machine != 0) {
            Some(far) => Err(Error::Plan(format!(
                "worker {} is on another machine, which does not reach {}; a system for it is \
                 external, with an address of the network",
                far.name, setup.bootstrap
            ))),
            None => Ok(()),
        }
    }

    /// Offers a load as [`crate::generator::produce_watched`] does.
    ///
    /// # Errors
    /// As there; [`Error::Peer`] names the worker that was lost or failed. None is of use then.
    pub fn produce(&mut self, setup: &Setup, at_edge: &mut dyn FnMut()) -> Result<Measured, Error> {
        let workload = &setup.workload;
        self.check(workload)?;
        self.check_reach(setup)?;
        let of = u16::try_from(self.members.len()).expect("there are far fewer workers");
        for (index, member) in (0..).zip(&self.members) {
            let load = Load::of(setup, Share { index, of });
            member.say(ToWorker::Prepare(Box::new(load)))?;
        }
        self.gather(Some(READY_TIMEOUT), |said| matches!(said, FromWorker::Ready).then_some(()))?;
        let before = self.offsets()?;
        let start = Instant::now() + LEAD;
        let start_ns = nanos(start.saturating_duration_since(self.epoch));
        for (member, offset) in self.members.iter().zip(&before) {
            member.say(ToWorker::Begin { start_ns: offset.there(start_ns) })?;
        }
        let window_start = start + workload.warmup();
        let window = window_start..window_start + workload.window();
        // Nothing is measured any longer once a worker is lost, and the sender with it.
        let (going_on, stop) = watch::channel(());
        let this = &mut *self;
        let (shares, usage) = thread::scope(|scope| {
            let shares = scope.spawn(move || Ok::<_, Error>((this.shares(setup)?, going_on)));
            let usage = measure_window(&setup.processes, window, at_edge, &stop);
            (shares.join(), usage)
        });
        let (shares, _) = shares.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let (window_start, mut processes, host) = usage?;
        let after = self.offsets()?;
        let workers = self.records(&shares, &before, &after);
        processes.push(generator_of(&workers));
        Parts { setup, window_start, processes, host, workers }.joined(shares)
    }

    /// What all have measured, once they have. How long answers to the last operations and the
    /// records behind them take is the target's affair: one that is lost or stands still is noticed
    /// by its silence.
    fn shares(&mut self, setup: &Setup) -> Result<Vec<ShareRecord>, Error> {
        let workload = &setup.workload;
        let settled = self.gather(None, |said| match said {
            FromWorker::Settled { ends } => Some(ends),
            _ => None,
        })?;
        let mut ends = vec![0_u64; workload.lanes().into()];
        for theirs in settled {
            raise(&mut ends, theirs.into_iter());
        }
        for member in &self.members {
            member.say(ToWorker::Finish { ends: ends.clone() })?;
        }
        self.gather(None, |said| match said {
            FromWorker::Outcome(share) => Some(*share),
            _ => None,
        })
    }

    /// How far the clock of each is off. They are asked one after the other, since an answer that
    /// waits for those of others is on its way for longer.
    fn offsets(&self) -> Result<Vec<Offset>, Error> {
        let mut offsets = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            member.order(Order::Ask)?;
            let offset = match self.next(Some(Instant::now() + READY_TIMEOUT), index)? {
                (of, Answer::Asked(exchanges)) if of == index => Offset::of(&exchanges),
                _ => return Err(member.lost("it says what has no place here")),
            };
            offsets.push(offset.ok_or_else(|| member.lost("its clock was set meanwhile"))?);
        }
        Ok(offsets)
    }

    /// What each says, in their order, within the limit if there is one.
    fn gather<T>(
        &self,
        limit: Option<Duration>,
        take: impl Fn(FromWorker) -> Option<T>,
    ) -> Result<Vec<T>, Error> {
        let end = limit.map(|limit| Instant::now() + limit);
        let mut found: Vec<Option<T>> = self.members.iter().map(|_| None).collect();
        while let Some(missing) = found.iter().position(Option::is_none) {
            let (index, answer) = self.next(end, missing)?;
            let taken = match answer {
                Answer::Said(said) => take(said),
                Answer::Asked(_) => None,
            };
            match (found.get_mut(index), taken) {
                (Some(place), Some(taken)) if place.is_none() => *place = Some(taken),
                _ => return Err(self.member(index).lost("it says what has no place here")),
            }
        }
        Ok(found.into_iter().flatten().collect())
    }

    /// What any of them says next, until `end` if there is one; `missing` is awaited.
    fn next(&self, end: Option<Instant>, missing: usize) -> Result<(usize, Answer), Error> {
        let left = end.map(|end| end.saturating_duration_since(Instant::now()));
        let heard = match left {
            Some(left) => self.answers.recv_timeout(left).ok(),
            None => self.answers.recv().ok(),
        };
        let late = || self.member(missing).lost("it is alive and says nothing");
        let (index, answer) = heard.ok_or_else(late)?;
        match answer? {
            Answer::Said(FromWorker::Failed { reason }) => Err(self.member(index).lost(&reason)),
            answer => Ok((index, answer)),
        }
    }

    fn member(&self, index: usize) -> &Member {
        self.members.get(index).expect("connections are numbered as the workers are")
    }

    fn records(
        &self,
        shares: &[ShareRecord],
        before: &[Offset],
        after: &[Offset],
    ) -> Vec<WorkerRecord> {
        let clocks = before.iter().zip(after).map(|(before, after)| before.until(after));
        let all = self.members.iter().zip(shares).zip(clocks);
        all.map(|((member, share), clock)| {
            let [produced_records, consumed_records] = share.records();
            WorkerRecord {
                name: member.name.clone(),
                machine: member.machine,
                produced_records,
                consumed_records,
                lag: share.lag().summary,
                response: share.response().summary,
                usage: share.generator(),
                host: share.host,
                clock,
            }
        })
        .collect()
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Without orders each connection takes its leave.
        self.members.clear();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the connections to workers ended in a panic");
        }
    }
}

impl Member {
    fn say(&self, message: ToWorker) -> Result<(), Error> {
        self.order(Order::Say(message))
    }

    fn order(&self, order: Order) -> Result<(), Error> {
        self.orders.try_send(order).map_err(|_| self.lost("the connection to it has ended"))
    }

    fn lost(&self, reason: &str) -> Error {
        lost(&peer(&self.name), reason)
    }
}

fn peer(name: &str) -> String {
    format!("worker {name}")
}

/// Connects to all of them at once, since none hears anything while it waits for the others.
async fn connect_all(
    names: &[String],
    token: &Token,
    version: &str,
) -> Result<Vec<(Channel, String)>, Error> {
    try_join_all(names.iter().map(|name| connect(name, token, version))).await
}

async fn connect(name: &str, token: &Token, version: &str) -> Result<(Channel, String), Error> {
    let peer = peer(name);
    let stream = match timeout(HANDSHAKE_TIMEOUT, TcpStream::connect(name)).await {
        Ok(stream) => stream.map_err(|error| lost(&peer, error))?,
        Err(_) => return Err(lost(&peer, "it is not reached")),
    };
    let mut channel = Channel::begin(stream, token, Side::Coordinator, peer.clone()).await?;
    channel.send(&ToWorker::Greeting { version: version.into() }).await?;
    match timeout(HANDSHAKE_TIMEOUT, channel.receive()).await {
        Ok(Ok(FromWorker::Greeting { version: theirs, machine })) if theirs == version => {
            Ok((channel, machine))
        }
        Ok(Ok(FromWorker::Greeting { version: theirs, .. })) => {
            Err(lost(&peer, format_args!("its version is {theirs}, and this is {version}")))
        }
        Ok(Ok(_)) => Err(lost(&peer, "it did not greet")),
        // It closes the connection of one whose token is another, and says nothing.
        Ok(Err(Error::Peer { reason, .. })) => {
            Err(lost(&peer, format_args!("{reason}, as one does whose token is another")))
        }
        Ok(Err(error)) => Err(error),
        Err(_) => Err(lost(&peer, "it did not answer")),
    }
}

/// Keeps a connection until there are no more orders or it is lost, which is the last answer.
async fn keep(
    index: usize,
    mut channel: Channel,
    mut given: orders::Receiver<Order>,
    answers: Answers,
    epoch: Instant,
) {
    if let Err(error) = follow(index, &mut channel, &mut given, &answers, epoch).await {
        // Sending fails if the experiment is over.
        drop(answers.try_send((index, Err(error))));
    }
}

async fn follow(
    index: usize,
    channel: &mut Channel,
    given: &mut orders::Receiver<Order>,
    answers: &Answers,
    epoch: Instant,
) -> Result<(), Error> {
    let mut alive = interval(ALIVE_INTERVAL);
    alive.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let answer = tokio::select! {
            message = channel.receive() => match message? {
                FromWorker::Alive => continue,
                said => Answer::Said(said),
            },
            order = given.recv() => match order {
                Some(Order::Say(message)) => {
                    channel.send(&message).await?;
                    continue;
                }
                Some(Order::Ask) => Answer::Asked(ask(channel, epoch).await?),
                None => return channel.send(&ToWorker::Goodbye).await,
            },
            _ = alive.tick() => {
                channel.send(&ToWorker::Alive).await?;
                continue;
            }
        };
        if answers.try_send((index, Ok(answer))).is_err() {
            return Err(channel.lost("it says too much"));
        }
    }
}

/// Asks the clock of a worker.
async fn ask(channel: &mut Channel, epoch: Instant) -> Result<Vec<Exchange>, Error> {
    let mut exchanges = Vec::with_capacity(EXCHANGES);
    while exchanges.len() < EXCHANGES {
        let asked_ns = nanos(epoch.elapsed());
        channel.send(&ToWorker::Clock).await?;
        let [received_ns, answered_ns] = loop {
            match channel.receive().await? {
                FromWorker::Alive => {}
                FromWorker::Clock { received_ns, answered_ns } => break [received_ns, answered_ns],
                _ => return Err(channel.lost("it says what has no place here")),
            }
        };
        let back_ns = nanos(epoch.elapsed());
        exchanges.push(Exchange { asked_ns, received_ns, answered_ns, back_ns });
    }
    Ok(exchanges)
}

/// All workers as the one generator that they are together.
fn generator_of(workers: &[WorkerRecord]) -> ProcessUsage {
    let none = ProcessUsage { role: GENERATOR_ROLE.into(), ..ProcessUsage::default() };
    let usages = workers.iter().map(|worker| &worker.usage);
    let mut all = usages.fold(none, |all, one| ProcessUsage {
        role: all.role,
        cpu_ns: all.cpu_ns + one.cpu_ns,
        // Of time, until all of it is known.
        user_permille: all.user_permille + one.user_permille * one.cpu_ns / 1_000,
        voluntary_switches: all.voluntary_switches + one.voluntary_switches,
        involuntary_switches: all.involuntary_switches + one.involuntary_switches,
        run_queue_wait_ns: all.run_queue_wait_ns + one.run_queue_wait_ns,
        resident_bytes: all.resident_bytes + one.resident_bytes,
        resident_bytes_peak: all.resident_bytes_peak + one.resident_bytes_peak,
        busiest_thread_ns: all.busiest_thread_ns.max(one.busiest_thread_ns),
        ..ProcessUsage::default()
    });
    all.user_permille = all.user_permille * 1_000 / all.cpu_ns.max(1);
    all
}
