//! The one table of APIs: key, versions served, rights that are asked for, handler. ApiVersions
//! answers from it, so what is advertised and what is served cannot differ.
//!
//! A handler can only ask for rights of its row. A row without any is an API that everyone may use.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use moldau_net::{MemoryAccount, Principal, Reply, Response};
use moldau_protocol::frame::{self, RequestHeader};
use moldau_protocol::messages::{ApiVersionsRequest, ApiVersionsResponse};
use moldau_protocol::{ApiKey, Reader, Request, VersionRange, messages};
use moldau_storage::Admission;

use crate::api;
use crate::authorizer::{Operation, ResourceType, Subject};
use crate::call::{Call, Outcome, Served, Software, answer, encoded};
use crate::clock::wall_clock_ms;
use crate::config::ListenerConfig;
use crate::quotas::QuotaClient;
use crate::rights::{Access, Right, Rights};
use crate::share_session::ConnectionId;
use crate::state::State;
use crate::throttle;

/// One row of the table.
struct Api {
    key: ApiKey,
    versions: VersionRange,
    rights: &'static [Right],
    serve: fn(&Call<'_>, &RequestHeader<'_>, &[u8]) -> Served,
}

macro_rules! apis {
    ($($key:ident $min:literal ..= $max:literal
        [$($resource_type:ident $operation:ident),*] $serve:expr;)*) => {
        &[$(Api {
            key: ApiKey::$key,
            versions: VersionRange { min: $min, max: $max },
            rights: &[$((ResourceType::$resource_type, Operation::$operation)),*],
            serve: $serve,
        }),*]
    };
}

macro_rules! typed {
    ($request:ident, $handler:path) => {
        |call, header, body| typed::<messages::$request>(call, header, body, $handler)
    };
}

