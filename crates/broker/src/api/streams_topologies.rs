//! Topologies of Streams applications between their messages and the coordinator, and
//! StreamsGroupDescribe, which shows them.

use std::collections::{BTreeMap, HashSet};

use moldau_coordinator::{
    CopartitionGroup, InternalTopic, StreamsGroupDescription, StreamsMemberDescription,
    StreamsTasks, StreamsTopology, Subtopology, TaskIds, UserEndpoint,
};
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::streams_group_describe_response as shown;
use moldau_protocol::messages::streams_group_describe_response::{DescribedGroup, Member};
use moldau_protocol::messages::streams_group_heartbeat_request as asked;
use moldau_protocol::messages::{
    StreamsGroupDescribeRequest, StreamsGroupDescribeResponse, StreamsGroupHeartbeatRequest,
};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::error::Refusal;
use crate::rights::Rights;
use crate::topic_names::{check_name, check_ordinary};

/// The version of StreamsGroupDescribe that can ask for the description of a topology.
const DESCRIPTION_SINCE: i16 = 1;

/// A description of the topology was asked for, but there is none.
const NOT_STORED: i8 = 1;

/// Checks the topics of a topology: their names, and that the client may describe them.
///
/// # Errors
///
/// `STREAMS_INVALID_TOPOLOGY` with the names at fault, or `TOPIC_AUTHORIZATION_FAILED`.
pub(crate) fn check_names(
    rights: &Rights,
    request: &StreamsGroupHeartbeatRequest,
) -> Result<(), (ErrorCode, Option<String>)> {
    let parts = request.topology.iter().flat_map(|topology| &topology.subtopologies);
    let names: Vec<&String> = parts
        .flat_map(|part| {
            let internal =
                part.repartition_source_topics.iter().chain(&part.state_changelog_topics);
            let names = part.source_topics.iter().chain(&part.repartition_sink_topics);
            names.chain(internal.map(|topic| &topic.name))
        })
        .collect();
    let wrong = |is_wrong: &dyn Fn(&str) -> bool| {
        names.iter().find(|name| is_wrong(name)).map(|name| (*name).clone())
    };
    if let Some(name) = wrong(&|name| check_ordinary(name).is_err()) {
        let message = format!("a topology cannot have the internal topic {name} of Kafka");
        return Err((ErrorCode::StreamsInvalidTopology, Some(message)));
    }
    if wrong(&|name| check_name(name).is_err()).is_some() {
        let message = "the topology has a topic with a name that no topic can have".to_owned();
        return Err((ErrorCode::StreamsInvalidTopology, Some(message)));
    }
    let may_describe =
        |name: &&String| rights.allow(ResourceType::Topic, Operation::Describe, name);
    match names.iter().all(may_describe) {
        true => Ok(()),
        false => Err((ErrorCode::TopicAuthorizationFailed, None)),
    }
}

