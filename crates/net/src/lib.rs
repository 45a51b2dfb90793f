//! Network threads, listeners, frames and pipelined connections, with their limits.
