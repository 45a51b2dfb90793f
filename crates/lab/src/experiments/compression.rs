//! Which codec? The page of a survey of codecs.

mod page;

pub use page::page;
