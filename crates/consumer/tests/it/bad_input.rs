//! What goes wrong around an app: topics, groups, credentials and ids. Records that cannot be
//! handled are in `failures`.

use std::collections::BTreeSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::pbkdf2::{self, PBKDF2_HMAC_SHA256};
use moldau_client::{Admin, GroupProtocol, Purpose, Reset};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{AnyRoute, App, AppOptions, Error, Message, Pause, record};
use moldau_net::sasl::{Mechanism, SaslClient, SaslCredentials};
use moldau_protocol::messages::alter_user_scram_credentials_request::{
    ScramCredentialDeletion, ScramCredentialUpsertion,
};
use moldau_protocol::messages::{
    AlterUserScramCredentialsRequest, ConsumerGroupDescribeRequest, ConsumerGroupHeartbeatRequest,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};
use zeroize::Zeroizing;

use crate::admin::{get, port, until_status};
use crate::share::configure;
use crate::status::status_when;
use crate::world::{DEADLINE, GROUP, Seen, TOPIC, broker, channel, drained, next, ticking, values};

const OTHERS: &str = "others";
pub(crate) const USER: &str = "billing";
pub(crate) const PASSWORD: &str = "a secret of ours";

fn reporting(sender: &UnboundedSender<Seen>) -> AnyRoute {
    let sender = sender.clone();
    let handler = move |message: Message| {
        let sent = sender.send(Seen::of(&message));
        async move { sent }
    };
    record(handler).into()
}

/// Why the app ends by itself.
async fn end_of(app: App) -> Error {
    let ended = tokio::time::timeout(DEADLINE, app.run(std::future::pending())).await;
    ended.expect("it ends in time").expect_err("it ends by itself")
}

async fn delete_topic(broker: &TestBroker, topic: &str) {
    let deleted = Admin::new(broker.cluster().await).delete_topics(&[topic.to_owned()]).await;
    for deleted in deleted.expect("the broker answers") {
        deleted.expect("the topic is deleted");
    }
}

/// Deletes the topic of an app, which another topic does not notice, and creates it again with
/// more records than the group had committed of the first.
async fn survives_a_topic_that_is_created_again(
    broker: &TestBroker,
    app: App,
    receiver: &mut UnboundedReceiver<Seen>,
) {
    broker.create_topic(OTHERS, 1).await;
    broker.produce_all(TOPIC, &["1", "2", "3"].map(|value| (None, value))).await;
    let test = async {
        assert_eq!(values(&next(receiver, 3).await), ["1", "2", "3"]);
        drained(broker, GROUP, TOPIC).await;
        delete_topic(broker, TOPIC).await;
        broker.produce(OTHERS, None, "other").await;
        assert_eq!(values(&next(receiver, 1).await), ["other"]);
        broker.create_topic(TOPIC, 1).await;
        let again = ["4", "5", "6", "7", "8"];
        broker.produce_all(TOPIC, &again.map(|value| (None, value))).await;
        assert_eq!(values(&ticking(broker, next(receiver, 5)).await), again);
        ticking(broker, drained(broker, GROUP, TOPIC)).await;
    };
    app.run(test).await.unwrap();
}

async fn member_of_a_topic_that_is_created_again(protocol: GroupProtocol) {
    let broker = broker(1, &[]).await;
    let (sender, mut receiver) = channel();
    let mut options = broker.options();
    options.membership.protocol = protocol;
    let app = broker.app(GROUP).options(options);
    let app = app.topic(TOPIC, reporting(&sender)).topic(OTHERS, reporting(&sender));
    survives_a_topic_that_is_created_again(&broker, app, &mut receiver).await;
}

#[tokio::test]
async fn a_topic_that_is_created_again_is_read_from_its_start() {
    member_of_a_topic_that_is_created_again(GroupProtocol::Consumer).await;
}

#[tokio::test]
async fn a_topic_that_is_created_again_is_read_from_its_start_in_classic_groups() {
    member_of_a_topic_that_is_created_again(GroupProtocol::Classic).await;
}

#[tokio::test]
async fn a_topic_that_is_created_again_is_read_from_its_start_in_exactly_once_apps() {
    let broker = broker(1, &[]).await;
    let (sender, mut receiver) = channel();
    let app = broker.app(GROUP).exactly_once("one");
    let app = app.topic(TOPIC, reporting(&sender)).topic(OTHERS, reporting(&sender));
    survives_a_topic_that_is_created_again(&broker, app, &mut receiver).await;
}

