//! What is there to start systems and clients from, in commands.

use std::collections::BTreeMap;
use std::path::Path;

use moldau_measure::Error;

use super::{Scope, variables};

/// What the variables of system files stand for; what is not there is `None`, and systems that need
/// it are left out.
#[derive(Clone, Debug, Default)]
pub struct Installations {
    /// The `moldau` executable.
    pub moldau: String,
    /// The `java` executable.
    pub java: String,
    /// Class path of Apache Kafka.
    pub kafka: Option<String>,
    /// Class path of an Apache Kafka that knows ZooKeeper, which Kafka 4 does not.
    pub kafka_zookeeper: Option<String>,
    /// Directory of Kroxylicious.
    pub kroxylicious: Option<String>,
    /// The executable that reads by the `StreamConsumer` of rdkafka.
    pub stream_consumer: Option<String>,
    /// Bootstrap address of a cluster that runs already.
    pub external: Option<String>,
}

impl Installations {
    /// Puts the installations and the directory of a process into the arguments of its command.
    ///
    /// # Errors
    /// [`Error::Plan`] for a variable that is unknown, or whose installation is not there.
    pub fn expand(&self, texts: &[String], directory: &Path) -> Result<Vec<String>, Error> {
        let scope = Scope {
            installations: self,
            addresses: BTreeMap::new(),
            directory: Some(directory.display().to_string()),
            certificates: None,
            temporary: None,
            secret: String::new(),
        };
        scope.expand_all(texts)
    }

    /// What `text` needs and is not there, in words.
    #[must_use]
    pub fn missing(&self, texts: &[&str]) -> Option<&'static str> {
        let needs = |name: &str| texts.iter().any(|text| variables(text).any(|it| it == name));
        let Self { kafka, kafka_zookeeper, kroxylicious, stream_consumer, external, .. } = self;
        [
            (kafka, "kafka", "Apache Kafka is not there; fetch it with: cargo xtask peers"),
            (
                kafka_zookeeper,
                "kafka-zookeeper",
                "Apache Kafka with ZooKeeper is not there; fetch it with: cargo xtask peers",
            ),
            (
                kroxylicious,
                "kroxylicious",
                "Kroxylicious is not there; fetch it with: cargo xtask peers",
            ),
            (
                stream_consumer,
                "stream-consumer",
                "rdkafka is not there; build it with: cargo xtask peers stream-consumer",
            ),
            (external, "external", "no cluster was named; name one with: --external HOST:PORT"),
        ]
        .into_iter()
        .find_map(|(found, name, words)| (found.is_none() && needs(name)).then_some(words))
    }
}
