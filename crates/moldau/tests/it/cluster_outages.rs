//! What a broker of a cluster shows of services that are away and of objects that are lost.

use moldau_client::{Fetcher, FetcherOptions, ProducerOptions, Start};
use moldau_cluster::Store;
use tokio::task::yield_now;

use crate::cluster::s3_server::SLOW_DOWN;
use crate::cluster::{PASSWORD, Services};
use crate::traffic::{Numbered, block_on, connect, soon};
use crate::world::Process;

/// Waits for what the broker answers to a probe.
async fn until_ready(broker: &Process, part: &str) {
    let answered = async {
        while !broker.page("/readyz").contains(part) {
            yield_now().await;
        }
    };
    soon(part, answered).await;
}

/// Lines of the log with this part.
fn count(said: &str, part: &str) -> usize {
    said.lines().filter(|line| line.contains(part)).count()
}

#[test]
fn an_outage_of_a_service_is_logged_once_and_the_broker_is_not_ready_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start_alone(dir.path()).await;
        let broker = services.broker_with(1, &["--log-level", "info"]).await;
        let cluster = connect(broker.address).await;
        let mut numbered = Numbered::start(&cluster, "numbers", ProducerOptions::default()).await;
        let mut acknowledged = numbered.acknowledged();
        until_ready(&broker, "ready").await;

        services.store.always(SLOW_DOWN);
        numbered.send_one().await;
        until_ready(&broker, "requests to the object store have failed for ").await;
        services.store.calm();
        until_ready(&broker, "ready\n").await;

        services.database.halt();
        numbered.send_one().await;
        until_ready(&broker, "requests to PostgreSQL have failed for ").await;
        services.database.go_on();
        until_ready(&broker, "ready\n").await;
        let all = acknowledged.wait_for(|count| *count == 2);
        soon("answers to all records", all).await.unwrap();

        drop((numbered, cluster));
        let ended = tokio::task::spawn_blocking(move || broker.terminate_with_stderr()).await;
        let (status, said) = ended.unwrap();
        assert!(status.success(), "{said}");
        for service in ["the object store", "PostgreSQL"] {
            assert_eq!(count(&said, &format!("WARN requests to {service} fail")), 1, "{said}");
            let again = format!("INFO requests to {service} succeed again");
            assert_eq!(count(&said, &again), 1, "{said}");
        }
        assert_eq!((count(&said, " WARN "), count(&said, " ERROR ")), (2, 0), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
    });
}

/// It waited for half a minute without a word.
#[test]
fn a_broker_whose_store_does_not_answer_yet_says_so_and_joins_later() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        services.store.always(SLOW_DOWN);
        let asked = async {
            while services.store.requests() == 0 {
                yield_now().await;
            }
            services.store.calm();
        };
        let (broker, ()) = tokio::join!(services.broker(1), soon("a request", asked));
        until_ready(&broker, "ready\n").await;
        let ended = tokio::task::spawn_blocking(move || broker.terminate_with_stderr()).await;
        let (status, said) = ended.unwrap();
        assert!(status.success(), "{said}");
        assert_eq!(count(&said, "WARN a service does not answer; tries again"), 1, "{said}");
    });
}

#[test]
fn a_lost_object_is_logged_with_its_topic_and_partition() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let broker = services.broker(1).await;
        let cluster = connect(broker.address).await;
        let mut numbered = Numbered::start(&cluster, "numbers", ProducerOptions::default()).await;
        let mut acknowledged = numbered.acknowledged();
        numbered.send_one().await;
        soon("an answer", acknowledged.wait_for(|count| *count == 1)).await.unwrap();
        let keys = services.store.keys();
        services.store.bucket().delete(&keys).await.unwrap();

        let mut fetcher = Fetcher::start(&cluster, FetcherOptions::default());
        soon("assigning", fetcher.assign("numbers", 0, Start::Earliest)).await.unwrap();
        let seen = async {
            while broker.metric("moldau_cluster_damaged_reads_total") == 0.0 {
                yield_now().await;
            }
        };
        tokio::select! {
            () = soon("a read of the lost object", seen) => {}
            // The client tries again for as long as nobody gives it up.
            fetched = fetcher.next() => drop(fetched),
        }
        drop((fetcher, numbered, cluster));
        let ended = tokio::task::spawn_blocking(move || broker.terminate_with_stderr()).await;
        let (_, said) = ended.unwrap();
        let damage = said.lines().find(|line| line.contains("ERROR failed to read a log"));
        let damage = damage.unwrap_or_else(|| panic!("{said}"));
        assert!(damage.contains("topic=\"numbers\"") && damage.contains("partition=0"), "{damage}");
        let is_named = keys.iter().any(|key| damage.contains(&key.to_string()));
        assert!(is_named && damage.contains("topic_id="), "{damage}");
    });
}
