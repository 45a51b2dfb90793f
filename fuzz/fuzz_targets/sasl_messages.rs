//! Arbitrary messages of PLAIN, SCRAM and OAUTHBEARER into both sides of an authentication. Nobody
//! is believed by them, neither as a client nor as a server.

#![no_main]

use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use moldau_net::sasl::{
    KeySource, Mechanism, SaslClient, SaslCredentials, SaslExchange, SaslServer,
    SaslServerSettings, SaslSession, SaslState, SaslStep, ScramCredential, StaticToken,
    TokenSettings, TokenVerifier, Users,
};
use moldau_protocol::messages::{
    SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};
use zeroize::Zeroizing;

/// The public keys of RFC 7517, appendix A.1, whose private ones nothing here has.
const KEY_SET: &str = r#"{"keys":[
    {"kty":"EC","crv":"P-256","kid":"1","use":"sig","alg":"ES256",
     "x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4",
     "y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}"#;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((choice, rest)) = data.split_first() else { return };
    let mechanism = Mechanism::ALL[usize::from(choice % 4)];
    let messages: Vec<&[u8]> = rest.splitn(3, |byte| *byte == 0xff).collect();
    match choice / 4 % 4 {
        0 => as_they_are(mechanism, i16::from(choice / 16 % 2), &messages),
        1 => behind_a_nonce(rest),
        2 => in_a_token(&messages),
        _ => to_a_client(mechanism, &messages),
    }
});

fn server() -> Arc<SaslServer> {
    static SERVER: OnceLock<Arc<SaslServer>> = OnceLock::new();
    let make = || {
        let (mut users, salt) = (Users::default(), ScramCredential::random_salt());
        // Nobody knows it: neither can a fuzzer come upon it.
        let secret = ScramCredential::random_salt();
        let secret: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
        for mechanism in [Mechanism::ScramSha256, Mechanism::ScramSha512] {
            let credential = ScramCredential::derive(mechanism, &secret, &salt, 4096);
            users.insert_scram(mechanism, "alice", credential);
        }
        users.insert_password("alice", Zeroizing::new(secret));
        let keys = KeySource::Bytes(KEY_SET.into());
        let tokens = TokenVerifier::new(TokenSettings::new(keys)).expect("the keys can be read");
        let settings = SaslServerSettings {
            mechanisms: Mechanism::ALL.to_vec(),
            credentials: Arc::new(users),
            tokens: Some(Arc::new(tokens)),
            max_reauthentication: None,
        };
        Arc::new(SaslServer::new(settings).expect("all that it needs is there"))
    };
    Arc::clone(SERVER.get_or_init(make))
}

fn session(mechanism: Mechanism, version: i16) -> SaslSession {
    let mut session = SaslSession::new(server());
    let request = SaslHandshakeRequest { mechanism: mechanism.name().to_owned() };
    assert_eq!(session.handshake(&request, version).error_code, 0);
    session
}

/// What the server answers to a message that proves nothing.
fn say(session: &mut SaslSession, message: &[u8]) -> Vec<u8> {
    let (answer, state) = session.authenticate(message, Instant::now());
    assert!(!matches!(state, SaslState::Authenticated(_)), "{message:?} is believed");
    assert_eq!(state == SaslState::Failed, answer.error_code != 0);
    answer.auth_bytes.to_vec()
}

fn as_they_are(mechanism: Mechanism, version: i16, messages: &[&[u8]]) {
    let mut session = session(mechanism, version);
    for message in messages {
        say(&mut session, message);
    }
}

/// The last message of SCRAM, which has to repeat what the server made up.
fn behind_a_nonce(rest: &[u8]) {
    let mut session = session(Mechanism::ScramSha256, 1);
    let first = say(&mut session, b"n,,n=alice,r=abc");
    let nonce = first.split(|byte| *byte == b',').next().expect("the server answers");
    say(&mut session, &[b"c=biws,", nonce, b",", rest].concat());
}

/// Header and claims of a token, in the form that carries them.
fn in_a_token(parts: &[&[u8]]) {
    let parts: Vec<String> = parts.iter().map(|part| URL_SAFE_NO_PAD.encode(part)).collect();
    let message = format!("n,,\x01auth=Bearer {}\x01\x01", parts.join("."));
    say(&mut session(Mechanism::OAuthBearer, 0), message.as_bytes());
}

/// What a server that does not know the password says.
fn to_a_client(mechanism: Mechanism, answers: &[&[u8]]) {
    let (user, password) = ("alice".to_owned(), Zeroizing::new("secret".to_owned()));
    let client = SaslClient::new(match mechanism {
        Mechanism::Plain => SaslCredentials::Plain { user, password },
        Mechanism::OAuthBearer => {
            let tokens = Arc::new(StaticToken::new(password));
            SaslCredentials::OAuthBearer { tokens, extensions: Vec::new() }
        }
        _ => SaslCredentials::Scram { mechanism, user, password },
    });
    let client = client.expect("the credentials can be sent");
    let mut exchange = begin(&client);
    let agreed = SaslHandshakeResponse::default();
    exchange.chosen(&agreed).expect("the mechanism is agreed on");
    for answer in answers {
        let auth_bytes = answer.to_vec().into();
        let answer = SaslAuthenticateResponse { auth_bytes, ..Default::default() };
        match exchange.answered(&answer) {
            Ok(SaslStep::Send(_)) => {}
            Ok(SaslStep::Done { .. }) => {
                let proves = matches!(mechanism, Mechanism::ScramSha256 | Mechanism::ScramSha512);
                assert!(!proves, "{answers:?} is believed");
                return;
            }
            Err(_) => return,
        }
    }
}

fn begin(client: &SaslClient) -> SaslExchange<'_> {
    match pin!(client.begin()).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(exchange) => exchange.expect("the credentials are there"),
        Poll::Pending => unreachable!("nothing is waited for"),
    }
}
