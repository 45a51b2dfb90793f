//! The disk as the kernel asks for it. The kernel keeps nothing: no name, no attribute, no page.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fuser::{
    BackgroundSession, BsdFileFlags, Config, Errno, FileAttr, FileHandle, FileType, Filesystem,
    FopenFlags, Generation, INodeNo, InitFlags, KernelConfig, LockOwner, MountOption, OpenFlags,
    RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory, ReplyEmpty, ReplyEntry,
    ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};

use crate::contents::{BLOCK, Change, Directory, File, Node, ROOT, SECTOR, State};
use crate::lock;

const KEPT: Duration = Duration::ZERO;

/// Blocks that are free, always.
const FREE_BLOCKS: u64 = 1 << 24;

pub(super) fn mount(path: &Path, state: Arc<Mutex<State>>) -> io::Result<BackgroundSession> {
    let mut config = Config::default();
    config.mount_options.push(MountOption::FSName("lossy-disk".to_owned()));
    fuser::spawn_mount(Mounted(state), path, &config)
}

struct Mounted(Arc<Mutex<State>>);

impl Mounted {
    /// What the disk holds, once it has taken its time.
    fn state(&self) -> MutexGuard<'_, State> {
        let delay = lock(&self.0).delay();
        if let Some(delay) = delay {
            thread::sleep(delay);
        }
        lock(&self.0)
    }
}

fn attributes(state: &State, number: u64) -> Result<FileAttr, Errno> {
    let (kind, perm, size) = match state.nodes.get(&number) {
        Some(Node::File(file)) => (FileType::RegularFile, 0o644, file.now.len),
        Some(Node::Directory(_)) => (FileType::Directory, 0o755, 0),
        None => return Err(Errno::ENOENT),
    };
    Ok(FileAttr {
        ino: INodeNo(number),
        size,
        blocks: size.div_ceil(SECTOR as u64),
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind,
        perm,
        nlink: 1,
        uid: rustix::process::getuid().as_raw(),
        gid: rustix::process::getgid().as_raw(),
        rdev: 0,
        blksize: 4096,
        flags: 0,
    })
}

fn answer(result: Result<(), Errno>, reply: ReplyEmpty) {
    match result {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn answer_entry(result: Result<FileAttr, Errno>, reply: ReplyEntry) {
    match result {
        Ok(attributes) => reply.entry(&KEPT, &attributes, Generation(0)),
        Err(error) => reply.error(error),
    }
}

impl Filesystem for Mounted {
    /// Processes may map files, as brokers on the JVM do with their indexes.
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // A kernel before 6.6 does not know this, and refuses to map.
        let _ = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP);
        Ok(())
    }

    /// Files have no attributes beside those of [`attributes`].
    fn getxattr(&self, _: &Request, _: INodeNo, _: &OsStr, _: u32, reply: ReplyXattr) {
        reply.error(Errno::EOPNOTSUPP);
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut state = self.state();
        let found = state.find(parent.0, name).and_then(|node| attributes(&state, node));
        answer_entry(found, reply);
    }

    fn getattr(&self, _: &Request, node: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match attributes(&self.state(), node.0) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        node: INodeNo,
        _mode: Option<u32>,
        _uid: Option<u32>,
        _gid: Option<u32>,
        size: Option<u64>,
        _atime: Option<TimeOrNow>,
        _mtime: Option<TimeOrNow>,
        _ctime: Option<SystemTime>,
        _: Option<FileHandle>,
        _crtime: Option<SystemTime>,
        _chgtime: Option<SystemTime>,
        _bkuptime: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let mut state = self.state();
        let changed = size.map_or(Ok(()), |size| state.change(node.0, Change::Cut(size)));
        match changed.and_then(|()| attributes(&state, node.0)) {
            Ok(attributes) => reply.attr(&KEPT, &attributes),
            Err(error) => reply.error(error),
        }
    }

    fn mkdir(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        reply: ReplyEntry,
    ) {
        let mut state = self.state();
        let made = state.make(parent.0, name, Node::Directory(Directory::default()));
        answer_entry(made.and_then(|node| attributes(&state, node)), reply);
    }

    fn create(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        _mode: u32,
        _umask: u32,
        _flags: i32,
        reply: ReplyCreate,
    ) {
        let mut state = self.state();
        let made = state.make(parent.0, name, Node::File(File::default()));
        match made.and_then(|node| attributes(&state, node)) {
            Ok(attributes) => reply.created(
                &KEPT,
                &attributes,
                Generation(0),
                FileHandle(0),
                FopenFlags::FOPEN_DIRECT_IO,
            ),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.state().remove(parent.0, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.state().remove_directory(parent.0, name), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        _: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let renamed = match parent == new_parent {
            true => self.state().rename(parent.0, name, new_name),
            false => Err(Errno::EXDEV),
        };
        answer(renamed, reply);
    }

    fn read(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        at: u64,
        bytes: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.state().read(node.0, at, bytes as usize) {
            Ok(read) => reply.data(&read),
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        at: u64,
        bytes: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        match self.state().change(node.0, Change::Write { at, bytes: bytes.to_vec() }) {
            Ok(()) => reply.written(u32::try_from(bytes.len()).expect("a write has few bytes")),
            Err(error) => reply.error(error),
        }
    }

    fn fallocate(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        at: u64,
        bytes: u64,
        mode: i32,
        reply: ReplyEmpty,
    ) {
        let allocated = match mode {
            0 => self.state().change(node.0, Change::Grow(at.saturating_add(bytes))),
            _ => Err(Errno::EOPNOTSUPP),
        };
        answer(allocated, reply);
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer(Ok(()), reply);
    }

    fn fsync(&self, _: &Request, node: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        answer(self.state().sync(node.0), reply);
    }

    fn fsyncdir(&self, _: &Request, node: INodeNo, _: FileHandle, _data: bool, reply: ReplyEmpty) {
        answer(self.state().sync(node.0), reply);
    }

    fn readdir(
        &self,
        _: &Request,
        node: INodeNo,
        _: FileHandle,
        from: u64,
        mut reply: ReplyDirectory,
    ) {
        let mut state = self.state();
        let names = match state.directory(node.0) {
            Ok(directory) => directory.now.clone(),
            Err(error) => return reply.error(error),
        };
        let own = [(".".into(), ROOT), ("..".into(), ROOT)];
        let entries = own.into_iter().chain(names).zip(1..);
        for ((name, number), next) in entries.skip_while(|(_, next)| *next <= from) {
            let kind = match state.nodes.get(&number) {
                Some(Node::File(_)) => FileType::RegularFile,
                _ => FileType::Directory,
            };
            if reply.add(INodeNo(number), next, kind, name) {
                break;
            }
        }
        // This ends the list of names; it returns nothing.
        reply.ok();
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let block = u32::try_from(BLOCK).expect("a block is small");
        reply.statfs(FREE_BLOCKS, FREE_BLOCKS, FREE_BLOCKS, 0, 0, block, 255, block);
    }
}
