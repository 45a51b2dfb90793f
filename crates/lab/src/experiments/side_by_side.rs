//! Whole systems against each other: throughput at several shapes, and latency at a fixed rate.
