//! Every API and version is taken through the filter, with messages made from their layouts.

use std::net::SocketAddr;

use bytes::BytesMut;
use moldau_protocol::messages::*;
use moldau_protocol::names::{self, Visitor};
use moldau_protocol::{Layout, Message, Request, Response, frame};

use super::decisions::DECISIONS;
use super::*;
use crate::made::{made_request, made_response, made_response_body, names_in, run};

/// Messages made for each API and version.
const MESSAGES: u64 = 8;

fn session(virtual_cluster: &str) -> Rc<dyn SessionFilter> {
    let filter = Arc::new(MultiTenant::new(&MultiTenantSettings::default()).unwrap());
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let context = SessionContext::new(virtual_cluster, address, Principal::anonymous());
    filter.session(&context)
}

fn ask(session: &Rc<dyn SessionFilter>, request: RequestFrame) -> RequestOutcome {
    run(Rc::clone(session).request(request, Upstream::nowhere())).unwrap()
}

fn tell(session: &Rc<dyn SessionFilter>, response: ResponseFrame) -> ResponseFrame {
    run(Rc::clone(session).response(response)).unwrap()
}

fn with_names(visitor: &mut impl Visitor, layout: &Layout, version: i16, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    names::visit(layout, version, body, visitor).unwrap().apply(body, &mut out);
    out
}

/// Calls a function with each API that is prefixed and each of its versions.
fn each(mut check: impl FnMut(ApiKey, i16, u64)) {
    for (api, ..) in DECISIONS.iter().filter(|(_, decision, _)| *decision == Decision::Prefixed) {
        for version in api.valid_versions().iter() {
            (0..MESSAGES).for_each(|seed| check(*api, version, seed));
        }
    }
}

#[test]
fn every_name_of_every_request_goes_on_with_the_prefix() {
    let by_hand = [
        ApiKey::FindCoordinator,
        ApiKey::DescribeConfigs,
        ApiKey::AlterConfigs,
        ApiKey::IncrementalAlterConfigs,
        ApiKey::ConsumerGroupHeartbeat,
        ApiKey::StreamsGroupHeartbeat,
        ApiKey::ListTransactions,
        ApiKey::DescribeTopicPartitions,
    ];
    each(|api, version, seed| {
        let layout = names::request_layout(api);
        let came = made_request(api, version, seed);
        let body = came.body().to_vec();
        let forwarded = match ask(&session("t.1"), came) {
            RequestOutcome::Forward(request) | RequestOutcome::ForwardOnly(request) => request,
            RequestOutcome::Respond(_) if by_hand.contains(&api) => return,
            // Some go on with a session that did not begin here.
            RequestOutcome::Respond(_) if matches!(api, ApiKey::Fetch | ApiKey::ShareFetch) => {
                return;
            }
            outcome => panic!("{api} v{version}: {outcome:?}"),
        };
        for name in names_in(&layout, version, forwarded.body()) {
            assert!(name.starts_with("t.1-"), "{api} v{version}: {name}");
        }
        if !by_hand.contains(&api) {
            let back = with_names(&mut Stripping("t.1-"), &layout, version, forwarded.body());
            assert_eq!(back, body, "{api} v{version}");
        }
    });
}

#[test]
fn every_answer_comes_back_as_if_there_were_no_prefix() {
    each(|api, version, seed| {
        // Details that the layouts do not show have tests of their own.
        let by_hand = [
            ApiKey::FindCoordinator,
            ApiKey::DescribeConfigs,
            ApiKey::AlterConfigs,
            ApiKey::IncrementalAlterConfigs,
            ApiKey::ListConfigResources,
            ApiKey::ConsumerGroupDescribe,
            ApiKey::DescribeLogDirs,
        ];
        if !answer_matters(api) || by_hand.contains(&api) {
            return;
        }
        let layout = names::response_layout(api);
        let body = made_response_body(api, version, seed);
        let upstream = with_names(&mut Adding("t.1-"), &layout, version, &body);
        let told = tell(&session("t.1"), made_response(api, version, &upstream));
        assert_eq!(told.body(), body, "{api} v{version}");
        let told = tell(&session("other"), made_response(api, version, &upstream));
        let left = names_in(&layout, version, told.body());
        assert_eq!(left, [""; 0], "{api} v{version} shows another tenant's names");
    });
}

