//! How does latency grow with the load? A survey of rates, of which this is the page.

mod page;

pub use page::page;
