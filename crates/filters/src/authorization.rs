//! Who may do what, by [rules](Rules) of the operator. What no rule allows is refused with the
//! error that Kafka's own authorizer has for it, and only the refused part of a request: its other
//! parts go on, and the answer tells of both. The cluster's own ACLs decide after it.
//!
//! What each API takes stands in the table of `access`. Where this differs from Kafka:
//!
//! | what | how it is treated |
//! |---|---|
//! | delegation tokens, and what only brokers and controllers use | not offered |
//! | a topic id that the cluster does not know | `UNKNOWN_TOPIC_ID`, without asking further |
//! | regular expressions (KIP-848, KIP-1071) | only for who may describe all topics |
//! | topics that metadata would create | none is, unless all that are named may be (version 4 on) |
//! | topics that metadata before version 4 would create | asked for before, and refused |
//! | internal topics of streams groups (KIP-1071) | to be created, whether they are there or not |
//! | a fetch session | goes on only where its client began it, under the rules in force |
//! | the list of all topics in pages | ends where a page would begin with a topic not shown |
//! | the operations that a client asks for (KIP-430) | those that the cluster allows |
//!
//! Rules are about names as they come here: behind `multi_tenant`, those of the cluster, which
//! topics called by id need.

mod access;
mod decisions;
mod rules;
mod shown;

