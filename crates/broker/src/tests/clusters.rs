//! Brokers of one cluster, on a sequencer and an object store in memory.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use moldau_cluster::{
    Addressing, Answer, BrokerRow, BucketSettings, Credentials, Database, Error, Frames, Memory,
    ObjectKey, ReaderOptions, Store, Wakes, WriterOptions,
};
use moldau_protocol::messages::api_versions_response::ApiVersionsResponse;
use moldau_protocol::messages::create_topics_request::CreatableReplicaAssignment;
use moldau_protocol::messages::offset_fetch_request::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchRequestTopics,
};
use moldau_protocol::messages::{
    ApiVersionsRequest, CreateTopicsRequest, FetchRequest, FindCoordinatorRequest,
    ListGroupsRequest, MetadataRequest, OffsetFetchRequest,
};
use moldau_protocol::{ApiKey, ErrorCode};
use moldau_storage::block_on;

use super::requests::{creatable, fetch, fetch_topic, only, produce};
use super::world::{NOW_MS, World, base_offsets, batch, code, config, sequenced};
use crate::config::Config;
use crate::joining::{ClusterSettings, Services, runtime};
use crate::server::Broker;
use crate::upkeep::{Rounds, Upkeep};

/// How long a change of owners may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

/// Objects in memory.
#[derive(Default)]
pub(super) struct MemoryStore {
    objects: Mutex<HashMap<ObjectKey, Bytes>>,
    /// Whether no object is taken.
    pub(super) is_away: AtomicBool,
}

impl MemoryStore {
    /// Loses all objects.
    pub(super) fn lose_all(&self) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn count(&self) -> usize {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Store for MemoryStore {
    async fn put(&self, key: ObjectKey, bytes: Bytes) -> Answer<()> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(Error::StoreAway("it takes nothing".to_owned()));
        }
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).insert(key, bytes);
        Ok(())
    }

    async fn get(&self, key: ObjectKey, range: Range<u64>) -> Answer<Bytes> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = objects.get(&key).ok_or(Error::ObjectMissing(key))?;
        let at = |offset| usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        Ok(bytes.slice(at(range.start)..at(range.end)))
    }

    async fn delete(&self, keys: &[ObjectKey]) -> Answer<()> {
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.retain(|key, _| !keys.contains(key));
        Ok(())
    }

    async fn list(
        &self,
        _after: Option<ObjectKey>,
        _age: Duration,
        _keys_max: usize,
    ) -> Answer<Vec<ObjectKey>> {
        Ok(Vec::new())
    }
}

/// Brokers 1, 2 and so on. The first begins alone, so it is the controller.
pub(super) struct Cluster {
    pub(super) memory: Memory,
    pub(super) store: Arc<MemoryStore>,
    pub(super) wakes: Arc<Wakes>,
    pub(super) brokers: Vec<(Broker, World)>,
}

impl Cluster {
    pub(super) fn of(count: i32) -> Self {
        Self::with(count, |_| {})
    }

    /// Brokers with settings of their own.
    pub(super) fn with(count: i32, change: impl Fn(&mut Config)) -> Self {
        let (memory, store) = (Memory::default(), Arc::new(MemoryStore::default()));
        let wakes = Arc::new(Wakes::default());
        let mut brokers = Vec::new();
        for broker_id in 1..=count {
            let services = Services {
                frames: Arc::new(memory.clone()),
                requests: Arc::new(memory.clone()),
                sequencer: Arc::new(memory.clone()),
                database: Arc::new(Database::new(1)),
                store: Arc::clone(&store),
                wakes: Arc::clone(&wakes),
                telling: None,
            };
            let mut config = config("unused".as_ref());
            config.auto_create_topics = false;
            change(&mut config);
            let broker =
                Broker::start_on(services, config, &settings(broker_id), runtime().unwrap());
            let broker = broker.unwrap();
            let world = World::of(Arc::clone(&broker.state));
            brokers.push((broker, world));
            if broker_id == 1 {
                eventually(|| brokers[0].1.state.storage.decides());
            }
        }
        Self { memory, store, wakes, brokers }
    }

    pub(super) fn worlds(&self) -> impl Iterator<Item = &World> {
        self.brokers.iter().map(|(_, world)| world)
    }

    pub(super) fn world(&self, broker: usize) -> &World {
        &self.brokers[broker - 1].1
    }

