//! The `sticky` assignor of streams groups, after that of Kafka 4.4: active tasks stay where they
//! are, else go where a copy of their state is, else to the process with the least load; then
//! standby tasks go to processes that have nothing of the task yet.
//!
//! Members of one process share its disk, so no process gets a task twice.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::streams_record::{MemberTasks, StreamsTasks, TaskIds};

/// The name that StreamsGroupDescribe shows.
pub(crate) const NAME: &str = "sticky";

/// What is to be assigned to whom.
pub(crate) struct Assignment<'a> {
    pub(crate) members: Vec<StreamsCandidate<'a>>,
    pub(crate) subtopologies: Vec<TasksOf<'a>>,
    /// Copies of the state of each task that has one.
    pub(crate) standby_replicas: i32,
}

/// A member as the assignor sees it.
pub(crate) struct StreamsCandidate<'a> {
    pub(crate) id: &'a str,
    pub(crate) process: &'a str,
    /// What it has at present.
    pub(crate) current: &'a MemberTasks,
    /// How far its copies of states are.
    pub(crate) offsets: Option<&'a BTreeMap<String, BTreeMap<i32, i64>>>,
}

/// The tasks of a subtopology.
pub(crate) struct TasksOf<'a> {
    pub(crate) id: &'a str,
    pub(crate) count: i32,
    pub(crate) is_stateful: bool,
}

/// Index of a subtopology and number of the partition.
type Task = (usize, i32);

/// A copy of a task's state: whether it is a standby task, how far it is, and its member.
type Copy = (Reverse<bool>, Reverse<i64>, usize);

/// Tasks for each thread of a process: the smaller, the more it can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Load {
    tasks: usize,
    threads: usize,
}

#[derive(Default)]
struct Process {
    tasks: usize,
    /// Tasks of each member, by load.
    members: BTreeSet<(usize, usize)>,
    has: HashSet<Task>,
}

struct Member {
    process: usize,
    tasks: usize,
    active: Vec<Task>,
    standby: Vec<Task>,
}

/// The most tasks of a member that is not full, adjusted as members get full.
struct Quota {
    tasks: usize,
    members: usize,
    each: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Active,
    Standby,
}

struct Sticky {
    members: Vec<Member>,
    processes: Vec<Process>,
    by_load: BTreeSet<(Load, usize)>,
    active_quota: Quota,
    quota: Quota,
    /// The member that has the task.
    former_active: HashMap<Task, usize>,
    /// Members with a copy of its state, the best first.
    former_standby: HashMap<Task, Vec<usize>>,
}

/// The tasks of each member, also of those that get none.
pub(crate) fn assign(assignment: &Assignment<'_>) -> BTreeMap<String, StreamsTasks> {
    let mut sticky = Sticky::new(assignment);
    sticky.assign_active(&tasks_of(assignment, |_| true));
    if assignment.standby_replicas > 0 {
        let stateful = tasks_of(assignment, |tasks| tasks.is_stateful);
        sticky.assign_standby(&stateful, replicas(assignment));
    }
    let named = |tasks: &[Task]| {
        let mut named = TaskIds::new();
        for (index, partition) in tasks {
            let id = assignment.subtopologies[*index].id;
            named.entry(id.to_owned()).or_default().insert(*partition);
        }
        named
    };
    let targets = assignment.members.iter().zip(&sticky.members).map(|(candidate, member)| {
        let tasks = StreamsTasks { active: named(&member.active), standby: named(&member.standby) };
        (candidate.id.to_owned(), tasks)
    });
    targets.collect()
}

/// No process gets a task twice, so more copies than members are of no use.
fn replicas(assignment: &Assignment<'_>) -> usize {
    let replicas = usize::try_from(assignment.standby_replicas).unwrap_or(0);
    replicas.min(assignment.members.len())
}

fn tasks_of(assignment: &Assignment<'_>, wanted: impl Fn(&TasksOf<'_>) -> bool) -> Vec<Task> {
    let parts = assignment.subtopologies.iter().enumerate().filter(|(_, tasks)| wanted(tasks));
    parts.flat_map(|(index, tasks)| (0..tasks.count).map(move |it| (index, it))).collect()
}

