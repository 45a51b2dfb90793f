//! A bucket of S3: the rules of a store, lost answers, deadlines, and refusals.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use moldau_cluster::{
    Answer, Bucket, BucketSettings, Credentials, Error, LogId, Memory, ObjectKey, Outcome,
    Sequencer, Store, StoreRefusal, Topic, Writer, WriterOptions,
};
use uuid::Uuid;

use crate::batches::batch;
use crate::faults::{Faults, FaultyStore};
use crate::s3_server::{Fate, S3Server, SLOW_DOWN};

/// Runs the body against a bucket and the store in memory of the simulation.
macro_rules! both {
    ($name:ident, $body:expr) => {
        #[tokio::test]
        async fn $name() {
            let faults = Faults::new(0);
            faults.end();
            $body(FaultyStore::new(faults)).await;
            $body(S3Server::start().await.bucket()).await;
        }
    };
}

/// Laboratories kill it, and start it again.
#[tokio::test]
async fn a_server_with_a_directory_keeps_objects_beyond_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let start = || S3Server::start_on(([127, 0, 0, 1], 0).into(), directory.path().to_owned());
    let (stays, goes) = (ObjectKey::fresh(), ObjectKey::fresh());
    let server = start().await;
    let bucket = server.bucket();
    for key in [stays, goes] {
        bucket.put(key, Bytes::from_static(b"abc")).await.unwrap();
    }
    bucket.delete(&[goes]).await.unwrap();
    drop(server);
    let server = start().await;
    assert_eq!(server.keys(), [stays]);
    assert_eq!(server.bucket().get(stays, 1..3).await.unwrap(), "bc");
}

both!(an_object_is_written_once_and_read_in_ranges, ranges);
async fn ranges(store: impl Store) {
    let key = ObjectKey::fresh();
    store.put(key, Bytes::from_static(b"0123456789")).await.unwrap();
    let again = store.put(key, Bytes::from_static(b"other")).await;
    assert_eq!(again, Err(Error::ObjectExists(key)));
    for (range, expected) in
        [(0..10, "0123456789"), (3..5, "34"), (8..99, "89"), (10..12, ""), (99..100, "")]
    {
        assert_eq!(store.get(key, range.clone()).await.unwrap(), expected, "{range:?}");
    }
    let other = ObjectKey::fresh();
    assert_eq!(store.get(other, 0..1).await, Err(Error::ObjectMissing(other)));
}

both!(objects_are_deleted_whether_they_exist_or_not, deletions);
async fn deletions(store: impl Store) {
    let keys = [0, 1, 2].map(|_| ObjectKey::fresh());
    for key in &keys[..2] {
        store.put(*key, Bytes::from_static(b"batches")).await.unwrap();
    }
    store.delete(&keys[1..]).await.unwrap();
    store.delete(&keys[1..]).await.unwrap();
    store.delete(&[]).await.unwrap();
    assert_eq!(store.get(keys[1], 0..1).await, Err(Error::ObjectMissing(keys[1])));
    assert_eq!(store.list(None, Duration::ZERO, 9).await.unwrap(), [keys[0]]);
}

both!(a_list_goes_on_behind_a_key_in_order, lists);
async fn lists(store: impl Store) {
    let mut keys: Vec<_> = (0..12).map(|_| ObjectKey::fresh()).collect();
    for key in &keys {
        store.put(*key, Bytes::from_static(b"batches")).await.unwrap();
    }
    keys.sort();
    assert_eq!(store.list(None, Duration::ZERO, 99).await.unwrap(), keys);
    assert_eq!(store.list(None, Duration::ZERO, 7).await.unwrap(), keys[..7]);
    assert_eq!(store.list(Some(keys[6]), Duration::ZERO, 99).await.unwrap(), keys[7..]);
    assert_eq!(store.list(Some(keys[11]), Duration::ZERO, 99).await.unwrap(), []);
}

