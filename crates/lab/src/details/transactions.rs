//! Times of transactions, a row for each load and system with transactional producers.

use crate::page::Table;
use crate::result::{RunRecord, RunResult};
use moldau_load::run::TransactionsRecord;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::number;
use moldau_measure::statistics::{float, median};

/// The table; none where no producer makes transactions.
pub(super) fn table(result: &RunResult) -> Option<Table> {
    let mut rows = Vec::new();
    for case in result.cases() {
        for arm in &result.arms {
            let runs: Vec<&RunRecord> = result.runs_of(case, &arm.name).collect();
            rows.extend(row(case, &arm.name, &runs));
        }
    }
    (!rows.is_empty()).then(|| {
        Table::of(
            "Transactions",
            "Medians over the runs. A commit lasts from the hand-over of the transaction's last \
             record until the coordinator has answered; the next one takes records once its \
             partitions are added, for which the coordinator first writes the end of the one \
             before to all of its. Consumers get records once they are committed.",
            &[
                "load",
                "system",
                "records each",
                "commits/s",
                "commit p50, ms",
                "commit p99, ms",
                "until the next p50, ms",
                "until the next p99, ms",
            ],
            rows.into_iter(),
        )
    })
}

fn row(case: &str, arm: &str, runs: &[&RunRecord]) -> Option<Vec<String>> {
    let records = runs.first()?.workload.tuning.transaction_records?;
    let told: Vec<(&RunRecord, &TransactionsRecord)> =
        runs.iter().filter_map(|run| Some((*run, run.transactions.as_ref()?))).collect();
    let of = |figure: &dyn Fn(&RunRecord, &TransactionsRecord) -> f64| {
        median(&told.iter().map(|(run, made)| figure(run, made)).collect::<Vec<_>>())
    };
    let ms = |figure: &dyn Fn(&TransactionsRecord) -> u64| {
        number(of(&|_, made| float(figure(made)) / 1e6), Unit::Milliseconds)
    };
    let per_second =
        of(&|run, made| float(made.commit.summary.count) / (float(run.window_ns.max(1)) / 1e9));
    (!told.is_empty()).then(|| {
        vec![
            case.to_owned(),
            arm.to_owned(),
            records.to_string(),
            format!("{per_second:.1}"),
            ms(&|made| made.commit.summary.p50_ns),
            ms(&|made| made.commit.summary.p99_ns),
            ms(&|made| made.begin.summary.p50_ns),
            ms(&|made| made.begin.summary.p99_ns),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use moldau_measure::histograms::Durations;

    #[test]
    fn commits_have_a_row_for_each_load() {
        let mut result = sample::result();
        let [mut commit, mut begin] = [Durations::default(), Durations::default()];
        commit.record(0, 4_000_000, 60);
        begin.record(0, 20_000_000, 60);
        let [commit, begin] = [commit, begin].map(|it| it.to_record().unwrap());
        let record = TransactionsRecord { commit, begin };
        for run in result.runs.iter_mut().filter(|run| run.case == sample::FIXED) {
            run.workload.tuning.transaction_records = Some(500);
            run.transactions = Some(record.clone());
        }
        let rows = table(&result).unwrap().rows;
        // 60 in 6 s.
        let expected = ["500", "10.0", "4.00", "4.00", "20.0", "20.0"];
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0][2..], expected.map(str::to_owned), "{rows:?}");
        assert!(table(&sample::result()).is_none());
    }
}
