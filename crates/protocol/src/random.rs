//! Random values for tests: every field that a version has is filled.

use bytes::Bytes;

use crate::tagged::RawTaggedField;
use crate::uuid::Uuid;

/// A value that can be filled at random.
pub(crate) trait Random: Sized {
    /// A value that a message of `version` can carry.
    fn random(generator: &mut Generator, version: i16, flexible: bool) -> Self;
}

/// A seeded source of values (SplitMix64).
pub(crate) struct Generator {
    state: u64,
    /// Elements that arrays may still have, so that nested arrays stay small.
    elements: usize,
    /// Whether everything but numbers takes the form of the fewest bytes.
    smallest: bool,
}

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self { state: seed, elements: 40, smallest: false }
    }

    /// A source of the smallest values, in arrays that are not empty.
    pub(crate) fn smallest() -> Self {
        Self { state: 0, elements: 40, smallest: true }
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).expect("a usize fits 64 bits");
        usize::try_from(self.next() % bound.max(1)).expect("less than a usize")
    }

    pub(crate) fn bytes(&mut self, len_max: usize) -> Bytes {
        let len = if self.smallest { 0 } else { self.below(len_max + 1) };
        (0..len).map(|_| self.next().to_le_bytes()[0]).collect()
    }

    pub(crate) fn nullable<T: Random>(
        &mut self,
        nullable: bool,
        version: i16,
        flexible: bool,
    ) -> Option<T> {
        let null = nullable && !self.smallest && self.below(4) == 0;
        (!null).then(|| T::random(self, version, flexible))
    }

    /// Tags far above those that Kafka has given out.
    pub(crate) fn unknown_tagged_fields(&mut self) -> Vec<RawTaggedField> {
        let some = !self.smallest && self.below(4) == 0;
        let count = if some { self.below(3) } else { 0 };
        let mut tag = 100;
        (0..count)
            .map(|_| {
                tag += 1 + u32::try_from(self.below(200)).expect("small");
                RawTaggedField { tag, data: self.bytes(20) }
            })
            .collect()
    }
}

macro_rules! numbers {
    ($($type:ident),*) => {$(
        impl Random for $type {
            fn random(generator: &mut Generator, _: i16, _: bool) -> Self {
                let bytes = generator.next().to_le_bytes();
                let mut own = [0; size_of::<$type>()];
                for (to, from) in own.iter_mut().zip(bytes) {
                    *to = from;
                }
                $type::from_le_bytes(own)
            }
        }
    )*};
}

numbers!(i8, i16, u16, i32, u32, i64);

impl Random for f64 {
    fn random(generator: &mut Generator, version: i16, flexible: bool) -> Self {
        Self::from(i32::random(generator, version, flexible)) / 16.0
    }
}

impl Random for bool {
    fn random(generator: &mut Generator, _: i16, _: bool) -> Self {
        generator.below(2) == 1
    }
}

impl Random for Uuid {
    fn random(generator: &mut Generator, _: i16, _: bool) -> Self {
        let (high, low) = (generator.next(), generator.next());
        Self::from_bytes((u128::from(high) << 64 | u128::from(low)).to_be_bytes())
    }
}

impl Random for String {
    fn random(generator: &mut Generator, _: i16, _: bool) -> Self {
        // Longer than 127 bytes now and then, so that lengths of two bytes occur.
        let len = match generator.below(16) {
            _ if generator.smallest => 0,
            0 => 130,
            _ => generator.below(12),
        };
        (0..len).map(|_| ['a', 'Z', '0', '.', 'ž', '€'][generator.below(6)]).collect()
    }
}

impl Random for Bytes {
    fn random(generator: &mut Generator, _: i16, _: bool) -> Self {
        generator.bytes(200)
    }
}

impl<T: Random> Random for Vec<T> {
    fn random(generator: &mut Generator, version: i16, flexible: bool) -> Self {
        let count = if generator.smallest { 2 } else { generator.below(4) };
        let count = count.min(generator.elements);
        generator.elements -= count;
        (0..count).map(|_| T::random(generator, version, flexible)).collect()
    }
}
