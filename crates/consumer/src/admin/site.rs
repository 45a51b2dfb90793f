//! Which request is answered by what, and who may ask.
//!
//! Metrics and health are open. The rest is open to those who know the token. Without a token it
//! is only served at an address that no other machine reaches, and only to requests that name
//! such an address: the pages of other sites cannot reach it through a name of theirs (DNS
//! rebinding).
//!
//! What changes or reads records is asked for by POST with the key that `/api/status` gives, which
//! the pages of other sites cannot read (cross-site request forgery).

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::{constant_time, digest, rand};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{
    ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderMap,
    HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use moldau_client::{Cluster, MemberStage, MemberState, ProducerOptions, TopicPartition};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::health::{Limits, liveness, readiness};
use super::letters::{self, Before};
use super::metrics::{Reading, open_metrics};
use super::watch::Watch;
use super::{Port, Subject};
use crate::background::{Lifecycle, Stage};
use crate::clock::Clock;
use crate::outbox::Outbox;

/// What the admin port serves.
pub(super) struct Site {
    pub(super) subject: Subject,
    pub(super) clock: Clock,
    lifecycle: Lifecycle,
    access: Access,
    /// What a POST must bring along.
    key: String,
    limits: Limits,
    page: Page,
    /// Made with the first request that needs it.
    cluster: OnceCell<Cluster>,
    outbox: OnceCell<Outbox>,
    /// Guards what is sampled.
    watch: Mutex<Watch>,
}

/// Who may ask for more than metrics and health.
enum Access {
    /// Whoever names an address of this machine.
    Local,
    /// Whoever has the token.
    Token(String),
    /// Nobody: other machines reach the port, and there is no token.
    Nobody,
}

/// The page, whose content comes from the other paths.
struct Page {
    html: Bytes,
    policy: HeaderValue,
}

type Answer = Response<Full<Bytes>>;

/// A part of the page that does not come.
pub(super) struct Refused(StatusCode, String);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    topic: String,
    #[serde(default)]
    filter: String,
    before: Option<Before>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replay {
    topic: String,
    /// Partition and offset of each.
    letters: Vec<(i32, i64)>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetPaused {
    topic: String,
    partition: i32,
    paused: bool,
}

impl Site {
    pub(super) fn new(subject: Subject, port: &Port, clock: Clock, lifecycle: Lifecycle) -> Self {
        let access = match &port.admin.token {
            Some(token) => Access::Token(token.clone()),
            None if port.address.ip().is_loopback() => Access::Local,
            None => Access::Nobody,
        };
        let limits = Limits {
            joining_max: subject.rebalance_timeout + JOINING_GRACE,
            stalled_max: port.admin.stalled_max,
        };
        let mut key = [0; 16];
        rand::fill(&mut key).expect("the generator of random numbers works");
        Self {
            subject,
            clock,
            lifecycle,
            access,
            key: STANDARD.encode(key),
            limits,
            page: Page::new(),
            cluster: OnceCell::new(),
            outbox: OnceCell::new(),
            watch: Mutex::new(Watch::new(Instant::now())),
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        let is_open = matches!(path, "/metrics" | "/healthz" | "/readyz");
        let answer = match self.refusal(&head.headers, path) {
            Some(refused) if !is_open => Err(refused),
            _ => match (&head.method, path) {
                (&Method::GET, _) => self.get(path, head.uri.query()).await,
                (&Method::POST, "/api/dead-letters" | "/api/replay" | "/api/pause") => {
                    self.post(path, &head.headers, body).await
                }
                _ => Err(Refused(StatusCode::METHOD_NOT_ALLOWED, "Use GET.".to_owned())),
            },
        };
        let mut answer = answer.unwrap_or_else(|Refused(status, why)| text(status, &why));
        let status = answer.status();
        let headers = answer.headers_mut();
        for (name, value) in ALWAYS {
            headers.entry(name).or_insert(HeaderValue::from_static(value));
        }
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::METHOD_NOT_ALLOWED => {
                headers.insert(ALLOW, HeaderValue::from_static("GET"));
            }
            _ => {}
        }
        answer
    }

    /// Why this request gets no more than metrics and health.
    fn refusal(&self, headers: &HeaderMap, path: &str) -> Option<Refused> {
        match &self.access {
            // The page itself holds no figures, and asks for the token.
            Access::Token(_) if path == "/" => None,
            Access::Token(token) => {
                let given = headers.get(AUTHORIZATION).map_or(&[][..], HeaderValue::as_bytes);
                let is_known = are_equal(format!("Bearer {token}").as_bytes(), given);
                let refused = || Refused(StatusCode::UNAUTHORIZED, "The token is required.".into());
                (!is_known).then(refused)
            }
            Access::Local if is_local(headers) => None,
            Access::Local => {
                let why = "Name the port localhost, 127.0.0.1 or [::1], or give it a token.";
                Some(Refused(StatusCode::FORBIDDEN, why.to_owned()))
            }
            Access::Nobody => {
                let why = "Other machines reach this port: give it a token, or a loopback address.";
                Some(Refused(StatusCode::FORBIDDEN, why.to_owned()))
            }
        }
    }

    async fn get(&self, path: &str, query: Option<&str>) -> Result<Answer, Refused> {
        match path {
            "/" => Ok(self.page.answer()),
            "/metrics" => self.metrics().await,
            "/healthz" => Ok(self.health(liveness)),
            "/readyz" => Ok(self.health(readiness)),
            "/asyncapi.json" => Ok(json_answer(&self.subject.asyncapi)),
            "/api/status" => {
                let route = query.and_then(|query| query.strip_prefix("route="));
                let route = route.and_then(|route| route.parse().ok());
                Ok(json_answer(&self.status(route).await))
            }
            _ => {
                let why = "Try /, /metrics, /healthz, /readyz or /asyncapi.json.";
                Err(Refused(StatusCode::NOT_FOUND, why.to_owned()))
            }
        }
    }

    fn health(&self, judge: fn(&super::health::Observed, Limits) -> Judgement) -> Answer {
        let is_draining = self.lifecycle.stage() != Stage::Running;
        let (now, member) = (Instant::now(), self.member());
        let observed = {
            let mut watch = self.lock_watch();
            let stage = self.stage(member.as_ref());
            watch.take_stage(now, stage);
            watch.observed(now, stage, member.as_ref(), is_draining)
        };
        match judge(&observed, self.limits) {
            Ok(well) => text(StatusCode::OK, &well),
            Err(why) => text(StatusCode::SERVICE_UNAVAILABLE, &why),
        }
    }

    async fn metrics(&self) -> Result<Answer, Refused> {
        let member = self.member();
        let reading = Reading {
            status: self.current().await,
            sampled: self.subject.routes.iter().map(|route| route.figures.sampled()).collect(),
            is_member: member.as_ref().is_some_and(is_member),
            heartbeat_age: member.and_then(|member| member.last_heartbeat).map(|at| at.elapsed()),
        };
        let page = open_metrics(reading);
        let page = page.map_err(|it| Refused(StatusCode::INTERNAL_SERVER_ERROR, it.to_string()))?;
        Ok(with_type(page, OPEN_METRICS))
    }

    /// The figures, or the last ones of a runtime that does not answer.
    async fn current(&self) -> crate::Status {
        let asked = self.subject.inquiry.status(&self.subject.routes);
        match tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
            Ok(status) => status,
            Err(_) => self.lock_watch().last().clone(),
        }
    }

    /// Everything that the page shows, with the partitions of the route at the index `detailed`.
    async fn status(&self, detailed: Option<usize>) -> Value {
        let status = self.current().await;
        let (now, member) = (Instant::now(), self.member());
        let is_draining = self.lifecycle.stage() != Stage::Running;
        let watch = self.lock_watch();
        let stage = self.stage(member.as_ref());
        let observed = watch.observed(now, stage, member.as_ref(), is_draining);
        let verdict = |judged: Judgement| {
            let (Ok(words) | Err(words)) = &judged;
            json!({ "ok": judged.is_ok(), "text": words })
        };
        let routes = status.routes.iter().enumerate().map(|(index, route)| {
            let mut value = json!(route);
            let paused = route.partitions.iter().filter(|it| it.paused.is_some()).count();
            let sum = |of: fn(&crate::PartitionStatus) -> usize| -> usize {
                route.partitions.iter().map(of).sum()
            };
            value["lag"] = json!(route.lag());
            value["queuedRecords"] = json!(sum(|it| it.queued_records));
            value["running"] = json!(sum(|it| it.running));
            value["retrying"] = json!(sum(|it| it.retrying));
            value["paused"] = json!(paused);
            value["partitionCount"] = json!(route.partitions.len());
            if detailed != Some(index) {
                value["partitions"] = json!(null);
            }
            value
        });
        json!({
            "key": self.key,
            "group": self.subject.group,
            "now": self.clock.now().as_millis(),
            "live": verdict(liveness(&observed, self.limits)),
            "ready": verdict(readiness(&observed, self.limits)),
            "member": member.map(|member| json!({
                "id": member.member_id,
                "epoch": member.epoch,
                "stage": format!("{:?}", member.stage).to_lowercase(),
                "heartbeatAgeMillis": observed.heartbeat_age.map(|age| age.as_millis()),
            })),
            "routes": routes.collect::<Vec<_>>(),
            "failures": status.failures,
            "course": watch.course(&self.subject.routes),
        })
    }

    async fn post(
        &self,
        path: &str,
        headers: &HeaderMap,
        body: Incoming,
    ) -> Result<Answer, Refused> {
        let key = headers.get(KEY_HEADER).map_or(&[][..], HeaderValue::as_bytes);
        if !are_equal(self.key.as_bytes(), key) || !is_same_origin(headers) {
            let why = "This is asked for by the page alone; load it again.";
            return Err(Refused(StatusCode::FORBIDDEN, why.to_owned()));
        }
        let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
        let body = body.map_err(|error| bad_request(&error))?.to_bytes();
        match path {
            "/api/dead-letters" => self.dead_letters(parse(&body)?).await,
            "/api/replay" => self.replay(parse(&body)?).await,
            _ => self.set_paused(parse(&body)?).await,
        }
    }

    async fn dead_letters(&self, search: Search) -> Result<Answer, Refused> {
        let Search { topic, filter, before } = search;
        self.check_dead_letter_topic(&topic)?;
        let cluster = self.cluster().await?;
        let found = letters::newest(cluster, &topic, &filter, before).await;
        let found = found.map_err(|error| unavailable(&error))?;
        let mut value = json!(found);
        let watch = self.lock_watch();
        for letter in value["letters"].as_array_mut().into_iter().flatten() {
            let place = (letter["partition"].as_i64(), letter["offset"].as_i64());
            let (Some(partition), Some(offset)) = place else { continue };
            let name = TopicPartition::of(&topic, i32::try_from(partition).unwrap_or(-1));
            letter["replayed"] = json!(watch.replayed(&name, offset).map(|at| at.as_millis()));
        }
        Ok(json_answer(&value))
    }

    async fn replay(&self, replay: Replay) -> Result<Answer, Refused> {
        let Replay { topic, letters } = replay;
        self.check_dead_letter_topic(&topic)?;
        if letters.len() > REPLAY_MAX {
            return Err(bad_request(&format!("at most {REPLAY_MAX} at a time")));
        }
        let cluster = self.cluster().await?;
        let outbox = self
            .outbox
            .get_or_init(async || Outbox::new(cluster.clone(), ProducerOptions::default()))
            .await;
        let board = &self.subject.inquiry.board;
        let is_route = |topic: &str| {
            board.is_known(topic) || self.subject.routes.iter().any(|it| &*it.topic == topic)
        };
        let mut outcomes = Vec::with_capacity(letters.len());
        for (partition, offset) in letters {
            let name = TopicPartition::of(&topic, partition);
            let now = self.clock.now();
            let sent = letters::replay(cluster, outbox, (&name, offset), now, is_route).await;
            tracing::info!(topic, partition, offset, outcome = ?sent, "dead letter replayed");
            outcomes.push(match sent {
                Ok(to) => {
                    self.lock_watch().take_replay(name, offset, now);
                    json!({ "partition": partition, "offset": offset, "replayed": now.as_millis(),
                        "to": format!("{}-{}", to.topic, to.partition) })
                }
                Err(why) => json!({ "partition": partition, "offset": offset, "error": why }),
            });
        }
        Ok(json_answer(&json!(outcomes)))
    }

    async fn set_paused(&self, wanted: SetPaused) -> Result<Answer, Refused> {
        let SetPaused { topic, partition, paused } = wanted;
        let name = TopicPartition::of(&topic, partition);
        let asked = self.subject.inquiry.set_paused(&name, paused);
        let answer = tokio::time::timeout(ANSWER_TIMEOUT, asked).await;
        match answer.map_err(|_| unavailable(&"the runtime does not answer"))? {
            true => Ok(json_answer(&json!({}))),
            false => {
                let why = format!("The app does not read {topic}-{partition} at the moment.");
                Err(Refused(StatusCode::CONFLICT, why))
            }
        }
    }

    fn check_dead_letter_topic(&self, topic: &str) -> Result<(), Refused> {
        let mut known = self.subject.routes.iter().flat_map(|route| &route.dead_letter_topics);
        let why = || bad_request(&format!("no route sends dead letters to {topic}"));
        known.any(|known| known == topic).then_some(()).ok_or_else(why)
    }

    pub(super) async fn cluster(&self) -> Result<&Cluster, Refused> {
        let Subject { bootstrap, cluster, .. } = &self.subject;
        let connect = async || Cluster::connect(bootstrap, cluster.clone()).await;
        self.cluster.get_or_try_init(connect).await.map_err(|error| unavailable(&error))
    }

    pub(super) fn lock_watch(&self) -> MutexGuard<'_, Watch> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Judgement = Result<String, String>;

impl Page {
    fn new() -> Self {
        let (style, script) =
            (include_str!("../../assets/admin.css"), include_str!("../../assets/admin.js"));
        let page = include_str!("../../assets/admin.html");
        let html = page.replacen("/*style*/", style, 1).replacen("/*script*/", script, 1);
        let hash = |part: &str| STANDARD.encode(digest::digest(&digest::SHA256, part.as_bytes()));
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; \
             connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
             frame-ancestors 'none'",
            hash(style),
            hash(script)
        );
        let policy = HeaderValue::from_str(&policy).expect("it is visible ASCII");
        Self { html: html.into(), policy }
    }

    fn answer(&self) -> Answer {
        let mut answer = Response::new(Full::new(self.html.clone()));
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
        headers.insert(CONTENT_SECURITY_POLICY, self.policy.clone());
        answer
    }
}

fn is_member(member: &MemberState) -> bool {
    matches!(member.stage, MemberStage::Stable | MemberStage::Revoking)
}

/// Whether the request names an address that only this machine has.
fn is_local(headers: &HeaderMap) -> bool {
    let Some(host) = headers.get(HOST).and_then(|host| host.to_str().ok()) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    let is_loopback = bare.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

/// Whether the page that sends the request, if its browser names it, is ours.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(ORIGIN) else { return true };
    let named = origin.to_str().ok().and_then(|it| it.split_once("://")).map(|(_, host)| host);
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    named.is_some() && named == host
}

/// Compares in a time that tells nothing about the expected bytes.
fn are_equal(expected: &[u8], given: &[u8]) -> bool {
    let expected = digest::digest(&digest::SHA256, expected);
    let given = digest::digest(&digest::SHA256, given);
    constant_time::verify_slices_are_equal(expected.as_ref(), given.as_ref()).is_ok()
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refused> {
    serde_json::from_slice(body).map_err(|error| bad_request(&error))
}

fn bad_request(why: &dyn std::fmt::Display) -> Refused {
    Refused(StatusCode::BAD_REQUEST, format!("The request is refused: {why}."))
}

fn unavailable(why: &dyn std::fmt::Display) -> Refused {
    Refused(StatusCode::SERVICE_UNAVAILABLE, format!("The cluster cannot be asked: {why}."))
}

fn json_answer(value: &Value) -> Answer {
    with_type(value.to_string(), "application/json")
}

fn text(status: StatusCode, why: &str) -> Answer {
    let mut answer = with_type(format!("{why}\n"), "text/plain; charset=utf-8");
    *answer.status_mut() = status;
    answer
}

fn with_type(body: String, of: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(body)));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(of));
    answer
}

