//! The differences from Apache Kafka that stay, with the reason for each.

mod cluster;
mod groups;
mod records;
mod shared;
mod topics;
mod transactions;

use moldau_protocol::ApiKey;

use super::session::{Advertised, Request};

/// A field whose values differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    /// Names of fields, the outermost first, joined by dots.
    pub(super) field: String,
    pub(super) kafka: String,
    pub(super) ours: String,
}

/// What our broker answers otherwise in some cases.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference {
    pub(super) api: ApiKey,
    /// Names of cases, or beginnings of names that end with `*`.
    pub(super) cases: &'static [&'static str],
    /// The first and the last version that differ.
    pub(super) versions: (i16, i16),
    /// The fields that differ.
    pub(super) fields: &'static [Differing],
    /// One sentence for the page about compatibility.
    pub(super) reason: &'static str,
}

/// A field, empty for the whole answer; what Kafka says, and what our broker says. Either may be
/// a beginning that ends with `*`.
pub(super) type Differing = (&'static str, &'static str, &'static str);

impl Difference {
    /// Whether this row allows that difference.
    pub(super) fn covers(&self, request: &Request, found: &Found) -> bool {
        self.is_about(request) && self.fields.iter().any(|field| is_so(field, found))
    }

    /// Whether the request is one of this row.
    pub(super) fn is_about(&self, request: &Request) -> bool {
        let (first, last) = self.versions;
        self.api == request.api
            && (first..=last).contains(&request.version)
            && self.cases.iter().any(|case| fits(case, &request.case))
    }
}

/// Whether a field differs as a row says.
pub(super) fn is_so((field, kafka, ours): &Differing, found: &Found) -> bool {
    *field == found.field && fits(kafka, &found.kafka) && fits(ours, &found.ours)
}

fn fits(pattern: &str, text: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => text.starts_with(beginning),
        None => text == pattern,
    }
}

/// Every row about a cluster that serves these APIs.
pub(super) fn of_clusters(served: &Advertised) -> Vec<Difference> {
    let mut rows = all();
    rows.retain(|row| served.contains_key(&row.api.key()) && !shared::replaces(row));
    rows.extend(shared::ROWS);
    rows
}

/// Every row.
pub(super) fn all() -> Vec<Difference> {
    [records::ROWS, topics::ROWS, groups::ROWS, transactions::ROWS, cluster::ROWS].concat()
}
