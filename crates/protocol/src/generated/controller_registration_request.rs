//! `ControllerRegistrationRequest`, versions 0-0, API key 70.

use super::prelude::*;

/// `ControllerRegistrationRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ControllerRegistrationRequest {
    /// `ControllerId`, versions 0+.
    pub controller_id: i32,
    /// `IncarnationId`, versions 0+.
    pub incarnation_id: Uuid,
    /// `ZkMigrationReady`, versions 0+.
    pub zk_migration_ready: bool,
    /// `Listeners`, versions 0+.
    pub listeners: Vec<Listener>,
    /// `Features`, versions 0+.
    pub features: Vec<Feature>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for ControllerRegistrationRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ControllerId", Kind::Fixed(4), 0, 0),
        Field::new("IncarnationId", Kind::Uuid, 0, 0),
        Field::new("ZkMigrationReady", Kind::Fixed(1), 0, 0),
        Field::new("Listeners", Kind::Array(&Kind::Struct(Listener::FIELDS)), 0, 0),
        Field::new("Features", Kind::Array(&Kind::Struct(Feature::FIELDS)), 0, 0),
    ];
}

impl FromWire for ControllerRegistrationRequest {
    const SIZE_MIN: usize = 24;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.controller_id = r.i32()?;
        m.incarnation_id = r.uuid()?;
        m.zk_migration_ready = r.bool()?;
        m.listeners = r.array(v, f)?;
        m.features = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ControllerRegistrationRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.controller_id);
        w.uuid(self.incarnation_id);
        w.bool(self.zk_migration_ready);
        w.array(&self.listeners, v, f)?;
        w.array(&self.features, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ControllerRegistrationRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.controller_id = Random::random(g, v, f);
        m.incarnation_id = Random::random(g, v, f);
        m.zk_migration_ready = Random::random(g, v, f);
        m.listeners = Random::random(g, v, f);
        m.features = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Listener` of `ControllerRegistrationRequest`.
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
        Field::new("Name", Kind::Text, 0, 0),
        Field::new("Host", Kind::Text, 0, 0),
        Field::new("Port", Kind::Fixed(2), 0, 0),
        Field::new("SecurityProtocol", Kind::Fixed(2), 0, 0),
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

/// `Feature` of `ControllerRegistrationRequest`.
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
        Field::new("Name", Kind::Text, 0, 0),
        Field::new("MinSupportedVersion", Kind::Fixed(2), 0, 0),
        Field::new("MaxSupportedVersion", Kind::Fixed(2), 0, 0),
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

impl Message for ControllerRegistrationRequest {
    const NAME: &'static str = "ControllerRegistrationRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for ControllerRegistrationRequest {
    const KEY: ApiKey = ApiKey::ControllerRegistration;
    type Response = super::ControllerRegistrationResponse;
}
