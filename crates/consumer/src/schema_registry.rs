//! Values whose schema a Schema Registry holds, in Confluent's wire format.
//!
//! ```text
//! value:    0 u8 | schema id u32 | payload
//! Protobuf: 0 u8 | schema id u32 | message indexes | payload
//! header "__value_schema_id": 0 u8 | schema id u32, or 1 u8 | schema guid, 16 bytes;
//!           the value is then the payload alone
//! ```
//! Message indexes are a zigzag varint for their count and one for each; a count of 0 is the first
//! message of the schema.

mod client;
mod extract;
mod wire;

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use moldau_net::tls::TrustAnchors;

use crate::failure::BoxError;

use client::Client;
#[cfg(feature = "avro")]
pub use extract::Avro;
pub use extract::JsonSchema;
#[cfg(feature = "protobuf")]
pub use extract::Protobuf;
pub use wire::SchemaId;

/// A client of a Schema Registry, with the schemas that it has read. Apps are given it with
/// [`App::state`](crate::App::state); clones share it.
#[derive(Clone)]
pub struct SchemaRegistry {
    client: Arc<Client>,
    cache: Arc<Cache>,
}

/// Why the registry did not answer as asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// The URL, certificate or credentials cannot be; the caller must change them.
    #[error("{0}")]
    Setting(String),
    /// The registry does not have it.
    #[error("the schema registry does not know {0}")]
    Unknown(String),
    /// It refuses; someone must act.
    #[error("the schema registry refuses with status {status}: {message}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// What it says.
        message: String,
    },
    /// It cannot be reached, is slow or failed: it may answer later.
    #[error("the schema registry does not answer: {0}")]
    Unavailable(String),
    /// A schema cannot be read.
    #[error("schema {id} cannot be read: {reason}")]
    Schema {
        /// Its id.
        id: SchemaId,
        /// Why.
        reason: String,
    },
}

impl RegistryError {
    /// Whether it may answer later.
    #[must_use]
    pub fn is_retriable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Refused { .. })
    }
}

/// Schemas by id, the oldest of which make room for others.
#[derive(Default)]
struct Cache {
    /// Guards what was read.
    known: Mutex<Known>,
    /// Held while the registry is asked, so that it is asked once.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct Known {
    #[cfg(feature = "avro")]
    avro: HashMap<SchemaId, Arc<AvroSchema>>,
    #[cfg(feature = "avro")]
    order: VecDeque<SchemaId>,
    ids: HashMap<(String, u64), u32>,
    subjects: VecDeque<(String, u64)>,
}

/// A schema with those that it refers to.
#[cfg(feature = "avro")]
#[derive(Debug)]
pub(crate) struct AvroSchema {
    pub(crate) schema: apache_avro::Schema,
    pub(crate) references: Vec<apache_avro::Schema>,
}

impl SchemaRegistry {
    /// A registry at `url`, such as `https://registry.example:8081`. A registry with TLS must have a
    /// certificate that the system trusts.
    ///
    /// # Errors
    /// [`RegistryError::Setting`].
    pub fn new(url: &str) -> Result<Self, RegistryError> {
        Ok(Self { client: Arc::new(Client::new(url)?), cache: Arc::default() })
    }

    /// Identifies with a user and password (HTTP basic authentication).
    ///
    /// # Errors
    /// [`RegistryError::Setting`] for a user with a colon.
    pub fn basic_auth(self, user: &str, password: &str) -> Result<Self, RegistryError> {
        let client = self.client.as_ref().clone().basic_auth(user, password)?;
        Ok(Self { client: Arc::new(client), ..self })
    }

    /// Identifies with a token (`Authorization: Bearer`).
    ///
    /// # Errors
    /// [`RegistryError::Setting`] for a token that is not printable ASCII.
    pub fn bearer(self, token: &str) -> Result<Self, RegistryError> {
        let client = self.client.as_ref().clone().authorization(&format!("Bearer {token}"))?;
        Ok(Self { client: Arc::new(client), ..self })
    }

    /// Trusts the certificates in this PEM text instead of those of the system.
    ///
    /// # Errors
    /// [`RegistryError::Setting`] if there is none in it.
    pub fn trust(self, pem: &[u8]) -> Result<Self, RegistryError> {
        let trust = TrustAnchors::from_pem(pem);
        let trust = trust.map_err(|error| RegistryError::Setting(error.to_string()))?;
        let client = self.client.as_ref().clone().trust(trust)?;
        Ok(Self { client: Arc::new(client), ..self })
    }

