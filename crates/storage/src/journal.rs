//! The journal: what appends fill, what the journal thread flushes, what readers look into.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use moldau_threads::{Condvar, Mutex, MutexGuard, catch, fault_point};

use crate::cache::ReadCache;
use crate::disk::{DiskFile, write_all};
use crate::durable::{Durable, Lsn};
use crate::files::{Files, JournalFile, SpaceFor};
use crate::fill::{Fill, SealedFrame, Unready, Wanted};
use crate::format::{EntryHeader, FrameLink, Kind};
use crate::io::BLOCK;
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::segments::Segments;
use crate::signal::Signal;
use crate::tail::Tail;
use crate::workshop::Workshop;
use crate::{AppendError, Drive, Durability, Error, LogId, Options, TopicId, Waiter};

/// Shared by the storage handle, its threads and all logs.
pub(crate) struct Journal {
    pub(crate) options: Options,
    pub(crate) files: Arc<Files>,
    pub(crate) durable: Arc<Durable>,
    pub(crate) tail: Tail,
    pub(crate) cache: ReadCache,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) segments: Arc<Segments>,
    pub(crate) pace: Arc<Pace>,
    /// Wanted upkeep, see `upkeep`.
    pub(crate) upkeep: Signal,
    /// Ends the rests of `scrub`.
    pub(crate) scrub: Signal,
    /// Held while segments are written or removed, so that each is made from what counts.
    pub(crate) rewriting: Mutex<Workshop>,
    /// Held from when a topic is taken away until the entry that says so is appended. Topics whose
    /// entry was refused.
    pub(crate) deleting: Mutex<Vec<TopicId>>,
    /// Woken when the journal enters another file.
    pub(crate) file_begun: Arc<Waiter>,
    /// Journal position before which everything was sorted, or deleted, once.
    sorted_to: AtomicU64,
    fill: Mutex<Fill>,
    filled: Condvar,
    writer: Mutex<Writer>,
    preparation: Signal,
    /// Since when the journal thread has waited for the disk, if it does.
    flushing: Mutex<Option<Instant>>,
    /// Journal position of the newest frame, for the preparation of the next file.
    written: AtomicU64,
    /// Journal position up to which files are ready for use.
    prepared: AtomicU64,
}

/// What only the one who flushes touches.
pub(crate) struct Writer {
    /// The last frame that was written.
    pub(crate) last: FrameLink,
    /// Highest sequence number that a frame may not have, as it was used.
    pub(crate) sequence: u64,
    /// Highest sequence number known to be on disk.
    pub(crate) flushed: u64,
    pub(crate) file: Option<(Arc<JournalFile>, Arc<dyn DiskFile>)>,
}

/// A place between two frames.
pub(crate) struct Cut {
    /// Every frame before this position is written, none after it is.
    pub(crate) position: u64,
    /// The frame before it.
    pub(crate) last: FrameLink,
}

/// The header of an entry that is not a batch.
pub(crate) fn metadata_header(kind: Kind, log: LogId, payload: &[u8]) -> EntryHeader {
    EntryHeader {
        kind,
        payload_bytes: u32::try_from(payload.len()).unwrap_or(u32::MAX),
        log,
        payload_crc: moldau_records::crc32c(payload),
        batch_prefix: [0; 16],
    }
}

impl Journal {
    pub(crate) fn new(
        options: Options,
        files: Arc<Files>,
        segments: Arc<Segments>,
        fill: Fill,
        writer: Writer,
    ) -> Journal {
        let end = fill.end();
        let metrics = Arc::new(Metrics::default());
        let is_stepped = options.drive == Drive::Stepped;
        let pace = Pace::new(Arc::clone(&metrics), options.background_rate, is_stepped);
        let pace = Arc::new(pace);
        let sources = (Arc::clone(&files), Arc::clone(&segments));
        let cache = ReadCache::new(&options, sources, Arc::clone(&metrics), Arc::clone(&pace));
        Journal {
            pace,
            segments,
            durable: Durable::new(end),
            tail: Tail::new(&options, Arc::clone(fill.pool())),
            cache,
            metrics,
            files,
            fill: Mutex::new(fill),
            filled: Condvar::new(),
            writer: Mutex::held_across_io(writer),
            preparation: Signal::default(),
            flushing: Mutex::default(),
            upkeep: Signal::default(),
            scrub: Signal::default(),
            rewriting: Mutex::held_across_io(Workshop::default()),
            deleting: Mutex::held_across_io(Vec::new()),
            file_begun: Waiter::new(),
            sorted_to: AtomicU64::new(0),
            written: AtomicU64::new(end),
            prepared: AtomicU64::new(0),
            options,
        }
    }

