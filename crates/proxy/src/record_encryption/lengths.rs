//! Lengths and counts in front of what is not complete yet.

use moldau_records::varint;

/// Appends the length of bytes or the count of an array.
pub(super) fn write(out: &mut Vec<u8>, length: usize, flexible: bool) {
    // A frame that is too long for its lengths is refused as a whole.
    let length = u32::try_from(length).unwrap_or(u32::MAX - 1);
    if flexible {
        varint::write_u32(out, length.saturating_add(1));
    } else {
        out.extend_from_slice(&length.to_be_bytes());
    }
}

/// Bytes that a length takes.
pub(super) fn size(length: usize, flexible: bool) -> usize {
    if !flexible {
        return 4;
    }
    let bits = usize::BITS - length.saturating_add(1).leading_zeros();
    usize::try_from(bits.div_ceil(7)).unwrap_or(1)
}

/// Where the length at the end of `out` begins, if it is `length` and takes no more bytes than it
/// needs.
pub(super) fn find(out: &[u8], length: usize, flexible: bool) -> Option<usize> {
    let mut written = Vec::with_capacity(SIZE_MAX);
    write(&mut written, length, flexible);
    out.ends_with(&written).then(|| out.len() - written.len())
}

/// Writes `length` over one of `guess` at `at`. What follows is moved if they differ in size.
pub(super) fn correct(out: &mut Vec<u8>, at: usize, guess: usize, length: usize, flexible: bool) {
    if guess == length {
        return;
    }
    let mut written = Vec::with_capacity(SIZE_MAX);
    write(&mut written, length, flexible);
    out.splice(at..at + size(guess, flexible), written);
}

/// Appends a text or null, which is at most as long as a text may be.
pub(super) fn write_text(out: &mut Vec<u8>, text: Option<&str>, flexible: bool) {
    match text {
        Some(text) if flexible => write(out, text.len(), true),
        Some(text) => {
            let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
            out.extend_from_slice(&length.to_be_bytes());
        }
        None if flexible => out.push(0),
        None => out.extend_from_slice(&(-1_i16).to_be_bytes()),
    }
    out.extend_from_slice(text.unwrap_or_default().as_bytes());
}

/// Most bytes that a length takes.
const SIZE_MAX: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrected_length_leaves_what_is_around_it() {
        for flexible in [false, true] {
            for guess in [0, 126, 127, 16_382, 16_383, 2_000_000] {
                for length in [0, 126, 127, 16_382, 16_383, 2_000_000] {
                    let mut out = b"before".to_vec();
                    write(&mut out, guess, flexible);
                    assert_eq!(out.len(), 6 + size(guess, flexible));
                    out.extend_from_slice(b"after");
                    correct(&mut out, 6, guess, length, flexible);
                    let mut expected = b"before".to_vec();
                    write(&mut expected, length, flexible);
                    expected.extend_from_slice(b"after");
                    assert_eq!(out, expected, "{guess} {length}");
                }
            }
        }
    }
}
