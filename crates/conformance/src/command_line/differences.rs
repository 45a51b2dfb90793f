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

const WORDING: &str = "an error message has other words";
const IN_SYNC: &str = "`min.insync.replicas` is the built-in default; Kafka's controller sets it \
    as a default of the cluster";
const CLEANER: &str = "`log.cleaner.threads` cannot be changed while the broker runs";
const FEATURES: &str = "there is no metadata version, KRaft version or epoch of features";
const LEVELS: &str = "the levels of features are fixed";
const QUORUM: &str = "the broker keeps its metadata in its own journal, whose end is counted in \
    bytes; there are no elections and no controller listener";

/// Of our broker from Apache Kafka.
pub(super) const OF_BROKER: &[Difference] = &[
    Difference {
        command: "kafka-topics --create --topic orders",
        wanted: Some("Topic 'orders' already exists"),
        found: Some("topic orders already exists"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --create --topic far *",
        wanted: Some("no such broker is registered"),
        found: Some("broker 0 is the only broker"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --create --topic many *",
        wanted: Some("target replication factor of 3"),
        found: Some("larger than the number of brokers"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --create --topic 'a b'",
        wanted: Some("Topic name is invalid"),
        found: Some("a topic name must have"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --alter --topic orders --partitions 3",
        wanted: Some("would not be an increase"),
        found: Some("is not an increase"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --alter --topic orders --partitions 4",
        wanted: Some("Topic already has 4"),
        found: Some("is not an increase"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --describe *",
        wanted: Some("Configs: min.insync.replicas=1"),
        found: Some("Configs:"),
        reason: IN_SYNC,
    },
    Difference {
        command: "kafka-configs --describe --all *",
        wanted: Some("DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1"),
        found: Some("{DEFAULT_CONFIG:min.insync.replicas=1}"),
        reason: IN_SYNC,
    },
    Difference {
        command: "kafka-configs --describe --entity-type brokers --entity-default",
        wanted: Some("DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1"),
        found: None,
        reason: IN_SYNC,
    },
    Difference {
        command: "kafka-configs --alter *no.such.config=1",
        wanted: Some("Unknown topic config name"),
        found: Some("is not a configuration of a topic"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *retention.ms=week",
        wanted: Some("Not a number of type LONG"),
        found: Some("must be an integer"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *producer_byte_rate=-1",
        wanted: Some("must be greater than 0"),
        found: Some("must be above 0"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *--entity-name absent *",
        wanted: Some("The topic 'absent' does not exist"),
        found: Some("unknown topic absent"),
        reason: WORDING,
    },
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
        command: "kafka-configs --alter *SCRAM-SHA-512",
        wanted: Some("Attempt to delete a user credential"),
        found: Some("the user has no such credential"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *consumer.session.timeout.ms=1",
        wanted: Some("must be in the range"),
        found: Some("takes a number from"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-client-metrics --alter --name producers --interval 10",
        wanted: Some("interval must be between"),
        found: Some("interval.ms must be from"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-*-groups --describe --group absent",
        wanted: Some("Group absent not found"),
        found: Some("group absent"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-transactions describe --transactional-id perf",
        wanted: Some("CompleteCommit"),
        found: Some("None None"),
        reason: "the start time of a transaction is not kept after its end",
    },
    Difference {
        command: "kafka-transactions describe-producers --topic payments *",
        wanted: Some("-1"),
        found: Some("0 0 0"),
        reason: "a producer without transactions has the coordinator epoch 0; Kafka shows -1",
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
        command: "kafka-features upgrade --feature no.such.version=1",
        wanted: Some("Could not upgrade"),
        found: Some("Could not upgrade"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-features upgrade --feature transaction.version=99",
        wanted: Some("only supports versions"),
        found: Some("cannot be changed"),
        reason: LEVELS,
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
    Difference {
        command: "kafka-acls *",
        wanted: Some("No Authorizer is configured"),
        found: Some("authorization is off on this broker"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-leader-election *--topic absent *",
        wanted: Some("No such topic as absent"),
        found: Some("unknown topic absent"),
        reason: WORDING,
    },
];

/// Of the proxy from the broker behind it.
pub(super) const OF_PROXY: &[Difference] = &[Difference {
    command: "kafka-broker-api-versions",
    wanted: Some("SaslHandshake(17): 0 to 1"),
    found: Some("SaslHandshake(17): 1 "),
    reason: "the proxy relays SASL from SaslHandshake 1 on: bare tokens, which follow \
            version 0, have no frame of Kafka's",
}];
