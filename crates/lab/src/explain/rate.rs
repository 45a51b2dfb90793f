//! Why a run is not faster. A resource that binds fills all queues before it, so what stands at the
//! end of the queues is asked first, and the window of the producers, which is always full, late.

use super::{
    About, BUSY_SHARE_MIN, Cause, Change, Facts, Finding, GAIN_MAX, MACHINE_SHARE_MIN, SHARE_MIN,
    WINDOW_SHARE_MIN, percent,
};
use crate::punctuality::{foreign_share, is_saturated, is_scheduled};
use moldau_load::workload::{Acks, BYTES_PER_MB, Codec, Pace};
use moldau_measure::cpu::GENERATOR_ROLE;
use moldau_measure::cpu::HostUsage;
use moldau_measure::evidence::ThreadEvidence;
use moldau_measure::numbers::digits;
use moldau_measure::statistics::float;

/// Time that all threads together wait for a processor, as a share of the window.
const QUEUE_SHARE_MIN: f64 = 0.4;

/// Share of the bytes on their way that lie in sockets where no further bytes are carried.
const WAITING_SHARE_MIN: f64 = 0.5;

/// What is promised where nothing says how much there is to gain.
const GAIN_UNKNOWN: f64 = 1.5;

/// Busy processes that are added at most: more of them stop the machine and show no more.
const BUSY_PROCESSES_MAX: u16 = 64;

pub(super) fn findings(facts: &Facts<'_>) -> Vec<Finding> {
    let run = facts.run;
    if is_scheduled(run) && !is_saturated(run) {
        return vec![Finding {
            cause: Cause::Offered,
            share: 1.0,
            says: format!(
                "{} records/s came and {} were offered",
                digits(facts.figure),
                digits(float(run.offered) / (float(run.window_ns) / 1e9))
            ),
            change: Change::DoubleRate,
            expected: 2.0,
        }];
    }
    let mut findings = facts.outages(About::Rate);
    findings.extend(quota(facts));
    findings.extend(other_processes(facts));
    // What collects garbage takes processors, and stops the threads that have them.
    findings.extend(garbage_collection(facts));
    findings.extend(all_processors(facts));
    findings.extend(generator(facts));
    findings.extend(thread(facts));
    findings.extend(windows(facts));
    findings
}

fn quota(facts: &Facts<'_>) -> Option<Finding> {
    let clients = f64::from(facts.run.workload.all_producers().max(1));
    let share = float(facts.run.requests.throttled_ns) / float(facts.run.window_ns.max(1));
    let share = (share / clients).min(1.0);
    (share >= SHARE_MIN).then(|| Finding {
        cause: Cause::Quota,
        share,
        says: format!("answers tell clients to wait (throttle_time_ms) for {} of the time", {
            percent(share)
        }),
        change: Change::PastTheFront,
        expected: GAIN_MAX,
    })
}

/// Processors of the machine.
fn processors(host: &HostUsage, window_ns: u64) -> f64 {
    let ticks = host.ticks();
    (float(ticks) * 1e7 / float(window_ns.max(1))).round().max(1.0)
}

/// Processors that the processes of the run had, on average.
fn own_processors(facts: &Facts<'_>) -> f64 {
    let own = facts.run.processes.iter().map(|usage| float(usage.cpu_ns)).sum::<f64>();
    own / float(facts.run.window_ns.max(1))
}

/// By what the rate falls when as many processes as said want a processor besides `runnable`.
fn crowded(runnable: f64, more: f64) -> f64 {
    runnable.max(1.0) / (runnable.max(1.0) + more)
}

/// A number of processes.
fn whole(count: f64) -> u16 {
    (1..=BUSY_PROCESSES_MAX).rev().find(|whole| f64::from(*whole) <= count).unwrap_or(1)
}

fn other_processes(facts: &Facts<'_>) -> Option<Finding> {
    let threads = facts.system().flat_map(|process| &process.threads).chain(facts.generator());
    let share: f64 = threads.map(|thread| facts.evidence.share(thread.wait_ns)).sum();
    let foreign = foreign_share(facts.run)?;
    if share < QUEUE_SHARE_MIN || foreign < SHARE_MIN {
        return None;
    }
    let others =
        (facts.evidence.runnable - own_processors(facts)).clamp(1.0, BUSY_PROCESSES_MAX.into());
    Some(Finding {
        cause: Cause::OtherProcesses,
        share: share.min(1.0),
        says: format!(
            "other processes took {} of the machine, and threads of the run waited for a processor \
             {} s in each second",
            percent(foreign),
            digits(share)
        ),
        change: Change::BusyProcesses(whole(others)),
        expected: crowded(facts.evidence.runnable, others),
    })
}

