//! What consumers see of masked values.

use moldau_net::Principal;
use moldau_records::Compression;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::batches::tests::{
    Sample, Session as World, batch_of, context, fetched, fetched_partitions, samples, texts,
    values,
};

fn rule(fields: &[&str], masking: Masking) -> MaskRule {
    MaskRule {
        topics: vec!["orders".to_owned()],
        fields: fields.iter().map(|&field| field.to_owned()).collect(),
        masking,
        not_json: NotJson::Error,
        exempt_principals: vec!["User:auditor".to_owned()],
    }
}

fn filter(rules: Vec<MaskRule>) -> Arc<Mask> {
    let hash_key = Some(b"a secret of 16 b".to_vec());
    Arc::new(Mask::new(MaskSettings { rules, hash_key }).unwrap())
}

/// Masks one value.
fn masked(rule: MaskRule, value: &str) -> String {
    let world = World::new(&filter(vec![rule]));
    let answer = world.response(fetched(12, "orders", &[values(&[value])]));
    let (code, records) = fetched_partitions(&answer).remove(0);
    assert_eq!(code, 0);
    texts(&records).remove(0)
}

#[test]
fn fields_are_masked_where_they_stand_and_all_else_stays_to_the_byte() {
    let value = r#" {"b" : 1.10, "customer":{"iban":"DE89","name":"Ä\n"},"items":[{"price":12},
        {"price":null},{"x":[1e400]}] , "b": 2} "#;
    let all = masked(rule(&["$.customer.iban", "items[*].price"], Masking::All), value);
    let expected = value.replace("\"DE89\"", "\"********\"").replace("12", "\"********\"");
    assert_eq!(all, expected);
    let second = masked(rule(&["items[1].price", "items[2].x[0]"], Masking::Null), value);
    assert_eq!(second, value.replace("1e400", "null"));
}

