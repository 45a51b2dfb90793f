//! Answers without what the client may not see.

use moldau_protocol::messages::{
    ConsumerGroupDescribeResponse, OffsetFetchResponse, ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
};
use moldau_protocol::names::{Verdict, Visitor};
use moldau_protocol::{ApiKey, Entity, ErrorCode};
use moldau_proxy::{FilterError, ResponseFrame};

use super::Judge;
use super::access::{Access, Need, access};
use super::rules::Operation;
use crate::names::rewrite_response;

/// The first version of OffsetFetch that tells topics by id alone.
const OFFSETS_BY_ID_SINCE: i16 = 10;

/// Kafka's sentence for a group whose topics the client may not see.
const HIDDEN_TOPICS: &str =
    "The group has described topic(s) that the client is not authorized to describe.";

/// Leaves out of an answer what was not asked for by name and is not shown to the client.
pub(super) fn show(judge: &Judge<'_>, answer: ResponseFrame) -> Result<ResponseFrame, FilterError> {
    let api = answer.api_key();
    match api {
        // Who may describe the cluster sees all groups.
        ApiKey::ListGroups if judge.allows_cluster(Operation::Describe) => return Ok(answer),
        ApiKey::ConsumerGroupDescribe => return consumer_groups(judge, answer),
        ApiKey::ShareGroupDescribe => return share_groups(judge, answer),
        ApiKey::StreamsGroupDescribe => return streams_groups(judge, answer),
        ApiKey::OffsetFetch if answer.api_version() >= OFFSETS_BY_ID_SINCE => {
            return offsets_by_id(judge, answer);
        }
        _ => {}
    }
    let Access::Guarded { shown, .. } = access(api) else { return Ok(answer) };
    if shown.is_empty() {
        return Ok(answer);
    }
    rewrite_response(answer, &mut Hiding { judge, shown })
}

/// Whether answers of an API tell nothing but what was asked for by name.
pub(super) fn is_shown_whole(api: ApiKey) -> bool {
    use ApiKey::{ConsumerGroupDescribe, OffsetFetch, ShareGroupDescribe, StreamsGroupDescribe};
    let is_looked_at =
        [ConsumerGroupDescribe, ShareGroupDescribe, StreamsGroupDescribe, OffsetFetch];
    !is_looked_at.contains(&api) && matches!(access(api), Access::Guarded { shown: [], .. })
}

/// Drops what may not be seen.
struct Hiding<'j> {
    judge: &'j Judge<'j>,
    shown: &'static [Need],
}

impl Visitor for Hiding<'_> {
    fn text(&mut self, entity: Entity, text: &str, _: &mut String) -> Verdict {
        let need = self.shown.iter().copied().find(|need| {
            matches!(
                (need, entity),
                (Need::Topic(_), Entity::TopicName)
                    | (Need::Group(_), Entity::GroupId)
                    | (Need::TransactionalId(_), Entity::TransactionalId)
            )
        });
        match need.and_then(|need| self.judge.name(need, text)) {
            Some(_) => Verdict::Drop,
            None => Verdict::Keep,
        }
    }
}

/// A topic with an unknown name is hidden.
fn offsets_by_id(judge: &Judge<'_>, answer: ResponseFrame) -> Result<ResponseFrame, FilterError> {
    let mut message: OffsetFetchResponse = answer.decode()?;
    for group in &mut message.groups {
        group.topics.retain(|topic| {
            let name = judge.filter.topic_names.get(topic.topic_id);
            name.is_some_and(|name| is_visible(judge, &name))
        });
    }
    Ok(answer.with_message(&message)?)
}

fn is_visible(judge: &Judge<'_>, topic: &str) -> bool {
    judge.name(Need::Topic(Operation::Describe), topic).is_none()
}

/// Defines a function that hides groups in which any topic may not be seen, as Kafka does.
macro_rules! groups {
    ($name:ident, $response:ident, |$group:ident| $topics:expr, |$hidden:ident| $hide:expr) => {
        fn $name(judge: &Judge<'_>, answer: ResponseFrame) -> Result<ResponseFrame, FilterError> {
            let mut message: $response = answer.decode()?;
            let mut is_changed = false;
            for $group in &mut message.groups {
                if $topics.all(|topic: &String| is_visible(judge, topic)) {
                    continue;
                }
                is_changed = true;
                let $hidden = $group;
                $hidden.error_code = ErrorCode::TopicAuthorizationFailed.into();
                $hidden.error_message = Some(HIDDEN_TOPICS.to_owned());
                $hide;
            }
            if is_changed { Ok(answer.with_message(&message)?) } else { Ok(answer) }
        }
    };
}

groups!(
    consumer_groups,
    ConsumerGroupDescribeResponse,
    |group| group.members.iter().flat_map(|member| {
        let assigned = [&member.assignment, &member.target_assignment];
        let assigned = assigned.into_iter().flat_map(|of| &of.topic_partitions);
        member.subscribed_topic_names.iter().chain(assigned.map(|of| &of.topic_name))
    }),
    |group| group.members.clear()
);

groups!(
    share_groups,
    ShareGroupDescribeResponse,
    |group| group.members.iter().flat_map(|member| {
        let assigned = member.assignment.topic_partitions.iter();
        member.subscribed_topic_names.iter().chain(assigned.map(|of| &of.topic_name))
    }),
    |group| group.members.clear()
);

groups!(
    streams_groups,
    StreamsGroupDescribeResponse,
    |group| {
        let topologies = group.topology.iter().filter_map(|it| it.subtopologies.as_ref());
        topologies.flatten().flat_map(|of| {
            let inner = of.state_changelog_topics.iter().chain(&of.repartition_source_topics);
            let outer = of.source_topics.iter().chain(&of.repartition_sink_topics);
            outer.chain(inner.map(|topic| &topic.name))
        })
    },
    |group| {
        group.members.clear();
        group.topology = None;
        group.topology_description = None;
    }
);
