//! What the pages of surveys share.

#[cfg(test)]
pub(crate) mod sample;

use crate::page::{self, Column, Detail, Table};
use crate::survey::{Estimate, Source, SurveyRecord};
use moldau_measure::numbers::plain;

/// What was expected beforehand, where it was published, and remarks.
pub(crate) fn expected(hypothesis: &str, source: Option<&Source>, remarks: &[String]) -> Detail {
    let mut text = vec![format!("Expected: {}", hypothesis.trim())];
    text.extend(source.map(|source| format!("Source: {}, {}", source.title, source.url)));
    text.extend(remarks.iter().cloned());
    Detail::words("What was expected", text)
}

/// The same of a survey, and what is missing.
pub(crate) fn question(record: &SurveyRecord) -> Detail {
    let left_out = Table {
        title: "Systems that were left out".into(),
        about: String::new(),
        columns: vec![Column::words("system"), Column::words("reason")],
        rows: record.left_out.iter().map(|it| vec![it.system.clone(), it.reason.clone()]).collect(),
    };
    let tables = if left_out.rows.is_empty() { Vec::new() } else { vec![left_out] };
    let expected = expected(&record.hypothesis, record.source.as_ref(), &record.remarks);
    Detail { tables, ..expected }
}

impl From<Estimate> for page::Estimate {
    fn from(found: Estimate) -> Self {
        Self { value: found.mean, interval: found.interval.map(|it| (it.low, it.high)) }
    }
}

/// A figure in another unit with its interval, in words.
pub(crate) fn words(found: &Estimate, scale: f64) -> String {
    let mean = plain(found.mean * scale);
    found.interval.map_or(mean.clone(), |it| {
        format!("{mean} [{}, {}]", plain(it.low * scale), plain(it.high * scale))
    })
}
