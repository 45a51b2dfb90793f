//! Kroxylicious's in-memory service with keys from the configuration, for tests without a
//! service: what is written here it reads there, and the reverse.
//!
//! | bytes | field of its wrapped data key |
//! |---|---|
//! | 0 | bits of the tag: 128 |
//! | 1 | bytes of the IV: 12 |
//! | 2..14 | IV |
//! | 14..30 | UUID of the key encryption key |
//! | 30..78 | the data key under AES-256-GCM without associated data, and the tag |

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use zeroize::Zeroizing;

use super::local_kek::{IV_BYTES, KEK_BYTES, LocalKek, WRAPPED_BYTES, random_iv};
use super::{KekId, Kms, KmsFuture, WrappedDataKey};
use crate::{DataKey, Edek, Error, KmsError};

/// One key encryption key of the configuration.
pub struct MemoryKek {
    uuid: [u8; UUID_BYTES],
    alias: String,
    kek: LocalKek,
}

impl MemoryKek {
    /// A key from the text of its UUID and from its 32 bytes in base64, as Kroxylicious's
    /// configuration has them.
    ///
    /// # Errors
    /// [`Error::Setting`]; the text of the key is not repeated.
    pub fn parse(uuid: &str, key: &Zeroizing<String>, alias: &str) -> Result<Self, Error> {
        let setting = |setting, reason: String| Error::Setting { setting, reason };
        let uuid =
            parse_uuid(uuid).ok_or_else(|| setting("uuid", format!("{uuid:?} is not a UUID")))?;
        let bytes = BASE64.decode(key.as_bytes()).map(Zeroizing::new).ok();
        let bytes = bytes
            .as_deref()
            .and_then(|bytes| <&[u8; KEK_BYTES]>::try_from(bytes.as_slice()).ok())
            .ok_or_else(|| setting("key", format!("not {KEK_BYTES} bytes in base64")))?;
        Ok(Self { uuid, alias: alias.to_owned(), kek: LocalKek::new(bytes) })
    }
}

/// The in-memory service.
pub struct MemoryKms {
    keks: Vec<MemoryKek>,
}

impl MemoryKms {
    /// A service with these keys.
    #[must_use]
    pub fn new(keks: Vec<MemoryKek>) -> Self {
        Self { keks }
    }

    fn resolve(&self, alias: &str) -> Result<KekId, KmsError> {
        let kek = self.keks.iter().find(|kek| kek.alias == alias);
        let kek = kek.ok_or_else(|| KmsError::UnknownKey(alias.to_owned()))?;
        Ok(KekId(format_uuid(kek.uuid).into()))
    }

    fn generate(
        &self,
        id: &KekId,
        iv: [u8; IV_BYTES],
        key: DataKey,
    ) -> Result<WrappedDataKey, KmsError> {
        let unknown = || KmsError::UnknownKey(id.0.to_string());
        let uuid = parse_uuid(&id.0).ok_or_else(unknown)?;
        let kek = self.keks.iter().find(|kek| kek.uuid == uuid).ok_or_else(unknown)?;
        let mut edek = vec![TAG_BITS, IV_LEN];
        edek.extend_from_slice(&iv);
        edek.extend_from_slice(&uuid);
        edek.extend(kek.kek.wrap(iv, &[], &key));
        Ok(WrappedDataKey { key, edek: Edek(edek.into()) })
    }

    fn decrypt(&self, edek: &Edek) -> Result<DataKey, KmsError> {
        let parts = Parts::read(&edek.0)?;
        let kek = self.keks.iter().find(|kek| kek.uuid == parts.uuid);
        let kek = kek.ok_or_else(|| KmsError::UnknownKey(format_uuid(parts.uuid)))?;
        let key = kek.kek.unwrap(parts.iv, &[], &parts.wrapped);
        key.ok_or(KmsError::DamagedEdek("its key encryption key does not open it"))
    }
}

impl Kms for MemoryKms {
    fn resolve_alias<'a>(&'a self, alias: &'a str) -> KmsFuture<'a, KekId> {
        Box::pin(async move { self.resolve(alias) })
    }

    fn generate_data_key<'a>(&'a self, kek: &'a KekId) -> KmsFuture<'a, WrappedDataKey> {
        Box::pin(async move { self.generate(kek, random_iv(), DataKey::random()) })
    }

    fn decrypt_edek<'a>(&'a self, edek: &'a Edek) -> KmsFuture<'a, DataKey> {
        Box::pin(async move { self.decrypt(edek) })
    }
}

/// The fields of a wrapped data key.
struct Parts {
    iv: [u8; IV_BYTES],
    uuid: [u8; UUID_BYTES],
    wrapped: [u8; WRAPPED_BYTES],
}

