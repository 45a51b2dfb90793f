//! Fetch sessions, and fetches that wait.

use moldau_protocol::messages::fetch_request::{FetchTopic, ForgottenTopic};
use moldau_protocol::messages::{FetchRequest, FetchResponse};
use moldau_protocol::{ErrorCode, Uuid};

use super::requests::{FETCH_BY_NAME, fetch, fetch_topic, fetch_topic_id, only};
use super::world::{NOW_MS, World, base_offsets, batch, code};

/// Longer than any test takes: an answer that comes was woken by something else.
const LONG_MS: i32 = 300_000;

fn in_session(session_id: i32, session_epoch: i32, topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest { session_id, session_epoch, ..fetch(topics) }
}

fn waiting(topics: Vec<FetchTopic>) -> FetchRequest {
    FetchRequest { max_wait_ms: LONG_MS, ..fetch(topics) }
}

/// The partitions that an answer mentions.
fn mentioned(response: &FetchResponse) -> Vec<i32> {
    assert_eq!(code(response.error_code), ErrorCode::None);
    let topics = response.responses.iter();
    topics.flat_map(|topic| &topic.partitions).map(|partition| partition.partition_index).collect()
}

/// A world with a session over all three partitions of a topic.
fn with_session() -> (World, Uuid, i32) {
    let world = World::new();
    let id = world.create("orders", 3);
    world.append("orders", 1, batch(NOW_MS, &["a"]));
    let places = [(0, 0), (1, 0), (2, 0)];
    let full = world.ask(&in_session(0, 0, vec![fetch_topic_id(id, &places)]));
    assert_eq!(mentioned(&full), [0, 1, 2]);
    assert_ne!(full.session_id, 0);
    (world, id, full.session_id)
}

#[test]
fn incremental_response_omits_unchanged_partitions() {
    let (world, id, session) = with_session();
    let moved = vec![fetch_topic_id(id, &[(1, 1)])];
    let second = world.ask(&in_session(session, 1, moved));
    assert_eq!((mentioned(&second), second.session_id), (vec![], session));
    world.append("orders", 2, batch(NOW_MS, &["b"]));
    let third = world.ask(&in_session(session, 2, Vec::new()));
    assert_eq!(mentioned(&third), [2]);
    assert_eq!(base_offsets(third.responses[0].partitions[0].records.as_ref()), [0]);
}

#[test]
fn a_partition_is_returned_again_until_the_consumer_moves_on() {
    let (world, _, session) = with_session();
    for epoch in [1, 2] {
        assert_eq!(mentioned(&world.ask(&in_session(session, epoch, Vec::new()))), [1]);
    }
}

#[test]
fn a_forgotten_partition_is_not_served_and_an_added_one_is() {
    let (world, id, session) = with_session();
    let forget =
        |partitions| ForgottenTopic { topic_id: id, partitions, ..ForgottenTopic::default() };
    let forgetting = FetchRequest {
        forgotten_topics_data: vec![forget(vec![1])],
        ..in_session(session, 1, Vec::new())
    };
    assert!(mentioned(&world.ask(&forgetting)).is_empty());
    let adding = in_session(session, 2, vec![fetch_topic_id(id, &[(1, 0)])]);
    assert_eq!(mentioned(&world.ask(&adding)), [1]);
}

#[test]
fn session_refuses_a_wrong_epoch_and_ends_with_the_final_one() {
    let (world, _, session) = with_session();
    let wrong = world.ask(&in_session(session, 2, Vec::new()));
    assert_eq!(code(wrong.error_code), ErrorCode::InvalidFetchSessionEpoch);
    assert!(wrong.responses.is_empty());
    let right = world.ask(&in_session(session, 1, Vec::new()));
    assert_eq!(code(right.error_code), ErrorCode::None);
    let last = world.ask(&in_session(session, -1, Vec::new()));
    assert_eq!((code(last.error_code), last.session_id), (ErrorCode::None, 0));
    let gone = world.ask(&in_session(session, 2, Vec::new()));
    assert_eq!(code(gone.error_code), ErrorCode::FetchSessionIdNotFound);
}

#[test]
fn sessions_learn_about_a_deleted_topic() {
    let (world, _, session) = with_session();
    world.delete("orders");
    let told = world.ask(&in_session(session, 1, Vec::new()));
    // The partition that returned records before is the last in turn.
    assert_eq!(mentioned(&told), [0, 2, 1]);
    let mut codes = told.responses[0].partitions.iter().map(|it| code(it.error_code));
    assert!(codes.all(|code| code == ErrorCode::UnknownTopicId));
}

#[test]
fn raised_log_start_is_reported_without_records() {
    let (world, id, session) = with_session();
    world.ask(&in_session(session, 1, vec![fetch_topic_id(id, &[(1, 1)])]));
    world.state.storage.log(moldau_storage::TopicId(id.into_bytes()), 1).delete_records(1).unwrap();
    let told = world.ask(&in_session(session, 2, Vec::new()));
    assert_eq!(mentioned(&told), [1]);
    assert_eq!(told.responses[0].partitions[0].log_start_offset, 1);
}

#[test]
fn a_waiting_fetch_is_woken_by_a_produce_to_any_of_its_partitions() {
    let world = World::new();
    world.create("orders", 3);
    let topics = vec![fetch_topic("orders", &[(0, 0), (1, 0), (2, 0)])];
    let mut pending = world.begin(FETCH_BY_NAME, &waiting(topics));
    assert!(!world.poll(&mut pending));
    world.append("orders", 2, batch(NOW_MS, &["a"]));
    let response = world.finish::<FetchRequest>(pending);
    assert_eq!(base_offsets(response.responses[0].partitions[2].records.as_ref()), [0]);
}

