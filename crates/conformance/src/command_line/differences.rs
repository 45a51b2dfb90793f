//! Where our broker or the proxy makes a tool print something else, and why.

/// Lines that differ in the output of some commands.
pub(super) struct Difference {
    /// The command; a `*` stands for any text.
    pub(super) command: &'static str,
    /// What the lines contain that are wanted, and missing.
    pub(super) wanted: Option<&'static str>,
    /// What the lines contain that are found instead.
    pub(super) found: Option<&'static str>,
    /// Why.
    pub(super) reason: &'static str,
}

impl Difference {
    pub(super) fn covers(&self, line: &str) -> bool {
        let mut rest = line;
        for (number, part) in self.command.split('*').enumerate() {
            let place =
                if number == 0 { rest.starts_with(part).then_some(0) } else { rest.find(part) };
            let Some(place) = place else { return false };
            rest = &rest[place + part.len()..];
        }
        rest.is_empty() || self.command.ends_with('*')
    }

    pub(super) fn is_wanted(&self, line: &str) -> bool {
        self.wanted.is_some_and(|part| line.contains(part))
    }

    pub(super) fn is_found(&self, line: &str) -> bool {
        self.found.is_some_and(|part| line.contains(part))
    }
}

const CLEANER: &str = "`log.cleaner.threads` does not exist, because compaction adapts to the load";
const FEATURES: &str = "there is no metadata version, KRaft version or epoch of features";
const LEVELS: &str = "the levels of features are fixed: the broker always serves every feature";
const QUORUM: &str = "the broker keeps its metadata in its own journal, whose end is counted in \
    bytes; there are no elections and no controller listener";

/// Of our broker from Apache Kafka.
pub(super) const OF_BROKER: &[Difference] = &[
    Difference {
        command: "kafka-configs --alter *log.cleaner.threads=2",
        wanted: Some("exit 0"),
        found: Some("exit 1"),
        reason: CLEANER,
    },
    Difference {
        command: "kafka-configs --alter *log.cleaner.threads=2",
        wanted: Some("Completed updating config"),
        found: Some("log.cleaner.threads"),
        reason: CLEANER,
    },
    Difference {
        command: "kafka-configs --describe --entity-type brokers --entity-name 0",
        wanted: Some("log.cleaner.threads=2"),
        found: None,
        reason: CLEANER,
    },
    Difference {
        command: "kafka-broker-api-versions",
        wanted: Some("usable: "),
        found: Some("UNSUPPORTED"),
        reason: "APIs between nodes, and of a controller, are not served",
    },
    Difference {
        command: "kafka-features describe",
        wanted: Some("Feature: "),
        found: Some("Feature: "),
        reason: FEATURES,
    },
    Difference {
        command: "kafka-features downgrade --feature share.version=0 --dry-run",
        wanted: Some("exit 0"),
        found: Some("exit 1"),
        reason: LEVELS,
    },
    Difference {
        command: "kafka-features downgrade --feature share.version=0 --dry-run",
        wanted: Some("can be downgraded"),
        found: Some("downgrade share.version"),
        reason: LEVELS,
    },
    Difference {
        command: "kafka-features downgrade --feature share.version=0 --dry-run",
        wanted: None,
        found: Some("operation(s) failed"),
        reason: LEVELS,
    },
    Difference {
        command: "kafka-metadata-quorum describe --status",
        wanted: Some("LeaderEpoch:"),
        found: Some("LeaderEpoch:"),
        reason: QUORUM,
    },
    Difference {
        command: "kafka-metadata-quorum describe --status",
        wanted: Some("HighWatermark:"),
        found: Some("HighWatermark:"),
        reason: QUORUM,
    },
    Difference {
        command: "kafka-metadata-quorum describe --status",
        wanted: Some("CurrentVoters:"),
        found: Some("CurrentVoters:"),
        reason: QUORUM,
    },
    Difference {
        command: "kafka-metadata-quorum describe --replication",
        wanted: Some("Leader"),
        found: Some("Leader"),
        reason: QUORUM,
    },
];

/// Of our broker from Apache Kafka, in the commands of users.
pub(super) const OF_USERS: &[Difference] = &[Difference {
    command: "bob$ *",
    wanted: Some("Request Request("),
    found: Some("Cluster authorization failed."),
    reason: "Kafka prints its own object of the request, which says nothing to a user",
}];

/// Of the proxy from the broker behind it.
pub(super) const OF_PROXY: &[Difference] = &[Difference {
    command: "kafka-broker-api-versions",
    wanted: Some("SaslHandshake(17): 0 to 1"),
    found: Some("SaslHandshake(17): 1 "),
    reason: "the proxy relays SASL from SaslHandshake 1 on: bare tokens, which follow \
            version 0, have no frame of Kafka's",
}];
