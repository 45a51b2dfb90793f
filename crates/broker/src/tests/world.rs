//! A broker without sockets, and the requests that most tests begin with.

use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use moldau_net::{Principal, Reply, Response};
use moldau_protocol::{ApiKey, ErrorCode, Message, Reader, Request, Uuid, frame};
use moldau_records::{BatchBuilder, BatchOptions, Compression, Compressor, Producer, iter_batches};
use moldau_storage::{Admission, Disk, Drive, Durability, Options, RealDisk};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

use super::cluster_logs::MemoryLogs;
use crate::authorizer::Subject;
use crate::call::Later;
use crate::config::{
    Config, GroupSettings, ListenerConfig, TelemetrySettings, TransactionSettings, Unpacking,
};
use crate::dispatch::{self, CallSite};
use crate::logs::{ClusterLogs, Logs};
use crate::quota_entity::QuotaWindow;
use crate::quotas::QuotaClient;
use crate::rights::Access;
use crate::state::{Restored, State};
use crate::topic_config::TopicDefaults;

/// The time at which every request arrives.
pub(super) const NOW_MS: i64 = 1_760_000_000_000;

/// The id that requests carry in their header.
pub(super) const CLIENT_ID: &str = "tester";

const CORRELATION_ID: i32 = 77;

/// Where requests come from.
pub(super) const PEER: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 50_000);

/// One broker on a directory of its own.
pub(super) struct World {
    pub(super) state: Arc<State>,
    runtime: Runtime,
    disk: Arc<dyn Disk>,
    drive: Drive,
    /// The cluster that holds the records, if it is not the journal.
    cluster: Option<Arc<MemoryLogs>>,
    /// Who sends requests.
    pub(super) user: RefCell<&'static str>,
    /// Every frame that was sent.
    frames: RefCell<Vec<BytesMut>>,
    dir: TempDir,
}

/// A request whose answer has not been waited for.
pub(super) struct Pending {
    pub(super) answer: Later<Response>,
    key: ApiKey,
    version: i16,
}

impl World {
    /// A broker whose journal has its own threads.
    pub(super) fn new() -> Self {
        Self::with(Drive::Threads, |_| {})
    }

    /// A broker whose journal flushes only when [`World::flush`] says so.
    pub(super) fn stepped() -> Self {
        Self::with(Drive::Stepped, |_| {})
    }

    /// A broker with settings of its own.
    pub(super) fn with(drive: Drive, change: impl FnOnce(&mut Config)) -> Self {
        Self::on(Arc::new(RealDisk), drive, change)
    }

    /// The same on a disk that the test has in hand.
    pub(super) fn on(disk: Arc<dyn Disk>, drive: Drive, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config = config(dir.path());
        change(&mut config);
        let state = open(&disk, config, drive);
        let (user, frames) = (RefCell::new("ANONYMOUS"), RefCell::default());
        Self { state, runtime: runtime(), disk, drive, cluster: None, user, frames, dir }
    }

    /// A broker whose records are those of a cluster, which answers later and out of step.
    pub(super) fn clustered() -> Self {
        let mut world = Self::new();
        let cluster = Arc::new(MemoryLogs::default());
        let logs = Arc::clone(&cluster) as Arc<dyn ClusterLogs>;
        Arc::get_mut(&mut world.state).unwrap().logs = Logs::Cluster(logs);
        world.cluster = Some(cluster);
        world
    }

    /// A broker that a test has started.
    pub(super) fn of(state: Arc<State>) -> Self {
        let (disk, drive): (Arc<dyn Disk>, _) = (Arc::new(RealDisk), Drive::Threads);
        let (user, frames) = (RefCell::new("ANONYMOUS"), RefCell::default());
        let dir = tempfile::tempdir().unwrap();
        Self { state, runtime: runtime(), disk, drive, cluster: None, user, frames, dir }
    }

    /// Brokers on each kind of logs, for tests of what must not depend on it.
    pub(super) fn each() -> [Self; 2] {
        [Self::new(), Self::clustered()]
    }

    /// The cluster of [`World::clustered`].
    pub(super) fn cluster(&self) -> &MemoryLogs {
        self.cluster.as_ref().unwrap()
    }

