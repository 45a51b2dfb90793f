//! `moldau cluster demo`: a cluster on this machine, of which one broker is killed while records
//! are written and read back. Exits 1 if one is lost or there twice.
//!
//! PostgreSQL and the brokers are real. The object store is one in the memory of this process, so
//! nothing remains when it ends.

pub(in crate::commands) mod database;
pub(in crate::commands) mod store;
mod traffic;

use std::fs::{self, DirBuilder, File, Permissions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use moldau_cluster::{BrokerRow, Frames, Owner, Postgres};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep};

use self::database::Database;
use self::store::Store;
use self::traffic::{Outcome, Traffic};
use super::count;
use crate::arguments::DemoOptions;

pub(super) async fn run(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    // What was started ends with this future.
    tokio::select! {
        outcome = show(options) => outcome,
        _ = terminate.recv() => Ok(ExitCode::SUCCESS),
        _ = interrupt.recv() => Ok(ExitCode::SUCCESS),
    }
}

async fn show(options: &DemoOptions) -> anyhow::Result<ExitCode> {
    let mut demo = Demo::start().await?;
    let addresses: Vec<String> = demo.rows.iter().map(address).collect();
    println!("Three brokers: {}", addresses.join(","));
    let traffic = Traffic::start(&addresses).await?;
    println!("{}", traffic.describe());
    let half = options.time / 2;
    traffic.send_for(half).await?;
    let killed = demo.kill_controller().await?;
    println!("Broker {killed}, the controller, was killed with SIGKILL.");
    traffic.send_until_all_are_acknowledged().await?;
    let owner = demo.await_controller_other_than(killed).await?;
    println!("Broker {} is the controller.", owner.broker);
    traffic.send_for(half).await?;
    let outcome = traffic.finish().await?;
    tell(&outcome);
    if options.keep {
        let left: Vec<String> =
            demo.rows.iter().filter(|row| row.id != killed).map(address).collect();
        println!("Two brokers go on at {} until Ctrl-C. Try", left.join(","));
        println!("  moldau topics --bootstrap {}", left.join(","));
        println!("  moldau cluster status --cluster {}", demo.file(owner.broker).display());
        std::future::pending::<()>().await;
    }
    let is_whole = outcome.lost == 0 && outcome.duplicated == 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(outcome: &Outcome) {
    let Outcome { acknowledged, read, lost, duplicated, gap_of_partition, gap_of_all } = outcome;
    println!(
        "{} acknowledged, {read} read, {lost} lost, {duplicated} duplicated.",
        count(*acknowledged, "record")
    );
    println!(
        "Failover took {:.2} s: the longest time without an acknowledgement in one partition. \
         In the whole topic it was {:.2} s.",
        gap_of_partition.as_secs_f64(),
        gap_of_all.as_secs_f64(),
    );
}

fn address(row: &BrokerRow) -> String {
    format!("{}:{}", row.host, row.port)
}

/// A cluster. Its processes and files end with it, the brokers first.
struct Demo {
    brokers: Vec<Broker>,
    rows: Vec<BrokerRow>,
    postgres: Postgres,
    database: Database,
    store: Store,
    dir: Directory,
}

impl Demo {
    async fn start() -> anyhow::Result<Self> {
        let dir = Directory::create()?;
        let store = Store::start(dir.0.join("objects")).await?;
        let database = Database::start(&dir.0).await?;
        let postgres = Postgres::connect(&database.settings).await.context("PostgreSQL")?;
        let version = postgres.status().await.context("PostgreSQL")?.server_version;
        println!("PostgreSQL {version} and an object store run in {}.", dir.0.display());
        write_secret(&dir.0.join("keys"), &store.keys())?;
        let mut demo =
            Self { brokers: Vec::new(), rows: Vec::new(), postgres, database, store, dir };
        for id in BROKERS {
            let broker = demo.start_broker(id)?;
            demo.brokers.push(broker);
        }
        demo.rows = demo.await_brokers().await?;
        Ok(demo)
    }

    /// The file of a broker.
    fn file(&self, id: i32) -> PathBuf {
        self.dir.0.join(format!("broker-{id}.yaml"))
    }

    fn start_broker(&self, id: i32) -> anyhow::Result<Broker> {
        let text = format!(
            "broker.id: {id}\nbroker.rack: rack-{id}\nlinger_ms: {LINGER_MS}\n\
             postgres: {{url: \"{}\"}}\n\
             bucket:\n  name: {}\n  endpoint: http://{}\n  prefix: demo\n  credentials_file: {}\n",
            self.database.settings.connection,
            store::BUCKET,
            self.store.address,
            self.dir.0.join("keys").display(),
        );
        write_secret(&self.file(id), &text)?;
        let log = self.dir.0.join(format!("broker-{id}.log"));
        let process = Command::new(std::env::current_exe()?)
            .args(["broker", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--cluster"])
            .arg(self.file(id))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&log)?)
            .spawn()
            .context("a broker cannot be started")?;
        Ok(Broker { id, process, log })
    }

    /// Waits until all brokers are known to the cluster, and one of them is the controller.
    async fn await_brokers(&mut self) -> anyhow::Result<Vec<BrokerRow>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            for broker in &mut self.brokers {
                broker.ensure_running()?;
            }
            let rows = self.postgres.brokers().await.context("PostgreSQL")?;
            let owner = self.postgres.owner().await.context("PostgreSQL")?;
            if rows.len() == self.brokers.len() && owner.is_some() {
                return Ok(rows);
            }
            ensure!(Instant::now() < deadline, "the brokers do not become a cluster");
            sleep(POLL).await;
        }
    }

    async fn kill_controller(&mut self) -> anyhow::Result<i32> {
        let owner = self.await_controller_other_than(NOBODY).await?.broker;
        let found = self.brokers.iter().position(|broker| broker.id == owner);
        // Dropping it kills it.
        drop(self.brokers.remove(found.context("another broker is the controller")?));
        Ok(owner)
    }

    async fn await_controller_other_than(&self, killed: i32) -> anyhow::Result<Owner> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let owner = self.postgres.owner().await.context("PostgreSQL")?;
            if let Some(owner) = owner.filter(|owner| owner.broker != killed) {
                return Ok(owner);
            }
            ensure!(Instant::now() < deadline, "no broker becomes the controller");
            sleep(POLL).await;
        }
    }
}

