//! How sessions are charged, throttled and held.

use moldau_net::Principal;
use moldau_protocol::messages::{FetchResponse, HeartbeatRequest};

use super::*;
use crate::batches::tests::{
    Session as World, context, fetched, produce, request, response, values,
};

fn limit(entity: QuotaEntity) -> QuotaLimit {
    QuotaLimit {
        entity,
        produce_bytes_per_second: None,
        fetch_bytes_per_second: None,
        requests_per_second: None,
    }
}

fn filter(limits: Vec<QuotaLimit>) -> Arc<Quota> {
    let settings = QuotaSettings { limits, burst: Duration::from_secs(1) };
    Arc::new(Quota::new(&settings).unwrap())
}

/// Sends a batch and gives what its answer says of the throttle, in ms.
async fn throttle(world: &World, version: i16, topic: &str) -> i32 {
    let request = produce(version, &[(topic, &[&values(&["0123456789"; 10])])]);
    assert!(matches!(world.start(request).await.unwrap(), RequestOutcome::Forward(_)));
    told(world, version).await
}

async fn told(world: &World, version: i16) -> i32 {
    let answer = response(version, &ProduceResponse { throttle_time_ms: 3, ..Default::default() });
    let answer: ProduceResponse = world.answer(answer).await.decode().unwrap();
    answer.throttle_time_ms
}

#[tokio::test(start_paused = true)]
async fn a_producer_beyond_its_limit_is_throttled_and_held() {
    for entity in [QuotaEntity::Principal(None), QuotaEntity::ClientId(Some("cl*".to_owned()))] {
        let limit = QuotaLimit { produce_bytes_per_second: Some(1000), ..limit(entity) };
        let filter = filter(vec![limit]);
        let world = World::new(&filter);
        let start = Instant::now();
        let mut owed = 0;
        // The cluster's own value stays if nothing is owed.
        while owed == 0 {
            match throttle(&world, 9, "t").await {
                3 => {}
                more => owed = more,
            }
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
        assert!((1..1000).contains(&owed), "{owed}");
        throttle(&world, 9, "t").await;
        let held = i32::try_from(start.elapsed().as_millis()).unwrap();
        assert!((owed..=owed + 2).contains(&held), "{held} {owed}");
        assert_eq!(filter.throttled.get(), 2);
        // Sessions of one name share its bucket, others have their own.
        assert!(throttle(&World::new(&filter), 9, "t").await > 3);
    }
}

#[tokio::test(start_paused = true)]
async fn topics_are_charged_for_their_records_by_name_or_id() {
    let topic = QuotaEntity::Topic(Some("small".to_owned()));
    let limit = QuotaLimit { produce_bytes_per_second: Some(1), ..limit(topic) };
    let world = World::new(&filter(vec![limit]));
    assert_eq!(throttle(&world, 9, "other").await, 3);
    let owed = throttle(&world, 9, "small").await;
    assert_eq!(u128::try_from(owed).unwrap(), THROTTLE_MAX.as_millis());
}

#[tokio::test(start_paused = true)]
async fn fetched_bytes_are_charged_when_they_come() {
    for version in ApiKey::Fetch.valid_versions().iter() {
        let entity = QuotaEntity::Principal(Some("User:bob".to_owned()));
        let limit = QuotaLimit { fetch_bytes_per_second: Some(100), ..limit(entity) };
        let filter = filter(vec![limit]);
        let world = World::with(&filter, &context(Principal::user("bob")));
        let answer = fetched(version, "t", &[values(&["0123456789"; 30])]);
        let mut came: FetchResponse = answer.decode().unwrap();
        let after: FetchResponse = world.answer(answer).await.decode().unwrap();
        assert!(after.throttle_time_ms > 1000, "{}", after.throttle_time_ms);
        came.throttle_time_ms = after.throttle_time_ms;
        assert_eq!(after, came);
        let alice = World::new(&filter);
        let free = fetched(version, "t", &[values(&["0123456789"; 30])]);
        let bytes = free.bytes().to_vec();
        assert_eq!(alice.answer(free).await.bytes(), bytes);
    }
}

#[tokio::test(start_paused = true)]
async fn requests_of_any_api_are_counted_and_held() {
    let limit = QuotaLimit { requests_per_second: Some(2), ..limit(QuotaEntity::Principal(None)) };
    let filter = filter(vec![limit]);
    assert!(filter.claims(ApiKey::Heartbeat, Direction::Request));
    assert!(!filter.claims(ApiKey::Heartbeat, Direction::Response));
    assert!(!filter.claims(ApiKey::SaslHandshake, Direction::Request));
    let world = World::new(&filter);
    let start = Instant::now();
    for _ in 0..12 {
        world.start(request(4, &HeartbeatRequest::default())).await.unwrap();
    }
    // Two are free, one goes before each time that it owes.
    let held = start.elapsed().as_millis();
    assert!((4400..=4600).contains(&held), "{held}");
}

#[test]
fn limits_of_bytes_alone_leave_other_apis_alone() {
    let limit =
        QuotaLimit { fetch_bytes_per_second: Some(1), ..limit(QuotaEntity::ClientId(None)) };
    let filter = filter(vec![limit]);
    assert!(filter.claims(ApiKey::Fetch, Direction::Response));
    assert!(!filter.claims(ApiKey::Heartbeat, Direction::Request));
}
