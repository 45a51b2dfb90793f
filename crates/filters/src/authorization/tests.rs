//! What the rules refuse gets Kafka's code, and the rest goes on.

use std::net::SocketAddr;

use bytes::BytesMut;
use moldau_protocol::messages::*;
use moldau_protocol::names;
use moldau_protocol::{Request, Response, frame};
use moldau_proxy::Principal;

use super::access::ACCESS;
use super::*;
use crate::made::{made_request, made_response, made_response_body, names_in, run};

/// Messages made for each API and version.
const MESSAGES: u64 = 6;

fn session(rules: &str) -> Rc<dyn SessionFilter> {
    let filter = Arc::new(Authorization::new(Rules::parse(rules).unwrap()));
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    filter.session(&SessionContext::new("eu", address, Principal::user("alice")))
}

fn ask(session: &Rc<dyn SessionFilter>, request: RequestFrame) -> RequestOutcome {
    run(Rc::clone(session).request(request, Upstream::nowhere())).unwrap()
}

fn request<Q: Request>(version: i16, message: &Q) -> RequestFrame {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 5, None, message).unwrap();
    RequestFrame::parse(bytes.into(), true).unwrap()
}

fn forwarded<Q: Request>(rules: &str, version: i16, message: &Q) -> Q {
    match ask(&session(rules), request(version, message)) {
        RequestOutcome::Forward(request) | RequestOutcome::ForwardOnly(request) => {
            request.decode().unwrap()
        }
        outcome => panic!("{outcome:?}"),
    }
}

fn refused<Q: Request>(rules: &str, version: i16, message: &Q) -> Q::Response {
    match ask(&session(rules), request(version, message)) {
        RequestOutcome::Respond(response) => response.decode().unwrap(),
        outcome => panic!("{outcome:?}"),
    }
}

/// The client's view of an answer of the cluster.
fn told<R: Response>(rules: &str, version: i16, message: &R) -> R {
    let body = message.to_bytes(version).unwrap();
    let work = session(rules).response(made_response(R::KEY, version, &body));
    run(work).unwrap().decode().unwrap()
}

fn each(mut check: impl FnMut(ApiKey, i16, u64)) {
    for (api, _) in ACCESS.iter().filter(|(_, access)| matches!(access, Access::Guarded { .. })) {
        for version in api.valid_versions().iter() {
            (0..MESSAGES).for_each(|seed| check(*api, version, seed));
        }
    }
}

#[test]
fn without_rules_no_name_reaches_the_cluster() {
    each(|api, version, seed| {
        let layout = names::response_layout(api);
        match ask(&session(""), made_request(api, version, seed)) {
            RequestOutcome::Respond(answer) => {
                let visited =
                    names::visit(&layout, version, answer.body(), &mut NamedThings::default());
                assert!(visited.is_ok(), "{api} v{version}: {visited:?}");
            }
            // To forget a topic is no use of it; the id of no topic needs no rule.
            RequestOutcome::Forward(request) | RequestOutcome::ForwardOnly(request)
                if api == ApiKey::Fetch =>
            {
                let message: FetchRequest = request.decode().unwrap();
                assert!(message.topics.iter().all(|of| of.topic.is_empty()), "{api} v{version}");
            }
            // Where to go on in the list of all topics is no topic that is asked for.
            RequestOutcome::Forward(request) | RequestOutcome::ForwardOnly(request)
                if api == ApiKey::DescribeTopicPartitions =>
            {
                let message: DescribeTopicPartitionsRequest = request.decode().unwrap();
                assert_eq!(message.topics, [], "{api} v{version}");
            }
            RequestOutcome::Forward(request) | RequestOutcome::ForwardOnly(request) => {
                let left = names_in(&names::request_layout(api), version, request.body());
                assert_eq!(left, [""; 0], "{api} v{version}");
            }
            outcome => panic!("{api} v{version}: {outcome:?}"),
        }
    });
}

