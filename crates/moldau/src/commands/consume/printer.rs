//! Records on their way to stdout, and those that cannot be read.

use std::io::{self, Write};

use anyhow::bail;
use moldau_client::Fetched;
use moldau_records::{BatchView, Decompressor, RecordView};
use serde::Serialize;

use crate::arguments::ConsumeOptions;
use crate::output;

/// Most bytes that one batch may unpack to.
const BATCH_BYTES_MAX: usize = 256 << 20;

/// Text of a null value, as in Kafka's console consumer. JSON prints `null`.
const NULL: &[u8] = b"null";

/// Writes records until there were enough.
pub(super) struct Printer {
    left: u64,
    json: bool,
    skips_unreadable: bool,
    decompressor: Decompressor,
}

/// Where records come from.
struct Source<'a> {
    topic: &'a str,
    partition: i32,
    /// The records before this offset have been seen already.
    position: i64,
}

/// How the printing of a batch ended before its end.
enum End {
    /// Enough records are printed.
    Enough,
    /// The rest of the batch cannot be read.
    Unreadable(moldau_records::Error),
    /// Stdout is closed.
    Closed(io::Error),
}

impl From<moldau_records::Error> for End {
    fn from(error: moldau_records::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Closed(error)
    }
}

#[derive(Serialize)]
struct Line<'a> {
    partition: i32,
    offset: i64,
    timestamp: i64,
    key: Option<Text<'a>>,
    value: Option<Text<'a>>,
    headers: Vec<(Text<'a>, Option<Text<'a>>)>,
}

/// Bytes as text where they are text, else as a list of numbers.
#[derive(Serialize)]
#[serde(untagged)]
enum Text<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> Text<'a> {
    fn of(bytes: &'a [u8]) -> Self {
        std::str::from_utf8(bytes).map_or(Self::Bytes(bytes), Self::Text)
    }
}