    /// Registers a schema of `kind` (`AVRO`, `PROTOBUF` or `JSON`) under a subject, and returns its
    /// id. A schema that is there already keeps its id. The registry is asked once for each.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn register(
        &self,
        subject: &str,
        kind: &str,
        schema: &str,
    ) -> Result<u32, RegistryError> {
        let known = || self.known().id_of(subject, schema);
        if let Some(id) = known() {
            return Ok(id);
        }
        let _asking = self.cache.asking.lock().await;
        if let Some(id) = known() {
            return Ok(id);
        }
        let id = self.client.register(subject, kind, schema).await?;
        self.known().insert_id(subject, schema, id);
        Ok(id)
    }

    /// A JSON value in the wire format, for a subject of a JSON Schema.
    ///
    /// # Errors
    /// [`RegistryError`] in a box, or the value cannot be encoded. It is not validated.
    pub async fn encode_json<T: serde::Serialize + Sync>(
        &self,
        subject: &str,
        schema: &str,
        value: &T,
    ) -> Result<Vec<u8>, BoxError> {
        let id = self.register(subject, "JSON", schema).await?;
        let mut out = wire::prefix(id);
        serde_json::to_writer(&mut out, value)?;
        Ok(out)
    }

    /// An Avro value in the wire format.
    ///
    /// # Errors
    /// [`RegistryError`] in a box, or the value is not of the schema.
    #[cfg(feature = "avro")]
    pub async fn encode_avro<T: serde::Serialize + Sync>(
        &self,
        subject: &str,
        schema: &str,
        value: &T,
    ) -> Result<Vec<u8>, BoxError> {
        let id = self.register(subject, "AVRO", schema).await?;
        let avro = self.avro(&SchemaId::Id(id)).await?;
        let value = apache_avro::to_value(value)?.resolve(&avro.schema)?;
        let mut out = wire::prefix(id);
        let references = avro.all();
        out.extend(apache_avro::to_avro_datum_schemata(&avro.schema, references, value)?);
        Ok(out)
    }

    /// A Protobuf message in the wire format. `indexes` says which message of the schema it is,
    /// from the outermost to the innermost: `[0]` for the first.
    ///
    /// # Errors
    /// [`RegistryError`] in a box.
    #[cfg(feature = "protobuf")]
    pub async fn encode_protobuf<T: prost::Message>(
        &self,
        subject: &str,
        schema: &str,
        indexes: &[i32],
        value: &T,
    ) -> Result<Vec<u8>, BoxError> {
        let id = self.register(subject, "PROTOBUF", schema).await?;
        let mut out = wire::prefix(id);
        wire::write_indexes(indexes, &mut out);
        value.encode(&mut out)?;
        Ok(out)
    }

    /// The Avro schema of this id.
    #[cfg(feature = "avro")]
    async fn avro(&self, id: &SchemaId) -> Result<Arc<AvroSchema>, RegistryError> {
        if let Some(schema) = self.known_avro(id) {
            return Ok(schema);
        }
        let _asking = self.cache.asking.lock().await;
        if let Some(schema) = self.known_avro(id) {
            return Ok(schema);
        }
        let texts = self.client.schema(id).await?;
        let schema = AvroSchema::parse(&texts)
            .map_err(|reason| RegistryError::Schema { id: id.clone(), reason })?;
        let schema = Arc::new(schema);
        let mut known = self.known();
        known.avro.insert(id.clone(), Arc::clone(&schema));
        known.order.push_back(id.clone());
        if known.order.len() > SCHEMAS_MAX
            && let Some(oldest) = known.order.pop_front()
        {
            known.avro.remove(&oldest);
        }
        Ok(schema)
    }

    #[cfg(feature = "avro")]
    fn known_avro(&self, id: &SchemaId) -> Option<Arc<AvroSchema>> {
        self.known().avro.get(id).cloned()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.cache.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn id_of(&self, subject: &str, schema: &str) -> Option<u32> {
        self.ids.get(&key(subject, schema)).copied()
    }

    fn insert_id(&mut self, subject: &str, schema: &str, id: u32) {
        let key = key(subject, schema);
        self.ids.insert(key.clone(), id);
        self.subjects.push_back(key);
        if self.subjects.len() > SCHEMAS_MAX
            && let Some(oldest) = self.subjects.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

fn key(subject: &str, schema: &str) -> (String, u64) {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    schema.hash(&mut hasher);
    (subject.to_owned(), hasher.finish())
}

#[cfg(feature = "avro")]
impl AvroSchema {
    /// Reads a schema, which is the last of `texts`; those before it are what it refers to.
    fn parse(texts: &[String]) -> Result<Self, String> {
        let (last, references) = texts.split_last().ok_or("it is empty")?;
        let parsed = apache_avro::Schema::parse_str_with_list(last, references);
        let (schema, references) = parsed.map_err(|error| error.to_string())?;
        Ok(Self { schema, references })
    }

    pub(crate) fn all(&self) -> Vec<&apache_avro::Schema> {
        self.references.iter().chain([&self.schema]).collect()
    }
}

impl fmt::Debug for SchemaRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SchemaRegistry").finish_non_exhaustive()
    }
}

/// Schemas that are kept of each sort: more than the topics of one app have.
const SCHEMAS_MAX: usize = 1000;