/// The process of a broker, killed when dropped: it has nothing to save.
struct Broker {
    id: i32,
    process: Child,
    log: PathBuf,
}

impl Broker {
    fn ensure_running(&mut self) -> anyhow::Result<()> {
        if self.process.try_wait()?.is_some() {
            let said = fs::read_to_string(&self.log).unwrap_or_default();
            bail!("broker {} has ended: {}", self.id, said.trim());
        }
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Both fail only if it has ended already.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// The files, removed when dropped.
struct Directory(PathBuf);

impl Directory {
    /// The user of the database can look into it, if that is another one.
    fn create() -> anyhow::Result<Self> {
        let name = format!("moldau-demo-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o755).create(&path);
        made.with_context(|| format!("{} cannot be created", path.display()))?;
        let dir = Self(path);
        // Whatever the umask is.
        fs::set_permissions(&dir.0, Permissions::from_mode(0o755))?;
        Ok(dir)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, path = %self.0.display(), "failed to remove the files");
        }
    }
}

/// Writes a file that only this user reads.
fn write_secret(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write;
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut file = file.with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(file.write_all(text.as_bytes())?)
}

const BROKERS: [i32; 3] = [1, 2, 3];
/// No broker has this id.
const NOBODY: i32 = -1;
/// Short, so that a killed broker shows in the times and not the collection of batches.
const LINGER_MS: u32 = 20;
/// For whatever takes a second or so on an idle machine.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(50);
