//! Exchanges of SASL that pass, message by message.

use bytes::BytesMut;
use moldau_protocol::{Request, Response, frame};

use super::*;

/// A session whose cluster gives scripted answers.
struct World {
    context: SessionContext,
    observer: Rc<Observer>,
}

impl World {
    fn new() -> Self {
        let peer = "192.0.2.7:50000".parse().unwrap();
        let context = SessionContext::new("main", peer, Principal::anonymous());
        Self { observer: Rc::new(Observer::new(context.clone())), context }
    }

    fn ask<Q: Request>(&self, request: &Q) {
        let mut bytes = BytesMut::new();
        frame::encode_request(&mut bytes, 1, 5, None, request).unwrap();
        let request = RequestFrame::parse(bytes.into(), true).unwrap();
        self.observer.see_request(&request).unwrap();
    }

    fn answer<R: Response>(&self, response: &R) {
        let mut bytes = BytesMut::new();
        frame::encode_response(&mut bytes, R::KEY, 1, 5, response).unwrap();
        let response = ResponseFrame::parse(bytes.into(), R::KEY, 1).unwrap();
        self.observer.see_response(&response).unwrap();
    }

    fn choose(&self, mechanism: &str) {
        self.ask(&SaslHandshakeRequest { mechanism: mechanism.to_owned() });
    }

    fn say(&self, message: &str) {
        let auth_bytes = message.to_owned().into();
        self.ask(&SaslAuthenticateRequest { auth_bytes, ..Default::default() });
    }

    fn agree(&self, error_code: i16) {
        self.answer(&SaslHandshakeResponse { error_code, ..Default::default() });
    }

    fn reply(&self, error_code: i16, message: &str) {
        let auth_bytes = message.to_owned().into();
        self.answer(&SaslAuthenticateResponse { error_code, auth_bytes, ..Default::default() });
    }

    fn principal(&self) -> String {
        self.context.principal().to_string()
    }
}

const ANONYMOUS: &str = "User:ANONYMOUS";

#[test]
fn a_claim_is_believed_once_the_cluster_accepted_it() {
    let world = World::new();
    world.choose("PLAIN");
    world.agree(0);
    world.say("\0alice\0secret");
    assert_eq!(world.principal(), ANONYMOUS);
    world.reply(0, "");
    assert_eq!(world.principal(), "User:alice");
}

#[test]
fn scram_is_believed_at_its_end_only() {
    let world = World::new();
    world.choose("SCRAM-SHA-512");
    world.agree(0);
    world.say("n,,n=alice,r=abc");
    world.reply(0, "r=abcdef,s=c2FsdA==,i=4096");
    world.say("c=biws,r=abcdef,p=cHJvb2Y=");
    assert_eq!(world.principal(), ANONYMOUS);
    world.reply(0, "v=c2lnbmF0dXJl");
    assert_eq!(world.principal(), "User:alice");
}

/// Clusters pass over extensions of the second message, which is proven for the first one's name.
#[test]
fn a_later_message_of_an_exchange_names_no_other_principal() {
    for last in ["c=biws,r=abcdef,n=admin,p=cHJvb2Y=", "n,,n=admin,r=abc"] {
        let world = World::new();
        world.choose("SCRAM-SHA-256");
        world.agree(0);
        world.say("n,,n=mallory,r=abc");
        world.reply(0, "r=abcdef,s=c2FsdA==,i=4096");
        world.say(last);
        world.reply(0, "v=c2lnbmF0dXJl");
        assert_eq!(world.principal(), "User:mallory");
    }
}

#[test]
fn a_refused_claim_is_forgotten() {
    let world = World::new();
    world.choose("PLAIN");
    world.agree(0);
    world.say("\0alice\0guess");
    world.reply(58, "");
    world.choose("OAUTHBEARER");
    world.agree(0);
    // A token that is refused: the answer has a body and no error, then the client gives up.
    world.say("n,,\u{1}auth=Bearer e30.eyJzdWIiOiJib2IifQ.sig\u{1}\u{1}");
    world.reply(0, r#"{"status":"invalid_token"}"#);
    world.say("\u{1}");
    world.reply(58, "");
    assert_eq!(world.principal(), ANONYMOUS);
}

/// Else a client could name anyone in a mechanism that the cluster never took up.
#[test]
fn a_claim_counts_only_in_the_mechanism_on_which_the_cluster_agreed() {
    let world = World::new();
    world.choose("GSSAPI");
    world.choose("PLAIN");
    world.say("\0root\0x");
    world.agree(0);
    world.agree(33);
    world.reply(0, "");
    assert_eq!(world.principal(), ANONYMOUS);
}

#[test]
fn answers_belong_to_requests_in_order_when_a_client_sends_ahead() {
    let world = World::new();
    world.choose("PLAIN");
    world.say("\0alice\0secret");
    world.say("\0root\0guess");
    world.agree(0);
    world.reply(0, "");
    world.reply(58, "");
    assert_eq!(world.principal(), "User:alice");
}
