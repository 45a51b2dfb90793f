//! A member of a group that reads, and writes what comes of it in transactions that also commit its
//! offsets, at a broker where a transaction's partitions are added by the batches themselves.

use moldau_client::{
    Cluster, CommittedOffset, Delivery, Error, Fetcher, FetcherOptions, GroupMetadata,
    GroupProtocol, Isolation, Membership, MembershipEvent, MembershipOptions, PartitionHandle,
    Producer, ProducerOptions, Record, Start, TopicPartition,
};
use moldau_protocol::ErrorCode;
use moldau_records::Decompressor;

use crate::traffic::{block_on, connect, create, now_ms, soon};
use crate::world::Process;

struct World {
    cluster: Cluster,
    _broker: Process,
    _dir: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let broker = Process::broker(dir.path(), &[]);
        let cluster = connect(broker.address).await;
        create(&cluster, "orders").await;
        create(&cluster, "invoices").await;
        Self { cluster, _broker: broker, _dir: dir }
    }

    async fn producer(&self) -> Producer {
        let transactional_id = Some("billing".to_owned());
        let options = ProducerOptions { transactional_id, ..ProducerOptions::default() };
        let sink = |_: &Delivery<'_>| {};
        soon("a producer", Producer::start(&self.cluster, options, sink)).await.unwrap()
    }

    async fn member(&self, protocol: GroupProtocol) -> Membership {
        let topics = vec!["orders".to_owned()];
        let options = MembershipOptions { protocol, topics, ..MembershipOptions::default() };
        let joining = Membership::join(&self.cluster, "billing", options);
        let mut member = soon("joining", joining).await.unwrap();
        let event = soon("partitions", member.next()).await.unwrap();
        assert_eq!(event, MembershipEvent::Assigned(vec![orders()]));
        member
    }

    /// The values of committed invoices up to the one that ends with a full stop.
    async fn invoices(&self) -> Vec<String> {
        let isolation = Isolation::ReadCommitted;
        let options = FetcherOptions { isolation, ..FetcherOptions::default() };
        let mut fetcher = Fetcher::start(&self.cluster, options);
        soon("assigning", fetcher.assign("invoices", 0, Start::Earliest)).await.unwrap();
        let mut values: Vec<String> = Vec::new();
        while values.last().is_none_or(|last| !last.ends_with('.')) {
            let fetched = soon("invoices", fetcher.next()).await.unwrap();
            let take = |record: &moldau_records::RecordView<'_>| {
                values.push(String::from_utf8_lossy(record.value().unwrap()).into_owned());
            };
            fetched.for_each_record(&mut Decompressor::default(), 1 << 20, take).unwrap();
        }
        values
    }
}

fn orders() -> TopicPartition {
    TopicPartition::of("orders", 0)
}

fn at(offset: i64) -> [(TopicPartition, CommittedOffset); 1] {
    [(orders(), CommittedOffset::at(offset))]
}

fn send(producer: &Producer, partition: PartitionHandle, value: &str) {
    let value = Some(value.as_bytes());
    let record = Record { token: 0, timestamp: now_ms(), key: None, value, headers: &[] };
    producer.send(partition, &record).unwrap();
}

async fn commit_in(producer: &Producer, member: &GroupMetadata, next: i64) -> Result<(), Error> {
    producer.send_offsets_to_transaction(member, &at(next)).await
}

async fn committed(member: &Membership) -> Option<i64> {
    let known = soon("offsets", member.committed(&[orders()])).await.unwrap();
    known.into_iter().next().and_then(|(_, offset)| Some(offset?.offset))
}

#[test]
fn offsets_and_records_become_visible_together_or_not_at_all() {
    for protocol in [GroupProtocol::Consumer, GroupProtocol::Classic] {
        block_on(async {
            let world = World::new().await;
            let member = world.member(protocol).await;
            let producer = world.producer().await;
            let invoices = producer.partition("invoices", 0).await.unwrap();
            for (value, next, is_committed) in
                [("a", 1, true), ("lost", 2, false), ("b", 2, true), ("c.", 3, true)]
            {
                let before = committed(&member).await;
                soon("begin", producer.begin_transaction(&[invoices])).await.unwrap();
                send(&producer, invoices, value);
                let metadata = member.committer().group_metadata(&[orders()]).unwrap();
                let sent = commit_in(&producer, &metadata, next);
                soon("offsets", sent).await.unwrap();
                if is_committed {
                    soon("commit", producer.commit_transaction()).await.unwrap();
                    assert_eq!(committed(&member).await, Some(next));
                } else {
                    soon("abort", producer.abort_transaction()).await.unwrap();
                    assert_eq!(committed(&member).await, before);
                }
            }
            assert_eq!(world.invoices().await, ["a", "b", "c."]);
        });
    }
}

