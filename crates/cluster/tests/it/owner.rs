//! Which cluster a prefix of a bucket belongs to.

use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    Answer, BatchEntry, Bucket, BucketSettings, Commit, Error, Frames, LogId, ObjectKey, Postgres,
    Sequencer, Store, Topic, check, garbage,
};
use uuid::Uuid;

use crate::batches::batch;
use crate::postgres_server::{self, Server};
use crate::s3_server::{Fate, S3Server, SLOW_DOWN};

/// The object that names the owner.
const MARKER: &str = "cluster/objects/moldau-cluster";

/// A database with the schema.
async fn database(server: &Server) -> Postgres {
    Postgres::connect(&server.database().await).await.unwrap()
}

/// Puts an object, and commits it.
pub(crate) async fn put_record(postgres: &Postgres, bucket: &Bucket) -> ObjectKey {
    let log = LogId { topic: Uuid::from_u128(1), partition: 0 };
    let topic = Topic { id: log.topic, name: "topic".into(), partitions: 1 };
    postgres.create_topic(&topic).await.unwrap();
    let key = ObjectKey::of_generation(postgres.generation().await.unwrap());
    bucket.put(key, Bytes::from_static(b"batches")).await.unwrap();
    let batch = batch(log, 1, 0, 1);
    let entry = BatchEntry {
        log,
        leader_epoch: batch.leader_epoch,
        position: 0,
        size: 7,
        offsets_count: batch.offsets_count,
        max_timestamp: batch.max_timestamp,
        producer: batch.producer,
        part: batch.part,
    };
    postgres.commit(&Commit { key, batches: vec![entry] }).await.unwrap();
    key
}

/// A collector that believes that all objects of its prefix are of its cluster.
async fn collect(postgres: &Postgres, bucket: &Bucket) {
    garbage::collect(postgres, bucket).await.unwrap();
    let mut last = None;
    loop {
        let orphans = garbage::collect_orphans(postgres, bucket, last, Duration::ZERO).await;
        last = orphans.unwrap().last;
        if last.is_none() {
            return;
        }
    }
}

fn is_owned_by_another(claimed: &Answer<()>) -> bool {
    matches!(claimed, Err(Error::StoreOwned { .. }))
}

/// A second database with the prefix of a live cluster deleted all of that cluster's objects.
#[tokio::test]
async fn a_prefix_is_refused_to_the_database_of_another_cluster() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, second, bucket) =
        (database(&databases).await, database(&databases).await, server.bucket());
    first.claim_store(&bucket).await.unwrap();
    let key = put_record(&first, &bucket).await;
    let ids = (first.cluster_id().await.unwrap(), second.cluster_id().await.unwrap());
    let refused = second.claim_store(&bucket).await;
    let (owner, own) = ids;
    let (bucket_name, prefix) = ("records".into(), "cluster/objects".into());
    let expected = Error::StoreOwned { bucket: bucket_name, prefix, owner, own };
    assert_eq!(refused, Err(expected));
    let told = refused.unwrap_err().to_string();
    for part in ["records", "cluster/objects", &owner.to_string(), &own.to_string()] {
        assert!(told.contains(part), "{told}");
    }
    assert_eq!(server.keys(), [key]);
    // It has not noted the wrong place: with a place of its own it can begin.
    let settings = BucketSettings { prefix: "other".into(), ..server.settings() };
    let other = Bucket::open(&settings).unwrap();
    second.claim_store(&other).await.unwrap();
    let elsewhere = second.claim_store(&bucket).await;
    assert!(matches!(elsewhere, Err(Error::OtherStore { .. })), "{elsewhere:?}");
    // The first cluster goes on.
    first.claim_store(&bucket).await.unwrap();
}

#[tokio::test]
async fn a_collector_keeps_the_object_that_names_the_owner() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, second, bucket) =
        (database(&databases).await, database(&databases).await, server.bucket());
    first.claim_store(&bucket).await.unwrap();
    let key = put_record(&first, &bucket).await;
    bucket.put(ObjectKey::fresh(), Bytes::from_static(b"orphan")).await.unwrap();
    collect(&first, &bucket).await;
    assert_eq!(server.keys(), [key]);
    let mut findings = Vec::new();
    let checked = check(&first, &bucket, |finding| findings.push(finding)).await.unwrap();
    assert!(findings.is_empty() && checked.listed == 1, "{findings:?}");
    assert!(is_owned_by_another(&second.claim_store(&bucket).await));
}

