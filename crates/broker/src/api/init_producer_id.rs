//! InitProducerId, versions 0-5 (KIP-98, KIP-360 epoch bumps), for idempotent producers.
//!
//! Ids are reserved in durable blocks, so that a restart never hands one out twice. Transactional
//! ids are refused, as FindCoordinator does before.

use moldau_coordinator::producer_ids::ProducerIdentity;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{InitProducerIdRequest, InitProducerIdResponse};

use crate::call::{Call, Outcome, once_durable};

pub(crate) fn handle(
    call: &Call<'_>,
    request: InitProducerIdRequest,
) -> Outcome<InitProducerIdResponse> {
    if request.transactional_id.is_some() {
        return Outcome::Now(refused(ErrorCode::InvalidRequest));
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
