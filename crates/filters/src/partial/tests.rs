//! What is refused leaves the request and joins the answer; the rest is untouched.

use bytes::BytesMut;
use moldau_protocol::messages::*;
use moldau_protocol::{Message, Request, Response, frame};

use super::*;

const REFUSED: Uuid = Uuid::from_bytes([9; 16]);
const MINE: Uuid = Uuid::from_bytes([1; 16]);

fn refuse(named: Named<'_>) -> Option<ErrorCode> {
    match named {
        Named::TopicId(REFUSED) => Some(ErrorCode::UnknownTopicId),
        Named::Topic("refused") => Some(ErrorCode::TopicAuthorizationFailed),
        Named::Group("refused") => Some(ErrorCode::GroupAuthorizationFailed),
        Named::Resource(4, _) => Some(ErrorCode::ClusterAuthorizationFailed),
        _ => None,
    }
}

fn request<Q: Request>(version: i16, message: &Q) -> RequestFrame {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 3, None, message).unwrap();
    RequestFrame::parse(bytes.into(), true).unwrap()
}

fn answer<R: Response>(version: i16, message: &R) -> ResponseFrame {
    let mut bytes = BytesMut::new();
    frame::encode_response(&mut bytes, R::KEY, version, 3, message).unwrap();
    ResponseFrame::parse(bytes.into(), R::KEY, version).unwrap()
}

/// Splits a request, has what is left answered by `reply`, and gives what the client sees.
fn through<Q: Request>(
    version: i16,
    message: &Q,
    reply: impl FnOnce(Q) -> Q::Response,
) -> Q::Response {
    match split(request(version, message), &refuse).unwrap() {
        Split::Part(left, complete) => {
            let left: Q = left.decode().unwrap();
            complete(answer(version, &reply(left))).unwrap().decode().unwrap()
        }
        Split::Nothing(answer) => answer.decode().unwrap(),
        Split::Whole(_) => panic!("something is refused"),
    }
}

fn fetch_topics(ids: &[Uuid]) -> Vec<fetch_request::FetchTopic> {
    let partition = fetch_request::FetchPartition { partition: 4, ..Default::default() };
    let topic = |id: &Uuid| fetch_request::FetchTopic {
        topic_id: *id,
        partitions: vec![partition.clone()],
        ..Default::default()
    };
    ids.iter().map(topic).collect()
}

#[test]
fn a_request_without_refused_parts_keeps_its_bytes() {
    let message = FetchRequest { topics: fetch_topics(&[MINE]), ..Default::default() };
    let came = request(17, &message);
    let bytes = came.bytes().to_vec();
    let Split::Whole(left) = split(came, &refuse).unwrap() else { panic!("nothing is refused") };
    assert_eq!(left.bytes(), bytes);
}

#[test]
fn a_refused_topic_of_a_fetch_gets_its_error_and_ends_sessions() {
    let topics = fetch_topics(&[MINE, REFUSED]);
    let message = FetchRequest { topics, session_epoch: 0, ..Default::default() };
    let told = through(17, &message, |left| {
        assert_eq!((left.session_epoch, left.topics.len()), (-1, 1));
        assert_eq!(left.topics[0].topic_id, MINE);
        let topic = fetch_response::FetchableTopicResponse { topic_id: MINE, ..Default::default() };
        FetchResponse { responses: vec![topic], ..Default::default() }
    });
    assert_eq!((told.session_id, told.responses.len()), (0, 2));
    let refused = &told.responses[1].partitions[0];
    assert_eq!(refused.error_code, i16::from(ErrorCode::UnknownTopicId));
    assert_eq!(refused.partition_index, 4);

    let topics = fetch_topics(&[REFUSED]);
    let message = FetchRequest { topics, session_id: 7, session_epoch: 3, ..Default::default() };
    let told = through(17, &message, |_| panic!("nothing is left"));
    assert_eq!(told.error_code, i16::from(ErrorCode::FetchSessionIdNotFound));
}

