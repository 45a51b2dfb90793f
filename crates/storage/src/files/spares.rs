//! Used files of the journal that wait to be used again.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{JournalFile, spare_path};

/// Files for later use. A journal at full speed is up to a quarter slower in fresh files, so those
/// that were of use lately are kept.
#[derive(Debug, Default)]
pub(super) struct Spares {
    pub(super) paths: Vec<PathBuf>,
    /// Retired ones, until their last reader has let go of them.
    pub(super) held: Vec<Arc<JournalFile>>,
    /// When `fewest` began to be counted.
    since: Option<Instant>,
    /// Lowest number of files since then: so many were not needed.
    fewest: usize,
    /// How many may go.
    unused: usize,
}

impl Spares {
    /// Adds the files that no reader uses to the others. No list has them, so no reader can begin
    /// to.
    pub(super) fn settle(&mut self) {
        let unread = |file: &mut Arc<JournalFile>| Arc::strong_count(file) == 1;
        let settled = self.held.extract_if(.., unread).map(|file| spare_path(&file.path));
        self.paths.extend(settled);
    }

    pub(super) fn take(&mut self) -> Option<PathBuf> {
        let path = self.paths.pop();
        self.fewest = self.fewest.min(self.paths.len());
        self.unused = self.unused.min(self.paths.len());
        path
    }

    /// One that may go.
    pub(super) fn take_for_removal(&mut self, now: Instant, going: Going) -> Option<PathBuf> {
        let since = *self.since.get_or_insert(now);
        if now.saturating_duration_since(since) >= SPARES_KEPT_FOR {
            (self.unused, self.fewest) = (self.fewest, self.paths.len());
            self.since = Some(now);
        }
        let may_go = match going {
            Going::All => self.paths.len() > SPARES_MIN,
            Going::Unused { but } => self.unused > 0 && self.paths.len() > but.max(SPARES_MIN),
        };
        if !may_go {
            return None;
        }
        self.unused = self.unused.saturating_sub(1);
        self.fewest = self.fewest.saturating_sub(1);
        Some(self.paths.swap_remove(0))
    }
}

/// Which of the files for later use may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Going {
    /// All but [`SPARES_MIN`].
    All,
    /// Those that were of no use for [`SPARES_KEPT_FOR`], but for so many that stay.
    Unused { but: usize },
}

/// Used files that are not removed: one is in preparation while another is waited for.
pub(super) const SPARES_MIN: usize = 2;
/// Retired files come in numbers, as when a topic is deleted. As long as Kafka keeps the files of a
/// deleted topic by default (`file.delete.delay.ms`), and up to twice that.
const SPARES_KEPT_FOR: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_unused_for_a_while_are_removed() {
        let begun = Instant::now();
        let paths = (0..20).map(|at| PathBuf::from(at.to_string())).collect();
        let mut spares = Spares { paths, ..Spares::default() };
        let gone = |spares: &mut Spares, periods: u32, going| {
            let now = begun + SPARES_KEPT_FOR * periods;
            std::iter::from_fn(|| spares.take_for_removal(now, going)).count()
        };
        let unused = Going::Unused { but: 0 };
        // They have just come.
        assert_eq!(gone(&mut spares, 0, unused), 0);
        assert_eq!(gone(&mut spares, 1, unused), 0);
        // Five were of use, though all are there again.
        let used: Vec<_> = (0..5).filter_map(|_| spares.take()).collect();
        assert_eq!(used.len(), 5);
        spares.paths.extend(used);
        // While producers need the disk, only what is too much goes.
        assert_eq!(gone(&mut spares, 2, Going::Unused { but: 20 }), 0);
        assert_eq!(gone(&mut spares, 2, Going::Unused { but: 18 }), 2);
        assert_eq!(gone(&mut spares, 2, unused), 13);
        // The rest was not, and two stay.
        assert_eq!(gone(&mut spares, 2, unused), 0);
        assert_eq!(gone(&mut spares, 3, unused), 3);
        assert_eq!(spares.paths.len(), SPARES_MIN);
        // For want of space they go at once.
        spares.paths.extend((0..3).map(|at| PathBuf::from(at.to_string())));
        assert_eq!(gone(&mut spares, 3, Going::All), 3);
    }
}
