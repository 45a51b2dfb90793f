//! Rights that are revoked while an app runs, and granted again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use moldau_client::{Connection, GroupProtocol, Purpose};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{AnyRoute, Message, record};
use moldau_protocol::messages::create_acls_request::AclCreation;
use moldau_protocol::messages::delete_acls_request::DeleteAclsFilter;
use moldau_protocol::messages::{CreateAclsRequest, DeleteAclsRequest};
use tokio::sync::mpsc::UnboundedSender;

use crate::admin::{get, port, until_status};
use crate::bad_input::{PASSWORD, USER, add_user, app_as, options_as};
use crate::world::{GROUP, Seen, TOPIC, channel, drained, next, ticking, values};

/// A right by the numbers of its resource type and operation, and the name of the resource.
type Right = (i8, i8, &'static str);

const READ_TOPIC: Right = (2, 3, TOPIC);
const READ_GROUP: Right = (3, 3, GROUP);
const WRITE_TRANSACTIONS: Right = (5, 4, "one");

async fn grant(broker: &TestBroker, (resource_type, operation, name): Right) {
    let creation = AclCreation {
        resource_type,
        resource_name: name.to_owned(),
        resource_pattern_type: LITERAL,
        principal: format!("User:{USER}"),
        host: "*".to_owned(),
        operation,
        permission_type: ALLOW,
        ..Default::default()
    };
    let request = CreateAclsRequest { creations: vec![creation], ..Default::default() };
    let answer = connection(broker).await.send(&request).await.unwrap();
    assert!(answer.results.iter().all(|result| result.error_code == 0), "{answer:?}");
}

async fn revoke(broker: &TestBroker, (resource_type, operation, name): Right) {
    let filter = DeleteAclsFilter {
        resource_type_filter: resource_type,
        resource_name_filter: Some(name.to_owned()),
        pattern_type_filter: LITERAL,
        principal_filter: Some(format!("User:{USER}")),
        host_filter: None,
        operation,
        permission_type: ALLOW,
        ..Default::default()
    };
    let request = DeleteAclsRequest { filters: vec![filter], ..Default::default() };
    let answer = connection(broker).await.send(&request).await.unwrap();
    let deleted: usize = answer.filter_results.iter().map(|it| it.matching_acls.len()).sum();
    assert_eq!(deleted, 1, "{answer:?}");
}

async fn connection(broker: &TestBroker) -> Connection {
    let cluster = broker.cluster().await;
    let node = *cluster.metadata().brokers.keys().next().expect("a broker");
    cluster.connection(node, Purpose::Data).await.unwrap()
}

/// A broker whose user may do what an app needs.
async fn guarded() -> Arc<TestBroker> {
    let broker = TestBroker::with_authorization();
    broker.create_topic(TOPIC, 1).await;
    add_user(&broker).await;
    for right in [READ_TOPIC, READ_GROUP, WRITE_TRANSACTIONS] {
        grant(&broker, right).await;
    }
    Arc::new(broker)
}

/// A route in which the record "2" revokes a right before it is done, so that it cannot be
/// committed.
fn revoking(broker: &Arc<TestBroker>, right: Right, sender: &UnboundedSender<Seen>) -> AnyRoute {
    let (broker, sender) = (Arc::clone(broker), sender.clone());
    let is_granted = Arc::new(AtomicBool::new(true));
    let handler = move |message: Message| {
        let (broker, sender) = (Arc::clone(&broker), sender.clone());
        let is_granted = Arc::clone(&is_granted);
        async move {
            let is_last = message.value() == Some(b"2");
            if is_last && is_granted.swap(false, Ordering::SeqCst) {
                revoke(&broker, right).await;
            }
            sender.send(Seen::of(&message))
        }
    };
    record(handler).into()
}

#[tokio::test]
async fn a_topic_that_may_not_be_read_any_more_is_read_on_once_it_may() {
    let broker = guarded().await;
    let (sender, mut receiver) = channel();
    let app = app_as(&broker, PASSWORD).topic(TOPIC, revoking(&broker, READ_TOPIC, &sender));
    let app = app.admin("127.0.0.1:0");
    let control = app.control();
    let test = async {
        let port = port(&control).await;
        broker.produce(TOPIC, None, "1").await;
        next(&mut receiver, 1).await;
        drained(&broker, GROUP, TOPIC).await;
        broker.produce(TOPIC, None, "2").await;
        next(&mut receiver, 1).await;
        let unready = until_status(port, "/readyz", 503).await.body;
        let words = "The app does not go on in orders-0: ";
        assert!(unready.starts_with(words), "{unready}");
        assert!(unready.contains("TopicAuthorizationFailed"), "{unready}");
        assert_eq!(get(port, "/healthz").await.status, 200);
        assert_eq!(broker.committed(GROUP, TOPIC).await, 1);
        broker.produce(TOPIC, None, "3").await;
        grant(&broker, READ_TOPIC).await;
        assert_eq!(values(&ticking(&broker, next(&mut receiver, 1)).await), ["3"]);
        ticking(&broker, drained(&broker, GROUP, TOPIC)).await;
        until_status(port, "/readyz", 200).await;
    };
    app.run(test).await.unwrap();
}

async fn a_group_is_refused_for_a_while(protocol: GroupProtocol) {
    let broker = guarded().await;
    let (sender, mut receiver) = channel();
    let mut options = options_as(&broker, PASSWORD);
    options.membership.protocol = protocol;
    let app = app_as(&broker, PASSWORD).options(options);
    let app = app.topic(TOPIC, revoking(&broker, READ_GROUP, &sender)).admin("127.0.0.1:0");
    let control = app.control();
    let test = async {
        let port = port(&control).await;
        broker.produce(TOPIC, None, "1").await;
        next(&mut receiver, 1).await;
        drained(&broker, GROUP, TOPIC).await;
        broker.produce(TOPIC, None, "2").await;
        next(&mut receiver, 1).await;
        let unready = until_status(port, "/readyz", 503).await.body;
        let words = "The group refuses the member: membership of group workers: ";
        assert!(unready.starts_with(words), "{unready}");
        assert!(unready.contains("GroupAuthorizationFailed"), "{unready}");
        assert_eq!(get(port, "/healthz").await.status, 200);
        // It has the partition until the group gives it to others.
        broker.produce(TOPIC, None, "3").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["3"]);
        assert_eq!(broker.committed(GROUP, TOPIC).await, 1);
        grant(&broker, READ_GROUP).await;
        drained(&broker, GROUP, TOPIC).await;
        until_status(port, "/readyz", 200).await;
    };
    app.run(test).await.unwrap();
    assert!(receiver.try_recv().is_err(), "nothing comes again");
}