/// Every API that is served, by key.
static APIS: &[Api] = apis! {
    Produce 3..=13 [Topic Write, TransactionalId Write]
        api::produce::serve;
    Fetch 4..=18 [Topic Read, Cluster ClusterAction]
        api::fetch::serve;
    ListOffsets 1..=11 [Topic Describe]
        typed!(ListOffsetsRequest, api::list_offsets::handle);
    Metadata 0..=13 [Topic Describe, Topic Create, Cluster Create, Cluster Describe]
        api::metadata::serve;
    OffsetCommit 2..=10 [Group Read, Topic Read]
        typed!(OffsetCommitRequest, api::offsets::commit);
    OffsetFetch 1..=10 [Group Describe, Topic Describe]
        typed!(OffsetFetchRequest, api::offsets::fetch);
    FindCoordinator 0..=6 [Group Describe, TransactionalId Describe, Cluster ClusterAction]
        typed!(FindCoordinatorRequest, api::find_coordinator::handle);
    JoinGroup 0..=9 [Group Read]
        typed!(JoinGroupRequest, api::membership::join);
    Heartbeat 0..=4 [Group Read]
        typed!(HeartbeatRequest, api::membership::heartbeat);
    LeaveGroup 0..=5 [Group Read]
        typed!(LeaveGroupRequest, api::membership::leave);
    SyncGroup 0..=5 [Group Read]
        typed!(SyncGroupRequest, api::membership::sync);
    DescribeGroups 0..=6 [Group Describe]
        typed!(DescribeGroupsRequest, api::groups::describe);
    ListGroups 0..=5 [Cluster Describe, Group Describe]
        typed!(ListGroupsRequest, api::groups::list);
    SaslHandshake 0..=1 []
        typed!(SaslHandshakeRequest, api::sasl::handshake);
    ApiVersions 0..=5 []
        typed!(ApiVersionsRequest, api_versions);
    CreateTopics 2..=7 [Cluster Create, Topic Create, Topic DescribeConfigs]
        typed!(CreateTopicsRequest, api::create_topics::handle);
    DeleteTopics 1..=6 [Cluster Delete, Topic Describe, Topic Delete]
        typed!(DeleteTopicsRequest, api::delete_topics::handle);
    DeleteRecords 0..=2 [Topic Delete]
        typed!(DeleteRecordsRequest, api::delete_records::handle);
    InitProducerId 0..=5 [TransactionalId Write, Cluster IdempotentWrite, Topic Write]
        typed!(InitProducerIdRequest, api::init_producer_id::handle);
    OffsetForLeaderEpoch 2..=4 [Cluster ClusterAction, Topic Describe]
        typed!(OffsetForLeaderEpochRequest, api::offset_for_leader_epoch::handle);
    AddPartitionsToTxn 0..=5 [TransactionalId Write, Topic Write, Cluster ClusterAction]
        typed!(AddPartitionsToTxnRequest, api::transactions::add_partitions);
    AddOffsetsToTxn 0..=4 [TransactionalId Write, Group Read]
        typed!(AddOffsetsToTxnRequest, api::transactions::add_offsets);
    EndTxn 0..=5 [TransactionalId Write]
        typed!(EndTxnRequest, api::transactions::end);
    WriteTxnMarkers 1..=2 [Cluster ClusterAction, Cluster Alter]
        typed!(WriteTxnMarkersRequest, api::write_txn_markers::handle);
    TxnOffsetCommit 0..=6 [TransactionalId Write, Group Read, Topic Read]
        typed!(TxnOffsetCommitRequest, api::txn_offset_commit::handle);
    DescribeAcls 1..=3 [Cluster Describe]
        typed!(DescribeAclsRequest, api::acls::describe);
    CreateAcls 1..=3 [Cluster Alter]
        typed!(CreateAclsRequest, api::acls::create);
    DeleteAcls 1..=3 [Cluster Alter]
        typed!(DeleteAclsRequest, api::acls::delete);
    DescribeConfigs 1..=4 [Topic DescribeConfigs, Group DescribeConfigs, Cluster DescribeConfigs]
        typed!(DescribeConfigsRequest, api::describe_configs::handle);
    AlterConfigs 0..=2 [Topic AlterConfigs, Group AlterConfigs, Cluster AlterConfigs]
        typed!(AlterConfigsRequest, api::alter_configs::handle);
    DescribeLogDirs 1..=5 [Cluster Describe]
        typed!(DescribeLogDirsRequest, api::describe_log_dirs::handle);
    SaslAuthenticate 0..=2 []
        typed!(SaslAuthenticateRequest, api::sasl::authenticate);
    CreatePartitions 0..=3 [Topic Alter]
        typed!(CreatePartitionsRequest, api::create_partitions::handle);
    CreateDelegationToken 1..=3 []
        typed!(CreateDelegationTokenRequest, api::delegation_tokens::create);
    RenewDelegationToken 1..=2 []
        typed!(RenewDelegationTokenRequest, api::delegation_tokens::renew);
    ExpireDelegationToken 1..=2 []
        typed!(ExpireDelegationTokenRequest, api::delegation_tokens::expire);
    DescribeDelegationToken 1..=3 []
        typed!(DescribeDelegationTokenRequest, api::delegation_tokens::describe);
    DeleteGroups 0..=3 [Group Delete]
        typed!(DeleteGroupsRequest, api::groups::delete);
    ElectLeaders 0..=2 [Cluster Alter]
        typed!(ElectLeadersRequest, api::reassignments::elect);
    IncrementalAlterConfigs 0..=1 [Topic AlterConfigs, Group AlterConfigs, Cluster AlterConfigs]
        typed!(IncrementalAlterConfigsRequest, api::incremental_alter_configs::handle);
    AlterPartitionReassignments 0..=1 [Cluster Alter]
        typed!(AlterPartitionReassignmentsRequest, api::reassignments::alter);
    ListPartitionReassignments 0..=0 [Cluster Describe]
        typed!(ListPartitionReassignmentsRequest, api::reassignments::list);
    OffsetDelete 0..=0 [Group Delete, Topic Read]
        typed!(OffsetDeleteRequest, api::offsets::delete);
    DescribeClientQuotas 0..=1 [Cluster DescribeConfigs]
        typed!(DescribeClientQuotasRequest, api::client_quotas::describe);
    AlterClientQuotas 0..=1 [Cluster AlterConfigs]
        typed!(AlterClientQuotasRequest, api::client_quotas::alter);
    DescribeUserScramCredentials 0..=0 [Cluster Describe]
        typed!(DescribeUserScramCredentialsRequest, api::scram_credentials::describe);
    AlterUserScramCredentials 0..=0 [Cluster Alter]
        typed!(AlterUserScramCredentialsRequest, api::scram_credentials::alter);
    DescribeQuorum 0..=2 [Cluster Describe]
        typed!(DescribeQuorumRequest, api::quorum::describe);
    UpdateFeatures 0..=2 [Cluster Alter]
        typed!(UpdateFeaturesRequest, api::quorum::update_features);
    DescribeCluster 0..=2 [Cluster Describe]
        typed!(DescribeClusterRequest, api::describe_cluster::handle);
    DescribeProducers 0..=0 [Topic Read]
        typed!(DescribeProducersRequest, api::describe_transactions::producers);
    DescribeTransactions 0..=0 [TransactionalId Describe, Topic Describe]
        typed!(DescribeTransactionsRequest, api::describe_transactions::describe);
    ListTransactions 0..=2 [TransactionalId Describe]
        typed!(ListTransactionsRequest, api::describe_transactions::list);
    ConsumerGroupHeartbeat 0..=1 [Group Read, Topic Describe]
        typed!(ConsumerGroupHeartbeatRequest, api::consumer_groups::heartbeat);
    ConsumerGroupDescribe 0..=1 [Group Describe, Topic Describe]
        typed!(ConsumerGroupDescribeRequest, api::consumer_groups::describe);
    GetTelemetrySubscriptions 0..=0 []
        typed!(GetTelemetrySubscriptionsRequest, api::telemetry::get_subscriptions);
    PushTelemetry 0..=0 []
        typed!(PushTelemetryRequest, api::telemetry::push);
    ListConfigResources 0..=1 [Cluster DescribeConfigs]
        typed!(ListConfigResourcesRequest, api::list_config_resources::handle);
    DescribeTopicPartitions 0..=0 [Topic Describe]
        typed!(DescribeTopicPartitionsRequest, api::describe_topic_partitions::handle);
    ShareGroupHeartbeat 1..=1 [Group Read, Topic Describe]
        typed!(ShareGroupHeartbeatRequest, api::share_groups::heartbeat);
    ShareGroupDescribe 1..=1 [Group Describe, Topic Describe]
        typed!(ShareGroupDescribeRequest, api::share_groups::describe);
    ShareFetch 1..=2 [Group Read, Topic Read]
        api::share_fetch::serve;
    ShareAcknowledge 1..=2 [Group Read, Topic Read]
        typed!(ShareAcknowledgeRequest, api::share_acknowledge::handle);
    DescribeShareGroupOffsets 0..=1 [Group Describe, Topic Describe]
        typed!(DescribeShareGroupOffsetsRequest, api::share_group_offsets::describe);
    AlterShareGroupOffsets 0..=0 [Group Read, Topic Read]
        typed!(AlterShareGroupOffsetsRequest, api::share_group_offsets::alter);
    DeleteShareGroupOffsets 0..=0 [Group Delete, Topic Read]
        typed!(DeleteShareGroupOffsetsRequest, api::share_group_offsets::delete);
    StreamsGroupHeartbeat 0..=1 [Group Read, Topic Describe, Topic Create, Cluster Create]
        typed!(StreamsGroupHeartbeatRequest, api::streams_groups::heartbeat);
    StreamsGroupDescribe 0..=1 [Group Describe, Topic Describe]
        typed!(StreamsGroupDescribeRequest, api::streams_topologies::describe);
};

