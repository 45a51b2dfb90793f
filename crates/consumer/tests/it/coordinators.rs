//! Coordinators that are lost while records are handled.

use std::sync::Arc;

use moldau_client::GroupProtocol;
use moldau_consumer::testing::TestBroker;
use moldau_consumer::{AnyRoute, App, Message, record};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, Semaphore};

use crate::world::{GROUP, Seen, TOPIC, broker, channel, drained, next, values};

/// Holds the record "held" until it is let go.
#[derive(Clone)]
struct Gate {
    reached: Arc<Notify>,
    open: Arc<Semaphore>,
}

impl Gate {
    fn new() -> Self {
        Self { reached: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    fn route(&self, sender: &UnboundedSender<Seen>) -> AnyRoute {
        let (gate, sender) = (self.clone(), sender.clone());
        let handler = move |message: Message| {
            let (gate, sender) = (gate.clone(), sender.clone());
            async move {
                if message.value() == Some(b"held") {
                    gate.reached.notify_one();
                    drop(gate.open.acquire().await);
                }
                sender.send(Seen::of(&message))
            }
        };
        record(handler).into()
    }
}

/// Loses the coordinator while a record is handled: that one and those after it are handled once,
/// and committed.
async fn goes_on(
    mut broker: TestBroker,
    app: impl FnOnce(&TestBroker) -> App,
    lose: impl AsyncFnOnce(&mut TestBroker),
) {
    let gate = Gate::new();
    let (sender, mut receiver) = channel();
    let app = app(&broker).topic(TOPIC, gate.route(&sender));
    let test = async {
        broker.produce_all(TOPIC, &[(None, "before"), (None, "held")]).await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["before"]);
        gate.reached.notified().await;
        lose(&mut broker).await;
        gate.open.add_permits(1);
        assert_eq!(values(&next(&mut receiver, 1).await), ["held"]);
        drained(&broker, GROUP, TOPIC).await;
        broker.produce(TOPIC, None, "after").await;
        assert_eq!(values(&next(&mut receiver, 1).await), ["after"]);
        drained(&broker, GROUP, TOPIC).await;
    };
    app.run(test).await.unwrap();
    assert!(receiver.try_recv().is_err(), "nothing comes again");
}

fn app_of(broker: &TestBroker, protocol: GroupProtocol) -> App {
    let mut options = broker.options();
    options.membership.protocol = protocol;
    broker.app(GROUP).options(options)
}

#[tokio::test]
async fn a_coordinator_that_restarts_gets_the_commit_of_what_was_handled_meanwhile() {
    let app = |broker: &TestBroker| app_of(broker, GroupProtocol::Consumer);
    goes_on(broker(1, &[]).await, app, async |broker| broker.restart().await).await;
}

#[tokio::test]
async fn a_coordinator_of_a_classic_group_that_restarts_gets_the_commit() {
    let app = |broker: &TestBroker| app_of(broker, GroupProtocol::Classic);
    goes_on(broker(1, &[]).await, app, async |broker| broker.restart().await).await;
}

#[tokio::test]
async fn a_coordinator_whose_connection_ended_gets_the_commit_of_what_was_handled_meanwhile() {
    let app = |broker: &TestBroker| broker.app_with_faults(GROUP);
    goes_on(broker(1, &[]).await, app, async |broker| broker.faults().disconnect()).await;
}
