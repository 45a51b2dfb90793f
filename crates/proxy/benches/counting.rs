//! What the metrics cost of an exchange: instructions of what counts requests, bytes and latencies
//! among all that the network thread takes outside the kernel, and the processor time of that
//! thread, kernel included.
//!
//! A scripted client and a scripted broker talk through a proxy without filters, one request at a
//! time: in this case a request takes the most turns of its session, and each turn reads the clock.
//! Runs itself under Valgrind's Callgrind, which must be installed, twice with another number of
//! exchanges, so that what is not theirs drops out. Valgrind knows no clock but that of the kernel,
//! so that reading it is timed apart. Run with `cargo bench -p moldau-proxy --bench counting`.

use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

#[path = "../../../benches/exchange.rs"]
#[expect(dead_code, reason = "another bench needs more of it")]
mod exchange;

use self::exchange::{PROXY_THREAD, Workload, broker, cpu_time, drive, fetch, produce, proxy};

/// Everything that a session counts by, named so that Callgrind finds it.
const COUNTING: [(&str, &str); 6] = [
    ("moldau_proxy::latency::Micros::since", "clock"),
    ("moldau_proxy::latency::Timing::spend", "times of requests"),
    ("moldau_proxy::latency::SessionLatencies::add", "histograms"),
    ("moldau_proxy::traffic::ThreadTraffic::request", "requests"),
    ("moldau_proxy::traffic::ThreadTraffic::moved", "bytes"),
    ("moldau_proxy::metrics::add", "counters of all threads"),
];
/// All tasks of a network thread; beside them it only asks the kernel for events.
const THREAD: &str = "tokio::task::local::LocalSet::tick";

/// Exchanges under Callgrind.
const FEW: usize = 200;
const MANY: usize = 1200;
/// Exchanges by the clock.
const TIMED: usize = 100_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [work, exchanges] = &arguments[..] {
        exchange(work, exchanges.parse()?);
        return Ok(());
    }
    println!("{:<34} {:>10} {:>10}", "for an exchange, records of 1 KB", "produce", "fetch");
    let counted = [count("produce")?, count("fetch")?];
    for (row, (_, what)) in COUNTING.iter().enumerate() {
        let [produce, fetch] = counted.each_ref().map(|counted| counted[row]);
        println!("{:<34} {produce:>10.1} {fetch:>10.1}", format!("instructions: {what}"));
    }
    let [produce, fetch] = counted.each_ref().map(|counted| counted[COUNTING.len()]);
    println!("{:<34} {produce:>10.1} {fetch:>10.1}", "instructions: its tasks, no kernel");
    let [produce, fetch] = ["produce", "fetch"].map(|work| exchange(work, TIMED));
    println!("{:<34} {produce:>10.1} {fetch:>10.1}", "ns: thread, with kernel");
    println!("{:<34} {:>10.1}", "ns: reading the clock once", clock());
    Ok(())
}

/// Instructions for an exchange, of each of [`COUNTING`] and of the thread.
fn count(work: &str) -> Result<Vec<f64>, Box<dyn Error>> {
    let (few, many) = (annotate(work, FEW)?, annotate(work, MANY)?);
    let exchanges = (MANY - FEW) as f64;
    Ok(few.iter().zip(many).map(|(few, many)| (many - few) / exchanges).collect())
}

fn annotate(work: &str, exchanges: usize) -> Result<Vec<f64>, Box<dyn Error>> {
    let file = std::env::temp_dir().join(format!("counting.{}", std::process::id()));
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--callgrind-out-file={}", file.display())])
        .arg(std::env::current_exe()?)
        .args([work, &exchanges.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    if !run.status.success() {
        return Err(String::from_utf8_lossy(&run.stderr).into());
    }
    let annotate = ["--inclusive=yes", "--threshold=100", "--show-percs=no"];
    let table = Command::new("callgrind_annotate").args(annotate).arg(&file).output()?;
    fs::remove_file(&file)?;
    let table = String::from_utf8(table.stdout)?;
    let names = COUNTING.iter().map(|(name, _)| *name).chain([THREAD]);
    names.map(|name| instructions(&table, name)).collect()
}

/// Instructions of a function and all that it calls; a function that is generic stands in the table
/// once for each of its types.
fn instructions(table: &str, name: &str) -> Result<f64, Box<dyn Error>> {
    let rows: Vec<&str> = table.lines().filter(|line| line.contains(name)).collect();
    let is_it = |line: &&&str| {
        let rest = line.split(name).nth(1).unwrap_or_default();
        rest.is_empty() || rest.starts_with([' ', '\'', '<'])
    };
    let numbers = rows.iter().filter(is_it).map(|line| {
        let number = line.split_whitespace().next().unwrap_or_default().replace(',', "");
        number.parse::<f64>()
    });
    let sum = numbers.sum::<Result<f64, _>>()?;
    if sum > 0.0 { Ok(sum) } else { Err(format!("{name} was not called, or has no name").into()) }
}

/// Makes so many exchanges and returns the processor time of the network thread for each, in ns.
fn exchange(work: &str, exchanges: usize) -> f64 {
    let workload: Workload = match work {
        "produce" => produce(1, 1, 1),
        _ => fetch(1, 1, 1),
    };
    let proxy = proxy(broker(workload.answer.clone()), Vec::new());
    let (_, address) = proxy.bootstrap_addresses().remove(0);
    let before = cpu_time(PROXY_THREAD);
    drive(address, &workload, exchanges, 1);
    (cpu_time(PROXY_THREAD) - before).as_nanos() as f64 / exchanges as f64
}

/// Nanoseconds that reading the clock takes, as a session does.
fn clock() -> f64 {
    const READINGS: u32 = 1_000_000;
    let start = Instant::now();
    for _ in 0..READINGS {
        black_box(black_box(start).elapsed().as_micros());
    }
    start.elapsed().as_nanos() as f64 / f64::from(READINGS)
}