#[tokio::test]
async fn a_prefix_without_an_owner_is_for_the_database_that_knows_its_objects() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, second, bucket) =
        (database(&databases).await, database(&databases).await, server.bucket());
    // A cluster of a version that named no owner.
    let key = put_record(&first, &bucket).await;
    let refused = second.claim_store(&bucket).await;
    let own = second.cluster_id().await.unwrap();
    let (name, prefix) = ("records".into(), "cluster/objects".into());
    assert_eq!(refused, Err(Error::StoreInUse { bucket: name, prefix, own }));
    first.claim_store(&bucket).await.unwrap();
    assert!(is_owned_by_another(&second.claim_store(&bucket).await));
    assert_eq!(server.keys(), [key]);
}

/// What a collector has condemned is in its database too.
#[tokio::test]
async fn dead_objects_of_a_database_prove_nothing() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, second, bucket) =
        (database(&databases).await, database(&databases).await, server.bucket());
    let key = put_record(&first, &bucket).await;
    assert_eq!(second.condemn(&[key]).await.unwrap(), [key]);
    let refused = second.claim_store(&bucket).await;
    assert!(matches!(refused, Err(Error::StoreInUse { .. })), "{refused:?}");
}

#[tokio::test]
async fn files_of_others_do_not_keep_a_cluster_from_a_prefix() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let settings = BucketSettings { prefix: String::new(), ..server.settings() };
    let whole = Bucket::open(&settings).unwrap();
    // The objects of a cluster in a folder are not those of the bucket itself.
    let (first, second, bucket) =
        (database(&databases).await, database(&databases).await, server.bucket());
    first.claim_store(&bucket).await.unwrap();
    put_record(&first, &bucket).await;
    second.claim_store(&whole).await.unwrap();
}

#[tokio::test]
async fn of_two_databases_that_claim_a_prefix_at_a_time_one_gets_it() {
    for _ in 0..8 {
        let (databases, server) = (postgres_server::shared(), S3Server::start().await);
        let (first, second) = (database(&databases).await, database(&databases).await);
        let (bucket, other) = (server.bucket(), server.bucket());
        let claimed = tokio::join!(first.claim_store(&bucket), second.claim_store(&other));
        match claimed {
            (Ok(()), refused) | (refused, Ok(())) if is_owned_by_another(&refused) => {}
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn brokers_of_one_cluster_claim_its_prefix_at_a_time_whatever_becomes_of_their_requests() {
    for seed in 0..8 {
        let (databases, server) = (postgres_server::shared(), S3Server::start().await);
        let first = database(&databases).await;
        server.storm(seed);
        let (bucket, other) = (server.bucket(), server.bucket());
        let begin = async |bucket: &Bucket| {
            first.claim_store(bucket).await?;
            bucket.verify().await
        };
        let claimed = tokio::join!(begin(&bucket), begin(&other));
        assert_eq!(claimed, (Ok(()), Ok(())), "seed {seed}");
    }
}

#[tokio::test]
async fn a_claim_whose_answer_is_lost_is_that_of_the_same_cluster() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, bucket) = (database(&databases).await, server.bucket());
    // The owner is read, objects are listed, and the owner is written.
    server.next([SLOW_DOWN, Fate::Served, Fate::Served, Fate::Silent]);
    first.claim_store(&bucket).await.unwrap();
    assert!(is_owned_by_another(&database(&databases).await.claim_store(&bucket).await));
}

/// Each of them deleted what only the other one knew.
#[tokio::test]
async fn a_restored_database_takes_the_objects_over_from_the_older_one() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let settings = databases.database().await;
    let (old, old_bucket) = (Postgres::connect(&settings).await.unwrap(), server.bucket());
    old.claim_store(&old_bucket).await.unwrap();
    let key = put_record(&old, &old_bucket).await;
    let restored = Postgres::connect(&databases.restored(&settings)).await.unwrap();
    let bucket = server.bucket();
    assert_eq!(restored.claim_store(&bucket).await, Err(Error::DatabaseCopied));
    old.claim_store(&old_bucket).await.unwrap();

    // The answer of the first attempt is lost.
    server.next([Fate::Served, Fate::Silent]);
    assert!(restored.take_over_store(&bucket).await.unwrap());
    restored.claim_store(&bucket).await.unwrap();
    // Once more, nothing changes for brokers that run.
    assert!(!restored.take_over_store(&server.bucket()).await.unwrap());
    assert_eq!(bucket.expect_owned().await, Ok(()));
    let later = ObjectKey::fresh();
    bucket.put(later, Bytes::from_static(b"later")).await.unwrap();
    // A broker that runs on, and one that starts.
    let taken_over = |answer: &Answer<()>| matches!(answer, Err(Error::StoreTakenOver { .. }));
    assert!(taken_over(&old_bucket.expect_owned().await));
    let collected = garbage::collect_orphans(&old, &old_bucket, None, Duration::ZERO).await;
    assert!(taken_over(&collected.map(drop)));
    assert!(taken_over(&old.claim_store(&server.bucket()).await));
    let mut kept = server.keys();
    kept.sort_unstable();
    let mut all = [key, later];
    all.sort_unstable();
    assert_eq!(kept, all);
    // The owner collects as ever.
    collect(&restored, &bucket).await;
    assert_eq!(server.keys(), [key]);

    // Back to the older one.
    assert!(old.take_over_store(&server.bucket()).await.unwrap());
    old.claim_store(&server.bucket()).await.unwrap();
    assert!(taken_over(&restored.claim_store(&server.bucket()).await));
}

