//! Scheduled messages against a broker in this process.

use std::time::Duration;

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{
    App, Message, MessageSchedule, ScheduledMessage, TopicDeclaration, schedule_header,
};
use tokio::sync::oneshot;

use crate::world::{DEADLINE, GROUP, TOPIC};

const SCHEDULE: &str = "schedule";
const HOUR: Duration = Duration::from_hours(1);
const STEP: Duration = Duration::from_millis(10);

async fn broker(partitions: i32) -> TestBroker {
    let broker = TestBroker::start();
    broker.create_topic(TOPIC, 1).await;
    let topic = TopicDeclaration::partitions(partitions).config("cleanup.policy", "compact");
    let topic = topic.config("message.timestamp.after.max.ms", i64::MAX);
    let app = broker.app(GROUP).declare(SCHEDULE, topic).scheduled_messages(SCHEDULE);
    let plan = app.topics().plan().await.expect("the broker answers");
    plan.apply().await.expect("it can be created");
    broker
}

fn app(broker: &TestBroker) -> App {
    broker.app(GROUP).scheduled_messages(SCHEDULE)
}

/// A message that is due in so many hours.
fn message(broker: &TestBroker, id: &str, hours: u32) -> ScheduledMessage {
    let at = broker.clock().now() + HOUR * hours;
    ScheduledMessage::new(id, TOPIC, at, format!("value of {id}"))
}

async fn schedule(broker: &TestBroker, messages: &[ScheduledMessage]) -> MessageSchedule {
    let schedule = MessageSchedule::new(broker.cluster().await, SCHEDULE);
    for message in messages {
        schedule.send(message).await.expect("it is taken");
    }
    schedule
}

/// Moves the clock on once the app reads all partitions, and waits for so many sent messages.
async fn sent(broker: &TestBroker, hours: u32, count: usize) -> Vec<Message> {
    broker.clock().advance(HOUR * hours);
    tokio::time::timeout(DEADLINE, broker.read(TOPIC, count)).await.expect("they are sent")
}

/// Waits until `count` records are in the schedule: messages, and one for each that was sent.
async fn settled(broker: &TestBroker, count: usize) {
    let read = broker.read(SCHEDULE, count);
    tokio::time::timeout(DEADLINE, read).await.expect("it is written that they were sent");
}

fn ids(messages: &[Message]) -> Vec<&str> {
    let value = |message| std::str::from_utf8(Message::value(message).unwrap_or_default());
    messages.iter().map(|it| value(it).unwrap_or("").trim_start_matches("value of ")).collect()
}

#[tokio::test]
async fn messages_are_sent_at_their_time_with_key_and_headers() {
    let broker = broker(1).await;
    let due = broker.clock().now() + 2 * HOUR;
    let late = message(&broker, "late", 2).key("anna").header("colour", "red");
    schedule(&broker, &[late, message(&broker, "early", 1)]).await;
    let test = async {
        assert_eq!(ids(&sent(&broker, 1, 1).await), ["early"]);
        settled(&broker, 3).await;
        let sent = sent(&broker, 1, 2).await;
        assert_eq!(ids(&sent), ["early", "late"]);
        let late = sent.get(1).expect("two were sent");
        assert_eq!(late.key(), Some(b"anna".as_slice()));
        let due = due.as_millis().to_string();
        for (header, value) in [
            ("colour", Some("red")),
            (schedule_header::ID, Some("late")),
            (schedule_header::OFFSET, Some("0")),
            (schedule_header::AT, Some(&*due)),
            (schedule_header::TOPIC, None),
            (schedule_header::KEY, None),
        ] {
            assert_eq!(late.header(header), value.map(str::as_bytes), "{header}");
        }
    };
    app(&broker).run(test).await.expect("it runs");
}