#[tokio::test]
async fn a_list_leaves_out_young_objects() {
    let server = S3Server::start().await;
    let (bucket, key) = (server.bucket(), ObjectKey::fresh());
    bucket.put(key, Bytes::from_static(b"batches")).await.unwrap();
    assert_eq!(bucket.list(None, Duration::from_secs(3_600), 9).await.unwrap(), []);
    server.list_stale();
    bucket.delete(&[key]).await.unwrap();
    assert_eq!(bucket.list(None, Duration::ZERO, 9).await.unwrap(), [key]);
    assert_eq!(bucket.list(None, Duration::ZERO, 9).await.unwrap(), []);
}

#[tokio::test]
async fn a_put_whose_answer_is_lost_exists_when_it_is_asked_again() {
    let server = S3Server::start().await;
    let (bucket, key) = (server.bucket(), ObjectKey::fresh());
    server.next([Fate::Silent]);
    let put = bucket.put(key, Bytes::from_static(b"first")).await;
    assert!(matches!(put, Err(Error::StoreAway(_))), "{put:?}");
    let again = bucket.put(key, Bytes::from_static(b"second")).await;
    assert_eq!(again, Err(Error::ObjectExists(key)));
    assert_eq!(bucket.get(key, 0..99).await.unwrap(), "first");
}

#[tokio::test]
async fn a_conflict_of_two_puts_does_not_count_as_an_object() {
    let server = S3Server::start().await;
    let (bucket, key) = (server.bucket(), ObjectKey::fresh());
    server.next([Fate::Refused(409, "ConditionalRequestConflict")]);
    let put = bucket.put(key, Bytes::from_static(b"batches")).await;
    assert_eq!(put, Err(Error::StoreAway("409 ConditionalRequestConflict".into())));
    bucket.put(key, Bytes::from_static(b"batches")).await.unwrap();
}

#[tokio::test]
async fn a_writer_appends_once_whatever_becomes_of_its_puts() {
    for fate in [
        Fate::Silent,
        Fate::Lost,
        Fate::Late(Duration::from_millis(30)),
        SLOW_DOWN,
        Fate::Refused(409, "ConditionalRequestConflict"),
    ] {
        let server = S3Server::start().await;
        let memory = Arc::new(Memory::default());
        let log = LogId { topic: Uuid::nil(), partition: 0 };
        let topic = Topic { id: log.topic, name: "topic".into(), partitions: 1 };
        memory.create_topic(&topic).await.unwrap();
        server.next([fate, fate]);
        let options = WriterOptions { collect: Duration::from_millis(10), ..Default::default() };
        let writer =
            Writer::start(memory.clone(), Arc::new(server.bucket()), Arc::default(), options)
                .unwrap();
        let outcomes = writer.append(vec![batch(log, 1, 0, 1)]).unwrap().outcomes().await;
        let appended = Outcome::Appended { base_offset: 0, start_offset: 0 };
        assert_eq!(outcomes, Ok(vec![appended]), "{fate:?}");
        assert_eq!(server.keys().len(), 1, "{fate:?}");
    }
}

#[tokio::test]
async fn requests_that_change_nothing_are_asked_until_there_is_an_answer() {
    let server = S3Server::start().await;
    let (bucket, key) = (server.bucket(), ObjectKey::fresh());
    bucket.put(key, Bytes::from_static(b"batches")).await.unwrap();
    server.next([SLOW_DOWN, Fate::Lost, Fate::Silent]);
    assert_eq!(bucket.get(key, 0..7).await.unwrap(), "batches");
    server.next([Fate::Silent, SLOW_DOWN]);
    assert_eq!(bucket.list(None, Duration::ZERO, 9).await.unwrap(), [key]);
    server.next([SLOW_DOWN, Fate::Silent]);
    bucket.delete(&[key]).await.unwrap();
    assert_eq!(server.keys(), []);
}

#[tokio::test]
async fn a_deadline_bounds_what_is_asked_again() {
    let server = S3Server::start().await;
    let (timeout, deadline) = (Duration::from_millis(50), Duration::from_millis(200));
    let settings = BucketSettings { timeout, deadline, ..server.settings() };
    let (bucket, key) = (Bucket::open(&settings).unwrap(), ObjectKey::fresh());
    server.next([SLOW_DOWN; 100]);
    let got = bucket.get(key, 0..1).await;
    assert_eq!(got, Err(Error::StoreAway("503 SlowDown".into())));
    assert!((2..20).contains(&server.requests()), "{}", server.requests());
    server.calm();
    server.next([Fate::Delayed(Duration::from_secs(3_600))]);
    let put = bucket.put(key, Bytes::from_static(b"batches")).await;
    assert!(matches!(put, Err(Error::StoreAway(_))), "{put:?}");
}

