//! One server, the requests that it is asked, and its answers.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use moldau_protocol::{ApiKey, VersionRange, names};
use serde_json::{Value, json};

use super::normal::Known;
use super::tree::{self, Tree};
use super::wire::Client;
use crate::process::pause;

/// The administrator, who may do everything, and a client without rights: both are anonymous, so
/// access control lists tell them by where they come from.
const ADMINISTRATOR: &str = "127.0.0.1";
const STRANGER: &str = "127.0.0.2";

/// A server that starts gives its coordinators their partitions; then it answers at once.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(30);

/// How long a request is asked again whose answer has a code of [`PASSING`].
const PASSING_TIMEOUT: Duration = Duration::from_secs(3);

const PAUSE: Duration = Duration::from_millis(10);

/// Codes of what is under way: LEADER_NOT_AVAILABLE, COORDINATOR_LOAD_IN_PROGRESS,
/// COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS.
const PASSING: [i64; 5] = [5, 14, 15, 16, 51];

/// Every kind of resource with the pattern that covers all of its kind.
const RESOURCES: [(i8, &str); 6] =
    [(2, "*"), (3, "*"), (4, "kafka-cluster"), (5, "*"), (6, "*"), (7, "*")];

/// The numbers of an access control list: a literal name, every operation, allowed.
const LITERAL: i8 = 3;
const ALL: i8 = 2;
const ALLOW: i8 = 3;

/// A topic that does not exist, by which it is seen whether access is controlled.
const PROBE: &str = "probe";
const TOPIC_AUTHORIZATION_FAILED: i64 = 29;

/// The versions of the APIs that a server advertises.
pub(super) type Advertised = BTreeMap<i16, VersionRange>;

/// Requests with their answers.
pub(super) type Answers = BTreeMap<Request, Answer>;

/// Which request was asked.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Request {
    pub(super) api: ApiKey,
    pub(super) case: String,
    pub(super) version: i16,
}

/// An answer without what must differ.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The connection was closed.
    Closed,
    /// Its bytes are not a response of the API and version.
    Unreadable(String),
    Body(Tree),
}

/// A conversation with one server.
pub(super) struct Session {
    administrator: Client,
    stranger: Client,
    /// The versions that both servers have.
    versions: Advertised,
    known: Known,
    answers: Answers,
}

impl Session {
    /// Connects, and takes every right from all but the administrator.
    pub(super) fn start(address: &str, versions: Advertised, now_ms: i64) -> Result<Self> {
        let mut session = Self {
            administrator: Client::new(ADMINISTRATOR, address)?,
            stranger: Client::new(STRANGER, address)?,
            versions,
            known: Known { now_ms, ..Known::default() },
            answers: Answers::new(),
        };
        let cluster = session.must(ApiKey::DescribeCluster, &json!({"EndpointType": 1}))?;
        session.known.broker = cluster.number("ControllerId")?;
        session.known.brokers = cluster.numbers("BrokerId");
        session.known.ports = cluster.numbers("Port");
        session.known.cluster = cluster.text("ClusterId")?;
        session.secure()?;
        Ok(session)
    }

    /// The time of the run in milliseconds, the same for both servers.
    pub(super) fn now_ms(&self) -> i64 {
        self.known.now_ms
    }

    /// The answers to all that was asked.
    pub(super) fn into_answers(self) -> Answers {
        self.answers
    }

    /// Asks in every version that both servers have. In `body`, `$v` stands for the version and
    /// `$broker` for the number of the broker.
    pub(super) fn ask(&mut self, api: ApiKey, case: &str, body: &Value) -> Result<Vec<Tree>> {
        self.ask_in(i16::MIN..=i16::MAX, api, case, body)
    }

    /// [`ask`](Self::ask) in some of the versions.
    pub(super) fn ask_in(
        &mut self,
        versions: std::ops::RangeInclusive<i16>,
        api: ApiKey,
        case: &str,
        body: &Value,
    ) -> Result<Vec<Tree>> {
        let mut answers = Vec::new();
        for version in self.versions_of(api).filter(|version| versions.contains(version)) {
            let body = self.body(api, version, body)?;
            let answer = Self::patient(&mut self.administrator, api, version, &body);
            let answer = answer.with_context(|| format!("{api} v{version}, {case}"))?;
            answers.extend(self.record(api, case, version, answer)?);
        }
        Ok(answers)
    }

    /// The same request of a client without rights.
    pub(super) fn denied(&mut self, api: ApiKey, case: &str, body: &Value) -> Result<()> {
        let case = format!("no rights: {case}");
        for version in self.versions_of(api) {
            let body = self.body(api, version, body)?;
            let answer = Self::patient(&mut self.stranger, api, version, &body);
            let answer = answer.with_context(|| format!("{api} v{version}, {case}"))?;
            self.record(api, &case, version, answer)?;
        }
        Ok(())
    }