    /// What would be there if the process had died: another broker on a copy of the files.
    pub(super) fn crashed(&self, disk: Arc<dyn Disk>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy(self.dir.path(), dir.path());
        let config = Config { data_dir: dir.path().to_owned(), ..self.state.config.clone() };
        let state = open(&disk, config, self.drive);
        let (user, frames) = (RefCell::new("ANONYMOUS"), RefCell::default());
        let (drive, cluster) = (self.drive, None);
        Self { state, runtime: runtime(), disk, drive, cluster, user, frames, dir }
    }

    /// The broker after a clean stop and a start on the same directory.
    pub(super) fn restarted(self) -> Self {
        self.restarted_with(|_| {})
    }

    /// As [`restarted`](Self::restarted), with other settings.
    pub(super) fn restarted_with(self, change: impl FnOnce(&mut Config)) -> Self {
        let Self { state, runtime, disk, drive, cluster, user, frames, dir } = self;
        let mut config = state.config.clone();
        change(&mut config);
        state.storage.close().unwrap();
        drop((state, runtime));
        let state = open(&disk, config, drive);
        Self { state, runtime: self::runtime(), disk, drive, cluster, user, frames, dir }
    }

    /// The frames of all requests that were asked.
    pub(super) fn frames(&self) -> Vec<BytesMut> {
        self.frames.borrow().clone()
    }

    /// Asks in the newest version that is served.
    pub(super) fn ask<Q: Request>(&self, request: &Q) -> Q::Response {
        self.ask_in(newest(Q::KEY), request)
    }

    /// Asks, waits for the answer and decodes it.
    pub(super) fn ask_in<Q: Request>(&self, version: i16, request: &Q) -> Q::Response {
        let pending = self.begin::<Q>(version, request);
        self.finish::<Q>(pending)
    }

    /// Asks without waiting.
    pub(super) fn begin<Q: Request>(&self, version: i16, request: &Q) -> Pending {
        let key = Q::KEY;
        let frame = request_frame(version, request);
        let answer: Later<Response> = match self.send(&frame) {
            Reply::Ready(response) => Box::pin(async move { response }),
            Reply::Later(answer, _) | Reply::Last(answer, _) => answer,
            Reply::NoResponse => panic!("{key} {version} was not answered"),
            Reply::Close(reason) => panic!("{key} {version} was refused: {reason}"),
        };
        self.frames.borrow_mut().push(frame);
        Pending { answer, key, version }
    }

    /// Waits for an answer and decodes it.
    pub(super) fn finish<Q: Request>(&self, pending: Pending) -> Q::Response {
        let Pending { answer, key, version } = pending;
        let response = self.wait(answer);
        assert!(!response.is_empty(), "the answer of {key} {version} could not be encoded");
        decoded::<Q::Response>(key, version, &response)
    }

    /// Polls an answer once and says whether it has come.
    pub(super) fn poll(&self, pending: &mut Pending) -> bool {
        self.poll_answer(&mut pending.answer).is_some()
    }

    /// Polls an answer once and decodes it if it has come.
    pub(super) fn poll_decoded<Q: Request>(&self, pending: &mut Pending) -> Option<Q::Response> {
        let response = self.poll_answer(&mut pending.answer)?;
        Some(decoded::<Q::Response>(pending.key, pending.version, &response))
    }

    /// Polls an answer once.
    pub(super) fn poll_answer(&self, answer: &mut Later<Response>) -> Option<Response> {
        self.runtime.block_on(std::future::poll_fn(|cx| {
            Poll::Ready(match answer.as_mut().poll(cx) {
                Poll::Ready(response) => Some(response),
                Poll::Pending => None,
            })
        }))
    }

    /// Flushes what a stepped journal holds.
    pub(super) fn flush(&self) {
        while self.state.storage.step() {}
    }

    /// Hands a frame to the table.
    pub(super) fn send(&self, frame: &[u8]) -> Reply<Later<Response>> {
        self.send_at(NOW_MS, frame)
    }

    /// Hands a frame to the table at a given time.
    pub(super) fn send_at(&self, now_ms: i64, frame: &[u8]) -> Reply<Later<Response>> {
        self.send_of(&self.client(), now_ms, frame)
    }

