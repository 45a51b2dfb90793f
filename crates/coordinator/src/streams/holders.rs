//! Which processes have which tasks, also those that they have to give up.

use std::collections::BTreeMap;

use crate::streams_record::{StreamsMember, TaskIds};

/// By subtopology and partition, the processes that have the task and how many of their members do.
type Processes = BTreeMap<String, BTreeMap<i32, BTreeMap<String, usize>>>;

/// Processes by the tasks that their members have.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Holders {
    active: Processes,
    standby: Processes,
}

impl Holders {
    pub(super) fn of<'a>(members: impl Iterator<Item = &'a StreamsMember>) -> Self {
        let mut holders = Self::default();
        members.for_each(|member| holders.add(member));
        holders
    }

    pub(super) fn add(&mut self, member: &StreamsMember) {
        let process = member.process_id.as_str();
        for tasks in [&member.assigned, &member.revoking] {
            for (subtopology, partitions) in &tasks.active {
                for partition in partitions.keys() {
                    add(&mut self.active, subtopology, *partition, process);
                }
            }
            each(&tasks.standby, |subtopology, partition| {
                add(&mut self.standby, subtopology, partition, process);
            });
        }
    }

    pub(super) fn remove(&mut self, member: &StreamsMember) {
        let process = member.process_id.as_str();
        for tasks in [&member.assigned, &member.revoking] {
            for (subtopology, partitions) in &tasks.active {
                for partition in partitions.keys() {
                    remove(&mut self.active, subtopology, *partition, process);
                }
            }
            each(&tasks.standby, |subtopology, partition| {
                remove(&mut self.standby, subtopology, partition, process);
            });
        }
    }

    /// Whether any member has the active task.
    pub(super) fn is_active(&self, subtopology: &str, partition: i32) -> bool {
        self.active.get(subtopology).is_some_and(|held| held.contains_key(&partition))
    }

    /// Whether a member of the process has the active task.
    pub(super) fn is_active_on(&self, process: &str, subtopology: &str, partition: i32) -> bool {
        has(&self.active, process, subtopology, partition)
    }

    /// Whether a member of the process has the standby task.
    pub(super) fn is_standby_on(&self, process: &str, subtopology: &str, partition: i32) -> bool {
        has(&self.standby, process, subtopology, partition)
    }
}

fn each(tasks: &TaskIds, mut act: impl FnMut(&str, i32)) {
    for (subtopology, partitions) in tasks {
        partitions.iter().for_each(|partition| act(subtopology, *partition));
    }
}

fn has(processes: &Processes, process: &str, subtopology: &str, partition: i32) -> bool {
    let held = processes.get(subtopology).and_then(|held| held.get(&partition));
    held.is_some_and(|by| by.contains_key(process))
}

fn add(processes: &mut Processes, subtopology: &str, partition: i32, process: &str) {
    if !processes.contains_key(subtopology) {
        processes.insert(subtopology.to_owned(), BTreeMap::new());
    }
    if let Some(held) = processes.get_mut(subtopology) {
        *held.entry(partition).or_default().entry(process.to_owned()).or_default() += 1;
    }
}

fn remove(processes: &mut Processes, subtopology: &str, partition: i32, process: &str) {
    let Some(held) = processes.get_mut(subtopology) else { return };
    let Some(by) = held.get_mut(&partition) else { return };
    if let Some(count) = by.get_mut(process) {
        *count -= 1;
        if *count == 0 {
            by.remove(process);
        }
    }
    if by.is_empty() {
        held.remove(&partition);
    }
    if held.is_empty() {
        processes.remove(subtopology);
    }
}