/// What the brokers of a cluster do not serve, since only a journal has it.
const ALONE: &[ApiKey] = &[
    ApiKey::WriteTxnMarkers,
    ApiKey::DescribeLogDirs,
    ApiKey::ElectLeaders,
    ApiKey::AlterPartitionReassignments,
    ApiKey::DescribeQuorum,
    ApiKey::UpdateFeatures,
];

/// Whether a request of an API is for the controller to decide, by its body.
type IsControlled = fn(&Call<'_>, &[u8]) -> bool;

/// What the controller of a cluster decides, whichever broker a client asks (KIP-590).
const CONTROLLED: &[(ApiKey, IsControlled)] = &[
    (ApiKey::Metadata, api::metadata::creates),
    (ApiKey::CreateTopics, is_read::<messages::CreateTopicsRequest>),
    (ApiKey::DeleteTopics, is_read::<messages::DeleteTopicsRequest>),
    (ApiKey::CreateAcls, is_read::<messages::CreateAclsRequest>),
    (ApiKey::DeleteAcls, is_read::<messages::DeleteAclsRequest>),
    (ApiKey::AlterConfigs, is_read::<messages::AlterConfigsRequest>),
    (ApiKey::CreatePartitions, is_read::<messages::CreatePartitionsRequest>),
    (ApiKey::IncrementalAlterConfigs, api::incremental_alter_configs::is_of_all),
    (ApiKey::AlterClientQuotas, is_read::<messages::AlterClientQuotasRequest>),
    (ApiKey::AlterUserScramCredentials, is_read::<messages::AlterUserScramCredentialsRequest>),
];

/// Whether a request names a topic that this broker does not know, by its body.
type IsUnknown = fn(&Call<'_>, &[u8]) -> bool;

/// Requests after whose refusal clients do not ask again: another broker may have created the topic
/// a moment ago.
const CAUGHT_UP: &[(ApiKey, IsUnknown)] = &[
    (ApiKey::Metadata, api::metadata::names_unknown),
    (ApiKey::DescribeConfigs, api::describe_configs::names_unknown),
    (ApiKey::DescribeTopicPartitions, api::describe_topic_partitions::names_unknown),
];

/// A request that cannot be read is not left to the controller.
fn is_read<Q: Request>(call: &Call<'_>, body: &[u8]) -> bool {
    Q::decode(&mut Reader::new(body), call.version).is_ok()
}

/// Leaves a request to the controller, if it is that of another broker to decide.
fn forwarded(api: &Api, call: &Call<'_>, body: &[u8], bytes: &[u8]) -> Option<Served> {
    let storage = &call.state.storage;
    let controlled = CONTROLLED.iter().find(|(key, _)| *key == api.key);
    if storage.decides() || !controlled.is_some_and(|(_, is_so)| is_so(call, body)) {
        return None;
    }
    let answer = storage.forward(call.principal, call.peer.ip().to_canonical(), bytes)?;
    let answer = Box::pin(async move {
        match answer.await {
            Some(bytes) if !bytes.is_empty() => Response::single(bytes),
            Some(_) => Response::closing("the controller does not understand the request"),
            None => Response::closing("the controller has not answered"),
        }
    });
    Some(Reply::Later(answer, bytes.len()))
}

/// Serves a request about an unknown topic once this broker has caught up with the others.
fn late(api: &Api, call: &Call<'_>, body: &[u8], bytes: &[u8]) -> Option<Served> {
    let storage = &call.state.storage;
    let (_, is_unknown) = CAUGHT_UP.iter().find(|(key, _)| *key == api.key)?;
    if storage.decides() || !is_unknown(call, body) {
        return None;
    }
    let caught_up = storage.catch_up()?;
    let (state, principal, peer) = (Arc::clone(call.state), call.principal.clone(), call.peer);
    let frame = Bytes::copy_from_slice(bytes);
    let answer = Box::pin(async move {
        caught_up.await;
        match serve_deferred(&state, &principal, peer, &frame) {
            Some(Reply::Ready(response)) => response,
            Some(Reply::Later(answer, _) | Reply::Last(answer, _)) => answer.await,
            Some(Reply::Close(reason)) => Response::closing(reason),
            Some(Reply::NoResponse) | None => Response::none(),
        }
    });
    Some(Reply::Later(answer, bytes.len()))
}

/// Whether a broker serves an API.
fn serves(state: &State, key: ApiKey) -> bool {
    !state.nodes.is_shared() || !ALONE.contains(&key)
}

/// The APIs and versions that are served.
pub(crate) fn served_versions() -> impl Iterator<Item = (ApiKey, VersionRange)> {
    APIS.iter().map(|api| (api.key, api.versions))
}

/// Those that a broker serves.
fn served_by(state: &State) -> impl Iterator<Item = (ApiKey, VersionRange)> {
    served_versions().filter(|(key, _)| serves(state, *key))
}

/// The rights that each API asks for.
#[cfg(test)]
pub(crate) fn declared_rights() -> impl Iterator<Item = (ApiKey, &'static [Right])> {
    APIS.iter().map(|api| (api.key, api.rights))
}

fn api_versions(call: &Call<'_>, request: ApiVersionsRequest) -> Outcome<ApiVersionsResponse> {
    if let Some(software) = Software::of(&request, call.version) {
        call.software.replace(software);
    }
    let here = (call.state.cluster_id.as_str(), call.state.nodes.id());
    let served = served_by(call.state);
    Outcome::Now(api::api_versions::respond(&request, call.version, here, served))
}

/// Answers one frame.
pub(crate) fn dispatch(site: CallSite<'_>, bytes: &[u8]) -> Served {
    let Ok(peek) = frame::peek(bytes) else {
        return Reply::Close("malformed request header");
    };
    let Some(api) =
        APIS.iter().find(|api| api.key.key() == peek.api_key && serves(site.state, api.key))
    else {
        return Reply::Close("unknown API");
    };
    if !api.versions.contains(peek.api_version) {
        // Any other API of an unknown version cannot be answered: its format is unknown.
        return match api.key {
            ApiKey::ApiVersions => {
                let response = api::api_versions::unsupported(served_versions());
                encoded::<ApiVersionsResponse>(api.key, 0, peek.correlation_id, &response)
            }
            _ => Reply::Close("unsupported API version"),
        };
    }
    let Ok((header, body)) = RequestHeader::parse(bytes) else {
        return Reply::Close("malformed request header");
    };
    site.state.counters.request(api.key);
    let call = Call {
        state: site.state,
        principal: site.principal,
        version: header.api_version,
        client_id: header.client_id.unwrap_or(""),
        peer: site.peer,
        local: site.local,
        listener: site.listener,
        client: site.client,
        software: site.software,
        throttle_ms: Cell::new(0),
        rights: Rights::new(site.access, api.rights),
        now_ms: site.now_ms,
        admission: Cell::new(site.admission),
        memory: site.memory,
        connection: site.connection,
    };
    let started = throttle::started(&call);
    let deferred = match site.is_deferred {
        true => None,
        false => forwarded(api, &call, body, bytes).or_else(|| late(api, &call, body, bytes)),
    };
    let served = deferred.unwrap_or_else(|| (api.serve)(&call, &header, body));
    throttle::throttled(&call, &header, started, served)
}

/// Serves a request away from the connection of its client; `None` for a broker that listens
/// nowhere.
pub(crate) fn serve_deferred(
    state: &Arc<State>,
    principal: &Principal,
    peer: SocketAddr,
    frame: &[u8],
) -> Option<Served> {
    let quotas = Arc::clone(&state.quotas);
    let subject = Subject { principal: principal.to_string(), address: peer.ip().to_canonical() };
    let access = Access::of(&state.security, subject);
    let listener = state.config.listeners.first()?;
    let site = CallSite {
        state,
        principal,
        peer,
        local: listener.address,
        listener,
        client: &Rc::new(QuotaClient::new(quotas, principal.name())),
        software: &RefCell::default(),
        access: access.as_ref(),
        now_ms: wall_clock_ms(),
        admission: None,
        memory: &state.memory.account(),
        connection: state.share_sessions.connect(),
        is_deferred: true,
    };
    Some(dispatch(site, frame))
}

/// What a connection knows about its requests before they are read.
pub(crate) struct CallSite<'a> {
    pub(crate) state: &'a Arc<State>,
    /// Who the client is.
    pub(crate) principal: &'a Principal,
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) listener: &'a ListenerConfig,
    pub(crate) client: &'a Rc<QuotaClient>,
    /// What the client runs on, once it has said it.
    pub(crate) software: &'a RefCell<Software>,
    /// `None` where the client may do everything.
    pub(crate) access: Option<&'a Rc<Access>>,
    pub(crate) now_ms: i64,
    pub(crate) admission: Option<Admission>,
    pub(crate) memory: &'a MemoryAccount,
    pub(crate) connection: ConnectionId,
    /// Whether it is served away from the connection of the client, and so not deferred again.
    pub(crate) is_deferred: bool,
}

fn typed<Q: Request>(
    call: &Call<'_>,
    header: &RequestHeader<'_>,
    body: &[u8],
    handle: fn(&Call<'_>, Q) -> Outcome<Q::Response>,
) -> Served
where
    Q::Response: 'static,
{
    // Bytes after the last field are ignored, as Kafka does: librdkafka leaves three of them behind
    // a Metadata request for all topics.
    match Q::decode(&mut Reader::new(body), call.version) {
        Ok(request) => answer(header, handle(call, request), body.len()),
        Err(_) => Reply::Close("malformed request"),
    }
}
