//! `BrokerHeartbeatRequest`, versions 0-2, API key 63.

use super::prelude::*;

/// `BrokerHeartbeatRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerHeartbeatRequest {
    /// `BrokerId`, versions 0+.
    pub broker_id: i32,
    /// `BrokerEpoch`, versions 0+.
    pub broker_epoch: i64,
    /// `CurrentMetadataOffset`, versions 0+.
    pub current_metadata_offset: i64,
    /// `WantFence`, versions 0+.
    pub want_fence: bool,
    /// `WantShutDown`, versions 0+.
    pub want_shut_down: bool,
    /// `OfflineLogDirs`, versions 1+, tag 0.
    pub offline_log_dirs: Vec<Uuid>,
    /// `CordonedLogDirs`, versions 2+, null in versions 2+, tag 1.
    pub cordoned_log_dirs: Option<Vec<Uuid>>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for BrokerHeartbeatRequest {
    fn default() -> Self {
        Self {
            broker_id: Default::default(),
            broker_epoch: -1,
            current_metadata_offset: Default::default(),
            want_fence: Default::default(),
            want_shut_down: Default::default(),
            offline_log_dirs: Default::default(),
            cordoned_log_dirs: None,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for BrokerHeartbeatRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("BrokerId", Kind::Fixed(4), 0, 2),
        Field::new("BrokerEpoch", Kind::Fixed(8), 0, 2),
        Field::new("CurrentMetadataOffset", Kind::Fixed(8), 0, 2),
        Field::new("WantFence", Kind::Fixed(1), 0, 2),
        Field::new("WantShutDown", Kind::Fixed(1), 0, 2),
        Field::new("OfflineLogDirs", Kind::Array(&Kind::Uuid), 1, 2).tagged(0),
        Field::new("CordonedLogDirs", Kind::Array(&Kind::Uuid), 2, 2).nullable(2, 2).tagged(1),
    ];
}

impl FromWire for BrokerHeartbeatRequest {
    const SIZE_MIN: usize = 23;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        m.broker_epoch = r.i64()?;
        m.current_metadata_offset = r.i64()?;
        m.want_fence = r.bool()?;
        m.want_shut_down = r.bool()?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 if v >= 1 => m.offline_log_dirs = r.array(v, f)?,
                    1 if v >= 2 => m.cordoned_log_dirs = r.nullable_array(v, f, true)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for BrokerHeartbeatRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        w.i64(self.broker_epoch);
        w.i64(self.current_metadata_offset);
        w.bool(self.want_fence);
        w.bool(self.want_shut_down);
        if v < 1 && !self.offline_log_dirs.is_empty() {
            return Err(EncodeError::absent("BrokerHeartbeatRequest.OfflineLogDirs", v));
        }
        if v < 2 && self.cordoned_log_dirs.is_some() {
            return Err(EncodeError::absent("BrokerHeartbeatRequest.CordonedLogDirs", v));
        }
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if v >= 1 && !self.offline_log_dirs.is_empty() {
                tags.field(0, |w| w.array(&self.offline_log_dirs, v, f))?;
            }
            if v >= 2 && self.cordoned_log_dirs.is_some() {
                tags.field(1, |w| {
                    w.nullable_array(
                        self.cordoned_log_dirs.as_deref(),
                        v,
                        f,
                        true,
                        "CordonedLogDirs",
                    )
                })?;
            }
            tags.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for BrokerHeartbeatRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        m.broker_epoch = Random::random(g, v, f);
        m.current_metadata_offset = Random::random(g, v, f);
        m.want_fence = Random::random(g, v, f);
        m.want_shut_down = Random::random(g, v, f);
        if v >= 1 {
            m.offline_log_dirs = Random::random(g, v, f);
        }
        if v >= 2 {
            m.cordoned_log_dirs = g.nullable(true, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for BrokerHeartbeatRequest {
    const NAME: &'static str = "BrokerHeartbeatRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for BrokerHeartbeatRequest {
    const KEY: ApiKey = ApiKey::BrokerHeartbeat;
    type Response = super::BrokerHeartbeatResponse;
}
