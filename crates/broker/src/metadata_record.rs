//! The broker's metadata records: what it writes into the journal beside the data.
//!
//! ```text
//! kind u8 | version u8 (0) | body
//! 1 topic created      id 16 | name str16 | partitions u32 | configs
//! 2 topic deleted      id 16              (and the offsets that groups committed for it)
//! 3 partitions grown   id 16 | partitions u32
//! 4 topic configured   id 16 | configs            (the whole set, not a difference)
//! 5 group              the coordinator's own record, to the end
//! 6 producer ids       the coordinator's own record, to the end
//! 7 ACLs changed       created acls | deleted acls
//! 8 SCRAM changed      upserted count u32, then (user str16, mechanism u8, iterations u32,
//!                      salt bytes16, stored key bytes16, server key bytes16) each
//!                      | deleted count u32, then (user str16, mechanism u8) each
//! 9 transaction        the coordinator's own record, to the end
//! 10 share partition   the coordinator's own record, to the end
//! 11 quotas changed    count u32, then (user name, client id name, address name, key u8,
//!                      exists u8, value f64 where it exists) each
//!                      name = 0 none | 1 default | 2 and str16
//! 12 defaults changed  source u8 (0 this broker, 1 all brokers) | configs   (the whole set)
//! 13 client metrics    name str16 | configs            (the whole set; none: removed)
//! 14 cluster begun     id 16                           (the first record of a cluster)
//! configs = count u16, then (key str16, value str16) each; str16 = length u16, UTF-8 bytes
//! acls = count u32, then (resource type u8, pattern type u8, name str16, principal str16,
//!        host str16, operation u8, permission u8) each, in Kafka's numbers; bytes16 as str16
//! ```
//! Integers are big-endian. A record that does not parse to its last byte stops the start of the
//! broker: it passed the journal's checksum, so it was written by another version.

#[cfg(test)]
mod tests;

use moldau_net::sasl;

use crate::authorizer::{
    AccessControlEntry, Acl, Operation, PatternType, Permission, ResourcePattern, ResourceType,
};
use crate::quota_entity::{ADDRESS, CLIENT, EntityName, QuotaChange, QuotaEntity, QuotaKey, USER};
use crate::scram_credentials::{ScramChanges, ScramCredential, ScramMechanism};
use crate::topic_config::{DefaultSource, TopicOverrides};

/// What stands before the coordinator's own record: kind and version.
pub(crate) const GROUP_HEADER_BYTES: usize = 2;

/// One metadata record.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetadataRecord {
    /// A topic and all its partitions exist from here on.
    TopicCreated { id: [u8; 16], name: String, partitions: u32, overrides: TopicOverrides },
    /// The topic and its data are gone.
    TopicDeleted { id: [u8; 16] },
    /// The topic has this many partitions.
    PartitionsGrown { id: [u8; 16], partitions: u32 },
    /// The topic overrides exactly these configurations.
    TopicConfigured { id: [u8; 16], overrides: TopicOverrides },
    /// A record of the group coordinator.
    Group(Vec<u8>),
    /// A block of producer ids, as the coordinator writes it.
    ProducerIds(Vec<u8>),
    /// ACLs that exist from here on, and those that do no longer.
    AclsChanged { created: Vec<Acl>, deleted: Vec<Acl> },
    /// SCRAM credentials of users that exist from here on, and those that do no longer.
    ScramCredentialsChanged(ScramChanges),
    /// A record of the transaction coordinator.
    Transaction(Vec<u8>),
    /// A record of a share group's partitions.
    Share(Vec<u8>),
    /// Quotas of clients that exist from here on, and those that do no longer.
    ClientQuotasChanged(Vec<QuotaChange>),
    /// The client metrics resource of this name sets exactly these configurations.
    ClientMetricsConfigured { name: String, configs: TopicOverrides },
    /// Clients gave topics exactly these defaults, under broker-level names.
    DefaultsChanged { source: DefaultSource, values: TopicOverrides },
    /// The brokers of a cluster share a log from here on. Journals have no such record.
    ClusterBegun { id: [u8; 16] },
}

