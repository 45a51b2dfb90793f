//! The handle to a data directory.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use moldau_threads::{Mutex, fault_point};

use crate::admission::{Admission, Admissions, Admit};
use crate::cache::READER_THREADS;
use crate::checkpoint::Newest;
use crate::disk::{Access, Disk, RealDisk, write_all};
use crate::durable::{Lsn, WaitDurable, WaitFailure};
use crate::files::{Files, FilesSetup};
use crate::fill::Fill;
use crate::format::{FILE_HEADER_BYTES, Kind};
use crate::io::{BLOCK, SegmentPool};
use crate::journal::{Journal, Writer};
use crate::log::LogState;
use crate::meta;
use crate::metrics::MetricsSnapshot;
use crate::paged::TEMPORARY_SUFFIX;
use crate::recovery::{self, Recovered, Replay};
use crate::segments::Segments;
use crate::topics::Topics;
use crate::{
    AppendError, CheckpointWriter, Compacted, Compaction, Drive, Error, Log, LogId, LogMarker,
    Options, TopicId, Waiter, checkpoint, scrub, upkeep,
};

/// An open data directory. Clones share it; the last one that is dropped flushes and closes it.
#[derive(Clone)]
pub struct Storage {
    inner: Arc<Inner>,
}

/// What was found when the storage was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Info {
    /// How journal files are written and read.
    pub access: Access,
    /// Identity of the data directory, made at random when it was created.
    pub cluster_id: [u8; 16],
    /// Frames that recovery read.
    pub recovered_frames: u64,
    /// Where the journal goes on.
    pub end: Lsn,
}

struct Inner {
    journal: Arc<Journal>,
    topics: Arc<Topics>,
    admissions: Arc<Admissions>,
    info: Info,
    /// Held during a checkpoint; there is one at a time.
    checkpointed: Mutex<Newest>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Keeps other processes out until all else is gone.
    _lock: Box<dyn Send + Sync>,
}

impl Storage {
    /// Opens a data directory, creates it if need be, and replays its journal.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::UnknownVersion`], [`Error::WrongNode`], [`Error::Corrupt`],
    /// [`Error::RepairUnfinished`], [`Error::Replay`], [`Error::Option`], [`Error::DiskFull`],
    /// [`Error::Io`].
    pub fn open(options: Options, replay: &mut dyn Replay) -> Result<Storage, Error> {
        Storage::open_on(Arc::new(RealDisk), options, replay)
    }

    /// As [`Storage::open`], on another disk than this machine's.
    ///
    /// # Errors
    /// As [`Storage::open`].
    pub fn open_on(
        disk: Arc<dyn Disk>,
        options: Options,
        replay: &mut dyn Replay,
    ) -> Result<Storage, Error> {
        options.check()?;
        let data_dir = &options.data_dir;
        let (journal_dir, segment_dir) = (data_dir.join("journal"), data_dir.join("segments"));
        for dir in [&journal_dir, &segment_dir] {
            let created = disk.create_dir(dir).and_then(|()| disk.sync_dir(data_dir));
            created.map_err(|error| Error::io("create", dir, error))?;
        }
        let lock_path = data_dir.join("lock");
        let lock = disk.lock(&lock_path).map_err(|error| Error::io("lock", &lock_path, error))?;
        let lock = lock.ok_or_else(|| Error::Locked { path: data_dir.clone() })?;
        checkpoint::refuse_unfinished_repair(&*disk, data_dir)?;
        let cluster_id = meta::open_identity(&*disk, data_dir, options.node_id)?;
        let access = probe_access(&*disk, &journal_dir, &options)?;
        let setup = FilesSetup {
            access,
            node_id: options.node_id,
            cluster_id,
            file_bytes: options.file_bytes,
            frame_bytes_max: u32::try_from(options.frame_limit()).unwrap_or(u32::MAX),
            reserve_bytes: options.reserve(),
            dir: journal_dir,
        };
        let segments = Segments::new(Arc::clone(&disk), segment_dir, access, cluster_id);
        let (read, newest) = checkpoint::read(&*disk, data_dir, access, cluster_id)?;
        let files = Arc::new(Files::new(disk, setup));
        recovery::list_files(&files, cluster_id)?;
        let mut recovered = recovery::recover(&files, read, replay)?;
        // What recovery read may be in the page cache only, written by a process that did not
        // flush. Nothing is removed on the strength of it before it is durable.
        files.sync_all()?;
        segments.load(&recovered.segments, recovered.next_segment)?;
        recovery::lay_segments(&mut recovered.logs, &segments, &files)?;
        let info = Info {
            access,
            cluster_id,
            recovered_frames: recovered.frames,
            end: Lsn(recovered.next),
        };
        let parts = (files, Arc::new(segments), recovered);
        Storage::start(options, parts, newest, info, lock)
    }

