//! `VotersRecord`, versions 0-0.

use super::prelude::*;

/// `VotersRecord`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct VotersRecord {
    /// `Version`, versions 0+.
    pub version: i16,
    /// `Voters`, versions 0+.
    pub voters: Vec<Voter>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for VotersRecord {
    const FIELDS: &'static [Field] = &[
        Field::new("Version", Kind::Fixed(2), 0, 0),
        Field::new("Voters", Kind::Array(&Kind::Struct(Voter::FIELDS)), 0, 0),
    ];
}

impl FromWire for VotersRecord {
    const SIZE_MIN: usize = 4;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.version = r.i16()?;
        m.voters = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for VotersRecord {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.version);
        w.array(&self.voters, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for VotersRecord {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.version = Random::random(g, v, f);
        m.voters = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Voter` of `VotersRecord`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Voter {
    /// `VoterId`, versions 0+.
    pub voter_id: i32,
    /// `VoterDirectoryId`, versions 0+.
    pub voter_directory_id: Uuid,
    /// `Endpoints`, versions 0+.
    pub endpoints: Vec<Endpoint>,
    /// `KRaftVersionFeature`, versions 0+.
    pub kraft_version_feature: KRaftVersionFeature,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Voter {
    const FIELDS: &'static [Field] = &[
        Field::new("VoterId", Kind::Fixed(4), 0, 0),
        Field::new("VoterDirectoryId", Kind::Uuid, 0, 0),
        Field::new("Endpoints", Kind::Array(&Kind::Struct(Endpoint::FIELDS)), 0, 0),
        Field::new("KRaftVersionFeature", Kind::Struct(KRaftVersionFeature::FIELDS), 0, 0),
    ];
}

impl FromWire for Voter {
    const SIZE_MIN: usize = 27;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.voter_id = r.i32()?;
        m.voter_directory_id = r.uuid()?;
        m.endpoints = r.array(v, f)?;
        m.kraft_version_feature = KRaftVersionFeature::read(r, v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Voter {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.voter_id);
        w.uuid(self.voter_directory_id);
        w.array(&self.endpoints, v, f)?;
        self.kraft_version_feature.write(w, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for Voter {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.voter_id = Random::random(g, v, f);
        m.voter_directory_id = Random::random(g, v, f);
        m.endpoints = Random::random(g, v, f);
        m.kraft_version_feature = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Endpoint` of `VotersRecord`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Endpoint {
    /// `Name`, versions 0+.
    pub name: String,
    /// `Host`, versions 0+.
    pub host: String,
    /// `Port`, versions 0+.
    pub port: u16,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Endpoint {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0),
        Field::new("Host", Kind::Text, 0, 0),
        Field::new("Port", Kind::Fixed(2), 0, 0),
    ];
}

impl FromWire for Endpoint {
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

impl ToWire for Endpoint {
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
impl Random for Endpoint {
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

/// `KRaftVersionFeature` of `VotersRecord`.
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

impl Message for VotersRecord {
    const NAME: &'static str = "VotersRecord";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}