impl MetadataRecord {
    /// Kinds that are told from the first byte of a record.
    pub(crate) const TOPIC_CREATED: u8 = 1;
    pub(crate) const TOPIC_DELETED: u8 = 2;
    pub(crate) const PARTITIONS_GROWN: u8 = 3;

    /// The record as it stands in the journal.
    ///
    /// Strings were bounded to `u16::MAX` bytes when they were accepted; a longer one is cut off
    /// by an assertion, never silently.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Self::TopicCreated { id, name, partitions, overrides } => {
                out.extend_from_slice(&[Self::TOPIC_CREATED, 0]);
                out.extend_from_slice(id);
                put_string(&mut out, name);
                out.extend_from_slice(&partitions.to_be_bytes());
                put_overrides(&mut out, overrides);
            }
            Self::TopicDeleted { id } => {
                out.extend_from_slice(&[Self::TOPIC_DELETED, 0]);
                out.extend_from_slice(id);
            }
            Self::PartitionsGrown { id, partitions } => {
                out.extend_from_slice(&[Self::PARTITIONS_GROWN, 0]);
                out.extend_from_slice(id);
                out.extend_from_slice(&partitions.to_be_bytes());
            }
            Self::TopicConfigured { id, overrides } => {
                out.extend_from_slice(&[4, 0]);
                out.extend_from_slice(id);
                put_overrides(&mut out, overrides);
            }
            Self::Group(record) => {
                out.extend_from_slice(&[5, 0]);
                out.extend_from_slice(record);
            }
            Self::ProducerIds(record) => {
                out.extend_from_slice(&[6, 0]);
                out.extend_from_slice(record);
            }
            Self::AclsChanged { created, deleted } => {
                out.extend_from_slice(&[7, 0]);
                put_acls(&mut out, created);
                put_acls(&mut out, deleted);
            }
            Self::ScramCredentialsChanged(changes) => {
                out.extend_from_slice(&[8, 0]);
                put_scram_changes(&mut out, changes);
            }
            Self::Transaction(record) => {
                out.extend_from_slice(&[9, 0]);
                out.extend_from_slice(record);
            }
            Self::Share(record) => {
                out.extend_from_slice(&[10, 0]);
                out.extend_from_slice(record);
            }
            Self::ClientQuotasChanged(changes) => {
                out.extend_from_slice(&[11, 0]);
                put_quota_changes(&mut out, changes);
            }
            Self::DefaultsChanged { source, values } => {
                let source = u8::from(*source == DefaultSource::Cluster);
                out.extend_from_slice(&[12, 0, source]);
                put_overrides(&mut out, values);
            }
            Self::ClusterBegun { id } => {
                out.extend_from_slice(&[14, 0]);
                out.extend_from_slice(id);
            }
            Self::ClientMetricsConfigured { name, configs } => {
                out.extend_from_slice(&[13, 0]);
                put_string(&mut out, name);
                put_overrides(&mut out, configs);
            }
        }
        out
    }

    /// Reads one record.
    ///
    /// # Errors
    /// Says what does not fit; the record then belongs to another version of Moldau.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, String> {
        let mut fields = Fields(bytes);
        let [kind, version] = fields.array::<2>()?;
        if version != 0 {
            return Err(format!("metadata record of kind {kind} has unknown version {version}"));
        }
        let record = match kind {
            Self::TOPIC_CREATED => Self::TopicCreated {
                id: fields.array()?,
                name: fields.string()?,
                partitions: u32::from_be_bytes(fields.array()?),
                overrides: fields.overrides()?,
            },
            Self::TOPIC_DELETED => Self::TopicDeleted { id: fields.array()? },
            Self::PARTITIONS_GROWN => Self::PartitionsGrown {
                id: fields.array()?,
                partitions: u32::from_be_bytes(fields.array()?),
            },
            4 => Self::TopicConfigured { id: fields.array()?, overrides: fields.overrides()? },
            5 => Self::Group(std::mem::take(&mut fields.0).to_vec()),
            6 => Self::ProducerIds(std::mem::take(&mut fields.0).to_vec()),
            7 => Self::AclsChanged { created: fields.acls()?, deleted: fields.acls()? },
            8 => Self::ScramCredentialsChanged(fields.scram_changes()?),
            9 => Self::Transaction(std::mem::take(&mut fields.0).to_vec()),
            10 => Self::Share(std::mem::take(&mut fields.0).to_vec()),
            11 => Self::ClientQuotasChanged(fields.quota_changes()?),
            12 => Self::DefaultsChanged {
                source: match fields.array()? {
                    [0] => DefaultSource::Broker,
                    [1] => DefaultSource::Cluster,
                    [other] => return Err(format!("{other} is no source of defaults")),
                },
                values: fields.overrides()?,
            },
            13 => Self::ClientMetricsConfigured {
                name: fields.string()?,
                configs: fields.overrides()?,
            },
            14 => Self::ClusterBegun { id: fields.array()? },
            other => return Err(format!("metadata record of unknown kind {other}")),
        };
        match fields.0.len() {
            0 => Ok(record),
            rest => Err(format!("{rest} bytes follow a metadata record of kind {kind}")),
        }
    }
}

