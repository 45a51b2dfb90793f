//! Variable-length integers: LEB128 for unsigned values, zigzag on top of it for signed ones.
//!
//! Record fields are signed (KIP-98), the flexible protocol versions use the unsigned form
//! (KIP-482). A value takes at most 5 bytes for 32 bits and 10 for 64; what is longer, or carries
//! bits beyond its type, is refused. Zero padding within those lengths is read, as Java reads it.

use crate::Error;

const CONTINUES: u8 = 0x80;
const BITS_PER_BYTE: u32 = 7;

/// Most bytes that a 32-bit varint takes.
pub const LEN_32_MAX: usize = 5;
/// Most bytes that a 64-bit varint takes.
pub const LEN_64_MAX: usize = 10;

/// Reads an unsigned 32-bit value and moves `input` past it; on an error `input` stays.
///
/// # Errors
/// [`Error::InvalidVarint`] when the bytes end early or the value needs more than 32 bits.
#[inline]
pub fn read_u32(input: &mut &[u8]) -> Result<u32, Error> {
    if let Some((value, rest)) = read_short(input) {
        *input = rest;
        return Ok(u32::from(value));
    }
    let wide = read_long(input, LEN_32_MAX)?;
    u32::try_from(wide.value).map_err(|_| Error::InvalidVarint).inspect(|_| *input = wide.rest)
}

/// Reads an unsigned 64-bit value and moves `input` past it; on an error `input` stays.
///
/// # Errors
/// [`Error::InvalidVarint`] when the bytes end early or the value needs more than 64 bits.
#[inline]
pub fn read_u64(input: &mut &[u8]) -> Result<u64, Error> {
    if let Some((value, rest)) = read_short(input) {
        *input = rest;
        return Ok(u64::from(value));
    }
    let wide = read_long(input, LEN_64_MAX)?;
    *input = wide.rest;
    Ok(wide.value)
}

/// Reads a zigzag 32-bit value and moves `input` past it.
///
/// # Errors
/// As [`read_u32`].
#[inline]
pub fn read_i32(input: &mut &[u8]) -> Result<i32, Error> {
    let zigzag = read_u32(input)?;
    Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
}

/// Reads a zigzag 64-bit value and moves `input` past it.
///
/// # Errors
/// As [`read_u64`].
#[inline]
pub fn read_i64(input: &mut &[u8]) -> Result<i64, Error> {
    let zigzag = read_u64(input)?;
    Ok((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
}

/// A value of one or two bytes, as most are, and what follows it.
#[inline]
fn read_short(input: &[u8]) -> Option<(u16, &[u8])> {
    match input {
        [first, rest @ ..] if *first < CONTINUES => Some((u16::from(*first), rest)),
        [first, second, rest @ ..] if *second < CONTINUES => {
            let low = u16::from(*first & !CONTINUES);
            Some((u16::from(*second) << BITS_PER_BYTE | low, rest))
        }
        _ => None,
    }
}

struct Wide<'a> {
    value: u64,
    rest: &'a [u8],
}

fn read_long<'a>(input: &&'a [u8], len_max: usize) -> Result<Wide<'a>, Error> {
    let mut rest: &'a [u8] = input;
    let mut value = 0u64;
    let mut shift = 0;
    for _ in 0..len_max {
        let (&byte, tail) = rest.split_first().ok_or(Error::InvalidVarint)?;
        rest = tail;
        let bits = u64::from(byte & !CONTINUES);
        if shift + BITS_PER_BYTE > u64::BITS && bits >> (u64::BITS - shift) != 0 {
            return Err(Error::InvalidVarint);
        }
        value |= bits << shift;
        if byte < CONTINUES {
            return Ok(Wide { value, rest });
        }
        shift += BITS_PER_BYTE;
    }
    Err(Error::InvalidVarint)
}

/// Appends an unsigned 32-bit value.
#[inline]
pub fn write_u32(out: &mut Vec<u8>, value: u32) {
    write_u64(out, u64::from(value));
}

/// Appends an unsigned 64-bit value.
#[inline]
pub fn write_u64(out: &mut Vec<u8>, mut value: u64) {
    while value >= u64::from(CONTINUES) {
        out.push(low_bits(value) | CONTINUES);
        value >>= BITS_PER_BYTE;
    }
    out.push(low_bits(value));
}

/// Appends a zigzag 32-bit value.
#[inline]
pub fn write_i32(out: &mut Vec<u8>, value: i32) {
    write_u32(out, zigzag_32(value));
}