/// An answer that tells nothing but of what was asked for need not be held.
#[test]
fn answers_without_hidden_parts_are_declined() {
    let is_declined = |rules, topics: &[&str]| {
        let outcome = ask(&session(rules), request(9, &produce(topics, None)));
        matches!(outcome, RequestOutcome::ForwardOnly(_))
    };
    let rules = "allow User:alice Write topic mine";
    assert!(is_declined(rules, &["mine"]));
    assert!(!is_declined(rules, &["mine", "b"]));
    let outcome = ask(&session(rules), request(12, &MetadataRequest::default()));
    assert!(matches!(outcome, RequestOutcome::Forward(_)));
}

#[test]
fn what_a_rule_allows_passes_as_it_is() {
    each(|api, version, seed| {
        let came = made_request(api, version, seed);
        let bytes = came.bytes().to_vec();
        match ask(&session("allow * All any *"), came) {
            RequestOutcome::Forward(request) | RequestOutcome::ForwardOnly(request) => {
                assert_eq!(request.bytes(), bytes, "{api}")
            }
            // Some ask for the configuration of what has none.
            RequestOutcome::Respond(_) if is_split_by_hand(api) => {}
            // Some go on with a session that did not begin here.
            RequestOutcome::Respond(_) if matches!(api, ApiKey::Fetch | ApiKey::ShareFetch) => {}
            outcome => panic!("{api} v{version}: {outcome:?}"),
        }
    });
}

#[test]
fn without_rules_lists_are_empty() {
    for api in [ApiKey::Metadata, ApiKey::ListGroups, ApiKey::ListTransactions] {
        for version in api.valid_versions().iter() {
            let body = made_response_body(api, version, 3);
            let work = session("").response(made_response(api, version, &body));
            let layout = names::response_layout(api);
            let left = names_in(&layout, version, run(work).unwrap().body());
            assert_eq!(left, [""; 0], "{api} v{version}");
        }
    }
}

fn produce(topics: &[&str], transactional_id: Option<&str>) -> ProduceRequest {
    let data = |name: &&str| produce_request::TopicProduceData {
        name: (*name).to_owned(),
        partition_data: vec![produce_request::PartitionProduceData::default()],
        ..Default::default()
    };
    ProduceRequest {
        transactional_id: transactional_id.map(str::to_owned),
        acks: -1,
        topic_data: topics.iter().map(data).collect(),
        ..Default::default()
    }
}

fn produce_codes(answer: &ProduceResponse) -> Vec<(&str, i16)> {
    let topics = answer.responses.iter();
    topics.map(|topic| (&*topic.name, topic.partition_responses[0].error_code)).collect()
}

#[test]
fn only_topics_that_may_be_written_are() {
    let rules = "allow User:alice Write topic mine";
    let session = session(rules);
    let RequestOutcome::Forward(left) = ask(&session, request(9, &produce(&["mine", "b"], None)))
    else {
        panic!("a part may be written")
    };
    assert_eq!(left.decode::<ProduceRequest>().unwrap(), produce(&["mine"], None));
    let partition = produce_response::PartitionProduceResponse::default();
    let topic = produce_response::TopicProduceResponse {
        name: "mine".to_owned(),
        partition_responses: vec![partition],
        ..Default::default()
    };
    let answer = ProduceResponse { responses: vec![topic], ..Default::default() };
    let body = moldau_protocol::Message::to_bytes(&answer, 9).unwrap();
    let told = run(session.response(made_response(ApiKey::Produce, 9, &body))).unwrap();
    let told: ProduceResponse = told.decode().unwrap();
    let code = i16::from(ErrorCode::TopicAuthorizationFailed);
    assert_eq!(produce_codes(&told), [("mine", 0), ("b", code)]);

    let told = refused(rules, 9, &produce(&["mine"], Some("t")));
    let code = i16::from(ErrorCode::TransactionalIdAuthorizationFailed);
    assert_eq!(produce_codes(&told), [("mine", code)]);
}

#[test]
fn a_producer_without_acks_learns_of_a_refusal_by_the_end_of_its_session() {
    let mut bytes = BytesMut::new();
    let message = ProduceRequest { acks: 0, ..produce(&["mine", "b"], None) };
    frame::encode_request(&mut bytes, 9, 5, None, &message).unwrap();
    let came = RequestFrame::parse(bytes.into(), false).unwrap();
    let outcome = ask(&session("allow * Write topic mine"), came);
    assert!(matches!(outcome, RequestOutcome::Close(Some(_))), "{outcome:?}");
}