#[tokio::test]
async fn a_database_takes_no_objects_of_another_cluster_over() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, second) = (database(&databases).await, database(&databases).await);
    first.claim_store(&server.bucket()).await.unwrap();
    let refused = second.take_over_store(&server.bucket()).await.map(drop);
    assert!(is_owned_by_another(&refused));
    first.claim_store(&server.bucket()).await.unwrap();
    put_record(&first, &server.bucket()).await;
    // Nor those of a cluster that named no owner.
    server.replace(MARKER, None);
    let refused = second.take_over_store(&server.bucket()).await;
    assert!(matches!(refused, Err(Error::StoreInUse { .. })), "{refused:?}");
    // An empty prefix is that of whoever asks.
    let settings = BucketSettings { prefix: "other".into(), ..server.settings() };
    let other = Bucket::open(&settings).unwrap();
    assert!(second.take_over_store(&other).await.unwrap());
    second.claim_store(&other).await.unwrap();
}

/// A store at a wrong address took the records of its broker, which no other broker could read.
#[tokio::test]
async fn an_empty_store_is_refused_to_a_database_that_knows_objects() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, other) = (database(&databases).await, S3Server::start().await);
    first.claim_store(&server.bucket()).await.unwrap();
    put_record(&first, &server.bucket()).await;
    let is_empty = |error| matches!(error, Some(Error::StoreEmpty { .. }));
    assert!(is_empty(first.claim_store(&other.bucket()).await.err()));
    assert!(is_empty(first.take_over_store(&other.bucket()).await.err()));
    first.claim_store(&server.bucket()).await.unwrap();
}

/// A backup may be of the time before a database was named.
#[tokio::test]
async fn an_owner_of_a_version_before_gets_the_name_of_its_database() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let settings = databases.database().await;
    let old = Postgres::connect(&settings).await.unwrap();
    old.claim_store(&server.bucket()).await.unwrap();
    put_record(&old, &server.bucket()).await;
    let id = old.cluster_id().await.unwrap();
    server.replace(MARKER, Some(format!("{id}\n").into()));
    old.claim_store(&server.bucket()).await.unwrap();
    let restored = Postgres::connect(&databases.restored(&settings)).await.unwrap();
    assert_eq!(restored.claim_store(&server.bucket()).await, Err(Error::DatabaseCopied));
}

#[tokio::test]
async fn objects_are_deleted_only_while_their_owner_is_named() {
    let (databases, server) = (postgres_server::shared(), S3Server::start().await);
    let (first, bucket) = (database(&databases).await, server.bucket());
    first.claim_store(&bucket).await.unwrap();
    let key = put_record(&first, &bucket).await;
    server.replace(MARKER, None);
    let deleted = bucket.delete(&[key]).await;
    assert!(matches!(deleted, Err(Error::StoreRefused(_))), "{deleted:?}");
    assert_eq!(server.keys(), [key]);
}
