//! Several tenants on one cluster: each sees only its own topics, groups and transactional ids,
//! under the names that it gave them.
//!
//! A tenant is a virtual cluster, a principal, or both, as the [prefix](MultiTenantSettings) tells.
//! On the cluster its names begin with that prefix: `orders` of the tenant `a-` is `a-orders`. The
//! table in `decisions` has the decision for each API:
//!
//! | decision | handling |
//! |---|---|
//! | passes | it names nothing that belongs to a tenant |
//! | prefixed | names get the prefix and lose it in answers, which leave out what is of others |
//! | refused | the operator's, or for brokers: not offered, and it ends the session |
//!
//! An API that the table does not know is refused, also one that the proxy does not know.
//!
//! | what is named otherwise | how it is treated |
//! |---|---|
//! | topics by id | ids that are not of the tenant's topics get `UNKNOWN_TOPIC_ID` |
//! | topics in the bytes of classic groups of consumers | prefixed within them |
//! | regular expressions | put behind the prefix, or `INVALID_REGULAR_EXPRESSION` if unsafe |
//! | dead-letter topics of share groups, as values | prefixed; one of others is none |
//! | fetch sessions | only one goes on that its client began on the same connection |
//! | sentences for people | they lose the prefix where a word begins with it |
//! | configurations of brokers and of client metrics | `CLUSTER_AUTHORIZATION_FAILED` |
//! | coordinators of share partitions | `CLUSTER_AUTHORIZATION_FAILED`; brokers ask for them |
//!
//! Answers that name nothing are not held: topics of produced and fetched records have ids alone in
//! the versions of KIP-516.
//!
//! With its prefix a name may be longer than Kafka allows (249 characters); the cluster refuses it
//! then as any that is too long. Filters that need the cluster's names stand behind this one.

mod by_hand;
mod decisions;
mod names;
mod prefix;
mod regex;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use moldau_protocol::{ApiKey, ErrorCode, Uuid};
use moldau_proxy::{
    Direction, Filter, FilterError, FilterFuture, Principal, RequestFrame, RequestOutcome,
    ResponseFrame, SessionContext, SessionFilter, TopicNames, Upstream,
};

use self::by_hand::{GROUP_RESOURCE, Renamed, TOPIC_RESOURCE};
use self::decisions::{Decision, answer_matters, answer_names, decision};
use self::names::{Adding, Stripping, TopicIds};
use self::prefix::Template;
use crate::error::Error;
use crate::fetch_session::FetchSession;
use crate::names::{rewrite_request, rewrite_response, see};
use crate::partial::{self, Complete, Named, Split};

/// Names the filter in logs, metrics and settings.
const NAME: &str = "multi_tenant";

/// Configuration of a [`MultiTenant`] filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiTenantSettings {
    /// Prefix of a tenant's names on the cluster. `$(virtualClusterName)` stands for the name of
    /// the virtual cluster, `$(principal)` for that of the principal. Its letters and digits are
    /// kept and other bytes are escaped, so that no tenant's prefix begins another's.
    pub prefix: String,
}

impl Default for MultiTenantSettings {
    /// The tenant is the virtual cluster.
    fn default() -> Self {
        Self { prefix: "$(virtualClusterName)-".to_owned() }
    }
}

/// The filter of one virtual cluster.
#[derive(Debug)]
pub struct MultiTenant {
    template: Template,
    topic_names: TopicNames,
}

impl MultiTenant {
    /// A filter for the tenants of one virtual cluster.
    ///
    /// # Errors
    /// The prefix has an unknown variable, or could make one tenant of two.
    pub fn new(settings: &MultiTenantSettings) -> Result<Self, Error> {
        let template = Template::parse(&settings.prefix)?;
        Ok(Self { template, topic_names: TopicNames::default() })
    }

    /// Whether a name of one tenant could be one of another's too, where two virtual clusters lead
    /// to one cluster: a prefix of one begins a prefix of the other, as `a-` begins `a-b-`. Where
    /// both have the same template, of the principal alone, the tenants are the same on purpose.
    #[must_use]
    pub fn meets(&self, virtual_cluster: &str, other: &Self, others_cluster: &str) -> bool {
        let are_the_same = self.template == other.template && !self.template.names_cluster();
        !are_the_same && self.template.meets(virtual_cluster, &other.template, others_cluster)
    }

    /// Whether a virtual cluster of this name can have tenants.
    #[must_use]
    pub fn suits(&self, virtual_cluster: &str) -> bool {
        let anybody = Principal::user("anybody");
        self.template.prefix(virtual_cluster, &anybody).is_some()
    }
}

impl Filter for MultiTenant {
    fn name(&self) -> &'static str {
        NAME
    }

    fn claims(&self, api: ApiKey, direction: Direction) -> bool {
        decision(api) == Decision::Prefixed
            && (direction == Direction::Request || answer_matters(api))
    }

    fn admits(&self, api: Option<ApiKey>) -> bool {
        api.is_some_and(|api| decision(api) != Decision::Refused)
    }

    fn session(self: Arc<Self>, session: &SessionContext) -> Rc<dyn SessionFilter> {
        Rc::new(Session {
            filter: self,
            context: session.clone(),
            prefix: RefCell::default(),
            is_consumer: Cell::new(true),
            fetch_session: FetchSession::default(),
            in_flight: RefCell::default(),
        })
    }
}

