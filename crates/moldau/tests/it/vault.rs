//! Record encryption through outages of a real Vault, whose binary `MOLDAU_VAULT` names.

#[expect(dead_code, reason = "the tests of the crate `encryption` need more of it")]
#[path = "../../../encryption/tests/it/vault/server.rs"]
mod server;

use std::net::SocketAddr;
use std::path::Path;

use moldau_client::{Cluster, Fetcher, FetcherOptions, ProducerOptions, Start};
use tokio::time::{Instant, MissedTickBehavior, interval};

use self::server::Server;
use crate::encryption::proxy_with_filter;
use crate::ledger::Repeats;
use crate::traffic::{Numbered, PATIENCE, Reader, TICK, block_on, connect, soon};
use crate::world::Process;

/// Records that are there before the outage.
const RECORDS_BEFORE: u64 = 500;

/// Records to the topic in use that must go through while Vault is out.
const RECORDS_WARM: u64 = 2_000;

/// Records to a topic whose key was never asked for.
const RECORDS_COLD: u64 = 300;

/// Records to the topic in use in one tick.
const RECORDS_PER_TICK: u64 = 32;

/// A Vault with keys for the topics `warm` and `cold`, and its token in a file.
fn vault() -> Server {
    let server = Server::start();
    server.admin(&["secrets", "enable", "transit"]);
    for topic in ["warm", "cold"] {
        server.admin(&["write", "-f", &format!("transit/keys/KEK_{topic}")]);
    }
    std::fs::write(server.directory().join("token"), server.root_token()).unwrap();
    server
}

/// A proxy that takes its keys from Vault and logs all there is.
fn proxy(dir: &Path, server: &Server, upstream: SocketAddr) -> Process {
    let kms = format!(
        "kms: {{vault: {{url: \"{}/v1/transit\", auth: {{token_file: \"{}\"}}}}}}",
        server.address(),
        server.directory().join("token").display()
    );
    proxy_with_filter(dir, upstream, &[&kms])
}

/// Partitions that a proxy failed because the service did not answer.
fn failed_by_service(proxy: &Process, metric: &str) -> f64 {
    let labels = "{virtual_cluster=\"main\",cause=\"service\"}";
    proxy.metric(&format!("moldau_proxy_{metric}_total{labels}"))
}

/// Reads so many records of a topic.
async fn read(cluster: &Cluster, topic: &str, count: u64) {
    let mut fetcher = Fetcher::start(cluster, FetcherOptions::default());
    for partition in 0..3 {
        fetcher.assign(topic, partition, Start::Earliest).await.unwrap();
    }
    let mut found = 0;
    while found < count {
        let fetched = soon("a fetch", fetcher.next()).await.unwrap();
        let batches = fetched.batches().map(|batch| batch.unwrap().records_count());
        found += batches.map(|records| u64::try_from(records).unwrap()).sum::<u64>();
    }
}

/// Topics in use see nothing of an outage; others fail with errors that clients try again, until
/// it is over.
fn assert_outage_is_survived(begin: fn(&mut Server), end: fn(&mut Server)) {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(&dir.path().join("data"), &[]);
    let mut server = vault();
    let in_use = proxy(dir.path(), &server, broker.address);
    block_on(async {
        let (one, other) = (connect(in_use.address).await, connect(in_use.address).await);
        let mut warm = Numbered::start(&one, "warm", ProducerOptions::default()).await;
        let mut cold = Numbered::start(&other, "cold", ProducerOptions::default()).await;
        let mut reader = Reader::start(&warm).await;
        for _ in 0..RECORDS_BEFORE {
            warm.send_one().await;
        }
        warm.flush().await;
        reader.read_to_end().await;

        begin(&mut server);
        // It has no key of its own yet.
        let fresh = proxy(dir.path(), &server, broker.address);
        let cold_reader = connect(fresh.address).await;
        let (cold_read, warm_count) =
            (read(&cold_reader, "warm", RECORDS_BEFORE), warm.acknowledged());
        tokio::pin!(cold_read);
        for _ in 0..RECORDS_COLD {
            cold.send_one().await;
        }
        let deadline = Instant::now() + PATIENCE;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        loop {
            tokio::select! {
                _ = ticks.tick() => {}
                () = reader.read_some() => continue,
                () = &mut cold_read => panic!("a record was opened without its key"),
            }
            for _ in 0..RECORDS_PER_TICK {
                warm.send_one().await;
            }
            let went_through = *warm_count.borrow() >= RECORDS_BEFORE + RECORDS_WARM;
            if went_through
                && failed_by_service(&in_use, "partitions_not_sealed") > 0.0
                && failed_by_service(&fresh, "partitions_not_opened") > 0.0
            {
                break;
            }
            assert!(Instant::now() < deadline, "{} went through", *warm_count.borrow());
        }
        assert_eq!(*cold.acknowledged().borrow(), 0);

        end(&mut server);
        soon("the records of before", cold_read).await;
        assert_eq!(cold.verify(Repeats::Never).await, (RECORDS_COLD, Vec::new()));
        warm.flush().await;
        reader.read_to_end().await;
        assert_eq!(failed_by_service(&in_use, "partitions_not_opened"), 0.0);
        assert_eq!(warm.into_ledger().into_problems(Repeats::Never), Vec::<String>::new());
        assert_hides_token(fresh, &server);
    });
    assert_hides_token(in_use, &server);
}

fn assert_hides_token(proxy: Process, server: &Server) {
    let (_, said) = proxy.terminate_with_stderr();
    assert!(said.contains("service does not answer"), "the outage is told of: {said}");
    assert!(!said.contains(server.root_token()));
}

#[test]
fn hanging_vault_does_not_affect_active_topics() {
    assert_outage_is_survived(|server| server.signal("STOP"), |server| server.signal("CONT"));
}

#[test]
fn killed_and_sealed_vault_does_not_affect_active_topics() {
    assert_outage_is_survived(Server::stop, |server| {
        server.restart_sealed();
        server.unseal();
    });
}
