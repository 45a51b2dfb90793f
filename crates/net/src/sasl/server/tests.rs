//! Both sides of an authentication, in memory.

use proptest::prelude::*;
use zeroize::Zeroizing;

use super::super::client::{SaslClient, SaslCredentials, SaslStep};
use super::super::users::Users;
use super::*;

const SCRAM: Mechanism = Mechanism::ScramSha256;

fn server(max_reauthentication: Option<Duration>) -> Arc<SaslServer> {
    server_of(&["alice", "bob"], max_reauthentication)
}

/// A server that knows these users.
fn server_of(known: &[&str], max_reauthentication: Option<Duration>) -> Arc<SaslServer> {
    let mut users = Users::default();
    for user in known {
        users.insert_password(user, Zeroizing::new(format!("{user}-secret")));
        let credential = ScramCredential::derive(SCRAM, &format!("{user}-secret"), b"salt", 4096);
        users.insert_scram(SCRAM, user, credential);
    }
    let settings = SaslServerSettings {
        mechanisms: vec![Mechanism::Plain, SCRAM],
        credentials: Arc::new(users),
        tokens: None,
        max_reauthentication,
    };
    Arc::new(SaslServer::new(settings).unwrap())
}

fn client(mechanism: Mechanism, user: &str, password: &str) -> SaslClient {
    let (user, password) = (user.to_owned(), Zeroizing::new(password.to_owned()));
    let credentials = match mechanism {
        Mechanism::Plain => SaslCredentials::Plain { user, password },
        _ => SaslCredentials::Scram { mechanism, user, password },
    };
    SaslClient::new(credentials).unwrap()
}

/// Runs an authentication; gives the client's last step and the server's last answer and state.
fn authenticate(
    session: &mut SaslSession,
    client: &SaslClient,
    now: Instant,
) -> (Result<SaslStep, SaslError>, SaslAuthenticateResponse, SaslState) {
    let begun = std::pin::pin!(client.begin());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    let std::task::Poll::Ready(exchange) = begun.poll(&mut context) else {
        panic!("nothing is waited for");
    };
    let mut exchange = exchange.unwrap();
    let chosen = session.handshake(&exchange.handshake(), 1);
    let mut request = exchange.chosen(&chosen).unwrap();
    loop {
        let (response, state) = session.authenticate(&request.auth_bytes, now);
        match exchange.answered(&response) {
            Ok(SaslStep::Send(next)) => request = next,
            step => return (step, response, state),
        }
    }
}

fn said(session: &mut SaslSession, mechanism: Mechanism, message: &[u8]) -> (i16, String) {
    let handshake = SaslHandshakeRequest { mechanism: mechanism.name().to_owned() };
    assert_eq!(session.handshake(&handshake, 1).error_code, 0);
    let (response, state) = session.authenticate(message, Instant::now());
    assert_eq!(state, SaslState::Failed);
    (response.error_code, response.error_message.unwrap())
}

#[test]
fn right_credentials_make_a_principal() {
    for mechanism in [Mechanism::Plain, SCRAM] {
        let (mut session, now) = (SaslSession::new(server(None)), Instant::now());
        assert_eq!(session.admits(ApiKey::ApiVersions, now), Admit::Yes);
        assert!(matches!(session.admits(ApiKey::Metadata, now), Admit::No(_)));
        let alice = client(mechanism, "alice", "alice-secret");
        let (step, _, state) = authenticate(&mut session, &alice, now);
        assert!(matches!(step, Ok(SaslStep::Done { lifetime: None })), "{step:?}");
        assert_eq!(state, SaslState::Authenticated(Principal::user("alice")));
        assert_eq!(session.admits(ApiKey::Metadata, now), Admit::Yes);
    }
}

#[test]
fn wrong_credentials_are_refused_in_kafkas_words() {
    let plain = "Authentication failed: Invalid username or password";
    let scram = "Authentication failed during authentication due to invalid credentials with SASL \
                 mechanism SCRAM-SHA-256";
    for (mechanism, words) in [(Mechanism::Plain, plain), (SCRAM, scram)] {
        for user in ["alice", "nobody"] {
            let mut session = SaslSession::new(server(None));
            let wrong = client(mechanism, user, "guess");
            let (step, response, state) = authenticate(&mut session, &wrong, Instant::now());
            assert!(matches!(step, Err(SaslError::Refused { .. })), "{step:?}");
            assert_eq!(state, SaslState::Failed);
            assert_eq!(response.error_code, ErrorCode::SaslAuthenticationFailed.code());
            assert_eq!(response.error_message.as_deref(), Some(words));
            let then = session.admits(ApiKey::SaslHandshake, Instant::now());
            assert!(matches!(then, Admit::No(_)));
        }
    }
}