#[test]
fn a_refused_topic_of_a_produce_gets_its_error() {
    let data = |name: &str| produce_request::TopicProduceData {
        name: name.to_owned(),
        partition_data: vec![produce_request::PartitionProduceData {
            index: 2,
            records: Some(bytes::Bytes::from_static(b"any")),
            ..Default::default()
        }],
        ..Default::default()
    };
    let topic_data = vec![data("refused"), data("mine")];
    let message = ProduceRequest { acks: -1, topic_data, ..Default::default() };
    for version in ProduceRequest::VERSIONS.iter().filter(|version| *version < 13) {
        let told = through(version, &message, |left| {
            assert_eq!(left.topic_data, [data("mine")]);
            ProduceResponse::default()
        });
        let refused = &told.responses[0];
        assert_eq!((&*refused.name, refused.partition_responses[0].index), ("refused", 2));
        let code = ErrorCode::TopicAuthorizationFailed;
        assert_eq!(refused.partition_responses[0].error_code, i16::from(code));
    }
}

#[test]
fn brokers_are_listed_although_all_topics_are_refused() {
    let topic = metadata_request::MetadataRequestTopic {
        topic_id: REFUSED,
        name: None,
        ..Default::default()
    };
    let message = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
    let told = through(12, &message, |left| {
        assert_eq!(left.topics, Some(Vec::new()));
        MetadataResponse { controller_id: 5, ..Default::default() }
    });
    assert_eq!((told.controller_id, told.topics.len()), (5, 1));
    assert_eq!(told.topics[0].topic_id, REFUSED);
    assert_eq!(told.topics[0].name, None);
}

#[test]
fn offsets_of_refused_groups_and_topics_are_hidden() {
    let wanted = |name: &str| offset_fetch_request::OffsetFetchRequestTopics {
        name: name.to_owned(),
        partition_indexes: vec![0],
        ..Default::default()
    };
    let group = |id: &str| offset_fetch_request::OffsetFetchRequestGroup {
        group_id: id.to_owned(),
        topics: Some(vec![wanted("mine"), wanted("refused")]),
        ..Default::default()
    };
    let groups = vec![group("refused"), group("mine")];
    let message = OffsetFetchRequest { groups, ..Default::default() };
    let told = through(8, &message, |left| {
        assert_eq!(left.groups.len(), 1);
        assert_eq!(left.groups[0].topics, Some(vec![wanted("mine")]));
        let topic = offset_fetch_response::OffsetFetchResponseTopics {
            name: "mine".to_owned(),
            ..Default::default()
        };
        let group = offset_fetch_response::OffsetFetchResponseGroup {
            group_id: "mine".to_owned(),
            topics: vec![topic],
            ..Default::default()
        };
        OffsetFetchResponse { groups: vec![group], ..Default::default() }
    });
    assert_eq!(told.groups.len(), 2);
    let names: Vec<_> = told.groups[0].topics.iter().map(|topic| &*topic.name).collect();
    assert_eq!(names, ["mine", "refused"]);
    let code = i16::from(ErrorCode::GroupAuthorizationFailed);
    assert_eq!((&*told.groups[1].group_id, told.groups[1].error_code), ("refused", code));
}

#[test]
fn offsets_of_a_transaction_are_refused_by_name_and_by_id() {
    use txn_offset_commit_request::{TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic};
    for version in [5, 6] {
        let topic = |name: &str, id| TxnOffsetCommitRequestTopic {
            name: if version < 6 { name.to_owned() } else { String::new() },
            topic_id: if version < 6 { Uuid::ZERO } else { id },
            partitions: vec![TxnOffsetCommitRequestPartition {
                partition_index: 4,
                ..Default::default()
            }],
            ..Default::default()
        };
        let topics = vec![topic("refused", REFUSED), topic("mine", MINE)];
        let asked = TxnOffsetCommitRequest { topics, ..Default::default() };
        let told = through(version, &asked, |left| {
            assert_eq!(left.topics, asked.topics[1..]);
            TxnOffsetCommitResponse::default()
        });
        let [refused] = told.topics.as_slice() else { panic!("one topic is refused") };
        let expected = if version < 6 {
            ErrorCode::TopicAuthorizationFailed
        } else {
            ErrorCode::UnknownTopicId
        };
        assert_eq!(refused.topic_id, asked.topics[0].topic_id);
        assert_eq!(refused.partitions[0].partition_index, 4);
        assert_eq!(refused.partitions[0].error_code, i16::from(expected));
    }
}