#[test]
fn each_way_to_mask_leaves_what_it_says() {
    for (masking, expected) in [
        (Masking::All, r#"["********","********","********",null,"********"]"#),
        (Masking::Null, "[null,null,null,null,null]"),
        (Masking::First(2), r#"["**cé\"","**3","**ue",null,{"a":["**"]}]"#),
        (Masking::Last(2), r#"["abc**","-**","tr**",null,{"a":["**"]}]"#),
        (Masking::First(99), r#"["*****","***","****",null,{"a":["**"]}]"#),
        (Masking::Last(0), r#"["abcé\"","-23","true",null,{"a":["xy"]}]"#),
    ] {
        let value = r#"["abcé\"",-23,true,null,{"a":["xy"]}]"#;
        assert_eq!(masked(rule(&["[*]"], masking), value), expected, "{masking:?}");
    }
}

#[test]
fn hashes_are_equal_for_equal_values_however_they_are_written() {
    let hash = |value: &str| {
        let masked: Value =
            serde_json::from_str(&masked(rule(&["a"], Masking::Hash), value)).unwrap();
        masked["a"].as_str().unwrap().to_owned()
    };
    let one = hash(r#"{"a":"DE89"}"#);
    assert_eq!((one.len(), &one), (32, &hash(r#"{"a" : "D\u004589"}"#)));
    assert_ne!(one, hash(r#"{"a":"DE90"}"#));
    assert!(
        Mask::new(MaskSettings { rules: vec![rule(&["a"], Masking::Hash)], hash_key: None })
            .is_err()
    );
    let settings =
        MaskSettings { hash_key: Some(vec![1; 15]), rules: vec![rule(&["a"], Masking::Hash)] };
    assert!(Mask::new(settings).is_err());
}

#[test]
fn no_way_to_write_a_key_gets_past_a_path() {
    for value in [
        r#"{"iban":"DE89"}"#,
        r#"{"ib\u0061n":"DE89"}"#,
        r#"{"iban":"x","iban":"DE89"}"#,
        r#"{"x":{"y":1},"iban":{"iban":["DE89"]}}"#,
    ] {
        for masking in [Masking::All, Masking::First(9), Masking::Hash, Masking::Null] {
            let masked = masked(rule(&["iban"], masking), value);
            assert!(!masked.contains("DE89"), "{masked}");
            serde_json::from_str::<Value>(&masked).unwrap();
        }
    }
}

#[test]
fn a_field_within_another_goes_with_it() {
    let rule = rule(&["a.b.c", "a.b", "a.b.d[0]"], Masking::All);
    assert_eq!(
        masked(rule, r#"{"a":{"b":{"c":1,"d":[2]},"e":3}}"#),
        r#"{"a":{"b":"********","e":3}}"#
    );
}

#[test]
fn the_prefix_of_a_schema_registry_stays() {
    let wire = "\0\0\0\0\u{7}{\"a\":1}";
    assert_eq!(masked(rule(&["a"], Masking::Null), wire), "\0\0\0\0\u{7}{\"a\":null}");
}

#[test]
fn what_is_no_json_becomes_what_the_rule_says() {
    let of = |not_json| {
        let rule = MaskRule { not_json, ..rule(&["a"], Masking::All) };
        let world = World::new(&filter(vec![rule]));
        let batch = values(&["{\"a\":1}", "{\"a\":1,}", ""]);
        fetched_partitions(&world.response(fetched(12, "orders", &[batch]))).remove(0)
    };
    let texts = |(code, records): (i16, bytes::Bytes)| (code, texts(&records));
    let passed = ["{\"a\":\"********\"}", "{\"a\":1,}", ""].map(str::to_owned).to_vec();
    assert_eq!(texts(of(NotJson::Pass)), (0, passed.clone()));
    let emptied = vec![passed[0].clone(), String::new(), String::new()];
    assert_eq!(texts(of(NotJson::Empty)), (0, emptied));
    assert_eq!(texts(of(NotJson::Error)), (i16::from(ErrorCode::CorruptMessage), Vec::new()));
}

/// Its places took eight times what the value takes, and its masked values more.
#[test]
fn a_value_of_too_many_values_does_not_pass_whatever_the_rule_says_of_others() {
    let large = format!("[{}0]", "0,".repeat(1_000_000));
    for not_json in [NotJson::Pass, NotJson::Empty] {
        let rule = MaskRule { not_json, ..rule(&["[*]"], Masking::All) };
        let world = World::new(&filter(vec![rule]));
        let answer = world.response(fetched(12, "orders", &[values(&[&large])]));
        let (code, records) = fetched_partitions(&answer).remove(0);
        assert_eq!((code, records.len()), (i16::from(ErrorCode::CorruptMessage), 0));
    }
}

#[test]
fn keys_headers_timestamps_and_null_values_stay() {
    let sample = Sample {
        key: Some(br#"{"a":1}"#.to_vec()),
        headers: vec![(b"a".to_vec(), None)],
        timestamp: 99,
        ..Sample::of(r#"{"a":1}"#)
    };
    let tombstone = Sample { value: None, ..sample.clone() };
    for codec in Compression::ALL {
        let batch = batch_of(&[tombstone.clone(), sample.clone()], codec);
        let world = World::new(&filter(vec![rule(&["a"], Masking::Null)]));
        let answer = world.response(fetched(12, "orders", &[batch]));
        let after = samples(&fetched_partitions(&answer)[0].1);
        assert_eq!(after[0], tombstone);
        assert_eq!(after[1], Sample { value: Some(br#"{"a":null}"#.to_vec()), ..sample.clone() });
    }
}

#[test]
fn other_topics_and_exempt_principals_see_everything() {
    let batch = values(&["{\"a\":1}"]);
    let filter = filter(vec![rule(&["a"], Masking::All)]);
    let world = World::new(&filter);
    let other = world.response(fetched(12, "other", std::slice::from_ref(&batch)));
    assert_eq!(fetched_partitions(&other)[0].1, batch);
    let world = World::with(&filter, &context(Principal::user("auditor")));
    let exempt = world.response(fetched(12, "orders", std::slice::from_ref(&batch)));
    assert_eq!(fetched_partitions(&exempt)[0].1, batch);
    let unknown = World::new(&filter).response(fetched(13, "", &[batch]));
    let told = fetched_partitions(&unknown).remove(0);
    assert_eq!(told, (i16::from(ErrorCode::UnknownTopicId), bytes::Bytes::new()));
}

#[test]
fn all_rules_of_a_topic_apply_one_after_the_other() {
    let rules = vec![rule(&["a"], Masking::First(1)), rule(&["a", "b"], Masking::Last(1))];
    let world = World::new(&filter(rules));
    let answer = world.response(fetched(12, "orders", &[values(&[r#"{"a":"xyz","b":"uvw"}"#])]));
    let after = texts(&fetched_partitions(&answer)[0].1);
    assert_eq!(after, [r#"{"a":"*y*","b":"uv*"}"#]);
}

fn any_json() -> impl Strategy<Value = Value> {
    let key = || proptest::sample::select(&["a", "b", "\u{e9}\"\\", ""][..]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        key().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((key(), inner), 0..4).prop_map(|members| {
                Value::Object(members.into_iter().map(|(k, v)| (k.to_owned(), v)).collect())
            }),
        ]
    })
}

/// What the paths of the property below make null, by the tree of a value.
fn nulled(mut value: Value) -> Value {
    if let Some(found) = value.pointer_mut("/a/b") {
        *found = Value::Null;
    }
    for member in value.as_object_mut().into_iter().flat_map(|of| of.values_mut()) {
        if let Some(found) = member.as_array_mut().and_then(|of| of.get_mut(1)) {
            *found = Value::Null;
        }
    }
    for element in value.as_array_mut().into_iter().flatten() {
        if let Some(found) = element.as_object_mut().and_then(|of| of.get_mut("a")) {
            *found = Value::Null;
        }
    }
    value
}

proptest! {
    #[test]
    fn any_value_is_masked_as_its_tree_would_be(value in any_json()) {
        let rule = rule(&["$.a.b", "*[1]", "[*].a"], Masking::Null);
        let masked: Value = serde_json::from_str(&masked(rule, &value.to_string())).unwrap();
        prop_assert_eq!(masked, nulled(value));
    }
}
