//! Which requests are struck, and by what.

use bytes::Bytes;
use moldau_net::Principal;
use moldau_protocol::messages::{
    FetchRequest, HeartbeatRequest, HeartbeatResponse, ListOffsetsResponse, ProduceResponse,
    list_offsets_response,
};
use tokio::time::Instant;

use super::*;
use crate::batches::tests::{Session as World, context, produce, request, response, values};

fn rule(api: ApiKey, probability: f64, fault: ChaosFault) -> ChaosRule {
    ChaosRule { apis: vec![api], topics: Vec::new(), principals: Vec::new(), probability, fault }
}

fn filter(seed: u64, rules: Vec<ChaosRule>) -> Arc<Chaos> {
    Arc::new(Chaos::new(ChaosSettings { seed, rules }).unwrap())
}

fn heartbeat() -> RequestFrame {
    request(4, &HeartbeatRequest::default())
}

/// Which of many requests are struck, on the sessions of a filter.
fn struck(seed: u64) -> Vec<bool> {
    let filter = filter(seed, vec![rule(ApiKey::Heartbeat, 0.3, ChaosFault::Disconnect)]);
    let sessions = [World::new(&filter), World::new(&filter)];
    let requests = (0..1000).map(|at| sessions[at % 2].request(heartbeat()));
    requests.map(|outcome| matches!(outcome, RequestOutcome::Close(None))).collect()
}

#[test]
fn a_seed_strikes_the_same_requests_again_and_as_many_as_it_should() {
    let one = struck(1);
    assert_eq!(one, struck(1));
    assert_ne!(one, struck(2));
    let count = one.iter().filter(|is_struck| **is_struck).count();
    assert!((250..350).contains(&count), "{count}");
    let of_session = |at: usize| one.iter().skip(at).step_by(2).collect::<Vec<_>>();
    assert_ne!(of_session(0), of_session(1));
}

#[test]
fn records_are_refused_before_the_cluster_sees_them() {
    let code = ErrorCode::NotLeaderOrFollower;
    let world = World::new(&filter(1, vec![rule(ApiKey::Produce, 1.0, ChaosFault::Error(code))]));
    let batch: Bytes = values(&["a"]);
    let outcome = world.request(produce(9, &[("t", &[&batch, &batch])]));
    let RequestOutcome::Respond(answer) = outcome else { panic!("{outcome:?}") };
    let answer: ProduceResponse = answer.decode().unwrap();
    let codes = answer.responses[0].partition_responses.iter().map(|it| it.error_code);
    assert_eq!(codes.collect::<Vec<_>>(), [i16::from(code); 2]);
}

#[test]
fn other_answers_fail_in_all_their_codes_and_keep_the_rest() {
    let code = ErrorCode::CoordinatorNotAvailable;
    let apis = vec![ApiKey::Heartbeat, ApiKey::ListOffsets];
    let error = ChaosRule { apis, ..rule(ApiKey::Heartbeat, 1.0, ChaosFault::Error(code)) };
    let world = World::new(&filter(1, vec![error]));
    for version in ApiKey::Heartbeat.valid_versions().iter() {
        world.forwarded(request(version, &HeartbeatRequest::default()));
        let answer = world.response(response(version, &HeartbeatResponse::default()));
        let answer: HeartbeatResponse = answer.decode().unwrap();
        assert_eq!(answer.error_code, i16::from(code));
    }
    let partition = |partition_index| list_offsets_response::ListOffsetsPartitionResponse {
        partition_index,
        offset: 17,
        ..Default::default()
    };
    let topic = list_offsets_response::ListOffsetsTopicResponse {
        name: "t".to_owned(),
        partitions: vec![partition(3), partition(4)],
        ..Default::default()
    };
    let mut said = ListOffsetsResponse { topics: vec![topic], ..Default::default() };
    world.forwarded(request(7, &moldau_protocol::messages::ListOffsetsRequest::default()));
    let answer: ListOffsetsResponse = world.response(response(7, &said)).decode().unwrap();
    said.topics[0].partitions.iter_mut().for_each(|it| it.error_code = code.into());
    assert_eq!(answer, said);
}

#[test]
fn only_what_a_rule_names_is_struck() {
    let of = |topics: &[&str], principals: &[&str]| ChaosRule {
        topics: topics.iter().map(|&it| it.to_owned()).collect(),
        principals: principals.iter().map(|&it| it.to_owned()).collect(),
        ..rule(ApiKey::Produce, 1.0, ChaosFault::Disconnect)
    };
    let batch = values(&["a"]);
    let is_struck = |rule: ChaosRule, topic: &str| {
        let world = World::with(&filter(1, vec![rule]), &context(Principal::user("bob")));
        let outcome = world.request(produce(9, &[("first", &[&batch]), (topic, &[&batch])]));
        matches!(outcome, RequestOutcome::Close(None))
    };
    assert!(is_struck(of(&[], &[]), "t"));
    assert!(is_struck(of(&["t*"], &["User:bob"]), "t2"));
    assert!(!is_struck(of(&["t"], &[]), "t2"));
    assert!(!is_struck(of(&[], &["User:alice"]), "t"));
    assert!(!is_struck(ChaosRule { probability: 0.0, ..of(&[], &[]) }, "t"));
    let claims = filter(1, vec![of(&[], &[])]);
    assert!(claims.claims(ApiKey::Produce, Direction::Request));
    assert!(!claims.claims(ApiKey::Produce, Direction::Response));
    assert!(!claims.claims(ApiKey::Fetch, Direction::Request));
}

#[tokio::test(start_paused = true)]
async fn latencies_add_up_and_come_before_the_end() {
    let (one, two) = (Duration::from_secs(1), Duration::from_secs(2));
    let rules = vec![
        rule(ApiKey::Fetch, 1.0, ChaosFault::Latency(one)),
        rule(ApiKey::Fetch, 1.0, ChaosFault::LatencyBetween(one, two)),
        rule(ApiKey::Fetch, 1.0, ChaosFault::Disconnect),
        rule(ApiKey::Fetch, 1.0, ChaosFault::Latency(one)),
    ];
    let world = World::new(&filter(1, rules));
    let start = Instant::now();
    let outcome = world.start(request(12, &FetchRequest::default())).await.unwrap();
    assert!(matches!(outcome, RequestOutcome::Close(None)));
    // The clock stands still but for what is waited for.
    assert!((one + one..=one + two).contains(&start.elapsed()), "{:?}", start.elapsed());
}

#[test]
fn rules_that_make_no_sense_are_refused() {
    let is_wrong = |rule| Chaos::new(ChaosSettings { seed: 0, rules: vec![rule] }).is_err();
    let (api, second) = (ApiKey::Fetch, Duration::from_secs(1));
    assert!(is_wrong(rule(api, 1.1, ChaosFault::Disconnect)));
    assert!(is_wrong(rule(api, f64::NAN, ChaosFault::Disconnect)));
    assert!(is_wrong(rule(api, 1.0, ChaosFault::Latency(LATENCY_MAX + second))));
    assert!(is_wrong(rule(api, 1.0, ChaosFault::LatencyBetween(second * 2, second))));
    assert!(is_wrong(ChaosRule { apis: Vec::new(), ..rule(api, 1.0, ChaosFault::Disconnect) }));
}