    fn start(
        options: Options,
        (files, segments, recovered): (Arc<Files>, Arc<Segments>, Recovered),
        newest: Newest,
        info: Info,
        lock: Box<dyn Send + Sync>,
    ) -> Result<Storage, Error> {
        let segment_bytes = options.segment_bytes();
        let unused_max = options.unflushed_bytes_max / segment_bytes + 1;
        let pool = SegmentPool::new(segment_bytes, unused_max);
        let Recovered { next, file_end, last, sequence, .. } = recovered;
        let fill = Fill::new(next, file_end, pool, options.frame_target());
        let writer = Writer { last, sequence, flushed: last.sequence, file: None };
        let admissions = Admissions::new(options.unflushed_bytes_max);
        let drive = options.drive;
        let journal = Arc::new(Journal::new(options, files, segments, fill, writer));
        let topics = Arc::new(Topics::default());
        for (topic, logs) in recovered.logs {
            for (partition, log) in logs {
                let id = LogId { topic, partition };
                topics.log(id, || Log::new(id, Arc::clone(&journal), log.state));
            }
        }
        let storage = Storage {
            inner: Arc::new(Inner {
                journal,
                topics,
                admissions,
                info,
                checkpointed: Mutex::held_across_io(newest),
                threads: Mutex::default(),
                _lock: lock,
            }),
        };
        if drive == Drive::Threads {
            storage.inner.start_threads()?;
            storage.inner.journal.upkeep.want();
        }
        Ok(storage)
    }

    /// What was found when the storage was opened.
    pub fn info(&self) -> Info {
        self.inner.info
    }

    /// The counters of the journal and its caches.
    pub fn metrics(&self) -> MetricsSnapshot {
        self.inner.journal.metrics.snapshot()
    }

    /// Bytes of batches that are held in memory so that reads need no disk: what was flushed last,
    /// and what was read back.
    pub fn cached_bytes(&self) -> (usize, usize) {
        let journal = &self.inner.journal;
        (journal.tail.bytes(), journal.cache.bytes())
    }

    /// Memory of batches: of those that were appended or flushed, and of those that were read back.
    /// Beyond the caches it holds what readers have not let go.
    pub fn memory_bytes(&self) -> (usize, usize) {
        let journal = &self.inner.journal;
        (journal.tail.memory_bytes(), journal.cache.memory_bytes())
    }

    /// The log of a partition, made in memory if there is none. It reaches the disk with its first
    /// batch.
    pub fn log(&self, topic: TopicId, partition: i32) -> Arc<Log> {
        let id = LogId { topic, partition };
        let journal = &self.inner.journal;
        let make = || Log::new(id, Arc::clone(journal), LogState::default());
        self.inner.topics.log(id, make)
    }

    /// The topics that have logs. After a crash there may be some that the owner's metadata does
    /// not know any more, which the owner then deletes.
    pub fn topics(&self) -> Vec<TopicId> {
        self.inner.topics.ids()
    }