    /// Hands a frame to the table, and returns its connection's view of quotas.
    pub(super) fn send_as_client(&self, frame: &[u8]) -> (Reply<Later<Response>>, Rc<QuotaClient>) {
        let client = self.client();
        (self.send_of(&client, NOW_MS, frame), client)
    }

    /// Whether nothing is taken from a client.
    pub(super) fn is_muted(&self, client: &QuotaClient) -> bool {
        self.runtime
            .block_on(std::future::poll_fn(|cx| Poll::Ready(client.poll_open(cx).is_pending())))
    }

    fn client(&self) -> Rc<QuotaClient> {
        Rc::new(QuotaClient::new(Arc::clone(&self.state.quotas), &self.user.borrow()))
    }

    fn send_of(
        &self,
        client: &Rc<QuotaClient>,
        now_ms: i64,
        frame: &[u8],
    ) -> Reply<Later<Response>> {
        let subject =
            Subject { principal: format!("User:{}", self.user.borrow()), address: PEER.ip() };
        let access = Access::of(&self.state.security, subject);
        let site = CallSite {
            state: &self.state,
            principal: &Principal::user(&self.user.borrow()),
            peer: PEER,
            local: SocketAddr::from(([127, 0, 0, 1], 9_092)),
            listener: &self.state.config.listeners[0],
            client,
            software: &RefCell::default(),
            access: access.as_ref(),
            now_ms,
            admission: admitted(&self.state, frame.len()),
            connection: self.state.share_sessions.connect(),
            memory: &self.state.memory.account(),
            is_deferred: false,
        };
        // Timers of a handler belong to the runtime, as they do on a network thread.
        let _entered = self.runtime.enter();
        dispatch::dispatch(site, frame)
    }

    /// Drives a future, and the timers of groups and transactions beside it.
    pub(super) fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        let is_stepped = self.drive == Drive::Stepped;
        let state = &self.state;
        let stores = state.stores();
        self.runtime.block_on(async move {
            let mut future = std::pin::pin!(future);
            let future = std::future::poll_fn(|cx| {
                let first = future.as_mut().poll(cx);
                if first.is_pending() && is_stepped {
                    while state.storage.step() {}
                    return future.as_mut().poll(cx);
                }
                if let Some(cluster) = &self.cluster
                    && first.is_pending()
                    && cluster.step()
                {
                    // One answer at a time, whoever waits for it.
                    cx.waker().wake_by_ref();
                }
                first
            });
            tokio::select! {
                value = future => value,
                () = state.run_group_timer() => unreachable!("it never ends"),
                () = state.transactions.run_timer(&stores) => unreachable!("it never ends"),
            }
        })
    }
}

fn admitted(state: &State, bytes: usize) -> Option<Admission> {
    state.storage.journal().and_then(|journal| journal.admit(bytes))
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

pub(super) fn config(data_dir: &Path) -> Config {
    Config {
        data_dir: data_dir.to_owned(),
        listeners: vec![ListenerConfig::plain(SocketAddr::from(([127, 0, 0, 1], 0)), None)],
        authorization: None,
        admin: None,
        durability: Durability::Fsync,
        commit_delay: Duration::ZERO,
        memory_bytes: 1 << 30,
        tail_cache_bytes: Some(8 << 20),
        // Small, so that a test can fill several and free the first.
        journal_file_bytes: 1 << 20,
        disk_reserve_bytes: 0,
        scrub_rate: 0,
        network_threads: 1,
        auto_create_topics: true,
        partitions_default: 3,
        topic_defaults: TopicDefaults::default(),
        groups: GroupSettings { initial_rebalance_delay_ms: 0, ..GroupSettings::default() },
        unpacking: Unpacking::Always,
        transactions: TransactionSettings::default(),
        quota_window: QuotaWindow::default(),
        telemetry: TelemetrySettings::default(),
        request_bytes_max: 100 << 20,
        connections_max_idle: Duration::from_mins(10),
        log_retention_check_interval: Duration::from_secs(30),
        log_cleaner_backoff: Duration::from_secs(15),
        drain_timeout: Duration::ZERO,
        file_keys: Vec::new(),
        loggers: None,
    }
}

/// Copies a directory and what is in it.
fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).unwrap();
        }
    }
}

