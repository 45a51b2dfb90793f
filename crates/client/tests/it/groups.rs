//! A member of a group whose coordinator serves a connection as Kafka does: one request after the
//! other.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_client::{
    Cluster, ClusterOptions, Error, GroupConsumer, GroupOptions, GroupProtocol, Membership,
    MembershipOptions, ShareConsumer, ShareOptions,
};
use moldau_net::{Reply, Response, Service};
use moldau_protocol::frame::{RequestHeader, encode_response};
use moldau_protocol::messages::find_coordinator_response::Coordinator;
use moldau_protocol::messages::metadata_response::MetadataResponseBroker;
use moldau_protocol::messages::{
    FindCoordinatorResponse, HeartbeatResponse, JoinGroupResponse, LeaveGroupRequest,
    LeaveGroupResponse, MetadataResponse, OffsetFetchResponse, SyncGroupResponse,
};
use moldau_protocol::{ApiKey, ErrorCode, Message, Reader};
use tokio::sync::Notify;

use crate::fake;

/// No partitions: version 0, no topics, no user data.
const ASSIGNMENT: [u8; 10] = [0, 0, 0, 0, 0, 0, 255, 255, 255, 255];

/// Takes one member, then asks it to join again and waits for another that never comes.
#[derive(Clone)]
struct Group {
    address: SocketAddr,
    joined: Arc<AtomicU32>,
    /// Told when the member waits for the group.
    parked: Arc<Notify>,
    left: Arc<AtomicU32>,
}

impl Group {
    fn at(address: SocketAddr) -> Self {
        let (joined, parked, left) = (Arc::default(), Arc::default(), Arc::default());
        Self { address, joined, parked, left }
    }

    fn metadata(&self) -> MetadataResponse {
        let (host, port) = (self.address.ip().to_string(), self.address.port().into());
        let brokers = vec![MetadataResponseBroker { node_id: 1, host, port, ..Default::default() }];
        MetadataResponse { brokers, ..Default::default() }
    }

    fn find_coordinator(&self) -> FindCoordinatorResponse {
        let coordinator = Coordinator {
            key: "workers".to_owned(),
            node_id: 1,
            host: self.address.ip().to_string(),
            port: self.address.port().into(),
            ..Default::default()
        };
        FindCoordinatorResponse { coordinators: vec![coordinator], ..Default::default() }
    }
}

const APIS: [(ApiKey, i16); 8] = [
    (ApiKey::ApiVersions, 4),
    (ApiKey::Metadata, 9),
    (ApiKey::FindCoordinator, 4),
    (ApiKey::JoinGroup, 9),
    (ApiKey::SyncGroup, 5),
    (ApiKey::Heartbeat, 4),
    (ApiKey::OffsetFetch, 9),
    (ApiKey::LeaveGroup, 5),
];

impl Service for Group {
    type Future = Pin<Box<dyn Future<Output = Response>>>;

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let (header, body) = RequestHeader::parse(frame).unwrap();
        let RequestHeader { api_key: key, api_version: version, correlation_id: id, .. } = header;
        let mut out = BytesMut::new();
        match key {
            ApiKey::ApiVersions => {
                encode_response(&mut out, key, version, id, &fake::api_versions(&APIS))
            }
            ApiKey::Metadata => encode_response(&mut out, key, version, id, &self.metadata()),
            ApiKey::FindCoordinator => {
                encode_response(&mut out, key, version, id, &self.find_coordinator())
            }
            ApiKey::JoinGroup => {
                if self.joined.fetch_add(1, Relaxed) > 0 {
                    self.parked.notify_one();
                    return Reply::Later(Box::pin(std::future::pending()), 0);
                }
                let answer = JoinGroupResponse {
                    generation_id: 1,
                    protocol_name: Some("range".to_owned()),
                    leader: "another".to_owned(),
                    member_id: "this".to_owned(),
                    ..Default::default()
                };
                encode_response(&mut out, key, version, id, &answer)
            }
            ApiKey::SyncGroup => {
                let assignment = Bytes::from_static(&ASSIGNMENT);
                let answer = SyncGroupResponse { assignment, ..Default::default() };
                encode_response(&mut out, key, version, id, &answer)
            }
            ApiKey::Heartbeat => {
                let error_code = ErrorCode::RebalanceInProgress.code();
                let answer = HeartbeatResponse { error_code, ..Default::default() };
                encode_response(&mut out, key, version, id, &answer)
            }
            ApiKey::OffsetFetch => {
                encode_response(&mut out, key, version, id, &OffsetFetchResponse::default())
            }
            ApiKey::LeaveGroup => {
                let request = LeaveGroupRequest::decode(&mut Reader::new(body), version).unwrap();
                let [member] = request.members.as_slice() else { panic!("{request:?}") };
                assert_eq!(member.member_id, "this");
                self.left.fetch_add(1, Relaxed);
                encode_response(&mut out, key, version, id, &LeaveGroupResponse::default())
            }
            other => panic!("{other:?}"),
        }
        .unwrap();
        Reply::Ready(out.freeze().into())
    }
}