    /// All logs.
    pub fn logs(&self) -> Vec<Arc<Log>> {
        self.inner.topics.all()
    }

    /// The logs of a topic to which something was written, or that were asked for.
    pub fn logs_of(&self, topic: TopicId) -> Vec<Arc<Log>> {
        self.inner.topics.of(topic)
    }

    /// Deletes a topic: its logs take no further append and serve no read.
    ///
    /// # Errors
    /// [`AppendError::DiskFull`], [`AppendError::Exhausted`], [`AppendError::Poisoned`],
    /// [`AppendError::Closed`]; the logs are gone from memory all the same, and from the disk when
    /// there is space or the owner asks again after the next start.
    pub fn delete_topic(&self, topic: TopicId) -> Result<Lsn, AppendError> {
        let mut refused = self.inner.journal.deleting.lock();
        let logs = self.inner.topics.remove(topic);
        // Each log is marked before the entry is appended, so that no state of it follows the
        // entry.
        logs.values().for_each(|log| log.mark_deleted());
        let appended = self.inner.journal.append_deletion(topic);
        let lsn = appended.inspect_err(|_| refused.push(topic))?;
        drop(refused);
        self.inner.journal.upkeep.want();
        Ok(lsn)
    }

    /// Appends bytes of the owner, which [`Replay::metadata`] gets back.
    ///
    /// # Errors
    /// [`AppendError::TooLarge`], [`AppendError::DiskFull`], [`AppendError::Exhausted`],
    /// [`AppendError::Poisoned`], [`AppendError::Closed`].
    pub fn append_metadata(&self, bytes: &[u8]) -> Result<Lsn, AppendError> {
        let lsn = self.inner.journal.append_entry(Kind::Metadata, LogId::default(), bytes)?;
        self.inner.journal.metrics.metadata_entries.add(1);
        Ok(lsn)
    }

    /// Appends bytes of the owner and markers that end transactions, all in one frame: after a
    /// crash either all of it is there or nothing. A log without an open transaction of the
    /// producer gets no marker, nor does one that is deleted.
    ///
    /// # Errors
    /// As [`Storage::append_metadata`]; nothing is appended then.
    pub fn append_together(
        &self,
        metadata: &[Vec<u8>],
        markers: &[LogMarker],
        leader_epoch: i32,
    ) -> Result<Lsn, AppendError> {
        self.inner.journal.append_together(metadata, markers, leader_epoch)
    }

    /// How far the journal is durable.
    pub fn durable(&self) -> Lsn {
        Lsn(self.inner.journal.durable.position())
    }

    /// Makes everything durable that was appended before the call.
    pub fn end(&self) -> Lsn {
        self.inner.journal.end()
    }

    /// Resolves when `lsn` is durable.
    ///
    /// # Errors
    /// [`Error::Poisoned`] or [`Error::Closed`], when it can no longer become durable.
    pub fn wait_durable(&self, lsn: Lsn) -> WaitDurable {
        self.inner.journal.durable.wait(lsn)
    }

    /// Resolves when the journal has stopped, after a failed write or flush or by being closed. The
    /// process should then end.
    pub fn stopped(&self) -> WaitFailure {
        self.inner.journal.durable.wait_failure()
    }

    /// The failure that stopped the journal, if there was one.
    pub fn failure(&self) -> Option<Error> {
        self.inner.journal.durable.failure()
    }

    /// For how long the flush has lasted that is under way, if one is: a disk that does not answer
    /// lets appends wait.
    pub fn flushing_for(&self) -> Option<Duration> {
        self.inner.journal.flushing_for()
    }

    /// Counts bytes against `Options::unflushed_bytes_max` until the admission is dropped; `None`
    /// if the limit is reached.
    pub fn admit(&self, bytes: usize) -> Option<Admission> {
        self.inner.admissions.admit(bytes)
    }

    /// As [`Storage::admit`], but waits for its turn.
    pub fn admit_wait(&self, bytes: usize) -> Admit {
        self.inner.admissions.wait(bytes)
    }

