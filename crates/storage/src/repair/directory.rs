//! What lies in a data directory: its identity, its journal files, its segments, whatever state
//! they are in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::report::Damage;
use crate::disk::{Access, Disk};
use crate::files::{Files, FilesSetup, JOURNAL_SUFFIX, JournalFile, file_name};
use crate::format::{
    FILE_HEADER_BYTES, FORMAT_VERSION, FileHeader, FileHeaderRead, FrameHeader, POSITION_MAX,
};
use crate::io::BLOCK;
use crate::segment::{SEGMENT_SUFFIX, Segment};
use crate::window::Window;
use crate::{Error, meta, segment};

/// A data directory in exclusive use.
pub(super) struct Directory {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) path: PathBuf,
    pub(super) node_id: i32,
    pub(super) cluster_id: [u8; 16],
    /// `moldau.meta` must be written anew.
    pub(super) has_lost_identity: bool,
    pub(super) damage: Vec<Damage>,
    _lock: Box<dyn Send + Sync>,
}

/// The journal files that can be read.
pub(super) struct JournalFiles {
    pub(super) files: Files,
    /// Where the files that are shorter than they were ended, by their bases.
    pub(super) cut: BTreeMap<u64, u64>,
    /// Journal position behind all of them, and a number above all of theirs.
    pub(super) end: u64,
    pub(super) next_number: u64,
}