#[tokio::test]
async fn partitions_of_a_topic_that_is_created_again_are_read_from_their_start() {
    let broker = broker(1, &[]).await;
    let (sender, mut receiver) = channel();
    let app = broker.app(GROUP).partitions(TOPIC, [0], reporting(&sender));
    let app = app.partitions(OTHERS, [0], reporting(&sender));
    survives_a_topic_that_is_created_again(&broker, app, &mut receiver).await;
}

#[tokio::test]
async fn a_topic_that_does_not_exist_is_named_and_waited_for() {
    let broker = broker(1, &[]).await;
    let (sender, mut receiver) = channel();
    let app = broker.app(GROUP).topic(TOPIC, reporting(&sender));
    let app = app.topic(OTHERS, reporting(&sender)).admin("127.0.0.1:0");
    let control = app.control();
    let test = async {
        let port = port(&control).await;
        let named = async {
            while !get(port, "/readyz").await.body.contains("Topic others does not exist.") {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(DEADLINE, named).await.expect("it is named");
        assert_eq!(get(port, "/readyz").await.status, 200);
        broker.produce(TOPIC, None, "1").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["1"]);
        broker.create_topic(OTHERS, 1).await;
        broker.produce(OTHERS, None, "2").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["2"]);
    };
    app.run(test).await.unwrap();
}

/// Partitions without a member have nobody who waits for the topic.
#[tokio::test]
async fn a_partition_that_does_not_exist_holds_up_no_other_and_is_not_ready() {
    let broker = broker(1, &[]).await;
    let (sender, mut receiver) = channel();
    let app = broker.app(GROUP).partitions(TOPIC, [0], reporting(&sender));
    let app = app.partitions(OTHERS, [0], reporting(&sender)).admin("127.0.0.1:0");
    let control = app.control();
    let test = async {
        let port = port(&control).await;
        let unready = until_status(port, "/readyz", 503).await.body;
        broker.produce(TOPIC, None, "1").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["1"]);
        let why = |it: &moldau_consumer::Status| it.routes[1].partitions.first()?.trouble.clone();
        let status = status_when(&control, |it| why(it).is_some()).await;
        assert_eq!(status.routes[1].partitions[0].paused, Some(Pause::Unreadable));
        let named = async {
            while !get(port, "/readyz").await.body.contains("does not go on in others-0: topic") {
                tokio::task::yield_now().await;
            }
        };
        let named = tokio::time::timeout(DEADLINE, named).await;
        named.unwrap_or_else(|_| panic!("it is named: {unready}"));
        broker.create_topic(OTHERS, 1).await;
        broker.produce(OTHERS, None, "2").await;
        assert_eq!(values(&ticking(&broker, next(&mut receiver, 1)).await), ["2"]);
        let ready = until_status(port, "/readyz", 200).await.body;
        assert!(ready.starts_with("The app is ready and reads 2 partitions."), "{ready}");
        assert_eq!(get(port, "/healthz").await.status, 200);
    };
    app.run(test).await.unwrap();
}

#[tokio::test]
async fn an_offset_that_does_not_exist_stops_its_partition_until_it_does() {
    let broker = broker(1, &[(None, "1"), (None, "2"), (None, "3")]).await;
    broker.rewind(GROUP, TOPIC, 5).await;
    let (sender, mut receiver) = channel();
    let mut options = broker.options();
    options.fetcher.reset = Reset::Fail;
    let app = broker.app(GROUP).options(options).topic(TOPIC, reporting(&sender));
    let control = app.control();
    let test = async {
        let why = |it: &moldau_consumer::Status| it.routes[0].partitions.first()?.trouble.clone();
        let status = status_when(&control, |it| why(it).is_some()).await;
        assert!(why(&status).unwrap().contains("OffsetOutOfRange"), "{status:?}");
        assert_eq!(status.routes[0].partitions[0].paused, Some(Pause::Unreadable));
        broker.produce_all(TOPIC, &["4", "5", "6"].map(|value| (None, value))).await;
        assert_eq!(values(&ticking(&broker, next(&mut receiver, 1)).await), ["6"]);
        status_when(&control, |it| it.routes[0].partitions[0].paused.is_none()).await;
    };
    app.run(test).await.unwrap();
}

/// Removes the members of a group, as the coordinator does with those that are silent for the
/// session timeout.
async fn expire_members(broker: &TestBroker, group: &str) {
    let coordinator = broker.cluster().await.group_coordinator(group).await.unwrap();
    let group_ids = vec![group.to_owned()];
    let describe = ConsumerGroupDescribeRequest { group_ids, ..Default::default() };
    let described = coordinator.send(&describe).await.unwrap().groups.remove(0);
    for member in described.members {
        let leave = ConsumerGroupHeartbeatRequest {
            group_id: group.to_owned(),
            member_id: member.member_id,
            member_epoch: -1,
            ..Default::default()
        };
        coordinator.send(&leave).await.unwrap();
    }
}