    /// Reserves room for an entry with `payload` bytes and lets `push` add it. Returns what `push`
    /// returned and the position that makes the entry durable.
    pub(crate) fn append<T>(
        &self,
        payload: usize,
        space: SpaceFor,
        push: impl FnOnce(&mut Fill) -> T,
    ) -> Result<(T, Lsn), Unready<AppendError>> {
        let limit = self.options.entry_limit();
        if payload > limit {
            return Err(AppendError::TooLarge { bytes: payload, limit }.into());
        }
        let mut fill = self.fill().map_err(AppendError::Poisoned)?;
        fill.reserve(payload, space, &self.files)?;
        let pushed = push(&mut fill);
        let lsn = Lsn(fill.end());
        let wake = std::mem::take(&mut fill.idle);
        drop(fill);
        if wake {
            self.filled.notify_one();
        }
        Ok((pushed, lsn))
    }

    /// Runs `attempt`, which takes the locks that it needs, until it finds room in the journal: the
    /// disk is asked for it between two attempts, when those locks are released.
    pub(crate) fn with_room<T, E: From<AppendError>>(
        &self,
        mut attempt: impl FnMut() -> Result<T, Unready<E>>,
    ) -> Result<T, E> {
        loop {
            match attempt() {
                Ok(done) => return Ok(done),
                Err(Unready::Refused(error)) => return Err(error),
                Err(Unready::Wants(wanted)) => self.provide(wanted)?,
            }
        }
    }

    /// Asks the disk for what an append found missing. The files are prepared ahead, so that this
    /// comes up when the disk is full or slower than the appends.
    fn provide(&self, wanted: Wanted) -> Result<(), AppendError> {
        let provided = match wanted {
            Wanted::File { base, space } => self.files.starting_at(base, space).map(drop),
            Wanted::Space if self.files.has_space(SpaceFor::Data) => {
                self.fill.lock().leave_reserve();
                Ok(())
            }
            Wanted::Space => Err(Error::DiskFull),
        };
        provided.map_err(|error| match error {
            Error::DiskFull => {
                self.metrics.disk_full.add(1);
                AppendError::DiskFull
            }
            // Nothing was written of what is acknowledged.
            error if error.is_exhaustion() => AppendError::Exhausted,
            error => {
                let cause = Arc::from(error.to_string());
                self.poison(&cause);
                AppendError::Poisoned(cause)
            }
        })
    }

    /// Appends one entry that is not a batch. No lock is held but such as are for I/O.
    pub(crate) fn append_entry(
        &self,
        kind: Kind,
        log: LogId,
        payload: &[u8],
    ) -> Result<Lsn, AppendError> {
        self.with_room(|| self.try_append_entry(kind, log, payload))
    }

    /// The same under a lock.
    pub(crate) fn try_append_entry(
        &self,
        kind: Kind,
        log: LogId,
        payload: &[u8],
    ) -> Result<Lsn, Unready<AppendError>> {
        let header = metadata_header(kind, log, payload);
        self.append(payload.len(), SpaceFor::Metadata, |fill| {
            fill.push(&header, payload, &[]);
        })
        .map(|((), lsn)| lsn)
    }

    /// Appends the deletions that were refused when they were asked for.
    pub(crate) fn append_deletions(&self) -> Result<(), AppendError> {
        let mut refused = self.deleting.lock();
        while let Some(topic) = refused.last() {
            self.append_deletion(*topic)?;
            refused.pop();
        }
        Ok(())
    }

    pub(crate) fn append_deletion(&self, topic: TopicId) -> Result<Lsn, AppendError> {
        self.append_entry(Kind::DeleteTopic, LogId { topic, partition: 0 }, &[])
    }

    /// Position after everything that was appended.
    pub(crate) fn end(&self) -> Lsn {
        Lsn(self.fill.lock().end())
    }

    /// Writes and flushes one frame, if one waits, and publishes it.
    pub(crate) fn flush_one(&self) -> bool {
        let Ok(mut writer) = self.writer.lock_whole() else { return false };
        let Some(frame) = self.fill().ok().and_then(|mut fill| fill.take()) else { return false };
        let sequence = writer.sequence + 1;
        let frame = frame.seal(sequence, writer.last, writer.flushed);
        let started = Instant::now();
        let flush = self.pace.begin_flush();
        *self.flushing.lock() = Some(started);
        fault_point("journal");
        if let Err(error) = self.write(&mut writer, &frame) {
            drop(writer);
            self.poison(&Arc::from(error.to_string()));
            return false;
        }
        *self.flushing.lock() = None;
        writer.sequence = sequence;
        writer.last = frame.link;
        if self.options.durability == Durability::Fsync {
            writer.flushed = sequence;
        }
        self.pace.end_flush(&flush, frame.bytes);
        let nanos = started.elapsed().as_nanos();
        self.metrics.flush_nanos.add(usize::try_from(nanos).unwrap_or(usize::MAX));
        self.metrics.frames.add(1);
        self.metrics.frame_bytes.add(frame.bytes);
        self.publish(frame);
        true
    }

