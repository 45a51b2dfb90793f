//! GetTelemetrySubscriptions and PushTelemetry, version 0 (KIP-714).
//!
//! As in Kafka no right is asked for. Kafka hands metrics to a plugin; here they are checked, shown
//! in `/metrics` and sent to a collector.

use moldau_protocol::messages::{
    GetTelemetrySubscriptionsRequest, GetTelemetrySubscriptionsResponse, PushTelemetryRequest,
    PushTelemetryResponse,
};
use moldau_protocol::{ErrorCode, Uuid};
use moldau_records::Compression;

use crate::call::{Call, Outcome};
use crate::telemetry::{Client, Push};

/// Ids that no client has: zero, and that of Kafka's metadata topic.
const RESERVED: [u128; 2] = [0, 1];

/// Codecs that clients may use, the preferred one first, as in Kafka.
const ACCEPTED: [Compression; 4] =
    [Compression::Zstd, Compression::Lz4, Compression::Gzip, Compression::Snappy];

pub(crate) fn get_subscriptions(
    call: &Call<'_>,
    request: GetTelemetrySubscriptionsRequest,
) -> Outcome<GetTelemetrySubscriptionsResponse> {
    let client_instance_id = match request.client_instance_id.is_zero() {
        true => Uuid::from_bytes(fastrand::u128(2..).to_be_bytes()),
        false => request.client_instance_id,
    };
    let client = client(call, client_instance_id);
    let subscription = call.state.telemetry.subscription(&client, call.connection, call.now_ms);
    Outcome::Now(match subscription {
        Ok((wanted, subscription_id)) => GetTelemetrySubscriptionsResponse {
            client_instance_id,
            subscription_id,
            accepted_compression_types: ACCEPTED.map(|codec| codec.id().cast_signed()).to_vec(),
            push_interval_ms: wanted.interval_ms,
            telemetry_max_bytes: i32::try_from(call.state.telemetry.bytes_max())
                .unwrap_or(i32::MAX),
            delta_temporality: true,
            requested_metrics: wanted.metrics,
            ..GetTelemetrySubscriptionsResponse::default()
        },
        Err(refusal) => GetTelemetrySubscriptionsResponse {
            error_code: refusal.code.into(),
            ..GetTelemetrySubscriptionsResponse::default()
        },
    })
}

pub(crate) fn push(
    call: &Call<'_>,
    request: PushTelemetryRequest,
) -> Outcome<PushTelemetryResponse> {
    let id = request.client_instance_id;
    let code = match RESERVED.contains(&u128::from_be_bytes(id.into_bytes())) {
        true => ErrorCode::InvalidRequest,
        false => {
            let push = Push {
                subscription_id: request.subscription_id,
                is_terminating: request.terminating,
                compression_type: request.compression_type,
                bytes: request.metrics.len(),
            };
            let (client, metrics) = (client(call, id), &request.metrics);
            let telemetry = &call.state.telemetry;
            let pushed = telemetry.push(&client, call.connection, &push, metrics, call.now_ms);
            pushed.err().map_or(ErrorCode::None, |refusal| refusal.code)
        }
    };
    Outcome::Now(PushTelemetryResponse {
        error_code: code.into(),
        ..PushTelemetryResponse::default()
    })
}

fn client(call: &Call<'_>, instance_id: Uuid) -> Client {
    let software = call.software.borrow();
    Client {
        instance_id,
        client_id: call.client_id.to_owned(),
        software_name: software.name.to_string(),
        software_version: software.version.to_string(),
        address: call.peer,
        principal: call.client.user(),
    }
}