/// A tenant could see the size and the usage of the shared disk.
#[test]
fn log_dirs_tell_of_the_tenants_topics_and_not_of_the_disk() {
    let topic = |name: &str| describe_log_dirs_response::DescribeLogDirsTopic {
        name: name.to_owned(),
        ..Default::default()
    };
    let directory = describe_log_dirs_response::DescribeLogDirsResult {
        log_dir: "/data".to_owned(),
        topics: vec![topic("a-orders"), topic("b-orders")],
        total_bytes: 1 << 40,
        usable_bytes: 1 << 30,
        ..Default::default()
    };
    let answer = DescribeLogDirsResponse { results: vec![directory], ..Default::default() };
    for version in DescribeLogDirsResponse::VERSIONS.iter() {
        let told = tell(&session("a"), response(version, &answer));
        let told: DescribeLogDirsResponse = told.decode().unwrap();
        let [directory] = &told.results[..] else { panic!("v{version}: {told:?}") };
        assert_eq!(directory.topics, [topic("orders")], "v{version}");
        assert_eq!((directory.total_bytes, directory.usable_bytes), (-1, -1), "v{version}");
    }
}

/// A fetched answer that named nothing waited in memory until all of it had come.
#[test]
fn answers_that_name_nothing_are_declined() {
    let declines = |request| matches!(ask(&session("a"), request), RequestOutcome::ForwardOnly(_));
    let fetch = FetchRequest::default();
    assert!([4, 12].iter().all(|version| !declines(request(*version, &fetch))));
    assert!([13, 18].iter().all(|version| declines(request(*version, &fetch))));
    // The sentences of errors may have names.
    assert!(!declines(request(13, &ProduceRequest { acks: -1, ..Default::default() })));
    assert!(declines(request(4, &HeartbeatRequest::default())));
    assert!(!declines(request(4, &ListGroupsRequest::default())));
}

#[test]
fn what_the_table_does_not_admit_is_not_admitted() {
    let filter = MultiTenant::new(&MultiTenantSettings::default()).unwrap();
    assert!(!filter.admits(None));
    assert!(!filter.admits(Some(ApiKey::CreateAcls)));
    assert!(!filter.admits(Some(ApiKey::WriteTxnMarkers)));
    assert!(filter.admits(Some(ApiKey::Produce)) && filter.admits(Some(ApiKey::ApiVersions)));
}

fn request<Q: Request>(version: i16, message: &Q) -> RequestFrame {
    let mut bytes = BytesMut::new();
    frame::encode_request(&mut bytes, version, 5, None, message).unwrap();
    RequestFrame::parse(bytes.into(), true).unwrap()
}

fn response<R: Response>(version: i16, message: &R) -> ResponseFrame {
    made_response(R::KEY, version, &message.to_bytes(version).unwrap())
}

/// What the cluster sees of a request.
fn forwarded<Q: Request>(session: &Rc<dyn SessionFilter>, version: i16, message: &Q) -> Q {
    match ask(session, request(version, message)) {
        RequestOutcome::Forward(request) | RequestOutcome::ForwardOnly(request) => {
            request.decode().unwrap()
        }
        outcome => panic!("{outcome:?}"),
    }
}

/// What the filter answers to a request by itself.
fn refused<Q: Request>(session: &Rc<dyn SessionFilter>, version: i16, message: &Q) -> Q::Response {
    match ask(session, request(version, message)) {
        RequestOutcome::Respond(response) => response.decode().unwrap(),
        outcome => panic!("{outcome:?}"),
    }
}

fn subscription(topics: &[&str]) -> bytes::Bytes {
    let topics = topics.iter().map(|&topic| topic.to_owned()).collect();
    let message = ConsumerProtocolSubscription { topics, ..Default::default() };
    let body = message.to_bytes(1).unwrap();
    [&1_i16.to_be_bytes()[..], &body].concat().into()
}

#[test]
fn classic_consumers_tell_each_other_topics_without_prefix() {
    let session = session("a");
    let join = |protocol_type: &str| JoinGroupRequest {
        group_id: "g".to_owned(),
        protocol_type: protocol_type.to_owned(),
        protocols: vec![join_group_request::JoinGroupRequestProtocol {
            name: "range".to_owned(),
            metadata: subscription(&["orders"]),
            ..Default::default()
        }],
        ..Default::default()
    };
    let member =
        |metadata| join_group_response::JoinGroupResponseMember { metadata, ..Default::default() };
    for version in JoinGroupRequest::VERSIONS.iter() {
        let seen = forwarded(&session, version, &join("consumer"));
        assert_eq!(seen.group_id, "a-g");
        assert_eq!(seen.protocols[0].metadata, subscription(&["a-orders"]));
        let members = vec![member(subscription(&["a-orders", "b-orders"]))];
        let answer = JoinGroupResponse { members, ..Default::default() };
        let told: JoinGroupResponse = tell(&session, response(version, &answer)).decode().unwrap();
        assert_eq!(told.members[0].metadata, subscription(&["orders"]));

        let seen = forwarded(&session, version, &join("connect"));
        assert_eq!(seen.protocols[0].metadata, subscription(&["orders"]));
        let answer =
            JoinGroupResponse { members: vec![member(subscription(&["x"]))], ..Default::default() };
        let told: JoinGroupResponse = tell(&session, response(version, &answer)).decode().unwrap();
        assert_eq!(told.members[0].metadata, subscription(&["x"]));
    }
}

