//! The embedded service: key encryption keys in a file that only its owner may read.
//!
//! | its wrapped data key | |
//! |---|---|
//! | format | u8: 1 |
//! | name of the key encryption key | uvarint length, then ASCII |
//! | version of the key encryption key | uvarint |
//! | IV | 12 bytes |
//! | the data key under AES-256-GCM, and the tag | 48 bytes |
//!
//! What stands before the IV is associated data. A key's name is its alias.
//!
//! The file is looked at on each call, which takes one `stat`, and read again when it changed.
//! What cannot be read then changes nothing: the keys read before stay in use and a line in the
//! log says why.

mod document;

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use aws_lc_rs::rand;
use moldau_records::varint;
use zeroize::Zeroizing;

use self::document::{
    Document, KEYS_MAX, KeyVersion, NAME_BYTES_MAX, NamedKey, VERSIONS_MAX, is_name,
};
use super::local_kek::{KEK_BYTES, LocalKek, WRAPPED_BYTES, random_iv};
use super::stamp::Stamp;
use super::{KekId, Kms, KmsFuture, WrappedDataKey};
use crate::{DataKey, Edek, Error, KmsError};

/// What may be shown of a key in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyFileEntry {
    /// The name, which is the alias too.
    pub name: String,
    /// Number of the version that wraps; earlier ones open only.
    pub active_version: u32,
    /// How many versions there are.
    pub versions: usize,
    /// When the active version was made.
    pub active_since: SystemTime,
}

/// A key file in use as a service.
pub struct KeyFile {
    path: PathBuf,
    /// Guards the keys as last read.
    held: Mutex<Held>,
}

struct Held {
    /// What the file was when it was last looked at; `None` where it could not be.
    stamp: Option<Stamp>,
    keys: HashMap<Box<str>, BTreeMap<u32, LocalKek>>,
}

impl KeyFile {
    /// Makes a key file without keys.
    ///
    /// # Errors
    /// [`Error::KeyFile`] if something stands at `path`, or it cannot be written.
    pub fn init(path: &Path) -> Result<(), Error> {
        let fail = |reason: io::Error| fault(path, reason.to_string());
        let mut file = create(path).map_err(fail)?;
        file.write_all(Document::default().render().as_bytes()).map_err(fail)?;
        file.sync_all().map_err(fail)?;
        flush_directory(path).map_err(fail)
    }

    /// Adds a key with this alias and its first version.
    ///
    /// # Errors
    /// [`Error::KeyFile`], also if the alias is there.
    pub fn add(path: &Path, alias: &str, now: SystemTime) -> Result<(), Error> {
        change(path, |document| {
            if !is_name(alias) {
                return Err(format!("an alias has 1 to {NAME_BYTES_MAX} visible ASCII characters"));
            }
            if document.find(alias).is_some() {
                return Err(format!("it has a key {alias:?}; `rotate` adds a version to it"));
            }
            if document.keys.len() >= KEYS_MAX {
                return Err(format!("it holds {KEYS_MAX} keys, the most there may be"));
            }
            let versions = vec![fresh_version(1, now)];
            document.keys.push(NamedKey { name: alias.to_owned(), versions });
            Ok(())
        })
    }

    /// Adds a version to the key with this alias, which wraps from then on, and gives its number.
    ///
    /// # Errors
    /// [`Error::KeyFile`], also if the alias is not there.
    pub fn rotate(path: &Path, alias: &str, now: SystemTime) -> Result<u32, Error> {
        change(path, |document| {
            let key = document.keys.iter_mut().find(|key| key.name == alias);
            let key = key.ok_or_else(|| format!("it has no key {alias:?}"))?;
            if key.versions.len() >= VERSIONS_MAX {
                return Err(format!(
                    "{alias:?} has {VERSIONS_MAX} versions, the most there may be"
                ));
            }
            let number = key.active().number.checked_add(1).ok_or("the version numbers ended")?;
            key.versions.push(fresh_version(number, now));
            Ok(number)
        })
    }

    /// What may be shown of the keys, in the order in which they were added.
    ///
    /// # Errors
    /// [`Error::KeyFile`].
    pub fn list(path: &Path) -> Result<Vec<KeyFileEntry>, Error> {
        let (document, _) = read(path)?;
        let entry = |key: &NamedKey| KeyFileEntry {
            name: key.name.clone(),
            active_version: key.active().number,
            versions: key.versions.len(),
            active_since: key.active().created,
        };
        Ok(document.keys.iter().map(entry).collect())
    }