    /// Woken each time the journal enters another file, when a checkpoint is worth its while:
    /// recovery reads what was written since the last one.
    pub fn checkpoint_due(&self) -> &Arc<Waiter> {
        &self.inner.journal.file_begun
    }

    /// Whether the journal has grown since the last checkpoint by enough for another, or has files
    /// that one would free, or two: the last but one keeps those that it needs.
    pub fn is_checkpoint_due(&self) -> bool {
        let last = self.inner.checkpointed.lock().position;
        let journal = &self.inner.journal;
        let grown = journal.durable.position().saturating_sub(last);
        if grown >= journal.options.file_bytes {
            return true;
        }
        let live = self.inner.live_from();
        let files = journal.files.all();
        files.split_last().is_some_and(|(_, full)| full.iter().any(|file| file.end() <= live))
    }

    /// Writes a checkpoint, retires the journal files that neither it nor the one before needs, and
    /// returns how many. `snapshot` must write the whole of the owner's metadata. Waits for the
    /// disk.
    ///
    /// # Errors
    /// What `snapshot` returns; [`Error::DiskFull`], [`Error::Poisoned`], [`Error::Io`].
    pub fn checkpoint(
        &self,
        snapshot: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let journal = &self.inner.journal;
        let retired = journal.supervised("a checkpoint", || self.inner.checkpoint(snapshot))?;
        journal.upkeep.want();
        Ok(retired)
    }

