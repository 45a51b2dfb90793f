//! Declarative topics against a broker in this process.

use moldau_client::{Admin, ConfigResource};
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{App, Message, TopicDeclaration, TopicPlan, record};

use crate::world::TOPIC;

async fn ignore(_: Message) -> Result<(), String> {
    Ok(())
}

fn app(broker: &TestBroker, declaration: TopicDeclaration) -> App {
    broker.app("workers").topic(TOPIC, record(ignore).declare(declaration))
}

async fn plan(app: &App) -> TopicPlan {
    app.topics().plan().await.expect("the broker answers")
}

async fn partitions(broker: &TestBroker, topic: &str) -> usize {
    let topics = broker.cluster().await.all_topics().await.expect("the broker answers");
    topics.topics.get(topic).map_or(0, |topic| topic.partitions.len())
}

#[tokio::test]
async fn declared_topics_are_created_once() {
    let broker = TestBroker::start();
    let declared = TopicDeclaration::partitions(3).replication_factor(1);
    let app = app(&broker, declared.config("retention.ms", 60_000));
    let app = app.declare("orders.dead", TopicDeclaration::partitions(1));
    let planned = plan(&app).await;
    assert_eq!(
        planned.to_string(),
        "orders: create, partitions=3 replication.factor=1 retention.ms=60000\n\
         orders.dead: create, partitions=1\n"
    );
    assert_eq!(partitions(&broker, TOPIC).await, 0, "a plan changes nothing");
    planned.apply().await.expect("they can be created");
    assert_eq!(partitions(&broker, TOPIC).await, 3);
    let again = plan(&app).await;
    assert!(again.is_empty(), "{again}");
    assert_eq!(again.to_string(), "all topics are as declared\n");
    planned.apply().await.expect("what exists is no error");
}

#[tokio::test]
async fn partitions_are_added_and_configs_set() {
    let broker = TestBroker::start();
    plan(&app(&broker, TopicDeclaration::partitions(2))).await.apply().await.expect("created");
    let declared = TopicDeclaration::partitions(4).config("retention.ms", 60_000);
    let app = app(&broker, declared);
    let planned = plan(&app).await;
    assert_eq!(
        planned.to_string(),
        "orders: partitions 2 -> 4; keys may move to other partitions\n\
         orders: retention.ms 604800000 -> 60000\n"
    );
    planned.apply().await.expect("it can be changed");
    assert_eq!(partitions(&broker, TOPIC).await, 4);
    let admin = Admin::new(broker.cluster().await);
    let configs = admin.describe_configs(&ConfigResource::Topic(TOPIC.to_owned())).await;
    let configs = configs.expect("the topic exists");
    let retention = configs.iter().find(|it| it.name == "retention.ms").expect("a config");
    assert_eq!(retention.value.as_deref(), Some("60000"));
    assert!(plan(&app).await.is_empty());
}

#[tokio::test]
async fn what_cannot_be_changed_is_refused_before_anything_is() {
    let broker = TestBroker::start();
    broker.create_topic(TOPIC, 3).await;
    let declared = TopicDeclaration::partitions(2).replication_factor(3);
    let app = app(&broker, declared.config("flavour", "sweet"));
    let app = app.declare("others", TopicDeclaration::partitions(1));
    let app = app.declare("none", TopicDeclaration::partitions(0));
    let planned = plan(&app).await;
    assert_eq!(
        planned.to_string(),
        "none: impossible: a topic has at least one partition and one replica\n\
         orders: impossible: it has 3 partitions, and 2 are declared: Kafka cannot remove \
         partitions. Declare 3, or move the records to another topic\n\
         orders: impossible: partition 0 has 1 replicas, and 3 are declared: reassign the \
         partitions first (kafka-reassign-partitions)\n\
         orders: impossible: config flavour is not known\n\
         others: create, partitions=1\n"
    );
    let refused = planned.apply().await.expect_err("it is refused").to_string();
    assert!(refused.starts_with("topics cannot be made as declared: none: "), "{refused}");
    assert_eq!(partitions(&broker, "others").await, 0, "nothing was changed");
}

#[tokio::test]
async fn a_value_that_the_broker_refuses_is_an_error() {
    let broker = TestBroker::start();
    let declared = TopicDeclaration::partitions(1).config("retention.ms", "soon");
    let refused = plan(&app(&broker, declared)).await.apply().await.expect_err("no number");
    assert!(refused.to_string().contains("orders"), "{refused}");
    assert_eq!(partitions(&broker, TOPIC).await, 0);
}