#[tokio::test]
async fn a_member_that_its_group_refuses_goes_on_and_commits_once_it_may() {
    a_group_is_refused_for_a_while(GroupProtocol::Consumer).await;
}

#[tokio::test]
async fn a_classic_member_that_its_group_refuses_goes_on_and_commits_once_it_may() {
    a_group_is_refused_for_a_while(GroupProtocol::Classic).await;
}

/// The transaction is aborted, so its record comes again once the group takes offsets.
#[tokio::test]
async fn an_exactly_once_app_that_its_group_refuses_goes_on_once_it_may() {
    let broker = guarded().await;
    let (sender, mut receiver) = channel();
    let route = revoking(&broker, READ_GROUP, &sender);
    let app = app_as(&broker, PASSWORD).topic(TOPIC, route).exactly_once("one");
    let test = async {
        for value in ["1", "2"] {
            broker.produce(TOPIC, None, value).await;
            next(&mut receiver, 1).await;
        }
        broker.produce(TOPIC, None, "3").await;
        grant(&broker, READ_GROUP).await;
        drained(&broker, GROUP, TOPIC).await;
    };
    app.run(test).await.unwrap();
    let mut rest = BTreeSet::new();
    while let Ok(seen) = receiver.try_recv() {
        rest.insert(seen.value);
    }
    assert!(rest.contains("3"), "{rest:?}");
}

/// A right that was never there is a mistake of whoever starts the app.
#[tokio::test]
async fn an_app_that_its_group_refuses_at_the_start_ends() {
    let broker = guarded().await;
    revoke(&broker, READ_GROUP).await;
    let app = app_as(&broker, PASSWORD);
    let (sender, _receiver) = channel();
    let app = app.topic(TOPIC, revoking(&broker, READ_TOPIC, &sender));
    let error = app.run(std::future::pending()).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("GroupAuthorizationFailed"), "{text}");
}

/// Numbers of the protocol: the pattern type, and the permission type.
const LITERAL: i8 = 3;
const ALLOW: i8 = 3;
