//! Which limit a failed system ran into.
//!
//! Messages of a system and its log take precedence over counts, since the counts are from before
//! the failure.

use crate::partitions::{LimitKind, Wall};
use moldau_measure::resources::{Limits, Resources};

/// Share of a limit from which on it counts as reached: a system may fail while it reserves a
/// batch of what it needs, short of the limit itself.
const SHARE_REACHED: f64 = 0.95;

/// Records that a KRaft controller takes in one operation.
const CONTROLLER_BATCH_RECORDS_MAX: u64 = 10_000;

/// Phrases of systems and the limits that they speak of; the first found counts. A map that
/// cannot be made is reported as a lack of memory, so it stands before the heap.
const PHRASES: [(&str, LimitKind); 10] = [
    ("xcessively large number of partitions", LimitKind::ControllerBatch),
    ("excessively large batch", LimitKind::ControllerBatch),
    ("Too many open files", LimitKind::Descriptors),
    ("Map failed", LimitKind::Maps),
    ("max_map_count", LimitKind::Maps),
    ("unable to create native thread", LimitKind::Threads),
    ("Java heap space", LimitKind::Heap),
    ("GC overhead limit exceeded", LimitKind::Heap),
    ("No space left on device", LimitKind::Disk),
    ("ExitOnOutOfMemoryError", LimitKind::Heap),
];

/// What is known about a failure.
pub(super) struct Evidence<'a> {
    /// The error that the client received.
    pub(super) words: &'a str,
    /// The end of the system's own output.
    pub(super) log: &'a str,
    /// What it held when last looked at.
    pub(super) held: Option<Resources>,
    /// What it may hold.
    pub(super) limits: Limits,
}

/// The limit that the evidence names.
pub(super) fn find(evidence: &Evidence<'_>) -> Option<Wall> {
    let said = [evidence.words, evidence.log].into_iter().find_map(|text| {
        PHRASES.iter().find_map(|(phrase, kind)| Some((*kind, line_with(text, phrase)?)))
    });
    if let Some((limit, line)) = said {
        let (used, of) = counted(limit, evidence);
        return Some(Wall { limit, used, of, evidence: line });
    }
    [LimitKind::Descriptors, LimitKind::Maps].into_iter().find_map(|limit| {
        let (Some(used), Some(of)) = counted(limit, evidence) else { return None };
        let evidence = format!("{used} of {of} in use when last looked at");
        is_reached(used, of).then_some(Wall { limit, used: Some(used), of: Some(of), evidence })
    })
}

/// What was used of a limit, and the limit.
fn counted(limit: LimitKind, evidence: &Evidence<'_>) -> (Option<u64>, Option<u64>) {
    let held = |figure: fn(&Resources) -> u64| evidence.held.as_ref().map(figure);
    match limit {
        LimitKind::Descriptors => (held(|held| held.descriptors), evidence.limits.descriptors),
        LimitKind::Maps => (held(|held| held.maps), evidence.limits.maps),
        LimitKind::Heap => (None, evidence.limits.heap_bytes),
        LimitKind::Threads => (held(|held| held.threads), None),
        LimitKind::ControllerBatch => (None, Some(CONTROLLER_BATCH_RECORDS_MAX)),
        LimitKind::Disk => (None, None),
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of a process stay far below 2^53")]
fn is_reached(used: u64, of: u64) -> bool {
    of > 0 && used as f64 >= of as f64 * SHARE_REACHED
}

/// The line of `text` that holds `phrase`, cut to what a report can show.
fn line_with(text: &str, phrase: &str) -> Option<String> {
    const CHARACTERS_MAX: usize = 200;
    let line = text.lines().find(|line| line.contains(phrase))?;
    Some(line.trim().chars().take(CHARACTERS_MAX).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn evidence<'a>(words: &'a str, log: &'a str) -> Evidence<'a> {
        let limits =
            Limits { descriptors: Some(20_000), maps: Some(65_530), heap_bytes: Some(1 << 30) };
        let held = Resources { descriptors: 5_000, maps: 10_000, ..Resources::default() };
        Evidence { words, log, held: Some(held), limits }
    }

    #[test]
    fn the_controllers_refusal_names_its_batch() {
        let words = "create topic t: PolicyViolation (Unable to perform excessively large batch \
                     operation.)";
        let wall = find(&evidence(words, "")).unwrap();
        assert_eq!((wall.limit, wall.of), (LimitKind::ControllerBatch, Some(10_000)));
    }

    #[test]
    fn the_log_takes_precedence_over_the_counts() {
        let log = "INFO ok\njava.io.IOException: /d/t-19852/1.log: Too many open files\n";
        let wall = find(&evidence("no answer in time", log)).unwrap();
        assert_eq!(wall.limit, LimitKind::Descriptors);
        assert_eq!((wall.used, wall.of), (Some(5_000), Some(20_000)));
        assert!(wall.evidence.contains("t-19852"), "{}", wall.evidence);
    }

    #[test]
    fn memory_that_cannot_be_mapped_is_not_the_heap() {
        let kind = |log| find(&evidence("", log)).map(|wall| wall.limit);
        assert_eq!(kind("java.lang.OutOfMemoryError: Map failed"), Some(LimitKind::Maps));
        assert_eq!(kind("java.lang.OutOfMemoryError: Java heap space"), Some(LimitKind::Heap));
        let threads = "OutOfMemoryError: unable to create native thread: possibly out of memory";
        assert_eq!(kind(threads), Some(LimitKind::Threads));
        assert_eq!(kind("No space left on device"), Some(LimitKind::Disk));
    }

    #[test]
    fn a_count_close_to_its_limit_is_a_wall_without_words() {
        let mut found = evidence("no answer in time", "");
        assert_eq!(find(&found), None);
        found.held = Some(Resources { maps: 65_000, ..Resources::default() });
        let wall = find(&found).unwrap();
        assert_eq!((wall.limit, wall.used), (LimitKind::Maps, Some(65_000)));
        found.held = None;
        assert_eq!(find(&found), None);
    }
}