#[test]
fn offsets_of_one_group_are_refused_in_old_versions() {
    let topic = offset_fetch_request::OffsetFetchRequestTopic {
        name: "refused".to_owned(),
        partition_indexes: vec![3],
        ..Default::default()
    };
    let message = OffsetFetchRequest {
        group_id: "mine".to_owned(),
        topics: Some(vec![topic]),
        ..Default::default()
    };
    for version in 1..8 {
        let told = through(version, &message, |_| panic!("nothing is left"));
        let partition = &told.topics[0].partitions[0];
        assert_eq!(partition.partition_index, 3);
        assert_eq!(partition.error_code, i16::from(ErrorCode::TopicAuthorizationFailed));
        assert_eq!(partition.committed_offset, -1);
    }
}

#[test]
fn a_refused_group_tells_no_offset_in_any_version() {
    let topic = offset_fetch_request::OffsetFetchRequestTopic {
        name: "mine".to_owned(),
        partition_indexes: vec![0],
        ..Default::default()
    };
    for version in OffsetFetchRequest::VERSIONS.iter() {
        let group = offset_fetch_request::OffsetFetchRequestGroup {
            group_id: "refused".to_owned(),
            ..Default::default()
        };
        let message = match version {
            8.. => OffsetFetchRequest { groups: vec![group], ..Default::default() },
            _ => OffsetFetchRequest {
                group_id: "refused".to_owned(),
                topics: Some(vec![topic.clone()]),
                ..Default::default()
            },
        };
        let told = through(version, &message, |_| panic!("nothing is left"));
        let code = i16::from(ErrorCode::GroupAuthorizationFailed);
        match version {
            8.. => assert_eq!(told.groups[0].error_code, code),
            2.. => assert_eq!((told.error_code, told.topics.len()), (code, 0)),
            _ => assert_eq!(told.topics[0].partitions[0].error_code, code),
        }
    }
}

#[test]
fn topics_are_refused_by_name_and_by_id_when_they_are_deleted() {
    let state = |name: Option<&str>, topic_id| delete_topics_request::DeleteTopicState {
        name: name.map(str::to_owned),
        topic_id,
        ..Default::default()
    };
    let topics = vec![state(Some("refused"), Uuid::ZERO), state(None, REFUSED), state(None, MINE)];
    let message = DeleteTopicsRequest { topics, ..Default::default() };
    let told = through(6, &message, |left| {
        assert_eq!(left.topics, [state(None, MINE)]);
        DeleteTopicsResponse::default()
    });
    assert_eq!(told.responses.len(), 2);
    assert_eq!(told.responses[1].topic_id, REFUSED);
}

#[test]
fn a_configuration_is_refused_by_its_type() {
    let resource = |resource_type| describe_configs_request::DescribeConfigsResource {
        resource_type,
        resource_name: "1".to_owned(),
        ..Default::default()
    };
    let resources = vec![resource(4), resource(2)];
    let message = DescribeConfigsRequest { resources, ..Default::default() };
    let told = through(4, &message, |left| {
        assert_eq!(left.resources, [resource(2)]);
        DescribeConfigsResponse::default()
    });
    assert_eq!((told.results[0].resource_type, &*told.results[0].resource_name), (4, "1"));
}

/// If both are given, a cluster that uses the id would serve what only the name allows.
#[test]
fn a_topic_with_a_name_and_an_id_must_be_admitted_by_both() {
    let by_both = |name: &str, topic_id| metadata_request::MetadataRequestTopic {
        name: Some(name.to_owned()),
        topic_id,
        ..Default::default()
    };
    let topics =
        Some(vec![by_both("mine", REFUSED), by_both("refused", MINE), by_both("mine", MINE)]);
    let message = MetadataRequest { topics, ..Default::default() };
    let Ok(Split::Part(left, _)) = split(request(12, &message), &refuse) else {
        panic!("two are refused")
    };
    let left: MetadataRequest = left.decode().unwrap();
    assert_eq!(left.topics.unwrap(), [by_both("mine", MINE)]);
}
