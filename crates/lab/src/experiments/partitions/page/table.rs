//! The tables of the partition experiment.

use super::{latency, of_run, size, time};
use crate::metric::Metric;
use crate::page::Table;
use crate::partitions::{
    Batching, CurvePoint, Failure, Growth, How, PartitionsRecord, full_speed_case,
};
use crate::result::RunResult;
use crate::run_figures::NONE;
use moldau_measure::numbers::Unit;
use moldau_measure::numbers::{number, thousands};
use moldau_measure::resources::Resources;
use moldau_measure::statistics::float;

/// The tables of a result that have rows.
pub(super) fn all(result: &RunResult, record: &PartitionsRecord) -> Vec<Table> {
    let tables = [
        load(result, record),
        memory(record),
        at_once(record),
        growth("Grown in increments", &record.grown),
        growth("Topics of one partition", &record.topics),
        restarts(record),
        reassignments(record),
        failures(record),
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

fn load(result: &RunResult, record: &PartitionsRecord) -> Table {
    let row = |point: &CurvePoint| {
        let case = full_speed_case(point.partitions);
        let full = |metric: Metric, unit| {
            let found = of_run(result, &case, point, metric);
            found.map_or_else(|| NONE.to_string(), |value| number(value, unit))
        };
        let fixed = |metric| match latency(result, point, metric) {
            Some(value) => number(value, Unit::Milliseconds),
            None if point.is_late => "late".into(),
            None if point.is_unsustained => "behind".into(),
            None => NONE.into(),
        };
        let batching = point.full_speed.unwrap_or_default();
        vec![
            thousands(point.partitions.into()),
            point.arm.clone(),
            thousands(point.written.into()),
            point.first_write_ns.map_or_else(|| NONE.into(), time),
            point.filling.map_or_else(|| NONE.into(), |filling| time(filling.took_ns)),
            full(Metric::ProduceThroughput, Unit::MegabytesPerSecond),
            full(Metric::BrokerCpu, Unit::CpuMillisecondsPerMegabyte),
            fixed(Metric::ResponseP50),
            fixed(Metric::ResponseP99),
            per(batching.records, batching.batches, 1.0),
            kilobytes_per(batching, batching.batches),
            kilobytes_per(batching, batching.requests),
        ]
    };
    Table::of(
        "Load",
        "First write: until the slowest of the written partitions had acknowledged its first \
         record, one offered to each within a second. Filling: until there were 128 KB for each, \
         or for a minute at most. Throughput and processor time at full speed after that, \
         latencies from the intended time at the fixed rate. late: the generator itself was late, \
         so there is no latency; behind: the system did not sustain the rate. KB are 1,024 bytes \
         of record values.",
        &[
            "partitions",
            "system",
            "written",
            "first write",
            "filling",
            "MB/s",
            "CPU-ms/MB",
            "p50 ms",
            "p99 ms",
            "records/batch",
            "KB/batch",
            "KB/request",
        ],
        record.curve.iter().map(row),
    )
}

fn memory(record: &PartitionsRecord) -> Table {
    let resident = |held: Option<Resources>| size(held.map(|held| held.resident_bytes));
    let less = |held: Option<Resources>| {
        let known = held.filter(|held| held.cache_bytes.is_some());
        size(known.map(|held| held.less_cache_bytes()))
    };
    let count = |held: Option<Resources>, figure: fn(&Resources) -> u64| {
        held.as_ref().map_or_else(|| NONE.to_string(), |held| thousands(figure(held)))
    };
    let row = |point: &CurvePoint| {
        let idle_cpu = point.idle_cpu.map(|idle| {
            let share = 100.0 * float(idle.cpu_ns) / float(idle.window_ns.max(1));
            format!("{share:.1} % after {}", time(idle.after_ns))
        });
        vec![
            thousands(point.partitions.into()),
            point.arm.clone(),
            resident(point.fresh),
            resident(point.loaded),
            less(point.loaded),
            resident(point.idle),
            less(point.idle),
            count(point.loaded, |held| held.descriptors),
            count(point.loaded, |held| held.maps),
            count(point.loaded, |held| held.threads),
            idle_cpu.unwrap_or_else(|| NONE.into()),
            size(point.disk_bytes),
        ]
    };
    Table::of(
        "What the broker holds",
        "Resident memory with the topic empty, at the end of the load, and idle once the broker \
         has come to rest after it; less cache is without the records kept for readers, where the \
         broker says how much that is. Descriptors, maps and threads at the end of the load.",
        &[
            "partitions",
            "system",
            "empty",
            "loaded",
            "less cache",
            "idle",
            "less cache",
            "descriptors",
            "maps",
            "threads",
            "idle CPU",
            "disk",
        ],
        record.curve.iter().map(row),
    )
}

fn at_once(record: &PartitionsRecord) -> Table {
    let rows = record.at_once.iter().map(|made| {
        let times = made.creation.map(|creation| [creation.answered_ns, creation.usable_ns]);
        let [answered, usable] = times.map_or([NONE.into(), NONE.into()], |times| times.map(time));
        let held = made.after;
        vec![
            thousands(made.partitions.into()),
            made.arm.clone(),
            answered,
            usable,
            size(held.map(|held| held.resident_bytes)),
            held.map_or_else(|| NONE.into(), |held| thousands(held.descriptors)),
            made.failure.as_ref().map_or_else(String::new, outcome),
        ]
    });
    Table::of(
        "Made at once",
        "One request for one topic. Answered: the client has the answer; usable: partitions all \
         over the topic answer ListOffsets. One broker makes all of them, and each is deleted \
         before the next.",
        &["partitions", "system", "answered", "usable", "resident", "descriptors", "failure"],
        rows,
    )
}

fn growth(title: &str, growths: &[Growth]) -> Table {
    let rows = growths.iter().map(|growth| {
        let [first, last] = ends(growth).map_or([NONE.into(), NONE.into()], |ends| ends.map(time));
        let sum: u64 = growth.steps.iter().map(|step| step.usable_ns).sum();
        let end = match (&growth.failure, growth.time_was_up) {
            (Some(failure), _) => outcome(failure),
            (None, true) => "time was up".into(),
            (None, false) => "all made".into(),
        };
        vec![
            growth.arm.clone(),
            thousands(growth.step.into()),
            thousands(reached(growth).into()),
            thousands(growth.intended.into()),
            time(sum),
            first,
            last,
            size(growth.after.map(|held| held.resident_bytes)),
            growth.after.map_or_else(|| NONE.into(), |held| thousands(held.descriptors)),
            end,
        ]
    });
    Table::of(
        title,
        "Each step is one request, timed until what it added is usable. First and last: the mean \
         of the first and of the last fifth of the steps.",
        &[
            "system",
            "step",
            "reached",
            "intended",
            "in all",
            "first",
            "last",
            "resident",
            "descriptors",
            "end",
        ],
        rows,
    )
}

fn restarts(record: &PartitionsRecord) -> Table {
    let maybe = |nanos: Option<u64>| nanos.map_or_else(|| NONE.to_string(), time);
    let rows = record.restarts.iter().map(|restart| {
        let audit = restart.audit.as_ref().map_or_else(
            || NONE.to_string(),
            |audit| format!("{} acknowledged, {} lost", thousands(audit.acked), audit.lost),
        );
        vec![
            thousands(restart.partitions.into()),
            restart.arm.clone(),
            size(Some(restart.bytes)),
            maybe(restart.port_ns),
            maybe(restart.produced_ns),
            maybe(restart.produced_large_ns),
            size(restart.before.map(|held| held.resident_bytes)),
            size(restart.after.map(|held| held.resident_bytes)),
            audit,
            restart.failure.as_ref().map_or_else(String::new, outcome),
        ]
    });
    Table::of(
        "Killed with SIGKILL and started again",
        "From the start of the process: the port is open; a record for a topic of one partition \
         is acknowledged. Large: how long a client that knows nothing takes to have a record for \
         the large topic acknowledged, after the data was read back.",
        &[
            "partitions",
            "system",
            "data",
            "port",
            "first record",
            "large",
            "before",
            "after",
            "records",
            "failure",
        ],
        rows,
    )
}

fn reassignments(record: &PartitionsRecord) -> Table {
    let maybe = |nanos: Option<u64>| nanos.map_or_else(|| NONE.to_string(), time);
    let rows = record.reassignments.iter().map(|moved| {
        vec![
            moved.arm.clone(),
            moved.brokers.to_string(),
            thousands(moved.partitions.into()),
            moved.requests.to_string(),
            maybe(moved.answered_ns),
            maybe(moved.moved_ns),
            moved.failure.as_ref().map_or_else(String::new, outcome),
        ]
    });
    Table::of(
        "Moved to the next broker",
        "Empty partitions with one replica. Answered: the last request; moved: the cluster says \
         that no partition is being moved any more.",
        &["system", "brokers", "partitions", "requests", "answered", "moved", "failure"],
        rows,
    )
}

fn failures(record: &PartitionsRecord) -> Table {
    let curve = record.curve.iter().map(|point| {
        (format!("{} partitions", thousands(point.partitions.into())), &point.arm, &point.failure)
    });
    let at_once = record.at_once.iter().map(|made| {
        (format!("{} at once", thousands(made.partitions.into())), &made.arm, &made.failure)
    });
    let grown = record.grown.iter().chain(&record.topics).map(|growth| {
        (format!("steps of {}", thousands(growth.step.into())), &growth.arm, &growth.failure)
    });
    let restarts = record.restarts.iter().map(|restart| {
        let what = format!("restart with {}", thousands(restart.partitions.into()));
        (what, &restart.arm, &restart.failure)
    });
    let moved = record
        .reassignments
        .iter()
        .map(|moved| ("reassignment".to_string(), &moved.arm, &moved.failure));
    let all = curve.chain(at_once).chain(grown).chain(restarts).chain(moved);
    let rows = all.filter_map(|(what, arm, failure)| {
        let failure = failure.as_ref()?;
        let limit = failure.wall.as_ref().map_or_else(|| "unknown".to_string(), wall);
        let words = failure.words.clone();
        Some(vec![what, arm.clone(), failure.during.clone(), how(failure), limit, words])
    });
    Table::of(
        "How systems failed",
        "A failure is a result. The wall is the limit that the system's words, its log or its \
         counts name.",
        &["point", "system", "while", "how", "wall", "words"],
        rows,
    )
}

/// What was reached before the end.
pub(super) fn reached(growth: &Growth) -> u32 {
    growth.steps.last().map_or(0, |step| step.total)
}

/// The mean time of the first and of the last fifth of the steps, ns.
pub(super) fn ends(growth: &Growth) -> Option<[u64; 2]> {
    let times: Vec<u64> = growth.steps.iter().map(|step| step.usable_ns).collect();
    let fifth = (times.len() / 5).max(1);
    let mean = |part: &[u64]| {
        let count = u64::try_from(part.len()).unwrap_or(1).max(1);
        part.iter().sum::<u64>() / count
    };
    let first = times.get(..fifth)?;
    let last = times.get(times.len().checked_sub(fifth)?..)?;
    Some([mean(first), mean(last)])
}

/// A failure in a few words.
pub(super) fn outcome(failure: &Failure) -> String {
    match &failure.wall {
        Some(found) => format!("{}; {}", how(failure), wall(found)),
        None => how(failure),
    }
}

fn how(failure: &Failure) -> String {
    match &failure.how {
        How::Refused { code } => format!("refused with {code}"),
        How::TimedOut => "not done in time".into(),
        How::Ended { status } => format!("ended by itself ({status})"),
        How::Broken => "no usable answer".into(),
    }
}

fn wall(wall: &crate::partitions::Wall) -> String {
    let name = wall.limit.words();
    match (wall.used, wall.of) {
        (Some(used), Some(of)) => {
            format!("{name}, {} of {} when last looked at", thousands(used), thousands(of))
        }
        (None, Some(of)) => format!("{name}, {}", thousands(of)),
        _ => name.to_string(),
    }
}

fn per(amount: u64, count: u64, unit: f64) -> String {
    if count == 0 { NONE.into() } else { format!("{:.1}", float(amount) / float(count) / unit) }
}

fn kilobytes_per(batching: Batching, count: u64) -> String {
    per(batching.bytes, count, 1024.0)
}
