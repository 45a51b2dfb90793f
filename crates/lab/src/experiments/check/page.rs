//! Anomalies of a history as a page: how many of each kind, and a drawing of the first of each.

use moldau_checker::{Action, Kind, Outcome, Relation};
use moldau_measure::numbers::{many, thousands};

use super::HISTORY_FILE;
use crate::check::{CheckRecord, Example, Fault, Shown, Source, Struck, is_transaction};
use crate::page::{Arrow, Chart, Column, Detail, Link, Note, Page, Plot, Span, Standing, Table};
use crate::result::RunResult;
use crate::result_page;

/// Colours of operations: committed, aborted, unknown.
const COMMITTED: usize = 3;
const ABORTED: usize = 7;
const UNKNOWN: usize = 5;

/// Most overlaps and faults of a picture.
const OVERLAPS_SHOWN: usize = 12;
const FAULTS_SHOWN: usize = 6;

/// The page of a checked history.
pub fn page(result: &RunResult, record: &CheckRecord) -> Page {
    const TITLE: &str = "Does the cluster keep Kafka's promises under faults?";
    let mut page = result_page::blank(result, TITLE);
    if page.standing == Standing::RecordsLost {
        // Nothing is wrong with the counts: they are the answer.
        page.standing = Standing::PromiseBroken;
    }
    if page.standing.has_figures() {
        page.answer = answer(record);
        page.table = found(record);
        let drawn = record.examples.iter().map(|example| drawing(example, &record.struck));
        page.charts = drawn.chain(overlaps(record)).collect();
    }
    page.details.push(Detail::table(kinds(record)));
    page.details.push(Detail::table(history(record)));
    if matches!(record.source, Source::System(_)) {
        page.links.push(Link { text: "history".into(), path: HISTORY_FILE.into() });
    }
    page
}