    /// Sends bytes as the body of a request in some versions, whether both servers have them or
    /// not.
    pub(super) fn send(
        &mut self,
        versions: impl IntoIterator<Item = i16>,
        api: ApiKey,
        case: &str,
        body: &[u8],
    ) -> Result<()> {
        for version in versions {
            let answer = self.administrator.call(api, version, body);
            let answer = answer.with_context(|| format!("{api} v{version}, {case}"))?;
            self.record(api, case, version, answer)?;
        }
        Ok(())
    }

    /// The APIs that both servers have.
    pub(super) fn apis(&self) -> Vec<ApiKey> {
        self.versions.keys().filter_map(|key| ApiKey::from_key(*key)).collect()
    }

    /// The versions of an API that both servers have.
    pub(super) fn versions_of(&self, api: ApiKey) -> impl Iterator<Item = i16> + use<> {
        self.versions.get(&api.key()).copied().into_iter().flat_map(|it| it.min..=it.max)
    }

    /// Has the administrator do something in the newest version, until it is done.
    pub(super) fn must(&mut self, api: ApiKey, body: &Value) -> Result<Tree> {
        self.until(api, body, |answer| answer.codes().iter().all(|code| *code == 0))
    }

    /// Asks until the answer is as wanted.
    pub(super) fn until(
        &mut self,
        api: ApiKey,
        body: &Value,
        is_wanted: impl Fn(&Tree) -> bool,
    ) -> Result<Tree> {
        let deadline = Instant::now() + SETTLE_TIMEOUT;
        let version = self.versions_of(api).last().with_context(|| format!("no {api}"))?;
        let body = self.body(api, version, body)?;
        loop {
            let answer = self.administrator.call(api, version, &body);
            let answer = answer.with_context(|| format!("{api} v{version}"))?.context("closed")?;
            let answer = tree::decode(&names::response_layout(api), version, &answer)?;
            if is_wanted(&answer) {
                return Ok(answer);
            }
            ensure!(Instant::now() < deadline, "{api}: {answer}");
            pause(PAUSE);
        }
    }

    /// Creates topics, waits until they can be read, and learns their ids.
    pub(super) fn create_topics(&mut self, topics: &[(&str, i32)]) -> Result<()> {
        let created: Vec<_> = topics.iter().map(creation).collect();
        self.must(ApiKey::CreateTopics, &json!({"Topics": created, "timeoutMs": 30_000}))?;
        for (name, partitions) in topics {
            let all: Vec<_> = (0..*partitions).map(latest_of).collect();
            let offsets = json!({"ReplicaId": -1, "Topics": [{"Name": name, "Partitions": all}]});
            self.must(ApiKey::ListOffsets, &offsets)?;
            let wanted = json!({"Topics": [{"Name": name}], "AllowAutoTopicCreation": false});
            let metadata = self.must(ApiKey::Metadata, &wanted)?;
            self.known.topics.insert(metadata.text("TopicId")?, (*name).to_owned());
            // That of the records is 0, whoever leads. A controller of a cluster has a second one
            // for topics of share groups.
            let epoch = metadata.number("LeaderEpoch")?;
            self.known.leader_epochs = vec![0, epoch, epoch + i64::from(epoch > 0)];
        }
        Ok(())
    }

    /// The id of a topic that [`create_topics`](Self::create_topics) created.
    pub(super) fn id_of(&self, topic: &str) -> Result<String> {
        let found = self.known.topics.iter().find(|(_, name)| *name == topic);
        found.map(|(id, _)| id.clone()).with_context(|| format!("no topic {topic}"))
    }

    /// Gives the administrator every right, which takes them from everyone else.
    fn secure(&mut self) -> Result<()> {
        let one = |(resource_type, name): (i8, &str)| {
            json!({"ResourceType": resource_type, "ResourceName": name,
                "ResourcePatternType": LITERAL, "Principal": "User:ANONYMOUS",
                "Host": ADMINISTRATOR, "Operation": ALL, "PermissionType": ALLOW})
        };
        self.must(ApiKey::CreateAcls, &json!({"Creations": RESOURCES.map(one)}))?;
        self.await_refusal()
    }

    /// Waits until the client without rights is refused.
    pub(super) fn await_refusal(&mut self) -> Result<()> {
        let probe = json!({"Topics": [{"Name": PROBE}], "AllowAutoTopicCreation": false});
        std::mem::swap(&mut self.administrator, &mut self.stranger);
        let refused = |answer: &Tree| answer.codes().contains(&TOPIC_AUTHORIZATION_FAILED);
        let secured = self.until(ApiKey::Metadata, &probe, refused);
        std::mem::swap(&mut self.administrator, &mut self.stranger);
        secured.map(drop)
    }

    fn body(&self, api: ApiKey, version: i16, body: &Value) -> Result<Vec<u8>> {
        let body = self.filled(version, body);
        Ok(tree::encode(&names::request_layout(api), version, &body)?.to_vec())
    }

