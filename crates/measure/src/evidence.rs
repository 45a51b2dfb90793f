//! What a run needs to know of its machine and of the processes under test for saying what limited
//! it: threads by name, time without a processor, stops, waits for the disk, flushes, collections
//! of garbage, and bytes that nobody reads.

use serde::{Deserialize, Serialize};

use crate::cpu::ProcessUsage;

/// Threads of a process that are told by name, the busiest.
pub const THREADS_MAX: usize = 8;

/// What the processes did between two moments that enclose the measured window closely.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// Time between the two, ns.
    pub elapsed_ns: u64,
    /// The processes under test in the order of the system, then the generator.
    pub processes: Vec<ProcessEvidence>,
    /// Threads that were running or waited for a processor, of the whole machine, mean over looks.
    pub runnable: f64,
    /// Bytes that lay unread in the sockets of whoever serves the first address, if that is on this
    /// machine, and behind them unsent in those of the clients, mean over looks.
    pub unread_bytes: f64,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProcessEvidence {
    /// What the process is to the experiment.
    pub role: String,
    /// Its busiest threads, the busiest first, [`THREADS_MAX`] at most.
    pub threads: Vec<ThreadEvidence>,
    /// Processor time of the busiest of a JVM's threads that collect garbage, ns; 0 of others.
    pub garbage_collection_ns: u64,
    /// Share of the looks at which it was stopped by a signal, 0 to 1.
    pub stopped_share: f64,
    /// Share of the looks at which a thread of it waited for the disk, 0 to 1.
    pub disk_wait_share: f64,
    /// Share of the periods of its control group in which its quota of processor time was used
    /// up, 0 to 1.
    pub throttled_share: f64,
    /// Bytes that it gave to the disk.
    pub written_bytes: u64,
    /// Flushes of its journal and the time that they took, where it tells them.
    pub flushes: Option<Flushes>,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ThreadEvidence {
    /// Its name as the kernel knows it, 15 bytes at most; empty where nobody looked.
    pub name: String,
    /// Its processor time, ns.
    pub cpu_ns: u64,
    /// Time that it was runnable and waited for a processor, ns.
    pub wait_ns: u64,
}

/// Flushes to the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flushes {
    /// How many.
    pub count: u64,
    /// Time that they took, ns.
    pub ns: u64,
}

impl Evidence {
    /// What the accounts of processes tell of a time in which nobody looked: the busiest thread of
    /// each.
    #[must_use]
    pub fn of_accounts(processes: &[ProcessUsage], elapsed_ns: u64) -> Self {
        let process = |usage: &ProcessUsage| ProcessEvidence {
            role: usage.role.clone(),
            threads: vec![ThreadEvidence { cpu_ns: usage.busiest_thread_ns, ..Default::default() }],
            ..ProcessEvidence::default()
        };
        Self { elapsed_ns, processes: processes.iter().map(process).collect(), ..Self::default() }
    }

    /// Share of the time that something took, 0 where there was none.
    #[must_use]
    pub fn share(&self, ns: u64) -> f64 {
        if self.elapsed_ns == 0 {
            return 0.0;
        }
        crate::statistics::float(ns) / crate::statistics::float(self.elapsed_ns)
    }
}
