//! Records lost and waits of clients when connections were cut or a broker was suspended or killed,
//! as a page.

use crate::faults::{Fault, FaultsRecord, audit, longest_s};
use crate::page::{Axis, Cell, Chart, Detail, Mark, Page, Scale, Table};
use crate::result::{RunRecord, RunResult};
use crate::result_page;
use crate::run_charts::{self, Compared, course, tone};
use crate::run_figures::{NONE, milliseconds};
use crate::survey::Estimate;
use moldau_measure::histograms::Summary;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain, thousands};
use moldau_measure::statistics::{float, median};

/// The page of faults.
pub fn page(result: &RunResult, record: &FaultsRecord) -> Page {
    const TITLE: &str = "Does a failure lose records, and how long do clients wait?";
    let answers = result.arms.iter().map(|arm| answer(result, record, &arm.name));
    let mut page = result_page::answered(result, TITLE, answers.collect());
    page.table = Some(table(result, record));
    page.charts.extend(waits(result));
    let courses = Fault::ALL.iter().filter_map(|fault| {
        let y = Axis::new("longest wait of each slot", "ms", Scale::Log);
        let tone = |arm: &str| tone(result, arm);
        course(result, fault.name(), tone, y, |_, slot| milliseconds(slot.response_max_ns))
    });
    page.details.push(Detail::of("Course of the runs", courses.collect(), Vec::new()));
    page.details.push(result_page::audit(result));
    page
}

/// The longest wait of each fault and system.
fn waits(result: &RunResult) -> Option<Chart> {
    let compared = Compared {
        id: "waits",
        title: "Longest wait of a record",
        about: "From when a record was due to its acknowledgement, means over the rounds with 95 % \
                intervals. Less is better.",
        axis: Axis::new("longest wait", "s", Scale::Log),
        mark: Mark::Dot,
    };
    let names: Vec<&str> = Fault::ALL.iter().map(|fault| fault.name()).collect();
    run_charts::bars(
        result,
        &names,
        compared,
        |arm| tone(result, arm),
        |runs: &[&RunRecord]| {
            longest_s(runs.iter().copied(), result.seed)
                .map_or(Cell::Absent, |found| Cell::Figure(found.into()))
        },
    )
}

/// What became of records, and how long clients waited on a system.
fn answer(result: &RunResult, record: &FaultsRecord, system: &str) -> String {
    let all = audit(result.runs.iter().filter(|run| run.arm == system));
    let longest = |fault: Fault| longest_s(fault.runs(&result.runs, system), result.seed);
    let waits = Fault::ALL.into_iter().filter_map(|fault| {
        let waited = seconds(longest(fault)?);
        Some(match fault {
            Fault::Nothing => format!("undisturbed, the longest wait of a record was {waited} s"),
            Fault::Cut => format!("with all connections cut {waited} s"),
            Fault::Stopped => {
                let stop = plain(float(record.stop_ms) / 1e3);
                format!("with the broker stopped for {stop} s {waited} s")
            }
            Fault::Killed => format!("with the broker killed and started again {waited} s"),
        })
    });
    format!(
        "On {system} {} of {} acknowledged records were lost, {} came twice and {} out of order; \
         {}.",
        thousands(all.lost),
        thousands(all.acked),
        thousands(all.duplicated),
        thousands(all.reordered),
        waits.collect::<Vec<_>>().join(", "),
    )
}

