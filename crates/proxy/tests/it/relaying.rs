//! Bytes pass as they came, in order.

use moldau_protocol::messages::{ApiKey, HeartbeatRequest, HeartbeatResponse, ProduceRequest};

use crate::world::{Act, Broker, Client, answer, bootstrap, counter, encode, proxy};

#[test]
fn pipelined_requests_are_answered_in_order() {
    let broker = Broker::start(|seen| {
        let response =
            HeartbeatResponse { throttle_time_ms: seen.correlation_id, ..Default::default() };
        Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &response))
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    let requests: Vec<u8> =
        (0..500).flat_map(|id| encode(4, id, &HeartbeatRequest::default())).collect();
    client.send(&requests);
    for id in 0..500 {
        let response = HeartbeatResponse { throttle_time_ms: id, ..Default::default() };
        assert_eq!(client.receive(), answer(ApiKey::Heartbeat, 4, id, &response)[4..]);
    }
    assert_eq!(counter(&proxy, "requests_total{api=\"Heartbeat\"}"), 500);
}

#[test]
fn produce_without_acks_expects_no_answer() {
    let broker = Broker::start(|seen| match seen.api_key {
        0 => Act::Silence,
        _ => Act::Send(answer(
            ApiKey::Heartbeat,
            4,
            seen.correlation_id,
            &HeartbeatResponse::default(),
        )),
    });
    let proxy = proxy(&[broker.address]);
    for version in ApiKey::Produce.valid_versions().iter() {
        for transactional_id in [None, Some("transaction".to_owned())] {
            let produce = ProduceRequest { acks: 0, transactional_id, ..Default::default() };
            let mut client = Client::connect(bootstrap(&proxy));
            client.send(&encode(version, 1, &produce));
            client.send(&encode(4, 2, &HeartbeatRequest::default()));
            assert_eq!(client.receive()[..4], [0, 0, 0, 2]);
        }
    }
}

#[test]
fn unknown_apis_and_versions_pass_unread() {
    let broker = Broker::start(|seen| {
        let mut frame = seen.correlation_id.to_be_bytes().to_vec();
        frame.extend(&seen.frame[8..]);
        let mut bytes = u32::try_from(frame.len()).unwrap().to_be_bytes().to_vec();
        bytes.extend(frame);
        Act::Send(bytes)
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    for (api_key, version) in [(9999_i16, 3_i16), (-5, -1), (3, 99), (1, 77), (12, 500)] {
        let mut frame = api_key.to_be_bytes().to_vec();
        frame.extend(version.to_be_bytes());
        frame.extend([0, 0, 0, 9, 0xff, 0xff, 1, 2, 3]);
        let mut bytes = vec![0, 0, 0, u8::try_from(frame.len()).unwrap()];
        bytes.extend(&frame);
        client.send(&bytes);
        assert_eq!(client.receive(), [0, 0, 0, 9, 0xff, 0xff, 1, 2, 3]);
    }
}

#[test]
fn a_produce_request_of_many_reads_arrives_unchanged() {
    let broker = Broker::start(|seen| {
        let hash = seen
            .frame
            .iter()
            .fold(0_i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte)));
        let response = HeartbeatResponse { throttle_time_ms: hash, ..Default::default() };
        Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &response))
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    let mut frame = vec![0, 0, 0, 8, 0, 0, 0, 3, 0xff, 0xff, 0xff, 0xff, 0, 1];
    frame.resize_with(3_000_000, || fastrand::u8(..));
    let hash =
        frame.iter().fold(0_i32, |hash, byte| hash.wrapping_mul(31).wrapping_add(i32::from(*byte)));
    client.send(&u32::try_from(frame.len()).unwrap().to_be_bytes());
    client.send(&frame);
    let response = HeartbeatResponse { throttle_time_ms: hash, ..Default::default() };
    assert_eq!(client.receive(), answer(ApiKey::Heartbeat, 4, 3, &response)[4..]);
    assert!(counter(&proxy, "record_bytes_passed") > 2_900_000);
    assert_eq!(counter(&proxy, "record_bytes_touched"), 0);
}