    /// Does one piece of what is done in the background: sorts a file of the journal, merges
    /// segments or removes dead ones. Says whether there was anything to do. For
    /// [`Drive::Stepped`].
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`], [`Error::DiskFull`], [`Error::Poisoned`].
    pub fn step_upkeep(&self) -> Result<bool, Error> {
        upkeep::step(&self.inner.journal, &self.inner.topics)
    }

    /// Cleans those of `logs` that are due: of each key only the last record stays. Waits for the
    /// disk, and for sorting and merging that is under way.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if a batch cannot be read, whose log is then left out of later calls;
    /// [`Error::DiskFull`], [`Error::Io`], [`Error::Poisoned`]. Nothing was cleaned then.
    pub fn compact(
        &self,
        logs: &[(Arc<Log>, Compaction)],
        now_ms: i64,
    ) -> Result<Compacted, Error> {
        let (journal, topics) = (&self.inner.journal, &self.inner.topics);
        journal.supervised("a compaction", || {
            fault_point("compaction");
            upkeep::compact(journal, topics, logs, now_ms).map_err(disk_full)
        })
    }

    /// Reads everything back that is sorted or durable in the journal, and returns how many damaged
    /// blocks and frames were found; each is logged with the offsets in it. The threads do this
    /// once a day at `Options::scrub_rate`, so does this.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be read, [`Error::Closed`].
    pub fn scrub(&self) -> Result<usize, Error> {
        let (journal, topics) = (&self.inner.journal, &self.inner.topics);
        journal.confined("scrubbing", || scrub::pass(journal, topics))
    }

    /// Does one step of what the threads do: loads a chunk, flushes a frame, prepares the next
    /// file. Says whether there was anything to do. For [`Drive::Stepped`].
    pub fn step(&self) -> bool {
        let journal = &self.inner.journal;
        let has_loaded = journal.cache.load_one();
        let has_flushed = journal.flush_one();
        has_loaded || has_flushed
    }

    /// As [`Storage::step`], for the preparation of the next file.
    pub fn step_preparation(&self) -> bool {
        self.inner.journal.prepare_one()
    }

    /// Takes no further append, flushes what was appended and ends the threads.
    ///
    /// # Errors
    /// [`Error::Poisoned`] if something could not be flushed.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.close();
        match self.inner.journal.poisoned() {
            Some(cause) => Err(Error::Poisoned { cause }),
            None => Ok(()),
        }
    }
}

impl Inner {
    fn start_threads(&self) -> Result<(), Error> {
        type Loop = fn(&Journal, &Topics);
        let mut loops: Vec<(&str, Loop)> = vec![
            ("moldau-journal", |journal, _| journal.run_flushes()),
            ("moldau-files", |journal, _| journal.run_preparations()),
            ("moldau-upkeep", upkeep::run),
            ("moldau-scrub", scrub::run),
        ];
        for _ in 0..READER_THREADS {
            loops.push(("moldau-reader", |journal, _| journal.cache.run_loads()));
        }
        let mut threads = self.threads.lock();
        for (name, run) in loops {
            let (journal, topics) = (Arc::clone(&self.journal), Arc::clone(&self.topics));
            let thread = thread::Builder::new().name(name.to_owned());
            let supervised = move || {
                let run = || {
                    run(&journal, &topics);
                    Ok(())
                };
                // The journal has its cause, which ends the process.
                journal.supervised(&format!("the thread {name}"), run).ok();
            };
            let thread = thread.spawn(supervised).map_err(|error| {
                Error::io("start a thread for", self.journal.files.dir(), error)
            })?;
            threads.push(thread);
        }
        Ok(())
    }

    fn checkpoint(
        &self,
        snapshot: impl FnOnce(&mut CheckpointWriter<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        fault_point("checkpoint");
        let mut checkpointed = self.checkpointed.lock();
        let (journal, cluster_id) = (&self.journal, self.info.cluster_id);
        let newest = &mut *checkpointed;
        let written = checkpoint::write(journal, newest, cluster_id, &self.topics, snapshot);
        let needed_from = written.map_err(disk_full)?;
        journal.metrics.checkpoints.add(1);
        // What was deleted since the checkpoint was taken is there again after a crash.
        let retired = journal.files.retire_to(needed_from)?;
        journal.metrics.files_retired.add(retired);
        Ok(retired)
    }

    /// Journal position before which there is no batch of a log.
    fn live_from(&self) -> u64 {
        // What is appended from here on lies behind the durable position.
        let mut live = self.journal.durable.position();
        for log in self.topics.all() {
            let first = log.with_state(|state| state.index.iter().next());
            live = first.map_or(live, |extent| live.min(extent.position));
        }
        live
    }

    fn close(&self) {
        self.journal.close();
        for thread in self.threads.lock().drain(..) {
            thread.join().expect("a panic of it was caught");
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

/// Whether the file system takes direct writes; without `fdatasync` the page cache is wanted
/// anyway.
fn probe_access(disk: &dyn Disk, dir: &Path, options: &Options) -> Result<Access, Error> {
    if options.durability == crate::Durability::Os {
        return Ok(Access::Buffered);
    }
    let path = dir.join(format!("probe.{TEMPORARY_SUFFIX}"));
    let mut block = SegmentPool::new(FILE_HEADER_BYTES, 0).take();
    block.as_mut().fill(0);
    let written = disk
        .open(&path, Access::Direct, true)
        .and_then(|file| write_all(&*file, &[block.as_slice()], 0, BLOCK));
    let access = match written {
        Ok(()) => Access::Direct,
        Err(error) if is_refusal(error.kind()) => Access::Buffered,
        Err(error) => return Err(Error::io("write", &path, error)),
    };
    match disk.remove(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", &path, error)),
        _ => Ok(access),
    }
}

/// Whether direct writes are refused, or cannot be tried since the disk is full: what is stored
/// must be served all the same, and buffered writes work everywhere.
fn is_refusal(kind: ErrorKind) -> bool {
    is_full(kind) || matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported)
}

/// Tells a full disk from a broken one: a full disk is worth another attempt.
fn disk_full(error: Error) -> Error {
    match error {
        Error::Io { source, .. } if is_full(source.kind()) => Error::DiskFull,
        error => error,
    }
}

fn is_full(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
}