#[tokio::test]
async fn each_refusal_says_what_the_operator_must_change() {
    let server = S3Server::start().await;
    for (fate, expected) in [
        (Fate::Refused(403, "RequestTimeTooSkewed"), StoreRefusal::ClockSkew),
        (Fate::Refused(400, "ExpiredToken"), StoreRefusal::InvalidToken),
        (Fate::Refused(301, "PermanentRedirect"), StoreRefusal::OtherRegion),
        (Fate::Refused(400, "AuthorizationHeaderMalformed"), StoreRefusal::OtherRegion),
        (Fate::Refused(404, "NoSuchBucket"), StoreRefusal::NoBucket),
        (Fate::Refused(400, "InvalidArgument"), StoreRefusal::Other("InvalidArgument".into())),
    ] {
        server.next([fate; 4]);
        refuses_all(&server.bucket(), &expected).await;
    }
    server.next([Fate::Refused(403, "AccessDenied"); 4]);
    let told = refusals(&server.bucket()).await.map(|error| error.unwrap().to_string());
    for (told, action) in told.iter().zip(["PutObject", "GetObject", "ListBucket", "DeleteObject"])
    {
        assert!(told.contains("these keys may not ") && told.contains(action), "{told}");
    }
    server.next([Fate::Refused(501, "NotImplemented")]);
    let put = server.bucket().put(ObjectKey::fresh(), Bytes::new()).await;
    assert_eq!(put, Err(Error::StoreRefused(StoreRefusal::NoConditionalCreate)));
    let other = BucketSettings { bucket: "other".into(), ..server.settings() };
    refuses_all(&Bucket::open(&other).unwrap(), &StoreRefusal::NoBucket).await;
    for (access_key, expected) in [
        ("ACCESS-KEY-OF-TEST", StoreRefusal::WrongSecretKey),
        ("ANOTHER-KEY", StoreRefusal::UnknownAccessKey),
    ] {
        let credentials = Credentials::keys(access_key, "hunter2", None);
        let bucket = Bucket::open(&BucketSettings { credentials, ..server.settings() }).unwrap();
        refuses_all(&bucket, &expected).await;
        assert!(!format!("{bucket:?}").contains("hunter2"));
    }
}

async fn refuses_all(bucket: &Bucket, expected: &StoreRefusal) {
    for error in refusals(bucket).await {
        assert_eq!(error, Some(Error::StoreRefused(expected.clone())));
    }
}

async fn refusals(bucket: &Bucket) -> [Option<Error>; 4] {
    let key = ObjectKey::fresh();
    [
        bucket.put(key, Bytes::from_static(b"batches")).await.err(),
        bucket.get(key, 0..1).await.err(),
        bucket.list(None, Duration::ZERO, 1).await.err(),
        bucket.delete(&[key]).await.err(),
    ]
}

#[tokio::test]
async fn a_bucket_is_verified_with_an_object_that_does_not_stay() {
    let server = S3Server::start().await;
    // Also if the first answer is lost.
    server.next([Fate::Silent, SLOW_DOWN]);
    server.bucket().verify().await.unwrap();
    assert_eq!(server.keys(), []);
}

#[tokio::test]
async fn a_store_that_overwrites_objects_is_refused() {
    let refused = |verified: Answer<()>| match verified {
        Err(Error::StoreRefused(refusal)) => refusal,
        other => panic!("{other:?}"),
    };
    let server = S3Server::start().await;
    server.ignore_conditions();
    assert_eq!(refused(server.bucket().verify().await), StoreRefusal::NoConditionalCreate);
    let other = BucketSettings { bucket: "other".into(), ..server.settings() };
    let other = Bucket::open(&other).unwrap();
    assert_eq!(refused(other.verify().await), StoreRefusal::NoBucket);
}
