//! The text of a key file: see `docs/formats.md`.

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use moldau_records::crc32c;
use zeroize::Zeroizing;

use crate::kms::local_kek::KEK_BYTES;
use crate::utc;

/// All that a key file says.
#[derive(Default)]
pub(super) struct Document {
    /// In the order in which they were added; at most [`KEYS_MAX`].
    pub(super) keys: Vec<NamedKey>,
}

/// One key encryption key.
pub(super) struct NamedKey {
    pub(super) name: String,
    /// Never empty, their numbers ascending; the last is the one that wraps.
    pub(super) versions: Vec<KeyVersion>,
}

/// One version of a key.
pub(super) struct KeyVersion {
    pub(super) number: u32,
    pub(super) created: SystemTime,
    pub(super) secret: Zeroizing<[u8; KEK_BYTES]>,
}

impl NamedKey {
    /// The version that wraps.
    pub(super) fn active(&self) -> &KeyVersion {
        self.versions.last().expect("a key has a version from its creation")
    }
}

impl Document {
    /// Reads the text; the error says which line is wrong and never repeats it, since it may hold
    /// a secret.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let body = checked_body(text)?;
        let mut document = Self::default();
        for (number, line) in body.lines().enumerate().skip(1) {
            let mut words = line.split_whitespace();
            let read = match words.next() {
                Some("key") => document.read_key(words),
                Some("version") => document.read_version(words),
                Some(word) if !word.starts_with('#') => Err("neither a key nor a version"),
                _ => Ok(()),
            };
            read.map_err(|reason| format!("line {}: {reason}", number + 1))?;
        }
        match document.keys.iter().find(|key| key.versions.is_empty()) {
            Some(key) => Err(format!("key {:?} has no version", key.name)),
            None => Ok(document),
        }
    }

    fn read_key<'a>(&mut self, words: impl Iterator<Item = &'a str>) -> Result<(), &'static str> {
        let words: Vec<&str> = words.take(2).collect();
        let [name] = words[..] else { return Err("a key has one name") };
        if self.keys.len() >= KEYS_MAX {
            return Err("too many keys");
        }
        if !is_name(name) || self.find(name).is_some() {
            return Err("a name that cannot be, or that stands here twice");
        }
        self.keys.push(NamedKey { name: name.to_owned(), versions: Vec::new() });
        Ok(())
    }

    fn read_version<'a>(
        &mut self,
        words: impl Iterator<Item = &'a str>,
    ) -> Result<(), &'static str> {
        let key = self.keys.last_mut().ok_or("a version before any key")?;
        let words: Vec<&str> = words.take(6).collect();
        let [number, "created", created, "secret", secret] = words[..] else {
            return Err("not of the form: version N created TIME secret BASE64");
        };
        let number = number.parse().map_err(|_| "the version is not a number")?;
        if key.versions.last().is_some_and(|last| last.number >= number) {
            return Err("the versions do not ascend");
        }
        if key.versions.len() >= VERSIONS_MAX {
            return Err("too many versions");
        }
        let created = utc::parse(created).ok_or("the time is none")?;
        let bytes = Zeroizing::new(BASE64.decode(secret).map_err(|_| NOT_A_SECRET)?);
        let secret = bytes.as_slice().try_into().map(Zeroizing::new).map_err(|_| NOT_A_SECRET)?;
        key.versions.push(KeyVersion { number, created, secret });
        Ok(())
    }

    /// The file's text, with its last line.
    pub(super) fn render(&self) -> Zeroizing<String> {
        let lines: usize = self.keys.iter().map(|key| 1 + key.versions.len()).sum();
        // Room for all, so that no copy of a secret is left behind by a growing string.
        let mut text = Zeroizing::new(String::with_capacity((lines + 4) * LINE_BYTES_MAX));
        text.push_str(FIRST_LINE);
        text.push_str(NOTICE);
        for key in &self.keys {
            text.push_str(&format!("key {}\n", key.name));
            for version in &key.versions {
                let created = utc::format(version.created);
                text.push_str(&format!("  version {} created {created} secret ", version.number));
                text.push_str(&Zeroizing::new(BASE64.encode(&version.secret[..])));
                text.push('\n');
            }
        }
        let crc = crc32c(text.as_bytes());
        text.push_str(&format!("{CHECK}{crc:08x}\n"));
        text
    }

    pub(super) fn find(&self, name: &str) -> Option<&NamedKey> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// The text before the line with the checksum, which must be right.
fn checked_body(text: &str) -> Result<&str, String> {
    if !text.starts_with(FIRST_LINE) {
        return Err(match text.lines().next() {
            Some(line) if line.starts_with("moldau-keys ") => {
                "of a format that this version of Moldau does not know".to_owned()
            }
            _ => "not a key file; `moldau proxy keys init` makes one".to_owned(),
        });
    }
    let (body, crc) = text
        .rfind(CHECK)
        .map(|at| text.split_at(at))
        .ok_or("damaged: its last line, the checksum, is missing")?;
    if crc != format!("{CHECK}{:08x}\n", crc32c(body.as_bytes())) {
        return Err("damaged, or changed by hand: its checksum is not that of its text".to_owned());
    }
    Ok(body)
}

/// Whether a key may have this name: 1 to 255 visible ASCII characters.
pub(super) fn is_name(name: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

const FIRST_LINE: &str = "moldau-keys 1\n";
const NOTICE: &str = "# Anyone who can read this file can read every record under its keys.\n\
                      # It is changed by `moldau proxy keys`, which writes the last line.\n";
const CHECK: &str = "crc32c ";
const NOT_A_SECRET: &str = "the secret is not 32 bytes in base64";

/// The longest name: longer than a topic's, short enough for each record to hold it.
pub(super) const NAME_BYTES_MAX: usize = 255;
/// Most keys in a file: a key per topic of a large cluster.
pub(super) const KEYS_MAX: usize = 10_000;
/// Most versions of a key: one a day for more than two years.
pub(super) const VERSIONS_MAX: usize = 1000;
/// A bound for each line: a name and what stands before it, or a version with its secret.
const LINE_BYTES_MAX: usize = 300;
