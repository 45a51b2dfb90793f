//! Headers that records gain and lose.

use moldau_net::Principal;
use moldau_protocol::messages::{FetchRequest, ShareFetchRequest};
use moldau_records::Compression;

use super::*;
use crate::batches::tests::{
    Sample, Session as World, batch_of, context, fetched, fetched_partitions, produce, produced,
    request, samples, values,
};

fn rule(on: HeaderWay, remove: &[&str], add: &[(&str, HeaderValue)]) -> HeaderRule {
    HeaderRule {
        topics: vec!["orders".to_owned(), "eu-*".to_owned()],
        on,
        remove: remove.iter().map(|&key| key.to_owned()).collect(),
        add: add.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect(),
    }
}

fn filter(rules: Vec<HeaderRule>) -> Arc<Header> {
    Arc::new(Header::new(HeaderSettings { rules }).unwrap())
}

fn headers(of: &Sample) -> Vec<(String, Option<String>)> {
    let text = |bytes: &Vec<u8>| String::from_utf8(bytes.clone()).unwrap();
    of.headers.iter().map(|(key, value)| (text(key), value.as_ref().map(text))).collect()
}

fn pair(key: &str, value: &str) -> (String, Option<String>) {
    (key.to_owned(), Some(value.to_owned()))
}

fn sample(headers: &[&str]) -> Sample {
    let headers = headers.iter().map(|key| (key.as_bytes().to_vec(), Some(b"v".to_vec())));
    Sample { key: Some(b"k".to_vec()), headers: headers.collect(), ..Sample::of("value") }
}

#[test]
fn every_kind_of_value_is_added_behind_the_headers_of_a_record() {
    let add = [
        ("static", HeaderValue::Static(b"x".to_vec())),
        ("principal", HeaderValue::Principal),
        ("address", HeaderValue::ClientAddress),
        ("client", HeaderValue::ClientId),
        ("cluster", HeaderValue::VirtualCluster),
        ("time", HeaderValue::Time),
    ];
    let world = World::new(&filter(vec![rule(HeaderWay::Produce, &[], &add)]));
    for codec in Compression::ALL {
        let batch = batch_of(&[sample(&["own"]), sample(&[])], codec);
        let sent = world.forwarded(produce(9, &[("orders", &[&batch]), ("other", &[&batch])]));
        let records = produced(&sent);
        assert_eq!(records[1], batch);
        let mut after = samples(&records[0]);
        let time = after[0].headers.pop().unwrap().1.unwrap();
        assert!(String::from_utf8(time).unwrap().parse::<u64>().unwrap() > 1_700_000_000_000);
        let expected = [
            pair("own", "v"),
            pair("static", "x"),
            pair("principal", "User:alice"),
            pair("address", "192.0.2.7"),
            pair("client", "client"),
            pair("cluster", "main"),
        ];
        assert_eq!(headers(&after[0]), expected);
        assert_eq!(headers(&after[1])[..5], expected[1..]);
        assert_eq!((&after[0].key, &after[0].value), (&sample(&[]).key, &sample(&[]).value));
    }
}

#[test]
fn all_matching_rules_remove_before_any_adds() {
    let kept = HeaderValue::Static(b"by us".to_vec());
    let rules = vec![
        rule(HeaderWay::Both, &["trace"], &[("x-a", kept.clone())]),
        rule(HeaderWay::Produce, &["x-*"], &[]),
    ];
    let filter = filter(rules);
    let batch =
        batch_of(&[sample(&["x-a", "trace", "y", "trace"]), sample(&["y"])], Compression::Lz4);
    let sent = World::new(&filter).forwarded(produce(7, &[("eu-1", &[&batch])]));
    let after = samples(&produced(&sent)[0]);
    assert_eq!(headers(&after[0]), [pair("y", "v"), pair("x-a", "by us")]);
    assert_eq!(headers(&after[1]), [pair("y", "v"), pair("x-a", "by us")]);
    assert_eq!(filter.changed.get(), 2);
}

#[test]
fn records_that_lose_nothing_stay_as_they_are() {
    let world = World::new(&filter(vec![rule(HeaderWay::Produce, &["x"], &[])]));
    let batch = batch_of(&[sample(&["y"]), sample(&[])], Compression::Zstd);
    let request = produce(9, &[("orders", &[&batch])]);
    let bytes = request.bytes().to_vec();
    assert_eq!(world.forwarded(request).bytes(), bytes);
}

#[test]
fn fetched_records_change_as_the_client_of_the_request_says() {
    let add = [("client", HeaderValue::ClientId), ("who", HeaderValue::Principal)];
    let filter = filter(vec![rule(HeaderWay::Fetch, &["secret"], &add)]);
    assert!(!filter.claims(ApiKey::Produce, Direction::Request));
    let world = World::with(&filter, &context(Principal::user("bob")));
    world.forwarded(request(12, &FetchRequest::default()));
    let batch = batch_of(&[sample(&["secret"])], Compression::Gzip);
    let answer = world.response(fetched(12, "orders", &[batch]));
    let (code, records) = fetched_partitions(&answer).remove(0);
    assert_eq!(code, 0);
    assert_eq!(headers(&samples(&records)[0]), [pair("client", "client"), pair("who", "User:bob")]);
}

#[test]
fn topics_without_a_known_name_are_refused_unless_the_rule_is_for_all() {
    let mut for_all = rule(HeaderWay::Both, &[], &[("x", HeaderValue::Principal)]);
    let answer = || fetched(17, "", &[values(&["a"])]);
    let world = World::new(&filter(vec![for_all.clone()]));
    let unknown = i16::from(moldau_protocol::ErrorCode::UnknownTopicId);
    assert_eq!(fetched_partitions(&world.response(answer()))[0].0, unknown);
    for_all.topics = vec!["*".to_owned()];
    let world = World::new(&filter(vec![for_all]));
    let (code, records) = fetched_partitions(&world.response(answer())).remove(0);
    assert_eq!((code, samples(&records)[0].headers.len()), (0, 1));
}

#[test]
fn old_formats_are_fetched_as_they_are() {
    let mut old = values(&["a"]).to_vec();
    old[16] = 1;
    let add = [("x", HeaderValue::Principal)];
    let world = World::new(&filter(vec![rule(HeaderWay::Fetch, &[], &add)]));
    world.forwarded(request(1, &ShareFetchRequest::default()));
    let answer = world.response(fetched(11, "orders", &[old.clone().into()]));
    assert_eq!(fetched_partitions(&answer), [(0, old.into())]);
}

#[test]
fn patterns_that_make_no_sense_are_refused() {
    let with_key = |key: &str| rule(HeaderWay::Both, &[key], &[]);
    assert!(Header::new(HeaderSettings { rules: vec![with_key("a*b")] }).is_err());
    assert!(Header::new(HeaderSettings { rules: vec![with_key("*")] }).is_ok());
}
