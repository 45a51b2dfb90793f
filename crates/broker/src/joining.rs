//! A broker's way into a cluster and out of it: its connections, its thread, its place among the
//! others.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use moldau_cluster::{
    Availability, BrokerRow, Bucket, BucketSettings, Database, Frames, Measured, Postgres, Reader,
    ReaderOptions, Registration, Requests, Sequencer, Service, Store, Telling, Wakes, Writer,
    WriterOptions,
};
use moldau_threads::Supervisor;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep};

use crate::clock::wall_clock_ms;
use crate::cluster_health::ClusterHealth;
use crate::config::Config;
use crate::error::Error;
use crate::forwarding::Forwarding;
use crate::logs::{ClusterLogs, Logs};
use crate::member::{Member, Snapshots, load_or_begin, members, register};
use crate::nodes::Nodes;
use crate::shared_logs::SharedLogs;
use crate::state::{Site, State};
use crate::storage::Storage;
use crate::submissions::Submissions;
use crate::transaction_ends::Marking;
use crate::troubles::Troubles;
use crate::upkeep::Upkeep;

/// What a broker needs to be one of a cluster.
#[derive(Clone)]
pub struct ClusterSettings {
    /// Its id, which no other broker of the cluster has (Kafka: `broker.id`).
    pub broker_id: i32,
    /// Where it runs, such as an availability zone (Kafka: `broker.rack`).
    pub rack: Option<String>,
    /// The database that orders batches and holds metadata.
    pub postgres: moldau_cluster::Settings,
    /// Where the batches are.
    pub bucket: BucketSettings,
    /// When batches are written.
    pub writer: WriterOptions,
    /// How they are read.
    pub reader: ReaderOptions,
}

/// The services that a cluster stands on.
pub(crate) struct Services<Q, S> {
    pub(crate) frames: Arc<dyn Frames>,
    pub(crate) requests: Arc<dyn Requests>,
    pub(crate) sequencer: Arc<Q>,
    /// What the requests to the database show.
    pub(crate) database: Arc<Database>,
    pub(crate) store: Arc<S>,
    pub(crate) wakes: Arc<Wakes>,
    /// Tells the wakes of other brokers.
    pub(crate) telling: Option<Telling>,
}

impl Services<Postgres, Bucket> {
    /// Connects to the services, and tries them.
    ///
    /// # Errors
    /// One that is away, refuses, or is of another version.
    pub(crate) async fn connect(settings: &ClusterSettings) -> Result<Self, Error> {
        despite_outage(async || Self::connect_once(settings).await).await
    }

    async fn connect_once(settings: &ClusterSettings) -> Result<Self, Error> {
        Postgres::migrate(&settings.postgres).await?;
        let postgres = Arc::new(Postgres::connect(&settings.postgres).await?);
        let bucket = Bucket::open(&settings.bucket)?;
        let told = |error| Error::of_joining(error, &settings.bucket);
        // Asked once, so that the log tells at once of a store that does not answer.
        bucket.reach().await.map_err(told)?;
        postgres.claim_store(&bucket).await.map_err(told)?;
        bucket.verify().await.map_err(told)?;
        let wakes = Arc::new(Wakes::default());
        let telling = Some(postgres.tell(Arc::clone(&wakes)));
        let frames = Arc::clone(&postgres) as Arc<dyn Frames>;
        let requests = Arc::clone(&postgres) as Arc<dyn Requests>;
        let database = Arc::clone(postgres.database());
        let (sequencer, store) = (postgres, Arc::new(bucket));
        Ok(Self { frames, requests, sequencer, database, store, wakes, telling })
    }
}

/// A broker that has joined, and does not take part yet.
pub(crate) struct Joined<Q, S> {
    pub(crate) member: Member<Q, Measured<S>>,
    upkeep: Upkeep<Q, Measured<S>>,
    marking: Marking,
    forwarding: Forwarding,
    registration: Registration,
    telling: Option<Telling>,
}

