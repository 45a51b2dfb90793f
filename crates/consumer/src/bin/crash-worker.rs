//! A worker that tests kill: it copies each record of the topic `in` to the topic `out`.
//!
//! The first line of its standard input is `ADDRESS GROUP MODE ORDER`, where the mode is
//! `exactly-once`, `at-least-once` or `share`, and the order `partition`, `key` or `none`. It is a
//! static member of its group, so that its next incarnation takes over at once, or any member of a
//! share group. It ends in good order when its input does. In the mode `share`, records whose value
//! begins with `poison` fail, and become dead letters in the topic `dead`.

use std::io::Read;
use std::time::Duration;

use moldau_client::MembershipOptions;
use moldau_consumer::{
    App, AppOptions, DeadLetters, Message, Order, Outgoing, Retry, Workers, record,
};
use tokio::sync::oneshot;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let line = std::io::stdin().lines().next().transpose()?.unwrap_or_default();
    let [address, group, mode, order] = *line.split(' ').collect::<Vec<_>>() else {
        return Err("the first line is not ADDRESS GROUP MODE ORDER".into());
    };
    let order = match order {
        "partition" => Order::Partition,
        "key" => Order::by_key(),
        "none" => Order::None,
        other => return Err(format!("{other} is no order").into()),
    };
    let options = AppOptions {
        membership: MembershipOptions {
            instance_id: Some("worker".to_owned()),
            heartbeat_interval: Duration::from_millis(100),
            ..MembershipOptions::default()
        },
        commit_interval: COMMIT_INTERVAL,
        workers: Workers::Fixed(WORKERS),
        ..AppOptions::default()
    };
    let app = App::new([address]).options(options);
    let route = record(copy).order(order).queue_max(QUEUE_RECORDS, usize::MAX);
    let app = match mode {
        "exactly-once" => {
            app.group(group).topic("in", route).exactly_once(format!("{group}-worker"))
        }
        "at-least-once" => app.group(group).topic("in", route),
        "share" => {
            let retry = Retry::exponential(ATTEMPTS, Duration::from_millis(1));
            let route = record(copy).order(order).layer(retry).layer(DeadLetters::to("dead"));
            app.share(group).topic("in", route)
        }
        other => return Err(format!("{other} is no mode").into()),
    };
    let (sender, ended) = oneshot::channel::<()>();
    std::thread::spawn(move || {
        // An error ends the input as well.
        drop(std::io::stdin().read(&mut [0]));
        drop(sender);
    });
    app.run(async { drop(ended.await) }).await?;
    Ok(())
}

async fn copy(message: Message) -> Result<Outgoing, BoxError> {
    // Handlers that wait overlap, so that a kill finds records in every stage.
    tokio::time::sleep(Duration::from_micros(fastrand::u64(0..500))).await;
    if message.value().is_some_and(|value| value.starts_with(b"poison")) {
        return Err("it is poison".into());
    }
    let copy = Outgoing::to("out").value(message.value().unwrap_or_default().to_vec());
    Ok(match message.key() {
        Some(key) => copy.key(key.to_vec()),
        None => copy,
    })
}

/// Short, so that kills find transactions and commits under way.
const COMMIT_INTERVAL: Duration = Duration::from_millis(5);

const WORKERS: usize = 16;

/// Attempts of a poison record.
const ATTEMPTS: u32 = 3;

const QUEUE_RECORDS: usize = 200;
