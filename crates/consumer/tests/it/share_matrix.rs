//! Every pair of layers that a share group permits, in both orders, with one worker and with
//! several, against the model of `matrix`. Each record is settled once.

use std::time::Duration;

use futures_util::future::join_all;
use moldau_consumer::{App, Error, Order};

use crate::matrix::{APPS, Combination, KINDS, Kind, World};
use crate::share::configure_group;
use crate::world::{DEADLINE, channel, ticking};

/// Workers of an app that has several.
const WORKERS: usize = 8;

/// An app for each pair of layers, with a route for each order that says nothing of keys.
fn pairs() -> Vec<Vec<Combination>> {
    let mut all = Vec::new();
    for inner in KINDS {
        for outer in KINDS {
            let of = |(route, order)| Combination {
                number: (all.len(), route),
                layers: [inner, outer],
                order,
                is_batch: false,
                shards: 1,
            };
            all.push([Order::Partition, Order::None].into_iter().enumerate().map(of).collect());
        }
    }
    all
}

fn is_permitted(pair: &[Combination]) -> bool {
    !pair[0].layers.contains(&Kind::RetryTopics)
}

/// One worker in one order of the layers, several in the other.
fn workers(pair: &[Combination]) -> usize {
    let [inner, outer] = pair[0].layers.map(|kind| KINDS.iter().position(|it| *it == kind));
    if inner < outer { 1 } else { WORKERS }
}

/// Runs the app of a pair until each record is accepted.
async fn run(pair: &[Combination], world: &World) {
    let World { broker, written, .. } = world;
    let group = format!("share-{}", pair[0].number.0);
    configure_group(broker, &group, "share.auto.offset.reset", "earliest").await;
    let mut options = broker.options();
    // What was said of records goes with the fetch after the one that waits.
    options.fetcher.max_wait = Duration::from_millis(20);
    let app = App::new([broker.address()]).options(options).share(&group);
    let (mut app, mut receivers) = (app.workers(workers(pair)), Vec::new());
    for combination in pair {
        let (sender, receiver) = channel();
        app = app.topic(&combination.topic(), combination.route(&world.decrypt, sender));
        receivers.push(receiver);
    }
    let control = app.control();
    let settled = async {
        loop {
            let status = control.status().await;
            let share = |number: usize| status.routes[number].share.unwrap();
            let is_settled = pair.iter().enumerate().all(|(number, combination)| {
                let settled = share(number).accepted + share(number).rejected;
                settled >= u64::try_from(written[&combination.topic()].len()).unwrap()
            });
            if is_settled {
                return (0..pair.len()).map(share).collect::<Vec<_>>();
            }
            let clock = broker.clock();
            clock.sleep_until(clock.now() + Duration::from_secs(2)).await;
        }
    };
    let mut shares = Vec::new();
    let ran = tokio::time::timeout(DEADLINE, app.run(async { shares = settled.await })).await;
    let layers = pair[0].layers;
    let ended = ran.unwrap_or_else(|_| panic!("{layers:?} does not end"));
    ended.unwrap_or_else(|error| panic!("{layers:?}: {error}"));
    for ((combination, receiver), share) in pair.iter().zip(&mut receivers).zip(shares) {
        let written = &written[&combination.topic()];
        let accepted = u64::try_from(written.len()).unwrap();
        let counted = (share.accepted, share.rejected, share.held, share.lost);
        assert_eq!(counted, (accepted, 0, 0, 0), "{combination:?}");
        let mut handled = Vec::new();
        while let Ok(seen) = receiver.try_recv() {
            handled.push(seen);
        }
        combination.check_fates(broker, written, &handled).await;
        combination.check_piped(broker, &handled).await;
    }
}

#[tokio::test]
async fn every_pair_of_layers_settles_every_record_of_a_share_group() {
    let pairs: Vec<_> = pairs().into_iter().filter(|pair| is_permitted(pair)).collect();
    assert_eq!(pairs.len(), (KINDS.len() - 1).pow(2));
    let world = World::of(&pairs).await;
    let all = async {
        for some in pairs.chunks(APPS) {
            join_all(some.iter().map(|pair| run(pair, &world))).await;
        }
    };
    ticking(&world.broker, all).await;
}

#[tokio::test]
async fn every_pair_with_retry_topics_is_refused_by_a_share_group() {
    let refused: Vec<_> = pairs().into_iter().filter(|pair| !is_permitted(pair)).collect();
    assert_eq!(refused.len(), 2 * KINDS.len() - 1);
    let world = World::of(&refused[..1]).await;
    for combination in refused.iter().flatten() {
        let (sender, _receiver) = channel();
        let route = combination.route(&world.decrypt, sender);
        let app = App::new(["127.0.0.1:1"]).share("group").topic("topic", route);
        let ended = app.run(std::future::ready(())).await;
        assert!(matches!(ended, Err(Error::NotShared("retry topics"))), "{combination:?}");
    }
}
