//! What may stand between clients and broker, as data: each front is one entry.
//!
//! In configurations these words stand for something of the run:
//!
//! | word | what takes its place |
//! |---|---|
//! | `$BROKER`, `$TLS_BROKER` | where the broker listens, plainly and with TLS |
//! | `$FILES` | the directory of [`FrontFiles`](crate::systems::FrontFiles) |
//! | `$KEY`, `$KEY_ID` | alias and id of the key encryption key |
//! | `$VERSION` | the version of Kroxylicious, in descriptions |

use std::fmt;

use crate::systems::ClientSecurity;
use moldau_load::payload::Account;

/// What may stand between clients and broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    name: &'static str,
    /// What the broker is behind, for people.
    pub(super) about: &'static str,
    pub(super) between: Between,
}

/// What it is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Between {
    Nothing,
    Relay,
    Moldau(Gateway),
    Kroxylicious { sealing: bool },
}

/// One virtual cluster of our proxy, and what clients have to know of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Gateway {
    /// The key `upstream` of the virtual cluster.
    pub(super) upstream: &'static str,
    /// Its further keys, as lines of YAML.
    pub(super) keys: &'static str,
    pub(super) clients: ClientSecurity,
    pub(super) values: Values,
    pub(super) topics: Topics,
}

/// What it looks for in the values of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Values {
    /// Nothing.
    Any,
    /// JSON.
    Json,
    /// JSON whose account it masks.
    Masked,
}

/// What topics are called on the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topics {
    /// As clients call them.
    Same,
    /// Otherwise: they have to be made through the front.
    Renamed,
}

/// Our proxy without anything.
const BARE: Gateway = Gateway {
    upstream: "[\"$BROKER\"]",
    keys: "",
    clients: ClientSecurity::Plain,
    values: Values::Any,
    topics: Topics::Same,
};

impl Front {
    /// The broker itself.
    pub const DIRECT: Self = Self { name: "direct", about: "nothing", between: Between::Nothing };

    /// A bare TCP relay.
    pub const RELAY: Self = Self {
        name: "relay",
        about: "a bare TCP relay, two threads per connection that read and write; the client \
                reaches the broker through it whatever it advertises",
        between: Between::Relay,
    };

    /// Our proxy without a filter.
    pub const PASSTHROUGH: Self = ours("passthrough", "without a filter", BARE);

    /// Our proxy with record encryption.
    pub const ENCRYPTION: Self = ours(
        "encryption",
        "with record_encryption, one key encryption key for all topics, in memory",
        Gateway { keys: ENCRYPTION, ..BARE },
    );

    /// Kroxylicious without a filter.
    pub const KROXYLICIOUS: Self = Self {
        name: "kroxylicious",
        about: "Kroxylicious $VERSION without a filter, 512 MiB heap",
        between: Between::Kroxylicious { sealing: false },
    };

    /// Kroxylicious with record encryption.
    pub const KROXYLICIOUS_ENCRYPTION: Self = Self {
        name: "kroxylicious-encryption",
        about: "Kroxylicious $VERSION with RecordEncryption, one key encryption key for all \
                topics, in memory, 512 MiB heap",
        between: Between::Kroxylicious { sealing: true },
    };

    /// What `all` names: our proxy beside others, in the order of tables.
    pub const PEERS: [Self; 6] = [
        Self::DIRECT,
        Self::RELAY,
        Self::PASSTHROUGH,
        Self::ENCRYPTION,
        Self::KROXYLICIOUS,
        Self::KROXYLICIOUS_ENCRYPTION,
    ];

