//! `ApiVersionsRequest`, versions 0-5, API key 18.

use super::prelude::*;

/// `ApiVersionsRequest`.
#[derive(Clone, Debug, PartialEq)]
pub struct ApiVersionsRequest {
    /// `ClientSoftwareName`, versions 3+.
    pub client_software_name: String,
    /// `ClientSoftwareVersion`, versions 3+.
    pub client_software_version: String,
    /// `ClusterId`, versions 5+, null in versions 5+.
    pub cluster_id: Option<String>,
    /// `NodeId`, versions 5+.
    pub node_id: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for ApiVersionsRequest {
    fn default() -> Self {
        Self {
            client_software_name: Default::default(),
            client_software_version: Default::default(),
            cluster_id: None,
            node_id: -1,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for ApiVersionsRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("ClientSoftwareName", Kind::Text, 3, 5),
        Field::new("ClientSoftwareVersion", Kind::Text, 3, 5),
        Field::new("ClusterId", Kind::Text, 5, 5).nullable(5, 5),
        Field::new("NodeId", Kind::Fixed(4), 5, 5),
    ];
}

impl FromWire for ApiVersionsRequest {
    const SIZE_MIN: usize = 0;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        if v >= 3 {
            m.client_software_name = r.string(f)?;
        }
        if v >= 3 {
            m.client_software_version = r.string(f)?;
        }
        if v >= 5 {
            m.cluster_id = r.nullable_string(f, true)?;
        }
        if v >= 5 {
            m.node_id = r.i32()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for ApiVersionsRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        if v >= 3 {
            w.string(&self.client_software_name, f)?;
        }
        if v >= 3 {
            w.string(&self.client_software_version, f)?;
        }
        if v >= 5 {
            w.nullable_string(self.cluster_id.as_deref(), f, true, "ClusterId")?;
        }
        if v >= 5 {
            w.i32(self.node_id);
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        } else if !self.unknown_tagged_fields.is_empty() {
            return Err(EncodeError::absent("ApiVersionsRequest.unknown_tagged_fields", v));
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for ApiVersionsRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        if v >= 3 {
            m.client_software_name = Random::random(g, v, f);
        }
        if v >= 3 {
            m.client_software_version = Random::random(g, v, f);
        }
        if v >= 5 {
            m.cluster_id = g.nullable(true, v, f);
        }
        if v >= 5 {
            m.node_id = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for ApiVersionsRequest {
    const NAME: &'static str = "ApiVersionsRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 5);
    const FLEXIBLE_FROM: i16 = 3;
}

impl Request for ApiVersionsRequest {
    const KEY: ApiKey = ApiKey::ApiVersions;
    type Response = super::ApiVersionsResponse;
}