/// Topics are called by id there, so that with the session of another its records would come.
#[test]
fn no_fetch_session_of_another_goes_on() {
    let session = session("a");
    let fetch = FetchRequest { session_id: 7, session_epoch: 3, ..Default::default() };
    let told = refused(&session, 17, &fetch);
    assert_eq!(told.error_code, i16::from(ErrorCode::FetchSessionIdNotFound));
}

#[test]
fn coordinators_are_found_by_keys_without_prefix() {
    let session = session("a");
    let message =
        FindCoordinatorRequest { coordinator_keys: vec!["g".to_owned()], ..Default::default() };
    assert_eq!(forwarded(&session, 4, &message).coordinator_keys, ["a-g"]);
    let found =
        find_coordinator_response::Coordinator { key: "a-g".to_owned(), ..Default::default() };
    let answer = FindCoordinatorResponse { coordinators: vec![found], ..Default::default() };
    let told: FindCoordinatorResponse = tell(&session, response(4, &answer)).decode().unwrap();
    assert_eq!(told.coordinators[0].key, "g");
    let old = FindCoordinatorRequest { key: "g".to_owned(), ..Default::default() };
    assert_eq!(forwarded(&session, 3, &old).key, "a-g");
    let share = FindCoordinatorRequest { key_type: 2, ..message };
    let told = refused(&session, 6, &share);
    let code = i16::from(ErrorCode::ClusterAuthorizationFailed);
    assert_eq!((&*told.coordinators[0].key, told.coordinators[0].error_code), ("g", code));
}

#[test]
fn configurations_are_those_of_the_tenant() {
    let session = session("a");
    let resource = |resource_type, name: &str| describe_configs_request::DescribeConfigsResource {
        resource_type,
        resource_name: name.to_owned(),
        ..Default::default()
    };
    let resources = vec![resource(2, "orders"), resource(4, "1"), resource(32, "g")];
    let message = DescribeConfigsRequest { resources, ..Default::default() };
    let seen = forwarded(&session, 4, &message);
    assert_eq!(seen.resources, [resource(2, "a-orders"), resource(32, "a-g")]);
    let result = |name: &str| describe_configs_response::DescribeConfigsResult {
        resource_type: 2,
        resource_name: name.to_owned(),
        error_message: Some(format!("Topic {name}.")),
        ..Default::default()
    };
    let answer =
        DescribeConfigsResponse { results: vec![result("a-orders")], ..Default::default() };
    let told: DescribeConfigsResponse = tell(&session, response(4, &answer)).decode().unwrap();
    assert_eq!(told.results[0], result("orders"));
    assert_eq!((told.results[1].resource_type, &*told.results[1].resource_name), (4, "1"));
    let code = i16::from(ErrorCode::ClusterAuthorizationFailed);
    assert_eq!(told.results[1].error_code, code);

    let listed = |resource_type, name: &str| list_config_resources_response::ConfigResource {
        resource_type,
        resource_name: name.to_owned(),
        ..Default::default()
    };
    let config_resources =
        vec![listed(2, "a-x"), listed(2, "b-x"), listed(4, "a-1"), listed(32, "a-g")];
    let answer = ListConfigResourcesResponse { config_resources, ..Default::default() };
    let told: ListConfigResourcesResponse = tell(&session, response(1, &answer)).decode().unwrap();
    assert_eq!(told.config_resources, [listed(2, "x"), listed(32, "g")]);
}