    /// Creates a topic, and waits until all know it.
    pub(super) fn create(&self, name: &str, partitions: i32) {
        self.owner().create(name, partitions);
        eventually(|| self.worlds().all(|it| it.state.catalog.by_name(name).is_some()));
    }

    /// Ends the controller, and waits for the next one.
    pub(super) fn fail_over(&mut self) {
        let owner = self.worlds().position(|world| world.state.storage.decides());
        drop(self.brokers.remove(owner.expect("a broker is the controller")));
        eventually(|| self.worlds().any(|world| world.state.storage.decides()));
    }

    /// A round of upkeep by the controller.
    pub(super) fn keep_up(&self, rounds: &mut Rounds, now_ms: i64) {
        let upkeep = Upkeep {
            sequencer: Arc::new(self.memory.clone()),
            store: Arc::clone(&self.store),
            state: Arc::clone(&self.owner().state),
        };
        runtime().unwrap().block_on(upkeep.round(rounds, now_ms)).unwrap();
    }

    /// The owner of the log and its epoch, as all see it.
    fn shown_owner(&self) -> Option<(usize, i64)> {
        let owner = block_on(self.memory.owner()).unwrap()?;
        Some((usize::try_from(owner.broker).unwrap(), owner.epoch))
    }

    /// The controller.
    pub(super) fn owner(&self) -> &World {
        let owner = self.worlds().find(|world| world.state.storage.decides());
        owner.expect("a broker is the controller")
    }
}

fn settings(broker_id: i32) -> ClusterSettings {
    let second = Duration::from_secs(1);
    ClusterSettings {
        broker_id,
        rack: Some(format!("rack-{broker_id}")),
        // Services in memory take the place of both.
        postgres: moldau_cluster::Settings {
            connection: String::new(),
            application_name: "moldau".to_owned(),
            connections_max: 1,
            timeout: second,
        },
        bucket: BucketSettings {
            endpoint: None,
            region: "none".to_owned(),
            bucket: "none".to_owned(),
            addressing: Addressing::Path,
            prefix: String::new(),
            trust: None,
            credentials: Credentials::keys("", "", None),
            timeout: second,
            deadline: second,
        },
        writer: WriterOptions { collect: Duration::from_millis(10), ..WriterOptions::default() },
        reader: ReaderOptions::default(),
    }
}

pub(super) fn eventually(mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it has not come true");
        std::thread::yield_now();
    }
}

/// Appends at this broker and returns the offset.
pub(super) fn append(world: &World, topic: &str, records: Bytes) -> i64 {
    let mut response = world.ask_in(9, &produce(topic, 0, records));
    let told = response.responses.pop().unwrap().partition_responses.pop().unwrap();
    assert_eq!(code(told.error_code), ErrorCode::None, "{:?}", told.error_message);
    told.base_offset
}

#[test]
fn every_broker_takes_and_serves_the_records_of_every_partition() {
    let cluster = Cluster::of(3);
    cluster.create("orders", 1);
    for (world, offset) in cluster.worlds().zip(0..) {
        assert_eq!(append(world, "orders", batch(NOW_MS, &["a"])), offset);
    }
    for world in cluster.worlds() {
        let mut fetched = world.ask_in(12, &fetch(vec![fetch_topic("orders", &[(0, 0)])]));
        let partition = only(&mut fetched);
        assert_eq!(code(partition.error_code), ErrorCode::None);
        assert_eq!(base_offsets(partition.records.as_ref()), [0, 1, 2]);
        assert_eq!(partition.high_watermark, 3);
    }
}

#[test]
fn a_fetch_that_waits_is_woken_by_an_append_at_another_broker() {
    let cluster = Cluster::of(2);
    cluster.create("orders", 1);
    let mut waits = fetch(vec![fetch_topic("orders", &[(0, 0)])]);
    (waits.max_wait_ms, waits.min_bytes) = (60_000, 1);
    let waiting = cluster.world(2).begin::<FetchRequest>(12, &waits);
    append(cluster.world(1), "orders", batch(NOW_MS, &["a"]));
    let mut fetched = cluster.world(2).finish::<FetchRequest>(waiting);
    assert_eq!(base_offsets(only(&mut fetched).records.as_ref()), [0]);
}