    /// What `gateway` names: our proxy with each thing that a gateway does by itself, in the order
    /// of tables.
    pub const GATEWAY: [Self; 15] = [
        Self::DIRECT,
        Self::PASSTHROUGH,
        ours(
            "tls",
            "with TLS towards clients, of aws_lc",
            Gateway { keys: TLS, clients: ClientSecurity::Tls, ..BARE },
        ),
        ours(
            "tls-ring",
            "with TLS towards clients, of ring",
            Gateway { keys: TLS_RING, clients: ClientSecurity::Tls, ..BARE },
        ),
        ours(
            "mtls",
            "with TLS towards clients that show a certificate",
            Gateway { keys: MUTUAL_TLS, clients: ClientSecurity::MutualTls, ..BARE },
        ),
        ours(
            "tls-both",
            "with TLS towards clients and towards the broker",
            Gateway { upstream: TLS_UPSTREAM, keys: TLS, clients: ClientSecurity::Tls, ..BARE },
        ),
        ours(
            "scram",
            "that authenticates clients by SCRAM-SHA-256",
            Gateway { keys: SCRAM, clients: ClientSecurity::Scram, ..BARE },
        ),
        ours(
            "multi_tenant",
            "with multi_tenant, a prefix before the names of topics",
            Gateway { keys: MULTI_TENANT, topics: Topics::Renamed, ..BARE },
        ),
        ours(
            "authorization",
            "with authorization by 102 rules",
            Gateway { keys: AUTHORIZATION, ..BARE },
        ),
        ours(
            "header",
            "with header, which adds one to each produced record",
            Gateway { keys: HEADER, ..BARE },
        ),
        ours(
            "mask",
            "with mask, which hides one of three fields of each consumed record",
            Gateway { keys: MASK, values: Values::Masked, ..BARE },
        ),
        ours(
            "record_validation",
            "with record_validation, by which each produced value has to be JSON",
            Gateway { keys: RECORD_VALIDATION, values: Values::Json, ..BARE },
        ),
        ours(
            "quota",
            "with quota, limits of a principal, a client id and a topic that are never reached",
            Gateway { keys: QUOTA, ..BARE },
        ),
        ours(
            "audit",
            "with audit into a file, a summary each second",
            Gateway { keys: AUDIT, ..BARE },
        ),
        ours(
            "chaos",
            "with chaos, a rule that matches each request and strikes none",
            Gateway { keys: CHAOS, ..BARE },
        ),
    ];

    /// Every front there is.
    pub fn every() -> impl Iterator<Item = Self> {
        let others = Self::GATEWAY.into_iter().filter(|front| !Self::PEERS.contains(front));
        Self::PEERS.into_iter().chain(others)
    }

    /// The words that name one or several of them, for [`Front::named`].
    pub fn words() -> impl Iterator<Item = &'static str> {
        Self::every().map(Self::name).chain(["all", "gateway"])
    }

    /// Those that a word names; none by any other.
    #[must_use]
    pub fn named(word: &str) -> Vec<Self> {
        match word {
            "all" => Self::PEERS.to_vec(),
            "gateway" => Self::GATEWAY.to_vec(),
            name => Self::every().filter(|front| front.name == name).collect(),
        }
    }

    /// Name of its arm.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Whether it is Kroxylicious, which has to be fetched first.
    #[must_use]
    pub fn is_kroxylicious(self) -> bool {
        matches!(self.between, Between::Kroxylicious { .. })
    }

    /// Whether values have to be JSON.
    pub(in crate::experiments) fn reads_json(self) -> bool {
        self.gateway().is_some_and(|gateway| gateway.values != Values::Any)
    }

    /// How the account in values reaches consumers.
    pub(super) fn account(self) -> Account {
        match self.gateway() {
            Some(Gateway { values: Values::Masked, .. }) => Account::Masked,
            _ => Account::Clear,
        }
    }

    pub(super) fn security(self) -> ClientSecurity {
        self.gateway().map_or(ClientSecurity::Plain, |gateway| gateway.clients)
    }

    pub(super) fn renames_topics(self) -> bool {
        self.gateway().is_some_and(|gateway| gateway.topics == Topics::Renamed)
    }

    fn gateway(self) -> Option<Gateway> {
        match self.between {
            Between::Moldau(gateway) => Some(gateway),
            Between::Nothing | Between::Relay | Between::Kroxylicious { .. } => None,
        }
    }
}

