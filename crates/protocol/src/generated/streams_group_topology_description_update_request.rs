//! `StreamsGroupTopologyDescriptionUpdateRequest`, versions 0-0, API key 93.

use super::prelude::*;

/// `StreamsGroupTopologyDescriptionUpdateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct StreamsGroupTopologyDescriptionUpdateRequest {
    /// `GroupId`, versions 0+.
    pub group_id: String,
    /// `MemberId`, versions 0+.
    pub member_id: String,
    /// `TopologyEpoch`, versions 0+.
    pub topology_epoch: i32,
    /// `TopologyDescription`, versions 0+.
    pub topology_description: TopologyDescription,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for StreamsGroupTopologyDescriptionUpdateRequest {
    const FIELDS: &'static [Field] = &[
        Field::new("GroupId", Kind::Text, 0, 0).of(Entity::GroupId),
        Field::new("MemberId", Kind::Text, 0, 0),
        Field::new("TopologyEpoch", Kind::Fixed(4), 0, 0),
        Field::new("TopologyDescription", Kind::Struct(TopologyDescription::FIELDS), 0, 0),
    ];
}

impl FromWire for StreamsGroupTopologyDescriptionUpdateRequest {
    const SIZE_MIN: usize = 10;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.group_id = r.string(f)?;
        m.member_id = r.string(f)?;
        m.topology_epoch = r.i32()?;
        m.topology_description = TopologyDescription::read(r, v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for StreamsGroupTopologyDescriptionUpdateRequest {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.group_id, f)?;
        w.string(&self.member_id, f)?;
        w.i32(self.topology_epoch);
        self.topology_description.write(w, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for StreamsGroupTopologyDescriptionUpdateRequest {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.group_id = Random::random(g, v, f);
        m.member_id = Random::random(g, v, f);
        m.topology_epoch = Random::random(g, v, f);
        m.topology_description = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopologyDescription` of `StreamsGroupTopologyDescriptionUpdateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescription {
    /// `Subtopologies`, versions 0+.
    pub subtopologies: Vec<TopologyDescriptionSubtopology>,
    /// `GlobalStores`, versions 0+.
    pub global_stores: Vec<TopologyDescriptionGlobalStore>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescription {
    const FIELDS: &'static [Field] = &[
        Field::new(
            "Subtopologies",
            Kind::Array(&Kind::Struct(TopologyDescriptionSubtopology::FIELDS)),
            0,
            0,
        ),
        Field::new(
            "GlobalStores",
            Kind::Array(&Kind::Struct(TopologyDescriptionGlobalStore::FIELDS)),
            0,
            0,
        ),
    ];
}

impl FromWire for TopologyDescription {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopologies = r.array(v, f)?;
        m.global_stores = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescription {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.array(&self.subtopologies, v, f)?;
        w.array(&self.global_stores, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescription {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.subtopologies = Random::random(g, v, f);
        m.global_stores = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopologyDescriptionSubtopology` of `StreamsGroupTopologyDescriptionUpdateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescriptionSubtopology {
    /// `SubtopologyId`, versions 0+.
    pub subtopology_id: String,
    /// `Nodes`, versions 0+.
    pub nodes: Vec<TopologyDescriptionNode>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescriptionSubtopology {
    const FIELDS: &'static [Field] = &[
        Field::new("SubtopologyId", Kind::Text, 0, 0),
        Field::new("Nodes", Kind::Array(&Kind::Struct(TopologyDescriptionNode::FIELDS)), 0, 0),
    ];
}

impl FromWire for TopologyDescriptionSubtopology {
    const SIZE_MIN: usize = 3;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.subtopology_id = r.string(f)?;
        m.nodes = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescriptionSubtopology {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.subtopology_id, f)?;
        w.array(&self.nodes, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescriptionSubtopology {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.subtopology_id = Random::random(g, v, f);
        m.nodes = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopologyDescriptionNode` of `StreamsGroupTopologyDescriptionUpdateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescriptionNode {
    /// `Name`, versions 0+.
    pub name: String,
    /// `NodeType`, versions 0+.
    pub node_type: i8,
    /// `SourceTopics`, versions 0+.
    pub source_topics: Vec<String>,
    /// `SinkTopic`, versions 0+, null in versions 0+.
    pub sink_topic: Option<String>,
    /// `Stores`, versions 0+.
    pub stores: Vec<String>,
    /// `Successors`, versions 0+.
    pub successors: Vec<String>,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescriptionNode {
    const FIELDS: &'static [Field] = &[
        Field::new("Name", Kind::Text, 0, 0),
        Field::new("NodeType", Kind::Fixed(1), 0, 0),
        Field::new("SourceTopics", Kind::Array(&Kind::Text), 0, 0).of(Entity::TopicName),
        Field::new("SinkTopic", Kind::Text, 0, 0).nullable(0, 0).of(Entity::TopicName),
        Field::new("Stores", Kind::Array(&Kind::Text), 0, 0),
        Field::new("Successors", Kind::Array(&Kind::Text), 0, 0),
    ];
}

impl FromWire for TopologyDescriptionNode {
    const SIZE_MIN: usize = 7;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.name = r.string(f)?;
        m.node_type = r.i8()?;
        m.source_topics = r.array(v, f)?;
        m.sink_topic = r.nullable_string(f, true)?;
        m.stores = r.array(v, f)?;
        m.successors = r.array(v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescriptionNode {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        w.string(&self.name, f)?;
        w.i8(self.node_type);
        w.array(&self.source_topics, v, f)?;
        w.nullable_string(self.sink_topic.as_deref(), f, true, "SinkTopic")?;
        w.array(&self.stores, v, f)?;
        w.array(&self.successors, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescriptionNode {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.name = Random::random(g, v, f);
        m.node_type = Random::random(g, v, f);
        m.source_topics = Random::random(g, v, f);
        m.sink_topic = g.nullable(true, v, f);
        m.stores = Random::random(g, v, f);
        m.successors = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

/// `TopologyDescriptionGlobalStore` of `StreamsGroupTopologyDescriptionUpdateRequest`.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct TopologyDescriptionGlobalStore {
    /// `Source`, versions 0+.
    pub source: TopologyDescriptionNode,
    /// `Processor`, versions 0+.
    pub processor: TopologyDescriptionNode,
    /// Tagged fields that are not known here, by ascending tag.
    pub unknown_tagged_fields: Vec<RawTaggedField>,
}

impl Structure for TopologyDescriptionGlobalStore {
    const FIELDS: &'static [Field] = &[
        Field::new("Source", Kind::Struct(TopologyDescriptionNode::FIELDS), 0, 0),
        Field::new("Processor", Kind::Struct(TopologyDescriptionNode::FIELDS), 0, 0),
    ];
}

impl FromWire for TopologyDescriptionGlobalStore {
    const SIZE_MIN: usize = 15;

    fn read(r: &mut Reader<'_>, v: i16, f: bool) -> Result<Self, DecodeError> {
        let mut m = Self::default();
        m.source = TopologyDescriptionNode::read(r, v, f)?;
        m.processor = TopologyDescriptionNode::read(r, v, f)?;
        if f {
            r.unknown_tagged_fields(&mut m.unknown_tagged_fields)?;
        }
        Ok(m)
    }
}

impl ToWire for TopologyDescriptionGlobalStore {
    fn write(&self, w: &mut Writer<'_>, v: i16, f: bool) -> Result<(), EncodeError> {
        self.source.write(w, v, f)?;
        self.processor.write(w, v, f)?;
        if f {
            w.unknown_tagged_fields(&self.unknown_tagged_fields)?;
        }
        Ok(())
    }
}

#[cfg(test)]
impl Random for TopologyDescriptionGlobalStore {
    fn random(g: &mut Generator, v: i16, f: bool) -> Self {
        let mut m = Self::default();
        m.source = Random::random(g, v, f);
        m.processor = Random::random(g, v, f);
        if f {
            m.unknown_tagged_fields = g.unknown_tagged_fields();
        }
        m
    }
}

impl Message for StreamsGroupTopologyDescriptionUpdateRequest {
    const NAME: &'static str = "StreamsGroupTopologyDescriptionUpdateRequest";
    const VERSIONS: VersionRange = VersionRange::new(0, 0);
    const FLEXIBLE_FROM: i16 = 0;
}

impl Request for StreamsGroupTopologyDescriptionUpdateRequest {
    const KEY: ApiKey = ApiKey::StreamsGroupTopologyDescriptionUpdate;
    type Response = super::StreamsGroupTopologyDescriptionUpdateResponse;
}
