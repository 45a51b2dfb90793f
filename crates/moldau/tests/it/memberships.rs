//! Members of groups, in both protocols, that share the partitions of a topic at a broker.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use moldau_client::{
    Admin, Cluster, CommittedOffset, Error, GroupProtocol, MemberStage, Membership,
    MembershipEvent, MembershipOptions, TopicPartition, TopicSpec,
};
use moldau_protocol::ErrorCode;

use crate::traffic::{block_on, connect, soon};
use crate::world::{Process, free_port};

const PARTITIONS: i32 = 6;

/// Protocol and assignor of a member.
type Manner = (GroupProtocol, Option<&'static str>);

const MANNERS: [Manner; 3] = [
    (GroupProtocol::Consumer, None),
    (GroupProtocol::Classic, None),
    (GroupProtocol::Classic, Some("cooperative-sticky")),
];

/// A broker whose groups notice soon what happens to their members.
fn broker(address: SocketAddr, dir: &Path) -> Process {
    broker_with(address, dir, "")
}

fn broker_with(address: SocketAddr, dir: &Path, more: &str) -> Process {
    let file = dir.join("broker.yaml");
    let settings = "group.min.session.timeout.ms: 500\ngroup.initial.rebalance.delay.ms: 0\n\
                    group.consumer.min.session.timeout.ms: 500\n\
                    group.consumer.session.timeout.ms: 1000\n\
                    group.consumer.min.heartbeat.interval.ms: 20\n\
                    group.consumer.heartbeat.interval.ms: 50\n\
                    group.consumer.assignment.interval.ms: 0\n\
                    group.consumer.min.assignment.interval.ms: 0\n";
    std::fs::write(&file, format!("{settings}{more}")).unwrap();
    Process::broker_on(address, &dir.join("data"), &["--config", file.to_str().unwrap()])
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

fn options((protocol, assignor): Manner) -> MembershipOptions {
    MembershipOptions {
        protocol,
        assignor: assignor.map(str::to_owned),
        topics: vec!["orders".to_owned()],
        session_timeout: Duration::from_secs(1),
        rebalance_timeout: Duration::from_secs(20),
        heartbeat_interval: Duration::from_millis(50),
        ..MembershipOptions::default()
    }
}

async fn world(address: SocketAddr) -> Cluster {
    let cluster = connect(address).await;
    let spec = TopicSpec::new("orders", PARTITIONS);
    let created = Admin::new(&cluster).create_topics(&[spec], false).await.unwrap();
    created.into_iter().for_each(|created| created.unwrap());
    cluster
}

async fn join(cluster: &Cluster, options: MembershipOptions) -> Membership {
    soon("joining", Membership::join(cluster, "workers", options)).await.unwrap()
}

/// Takes one change. Where partitions are revoked, `next` is committed for each of them first.
async fn follow(member: &mut Membership, next: i64) {
    if let MembershipEvent::Revoked(partitions) = member.next().await.unwrap() {
        let at = |partition: &TopicPartition| (partition.clone(), CommittedOffset::at(next));
        let offsets: Vec<_> = partitions.iter().map(at).collect();
        for (partition, answer) in member.commit(&offsets).await.unwrap() {
            answer.unwrap_or_else(|error| panic!("{partition:?}: {error}"));
        }
        member.revoked(&partitions);
    }
}

/// Follows two members until each has half of the partitions.
async fn until_shared(a: &mut Membership, b: &mut Membership) {
    let half = usize::try_from(PARTITIONS).unwrap() / 2;
    let shared = async {
        while a.held().len() != half || b.held().len() != half {
            tokio::select! {
                () = follow(a, 5) => {}
                () = follow(b, 6) => {}
            }
        }
    };
    soon("an even share", shared).await;
    let all: BTreeSet<_> = a.held().union(b.held()).collect();
    assert_eq!(all.len(), 2 * half);
}

async fn until_all(member: &mut Membership) {
    let all = async {
        while member.held().len() != usize::try_from(PARTITIONS).unwrap() {
            follow(member, 7).await;
        }
    };
    soon("all partitions", all).await;
}

#[test]
fn partitions_change_hands_with_their_offsets() {
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let broker = broker(anywhere(), dir.path());
        block_on(async {
            let cluster = world(broker.address).await;
            let mut first = join(&cluster, options(manner)).await;
            until_all(&mut first).await;
            assert_eq!(first.state().stage, MemberStage::Stable);
            let mut second = join(&cluster, options(manner)).await;
            until_shared(&mut first, &mut second).await;
            // The first gave them up, and committed before.
            let held: Vec<_> = second.held().iter().cloned().collect();
            for (partition, known) in soon("offsets", second.committed(&held)).await.unwrap() {
                assert_eq!(known, Some(CommittedOffset::at(5)), "{partition:?}, {manner:?}");
            }
            let foreign = first.held().first().unwrap().clone();
            let offsets = [
                (
                    held[0].clone(),
                    CommittedOffset {
                        leader_epoch: 0,
                        metadata: "m".into(),
                        ..CommittedOffset::at(8)
                    },
                ),
                (foreign, CommittedOffset::at(8)),
            ];
            let answers = soon("a commit", second.commit(&offsets)).await.unwrap();
            assert!(answers[0].1.is_ok() && matches!(answers[1].1, Err(Error::NotHeld { .. })));
            let known = soon("offsets", second.committed(&held[..1])).await.unwrap();
            assert_eq!(known[0].1.as_ref(), Some(&offsets[0].1));
            soon("leaving", second.leave()).await.unwrap();
            until_all(&mut first).await;
        });
    }
}

#[test]
fn partitions_of_a_dead_member_go_to_the_others() {
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let broker = broker(anywhere(), dir.path());
        block_on(async {
            let cluster = world(broker.address).await;
            let mut first = join(&cluster, options(manner)).await;
            let mut second = join(&cluster, options(manner)).await;
            until_shared(&mut first, &mut second).await;
            drop(second);
            until_all(&mut first).await;
        });
    }
}