fn all_processors(facts: &Facts<'_>) -> Option<Finding> {
    let run = facts.run;
    let all = processors(&run.host, run.window_ns);
    let share = own_processors(facts) / all;
    (share >= MACHINE_SHARE_MIN).then(|| Finding {
        cause: Cause::Processors,
        share: share.min(1.0),
        says: format!("the processes of the run took {} of {all} processors", percent(share)),
        change: Change::BusyProcesses(whole(all)),
        expected: crowded(facts.evidence.runnable.max(all), all),
    })
}

/// By what the rate rises with another thread, as far as there are processors.
fn another_thread(facts: &Facts<'_>) -> f64 {
    let all = processors(&facts.run.host, facts.run.window_ns);
    (all / own_processors(facts).max(0.1)).clamp(1.1, GAIN_MAX)
}

fn generator(facts: &Facts<'_>) -> Option<Finding> {
    let (thread, share) = busiest(facts, facts.generator())?;
    let codec = facts.run.workload.tuning.compression;
    // Whatever has no name is not known to be another.
    let is_producer = thread.name.is_empty() || thread.name.starts_with("lab-producer");
    let (cause, doing, change, expected) = match codec {
        Codec::None => {
            let expected = another_thread(facts);
            (Cause::Generator, "makes and sends records", Change::DoubleProducers, expected)
        }
        _ => (Cause::Compression, "compresses batches", Change::NoCompression, GAIN_UNKNOWN),
    };
    is_producer.then(|| Finding {
        cause,
        share,
        says: format!(
            "the producer's {}, which {doing}, was busy {} of the time",
            named(thread),
            percent(share)
        ),
        change,
        expected,
    })
}

fn garbage_collection(facts: &Facts<'_>) -> Option<Finding> {
    let (process, share) = facts.worst(|it| facts.evidence.share(it.garbage_collection_ns))?;
    (share >= SHARE_MIN).then(|| Finding {
        cause: Cause::GarbageCollection,
        share,
        says: format!("{} collected garbage for {} of the time", process.role, percent(share)),
        change: Change::MoreMemory,
        expected: (1.0 / (1.0 - 0.75 * share.min(0.8))).min(GAIN_MAX),
    })
}

fn thread(facts: &Facts<'_>) -> Option<Finding> {
    let all = facts.system().filter(|process| process.role != GENERATOR_ROLE);
    let (thread, share) = busiest(facts, all.flat_map(|process| &process.threads))?;
    Some(Finding {
        cause: Cause::Thread,
        share,
        says: format!(
            "the {} of the system was busy {} of the time",
            named(thread),
            percent(share)
        ),
        change: Change::DoubleProducers,
        expected: another_thread(facts),
    })
}

/// A thread by its name, if it is known.
fn named(thread: &ThreadEvidence) -> String {
    match thread.name.as_str() {
        "" => "busiest thread".into(),
        name => format!("thread {name}"),
    }
}

fn busiest<'a>(
    facts: &Facts<'_>,
    threads: impl Iterator<Item = &'a ThreadEvidence>,
) -> Option<(&'a ThreadEvidence, f64)> {
    // A thread that waits for a processor is as little idle as one that has it.
    let thread = threads.max_by_key(|thread| thread.cpu_ns + thread.wait_ns)?;
    let share = facts.evidence.share(thread.cpu_ns + thread.wait_ns);
    (share >= BUSY_SHARE_MIN).then_some((thread, share.min(1.0)))
}