fn put_string(out: &mut Vec<u8>, text: &str) {
    put_bytes(out, text.as_bytes());
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).expect("bounded when the request was accepted");
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(bytes);
}

fn put_code(out: &mut Vec<u8>, code: i8) {
    out.extend_from_slice(&code.to_be_bytes());
}

fn put_count(out: &mut Vec<u8>, count: usize) {
    let count = u32::try_from(count).expect("a request has fewer elements than that");
    out.extend_from_slice(&count.to_be_bytes());
}

fn put_overrides(out: &mut Vec<u8>, overrides: &TopicOverrides) {
    let count = u16::try_from(overrides.len()).expect("there are fewer config keys than that");
    out.extend_from_slice(&count.to_be_bytes());
    for (key, value) in overrides {
        put_string(out, key);
        put_string(out, value);
    }
}

fn put_acls(out: &mut Vec<u8>, acls: &[Acl]) {
    put_count(out, acls.len());
    for Acl { pattern, entry } in acls {
        put_code(out, pattern.resource_type.code());
        put_code(out, pattern.pattern_type.code());
        put_string(out, &pattern.name);
        put_string(out, &entry.principal);
        put_string(out, &entry.host);
        put_code(out, entry.operation.code());
        put_code(out, entry.permission.code());
    }
}

fn put_scram_changes(out: &mut Vec<u8>, changes: &ScramChanges) {
    put_count(out, changes.upserted.len());
    for (user, mechanism, credential) in &changes.upserted {
        put_string(out, user);
        put_code(out, mechanism.code());
        let credential = &credential.0;
        out.extend_from_slice(&credential.iterations.to_be_bytes());
        put_bytes(out, &credential.salt);
        put_bytes(out, &credential.stored_key);
        put_bytes(out, &credential.server_key);
    }
    put_count(out, changes.deleted.len());
    for (user, mechanism) in &changes.deleted {
        put_string(out, user);
        put_code(out, mechanism.code());
    }
}

fn put_quota_changes(out: &mut Vec<u8>, changes: &[QuotaChange]) {
    put_count(out, changes.len());
    for QuotaChange { entity, key, value } in changes {
        let parts = entity.parts();
        for kind in [USER, CLIENT, ADDRESS] {
            match parts.iter().find(|(of, _)| *of == kind) {
                None => out.push(0),
                Some((_, EntityName::Default)) => out.push(1),
                Some((_, EntityName::Named(name))) => {
                    out.push(2);
                    put_string(out, name);
                }
            }
        }
        put_code(out, key.code());
        out.push(u8::from(value.is_some()));
        out.extend(value.iter().flat_map(|value| value.to_be_bytes()));
    }
}

