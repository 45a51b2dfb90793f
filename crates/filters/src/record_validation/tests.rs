//! Which records are refused, and which errors their producers get.

use bytes::Bytes;
use moldau_protocol::messages::ProduceResponse;
use moldau_protocol::messages::produce_response::PartitionProduceResponse;
use moldau_records::Compression;

use super::*;
use crate::batches::tests::{
    Sample, Session as World, batch_of, mend, produce, produced, response, run, values,
};

fn world(rule: ValidationRule) -> World {
    let settings = RecordValidationSettings {
        rules: vec![ValidationRule { topics: vec!["orders".to_owned()], ..rule }],
    };
    World::new(&Arc::new(RecordValidation::new(settings).unwrap()))
}

fn value_rule(value: FieldRule) -> ValidationRule {
    ValidationRule { value, ..ValidationRule::default() }
}

fn json(unique_keys: bool) -> ValidationRule {
    value_rule(FieldRule { content: Content::Json { unique_keys }, ..FieldRule::default() })
}

/// The answer to a produce request for one partition; `None` if the request is sent on.
fn told(world: &World, batch: &Bytes) -> Option<PartitionProduceResponse> {
    let request = produce(11, &[("orders", &[batch])]);
    let bytes = request.bytes().to_vec();
    match world.request(request) {
        RequestOutcome::Forward(request) => {
            assert_eq!(request.bytes(), bytes);
            None
        }
        RequestOutcome::Respond(answer) => {
            let mut answer: ProduceResponse = answer.decode().unwrap();
            Some(answer.responses.remove(0).partition_responses.remove(0))
        }
        other => panic!("{other:?}"),
    }
}

/// The first record error for a record that must be wrong.
fn wrong(rule: ValidationRule, sample: Sample) -> String {
    let batch = batch_of(&[sample], Compression::None);
    let mut told = told(&world(rule), &batch).expect("it is wrong");
    assert_eq!(told.error_code, i16::from(ErrorCode::InvalidRecord));
    told.record_errors.remove(0).batch_index_error_message.unwrap()
}

fn right(rule: ValidationRule, sample: Sample) {
    assert_eq!(told(&world(rule), &batch_of(&[sample], Compression::None)), None);
}

#[test]
fn bad_records_are_named_by_their_index_and_the_batch_is_refused_whole() {
    for codec in Compression::ALL {
        let texts = ["{}", "{", "[1]", "x"].map(Sample::of);
        let told = told(&world(json(false)), &batch_of(&texts, codec)).unwrap();
        assert_eq!(told.error_code, i16::from(ErrorCode::InvalidRecord));
        assert_eq!(told.base_offset, -1);
        let errors: Vec<_> = told
            .record_errors
            .iter()
            .map(|it| (it.batch_index, it.batch_index_error_message.as_deref().unwrap()))
            .collect();
        assert_eq!(
            errors,
            [
                (1, "the value is no JSON: a key is missing at byte 1"),
                (3, "the value is no JSON: no value begins so at byte 0"),
            ]
        );
        let message = told.error_message.unwrap();
        assert!(message.starts_with("2 of 4 records are invalid; record 1: "), "{message}");
    }
}

#[test]
fn the_other_partitions_go_on_and_the_answers_are_merged() {
    let world = world(json(false));
    let (good, bad) = (values(&["1", "2"]), values(&["1", "{"]));
    let request = produce(9, &[("orders", &[&bad, &good]), ("other", &[&bad])]);
    let sent = world.forwarded(request);
    assert_eq!(produced(&sent), [good, bad]);
    let mut said = ProduceResponse::default();
    for (name, index) in [("orders", 1), ("other", 0)] {
        said.responses.push(moldau_protocol::messages::produce_response::TopicProduceResponse {
            name: name.to_owned(),
            partition_responses: vec![PartitionProduceResponse { index, ..Default::default() }],
            ..Default::default()
        });
    }
    let answer: ProduceResponse = world.response(response(9, &said)).decode().unwrap();
    let told: Vec<_> = answer
        .responses
        .iter()
        .flat_map(|topic| topic.partition_responses.iter().map(|it| (&*topic.name, it)))
        .map(|(name, it)| (name, it.index, it.error_code, it.record_errors.len()))
        .collect();
    let invalid = i16::from(ErrorCode::InvalidRecord);
    assert_eq!(told, [("orders", 0, invalid, 1), ("orders", 1, 0, 0), ("other", 0, 0, 0)]);
}

