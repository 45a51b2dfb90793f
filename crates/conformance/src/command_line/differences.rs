//! Where our broker makes a tool print something else, and why.

/// Lines that differ in the output of some commands.
pub(super) struct Difference {
    /// The command; a `*` stands for any text.
    pub(super) command: &'static str,
    /// What the lines contain that only Kafka makes the tool print.
    pub(super) kafka: Option<&'static str>,
    /// What the lines contain that only our broker makes it print.
    pub(super) ours: Option<&'static str>,
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

    pub(super) fn is_of_kafka(&self, line: &str) -> bool {
        self.kafka.is_some_and(|part| line.contains(part))
    }

    pub(super) fn is_of_ours(&self, line: &str) -> bool {
        self.ours.is_some_and(|part| line.contains(part))
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

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        command: "kafka-topics --create --topic orders",
        kafka: Some("Topic 'orders' already exists"),
        ours: Some("topic orders already exists"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --create --topic far *",
        kafka: Some("no such broker is registered"),
        ours: Some("broker 0 is the only broker"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --create --topic many *",
        kafka: Some("target replication factor of 3"),
        ours: Some("larger than the number of brokers"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --create --topic 'a b'",
        kafka: Some("Topic name is invalid"),
        ours: Some("a topic name must have"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --alter --topic orders --partitions 3",
        kafka: Some("would not be an increase"),
        ours: Some("is not an increase"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --alter --topic orders --partitions 4",
        kafka: Some("Topic already has 4"),
        ours: Some("is not an increase"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-topics --describe *",
        kafka: Some("Configs: min.insync.replicas=1"),
        ours: Some("Configs:"),
        reason: IN_SYNC,
    },
    Difference {
        command: "kafka-configs --describe --all *",
        kafka: Some("DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1"),
        ours: Some("{DEFAULT_CONFIG:min.insync.replicas=1}"),
        reason: IN_SYNC,
    },
    Difference {
        command: "kafka-configs --describe --entity-type brokers --entity-default",
        kafka: Some("DYNAMIC_DEFAULT_BROKER_CONFIG:min.insync.replicas=1"),
        ours: None,
        reason: IN_SYNC,
    },
    Difference {
        command: "kafka-configs --alter *no.such.config=1",
        kafka: Some("Unknown topic config name"),
        ours: Some("is not a configuration of a topic"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *retention.ms=week",
        kafka: Some("Not a number of type LONG"),
        ours: Some("must be an integer"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *--entity-name absent *",
        kafka: Some("The topic 'absent' does not exist"),
        ours: Some("unknown topic absent"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *log.cleaner.threads=2",
        kafka: Some("exit 0"),
        ours: Some("exit 1"),
        reason: CLEANER,
    },
    Difference {
        command: "kafka-configs --alter *log.cleaner.threads=2",
        kafka: Some("Completed updating config"),
        ours: Some("log.cleaner.threads"),
        reason: CLEANER,
    },
    Difference {
        command: "kafka-configs --describe --entity-type brokers --entity-name 0",
        kafka: Some("log.cleaner.threads=2"),
        ours: None,
        reason: CLEANER,
    },
    Difference {
        command: "kafka-configs --alter *SCRAM-SHA-512",
        kafka: Some("Attempt to delete a user credential"),
        ours: Some("the user has no such credential"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-configs --alter *consumer.session.timeout.ms=1",
        kafka: Some("must be in the range"),
        ours: Some("takes a number from"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-client-metrics --alter --name producers --interval 10",
        kafka: Some("interval must be between"),
        ours: Some("interval.ms must be from"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-*-groups --describe --group absent",
        kafka: Some("Group absent not found"),
        ours: Some("group absent"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-transactions describe --transactional-id perf",
        kafka: Some("CompleteCommit"),
        ours: Some("None None"),
        reason: "the start time of a transaction is not kept after its end",
    },
    Difference {
        command: "kafka-transactions describe-producers --topic payments *",
        kafka: Some("-1"),
        ours: Some("0 0 0"),
        reason: "a producer without transactions has the coordinator epoch 0; Kafka shows -1",
    },
    Difference {
        command: "kafka-broker-api-versions",
        kafka: Some("usable: "),
        ours: Some("UNSUPPORTED"),
        reason: "APIs between nodes, and of a controller, are not served",
    },
    Difference {
        command: "kafka-features describe",
        kafka: Some("Feature: "),
        ours: Some("Feature: "),
        reason: FEATURES,
    },
    Difference {
        command: "kafka-features upgrade --feature no.such.version=1",
        kafka: Some("Could not upgrade"),
        ours: Some("Could not upgrade"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-features downgrade --feature share.version=0 --dry-run",
        kafka: Some("exit 0"),
        ours: Some("exit 1"),
        reason: LEVELS,
    },
    Difference {
        command: "kafka-features downgrade --feature share.version=0 --dry-run",
        kafka: Some("can be downgraded"),
        ours: Some("downgrade share.version"),
        reason: LEVELS,
    },
    Difference {
        command: "kafka-features downgrade --feature share.version=0 --dry-run",
        kafka: None,
        ours: Some("operation(s) failed"),
        reason: LEVELS,
    },
    Difference {
        command: "kafka-metadata-quorum describe --status",
        kafka: Some("LeaderEpoch:"),
        ours: Some("LeaderEpoch:"),
        reason: QUORUM,
    },
    Difference {
        command: "kafka-metadata-quorum describe --status",
        kafka: Some("HighWatermark:"),
        ours: Some("HighWatermark:"),
        reason: QUORUM,
    },
    Difference {
        command: "kafka-metadata-quorum describe --status",
        kafka: Some("CurrentVoters:"),
        ours: Some("CurrentVoters:"),
        reason: QUORUM,
    },
    Difference {
        command: "kafka-metadata-quorum describe --replication",
        kafka: Some("Leader"),
        ours: Some("Leader"),
        reason: QUORUM,
    },
    Difference {
        command: "kafka-acls *",
        kafka: Some("No Authorizer is configured"),
        ours: Some("authorization is off on this broker"),
        reason: WORDING,
    },
    Difference {
        command: "kafka-leader-election *--topic absent *",
        kafka: Some("No such topic as absent"),
        ours: Some("unknown topic absent"),
        reason: WORDING,
    },
];
