//! What `kafka-broker-api-versions` shows, against the list of what the broker serves.

use std::collections::BTreeSet;

use crate::check::Check;
use crate::target::Kind;

/// The APIs that the broker serves, by Kafka's names. Nothing else may be advertised: a client
/// chooses its way by what it sees here.
const SERVED: [&str; 68] = [
    "AddOffsetsToTxn",
    "AddPartitionsToTxn",
    "AlterClientQuotas",
    "AlterConfigs",
    "AlterPartitionReassignments",
    "AlterShareGroupOffsets",
    "AlterUserScramCredentials",
    "ApiVersions",
    "ConsumerGroupDescribe",
    "ConsumerGroupHeartbeat",
    "CreateAcls",
    "CreateDelegationToken",
    "CreatePartitions",
    "CreateTopics",
    "DeleteAcls",
    "DeleteGroups",
    "DeleteRecords",
    "DeleteShareGroupOffsets",
    "DeleteTopics",
    "DescribeAcls",
    "DescribeClientQuotas",
    "DescribeCluster",
    "DescribeConfigs",
    "DescribeDelegationToken",
    "DescribeGroups",
    "DescribeLogDirs",
    "DescribeProducers",
    "DescribeQuorum",
    "DescribeShareGroupOffsets",
    "DescribeTopicPartitions",
    "DescribeTransactions",
    "DescribeUserScramCredentials",
    "ElectLeaders",
    "EndTxn",
    "ExpireDelegationToken",
    "Fetch",
    "FindCoordinator",
    "GetTelemetrySubscriptions",
    "Heartbeat",
    "IncrementalAlterConfigs",
    "InitProducerId",
    "JoinGroup",
    "LeaveGroup",
    "ListConfigResources",
    "ListGroups",
    "ListOffsets",
    "ListPartitionReassignments",
    "ListTransactions",
    "Metadata",
    "OffsetCommit",
    "OffsetDelete",
    "OffsetFetch",
    "OffsetForLeaderEpoch",
    "Produce",
    "PushTelemetry",
    "RenewDelegationToken",
    "SaslAuthenticate",
    "SaslHandshake",
    "ShareAcknowledge",
    "ShareFetch",
    "ShareGroupDescribe",
    "ShareGroupHeartbeat",
    "StreamsGroupDescribe",
    "StreamsGroupHeartbeat",
    "SyncGroup",
    "TxnOffsetCommit",
    "UpdateFeatures",
    "WriteTxnMarkers",
];

/// Those that the brokers of a cluster do not serve.
const NOT_OF_CLUSTERS: [&str; 6] = [
    "AlterPartitionReassignments",
    "DescribeLogDirs",
    "DescribeQuorum",
    "ElectLeaders",
    "UpdateFeatures",
    "WriteTxnMarkers",
];

/// The names of the APIs that the tool calls usable. Its lines read
/// `Produce(0): 0 to 13 [usable: 13],` or `ControlledShutdown(7): UNSUPPORTED`.
pub(super) fn advertised(output: &str) -> BTreeSet<String> {
    output
        .lines()
        .filter(|line| line.contains("[usable:"))
        .filter_map(|line| line.trim().split_once('('))
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Every served API must be there; where the broker is ours, nothing beside them.
pub(super) fn compare(advertised: &BTreeSet<String>, kind: Kind) -> Vec<Check> {
    let served = SERVED.iter().filter(|name| !kind.is_cluster() || !NOT_OF_CLUSTERS.contains(name));
    let served: BTreeSet<String> = served.map(|name| (*name).to_owned()).collect();
    let missing: Vec<_> = served.difference(advertised).cloned().collect();
    let mut checks = vec![Check::new(
        "every API of the list is advertised and usable",
        missing.is_empty(),
        &format!("missing: {}", missing.join(", ")),
    )];
    if kind.is_ours() {
        let extra: Vec<_> = advertised.difference(&served).cloned().collect();
        checks.push(Check::new(
            "no other API is advertised",
            extra.is_empty(),
            &format!("beside the list: {}", extra.join(", ")),
        ));
    }
    checks
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "127.0.0.1:9092 (id: 1 rack: null isFenced: false) -> (
\tProduce(0): 0 to 13 [usable: 13],
\tControlledShutdown(7): UNSUPPORTED,
\tUNKNOWN(99): 0 to 1,
)";

    #[test]
    fn only_usable_apis_count_as_advertised() {
        assert_eq!(advertised(SAMPLE), BTreeSet::from(["Produce".to_owned()]));
    }

    #[test]
    fn an_api_beside_the_list_fails_where_the_list_is_exact() {
        let mut all: BTreeSet<String> = SERVED.iter().map(|name| (*name).to_owned()).collect();
        let is_right = |all: &BTreeSet<String>, kind| compare(all, kind).iter().all(|it| it.ok);
        assert!(is_right(&all, Kind::Broker));
        assert!(!is_right(&all, Kind::Cluster), "a cluster does not serve all of it");
        all.insert("AddRaftVoter".to_owned());
        assert!(is_right(&all, Kind::Kafka));
        assert!(!is_right(&all, Kind::Broker));
        all.remove("Fetch");
        assert!(!is_right(&all, Kind::Kafka));
    }
}
