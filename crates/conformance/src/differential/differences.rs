//! The differences from Apache Kafka that stay, with the reason for each.

use moldau_protocol::ApiKey;

use super::compare::Found;
use super::session::Request;

/// A field that our broker answers otherwise in some cases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) api: ApiKey,
    /// Names of cases, or beginnings of names that end with `*`.
    pub(super) cases: &'static [&'static str],
    /// The first and the last version that differ.
    pub(super) versions: (i16, i16),
    /// The field in the answer; empty for all of it.
    pub(super) field: &'static str,
    /// What Kafka says, or its beginning, which ends with `*`.
    pub(super) kafka: &'static str,
    /// What our broker says, or its beginning.
    pub(super) ours: &'static str,
    /// One sentence for the page about compatibility.
    pub(super) reason: &'static str,
}

impl Difference {
    /// Whether this row allows that difference.
    pub(super) fn covers(&self, request: &Request, found: &Found) -> bool {
        self.is_about(request)
            && self.field == found.field
            && fits(self.kafka, &found.kafka)
            && fits(self.ours, &found.ours)
    }

    /// Whether the request is one of this row.
    pub(super) fn is_about(&self, request: &Request) -> bool {
        let (first, last) = self.versions;
        self.api == request.api
            && (first..=last).contains(&request.version)
            && self.cases.iter().any(|case| fits(case, &request.case))
    }
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == pattern,
    }
}

/// Every version of an API.
#[expect(dead_code, reason = "rows use it")]
const ALL: (i16, i16) = (0, i16::MAX);

pub(super) const DIFFERENCES: &[Difference] = &[];