#[test]
fn broken_plain_messages_are_refused_in_kafkas_words() {
    let invalid = "Authentication failed during authentication due to invalid credentials with \
                   SASL mechanism PLAIN";
    for (message, words) in [
        (&b"alice"[..], invalid),
        (b"\0alice\0x\0y", invalid),
        (b"\0\xff\0x", invalid),
        (b"\0\0x", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"bob\0alice\0alice-secret", OTHER_AUTHORIZATION_ID),
    ] {
        let mut session = SaslSession::new(server(None));
        assert_eq!(said(&mut session, Mechanism::Plain, message), (58, words.to_owned()));
    }
}

#[test]
fn message_longer_than_any_in_earnest_is_refused() {
    let too_long = vec![b'x'; AUTHENTICATION_BYTES_MAX + 1];
    let words = "Authentication failed: the message is too long".to_owned();
    for mechanism in [Mechanism::Plain, SCRAM] {
        let mut session = SaslSession::new(server(None));
        assert_eq!(said(&mut session, mechanism, &too_long), (58, words.clone()));
    }
}

#[test]
fn messages_out_of_order_are_refused() {
    let mut session = SaslSession::new(server(None));
    let (response, state) = session.authenticate(b"", Instant::now());
    assert_eq!((response.error_code, state), (34, SaslState::Failed));

    let mut session = SaslSession::new(server(None));
    let unknown = SaslHandshakeRequest { mechanism: "GSSAPI".to_owned() };
    let response = session.handshake(&unknown, 1);
    assert_eq!(response.error_code, 33);
    assert_eq!(response.mechanisms, ["PLAIN", "SCRAM-SHA-256"]);

    let mut session = SaslSession::new(server(None));
    let plain = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
    assert_eq!(session.handshake(&plain, 1).error_code, 0);
    assert_eq!(session.handshake(&plain, 1).error_code, 34);
}

#[test]
fn expired_client_is_served_again_only_after_it_authenticated_again() {
    let (now, hour) = (Instant::now(), Duration::from_hours(1));
    let mut session = SaslSession::new(server(Some(hour)));
    let alice = client(SCRAM, "alice", "alice-secret");
    let (step, ..) = authenticate(&mut session, &alice, now);
    assert!(matches!(step, Ok(SaslStep::Done { lifetime: Some(it) }) if it == hour), "{step:?}");
    assert_eq!(session.admits(ApiKey::Fetch, now + hour / 2), Admit::Yes);
    assert!(matches!(session.admits(ApiKey::Fetch, now + hour), Admit::No(_)));
    // It could hold its connection for ever by asking for the versions again and again.
    assert!(matches!(session.admits(ApiKey::ApiVersions, now + hour), Admit::No(_)));
    assert_eq!(session.admits(ApiKey::SaslHandshake, now + hour), Admit::Yes);
    let (_, _, state) = authenticate(&mut session, &alice, now + hour);
    assert_eq!(state, SaslState::Authenticated(Principal::user("alice")));
    assert_eq!(session.admits(ApiKey::Fetch, now + hour + hour / 2), Admit::Yes);
}

/// Kafka's default for `connections.max.reauth.ms`: every request was refused.
#[test]
fn limit_of_0_is_none() {
    let (mut session, now) = (SaslSession::new(server(Some(Duration::ZERO))), Instant::now());
    let alice = client(SCRAM, "alice", "alice-secret");
    let (step, ..) = authenticate(&mut session, &alice, now);
    assert!(matches!(step, Ok(SaslStep::Done { lifetime: None })), "{step:?}");
    assert_eq!(session.admits(ApiKey::Fetch, now + Duration::from_hours(1)), Admit::Yes);
}

#[test]
fn nothing_else_is_served_within_a_re_authentication() {
    let (mut session, now) = (SaslSession::new(server(None)), Instant::now());
    let alice = client(SCRAM, "alice", "alice-secret");
    assert!(authenticate(&mut session, &alice, now).0.is_ok());
    assert_eq!(session.admits(ApiKey::ApiVersions, now), Admit::Yes);
    session.handshake(&SaslHandshakeRequest { mechanism: SCRAM.name().to_owned() }, 1);
    for api in [ApiKey::Fetch, ApiKey::ApiVersions] {
        assert!(matches!(session.admits(api, now), Admit::No(_)));
    }
}

