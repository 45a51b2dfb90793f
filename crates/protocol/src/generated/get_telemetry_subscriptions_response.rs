//! `GetTelemetrySubscriptionsResponse`, versions 0-0, API key 71.

use super::prelude::*;

/// `GetTelemetrySubscriptionsResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct GetTelemetrySubscriptionsResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ClientInstanceId`, versions 0+.
    pub client_instance_id: Uuid,
    /// `SubscriptionId`, versions 0+.
    pub subscription_id: i32,
    /// `AcceptedCompressionTypes`, versions 0+.
    pub accepted_compression_types: Vec<i8>,
    /// `PushIntervalMs`, versions 0+.
    pub push_interval_ms: i32,
    /// `TelemetryMaxBytes`, versions 0+.
    pub telemetry_max_bytes: i32,
    /// `DeltaTemporality`, versions 0+.
    pub delta_temporality: bool,
    /// `RequestedMetrics`, versions 0+.
    pub requested_metrics: Vec<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for GetTelemetrySubscriptionsResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("ClientInstanceId", Kind::Uuid, 0, 0),
        Field::new("SubscriptionId", Kind::Fixed(4), 0, 0),
        Field::new("AcceptedCompressionTypes", Kind::Array(&Kind::Fixed(1)), 0, 0),
        Field::new("PushIntervalMs", Kind::Fixed(4), 0, 0),
        Field::new("TelemetryMaxBytes", Kind::Fixed(4), 0, 0),
        Field::new("DeltaTemporality", Kind::Fixed(1), 0, 0),
        Field::new("RequestedMetrics", Kind::Array(&Kind::Text), 0, 0),
    ];
}

impl FromWire for GetTelemetrySubscriptionsResponse {
    const SIZE_MIN: usize = 38;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.client_instance_id = r.uuid()?;
        m.subscription_id = r.i32()?;
        m.accepted_compression_types = r.array(v, f)?;
        m.push_interval_ms = r.i32()?;
        m.telemetry_max_bytes = r.i32()?;
        m.delta_temporality = r.bool()?;
        m.requested_metrics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for GetTelemetrySubscriptionsResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.uuid(self.client_instance_id);
        w.i32(self.subscription_id);
        w.array(&self.accepted_compression_types, v, f)?;
        w.i32(self.push_interval_ms);
        w.i32(self.telemetry_max_bytes);
        w.bool(self.delta_temporality);
        w.array(&self.requested_metrics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for GetTelemetrySubscriptionsResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.client_instance_id = Random::random(g, v, f);
        m.subscription_id = Random::random(g, v, f);
        m.accepted_compression_types = Random::random(g, v, f);
        m.push_interval_ms = Random::random(g, v, f);
        m.telemetry_max_bytes = Random::random(g, v, f);
        m.delta_temporality = Random::random(g, v, f);
        m.requested_metrics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for GetTelemetrySubscriptionsResponse {
    const NAME: &'static str = "GetTelemetrySubscriptionsResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for GetTelemetrySubscriptionsResponse {
    const KEY: ApiKey = ApiKey::GetTelemetrySubscriptions;
}
