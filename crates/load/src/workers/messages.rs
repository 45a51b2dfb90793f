//! The messages between a coordinator and a worker.

use serde::{Deserialize, Serialize};

use crate::generator::{Clients, Layout, Setup, Share, ShareRecord};
use crate::payload::Account;
use crate::security::Credentials;
use crate::workload::Workload;
use moldau_measure::Error;

/// What a coordinator says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ToWorker {
    /// The first message.
    Greeting {
        /// Version of the program: messages are those of one version.
        version: String,
    },
    /// Nothing but that it is there.
    Alive,
    /// A question for the clock.
    Clock,
    /// A load to get ready for.
    Prepare(Box<Load>),
    /// The start of the load that is ready, by the worker's clock, ns.
    Begin {
        /// When.
        start_ns: u64,
    },
    /// Nothing more is produced.
    Finish {
        /// The offsets after the last acknowledged records by lane, of all workers.
        ends: Vec<u64>,
    },
    /// The experiment is over.
    Goodbye,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum FromWorker {
    /// The first message.
    Greeting {
        /// Version of the program.
        version: String,
        /// What its kernel calls itself since it was started: the same for all on one machine.
        machine: String,
    },
    /// Nothing but that it is there.
    Alive,
    /// The answer to a question for the clock.
    Clock {
        /// When the question came, ns.
        received_ns: u64,
        /// When this left, ns.
        answered_ns: u64,
    },
    /// Every thread is connected.
    Ready,
    /// Its producers are done.
    Settled {
        /// The offsets after its last acknowledged records by lane.
        ends: Vec<u64>,
    },
    /// What it measured.
    Outcome(Box<ShareRecord>),
    /// What kept it from that.
    Failed {
        /// The reason.
        reason: String,
    },
}

/// A load, as sent to a worker.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Load {
    bootstrap: String,
    bootstrap_only: bool,
    credentials: Option<Credentials>,
    account: Account,
    waits_in_turn: bool,
    topic: String,
    run: u32,
    seed: u64,
    workload: Workload,
    layout: Layout,
    first_producer: u16,
    is_accounted: bool,
    pub(super) share: Share,
}

impl Load {
    pub(super) fn of(setup: &Setup, share: Share) -> Self {
        Self {
            bootstrap: setup.bootstrap.clone(),
            bootstrap_only: setup.clients.bootstrap_only,
            credentials: setup.clients.credentials.clone(),
            account: setup.clients.account,
            waits_in_turn: setup.clients.waits_in_turn,
            topic: setup.topic.clone(),
            run: setup.run,
            seed: setup.seed,
            workload: setup.workload.clone(),
            layout: setup.layout,
            first_producer: setup.first_producer,
            is_accounted: setup.is_accounted,
            share,
        }
    }

    pub(super) fn into_setup(self) -> Result<Setup, Error> {
        let Self { bootstrap_only, account, credentials, waits_in_turn, .. } = self;
        let security = credentials.as_ref().map(Credentials::security).transpose()?;
        let security = security.unwrap_or_default();
        Ok(Setup {
            bootstrap: self.bootstrap,
            clients: Clients { bootstrap_only, security, credentials, account, waits_in_turn },
            topic: self.topic,
            run: self.run,
            seed: self.seed,
            workload: self.workload,
            layout: self.layout,
            first_producer: self.first_producer,
            processes: Vec::new(),
            is_accounted: self.is_accounted,
        })
    }
}