impl Printer {
    pub(super) fn new(options: &ConsumeOptions) -> Self {
        Self {
            left: options.count.unwrap_or(u64::MAX),
            json: options.cluster.json,
            skips_unreadable: options.skip_unreadable,
            decompressor: Decompressor::default(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Prints what was fetched, and returns the offset after the last record that was printed.
    pub(super) fn print_fetched(&mut self, fetched: &Fetched) -> anyhow::Result<i64> {
        let source = Source {
            topic: &fetched.topic.name,
            partition: fetched.partition,
            position: fetched.position,
        };
        let mut stdout = output::stdout();
        let mut next = fetched.position;
        for batch in fetched.batches() {
            if !self.print(&mut stdout, &source, &batch?, &mut next)? {
                return Ok(next);
            }
        }
        // What follows the last record, such as a compacted tail, needs no printing.
        Ok(fetched.next_position)
    }

    /// Prints the records of a batch from `position` on and moves `next` behind the last one that
    /// was printed or left out; `false` once there were enough.
    fn print(
        &mut self,
        out: &mut impl Write,
        source: &Source<'_>,
        batch: &BatchView<'_>,
        next: &mut i64,
    ) -> anyhow::Result<bool> {
        match self.print_readable(out, source, batch, next) {
            Ok(()) => {}
            Err(End::Enough) => return Ok(false),
            Err(End::Closed(error)) => return Err(error.into()),
            Err(End::Unreadable(error)) => {
                let first = batch.base_offset().max(*next);
                let Source { topic, partition, .. } = source;
                let last = batch.last_offset();
                let unreadable =
                    format!("{topic}-{partition}: cannot read offsets {first} to {last}: {error}");
                if !self.skips_unreadable {
                    bail!("{unreadable}; use --skip-unreadable to skip them");
                }
                tracing::warn!("{unreadable}; skipped");
            }
        }
        *next = batch.next_offset();
        Ok(self.left > 0)
    }

    fn print_readable(
        &mut self,
        out: &mut impl Write,
        source: &Source<'_>,
        batch: &BatchView<'_>,
        next: &mut i64,
    ) -> Result<(), End> {
        batch.check_crc()?;
        if batch.is_control() {
            return Ok(());
        }
        for record in batch.records(&mut self.decompressor, BATCH_BYTES_MAX)? {
            let record = record?;
            if record.offset() < source.position {
                continue;
            }
            if self.left == 0 {
                return Err(End::Enough);
            }
            if self.json {
                write_json(out, source.partition, &record)?;
            } else {
                out.write_all(record.value().unwrap_or(NULL))?;
                out.write_all(b"\n")?;
            }
            self.left -= 1;
            *next = record.offset() + 1;
        }
        Ok(())
    }
}

fn write_json(out: &mut impl Write, partition: i32, record: &RecordView<'_>) -> Result<(), End> {
    let headers = record.headers()?;
    let line = Line {
        partition,
        offset: record.offset(),
        timestamp: record.timestamp(),
        key: record.key().map(Text::of),
        value: record.value().map(Text::of),
        headers: headers.map(|it| (Text::of(it.key), it.value.map(Text::of))).collect(),
    };
    serde_json::to_writer(&mut *out, &line).map_err(io::Error::from)?;
    out.write_all(b"\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use moldau_records::{
        BatchBuilder, BatchOptions, Compression, Compressor, crc32c, iter_batches,
    };

    use super::*;

    fn batch(base_offset: i64, values: &[Option<&str>]) -> Vec<u8> {
        let options = BatchOptions { base_offset, ..BatchOptions::default() };
        let mut builder = BatchBuilder::new(options);
        for value in values {
            builder.append(1, None, value.map(str::as_bytes), []).unwrap();
        }
        builder.finish(Compression::None, &mut Compressor::default()).unwrap().to_vec()
    }

    /// What is printed of the batches, and how it ends.
    fn printed(
        skips_unreadable: bool,
        position: i64,
        batches: &[Vec<u8>],
    ) -> (String, anyhow::Result<i64>) {
        let decompressor = Decompressor::default();
        let mut printer = Printer { left: 5, json: false, skips_unreadable, decompressor };
        let source = Source { topic: "orders", partition: 3, position };
        let (mut out, mut next) = (Vec::new(), position);
        let mut end = Ok(());
        for batch in iter_batches(&batches.concat()).map(Result::unwrap) {
            match printer.print(&mut out, &source, &batch, &mut next) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => end = end.and(Err(error)),
            }
        }
        (String::from_utf8(out).unwrap(), end.map(|()| next))
    }

    /// Three records; the second is cut short.
    fn torn(base_offset: i64) -> Vec<u8> {
        let mut bytes = batch(base_offset, &[Some("whole"), Some("torn"), Some("lost")]);
        let second = 61 + 12;
        bytes[second] -= 2;
        let crc = crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        bytes
    }

    #[test]
    fn offsets_that_cannot_be_read_are_named() {
        let (out, end) = printed(false, 7, &[batch(7, &[Some("a")]), torn(8)]);
        assert_eq!(out, "a\nwhole\n");
        let error = end.unwrap_err().to_string();
        assert!(error.contains("orders-3") && error.contains("9 to 10"), "{error}");
        assert!(error.contains("--skip-unreadable"), "{error}");
    }

    #[test]
    fn what_follows_them_is_printed_if_they_are_skipped() {
        let mut damaged = batch(11, &[Some("x")]);
        *damaged.last_mut().unwrap() ^= 1;
        let (out, end) = printed(true, 8, &[torn(8), damaged, batch(12, &[Some("b")])]);
        assert_eq!(out, "whole\nb\n");
        assert_eq!(end.unwrap(), 13);
    }

    #[test]
    fn null_and_empty_values_differ() {
        let (out, end) = printed(false, 1, &[batch(0, &[Some("seen"), None, Some(""), Some("c")])]);
        assert_eq!(out, "null\n\nc\n");
        assert_eq!(end.unwrap(), 4);
    }

    #[test]
    fn printing_ends_behind_the_last_record_that_was_wanted() {
        let values = [Some("v"); 4];
        let (out, end) = printed(false, 0, &[batch(0, &values), batch(4, &values)]);
        assert_eq!((out.as_str(), end.unwrap()), ("v\nv\nv\nv\nv\n", 5));
    }
}
