//! Sessions that go on through the filters of another configuration.

use super::*;

/// The first request after a reload was still admitted by the filters before it, and those that
/// refuse an API do not claim it.
#[test]
fn what_the_filters_of_a_reload_refuse_does_not_pass_once_more() {
    with_filters(vec![marking("a", 1)], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        world.arrives::<HeartbeatRequest>().await;
        world.answer_heartbeat(1, 0).await;
        world.heartbeat_comes(1).await;
        let forbidden = Some(ApiKey::Heartbeat);
        world.reload(Scripted { forbidden, ..declining(ApiKey::Metadata) });
        world.send(4, 2, &heartbeat("g")).await;
        let ended = world.closed().await;
        assert!(matches!(ended, Ended::Malformed(Side::Downstream, _)), "{ended}");
    });
}

/// Only the first of two reloads was noticed by the answer behind both.
#[test]
fn an_answer_goes_through_the_filters_of_the_last_reload_before_its_request() {
    with_filters(vec![marking("a", 1)], async |mut world| {
        world.send(4, 1, &heartbeat("g")).await;
        assert_eq!(world.arrives::<HeartbeatRequest>().await.2.group_id, "ga");
        world.reload(marking("b", 2));
        world.send(9, 2, &produce(0, 10)).await;
        world.arrives::<ProduceRequest>().await;
        world.reload(marking("c", 3));
        world.send(4, 3, &heartbeat("g")).await;
        assert_eq!(world.arrives::<HeartbeatRequest>().await.2.group_id, "gc");
        world.answer_heartbeat(1, 0).await;
        world.answer_heartbeat(3, 0).await;
        assert_eq!([world.heartbeat_comes(1).await, world.heartbeat_comes(3).await], [1, 3]);
    });
}