impl Parts {
    fn read(edek: &[u8]) -> Result<Self, KmsError> {
        let length = KmsError::DamagedEdek("not of 78 bytes");
        let (&head, rest) = edek.split_first_chunk::<2>().ok_or_else(|| length.clone())?;
        if head != [TAG_BITS, IV_LEN] {
            return Err(KmsError::DamagedEdek("not a 128-bit tag and a 12-byte IV"));
        }
        let (&iv, rest) = rest.split_first_chunk().ok_or_else(|| length.clone())?;
        let (&uuid, rest) = rest.split_first_chunk().ok_or_else(|| length.clone())?;
        let &wrapped = <&[u8; WRAPPED_BYTES]>::try_from(rest).map_err(|_| length)?;
        Ok(Self { iv, uuid, wrapped })
    }
}

/// Reads `00112233-4455-6677-8899-aabbccddeeff`.
fn parse_uuid(text: &str) -> Option<[u8; UUID_BYTES]> {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    if groups != [8, 4, 4, 4, 12] || !text.bytes().all(|b| b == b'-' || b.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&text.replace('-', ""), 16).ok().map(u128::to_be_bytes)
}

fn format_uuid(uuid: [u8; UUID_BYTES]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(uuid));
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

const UUID_BYTES: usize = 16;
const TAG_BITS: u8 = 128;
const IV_LEN: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn kms() -> MemoryKms {
        let key: Vec<u8> = (0..32).collect();
        let key = Zeroizing::new(BASE64.encode(key));
        let uuid = "00112233-4455-6677-8899-aabbccddeeff";
        MemoryKms::new(vec![MemoryKek::parse(uuid, &key, "KEK_orders").unwrap()])
    }

    fn counted<const N: usize>(first: u8) -> [u8; N] {
        std::array::from_fn(|i| first + u8::try_from(i).unwrap())
    }

    fn hex(text: &str) -> Vec<u8> {
        (0..text.len())
            .step_by(2)
            .map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap())
            .collect()
    }

    /// The key's part of the published vector: KEK 00..1f, IV a0..ab, data key 20..3f.
    const VECTOR: &str = "800ca0a1a2a3a4a5a6a7a8a9aaab00112233445566778899aabbccddeeff\
                          c6395e0e61ee24984a4cadf82b57eef1409d6b23a682745ba4371cbd43964b3e\
                          4d1b9a3a0cd4dfc848ae78ece84cf3c2";

    #[test]
    fn the_published_vector_is_made_and_opened() {
        let kms = kms();
        let id = kms.resolve("KEK_orders").unwrap();
        assert_eq!(&*id.0, "00112233-4455-6677-8899-aabbccddeeff");
        let key = DataKey::new(Zeroizing::new(counted(0x20)));
        let iv = counted(0xa0);
        let wrapped = kms.generate(&id, iv, key).unwrap();
        assert_eq!(&*wrapped.edek.0, hex(VECTOR));
        assert_eq!(kms.decrypt(&wrapped.edek).unwrap().bytes(), wrapped.key.bytes());
    }

    #[test]
    fn an_unknown_alias_or_key_is_unknown() {
        let kms = kms();
        assert_eq!(kms.resolve("KEK_other"), Err(KmsError::UnknownKey("KEK_other".into())));
        let mut edek = hex(VECTOR);
        edek[14] = 0xff;
        let unknown = kms.decrypt(&Edek(edek.into())).err();
        let uuid = "ff112233-4455-6677-8899-aabbccddeeff";
        assert_eq!(unknown, Some(KmsError::UnknownKey(uuid.into())));
        let id = KekId("not a uuid".into());
        assert!(kms.generate(&id, random_iv(), DataKey::random()).is_err());
    }

    #[test]
    fn every_changed_or_missing_byte_is_noticed() {
        let kms = kms();
        let good = hex(VECTOR);
        for at in 0..good.len() {
            let mut edek = good.clone();
            edek[at] ^= 1;
            assert!(kms.decrypt(&Edek(edek.into())).is_err(), "byte {at} was changed");
            assert!(matches!(kms.decrypt(&Edek(good[..at].into())), Err(KmsError::DamagedEdek(_))));
        }
    }

    #[test]
    fn a_key_or_uuid_of_another_shape_is_refused_without_showing_it() {
        let key = Zeroizing::new("c2VjcmV0".to_owned());
        let uuid = "00112233-4455-6677-8899-aabbccddeeff";
        let error = MemoryKek::parse(uuid, &key, "a").err().unwrap().to_string();
        assert!(error.starts_with("key:") && !error.contains("c2VjcmV0"), "{error}");
        for uuid in ["", "00112233445566778899aabbccddeeff", "0011223g-4455-6677-8899-aabbccddeeff"]
        {
            assert!(MemoryKek::parse(uuid, &key, "a").is_err());
        }
    }
}