/// It waited behind its own JoinGroup, for as long as a rebalance may take.
#[test]
fn a_member_leaves_while_the_group_waits_for_another() {
    let (coordinator, _network) = fake::start(Group::at, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = coordinator.address.to_string();
        let cluster = Cluster::connect(&[address], ClusterOptions::default()).await.unwrap();
        let heartbeat_interval = Duration::from_millis(10);
        let membership = MembershipOptions { heartbeat_interval, ..MembershipOptions::default() };
        let options = GroupOptions { membership, ..GroupOptions::default() };
        let mut member = GroupConsumer::join(&cluster, "workers", options).await.unwrap();
        tokio::select! {
            fetched = member.next() => panic!("nothing is assigned: {fetched:?}"),
            () = coordinator.parked.notified() => {}
        }
        let left = tokio::time::timeout(Duration::from_secs(20), member.leave());
        left.await.expect("it leaves").unwrap();
    });
    assert_eq!(coordinator.left.load(Relaxed), 1);
}

#[test]
fn nothing_runs_on_for_a_cluster_that_is_gone() {
    let (broker, _network) = fake::start(Group::at, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = broker.address.to_string();
        let cluster = Cluster::connect(&[address], ClusterOptions::default()).await.unwrap();
        let tasks = tokio::runtime::Handle::current().metrics();
        assert!(tasks.num_alive_tasks() > 0);
        drop(cluster);
        let ended = async {
            while tasks.num_alive_tasks() > 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), ended).await.expect("all end");
    });
}

#[test]
fn broker_without_a_protocol_is_named_with_the_api_that_it_lacks() {
    let (broker, _network) = fake::start(Group::at, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let address = broker.address.to_string();
        let cluster = Cluster::connect(&[&address], ClusterOptions::default()).await.unwrap();
        let protocol = GroupProtocol::Consumer;
        let options = MembershipOptions { protocol, ..MembershipOptions::default() };
        let joined = Membership::join(&cluster, "workers", options).await.map(drop);
        let shared = ShareConsumer::join(&cluster, "workers", ShareOptions::default()).await;
        for (refused, lacks) in [
            (joined.unwrap_err(), ApiKey::ConsumerGroupHeartbeat),
            (shared.unwrap_err(), ApiKey::ShareGroupHeartbeat),
        ] {
            match refused {
                Error::UnsupportedApi { address: at, api } => {
                    assert_eq!((&*at, api), (address.as_str(), lacks));
                }
                other => panic!("{other}"),
            }
        }
    });
}

#[test]
fn bootstrap_may_be_a_list_with_commas() {
    let (broker, _network) = fake::start(Group::at, 1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let list = format!("127.0.0.1:1, {}", broker.address);
        let cluster = Cluster::connect(&[list], ClusterOptions::default()).await.unwrap();
        assert_eq!(cluster.metadata().brokers.len(), 1);
    });
}
