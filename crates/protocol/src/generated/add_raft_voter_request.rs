//! `AddRaftVoterRequest`, versions 0-1, API key 80.

use super::prelude::*;

/// `AddRaftVoterRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct AddRaftVoterRequest {
    /// `ClusterId`, versions 0+, null in versions 0+.
    pub cluster_id: Option<String>,
    /// `TimeoutMs`, versions 0+.
    pub timeout_ms: i32,
    /// `VoterId`, versions 0+.
    pub voter_id: i32,
    /// `VoterDirectoryId`, versions 0+.
    pub voter_directory_id: Uuid,
    /// `Listeners`, versions 0+.
    pub listeners: Vec<Listener>,
    /// `AckWhenCommitted`, versions 1+.
    pub ack_when_committed: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for AddRaftVoterRequest {
    fn default() -> Self {
        Self {
            cluster_id: Some(Default::default()),
            timeout_ms: Default::default(),
            voter_id: Default::default(),
            voter_directory_id: Default::default(),
            listeners: Default::default(),
            ack_when_committed: true,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for AddRaftVoterRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClusterId", Kind::Text, 0, 1).nullable(0, 1),
        Field::new("TimeoutMs", Kind::Fixed(4), 0, 1),
        Field::new("VoterId", Kind::Fixed(4), 0, 1),
        Field::new("VoterDirectoryId", Kind::Uuid, 0, 1),
        Field::new("Listeners", Kind::Array(&Kind::Struct(Listener::FIELDS)), 0, 1),
        Field::new("AckWhenCommitted", Kind::Fixed(1), 1, 1),
    ];
}

impl FromWire for AddRaftVoterRequest {
    const SIZE_MIN: usize = 27;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.cluster_id = r.nullable_string(f, true)?;
        m.timeout_ms = r.i32()?;
        m.voter_id = r.i32()?;
        m.voter_directory_id = r.uuid()?;
        m.listeners = r.array(v, f)?;
        if v >= 1 {
            m.ack_when_committed = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for AddRaftVoterRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        w.i32(self.timeout_ms);
        w.i32(self.voter_id);
        w.uuid(self.voter_directory_id);
        w.array(&self.listeners, v, f)?;
        if v >= 1 {
            w.bool(self.ack_when_committed);
        } else if !self.ack_when_committed {
            return Err(EncodeError::absent("AddRaftVoterRequest.AckWhenCommitted", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for AddRaftVoterRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.cluster_id = g.nullable(true, v, f);
        m.timeout_ms = Random::random(g, v, f);
        m.voter_id = Random::random(g, v, f);
        m.voter_directory_id = Random::random(g, v, f);
        m.listeners = Random::random(g, v, f);
        if v >= 1 {
            m.ack_when_committed = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `Listener` of `AddRaftVoterRequest`.
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
        Field::new("Name", Kind::Text, 0, 1),
        Field::new("Host", Kind::Text, 0, 1),
        Field::new("Port", Kind::Fixed(2), 0, 1),
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

impl Message for AddRaftVoterRequest {
    const NAME: &'static str = "AddRaftVoterRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 1);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for AddRaftVoterRequest {
    const KEY: ApiKey = ApiKey::AddRaftVoter;
    type Response = super::AddRaftVoterResponse;
}
