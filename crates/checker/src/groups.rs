//! Committed offsets of the group: those that are lost, go back or pass over records.

use std::collections::{BTreeMap, HashSet};

use crate::anomaly::{Anomaly, Kind};
use crate::history::{Action, Outcome};
use crate::index::Index;
use crate::report::Report;

/// What the group did in one partition.
#[derive(Default)]
struct Progress {
    /// Commits that may have taken effect, in the order of their ends.
    commits: Vec<Position>,
    /// Committed offsets that members read back, in the order of their begins.
    resumes: Vec<Position>,
}

/// A commit of an offset, or an offset read back.
#[derive(Clone, Copy)]
struct Position {
    operation: usize,
    client: u32,
    from_us: u64,
    /// When it took effect at the latest: the end of time if the client never learned it.
    to_us: u64,
    /// `None` if the group had no offset.
    offset: Option<i64>,
}

pub(crate) fn find(index: &Index<'_>, report: &mut Report) {
    let (progress, polled) = (progress(index), polled(index));
    for (&partition, progress) in &progress {
        let mut found = |kind, value, offsets, operations| {
            let partition = Some(partition);
            let edges = Vec::new();
            report.add(kind, || Anomaly { kind, partition, offsets, value, operations, edges });
        };
        for (last, resume) in progress.lost_commits() {
            let offsets = [last.and_then(|it| it.offset), resume.offset];
            let operations = last.into_iter().chain([resume]).map(|it| it.operation);
            let offsets = offsets.into_iter().flatten().collect();
            found(Kind::LostCommit, None, offsets, operations.collect());
        }
        for (before, commit) in progress.commits_that_go_back() {
            let offsets = [before.offset, commit.offset].into_iter().flatten().collect();
            let operations = vec![before.operation, commit.operation];
            found(Kind::NonmonotonicCommit, None, offsets, operations);
        }
        let passes = progress.passes();
        let Some(log) = index.logs.get(&partition) else { continue };
        let passed = passes.last().map_or(i64::MIN, |(end, _)| *end);
        for (&offset, version) in log.range(..passed) {
            let is_lost = index.is_visible(version) && !polled.contains(&(partition, offset));
            let pass = passes.get(passes.partition_point(|(end, _)| *end <= offset));
            if let Some((end, passer)) = pass.filter(|_| is_lost) {
                let writer = index.committed_writer(version);
                let operations = writer.into_iter().chain([*passer]).collect();
                let value = version.values.first().copied();
                found(Kind::LostDelivery, value, vec![offset, *end], operations);
            }
        }
    }
}

fn progress(index: &Index<'_>) -> BTreeMap<u32, Progress> {
    let mut all: BTreeMap<u32, Progress> = BTreeMap::new();
    for (operation, it) in index.operations.iter().enumerate() {
        let is_unknown = it.outcome == Outcome::Unknown;
        for step in &it.steps {
            let to_us = if is_unknown { u64::MAX } else { step.to_us };
            let (client, from_us) = (it.client, step.from_us);
            let at = |offset| Position { operation, client, from_us, to_us, offset };
            match step.action {
                Action::Commit { partition, offset } if it.outcome != Outcome::Aborted => {
                    all.entry(partition).or_default().commits.push(at(Some(offset)));
                }
                Action::Resume { partition, offset } => {
                    all.entry(partition).or_default().resumes.push(at(offset));
                }
                _ => {}
            }
        }
    }
    for progress in all.values_mut() {
        progress.commits.sort_by_key(|commit| commit.to_us);
        progress.resumes.sort_by_key(|resume| resume.from_us);
    }
    all
}

/// The partition and offset of each record that a member polled.
fn polled(index: &Index<'_>) -> HashSet<(u32, i64)> {
    let mut members = HashSet::new();
    for operation in index.operations {
        let resumes = operation.steps.iter().any(|it| matches!(it.action, Action::Resume { .. }));
        resumes.then(|| members.insert(operation.client));
    }
    let client = |operation: usize| index.operations.get(operation).map(|it| it.client);
    let by_member = index
        .reads()
        .filter(|read| client(read.operation).is_some_and(|client| members.contains(&client)));
    by_member.map(|read| (read.partition, read.seen.offset)).collect()
}

impl Progress {
    /// Offsets read back that are older than the last acknowledged commit, or that no member
    /// committed; each with that commit.
    fn lost_commits(&self) -> Vec<(Option<Position>, Position)> {
        let mut ended = self.commits.iter().filter(|commit| commit.is_acked()).peekable();
        // Of those that have ended, the commit that began last: what had ended before is replaced.
        let mut last: Option<Position> = None;
        let mut lost = Vec::new();
        for resume in &self.resumes {
            while let Some(commit) = ended.next_if(|it| it.to_us < resume.from_us) {
                last = last.filter(|it| it.from_us >= commit.from_us).or(Some(*commit));
            }
            let replaced_us = last.map_or(0, |it| it.from_us);
            let may_hold = |commit: &Position| {
                commit.offset == resume.offset
                    && commit.from_us <= resume.to_us
                    && commit.to_us >= replaced_us
            };
            let is_sound = match resume.offset {
                None => last.is_none(),
                Some(_) => self.commits.iter().any(may_hold),
            };
            if !is_sound {
                lost.push((last, *resume));
            }
        }
        lost
    }

    /// Acknowledged commits below one that had ended before, of members to whom the partition was
    /// not assigned in between; each with the one before.
    fn commits_that_go_back(&self) -> Vec<(Position, Position)> {
        let acked = || self.commits.iter().filter(|commit| commit.is_acked());
        let mut back = Vec::new();
        for commit in acked() {
            let is_own =
                |it: &&Position| it.client == commit.client && it.from_us <= commit.from_us;
            let Some(assigned) = self.resumes.iter().rfind(is_own) else { continue };
            let before = acked()
                .rev()
                .skip_while(|it| it.to_us >= commit.from_us)
                .take_while(|it| it.to_us > assigned.from_us)
                .max_by_key(|it| it.offset);
            if let Some(before) = before.filter(|before| before.offset > commit.offset) {
                back.push((*before, *commit));
            }
        }
        back
    }

    /// Offsets below which the group reads nothing any more, ascending, each with its operation.
    fn passes(&self) -> Vec<(i64, usize)> {
        let acked = self.commits.iter().filter(|commit| commit.is_acked());
        let passes = acked.chain(&self.resumes).filter_map(|it| Some((it.offset?, it.operation)));
        let mut passes: Vec<_> = passes.collect();
        passes.sort_unstable();
        passes
    }
}

impl Position {
    fn is_acked(&self) -> bool {
        self.to_us < u64::MAX
    }
}
