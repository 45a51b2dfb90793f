//! Who wrote each value, what each offset holds, which operations took effect.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::history::{Action, Error, History, Operation, Outcome, Seen, Step};

/// A history, indexed by value and by offset.
pub(crate) struct Index<'a> {
    pub(crate) operations: &'a [Operation],
    /// The send of each value.
    pub(crate) writes: HashMap<u64, Write>,
    /// What each partition holds.
    pub(crate) logs: BTreeMap<u32, BTreeMap<i64, Version>>,
    /// Partitions that a client polled as a whole after the last send.
    pub(crate) whole: BTreeSet<u32>,
    /// The outcome of each operation, as far as the history proves it.
    pub(crate) outcomes: Vec<Outcome>,
}

/// One send.
#[derive(Clone, Copy)]
pub(crate) struct Write {
    /// The operation.
    pub(crate) operation: usize,
    /// When it began, µs.
    pub(crate) from_us: u64,
    pub(crate) partition: u32,
    /// The offset that the cluster returned, if it did.
    pub(crate) offset: Option<i64>,
}

/// What one offset holds.
#[derive(Clone, Default)]
pub(crate) struct Version {
    /// The values, one unless the offset is inconsistent.
    pub(crate) values: Vec<u64>,
    /// Operations that polled it, in the order of the history.
    pub(crate) readers: Vec<usize>,
}

/// A received record with its circumstances.
#[derive(Clone, Copy)]
pub(crate) struct Read<'a> {
    pub(crate) operation: usize,
    pub(crate) step: &'a Step,
    pub(crate) partition: u32,
    pub(crate) seen: Seen,
}

impl<'a> Index<'a> {
    pub(crate) fn new(history: &'a History) -> Result<Self, Error> {
        let mut index = Self {
            operations: &history.operations,
            writes: HashMap::new(),
            logs: BTreeMap::new(),
            whole: BTreeSet::new(),
            outcomes: history.operations.iter().map(|operation| operation.outcome).collect(),
        };
        index.add_writes()?;
        index.add_reads();
        Ok(index)
    }

    /// All received records, in the order of the history.
    pub(crate) fn reads(&self) -> impl Iterator<Item = Read<'a>> + use<'a> {
        self.operations.iter().enumerate().flat_map(|(operation, it)| {
            it.steps.iter().flat_map(move |step| {
                let (partition, records) = match &step.action {
                    Action::Poll { partition, records } => (*partition, records.as_slice()),
                    _ => (0, [].as_slice()),
                };
                records.iter().map(move |&seen| Read { operation, step, partition, seen })
            })
        })
    }

    /// Whether consumers of committed records must receive this version.
    pub(crate) fn is_visible(&self, version: &Version) -> bool {
        !version.readers.is_empty() || self.committed_writer(version).is_some()
    }

    /// The operation whose record is at an offset, if it took effect.
    pub(crate) fn committed_writer(&self, version: &Version) -> Option<usize> {
        let of = |value| self.writes.get(value).map(|write: &Write| write.operation);
        version.values.iter().filter_map(of).find(|&operation| self.took_effect(operation))
    }

    /// Whether an operation took effect for certain.
    pub(crate) fn took_effect(&self, operation: usize) -> bool {
        self.outcomes.get(operation) == Some(&Outcome::Committed)
    }

    fn add_writes(&mut self) -> Result<(), Error> {
        for (operation, it) in self.operations.iter().enumerate() {
            for step in &it.steps {
                match step.action {
                    Action::Send { partition, value, offset } => {
                        let write = Write { operation, from_us: step.from_us, partition, offset };
                        self.add_write(value, write)?;
                    }
                    Action::End { partition } => drop(self.whole.insert(partition)),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    fn add_write(&mut self, value: u64, write: Write) -> Result<(), Error> {
        if self.writes.insert(value, write).is_some() {
            return Err(Error::SentTwice(value));
        }
        if let Some(offset) = write.offset {
            self.version(write.partition, offset).hold(value);
        }
        Ok(())
    }

    fn add_reads(&mut self) {
        for read in self.reads() {
            let version = self.version(read.partition, read.seen.offset);
            version.hold(read.seen.value);
            version.readers.push(read.operation);
            // Consumers receive committed records only.
            if let Some(write) = self.writes.get(&read.seen.value)
                && let Some(outcome @ Outcome::Unknown) = self.outcomes.get_mut(write.operation)
            {
                *outcome = Outcome::Committed;
            }
        }
    }

    fn version(&mut self, partition: u32, offset: i64) -> &mut Version {
        self.logs.entry(partition).or_default().entry(offset).or_default()
    }
}

impl Version {
    fn hold(&mut self, value: u64) {
        if !self.values.contains(&value) {
            self.values.push(value);
        }
    }
}
