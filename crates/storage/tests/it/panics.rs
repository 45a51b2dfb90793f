//! Threads that panic: nothing waits for ever, and the owner learns that the storage has stopped.

use std::io::{self, IoSlice};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use moldau_storage::{
    Access, AppendError, Compaction, Disk, DiskFile, Error, Options, ReadOutcome, RealDisk,
    Storage, block_on,
};

use crate::world::{AppendBytes, Owner, TOPIC, append, keyed, one, records, small, try_records};

/// A real disk on which the threads of a name panic, once that is wanted.
struct Panicking {
    thread: &'static str,
    is_on: AtomicBool,
}

struct PanickingFile(Arc<Panicking>, Arc<dyn DiskFile>);

impl Panicking {
    fn on(thread: &'static str) -> Arc<Panicking> {
        Arc::new(Panicking { thread, is_on: AtomicBool::new(false) })
    }

    fn turn(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::SeqCst);
    }

    fn pass(&self) {
        let is_here = thread::current().name() == Some(self.thread);
        assert!(!(is_here && self.is_on.load(Ordering::SeqCst)), "a defect");
    }
}

/// The disk itself, which cannot be a trait object of what it shares.
struct Shared(Arc<Panicking>);

impl Disk for Shared {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.create_dir(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }

    fn open(&self, path: &Path, access: Access, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let file = RealDisk.open(path, access, create)?;
        Ok(Arc::new(PanickingFile(Arc::clone(&self.0), file)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        RealDisk.free_bytes(path)
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        RealDisk.lock(path)
    }
}

impl DiskFile for PanickingFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.pass();
        self.1.read_at(buffer, offset)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        self.0.pass();
        self.1.write_at(buffers, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.pass();
        self.1.sync_data()
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.1.allocate(bytes)
    }

    fn shorten(&self, bytes: u64) -> io::Result<()> {
        self.1.shorten(bytes)
    }

    fn length(&self) -> io::Result<u64> {
        self.1.length()
    }
}

fn open(disk: &Arc<Panicking>, dir: &Path) -> Storage {
    let options = Options { background_rate: 0, ..small(dir) };
    let disk = Arc::new(Shared(Arc::clone(disk)));
    Storage::open_on(disk, options, &mut Owner::default()).unwrap()
}

/// The storage has stopped and says why; nothing is taken and nothing is waited for.
fn assert_stopped(storage: &Storage, culprit: &str) {
    let cause = block_on(storage.stopped()).to_string();
    assert!(cause.contains(culprit) && cause.contains("a defect"), "{cause}");
    let refused = storage.log(TOPIC, 0).append_bytes(&one(b"x"), 0);
    assert!(matches!(refused, Err(AppendError::Poisoned(_))), "{refused:?}");
    let metadata = storage.append_metadata(b"x");
    assert!(matches!(metadata, Err(AppendError::Poisoned(_))), "{metadata:?}");
    assert!(matches!(storage.close(), Err(Error::Poisoned { .. })));
}

/// Fills files until `is_enough`.
fn fill(storage: &Storage, is_enough: impl Fn() -> bool) {
    let log = storage.log(TOPIC, 0);
    while !is_enough() {
        match log.append_bytes(&one(&[7; 9_000]), 0) {
            Ok(appended) => drop(block_on(storage.wait_durable(appended.lsn))),
            Err(error) => {
                assert!(matches!(error, AppendError::Poisoned(_)), "{error}");
                return;
            }
        }
    }
}

/// Appending tasks waited for ever.
#[test]
fn a_panic_of_the_journal_thread_answers_what_waits() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("moldau-journal"));
    let storage = open(&disk, dir.path());
    let log = storage.log(TOPIC, 0);
    append(&storage, &log, &one(b"kept"));
    disk.turn(true);
    let appended = log.append_bytes(&one(b"lost"), 0).unwrap();
    let waited = block_on(storage.wait_durable(appended.lsn));
    assert!(matches!(waited, Err(Error::Poisoned { .. })), "{waited:?}");
    assert_eq!(log.high_watermark(), 1);
    assert_stopped(&storage, "moldau-journal");
    drop((storage, log));
    disk.turn(false);
    let storage = open(&disk, dir.path());
    assert_eq!(records(&storage.log(TOPIC, 0), 1 << 20), [(0, b"kept".to_vec())]);
}

