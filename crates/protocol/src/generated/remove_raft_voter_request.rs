//! `RemoveRaftVoterRequest`, versions 0-0, API key 81.

use super::prelude::*;

/// `RemoveRaftVoterRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct RemoveRaftVoterRequest {
    /// `ClusterId`, versions 0+, null in versions 0+.
    pub cluster_id: Option<String>,
    /// `VoterId`, versions 0+.
    pub voter_id: i32,
    /// `VoterDirectoryId`, versions 0+.
    pub voter_directory_id: Uuid,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for RemoveRaftVoterRequest {
    fn default() -> Self {
        Self {
            cluster_id: Some(Default::default()),
            voter_id: Default::default(),
            voter_directory_id: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for RemoveRaftVoterRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClusterId", Kind::Text, 0, 0).nullable(0, 0),
        Field::new("VoterId", Kind::Fixed(4), 0, 0),
        Field::new("VoterDirectoryId", Kind::Uuid, 0, 0),
    ];
}

impl FromWire for RemoveRaftVoterRequest {
    const SIZE_MIN: usize = 22;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.cluster_id = r.nullable_string(f, true)?;
        m.voter_id = r.i32()?;
        m.voter_directory_id = r.uuid()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for RemoveRaftVoterRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        w.i32(self.voter_id);
        w.uuid(self.voter_directory_id);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for RemoveRaftVoterRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.cluster_id = g.nullable(true, v, f);
        m.voter_id = Random::random(g, v, f);
        m.voter_directory_id = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for RemoveRaftVoterRequest {
    const NAME: &'static str = "RemoveRaftVoterRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for RemoveRaftVoterRequest {
    const KEY: ApiKey = ApiKey::RemoveRaftVoter;
    type Response = super::RemoveRaftVoterResponse;
}
