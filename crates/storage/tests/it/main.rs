//! Storage through its public interface, on real files and on a simulated disk.

mod crashes;
mod damage;
mod logs;
mod on_disk;
mod sim_disk;
mod world;
