//! `kafka-client-metrics`, and `kafka-configs` with the same resources.

use anyhow::Result;

use super::{CLIENT_METRICS, CONFIGS, Tools, both_outputs};

impl Tools<'_> {
    pub(super) fn client_metrics(&mut self) -> Result<()> {
        let name = self.topic;
        let entity = ["--name", name];
        let set = ["--alter", "--metrics", "org.apache.kafka.producer.", "--interval", "60000"];
        let only = ["--match", "client_id=nobody"];
        let altered = self.tool(CLIENT_METRICS, &[&set[..], &only, &entity].concat())?;
        let done = format!("Altered client metrics config for {name}.");
        self.shows("client metrics are altered", &altered, &done);
        let listed = self.tool(CLIENT_METRICS, &["--list"])?;
        self.shows("they are listed", &listed, name);
        let described = self.tool(CLIENT_METRICS, &[&["--describe"][..], &entity].concat())?;
        let head = format!("Client metrics configs for {name} are:");
        for line in [
            head.as_str(),
            "interval.ms=60000",
            "match=client_id=nobody",
            "metrics=org.apache.kafka.producer.",
        ] {
            self.shows(&format!("{line} is described"), &described, line);
        }
        let of_configs = ["--entity-type", "client-metrics", "--entity-name", name];
        let shown = self.tool(CONFIGS, &[&["--describe"][..], &of_configs].concat())?;
        self.shows("kafka-configs describes them", &shown, "interval.ms=60000");
        let unset = ["--alter", "--delete-config", "interval.ms"];
        let unset = self.tool(CONFIGS, &[&unset[..], &of_configs].concat())?;
        self.shows("kafka-configs changes them", &unset, "Completed updating config");
        let wrong = ["--alter", "--interval", "10"];
        let refused = self.tool(CLIENT_METRICS, &[&wrong[..], &entity].concat())?;
        self.check("an interval of 10 is refused", !refused.success(), &both_outputs(&refused));
        let deleted = self.tool(CLIENT_METRICS, &[&["--delete"][..], &entity].concat())?;
        let done = format!("Deleted client metrics config for {name}.");
        self.shows("they are deleted", &deleted, &done);
        let listed = self.tool(CLIENT_METRICS, &["--list"])?;
        self.lacks("nothing is left", &listed, name);
        Ok(())
    }
}