/// What is left of a record.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (head, rest) =
            self.0.split_first_chunk::<N>().ok_or("metadata record ends early".to_owned())?;
        self.0 = rest;
        Ok(*head)
    }

    fn bytes(&mut self) -> Result<&'a [u8], String> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        let (head, rest) =
            self.0.split_at_checked(length).ok_or("metadata record ends early".to_owned())?;
        self.0 = rest;
        Ok(head)
    }

    fn string(&mut self) -> Result<String, String> {
        let text = std::str::from_utf8(self.bytes()?);
        text.map(str::to_owned).map_err(|error| format!("not UTF-8: {error}"))
    }

    /// One of Kafka's numbers.
    fn coded<T>(&mut self, of: impl FnOnce(i8) -> Option<T>) -> Result<T, String> {
        let code = i8::from_be_bytes(self.array()?);
        of(code).ok_or_else(|| format!("{code} has no meaning here"))
    }

    /// So many elements; none is expected before its bytes are there.
    fn counted<T>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let count = u32::from_be_bytes(self.array()?);
        let mut elements = Vec::new();
        for _ in 0..count {
            elements.push(element(self)?);
        }
        Ok(elements)
    }

    fn overrides(&mut self) -> Result<TopicOverrides, String> {
        let count = u16::from_be_bytes(self.array()?);
        (0..count).map(|_| Ok((self.string()?, self.string()?))).collect()
    }

    fn acls(&mut self) -> Result<Vec<Acl>, String> {
        self.counted(|fields| {
            Ok(Acl {
                pattern: ResourcePattern {
                    resource_type: fields.coded(ResourceType::of)?,
                    pattern_type: fields.coded(PatternType::of)?,
                    name: fields.string()?,
                },
                entry: AccessControlEntry {
                    principal: fields.string()?,
                    host: fields.string()?,
                    operation: fields.coded(Operation::of)?,
                    permission: fields.coded(Permission::of)?,
                },
            })
        })
    }

    fn quota_changes(&mut self) -> Result<Vec<QuotaChange>, String> {
        self.counted(|fields| {
            let names = (fields.entity_name()?, fields.entity_name()?, fields.entity_name()?);
            let entity = match names {
                (Some(user), None, None) => QuotaEntity::User(user),
                (None, Some(client), None) => QuotaEntity::Client(client),
                (Some(user), Some(client), None) => QuotaEntity::UserClient(user, client),
                (None, None, Some(address)) => QuotaEntity::Address(address),
                _ => return Err("a quota of nobody".to_owned()),
            };
            let key = fields.coded(QuotaKey::of)?;
            let value = match fields.array()? {
                [0] => None,
                [1] => Some(f64::from_be_bytes(fields.array()?)),
                [other] => return Err(format!("{other} is neither true nor false")),
            };
            Ok(QuotaChange { entity, key, value })
        })
    }

    fn entity_name(&mut self) -> Result<Option<EntityName>, String> {
        match self.array()? {
            [0] => Ok(None),
            [1] => Ok(Some(EntityName::Default)),
            [2] => Ok(Some(EntityName::Named(self.string()?))),
            [other] => Err(format!("{other} is no kind of name")),
        }
    }

    fn scram_changes(&mut self) -> Result<ScramChanges, String> {
        let upserted = self.counted(|fields| {
            let (user, mechanism) = (fields.string()?, fields.coded(ScramMechanism::of)?);
            let credential = ScramCredential(sasl::ScramCredential {
                iterations: u32::from_be_bytes(fields.array()?),
                salt: fields.bytes()?.to_vec(),
                stored_key: fields.bytes()?.to_vec(),
                server_key: fields.bytes()?.to_vec(),
            });
            Ok((user, mechanism, credential))
        })?;
        let deleted =
            self.counted(|fields| Ok((fields.string()?, fields.coded(ScramMechanism::of)?)))?;
        Ok(ScramChanges { upserted, deleted })
    }
}
