//! CRC32C (Castagnoli, RFC 3720 appendix B.4), the checksum of record batches.

use crc_fast::{CrcAlgorithm, Digest};

/// CRC32C of `bytes`, by carry-less multiplication where the CPU has it.
#[must_use]
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC32C of bytes that come in pieces.
#[derive(Debug)]
pub struct Crc32c(Digest);

impl Crc32c {
    /// The CRC of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc32Iscsi))
    }

    /// Takes in the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The CRC of all pieces so far, as if they lay one after the other.
    #[must_use]
    pub fn value(&self) -> u32 {
        u32::try_from(self.0.finalize()).expect("a 32-bit CRC fits into 32 bits")
    }
}

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc_3720_vectors_hold() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        let ascending: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&ascending), 0x46dd_794e);
        assert_eq!(crc32c(b""), 0);
    }

    #[test]
    fn every_split_gives_the_crc_of_the_whole() {
        let bytes: Vec<u8> = (0..600u32).map(|i| (i * 7 % 251) as u8).collect();
        for at in 0..bytes.len() {
            let (head, tail) = bytes.split_at(at);
            let mut crc = Crc32c::new();
            crc.update(head);
            crc.update(tail);
            assert_eq!(crc.value(), crc32c(&bytes));
        }
    }
}
