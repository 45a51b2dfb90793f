//! Records of different sizes and keys: their mean size, and the share of the largest partition.

use crate::page::Table;
use crate::result::{RunRecord, RunResult};
use moldau_load::shape::{Keys, Shape};
use moldau_measure::numbers::thousands;
use moldau_measure::statistics::{float, median};

/// A row for each load and system whose records differ; none where all are alike.
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
            "What the records were",
            "Counted over all acknowledged records of a run, medians over the runs. MB are of \
             these sizes. The largest partition is the one with most records, beside the share \
             that each would have of an even load.",
            &["load", "system", "keys", "mean size, B", "largest partition", "even share"],
            rows.into_iter(),
        )
    })
}

fn row(case: &str, arm: &str, runs: &[&RunRecord]) -> Option<Vec<String>> {
    let shape = &runs.first()?.workload.tuning.shape;
    let skews: Vec<_> = runs.iter().filter_map(|run| run.skew).collect();
    let partitions = skews.first()?.partitions;
    let sizes: Vec<f64> = runs.iter().map(|run| run.record_bytes()).collect();
    let shares: Vec<f64> = skews.iter().map(|skew| 100.0 * skew.largest_share()).collect();
    Some(vec![
        case.to_owned(),
        arm.to_owned(),
        keys(shape),
        format!("{:.0}", median(&sizes)),
        format!("{:.1} %", median(&shares)),
        format!("{:.1} %", 100.0 / float(u64::from(partitions).max(1))),
    ])
}

fn keys(shape: &Shape) -> String {
    let law = match shape.keys {
        None => return "none".into(),
        Some(Keys::RoundRobin { .. }) => "in turn".to_owned(),
        Some(Keys::Uniform { .. }) => "uniform".to_owned(),
        Some(Keys::Zipf { exponent, .. }) => format!("Zipf {exponent}"),
    };
    let count = shape.keys.map_or(0, Keys::count);
    format!("{}, {law}", thousands(count.into()))
}

/// What a load takes from files of the user, in words behind its size; empty without any.
pub(crate) fn words(shape: &Shape) -> String {
    let sizes = if shape.sizes.is_some() { ", sizes differ" } else { "" };
    let corpus = shape.corpus.as_ref().map(|corpus| {
        let what = if corpus.lines { "lines of" } else { "cut from" };
        format!(", {what} {}", corpus.file)
    });
    let trace = shape
        .trace
        .as_ref()
        .map(|trace| format!(", instants of {} at {} times their speed", trace.file, trace.speed));
    [sizes.to_owned(), corpus.unwrap_or_default(), trace.unwrap_or_default()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use moldau_load::run::Skew;

    /// The sample, whose records have keys. One key is frequent.
    fn keyed() -> RunResult {
        let mut result = sample::result();
        for run in result.runs.iter_mut().filter(|run| run.case == sample::FIXED) {
            run.workload.tuning.shape.keys = Some(Keys::Zipf { count: 2_000, exponent: 1.1 });
            run.skew = Some(Skew {
                records: 120_000,
                value_bytes: 60_000_000,
                largest_partition_records: 48_000,
                partitions: 4,
            });
        }
        result
    }

    #[test]
    fn the_share_of_the_largest_partition_is_reported() {
        let result = keyed();
        let rows = table(&result).unwrap().rows;
        let expected = ["2,000, Zipf 1.1", "500", "40.0 %", "25.0 %"];
        assert_eq!(rows.len(), 2);
        for row in &rows {
            assert_eq!(row[2..], expected.map(str::to_owned), "{row:?}");
        }
    }

    #[test]
    fn records_that_are_alike_need_no_table() {
        assert!(table(&sample::result()).is_none());
        assert_eq!(words(&Shape::default()), "");
    }

    #[test]
    fn a_megabyte_is_of_the_sizes_that_were() {
        let run = keyed().runs.remove(0);
        assert!((run.record_bytes() - 500.0).abs() < 1e-9);
        assert!((run.megabytes(1 << 20) - 500.0).abs() < 1e-9);
        let skewless = sample::result().runs.remove(0);
        assert!((skewless.megabytes(1_024) - 1.0).abs() < 1e-9);
    }
}
