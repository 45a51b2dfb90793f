//! What requests show of a store and of a database that are away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    Availability, Error, Measured, ObjectKey, Postgres, Sequencer, Service, Settings, Store,
};
use tokio_postgres::NoTls;

use crate::postgres_server::Server;
use crate::s3_server::{Fate, S3Server, SLOW_DOWN};

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[tokio::test]
async fn requests_to_a_store_are_counted_and_show_whether_it_answers() {
    let server = S3Server::start().await;
    let service = Service::ObjectStore { bucket: "records".into(), endpoint: None };
    let availability = Arc::new(Availability::of(service));
    let store = Measured::new(Arc::new(server.bucket()), availability.clone());
    let metrics = store.metrics().clone();
    let (first, second) = (ObjectKey::fresh(), ObjectKey::fresh());
    store.put(first, Bytes::from_static(b"seven b")).await.unwrap();
    assert_eq!(store.get(first, 0..4).await.unwrap(), "seve");
    assert_eq!((metrics.put_durations.read().count, read(&metrics.put_bytes)), (1, 7));
    assert_eq!((metrics.get_durations.read().count, read(&metrics.get_bytes)), (1, 4));

    // A disk that is full: the store still serves reads, which end no outage of PUTs.
    server.always(SLOW_DOWN);
    let put = store.put(second, Bytes::from_static(b"a")).await;
    assert!(matches!(put, Err(Error::StoreAway(_))), "{put:?}");
    server.always(Fate::Served);
    store.get(first, 0..4).await.unwrap();
    assert!(availability.away_for().is_some());
    assert_eq!((read(&metrics.put_failures), read(&metrics.get_failures)), (1, 0));

    // The probe puts an object of its own, and leaves nothing.
    tokio::select! {
        () = store.probe() => {}
        () = async { while availability.away_for().is_some() || server.keys() != [first] {
            tokio::task::yield_now().await;
        }} => {}
    }
    assert_eq!((metrics.put_durations.read().count, read(&metrics.deleted)), (1, 0));
    store.delete(&[first]).await.unwrap();
    assert_eq!(read(&metrics.deleted), 1);
    assert_eq!(store.get(first, 0..4).await, Err(Error::ObjectMissing(first)));
    assert!(availability.away_for().is_none(), "an object that is missing is an answer");
}

#[tokio::test]
async fn requests_to_a_database_are_counted_and_show_whether_it_answers() {
    let server = Server::start();
    let postgres = Postgres::connect(&server.database().await).await.unwrap();
    let database = postgres.database();
    postgres.topics().await.unwrap();
    assert_eq!((database.failures(), database.connections()), (0, 0));
    server.halt();
    let answer = postgres.topics().await;
    assert!(matches!(answer, Err(Error::SequencerAway(_))), "{answer:?}");
    assert_eq!((database.failures(), database.connections()), (1, 0));
    assert!(database.availability().away_for().is_some());
    server.go_on();
    // The first request may find the connection that was lost.
    while postgres.topics().await.is_err() {}
    assert!(database.availability().away_for().is_none());
}

#[tokio::test]
async fn statements_that_wait_for_a_lock_end_with_their_requests() {
    let server = Server::start();
    let settings = server.database().await;
    let settings = Settings { timeout: Duration::from_millis(200), ..settings };
    let postgres = Postgres::connect(&settings).await.unwrap();
    let (client, traffic) = tokio_postgres::connect(&settings.connection, NoTls).await.unwrap();
    tokio::spawn(traffic);
    client.batch_execute("begin; lock table moldau.topics").await.unwrap();
    for _ in 0..20 {
        let answer = postgres.topics().await;
        assert!(matches!(answer, Err(Error::SequencerAway(_))), "{answer:?}");
    }
    let waiting = "select count(*) from pg_locks where not granted";
    let all_end = async {
        while client.query_one(waiting, &[]).await.unwrap().get::<_, i64>(0) > 0 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), all_end).await.expect("none waits for ever");
    client.batch_execute("rollback").await.unwrap();
    assert!(postgres.topics().await.unwrap().is_empty());
}