impl Sticky {
    fn new(assignment: &Assignment<'_>) -> Self {
        let active = tasks_of(assignment, |_| true).len();
        let stateful = tasks_of(assignment, |tasks| tasks.is_stateful).len();
        let members = assignment.members.len();
        let mut sticky = Self {
            members: Vec::with_capacity(members),
            processes: Vec::new(),
            by_load: BTreeSet::new(),
            active_quota: Quota::new(active, members),
            quota: Quota::new(active + stateful * replicas(assignment), members),
            former_active: HashMap::new(),
            former_standby: HashMap::new(),
        };
        let ids = assignment.subtopologies.iter().map(|tasks| tasks.id);
        let index_of: HashMap<&str, usize> = ids.zip(0..).collect();
        let mut processes: HashMap<&str, usize> = HashMap::new();
        let mut copies: HashMap<Task, Vec<Copy>> = HashMap::new();
        for (number, candidate) in assignment.members.iter().enumerate() {
            let process = *processes.entry(candidate.process).or_insert_with(|| {
                sticky.processes.push(Process::default());
                sticky.processes.len() - 1
            });
            sticky.processes[process].members.insert((0, number));
            let (active, standby) = (Vec::new(), Vec::new());
            sticky.members.push(Member { process, tasks: 0, active, standby });
            for (id, held) in &candidate.current.active {
                let Some(part) = index_of.get(id.as_str()) else { continue };
                sticky.former_active.extend(held.keys().map(|it| ((*part, *it), number)));
            }
            let mut found: BTreeMap<Task, (bool, i64)> = BTreeMap::new();
            for (id, offsets) in candidate.offsets.into_iter().flatten() {
                let Some(part) = index_of.get(id.as_str()) else { continue };
                found.extend(offsets.iter().map(|(it, sum)| ((*part, *it), (false, *sum))));
            }
            for (id, held) in &candidate.current.standby {
                let Some(part) = index_of.get(id.as_str()) else { continue };
                held.iter().for_each(|it| found.entry((*part, *it)).or_default().0 = true);
            }
            for (task, (is_standby, sum)) in found {
                let copy = (Reverse(is_standby), Reverse(sum), number);
                copies.entry(task).or_default().push(copy);
            }
        }
        for (task, mut members) in copies {
            members.sort_unstable();
            let members = members.into_iter().map(|(_, _, number)| number).collect();
            sticky.former_standby.insert(task, members);
        }
        sticky.by_load = (0..sticky.processes.len()).map(|it| (sticky.load(it), it)).collect();
        sticky
    }

    fn load(&self, process: usize) -> Load {
        let process = &self.processes[process];
        Load { tasks: process.tasks, threads: process.members.len() }
    }

    fn give(&mut self, number: usize, task: Task, role: Role) {
        let index = self.members[number].process;
        self.by_load.remove(&(self.load(index), index));
        let (member, process) = (&mut self.members[number], &mut self.processes[index]);
        process.members.remove(&(member.tasks, number));
        member.tasks += 1;
        process.tasks += 1;
        process.members.insert((member.tasks, number));
        process.has.insert(task);
        match role {
            Role::Active => member.active.push(task),
            Role::Standby => member.standby.push(task),
        }
        let tasks = member.tasks;
        self.by_load.insert((self.load(index), index));
        if role == Role::Active {
            self.active_quota.given(tasks);
        }
        self.quota.given(tasks);
    }

    fn assign_active(&mut self, tasks: &[Task]) {
        let mut tasks = tasks.to_vec();
        tasks.sort_unstable_by_key(|(part, partition)| (*partition, *part));
        tasks.retain(|task| {
            let former = self.former_active.get(task).copied();
            !self.give_back(former, *task)
        });
        tasks.retain(|task| {
            let former = self.least_loaded_copy(*task, None);
            !self.give_back(former, *task)
        });
        tasks.sort_unstable();
        for task in tasks {
            let Some((_, process)) = self.by_load.first().copied() else { return };
            self.give_to_least_loaded(process, task, Role::Active);
        }
    }

