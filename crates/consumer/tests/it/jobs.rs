//! Records as jobs in PostgreSQL, by the server of the machine.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use moldau_consumer::{
    Batch, BoxError, ClaimedJob, Enqueue, Failure, Job, JobCounts, JobId, JobQueue,
    JobWorkerOptions, Metrics, PostgresJobs, Route,
};

use crate::world::{DEADLINE, GROUP, TOPIC, broker, drained, ticking};

const QUEUE: &str = "mails";

/// A PostgreSQL server on a socket in a directory of its own; stopped when dropped.
struct Postgres {
    directory: tempfile::TempDir,
    server: Option<Child>,
}

impl Postgres {
    fn create() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        if rustix::process::geteuid().is_root() {
            // PostgreSQL refuses root.
            run(Command::new("chown").arg("postgres:").arg(directory.path()));
        }
        let mut postgres = Self { directory, server: None };
        let data = postgres.data();
        run(program("initdb").arg("-D").arg(data).args(["-U", "test", "-A", "trust", "--no-sync"]));
        postgres.start();
        postgres
    }

    fn start(&mut self) {
        let mut server = program("postgres");
        server.arg("-D").arg(self.data()).arg("-k").arg(self.directory.path());
        server.args(["-c", "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=8MB"]);
        self.server = Some(server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it"));
    }

    /// Stops it as a crash does.
    fn stop(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let id = rustix::process::Pid::from_child(&server);
        // It may have ended by itself.
        let _sent = rustix::process::kill_process(id, rustix::process::Signal::QUIT);
        drop(server.wait());
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    fn jobs(&self) -> PostgresJobs {
        let path = self.directory.path().display();
        PostgresJobs::new(&format!("host={path} user=test dbname=postgres")).expect("a database")
    }

    /// The jobs once the server answers, in a table of their own.
    async fn ready(&self) -> PostgresJobs {
        let jobs = self.jobs();
        let create = async { while jobs.create_table().await.is_err() {} };
        tokio::time::timeout(DEADLINE, create).await.expect("the server starts");
        jobs
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A program of PostgreSQL, as its user if this one is root.
fn program(name: &str) -> Command {
    let path = installed(name);
    if !rustix::process::geteuid().is_root() {
        return Command::new(path);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]).arg(path);
    command.current_dir("/");
    command
}

/// Debian keeps the programs of each version in a directory that is not in the path.
fn installed(name: &str) -> PathBuf {
    let versions = Path::new("/usr/lib/postgresql").read_dir().into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions
        .map(|version| version.path().join("bin").join(name))
        .filter(|path| path.exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| name.into())
}

fn run(command: &mut Command) {
    let ended = command.output();
    let ended = ended.unwrap_or_else(|error| panic!("{command:?}: {error}; install PostgreSQL"));
    assert!(ended.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

fn options() -> JobWorkerOptions {
    JobWorkerOptions {
        retry_pause: Duration::ZERO,
        poll_interval: Duration::from_millis(5),
        ..JobWorkerOptions::default()
    }
}

/// Runs jobs until so many are as `until` says.
async fn run_until<Fut>(
    jobs: &PostgresJobs,
    options: JobWorkerOptions,
    handler: impl Fn(ClaimedJob) -> Fut,
    until: JobCounts,
) where
    Fut: Future<Output = Result<(), BoxError>>,
{
    let reached = async {
        while jobs.counts(QUEUE).await.expect("counts") != until {
            tokio::task::yield_now().await;
        }
    };
    let ran = tokio::time::timeout(DEADLINE, jobs.run(QUEUE, options, handler, reached));
    ran.await.unwrap_or_else(|_| panic!("never {until:?}"));
}

fn text(job: &ClaimedJob) -> String {
    String::from_utf8(job.job.value.clone().unwrap_or_default()).expect("text")
}

const fn counts(ready: u64, done: u64, dead: u64) -> JobCounts {
    JobCounts { ready, done, dead }
}

#[tokio::test]
async fn records_become_jobs_once_though_the_database_crashes_and_offsets_are_reset() {
    let mut postgres = Postgres::create();
    let jobs = postgres.ready().await;
    let broker = broker(2, &[(Some("a"), "1"), (Some("b"), "2"), (Some("a"), "3")]).await;
    postgres.stop();
    let route = || Route::<Batch, _>::new(Enqueue::new(jobs.clone(), QUEUE));
    let metrics = Metrics::default();
    let app = broker.app(GROUP).topic(TOPIC, route().layer(metrics.clone()));
    let shutdown = async {
        // It tries while the database is away, and commits nothing.
        while metrics.read().failed < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!(broker.lag(GROUP, TOPIC).await, 3);
        postgres.start();
        drained(&broker, GROUP, TOPIC).await;
    };
    ticking(&broker, Box::pin(app.run(shutdown))).await.expect("the app runs");
    assert_eq!(jobs.counts(QUEUE).await.expect("counts"), counts(3, 0, 0));

    // Another group reads the same records, some of which are done.
    let handled: Mutex<Vec<String>> = Mutex::default();
    let handler = async |job: ClaimedJob| {
        assert_eq!((&*job.job.queue, &*job.job.id.topic, job.attempt), (QUEUE, TOPIC, 1));
        handled.lock().expect("a lock").push(text(&job));
        Ok(())
    };
    run_until(&jobs, options(), handler, counts(0, 3, 0)).await;
    handled.lock().expect("a lock").sort();
    assert_eq!(*handled.lock().expect("a lock"), ["1", "2", "3"]);
    broker.produce_all(TOPIC, &[(None, "4")]).await;
    let app = broker.app("again").topic(TOPIC, route());
    app.run(drained(&broker, "again", TOPIC)).await.expect("the app runs");
    assert_eq!(jobs.counts(QUEUE).await.expect("counts"), counts(1, 3, 0));
    assert_eq!(jobs.forget_done(QUEUE, Duration::ZERO).await.expect("they go"), 3);
}

fn job(offset: i64, value: &str) -> Job {
    Job {
        queue: QUEUE.into(),
        id: JobId { topic: TOPIC.to_owned(), partition: 0, offset, timestamp: 1 },
        key: None,
        value: Some(value.into()),
        headers: vec![(b"a".to_vec(), Some(b"1".to_vec())), (b"\0".to_vec(), None)],
    }
}

#[tokio::test]
async fn jobs_are_tried_again_and_those_that_never_succeed_are_dead() {
    let postgres = Postgres::create();
    let jobs = postgres.ready().await;
    let all = ["flaky", "broken", "panics", "hopeless", "fine"];
    let all: Vec<Job> = (0..).zip(all).map(|(offset, value)| job(offset, value)).collect();
    assert_eq!(jobs.insert(all.clone()).await.expect("they are inserted"), 5);
    // One of them is another, as its topic was made anew.
    let mut again = all.clone();
    again[4].id.timestamp = 2;
    assert_eq!(jobs.insert(again).await.expect("one is inserted"), 1);

    let calls = AtomicU32::new(0);
    let handler = async |job: ClaimedJob| {
        calls.fetch_add(1, Ordering::Relaxed);
        assert_eq!(job.job.headers, all[0].headers);
        match text(&job).as_str() {
            "flaky" if job.attempt < 3 => Err("not yet".into()),
            "broken" => Err("a \0 in its text".into()),
            "panics" => panic!("it panics"),
            "hopeless" => Err(Failure::permanent("no use").into()),
            _ => Ok(()),
        }
    };
    let options = JobWorkerOptions { attempts_max: 3, ..options() };
    run_until(&jobs, options, handler, counts(0, 3, 3)).await;
    assert_eq!(calls.load(Ordering::Relaxed), 3 + 3 + 3 + 1 + 2);
    assert_eq!(jobs.revive_dead(QUEUE).await.expect("they live"), 3);
    run_until(&jobs, options, async |_job| Ok(()), counts(0, 6, 0)).await;
}

#[tokio::test]
async fn a_job_whose_worker_ends_is_run_by_another_and_workers_share_a_queue() {
    let postgres = Postgres::create();
    let jobs = postgres.ready().await;
    jobs.insert(vec![job(0, "long")]).await.expect("it is inserted");
    let options = JobWorkerOptions { visibility_timeout: Duration::from_millis(100), ..options() };
    // This worker is dropped while its handler runs, as when its process is killed.
    let started = tokio::sync::Notify::new();
    let never = async |_job| {
        started.notify_one();
        std::future::pending().await
    };
    tokio::select! {
        () = jobs.run(QUEUE, options, never, std::future::pending()) => unreachable!("it runs"),
        () = started.notified() => {}
    }
    assert_eq!(jobs.counts(QUEUE).await.expect("counts"), counts(1, 0, 0));
    // The next one hangs as well, is cancelled, and succeeds then.
    let handler = async |job: ClaimedJob| match job.attempt {
        2 => std::future::pending().await,
        _ => Ok(()),
    };
    run_until(&jobs, options, handler, counts(0, 1, 0)).await;

    let many = (1..=300).map(|offset| job(offset, "short")).collect();
    jobs.insert(many).await.expect("they are inserted");
    let seen = Mutex::new(Vec::new());
    let handler = async |job: ClaimedJob| {
        seen.lock().expect("a lock").push(job.job.id.offset);
        Ok(())
    };
    let other = postgres.jobs();
    let plenty = self::options();
    tokio::join!(
        run_until(&jobs, plenty, &handler, counts(0, 301, 0)),
        run_until(&other, plenty, &handler, counts(0, 301, 0)),
    );
    let mut seen = seen.into_inner().expect("a lock");
    seen.sort_unstable();
    assert_eq!(seen, Vec::from_iter(1..=300));
}