impl<Q: Sequencer, S: Store> Joined<Q, S> {
    /// Reads the log of metadata, and shows the broker to the others.
    ///
    /// # Errors
    /// Settings that do not fit, a service that is away, a log of another version.
    pub(crate) async fn of(
        services: Services<Q, S>,
        settings: &ClusterSettings,
        mut config: Config,
        address: SocketAddr,
    ) -> Result<Self, Error> {
        config.transactions.markers_follow = true;
        let Services { frames, requests, sequencer, database, store, wakes, telling } = services;
        let store = Arc::new(measured(store, &settings.bucket));
        let row = row(settings, &config, address);
        let join = async || {
            let begun = load_or_begin(&*frames, &config, &row).await?;
            let registration = register(&*frames, &row).await?;
            Ok((begun, registration, members(&*frames).await?))
        };
        let (begun, registration, members) = despite_outage(join).await?;
        let (restored, next_sequence, cluster_id) = begun;
        let nodes = Nodes::shared(row.id);
        nodes.update(members);
        let (own, writer) = (Arc::clone(&sequencer), settings.writer);
        let writer = Writer::start(own, Arc::clone(&store), Arc::clone(&wakes), writer)?;
        let reader = Reader::new(Arc::clone(&sequencer), Arc::clone(&store), settings.reader);
        let options = config.storage();
        let submissions = Submissions::new(options.entry_limit(), options.unflushed_bytes_max);
        let submissions = Arc::new(submissions);
        let health = ClusterHealth {
            database,
            store: Arc::clone(store.availability()),
            requests: Arc::clone(store.metrics()),
            writer: Arc::clone(writer.metrics()),
            reader: Arc::clone(reader.metrics()),
            ranges_sorted: AtomicU64::new(0),
            submissions: Arc::clone(&submissions),
        };
        let logs = SharedLogs::new(Arc::clone(&sequencer), reader, writer);
        let site = Site {
            cluster_id,
            nodes,
            storage: Storage::Shared(Arc::clone(&submissions)),
            logs: Logs::Cluster(Arc::clone(&logs) as Arc<dyn ClusterLogs>),
            cluster: Some(Arc::new(health)),
        };
        let state = Arc::new(State::of(config, site, restored, wall_clock_ms()));
        let (own, same) = (Arc::clone(&sequencer), Arc::clone(&state));
        let upkeep = Upkeep { sequencer: own, store, state: same };
        let (own, same) = (Arc::clone(&logs) as Arc<dyn ClusterLogs>, Arc::clone(&state));
        let marking = Marking { logs: own, state: same };
        let forwarding = Forwarding {
            requests,
            wakes: Arc::clone(&wakes),
            submissions: Arc::clone(&submissions),
            state: Arc::clone(&state),
            troubles: Troubles::default(),
        };
        let member = Member {
            frames,
            sequencer,
            wakes,
            logs,
            submissions,
            state,
            row,
            cluster_id,
            next_sequence,
            snapshots: Snapshots::default(),
            registered: watch::Sender::new(true).subscribe(),
            troubles: Troubles::default(),
        };
        Ok(Self { member, upkeep, marking, forwarding, registration, telling })
    }
}

/// The requests to a store, which are counted.
fn measured<S: Store>(store: Arc<S>, settings: &BucketSettings) -> Measured<S> {
    let (bucket, endpoint) = (settings.bucket.clone(), settings.endpoint.clone());
    let service = Service::ObjectStore { bucket, endpoint };
    Measured::new(store, Arc::new(Availability::of(service)))
}

/// Tries again while a service does not answer, as long as a database may take to fail over.
async fn despite_outage<T>(attempt: impl AsyncFn() -> Result<T, Error>) -> Result<T, Error> {
    let deadline = Instant::now() + OUTAGE_MAX;
    let mut is_logged = false;
    loop {
        match attempt().await {
            Err(error) if error.is_of_an_absent_service() && Instant::now() < deadline => {
                if !is_logged {
                    let for_s = OUTAGE_MAX.as_secs();
                    tracing::warn!(%error, for_s, "a service does not answer; tries again");
                    is_logged = true;
                }
                sleep(RETRY_PAUSE).await;
            }
            result => return result,
        }
    }
}

fn row(settings: &ClusterSettings, config: &Config, address: SocketAddr) -> BrokerRow {
    let advertised = config.listeners.first().and_then(|listener| listener.advertised.as_ref());
    let (host, port) = match advertised {
        Some(advertised) => (advertised.host.clone(), advertised.port),
        None => (address.ip().to_canonical().to_string(), address.port()),
    };
    BrokerRow { id: settings.broker_id, host, port, rack: settings.rack.clone() }
}

/// The thread on which a broker's connections to its cluster live. Dropping it leaves the cluster.
pub(crate) struct Membership {
    /// Dropped to end the thread.
    leave: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Membership {
    /// Takes part from here on.
    ///
    /// # Errors
    /// The system refused the thread.
    pub(crate) fn begin<Q: Sequencer, S: Store>(
        joined: Joined<Q, S>,
        runtime: Runtime,
        supervisor: &Supervisor,
    ) -> Result<Self, Error> {
        let (leave, left) = oneshot::channel();
        let own = supervisor.clone();
        let run = move || {
            let Joined { member, upkeep, marking, forwarding, registration, telling } = joined;
            runtime.block_on(async {
                tokio::select! {
                    () = member.run(registration, &own) => {}
                    cause = upkeep.run() => own.fail(cause),
                    () = upkeep.store.probe() => {}
                    () = marking.run() => {}
                    () = forwarding.run() => {}
                    _left = left => {}
                }
            });
            drop(telling);
            // Connections that do not answer must not keep the broker.
            runtime.shutdown_timeout(LEFT_WITHIN);
        };
        let thread = supervisor.spawn("moldau-cluster", run).map_err(Error::Thread)?;
        Ok(Self { leave: Some(leave), thread: Some(thread) })
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        drop(self.leave.take());
        if let Some(thread) = self.thread.take() {
            // The supervisor has noted how it ended.
            drop(thread.join());
        }
    }
}

/// What the thread of a cluster runs on.
///
/// # Errors
/// The system refused it.
pub(crate) fn runtime() -> Result<Runtime, Error> {
    Builder::new_current_thread().enable_all().build().map_err(Error::Thread)
}

/// Sessions of the database end within this time.
const LEFT_WITHIN: Duration = Duration::from_secs(1);

/// How long a broker that starts waits for a database that does not answer.
const OUTAGE_MAX: Duration = Duration::from_secs(15);
const RETRY_PAUSE: Duration = Duration::from_millis(200);
