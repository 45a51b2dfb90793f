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

use std::path::Path;

use crate::Error;
use crate::disk::{Access, Disk, read_full, write_all};
use crate::format::{FORMAT_VERSION, Fields, open_header, seal_header};

const META_MAGIC: [u8; 8] = *b"MOLDAUMT";
const META_NAME: &str = "moldau.meta";

/// Reads the cluster id of a data directory, or gives a new directory one.
pub(crate) fn open_identity(
    disk: &dyn Disk,
    data_dir: &Path,
    node_id: i32,
) -> Result<[u8; 16], Error> {
    let path = data_dir.join(META_NAME);
    if let Some(bytes) = read_small(disk, data_dir, META_NAME)? {
        let mut fields = open_small(&path, &bytes, META_MAGIC)?;
        let damaged = || Error::corrupt(&path, 0, "shorter than its fields");
        let found = fields.i32().ok_or_else(damaged)?;
        if found != node_id {
            return Err(Error::WrongNode { path, found, expected: node_id });
        }
        return fields.take().ok_or_else(damaged);
    }
    let mut cluster_id = [0; 16];
    fastrand::Rng::new().fill(&mut cluster_id);
    let fields: [&[u8]; 4] =
        [&META_MAGIC, &FORMAT_VERSION.to_le_bytes(), &node_id.to_le_bytes(), &cluster_id];
    write_small(disk, data_dir, META_NAME, &seal_header(&fields))?;
    Ok(cluster_id)
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
