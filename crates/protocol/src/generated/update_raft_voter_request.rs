//! `UpdateRaftVoterRequest`, versions 0-0, API key 82.

use super::prelude::*;

/// `UpdateRaftVoterRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateRaftVoterRequest {
    /// `ClusterId`, versions 0+, null in versions 0+.
    pub cluster_id: Option<String>,
    /// `CurrentLeaderEpoch`, versions 0+.
    pub current_leader_epoch: i32,
    /// `VoterId`, versions 0+.
    pub voter_id: i32,
    /// `VoterDirectoryId`, versions 0+.
    pub voter_directory_id: Uuid,
    /// `Listeners`, versions 0+.
    pub listeners: Vec<Listener>,
    /// `KRaftVersionFeature`, versions 0+.
    pub kraft_version_feature: KRaftVersionFeature,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for UpdateRaftVoterRequest {
    fn default() -> Self {
        Self {
            cluster_id: Some(Default::default()),
            current_leader_epoch: Default::default(),
            voter_id: Default::default(),
            voter_directory_id: Default::default(),
            listeners: Default::default(),
            kraft_version_feature: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for UpdateRaftVoterRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClusterId", Kind::Text, 0, 0).nullable(0, 0),
        Field::new("CurrentLeaderEpoch", Kind::Fixed(4), 0, 0),
        Field::new("VoterId", Kind::Fixed(4), 0, 0),
        Field::new("VoterDirectoryId", Kind::Uuid, 0, 0),
        Field::new("Listeners", Kind::Array(&Kind::Struct(Listener::FIELDS)), 0, 0),
        Field::new("KRaftVersionFeature", Kind::Struct(KRaftVersionFeature::FIELDS), 0, 0),
    ];
}

impl FromWire for UpdateRaftVoterRequest {
    const SIZE_MIN: usize = 32;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.cluster_id = r.nullable_string(f, true)?;
        m.current_leader_epoch = r.i32()?;
        m.voter_id = r.i32()?;
        m.voter_directory_id = r.uuid()?;
        m.listeners = r.array(v, f)?;
        m.kraft_version_feature = KRaftVersionFeature::read(r, v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for UpdateRaftVoterRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        w.i32(self.current_leader_epoch);
        w.i32(self.voter_id);
        w.uuid(self.voter_directory_id);
        w.array(&self.listeners, v, f)?;
        self.kraft_version_feature.write(w, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UpdateRaftVoterRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.cluster_id = g.nullable(true, v, f);
        m.current_leader_epoch = Random::random(g, v, f);
        m.voter_id = Random::random(g, v, f);
        m.voter_directory_id = Random::random(g, v, f);
        m.listeners = Random::random(g, v, f);
        m.kraft_version_feature = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Listener` of `UpdateRaftVoterRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Listener {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Host`, versions 0+.
    pub host: String,
    /// `Port`, versions 0+.
    pub port: u16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Listener {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0),
        Field::new("Host", Kind::Text, 0, 0),
        Field::new("Port", Kind::Fixed(2), 0, 0),
    ];
}

impl FromWire for Listener {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.host = r.string(f)?;
        m.port = r.u16()?;
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
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `KRaftVersionFeature` of `UpdateRaftVoterRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct KRaftVersionFeature {
    /// `MinSupportedVersion`, versions 0+.
    pub min_supported_version: i16,
    /// `MaxSupportedVersion`, versions 0+.
    pub max_supported_version: i16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for KRaftVersionFeature {
    const FIELDS: &'static [Field] = &[
        Field::new("MinSupportedVersion", Kind::Fixed(2), 0, 0),
        Field::new("MaxSupportedVersion", Kind::Fixed(2), 0, 0),
    ];
}

impl FromWire for KRaftVersionFeature {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.min_supported_version = r.i16()?;
        m.max_supported_version = r.i16()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for KRaftVersionFeature {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.min_supported_version);
        w.i16(self.max_supported_version);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for KRaftVersionFeature {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.min_supported_version = Random::random(g, v, f);
        m.max_supported_version = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for UpdateRaftVoterRequest {
    const NAME: &'static str = "UpdateRaftVoterRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for UpdateRaftVoterRequest {
    const KEY: ApiKey = ApiKey::UpdateRaftVoter;
    type Response = super::UpdateRaftVoterResponse;
}
