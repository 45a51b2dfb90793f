//! Reading without a group.

use std::time::Duration;

use futures_util::TryStreamExt;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Position, Reader, Records};

use crate::world::{DEADLINE, Seen, TOPIC};

async fn world() -> TestBroker {
    let broker = TestBroker::start();
    broker.create_topic(TOPIC, 2).await;
    for second in 0..10 {
        let value = second.to_string();
        broker.produce_at(Duration::from_secs(second), TOPIC, &[(None, &value)]).await;
    }
    broker
}

async fn all(records: Records) -> String {
    let all = records.map_ok(|message| Seen::of(&message).value).try_collect::<Vec<_>>();
    let all = tokio::time::timeout(DEADLINE, all).await.expect("it ends");
    all.expect("it can be read").concat()
}

#[tokio::test]
async fn a_reader_begins_where_it_is_told_and_ends_at_the_end() {
    let broker = world().await;
    let cases = [
        (Position::Earliest, "0123456789"),
        (Position::Latest, ""),
        (Position::Offset(7), "789"),
        (Position::Offset(-5), "0123456789"),
        (Position::Offset(100), ""),
        (Position::Timestamp(3_500), "456789"),
        (Position::Timestamp(60_000), ""),
        (Position::Last(2), "89"),
        (Position::Last(100), "0123456789"),
    ];
    for (position, expected) in cases {
        let reader = Reader::new([broker.address()]).topic(TOPIC, position).until_end();
        assert_eq!(all(reader.open().await.unwrap()).await, expected, "{position:?}");
        let reader = Reader::new([broker.address()]).partition(TOPIC, 0, position).until_end();
        assert_eq!(all(reader.open().await.unwrap()).await, expected, "{position:?}");
        let reader = Reader::new([broker.address()]).partition(TOPIC, 1, position).until_end();
        assert_eq!(all(reader.open().await.unwrap()).await, "", "{position:?}");
    }
}

#[tokio::test]
async fn without_an_end_a_reader_follows_what_is_appended() {
    let broker = world().await;
    let reader = Reader::new([broker.address()]).topic(TOPIC, Position::Last(1));
    let mut records = reader.open().await.unwrap();
    assert_eq!(records.next().await.unwrap().unwrap().value(), Some(b"9".as_slice()));
    broker.produce(TOPIC, None, "10").await;
    assert_eq!(records.next().await.unwrap().unwrap().value(), Some(b"10".as_slice()));
}

#[tokio::test]
async fn a_topic_or_partition_that_does_not_exist_is_refused() {
    let broker = world().await;
    let reader = Reader::new([broker.address()]);
    let topic = reader.clone().topic("none", Position::Earliest).open().await;
    assert!(topic.is_err_and(|error| error.to_string().contains("none")));
    let partition = reader.partition(TOPIC, 7, Position::Earliest).open().await;
    assert!(partition.is_err_and(|error| error.to_string().contains(TOPIC)));
}