#[tokio::test]
async fn a_member_that_expired_joins_again_and_goes_on_from_the_commit() {
    let broker = broker(1, &[(None, "1"), (None, "2")]).await;
    let (sender, mut receiver) = channel();
    let app = broker.app(GROUP).topic(TOPIC, reporting(&sender));
    let test = async {
        next(&mut receiver, 2).await;
        drained(&broker, GROUP, TOPIC).await;
        expire_members(&broker, GROUP).await;
        broker.produce(TOPIC, None, "3").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["3"]);
        drained(&broker, GROUP, TOPIC).await;
    };
    app.run(test).await.unwrap();
    // The last one may have been handled just before the member noticed.
    while let Ok(again) = receiver.try_recv() {
        assert_eq!(again.value, "3", "what was committed does not come again");
    }
}

/// The offsets are gone with the group: its records come again, from where a group begins.
#[tokio::test]
async fn a_group_that_was_deleted_is_made_again_and_begins_anew() {
    let broker = broker(1, &[(None, "1"), (None, "2")]).await;
    let (sender, mut receiver) = channel();
    let app = broker.app(GROUP).topic(TOPIC, reporting(&sender));
    let test = async {
        next(&mut receiver, 2).await;
        drained(&broker, GROUP, TOPIC).await;
        let admin = Admin::new(broker.cluster().await);
        // It joins again within milliseconds.
        let deleted = async {
            loop {
                expire_members(&broker, GROUP).await;
                if admin.delete_group(GROUP).await.is_ok() {
                    return;
                }
            }
        };
        tokio::time::timeout(DEADLINE, deleted).await.expect("it is deleted between two beats");
        broker.produce(TOPIC, None, "3").await;
        // The last one may come before the member notices.
        let seen = next(&mut receiver, 3).await;
        let seen: BTreeSet<_> = values(&seen).into_iter().collect();
        assert_eq!(seen, BTreeSet::from(["1", "2", "3"]));
    };
    app.run(test).await.unwrap();
}

pub(crate) fn app_as(broker: &TestBroker, password: &str) -> App {
    App::new([broker.sasl_address()]).group(GROUP).options(options_as(broker, password))
}

pub(crate) fn options_as(broker: &TestBroker, password: &str) -> AppOptions {
    let credentials = SaslCredentials::Scram {
        mechanism: Mechanism::ScramSha256,
        user: USER.to_owned(),
        password: Zeroizing::new(password.to_owned()),
    };
    let mut options = broker.options();
    options.cluster.connection.security.sasl =
        Some(Arc::new(SaslClient::new(credentials).unwrap()));
    options
}

async fn alter_users(broker: &TestBroker, request: AlterUserScramCredentialsRequest) {
    let cluster = broker.cluster().await;
    let node = *cluster.metadata().brokers.keys().next().expect("a broker");
    let connection = cluster.connection(node, Purpose::Data).await.unwrap();
    let answer = connection.send(&request).await.unwrap();
    assert!(answer.results.iter().all(|result| result.error_code == 0), "{answer:?}");
}

pub(crate) async fn add_user(broker: &TestBroker) {
    let (iterations, salt) = (4096, b"some salt");
    let mut salted = [0; 32];
    let count = NonZeroU32::new(iterations).unwrap();
    pbkdf2::derive(PBKDF2_HMAC_SHA256, count, salt, PASSWORD.as_bytes(), &mut salted);
    let user = ScramCredentialUpsertion {
        name: USER.to_owned(),
        mechanism: SCRAM_SHA_256,
        iterations: 4096,
        salt: salt.as_slice().into(),
        salted_password: salted.to_vec().into(),
        ..Default::default()
    };
    let upsertions = vec![user];
    alter_users(broker, AlterUserScramCredentialsRequest { upsertions, ..Default::default() })
        .await;
}

async fn remove_user(broker: &TestBroker) {
    let (name, mechanism) = (USER.to_owned(), SCRAM_SHA_256);
    let deletions = vec![ScramCredentialDeletion { name, mechanism, ..Default::default() }];
    alter_users(broker, AlterUserScramCredentialsRequest { deletions, ..Default::default() }).await;
}

fn assert_names_the_user(error: &Error) {
    assert!(matches!(error, Error::Client(it) if it.is_unauthenticated()), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("user billing by SCRAM-SHA-256: "), "{text}");
    assert!(!format!("{text} {error:?}").contains(PASSWORD), "{text}");
}