    /// Opens a key file as a service.
    ///
    /// # Errors
    /// [`Error::KeyFile`].
    pub fn open(path: &Path) -> Result<Self, Error> {
        let (document, stamp) = read(path)?;
        let held = Held { stamp: Some(stamp), keys: expand(&document) };
        Ok(Self { path: path.to_owned(), held: Mutex::new(held) })
    }

    /// The keys, read again if the file changed.
    fn held(&self) -> MutexGuard<'_, Held> {
        // The guarded value is replaced as a whole, so a panic leaves no partial change.
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let stamp = fs::metadata(&self.path).ok().map(|metadata| Stamp::of(&metadata));
        if stamp != held.stamp {
            held.stamp = stamp;
            match read(&self.path) {
                Ok((document, stamp)) => {
                    *held = Held { stamp: Some(stamp), keys: expand(&document) };
                    tracing::info!(path = %self.path.display(), "the key file was read again");
                }
                Err(error) => tracing::warn!(%error, "the keys read before stay in use"),
            }
        }
        held
    }

    fn resolve(&self, alias: &str) -> Result<KekId, KmsError> {
        if self.held().keys.contains_key(alias) {
            Ok(KekId(alias.into()))
        } else {
            Err(KmsError::UnknownKey(alias.to_owned()))
        }
    }

    fn generate(&self, id: &KekId) -> Result<WrappedDataKey, KmsError> {
        let held = self.held();
        let versions = held.keys.get(&*id.0);
        let (version, kek) = versions
            .and_then(BTreeMap::last_key_value)
            .ok_or_else(|| KmsError::UnknownKey(id.0.to_string()))?;
        let mut edek = vec![EDEK_FORMAT];
        let name_length = u32::try_from(id.0.len()).expect("a name has 255 bytes at most");
        varint::write_u32(&mut edek, name_length);
        edek.extend_from_slice(id.0.as_bytes());
        varint::write_u32(&mut edek, *version);
        let (key, iv) = (DataKey::random(), random_iv());
        let wrapped = kek.wrap(iv, &edek, &key);
        edek.extend_from_slice(&iv);
        edek.extend(wrapped);
        Ok(WrappedDataKey { key, edek: Edek(edek.into()) })
    }

    fn decrypt(&self, edek: &Edek) -> Result<DataKey, KmsError> {
        let parts = Parts::read(&edek.0)?;
        let held = self.held();
        let kek = held.keys.get(parts.name).and_then(|versions| versions.get(&parts.version));
        let kek = kek.ok_or_else(|| {
            KmsError::UnknownKey(format!("{} version {}", parts.name, parts.version))
        })?;
        kek.unwrap(*parts.iv, parts.associated, parts.wrapped)
            .ok_or(KmsError::DamagedEdek("its key encryption key does not open it"))
    }
}

impl Kms for KeyFile {
    fn resolve_alias<'a>(&'a self, alias: &'a str) -> KmsFuture<'a, KekId> {
        Box::pin(async move { self.resolve(alias) })
    }

    fn generate_data_key<'a>(&'a self, kek: &'a KekId) -> KmsFuture<'a, WrappedDataKey> {
        Box::pin(async move { self.generate(kek) })
    }

    fn decrypt_edek<'a>(&'a self, edek: &'a Edek) -> KmsFuture<'a, DataKey> {
        Box::pin(async move { self.decrypt(edek) })
    }
}

/// The fields of a wrapped data key.
struct Parts<'a> {
    /// What stands before the IV.
    associated: &'a [u8],
    name: &'a str,
    version: u32,
    iv: &'a [u8; 12],
    wrapped: &'a [u8; WRAPPED_BYTES],
}

impl<'a> Parts<'a> {
    fn read(edek: &'a [u8]) -> Result<Self, KmsError> {
        let cut = |_| KmsError::DamagedEdek("it ends early");
        let (&format, mut rest) =
            edek.split_first().ok_or(KmsError::DamagedEdek("it has no bytes"))?;
        if format != EDEK_FORMAT {
            return Err(KmsError::DamagedEdek("not of a key file's format"));
        }
        let length = varint::read_u32(&mut rest).map_err(cut)?;
        let (name, mut rest) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or(KmsError::DamagedEdek("its name ends early"))?;
        let name = str::from_utf8(name).ok().filter(|name| is_name(name));
        let name = name.ok_or(KmsError::DamagedEdek("its name cannot be"))?;
        let version = varint::read_u32(&mut rest).map_err(cut)?;
        let associated = edek.len().checked_sub(rest.len()).and_then(|length| edek.get(..length));
        let parts = rest.split_first_chunk().and_then(|(iv, wrapped)| {
            let wrapped = wrapped.try_into().ok()?;
            Some(Self { associated: associated?, name, version, iv, wrapped })
        });
        parts.ok_or(KmsError::DamagedEdek("its length is another"))
    }
}

