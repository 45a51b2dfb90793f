//! The member that has a partition calls the tasks of that partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use moldau_client::{Error as ClientError, Record, partition_for_key};
use tokio::task::{Id, JoinError, JoinSet};

use super::status::{Command, Next, Outcome, StartedRun, TaskStatus, millis};
use super::{Recurring, Run};
use crate::background::Background;
use crate::caretaker::caretaker;
use crate::chunk::Chunk;
use crate::claims::Hold;
use crate::context::Services;
use crate::failure::{BoxError, Failure};
use crate::message::Message;
use crate::outbox::To;
use crate::topic_reader::TopicReader;

/// The task that calls recurring tasks.
pub(crate) fn background(topic: Arc<str>, tasks: Vec<Recurring>) -> Background {
    let tasks: Arc<[Recurring]> = tasks.into();
    caretaker("recurring tasks", topic, move |hold, services| {
        let tasks = Arc::clone(&tasks);
        async move { Owner::new(hold, services, &tasks).await?.run().await }
    })
}

/// One task, and the call of it that runs.
struct Task {
    recurring: Recurring,
    status: TaskStatus,
    running: Option<Id>,
    /// Whether `status` differs from what is stored.
    is_changed: bool,
}

struct Owner {
    hold: Hold,
    services: Arc<Services>,
    reader: TopicReader,
    tasks: BTreeMap<Arc<str>, Task>,
    calls: JoinSet<Result<(), Failure>>,
}

/// What a record of the topic says.
enum Entry {
    Status(Arc<str>, Box<TaskStatus>),
    Command(Arc<str>, Command),
}

impl Owner {
    /// Reads what is stored of the partition's tasks.
    async fn new(
        hold: Hold,
        services: Arc<Services>,
        recurring: &[Recurring],
    ) -> Result<Self, BoxError> {
        let (cluster, clock) = (&services.cluster, &services.clock);
        let partitions = cluster.topic(&hold.partition.topic).await?.partitions.len();
        let number = hold.partition.partition;
        let mut reader = TopicReader::open(cluster, clock, &hold.partition).await?;
        let (mut stored, mut commands) = (BTreeMap::new(), BTreeMap::new());
        while !reader.is_caught_up() {
            for message in Message::all_of(&reader.next().await?) {
                match Entry::of(&message) {
                    Some(Entry::Status(task, status)) => drop(stored.insert(task, *status)),
                    Some(Entry::Command(task, command)) => {
                        // As in the compacted topic, the last of each kind counts.
                        commands.insert((task, kind(command)), (message.offset(), command));
                    }
                    None => {}
                }
            }
        }
        let now = clock.now();
        let is_here = |it: &&Recurring| partition_for_key(it.name.as_bytes(), partitions) == number;
        let tasks = recurring.iter().filter(is_here).map(|recurring| {
            let status = TaskStatus::of(recurring, stored.remove(&recurring.name), now);
            let recurring = recurring.clone();
            let name = Arc::clone(&recurring.name);
            (name, Task { recurring, status, running: None, is_changed: true })
        });
        let tasks = tasks.collect();
        let mut owner = Self { hold, reader, tasks, calls: JoinSet::new(), services };
        let mut commands: Vec<_> = commands.into_iter().collect();
        commands.sort_unstable_by_key(|(_, (offset, _))| *offset);
        for ((task, _), (offset, command)) in commands {
            owner.obey(&task, command, offset);
        }
        owner.repeat_interrupted().await;
        Ok(owner)
    }

    async fn repeat_interrupted(&mut self) {
        let now = self.services.clock.now();
        let names: Vec<_> = self.tasks.keys().cloned().collect();
        for name in names {
            let Some(task) = self.tasks.get_mut(&name) else { continue };
            if let Some(started) = task.status.interrupt(task.recurring.missed, now) {
                self.call(&name, started).await;
            }
        }
    }

    async fn run(mut self) -> Result<(), BoxError> {
        let clock = self.services.clock.clone();
        loop {
            let due = self.step().await;
            tokio::select! {
                biased;
                () = self.hold.recalled() => break,
                Some(ended) = self.calls.join_next_with_id() => self.take_ended(ended),
                chunk = self.reader.next() => self.take_records(&chunk?),
                () = clock.sleep_until(due.unwrap_or_default()), if due.is_some() => {}
            }
        }
        self.stop().await;
        Ok(())
    }

    /// Starts what is due and stores what has changed; returns when the next task is due.
    async fn step(&mut self) -> Option<Duration> {
        let names: Vec<_> = self.tasks.keys().cloned().collect();
        let mut due: Option<Duration> = None;
        for name in names {
            let now = self.services.clock.now();
            let Some(Task { recurring, status, is_changed, .. }) = self.tasks.get_mut(&name) else {
                continue;
            };
            match status.step(&recurring.schedule, recurring.missed, now) {
                Next::Wait => {}
                Next::WaitUntil(at) => due = Some(due.map_or(at, |due| due.min(at))),
                Next::Start(started) => {
                    *is_changed = true;
                    self.call(&name, started).await;
                }
            }
            self.store(&name).await;
        }
        due
    }

    /// Calls a task, once it is stored that it runs.
    async fn call(&mut self, name: &Arc<str>, started: StartedRun) {
        if !self.store(name).await {
            return;
        }
        let Some(task) = self.tasks.get_mut(name) else { return };
        let run = Run { task: Arc::clone(name), started };
        let call = task.recurring.job.call(run, Arc::clone(&self.services));
        task.running = Some(self.calls.spawn(call).id());
    }

