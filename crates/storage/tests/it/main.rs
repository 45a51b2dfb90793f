//! Storage through its public interface, on real files and on a simulated disk.

mod on_disk;
mod world;
