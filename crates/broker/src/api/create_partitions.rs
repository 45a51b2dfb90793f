//! CreatePartitions, versions 0-3 (KIP-195).

use std::collections::HashMap;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::create_partitions_request::CreatePartitionsTopic;
use moldau_protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use moldau_protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};

use crate::api::create_topics::{TWICE, check_replicas};
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, TOO_MANY_CHANGES, check_changes, once_durable, patience};
use crate::error::{Refusal, denied};
use crate::logs::Lsn;

/// From this version on a client that has exceeded its quota is refused (KIP-599).
const QUOTA_STRICT_SINCE: i16 = 3;

pub(crate) fn handle(
    call: &Call<'_>,
    request: CreatePartitionsRequest,
) -> Outcome<CreatePartitionsResponse> {
    let within_limit = check_changes(request.topics.len(), TOO_MANY_CHANGES);
    let mut last = None;
    let mut results = Vec::with_capacity(request.topics.len());
    let mut mentions: HashMap<_, usize> = HashMap::new();
    for topic in &request.topics {
        *mentions.entry(topic.name.as_str()).or_default() += 1;
    }
    for topic in &request.topics {
        let Some(count) = mentions.remove(topic.name.as_str()) else { continue };
        let mut result =
            CreatePartitionsTopicResult { name: topic.name.clone(), ..Default::default() };
        let grown = match count {
            _ if within_limit.is_err() => within_limit.clone().map(|()| None),
            2.. => Err(Refusal::new(ErrorCode::InvalidRequest, TWICE)),
            _ => grow(call, topic, request.validate_only),
        };
        match grown {
            Ok(lsn) => last = lsn.or(last),
            Err(refusal) => {
                result.error_code = refusal.code.into();
                result.error_message = Some(refusal.message);
            }
        }
        results.push(result);
    }
    let response = CreatePartitionsResponse { results, ..CreatePartitionsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    once_durable(call, lsn, patience(request.timeout_ms), move |durable| match durable {
        Ok(()) => response,
        Err(refusal) => not_durable(response, &refusal),
    })
}

fn grow(
    call: &Call<'_>,
    asked: &CreatePartitionsTopic,
    validate_only: bool,
) -> Result<Option<Lsn>, Refusal> {
    if !call.rights.allow(ResourceType::Topic, Operation::Alter, &asked.name) {
        return Err(denied(ResourceType::Topic));
    }
    let catalog = &call.state.catalog;
    let partitions = u32::try_from(asked.count).unwrap_or(0);
    let topic = catalog.check_growth(&asked.name, partitions)?;
    if let Some(assignments) = &asked.assignments {
        let added = usize::try_from(partitions - topic.partitions).unwrap_or(usize::MAX);
        let given = assignments.len();
        if given != added {
            let message = format!(
                "Attempted to add {added} additional partition(s), but only {given} assignment(s) \
                 were specified."
            );
            return Err(Refusal::new(ErrorCode::InvalidReplicaAssignment, message));
        }
        assignments
            .iter()
            .try_for_each(|assignment| check_replicas(call.state, &assignment.broker_ids))?;
    }
    if validate_only {
        return Ok(None);
    }
    call.mutate(partitions - topic.partitions, QUOTA_STRICT_SINCE)?;
    catalog.grow(&call.state.storage, &asked.name, partitions).map(Some)
}

fn not_durable(
    mut response: CreatePartitionsResponse,
    refusal: &Refusal,
) -> CreatePartitionsResponse {
    for topic in &mut response.results {
        topic.error_code = refusal.code.into();
        topic.error_message = Some(refusal.message.clone());
    }
    response
}
