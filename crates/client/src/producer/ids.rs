//! Producer ids: plain ones from any broker, those of a transactional id from its coordinator.

use std::time::{Duration, Instant};

use moldau_protocol::messages::InitProducerIdRequest;
use moldau_protocol::{ErrorCode, Request, VersionRange};

use super::ProducerOptions;
use super::partition::ProducerId;
use crate::cluster::{Cluster, CoordinatorOf};
use crate::{Error, Result};

const INIT_VERSIONS: VersionRange = VersionRange::new(0, 4);

/// How long the coordinator is left alone that still ends the transaction before: as long as
/// Kafka's own client does.
const CONCURRENT_PAUSE: Duration = Duration::from_millis(20);

/// Asks for a producer id, or for the next epoch of a known one (KIP-360).
pub(super) async fn producer_id(
    cluster: &Cluster,
    options: &ProducerOptions,
    known: Option<ProducerId>,
) -> Result<(i64, i16)> {
    if let Some(id) = &options.transactional_id {
        return of_transaction(cluster, id, options.transaction_timeout, known).await;
    }
    let mut retry = cluster.retry();
    let mut known = known;
    loop {
        let (id, epoch) = known.map_or((-1, -1), |known| (known.id, known.epoch));
        let request = InitProducerIdRequest {
            transactional_id: None,
            transaction_timeout_ms: i32::MAX,
            producer_id: id,
            producer_epoch: epoch,
            ..Default::default()
        };
        let error = match cluster.send_any(&request).await {
            Ok(answer) => match Error::check(answer.error_code, "InitProducerId", None) {
                Ok(()) => return Ok((answer.producer_id, answer.producer_epoch)),
                Err(error) => error,
            },
            Err(error) => error,
        };
        // A broker that knows nothing of the id gives another one when none is named.
        if known.take().is_none() || error.is_retriable() {
            retry.pause(error).await?;
        }
    }
}

/// Asks for the producer id of a transactional id and its next epoch, which ends what a producer
/// before it left open. With a `known` one it is refused where another has taken the id (KIP-360).
async fn of_transaction(
    cluster: &Cluster,
    id: &str,
    timeout: Duration,
    known: Option<ProducerId>,
) -> Result<(i64, i16)> {
    let (producer_id, producer_epoch) = known.map_or((-1, -1), |known| (known.id, known.epoch));
    let request = InitProducerIdRequest {
        transactional_id: Some(id.to_owned()),
        transaction_timeout_ms: i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX),
        producer_id,
        producer_epoch,
        ..Default::default()
    };
    let of = CoordinatorOf::Transaction(id);
    let answer = ask(cluster, of, &request, INIT_VERSIONS, |answer| answer.error_code).await?;
    Ok((answer.producer_id, answer.producer_epoch))
}

/// Asks a coordinator, again while it is busy with the transaction before.
pub(super) async fn ask<R: Request>(
    cluster: &Cluster,
    of: CoordinatorOf<'_>,
    request: &R,
    versions: VersionRange,
    code_of: impl Fn(&R::Response) -> i16,
) -> Result<R::Response> {
    let deadline = Instant::now() + cluster.options().operation_timeout;
    loop {
        let answer = cluster.ask_coordinator(of, request, versions, &code_of).await?;
        let code = code_of(&answer);
        let is_busy = code == ErrorCode::ConcurrentTransactions.code();
        if !is_busy || Instant::now() > deadline {
            Error::check(code, &format!("{:?} of {of}", R::KEY), None)?;
            return Ok(answer);
        }
        tokio::time::sleep(CONCURRENT_PAUSE).await;
    }
}