/// The filter at work on one session.
struct Session {
    filter: Arc<MultiTenant>,
    context: SessionContext,
    /// The prefix of the principal that it was made for: a client may authenticate again.
    prefix: RefCell<Option<(Principal, Arc<str>)>>,
    /// Whether the classic group that was joined last is one of consumers.
    is_consumer: Cell<bool>,
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
            let prefix = self.prefix()?;
            if let Some(answer) = self.fetch_session.refuse(&request)? {
                return Ok(RequestOutcome::Respond(answer));
            }
            let (request, refused) = match self.gate(&prefix, request, &mut upstream).await? {
                Split::Whole(request) => (request, None),
                Split::Part(request, complete) => (request, Some(complete)),
                Split::Nothing(answer) => return Ok(RequestOutcome::Respond(answer)),
            };
            let request = rewrite_request(request, &mut Adding(&prefix))?;
            let (request, complete) = match by_hand::request(&prefix, request, &self.is_consumer)? {
                Renamed::Forward(request, complete) => (request, complete),
                Renamed::Respond(answer) => return Ok(RequestOutcome::Respond(answer)),
            };
            if !request.expects_response() {
                // As Kafka does: a producer with acks=0 gets no error.
                return Ok(match refused {
                    Some(_) => RequestOutcome::Close(Some(request)),
                    None => RequestOutcome::Forward(request),
                });
            }
            let complete = refused.or(complete);
            let (api, version) = (request.api_key(), request.api_version());
            if complete.is_none() && !answer_names(api, version) {
                return Ok(RequestOutcome::ForwardOnly(request));
            }
            self.in_flight.borrow_mut().push_back(complete);
            Ok(RequestOutcome::Forward(request))
        })
    }

    fn response(self: Rc<Self>, response: ResponseFrame) -> FilterFuture<ResponseFrame> {
        Box::pin(async move {
            let complete = self.in_flight.borrow_mut().pop_front().flatten();
            let prefix = self.prefix()?;
            let response = rewrite_response(response, &mut Stripping(&prefix))?;
            let response = by_hand::response(&prefix, response)?;
            match complete {
                Some(complete) => complete(response),
                None => Ok(response),
            }
        })
    }
}

impl Session {
    /// What the client's names begin with on the cluster.
    fn prefix(&self) -> Result<Arc<str>, FilterError> {
        let principal = self.context.principal();
        let mut known = self.prefix.borrow_mut();
        if let Some((of, prefix)) = &*known
            && *of == principal
        {
            return Ok(Arc::clone(prefix));
        }
        let prefix = self.filter.template.prefix(self.context.virtual_cluster(), &principal);
        let prefix: Arc<str> = prefix.ok_or("the client belongs to no tenant")?.into();
        *known = Some((principal, Arc::clone(&prefix)));
        Ok(prefix)
    }

    /// Takes out of a request what the tenant may not reach: topics of others, which are named by
    /// id, and configurations that no tenant has.
    async fn gate(
        &self,
        prefix: &str,
        request: RequestFrame,
        upstream: &mut Upstream,
    ) -> Result<Split, FilterError> {
        let api = request.api_key();
        let is_mine = |id: Uuid| {
            let name = self.filter.topic_names.get(id);
            name.is_some_and(|name| name.starts_with(prefix))
        };
        if calls_topics_by_id(api) {
            let mut ids = TopicIds::default();
            see(&request, &mut ids)?;
            if ids.0.iter().any(|id| self.filter.topic_names.get(*id).is_none()) {
                self.filter.topic_names.learn(ids.0.iter().copied(), upstream).await?;
            }
            if ids.0.iter().all(|id| is_mine(*id)) {
                return Ok(Split::Whole(request));
            }
        } else if !configures(api) {
            return Ok(Split::Whole(request));
        }
        partial::split(request, &|named| match named {
            Named::TopicId(id) if !is_mine(id) => Some(ErrorCode::UnknownTopicId),
            Named::Resource(kind, _) if !matches!(kind, TOPIC_RESOURCE | GROUP_RESOURCE) => {
                Some(ErrorCode::ClusterAuthorizationFailed)
            }
            _ => None,
        })
    }
}

/// Whether requests of the API reach topics by their ids. In heartbeats they only repeat what the
/// coordinator assigned.
fn calls_topics_by_id(api: ApiKey) -> bool {
    use ApiKey::{
        DeleteTopics, Fetch, Metadata, OffsetCommit, OffsetFetch, Produce, ShareAcknowledge,
        ShareFetch,
    };
    let by_id = [Produce, Fetch, Metadata, OffsetCommit, OffsetFetch, DeleteTopics];
    by_id.contains(&api) || matches!(api, ShareFetch | ShareAcknowledge)
}

/// Whether requests of the API are about configurations.
fn configures(api: ApiKey) -> bool {
    use ApiKey::{AlterConfigs, DescribeConfigs, IncrementalAlterConfigs};
    matches!(api, DescribeConfigs | AlterConfigs | IncrementalAlterConfigs)
}

#[cfg(test)]
mod tests;
