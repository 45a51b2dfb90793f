//! Ids of members, which must be hard to guess: who knows one may act for its member.

use moldau_protocol::Uuid;

/// Characters that a member id takes of what the member calls itself: the whole would not fit the
/// 16-bit length of a string with what is added to it.
const MEMBER_NAME_CHARACTERS_MAX: usize = 255;

/// Makes member ids. In a classic group: what the member calls itself, a dash, and a random UUID
/// (version 4).
#[derive(Debug)]
pub(crate) struct MemberIds {
    state: u64,
}

impl MemberIds {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An id for a member of the consumer protocol.
    pub(crate) fn uuid(&mut self) -> Uuid {
        let bits = (u128::from(self.random()) << 64) | u128::from(self.random());
        Uuid::from_bytes(bits.to_be_bytes())
    }

    pub(crate) fn next(&mut self, prefix: &str) -> String {
        let (high, low) = (self.random(), self.random());
        let (a, b, c) = (high >> 32, (high >> 16) & 0xffff, high & 0x0fff);
        let (d, e) = ((low >> 48) & 0x3fff | 0x8000, low & 0xffff_ffff_ffff);
        let end = prefix.char_indices().nth(MEMBER_NAME_CHARACTERS_MAX);
        let prefix = end.map_or(prefix, |(end, _)| &prefix[..end]);
        format!("{prefix}-{a:08x}-{b:04x}-4{c:03x}-{d:04x}-{e:012x}")
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