    /// Gives an active task to a member that knows it, unless the member is full.
    fn give_back(&mut self, former: Option<usize>, task: Task) -> bool {
        let has_room = |number: &usize| self.members[*number].tasks < self.active_quota.each;
        let Some(number) = former.filter(has_room) else { return false };
        self.give(number, task, Role::Active);
        true
    }

    fn give_to_least_loaded(&mut self, process: usize, task: Task, role: Role) {
        if let Some((_, number)) = self.processes[process].members.first().copied() {
            self.give(number, task, role);
        }
    }

    /// The member with a copy of the task's state that has the least to do. Where `unless` names
    /// the task, its process must have nothing of it.
    fn least_loaded_copy(&self, task: Task, unless: Option<Task>) -> Option<usize> {
        let mut best: Option<usize> = None;
        for number in self.former_standby.get(&task).into_iter().flatten().copied() {
            let process = self.members[number].process;
            if unless.is_some_and(|task| self.processes[process].has.contains(&task)) {
                continue;
            }
            let is_better = best.is_none_or(|best| {
                self.load(process) < self.load(self.members[best].process)
                    && self.members[number].tasks < self.members[best].tasks
            });
            best = if is_better { Some(number) } else { best };
        }
        best
    }

    fn assign_standby(&mut self, tasks: &[Task], replicas: usize) {
        let mut tasks = tasks.to_vec();
        tasks.sort_unstable_by_key(|(part, partition)| Reverse((*partition, *part)));
        let mut left = Vec::new();
        for task in tasks {
            let given = (0..replicas).take_while(|_| self.give_standby_back(task)).count();
            if given < replicas {
                left.push((task, replicas - given));
            }
        }
        left.sort_unstable_by_key(|(task, _)| Reverse(*task));
        for (task, copies) in left {
            for _copy in 0..copies {
                let has_none =
                    |(_, process): &&(Load, usize)| !self.processes[*process].has.contains(&task);
                let Some((_, process)) = self.by_load.iter().find(has_none).copied() else { break };
                self.give_to_least_loaded(process, task, Role::Standby);
            }
        }
    }

    /// Gives a standby task to the member that processed it, or that has a copy of its state.
    fn give_standby_back(&mut self, task: Task) -> bool {
        let has_room = |number: &usize| self.members[*number].tasks < self.quota.each;
        let has_none =
            |number: &usize| !self.processes[self.members[*number].process].has.contains(&task);
        let active = self.former_active.get(&task).copied().filter(has_none).filter(has_room);
        let copy = || self.least_loaded_copy(task, Some(task)).filter(has_room);
        let Some(number) = active.or_else(copy) else { return false };
        self.give(number, task, Role::Standby);
        true
    }
}

impl Quota {
    fn new(tasks: usize, members: usize) -> Self {
        let each = if members == 0 { 0 } else { tasks.div_ceil(members) };
        Self { tasks, members, each }
    }

    /// A member has got so many tasks. One that is full takes its share with it.
    fn given(&mut self, tasks: usize) {
        if tasks == self.each && self.members > 0 {
            *self = Self::new(self.tasks.saturating_sub(tasks), self.members - 1);
        }
    }
}

impl Ord for Load {
    /// By tasks for each thread.
    fn cmp(&self, other: &Self) -> Ordering {
        let (own, its) = (self.tasks * other.threads, other.tasks * self.threads);
        own.cmp(&its).then(self.threads.cmp(&other.threads))
    }
}

impl PartialOrd for Load {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    type Targets = BTreeMap<String, StreamsTasks>;

    /// Members by the number of their process; stateful subtopologies by the number of their tasks.
    fn assigned(processes: &[usize], sizes: &[i32], replicas: i32, before: &Targets) -> Targets {
        let ids: Vec<String> = (0..processes.len()).map(|it| format!("member-{it:02}")).collect();
        let names: Vec<String> = processes.iter().map(|it| format!("process-{it}")).collect();
        let parts: Vec<String> = (0..sizes.len()).map(|it| it.to_string()).collect();
        let held: Vec<MemberTasks> = ids.iter().map(|id| current(before.get(id))).collect();
        let members = ids.iter().zip(&names).zip(&held).map(|((id, process), current)| {
            StreamsCandidate { id, process, current, offsets: None }
        });
        let subtopologies = parts.iter().zip(sizes).map(|(id, count)| TasksOf {
            id,
            count: *count,
            is_stateful: true,
        });
        assign(&Assignment {
            members: members.collect(),
            subtopologies: subtopologies.collect(),
            standby_replicas: replicas,
        })
    }