/// An owner that does not give up what the group wants back is put out, and is told.
#[test]
fn member_that_keeps_what_is_revoked_loses_everything_and_joins_again() {
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let broker = broker(anywhere(), dir.path());
        block_on(async {
            let cluster = world(broker.address).await;
            let rebalance_timeout = Duration::from_millis(600);
            let slow = MembershipOptions { rebalance_timeout, ..options(manner) };
            let mut first = join(&cluster, slow.clone()).await;
            until_all(&mut first).await;
            let held: Vec<_> = first.held().iter().cloned().collect();
            let mut second = join(&cluster, slow).await;
            let lost = async {
                loop {
                    match first.next().await.unwrap() {
                        MembershipEvent::Lost(partitions) => return partitions,
                        MembershipEvent::Assigned(_) => panic!("it has all"),
                        MembershipEvent::Revoked(_) => {}
                    }
                }
            };
            assert_eq!(soon("the loss", lost).await, held, "{manner:?}");
            let offsets = [(held[0].clone(), CommittedOffset::at(1))];
            let answers = soon("a commit", first.commit(&offsets)).await.unwrap();
            assert!(answers[0].1.as_ref().is_err_and(Error::is_left_behind));
            until_shared(&mut first, &mut second).await;
        });
    }
}

#[test]
fn members_outlive_a_restart_of_the_coordinator() {
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let process = broker(address, dir.path());
        block_on(async {
            let cluster = world(address).await;
            let mut first = join(&cluster, options(manner)).await;
            let mut second = join(&cluster, options(manner)).await;
            until_shared(&mut first, &mut second).await;
            let before = first.state().last_heartbeat.unwrap();
            process.kill();
            let _process = broker(address, dir.path());
            let beaten = async {
                while first.state().last_heartbeat.is_none_or(|last| last == before) {
                    tokio::task::yield_now().await;
                }
            };
            soon("a heartbeat", beaten).await;
            until_shared(&mut first, &mut second).await;
            let held: Vec<_> = first.held().iter().cloned().collect();
            let offsets: Vec<_> =
                held.iter().map(|held| (held.clone(), CommittedOffset::at(9))).collect();
            let answers = soon("a commit", first.commit(&offsets)).await.unwrap();
            // A member that joined anew has other partitions before it is told.
            assert!(
                answers.iter().all(|(_, it)| it.as_ref().err().is_none_or(Error::is_left_behind))
            );
        });
    }
}

#[test]
fn second_member_with_a_static_id_is_refused_or_ends_the_first() {
    let dir = tempfile::tempdir().unwrap();
    let broker = broker(anywhere(), dir.path());
    block_on(async {
        let cluster = world(broker.address).await;
        let instance_id = Some("one".to_owned());
        let consumer = MembershipOptions { instance_id, ..options(MANNERS[0]) };
        let mut first = join(&cluster, consumer.clone()).await;
        until_all(&mut first).await;
        let refused = soon("joining", Membership::join(&cluster, "workers", consumer)).await;
        assert_eq!(refused.unwrap_err().code(), Some(ErrorCode::UnreleasedInstanceId));

        let instance_id = Some("one".to_owned());
        let classic = MembershipOptions { instance_id, ..options(MANNERS[1]) };
        let in_group =
            async |options| Membership::join(&cluster, "classic", options).await.unwrap();
        let mut first = soon("joining", in_group(classic.clone())).await;
        until_all(&mut first).await;
        let mut second = soon("joining", in_group(classic)).await;
        let ended = async {
            loop {
                match first.next().await {
                    Ok(MembershipEvent::Lost(_)) => {}
                    Ok(event) => panic!("{event:?}"),
                    Err(error) => return error,
                }
            }
        };
        assert_eq!(soon("the end", ended).await.code(), Some(ErrorCode::FencedInstanceId));
        assert_eq!(first.state().stage, MemberStage::Ended);
        until_all(&mut second).await;
    });
}

#[test]
fn member_that_a_group_has_no_room_for_is_refused() {
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let sizes = "group.max.size: 1\ngroup.consumer.max.size: 1\n";
        let broker = broker_with(anywhere(), dir.path(), sizes);
        block_on(async {
            let cluster = world(broker.address).await;
            let mut member = join(&cluster, options(manner)).await;
            until_all(&mut member).await;
            let joining = Membership::join(&cluster, "workers", options(manner));
            let refused = soon("joining", joining).await.unwrap_err();
            assert_eq!(refused.code(), Some(ErrorCode::GroupMaxSizeReached), "{manner:?}");
        });
    }
}

#[test]
fn topics_are_found_by_pattern() {
    for manner in MANNERS {
        let dir = tempfile::tempdir().unwrap();
        let broker = broker(anywhere(), dir.path());
        block_on(async {
            let cluster = world(broker.address).await;
            let pattern = Some("ord[a-z]+|nothing".to_owned());
            let by_pattern = MembershipOptions { topics: Vec::new(), pattern, ..options(manner) };
            let mut member = join(&cluster, by_pattern.clone()).await;
            until_all(&mut member).await;
            let wrong = MembershipOptions { pattern: Some("(".to_owned()), ..by_pattern };
            let refused = soon("joining", Membership::join(&cluster, "wrong", wrong)).await;
            match refused.unwrap_err() {
                Error::InvalidPattern { .. } => assert_eq!(manner.0, GroupProtocol::Classic),
                error => {
                    assert_eq!(error.code(), Some(ErrorCode::InvalidRegularExpression), "{error}");
                }
            }
        });
    }
}