#[test]
fn tokens_follow_a_handshake_of_version_0() {
    let (mut session, now) = (SaslSession::new(server(None)), Instant::now());
    assert!(!session.awaits_token());
    let plain = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
    assert_eq!(session.handshake(&plain, 0).error_code, 0);
    assert!(session.awaits_token());
    let (answer, state) = session.authenticate(b"\0alice\0alice-secret", now);
    assert_eq!(state, SaslState::Authenticated(Principal::user("alice")));
    assert!(answer.auth_bytes.is_empty());
    assert!(!session.awaits_token());
    // Only SaslAuthenticate states the lifetime. Without it a client cannot know when to
    // authenticate again.
    assert_eq!(session.handshake(&plain, 0).error_code, 35);
    assert!(!session.awaits_token());
    assert!(matches!(session.admits(ApiKey::Fetch, now), Admit::No(_)));
}

#[test]
fn requests_follow_a_handshake_of_version_1() {
    let mut session = SaslSession::new(server(None));
    let plain = SaslHandshakeRequest { mechanism: "PLAIN".to_owned() };
    assert_eq!(session.handshake(&plain, 1).error_code, 0);
    assert!(!session.awaits_token());
}

#[test]
fn token_that_is_refused_is_the_last() {
    let mut session = SaslSession::new(server(None));
    let scram = SaslHandshakeRequest { mechanism: SCRAM.name().to_owned() };
    assert_eq!(session.handshake(&scram, 0).error_code, 0);
    let (answer, state) = session.authenticate(b"n,,n=alice,r=nonce", Instant::now());
    assert_eq!(state, SaslState::Going);
    assert!(answer.auth_bytes.starts_with(b"r=nonce"));
    assert!(session.awaits_token());
    let (_, state) = session.authenticate(b"c=biws,r=nonce,p=AAAA", Instant::now());
    assert_eq!(state, SaslState::Failed);
    assert!(!session.awaits_token());
}

#[test]
fn re_authentication_keeps_principal_and_mechanism() {
    let (mut session, now) = (SaslSession::new(server(None)), Instant::now());
    let alice = client(SCRAM, "alice", "alice-secret");
    assert!(authenticate(&mut session, &alice, now).0.is_ok());
    let bob = client(SCRAM, "bob", "bob-secret");
    let (_, response, state) = authenticate(&mut session, &bob, now);
    assert_eq!(state, SaslState::Failed);
    assert_eq!(
        response.error_message.as_deref(),
        Some("Cannot change principals during re-authentication from User.alice: User.bob")
    );

    let mut session = SaslSession::new(server(None));
    let alice = client(SCRAM, "alice", "alice-secret");
    assert!(authenticate(&mut session, &alice, now).0.is_ok());
    let (code, words) = said(&mut session, Mechanism::Plain, b"\0alice\0alice-secret");
    assert_eq!(code, 58);
    assert!(words.starts_with("SASL mechanism 'PLAIN' requested by client"), "{words}");
}

#[test]
fn settings_that_are_taken_over_count_from_the_next_message_on() {
    let (server, now) = (server_of(&["alice"], None), Instant::now());
    let (alice, bob) = (client(SCRAM, "alice", "alice-secret"), client(SCRAM, "bob", "bob-secret"));
    let mut of_alice = SaslSession::new(Arc::clone(&server));
    assert!(authenticate(&mut of_alice, &alice, now).0.is_ok());
    let mut of_bob = SaslSession::new(Arc::clone(&server));
    assert_eq!(authenticate(&mut of_bob, &bob, now).2, SaslState::Failed);

    server.take_over(&server_of(&["bob"], Some(Duration::from_hours(1))));
    let mut of_bob = SaslSession::new(Arc::clone(&server));
    let (step, ..) = authenticate(&mut of_bob, &bob, now);
    assert!(matches!(step, Ok(SaslStep::Done { lifetime: Some(_) })), "{step:?}");
    assert_eq!(of_alice.admits(ApiKey::Fetch, now), Admit::Yes);
    assert_eq!(authenticate(&mut of_alice, &alice, now).2, SaslState::Failed);
}

proptest! {
    #[test]
    fn arbitrary_messages_never_authenticate(
        messages: Vec<Vec<u8>>,
        mechanism in 0..3_usize,
        version in 0..2_i16,
    ) {
        let mut session = SaslSession::new(server(None));
        let names = ["PLAIN", "SCRAM-SHA-256", "other"];
        let handshake = SaslHandshakeRequest { mechanism: names[mechanism].to_owned() };
        session.handshake(&handshake, version);
        for message in messages {
            let (_, state) = session.authenticate(&message, Instant::now());
            prop_assert!(!matches!(state, SaslState::Authenticated(_)));
        }
        prop_assert!(session.principal().is_none());
    }
}
