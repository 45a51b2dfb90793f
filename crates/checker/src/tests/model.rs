//! A broker with transactions as Kafka has them, and random clients of it.

use crate::{Action, History, Operation, Outcome, Seen, Step};

const CLIENTS: usize = 4;
const PARTITIONS: usize = 3;
const ROUNDS: usize = 200;

/// What happened, and what the logs hold.
pub(super) struct Run {
    pub(super) history: History,
    logs: Vec<Vec<Entry>>,
}

#[derive(Clone, Copy)]
struct Entry {
    value: u64,
    client: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Committed,
    Aborted,
    /// A marker: an offset without a record.
    Marker,
}

struct World {
    random: fastrand::Rng,
    now_us: u64,
    next_value: u64,
    logs: Vec<Vec<Entry>>,
    /// The next offset of each client in each partition.
    positions: [[usize; PARTITIONS]; CLIENTS],
    /// The steps of each client's open transaction.
    open: [Vec<Step>; CLIENTS],
    history: History,
}

pub(super) fn run(seed: u64) -> Run {
    let mut world = World {
        random: fastrand::Rng::with_seed(seed),
        now_us: 0,
        next_value: 0,
        logs: vec![Vec::new(); PARTITIONS],
        positions: [[0; PARTITIONS]; CLIENTS],
        open: Default::default(),
        history: History::default(),
    };
    for _ in 0..ROUNDS {
        world.round();
    }
    world.finish();
    Run { history: world.history, logs: world.logs }
}

impl World {
    fn round(&mut self) {
        let client = self.random.usize(..CLIENTS);
        let partition = self.random.usize(..PARTITIONS);
        match self.random.u32(..10) {
            0..=4 => self.send(client, partition),
            5..=7 => self.poll(client, partition),
            _ => self.end(client),
        }
    }

    fn send(&mut self, client: usize, partition: usize) {
        self.next_value += 1;
        let offset = i64::try_from(self.logs[partition].len()).expect("short");
        let entry = Entry { value: self.next_value, client, state: State::Open };
        self.logs[partition].push(entry);
        // An answer may be lost.
        let offset = self.random.bool().then_some(offset);
        let partition = u32::try_from(partition).expect("few");
        self.step(client, Action::Send { partition, value: entry.value, offset });
    }

    fn poll(&mut self, client: usize, partition: usize) {
        let log = &self.logs[partition];
        let stable = log.iter().position(|it| it.state == State::Open).unwrap_or(log.len());
        let from = self.positions[client][partition].min(stable);
        let seen = |offset: usize| {
            let entry = log[offset];
            let offset = i64::try_from(offset).expect("short");
            (entry.state == State::Committed).then_some(Seen { offset, value: entry.value })
        };
        let records = (from..stable).filter_map(seen).collect();
        self.positions[client][partition] = stable;
        let partition = u32::try_from(partition).expect("few");
        self.step(client, Action::Poll { partition, records });
    }

    /// Ends the transaction of a client, which may not learn how.
    fn end(&mut self, client: usize) {
        let steps = std::mem::take(&mut self.open[client]);
        let state = if self.random.u32(..3) == 0 { State::Aborted } else { State::Committed };
        let commit_us = Some(self.tick());
        for log in &mut self.logs {
            let mut wrote = false;
            for entry in log.iter_mut() {
                if entry.client == client && entry.state == State::Open {
                    entry.state = state;
                    wrote = true;
                }
            }
            if wrote {
                log.push(Entry { value: 0, client, state: State::Marker });
            }
        }
        let outcome = match state {
            _ if self.random.u32(..5) == 0 => Outcome::Unknown,
            State::Committed => Outcome::Committed,
            _ => Outcome::Aborted,
        };
        let client_id = u32::try_from(client).expect("few");
        self.history.operations.push(Operation { client: client_id, commit_us, outcome, steps });
        if outcome != Outcome::Committed {
            // The client reads again from where a new assignment puts it.
            for partition in 0..PARTITIONS {
                let end = self.logs[partition].len();
                self.positions[client][partition] = self.random.usize(..=end);
                let partition = u32::try_from(partition).expect("few");
                self.step(client, Action::Position { partition });
            }
        }
    }

    /// Ends all transactions, and one client more reads everything.
    fn finish(&mut self) {
        for client in 0..CLIENTS {
            self.end(client);
        }
        for partition in 0..PARTITIONS {
            let partition_id = u32::try_from(partition).expect("few");
            self.positions[0][partition] = 0;
            self.step(0, Action::Position { partition: partition_id });
            self.poll(0, partition);
            self.step(0, Action::End { partition: partition_id });
        }
        self.end(0);
        let last = self.history.operations.last_mut().expect("there is one");
        last.outcome = Outcome::Committed;
    }

    fn step(&mut self, client: usize, action: Action) {
        let from_us = self.tick();
        let to_us = self.tick();
        self.open[client].push(Step { from_us, to_us, action });
    }

    fn tick(&mut self) -> u64 {
        self.now_us += 1;
        self.now_us
    }
}

impl Run {
    /// Removes an acknowledged record, not the last of its partition, from all polls.
    pub(super) fn lose_a_record(&mut self) -> bool {
        let is_acknowledged = |value| {
            self.history.operations.iter().any(|operation| {
                operation.outcome == Outcome::Committed
                    && operation.steps.iter().any(|step| {
                        matches!(step.action, Action::Send { value: it, offset: Some(_), .. }
                            if it == value)
                    })
            })
        };
        let lost = self.logs.iter().find_map(|log| {
            let committed = || log.iter().filter(|it| it.state == State::Committed);
            let last = committed().next_back()?.value;
            committed().map(|it| it.value).find(|it| *it != last && is_acknowledged(*it))
        });
        let Some(lost) = lost else { return false };
        for (_, records) in self.polls() {
            records.retain(|seen| seen.value != lost);
        }
        true
    }

    /// Adds a record whose transaction was aborted to the last poll of its partition.
    pub(super) fn show_an_aborted_record(&mut self) -> bool {
        let aborted = self.history.operations.iter().find_map(|operation| {
            operation.steps.iter().find_map(|step| match step.action {
                Action::Send { partition, value, offset: Some(offset) }
                    if operation.outcome == Outcome::Aborted =>
                {
                    Some((partition, Seen { offset, value }))
                }
                _ => None,
            })
        });
        let Some((partition, aborted)) = aborted else { return false };
        let polls = self.polls().filter(|(of, _)| *of == partition);
        polls.last().expect("the last client polls all").1.push(aborted);
        true
    }

    fn polls(&mut self) -> impl Iterator<Item = (u32, &mut Vec<Seen>)> {
        let steps = self.history.operations.iter_mut().flat_map(|it| it.steps.iter_mut());
        steps.filter_map(|step| match &mut step.action {
            Action::Poll { partition, records } => Some((*partition, records)),
            _ => None,
        })
    }
}