/// Appends a zigzag 64-bit value.
#[inline]
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    write_u64(out, zigzag_64(value));
}

/// Bytes that [`write_u32`] appends.
#[must_use]
#[inline]
pub const fn len_u32(value: u32) -> usize {
    len_u64(value as u64)
}

/// Bytes that [`write_u64`] appends.
#[must_use]
#[inline]
pub const fn len_u64(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(BITS_PER_BYTE) as usize
}

/// Bytes that [`write_i32`] appends.
#[must_use]
#[inline]
pub const fn len_i32(value: i32) -> usize {
    len_u32(zigzag_32(value))
}

/// Bytes that [`write_i64`] appends.
#[must_use]
#[inline]
pub const fn len_i64(value: i64) -> usize {
    len_u64(zigzag_64(value))
}

const fn zigzag_32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

const fn zigzag_64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

const fn low_bits(value: u64) -> u8 {
    (value & 0x7f) as u8
}

/// Bytes that [`write_nullable`] writes; `None` if the length needs more than 31 bits.
#[inline]
pub(crate) fn nullable_len(bytes: Option<&[u8]>) -> Option<usize> {
    match bytes {
        Some(bytes) => Some(len_i32(i32::try_from(bytes.len()).ok()?) + bytes.len()),
        None => Some(1),
    }
}

/// Appends the length of `bytes`, -1 for `None`, and the bytes.
#[inline]
pub(crate) fn write_nullable(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            let len = i32::try_from(bytes.len()).expect("the length was measured before");
            write_i32(out, len);
            out.extend_from_slice(bytes);
        }
        None => write_i32(out, -1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn signed_values_have_the_bytes_of_protobuf_zigzag() {
        assert_eq!(written(|o| write_i32(o, 0)), [0]);
        assert_eq!(written(|o| write_i32(o, -1)), [1]);
        assert_eq!(written(|o| write_i32(o, 63)), [0x7e]);
        assert_eq!(written(|o| write_i32(o, -64)), [0x7f]);
        assert_eq!(written(|o| write_i32(o, 64)), [0x80, 0x01]);
        assert_eq!(written(|o| write_i32(o, i32::MIN)), [0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert_eq!(
            written(|o| write_i64(o, i64::MIN)),
            [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01]
        );
    }

    #[test]
    fn overlong_and_cut_values_are_refused_and_move_nothing() {
        let six = [0x80, 0x80, 0x80, 0x80, 0x80, 0x00];
        let beyond_32 = [0xff, 0xff, 0xff, 0xff, 0x10];
        let beyond_64 = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02];
        let eleven = [0x80; 11];
        for bytes in [&six[..], &beyond_32, &[0x80], &[]] {
            let mut input = bytes;
            assert_eq!(read_u32(&mut input), Err(Error::InvalidVarint));
            assert_eq!(input, bytes);
        }
        for bytes in [&beyond_64[..], &eleven, &[0xff, 0xff], &[]] {
            let mut input = bytes;
            assert_eq!(read_u64(&mut input), Err(Error::InvalidVarint));
            assert_eq!(input, bytes);
        }
    }

    proptest! {
        #[test]
        fn every_value_comes_back_and_len_is_exact(
            a: u32, b: u64, c: i32, d: i64, shift in 0u32..64
        ) {
            let (b, d) = (b >> shift, d >> shift);
            let mut out = Vec::new();
            write_u32(&mut out, a);
            prop_assert_eq!(out.len(), len_u32(a));
            write_u64(&mut out, b);
            write_i32(&mut out, c);
            write_i64(&mut out, d);
            prop_assert_eq!(out.len(), len_u32(a) + len_u64(b) + len_i32(c) + len_i64(d));
            let mut input = &out[..];
            prop_assert_eq!(read_u32(&mut input), Ok(a));
            prop_assert_eq!(read_u64(&mut input), Ok(b));
            prop_assert_eq!(read_i32(&mut input), Ok(c));
            prop_assert_eq!(read_i64(&mut input), Ok(d));
            prop_assert!(input.is_empty());
        }

        #[test]
        fn random_bytes_never_panic(bytes: Vec<u8>) {
            let mut input = &bytes[..];
            while !input.is_empty() && read_i64(&mut input).is_ok() {}
            let mut input = &bytes[..];
            while !input.is_empty() && read_i32(&mut input).is_ok() {}
        }
    }
}
