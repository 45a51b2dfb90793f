use std::cell::RefCell;

/// Size of a receive buffer. One read takes what a socket commonly holds; more does not lower the
/// cost per byte and falls out of the processor's second-level cache.
pub(crate) const BUFFER_BYTES: usize = 256 * 1024;

/// Buffers that a thread keeps for the next connection that reads: 8 MiB.
const KEPT_MAX: usize = 32;

thread_local! {
    static KEPT: RefCell<Vec<Box<[u8]>>> = const { RefCell::new(Vec::new()) };
}

/// A buffer of [`BUFFER_BYTES`]. A connection holds one only while bytes are in it, so that idle
/// connections cost none and busy ones share few, which stay in the cache.
pub(crate) fn take() -> Box<[u8]> {
    let kept = KEPT.with_borrow_mut(Vec::pop);
    kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice())
}

/// Gives a buffer back.
pub(crate) fn give(buffer: Box<[u8]>) {
    KEPT.with_borrow_mut(|kept| {
        if kept.len() < KEPT_MAX {
            kept.push(buffer);
        }
    });
}