/// What is left when no processor is busy: something is waited for. Where what is on its way lies
/// in sockets, it waits for who should take it there, and otherwise for its answer.
fn windows(facts: &Facts<'_>) -> Vec<Finding> {
    let requests = facts.run.requests;
    let share = facts.in_flight / float(requests.in_flight_max.max(1));
    let mut findings: Vec<Finding> = outstanding(facts).into_iter().collect();
    if share < WINDOW_SHARE_MIN || facts.round_trip_ms <= 0.0 {
        return findings;
    }
    let waiting = facts.evidence.unread_bytes;
    let waiting_share = waiting / (facts.in_flight * facts.request_bytes).max(1.0);
    let at_the_door = [partition(facts, share), bandwidth(facts, waiting, waiting_share)];
    let on_the_way = [Some(window(facts, share))];
    if waiting_share >= WAITING_SHARE_MIN {
        let (first, last) = (at_the_door, on_the_way);
        let in_order = if facts.has_front() { [1, 0] } else { [0, 1] };
        findings.extend(in_order.into_iter().filter_map(|at| first.get(at).cloned().flatten()));
        findings.extend(last.into_iter().flatten());
    } else {
        findings.extend(on_the_way.into_iter().chain(at_the_door).flatten());
    }
    findings.extend(replication(facts, share));
    findings
}

fn outstanding(facts: &Facts<'_>) -> Option<Finding> {
    let Pace::Closed { outstanding } = facts.run.workload.pace else { return None };
    let service = facts.run.latency.as_ref()?.service.summary;
    let ms = float(service.p50_ns) / 1e6;
    let allowed = f64::from(outstanding) / ms * 1e3;
    let plural = if outstanding == 1 { "" } else { "s" };
    Some(Finding {
        cause: Cause::Outstanding,
        share: (facts.figure / allowed).min(1.0),
        says: format!(
            "{outstanding} record{plural} on the way and {} ms for each allow {} records/s; \
             measured {}",
            digits(ms),
            digits(allowed),
            digits(facts.figure)
        ),
        change: Change::DoubleOutstanding,
        expected: 2.0,
    })
}

fn window(facts: &Facts<'_>, share: f64) -> Finding {
    let max = facts.run.requests.in_flight_max;
    let allowed = float(max) * facts.request_bytes / (facts.round_trip_ms / 1e3);
    let measured = facts.figure * facts.run.record_bytes();
    Finding {
        cause: Cause::Window,
        share: share.min(1.0),
        says: format!(
            "{max} requests of {} KB on their way and {} ms for each round trip allow {} MB/s; \
             measured {}",
            digits(facts.request_bytes / 1024.0),
            digits(facts.round_trip_ms),
            digits(allowed / BYTES_PER_MB),
            digits(measured / BYTES_PER_MB)
        ),
        change: Change::DoubleInFlight,
        expected: 2.0,
    }
}

fn partition(facts: &Facts<'_>, share: f64) -> Option<Finding> {
    let partitions = facts.run.workload.lanes();
    Some(Finding {
        cause: Cause::Partition,
        share: share.min(1.0),
        says: format!(
            "{} requests are on their way for {partitions} {}, no thread is busy, and each takes \
             {} ms",
            digits(facts.in_flight),
            if partitions == 1 { "partition" } else { "partitions" },
            digits(facts.round_trip_ms)
        ),
        change: Change::DoublePartitions,
        expected: 2.0,
    })
}

fn bandwidth(facts: &Facts<'_>, waiting: f64, waiting_share: f64) -> Option<Finding> {
    let measured = facts.figure * facts.run.record_bytes() / BYTES_PER_MB;
    (waiting_share >= SHARE_MIN).then(|| Finding {
        cause: Cause::Bandwidth,
        share: waiting_share.min(1.0),
        says: format!(
            "{} KB lie unread in sockets, {} of what is on its way, no thread is busy, and {} MB/s \
             are carried",
            digits(waiting / 1024.0),
            percent(waiting_share.min(1.0)),
            digits(measured)
        ),
        change: Change::PastTheFront,
        expected: GAIN_MAX,
    })
}

fn replication(facts: &Facts<'_>, share: f64) -> Option<Finding> {
    let is_replicated = facts.brokers() > 1 && facts.run.workload.tuning.acks == Acks::All;
    is_replicated.then(|| Finding {
        cause: Cause::Replication,
        share: share.min(1.0),
        says: format!("each request waits {} ms for followers", digits(facts.round_trip_ms)),
        change: Change::LeaderAcks,
        expected: GAIN_UNKNOWN,
    })
}
