//! Broken frames end their own session, are counted, and do nothing else.

use fastrand::Rng;
use moldau_protocol::messages::{
    ApiKey, FetchRequest, HeartbeatRequest, HeartbeatResponse, MetadataRequest,
};

use crate::world::{Act, Broker, Client, answer, await_counter, bootstrap, counter, encode, proxy};

fn heartbeats() -> Broker {
    Broker::start(|seen| {
        Act::Send(answer(ApiKey::Heartbeat, 4, seen.correlation_id, &HeartbeatResponse::default()))
    })
}

#[test]
fn a_request_of_an_impossible_length_closes_its_session_only() {
    let broker = heartbeats();
    let proxy = proxy(&[broker.address]);
    let mut witness = Client::connect(bootstrap(&proxy));
    for length in [-1_i32, i32::MIN, 0, 7, 100 * 1024 * 1024 + 1, i32::MAX] {
        let mut client = Client::connect(bootstrap(&proxy));
        client.send(&length.to_be_bytes());
        assert!(client.is_closed());
        witness.call(4, &HeartbeatRequest::default());
    }
    await_counter(&proxy, "frames_malformed_total{side=\"downstream\"}", 6);
}

#[test]
fn a_request_cut_short_is_counted() {
    let broker = heartbeats();
    let proxy = proxy(&[broker.address]);
    let whole = encode(4, 1, &HeartbeatRequest::default());
    for cut in 1..whole.len() {
        let mut client = Client::connect(bootstrap(&proxy));
        client.send(&whole[..cut]);
        assert!(client.is_closed());
    }
    let cuts = u64::try_from(whole.len() - 1).unwrap();
    await_counter(&proxy, "frames_truncated_total{side=\"downstream\"}", cuts);
}

#[test]
fn random_requests_disturb_no_other_session() {
    let broker = heartbeats();
    let proxy = proxy(&[broker.address]);
    let mut witness = Client::connect(bootstrap(&proxy));
    let mut random = Rng::with_seed(7);
    for _ in 0..100 {
        let mut client = Client::connect(bootstrap(&proxy));
        let mut noise = vec![0; random.usize(1..5000)];
        random.fill(&mut noise);
        if random.bool() {
            // A plausible length, so that the rest is taken for a frame.
            noise.splice(..0, u32::try_from(noise.len().max(8)).unwrap().to_be_bytes());
        }
        client.send(&noise);
        drop(client);
        witness.call(4, &HeartbeatRequest::default());
    }
    assert_eq!(counter(&proxy, "connections_refused"), 0);
}

#[test]
fn random_answers_end_their_session_only() {
    let broker = Broker::start(|seen| {
        let mut random = Rng::with_seed(u64::from(seen.correlation_id.unsigned_abs()));
        let mut noise = vec![0; random.usize(1..40_000)];
        random.fill(&mut noise);
        match random.u8(..3) {
            0 => {}
            1 => noise.splice(..0, 20_000_i32.to_be_bytes()).for_each(drop),
            _ => {
                // The right length and id before the noise.
                noise.splice(..0, seen.correlation_id.to_be_bytes());
                noise.splice(..0, u32::try_from(noise.len()).unwrap().to_be_bytes());
            }
        }
        noise.resize(noise.len() + 200_000, 0);
        Act::Send(noise)
    });
    let proxy = proxy(&[broker.address]);
    for id in 0..60 {
        let mut client = Client::connect(bootstrap(&proxy));
        client.send(&if id % 2 == 0 {
            encode(12, id, &MetadataRequest::default())
        } else {
            encode(17, id, &FetchRequest::default())
        });
        let mut sink = Vec::new();
        // Ends by a close or a reset; what arrived before it is of no interest.
        let _ended = std::io::Read::read_to_end(&mut client.stream, &mut sink);
    }
    await_counter(&proxy, "frames_malformed_total{side=\"upstream\"}", 60);
    assert_eq!(counter(&proxy, "record_bytes_touched"), 0);
}

#[test]
fn an_answer_to_another_request_ends_the_session() {
    let broker = Broker::start(|seen| {
        let id = seen.correlation_id + 1;
        Act::Send(answer(ApiKey::Heartbeat, 4, id, &HeartbeatResponse::default()))
    });
    let proxy = proxy(&[broker.address]);
    let mut client = Client::connect(bootstrap(&proxy));
    client.send(&encode(4, 1, &HeartbeatRequest::default()));
    assert!(client.is_closed());
    await_counter(&proxy, "frames_malformed_total{side=\"upstream\"}", 1);
}