    fn current(target: Option<&StreamsTasks>) -> MemberTasks {
        let target = target.cloned().unwrap_or_default();
        let active = target.active.into_iter();
        let active = active.map(|(id, held)| (id, held.into_iter().map(|it| (it, 1)).collect()));
        MemberTasks { active: active.collect(), standby: target.standby }
    }

    fn count(tasks: &TaskIds) -> usize {
        tasks.values().map(BTreeSet::len).sum()
    }

    fn holders(targets: &Targets, of: fn(&StreamsTasks) -> &TaskIds) -> BTreeMap<Task, Vec<&str>> {
        let mut holders: BTreeMap<Task, Vec<&str>> = BTreeMap::new();
        for (member, tasks) in targets {
            for (id, held) in of(tasks) {
                let part = id.parse().unwrap();
                held.iter().for_each(|it| holders.entry((part, *it)).or_default().push(member));
            }
        }
        holders
    }

    #[test]
    fn a_member_that_joins_takes_its_share_and_the_others_keep_theirs() {
        let before = assigned(&[0, 1], &[6], 0, &Targets::new());
        let after = assigned(&[0, 1, 2], &[6], 0, &before);
        assert!(after.values().all(|tasks| count(&tasks.active) == 2), "{after:?}");
        for (member, tasks) in &before {
            let kept = &after[member].active["0"];
            assert!(kept.is_subset(&tasks.active["0"]), "{member} keeps what it had");
        }
    }

    #[test]
    fn the_copies_of_a_process_that_is_gone_take_over() {
        let before = assigned(&[0, 1, 2], &[6], 1, &Targets::new());
        let gone = &before["member-02"].active["0"];
        let mut rest = before.clone();
        rest.remove("member-02");
        let after = assigned(&[0, 1], &[6], 1, &rest);
        for (member, tasks) in &after {
            let new: BTreeSet<i32> =
                tasks.active["0"].difference(&before[member].active["0"]).copied().collect();
            assert!(new.is_subset(gone), "{member} gets tasks of the one that is gone");
            assert_eq!(count(&tasks.standby), 3, "the other process has the copies");
        }
    }

    #[test]
    fn a_process_with_more_threads_gets_more_tasks() {
        let targets = assigned(&[0, 0, 1], &[9], 0, &Targets::new());
        let counts: Vec<usize> = targets.values().map(|tasks| count(&tasks.active)).collect();
        assert_eq!(counts, [3, 3, 3]);
    }

    proptest! {
        #[test]
        fn every_task_is_active_once_and_its_copies_are_on_other_processes(
            processes in vec(0..6_usize, 1..12),
            former in vec(0..6_usize, 1..12),
            sizes in vec(0..9_i32, 1..4),
            replicas in 0..3_i32,
        ) {
            let before = assigned(&former, &sizes, replicas, &Targets::new());
            let targets = assigned(&processes, &sizes, replicas, &before);
            let process = |id: &str| processes[id["member-".len()..].parse::<usize>().unwrap()];
            let active = holders(&targets, |tasks| &tasks.active);
            let standby = holders(&targets, |tasks| &tasks.standby);
            let distinct = processes.iter().collect::<BTreeSet<_>>().len();
            let copies = usize::try_from(replicas).unwrap().min(distinct - 1);
            let all = sizes.iter().map(|size| usize::try_from(*size).unwrap()).sum::<usize>();
            prop_assert_eq!(active.len(), all);
            for (task, members) in &active {
                prop_assert_eq!(members.len(), 1);
                let others = standby.get(task).cloned().unwrap_or_default();
                prop_assert_eq!(others.len(), copies);
                let on: BTreeSet<usize> =
                    members.iter().chain(&others).map(|id| process(id)).collect();
                prop_assert_eq!(on.len(), copies + 1, "no process has a task twice");
            }
        }
    }
}
