//! Traces: exports a random sample of requests to a collector as OpenTelemetry spans (OTLP over
//! HTTP, JSON encoding).
//!
//! Each sampled request becomes a small record in a bounded queue once it is answered. One task
//! outside the sessions does the costly work. Records that find no room or no collector are dropped
//! and counted. Without a collector a request costs one branch.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use moldau_net::{HttpUrl, LogLimit, Phase, Principal, Shutdown};
use moldau_protocol::ApiKey;
use moldau_threads::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use crate::context::SessionContext;
use crate::latency::Part;
use crate::metrics::{Metrics, add};

/// Spans that wait for the collector; about a hundred bytes each.
const WAITING_MAX: usize = 4096;

/// Spans of one request to the collector, so that a network thread is not kept for long by making
/// its text.
const BATCH_MAX: usize = 256;

/// How long spans may wait for others.
const BATCH_WAIT: Duration = Duration::from_millis(250);

/// Where traces go.
#[derive(Clone, Debug)]
pub struct Traces {
    /// Where the collector takes traces by OTLP over HTTP, usually at `/v1/traces`.
    pub collector: Arc<HttpUrl>,
    /// The fraction of requests that is exported, from 0 to 1.
    pub sample_ratio: f64,
    /// Names this proxy; OpenTelemetry's `service.name`.
    pub service_name: String,
}

/// A request that was answered.
#[derive(Debug)]
struct Span {
    end: SystemTime,
    api_key: i16,
    virtual_cluster: Arc<str>,
    principal: Principal,
    client_address: SocketAddr,
    /// Microseconds by [`Part`].
    spent: [u32; 3],
}

/// Chooses requests and hands them on.
#[derive(Debug)]
pub(crate) struct Tracer {
    /// Of 2^32 requests so many are chosen.
    chosen: AtomicU64,
    spans: mpsc::Sender<Span>,
    /// Guards where they go.
    traces: Mutex<Option<Traces>>,
    metrics: Arc<Metrics>,
    failures: LogLimit,
    /// The end of the sessions, after which nothing more comes.
    ended: Shutdown,
}

/// The spans of a tracer that wait.
#[derive(Debug)]
pub(crate) struct Waiting(mpsc::Receiver<Span>);

impl Tracer {
    /// One that chooses nothing yet.
    pub(crate) fn new(metrics: Arc<Metrics>) -> (Arc<Self>, Waiting) {
        let (spans, waiting) = mpsc::channel(WAITING_MAX);
        let tracer = Self {
            chosen: AtomicU64::new(0),
            spans,
            traces: Mutex::new(None),
            metrics,
            failures: LogLimit::default(),
            ended: Shutdown::new(),
        };
        (Arc::new(tracer), Waiting(waiting))
    }

    /// Lets traces go elsewhere, or nowhere.
    pub(crate) fn replace(&self, traces: Option<Traces>) {
        let ratio = traces.as_ref().map_or(0.0, |traces| traces.sample_ratio);
        self.chosen.store(share(ratio), Ordering::Relaxed);
        *self.traces.lock() = traces;
    }

    /// A request of a session has been answered; it took so many microseconds by [`Part`].
    #[inline]
    pub(crate) fn answered(&self, context: &SessionContext, api_key: i16, spent: [u32; 3]) {
        let chosen = self.chosen.load(Ordering::Relaxed);
        if chosen > 0 && u64::from(fastrand::u32(..)) < chosen {
            self.hand_on(context, api_key, spent);
        }
    }

    #[cold]
    fn hand_on(&self, context: &SessionContext, api_key: i16, spent: [u32; 3]) {
        let span = Span {
            end: SystemTime::now(),
            api_key,
            virtual_cluster: context.shared_virtual_cluster(),
            principal: context.principal(),
            client_address: context.client_address(),
            spent,
        };
        if self.spans.try_send(span).is_err() {
            add(&self.metrics.spans_dropped, 1);
        }
    }

    /// Has what waits sent at once, and nothing after it.
    pub(crate) fn end(&self) {
        self.ended.advance(Phase::Stopped);
    }

    /// Sends what waits until the tracer has ended.
    pub(crate) async fn export(self: Arc<Self>, Waiting(mut waiting): Waiting) {
        let mut spans = Vec::new();
        while self.ended.phase() == Phase::Running {
            tokio::select! {
                _ = waiting.recv_many(&mut spans, 1) => {}
                () = self.ended.reached(Phase::Stopped) => {}
            }
            // Nobody wakes this task for each of those that follow.
            tokio::select! {
                () = sleep(BATCH_WAIT) => {}
                () = self.ended.reached(Phase::Stopped) => {}
            }
            spans.extend(waiting.try_recv().ok());
            while !spans.is_empty() {
                while spans.len() < BATCH_MAX
                    && let Ok(span) = waiting.try_recv()
                {
                    spans.push(span);
                }
                self.send(&spans).await;
                spans.clear();
                spans.extend(waiting.try_recv().ok());
            }
        }
    }

    async fn send(&self, spans: &[Span]) {
        let traces = self.traces.lock().clone();
        let count = spans.len() as u64;
        let Some(Traces { collector, service_name, .. }) = traces else {
            return add(&self.metrics.spans_dropped, count);
        };
        match collector.post("application/json", message(&service_name, spans).to_string()).await {
            Ok(()) => add(&self.metrics.spans_sent, count),
            Err(error) => {
                add(&self.metrics.spans_dropped, count);
                self.failures.log(|unlogged| {
                    tracing::warn!(%collector, error, unlogged, "failed to send traces");
                });
            }
        }
    }
}

