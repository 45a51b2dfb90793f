//! What the framework costs: records per second and core of the raw client and of handlers that do
//! nothing, measured side by side.
//!
//! `cargo run --release -p moldau-consumer --example throughput -- [records=4000000] [rounds=5]
//! [partitions=1,10] [modes=raw,batch,record,key,unordered] [bootstrap=HOST:PORT]`
//!
//! Each measurement is a process of its own, so its CPU time is that of the consumer alone. Without
//! `bootstrap`, the broker is another process that this one starts. A line per mode gives medians.
//!
//! With `tests=1000` it times so many tests with a broker each, in parallel. With `stall=600` it
//! prints the memory of an app whose handlers stand still for so many seconds.
//!
//! With `topics=1000` it measures what many topics cost instead, all of them together with so many
//! `records`: see `topics`.
//!
//! | module | what it holds |
//! |---|---|
//! | `fill` | the broker's process, and the records of a topic |
//! | `limits` | tests in parallel, and handlers that stand still |
//! | `modes` | one measurement: a process that consumes a topic |
//! | `topics` | measurements of many topics |

mod fill;
mod limits;
mod modes;
mod topics;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

type Error = Box<dyn std::error::Error>;

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("broker") => fill::serve(),
        Some("measure") => modes::measure(&Options::of(&arguments[1..])?),
        Some("measure-topics") => topics::measure(&Options::of(&arguments[1..])?),
        Some("measure-stall") => limits::measure_stall(&Options::of(&arguments[1..])?),
        _ => {
            let options = Options::of(&arguments)?;
            match (options.tests, options.stall, options.topics) {
                (Some(count), ..) => limits::tests(count),
                (_, Some(seconds), _) => limits::stall(&options, seconds),
                (_, _, Some(_)) => topics::compare(&options),
                _ => compare(&options),
            }
        }
    }
}

/// What the command line says.
#[derive(Clone, Debug)]
struct Options {
    bootstrap: Option<String>,
    topic: String,
    topics: Option<usize>,
    tests: Option<usize>,
    /// Seconds.
    stall: Option<u64>,
    records: usize,
    partitions: Vec<usize>,
    rounds: usize,
    modes: Vec<String>,
}

impl Options {
    fn of(arguments: &[String]) -> Result<Self, Error> {
        let modes = ["raw", "batch", "record", "key", "unordered"].map(str::to_owned);
        let mut options = Self {
            bootstrap: None,
            topic: "throughput".to_owned(),
            topics: None,
            tests: None,
            stall: None,
            records: 4_000_000,
            partitions: vec![1, 10],
            rounds: 5,
            modes: modes.to_vec(),
        };
        for argument in arguments {
            let (name, value) = argument.split_once('=').ok_or("arguments are name=value")?;
            match name {
                "bootstrap" => options.bootstrap = Some(value.to_owned()),
                "topic" => value.clone_into(&mut options.topic),
                "topics" => options.topics = Some(value.parse()?),
                "tests" => options.tests = Some(value.parse()?),
                "stall" => options.stall = Some(value.parse()?),
                "records" => options.records = value.parse()?,
                "partitions" => {
                    options.partitions =
                        value.split(',').map(str::parse).collect::<Result<_, _>>()?;
                }
                "rounds" => options.rounds = value.parse()?,
                "modes" => options.modes = value.split(',').map(str::to_owned).collect(),
                _ => return Err(format!("no argument {name}").into()),
            }
        }
        Ok(options)
    }
}

/// A process that ends with its owner.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        // One that has ended already is fine.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn start(arguments: &[String]) -> Result<(Process, String), Error> {
    let program = std::env::current_exe()?;
    let child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut process = Process(child);
    let stdout = process.0.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(stdout).read_line(&mut line)?;
    Ok((process, line.trim().to_owned()))
}

/// Records per second; CPU seconds and page faults per million records.
type Figures = (f64, f64, f64);

/// The broker that the command line names, or one of its own.
fn broker(options: &Options) -> Result<(Option<Process>, String), Error> {
    if let Some(bootstrap) = &options.bootstrap {
        return Ok((None, bootstrap.clone()));
    }
    let (process, address) = start(&["broker".to_owned()])?;
    Ok((Some(process), address))
}

fn compare(options: &Options) -> Result<(), Error> {
    let (_broker, bootstrap) = broker(options)?;
    for &partitions in &options.partitions {
        let topic = format!("{}-{partitions}-{}", options.topic, options.records);
        fill::fill(&bootstrap, &topic, partitions, options.records)?;
        let mut figures: Vec<Vec<Figures>> = vec![Vec::new(); options.modes.len()];
        for _round in 0..options.rounds {
            for (mode, figures) in options.modes.iter().zip(&mut figures) {
                figures.push(run(mode, &bootstrap, &topic, partitions, options.records)?);
            }
        }
        print(partitions, &options.modes, &figures);
    }
    Ok(())
}

fn run(
    mode: &str,
    bootstrap: &str,
    topic: &str,
    partitions: usize,
    records: usize,
) -> Result<Figures, Error> {
    let (_process, line) = start(&[
        "measure".to_owned(),
        format!("bootstrap={bootstrap}"),
        format!("topic={topic}"),
        format!("partitions={partitions}"),
        format!("records={records}"),
        format!("modes={mode}"),
    ])?;
    let figures: Vec<&str> = line.split(' ').collect();
    let [rate, cpu, faults] = figures[..] else { return Err(format!("{mode}: {line}").into()) };
    Ok((rate.parse()?, cpu.parse()?, faults.parse()?))
}

fn print(partitions: usize, modes: &[String], figures: &[Vec<Figures>]) {
    println!("{partitions} partitions");
    println!(
        "mode        M records/s  M records/s and core  CPU s/M  speed/raw  CPU raw/mode  faults/M"
    );
    let medians: Vec<Figures> = figures
        .iter()
        .map(|of_mode| {
            let of = |figure: fn(&Figures) -> f64| median(of_mode.iter().map(figure));
            (of(|it| it.0), of(|it| it.1), of(|it| it.2))
        })
        .collect();
    let (raw_rate, raw_cpu, _) = medians.first().copied().unwrap_or((1.0, 1.0, 0.0));
    for (mode, (rate, cpu, faults)) in modes.iter().zip(&medians) {
        println!(
            "{mode:<10} {:>12.3} {:>21.3} {:>8.3} {:>10.3} {:>13.3} {faults:>9.0}",
            rate / 1e6,
            1.0 / cpu,
            cpu,
            rate / raw_rate,
            raw_cpu / cpu,
        );
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}