#[tokio::test]
async fn wrong_credentials_end_the_app_at_once_with_the_user_and_without_the_password() {
    let broker = TestBroker::with_sasl(Duration::from_mins(1));
    broker.create_topic(TOPIC, 1).await;
    add_user(&broker).await;
    let (sender, _receiver) = channel();
    let app =
        app_as(&broker, &PASSWORD.replace("ours", "another")).topic(TOPIC, reporting(&sender));
    assert_names_the_user(&end_of(app).await);
}

/// The app has handled one record when its user is removed; the next app handles the rest.
async fn revoked(broker: &TestBroker, app: App, sender: UnboundedSender<Seen>) {
    broker.create_topic(TOPIC, 1).await;
    broker.produce(TOPIC, None, "1").await;
    // The app cannot leave the group.
    configure(broker, "consumer.session.timeout.ms", "1000").await;
    add_user(broker).await;
    drop(sender);
    assert_names_the_user(&end_of(app).await);
    broker.produce(TOPIC, None, "2").await;
    let (sender, mut receiver) = channel();
    let app = broker.app(GROUP).topic(TOPIC, reporting(&sender));
    let test = async {
        while next(&mut receiver, 1).await[0].value != "2" {}
        drained(broker, GROUP, TOPIC).await;
    };
    app.run(test).await.unwrap();
}

/// A route whose first record is the last that the user may read.
fn revoking(broker: &Arc<TestBroker>, sender: &UnboundedSender<Seen>) -> AnyRoute {
    let (broker, sender) = (Arc::clone(broker), sender.clone());
    let handler = move |message: Message| {
        let (broker, sender) = (Arc::clone(&broker), sender.clone());
        async move {
            remove_user(&broker).await;
            sender.send(Seen::of(&message))
        }
    };
    record(handler).into()
}

#[tokio::test]
async fn credentials_that_are_revoked_end_the_app_and_nothing_is_lost() {
    let broker = Arc::new(TestBroker::with_sasl(Duration::from_secs(1)));
    let (sender, _receiver) = channel();
    let app = app_as(&broker, PASSWORD).topic(TOPIC, revoking(&broker, &sender));
    revoked(&broker, app, sender).await;
}

#[tokio::test]
async fn credentials_that_are_revoked_end_an_app_without_a_member() {
    let broker = Arc::new(TestBroker::with_sasl(Duration::from_secs(1)));
    let (sender, _receiver) = channel();
    let app = app_as(&broker, PASSWORD).partitions(TOPIC, [0], revoking(&broker, &sender));
    revoked(&broker, app, sender).await;
}

/// Two apps with one static id: how the earlier or the later one ends while the other goes on.
async fn static_ids(protocol: GroupProtocol) {
    let broker = broker(1, &[(None, "1")]).await;
    let (sender, mut receiver) = channel();
    let app = || {
        let mut options = broker.options();
        options.membership.protocol = protocol;
        options.membership.instance_id = Some("worker-1".to_owned());
        broker.app(GROUP).options(options).topic(TOPIC, reporting(&sender))
    };
    let mut earlier = Box::pin(app().run(std::future::pending()));
    tokio::select! {
        ended = &mut earlier => panic!("{ended:?}"),
        _ = next(&mut receiver, 1) => {}
    }
    let mut later = Box::pin(app().run(std::future::pending()));
    let both = async {
        tokio::select! {
            ended = &mut earlier => (ended, later),
            ended = &mut later => (ended, earlier),
        }
    };
    let (ended, other) = tokio::time::timeout(DEADLINE, both).await.expect("one ends");
    let error = ended.expect_err("it cannot go on");
    assert!(matches!(error, Error::StaticMember { .. }), "{error:?}");
    let (code, id) = match protocol {
        GroupProtocol::Classic => ("FencedInstanceId", "worker-1"),
        GroupProtocol::Consumer => ("UnreleasedInstanceId", "worker-1"),
    };
    let text = error.to_string();
    let begin = format!("static member {id} of group {GROUP}: another process has the id: ");
    assert!(text.starts_with(&begin) && text.contains(code), "{text}");
    let test = async {
        broker.produce(TOPIC, None, "2").await;
        while next(&mut receiver, 1).await[0].value != "2" {}
    };
    tokio::select! {
        ended = other => panic!("the other one goes on: {ended:?}"),
        () = test => {}
    }
}

#[tokio::test]
async fn of_two_apps_with_a_static_id_the_later_one_ends() {
    static_ids(GroupProtocol::Consumer).await;
}

#[tokio::test]
async fn of_two_apps_with_a_static_id_the_earlier_one_ends_in_classic_groups() {
    static_ids(GroupProtocol::Classic).await;
}

/// Kafka's number of the mechanism.
const SCRAM_SHA_256: i8 = 1;