#[test]
fn batches_of_idempotent_producers_go_on_unchanged_or_not_at_all() {
    let world = world(json(false));
    // The batch that is refused leaves no trace; the cluster sees the next as it was numbered.
    let (good, bad) = (values(&["1"]), values(&["{", "1"]));
    assert!(told(&world, &bad).is_some());
    assert_eq!(told(&world, &good), None);
}

#[test]
fn null_empty_and_size_are_checked_for_keys_and_values() {
    let none = FieldRule { allow_null: false, allow_empty: false, ..FieldRule::default() };
    let key = |key: FieldRule| ValidationRule { key, ..ValidationRule::default() };
    let sample = Sample { key: Some(b"key".to_vec()), ..Sample::of("value") };
    let null = Sample::default();
    let empty = Sample { key: Some(Vec::new()), ..Sample::of("") };
    right(key(none.clone()), sample.clone());
    right(key(FieldRule::default()), null.clone());
    right(value_rule(FieldRule::default()), empty.clone());
    assert_eq!(wrong(key(none.clone()), null.clone()), "the key is null");
    assert_eq!(wrong(key(none.clone()), empty.clone()), "the key is empty");
    assert_eq!(wrong(value_rule(none.clone()), null), "the value is null");
    assert_eq!(wrong(value_rule(none), empty), "the value is empty");
    let short = FieldRule { bytes_max: Some(3), ..FieldRule::default() };
    right(key(short.clone()), sample.clone());
    assert_eq!(wrong(value_rule(short), sample.clone()), "the value has 5 bytes, 3 are allowed");
    let small = |max| ValidationRule { record_bytes_max: Some(max), ..ValidationRule::default() };
    right(small(15), sample.clone());
    assert_eq!(wrong(small(14), sample), "the record has 15 bytes, 14 are allowed");
}

#[test]
fn required_headers_must_be_there() {
    let rule = |names: &[&str]| ValidationRule {
        required_headers: names.iter().map(|&name| name.to_owned()).collect(),
        ..ValidationRule::default()
    };
    let headers = vec![(b"a".to_vec(), None), (b"b".to_vec(), Some(Vec::new()))];
    let sample = Sample { headers, ..Sample::default() };
    right(rule(&["b", "a"]), sample.clone());
    assert_eq!(wrong(rule(&["a", "c"]), sample), "the header `c` is missing");
}

