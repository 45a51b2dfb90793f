//! Apps with background tasks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Background, Stage};
use crate::testing::TestBroker;
use crate::{App, Error, Message, record};

async fn app(broker: &TestBroker) -> App {
    broker.create_topic("orders", 1).await;
    broker.app("workers").topic("orders", record(async |_: Message| Ok::<(), String>(())))
}

fn cause(ended: Result<(), Error>) -> (&'static str, String) {
    match ended {
        Err(Error::Background { name, source }) => (name, source.to_string()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_task_that_fails_shuts_the_app_down() {
    let broker = TestBroker::start();
    let failing = Background::new("port", async |_, _| Err("in use".into()));
    let app = app(&broker).await.background(failing);
    let ended = app.run(std::future::pending()).await;
    assert_eq!(cause(ended), ("port", "in use".to_owned()));
}

#[tokio::test]
async fn a_task_that_panics_shuts_the_app_down() {
    let broker = TestBroker::start();
    let panicking = Background::new("timer", async |_, _| panic!("no time"));
    let app = app(&broker).await.background(panicking);
    let ended = app.run(std::future::pending()).await;
    assert_eq!(cause(ended), ("timer", "panicked: no time".to_owned()));
}

#[tokio::test]
async fn a_task_is_told_the_stages_of_the_app() {
    let broker = TestBroker::start();
    let stages = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&stages);
    let (assigned, is_assigned) = tokio::sync::oneshot::channel();
    let task = Background::new("port", async move |services, mut lifecycle| {
        let mut assignment = services.assignment.clone();
        assignment.wait_for(|it| it.len() == 1).await?;
        assigned.send(()).expect("the app runs");
        for stage in [Stage::Draining, Stage::Ended] {
            lifecycle.reached(stage).await;
            seen.lock().expect("no panic").push(stage);
        }
        assert!(services.assignment.borrow().is_empty(), "partitions are given back by then");
        Ok(())
    });
    let app = app(&broker).await.background(task);
    app.run(async { is_assigned.await.expect("an assignment") }).await.expect("it ends");
    assert_eq!(*stages.lock().expect("no panic"), [Stage::Draining, Stage::Ended]);
}

#[tokio::test]
async fn a_task_that_does_not_return_is_cancelled() {
    let broker = TestBroker::start();
    let held = Arc::new(());
    let holder = Arc::clone(&held);
    let endless = Background::new("port", async move |_, _| {
        let _holder = holder;
        std::future::pending().await
    });
    let app = app(&broker).await.background(endless);
    let running = app.run(std::future::ready(()));
    let advance = async {
        loop {
            broker.clock().advance(Duration::from_secs(1));
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        ended = running => ended.expect("it ends"),
        () = advance => {}
    }
    assert_eq!(Arc::strong_count(&held), 1, "it is gone");
}