#[test]
fn a_batch_that_is_sent_again_to_another_broker_is_stored_once() {
    let cluster = Cluster::of(2);
    cluster.create("orders", 1);
    let id = |broker: usize| cluster.world(broker).producer_id().producer_id;
    let (first, second) = (id(1), id(2));
    assert!(first >= 0 && second >= 0 && first != second);
    let records = sequenced(first, 0, 0, &["a", "b"]);
    assert_eq!(append(cluster.world(1), "orders", records.clone()), 0);
    assert_eq!(append(cluster.world(2), "orders", records), 0);
    assert_eq!(append(cluster.world(2), "orders", sequenced(first, 0, 2, &["c"])), 2);
}

#[test]
fn all_brokers_name_the_same_brokers_leaders_and_coordinator() {
    let cluster = Cluster::of(3);
    cluster.create("orders", 30);
    eventually(|| {
        cluster.worlds().all(|world| world.ask(&MetadataRequest::default()).brokers.len() == 3)
    });
    let mut told: Vec<_> = Vec::new();
    for world in cluster.worlds() {
        let metadata = world.ask(&MetadataRequest { topics: None, ..MetadataRequest::default() });
        let racks: Vec<_> = metadata.brokers.iter().map(|it| it.rack.clone().unwrap()).collect();
        assert_eq!(racks, ["rack-1", "rack-2", "rack-3"]);
        let partitions = &metadata.topics[0].partitions;
        let leaders: Vec<_> = partitions.iter().map(|it| it.leader_id).collect();
        assert!((1..=3).all(|id| leaders.contains(&id)), "{leaders:?}");
        let keys = vec!["readers".to_owned()];
        let found = world.ask(&FindCoordinatorRequest {
            coordinator_keys: keys,
            ..FindCoordinatorRequest::default()
        });
        let coordinator = &found.coordinators[0];
        assert_eq!((coordinator.node_id, metadata.controller_id), (1, 1));
        told.push((metadata.cluster_id, leaders, coordinator.port));
    }
    assert!(told.iter().all(|it| *it == told[0]));
}

#[test]
fn another_broker_goes_on_where_the_controller_ends() {
    let cluster = Cluster::of(2);
    cluster.create("orders", 1);
    let (first, second) = (cluster.world(1), cluster.world(2));
    append(first, "orders", batch(NOW_MS, &["a", "b"]));
    assert_eq!(second.commit("readers", "orders", 0, 2), ErrorCode::NotCoordinator);
    assert_eq!(first.commit("readers", "orders", 0, 2), ErrorCode::None);
    // Tools ask all brokers. One that is behind would tell of groups that are deleted.
    let listed = |world: &World| world.ask(&ListGroupsRequest::default()).groups.len();
    assert_eq!((listed(first), listed(second)), (1, 0));

    let (_, before) = cluster.shown_owner().unwrap();
    cluster.memory.end_sessions(1);
    // Either broker may be the first to claim the log.
    eventually(|| {
        let shown = cluster.shown_owner().filter(|(_, epoch)| *epoch > before);
        shown.is_some_and(|(broker, _)| cluster.world(broker).state.storage.decides())
    });
    let owner = cluster.owner();
    assert_eq!(owner.commit("writers", "orders", 0, 1), ErrorCode::None);
    assert_eq!(owner.committed("readers", "orders", 0).committed_offset, 2);
    assert_eq!(append(owner, "orders", batch(NOW_MS, &["c"])), 2);
    cluster.create("later", 2);
}

#[test]
fn records_behind_their_retention_go_with_their_objects() {
    let cluster = Cluster::of(1);
    let world = cluster.world(1);
    world.create_with("orders", 1, &[("retention.ms", "1000")]);
    append(world, "orders", batch(NOW_MS, &["old", "old"]));
    append(world, "orders", batch(NOW_MS + 1_500, &["recent"]));
    assert_eq!(cluster.store.count(), 2);
    cluster.keep_up(&mut Rounds::default(), NOW_MS + 2_000);
    assert_eq!(cluster.store.count(), 1);
    let partition = world.fetch("orders", 0, 2);
    assert_eq!((partition.log_start_offset, partition.high_watermark), (2, 3));
}