#[test]
fn dead_letter_topics_of_share_groups_are_those_of_the_tenant() {
    const TOPIC: &str = "errors.deadletterqueue.topic.name";
    let session = session("a");
    let config =
        |name: &str, value: Option<&str>| incremental_alter_configs_request::AlterableConfig {
            name: name.to_owned(),
            value: value.map(str::to_owned),
            ..Default::default()
        };
    let resource = |resource_type, name: &str, configs| {
        incremental_alter_configs_request::AlterConfigsResource {
            resource_type,
            resource_name: name.to_owned(),
            configs,
            ..Default::default()
        }
    };
    let other = config("share.auto.offset.reset", Some("earliest"));
    let configs = vec![config(TOPIC, Some("dlq.x")), other.clone()];
    let resources = vec![
        resource(32, "g", configs),
        resource(32, "h", vec![config(TOPIC, Some(""))]),
        resource(32, "i", vec![config(TOPIC, None)]),
        resource(2, "t", vec![config(TOPIC, Some("dlq.x"))]),
    ];
    let message = IncrementalAlterConfigsRequest { resources, ..Default::default() };
    let seen = forwarded(&session, 1, &message);
    let expected = [
        resource(32, "a-g", vec![config(TOPIC, Some("a-dlq.x")), other]),
        resource(32, "a-h", vec![config(TOPIC, Some(""))]),
        resource(32, "a-i", vec![config(TOPIC, None)]),
        resource(2, "a-t", vec![config(TOPIC, Some("dlq.x"))]),
    ];
    assert_eq!(seen.resources, expected);

    let shown = |name: &str, topic: &str| describe_configs_response::DescribeConfigsResult {
        resource_type: 32,
        resource_name: name.to_owned(),
        configs: vec![describe_configs_response::DescribeConfigsResourceResult {
            name: TOPIC.to_owned(),
            value: Some(topic.to_owned()),
            synonyms: vec![describe_configs_response::DescribeConfigsSynonym {
                name: TOPIC.to_owned(),
                value: Some(topic.to_owned()),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let resources = ["g", "h"].map(|name| describe_configs_request::DescribeConfigsResource {
        resource_type: 32,
        resource_name: name.to_owned(),
        ..Default::default()
    });
    let message = DescribeConfigsRequest { resources: resources.into(), ..Default::default() };
    forwarded(&session, 4, &message);
    let results = vec![shown("a-g", "a-dlq.x"), shown("a-h", "b-dlq.x")];
    let answer = DescribeConfigsResponse { results, ..Default::default() };
    let told: DescribeConfigsResponse = tell(&session, response(4, &answer)).decode().unwrap();
    assert_eq!(told.results, [shown("g", "dlq.x"), shown("h", "")]);
}

#[test]
fn expressions_over_topics_stay_within_the_tenant() {
    let session = session("a");
    let heartbeat = |pattern: &str| ConsumerGroupHeartbeatRequest {
        group_id: "g".to_owned(),
        subscribed_topic_regex: Some(pattern.to_owned()),
        ..Default::default()
    };
    let seen = forwarded(&session, 1, &heartbeat("orders.*|x"));
    assert_eq!(seen.subscribed_topic_regex.as_deref(), Some("a-(?:orders.*|x)"));
    assert_eq!(seen.group_id, "a-g");
    let told = refused(&session, 1, &heartbeat("x)|(?:b-.*"));
    assert_eq!(told.error_code, i16::from(ErrorCode::InvalidRegularExpression));
    let member = consumer_group_describe_response::Member {
        subscribed_topic_regex: Some("a-(?:orders.*|x)".to_owned()),
        ..Default::default()
    };
    let group = consumer_group_describe_response::DescribedGroup {
        group_id: "a-g".to_owned(),
        members: vec![member],
        ..Default::default()
    };
    let answer = ConsumerGroupDescribeResponse { groups: vec![group], ..Default::default() };
    let told: ConsumerGroupDescribeResponse =
        tell(&session, response(1, &answer)).decode().unwrap();
    let member = &told.groups[0].members[0];
    assert_eq!(member.subscribed_topic_regex.as_deref(), Some("orders.*|x"));
    let list = ListTransactionsRequest {
        transactional_id_pattern: Some("t.*".to_owned()),
        ..Default::default()
    };
    let seen = forwarded(&session, 2, &list);
    assert_eq!(seen.transactional_id_pattern.as_deref(), Some("a-(?:t.*)"));
}

#[test]
fn pages_of_all_topics_begin_with_the_tenants_first() {
    let session = session("a");
    let seen = forwarded(&session, 0, &DescribeTopicPartitionsRequest::default());
    let cursor = seen.cursor.unwrap();
    assert_eq!((&*cursor.topic_name, cursor.partition_index), ("a-", 0));
}

#[test]
fn an_unknown_client_belongs_to_no_tenant() {
    let settings = MultiTenantSettings { prefix: "$(principal)-".to_owned() };
    let filter = Arc::new(MultiTenant::new(&settings).unwrap());
    let address: SocketAddr = "127.0.0.1:1".parse().unwrap();
    let of = |principal| SessionContext::new("main", address, principal);
    let anonymous = Arc::clone(&filter).session(&of(Principal::anonymous()));
    let came = || request(4, &HeartbeatRequest { group_id: "g".to_owned(), ..Default::default() });
    assert!(run(anonymous.request(came(), Upstream::nowhere())).is_err());
    let alice = filter.session(&of(Principal::user("alice")));
    let (RequestOutcome::Forward(seen) | RequestOutcome::ForwardOnly(seen)) = ask(&alice, came())
    else {
        panic!("alice is known")
    };
    assert_eq!(seen.decode::<HeartbeatRequest>().unwrap().group_id, "alice-g");
}