#[test]
fn waiting_fetch_waits_for_its_minimum_bytes() {
    let world = World::new();
    world.create("orders", 2);
    let records = batch(NOW_MS, &["a"]);
    let min_bytes = i32::try_from(2 * records.len()).unwrap();
    let topics = vec![fetch_topic("orders", &[(0, 0), (1, 0)])];
    let request = FetchRequest { min_bytes, ..waiting(topics) };
    let mut pending = world.begin(FETCH_BY_NAME, &request);
    assert!(!world.poll(&mut pending));
    world.append("orders", 0, records.clone());
    assert!(!world.poll(&mut pending), "half of it is not enough");
    world.append("orders", 1, records);
    let response = world.finish::<FetchRequest>(pending);
    let partitions = &response.responses[0].partitions;
    assert!(partitions.iter().all(|it| base_offsets(it.records.as_ref()) == [0]));
}

#[test]
fn a_waiting_fetch_ends_when_its_topic_is_deleted() {
    let world = World::new();
    world.create("orders", 1);
    let topics = vec![fetch_topic("orders", &[(0, 0)])];
    let mut pending = world.begin(FETCH_BY_NAME, &waiting(topics));
    assert!(!world.poll(&mut pending));
    world.delete("orders");
    let mut response = world.finish::<FetchRequest>(pending);
    assert_eq!(code(only(&mut response).error_code), ErrorCode::UnknownTopicOrPartition);
}

#[test]
fn waiting_fetch_times_out_empty() {
    let world = World::new();
    world.create("orders", 1);
    let topics = vec![fetch_topic("orders", &[(0, 0)])];
    let request = FetchRequest { max_wait_ms: 1, ..fetch(topics) };
    let mut response = world.ask_in(FETCH_BY_NAME, &request);
    let partition = only(&mut response);
    assert_eq!(code(partition.error_code), ErrorCode::None);
    assert!(partition.records.is_none_or(|records| records.is_empty()));
}

#[test]
fn an_error_and_an_empty_fetch_do_not_wait() {
    let world = World::new();
    world.create("orders", 1);
    let topics = vec![fetch_topic("orders", &[(0, 0), (5, 0)])];
    let mut refused = world.begin(FETCH_BY_NAME, &waiting(topics));
    assert!(world.poll(&mut refused));
    let mut empty = world.begin(FETCH_BY_NAME, &waiting(Vec::new()));
    assert!(world.poll(&mut empty));
}

#[test]
fn a_small_answer_serves_the_partitions_of_a_session_in_turn() {
    let world = World::new();
    let id = world.create("orders", 3);
    for partition in 0..3 {
        world.append("orders", partition, batch(NOW_MS, &["a"]));
    }
    let small = |session, epoch, topics| FetchRequest {
        max_bytes: 1,
        ..in_session(session, epoch, topics)
    };
    let places = [(0, 0), (1, 0), (2, 0)];
    let mut response = world.ask(&small(0, 0, vec![fetch_topic_id(id, &places)]));
    let mut served = Vec::new();
    for epoch in 1..=3 {
        let with_records = response.responses.iter().flat_map(|topic| &topic.partitions);
        let with_records = with_records.filter(|it| !base_offsets(it.records.as_ref()).is_empty());
        served.extend(with_records.map(|it| it.partition_index));
        response = world.ask(&small(response.session_id, epoch, Vec::new()));
    }
    assert_eq!(served, [0, 1, 2]);
}

/// A fetch that asked for more than it had room for got its full answer after the whole wait.
#[test]
fn a_full_answer_does_not_wait_for_more() {
    let world = World::new();
    world.create("orders", 1);
    let records = batch(NOW_MS, &["a"]);
    world.append("orders", 0, records.clone());
    let max_bytes = i32::try_from(records.len()).unwrap();
    let topics = vec![fetch_topic("orders", &[(0, 0)])];
    let request = FetchRequest { min_bytes: 2 * max_bytes, max_bytes, ..waiting(topics) };
    let mut pending = world.begin(FETCH_BY_NAME, &request);
    assert!(world.poll(&mut pending));
}

/// Whole batches came to less than what was waited for, however many there were: each answer took
/// the whole wait.
#[test]
fn fetch_does_not_wait_for_available_bytes_beyond_its_limit() {
    let world = World::new();
    world.create("orders", 1);
    let records = batch(NOW_MS, &["a"]);
    let bytes = i32::try_from(records.len()).unwrap();
    world.append("orders", 0, records.clone());
    let mut topic = fetch_topic("orders", &[(0, 0)]);
    topic.partitions[0].partition_max_bytes = bytes + 1;
    let of_partition = FetchRequest { min_bytes: bytes + 1, ..waiting(vec![topic]) };
    let topics = vec![fetch_topic("orders", &[(0, 0)])];
    let max_bytes = bytes + 1;
    let of_answer = FetchRequest { min_bytes: max_bytes, max_bytes, ..waiting(topics) };
    for request in [&of_partition, &of_answer] {
        let mut pending = world.begin(FETCH_BY_NAME, request);
        assert!(!world.poll(&mut pending), "there is less");
    }
    world.append("orders", 0, records);
    for request in [&of_partition, &of_answer] {
        let mut pending = world.begin(FETCH_BY_NAME, request);
        let mut response = world.poll_decoded::<FetchRequest>(&mut pending).expect("it is there");
        assert_eq!(base_offsets(only(&mut response).records.as_ref()), [0]);
    }
}