#[test]
fn what_a_cluster_does_not_serve_is_refused_and_not_advertised() {
    let cluster = Cluster::of(1);
    let world = cluster.world(1);
    let served: ApiVersionsResponse = world.ask_in(
        3,
        &ApiVersionsRequest {
            client_software_name: "test".to_owned(),
            client_software_version: "1".to_owned(),
            ..ApiVersionsRequest::default()
        },
    );
    let is_served = |key: ApiKey| served.api_keys.iter().any(|it| it.api_key == key.key());
    assert!(is_served(ApiKey::ConsumerGroupHeartbeat) && is_served(ApiKey::InitProducerId));
    assert!(is_served(ApiKey::EndTxn) && !is_served(ApiKey::WriteTxnMarkers));
    assert!(is_served(ApiKey::ShareFetch) && is_served(ApiKey::CreatePartitions));
    assert!(!is_served(ApiKey::ElectLeaders));
    let features: Vec<_> = served.finalized_features.iter().map(|it| it.name.as_str()).collect();
    let all = ["group.version", "share.version", "streams.version", "transaction.version"];
    assert_eq!(features, all);
    let mut assigned = creatable("table", -1);
    assigned.replication_factor = -1;
    assigned.assignments =
        vec![CreatableReplicaAssignment { broker_ids: vec![1], ..Default::default() }];
    let refused = world
        .ask(&CreateTopicsRequest { topics: vec![assigned], ..CreateTopicsRequest::default() });
    assert_eq!(code(refused.topics[0].error_code), ErrorCode::InvalidReplicaAssignment);
}

#[test]
fn a_controller_that_was_paused_tells_no_offsets() {
    let cluster = Cluster::of(2);
    cluster.create("orders", 1);
    let (first, second) = (cluster.world(1), cluster.world(2));
    assert_eq!(first.commit("readers", "orders", 0, 100), ErrorCode::None);
    assert_eq!(first.committed("readers", "orders", 0).committed_offset, 100);
    let owned = cluster.memory.take_over(9, "test:1");
    assert!(first.state.storage.decides(), "it does not know it yet");
    for world in [first, second] {
        for version in [1, 5, 8, 9] {
            let told = world.ask_in(version, &asking_offset(version, "readers", "orders"));
            let of_groups = told.groups.iter().map(|group| group.error_code);
            let of_partitions = told.topics.iter().flat_map(|topic| &topic.partitions);
            let of_partitions = of_partitions.map(|it| (it.error_code, it.committed_offset));
            let refusal = i16::from(ErrorCode::NotCoordinator);
            match version {
                1 => assert_eq!(of_partitions.collect::<Vec<_>>(), [(refusal, -1)]),
                5 => assert_eq!((told.error_code, told.topics.len()), (refusal, 0)),
                _ => assert_eq!(of_groups.collect::<Vec<_>>(), [refusal]),
            }
        }
    }
    drop(owned);
    eventually(|| cluster.worlds().any(|world| world.state.storage.decides()));
    assert_eq!(cluster.owner().committed("readers", "orders", 0).committed_offset, 100);
}

/// Clients would go to the other process, and find no controller there.
#[test]
fn a_broker_whose_id_is_taken_is_not_the_controller() {
    let cluster = Cluster::of(2);
    let (first, second) = (cluster.world(1), cluster.world(2));
    let row = BrokerRow { id: 1, host: "elsewhere".to_owned(), port: 9_092, rack: None };
    let taken = cluster.memory.take_id(row);
    eventually(|| !first.state.storage.decides() && second.state.storage.decides());
    second.create("orders", 1);
    drop(taken);
    eventually(|| {
        let brokers = block_on(cluster.memory.brokers()).unwrap();
        brokers.iter().any(|broker| broker.id == 1 && broker.host != "elsewhere")
    });
}

fn asking_offset(version: i16, group: &str, topic: &str) -> OffsetFetchRequest {
    let (name, partition_indexes) = (topic.to_owned(), vec![0]);
    let group_id = group.to_owned();
    if version < 8 {
        let topic = OffsetFetchRequestTopic { name, partition_indexes, ..Default::default() };
        return OffsetFetchRequest { group_id, topics: Some(vec![topic]), ..Default::default() };
    }
    let topic = OffsetFetchRequestTopics { name, partition_indexes, ..Default::default() };
    let topics = Some(vec![topic]);
    let group = OffsetFetchRequestGroup { group_id, topics, ..Default::default() };
    OffsetFetchRequest { groups: vec![group], ..OffsetFetchRequest::default() }
}
