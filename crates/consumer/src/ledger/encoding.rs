//! Done offsets as the metadata of an offset commit.
//!
//! The metadata is `m1.` and the base64url form, without padding, of:
//!
//! | field | type | content |
//! |---|---|---|
//! | base | varint | the committed offset |
//! | kind | u8 | 0: runs, 1: bits |
//! | runs | pairs of varints | number of open offsets, then number of done ones, from base on |
//! | bits | bytes | offset `base + i` is done if bit `i % 8` of byte `i / 8` is set |
//!
//! A varint is an unsigned LEB128 number. The form that takes fewer bytes is used; runs if both
//! take the same. Where neither has room for all, the one that reaches further is used, and what
//! lies beyond it is handled again after a restart.
//!
//! The base is there because tools that move a committed offset may keep its metadata. It would
//! then mark other records as done.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64_URL;
use moldau_records::varint;

/// Longest metadata of a commit that brokers accept (`offset.metadata.max.bytes`).
pub const METADATA_BYTES_MAX: usize = 4096;

/// Most bytes of runs or bits: base and kind take 11 more, base64 turns 3 into 4.
pub(super) const PAYLOAD_BYTES_MAX: usize =
    (METADATA_BYTES_MAX - PREFIX.len()) / 4 * 3 - varint::LEN_64_MAX - 1;

/// Offsets above the base that bits can always describe.
#[expect(clippy::cast_possible_wrap, reason = "a few thousand")]
pub(super) const SPAN_DENSE_MAX: i64 = PAYLOAD_BYTES_MAX as i64 * 8;

/// Bytes of a pair where each open offset ends at most one run: 1 for each open offset, and 5 for
/// runs that average up to 2^35 offsets.
pub(super) const RUN_PAIR_BYTES: usize = 6;

/// Format and version.
const PREFIX: &str = "m1.";

const KIND_RUNS: u8 = 0;
const KIND_BITS: u8 = 1;

/// Runs of done offsets, first offset to the offset after the last.
type Runs = BTreeMap<i64, i64>;

/// Metadata for a commit of `base` with these runs above it; empty for none.
pub(super) fn encode(base: i64, done: &Runs) -> String {
    if done.is_empty() {
        return String::new();
    }
    let mut payload = Vec::new();
    let runs_end = write_runs(base, done, &mut payload);
    let bits_end = bits_reach(base, done);
    let bits_len = usize::try_from(bits_end - base).map_or(usize::MAX, |bits| bits.div_ceil(8));
    let has_better_bits = bits_end > runs_end || (bits_end == runs_end && bits_len < payload.len());
    if has_better_bits {
        payload.clear();
        payload.resize(bits_len, 0);
        write_bits(base, bits_end, done, &mut payload);
    }
    let mut bytes = Vec::with_capacity(payload.len() + varint::LEN_64_MAX + 1);
    varint::write_u64(&mut bytes, base.cast_unsigned());
    bytes.push(if has_better_bits { KIND_BITS } else { KIND_RUNS });
    bytes.extend_from_slice(&payload);
    let mut metadata = String::with_capacity(METADATA_BYTES_MAX.min(bytes.len() * 2));
    metadata.push_str(PREFIX);
    BASE64_URL.encode_string(&bytes, &mut metadata);
    metadata
}

/// The runs in the metadata of a commit of `offset`; `None` if it holds none for this offset.
pub(super) fn decode(offset: i64, metadata: &str) -> Option<Runs> {
    let bytes = BASE64_URL.decode(metadata.strip_prefix(PREFIX)?).ok()?;
    let mut input = bytes.as_slice();
    if varint::read_u64(&mut input).ok()? != u64::try_from(offset).ok()? {
        return None;
    }
    let (&kind, payload) = input.split_first()?;
    if payload.len() > PAYLOAD_BYTES_MAX {
        return None;
    }
    match kind {
        KIND_RUNS => read_runs(offset, payload),
        KIND_BITS => read_bits(offset, payload),
        _ => None,
    }
}

/// Bytes of all runs.
pub(super) fn runs_bytes(base: i64, done: &Runs) -> usize {
    let mut from = base;
    let mut bytes = 0;
    for (&start, &end) in done {
        bytes += varint_bytes(start - from) + varint_bytes(end - start);
        from = end;
    }
    bytes
}

/// Writes as many runs as fit; returns the offset after the last.
fn write_runs(base: i64, done: &Runs, out: &mut Vec<u8>) -> i64 {
    let mut from = base;
    for (&start, &end) in done {
        if out.len() + varint_bytes(start - from) + varint_bytes(end - start) > PAYLOAD_BYTES_MAX {
            break;
        }
        varint::write_u64(out, (start - from).cast_unsigned());
        varint::write_u64(out, (end - start).cast_unsigned());
        from = end;
    }
    from
}

/// The offset after the last done one that bits can describe.
fn bits_reach(base: i64, done: &Runs) -> i64 {
    let bound = base.saturating_add(SPAN_DENSE_MAX);
    done.range(..bound).next_back().map_or(base, |(_, end)| bound.min(*end))
}

fn write_bits(base: i64, bits_end: i64, done: &Runs, out: &mut [u8]) {
    for (&start, &end) in done.range(..bits_end) {
        for bit in (start - base)..(end.min(bits_end) - base) {
            let byte = usize::try_from(bit / 8).ok().and_then(|index| out.get_mut(index));
            if let Some(byte) = byte {
                *byte |= 1 << (bit % 8);
            }
        }
    }
}

fn read_runs(base: i64, mut payload: &[u8]) -> Option<Runs> {
    let mut done = Runs::new();
    let mut from = base;
    while !payload.is_empty() {
        let open = i64::try_from(varint::read_u64(&mut payload).ok()?).ok()?;
        let len = i64::try_from(varint::read_u64(&mut payload).ok()?).ok()?;
        if open == 0 || len == 0 {
            return None;
        }
        let start = from.checked_add(open)?;
        from = start.checked_add(len)?;
        done.insert(start, from);
    }
    Some(done)
}

fn read_bits(base: i64, payload: &[u8]) -> Option<Runs> {
    let first_is_done = payload.first().is_none_or(|byte| byte & 1 == 1);
    if first_is_done || payload.last() == Some(&0) {
        return None;
    }
    base.checked_add(SPAN_DENSE_MAX)?;
    let mut done = Runs::new();
    let mut run: Option<(i64, i64)> = None;
    let offsets = (base..).zip(payload.iter().flat_map(|byte| (0..8).map(move |bit| (byte, bit))));
    for (offset, (byte, bit)) in offsets {
        let is_done = byte >> bit & 1 == 1;
        run = match (run, is_done) {
            (Some((start, _)), true) => Some((start, offset + 1)),
            (None, true) => Some((offset, offset + 1)),
            (Some((start, end)), false) => {
                done.insert(start, end);
                None
            }
            (None, false) => None,
        };
    }
    done.extend(run);
    Some(done)
}

/// Bytes of a number that is not negative as a varint.
fn varint_bytes(number: i64) -> usize {
    let bits = u64::BITS - number.cast_unsigned().leading_zeros();
    usize::try_from(bits.div_ceil(7).max(1)).unwrap_or(varint::LEN_64_MAX)
}
