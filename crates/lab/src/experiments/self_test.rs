//! Does the laboratory keep its own promises? Each is tested with targets of known limits and
//! faults. The page shows the figures beside the demands.

mod drivers;
mod librdkafka;
mod page;
mod stall;
mod target;

use std::path::PathBuf;

use super::bench::Bench;
use super::{Conditions, Progress};
use crate::checks::{self, Check, Verdict, Weight};
use crate::result::{Arm, Experiment, RunResult};
use crate::self_test::{SelfTest, SelfTestRecord};
pub use drivers::Drivers;
use moldau_load::ledger::Audit;
use moldau_load::payload::Filler;
use moldau_load::workload::{Pace, Tuning, Workload};
use moldau_measure::Error;

pub use page::page;

/// Everything that a self-test needs to know.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What is put to the test.
    pub test: SelfTest,
    /// The `moldau` executable, started as broker and null sink.
    pub moldau: PathBuf,
    /// Under what conditions it is carried out.
    pub conditions: Conditions,
    /// The other driver, and how long it runs.
    pub drivers: Drivers,
}

/// What a self-test has found so far.
#[derive(Default)]
struct Findings {
    record: SelfTestRecord,
    checks: Vec<Check>,
    /// Every record that went to a target which keeps records.
    audit: Audit,
}

impl Findings {
    /// Notes how a promise was kept. One that was not makes the laboratory's own figures worthless.
    fn promise(&mut self, name: String, passed: bool, found: String, demanded: &str) {
        let demanded = demanded.into();
        self.checks.push(Check { name, passed, weight: Weight::Validity, found, demanded });
    }
}

/// Runs the self-test.
///
/// # Errors
/// When a target does not start, ends early or fails. A promise that is not kept is a verdict of
/// the result, not an error.
pub fn run(plan: &Plan, progress: &mut dyn Progress) -> Result<RunResult, Error> {
    let (steps, arms, test): (u32, Vec<Arm>, Test) = match plan.test {
        SelfTest::Stall => (stall::steps(plan), stall::arms(plan), stall::run),
        SelfTest::Drivers => (drivers::steps(plan), drivers::arms(plan), drivers::run),
    };
    let mut bench = Bench::new(&plan.conditions, steps, progress);
    let mut findings = Findings::default();
    test(plan, &mut bench, &mut findings)?;
    let experiment = Experiment::SelfTest(plan.test);
    let mut result = bench.finish(experiment, arms, |_, _, _| Vec::new())?;
    if findings.audit.sent > 0 {
        result.checks.push(checks::records_come_back(&findings.audit));
    }
    result.checks.append(&mut findings.checks);
    result.verdict = Verdict::of(&result.checks);
    result.audit = findings.audit;
    result.self_test = Some(findings.record);
    Ok(result)
}

/// Records of one size as fast as they go, which the self-tests vary.
fn shape(record_bytes: usize, batch_bytes: usize) -> Workload {
    Workload {
        pace: Pace::Unpaced,
        record_bytes,
        filler: Filler::Random,
        partitions: 4,
        producers: 1,
        batch_bytes,
        linger_us: 5_000,
        consume: false,
        tails: 0,
        warmup_ms: 300,
        window_ms: 2_000,
        tuning: Tuning::default(),
    }
}

type Test = fn(&Plan, &mut Bench<'_>, &mut Findings) -> Result<(), Error>;
