//! InitProducerId, versions 0-5 (KIP-98, KIP-360 epoch bumps), for idempotent and transactional
//! producers.
//!
//! Ids are reserved in durable blocks, so that a restart never hands one out twice; in a cluster
//! they are drawn. An open transaction of the id is aborted before the answer, where Kafka has the
//! client ask again.

use std::sync::Arc;

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use crate::api::transactions::once_written;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, DURABLE_WITHIN, Outcome, once_durable};
use crate::transaction_ends;

/// Before this version there is no code for a producer that was fenced.
const PRODUCER_FENCED_SINCE: i16 = 4;

pub(crate) fn handle(
    call: &Call<'_>,
    request: InitProducerIdRequest,
) -> Outcome<InitProducerIdResponse> {
    if let Err(code) = check(call, &request) {
        return Outcome::Now(refused(code));
    }
    let current = ProducerIdentity { id: request.producer_id, epoch: request.producer_epoch };
    if (current.id < 0) != (current.epoch < 0) {
        return Outcome::Now(refused(ErrorCode::InvalidRequest));
    }
    let current = Some(current).filter(|current| current.id >= 0);
    if let Some(id) = &request.transactional_id {
        return transactional(call, id, request.transaction_timeout_ms, current);
    }
    match call.state.producer_identity(current) {
        Ok((identity, None)) => Outcome::Now(granted(identity)),
        Ok((identity, Some(lsn))) => {
            once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
                Ok(()) => granted(identity),
                Err(refusal) => refused(refusal.code),
            })
        }
        Err(refusal) => Outcome::Now(refused(refusal.code)),
    }
}

fn transactional(
    call: &Call<'_>,
    id: &str,
    timeout_ms: i32,
    current: Option<ProducerIdentity>,
) -> Outcome<InitProducerIdResponse> {
    let version = call.version;
    let answer = move |reply: Result<ProducerIdentity, ErrorCode>| match reply {
        Err(ErrorCode::ProducerFenced) if version < PRODUCER_FENCED_SINCE => {
            refused(ErrorCode::InvalidProducerEpoch)
        }
        reply => reply.map_or_else(refused, granted),
    };
    let state = Arc::clone(call.state);
    if state.nodes.is_shared() {
        let id = id.to_owned();
        return Outcome::Later(Box::pin(async move {
            answer(transaction_ends::init(&state, &id, timeout_ms, current).await)
        }));
    }
    let (reply, lsn) = state.transactions.decide(&state.stores(), |transactions, now_ms| {
        transactions.init(now_ms, id, timeout_ms, current, || state.fresh_producer_id())
    });
    once_written(call, lsn, move |durable| answer(durable.and(reply)))
}

/// Whoever may write to any topic may be idempotent there (KIP-679).
fn check(call: &Call<'_>, request: &InitProducerIdRequest) -> Result<(), ErrorCode> {
    use ResourceType::{Topic, TransactionalId};
    let rights = &call.rights;
    match &request.transactional_id {
        Some(id) if !rights.allow(TransactionalId, Operation::Write, id) => {
            Err(ErrorCode::TransactionalIdAuthorizationFailed)
        }
        Some(_) => Ok(()),
        None if rights.allow_on_cluster(Operation::IdempotentWrite)
            || rights.allow_somewhere(Topic, Operation::Write) =>
        {
            Ok(())
        }
        None => Err(ErrorCode::ClusterAuthorizationFailed),
    }
}

fn granted(identity: ProducerIdentity) -> InitProducerIdResponse {
    InitProducerIdResponse {
        producer_id: identity.id,
        producer_epoch: identity.epoch,
        ..InitProducerIdResponse::default()
    }
}

fn refused(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse {
        error_code: code.into(),
        producer_epoch: -1,
        ..InitProducerIdResponse::default()
    }
}
