//! What the self-tests run against: a null sink, and the broker.

use super::{Findings, Plan};
use crate::checks::{Check, Weight};
use crate::experiments::bench::{Bench, Path};
use crate::result::Arm;
use crate::systems::{Durability, Process, ProcessSpec, Ready, free_addresses, moldau_broker};
use moldau_load::generator::{Measured, Setup, produce_watched};
use moldau_load::ledger::audit;
use moldau_load::null_sink;
use moldau_load::workload::Workload;
use moldau_measure::Error;

pub(super) const SINK: &str = "null sink";
pub(super) const BROKER: &str = "moldau broker";

/// A running target.
pub(super) struct Target {
    pub(super) path: Path,
    pub(super) process: Process,
    /// Whether it keeps the records, so that they can be read back.
    keeps: bool,
}

impl Target {
    /// A sink that acknowledges what it gets and keeps nothing.
    pub(super) fn sink(plan: &Plan) -> Result<Self, Error> {
        let [listen] = free_addresses()?;
        let spec = ProcessSpec {
            role: "sink".into(),
            program: plan.moldau.clone(),
            args: null_sink::arguments(listen),
            env: Vec::new(),
            ready: Ready::Tcp(listen),
        };
        let process = Process::start(&spec, &plan.conditions.work_directory)?;
        let processes = vec![(process.role().to_string(), process.pid())];
        let path = Path::to(SINK, listen.to_string(), processes)?;
        Ok(Self { path, process, keeps: false })
    }

    /// Our broker, which acknowledges once the operating system has the records: what the disk
    /// takes for a flush is no matter of these tests.
    pub(super) fn broker(plan: &Plan) -> Result<Self, Error> {
        let [listen, admin] = free_addresses()?;
        let directory = plan.conditions.directory(BROKER)?;
        let data = directory.join("data");
        let spec = moldau_broker(&plan.moldau, &data, listen, admin, Durability::Os);
        let process = Process::start(&spec, &directory)?;
        let processes = vec![(process.role().to_string(), process.pid())];
        let path = Path::to(BROKER, listen.to_string(), processes)?;
        Ok(Self { path, process, keeps: true })
    }

    pub(super) fn name(&self) -> &str {
        &self.path.arm
    }

    /// One run, whose records are all accounted for: read back where they are kept, and counted by
    /// their acknowledgements where not. `at_edge` is called at both ends of the window.
    pub(super) fn run(
        &self,
        bench: &mut Bench<'_>,
        findings: &mut Findings,
        workload: &Workload,
        at_edge: &mut dyn FnMut(),
    ) -> Result<Measured, Error> {
        let workload = Workload { consume: self.keeps, ..workload.clone() };
        let setup = bench.setup(&self.path, 0, &workload);
        if self.keeps {
            self.path.control.create_topic(&setup.topic, workload.partitions)?;
        }
        let measured = produce_watched(&setup, at_edge)?;
        if self.keeps {
            self.account(&setup, &measured, findings)?;
        }
        Ok(measured)
    }

    fn account(
        &self,
        setup: &Setup,
        measured: &Measured,
        findings: &mut Findings,
    ) -> Result<(), Error> {
        let delivered = measured.delivered.as_ref().expect("the workload consumes");
        let audit = audit(&measured.sent, delivered);
        let held = self.path.control.records_held(&setup.topic, setup.workload.partitions)?;
        findings.audit = findings.audit.plus(audit);
        if held < audit.acked {
            findings.checks.push(Check {
                name: format!("records of {} that the broker holds", setup.topic),
                passed: false,
                weight: Weight::Records,
                found: held.to_string(),
                demanded: format!(">= {}", audit.acked),
            });
        }
        self.path.control.delete_topic(&setup.topic)
    }
}

/// The arms of a self-test that has both targets.
pub(super) fn arms() -> Vec<Arm> {
    let what = "moldau broker, acknowledging once the operating system has it";
    let sink = "a process that acknowledges what it is sent and keeps nothing";
    vec![Arm::of(SINK, sink), Arm::of(BROKER, what)]
}
