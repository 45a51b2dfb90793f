//! Values of records as arguments of handlers.

use serde::de::DeserializeOwned;

use super::wire::SchemaId;
#[cfg(feature = "protobuf")]
use super::wire::read_indexes;
#[cfg(feature = "avro")]
use super::{RegistryError, SchemaRegistry};
use crate::context::Context;
#[cfg(feature = "avro")]
use crate::context::StateType;
use crate::failure::{BoxError, Cause, Failure};
use crate::handler::Extract;
use crate::message::Message;

/// The value of a record that was written with a JSON Schema, decoded just before the handler runs.
/// The registry is not asked, and the value not validated.
#[derive(Clone, Debug)]
pub struct JsonSchema<T>(pub T);

impl<T: DeserializeOwned> Extract<Message> for JsonSchema<T> {
    fn extract(message: &Message, _: Context<'_>) -> Result<Self, Failure> {
        let (_, payload) = SchemaId::of(message).map_err(undecodable)?;
        serde_json::from_slice(payload).map(Self).map_err(undecodable)
    }
}

/// The value of a record that was written with an Avro schema, decoded just before the handler
/// runs by the schema that it names. The app must have the state [`SchemaRegistry`]. A registry
/// that does not answer fails the record, to be tried again; an unknown schema makes it
/// undecodable.
#[cfg(feature = "avro")]
#[derive(Clone, Debug)]
pub struct Avro<T>(pub T);

#[cfg(feature = "avro")]
impl<T: DeserializeOwned> Extract<Message> for Avro<T> {
    async fn prepare(message: &Message, context: Context<'_>) -> Result<(), Failure> {
        let (id, _) = SchemaId::of(message).map_err(undecodable)?;
        registry(context)?.avro(&id).await.map(drop).map_err(failure)
    }

    fn extract(message: &Message, context: Context<'_>) -> Result<Self, Failure> {
        let (id, mut payload) = SchemaId::of(message).map_err(undecodable)?;
        // Others may have taken its room since it was read.
        let schema = registry(context)?.known_avro(&id);
        let schema = schema.ok_or_else(|| format!("schema {id} was just forgotten"));
        let schema = schema.map_err(|error| Cause::Failed(error.into()))?;
        let value =
            apache_avro::from_avro_datum_schemata(&schema.schema, schema.all(), &mut payload, None);
        let value = value.map_err(undecodable)?;
        if !payload.is_empty() {
            return Err(undecodable("bytes follow the value"));
        }
        apache_avro::from_value(&value).map(Self).map_err(undecodable)
    }

    fn state() -> Option<StateType> {
        Some(StateType::of::<SchemaRegistry>())
    }
}

#[cfg(feature = "avro")]
fn registry(context: Context<'_>) -> Result<std::sync::Arc<SchemaRegistry>, Failure> {
    context.state().ok_or_else(|| Failure::permanent("the app has no state SchemaRegistry"))
}

#[cfg(feature = "avro")]
fn failure(error: RegistryError) -> Failure {
    if error.is_retriable() { Cause::Failed(error.into()).into() } else { undecodable(error) }
}

/// The value of a record that was written with a Protobuf schema, decoded just before the handler
/// runs as the message `T`. The registry is not asked: `T` must be the message that was written, or
/// a later or earlier version of it.
#[cfg(feature = "protobuf")]
#[derive(Clone, Debug)]
pub struct Protobuf<T>(pub T);

#[cfg(feature = "protobuf")]
impl<T: prost::Message + Default> Extract<Message> for Protobuf<T> {
    fn extract(message: &Message, _: Context<'_>) -> Result<Self, Failure> {
        let (_, mut payload) = SchemaId::of(message).map_err(undecodable)?;
        read_indexes(&mut payload).map_err(undecodable)?;
        T::decode(payload).map(Self).map_err(undecodable)
    }
}

fn undecodable(error: impl Into<BoxError>) -> Failure {
    Cause::Undecodable(error.into()).into()
}