impl fmt::Display for Front {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const fn ours(name: &'static str, about: &'static str, gateway: Gateway) -> Front {
    Front { name, about, between: Between::Moldau(gateway) }
}

const TLS_UPSTREAM: &str =
    "{servers: [\"$TLS_BROKER\"], tls: {trust_file: '$FILES/authority.pem'}}";

const TLS: &str = "\
tls:
  certificate_file: '$FILES/server.pem'
  key_file: '$FILES/server.key'
";

const TLS_RING: &str = "\
tls:
  certificate_file: '$FILES/server.pem'
  key_file: '$FILES/server.key'
  crypto_provider: ring
";

const MUTUAL_TLS: &str = "\
tls:
  certificate_file: '$FILES/server.pem'
  key_file: '$FILES/server.key'
  trust_file: '$FILES/authority.pem'
  client_authentication: required
";

const SCRAM: &str = "\
sasl:
  terminate: {mechanisms: [SCRAM-SHA-256], users_file: '$FILES/users'}
";

const ENCRYPTION: &str = "\
filters:
  - record_encryption:
      template: $KEY
      kms:
        memory:
          keks:
            - uuid: $KEY_ID
              alias: $KEY
              secret_file: '$FILES/kek'
";

const MULTI_TENANT: &str = "\
filters:
  - multi_tenant: {}
";

const AUTHORIZATION: &str = "\
filters:
  - authorization: {rules_file: '$FILES/rules'}
";

const HEADER: &str = "\
filters:
  - header:
      rules:
        - topics: [lab-*]
          on: produce
          add:
            - {key: source, value: {static: gateway}}
";

const MASK: &str = "\
filters:
  - mask:
      rules:
        - topics: [lab-*]
          fields: [$.account]
          masking: all
";

const RECORD_VALIDATION: &str = "\
filters:
  - record_validation:
      rules:
        - topics: [lab-*]
          value: {allow_null: false, content: {json: {}}}
";

const QUOTA: &str = "\
filters:
  - quota:
      limits:
        - entity: {principal: <default>}
          produce_bytes_per_second: 1000000000000
          fetch_bytes_per_second: 1000000000000
        - entity: {client_id: <default>}
          requests_per_second: 1000000000
        - entity: {topic: <default>}
          produce_bytes_per_second: 1000000000000
          fetch_bytes_per_second: 1000000000000
";

const AUDIT: &str = "\
filters:
  - audit:
      file: '$FILES/audit.jsonl'
      summary_interval_s: 1
";

const CHAOS: &str = "\
filters:
  - chaos:
      rules:
        - apis: [Produce, Fetch]
          topics: [lab-*]
          probability: 0
          fault: {error: NOT_LEADER_OR_FOLLOWER}
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_front_has_a_name_of_its_own_by_which_it_is_found() {
        let every: Vec<Front> = Front::every().collect();
        for front in &every {
            assert_eq!(Front::named(front.name()), [*front]);
        }
        assert_eq!(Front::words().count(), every.len() + 2);
        assert!(Front::words().all(|word| !Front::named(word).is_empty()));
        // Two are in both.
        assert_eq!(every.len(), Front::PEERS.len() + Front::GATEWAY.len() - 2);
        assert!(Front::named("nothing").is_empty());
    }

    #[test]
    fn what_reads_values_is_known() {
        let readers: Vec<&str> =
            Front::every().filter(|front| front.reads_json()).map(Front::name).collect();
        assert_eq!(readers, ["mask", "record_validation"]);
        let masking = |front: &Front| front.account() == Account::Masked;
        assert_eq!(Front::every().filter(masking).map(Front::name).collect::<Vec<_>>(), ["mask"]);
    }
}