fn open(disk: &Arc<dyn Disk>, config: Config, drive: Drive) -> Arc<State> {
    let options = Options { drive, ..config.storage() };
    let mut restored = Restored::new(&config, NOW_MS);
    let storage =
        moldau_storage::Storage::open_on(Arc::clone(disk), options, &mut restored).unwrap();
    let state = State::new(config, storage, restored, NOW_MS);
    state.delete_orphaned_logs().unwrap();
    state.end_orphaned_transactions(NOW_MS).unwrap();
    Arc::new(state)
}

/// The newest version that is served.
pub(super) fn newest(key: ApiKey) -> i16 {
    let mut served = dispatch::served_versions();
    served.find(|(served, _)| *served == key).map(|(_, versions)| versions.max).unwrap()
}

/// A request as the broker gets it: without the length before it.
pub(super) fn request_frame<Q: Request>(version: i16, request: &Q) -> BytesMut {
    let mut out = BytesMut::new();
    frame::encode_request(&mut out, version, CORRELATION_ID, Some(CLIENT_ID), request)
        .unwrap_or_else(|error| panic!("{} {version}: {error}", Q::KEY));
    out.split_off(frame::LENGTH_SIZE)
}

/// Decodes an answer, which must fill its frame.
pub(super) fn decoded<R: Message>(key: ApiKey, version: i16, response: &Response) -> R {
    let mut bytes = response.head.to_vec();
    response.rest.iter().for_each(|segment| bytes.extend_from_slice(segment));
    let (length, framed) = bytes.split_first_chunk::<4>().unwrap();
    assert_eq!(u32::from_be_bytes(*length) as usize, framed.len(), "{key} {version}");
    let (correlation_id, body) = frame::parse_response(framed, key, version).unwrap();
    assert_eq!(correlation_id, CORRELATION_ID, "{key} {version}");
    let mut reader = Reader::new(body);
    let decoded = R::decode(&mut reader, version);
    let decoded = decoded.unwrap_or_else(|error| panic!("{key} {version}: {error}"));
    reader.finish().unwrap_or_else(|error| panic!("{key} {version}: {error}"));
    decoded
}

/// Kafka's code as the enum.
pub(super) fn code(code: i16) -> ErrorCode {
    ErrorCode::try_from(code).unwrap()
}

/// A batch of records whose values are given, all with one timestamp.
pub(super) fn batch(timestamp: i64, values: &[&str]) -> Bytes {
    let records: Vec<_> = values.iter().map(|value| (timestamp, *value)).collect();
    batch_of(BatchOptions::default(), Compression::None, &records)
}

/// A batch of an idempotent producer.
pub(super) fn sequenced(id: i64, epoch: i16, base_sequence: i32, values: &[&str]) -> Bytes {
    let producer = Some(Producer { id, epoch, base_sequence });
    let records: Vec<_> = values.iter().map(|value| (NOW_MS, *value)).collect();
    batch_of(BatchOptions { producer, ..BatchOptions::default() }, Compression::None, &records)
}

/// A batch of records given as timestamp and value.
pub(super) fn batch_of(
    options: BatchOptions,
    compression: Compression,
    records: &[(i64, &str)],
) -> Bytes {
    let mut builder = BatchBuilder::new(options);
    for (timestamp, value) in records {
        builder.append(*timestamp, Some(b"key"), Some(value.as_bytes()), []).unwrap();
    }
    builder.finish_bytes(compression, &mut Compressor::default()).unwrap()
}

/// The base offsets of the batches in fetched records.
pub(super) fn base_offsets(records: Option<&Bytes>) -> Vec<i64> {
    let batches = iter_batches(records.map_or(&[][..], |records| records));
    batches.map(|batch| batch.unwrap().base_offset()).collect()
}

/// Writes the checksum that belongs to what a test has changed.
pub(super) fn reseal(records: &mut [u8]) {
    const CRC: std::ops::Range<usize> = 17..21;
    let crc = moldau_records::crc32c(&records[CRC.end..]);
    records[CRC].copy_from_slice(&crc.to_be_bytes());
}

/// An id that no topic has.
pub(super) fn unknown_id() -> Uuid {
    Uuid::from_bytes([9; 16])
}
