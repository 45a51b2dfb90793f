//! Which codec? A survey of codecs, of which this is the page.

mod page;

pub use page::page;