#[test]
fn members_need_their_group() {
    let code = i16::from(ErrorCode::GroupAuthorizationFailed);
    let join = JoinGroupRequest { group_id: "g".to_owned(), ..Default::default() };
    assert_eq!(refused("allow * Describe group g", 9, &join).error_code, code);
    assert_eq!(forwarded("allow * Read group g", 9, &join), join);
    let offsets = OffsetCommitRequest {
        group_id: "g".to_owned(),
        topics: vec![offset_commit_request::OffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: vec![Default::default()],
            ..Default::default()
        }],
        ..Default::default()
    };
    let answer = refused("allow * All topic *", 9, &offsets);
    assert_eq!(answer.topics[0].partitions[0].error_code, code);
    let answer = refused("allow * All group *", 9, &offsets);
    let topic = i16::from(ErrorCode::TopicAuthorizationFailed);
    assert_eq!(answer.topics[0].partitions[0].error_code, topic);
}

#[test]
fn consumers_of_all_protocols_need_group_and_topics() {
    let group = i16::from(ErrorCode::GroupAuthorizationFailed);
    let topic = i16::from(ErrorCode::TopicAuthorizationFailed);
    let names = vec!["t".to_owned()];
    let consumer = ConsumerGroupHeartbeatRequest {
        group_id: "g".to_owned(),
        subscribed_topic_names: Some(names.clone()),
        ..Default::default()
    };
    let share = ShareGroupHeartbeatRequest {
        group_id: "g".to_owned(),
        subscribed_topic_names: Some(names),
        ..Default::default()
    };
    for (rules, code) in [("", group), ("allow * Read group g", topic)] {
        assert_eq!(refused(rules, 1, &consumer).error_code, code);
        assert_eq!(refused(rules, 1, &share).error_code, code);
    }
    let rules = "allow * Read group g\nallow * Describe topic t";
    assert_eq!(forwarded(rules, 1, &consumer), consumer);
    assert_eq!(forwarded(rules, 1, &share), share);
    let pattern = Some("t.*".to_owned());
    let consumer = ConsumerGroupHeartbeatRequest { subscribed_topic_regex: pattern, ..consumer };
    assert_eq!(refused(rules, 1, &consumer).error_code, topic);
    let rules = "allow * Read group g\nallow * Describe topic *";
    assert_eq!(forwarded(rules, 1, &consumer), consumer);
}

#[test]
fn transactions_need_their_id() {
    let code = i16::from(ErrorCode::TransactionalIdAuthorizationFailed);
    let begin = |id: Option<&str>| InitProducerIdRequest {
        transactional_id: id.map(str::to_owned),
        ..Default::default()
    };
    assert_eq!(refused("allow * Write topic *", 4, &begin(Some("t"))).error_code, code);
    let id = "allow * Write transactional_id t";
    assert_eq!(forwarded(id, 4, &begin(Some("t"))), begin(Some("t")));
    let cluster = i16::from(ErrorCode::ClusterAuthorizationFailed);
    assert_eq!(refused(id, 4, &begin(None)).error_code, cluster);
    for rules in ["allow * Write topic x", "allow * IdempotentWrite cluster"] {
        assert_eq!(forwarded(rules, 4, &begin(None)), begin(None));
    }
    let topic = |name: &str| add_partitions_to_txn_request::AddPartitionsToTxnTopic {
        name: name.to_owned(),
        partitions: vec![0],
        ..Default::default()
    };
    let add = AddPartitionsToTxnRequest {
        v3_and_below_transactional_id: "t".to_owned(),
        v3_and_below_topics: vec![topic("a"), topic("b")],
        ..Default::default()
    };
    let answer = refused(&format!("{id}\nallow * Write topic a"), 3, &add);
    let codes = answer.results_by_topic_v3_and_below.iter();
    let codes = codes.map(|topic| topic.results_by_partition[0].partition_error_code);
    let expected = [ErrorCode::OperationNotAttempted, ErrorCode::TopicAuthorizationFailed];
    assert_eq!(codes.collect::<Vec<_>>(), expected.map(i16::from));
}

