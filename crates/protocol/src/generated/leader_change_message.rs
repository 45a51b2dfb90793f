//! `LeaderChangeMessage`, versions 0-1.

use super::prelude::*;

/// `LeaderChangeMessage`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct LeaderChangeMessage {
    /// `Version`, versions 0+.
    pub version: i16,
    /// `LeaderId`, versions 0+.
    pub leader_id: i32,
    /// `Voters`, versions 0+.
    pub voters: Vec<Voter>,
    /// `GrantingVoters`, versions 0+.
    pub granting_voters: Vec<Voter>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for LeaderChangeMessage {
    const FIELDS: &'static [Field] = &[
        Field::new("Version", Kind::Fixed(2), 0, 1),
        Field::new("LeaderId", Kind::Fixed(4), 0, 1),
        Field::new("Voters", Kind::Array(&Kind::Struct(Voter::FIELDS)), 0, 1),
        Field::new("GrantingVoters", Kind::Array(&Kind::Struct(Voter::FIELDS)), 0, 1),
    ];
}

impl FromWire for LeaderChangeMessage {
    const SIZE_MIN: usize = 9;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.version = r.i16()?;
        m.leader_id = r.i32()?;
        m.voters = r.array(v, f)?;
        m.granting_voters = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for LeaderChangeMessage {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i16(self.version);
        w.i32(self.leader_id);
        w.array(&self.voters, v, f)?;
        w.array(&self.granting_voters, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for LeaderChangeMessage {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.version = Random::random(g, v, f);
        m.leader_id = Random::random(g, v, f);
        m.voters = Random::random(g, v, f);
        m.granting_voters = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Voter` of `LeaderChangeMessage`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Voter {
    /// `VoterId`, versions 0+.
    pub voter_id: i32,
    /// `VoterDirectoryId`, versions 1+.
    pub voter_directory_id: Uuid,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for Voter {
    const FIELDS: &'static [Field] = &[
        Field::new("VoterId", Kind::Fixed(4), 0, 1),
        Field::new("VoterDirectoryId", Kind::Uuid, 1, 1),
    ];
}

impl FromWire for Voter {
    const SIZE_MIN: usize = 5;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.voter_id = r.i32()?;
        if v >= 1 {
            m.voter_directory_id = r.uuid()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for Voter {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.voter_id);
        if v >= 1 {
            w.uuid(self.voter_directory_id);
        } else if self.voter_directory_id != Uuid::ZERO {
            return Err(EncodeError::absent("Voter.VoterDirectoryId", v));
        }
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
        if v >= 1 {
            m.voter_directory_id = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for LeaderChangeMessage {
    const NAME: &'static str = "LeaderChangeMessage";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}
