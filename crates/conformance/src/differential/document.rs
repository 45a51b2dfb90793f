//! `docs/compatibility.md`, from what both servers advertise and the table of differences.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use moldau_protocol::{ApiKey, VersionRange};

use super::differences::Difference;
use super::session::Advertised;

const HEAD: &str = "# Compatibility with Apache Kafka

The reference is Apache Kafka 4.4.0. A test sends the same requests to both brokers, in every
version that both have: valid and invalid requests, with and without access rights. It compares the
responses field by field. Addresses, generated ids, times, sizes, the order of arrays and the
wording of error messages may differ. The tables list all other differences that it found.

`cargo run -p moldau-conformance --bin moldau-differential -- --write` writes this page from what
both brokers advertise and from the table of differences in the test. `cargo xtask test` fails if a
difference is not listed, or if a listed difference no longer exists.

## APIs

`same`: every version that Kafka has. `not compared`: served, but the test has no request for it.

| API | key | Kafka 4.4 | Moldau | status | differences |
|---|---|---|---|---|---|
";

const UNSERVED_HEAD: &str = "
## APIs that are not served

The broker does not advertise these APIs. Clients read that from ApiVersions before they use one.
The broker closes the connection on such a request, as on a request of any unknown API.

| APIs | what is missing | what a client sees |
|---|---|---|
";

const TAIL: &str = "
`moldau-odd-produces` compares the treatment of invalid record batches, `moldau-authorization` the
access rights of each API.
";

/// What is missing without APIs of Kafka, and what a client sees.
const UNSERVED: &[(&[ApiKey], &str, &str)] = &[
    (
        &[ApiKey::ConsumerGroupHeartbeat, ApiKey::ConsumerGroupDescribe],
        "consumer groups with assignment by the broker (KIP-848)",
        "a consumer with `group.protocol=consumer` fails with `UnsupportedVersionException`; with \
         `classic` it works",
    ),
    (
        &[
            ApiKey::InitializeShareGroupState,
            ApiKey::ReadShareGroupState,
            ApiKey::WriteShareGroupState,
            ApiKey::DeleteShareGroupState,
            ApiKey::ReadShareGroupStateSummary,
        ],
        "the state of share groups between brokers (KIP-932)",
        "nothing: only brokers use them. The broker keeps the state in its journal",
    ),
    (
        &[ApiKey::StreamsGroupTopologyDescriptionUpdate],
        "descriptions of topologies in streams groups (KIP-1331), which Kafka hands to a plugin \
         in Java",
        "nothing: clients send a description only if the broker asks for it. The broker does not, \
         as Kafka without `group.streams.topology.description.plugin.class`, its default. \
         `kafka-streams-groups --describe --topology` says that there is none",
    ),
    (
        &[ApiKey::AlterReplicaLogDirs],
        "several directories",
        "`kafka-reassign-partitions.sh` fails with `UnsupportedVersionException` if its plan names \
         directories; there is one",
    ),
    (
        &[
            ApiKey::AddRaftVoter,
            ApiKey::RemoveRaftVoter,
            ApiKey::UnregisterBroker,
            ApiKey::UnregisterController,
        ],
        "changes of the quorum of controllers",
        "`kafka-metadata-quorum.sh add-controller` and `remove-controller` and `kafka-cluster.sh \
         unregister` fail with `UnsupportedVersionException`; there is one broker",
    ),
];

/// Whether the page says what is missing without an API.
pub(super) fn explains(api: ApiKey) -> bool {
    UNSERVED.iter().any(|(apis, ..)| apis.contains(&api))
}

/// The page, for what both advertise and which APIs were asked.
pub(super) fn page(
    kafka: &Advertised,
    ours: &Advertised,
    asked: &BTreeSet<ApiKey>,
    differences: &[Difference],
) -> String {
    let mut page = HEAD.to_owned();
    let keys: BTreeSet<_> = kafka.keys().chain(ours.keys()).collect();
    for key in keys {
        let (theirs, own) = (kafka.get(key), ours.get(key));
        let api = ApiKey::from_key(*key);
        let name = api.map_or("unknown", ApiKey::name);
        let mut status = status(theirs, own).to_owned();
        if own.is_some() && !api.is_some_and(|api| asked.contains(&api)) {
            status += ", not compared";
        }
        let range = |it: Option<&VersionRange>| it.map_or("-".to_owned(), shown);
        let (theirs, own) = (range(theirs), range(own));
        let reasons = reasons(api, differences);
        writeln!(page, "| {name} | {key} | {theirs} | {own} | {status} | {reasons} |")
            .expect("a string takes all");
    }
    page += UNSERVED_HEAD;
    for (apis, missing, seen) in UNSERVED {
        let lacks =
            |api: &&ApiKey| kafka.contains_key(&api.key()) && !ours.contains_key(&api.key());
        let names: Vec<_> = apis.iter().filter(lacks).map(|api| api.name()).collect();
        if !names.is_empty() {
            writeln!(page, "| {} | {missing} | {seen} |", names.join(", "))
                .expect("a string takes all");
        }
    }
    page + TAIL
}

fn status(kafka: Option<&VersionRange>, ours: Option<&VersionRange>) -> &'static str {
    match (kafka, ours) {
        (_, None) => "not served",
        (kafka, ours) if kafka == ours => "same",
        _ => "fewer versions",
    }
}

fn shown(versions: &VersionRange) -> String {
    match versions.min == versions.max {
        true => versions.min.to_string(),
        false => versions.to_string(),
    }
}

/// Each reason once, in the order of the table.
fn reasons(api: Option<ApiKey>, differences: &[Difference]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for row in differences.iter().filter(|row| Some(row.api) == api) {
        if !reasons.contains(&row.reason) {
            reasons.push(row.reason);
        }
    }
    reasons.join("<br>")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both servers have Produce and Heartbeat, of which one was asked; Kafka has AddRaftVoter too.
    fn sample() -> String {
        let row = |api: ApiKey, max: i16| (api.key(), VersionRange::new(0, max));
        let kafka =
            [row(ApiKey::Produce, 13), row(ApiKey::Heartbeat, 4), row(ApiKey::AddRaftVoter, 0)];
        let ours = [row(ApiKey::Produce, 12), row(ApiKey::Heartbeat, 4)];
        let difference = Difference {
            api: ApiKey::Produce,
            cases: &["a"],
            versions: (0, 1),
            fields: &[("ErrorCode", "1", "2")],
            reason: "it is a test",
        };
        let asked = BTreeSet::from([ApiKey::Produce]);
        page(&kafka.into(), &ours.into(), &asked, &[difference, difference])
    }

    #[test]
    fn a_row_has_the_versions_of_both_and_each_reason_once() {
        let page = sample();
        let rows = [
            "| Produce | 0 | 0-13 | 0-12 | fewer versions | it is a test |",
            "| Heartbeat | 12 | 0-4 | 0-4 | same, not compared |  |",
            "| AddRaftVoter | 80 | 0 | - | not served |  |",
        ];
        for row in rows {
            assert!(page.lines().any(|line| line == row), "{row} is not in {page}");
        }
    }

    #[test]
    fn only_what_is_not_served_is_explained() {
        let page = sample();
        let (_, unserved) = page.split_once("## APIs that are not served").unwrap();
        assert!(unserved.contains("| AddRaftVoter | changes"), "{unserved}");
        assert!(!unserved.contains("ConsumerGroupHeartbeat"), "{unserved}");
        assert!(explains(ApiKey::AddRaftVoter) && !explains(ApiKey::Produce));
    }
}
