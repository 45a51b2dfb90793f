//! Tools that ask the controller of a cluster.

use std::fs;

use anyhow::Result;

use super::{Tools, both_outputs};

const LEADER_ELECTION: &str = "org.apache.kafka.tools.LeaderElectionCommand";
const REASSIGN: &str = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand";
const QUORUM: &str = "org.apache.kafka.tools.MetadataQuorumCommand";
const FEATURES: &str = "org.apache.kafka.tools.FeatureCommand";
const TOKENS: &str = "org.apache.kafka.tools.DelegationTokenCommand";

impl Tools<'_> {
    pub(super) fn controller(&mut self) -> Result<()> {
        self.create_topic(2)?;
        self.elections()?;
        self.reassignments()?;
        self.quorum()?;
        self.features()?;
        let config = self.file("empty.properties", "")?;
        let tokens = ["--describe", "--command-config", &config];
        let tokens = self.tool(TOKENS, &tokens)?;
        let told = both_outputs(&tokens);
        let is_told = told.contains("DelegationTokenDisabledException")
            || told.contains("UnsupportedByAuthenticationException")
            || told.contains("Delegation Token");
        self.check("tokens are refused clearly", is_told && !tokens.success(), &told);
        Ok(())
    }

    fn elections(&mut self) -> Result<()> {
        let of = ["--election-type", "preferred", "--topic", self.topic, "--partition", "1"];
        let elected = self.tool(LEADER_ELECTION, &of)?;
        let wanted = format!("Valid replica already elected for partitions {}-1", self.topic);
        self.shows("a partition has its preferred leader", &elected, &wanted);
        let all = ["--election-type", "preferred", "--all-topic-partitions"];
        let elected = self.tool(LEADER_ELECTION, &all)?;
        self.check("so has every partition", elected.success(), &both_outputs(&elected));
        let of = ["--election-type", "unclean", "--topic", "absent", "--partition", "0"];
        let unknown = self.tool(LEADER_ELECTION, &of)?;
        self.check("an unknown topic is an error", !unknown.success(), &both_outputs(&unknown));
        Ok(())
    }

    fn reassignments(&mut self) -> Result<()> {
        let listed = self.tool(REASSIGN, &["--list"])?;
        self.shows("nothing is reassigned", &listed, "No partition reassignments found.");
        let described = self.tool(super::TOPICS, &["--describe", "--topic", self.topic])?;
        let broker = described.stdout.split("Leader: ").nth(1);
        let broker = broker.and_then(|rest| rest.split_whitespace().next()).unwrap_or("0");
        let plan = |replicas: &str| {
            let topic = self.topic;
            format!(
                "{{\"version\":1,\"partitions\":[{{\"topic\":\"{topic}\",\"partition\":0,\
                 \"replicas\":[{replicas}]}}]}}"
            )
        };
        let here = self.file("here.json", &plan(broker))?;
        let elsewhere = self.file("elsewhere.json", &plan("77"))?;
        let executed = self.tool(REASSIGN, &["--reassignment-json-file", &here, "--execute"])?;
        let started = "Successfully started partition reassignment";
        self.shows("a partition is assigned to where it is", &executed, started);
        let verified = self.tool(REASSIGN, &["--reassignment-json-file", &here, "--verify"])?;
        self.shows("that is done", &verified, "is completed");
        let cancelled = self.tool(REASSIGN, &["--reassignment-json-file", &here, "--cancel"])?;
        let told = both_outputs(&cancelled);
        self.check("there is nothing to cancel", told.contains("None of the specified"), &told);
        let refused =
            self.tool(REASSIGN, &["--reassignment-json-file", &elsewhere, "--execute"])?;
        self.check("an unknown broker is refused", !refused.success(), &both_outputs(&refused));
        Ok(())
    }

    fn quorum(&mut self) -> Result<()> {
        let status = self.tool(QUORUM, &["describe", "--status"])?;
        for wanted in ["LeaderId:", "HighWatermark:", "MaxFollowerLag:         0"] {
            self.shows(&format!("the status of the quorum has {wanted}"), &status, wanted);
        }
        let observers = "CurrentObservers:       []";
        self.shows("there are no observers", &status, observers);
        let replication = self.tool(QUORUM, &["describe", "--replication"])?;
        self.shows("the leader is a replica of the quorum", &replication, "Leader");
        Ok(())
    }

    fn features(&mut self) -> Result<()> {
        let described = self.tool(FEATURES, &["describe"])?;
        self.shows("features are described", &described, "Feature: transaction.version");
        let same = self.tool(FEATURES, &["upgrade", "--feature", "transaction.version=2"])?;
        self.check("the level that is in force", same.success(), &both_outputs(&same));
        let above = self.tool(FEATURES, &["upgrade", "--feature", "transaction.version=99"])?;
        self.check("no level above", !above.success(), &both_outputs(&above));
        Ok(())
    }

    fn file(&self, name: &str, content: &str) -> Result<String> {
        let file = self.directory.join(format!("{}-{name}", self.topic));
        fs::write(&file, content)?;
        Ok(file.display().to_string())
    }
}