#[tokio::test]
async fn a_message_is_cancelled_or_replaced_by_its_id() {
    let broker = broker(1).await;
    let messages =
        [("a", 1), ("b", 1), ("b", 3), ("c", 2)].map(|(id, at)| message(&broker, id, at));
    let schedule = schedule(&broker, &messages).await;
    schedule.cancel("a").await.expect("it is taken");
    let test = async {
        assert_eq!(ids(&sent(&broker, 2, 1).await), ["c"]);
        settled(&broker, 6).await;
        assert_eq!(ids(&sent(&broker, 1, 2).await), ["c", "b"]);
    };
    app(&broker).run(test).await.expect("it runs");
}

#[tokio::test]
async fn a_restart_neither_loses_nor_repeats_messages() {
    let broker = broker(1).await;
    let messages = ["a", "b", "c"].map(|id| message(&broker, id, 1));
    let late = message(&broker, "d", 5);
    schedule(&broker, &[&messages[..], &[late]].concat()).await;
    let first = async {
        assert_eq!(sent(&broker, 1, 3).await.len(), 3);
    };
    // Messages under way arrive before it ends.
    app(&broker).run(first).await.expect("it runs");
    settled(&broker, 7).await;
    // Due while nobody runs.
    broker.clock().advance(4 * HOUR);
    let second = async {
        let sent = sent(&broker, 0, 4).await;
        assert_eq!(ids(&sent).last(), Some(&"d"), "the others are not sent again");
        settled(&broker, 8).await;
    };
    app(&broker).run(second).await.expect("it runs");
}

#[tokio::test]
async fn processes_share_the_messages_out() {
    let broker = broker(4).await;
    let names: Vec<String> = (0..40).map(|number| number.to_string()).collect();
    let messages: Vec<_> = names.iter().map(|id| message(&broker, id, 1)).collect();
    schedule(&broker, &messages).await;
    let apps = [0, 1].map(|_| app(&broker));
    let assignments = apps.each_ref().map(|app| app.control().assignment());
    let (ends, ended): (Vec<_>, Vec<_>) =
        [0, 1].map(|_| oneshot::channel::<()>()).into_iter().unzip();
    let running = apps.into_iter().zip(ended).map(|(app, end)| app.run(async { drop(end.await) }));
    let test = async {
        for mut assignment in assignments {
            assignment.wait_for(|it| it.len() == 2).await.expect("the app runs");
        }
        let sent = sent(&broker, 1, 40).await;
        settled(&broker, 80).await;
        let mut sent = ids(&sent);
        sent.sort_unstable_by_key(|id| id.parse::<u32>().expect("a number"));
        assert_eq!(sent, names);
        drop(ends);
    };
    let (ended, ()) = tokio::join!(futures_util::future::join_all(running), test);
    assert!(ended.into_iter().all(|it| it.is_ok()));
}

#[tokio::test]
async fn a_topic_that_is_not_there_blocks_no_other() {
    let broker = broker(1).await;
    let at = broker.clock().now() + HOUR;
    let lost = ScheduledMessage::new("lost", "elsewhere", at, "value of lost");
    schedule(&broker, &[lost, message(&broker, "found", 1)]).await;
    let test = async {
        assert_eq!(ids(&sent(&broker, 1, 1).await), ["found"]);
        broker.create_topic("elsewhere", 1).await;
        let arrived = async {
            let read = broker.read("elsewhere", 1);
            tokio::pin!(read);
            loop {
                tokio::select! {
                    arrived = &mut read => return arrived,
                    () = tokio::task::yield_now() => broker.clock().advance(STEP),
                }
            }
        };
        let arrived = tokio::time::timeout(DEADLINE, arrived).await.expect("it is sent");
        assert_eq!(ids(&arrived), ["lost"]);
    };
    app(&broker).run(test).await.expect("it runs");
}

#[tokio::test]
async fn records_that_are_no_messages_are_passed_over() {
    let broker = broker(1).await;
    broker.produce(SCHEDULE, Some("no-headers"), "value").await;
    schedule(&broker, &[message(&broker, "good", 1)]).await;
    let test = async {
        assert_eq!(ids(&sent(&broker, 1, 1).await), ["good"]);
    };
    app(&broker).run(test).await.expect("it runs");
}
