//! The identity of a data directory: `moldau.meta`, 64 bytes, made as a whole by rename. Integers
//! are little-endian.
//!
//! | bytes | field |
//! |---|---|
//! | 0..8 | magic `MOLDAUMT` |
//! | 8..12 | format version, u32 |
//! | 12..16 | node id, i32 |
//! | 16..32 | cluster id |
//! | 32..60 | zero |
//! | 60..64 | CRC32C of bytes 0..60 |

use std::io;
use std::path::Path;

use crate::Error;
use crate::disk::{Access, Disk, read_full, write_all};
use crate::format::{FORMAT_VERSION, Fields, open_header, seal_header};

const META_MAGIC: [u8; 8] = *b"MOLDAUMT";
pub(crate) const META_NAME: &str = "moldau.meta";

/// Reads the cluster id of a data directory, or gives a new directory one.
pub(crate) fn open_identity(
    disk: &dyn Disk,
    data_dir: &Path,
    node_id: i32,
) -> Result<[u8; 16], Error> {
    if let Some((found, cluster_id)) = read_identity(disk, data_dir)? {
        if found != node_id {
            let path = data_dir.join(META_NAME);
            return Err(Error::WrongNode { path, found, expected: node_id });
        }
        return Ok(cluster_id);
    }
    // The identity says that this was done.
    sync_ancestors(disk, data_dir)?;
    let mut cluster_id = [0; 16];
    fastrand::Rng::new().fill(&mut cluster_id);
    write_identity(disk, data_dir, node_id, cluster_id)?;
    Ok(cluster_id)
}

/// Makes the names of a data directory and of those above it durable, as they may be as new as it
/// is: without its name, all that is synced in it is lost with the power.
fn sync_ancestors(disk: &dyn Disk, data_dir: &Path) -> Result<(), Error> {
    for dir in data_dir.ancestors().skip(1) {
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        match disk.sync_dir(dir) {
            Ok(()) => {}
            // One that this user may not read, or of a file system that syncs no directories, was
            // there before.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
                ) => {}
            Err(error) => return Err(Error::io("sync", dir, error)),
        }
    }
    Ok(())
}

/// The node id and the cluster id of a data directory, if it has them.
pub(crate) fn read_identity(
    disk: &dyn Disk,
    data_dir: &Path,
) -> Result<Option<(i32, [u8; 16])>, Error> {
    let path = data_dir.join(META_NAME);
    let Some(bytes) = read_small(disk, data_dir, META_NAME)? else { return Ok(None) };
    let mut fields = open_small(&path, &bytes, META_MAGIC)?;
    let identity = fields.i32().zip(fields.take());
    identity.map(Some).ok_or_else(|| Error::corrupt(&path, 0, "shorter than its fields"))
}

/// Writes the identity of a data directory.
pub(crate) fn write_identity(
    disk: &dyn Disk,
    data_dir: &Path,
    node_id: i32,
    cluster_id: [u8; 16],
) -> Result<(), Error> {
    let fields: [&[u8]; 4] =
        [&META_MAGIC, &FORMAT_VERSION.to_le_bytes(), &node_id.to_le_bytes(), &cluster_id];
    write_small(disk, data_dir, META_NAME, &seal_header(&fields))
}

fn open_small<'a>(path: &Path, bytes: &'a [u8], magic: [u8; 8]) -> Result<Fields<'a>, Error> {
    let mut fields = open_header(bytes, magic)
        .ok_or_else(|| Error::corrupt(path, 0, "magic or checksum does not hold"))?;
    let version = fields.u32().unwrap_or_default();
    if version != FORMAT_VERSION {
        let (path, known) = (path.to_path_buf(), FORMAT_VERSION);
        return Err(Error::UnknownVersion { path, found: version, known });
    }
    Ok(fields)
}

fn read_small(disk: &dyn Disk, dir: &Path, name: &str) -> Result<Option<[u8; 64]>, Error> {
    let names = disk.list(dir).map_err(|error| Error::io("list", dir, error))?;
    if !names.iter().any(|known| known == name) {
        return Ok(None);
    }
    let path = dir.join(name);
    let mut bytes = [0; 64];
    disk.open(&path, Access::Buffered, false)
        .and_then(|file| read_full(&*file, &mut bytes, 0))
        .map_err(|error| Error::io("read", &path, error))?;
    Ok(Some(bytes))
}

fn write_small(disk: &dyn Disk, dir: &Path, name: &str, bytes: &[u8; 64]) -> Result<(), Error> {
    let path = dir.join(name);
    let temporary = dir.join(format!("{name}.tmp"));
    let written = disk.open(&temporary, Access::Buffered, true).and_then(|file| {
        write_all(&*file, &[bytes], 0, 1)?;
        file.sync_data()?;
        disk.rename(&temporary, &path)?;
        disk.sync_dir(dir)
    });
    written.map_err(|error| Error::io("write", &path, error))
}
