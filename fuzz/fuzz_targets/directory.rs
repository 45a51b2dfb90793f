//! A data directory in memory that a fuzz target damages: right checksums are put over the damage,
//! so that the readers behind them are reached.

#![allow(dead_code, reason = "each target mends one kind of file")]

use std::collections::BTreeMap;
use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use moldau_records::{
    AppendRules, BatchBuilder, BatchOptions, Compression, Compressor, Producer, Validator, crc32c,
    iter_batches,
};
use moldau_storage::{
    Access, AppendError, Appended, Compaction, Disk, DiskFile, Drive, Error, Log, LogId, Options,
    ReadOutcome, Replay, Storage, TopicId,
};

const BLOCK: usize = 4096;
const FILE_BYTES: u64 = 64 << 10;
/// Any allocation of this size is a length that was believed.
const FILE_BYTES_MAX: usize = 1 << 24;
const TOPIC: TopicId = TopicId([7; 16]);

type Files = BTreeMap<PathBuf, Arc<File>>;

/// A disk that loses nothing.
#[derive(Default)]
struct Memory(Mutex<Files>);

#[derive(Default)]
struct File(Mutex<Vec<u8>>);

impl Memory {
    fn files(&self) -> std::sync::MutexGuard<'_, Files> {
        self.0.lock().expect("no holder panics")
    }
}

