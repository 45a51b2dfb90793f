//! DeleteTopics, versions 1-6 (KIP-516: by name or by id).
//!
//! The topic's data leaves with it, and so do the offsets that groups committed for it.

use std::sync::Arc;

use moldau_protocol::messages::delete_topics_request::DeleteTopicState;
use moldau_protocol::messages::delete_topics_response::DeletableTopicResult;
use moldau_protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_storage::Lsn;

use crate::call::{Call, Outcome, once_durable};
use crate::catalog;
use crate::error::Refusal;

pub(crate) fn handle(
    call: &Call<'_>,
    request: DeleteTopicsRequest,
) -> Outcome<DeleteTopicsResponse> {
    let by_name = request
        .topic_names
        .into_iter()
        .map(|name| DeleteTopicState { name: Some(name), ..DeleteTopicState::default() });
    let mut last = None;
    let mut responses = Vec::new();
    for topic in request.topics.into_iter().chain(by_name) {
        responses.push(delete(call, topic, &mut last));
    }
    let response = DeleteTopicsResponse { responses, ..DeleteTopicsResponse::default() };
    let Some(lsn) = last else { return Outcome::Now(response) };
    let state = Arc::clone(call.state);
    once_durable(call, lsn, move |durable| match durable {
        true => {
            state.deleted.notify_one();
            response
        }
        false => storage_failed(response),
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
        Err(refusal) => DeletableTopicResult {
            name: asked.name,
            topic_id: asked.topic_id,
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            ..DeletableTopicResult::default()
        },
    }
}

fn try_delete(call: &Call<'_>, asked: &DeleteTopicState) -> Result<(String, Uuid, Lsn), Refusal> {
    let state = call.state;
    let id = match &asked.name {
        Some(_) if asked.topic_id != Uuid::ZERO => {
            let message = "a topic is named by its name or by its id, not by both";
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        Some(name) => state.catalog.by_name(name).ok_or_else(|| catalog::unknown_name(name))?.id,
        None if asked.topic_id == Uuid::ZERO => {
            let message = "neither the name nor the id of a topic is given";
            return Err(Refusal::new(ErrorCode::InvalidRequest, message));
        }
        None => asked.topic_id,
    };
    let (topic, deleted) = state.catalog.delete(&state.storage, id)?;
    let forgotten = state.groups.topic_deleted(&state.storage, &topic.name)?;
    Ok((topic.name.to_string(), id, forgotten.unwrap_or(deleted).max(deleted)))
}

fn storage_failed(mut response: DeleteTopicsResponse) -> DeleteTopicsResponse {
    for topic in &mut response.responses {
        topic.error_code = ErrorCode::KafkaStorageError.into();
    }
    response
}
