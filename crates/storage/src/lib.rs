//! Partition logs on one journal: group commit, index, tail cache and recovery.
