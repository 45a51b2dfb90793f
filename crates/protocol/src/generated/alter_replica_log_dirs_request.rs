//! `AlterReplicaLogDirsRequest`, versions 1-2, API key 34.

use super::prelude::*;

/// `AlterReplicaLogDirsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterReplicaLogDirsRequest {
    /// `Dirs`, versions 1+.
    pub dirs: Vec<AlterReplicaLogDir>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterReplicaLogDirsRequest {
    const FIELDS: &'static [Field] =
        &[Field::new("Dirs", Kind::Array(&Kind::Struct(AlterReplicaLogDir::FIELDS)), 1, 2)];
}

impl FromWire for AlterReplicaLogDirsRequest {
    const SIZE_MIN: usize = 2;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.dirs = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterReplicaLogDirsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.dirs, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterReplicaLogDirsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterReplicaLogDirsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.dirs = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AlterReplicaLogDir` of `AlterReplicaLogDirsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterReplicaLogDir {
    /// `Path`, versions 1+.
    pub path: String,
    /// `Topics`, versions 1+.
    pub topics: Vec<AlterReplicaLogDirTopic>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterReplicaLogDir {
    const FIELDS: &'static [Field] = &[
        Field::new("Path", Kind::Text, 1, 2),
        Field::new("Topics", Kind::Array(&Kind::Struct(AlterReplicaLogDirTopic::FIELDS)), 1, 2),
    ];
}

impl FromWire for AlterReplicaLogDir {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.path = r.string(f)?;
        m.topics = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterReplicaLogDir {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.path, f)?;
        w.array(&self.topics, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterReplicaLogDir.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterReplicaLogDir {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.path = Random::random(g, v, f);
        m.topics = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `AlterReplicaLogDirTopic` of `AlterReplicaLogDirsRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct AlterReplicaLogDirTopic {
    /// `Name`, versions 1+.
    pub name: String,
    /// `Partitions`, versions 1+.
    pub partitions: Vec<i32>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for AlterReplicaLogDirTopic {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 1, 2).of(Entity::TopicName),
        Field::new("Partitions", Kind::Array(&Kind::Fixed(4)), 1, 2),
    ];
}

impl FromWire for AlterReplicaLogDirTopic {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.partitions = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AlterReplicaLogDirTopic {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.array(&self.partitions, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("AlterReplicaLogDirTopic.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AlterReplicaLogDirTopic {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.partitions = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for AlterReplicaLogDirsRequest {
    const NAME: &'static str = "AlterReplicaLogDirsRequest";
    const VERSIONS: VersionRange = VersionRange::new(1, 2);
    const FLEXIBLE_FROM: i16 = 2;
}

impl Request for AlterReplicaLogDirsRequest {
    const KEY: ApiKey = ApiKey::AlterReplicaLogDirs;
    type Response = super::AlterReplicaLogDirsResponse;
}
