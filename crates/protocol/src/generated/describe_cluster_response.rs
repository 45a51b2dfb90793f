//! `DescribeClusterResponse`, versions 0-2, API key 60.

use super::prelude::*;

/// `DescribeClusterResponse`.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribeClusterResponse {
    /// `ThrottleTimeMs`, versions 0+.
    pub throttle_time_ms: i32,
    /// `ErrorCode`, versions 0+.
    pub error_code: i16,
    /// `ErrorMessage`, versions 0+, null in versions 0+.
    pub error_message: Option<String>,
    /// `EndpointType`, versions 1+.
    pub endpoint_type: i8,
    /// `ClusterId`, versions 0+.
    pub cluster_id: String,
    /// `ControllerId`, versions 0+.
    pub controller_id: i32,
    /// `Brokers`, versions 0+.
    pub brokers: Vec<DescribeClusterBroker>,
    /// `ClusterAuthorizedOperations`, versions 0+.
    pub cluster_authorized_operations: i32,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Default for DescribeClusterResponse {
    fn default() -> Self {
        Self {
            throttle_time_ms: Default::default(),
            error_code: Default::default(),
            error_message: None,
            endpoint_type: 1,
            cluster_id: Default::default(),
            controller_id: -1,
            brokers: Default::default(),
            cluster_authorized_operations: -2147483648,
            unknown_tagged_fields: Vec::new(),
        }
    }
}

impl Structure for DescribeClusterResponse {
    const FIELDS: &'static [Field] = &[
        Field::new("ThrottleTimeMs", Kind::Fixed(4), 0, 2),
        Field::new("ErrorCode", Kind::Fixed(2), 0, 2),
        Field::new("ErrorMessage", Kind::Text, 0, 2).nullable(0, 2).of(Entity::Explanation),
        Field::new("EndpointType", Kind::Fixed(1), 1, 2),
        Field::new("ClusterId", Kind::Text, 0, 2),
        Field::new("ControllerId", Kind::Fixed(4), 0, 2),
        Field::new("Brokers", Kind::Array(&Kind::Struct(DescribeClusterBroker::FIELDS)), 0, 2),
        Field::new("ClusterAuthorizedOperations", Kind::Fixed(4), 0, 2),
    ];
}

impl FromWire for DescribeClusterResponse {
    const SIZE_MIN: usize = 18;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.throttle_time_ms = r.i32()?;
        m.error_code = r.i16()?;
        m.error_message = r.nullable_string(f, true)?;
        if v >= 1 {
            m.endpoint_type = r.i8()?;
        }
        m.cluster_id = r.string(f)?;
        m.controller_id = r.i32()?;
        m.brokers = r.array(v, f)?;
        m.cluster_authorized_operations = r.i32()?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeClusterResponse {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.throttle_time_ms);
        w.i16(self.error_code);
        w.nullable_string(self.error_message.as_deref(), f, true, "ErrorMessage")?;
        if v >= 1 {
            w.i8(self.endpoint_type);
        } else if self.endpoint_type != 1 {
            return Err(EncodeError::absent("DescribeClusterResponse.EndpointType", v));
        }
        w.string(&self.cluster_id, f)?;
        w.i32(self.controller_id);
        w.array(&self.brokers, v, f)?;
        w.i32(self.cluster_authorized_operations);
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeClusterResponse {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.throttle_time_ms = Random::random(g, v, f);
        m.error_code = Random::random(g, v, f);
        m.error_message = g.nullable(true, v, f);
        if v >= 1 {
            m.endpoint_type = Random::random(g, v, f);
        }
        m.cluster_id = Random::random(g, v, f);
        m.controller_id = Random::random(g, v, f);
        m.brokers = Random::random(g, v, f);
        m.cluster_authorized_operations = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `DescribeClusterBroker` of `DescribeClusterResponse`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct DescribeClusterBroker {
    /// `BrokerId`, versions 0+.
    pub broker_id: i32,
    /// `Host`, versions 0+.
    pub host: String,
    /// `Port`, versions 0+.
    pub port: i32,
    /// `Rack`, versions 0+, null in versions 0+.
    pub rack: Option<String>,
    /// `IsFenced`, versions 2+.
    pub is_fenced: bool,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for DescribeClusterBroker {
    const FIELDS: &'static [Field] = &[
        Field::new("BrokerId", Kind::Fixed(4), 0, 2),
        Field::new("Host", Kind::Text, 0, 2),
        Field::new("Port", Kind::Fixed(4), 0, 2),
        Field::new("Rack", Kind::Text, 0, 2).nullable(0, 2),
        Field::new("IsFenced", Kind::Fixed(1), 2, 2),
    ];
}

impl FromWire for DescribeClusterBroker {
    const SIZE_MIN: usize = 11;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.broker_id = r.i32()?;
        m.host = r.string(f)?;
        m.port = r.i32()?;
        m.rack = r.nullable_string(f, true)?;
        if v >= 2 {
            m.is_fenced = r.bool()?;
        }
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for DescribeClusterBroker {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.i32(self.broker_id);
        w.string(&self.host, f)?;
        w.i32(self.port);
        w.nullable_string(self.rack.as_deref(), f, true, "Rack")?;
        if v >= 2 {
            w.bool(self.is_fenced);
        } else if self.is_fenced {
            return Err(EncodeError::absent("DescribeClusterBroker.IsFenced", v));
        }
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for DescribeClusterBroker {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.broker_id = Random::random(g, v, f);
        m.host = Random::random(g, v, f);
        m.port = Random::random(g, v, f);
        m.rack = g.nullable(true, v, f);
        if v >= 2 {
            m.is_fenced = Random::random(g, v, f);
        }
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for DescribeClusterResponse {
    const NAME: &'static str = "DescribeClusterResponse";
    const VERSIONS: VersionRange = VersionRange::new(0, 2);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Response for DescribeClusterResponse {
    const KEY: ApiKey = ApiKey::DescribeCluster;
}