impl Directory {
    /// Locks a directory and finds out whose it is.
    pub(super) fn open(disk: Arc<dyn Disk>, path: &Path) -> Result<Directory, Error> {
        let names = match disk.list(path) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io("list", path, error)),
        };
        let mut directory = Directory {
            path: path.to_owned(),
            node_id: 0,
            cluster_id: [0; 16],
            has_lost_identity: false,
            damage: Vec::new(),
            _lock: Box::new(()),
            disk,
        };
        let is_known = names.iter().any(|name| name == meta::META_NAME)
            || directory.numbered("journal", JOURNAL_SUFFIX)?.next().is_some();
        if !is_known {
            return Err(Error::NotADataDirectory { path: path.to_owned() });
        }
        let lock_path = path.join("lock");
        let failed = |error| Error::io("lock", &lock_path, error);
        let lock = directory.disk.lock(&lock_path).map_err(failed)?;
        directory._lock = lock.ok_or_else(|| Error::Locked { path: path.to_owned() })?;
        directory.identify()?;
        Ok(directory)
    }

    fn identify(&mut self) -> Result<(), Error> {
        let damage = match meta::read_identity(&*self.disk, &self.path) {
            Ok(Some((node_id, cluster_id))) => {
                (self.node_id, self.cluster_id) = (node_id, cluster_id);
                return Ok(());
            }
            Ok(None) => Error::corrupt(&self.path.join(meta::META_NAME), 0, "the file is missing"),
            Err(error) => error,
        };
        let Error::Corrupt { path, offset, reason } = damage.clone() else { return Err(damage) };
        // Every journal file names the directory that it belongs to; most of them decide.
        let mut votes: BTreeMap<(i32, [u8; 16]), usize> = BTreeMap::new();
        for (_, file) in self.numbered("journal", JOURNAL_SUFFIX)? {
            if let (FileHeaderRead::Known(header), _) = self.file_header(&file)? {
                *votes.entry((header.node_id, header.cluster_id)).or_default() += 1;
            }
        }
        let found = votes.into_iter().max_by_key(|(_, votes)| *votes);
        let ((node_id, cluster_id), _) = found.ok_or(damage)?;
        (self.node_id, self.cluster_id, self.has_lost_identity) = (node_id, cluster_id, true);
        self.damage.push(Damage { path, offset, reason, lost: Vec::new() });
        Ok(())
    }

    /// The files of a subdirectory whose names are a number and this suffix.
    pub(super) fn numbered(
        &self,
        dir: &str,
        suffix: &str,
    ) -> Result<impl Iterator<Item = (u64, PathBuf)> + use<>, Error> {
        let dir = self.path.join(dir);
        let names = match self.disk.list(&dir) {
            Ok(names) => names,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(Error::io("list", &dir, error)),
        };
        let mut found = BTreeMap::new();
        for name in names {
            let number = name.strip_suffix(suffix).and_then(|stem| stem.strip_suffix('.'));
            if let Some(number) = number.and_then(|stem| stem.parse::<u64>().ok()) {
                found.insert(number, dir.join(&name));
            }
        }
        Ok(found.into_iter())
    }

    fn file_header(&self, path: &Path) -> Result<(FileHeaderRead, u64), Error> {
        let failed = |error| Error::io("open", path, error);
        let file = self.disk.open(path, Access::Buffered, false).map_err(failed)?;
        let length = file.length().map_err(failed)?;
        let mut window = Window::new(BLOCK);
        let bytes = window.get(&*file, path, 0, FILE_HEADER_BYTES, length)?;
        Ok((FileHeader::decode(bytes.unwrap_or_default()), length))
    }

    /// Lists the journal files.
    pub(super) fn journal_files(&mut self) -> Result<JournalFiles, Error> {
        let setup = FilesSetup {
            dir: self.path.join("journal"),
            access: Access::Buffered,
            node_id: self.node_id,
            cluster_id: self.cluster_id,
            file_bytes: READ_AT_ONCE,
            frame_bytes_max: u32::MAX,
            reserve_bytes: 0,
        };
        let files = Files::new(Arc::clone(&self.disk), setup);
        let (mut found, mut cut) = (Vec::new(), BTreeMap::new());
        let (mut end, mut next_number) = (0, 1);
        for (number, path) in self.numbered("journal", JOURNAL_SUFFIX)? {
            next_number = next_number.max(number.saturating_add(1));
            let Some((header, length)) = self.journal_file(number, &path)? else { continue };
            let claimed = header.base.saturating_add(header.file_bytes.max(length));
            end = end.max(claimed);
            if length < header.file_bytes {
                cut.insert(header.base, claimed);
            }
            let is_named = header.number == number;
            // What lies behind the last byte reads as zeros.
            let file_bytes = length.next_multiple_of(BLOCK as u64);
            let header = FileHeader { file_bytes, ..header };
            found.push((is_named, claimed, JournalFile::existing(&header, path)));
        }
        // Of two files of one place the one that has its own name counts.
        found.sort_by_key(|(is_named, _, file)| (file.base, !is_named));
        let mut expected = None;
        for (_, claimed, file) in found {
            let reason = match expected {
                Some(end) if end > file.base => {
                    self.damaged(&file.path, 0, "the file overlaps with another");
                    continue;
                }
                Some(end) if end < file.base => "the file before it is missing",
                _ => "",
            };
            if !reason.is_empty() {
                self.damaged(&file.path, 0, reason);
            }
            expected = Some(claimed);
            files.add(file);
        }
        Ok(JournalFiles { files, cut, end, next_number })
    }

    /// The header of a journal file and the file's length. A header that is damaged is put together
    /// from the frames; without any there is nothing in the file.
    fn journal_file(
        &mut self,
        number: u64,
        path: &Path,
    ) -> Result<Option<(FileHeader, u64)>, Error> {
        let (read, length) = self.file_header(path)?;
        match read {
            FileHeaderRead::OtherVersion(found) => {
                let (path, known) = (path.to_owned(), FORMAT_VERSION);
                Err(Error::UnknownVersion { path, found, known })
            }
            FileHeaderRead::Known(header) if header.cluster_id != self.cluster_id => {
                self.damaged(path, 0, "the file belongs to another data directory");
                Ok(None)
            }
            FileHeaderRead::Known(header) if is_place(header.base) => {
                if header.number != number || path.file_name() != Some(file_name(number).as_ref()) {
                    self.damaged(path, 0, "the file has another's name");
                }
                if header.file_bytes != length {
                    self.damaged(path, length, "the file is not as long as its header says");
                }
                Ok(Some((header, length)))
            }
            FileHeaderRead::Known(_) | FileHeaderRead::Damaged => {
                self.damaged(path, 0, "the header of the file does not hold");
                let base = self.base_by_frames(path, length)?;
                let (node_id, cluster_id) = (self.node_id, self.cluster_id);
                let header = |base| FileHeader {
                    node_id,
                    cluster_id,
                    number,
                    base,
                    file_bytes: length,
                    frame_bytes_max: u32::MAX,
                };
                Ok(base.map(|base| (header(base), length)))
            }
        }
    }

    /// Where a file begins in the journal, by its first frame.
    fn base_by_frames(&self, path: &Path, length: u64) -> Result<Option<u64>, Error> {
        let file = self.disk.open(path, Access::Buffered, false);
        let file = file.map_err(|error| Error::io("open", path, error))?;
        let mut window = Window::new(1 << 20);
        let mut offset = FILE_HEADER_BYTES as u64;
        while let Some(bytes) = window.get(&*file, path, offset, BLOCK, length)? {
            if let Some((header, _)) = FrameHeader::decode(bytes)
                && let Some(base) = header.position.checked_sub(offset).filter(|it| is_place(*it))
            {
                return Ok(Some(base));
            }
            offset += BLOCK as u64;
        }
        Ok(None)
    }

    /// Opens the segments that `counts` says count, by the numbers in their headers.
    pub(super) fn segments(
        &mut self,
        counts: impl Fn(u64) -> bool,
    ) -> Result<(BTreeMap<u64, Segment>, BTreeSet<u64>), Error> {
        let mut found = BTreeMap::new();
        let mut misnamed = BTreeSet::new();
        for (number, path) in self.numbered("segments", SEGMENT_SUFFIX)? {
            let opened =
                Segment::open(&*self.disk, path.clone(), Access::Buffered, self.cluster_id);
            let segment = match opened {
                Ok(segment) => segment,
                Err(Error::Corrupt { offset, reason, .. }) => {
                    if counts(number) {
                        self.damaged(&path, offset, &reason);
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            if !counts(segment.number) {
                continue;
            }
            let is_named = path.file_name() == Some(segment::file_name(segment.number).as_ref());
            if !is_named {
                self.damaged(&path, 0, "the segment has another's name");
                misnamed.insert(segment.number);
            }
            // Of two files of one segment the one that has its own name counts.
            if is_named || !found.contains_key(&segment.number) {
                if is_named {
                    misnamed.remove(&segment.number);
                }
                found.insert(segment.number, segment);
            }
        }
        Ok((found, misnamed))
    }

    /// A number above those of all segments, whatever state they are in.
    pub(super) fn next_segment(&self) -> Result<u64, Error> {
        let numbers = self.numbered("segments", SEGMENT_SUFFIX)?.map(|(number, _)| number);
        Ok(numbers.filter(|number| *number < segment::NUMBER_MAX).max().map_or(1, |last| last + 1))
    }

    pub(super) fn damaged(&mut self, path: &Path, offset: u64, reason: &str) {
        let (path, reason) = (path.to_owned(), reason.to_owned());
        self.damage.push(Damage { path, offset, reason, lost: Vec::new() });
    }
}

fn is_place(base: u64) -> bool {
    base < POSITION_MAX / 2 && base.is_multiple_of(BLOCK as u64)
}

/// Large enough that the disk gives its sequential rate.
const READ_AT_ONCE: u64 = 2 << 20;