    /// Stores the state of a task if it has changed. Tries until it succeeds, or the partition is
    /// recalled.
    async fn store(&mut self, name: &Arc<str>) -> bool {
        let Some(task) = self.tasks.get_mut(name).filter(|task| task.is_changed) else {
            return true;
        };
        let clock = &self.services.clock;
        let stored = async {
            while let Err(error) = put(&self.services, &self.hold, &task.status).await {
                tracing::error!(task = %name, %error, "its state cannot be stored; tried again");
                clock.sleep_until(clock.now() + STORE_PAUSE).await;
            }
        };
        let is_stored = tokio::select! {
            biased;
            () = stored => true,
            () = self.hold.recalled() => false,
        };
        task.is_changed = !is_stored;
        is_stored
    }

    fn take_ended(&mut self, ended: Result<(Id, Result<(), Failure>), JoinError>) {
        let (id, outcome) = match ended {
            Ok((id, Ok(()))) => (id, Outcome::Succeeded),
            Ok((id, Err(failure))) => {
                let text = failure.to_string().chars().take(CAUSE_CHARS_MAX).collect();
                (id, Outcome::Failed(text))
            }
            Err(error) => (error.id(), Outcome::Interrupted),
        };
        let now = self.services.clock.now();
        if let Some(task) = self.tasks.values_mut().find(|task| task.running == Some(id)) {
            if outcome != Outcome::Succeeded {
                tracing::error!(task = %task.recurring.name, ?outcome, "a recurring task failed");
            }
            task.running = None;
            task.status.finish(outcome, now);
            task.is_changed = true;
        }
    }

    fn take_records(&mut self, chunk: &Arc<Chunk>) {
        for message in Message::all_of(chunk) {
            // The states are its own.
            if let Some(Entry::Command(task, command)) = Entry::of(&message) {
                self.obey(&task, command, message.offset());
            }
        }
    }

    fn obey(&mut self, name: &Arc<str>, command: Command, offset: i64) {
        let now = self.services.clock.now();
        match self.tasks.get_mut(name) {
            Some(task) => task.is_changed |= task.status.obey(command, offset, now),
            None => tracing::warn!(task = %name, ?command, "the app has no such task"),
        }
    }

    /// Lets calls end within the drain timeout; the next owner then knows of their end.
    async fn stop(mut self) {
        let clock = self.services.clock.clone();
        let deadline = clock.now().saturating_add(self.services.drain_timeout);
        loop {
            tokio::select! {
                biased;
                ended = self.calls.join_next_with_id() => match ended {
                    Some(ended) => self.take_ended(ended),
                    None => break,
                },
                () = clock.sleep_until(deadline) => break,
            }
        }
        self.calls.shutdown().await;
        // A run that was not stored was not called either: it is left to the next owner.
        let is_known =
            |it: &&Task| it.is_changed && (it.status.running.is_none() || it.running.is_some());
        for task in self.tasks.values().filter(is_known) {
            if let Err(error) = put(&self.services, &self.hold, &task.status).await {
                tracing::error!(task = %task.recurring.name, %error, "its state is not stored");
            }
        }
    }
}

async fn put(services: &Services, hold: &Hold, status: &TaskStatus) -> Result<(), BoxError> {
    let (key, value) = (format!("task:{}", status.task), serde_json::to_vec(status)?);
    let record = Record {
        token: 0,
        timestamp: i64::try_from(millis(services.clock.now())).unwrap_or(i64::MAX),
        key: Some(key.as_bytes()),
        value: Some(&value),
        headers: &[],
    };
    let partition = &hold.partition;
    let sent =
        services.outbox.send_to(To::partition(&partition.topic, partition.partition), record).await;
    sent.map_err(|error: ClientError| error.into())
}

impl Entry {
    /// What a record says; `None` for a record that means nothing here.
    fn of(message: &Message) -> Option<Self> {
        let (key, value) = (std::str::from_utf8(message.key()?).ok()?, message.value()?);
        let entry = if let Some(task) = key.strip_prefix("task:") {
            serde_json::from_slice(value).map(|it| Self::Status(task.into(), it))
        } else {
            let (task, _) = key.strip_prefix("command:")?.split_once(':')?;
            serde_json::from_slice(value).map(|it| Self::Command(task.into(), it))
        };
        entry.inspect_err(|error| tracing::warn!(record = ?message, %error, "not understood")).ok()
    }
}

/// Status records of a chunk.
pub(super) fn statuses(chunk: &Arc<Chunk>) -> impl Iterator<Item = TaskStatus> {
    Message::all_of(chunk).filter_map(|message| match Entry::of(&message)? {
        Entry::Status(_, status) => Some(*status),
        Entry::Command(..) => None,
    })
}

/// Commands of one kind replace each other.
pub(super) fn kind(command: Command) -> &'static str {
    match command {
        Command::Enable | Command::Disable => "enabled",
        Command::Trigger => "trigger",
    }
}

/// Pause before a state is stored again.
const STORE_PAUSE: Duration = Duration::from_secs(1);

/// Longest error in the history: some lines of text.
const CAUSE_CHARS_MAX: usize = 1024;