    fn write(&self, writer: &mut Writer, frame: &SealedFrame) -> Result<(), Error> {
        let current = writer.file.take().filter(|(file, _)| frame.position < file.end());
        let (file, handle) = match current {
            Some(current) => current,
            None => {
                let file = self.files.at(frame.position).ok_or(Error::Closed)?;
                file.begin_use();
                self.metrics.files_started.add(1);
                self.upkeep.want();
                self.file_begun.wake();
                let handle = self.files.handle(&file)?;
                (file, handle)
            }
        };
        let parts: Vec<&[u8]> = frame.parts.iter().map(AsRef::as_ref).collect();
        write_all(&*handle, &parts, frame.position - file.base, BLOCK)
            .map_err(|error| Error::io("write", &file.path, error))?;
        if self.options.durability == Durability::Fsync {
            handle.sync_data().map_err(|error| Error::io("flush", &file.path, error))?;
            self.metrics.flushes.add(1);
        }
        file.add_entries(frame.entries);
        writer.file = Some((file, handle));
        Ok(())
    }

    /// Lets readers see a frame, then those who wait for it.
    fn publish(&self, frame: SealedFrame) {
        let end = frame.position + frame.bytes as u64;
        self.tail.push(frame.position, frame.parts);
        for touched in &frame.touched {
            touched.log.advance_high_watermark(touched.end_offset);
        }
        self.durable.advance(end);
        for touched in &frame.touched {
            touched.log.waiters.wake();
        }
        self.written.store(end, Ordering::Release);
        self.want_preparation(frame.position);
    }

    fn want_preparation(&self, position: u64) {
        let Some(file) = self.files.at(position) else { return };
        let is_early = position - file.base < file.file_bytes / 4;
        if is_early || self.prepared.load(Ordering::Acquire) > file.end() {
            return;
        }
        self.preparation.want();
    }

    /// Stops everything: nothing more is written, everyone who waits gets the cause.
    pub(crate) fn poison(&self, cause: &Arc<str>) {
        tracing::error!(%cause, "the journal is stopped");
        self.fill.lock().poison(cause);
        self.durable.fail(Error::Poisoned { cause: Arc::clone(cause) });
        self.filled.notify_all();
    }

    /// Takes no further append, flushes what was appended, ends the threads' loops.
    pub(crate) fn close(&self) {
        self.fill.lock().close();
        self.filled.notify_all();
        self.preparation.stop();
        self.pace.stop();
        self.upkeep.stop();
        self.scrub.stop();
        self.cache.close();
        if self.options.drive == Drive::Stepped {
            while self.flush_one() {}
            self.durable.fail(Error::Closed);
        }
    }

    pub(crate) fn sorted_to(&self) -> u64 {
        self.sorted_to.load(Ordering::Acquire)
    }

    pub(crate) fn set_sorted_to(&self, position: u64) {
        self.sorted_to.store(position, Ordering::Release);
    }

    /// The place between what is written and what is not.
    ///
    /// # Errors
    /// [`Error::Poisoned`].
    pub(crate) fn cut(&self) -> Result<Cut, Error> {
        let writer = self.writer.lock_whole().map_err(|_| {
            let cause = self.poisoned().unwrap_or_else(|| "a panic ended a flush".into());
            Error::Poisoned { cause }
        })?;
        let fill = self.fill().map_err(|cause| Error::Poisoned { cause })?;
        Ok(Cut { position: fill.first_position(), last: writer.last })
    }