impl Disk for Memory {
    fn create_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let files = self.files();
        let inside = files.keys().filter(|file| file.parent() == Some(path));
        Ok(inside.filter_map(|file| Some(file.file_name()?.to_str()?.to_owned())).collect())
    }

    fn open(&self, path: &Path, _: Access, create: bool) -> io::Result<Arc<dyn DiskFile>> {
        let mut files = self.files();
        if create {
            files.entry(path.to_owned()).or_default();
        }
        match files.get(path) {
            Some(file) => Ok(Arc::<File>::clone(file)),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut files = self.files();
        let file = files.remove(from).ok_or(io::ErrorKind::NotFound)?;
        files.insert(to.to_owned(), file);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files().remove(path).map(drop).ok_or(io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        Ok(())
    }

    fn free_bytes(&self, _: &Path) -> io::Result<u64> {
        Ok(u64::MAX)
    }

    fn lock(&self, _: &Path) -> io::Result<Option<Box<dyn Send + Sync>>> {
        Ok(Some(Box::new(())))
    }
}

impl File {
    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().expect("no holder panics")
    }
}

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        assert!(buffer.len() < FILE_BYTES_MAX && offset % BLOCK as u64 == 0 || buffer.len() == 64);
        let bytes = self.bytes();
        let from = bytes.get(usize::try_from(offset).unwrap_or(usize::MAX)..).unwrap_or_default();
        let count = from.len().min(buffer.len());
        buffer[..count].copy_from_slice(&from[..count]);
        Ok(count)
    }

    fn write_at(&self, buffers: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        let from = usize::try_from(offset).expect("files are short");
        let mut bytes = self.bytes();
        let mut at = from;
        for part in buffers {
            let end = bytes.len().max(at + part.len());
            bytes.resize(end, 0);
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Ok(at - from)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn allocate(&self, bytes: u64) -> io::Result<()> {
        self.bytes().resize(usize::try_from(bytes).expect("files are short"), 0);
        Ok(())
    }

    fn shorten(&self, bytes: u64) -> io::Result<()> {
        self.bytes().truncate(usize::try_from(bytes).expect("files are short"));
        Ok(())
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }
}

struct Ignored;

impl Replay for Ignored {
    fn metadata(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

fn options() -> Options {
    Options {
        file_bytes: FILE_BYTES,
        tail_cache_bytes: 0,
        read_cache_bytes: 0,
        reserve_bytes: 0,
        unflushed_bytes_max: 64 << 10,
        sort_memory_bytes: 64 << 10,
        clean_memory_bytes: 4 << 10,
        drive: Drive::Stepped,
        ..Options::new("/data")
    }
}

fn open(disk: Memory) -> Result<Storage, Error> {
    Storage::open_on(Arc::new(disk), options(), &mut Ignored)
}

fn batch(key: usize, producer: Option<Producer>) -> Vec<u8> {
    let mut builder = BatchBuilder::new(BatchOptions { producer, ..BatchOptions::default() });
    let value = vec![b'v'; 40 * key];
    builder.append(1_000, Some(&[b'k', key as u8]), Some(&value), []).expect("short");
    builder.finish(Compression::None, &mut Compressor::default()).expect("short").to_vec()
}

const EVERYTHING: Compaction = Compaction {
    min_lag_ms: 0,
    max_lag_ms: i64::MAX,
    delete_retention_ms: 0,
    min_dirty_ratio: 0.0,
};

fn append(log: &Arc<Log>, batch: &[u8], leader_epoch: i32) -> Result<Appended, AppendError> {
    let mut validator = Validator::default();
    let batch = validator.check(batch, &AppendRules::LENIENT).expect("valid");
    log.append(&batch, leader_epoch)
}

/// The files of a sound directory: a segment of three logs, a checkpoint, and frames behind it.
fn sound() -> &'static BTreeMap<PathBuf, Vec<u8>> {
    static SOUND: OnceLock<BTreeMap<PathBuf, Vec<u8>>> = OnceLock::new();
    SOUND.get_or_init(|| {
        let disk = Arc::new(Memory::default());
        let storage = Storage::open_on(disk.clone(), options(), &mut Ignored).expect("sound");
        let fill = |from: usize| {
            for at in from..from + 12 {
                let log = storage.log(TOPIC, i32::try_from(at % 3).expect("below 3"));
                let base_sequence = i32::try_from(at / 3).expect("short");
                let producer = Producer { id: 5, epoch: 0, base_sequence };
                append(&log, &batch(at, Some(producer)), 3).expect("appended");
                storage.append_metadata(b"metadata").expect("appended");
                storage.step();
            }
        };
        fill(0);
        let logs = storage.logs().into_iter().map(|log| (log, EVERYTHING)).collect::<Vec<_>>();
        storage.compact(&logs, 5_000).expect("compacted");
        fill(12);
        storage.log(TOPIC, 1).delete_records(2).expect("deleted");
        let written = storage.checkpoint(|writer| {
            writer.metadata(b"all");
            Ok(())
        });
        written.expect("written");
        fill(24);
        storage.log(TOPIC, 2).delete_records(1).expect("deleted");
        storage.delete_topic(TopicId([8; 16])).expect("deleted");
        storage.step();
        drop(storage);
        let files = disk.files();
        files.iter().map(|(path, file)| (path.clone(), file.bytes().clone())).collect()
    })
}

/// Lays `data` over a file as (offset, length, bytes), mends its checksums with `mend`, and does
/// all that can be done with what is then found.
pub(crate) fn damage(path: &str, data: &[u8], mend: fn(&mut Vec<u8>)) {
    let disk = Memory::default();
    for (known, bytes) in sound() {
        let mut bytes = bytes.clone();
        if known == Path::new(path) {
            lay(&mut bytes, data);
            mend(&mut bytes);
        }
        disk.files().insert(known.clone(), Arc::new(File(Mutex::new(bytes))));
    }
    match open(disk) {
        Ok(storage) => use_all(&storage),
        Err(Error::Corrupt { .. } | Error::UnknownVersion { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

fn lay(bytes: &mut Vec<u8>, mut data: &[u8]) {
    while let Some(([block, low, high, count], rest)) = data.split_first_chunk() {
        let count = usize::from(count % 33).min(rest.len());
        let (patch, rest) = rest.split_at(count);
        let within = usize::from(u16::from_le_bytes([*low, *high])) % BLOCK;
        let at = usize::from(*block) % 64 * BLOCK + within;
        if let Some(target) = bytes.get_mut(at..at + count) {
            target.copy_from_slice(patch);
        } else if count == 1 {
            bytes.truncate(at);
        }
        data = rest;
    }
}

fn use_all(storage: &Storage) {
    let logs = storage.logs();
    for log in &logs {
        let LogId { topic, partition } = log.id();
        assert!(storage.topics().contains(&topic), "partition {partition}");
        let mut from = log.start_offset();
        while from < log.high_watermark() {
            let Ok(read) = log.read(from, 5_000, true).and_then(ReadOutcome::wait) else {
                break;
            };
            let batches = read.batches.concat();
            assert!(iter_batches(&batches).flatten().all(|batch| batch.check_crc().is_ok()));
            assert!(read.next_offset > from, "a read gets on");
            from = read.next_offset;
        }
        assert!(log.bytes() < FILE_BYTES_MAX as u64);
        log.apply_retention(5_000, Some(4_500), Some(100)).ok();
        append(&log, &batch(1, None), 9).ok();
    }
    storage.step();
    let compacted: Vec<_> = logs.into_iter().map(|log| (log, EVERYTHING)).collect();
    storage.compact(&compacted, 5_000).ok();
    while let Ok(true) = storage.step_upkeep() {}
    storage.checkpoint(|_| Ok(())).ok();
}

fn seal(header: &mut [u8]) {
    if let Some((header, _)) = header.split_first_chunk_mut::<64>() {
        let crc = crc32c(&header[..60]);
        header[60..].copy_from_slice(&crc.to_le_bytes());
    }
}

fn number(bytes: &[u8], at: usize) -> usize {
    let field = bytes.get(at..at + 4).and_then(|field| field.first_chunk().copied());
    u32::from_le_bytes(field.unwrap_or_default()) as usize
}

/// Puts right checksums over header and pages from `from` on.
pub(crate) fn mend_paged(bytes: &mut Vec<u8>, from: usize) {
    seal(bytes);
    for page in (from..bytes.len()).step_by(BLOCK) {
        let end = number(bytes, page).saturating_add(page + 16);
        let Some(checked) = bytes.get(page + 8..end) else { continue };
        if checked.starts_with(&(page as u64).to_le_bytes()) {
            let crc = crc32c(checked).to_le_bytes();
            bytes[page + 4..page + 8].copy_from_slice(&crc);
        }
    }
}

/// Puts right checksums over file header, frames and entries, and links the frames.
pub(crate) fn mend_journal(bytes: &mut Vec<u8>) {
    seal(bytes);
    let mut previous = [0; 4];
    for frame in (BLOCK..bytes.len()).step_by(BLOCK) {
        if !bytes[frame..].starts_with(b"MOLDAUFR") {
            continue;
        }
        let mut headers = Vec::new();
        let mut at = frame + 64;
        for _ in 0..number(bytes, frame + 52) {
            let end = number(bytes, at + 4).saturating_add(at + 48);
            let Some(payload) = bytes.get(at + 48..end) else { break };
            if bytes[at] == 1 {
                mend_batch(&mut bytes[at + 32..end]);
            } else {
                let crc = crc32c(payload).to_le_bytes();
                bytes[at + 28..at + 32].copy_from_slice(&crc);
            }
            headers.extend_from_slice(&bytes[at..at + 48]);
            at = end;
        }
        bytes[frame + 48..frame + 52].copy_from_slice(&previous);
        let crc = crc32c(&headers).to_le_bytes();
        bytes[frame + 56..frame + 60].copy_from_slice(&crc);
        seal(&mut bytes[frame..]);
        previous.copy_from_slice(&bytes[frame + 60..frame + 64]);
    }
}

/// The first 16 bytes of a batch as the entry header has them, then the batch.
fn mend_batch(bytes: &mut [u8]) {
    let (prefix, batch) = bytes.split_at_mut(16);
    if batch.len() > 21 {
        batch[..16].copy_from_slice(prefix);
        let crc = crc32c(&batch[21..]).to_be_bytes();
        batch[17..21].copy_from_slice(&crc);
    }
}
