//! A span around the handling of each record.

use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::Layer;
use crate::context::Context;
use crate::failure::Failure;
use crate::handler::{Handler, Work};

/// Handles each record or batch in a span of `tracing`, named `record`, with the fields `topic`,
/// `partition`, `offset` (of the first record), `records`, `attempt`, and in the end `outcome`:
/// `ok`, or the kind of the failure. A header `traceparent` (W3C Trace Context) of the first record
/// gives `trace_id` and `parent_id`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Trace;

impl<W: Work> Layer<W> for Trace {
    async fn call<H: Handler<W>>(
        &self,
        inner: &H,
        work: W,
        context: Context<'_>,
    ) -> Result<(), Failure> {
        let span = span(&work, context);
        let called = inner.call(work, context).instrument(span.clone()).await;
        span.record("outcome", called.as_ref().map_or_else(Failure::kind, |()| "ok"));
        called
    }
}

fn span(work: &impl Work, context: Context<'_>) -> Span {
    let Some(first) = work.messages().next() else { return Span::none() };
    let span = tracing::info_span!(
        "record",
        topic = first.topic(),
        partition = first.partition(),
        offset = first.offset(),
        records = work.messages().count(),
        attempt = context.attempt(),
        trace_id = Empty,
        parent_id = Empty,
        outcome = Empty,
    );
    if !span.is_disabled()
        && let Some((trace, parent)) = first.header("traceparent").and_then(trace_parent)
    {
        span.record("trace_id", trace).record("parent_id", parent);
    }
    span
}

/// The trace and parent ids of a `traceparent` header: version, trace, parent and flags in lower
/// hexadecimal digits, with `-` between them. Later versions may add to it.
fn trace_parent(header: &[u8]) -> Option<(&str, &str)> {
    let mut parts = std::str::from_utf8(header).ok()?.split('-');
    let mut next = |len: usize| {
        let is_hex = |digit: u8| matches!(digit, b'0'..=b'9' | b'a'..=b'f');
        parts.next().filter(|it| it.len() == len && it.bytes().all(is_hex))
    };
    let (version, trace, parent, _flags) = (next(2)?, next(32)?, next(16)?, next(2)?);
    let is_zero = |id: &str| id.bytes().all(|digit| digit == b'0');
    let is_valid = version != "ff" && !is_zero(trace) && !is_zero(parent);
    (is_valid && (version != "00" || parts.next().is_none())).then_some((trace, parent))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
    const PARENT: &str = "b7ad6b7169203331";

    #[test]
    fn a_trace_parent_is_taken_only_as_the_specification_says() {
        let of = |text: String| trace_parent(text.as_bytes()).map(|(trace, _)| trace.to_owned());
        assert_eq!(of(format!("00-{TRACE}-{PARENT}-01")).as_deref(), Some(TRACE));
        assert_eq!(of(format!("cc-{TRACE}-{PARENT}-01-more")).as_deref(), Some(TRACE));
        let zeros = "0".repeat(32);
        for bad in [
            format!("00-{TRACE}-{PARENT}"),
            format!("00-{TRACE}-{PARENT}-01-more"),
            format!("ff-{TRACE}-{PARENT}-01"),
            format!("00-{zeros}-{PARENT}-01"),
            format!("00-{TRACE}-{}-01", "0".repeat(16)),
            format!("00-{}-{PARENT}-01", TRACE.to_uppercase()),
            String::new(),
        ] {
            assert_eq!(of(bad.clone()), None, "{bad}");
        }
        assert_eq!(trace_parent(&[0xff, 0xfe]), None);
    }
}
