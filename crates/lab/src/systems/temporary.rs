//! A directory below that of temporary files: what runs as another user can look into it, which
//! the directories of an experiment may not allow.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use moldau_measure::Error;

/// A directory that is removed when it is dropped.
#[derive(Debug)]
pub(super) struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Makes one.
    ///
    /// # Errors
    /// [`Error::Machine`].
    pub(super) fn make() -> Result<Self, Error> {
        let name = format!("moldau-lab-{}-{:08x}", std::process::id(), fastrand::u32(..));
        let path = std::env::temp_dir().join(name);
        let making = || Error::machine(format!("making {}", path.display()));
        DirBuilder::new().mode(0o755).create(&path).map_err(making())?;
        // Whatever the umask is.
        fs::set_permissions(&path, Permissions::from_mode(0o755)).map_err(making())?;
        Ok(Self(path))
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "failed to remove temporary files");
        }
    }
}
