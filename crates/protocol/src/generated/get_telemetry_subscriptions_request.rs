//! `GetTelemetrySubscriptionsRequest`, versions 0-0, API key 71.

use super::prelude::*;

/// `GetTelemetrySubscriptionsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GetTelemetrySubscriptionsRequest {
    /// `ClientInstanceId`, versions 0+.
    pub client_instance_id: Uuid,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for GetTelemetrySubscriptionsRequest {
    const FIELDS: &'static [Field] = &[Field::new("ClientInstanceId", Kind::Uuid, 0, 0)];
}

impl FromWire for GetTelemetrySubscriptionsRequest {
    const SIZE_MIN: usize = 17;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.client_instance_id = r.uuid()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for GetTelemetrySubscriptionsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.uuid(self.client_instance_id);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for GetTelemetrySubscriptionsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.client_instance_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for GetTelemetrySubscriptionsRequest {
    const NAME: &'static str = "GetTelemetrySubscriptionsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for GetTelemetrySubscriptionsRequest {
    const KEY: ApiKey = ApiKey::GetTelemetrySubscriptions;
    type Response = super::GetTelemetrySubscriptionsResponse;
}