fn expand(document: &Document) -> HashMap<Box<str>, BTreeMap<u32, LocalKek>> {
    let keys = document.keys.iter().map(|key| {
        let versions = key.versions.iter().map(|v| (v.number, LocalKek::new(&v.secret)));
        (key.name.as_str().into(), versions.collect())
    });
    keys.collect()
}

fn fresh_version(number: u32, created: SystemTime) -> KeyVersion {
    let mut secret = Zeroizing::new([0; KEK_BYTES]);
    rand::fill(&mut secret[..]).expect("the generator is seeded before it is reachable");
    KeyVersion { number, created, secret }
}

/// Reads a key file that only its owner may read.
fn read(path: &Path) -> Result<(Document, Stamp), Error> {
    let file = File::open(path).map_err(|error| fault(path, error.to_string()))?;
    read_open(path, &file)
}

fn read_open(path: &Path, mut file: &File) -> Result<(Document, Stamp), Error> {
    let fail = |error: io::Error| fault(path, error.to_string());
    let metadata = file.metadata().map_err(fail)?;
    if metadata.mode() & OTHERS != 0 {
        let mode = metadata.mode() & 0o7777;
        return Err(fault(path, format!("others may use it (mode {mode:04o}): chmod 600 it")));
    }
    if metadata.len() > FILE_BYTES_MAX {
        return Err(fault(path, format!("larger than {FILE_BYTES_MAX} bytes")));
    }
    let length = usize::try_from(metadata.len()).expect("far below what memory can hold");
    // One byte more than there should be: a file that grows meanwhile is noticed by its length,
    // and no growing vector leaves a copy behind.
    let mut bytes = Zeroizing::new(vec![0; length + 1]);
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest).map_err(fail)? {
            0 => break,
            count => filled += count,
        }
    }
    let text = bytes.get(..filled).and_then(|bytes| str::from_utf8(bytes).ok());
    let text = text.ok_or_else(|| fault(path, "damaged: it is not text".to_owned()))?;
    let document = Document::parse(text).map_err(|reason| fault(path, reason))?;
    Ok((document, Stamp::of(&metadata)))
}

/// Replaces a key file by what `edit` makes of it: wholly, or not at all.
fn change<T>(
    path: &Path,
    edit: impl FnOnce(&mut Document) -> Result<T, String>,
) -> Result<T, Error> {
    let fail = |error: io::Error| fault(path, error.to_string());
    // The file itself is replaced, not a symbolic link that leads to it.
    let path = &fs::canonicalize(path).map_err(fail)?;
    let file = File::open(path).map_err(fail)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(fault(path, "another command is changing it".to_owned()));
        }
        Err(TryLockError::Error(error)) => return Err(fail(error)),
    }
    let (mut document, stamp) = read_open(path, &file)?;
    // The lock was on the file that another command had replaced before it was taken.
    if Stamp::of(&fs::metadata(path).map_err(fail)?) != stamp {
        return Err(fault(path, "another command changed it".to_owned()));
    }
    let outcome = edit(&mut document).map_err(|reason| fault(path, reason))?;
    let text = document.render();
    if u64::try_from(text.len()).is_ok_and(|length| length > FILE_BYTES_MAX) {
        return Err(fault(path, format!("it would exceed {FILE_BYTES_MAX} bytes")));
    }
    replace(path, &text).map_err(fail)?;
    Ok(outcome)
}

/// Writes the text beside the file, flushes it and renames it over the file. The lock on the
/// file makes the caller the only one that does.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".tmp");
    let beside = PathBuf::from(beside);
    match fs::remove_file(&beside) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = create(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)?;
    flush_directory(path)
}

/// Creates a file that did not exist and that only its owner may use.
fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

/// Makes a name in the directory of `path` survive a crash.
fn flush_directory(path: &Path) -> io::Result<()> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}

fn fault(path: &Path, reason: String) -> Error {
    Error::KeyFile { path: path.to_owned(), reason }
}

const EDEK_FORMAT: u8 = 1;
/// Permissions of anyone but the owner.
const OTHERS: u32 = 0o077;
/// More than the largest file of [`KEYS_MAX`] keys with dozens of versions each.
const FILE_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests;
