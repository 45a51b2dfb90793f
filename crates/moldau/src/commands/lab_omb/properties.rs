//! The blocks of Java properties in a driver file.

use crate::config::At;

/// A property with its place.
pub(super) struct Property<'a> {
    pub(super) key: &'a str,
    pub(super) value: &'a str,
    /// The line of the file, from 1.
    pub(super) line: usize,
}

/// The properties of a block, which is somewhere in `text`.
pub(super) fn properties<'a>(block: &'a At<String>, text: &str) -> Vec<Property<'a>> {
    let first = block.line().and_then(|line| usize::try_from(line).ok()).unwrap_or(1);
    let mut lines = text.lines().enumerate().skip(first - 1);
    let mut properties = Vec::new();
    for line in block.value.lines() {
        let written = line.trim();
        // The block begins below its key, or behind it if it is one line.
        let place = lines.find(|(_, known)| known.trim().ends_with(written));
        if written.is_empty() || written.starts_with(['#', '!']) {
            continue;
        }
        let end = written.find(|c: char| "=:".contains(c) || c.is_whitespace());
        let (key, rest) = written.split_at(end.unwrap_or(written.len()));
        let value = rest.trim_start_matches(|c: char| "=:".contains(c) || c.is_whitespace());
        properties.push(Property { key, value, line: place.map_or(first, |(at, _)| at + 1) });
    }
    properties
}