use std::cell::RefCell;
use std::collections::{HashSet, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use moldau_protocol::messages::metadata_request::MetadataRequestTopic;
use moldau_protocol::messages::{
    ConsumerGroupHeartbeatRequest, FetchRequest, InitProducerIdRequest, MetadataRequest,
    StreamsGroupHeartbeatRequest,
};
use moldau_protocol::names::{Verdict, Visitor};
use moldau_protocol::{ApiKey, Entity, ErrorCode, Uuid};
use moldau_proxy::{
    Direction, Filter, FilterError, FilterFuture, FilterMetric, RequestFrame, RequestOutcome,
    ResponseFrame, SessionContext, SessionFilter, TopicNames, Upstream,
};

pub use self::rules::{Operation, Pattern, ResourceType, Rule, Rules};

use self::access::{Access, Need, access};
use self::decisions::{Decisions, Subject};
use crate::fetch_session::FetchSession;
use crate::names::see;
use crate::partial::{self, Complete, Named, Split};

/// Names the filter in logs, metrics and settings.
const NAME: &str = "authorization";

/// Kafka's name of the one resource of type cluster.
const CLUSTER: &str = "kafka-cluster";

/// Kafka's numbers for the types of what has a configuration.
const TOPIC_RESOURCE: i8 = 2;
const BROKER_RESOURCE: i8 = 4;
const BROKER_LOGGER_RESOURCE: i8 = 8;
const CLIENT_METRICS_RESOURCE: i8 = 16;
const GROUP_RESOURCE: i8 = 32;

/// The first version of Metadata that can ask not to create topics.
const METADATA_WITHOUT_CREATION_SINCE: i16 = 4;

/// The filter of one virtual cluster.
#[derive(Debug)]
pub struct Authorization {
    decisions: Decisions,
    topic_names: TopicNames,
    /// Requests that were refused in whole or in part.
    refused: AtomicU64,
}

impl Authorization {
    /// A filter that applies these rules.
    #[must_use]
    pub fn new(rules: Rules) -> Self {
        let (decisions, topic_names) = (Decisions::new(rules), TopicNames::default());
        Self { decisions, topic_names, refused: AtomicU64::new(0) }
    }
}

impl Filter for Authorization {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, api: ApiKey, _: Direction) -> bool {
        matches!(access(api), Access::Guarded { .. })
    }

    fn admits(&self, api: Option<ApiKey>) -> bool {
        api.is_some_and(|api| access(api) != Access::Refused)
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        let (context, fetch_session) = (session.clone(), FetchSession::default());
        Rc::new(Session { filter: self, context, fetch_session, in_flight: RefCell::default() })
    }

    fn metrics(&self) -> Vec<FilterMetric> {
        vec![FilterMetric {
            name: "authorization_refused_requests",
            help: "Requests that the rules refused in whole or in part",
            labels: Vec::new(),
            value: self.refused.load(Ordering::Relaxed),
        }]
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<Authorization>,
    context: SessionContext,
    fetch_session: FetchSession,
    /// What completes the answer to each request in flight that has one of interest, in the order
    /// of the requests.
    in_flight: RefCell<VecDeque<Option<Complete>>>,
}

impl SessionFilter for Session {
    fn request(
        self: Rc<Self>,
        request: RequestFrame,
        mut upstream: Upstream,
    ) -> FilterFuture<RequestOutcome> {
        Box::pin(async move {
            if let Some(answer) = self.fetch_session.refuse(&request)? {
                return Ok(RequestOutcome::Respond(answer));
            }
            let split = self.judge(request, &mut upstream).await?;
            if !matches!(split, Split::Whole(_)) {
                self.filter.refused.fetch_add(1, Ordering::Relaxed);
            }
            let (request, complete) = match split {
                Split::Whole(request) => (request, None),
                Split::Part(request, complete) => (request, Some(complete)),
                Split::Nothing(answer) => return Ok(RequestOutcome::Respond(answer)),
            };
            if complete.is_some() && !request.expects_response() {
                // As Kafka does: a producer with acks=0 gets no error.
                return Ok(RequestOutcome::Close(Some(request)));
            }
            if complete.is_none() && shown::is_shown_whole(request.api_key()) {
                return Ok(RequestOutcome::ForwardOnly(request));
            }
            self.in_flight.borrow_mut().push_back(complete);
            Ok(RequestOutcome::Forward(request))
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            let complete = self.in_flight.borrow_mut().pop_front().flatten();
            let response = self.show(response)?;
            match complete {
                Some(complete) => complete(response),
                None => Ok(response),
            }
        })
    }
}

impl Session {
    /// Splits a request into what is allowed and what is not.
    async fn judge(
        &self,
        request: RequestFrame,
        upstream: &mut Upstream,
    ) -> Result<Split, FilterError> {
        let Access::Guarded { whole, parts, .. } = access(request.api_key()) else {
            return Err(format!("{} is not admitted", request.api_key()).into());
        };
        let judge = self.judge_of(&request)?;
        if let Some(code) = judge.whole(&request, whole)? {
            return Ok(Split::Nothing(partial::refuse(&request, code)?));
        }
        let unknown = judge.named.ids.iter().any(|id| self.filter.topic_names.get(*id).is_none());
        if unknown && !parts.is_empty() {
            let ids = judge.named.ids.iter().copied();
            self.filter.topic_names.learn(ids, upstream).await?;
        }
        let request = judge.without_creation(request)?;
        let created = judge.would_create(&request, upstream).await?;
        if !is_split_by_hand(request.api_key()) && created.is_empty() && judge.allows_all(parts) {
            return Ok(Split::Whole(request));
        }
        partial::split(request, &|named| match named {
            Named::Topic(name) if created.contains(name) => {
                Some(ErrorCode::TopicAuthorizationFailed)
            }
            named => judge.part(named, parts),
        })
    }

    /// Leaves out of an answer what is not shown.
    fn show(&self, response: ResponseFrame) -> Result<ResponseFrame, FilterError> {
        let principal = self.context.principal().to_string();
        let judge = self.judge_by(&principal, NamedThings::default());
        shown::show(&judge, response)
    }

    fn judge_of(&self, request: &RequestFrame) -> Result<Judge<'_>, FilterError> {
        let mut named = NamedThings::default();
        see(request, &mut named)?;
        Ok(self.judge_by(&self.context.principal().to_string(), named))
    }

    fn judge_by(&self, principal: &str, named: NamedThings) -> Judge<'_> {
        Judge {
            filter: &self.filter,
            virtual_cluster: self.context.virtual_cluster(),
            principal: principal.to_owned(),
            named,
        }
    }
}

/// What a request names.
#[derive(Debug, Default)]
struct NamedThings {
    names: Vec<(Entity, String)>,
    ids: Vec<Uuid>,
}

impl Visitor for NamedThings {
    fn text(&mut self, entity: Entity, text: &str, _: &mut String) -> Verdict {
        if entity != Entity::Explanation {
            self.names.push((entity, text.to_owned()));
        }
        Verdict::Keep
    }

    fn topic_id(&mut self, id: Uuid) {
        if id != Uuid::ZERO {
            self.ids.push(id);
        }
    }
}

/// The rules for one client and what it names.
struct Judge<'s> {
    filter: &'s Authorization,
    virtual_cluster: &'s str,
    principal: String,
    named: NamedThings,
}