/// A row for each system and fault.
fn table(result: &RunResult, record: &FaultsRecord) -> Table {
    let arms = result.arms.iter().map(|arm| arm.name.as_str());
    let all = arms.flat_map(|system| Fault::ALL.map(|fault| (system, fault)));
    let rows = all.filter(|(system, fault)| fault.runs(&result.runs, system).count() > 0);
    let rows = rows.map(|(system, fault)| {
        let runs = || fault.runs(&result.runs, system);
        let found = audit(runs());
        let middle = |figure: fn(&Summary) -> u64| {
            let latencies = runs().filter_map(|run| run.latency.as_ref());
            let ms = latencies.map(|it| float(figure(&it.response.summary)) / 1e6);
            let ms: Vec<f64> = ms.collect();
            if ms.is_empty() { NONE.into() } else { number(median(&ms), Unit::Milliseconds) }
        };
        let others = found.faults() - found.lost - found.duplicated - found.reordered;
        vec![
            system.to_owned(),
            fault.name().into(),
            thousands(found.lost),
            thousands(found.duplicated),
            longest_s(runs(), result.seed).map_or(NONE.into(), seconds),
            middle(|summary| summary.p99_ns),
            middle(|summary| summary.p50_ns),
            middle(|summary| summary.p999_ns),
            thousands(found.reordered),
            thousands(others),
            thousands(found.unknown + found.failed),
            thousands(found.acked),
        ]
    });
    Table::of(
        "",
        &format!(
            "Each strikes once, {} s into the window of a run, in whose latencies all records are \
             that were due meanwhile: medians over the rounds, and the longest wait with its 95 % \
             interval. Killed is SIGKILL, after which the operating system still has what the \
             process wrote: what a loss of power would take is not tried. The longest wait holds \
             the start of the broker and the pauses of the client between its attempts, of 0.1 to \
             1 s.",
            plain(float(record.after_ms) / 1e3)
        ),
        &[
            "system",
            "fault",
            "lost",
            "twice",
            "longest, s",
            "p99, ms",
            "p50, ms",
            "p99.9, ms",
            "out of order",
            "other faults",
            "not acknowledged",
            "acknowledged",
        ],
        rows,
    )
}

fn seconds(found: Estimate) -> String {
    let mean = plain(found.mean);
    found
        .interval
        .map_or(mean.clone(), |it| format!("{mean} [{}, {}]", plain(it.low), plain(it.high)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::result::{Arm, Experiment, LatencyRecord};
    use crate::sample;
    use moldau_measure::histograms::Latencies;

    /// A system that hides what struck it but for the time of it, in three rounds.
    fn faults() -> RunResult {
        let like = sample::result().runs.swap_remove(0);
        let mut runs = Vec::new();
        let waits = [(Fault::Nothing, 20), (Fault::Stopped, 1_010), (Fault::Killed, 400)];
        for pair in 0..3_u64 {
            for (fault, ms) in waits {
                let mut latencies = Latencies::default();
                latencies.response.record(0, 2_000_000, 990);
                latencies.response.record(0, (ms + pair) * 1_000_000, 10);
                let mut run = like.clone();
                (run.case, run.arm) = (fault.name().into(), "ours".into());
                run.pair = u32::try_from(pair).unwrap();
                run.latency = LatencyRecord::of(&latencies).ok();
                runs.push(run);
            }
        }
        let record = FaultsRecord { after_ms: 1_000, stop_ms: 1_000, left_out: Vec::new() };
        let mut result = sample::result();
        result.experiment = Experiment::Faults(record);
        result.audit = audit(runs.iter());
        (result.runs, result.comparisons) = (runs, Vec::new());
        result.arms = vec![Arm::of("ours", "a broker")];
        result
    }

    fn page_of(result: &RunResult) -> Page {
        page(result, result.faults().unwrap())
    }

    #[test]
    fn the_answer_counts_lost_records_and_gives_the_longest_wait() {
        let told = page_of(&faults()).answer.remove(0);
        for part in [
            "On ours 0 of 1,080,000 acknowledged records were lost, 0 came twice",
            "the longest wait of a record was 0.021 [0.0",
            "with the broker stopped for 1.00 s 1.01 [1.0",
            "with the broker killed and started again 0.401 [0.3",
        ] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert!(!told.contains("connections cut"), "{told}");
    }

    #[test]
    fn every_fault_has_its_row_its_bar_and_its_course() {
        let mut result = faults();
        for run in result.runs.iter_mut().filter(|run| run.case == Fault::Killed.name()) {
            (run.audit.lost, run.audit.duplicated) = (2, 1);
        }
        let page = page_of(&result);
        let rows = &page.table.as_ref().unwrap().rows;
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2][..4], ["ours", "broker killed", "6", "3"].map(String::from));
        let ids: Vec<&str> = page.all_charts().map(|chart| chart.id.as_str()).collect();
        assert_eq!(ids[..2], ["waits", "course-undisturbed"]);
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert!(back == result);
    }
}
