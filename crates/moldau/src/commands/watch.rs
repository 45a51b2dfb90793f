//! Files that are watched for changes, by looking at them now and then.
//!
//! A look costs one system call for each file and sees what notifications do not tell of alike
//! everywhere: files renamed into place, and links that are turned to another directory, as
//! Kubernetes does with its volumes.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::config::{Mark, mark};

/// Files and their states.
#[derive(Debug)]
pub(super) struct Watch {
    /// The states that count as known.
    known: BTreeMap<PathBuf, Mark>,
    /// What the last look saw.
    seen: BTreeMap<PathBuf, Mark>,
}

impl Watch {
    /// Watches files from these states on.
    pub(super) fn new(known: BTreeMap<PathBuf, Mark>) -> Self {
        Self { seen: known.clone(), known }
    }

    /// The files with the states that count as known.
    pub(super) fn known(self) -> BTreeMap<PathBuf, Mark> {
        self.known
    }

    /// Looks at the files. True once a change is complete: the files differ from the known states,
    /// but not from what the look before saw. These states are known from then on.
    pub(super) fn has_changed(&mut self) -> bool {
        let now: BTreeMap<_, _> =
            self.known.keys().map(|path| (path.clone(), mark(path))).collect();
        let is_complete = now != self.known && now == self.seen;
        if is_complete {
            self.known.clone_from(&now);
        }
        self.seen = now;
        is_complete
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;

    fn watch(path: &Path) -> Watch {
        Watch::new(BTreeMap::from([(path.to_owned(), mark(path))]))
    }

    fn looks(watch: &mut Watch) -> [bool; 3] {
        std::array::from_fn(|_| watch.has_changed())
    }

    #[test]
    fn a_change_is_reported_once_and_after_it_has_settled() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        std::fs::write(&path, "one").unwrap();
        let mut watch = watch(&path);
        assert_eq!(looks(&mut watch), [false, false, false]);
        std::fs::write(&path, "other").unwrap();
        assert_eq!(looks(&mut watch), [false, true, false]);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(looks(&mut watch), [false, true, false]);
        std::fs::write(&path, "other").unwrap();
        assert_eq!(looks(&mut watch), [false, true, false]);
    }

    #[test]
    fn a_file_renamed_into_place_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let (path, beside) = (directory.path().join("file"), directory.path().join("beside"));
        std::fs::write(&path, "one").unwrap();
        std::fs::write(&beside, "two").unwrap();
        let mut watch = watch(&path);
        std::fs::rename(&beside, &path).unwrap();
        assert_eq!(looks(&mut watch), [false, true, false]);
    }

    #[test]
    fn a_link_turned_to_another_directory_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        for version in ["first", "second"] {
            std::fs::create_dir(root.join(version)).unwrap();
            std::fs::write(root.join(version).join("file"), version).unwrap();
        }
        symlink("first", root.join("..data")).unwrap();
        symlink("..data/file", root.join("file")).unwrap();
        let mut watch = watch(&root.join("file"));
        symlink("second", root.join("..data_tmp")).unwrap();
        std::fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
        assert_eq!(looks(&mut watch), [false, true, false]);
    }
}
