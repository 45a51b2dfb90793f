//! `kafka-configs` with quotas, and `kafka-producer-perf-test` under one.

use anyhow::Result;

use super::{CONFIGS, PRODUCER_PERFORMANCE, Tools, both_outputs};

impl Tools<'_> {
    pub(super) fn quotas(&mut self) -> Result<()> {
        let name = self.topic;
        let user = ["--entity-type", "users", "--entity-name", name];
        let client = ["--entity-type", "clients", "--entity-name", name];
        let set = "producer_byte_rate=2048,consumer_byte_rate=4096,request_percentage=50.5";
        for (what, entity) in [("a user", &user[..]), ("a client", &client)] {
            let altered =
                self.tool(CONFIGS, &[&["--alter", "--add-config", set], entity].concat())?;
            let done = format!("quotas of {what} are set");
            self.shows(&done, &altered, "Completed updating config");
            let described = self.tool(CONFIGS, &[&["--describe"], entity].concat())?;
            for value in ["producer_byte_rate=2048.0", "request_percentage=50.5"] {
                self.shows(&format!("{value} of {what} is described"), &described, value);
            }
        }
        let both = [&user[..], &client].concat();
        let set = ["--alter", "--add-config", "producer_byte_rate=20000"];
        self.tool(CONFIGS, &[&set[..], &both].concat())?;
        let described = self.tool(CONFIGS, &[&["--describe"][..], &both].concat())?;
        self.shows("a quota of both together", &described, "producer_byte_rate=20000.0");
        let unset = ["--alter", "--delete-config", "producer_byte_rate"];
        self.tool(CONFIGS, &[&unset[..], &both].concat())?;
        let described = self.tool(CONFIGS, &[&["--describe"][..], &both].concat())?;
        self.lacks("it is unset", &described, "producer_byte_rate");
        let wrong = ["--alter", "--add-config", "producer_byte_rate=-1"];
        let refused = self.tool(CONFIGS, &[&wrong[..], &client].concat())?;
        self.check("a quota of -1 is refused", !refused.success(), &both_outputs(&refused));
        self.throttled(name)?;
        let unset = "producer_byte_rate,consumer_byte_rate,request_percentage";
        for entity in [&user[..], &client] {
            let unset = ["--alter", "--delete-config", unset];
            let altered = self.tool(CONFIGS, &[&unset[..], entity].concat())?;
            self.shows("quotas are unset", &altered, "Completed updating config");
        }
        let described = self.tool(CONFIGS, &[&["--describe"][..], &client].concat())?;
        self.lacks("nothing is left", &described, "byte_rate");
        Ok(())
    }

    /// A producer with a quota of 20 KB/s writes 400 KB: the client takes at least the time that is
    /// beyond what it may send at once, and says for how long it was throttled.
    fn throttled(&mut self, client_id: &str) -> Result<()> {
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
