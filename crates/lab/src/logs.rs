//! What a result holds in forms that other tools read: HdrHistogram's interval log, and the course
//! of its runs as CSV.

use crate::result::{LatencyRecord, RunResult};
use moldau_measure::histograms::HistogramRecord;
use moldau_measure::statistics::float;

/// Every histogram of every run in HdrHistogram's log format 1.3, which its tools merge and draw.
///
/// A line has the tag `CASE/ARM/PAIR/KIND`, the kinds being those of [`LatencyRecord`]. Values are
/// ns, the column of the longest is in ms. `None` where no run has latencies.
pub(crate) fn histogram_log(result: &RunResult) -> Option<String> {
    let started = float(result.started_unix_ms) / 1e3;
    let mut log = format!(
        "#[Histogram log format version 1.3]\n\
         #[StartTime: {started:.3} (seconds since epoch), {} UTC]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\
         \"Interval_Compressed_Histogram\"\n",
        result.id
    );
    let mut has_any = false;
    for run in &result.runs {
        let Some(LatencyRecord { lag, service, response, end_to_end }) = &run.latency else {
            continue;
        };
        let kinds = [
            ("lag", lag),
            ("service", service),
            ("response", response),
            ("end_to_end", end_to_end),
        ];
        for (kind, HistogramRecord { summary, hdr_v2_deflate }) in kinds {
            if summary.count == 0 {
                continue;
            }
            has_any = true;
            let tag = tag(&format!("{}/{}/{}/{kind}", run.case, run.arm, run.pair));
            log += &format!(
                "Tag={tag},{:.3},{:.3},{:.3},{hdr_v2_deflate}\n",
                float(run.window_start_ms) / 1e3,
                float(run.window_ns) / 1e9,
                float(summary.max_ns) / 1e6,
            );
        }
    }
    has_any.then_some(log)
}

/// A tag of the log ends at a comma, and white space would part it.
fn tag(name: &str) -> String {
    let mut tag = name.replace([',', ' ', '\r', '\n', '\t'], "_");
    while tag.contains("__") {
        tag = tag.replace("__", "_");
    }
    tag
}

/// A row for each slot of each run. `None` where no run has a course.
pub(crate) fn series_csv(result: &RunResult) -> Option<String> {
    let mut csv = String::from(
        "case,arm,pair,at_ms,slot_ms,produced_records,consumed_records,silence_ns,\
         response_p50_ns,response_p99_ns,response_max_ns,end_to_end_p99_ns\n",
    );
    let header = csv.len();
    for run in &result.runs {
        for (slot, found) in (0_u64..).zip(&run.series) {
            csv += &format!(
                "{},{},{},{},{},{},{},{},{},{},{},{}\n",
                quoted(&run.case),
                quoted(&run.arm),
                run.pair,
                run.window_start_ms + slot * run.slot_ms,
                run.slot_ms,
                found.produced_records,
                found.consumed_records,
                found.silence_ns,
                found.response_p50_ns,
                found.response_p99_ns,
                found.response_max_ns,
                found.end_to_end_p99_ns,
            );
        }
    }
    (csv.len() > header).then_some(csv)
}

/// A field of RFC 4180.
fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD as BASE64;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;
    use crate::sample;

    #[test]
    fn the_log_is_read_by_the_library_and_holds_the_same_samples() {
        let result = sample::result();
        let log = histogram_log(&result).unwrap();
        let mut found = Vec::new();
        for entry in IntervalLogIterator::new(log.as_bytes()) {
            if let LogEntry::Interval(interval) = entry.unwrap() {
                let bytes = BASE64.decode(interval.encoded_histogram()).unwrap();
                let histogram: hdrhistogram::Histogram<u64> =
                    Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                let tag = interval.tag().unwrap().as_str().to_owned();
                found.push((tag, histogram.len(), interval.duration().as_secs()));
            }
        }
        let with_latency = result.runs.iter().filter(|run| run.latency.is_some()).count();
        assert_eq!(found.len(), 4 * with_latency);
        let tag = "Fixed_rate_produced_and_consumed/direct/0/lag".to_owned();
        assert_eq!(found[0], (tag, 40_000, 6));
    }

    #[test]
    fn the_course_has_a_row_for_each_slot() {
        let result = sample::result();
        let csv = series_csv(&result).unwrap();
        let slots: usize = result.runs.iter().map(|run| run.series.len()).sum();
        assert_eq!(csv.lines().count(), 1 + slots);
        let second = csv.lines().nth(2).unwrap();
        let start = "\"Fixed rate, produced and consumed\",\"direct\",0,250,250,";
        assert!(second.starts_with(start), "{second}");
    }

    #[test]
    fn a_result_without_runs_has_neither() {
        let mut result = sample::result();
        result.runs.clear();
        assert_eq!((histogram_log(&result), series_csv(&result)), (None, None));
    }
}