#[test]
fn a_json_schema_is_kept_and_tells_no_content() {
    let schema = r#"{"type":"object","required":["id"],"properties":{"id":{"type":"integer",
        "minimum":1},"mail":{"type":"string","pattern":"^[a-z]+@[a-z]+$"}}}"#;
    let content = Content::JsonSchema(schema.to_owned());
    let rule = || value_rule(FieldRule { content: content.clone(), ..FieldRule::default() });
    right(rule(), Sample::of(r#"{"id":3,"mail":"a@b"}"#));
    for (value, place) in [
        (r#"{"id":"secret"}"#, "/id"),
        (r#"{"id":1,"mail":"secret"}"#, "/mail"),
        (r#"["secret"]"#, "/"),
        (r#"{"name":"secret"}"#, "/"),
    ] {
        let said = wrong(rule(), Sample::of(value));
        assert!(said.starts_with(&format!("the value does not match its schema at `{place}`: ")));
        assert!(!said.contains("secret"), "{said}");
    }
    assert!(wrong(rule(), Sample::of("{")).contains("no JSON"));
    assert!(wrong(rule(), Sample::of(r#"{"id":0,"id":3}"#)).contains("twice"));
}

#[test]
fn schemas_that_are_none_or_lead_elsewhere_are_refused() {
    for schema in [
        "{",
        r#"{"type":"nothing"}"#,
        r#"{"$ref":"http://127.0.0.1:1/schema.json"}"#,
        r#"{"$ref":"file:///etc/hostname"}"#,
        r#"{"pattern":"(?=x)"}"#,
    ] {
        let value = FieldRule { content: Content::JsonSchema(schema.into()), ..Default::default() };
        let rule = ValidationRule { topics: vec!["*".to_owned()], ..value_rule(value) };
        let made = RecordValidation::new(RecordValidationSettings { rules: vec![rule] });
        assert!(made.is_err(), "{schema}");
    }
}

#[test]
fn the_wire_format_names_an_allowed_schema() {
    let rule = |ids: &[u32], content| {
        let schema_ids = Some(ids.to_vec());
        value_rule(FieldRule { schema_ids, content, ..FieldRule::default() })
    };
    let wire = |id: u32, rest: &[u8]| Sample {
        value: Some([&[0], &id.to_be_bytes()[..], rest].concat()),
        ..Sample::default()
    };
    right(rule(&[7, 8], Content::Any), wire(8, b""));
    right(rule(&[], Content::Any), wire(9, b"\xff"));
    right(rule(&[7], Content::Json { unique_keys: true }), wire(7, b"{}"));
    let not_allowed = "the value has schema 9, which its topic does not allow";
    assert_eq!(wrong(rule(&[7], Content::Any), wire(9, b"")), not_allowed);
    let no_prefix = "the value does not begin with the id of a schema";
    for value in ["{}", "\0\0\0", "\u{1}\0\0\0\u{7}"] {
        assert_eq!(wrong(rule(&[7], Content::Any), Sample::of(value)), no_prefix);
    }
    let content = Content::Json { unique_keys: false };
    assert!(wrong(rule(&[7], content), wire(7, b"")).contains("a value is missing"));
}

#[test]
fn what_cannot_be_read_is_refused() {
    let world = world(json(false));
    let good = values(&["1", "2"]);
    let mut crc = good.to_vec();
    crc[17] ^= 1;
    assert_eq!(told(&world, &crc.into()).unwrap().error_code, i16::from(ErrorCode::CorruptMessage));
    let mut count = good.to_vec();
    count[60] = 3;
    mend(&mut count);
    assert_eq!(
        told(&world, &count.into()).unwrap().error_code,
        i16::from(ErrorCode::InvalidRecord)
    );
    let two: Bytes = [good.clone(), good].concat().into();
    let told = told(&world, &two).unwrap();
    assert_eq!(told.error_code, i16::from(ErrorCode::InvalidRecord));
    assert!(told.error_message.unwrap().contains("more than one batch"));
}

#[test]
fn an_answer_names_no_more_records_than_it_may() {
    let bad = vec!["{"; 3000];
    let told = told(&world(json(false)), &values(&bad)).unwrap();
    assert_eq!(told.record_errors.len(), RECORD_ERRORS_MAX);
    assert!(told.error_message.unwrap().starts_with("3000 of 3000"));
}

/// Each partition of a request could name a thousand records, out of a few hundred bytes of it.
#[test]
fn the_answers_of_all_partitions_name_no_more_records_than_one_may() {
    let batch = batch_of(&vec![Sample::of("{"); 400], Compression::Zstd);
    let request = produce(11, &[("orders", &[&batch; 2]), ("orders", &[&batch; 2])]);
    let RequestOutcome::Respond(answer) = world(json(false)).request(request) else {
        panic!("all is refused")
    };
    let answer: ProduceResponse = answer.decode().unwrap();
    let partitions = answer.responses.iter().flat_map(|topic| &topic.partition_responses);
    let told: Vec<_> = partitions.map(|it| (it.error_code, it.record_errors.len())).collect();
    let code = i16::from(ErrorCode::InvalidRecord);
    assert_eq!(told, [(code, 400), (code, 400), (code, 200), (code, 0)]);
}

/// A client that sent a few KB which unpack to a hundred MB kept all others of its thread waiting.
#[test]
fn other_connections_have_their_turn_between_batches_that_unpack_to_much() {
    let large = batch_of(&[Sample::of(&"x".repeat(2 << 20))], Compression::Zstd);
    assert!(large.len() < 4096);
    let world = world(value_rule(FieldRule::default()));
    let mut turns = 0;
    let outcome = run(async {
        let mut work = world.start(produce(11, &[("orders", &[&large; 5])]));
        std::future::poll_fn(|cx| {
            let polled = work.as_mut().poll(cx);
            turns += usize::from(polled.is_pending());
            polled
        })
        .await
    });
    assert!(matches!(outcome, Ok(RequestOutcome::Forward(_))));
    assert_eq!(turns, 10, "each is tried in little memory first");
}
