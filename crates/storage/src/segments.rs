//! The sorted segments of a data directory: which count, and their open descriptors.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use moldau_threads::Mutex;

use crate::disk::{Access, Disk, DiskFile, remove_gently};
use crate::pace::Pace;
use crate::paged::TEMPORARY_SUFFIX;
use crate::segment::{SEGMENT_SUFFIX, Segment, SegmentWriter, file_name};
use crate::{Error, Lsn};

/// The segments that count, by number.
pub(crate) struct Segments {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    access: Access,
    cluster_id: [u8; 16],
    /// Held from before a change is said in the journal until it is listed: a checkpoint waits for
    /// that, and readers, who may not wait for a journal file, do not.
    changing: Mutex<()>,
    listed: Mutex<Listed>,
}

#[derive(Default)]
struct Listed {
    by_number: BTreeMap<u64, Arc<Segment>>,
    /// Greater than every number that was ever used.
    next: u64,
    /// Off the list, with files that are still to be removed.
    given_up: Vec<Arc<Segment>>,
    /// Open descriptors by segment number, used last at the back.
    handles: VecDeque<(u64, Arc<dyn DiskFile>)>,
}

impl Segments {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        dir: PathBuf,
        access: Access,
        cluster_id: [u8; 16],
    ) -> Segments {
        let (changing, listed) = (Mutex::held_across_io(()), Mutex::default());
        Segments { disk, dir, access, cluster_id, changing, listed }
    }

    pub(crate) fn cluster_id(&self) -> [u8; 16] {
        self.cluster_id
    }

    /// Opens the segments that count, then removes all other files that a crash left behind.
    pub(crate) fn load(&self, numbers: &BTreeSet<u64>, next: u64) -> Result<(), Error> {
        for number in numbers {
            let path = self.dir.join(file_name(*number));
            let segment = Segment::open(&*self.disk, path, self.access, self.cluster_id);
            let segment = segment.map_err(|error| match error {
                Error::Io { path, source, .. } if source.kind() == ErrorKind::NotFound => {
                    Error::corrupt(&path, 0, "the segment is missing")
                }
                error => error,
            })?;
            if segment.number != *number {
                return Err(Error::corrupt(&segment.path, 0, "the segment has another's name"));
            }
            self.listed.lock().by_number.insert(*number, Arc::new(segment));
        }
        // Only then: what has another's name may be one that counts.
        let failed = |error| Error::io("list", &self.dir, error);
        for name in self.disk.list(&self.dir).map_err(failed)? {
            let (stem, suffix) = name.rsplit_once('.').unwrap_or((&name, ""));
            let is_stray = match suffix {
                TEMPORARY_SUFFIX => true,
                SEGMENT_SUFFIX => stem.parse().is_ok_and(|number| !numbers.contains(&number)),
                _ => false,
            };
            if is_stray {
                let path = self.dir.join(&name);
                removed(&path, self.disk.remove(&path))?;
            }
        }
        let last = numbers.last().map_or(0, |last| last + 1);
        self.listed.lock().next = next.max(last).max(1);
        Ok(())
    }

    /// Reads header and footer of a segment that is open once more.
    pub(crate) fn reopen(&self, segment: &Segment) -> Result<Segment, Error> {
        Segment::open(&*self.disk, segment.path.clone(), self.access, self.cluster_id)
    }

    /// Begins a segment under a number of its own.
    pub(crate) fn create<'a>(
        &'a self,
        pace: &'a Pace,
        level: u32,
    ) -> Result<SegmentWriter<'a>, Error> {
        let number = {
            let mut listed = self.listed.lock();
            listed.next += 1;
            listed.next - 1
        };
        let identity = (number, level, self.cluster_id);
        let name = file_name(number);
        SegmentWriter::create(&*self.disk, pace, (&self.dir, &name), self.access, identity)
    }

    /// Lists a segment, which `append` says in the journal. A checkpoint that asks for the numbers
    /// meanwhile waits: either it knows of the segment or it begins before the entry. The file goes
    /// if the entry is refused.
    pub(crate) fn add(
        &self,
        segment: Segment,
        append: impl FnOnce() -> Result<Lsn, Error>,
    ) -> Result<(Arc<Segment>, Lsn), Error> {
        let segment = Arc::new(segment);
        let appended = {
            let _changing = self.changing.lock();
            append().inspect(|_| {
                self.listed.lock().by_number.insert(segment.number, Arc::clone(&segment));
            })
        };
        if appended.is_err() {
            // Files that cannot be removed are removed at the next start.
            self.disk.remove(&segment.path).ok();
        }
        Ok((segment, appended?))
    }

    /// Takes a segment off the list, which `append` says in the journal; its file stays.
    pub(crate) fn drop_from_list(
        &self,
        number: u64,
        append: impl FnOnce() -> Result<Lsn, Error>,
    ) -> Result<Lsn, Error> {
        let _changing = self.changing.lock();
        let lsn = append()?;
        let mut listed = self.listed.lock();
        listed.by_number.remove(&number);
        listed.handles.retain(|(open, _)| *open != number);
        Ok(lsn)
    }

    /// Takes over a segment that is off the list for good, to remove its file.
    pub(crate) fn give_up(&self, segment: Arc<Segment>) {
        self.listed.lock().given_up.push(segment);
    }

    /// Removes the file of a segment that was given up and that no reader uses, in pieces of
    /// `piece` bytes. Returns true if there was one.
    pub(crate) fn remove_unread(&self, pace: &Pace, piece: u64) -> Result<bool, Error> {
        let unread = |segment: &mut Arc<Segment>| Arc::strong_count(segment) == 1;
        let Some(segment) = self.listed.lock().given_up.extract_if(.., unread).next() else {
            return Ok(false);
        };
        let costs = piece / GIVING_BACK_PER_WRITING;
        let gone = remove_gently(&*self.disk, pace, &segment.path, (piece, costs));
        removed(&segment.path, gone)?;
        Ok(true)
    }

    pub(crate) fn get(&self, number: u64) -> Option<Arc<Segment>> {
        self.listed.lock().by_number.get(&number).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<Segment>> {
        self.listed.lock().by_number.values().cloned().collect()
    }

    /// The numbers that count, and the next to be used.
    pub(crate) fn numbers(&self) -> (Vec<u64>, u64) {
        let _changing = self.changing.lock();
        let listed = self.listed.lock();
        (listed.by_number.keys().copied().collect(), listed.next)
    }

    /// An open descriptor of a segment. A bounded number of them is kept open.
    pub(crate) fn handle(&self, segment: &Segment) -> Result<Arc<dyn DiskFile>, Error> {
        let mut listed = self.listed.lock();
        let known = listed.handles.iter().position(|(number, _)| *number == segment.number);
        if let Some(known) = known.and_then(|at| listed.handles.remove(at)) {
            let handle = Arc::clone(&known.1);
            listed.handles.push_back(known);
            return Ok(handle);
        }
        drop(listed);
        let opened = self.disk.open(&segment.path, self.access, false);
        let handle = opened.map_err(|error| Error::io("open", &segment.path, error))?;
        let mut listed = self.listed.lock();
        // It may be off the list by now, and another thread may have opened it as well.
        let is_open = listed.handles.iter().any(|(number, _)| *number == segment.number);
        if !is_open && listed.by_number.contains_key(&segment.number) {
            if listed.handles.len() == HANDLES_MAX {
                listed.handles.pop_front();
            }
            listed.handles.push_back((segment.number, Arc::clone(&handle)));
        }
        Ok(handle)
    }
}