/// Of 2^32, the share that a ratio stands for.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the ratio is brought between 0 and 1"
)]
fn share(ratio: f64) -> u64 {
    (ratio.clamp(0.0, 1.0) * 4_294_967_296.0) as u64
}

/// An `ExportTraceServiceRequest` of OTLP. Numbers of 64 bits are texts in its JSON, and ids are in
/// hexadecimal.
fn message(service_name: &str, spans: &[Span]) -> Value {
    let spans: Vec<Value> = spans.iter().map(Span::to_json).collect();
    json!({ "resourceSpans": [{
        "resource": { "attributes": [text("service.name", service_name)] },
        "scopeSpans": [{ "scope": { "name": "moldau" }, "spans": spans }],
    }] })
}

impl Span {
    fn to_json(&self) -> Value {
        let taken = Duration::from_micros(self.spent.iter().copied().map(u64::from).sum());
        let name = ApiKey::try_from(self.api_key).map_or("unknown", ApiKey::name);
        let mut attributes = vec![
            text("messaging.system", "kafka"),
            text("moldau.virtual_cluster", &self.virtual_cluster),
            text("enduser.id", &self.principal.to_string()),
            text("client.address", &self.client_address.ip().to_string()),
            number("client.port", self.client_address.port().into()),
        ];
        attributes.extend(
            Part::ALL
                .iter()
                .zip(self.spent)
                .map(|(part, micros)| number(&format!("moldau.{}_us", part.name()), micros.into())),
        );
        json!({
            "traceId": format!("{:032x}", fastrand::u128(1..)),
            "spanId": format!("{:016x}", fastrand::u64(1..)),
            "name": name,
            "kind": SERVER,
            "startTimeUnixNano": unix_nanos(self.end - taken),
            "endTimeUnixNano": unix_nanos(self.end),
            "attributes": attributes,
        })
    }
}

/// A `SpanKind` of OTLP.
const SERVER: u8 = 2;

fn unix_nanos(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    since.as_nanos().to_string()
}

fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn number(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> SessionContext {
        SessionContext::new("main", "192.0.2.7:50000".parse().unwrap(), Principal::user("alice"))
    }

    fn traces(sample_ratio: f64) -> Traces {
        let collector = Arc::new(HttpUrl::parse("http://127.0.0.1:1/v1/traces", None).unwrap());
        Traces { collector, sample_ratio, service_name: "gateway".to_owned() }
    }

    #[test]
    fn a_request_is_chosen_as_often_as_the_ratio_says() {
        assert_eq!([0.0, 0.5, 1.0].map(share), [0, 1 << 31, 1 << 32]);
        assert_eq!([-1.0, 2.0, f64::NAN].map(share), [0, 1 << 32, 0]);
        let (tracer, Waiting(mut waiting)) = Tracer::new(Arc::default());
        tracer.answered(&context(), 3, [0; 3]);
        tracer.replace(Some(traces(0.0)));
        tracer.answered(&context(), 3, [0; 3]);
        assert!(waiting.try_recv().is_err());
        tracer.replace(Some(traces(1.0)));
        for _ in 0..=WAITING_MAX {
            tracer.answered(&context(), 3, [0; 3]);
        }
        // The queue has no room for the last one.
        assert_eq!(tracer.metrics.spans_dropped.load(Ordering::Relaxed), 1);
        tracer.replace(None);
        let mut spans = Vec::new();
        assert_eq!(waiting.blocking_recv_many(&mut spans, usize::MAX), WAITING_MAX);
        tracer.answered(&context(), 3, [0; 3]);
        assert!(waiting.try_recv().is_err());
    }

    #[test]
    fn a_span_has_its_parts_in_the_encoding_of_otlp() {
        let (tracer, Waiting(mut waiting)) = Tracer::new(Arc::default());
        tracer.replace(Some(traces(1.0)));
        tracer.answered(&context(), 3, [5, 10, 1000]);
        let mut span = waiting.try_recv().unwrap();
        span.end = UNIX_EPOCH + Duration::from_micros(2_000_000);
        let message = message("gateway", &[span]);
        let resource = &message["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0], text("service.name", "gateway"));
        let span = &resource["scopeSpans"][0]["spans"][0];
        let hexadecimal = |key: &str| u128::from_str_radix(span[key].as_str().unwrap(), 16);
        assert!(hexadecimal("traceId").unwrap() > 0 && hexadecimal("spanId").unwrap() > 0);
        assert_eq!(span["traceId"].as_str().unwrap().len(), 32);
        assert_eq!(span["spanId"].as_str().unwrap().len(), 16);
        assert_eq!((&span["name"], &span["kind"]), (&json!("Metadata"), &json!(2)));
        assert_eq!(span["startTimeUnixNano"], "1998985000");
        assert_eq!(span["endTimeUnixNano"], "2000000000");
        let told = [
            text("messaging.system", "kafka"),
            text("moldau.virtual_cluster", "main"),
            text("enduser.id", "User:alice"),
            text("client.address", "192.0.2.7"),
            number("client.port", 50000),
            number("moldau.wait_us", 5),
            number("moldau.filter_us", 10),
            number("moldau.upstream_us", 1000),
        ];
        assert_eq!(span["attributes"].as_array().unwrap()[..], told);
    }
}
