//! What the lines of the audit tell, and what they do not.

use bytes::Bytes;
use moldau_net::Principal;
use moldau_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use moldau_protocol::messages::create_topics_response::CreatableTopicResult;
use moldau_protocol::messages::{
    AlterUserScramCredentialsRequest, AlterUserScramCredentialsResponse, CreateAclsRequest,
    CreateTopicsRequest, CreateTopicsResponse, ProduceResponse, SaslAuthenticateRequest,
    SaslAuthenticateResponse, alter_user_scram_credentials_request, create_acls_request,
    produce_response,
};
use moldau_protocol::{ErrorCode, Request};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use super::*;
use crate::batches::tests::{
    Session as World, context, fetched, produce, request, response, values,
};

fn audit(when_full: WhenFull, room: usize) -> (Arc<Audit>, Receiver<Vec<u8>>) {
    let (sink, lines) = mpsc::channel(room);
    let summary_interval = Duration::from_secs(60);
    let settings = AuditSettings { apis: AUDITED_APIS.to_vec(), summary_interval, when_full };
    (Arc::new(Audit::new(settings, sink)), lines)
}

fn next(lines: &mut Receiver<Vec<u8>>) -> Value {
    let line = lines.try_recv().unwrap();
    assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
    serde_json::from_slice(&line).unwrap()
}

/// The line about a request and its answer.
fn line<Q: Request>(version: i16, asked: &Q, said: &Q::Response) -> Value {
    let (audit, mut lines) = audit(WhenFull::Drop, 9);
    let world = World::new(&audit);
    world.forwarded(request(version, asked));
    let answer = response(version, said);
    let bytes = answer.bytes().to_vec();
    assert_eq!(world.response(answer).bytes(), bytes);
    next(&mut lines)
}

#[test]
fn a_line_tells_who_did_what_with_which_result() {
    let topic = |name: &str| CreatableTopic {
        name: name.to_owned(),
        num_partitions: 3,
        replication_factor: 1,
        configs: vec![CreatableTopicConfig {
            name: "retention.ms".to_owned(),
            value: Some("hidden".to_owned()),
            ..Default::default()
        }],
        ..Default::default()
    };
    let result = |name: &str, code: ErrorCode| CreatableTopicResult {
        name: name.to_owned(),
        error_code: code.into(),
        error_message: Some("said".to_owned()),
        ..Default::default()
    };
    let asked = CreateTopicsRequest { topics: vec![topic("a"), topic("b")], ..Default::default() };
    let topics = vec![result("a", ErrorCode::None), result("b", ErrorCode::TopicAlreadyExists)];
    let said = CreateTopicsResponse { topics, ..Default::default() };
    for version in ApiKey::CreateTopics.valid_versions().iter() {
        let mut line = line(version, &asked, &said);
        assert!(line["time_ms"].take().as_u64().unwrap() > 1_700_000_000_000);
        assert!(!line.to_string().contains("hidden"));
        assert_eq!(line["codes"], json!({"NONE": 1, "TOPIC_ALREADY_EXISTS": 1}));
        assert_eq!(line["failed"][0]["topic"], "b");
        assert_eq!(line["failed"][0]["error_code"], "TOPIC_ALREADY_EXISTS");
        let of = |key: &str| line[key].clone();
        assert_eq!(
            ["event", "virtual_cluster", "client_address", "principal", "client_id", "api"].map(of),
            ["request", "main", "192.0.2.7:4711", "User:alice", "client", "CreateTopics"]
                .map(Value::from)
        );
        assert_eq!(line["api_version"], version);
        let resources = line["resources"].as_array().unwrap();
        assert!(
            resources
                .contains(&json!({"topic": "a", "num_partitions": 3, "replication_factor": 1}))
        );
        assert!(resources.contains(&json!({"name": "retention.ms"})));
    }
}

#[test]
fn acls_are_logged_with_kafkas_numbers() {
    let creation = create_acls_request::AclCreation {
        resource_type: 2,
        resource_name: "orders".to_owned(),
        resource_pattern_type: 3,
        principal: "User:bob".to_owned(),
        host: "*".to_owned(),
        operation: 4,
        permission_type: 3,
        ..Default::default()
    };
    let asked = CreateAclsRequest { creations: vec![creation], ..Default::default() };
    let line = line(3, &asked, &Default::default());
    assert_eq!(
        line["resources"],
        json!([{
            "resource_type": 2, "resource_name": "orders", "pattern_type": 3,
            "principal": "User:bob", "host": "*", "operation": 4, "permission_type": 3
        }])
    );
}

#[test]
fn no_secret_is_logged() {
    let secret = Bytes::from_static(b"SECRET");
    let upsertion = alter_user_scram_credentials_request::ScramCredentialUpsertion {
        name: "bob".to_owned(),
        salt: secret.clone(),
        salted_password: secret.clone(),
        ..Default::default()
    };
    let asked =
        AlterUserScramCredentialsRequest { upsertions: vec![upsertion], ..Default::default() };
    let scram = line(0, &asked, &AlterUserScramCredentialsResponse::default());
    assert_eq!(scram["resources"][0]["name"], "bob");
    let asked = SaslAuthenticateRequest { auth_bytes: secret, ..Default::default() };
    let error_code = ErrorCode::SaslAuthenticationFailed.into();
    let said = SaslAuthenticateResponse { error_code, ..Default::default() };
    let sasl = line(2, &asked, &said);
    assert_eq!(sasl["codes"], json!({"SASL_AUTHENTICATION_FAILED": 1}));
    for line in [scram, sasl] {
        let line = line.to_string();
        assert!(!line.contains("SECRET") && !line.contains("U0VDUkVU"), "{line}");
    }
}

