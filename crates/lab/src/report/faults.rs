//! The report on faults: what became of records and clients when connections were cut or a broker
//! stood still or was killed.

use super::chart::{self, Chart};
use super::grid::Grid;
use super::html::plot;
use super::table::NONE;
use crate::faults::{Fault, FaultsRecord, audit, longest_s};
use crate::result::{RunRecord, RunResult, Slot};
use crate::survey::Estimate;
use moldau_measure::histograms::Summary;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, plain, thousands};
use moldau_measure::statistics::{float, median};

/// What became of records, and how long clients waited, for each system.
pub(super) fn sentence(result: &RunResult, record: &FaultsRecord) -> String {
    let answers = result.arms.iter().map(|arm| answer(result, record, &arm.name));
    answers.collect::<Vec<_>>().join(" ")
}

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

/// A table for each system.
pub(super) fn grids(result: &RunResult, record: &FaultsRecord) -> Vec<Grid> {
    result.arms.iter().map(|arm| grid(result, record, &arm.name)).collect()
}

fn grid(result: &RunResult, record: &FaultsRecord, system: &str) -> Grid {
    let rows = Fault::ALL.into_iter().filter(|it| it.runs(&result.runs, system).count() > 0);
    let rows = rows.map(|fault| {
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
            fault.name().into(),
            thousands(found.acked),
            thousands(found.lost),
            thousands(found.duplicated),
            thousands(found.reordered),
            thousands(others),
            thousands(found.unknown + found.failed),
            middle(|summary| summary.p50_ns),
            middle(|summary| summary.p99_ns),
            middle(|summary| summary.p999_ns),
            longest_s(runs(), result.seed).map_or(NONE.into(), seconds),
        ]
    });
    Grid::of(
        &format!("What struck {system}"),
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
            "",
            "acknowledged",
            "lost",
            "twice",
            "out of order",
            "other faults",
            "not acknowledged",
            "p50, ms",
            "p99, ms",
            "p99.9, ms",
            "longest, s",
        ],
        rows,
    )
}

/// The sections of the page.
pub(super) fn html(result: &RunResult, record: &FaultsRecord, charts: &mut Vec<Chart>) -> String {
    let mut html: String = grids(result, record).iter().map(Grid::html).collect();
    for fault in Fault::ALL {
        let longest = |_: &RunRecord, slot: &Slot| chart::ms(slot.response_max_ns);
        if let Some(course) = chart::course(result, fault.name(), "ms", longest) {
            let title = format!("{}: longest wait of the records of each slot", fault.name());
            html += &plot(&title, course, charts);
        }
    }
    html
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
    use crate::report::{html, markdown, sample, sentence, text};
    use crate::result::{Arm, Experiment, LatencyRecord};
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

    #[test]
    fn the_answer_counts_what_was_lost_and_tells_the_longest_wait() {
        let told = sentence(&faults());
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
    fn every_fault_has_its_row_and_its_course() {
        let mut result = faults();
        for run in result.runs.iter_mut().filter(|run| run.case == Fault::Killed.name()) {
            (run.audit.lost, run.audit.duplicated) = (2, 1);
        }
        let record = result.faults().unwrap();
        let [grid] = grids(&result, record).try_into().ok().unwrap();
        assert_eq!(grid.rows.len(), 3);
        assert_eq!(grid.rows[2][..4], ["broker killed", "360,000", "6", "3"].map(String::from));
        let page = html(&result).unwrap();
        assert!(page.contains("broker killed: longest wait") && page.len() < 2 << 20);
        for report in [page, markdown(&result), text(&result)] {
            assert!(report.contains("What struck ours"), "{report}");
        }
        let back = RunResult::from_json(&result.to_json().unwrap()).unwrap();
        assert!(back == result);
    }
}
