//! Names are rewritten in place in every message, and elements of others are left out.

use std::fmt::Debug;

use bytes::Bytes;

use super::*;
use crate::message::Message;
use crate::messages::{
    DescribeTopicPartitionsResponse, FetchRequest, ListGroupsResponse, MetadataResponse,
    ProduceRequest, describe_topic_partitions_response as described, list_groups_response,
    metadata_response::MetadataResponseTopic, produce_request::*,
};
use crate::random::{Generator, Random};

/// Random values tried for each message and version.
const VALUES: u64 = 12;

/// Puts a mark before every name, or takes it away.
struct Mark {
    adds: bool,
    seen: usize,
}

impl Visitor for Mark {
    fn text(&mut self, entity: Entity, text: &str, with: &mut String) -> Verdict {
        self.seen += 1;
        match (self.adds, text.strip_prefix("tenant-")) {
            _ if entity == Entity::Explanation => return Verdict::Keep,
            (true, _) => with.push_str(&format!("tenant-{text}")),
            (false, Some(name)) => with.push_str(name),
            (false, None) => return Verdict::Drop,
        }
        Verdict::Replace
    }
}

fn rewritten(layout: &Layout, version: i16, body: &[u8], adds: bool) -> (Vec<u8>, usize) {
    let mut mark = Mark { adds, seen: 0 };
    let edits = visit(layout, version, body, &mut mark).expect("it was encoded");
    let mut out = Vec::new();
    edits.apply(body, &mut out);
    (out, mark.seen)
}

fn there_and_back<M: Message + Random + PartialEq + Debug>() {
    let layout = Layout::of::<M>();
    for version in M::VERSIONS.iter() {
        for seed in 0..VALUES {
            let flexible = version >= M::FLEXIBLE_FROM;
            let value = M::random(&mut Generator::new(seed), version, flexible);
            let body = value.to_bytes(version).expect("it is valid");
            let (marked, seen) = rewritten(&layout, version, &body, true);
            let decoded = M::from_bytes(&Bytes::copy_from_slice(&marked), version);
            let decoded = decoded.expect("it was rewritten");
            assert_eq!(decoded == value, seen == explanations(&layout, version, &body));
            let (back, seen_again) = rewritten(&layout, version, &marked, false);
            assert_eq!((back.as_slice(), seen_again), (&*body, seen), "{} v{version}", M::NAME);
        }
    }
}

/// How many texts for people a message has.
fn explanations(layout: &Layout, version: i16, body: &[u8]) -> usize {
    struct Count(usize);
    impl Visitor for Count {
        fn text(&mut self, entity: Entity, _: &str, _: &mut String) -> Verdict {
            self.0 += usize::from(entity == Entity::Explanation);
            Verdict::Keep
        }
    }
    let mut count = Count(0);
    assert!(visit(layout, version, body, &mut count).expect("it was encoded").is_empty());
    count.0
}

/// Cut bytes are refused, and no bytes make it panic.
fn cut<M: Message + Random>() {
    for version in M::VERSIONS.iter() {
        let value = M::random(&mut Generator::new(7), version, version >= M::FLEXIBLE_FROM);
        let body = value.to_bytes(version).expect("it is valid");
        for len in 0..body.len() {
            let mut mark = Mark { adds: true, seen: 0 };
            let visited = visit(&Layout::of::<M>(), version, &body[..len], &mut mark);
            assert!(visited.is_err(), "{} v{version} cut at {len}", M::NAME);
        }
    }
}

fn assert_nothing_tagged_is_named(message: &str, fields: &[Field], within_tag: bool) {
    for field in fields {
        let tagged = within_tag || field.is_tagged();
        assert!(!(tagged && field.entity.is_some()), "{message}.{}", field.name);
        let mut kind = field.kind;
        while let Kind::Array(inner) = kind {
            kind = *inner;
        }
        if let Kind::Struct(fields) = kind {
            assert_nothing_tagged_is_named(message, fields, tagged);
        }
    }
}

macro_rules! in_every_message {
    ($($message:path,)*) => {
        #[test]
        fn names_rewritten_there_and_back_give_the_same_bytes() {
            $(there_and_back::<$message>();)*
        }

        #[test]
        fn a_cut_message_is_refused() {
            $(cut::<$message>();)*
        }

        #[test]
        fn no_tagged_field_names_anything() {
            $(assert_nothing_tagged_is_named(
                <$message>::NAME,
                <$message as crate::layout::Structure>::FIELDS,
                false,
            );)*
        }
    };
}

