//! A secret in a file of its own: a token, or a password, that others may replace at any time.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::PathBuf;

use zeroize::Zeroizing;

use super::stamp::Stamp;
use crate::KmsError;

/// The file.
#[derive(Debug, Clone)]
pub(super) struct SecretFile(pub(super) PathBuf);

impl SecretFile {
    /// The text without the white space around it, and what the file was.
    pub(super) fn read(&self) -> Result<(Zeroizing<String>, Stamp), KmsError> {
        let fault = |reason: &str| {
            KmsError::Refused(format!(
                "the secret in {} cannot be read: {reason}",
                self.0.display()
            ))
        };
        let (bytes, stamp) = self.read_bytes().map_err(|error| fault(&error.to_string()))?;
        let text = str::from_utf8(&bytes).map_err(|_| fault("it is not text"))?.trim();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(fault("it is not one word of ASCII"));
        }
        Ok((Zeroizing::new(text.to_owned()), stamp))
    }

    fn read_bytes(&self) -> io::Result<(Zeroizing<Vec<u8>>, Stamp)> {
        let file = File::open(&self.0)?;
        let stamp = Stamp::of(&file.metadata()?);
        let mut bytes = Zeroizing::new(Vec::with_capacity(SECRET_BYTES_MAX + 1));
        let limit = u64::try_from(SECRET_BYTES_MAX + 1).expect("a small constant");
        file.take(limit).read_to_end(&mut bytes)?;
        if bytes.len() > SECRET_BYTES_MAX {
            return Err(io::Error::other(format!("it has more than {SECRET_BYTES_MAX} bytes")));
        }
        Ok((bytes, stamp))
    }

    /// Whether the file is still what it was when it was read. One that cannot be looked at is:
    /// what was read is all there is.
    pub(super) fn is_still(&self, stamp: &Stamp) -> bool {
        fs::metadata(&self.0).map_or(true, |metadata| Stamp::of(&metadata) == *stamp)
    }
}

/// The longest secret: a web token with many claims.
const SECRET_BYTES_MAX: usize = 16 * 1024;