/// The topology of a request.
///
/// # Errors
///
/// `INVALID_REQUEST` for a regular expression, `STREAMS_INVALID_TOPOLOGY` for an id given twice.
pub(crate) fn taken(topology: asked::Topology) -> Result<StreamsTopology, Refusal> {
    let mut subtopologies = BTreeMap::new();
    for part in topology.subtopologies {
        if !part.source_topic_regex.is_empty() {
            let message = "regular expressions for source topics are not supported";
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        let groups = part.copartition_groups.into_iter().map(|group| CopartitionGroup {
            source_topics: group.source_topics,
            repartition_sources: group.repartition_source_topics,
        });
        let taken = Subtopology {
            source_topics: part.source_topics,
            changelog_topics: part.state_changelog_topics.into_iter().map(topic).collect(),
            repartition_sinks: part.repartition_sink_topics,
            repartition_sources: part.repartition_source_topics.into_iter().map(topic).collect(),
            copartition_groups: groups.collect(),
        };
        if subtopologies.insert(part.subtopology_id, taken).is_some() {
            let message = "two subtopologies have the same id";
            return Err(Refusal::new(ErrorCode::StreamsInvalidTopology, message));
        }
    }
    Ok(StreamsTopology { epoch: topology.epoch, subtopologies })
}

fn topic(topic: asked::TopicInfo) -> InternalTopic {
    let configs = topic.topic_configs.into_iter().map(|config| (config.key, config.value));
    InternalTopic {
        name: topic.name,
        partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        configs: configs.collect(),
    }
}

pub(crate) fn describe(
    call: &Call<'_>,
    request: StreamsGroupDescribeRequest,
) -> Outcome<StreamsGroupDescribeResponse> {
    // Each is described once, so that an answer is bounded by the groups that exist.
    let mut seen = HashSet::new();
    let groups = request.group_ids.into_iter().filter(|group_id| seen.insert(group_id.clone()));
    let asks = call.version >= DESCRIPTION_SINCE && request.include_topology_description;
    let groups = groups.map(|group_id| {
        let mut group = describe_one(call, group_id);
        if request.include_authorized_operations && group.error_code == 0 {
            group.authorized_operations =
                call.rights.operations(ResourceType::Group, &group.group_id);
        }
        if asks && group.error_code == 0 {
            group.topology_description_status = NOT_STORED;
        }
        group
    });
    Outcome::Now(StreamsGroupDescribeResponse {
        groups: groups.collect(),
        ..StreamsGroupDescribeResponse::default()
    })
}

fn describe_one(call: &Call<'_>, group_id: String) -> DescribedGroup {
    let refused = |group_id, code: ErrorCode, message: Option<String>| DescribedGroup {
        error_code: code.into(),
        error_message: message,
        group_id,
        ..DescribedGroup::default()
    };
    if !call.rights.allow(ResourceType::Group, Operation::Describe, &group_id) {
        return refused(group_id, ErrorCode::GroupAuthorizationFailed, None);
    }
    if group_id.is_empty() {
        return refused(group_id, ErrorCode::InvalidGroupId, None);
    }
    // Only the coordinator knows how many partitions internal topics are to have.
    if let Err(refusal) = call.state.storage.coordinate() {
        return refused(group_id, refusal.code, Some(refusal.message));
    }
    match call.state.groups.view(|groups| groups.describe_streams(&group_id)) {
        Err(message) => refused(group_id, ErrorCode::GroupIdNotFound, Some(message)),
        Ok(group) if !may_see(call, &group.topology) => {
            let message = "the group has a topic that the client may not describe".to_owned();
            refused(group_id, ErrorCode::TopicAuthorizationFailed, Some(message))
        }
        Ok(group) => described(group),
    }
}

fn may_see(call: &Call<'_>, topology: &StreamsTopology) -> bool {
    let may = |name: &str| call.rights.allow(ResourceType::Topic, Operation::Describe, name);
    topology.subtopologies.values().all(|part| {
        let internal = part.repartition_sources.iter().chain(&part.changelog_topics);
        let names = part.source_topics.iter().chain(&part.repartition_sinks);
        names.map(String::as_str).chain(internal.map(|topic| topic.name.as_str())).all(may)
    })
}

fn described(group: StreamsGroupDescription) -> DescribedGroup {
    let parts = group.topology.subtopologies.into_iter().map(|(id, part)| shown::Subtopology {
        subtopology_id: id,
        source_topics: sorted(part.source_topics),
        repartition_sink_topics: sorted(part.repartition_sinks),
        state_changelog_topics: topics(part.changelog_topics),
        repartition_source_topics: topics(part.repartition_sources),
        ..shown::Subtopology::default()
    });
    DescribedGroup {
        error_message: None,
        group_id: group.group_id,
        group_state: group.state.name().to_owned(),
        group_epoch: group.epoch,
        assignment_epoch: group.target_epoch,
        topology: Some(shown::Topology {
            epoch: group.topology.epoch,
            subtopologies: Some(parts.collect()),
            ..shown::Topology::default()
        }),
        members: group.members.into_iter().map(member).collect(),
        assignor_name: Some(group.assignor.to_owned()),
        ..DescribedGroup::default()
    }
}

fn sorted(mut names: Vec<String>) -> Vec<String> {
    names.sort_unstable();
    names
}

fn topics(mut topics: Vec<InternalTopic>) -> Vec<shown::TopicInfo> {
    topics.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    let topics = topics.into_iter().map(|topic| shown::TopicInfo {
        name: topic.name,
        partitions: topic.partitions,
        replication_factor: topic.replication_factor,
        topic_configs: pairs(topic.configs),
        ..shown::TopicInfo::default()
    });
    topics.collect()
}

fn pairs(map: BTreeMap<String, String>) -> Vec<shown::KeyValue> {
    let pairs = map.into_iter();
    pairs.map(|(key, value)| shown::KeyValue { key, value, ..Default::default() }).collect()
}

fn member(described: StreamsMemberDescription) -> Member {
    let member = described.member;
    let endpoint = member.endpoint.map(|UserEndpoint { host, port }| shown::Endpoint {
        host,
        port,
        ..shown::Endpoint::default()
    });
    Member {
        assignment: assignment(member.assigned.ids()),
        target_assignment: assignment(described.target),
        member_id: member.member_id,
        member_epoch: member.epoch,
        instance_id: member.instance_id,
        rack_id: member.rack_id,
        client_id: member.client_id,
        client_host: member.client_host,
        topology_epoch: member.topology_epoch,
        process_id: member.process_id,
        user_endpoint: endpoint,
        client_tags: pairs(member.tags),
        task_offsets: offsets(described.task_offsets),
        task_end_offsets: offsets(described.task_end_offsets),
        ..Member::default()
    }
}

fn assignment(tasks: StreamsTasks) -> shown::Assignment {
    let ids = |tasks: TaskIds| {
        let tasks = tasks.into_iter().map(|(subtopology_id, partitions)| shown::TaskIds {
            subtopology_id,
            partitions: partitions.into_iter().collect(),
            ..shown::TaskIds::default()
        });
        tasks.collect()
    };
    shown::Assignment {
        active_tasks: ids(tasks.active),
        standby_tasks: ids(tasks.standby),
        ..shown::Assignment::default()
    }
}

fn offsets(sums: BTreeMap<String, BTreeMap<i32, i64>>) -> Vec<shown::TaskOffset> {
    let of_part = |(id, sums): (String, BTreeMap<i32, i64>)| {
        sums.into_iter().map(move |(partition, offset)| shown::TaskOffset {
            subtopology_id: id.clone(),
            partition,
            offset,
            ..shown::TaskOffset::default()
        })
    };
    sums.into_iter().flat_map(of_part).collect()
}
