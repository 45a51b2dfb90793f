//! Where processor time goes: tables by kind of work, what differs between arms, flame graphs.

use maud::{PreEscaped, html};
use serde::Serialize;

use crate::metric::Metric;
use crate::page::{self, Table};
use crate::result::{RunRecord, RunResult};
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, thousands};
use moldau_measure::profile::{Category, Change, ProfileRecord, ProfilesRecord, SHOWN, Stacks};
use moldau_measure::statistics::float;

const SCRIPT: &str = include_str!("../../assets/flame.js");
const STYLE: &str = include_str!("../../assets/flame.css");

/// Frames with a smaller share of a profile are not drawn.
const SHARE_MIN: f64 = 0.001;

/// Bytes of all flame graphs of a report: with everything else it stays below 2 MB. Where they are
/// more, the smallest frame that is drawn is larger.
const FLAMES_BYTES_MAX: usize = 900_000;

/// Characters of a name that are kept: generics of Rust go on for pages.
const NAME_CHARACTERS_MAX: usize = 120;

/// Functions of a table of differences.
const CHANGES_MAX: usize = 8;

/// A profile that can be shown.
struct Shown<'a> {
    of: &'a ProfileRecord,
    stacks: Stacks<'a>,
}

/// Tables by kind of work, of each case one, the functions that differ most between arms, and what
/// cannot be shown.
pub(super) fn tables(result: &RunResult) -> Vec<Table> {
    let Some(record) = &result.profiles else { return Vec::new() };
    let (shown, refused) = split(record);
    let cases = cases(&shown);
    let mut tables: Vec<Table> = cases.iter().map(|case| kinds(result, case, &shown)).collect();
    tables.extend(differences(&shown));
    if !refused.is_empty() {
        tables.push(Table::of(
            "Processes without a profile",
            "A profile that is stale, of another program or another file than the one that was \
             taken, is not shown.",
            &["case", "arm", "process", "reason"],
            refused.into_iter(),
        ));
    }
    tables
}

/// The flame graphs as a page of their own; `None` without a profile that can be shown.
pub(crate) fn flames(result: &RunResult) -> Option<String> {
    let (shown, _) = split(result.profiles.as_ref()?);
    if shown.is_empty() {
        return None;
    }
    let flames = frames(&shown).replace('<', "\\u003c");
    let body = html! {
        style { (PreEscaped(STYLE)) }
        header { p.kicker { "moldau lab, result " (result.id) } h1 { "Flame graphs" } }
        p.about {
            "The width of a frame is its share of the processor time, with what it called below \
             it. A click makes a frame as wide as the page. Compared with another arm, what has a \
             larger share is orange and what has a smaller one blue."
        }
        div.flame-choice {
            label { "profile " select data-flame-subject {} }
            label { "compared with " select data-flame-other {} }
            label { "find " input type="search" data-flame-search; }
            button.back type="button" data-flame-back { "all" }
        }
        div.flame data-flame-graph {}
        div.flame-detail.soft data-flame-detail {}
        script type="application/json" id="flames" { (PreEscaped(flames)) }
        script { (PreEscaped(SCRIPT)) }
    };
    Some(page::document("Flame graphs", &body))
}

/// The profiles that can be shown, and rows of those that cannot.
fn split(record: &ProfilesRecord) -> (Vec<Shown<'_>>, Vec<Vec<String>>) {
    let row = |case: &str, arm: &str, role: &str, why: &str| {
        [case, arm, role, why].map(str::to_owned).to_vec()
    };
    let (mut shown, mut refused) = (Vec::new(), Vec::new());
    for of in &record.taken {
        match record.stacks(of) {
            Ok(stacks) => shown.push(Shown { of, stacks }),
            Err(why) => refused.push(row(&of.case, &of.arm, &of.role, &why)),
        }
    }
    let missing = record.missing.iter().map(|it| row(&it.case, &it.arm, &it.role, &it.reason));
    refused.extend(missing);
    (shown, refused)
}

fn cases<'a>(shown: &[Shown<'a>]) -> Vec<&'a str> {
    let mut cases: Vec<&str> = Vec::new();
    for Shown { of, .. } in shown {
        if !cases.contains(&of.case.as_str()) {
            cases.push(&of.case);
        }
    }
    cases
}