impl Judge<'_> {
    fn subject(&self) -> Subject<'_> {
        Subject { virtual_cluster: self.virtual_cluster, principal: &self.principal }
    }

    fn allows(&self, operation: Operation, resource_type: ResourceType, name: &str) -> bool {
        let decisions = &self.filter.decisions;
        decisions.allow(self.subject(), operation, resource_type, name)
            || match (operation, resource_type) {
                // A client with CREATE on the cluster may create any topic.
                (Operation::Create, ResourceType::Topic) => {
                    decisions.allow(self.subject(), operation, ResourceType::Cluster, CLUSTER)
                }
                _ => false,
            }
    }

    fn allows_cluster(&self, operation: Operation) -> bool {
        self.allows(operation, ResourceType::Cluster, CLUSTER)
    }

    /// The error by which a whole request is refused, if it is.
    fn whole(
        &self,
        request: &RequestFrame,
        needs: &[Need],
    ) -> Result<Option<ErrorCode>, FilterError> {
        // Several transactions at once are for brokers.
        let is_of_brokers =
            request.api_key() == ApiKey::AddPartitionsToTxn && request.api_version() >= 4;
        if is_of_brokers && !self.allows_cluster(Operation::ClusterAction) {
            return Ok(Some(ErrorCode::ClusterAuthorizationFailed));
        }
        for need in needs {
            let code = match *need {
                Need::Cluster(operation) if self.allows_cluster(operation) => None,
                Need::Cluster(_) => Some(ErrorCode::ClusterAuthorizationFailed),
                need => self.names_of(need).find_map(|name| self.name(need, name)),
            };
            if code.is_some() {
                return Ok(code);
            }
        }
        let is_refused = match request.api_key() {
            ApiKey::InitProducerId => {
                let message: InitProducerIdRequest = request.decode()?;
                if message.transactional_id.is_none() && !self.may_be_idempotent() {
                    return Ok(Some(ErrorCode::ClusterAuthorizationFailed));
                }
                false
            }
            ApiKey::ConsumerGroupHeartbeat => {
                let message: ConsumerGroupHeartbeatRequest = request.decode()?;
                message.subscribed_topic_regex.is_some_and(|it| !it.is_empty())
                    && !self.sees_all_topics()
            }
            ApiKey::StreamsGroupHeartbeat => {
                let message: StreamsGroupHeartbeatRequest = request.decode()?;
                let mut subtopologies = message.topology.iter().flat_map(|it| &it.subtopologies);
                let mut internal = subtopologies.clone().flat_map(|it| {
                    it.repartition_source_topics.iter().chain(&it.state_changelog_topics)
                });
                // The cluster would create them for any client that names them.
                let create = Need::Topic(Operation::Create);
                internal.any(|topic| self.name(create, &topic.name).is_some())
                    || (subtopologies.any(|it| !it.source_topic_regex.is_empty())
                        && !self.sees_all_topics())
            }
            // Who fetches as a replica tells the leader what the replica has.
            ApiKey::Fetch => {
                let message: FetchRequest = request.decode()?;
                let is_replica = message.replica_id >= 0 || message.replica_state.replica_id >= 0;
                is_replica && !self.allows_cluster(Operation::ClusterAction)
            }
            _ => false,
        };
        Ok(is_refused.then_some(ErrorCode::TopicAuthorizationFailed))
    }

    fn sees_all_topics(&self) -> bool {
        let (operation, of) = (Operation::Describe, ResourceType::Topic);
        self.filter.decisions.allow_everywhere(self.subject(), operation, of)
    }

    fn may_be_idempotent(&self) -> bool {
        let (operation, of) = (Operation::Write, ResourceType::Topic);
        self.allows_cluster(Operation::IdempotentWrite)
            || self.filter.decisions.allow_somewhere(self.subject(), operation, of)
    }

    /// The names in the request that a need is about.
    fn names_of(&self, need: Need) -> impl Iterator<Item = &str> {
        let wanted = match need {
            Need::Topic(_) => Some(Entity::TopicName),
            Need::Group(_) => Some(Entity::GroupId),
            Need::TransactionalId(_) => Some(Entity::TransactionalId),
            Need::Cluster(_) | Need::Resource(_) => None,
        };
        let names = self.named.names.iter();
        names.filter(move |(entity, _)| Some(*entity) == wanted).map(|(_, name)| name.as_str())
    }

    /// The error for one name that a need is about, if it is refused.
    fn name(&self, need: Need, name: &str) -> Option<ErrorCode> {
        let (operation, of, code) = match need {
            Need::Topic(operation) => {
                (operation, ResourceType::Topic, ErrorCode::TopicAuthorizationFailed)
            }
            Need::Group(operation) => {
                (operation, ResourceType::Group, ErrorCode::GroupAuthorizationFailed)
            }
            Need::TransactionalId(operation) => (
                operation,
                ResourceType::TransactionalId,
                ErrorCode::TransactionalIdAuthorizationFailed,
            ),
            Need::Cluster(operation) | Need::Resource(operation) => {
                (operation, ResourceType::Cluster, ErrorCode::ClusterAuthorizationFailed)
            }
        };
        let name = if of == ResourceType::Cluster { CLUSTER } else { name };
        (!self.allows(operation, of, name)).then_some(code)
    }

    /// Whether no part of the request is refused, which is seen without taking it apart.
    fn allows_all(&self, parts: &[Need]) -> bool {
        let names = parts
            .iter()
            .all(|need| self.names_of(*need).all(|name| self.name(*need, name).is_none()));
        names && self.named.ids.iter().all(|id| self.part(Named::TopicId(*id), parts).is_none())
    }

    /// The error for one part of the request, if it is refused.
    fn part(&self, named: Named<'_>, parts: &[Need]) -> Option<ErrorCode> {
        let of = |wanted: fn(&Need) -> bool| parts.iter().copied().find(wanted);
        match named {
            Named::Topic(name) => self.name(of(|it| matches!(it, Need::Topic(_)))?, name),
            Named::TopicId(id) => {
                let need = of(|it| matches!(it, Need::Topic(_)))?;
                match self.filter.topic_names.get(id) {
                    Some(name) => self.name(need, &name),
                    None => Some(ErrorCode::UnknownTopicId),
                }
            }
            Named::Group(name) => self.name(of(|it| matches!(it, Need::Group(_)))?, name),
            Named::TransactionalId(name) => {
                self.name(of(|it| matches!(it, Need::TransactionalId(_)))?, name)
            }
            Named::Cluster => self.name(of(|it| matches!(it, Need::Cluster(_)))?, CLUSTER),
            Named::Resource(kind, name) => {
                let Some(Need::Resource(operation)) = of(|it| matches!(it, Need::Resource(_)))
                else {
                    return None;
                };
                match kind {
                    TOPIC_RESOURCE => self.name(Need::Topic(operation), name),
                    GROUP_RESOURCE => self.name(Need::Group(operation), name),
                    BROKER_RESOURCE | BROKER_LOGGER_RESOURCE | CLIENT_METRICS_RESOURCE => {
                        self.name(Need::Cluster(operation), name)
                    }
                    _ => Some(ErrorCode::InvalidRequest),
                }
            }
        }
    }

    /// The topics that a metadata request would create although the client may not. Only before
    /// version 4 there are any: later ones are asked not to create.
    async fn would_create(
        &self,
        request: &RequestFrame,
        upstream: &mut Upstream,
    ) -> Result<HashSet<String>, FilterError> {
        let version = request.api_version();
        if request.api_key() != ApiKey::Metadata || version >= METADATA_WITHOUT_CREATION_SINCE {
            return Ok(HashSet::new());
        }
        let describe = Need::Topic(Operation::Describe);
        let create = Need::Topic(Operation::Create);
        let names = self.names_of(create).filter(|name| {
            self.name(describe, name).is_none() && self.name(create, name).is_some()
        });
        let topics = names.map(|name| MetadataRequestTopic {
            name: Some(name.to_owned()),
            ..MetadataRequestTopic::default()
        });
        let topics: Vec<_> = topics.collect();
        if topics.is_empty() {
            return Ok(HashSet::new());
        }
        let question = MetadataRequest {
            topics: Some(topics),
            allow_auto_topic_creation: false,
            ..MetadataRequest::default()
        };
        let answer = upstream.send(METADATA_WITHOUT_CREATION_SINCE, &question).await?;
        let absent = i16::from(ErrorCode::UnknownTopicOrPartition);
        let absent = answer.topics.into_iter().filter(|topic| topic.error_code == absent);
        Ok(absent.filter_map(|topic| topic.name).collect())
    }

    /// Metadata creates topics that are not there, unless the client may not.
    fn without_creation(&self, request: RequestFrame) -> Result<RequestFrame, FilterError> {
        let is_metadata = request.api_key() == ApiKey::Metadata;
        if !is_metadata || request.api_version() < METADATA_WITHOUT_CREATION_SINCE {
            return Ok(request);
        }
        let create = Need::Topic(Operation::Create);
        if self.names_of(create).all(|name| self.name(create, name).is_none()) {
            return Ok(request);
        }
        let mut message: MetadataRequest = request.decode()?;
        if !message.allow_auto_topic_creation {
            return Ok(request);
        }
        message.allow_auto_topic_creation = false;
        Ok(request.with_message(&message)?)
    }
}

/// True if the layout of a request does not show which of its names may be refused.
fn is_split_by_hand(api: ApiKey) -> bool {
    use ApiKey::{AlterConfigs, DescribeConfigs, FindCoordinator, IncrementalAlterConfigs};
    matches!(api, FindCoordinator | DescribeConfigs | AlterConfigs | IncrementalAlterConfigs)
}

#[cfg(test)]
mod tests;