/// What was done, and what was found.
fn answer(record: &CheckRecord) -> Vec<String> {
    let totals = record.totals;
    let made = format!(
        "{} records, {} transactions of {} clients",
        many(totals.acked),
        many(totals.committed + totals.aborted),
        thousands(totals.clients)
    );
    let under = match (&record.source, record.struck.len()) {
        (Source::File(_), _) => String::new(),
        (Source::System(_), 1) => " under 1 fault".into(),
        (Source::System(_), count) => format!(" under {count} faults"),
    };
    let counts = |is_permitted: bool| {
        let of = record.report.found().filter(|(it, _)| it.permitted().is_some() == is_permitted);
        of.map(|(kind, found)| format!("{} {}", thousands(found.count), kind.name()))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let (broken, permitted) = (counts(false), counts(true));
    let found = if broken.is_empty() { "no anomaly".into() } else { broken };
    let mut answer = vec![format!("{made}{under}: {found}.")];
    let reason = record.report.found().find_map(|(kind, _)| kind.permitted());
    answer.extend(reason.map(|reason| format!("Kafka's protocol permits {permitted}: {reason}")));
    answer
}

/// The kinds that were found.
fn found(record: &CheckRecord) -> Option<Table> {
    let mut table = kinds(record);
    table.rows.retain(|row| row.get(1).is_some_and(|count| count != "0"));
    (!table.rows.is_empty()).then_some(table)
}

/// All kinds of anomalies that were looked for.
fn kinds(record: &CheckRecord) -> Table {
    let row = |kind: Kind| {
        let judged = kind.permitted().map_or("no", |_| "yes");
        let count = thousands(record.report.count(kind));
        [kind.name(), &count, judged, kind.meaning()].map(str::to_owned).to_vec()
    };
    let reasons = Kind::ALL.into_iter().find_map(Kind::permitted).unwrap_or_default();
    Table {
        title: "Kinds of anomalies".into(),
        about: format!("Permitted by Kafka's protocol: {reasons}"),
        columns: vec![
            Column::words("anomaly"),
            Column::figures("count", ""),
            Column::words("permitted"),
            Column::words("meaning"),
        ],
        rows: Kind::ALL.into_iter().map(row).collect(),
    }
}

/// What was done, and what struck.
fn history(record: &CheckRecord) -> Table {
    let totals = record.totals;
    let name = match &record.source {
        Source::System(name) | Source::File(name) => name,
    };
    let rows = [
        ("clients", totals.clients),
        ("records sent", totals.sent),
        ("records acknowledged", totals.acked),
        ("records polled, by all clients together", totals.polled),
        ("offsets committed by the group", totals.commits),
        ("partitions assigned to members of the group", totals.assignments),
        ("transactions committed", totals.committed),
        ("transactions aborted", totals.aborted),
        ("operations with an unknown outcome", totals.unknown),
    ];
    let strikes = Fault::ALL.map(|fault| (fault.name(), record.strikes(fault)));
    let overlaps = u64::try_from(record.overlaps().count()).unwrap_or(u64::MAX);
    let overlaps = [("faults that began while another one lasted", overlaps)];
    let strikes = strikes.iter().chain(&overlaps).filter(|(_, count)| *count > 0);
    let rows = rows.iter().chain(strikes);
    Table {
        title: "History".into(),
        about: format!("Of {name}."),
        columns: vec![Column::words("what"), Column::figures("count", "")],
        rows: rows.map(|(what, count)| vec![(*what).to_owned(), thousands(*count)]).collect(),
    }
}

/// Faults that began while others lasted.
fn overlaps(record: &CheckRecord) -> Option<Chart> {
    let span = |tone: usize, struck: &Struck, outer: &Struck| Span {
        row: format!("overlap at {} s", seconds(outer.from_us)),
        ..fault_span(struck, tone)
    };
    let pairs = record.overlaps().take(OVERLAPS_SHOWN);
    let spans: Vec<Span> = pairs
        .flat_map(|(outer, inner)| [span(UNKNOWN, outer, outer), span(ABORTED, inner, outer)])
        .collect();
    let about = format!(
        "Each fault that began while another one lasted, below that one; at most {OVERLAPS_SHOWN}. \
         From left to right in the order of time, not to scale."
    );
    (!spans.is_empty()).then(|| Chart {
        id: "overlaps".into(),
        title: "Faults that overlapped".into(),
        about,
        series: Vec::new(),
        plot: Plot::Timeline { spans, arrows: Vec::new() },
    })
}

fn fault_span(struck: &Struck, tone: usize) -> Span {
    let (from, to) = (struck.from_us, struck.to_us);
    Span {
        row: "faults".into(),
        name: format!("{}, {} to {} s", struck.fault.name(), seconds(from), seconds(to)),
        tone,
        from,
        to,
        notes: Vec::new(),
    }
}

fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// The operations of an anomaly in the order of time, and the faults that lasted meanwhile.
pub(super) fn drawing(example: &Example, struck: &[Struck]) -> Chart {
    let kind = example.anomaly.kind;
    let mut shown: Vec<&Shown> = example.operations.iter().collect();
    // Clients in the order in which they began, each with its operations.
    let begin = |client: u32| {
        let of = example.operations.iter().filter(|it| it.operation.client == client);
        of.map(|it| it.from_us).min()
    };
    shown.sort_by_key(|it| (begin(it.operation.client), it.operation.client, it.from_us, it.place));
    let places: Vec<usize> = shown.iter().map(|it| it.place).collect();
    let lasted = |it: &&Struck| {
        shown.iter().any(|shown| it.from_us <= shown.to_us && shown.from_us <= it.to_us)
    };
    let faults = struck.iter().filter(lasted).take(FAULTS_SHOWN).map(|it| fault_span(it, ABORTED));
    let spans = shown.iter().map(|it| span(example, it)).chain(faults).collect();
    let about = "One lane for each operation, from left to right in the order of time, not to \
                 scale. Lines in bold show the anomaly.";
    let word = if example.anomaly.edges.is_empty() {
        ""
    } else {
        " Arrows: ww precedes by a write, wr was polled by."
    };
    let name = kind.name().split(" (").next().unwrap_or_default();
    Chart {
        id: name.replace(' ', "-"),
        title: format!("First example: {}", kind.name()),
        about: format!("{} {about}{word}", kind.meaning()),
        series: Vec::new(),
        plot: Plot::Timeline { spans, arrows: arrows(example, &places) },
    }
}

fn span(example: &Example, shown: &Shown) -> Span {
    let operation = &shown.operation;
    let (outcome, tone) = match operation.outcome {
        Outcome::Committed => ("committed", COMMITTED),
        Outcome::Aborted => ("aborted", ABORTED),
        Outcome::Unknown => ("outcome unknown", UNKNOWN),
    };
    let what = match operation.steps.first().map(|step| &step.action) {
        _ if is_transaction(operation) => format!("transaction, {outcome}"),
        Some(Action::Send { .. }) => format!("send, {outcome}"),
        Some(Action::Commit { .. }) => format!("commit of offsets, {outcome}"),
        Some(Action::Resume { .. }) => "assignment to a member".into(),
        _ => "poll".into(),
    };
    let mut notes = notes(example, shown);
    if shown.left_out > 0 {
        let text = format!("and {} other records", thousands(shown.left_out));
        notes.push(Note { text, is_marked: false });
    }
    Span {
        row: format!("client {}", operation.client),
        name: format!("{what}, {} to {} s", seconds(shown.from_us), seconds(shown.to_us)),
        tone,
        from: shown.from_us,
        to: shown.to_us,
        notes,
    }
}

/// What an operation sent and polled, a line for each record.
fn notes(example: &Example, shown: &Shown) -> Vec<Note> {
    let is_marked = |partition: u32, offset: Option<i64>, value: Option<u64>| {
        example.is_evidence(shown.place, partition, offset, value)
    };
    let note = |verb: &str, partition: u32, offset: Option<i64>, value: u64| {
        let at = offset.map_or("offset unknown".into(), |offset| format!("offset {offset}"));
        Note {
            text: format!("{verb} {value}, partition {partition}, {at}"),
            is_marked: is_marked(partition, offset, Some(value)),
        }
    };
    let committed = |verb: &str, partition: u32, offset: Option<i64>| Note {
        text: match offset {
            Some(offset) => format!("{verb} offset {offset} of partition {partition}"),
            None => format!("{verb} no offset of partition {partition}"),
        },
        is_marked: is_marked(partition, offset, None),
    };
    let mut notes = Vec::new();
    for step in &shown.operation.steps {
        match &step.action {
            Action::Send { partition, value, offset } => {
                notes.push(note("sent", *partition, *offset, *value));
            }
            Action::Poll { partition, records } => {
                let seen = records.iter();
                notes.extend(seen.map(|it| note("polled", *partition, Some(it.offset), it.value)));
            }
            Action::Commit { partition, offset } => {
                notes.push(committed("committed", *partition, Some(*offset)));
            }
            Action::Resume { partition, offset } => {
                notes.push(committed("read back", *partition, *offset));
            }
            Action::Position { .. } | Action::End { .. } => {}
        }
    }
    notes
}

/// The relations of a cycle, or from a send to the poll of its record.
fn arrows(example: &Example, places: &[usize]) -> Vec<Arrow> {
    let at = |place: usize| places.iter().position(|it| *it == place);
    let edges = example.anomaly.edges.iter().filter_map(|edge| {
        let relation = match edge.relation {
            Relation::Wrote => "ww",
            Relation::Polled => "wr",
        };
        let name = format!("{relation} p{}", edge.partition);
        Some(Arrow { from: at(edge.from)?, to: at(edge.to)?, name })
    });
    let edges: Vec<Arrow> = edges.collect();
    if edges.is_empty() { polled(example, places) } else { edges }
}

/// From each send of the anomaly to the operations that polled its record.
fn polled(example: &Example, places: &[usize]) -> Vec<Arrow> {
    let at = |place: usize| places.iter().position(|it| *it == place);
    let mut arrows: Vec<Arrow> = Vec::new();
    for from in &example.operations {
        for to in example.operations.iter().filter(|to| to.place != from.place) {
            let is_polled = sent(example, from).any(|value| has_polled(to, value));
            if let Some((from, to)) = at(from.place).zip(at(to.place)).filter(|_| is_polled) {
                arrows.push(Arrow { from, to, name: "wr".into() });
            }
        }
    }
    arrows
}

/// Values that an operation sent, as far as they show the anomaly.
fn sent(example: &Example, shown: &Shown) -> impl Iterator<Item = u64> {
    let sends = shown.operation.steps.iter().filter_map(|step| match step.action {
        Action::Send { partition, value, offset } => {
            example.is_evidence(shown.place, partition, offset, Some(value)).then_some(value)
        }
        _ => None,
    });
    sends.collect::<Vec<_>>().into_iter()
}

fn has_polled(shown: &Shown, value: u64) -> bool {
    shown.operation.steps.iter().any(|step| match &step.action {
        Action::Poll { records, .. } => records.iter().any(|seen| seen.value == value),
        _ => false,
    })
}