/// What the processes of a case spend their time on.
fn kinds(result: &RunResult, case: &str, shown: &[Shown<'_>]) -> Table {
    let of_case: Vec<&Shown<'_>> = shown.iter().filter(|it| it.of.case == case).collect();
    let columns: Vec<_> =
        of_case.iter().map(|it| (it.stacks.shares(), cost(result, it.of, &of_case))).collect();
    let cell = |share: f64, cost: Option<f64>| {
        let percent = format!("{:.1} %", share * 100.0);
        cost.map_or(percent.clone(), |cost| {
            format!("{percent}, {}", number(cost * share, Unit::CpuMillisecondsPerMegabyte))
        })
    };
    let mut rows = Vec::new();
    for (index, category) in SHOWN.iter().enumerate() {
        let share = |shares: &Vec<(Category, f64)>| shares.get(index).map_or(0.0, |(_, it)| *it);
        if columns.iter().any(|(shares, _)| share(shares) > 0.0) {
            let cells = columns.iter().map(|(shares, cost)| cell(share(shares), *cost));
            rows.push(std::iter::once(category.label().to_owned()).chain(cells).collect());
        }
    }
    let all = columns
        .iter()
        .map(|(shares, cost)| cell(shares.iter().map(|(_, share)| share).sum(), *cost));
    rows.push(std::iter::once("all".to_owned()).chain(all).collect());
    let samples = of_case.iter().map(|it| thousands(it.stacks.samples()));
    rows.push(std::iter::once("samples".to_owned()).chain(samples).collect());
    let by = of_case.iter().map(|it| it.of.tool.name().to_owned());
    rows.push(std::iter::once("taken by".to_owned()).chain(by).collect());
    let arms = of_case.iter().map(|it| format!("{}, {}", it.of.arm, it.of.role));
    let columns: Vec<String> = std::iter::once("kind of work".to_owned()).chain(arms).collect();
    Table::of(
        &format!("Where processor time goes: {case}"),
        "Shares of the samples of one profile, and CPU-ms/MB of the measured runs shared out by \
         them. The innermost known function determines the kind. A share of n samples is off by \
         some square root of n.",
        &columns,
        rows.into_iter(),
    )
}

/// Processor time per MB of the measured runs, where one process alone has the role.
fn cost(result: &RunResult, of: &ProfileRecord, of_case: &[&Shown<'_>]) -> Option<f64> {
    let metric = match of.role.as_str() {
        "broker" => Metric::BrokerCpu,
        "proxy" => Metric::ProxyCpu,
        _ => return None,
    };
    let is_twin = |it: &&&Shown<'_>| it.of.arm == of.arm && it.of.role.starts_with(&of.role);
    let runs: Vec<&RunRecord> = result.runs_of(&of.case, &of.arm).collect();
    let costs: Vec<f64> = runs.iter().filter_map(|run| metric.of(run)).collect();
    if costs.is_empty() || of_case.iter().filter(is_twin).count() > 1 {
        return None;
    }
    Some(costs.iter().sum::<f64>() / float(costs.len() as u64))
}

/// Each arm against the first that has the process, by the functions that differ most.
fn differences(shown: &[Shown<'_>]) -> Vec<Table> {
    let mut grids = Vec::new();
    for (index, Shown { of, stacks }) in shown.iter().enumerate() {
        let is_same = |it: &&Shown<'_>| it.of.case == of.case && it.of.role == of.role;
        let Some(first) = shown.iter().take(index).find(is_same) else { continue };
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let row = |Change { function, before, after }: Change<'_>| {
            let points = format!("{:+.1} points", (after - before) * 100.0);
            vec![shortened(function), percent(before), percent(after), points]
        };
        grids.push(Table::of(
            &format!("{}, {}: {} against {}", of.case, of.role, of.arm, first.of.arm),
            "Shares of the functions themselves, without what they call.",
            &["function", &first.of.arm, &of.arm, "difference"],
            stacks.changes(&first.stacks, CHANGES_MAX).into_iter().map(row),
        ));
    }
    grids
}

/// The data of all flame graphs.
#[derive(Serialize)]
struct Flames {
    names: Vec<String>,
    profiles: Vec<Flame>,
}

#[derive(Serialize)]
struct Flame {
    case: String,
    arm: String,
    role: String,
    samples: u64,
    /// Depth, name and samples of each frame, before what it called.
    nodes: Vec<u64>,
}

fn frames(shown: &[Shown<'_>]) -> String {
    let mut share_min = SHARE_MIN;
    loop {
        let json = serde_json::to_string(&frames_above(shown, share_min));
        let json = json.expect("numbers and texts have a JSON form");
        if json.len() <= FLAMES_BYTES_MAX || share_min >= 1.0 {
            return json;
        }
        share_min *= 2.0;
    }
}

fn frames_above(shown: &[Shown<'_>], share_min: f64) -> Flames {
    let mut names: Vec<String> = Vec::new();
    let mut places = std::collections::HashMap::new();
    let mut profiles = Vec::new();
    for Shown { of, stacks } in shown {
        let mut nodes = Vec::new();
        for node in stacks.tree(share_min) {
            let place = *places.entry(node.name).or_insert_with(|| {
                names.push(shortened(node.name));
                names.len() - 1
            });
            nodes.extend([node.depth as u64, place as u64, node.samples]);
        }
        let (case, arm, role) = (of.case.clone(), of.arm.clone(), of.role.clone());
        profiles.push(Flame { case, arm, role, samples: stacks.samples(), nodes });
    }
    Flames { names, profiles }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}\u{2026}", name.get(..end).unwrap_or(name)),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
