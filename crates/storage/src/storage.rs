//! The handle to a data directory.

use std::collections::HashMap;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use crate::admission::{Admission, Admissions, Admit};
use crate::cache::READER_THREADS;
use crate::disk::{Access, Disk, RealDisk, write_all};
use crate::durable::{Lsn, WaitDurable, WaitFailure};
use crate::files::{Files, FilesSetup, TEMPORARY_SUFFIX};
use crate::fill::Fill;
use crate::format::{FILE_HEADER_BYTES, Kind};
use crate::io::{BLOCK, SegmentPool};
use crate::journal::{Journal, Writer};
use crate::log::LogState;
use crate::meta;
use crate::metrics::{Metrics, MetricsSnapshot};
use crate::recovery::{self, Recovered, Replay};
use crate::snapshot::SnapshotWriter;
use crate::sync::lock;
use crate::{AppendError, Drive, Error, Log, LogId, Options, TopicId};

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
    topics: Topics,
    admissions: Arc<Admissions>,
    info: Info,
    /// Held during a reclaim, of which there is one at a time.
    reclaiming: Mutex<()>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Keeps other processes out until all else is gone.
    _lock: Box<dyn Send + Sync>,
}

type Shard = Mutex<HashMap<TopicId, HashMap<i32, Arc<Log>>>>;
type Topics = [Shard; TOPIC_SHARDS];