/// Headers of every answer, unless it has its own.
const ALWAYS: [(HeaderName, &str); 5] = [
    (CACHE_CONTROL, "no-store"),
    (CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
    (REFERRER_POLICY, "no-referrer"),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (X_FRAME_OPTIONS, "DENY"),
];

const KEY_HEADER: &str = "x-moldau-key";

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The runtime answers within milliseconds unless it is stuck.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// A group may take its rebalance timeout to let a member in, and a coordinator some time more to
/// start.
const JOINING_GRACE: Duration = Duration::from_mins(1);

/// Largest body of a request: some hundred letters.
const BODY_BYTES_MAX: usize = 64 << 10;

/// Letters that are replayed by one request, one after the other.
const REPLAY_MAX: usize = 100;

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn names_of_other_machines_are_not_local() {
        for host in ["localhost:9600", "127.0.0.1:9600", "[::1]:9600", "127.0.0.1", "[::1]"] {
            assert!(is_local(&headers(HOST, host)), "{host}");
        }
        for host in ["attacker.example:9600", "10.0.0.1:9600", "localhost.example", "", "::1:x"] {
            assert!(!is_local(&headers(HOST, host)), "{host}");
        }
        assert!(!is_local(&HeaderMap::new()));
    }

    #[test]
    fn other_origins_are_told_apart() {
        let mut with_origin = headers(HOST, "127.0.0.1:9600");
        assert!(is_same_origin(&with_origin));
        for (origin, is_same) in [
            ("http://127.0.0.1:9600", true),
            ("http://127.0.0.1:9601", false),
            ("https://attacker.example", false),
            ("null", false),
        ] {
            with_origin.insert(ORIGIN, HeaderValue::from_static(origin));
            assert_eq!(is_same_origin(&with_origin), is_same, "{origin}");
        }
    }
}