#[test]
fn a_panic_of_the_thread_that_prepares_files_stops_the_storage() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("moldau-files"));
    let storage = open(&disk, dir.path());
    disk.turn(true);
    fill(&storage, || false);
    assert_stopped(&storage, "moldau-files");
}

#[test]
fn a_panic_of_upkeep_stops_the_storage() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("moldau-upkeep"));
    let storage = open(&disk, dir.path());
    disk.turn(true);
    fill(&storage, || false);
    assert_stopped(&storage, "moldau-upkeep");
}

/// A chunk that a reader thread left behind was loading for ever.
#[test]
fn a_read_that_panics_is_an_error_and_the_next_one_is_not() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("moldau-reader"));
    let storage = open(&disk, dir.path());
    let log = storage.log(TOPIC, 0);
    for at in 0..20 {
        append(&storage, &log, &one(&[at; 5_000]));
    }
    disk.turn(true);
    // As many as there are threads, and one more.
    for _ in 0..9 {
        let read = log.read(0, 1 << 20, true).and_then(ReadOutcome::wait);
        assert!(matches!(read, Err(Error::Defect { .. })), "{read:?}");
    }
    assert!(storage.metrics().defects > 0);
    disk.turn(false);
    // A load that was under way may still fail, and is tried again by the next read.
    let found = loop {
        match try_records(&log, 1 << 20) {
            Err(Error::Defect { .. }) => {}
            found => break found.unwrap(),
        }
    };
    assert_eq!(found.len(), 20);
    append(&storage, &log, &one(b"and on"));
    storage.close().unwrap();
}

#[test]
fn a_panic_in_a_checkpoint_stops_the_storage() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("checkpointing"));
    let storage = open(&disk, dir.path());
    append(&storage, &storage.log(TOPIC, 0), &one(b"x"));
    disk.turn(true);
    let own = storage.clone();
    let thread = thread::Builder::new().name("checkpointing".into());
    let written = thread.spawn(move || own.checkpoint(|_| Ok(()))).unwrap().join().unwrap();
    assert!(matches!(written, Err(Error::Poisoned { .. })), "{written:?}");
    assert_stopped(&storage, "a checkpoint");
}

/// A panic in the snapshot of the owner counts as a panic of the checkpoint.
#[test]
fn a_panic_in_the_snapshot_of_a_checkpoint_stops_the_storage() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("none"));
    let storage = open(&disk, dir.path());
    let written = storage.checkpoint(|_| panic!("a defect of the owner"));
    assert!(matches!(written, Err(Error::Poisoned { .. })), "{written:?}");
    assert_stopped(&storage, "a checkpoint");
}

#[test]
fn a_panic_in_a_compaction_stops_the_storage() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("compacting"));
    let storage = open(&disk, dir.path());
    let log = storage.log(TOPIC, 0);
    for at in 0..10 {
        append(&storage, &log, &keyed(1_000 + at, b"key", &[1; 5_000]));
    }
    disk.turn(true);
    let compaction = Compaction {
        min_lag_ms: 0,
        max_lag_ms: i64::MAX,
        delete_retention_ms: 0,
        min_dirty_ratio: 0.0,
    };
    let own = storage.clone();
    let thread = thread::Builder::new().name("compacting".into());
    let compact = move || own.compact(&[(log, compaction)], 10_000);
    let compacted = thread.spawn(compact).unwrap().join().unwrap();
    assert!(matches!(compacted, Err(Error::Poisoned { .. })), "{compacted:?}");
    assert_stopped(&storage, "a compaction");
}

/// Scrubbing only reads, and what it reads may be damaged in any way.
#[test]
fn a_pass_of_scrubbing_that_panics_is_an_error() {
    let (dir, disk) = (tempfile::tempdir().unwrap(), Panicking::on("scrubbing"));
    let storage = open(&disk, dir.path());
    append(&storage, &storage.log(TOPIC, 0), &one(b"x"));
    let scrub = || {
        let own = storage.clone();
        let thread = thread::Builder::new().name("scrubbing".into());
        thread.spawn(move || own.scrub()).unwrap().join().unwrap()
    };
    disk.turn(true);
    assert!(matches!(scrub(), Err(Error::Defect { .. })));
    disk.turn(false);
    assert_eq!(scrub().unwrap(), 0);
    append(&storage, &storage.log(TOPIC, 0), &one(b"and on"));
}
