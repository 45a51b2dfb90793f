//! A worker with an admin port, on a broker that it starts itself: open the address that it
//! prints. Some of its records fail.
//!
//! `cargo run -p moldau-consumer --example consumer-admin`

use std::time::Duration;

use moldau_consumer::testing::TestBroker;
use moldau_consumer::{Clock, DeadLetters, Json, Order, Retry, record};
use serde::Deserialize;

#[derive(Deserialize, schemars::JsonSchema)]
struct Purchase {
    customer: String,
    price: u32,
}

async fn handle(Json(purchase): Json<Purchase>) -> Result<(), String> {
    match purchase.price % 50 {
        0 => Err(format!("{} has no credit", purchase.customer)),
        _ => Ok(()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> moldau_consumer::Result<()> {
    let broker = TestBroker::start();
    for (topic, partitions) in [("purchases", 6), ("returns", 2), ("purchases.dead", 2)] {
        broker.create_topic(topic, partitions).await;
    }
    let mut options = broker.options();
    options.clock = Clock::system();
    let purchases = record(handle)
        .payload::<Purchase>()
        .layer(Retry::exponential(3, Duration::from_millis(500)))
        .layer(DeadLetters::to("purchases.dead"))
        .order(Order::by_key());
    let returns = record(handle).layer(DeadLetters::to("purchases.dead"));
    let app = broker
        .app("shop")
        .options(options)
        .topic("purchases", purchases)
        .topic("returns", returns)
        .admin("127.0.0.1:9600");
    let control = app.control();
    let work = async {
        let address = control.admin_address().await;
        println!("http://{}", address.map(|it| it.to_string()).unwrap_or_default());
        for number in 0_u32.. {
            let customer = format!("customer-{}", number % 100);
            let value = match number % 97 {
                0 => "not JSON".to_owned(),
                _ => format!(r#"{{"customer": "{customer}", "price": {number}}}"#),
            };
            let topic = if number % 5 == 0 { "returns" } else { "purchases" };
            broker.produce(topic, Some(&customer), &value).await;
        }
    };
    let shutdown = async {
        tokio::select! {
            () = work => {}
            _ = tokio::signal::ctrl_c() => {}
        }
    };
    Box::pin(app.run(shutdown)).await
}
