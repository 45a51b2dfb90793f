//! `BrokerRegistrationRequest`, versions 0-4, API key 62.

use super::prelude::*;

/// `BrokerRegistrationRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct BrokerRegistrationRequest {
    /// `BrokerId`, versions 0+.
    pub broker_id: i32,
    /// `ClusterId`, versions 0+.
    pub cluster_id: String,
    /// `IncarnationId`, versions 0+.
    pub incarnation_id: Uuid,
    /// `Listeners`, versions 0+.
    pub listeners: Vec<Listener>,
    /// `Features`, versions 0+.
    pub features: Vec<Feature>,
    /// `Rack`, versions 0+, null in versions 0+.
    pub rack: Option<String>,
    /// `IsMigratingZkBroker`, versions 1+.
    pub is_migrating_zk_broker: bool,
    /// `LogDirs`, versions 2+.
    pub log_dirs: Vec<Uuid>,
    /// `PreviousBrokerEpoch`, versions 3+.
    pub previous_broker_epoch: i64,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for BrokerRegistrationRequest {
    fn default() -> Self {
        Self {
            broker_id: Default::default(),
            cluster_id: Default::default(),
            incarnation_id: Default::default(),
            listeners: Default::default(),
            features: Default::default(),
            rack: Some(Default::default()),
            is_migrating_zk_broker: Default::default(),
            log_dirs: Default::default(),
            previous_broker_epoch: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for BrokerRegistrationRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("BrokerId", Kind::Fixed(4), 0, 4),
        Field::new("ClusterId", Kind::Text, 0, 4),
        Field::new("IncarnationId", Kind::Uuid, 0, 4),
        Field::new("Listeners", Kind::Array(&Kind::Struct(Listener::FIELDS)), 0, 4),
        Field::new("Features", Kind::Array(&Kind::Struct(Feature::FIELDS)), 0, 4),
        Field::new("Rack", Kind::Text, 0, 4).nullable(0, 4),
        Field::new("IsMigratingZkBroker", Kind::Fixed(1), 1, 4),
        Field::new("LogDirs", Kind::Array(&Kind::Uuid), 2, 4),
        Field::new("PreviousBrokerEpoch", Kind::Fixed(8), 3, 4),
    ];
}

impl FromWire for BrokerRegistrationRequest {
    const SIZE_MIN: usize = 25;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        m.cluster_id = r.string(f)?;
        m.incarnation_id = r.uuid()?;
        m.listeners = r.array(v, f)?;
        m.features = r.array(v, f)?;
        m.rack = r.nullable_string(f, true)?;
        if v >= 1 {
            m.is_migrating_zk_broker = r.bool()?;
        }
        if v >= 2 {
            m.log_dirs = r.array(v, f)?;
        }
        if v >= 3 {
            m.previous_broker_epoch = r.i64()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for BrokerRegistrationRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        w.string(&self.cluster_id, f)?;
        w.uuid(self.incarnation_id);
        w.array(&self.listeners, v, f)?;
        w.array(&self.features, v, f)?;
        w.nullable_string(self.rack.as_deref(), f, true, "Rack")?;
        if v >= 1 {
            w.bool(self.is_migrating_zk_broker);
        } else if self.is_migrating_zk_broker {
            return Err(EncodeError::absent("BrokerRegistrationRequest.IsMigratingZkBroker", v));
        }
        if v >= 2 {
            w.array(&self.log_dirs, v, f)?;
        }
        if v >= 3 {
            w.i64(self.previous_broker_epoch);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for BrokerRegistrationRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        m.cluster_id = Random::random(g, v, f);
        m.incarnation_id = Random::random(g, v, f);
        m.listeners = Random::random(g, v, f);
        m.features = Random::random(g, v, f);
        m.rack = g.nullable(true, v, f);
        if v >= 1 {
            m.is_migrating_zk_broker = Random::random(g, v, f);
        }
        if v >= 2 {
            m.log_dirs = Random::random(g, v, f);
        }
        if v >= 3 {
            m.previous_broker_epoch = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Listener` of `BrokerRegistrationRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Listener {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Host`, versions 0+.
    pub host: String,
    /// `Port`, versions 0+.
    pub port: u16,
    /// `SecurityProtocol`, versions 0+.
    pub security_protocol: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Listener {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 4),
        Field::new("Host", Kind::Text, 0, 4),
        Field::new("Port", Kind::Fixed(2), 0, 4),
        Field::new("SecurityProtocol", Kind::Fixed(2), 0, 4),
    ];
}

impl FromWire for Listener {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.host = r.string(f)?;
        m.port = r.u16()?;
        m.security_protocol = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Listener {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.string(&self.host, f)?;
        w.u16(self.port);
        w.i16(self.security_protocol);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Listener {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        m.security_protocol = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Feature` of `BrokerRegistrationRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Feature {
    /// `Name`, versions 0+.
    pub name: String,
    /// `MinSupportedVersion`, versions 0+.
    pub min_supported_version: i16,
    /// `MaxSupportedVersion`, versions 0+.
    pub max_supported_version: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Feature {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 4),
        Field::new("MinSupportedVersion", Kind::Fixed(2), 0, 4),
        Field::new("MaxSupportedVersion", Kind::Fixed(2), 0, 4),
    ];
}

impl FromWire for Feature {
    const SIZE_MIN: usize = 6;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.min_supported_version = r.i16()?;
        m.max_supported_version = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Feature {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i16(self.min_supported_version);
        w.i16(self.max_supported_version);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Feature {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.min_supported_version = Random::random(g, v, f);
        m.max_supported_version = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for BrokerRegistrationRequest {
    const NAME: &'static str = "BrokerRegistrationRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 4);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for BrokerRegistrationRequest {
    const KEY: ApiKey = ApiKey::BrokerRegistration;
    type Response = super::BrokerRegistrationResponse;
}