    /// What appends fill. If a panic has left it half changed the journal stops: a part of an entry
    /// must not be flushed.
    fn fill(&self) -> Result<MutexGuard<'_, Fill>, Arc<str>> {
        self.fill.lock_whole().map_err(|_| {
            let cause = Arc::from("a panic ended an append");
            self.poison(&cause);
            cause
        })
    }

    /// Runs what reads and changes nothing. A panic ends only this, unless it came under a lock.
    ///
    /// # Errors
    /// Those of `run`, [`Error::Defect`].
    pub(crate) fn confined<T>(
        &self,
        operation: &'static str,
        run: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        catch(run).unwrap_or_else(|panic| {
            if panic.has_left_half_changed() {
                let cause = Arc::from(format!("{operation} ended by a {panic}"));
                self.poison(&cause);
                return Err(Error::Poisoned { cause });
            }
            self.metrics.defects.add(1);
            Err(Error::Defect { operation, panic })
        })
    }

    /// Runs what changes more than one thing, after whose panic nothing may go on but by recovery.
    ///
    /// # Errors
    /// Those of `run`, [`Error::Poisoned`].
    pub(crate) fn supervised<T>(
        &self,
        operation: &str,
        run: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        catch(run).unwrap_or_else(|panic| {
            let cause = Arc::from(format!("{operation} ended by a {panic}"));
            self.poison(&cause);
            Err(Error::Poisoned { cause })
        })
    }

    /// The journal thread.
    pub(crate) fn run_flushes(&self) {
        loop {
            let Ok(mut fill) = self.fill() else { return };
            while fill.is_empty() {
                if fill.is_stopped() {
                    drop(fill);
                    self.durable.fail(Error::Closed);
                    return;
                }
                fill.idle = true;
                fill = self.filled.wait(fill);
            }
            fill.idle = false;
            drop(fill);
            if !self.options.commit_delay.is_zero() {
                thread::sleep(self.options.commit_delay);
            }
            self.flush_one();
        }
    }

    /// The thread that prepares the next file.
    pub(crate) fn run_preparations(&self) {
        while self.preparation.wait() {
            while self.prepare_one() {
                thread::sleep(ZERO_PAUSE);
                if self.preparation.is_stopped() {
                    return;
                }
            }
        }
    }

    /// Does one step towards a next file that is ready for use; says whether there is more to do.
    pub(crate) fn prepare_one(&self) -> bool {
        fault_point("files");
        let written = self.written.load(Ordering::Acquire);
        let Some(file) = written.checked_sub(1).and_then(|last| self.files.at(last)) else {
            return false;
        };
        if self.fill.lock().is_stopped() {
            return false;
        }
        let prepared = self.files.starting_at(file.end(), SpaceFor::Data).and_then(|next| {
            let more = self.files.zero_ahead(written - 1)?;
            Ok((more, next.end()))
        });
        match prepared {
            Ok((true, _)) => true,
            Ok((false, end)) => {
                self.prepared.store(end, Ordering::Release);
                false
            }
            // The append that needs the file finds out and is refused.
            Err(Error::DiskFull) => false,
            Err(error) if error.is_exhaustion() => {
                tracing::error!(%error, "the next journal file waits for descriptors or memory");
                if self.options.drive == Drive::Threads {
                    self.preparation.stops_within(EXHAUSTED_PAUSE);
                }
                false
            }
            Err(error) => {
                self.poison(&Arc::from(error.to_string()));
                false
            }
        }
    }

    /// For how long the journal thread has waited for the disk.
    pub(crate) fn flushing_for(&self) -> Option<Duration> {
        self.flushing.lock().map(|since| since.elapsed())
    }

    /// The failure that stopped the journal, if any.
    pub(crate) fn poisoned(&self) -> Option<Arc<str>> {
        self.fill.lock().poisoned()
    }
}

/// With 256 KiB at a time this bounds the writing of zeros to 128 MiB a second, a small part of
/// what a disk takes that is fast enough for it to matter.
const ZERO_PAUSE: Duration = Duration::from_millis(2);
/// Each flush asks for the preparation anew.
const EXHAUSTED_PAUSE: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recovery::Replay;
    use crate::{Storage, block_on};

    struct Nobody;

    impl Replay for Nobody {
        fn metadata(&mut self, _: &[u8]) -> Result<(), String> {
            Ok(())
        }
    }

    fn open(dir: &std::path::Path) -> Storage {
        Storage::open(Options { file_bytes: 64 << 10, ..Options::new(dir) }, &mut Nobody).unwrap()
    }

    /// Half of an entry was flushed with the next append, and recovery took the frame for damage.
    #[test]
    fn an_append_that_panics_reaches_no_frame() {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        let log = storage.log(TopicId([1; 16]), 0);
        let journal = Arc::clone(log.journal());
        let half = |fill: &mut Fill| {
            let header = EntryHeader {
                kind: Kind::Metadata,
                payload_bytes: 1000,
                log: LogId::default(),
                payload_crc: 0,
                batch_prefix: [0; 16],
            };
            fill.push(&header, &[1; 10], &[]);
            panic!("a defect");
        };
        assert!(catch(|| journal.append(1000, SpaceFor::Data, half)).is_err());
        let refused = storage.append_metadata(b"after it");
        assert!(matches!(refused, Err(AppendError::Poisoned(_))), "{refused:?}");
        assert!(matches!(block_on(storage.stopped()), Error::Poisoned { .. }));
        drop((storage, log, journal));
        assert_eq!(open(dir.path()).info().recovered_frames, 0);
    }

    #[test]
    fn a_panic_under_the_lock_of_a_log_stops_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let storage = open(dir.path());
        let log = storage.log(TopicId([1; 16]), 0);
        assert!(catch(|| log.with_state(|_| panic!("a defect"))).is_err());
        assert!(catch(|| log.end_offset()).is_err());
        assert!(matches!(block_on(storage.stopped()), Error::Poisoned { .. }));
        assert!(matches!(storage.append_metadata(b"x"), Err(AppendError::Poisoned(_))));
    }
}