#[test]
fn names_that_clients_choose_cannot_forge_a_line() {
    let (audit, mut lines) = audit(WhenFull::Drop, 9);
    let evil = "x\"}\n{\"event\":\"request\",\"principal\":\"User:admin\u{2028}\u{0}";
    let world = World::with(&audit, &context(Principal::user(evil)));
    let topic = CreatableTopic { name: evil.to_owned(), ..Default::default() };
    let asked = CreateTopicsRequest { topics: vec![topic; 200], ..Default::default() };
    let request = request(7, &asked).with_client_id(Some(evil)).unwrap();
    world.forwarded(request);
    world.response(response(7, &CreateTopicsResponse::default()));
    let line = next(&mut lines);
    assert_eq!(line["principal"], format!("User:{evil}"));
    assert_eq!((&line["client_id"], &line["resources"][0]["topic"]), (&evil.into(), &evil.into()));
    assert_eq!(
        (line["resources"].as_array().unwrap().len(), &line["left_out"]),
        (100, &100.into())
    );
    assert!(lines.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn data_apis_are_logged_once_and_then_summed_up() {
    let (audit, mut lines) = audit(WhenFull::Drop, 99);
    let world = World::new(&audit);
    let batch = values(&["a"]);
    let produce_once = async || {
        world.start(produce(9, &[("t", &[&batch, &batch])])).await.unwrap();
        let partition = produce_response::PartitionProduceResponse {
            error_code: ErrorCode::InvalidRecord.into(),
            ..Default::default()
        };
        let topic = produce_response::TopicProduceResponse {
            name: "t".to_owned(),
            partition_responses: vec![partition],
            ..Default::default()
        };
        world
            .answer(response(9, &ProduceResponse { responses: vec![topic], ..Default::default() }))
            .await
    };
    produce_once().await;
    let first = next(&mut lines);
    assert_eq!((&first["event"], &first["topic"]), (&"first_use".into(), &"t".into()));
    for _ in 0..9 {
        produce_once().await;
    }
    assert!(lines.try_recv().is_err());
    tokio::time::advance(Duration::from_secs(61)).await;
    produce_once().await;
    let sum = next(&mut lines);
    assert_eq!((&sum["event"], &sum["messages"]), (&"summary".into(), &10.into()));
    assert_eq!(sum["record_bytes"], 20 * batch.len());
    assert_eq!(sum["codes"], json!({"INVALID_RECORD": 10}));
    world.answer(fetched(12, "t", &[batch])).await;
    assert_eq!(next(&mut lines)["event"], "first_use");
    drop(world);
    let mut rest = [next(&mut lines), next(&mut lines)].map(|line| line["api"].to_string());
    rest.sort();
    assert_eq!(rest, ["\"Fetch\"", "\"Produce\""]);
    assert!(lines.try_recv().is_err());
}

#[tokio::test(start_paused = true)]
async fn lines_without_room_are_dropped_or_hold_their_message() {
    let call = async |world: &World| {
        world.start(request(7, &CreateTopicsRequest::default())).await.unwrap();
        world.answer(response(7, &CreateTopicsResponse::default())).await
    };
    let (dropping, mut lines) = audit(WhenFull::Drop, 1);
    let world = World::new(&dropping);
    call(&world).await;
    call(&world).await;
    assert_eq!((dropping.lines.get(), dropping.dropped.get()), (1, 1));
    next(&mut lines);
    let (holding, mut lines) = audit(WhenFull::Hold, 1);
    let world = World::new(&holding);
    call(&world).await;
    let second = call(&world);
    tokio::pin!(second);
    let held = tokio::time::timeout(Duration::from_secs(9), &mut second).await;
    assert!(held.is_err(), "there is no room");
    next(&mut lines);
    second.await;
    next(&mut lines);
    assert_eq!((holding.lines.get(), holding.dropped.get()), (2, 0));
}

/// A client could send a request, hang up, and leave no line in the audit.
#[test]
fn a_request_whose_client_leaves_before_the_answer_is_logged() {
    let (audit, mut lines) = audit(WhenFull::Drop, 9);
    let world = World::new(&audit);
    let topic = CreatableTopic { name: "t".to_owned(), ..Default::default() };
    let asked = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    world.forwarded(request(7, &asked));
    world.forwarded(request(7, &CreateTopicsRequest::default()));
    world.response(response(7, &CreateTopicsResponse::default()));
    assert_eq!(next(&mut lines)["event"], "request");
    drop(world);
    let line = next(&mut lines);
    assert_eq!((&line["event"], &line["api"]), (&"unanswered".into(), &"CreateTopics".into()));
    assert!(lines.try_recv().is_err());
}

#[test]
fn long_names_of_clients_and_topics_are_cut() {
    let (audit, mut lines) = audit(WhenFull::Drop, 9);
    let world = World::new(&audit);
    let long = "é".repeat(9999);
    let batch = values(&["a"]);
    world.forwarded(produce(9, &[(&long, &[&batch])]).with_client_id(Some(&long)).unwrap());
    let line = next(&mut lines);
    let cut = "é".repeat(249);
    assert_eq!((&line["topic"], &line["client_id"]), (&cut.as_str().into(), &cut.into()));
}
