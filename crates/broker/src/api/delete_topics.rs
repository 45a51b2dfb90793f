//! DeleteTopics, versions 1-6 (KIP-516: by name or by id).
//!
//! The topic's data leaves with it, and so do the offsets that groups committed for it.

use std::collections::HashMap;
use std::sync::Arc;

use moldau_protocol::messages::delete_topics_request::DeleteTopicState;
use moldau_protocol::messages::delete_topics_response::DeletableTopicResult;
use moldau_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use moldau_protocol::{ErrorCode, Uuid};

use crate::authorizer::{CLUSTER_NAME, Operation, ResourceType};
use crate::call::{Call, Outcome, TOO_MANY_CHANGES, check_changes, once_durable, patience};
use crate::catalog;
use crate::error::{Refusal, denied};
use crate::logs::Lsn;

/// From this version on a client that has exceeded its quota is refused (KIP-599).
const QUOTA_STRICT_SINCE: i16 = 5;

pub(crate) fn handle(
    call: &Call<'_>,
    request: DeleteTopicsRequest,
) -> Outcome<DeleteTopicsResponse> {
    let by_name = request
        .topic_names
        .into_iter()
        .map(|name| DeleteTopicState { name: Some(name), ..DeleteTopicState::default() });
    let topics: Vec<_> = request.topics.into_iter().chain(by_name).collect();
    let within_limit = check_changes(topics.len(), TOO_MANY_CHANGES);
    let mut mentions: HashMap<_, usize> = HashMap::new();
    for topic in &topics {
        *mentions.entry((&topic.name, topic.topic_id)).or_default() += 1;
    }
    let (mut last, timeout_ms) = (None, request.timeout_ms);
    let mut responses = Vec::new();
    for topic in &topics {
        let Some(count) = mentions.remove(&(&topic.name, topic.topic_id)) else { continue };
        responses.push(match (&within_limit, count) {
            (Err(refusal), _) => refused(topic, refusal.clone()),
            (Ok(()), 1) => delete(call, topic.clone(), &mut last),
            (Ok(()), _) => {
                let message = "duplicate topic in the request";
                refused(topic, Refusal::new(ErrorCode::InvalidRequest, message))
            }
        });
    }
    let response = DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    let state = Arc::clone(call.state);
    once_durable(call, lsn, patience(timeout_ms), move |durable| match durable {
        Ok(()) => {
            state.deleted.notify_one();
            response
        }
        Err(refusal) => not_durable(response, &refusal),
    })
}

fn delete(
    call: &Call<'_>,
    asked: DeleteTopicState,
    last: &mut Option<Lsn>,
) -> DeletableTopicResult {
    match try_delete(call, &asked) {
        Ok((name, id, lsn)) => {
            *last = Some(lsn);
            DeletableTopicResult {
                name: Some(name),
                topic_id: id,
                ..DeletableTopicResult::default()
            }
        }
        Err(Refused { name, refusal }) => DeletableTopicResult {
            name,
            topic_id: asked.topic_id,
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            ..DeletableTopicResult::default()
        },
    }
}

fn refused(asked: &DeleteTopicState, refusal: Refusal) -> DeletableTopicResult {
    DeletableTopicResult {
        name: asked.name.clone(),
        topic_id: asked.topic_id,
        error_code: refusal.code.into(),
        error_message: Some(refusal.message),
        ..DeletableTopicResult::default()
    }
}

/// Why a topic was not deleted, and the name by which the client may know it.
struct Refused {
    name: Option<String>,
    refusal: Refusal,
}

fn try_delete(call: &Call<'_>, asked: &DeleteTopicState) -> Result<(String, Uuid, Lsn), Refused> {
    let state = call.state;
    let refused = |refusal| Refused { name: asked.name.clone(), refusal };
    let id = find(call, asked)?;
    let topic = state.catalog.by_id(id).ok_or_else(|| refused(catalog::unknown_id(id)))?;
    call.mutate(topic.partitions, QUOTA_STRICT_SINCE).map_err(refused)?;
    let stores = (&state.storage, &state.logs);
    let deleted = state.catalog.delete(stores, &state.groups, id).map_err(refused)?;
    state.shares.topic_deleted(id);
    Ok((topic.name.to_string(), id, deleted))
}

/// The id of a topic that the client may delete. Only those learn whether a name exists who
/// may describe it, and the name of an id only to them.
fn find(call: &Call<'_>, asked: &DeleteTopicState) -> Result<Uuid, Refused> {
    let (catalog, rights) = (&call.state.catalog, &call.rights);
    let on_cluster = rights.show(ResourceType::Cluster, Operation::Delete, CLUSTER_NAME);
    let may_describe =
        |name: &str| on_cluster || rights.allow(ResourceType::Topic, Operation::Describe, name);
    let may_delete =
        |name: &str| on_cluster || rights.allow(ResourceType::Topic, Operation::Delete, name);
    let refused = |refusal| Refused { name: asked.name.clone(), refusal };
    let name = match &asked.name {
        Some(_) if asked.topic_id != Uuid::ZERO => {
            let message = "the request has both name and id of a topic";
            return Err(refused(Refusal::new(ErrorCode::InvalidRequest, message)));
        }
        Some(name) => name,
        None if asked.topic_id == Uuid::ZERO => {
            let message = "the request has neither name nor id of a topic";
            return Err(refused(Refusal::new(ErrorCode::InvalidRequest, message)));
        }
        None => {
            let id = asked.topic_id;
            let topic = catalog.by_id(id).ok_or_else(|| refused(catalog::unknown_id(id)))?;
            if !may_delete(&topic.name) {
                let name = Some(topic.name.to_string()).filter(|name| may_describe(name));
                return Err(Refused { name, refusal: denied(ResourceType::Topic) });
            }
            return Ok(id);
        }
    };
    if !may_describe(name) {
        return Err(refused(denied(ResourceType::Topic)));
    }
    let topic = catalog.by_name(name).ok_or_else(|| refused(catalog::unknown_name(name)))?;
    match may_delete(name) {
        true => Ok(topic.id),
        false => Err(refused(denied(ResourceType::Topic))),
    }
}

fn not_durable(mut response: DeleteTopicsResponse, refusal: &Refusal) -> DeleteTopicsResponse {
    for topic in &mut response.responses {
        topic.error_code = refusal.code.into();
        topic.error_message = Some(refusal.message.clone());
    }
    response
}