crate::with_every_message!(in_every_message);

#[test]
fn elements_with_names_of_others_are_left_out() {
    let group = |id: &str| list_groups_response::ListedGroup {
        group_id: id.to_owned(),
        protocol_type: "consumer".to_owned(),
        ..Default::default()
    };
    let groups = ["other", "tenant-a", "b", "tenant-c", "d"].map(group).to_vec();
    let response = ListGroupsResponse { groups, ..Default::default() };
    for version in ListGroupsResponse::VERSIONS.iter() {
        let body = response.to_bytes(version).unwrap();
        let (body, _) = rewritten(&Layout::of::<ListGroupsResponse>(), version, &body, false);
        let left = ListGroupsResponse::from_bytes(&body.into(), version).unwrap();
        let ids: Vec<_> = left.groups.iter().map(|group| &*group.group_id).collect();
        assert_eq!(ids, ["a", "c"]);
    }
}

#[test]
fn a_count_may_need_fewer_bytes_when_elements_are_left_out() {
    let topic = |index: usize| MetadataResponseTopic {
        name: Some(if index.is_multiple_of(2) {
            format!("tenant-{index}")
        } else {
            "b".to_owned()
        }),
        ..Default::default()
    };
    let topics = (0..200).map(topic).collect();
    let body = MetadataResponse { topics, ..Default::default() }.to_bytes(12).unwrap();
    let (body, _) = rewritten(&Layout::of::<MetadataResponse>(), 12, &body, false);
    let left = MetadataResponse::from_bytes(&body.into(), 12).unwrap();
    assert_eq!(left.topics.len(), 100);
    assert!(left.topics.iter().all(|topic| topic.name.as_ref().unwrap().len() <= 3));
}

#[test]
fn a_cursor_that_names_the_topic_of_another_is_null() {
    let cursor = described::Cursor { topic_name: "other".to_owned(), ..Default::default() };
    let response =
        DescribeTopicPartitionsResponse { next_cursor: Some(cursor), ..Default::default() };
    let body = response.to_bytes(0).unwrap();
    let layout = Layout::of::<DescribeTopicPartitionsResponse>();
    let (body, _) = rewritten(&layout, 0, &body, false);
    let left = DescribeTopicPartitionsResponse::from_bytes(&body.into(), 0).unwrap();
    assert_eq!(left.next_cursor, None);
}

#[test]
fn a_name_that_cannot_be_left_out_is_an_error() {
    let request = ProduceRequest { transactional_id: Some("t".to_owned()), ..Default::default() };
    let body = request.to_bytes(9).unwrap();
    let mut mark = Mark { adds: false, seen: 0 };
    let visited = visit(&Layout::of::<ProduceRequest>(), 9, &body, &mut mark);
    let error = RewriteError::Indispensable { message: "ProduceRequest" };
    assert_eq!(visited.err(), Some(error));
}

#[test]
fn a_name_that_outgrows_a_text_is_an_error() {
    let name = "x".repeat(0x7fff);
    let request = ProduceRequest { transactional_id: Some(name), ..Default::default() };
    let body = request.to_bytes(9).unwrap();
    let mut mark = Mark { adds: true, seen: 0 };
    let visited = visit(&Layout::of::<ProduceRequest>(), 9, &body, &mut mark);
    assert!(matches!(visited, Err(RewriteError::Encode(_))));
}

#[test]
fn a_message_without_names_has_no_edits() {
    let body = FetchRequest::default().to_bytes(17).unwrap();
    let mut mark = Mark { adds: true, seen: 0 };
    assert!(visit(&Layout::of::<FetchRequest>(), 17, &body, &mut mark).unwrap().is_empty());
}

#[test]
fn topic_ids_are_shown_in_their_order() {
    struct Ids(Vec<Uuid>);
    impl Visitor for Ids {
        fn text(&mut self, _: Entity, _: &str, _: &mut String) -> Verdict {
            Verdict::Keep
        }

        fn topic_id(&mut self, id: Uuid) {
            self.0.push(id);
        }
    }
    let ids = [1, 2].map(|byte| Uuid::from_bytes([byte; 16]));
    let topic = |topic_id| TopicProduceData { topic_id, ..Default::default() };
    let request = ProduceRequest { topic_data: ids.map(topic).to_vec(), ..Default::default() };
    let mut seen = Ids(Vec::new());
    let body = request.to_bytes(13).unwrap();
    visit(&request_layout(ApiKey::Produce), 13, &body, &mut seen).unwrap();
    assert_eq!(seen.0, ids);
}