#[test]
fn coordinators_are_shown_for_what_may_be_described() {
    let find = |key_type| FindCoordinatorRequest {
        key_type,
        coordinator_keys: vec!["a".to_owned()],
        ..Default::default()
    };
    let codes = [
        ErrorCode::GroupAuthorizationFailed,
        ErrorCode::TransactionalIdAuthorizationFailed,
        ErrorCode::ClusterAuthorizationFailed,
    ];
    for (key_type, code) in (0..).zip(codes) {
        let answer = refused("allow * All topic *", 6, &find(key_type));
        assert_eq!(answer.coordinators[0].error_code, i16::from(code));
    }
    let rules = "allow * Read group a\nallow * Write transactional_id a";
    assert_eq!(forwarded(rules, 6, &find(0)), find(0));
    assert_eq!(forwarded(rules, 6, &find(1)), find(1));
    let old = FindCoordinatorRequest { key: "a".to_owned(), ..Default::default() };
    let answer = refused("", 0, &old);
    assert_eq!(answer.error_code, i16::from(ErrorCode::GroupAuthorizationFailed));
}

#[test]
fn configurations_are_guarded_by_what_they_are_of() {
    let resource = |resource_type| describe_configs_request::DescribeConfigsResource {
        resource_type,
        resource_name: "a".to_owned(),
        ..Default::default()
    };
    let resources = vec![resource(2), resource(4), resource(32)];
    let message = DescribeConfigsRequest { resources, ..Default::default() };
    let answer = refused("", 4, &message);
    let codes: Vec<_> = answer.results.iter().map(|result| result.error_code).collect();
    let expected = [
        ErrorCode::TopicAuthorizationFailed,
        ErrorCode::ClusterAuthorizationFailed,
        ErrorCode::GroupAuthorizationFailed,
    ];
    assert_eq!(codes, expected.map(i16::from));
    let rules = "allow * AlterConfigs topic a\nallow * DescribeConfigs cluster\n\
                 allow * DescribeConfigs group a";
    assert_eq!(forwarded(rules, 4, &message), message);
}

#[test]
fn the_cluster_itself_is_guarded() {
    let code = i16::from(ErrorCode::ClusterAuthorizationFailed);
    assert_eq!(
        refused("allow * All topic *", 1, &DescribeQuorumRequest::default()).error_code,
        code
    );
    let creations = vec![create_acls_request::AclCreation::default()];
    let acls = CreateAclsRequest { creations, ..Default::default() };
    assert_eq!(refused("allow * Describe cluster", 3, &acls).results[0].error_code, code);
    assert_eq!(forwarded("allow * Alter cluster", 3, &acls), acls);
}

#[test]
fn metadata_creates_only_what_may_be_created() {
    let topic = MetadataRequestTopic { name: Some("t".to_owned()), ..Default::default() };
    let message = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
    assert!(message.allow_auto_topic_creation);
    assert!(!forwarded("allow * Read topic t", 12, &message).allow_auto_topic_creation);
    for rules in ["allow * Read,Create topic t", "allow * Read topic t\nallow * Create cluster"] {
        assert!(forwarded(rules, 12, &message).allow_auto_topic_creation);
    }
}

/// Old clients cannot ask not to create, so that who may describe a name could create it.
#[test]
fn old_metadata_asks_whether_what_may_not_be_created_is_there() {
    let topic = MetadataRequestTopic { name: Some("t".to_owned()), ..Default::default() };
    let message = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
    let ask_without_way =
        |rules| run(Rc::clone(&session(rules)).request(request(1, &message), Upstream::nowhere()));
    assert!(ask_without_way("allow * Read topic t").is_err(), "the cluster is asked");
    assert!(ask_without_way("allow * Read,Create topic t").is_ok());
    assert!(ask_without_way("allow * Create topic t").is_ok(), "it is refused anyway");
}