impl Storage {
    /// Opens a data directory, creates it if need be, and replays its journal.
    ///
    /// # Errors
    /// [`Error::Locked`], [`Error::UnknownVersion`], [`Error::WrongNode`], [`Error::Corrupt`],
    /// [`Error::Replay`], [`Error::Option`], [`Error::DiskFull`], [`Error::Io`].
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
        let journal_dir = data_dir.join("journal");
        let created = disk.create_dir(&journal_dir).and_then(|()| disk.sync_dir(data_dir));
        created.map_err(|error| Error::io("create", &journal_dir, error))?;
        let lock_path = data_dir.join("lock");
        let lock = disk.lock(&lock_path).map_err(|error| Error::io("lock", &lock_path, error))?;
        let lock = lock.ok_or_else(|| Error::Locked { path: data_dir.clone() })?;
        let cluster_id = meta::open_identity(&*disk, data_dir, options.node_id)?;
        let anchor = meta::read_anchor(&*disk, &journal_dir)?;
        let access = probe_access(&*disk, &journal_dir, &options)?;
        let setup = FilesSetup {
            access,
            node_id: options.node_id,
            cluster_id,
            file_bytes: options.file_bytes,
            frame_bytes_max: u32::try_from(options.frame_limit()).unwrap_or(u32::MAX),
            reserve_bytes: options.reserve_bytes,
            dir: journal_dir,
        };
        let files = Arc::new(Files::new(disk, setup));
        recovery::list_files(&files, cluster_id, anchor)?;
        let recovered = recovery::recover(&files, anchor, replay)?;
        sync_files(&files)?;
        let info = Info {
            access,
            cluster_id,
            recovered_frames: recovered.frames,
            end: Lsn(recovered.next),
        };
        Storage::start(options, files, recovered, info, lock)
    }

    fn start(
        options: Options,
        files: Arc<Files>,
        recovered: Recovered,
        info: Info,
        lock: Box<dyn Send + Sync>,
    ) -> Result<Storage, Error> {
        let segment_bytes = options.segment_bytes();
        let kept = options.tail_cache_bytes.saturating_add(options.unflushed_bytes_max);
        let pool = SegmentPool::new(segment_bytes, kept / segment_bytes + 1);
        let Recovered { next, file_end, last, sequence, .. } = recovered;
        let fill = Fill::new(next, file_end, pool, options.frame_target());
        let writer = Writer { last, sequence, flushed: last.sequence, file: None };
        let admissions = Admissions::new(options.unflushed_bytes_max);
        let drive = options.drive;
        let metrics = Arc::new(Metrics::default());
        let journal = Arc::new(Journal::new(options, files, fill, writer, metrics));
        let topics: Topics = std::array::from_fn(|_| Mutex::default());
        for (topic, logs) in recovered.logs {
            let opened = logs.into_iter().map(|(partition, state)| {
                let id = LogId { topic, partition };
                (partition, Log::new(id, Arc::clone(&journal), state))
            });
            self::lock(shard(&topics, topic)).insert(topic, opened.collect());
        }
        let storage = Storage {
            inner: Arc::new(Inner {
                journal,
                topics,
                admissions,
                info,
                reclaiming: Mutex::default(),
                threads: Mutex::default(),
                _lock: lock,
            }),
        };
        if drive == Drive::Threads {
            storage.inner.start_threads()?;
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

    /// The log of a partition, made in memory if there is none. It reaches the disk with its first
    /// batch.
    pub fn log(&self, topic: TopicId, partition: i32) -> Arc<Log> {
        let mut topics = lock(shard(&self.inner.topics, topic));
        let log = topics.entry(topic).or_default().entry(partition).or_insert_with(|| {
            let id = LogId { topic, partition };
            Log::new(id, Arc::clone(&self.inner.journal), LogState::default())
        });
        Arc::clone(log)
    }

    /// The topics that have logs. After a crash there may be some that the owner's metadata does
    /// not know any more, which the owner then deletes.
    pub fn topics(&self) -> Vec<TopicId> {
        let of_shard = |shard: &Shard| -> Vec<TopicId> { lock(shard).keys().copied().collect() };
        self.inner.topics.iter().flat_map(of_shard).collect()
    }

    /// All logs.
    pub fn logs(&self) -> Vec<Arc<Log>> {
        let of_shard = |shard: &Shard| -> Vec<Arc<Log>> {
            let topics = lock(shard);
            topics.values().flat_map(HashMap::values).cloned().collect()
        };
        self.inner.topics.iter().flat_map(of_shard).collect()
    }

    /// Deletes a topic: its logs take no further append and serve no read.
    ///
    /// # Errors
    /// [`AppendError::DiskFull`], [`AppendError::Poisoned`], [`AppendError::Closed`]; the logs are
    /// gone from memory all the same.
    pub fn delete_topic(&self, topic: TopicId) -> Result<Lsn, AppendError> {
        let logs = lock(shard(&self.inner.topics, topic)).remove(&topic).unwrap_or_default();
        // Each log is marked before the entry is appended, so that no state of it follows the
        // entry.
        logs.values().for_each(|log| log.mark_deleted());
        let id = LogId { topic, partition: 0 };
        self.inner.journal.append_entry(Kind::DeleteTopic, id, &[])
    }

    /// Appends bytes of the owner, which [`Replay::metadata`] gets back.
    ///
    /// # Errors
    /// [`AppendError::TooLarge`], [`AppendError::DiskFull`], [`AppendError::Poisoned`],
    /// [`AppendError::Closed`].
    pub fn append_metadata(&self, bytes: &[u8]) -> Result<Lsn, AppendError> {
        let lsn = self.inner.journal.append_entry(Kind::Metadata, LogId::default(), bytes)?;
        self.inner.journal.metrics.metadata_entries.add(1);
        Ok(lsn)
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

    /// Counts bytes against `Options::unflushed_bytes_max` until the admission is dropped; `None`
    /// if the limit is reached.
    pub fn admit(&self, bytes: usize) -> Option<Admission> {
        self.inner.admissions.admit(bytes)
    }

    /// As [`Storage::admit`], but waits for its turn.
    pub fn admit_wait(&self, bytes: usize) -> Admit {
        self.inner.admissions.wait(bytes)
    }

    /// Retires the journal files that hold no live batch, if there are any, and returns how many.
    /// `snapshot` must write the whole of the owner's metadata. Waits for the disk.
    ///
    /// # Errors
    /// What `snapshot` returns; [`Error::DiskFull`], [`Error::Poisoned`], [`Error::Io`].
    pub fn reclaim(
        &self,
        snapshot: impl FnOnce(&mut SnapshotWriter<'_>) -> Result<(), Error>,
    ) -> Result<usize, Error> {
        let _one_at_a_time = lock(&self.inner.reclaiming);
        let journal = &self.inner.journal;
        // What is appended from here on lies behind the durable position.
        let mut live = journal.durable.position();
        for log in self.logs() {
            let first = log.with_state(|state| state.index.iter().next());
            live = first.map_or(live, |extent| live.min(extent.position));
        }
        let ends = journal.files.all().iter().map(|file| file.end()).collect::<Vec<_>>();
        let dead = ends.iter().filter(|end| **end <= live).count();
        let Some(start) = dead.checked_sub(1).and_then(|last| ends.get(last)) else {
            return Ok(0);
        };
        let mut writer = SnapshotWriter::new(journal);
        snapshot(&mut writer)?;
        writer.finish(&self.logs(), *start)?;
        Ok(dead)
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
        type Loop = fn(&Journal);
        let mut loops: Vec<(&str, Loop)> = vec![
            ("moldau-journal", Journal::run_flushes),
            ("moldau-files", Journal::run_preparations),
        ];
        for _ in 0..READER_THREADS {
            loops.push(("moldau-reader", |journal| journal.cache.run_loads()));
        }
        let mut threads = lock(&self.threads);
        for (name, run) in loops {
            let journal = Arc::clone(&self.journal);
            let thread = thread::Builder::new().name(name.to_owned());
            let thread = thread.spawn(move || run(&journal)).map_err(|error| {
                Error::io("start a thread for", self.journal.files.dir(), error)
            })?;
            threads.push(thread);
        }
        Ok(())
    }

    fn close(&self) {
        self.journal.close();
        for thread in lock(&self.threads).drain(..) {
            if thread.join().is_err() {
                tracing::error!("a storage thread panicked");
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.close();
    }
}

fn shard(topics: &Topics, topic: TopicId) -> &Shard {
    let TopicId([.., last]) = topic;
    let [first, ..] = topics;
    topics.get(usize::from(last) % TOPIC_SHARDS).unwrap_or(first)
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
    let full = matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    full || matches!(kind, ErrorKind::InvalidInput | ErrorKind::Unsupported)
}

/// What recovery read may be in the page cache only, written by a process that did not flush.
fn sync_files(files: &Files) -> Result<(), Error> {
    for file in files.all() {
        let synced = files.handle(&file)?.sync_data();
        synced.map_err(|error| Error::io("flush", &file.path, error))?;
    }
    Ok(())
}

/// Logs are found by many threads; topic ids are random, so any of their bytes spreads them.
const TOPIC_SHARDS: usize = 16;