    fn filled(&self, version: i16, json: &Value) -> Value {
        match json {
            Value::String(text) => {
                let text = text.replace("$broker", &self.known.broker.to_string());
                let text = text.replace("$cluster", &self.known.cluster);
                Value::String(text.replace("$v", &version.to_string()))
            }
            Value::Array(all) => all.iter().map(|one| self.filled(version, one)).collect(),
            Value::Object(all) => all
                .iter()
                .map(|(name, value)| (name.clone(), self.filled(version, value)))
                .collect(),
            other => other.clone(),
        }
    }

    /// Asks again for a while where the answer says that something is under way.
    fn patient(
        client: &mut Client,
        api: ApiKey,
        version: i16,
        body: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        let deadline = Instant::now() + PASSING_TIMEOUT;
        loop {
            let answer = client.call(api, version, body)?;
            let Some(bytes) = &answer else { return Ok(None) };
            let decoded = tree::decode(&names::response_layout(api), version, bytes);
            let is_passing = |tree: &Tree| tree.codes().iter().any(|it| PASSING.contains(it));
            if !decoded.is_ok_and(|tree| is_passing(&tree)) || Instant::now() > deadline {
                return Ok(answer);
            }
            pause(PAUSE);
        }
    }

    /// Keeps an answer without what must differ, and returns it with that.
    fn record(
        &mut self,
        api: ApiKey,
        case: &str,
        version: i16,
        answer: Option<Vec<u8>>,
    ) -> Result<Option<Tree>> {
        let mut raw = None;
        // A version of ApiVersions that is not known is answered as the first.
        let is_known = self.versions_of(api).any(|known| known == version);
        let read_as = if api == ApiKey::ApiVersions && !is_known { 0 } else { version };
        let answer = match answer {
            None => Answer::Closed,
            Some(bytes) => match tree::decode(&names::response_layout(api), read_as, &bytes) {
                Ok(tree) => {
                    let normal = self.known.normal(&tree);
                    raw = Some(tree);
                    Answer::Body(normal)
                }
                Err(error) => Answer::Unreadable(format!("{error:#}")),
            },
        };
        let request = Request { api, case: case.to_owned(), version };
        if self.answers.contains_key(&request) {
            bail!("{request} is asked twice");
        }
        self.answers.insert(request, answer);
        Ok(raw)
    }
}

fn creation((name, partitions): &(&str, i32)) -> Value {
    json!({"Name": name, "NumPartitions": partitions, "ReplicationFactor": 1})
}

fn latest_of(partition: i32) -> Value {
    json!({"PartitionIndex": partition, "CurrentLeaderEpoch": -1, "Timestamp": -1})
}

/// The address of the controller, which coordinates all groups of a cluster of ours.
pub(super) fn controller(address: &str) -> Result<String> {
    let (api, version) = (ApiKey::DescribeCluster, 1);
    let body = tree::encode(&names::request_layout(api), version, &json!({"EndpointType": 1}))?;
    let answer = Client::new(ADMINISTRATOR, address)?.call(api, version, &body)?;
    let answer = answer.context("DescribeCluster is not answered")?;
    let answer = tree::decode(&names::response_layout(api), version, &answer)?;
    let controller = answer.number("ControllerId")?;
    let (brokers, ports) = (answer.numbers("BrokerId"), answer.numbers("Port"));
    let found = brokers.iter().position(|broker| *broker == controller);
    let port = found.and_then(|at| ports.get(at)).context("the controller is not a broker")?;
    Ok(format!("127.0.0.1:{port}"))
}

/// What a server advertises.
pub(super) fn advertised(address: &str) -> Result<Advertised> {
    let (api, version) = (ApiKey::ApiVersions, 4);
    let software = json!({"ClientSoftwareName": "differential", "ClientSoftwareVersion": "1"});
    let body = tree::encode(&names::request_layout(api), version, &software)?;
    let answer = Client::new(ADMINISTRATOR, address)?.call(api, version, &body)?;
    let answer = answer.context("ApiVersions is not answered")?;
    let answer = tree::decode(&names::response_layout(api), version, &answer)?;
    let Some(Tree::List(keys)) = answer.all("ApiKeys").first().copied() else {
        bail!("no list of APIs: {answer}");
    };
    let row = |key: &Tree| -> Result<(i16, VersionRange)> {
        let number = |name| Ok::<_, anyhow::Error>(i16::try_from(key.number(name)?)?);
        Ok((number("ApiKey")?, VersionRange::new(number("MinVersion")?, number("MaxVersion")?)))
    };
    keys.iter().map(row).collect()
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} v{}, {}", self.api, self.version, self.case)
    }
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("closed"),
            Self::Unreadable(reason) => write!(f, "unreadable: {reason}"),
            Self::Body(tree) => write!(f, "{tree}"),
        }
    }
}
