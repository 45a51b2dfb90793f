//! Whom a quota is for, what it limits and over which time (KIP-546), as requests and the journal
//! name them.

use std::net::IpAddr;

/// A name in an entity.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EntityName {
    /// Whoever has no quota of their own.
    Default,
    Named(String),
}

/// Whom a quota is for: a user, a client id, both together, or the address of clients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QuotaEntity {
    User(EntityName),
    Client(EntityName),
    UserClient(EntityName, EntityName),
    Address(EntityName),
}

/// Kafka's kinds of entities.
pub(crate) const USER: &str = "user";
pub(crate) const CLIENT: &str = "client-id";
pub(crate) const ADDRESS: &str = "ip";

/// What a quota limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum QuotaKey {
    /// Bytes of produce requests a second.
    ProducerByteRate,
    /// Bytes of fetched records a second.
    ConsumerByteRate,
    /// Time of network threads in percent of one.
    RequestPercentage,
    /// Partitions created and deleted a second (KIP-599).
    ControllerMutationRate,
    /// Connections a second (KIP-612).
    ConnectionCreationRate,
}

impl QuotaKey {
    pub(crate) const ALL: [Self; 5] = [
        Self::ProducerByteRate,
        Self::ConsumerByteRate,
        Self::RequestPercentage,
        Self::ControllerMutationRate,
        Self::ConnectionCreationRate,
    ];

    /// Kafka's name.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ProducerByteRate => "producer_byte_rate",
            Self::ConsumerByteRate => "consumer_byte_rate",
            Self::RequestPercentage => "request_percentage",
            Self::ControllerMutationRate => "controller_mutation_rate",
            Self::ConnectionCreationRate => "connection_creation_rate",
        }
    }

    /// The number in the journal.
    pub(crate) const fn code(self) -> i8 {
        match self {
            Self::ProducerByteRate => 1,
            Self::ConsumerByteRate => 2,
            Self::RequestPercentage => 3,
            Self::ControllerMutationRate => 4,
            Self::ConnectionCreationRate => 5,
        }
    }

    pub(crate) fn of(code: i8) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.code() == code)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }

    /// Whether it limits addresses, and not users and clients.
    pub(crate) const fn is_of_addresses(self) -> bool {
        matches!(self, Self::ConnectionCreationRate)
    }

    /// Whether Kafka takes whole numbers only.
    pub(crate) const fn is_whole(self) -> bool {
        !matches!(self, Self::RequestPercentage | Self::ControllerMutationRate)
    }
}

/// A quota that exists from here on, or does no longer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct QuotaChange {
    pub(crate) entity: QuotaEntity,
    pub(crate) key: QuotaKey,
    pub(crate) value: Option<f64>,
}

impl EntityName {
    pub(crate) fn of(name: Option<String>) -> Self {
        name.map_or(Self::Default, Self::Named)
    }

    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Default => None,
            Self::Named(name) => Some(name),
        }
    }
}

impl QuotaEntity {
    /// The kinds and names that make the entity.
    pub(crate) fn parts(&self) -> Vec<(&'static str, &EntityName)> {
        match self {
            Self::User(user) => vec![(USER, user)],
            Self::Client(client) => vec![(CLIENT, client)],
            Self::UserClient(user, client) => vec![(USER, user), (CLIENT, client)],
            Self::Address(address) => vec![(ADDRESS, address)],
        }
    }

    /// The entity of an address.
    pub(crate) fn address(address: IpAddr) -> Self {
        Self::Address(EntityName::Named(address.to_canonical().to_string()))
    }
}

/// Over which time a rate is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaWindow {
    /// Windows that count (Kafka: `quota.window.num`).
    pub num: u32,
    /// Length of a window in seconds (Kafka: `quota.window.size.seconds`).
    pub size_seconds: u32,
}

impl Default for QuotaWindow {
    fn default() -> Self {
        Self { num: 11, size_seconds: 1 }
    }
}

impl QuotaWindow {
    /// Milliseconds of one window.
    pub(crate) fn size_ms(self) -> i64 {
        i64::from(self.size_seconds) * 1_000
    }

    /// Milliseconds after which nothing of the past counts.
    pub(crate) fn total_ms(self) -> i64 {
        self.size_ms() * i64::from(self.num)
    }

    /// Milliseconds of the windows that are full.
    pub(crate) fn full_ms(self) -> i64 {
        self.size_ms() * i64::from(self.num.saturating_sub(1))
    }
}
