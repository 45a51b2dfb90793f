//! `PushTelemetryRequest`, versions 0-0, API key 72.

use super::prelude::*;

/// `PushTelemetryRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PushTelemetryRequest {
    /// `ClientInstanceId`, versions 0+.
    pub client_instance_id: Uuid,
    /// `SubscriptionId`, versions 0+.
    pub subscription_id: i32,
    /// `Terminating`, versions 0+.
    pub terminating: bool,
    /// `CompressionType`, versions 0+.
    pub compression_type: i8,
    /// `Metrics`, versions 0+.
    pub metrics: Bytes,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for PushTelemetryRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClientInstanceId", Kind::Uuid, 0, 0),
        Field::new("SubscriptionId", Kind::Fixed(4), 0, 0),
        Field::new("Terminating", Kind::Fixed(1), 0, 0),
        Field::new("CompressionType", Kind::Fixed(1), 0, 0),
        Field::new("Metrics", Kind::Bytes, 0, 0),
    ];
}

impl FromWire for PushTelemetryRequest {
    const SIZE_MIN: usize = 24;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.client_instance_id = r.uuid()?;
        m.subscription_id = r.i32()?;
        m.terminating = r.bool()?;
        m.compression_type = r.i8()?;
        m.metrics = r.bytes(f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for PushTelemetryRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.uuid(self.client_instance_id);
        w.i32(self.subscription_id);
        w.bool(self.terminating);
        w.i8(self.compression_type);
        w.bytes(&self.metrics, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for PushTelemetryRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.client_instance_id = Random::random(g, v, f);
        m.subscription_id = Random::random(g, v, f);
        m.terminating = Random::random(g, v, f);
        m.compression_type = Random::random(g, v, f);
        m.metrics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for PushTelemetryRequest {
    const NAME: &'static str = "PushTelemetryRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for PushTelemetryRequest {
    const KEY: ApiKey = ApiKey::PushTelemetry;
    type Response = super::PushTelemetryResponse;
}
