//! InitProducerId, versions 0-5 (KIP-98, KIP-360 epoch bumps), for idempotent producers.
//!
//! Ids are reserved in durable blocks, so that a restart never hands one out twice. Transactional
//! ids are refused, as FindCoordinator does before.

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome, once_durable};

pub(crate) fn handle(
    call: &Call<'_>,
    request: InitProducerIdRequest,
) -> Outcome<InitProducerIdResponse> {
    if let Err(code) = check(call, &request) {
        return Outcome::Now(refused(code));
    }
    let current = ProducerIdentity { id: request.producer_id, epoch: request.producer_epoch };
    let current = Some(current).filter(|current| current.id >= 0);
    match call.state.producer_identity(current) {
        Ok((identity, None)) => Outcome::Now(granted(identity)),
        Ok((identity, Some(lsn))) => once_durable(call, lsn, move |durable| match durable {
            true => granted(identity),
            false => refused(ErrorCode::KafkaStorageError),
        }),
        Err(refusal) => Outcome::Now(refused(refusal.code)),
    }
}

/// Whoever may write to any topic may be idempotent there (KIP-679).
fn check(call: &Call<'_>, request: &InitProducerIdRequest) -> Result<(), ErrorCode> {
    use ResourceType::{Topic, TransactionalId};
    let rights = &call.rights;
    match &request.transactional_id {
        Some(id) if !rights.allow(TransactionalId, Operation::Write, id) => {
            Err(ErrorCode::TransactionalIdAuthorizationFailed)
        }
        Some(_) => Err(ErrorCode::InvalidRequest),
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
