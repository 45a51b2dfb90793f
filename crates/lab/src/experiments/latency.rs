//! How does latency grow with the load? The page of a survey of rates.

mod page;

pub use page::page;