/// A client that called itself a replica told the leader that records are replicated.
#[test]
fn who_fetches_as_a_replica_acts_for_the_cluster() {
    let topics = vec![fetch_request::FetchTopic {
        topic: "t".to_owned(),
        partitions: vec![Default::default()],
        ..Default::default()
    }];
    let fetch = FetchRequest { session_epoch: -1, topics, ..Default::default() };
    let as_replica = FetchRequest { replica_id: 2, ..fetch.clone() };
    let replica_state = fetch_request::ReplicaState { replica_id: 2, ..Default::default() };
    let tagged = FetchRequest { replica_state, topics: Vec::new(), ..fetch.clone() };
    let (rules, code) = ("allow * Read topic *", i16::from(ErrorCode::TopicAuthorizationFailed));
    assert_eq!(forwarded(rules, 12, &fetch), fetch);
    let told = refused(rules, 12, &as_replica);
    assert_eq!(told.responses[0].partitions[0].error_code, code);
    assert_eq!(refused(rules, 17, &tagged).responses, []);
    let rules = "allow * Read topic *\nallow * ClusterAction cluster";
    assert_eq!(forwarded(rules, 12, &as_replica), as_replica);
    assert_eq!(forwarded(rules, 17, &tagged), tagged);
}

/// The cluster creates the internal topics that a topology names.
#[test]
fn internal_topics_of_streams_groups_must_be_allowed_to_be_created() {
    let internal = streams_group_heartbeat_request::TopicInfo {
        name: "app-x-repartition".to_owned(),
        ..Default::default()
    };
    let subtopology = streams_group_heartbeat_request::Subtopology {
        subtopology_id: "0".to_owned(),
        repartition_source_topics: vec![internal],
        ..Default::default()
    };
    let subtopologies = vec![subtopology];
    let topology =
        streams_group_heartbeat_request::Topology { subtopologies, ..Default::default() };
    let heartbeat = StreamsGroupHeartbeatRequest {
        group_id: "app".to_owned(),
        topology: Some(topology),
        ..Default::default()
    };
    let rules = "allow * Read group app\nallow * Describe topic app-*";
    let code = i16::from(ErrorCode::TopicAuthorizationFailed);
    assert_eq!(refused(rules, 0, &heartbeat).error_code, code);
    let rules = format!("{rules}\nallow * Create topic app-*");
    assert_eq!(forwarded(&rules, 0, &heartbeat), heartbeat);
}

/// A session went on with the topics of former rules, or of another client.
#[test]
fn a_fetch_session_goes_on_only_where_it_began() {
    let session = session("allow * Read topic t");
    let ask = |session_id, session_epoch| {
        let fetch = FetchRequest { session_id, session_epoch, ..Default::default() };
        !matches!(ask(&session, request(17, &fetch)), RequestOutcome::Respond(_))
    };
    assert!(!ask(7, 3));
    assert!(ask(0, 0) && ask(7, 1) && ask(7, 2) && !ask(8, 3));
}

#[test]
fn lists_show_what_may_be_described() {
    let group = |id: &str| list_groups_response::ListedGroup {
        group_id: id.to_owned(),
        ..Default::default()
    };
    let all = ListGroupsResponse { groups: vec![group("a"), group("b")], ..Default::default() };
    assert_eq!(told("allow * Describe group a", 4, &all).groups, [group("a")]);
    assert_eq!(told("allow * Describe cluster", 4, &all), all);
    let member = consumer_group_describe_response::Member {
        subscribed_topic_names: vec!["t".to_owned(), "secret".to_owned()],
        ..Default::default()
    };
    let group = consumer_group_describe_response::DescribedGroup {
        members: vec![member],
        ..Default::default()
    };
    let all = ConsumerGroupDescribeResponse { groups: vec![group], ..Default::default() };
    let shown = told("allow * Describe topic t", 1, &all);
    assert_eq!(shown.groups[0].error_code, i16::from(ErrorCode::TopicAuthorizationFailed));
    assert!(shown.groups[0].members.is_empty());
    assert_eq!(told("allow * Describe topic *", 1, &all), all);
}

#[test]
fn what_the_table_does_not_admit_is_not_admitted() {
    let filter = Authorization::new(Rules::default());
    assert!(!filter.admits(None) && !filter.admits(Some(ApiKey::CreateDelegationToken)));
    assert!(filter.admits(Some(ApiKey::Produce)) && filter.admits(Some(ApiKey::SaslHandshake)));
}