/// Every transaction ends with another epoch: an answer that is late cannot reach the next one.
#[test]
fn many_transactions_of_one_producer_keep_the_order_of_their_records() {
    block_on(async {
        let world = World::new().await;
        let producer = world.producer().await;
        let invoices = producer.partition("invoices", 0).await.unwrap();
        let mut expected = Vec::new();
        for round in 0..50 {
            let is_committed = round % 3 != 1;
            soon("begin", producer.begin_transaction(&[])).await.unwrap();
            for part in ["x", if round == 48 { "y." } else { "y" }] {
                let value = format!("{round}{part}");
                send(&producer, invoices, &value);
                if is_committed {
                    expected.push(value);
                }
            }
            if is_committed {
                soon("commit", producer.commit_transaction()).await.unwrap();
            } else {
                soon("abort", producer.abort_transaction()).await.unwrap();
            }
        }
        // A transaction of nothing at all.
        soon("begin", producer.begin_transaction(&[])).await.unwrap();
        soon("commit", producer.commit_transaction()).await.unwrap();
        expected.truncate(expected.iter().position(|it| it.ends_with('.')).unwrap() + 1);
        assert_eq!(world.invoices().await[..expected.len()], expected);
    });
}

#[test]
fn producer_whose_id_was_taken_commits_neither_records_nor_offsets() {
    block_on(async {
        let world = World::new().await;
        let member = world.member(GroupProtocol::Consumer).await;
        let metadata = member.committer().group_metadata(&[orders()]).unwrap();
        let zombie = world.producer().await;
        let partition = zombie.partition("invoices", 0).await.unwrap();
        soon("begin", zombie.begin_transaction(&[partition])).await.unwrap();
        send(&zombie, partition, "lost");
        soon("flush", zombie.flush()).await;

        let producer = world.producer().await;
        let sent = commit_in(&zombie, &metadata, 9);
        let refused = soon("offsets", sent).await.unwrap_err();
        let fenced = [ErrorCode::ProducerFenced, ErrorCode::InvalidProducerEpoch];
        assert!(refused.code().is_some_and(|code| fenced.contains(&code)), "{refused}");
        let ended = soon("commit", zombie.commit_transaction()).await;
        assert!(matches!(ended, Err(Error::NoTransaction)), "{ended:?}");
        let ended = soon("abort", zombie.abort_transaction()).await.unwrap_err();
        assert!(ended.code().is_some_and(|code| fenced.contains(&code)), "{ended}");

        let partition = producer.partition("invoices", 0).await.unwrap();
        soon("begin", producer.begin_transaction(&[partition])).await.unwrap();
        send(&producer, partition, "kept.");
        let sent = commit_in(&producer, &metadata, 1);
        soon("offsets", sent).await.unwrap();
        soon("commit", producer.commit_transaction()).await.unwrap();
        assert_eq!(committed(&member).await, Some(1));
        assert_eq!(world.invoices().await, ["kept."]);
    });
}

#[test]
fn offsets_of_a_member_that_was_put_out_are_refused() {
    for protocol in [GroupProtocol::Consumer, GroupProtocol::Classic] {
        block_on(async {
            let world = World::new().await;
            let first = world.member(protocol).await;
            let gone = first.committer();
            let zombie: GroupMetadata = gone.group_metadata(&[orders()]).unwrap();
            soon("leaving", first.leave()).await.unwrap();
            assert!(matches!(gone.group_metadata(&[orders()]), Err(Error::NotHeld { .. })));
            let second = world.member(protocol).await;
            let producer = world.producer().await;
            let invoices = producer.partition("invoices", 0).await.unwrap();
            let outdated = GroupMetadata { epoch: zombie.epoch - 1, ..zombie.clone() };
            for member in [zombie, outdated] {
                soon("begin", producer.begin_transaction(&[invoices])).await.unwrap();
                send(&producer, invoices, "lost");
                let sent = commit_in(&producer, &member, 9);
                let refused = soon("offsets", sent).await.unwrap_err();
                assert!(refused.is_left_behind(), "{member:?}: {refused}");
                let ended = soon("commit", producer.commit_transaction()).await;
                assert!(matches!(ended, Err(Error::NoTransaction)), "{ended:?}");
                soon("abort", producer.abort_transaction()).await.unwrap();
            }
            assert_eq!(committed(&second).await, None);
        });
    }
}

/// What a framework does: it commits while it waits for a change of what the member holds.
#[test]
fn committer_commits_while_the_member_waits_for_a_change() {
    block_on(async {
        let world = World::new().await;
        let mut member = world.member(GroupProtocol::Consumer).await;
        let committer = member.committer();
        let task = tokio::spawn({
            let committer = committer.clone();
            async move { committer.commit(&at(7)).await }
        });
        let committed = async {
            tokio::select! {
                event = member.next() => panic!("{event:?}"),
                answers = task => answers.unwrap().unwrap(),
            }
        };
        let waited = soon("a commit", committed).await;
        assert!(waited.iter().all(|(_, answer)| answer.is_ok()), "{waited:?}");
        let known = soon("offsets", committer.committed(&[orders()])).await.unwrap();
        assert_eq!(known[0].1, Some(CommittedOffset::at(7)));
        soon("leaving", member.leave()).await.unwrap();
        let answers = soon("a commit", committer.commit(&at(8))).await.unwrap();
        assert!(matches!(answers[0].1, Err(Error::NotHeld { .. })), "{answers:?}");
    });
}