/// What has gone already is removed, too.
fn removed(path: &Path, outcome: io::Result<()>) -> Result<(), Error> {
    match outcome {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(Error::io("remove", path, error)),
        _ => Ok(()),
    }
}

/// What is given back takes a device an eighth of the time that it takes to write as much, and may
/// take the background a half: what was deleted comes all at once.
const GIVING_BACK_PER_WRITING: u64 = 2;
/// Descriptors stay few however many segments there are.
const HANDLES_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::LogId;
    use crate::disk::RealDisk;

    fn segments(dir: &Path) -> Segments {
        Segments::new(Arc::new(RealDisk), dir.to_owned(), Access::Buffered, [0; 16])
    }

    fn written(segments: &Segments, pace: &Pace) -> Segment {
        let mut writer = segments.create(pace, 0).unwrap();
        writer.begin_run(LogId::default(), 0);
        writer.push(&[1; 100_000], 0, 0).unwrap();
        writer.end_run(1);
        writer.finish().unwrap()
    }

    /// An entry of the journal may need a file, for which a slow disk takes its time.
    #[test]
    fn readers_do_not_wait_while_a_change_is_said_in_the_journal() {
        let dir = tempfile::tempdir().unwrap();
        let (segments, pace) = (Arc::new(segments(dir.path())), Pace::new(Arc::default(), 0, true));
        let (first, _) = segments.add(written(&segments, &pace), || Ok(Lsn(0))).unwrap();
        let read_meanwhile = || {
            let (segments, first) = (Arc::clone(&segments), Arc::clone(&first));
            let (done, read) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let found = segments.get(first.number).is_some();
                done.send(found && segments.handle(&first).is_ok()).unwrap();
            });
            assert_eq!(read.recv_timeout(Duration::from_secs(60)), Ok(true));
            Ok(Lsn(0))
        };
        let (second, _) = segments.add(written(&segments, &pace), read_meanwhile).unwrap();
        segments.drop_from_list(second.number, read_meanwhile).unwrap();
        assert_eq!(segments.numbers().0, [first.number]);
    }

    /// A reader of a segment that counts no more would take the end of a shorter file for damage.
    #[test]
    fn a_segment_that_is_read_stays_whole_until_it_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (segments, pace) = (segments(dir.path()), Pace::new(Arc::default(), 0, true));
        let (read, _) = segments.add(written(&segments, &pace), || Ok(Lsn(0))).unwrap();
        segments.drop_from_list(read.number, || Ok(Lsn(0))).unwrap();
        segments.give_up(Arc::clone(&read));
        assert!(!segments.remove_unread(&pace, 4096).unwrap());
        assert_eq!(segments.handle(&read).unwrap().length().unwrap(), read.file_bytes);
        let path = read.path.clone();
        drop(read);
        assert!(segments.remove_unread(&pace, 4096).unwrap());
        assert!(!path.exists() && !segments.remove_unread(&pace, 4096).unwrap());
    }
}
