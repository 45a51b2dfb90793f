//! What held the loads that took a system to its limit, as far as their runs tell: the likeliest
//! finding of each, which nobody put to the test.

use crate::explain::{self, About, Finding};
use crate::punctuality::{is_saturated, is_scheduled};
use crate::result::{RunRecord, RunResult};
use moldau_load::workload::Pace;

/// One sentence for each system that was taken to its limit.
pub(crate) fn sentences(result: &RunResult) -> Vec<String> {
    result.arms.iter().filter_map(|arm| sentence(result, &arm.name)).collect()
}

/// What held a load on a system, for its row in a table.
pub(crate) fn words(result: &RunResult, case: &str, system: &str) -> Option<&'static str> {
    Some(held(result, case, system)?.map_or("nothing seen", |finding| finding.cause.words()))
}

/// Loads of a system with the same cause, and what says so of the first of them.
struct Group<'a> {
    finding: Option<Finding>,
    cases: Vec<&'a str>,
}

fn sentence(result: &RunResult, system: &str) -> Option<String> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for case in result.cases() {
        let Some(finding) = held(result, case, system) else { continue };
        let cause = finding.as_ref().map(|it| it.cause);
        let is_same = |group: &&mut Group<'_>| group.finding.as_ref().map(|it| it.cause) == cause;
        match groups.iter_mut().find(is_same) {
            Some(group) => group.cases.push(case),
            None => groups.push(Group { finding, cases: vec![case] }),
        }
    }
    groups.sort_by_key(|group| std::cmp::Reverse(group.cases.len()));
    let parts: Vec<String> = groups.iter().map(Group::words).collect();
    (!parts.is_empty()).then(|| {
        format!(
            "What held {system}: {}. Not put to the test; `moldau lab explain` does that.",
            parts.join("; ")
        )
    })
}

impl Group<'_> {
    fn words(&self) -> String {
        let Self { finding, cases } = self;
        let first = cases.first().copied().unwrap_or_default();
        let place = match cases.len() {
            1 => first.to_string(),
            count => format!("{count} loads, as {first}"),
        };
        match finding {
            Some(Finding { cause, says, .. }) => format!("{} ({place}: {says})", cause.words()),
            None => format!("nothing that was seen ({place})"),
        }
    }
}

/// The finding that most runs of a load have first, in the words of the first run that has it;
/// nothing of a load that left the system room. The inner one is `None` where nothing was found.
fn held(result: &RunResult, case: &str, system: &str) -> Option<Option<Finding>> {
    let runs = result.runs_of(case, system).filter(|run| is_at_its_limit(run));
    let found: Vec<Option<Finding>> =
        runs.map(|run| explain::of(run, About::Rate).into_iter().next()).collect();
    let cause = |it: &Option<Finding>| it.as_ref().map(|finding| finding.cause);
    let votes =
        |it: &&Option<Finding>| found.iter().filter(|other| cause(other) == cause(it)).count();
    // Of equals the first.
    found.iter().rev().max_by_key(votes).cloned()
}

/// Whether a run went as fast as the system let it. Runs of which nothing is known of requests, as
/// those of older documents, tell nothing.
fn is_at_its_limit(run: &RunRecord) -> bool {
    let is_known = run.requests.in_flight_max > 0;
    let has_no_rate = matches!(run.workload.pace, Pace::Unpaced | Pace::Closed { .. });
    is_known && (has_no_rate || is_scheduled(run) && is_saturated(run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use moldau_load::run::Requests;

    const CASE: &str = "Produce at full speed";

    /// Requests fill their windows at full speed.
    fn waiting() -> RunResult {
        let mut result = sample::result();
        for run in result.runs.iter_mut().filter(|run| run.case == CASE) {
            let in_flight_ns = 5 * run.window_ns;
            run.requests =
                Requests { returned: 1_000, in_flight_ns, throttled_ns: 0, in_flight_max: 5 };
        }
        result
    }

    #[test]
    fn what_held_a_load_is_told_with_its_figures() {
        let result = waiting();
        assert_eq!(words(&result, CASE, "proxy"), Some("the window of requests in flight"));
        let told = sentences(&result);
        assert_eq!(told.len(), 2);
        let start = "What held direct: the window of requests in flight (Produce at full speed: 5 ";
        assert!(told[0].starts_with(start), "{}", told[0]);
        assert!(told[0].ends_with("Not put to the test; `moldau lab explain` does that."));
    }

    #[test]
    fn loads_with_room_and_runs_of_which_little_is_known_say_nothing() {
        assert_eq!(words(&waiting(), sample::FIXED, "proxy"), None);
        assert_eq!(sentences(&sample::result()), Vec::<String>::new());
    }

    #[test]
    fn most_runs_of_a_load_decide() {
        let mut result = waiting();
        let busy = |run: &mut RunRecord| {
            let (nanos, window_ns) = (&mut run.processes[0].busiest_thread_ns, run.window_ns);
            *nanos = window_ns;
        };
        let of_arm = |run: &&mut RunRecord| run.case == CASE && run.arm == "proxy";
        result.runs.iter_mut().filter(of_arm).take(1).for_each(busy);
        assert_eq!(words(&result, CASE, "proxy"), Some("the window of requests in flight"));
        result.runs.iter_mut().filter(of_arm).take(2).for_each(busy);
        assert_eq!(words(&result, CASE, "proxy"), Some("one thread"));
    }
}
