//! Quotas between the table of APIs and the connection: what a request has cost, the throttle time
//! in its response, and the mute of its connection (KIP-219).
//!
//! The response goes out at once and says for how long the client is throttled. Meanwhile nothing
//! more is taken from the client. As in Kafka a produce without a response is throttled for its
//! bytes, not for its time.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use moldau_net::{Reply, Response};
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::{ApiKey, produce};

use crate::call::{Call, Later, Served};
use crate::quotas::QuotaClient;

/// When a request began whose time is limited.
pub(crate) fn started(call: &Call<'_>) -> Option<Instant> {
    let is_timed =
        call.client.may_be_limited() && call.client.is_timed(call.client_id, call.now_ms);
    is_timed.then(Instant::now)
}

/// Throttles the client if the request, with its response, exceeded a quota.
pub(crate) fn throttled(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    started: Option<Instant>,
    served: Served,
) -> Served {
    let so_far_ms = call.throttle_ms.get();
    if started.is_none() && so_far_ms == 0 {
        return served;
    }
    call.client.mute(so_far_ms);
    let (api, version) = (header.api_key, header.api_version);
    let timed = started.map(|started| Timed {
        client: Rc::clone(call.client),
        client_id: call.client_id.into(),
        now_ms: call.now_ms,
        spent: started.elapsed(),
    });
    match served {
        Reply::Ready(response) => {
            let time_ms = timed.map_or(0, Timed::record);
            Reply::Ready(with_throttle(response, api, version, so_far_ms.max(time_ms)))
        }
        Reply::Later(answer, kept) => {
            let throttled = Throttled { answer, timed, api, version, so_far_ms };
            Reply::Later(Box::pin(throttled), kept)
        }
        other => other,
    }
}

/// The time that a request of a client takes.
struct Timed {
    client: Rc<QuotaClient>,
    client_id: Box<str>,
    now_ms: i64,
    spent: Duration,
}

impl Timed {
    fn record(self) -> i32 {
        let time_ms = self.client.record_time(&self.client_id, self.spent, self.now_ms);
        self.client.mute(time_ms);
        time_ms
    }
}

/// A response to come, and the time that goes into it.
struct Throttled {
    answer: Later<Response>,
    timed: Option<Timed>,
    api: ApiKey,
    version: i16,
    so_far_ms: i32,
}

impl Future for Throttled {
    type Output = Response;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let began = Instant::now();
        let polled = self.answer.as_mut().poll(cx);
        if let Some(timed) = &mut self.timed {
            timed.spent += began.elapsed();
        }
        polled.map(|response| {
            let time_ms = self.timed.take().map_or(0, Timed::record);
            with_throttle(response, self.api, self.version, self.so_far_ms.max(time_ms))
        })
    }
}

fn with_throttle(mut response: Response, api: ApiKey, version: i16, throttle_ms: i32) -> Response {
    if throttle_ms > 0 {
        raise_throttle_time(&mut response, api, version, throttle_ms);
    }
    response
}

/// Raises the throttle time of a response, where its version has one.
pub(crate) fn raise_throttle_time(
    response: &mut Response,
    api: ApiKey,
    version: i16,
    throttle_ms: i32,
) {
    let head = std::mem::take(&mut response.head);
    let mut head = head.try_into_mut().unwrap_or_else(|shared: Bytes| BytesMut::from(&*shared));
    match api {
        ApiKey::Produce => produce::raise_throttle_time(&mut head, version, throttle_ms),
        _ => frame::raise_throttle_time(&mut head, api, version, throttle_ms),
    }
    response.head = head.freeze();
}
