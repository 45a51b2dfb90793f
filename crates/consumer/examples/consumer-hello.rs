//! A worker with retries and dead letters, on a broker that it starts itself.
//!
//! `cargo run -p moldau-consumer --example consumer-hello`

use std::time::Duration;

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Attempt, Clock, DeadLetters, Json, Order, Retry, State, header, record};
use serde::Deserialize;
use tokio::sync::mpsc::{Sender, channel};

#[derive(Deserialize)]
struct Purchase {
    customer: String,
    item: String,
}

/// Handles one record. The failure of the item `anvil` passes with the second attempt.
async fn handle(
    Json(purchase): Json<Purchase>,
    Attempt(attempt): Attempt,
    State(handled): State<Sender<String>>,
) -> Result<(), String> {
    let Purchase { customer, item } = purchase;
    if item == "anvil" && attempt == 1 {
        return Err("too heavy".to_owned());
    }
    let line = format!("{customer} gets: {item} (attempt {attempt})");
    handled.send(line).await.map_err(|error| error.to_string())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> moldau_consumer::Result<()> {
    for line in run().await? {
        println!("{line}");
    }
    Ok(())
}

/// Runs the worker until all is handled; returns what it did.
pub(crate) async fn run() -> moldau_consumer::Result<Vec<String>> {
    let broker = TestBroker::start();
    broker.create_topic("orders", 3).await;
    broker.create_topic("orders.dead", 1).await;
    let records = [
        (Some("anna"), r#"{"customer": "anna", "item": "anvil"}"#),
        (Some("anna"), r#"{"customer": "anna", "item": "book"}"#),
        (Some("ben"), r#"{"customer": "ben", "item": "lamp"}"#),
        (Some("carl"), "not JSON"),
    ];
    broker.produce_all("orders", &records).await;

    let (sender, mut handled) = channel(16);
    let mut options = broker.options();
    options.clock = Clock::system();
    let orders = record(handle)
        .layer(Retry::exponential(3, Duration::from_millis(100)))
        .layer(DeadLetters::to("orders.dead"))
        .order(Order::by_key());
    let app = broker.app("shop").options(options).state(sender).topic("orders", orders);

    let mut lines: Vec<String> = Vec::new();
    let shutdown = async {
        while lines.len() < 3 {
            lines.extend(handled.recv().await);
        }
        // Different keys have no order.
        lines.sort_by_key(|line| line.split(' ').next().map(str::to_owned));
        for letter in broker.read("orders.dead", 1).await {
            let cause = letter.header(header::CAUSE).unwrap_or_default();
            lines.push(format!("dead letter: {}", String::from_utf8_lossy(cause)));
        }
    };
    app.run(shutdown).await?;
    lines.push(format!("committed: {} records", broker.committed("shop", "orders").await));
    Ok(lines)
}
