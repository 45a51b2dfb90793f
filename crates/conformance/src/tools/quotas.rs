//! `kafka-producer-perf-test` under a quota.

use anyhow::Result;

use super::{CONFIGS, PRODUCER_PERFORMANCE, Tools};

impl Tools<'_> {
    /// A producer with a quota of 20 KB/s writes 400 KB: the client takes at least the time that is
    /// beyond what it may send at once, and says for how long it was throttled.
    pub(super) fn quotas(&mut self) -> Result<()> {
        let client_id = self.topic;
        self.create_topic(1)?;
        let entity = ["--entity-type", "clients", "--entity-name", client_id];
        let set = ["--alter", "--add-config", "producer_byte_rate=20000"];
        self.tool(CONFIGS, &[&set[..], &entity].concat())?;
        let client_id = format!("client.id={client_id}");
        let bootstrap = format!("bootstrap.servers={}", self.bootstrap);
        let work = ["--num-records", "400", "--record-size", "1000", "--throughput", "-1"];
        let settings = ["--producer-props", &client_id, &bootstrap, "batch.size=4000", "acks=all"];
        let named = ["--topic", self.topic, "--print-metrics"];
        let finished = self.tool(PRODUCER_PERFORMANCE, &[&named[..], &work, &settings].concat())?;
        self.shows("all records are sent", &finished, "400 records sent");
        let throttled = finished.stdout.lines().find(|it| it.contains("produce-throttle-time-max"));
        let longest = throttled.and_then(|line| line.rsplit(':').next()?.trim().parse().ok());
        let ok = longest.is_some_and(|time: f64| time > 0.0);
        self.check("the producer is throttled", ok, throttled.unwrap_or(&finished.stdout));
        Ok(())
    }
}
