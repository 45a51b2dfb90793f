//! `UpdateRaftVoterResponse`, versions 0-0, API key 82.

use super::prelude::*;

/// `UpdateRaftVoterResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct UpdateRaftVoterResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `CurrentLeader`, versions 0+, tag 0.
    pub current_leader: CurrentLeader,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for UpdateRaftVoterResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 0),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 0),
        Field::new("CurrentLeader", Kind::Struct(CurrentLeader::FIELDS), 0, 0).tagged(0),
    ];
}

impl FromWire for UpdateRaftVoterResponse {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        if f {
            r.tagged_fields(&mut m.unknown_tagged_fields, |r, tag| {
                match tag {
                    0 => m.current_leader = CurrentLeader::read(r, v, f)?,
                    _ => return Ok(false),
                }
                Ok(true)
            })?;
        }
        Ok(m)
    }
}

impl ToWire for UpdateRaftVoterResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        if f {
            let mut tags = w.tagged_fields(&self.unknown_tagged_fields);
            if self.current_leader != CurrentLeader::default() {
                tags.field(0, |w| self.current_leader.write(w, v, f))?;
            }
            tags.finish()?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for UpdateRaftVoterResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.current_leader = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `CurrentLeader` of `UpdateRaftVoterResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct CurrentLeader {
    /// `LeaderId`, versions 0+.
    pub leader_id: i32,
    /// `LeaderEpoch`, versions 0+.
    pub leader_epoch: i32,
    /// `Host`, versions 0+.
    pub host: String,
    /// `Port`, versions 0+.
    pub port: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for CurrentLeader {
    fn default() -> Self {
        Self {
            leader_id: -1,
            leader_epoch: -1,
            host: Default::default(),
            port: Default::default(),
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for CurrentLeader {
    const FIELDS: &'static [Field] = &[
        Field::new("LeaderId", Kind::Fixed(4), 0, 0),
        Field::new("LeaderEpoch", Kind::Fixed(4), 0, 0),
        Field::new("Host", Kind::Text, 0, 0),
        Field::new("Port", Kind::Fixed(4), 0, 0),
    ];
}

impl FromWire for CurrentLeader {
    const SIZE_MIN: usize = 14;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.leader_id = r.i32()?;
        m.leader_epoch = r.i32()?;
        m.host = r.string(f)?;
        m.port = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for CurrentLeader {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.leader_id);
        w.i32(self.leader_epoch);
        w.string(&self.host, f)?;
        w.i32(self.port);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for CurrentLeader {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.leader_id = Random::random(g, v, f);
        m.leader_epoch = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for UpdateRaftVoterResponse {
    const NAME: &'static str = "UpdateRaftVoterResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for UpdateRaftVoterResponse {
    const KEY: ApiKey = ApiKey::UpdateRaftVoter;
}
