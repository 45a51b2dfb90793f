//! Exchanges from RFC 7677 and of our own two sides, and what is not an exchange.

use proptest::prelude::*;

use super::*;

const USER: &str = "user";
const PASSWORD: &str = "pencil";
const CLIENT_NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";

/// The user of RFC 7677, section 3.
fn rfc_credential() -> ScramCredential {
    let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    ScramCredential::derive(Mechanism::ScramSha256, PASSWORD, &salt, 4096)
}

fn client(mechanism: Mechanism, user: &str, password: &str) -> ClientExchange {
    let password = Zeroizing::new(password.to_owned());
    ClientExchange::new(mechanism, user, password, CLIENT_NONCE.to_owned())
}

/// Both sides against each other; gives the user that the server found.
fn exchange(
    mechanism: Mechanism,
    user: &str,
    password: &str,
    credential: &ScramCredential,
) -> Result<String, Refusal> {
    let mut client = client(mechanism, user, password);
    let look_up = |_: &str| (credential.clone(), true);
    let first = client.first();
    let (server, answer) =
        ServerExchange::first(mechanism, first.as_bytes(), SERVER_NONCE, look_up)?;
    let last = client.last(answer.as_bytes(), &mut None).unwrap();
    let (found, answer) = server.last(last.as_bytes())?;
    client.verify(answer.as_bytes()).unwrap();
    Ok(found)
}

#[test]
fn exchange_of_rfc_7677_comes_out_as_printed_there() {
    let mut client = client(Mechanism::ScramSha256, USER, PASSWORD);
    assert_eq!(client.first(), "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
    let look_up = |user: &str| {
        assert_eq!(user, USER);
        (rfc_credential(), true)
    };
    let first = client.first();
    let (server, server_first) =
        ServerExchange::first(Mechanism::ScramSha256, first.as_bytes(), SERVER_NONCE, look_up)
            .unwrap();
    assert_eq!(
        server_first,
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
         s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    );
    let last = client.last(server_first.as_bytes(), &mut None).unwrap();
    assert_eq!(
        last,
        "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
         p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    );
    let (user, server_final) = server.last(last.as_bytes()).unwrap();
    assert_eq!(user, USER);
    assert_eq!(server_final, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    client.verify(server_final.as_bytes()).unwrap();
}

#[test]
fn credential_is_read_in_kafkas_form() {
    let credential = rfc_credential();
    let text = format!(
        "[salt={},stored_key={},server_key={},iterations=4096]",
        STANDARD.encode(&credential.salt),
        STANDARD.encode(&credential.stored_key),
        STANDARD.encode(&credential.server_key),
    );
    assert_eq!(text.parse(), Ok(credential.clone()));
    assert!(!format!("{credential:?}").contains("key"));
    let too_few = text.replace("4096", "4095");
    let no_base64 = "salt=?,stored_key=AA==,server_key=AA==,iterations=4096";
    for broken in ["", "[]", "salt=AA==", no_base64, &too_few] {
        assert_eq!(broken.parse::<ScramCredential>(), Err(InvalidScramCredential), "{broken:?}");
    }
}

#[test]
fn wrong_password_and_unknown_user_fail_alike() {
    let mechanism = Mechanism::ScramSha256;
    let refused = exchange(mechanism, USER, "crayon", &rfc_credential());
    assert_eq!(refused, Err(Refusal::WrongCredentials));

    let phantom = phantom(mechanism, "nobody", b"secret");
    assert_eq!(phantom, super::phantom(mechanism, "nobody", b"secret"));
    let real = ScramCredential::random_salt();
    let letters = |salt: &[u8]| salt.iter().all(u8::is_ascii_alphanumeric);
    assert_eq!((real.len(), letters(&real)), (phantom.salt.len(), letters(&phantom.salt)));

    // Even one who could guess what is made up does not get in.
    let mut guesser = client(mechanism, "nobody", PASSWORD);
    let made_up = ScramCredential::derive(mechanism, PASSWORD, &phantom.salt, 4096);
    let first = guesser.first();
    let (server, answer) =
        ServerExchange::first(mechanism, first.as_bytes(), "x", |_| (made_up, false)).unwrap();
    let last = guesser.last(answer.as_bytes(), &mut None).unwrap();
    assert_eq!(server.last(last.as_bytes()), Err(Refusal::WrongCredentials));
}

#[test]
fn delegation_token_is_no_user() {
    let first = format!("n,,n=user,r={CLIENT_NONCE},tokenauth=true");
    let mechanism = Mechanism::ScramSha256;
    let look_up = |_: &str| (rfc_credential(), true);
    let (server, _) = ServerExchange::first(mechanism, first.as_bytes(), "x", look_up).unwrap();
    assert!(!server.known);
}

#[test]
fn first_message_that_is_none_is_refused() {
    let nonce_too_long = format!("n,,n=user,r={}", "x".repeat(NONCE_BYTES_MAX + 1));
    for (text, refusal) in [
        ("", Refusal::Malformed),
        ("p=tls-unique,,n=user,r=x", Refusal::Malformed),
        ("n,,n=,r=x", Refusal::Malformed),
        ("n,,n=user,r=", Refusal::Malformed),
        (&nonce_too_long, Refusal::Malformed),
        ("n,,n=us=er,r=x", Refusal::Malformed),
        ("n,,n=us=3d,r=x", Refusal::Malformed),
        ("n,,r=x,n=user", Refusal::Malformed),
        ("n,,m=y,n=user,r=x", Refusal::Malformed),
        ("n,a=admin,n=user,r=x", Refusal::OtherAuthorizationId),
    ] {
        let look_up = |_: &str| (rfc_credential(), true);
        let taken = ServerExchange::first(Mechanism::ScramSha256, text.as_bytes(), "x", look_up);
        assert_eq!(taken.err(), Some(refusal), "{text:?}");
    }
}

#[test]
fn last_message_must_belong_to_the_first() {
    for text in [
        "",
        "c=biws,r=other,p=AAAA",
        "c=biws,r=NONCExx,p=",
        "c=eSws,r=NONCEx,p=AAAA",
        "c=biws,r=NONCEx",
        "r=NONCEx,c=biws,p=AAAA",
    ] {
        let look_up = |_: &str| (rfc_credential(), true);
        let first = b"n,,n=user,r=NONCE";
        let (server, _) =
            ServerExchange::first(Mechanism::ScramSha256, first, "x", look_up).unwrap();
        assert_eq!(server.last(text.as_bytes()).err(), Some(Refusal::Malformed), "{text:?}");
    }
}

#[test]
fn client_believes_no_server_that_does_not_know_the_password() {
    let salt = "W22ZaJ0SNY7soEsUEjb6gQ==";
    let ours = CLIENT_NONCE;
    for first in [
        format!("r={ours},s={salt},i=4096"),
        format!("r=x{ours}x,s={salt},i=4096"),
        format!("r={ours}x,s={salt},i=4095"),
        format!("r={ours}x,s={salt},i=2000000000"),
        format!("r={ours}x,s={salt},i=-1"),
        format!("r={ours}x,s=?,i=4096"),
        "e=other-error".to_owned(),
    ] {
        let mut client = client(Mechanism::ScramSha256, USER, PASSWORD);
        assert!(client.last(first.as_bytes(), &mut None).is_err(), "{first}");
    }
    let mut client = client(Mechanism::ScramSha256, USER, PASSWORD);
    client.last(format!("r={ours}x,s={salt},i=4096").as_bytes(), &mut None).unwrap();
    for last in ["", "v=", "v=AAAA", "e=invalid-proof"] {
        assert!(client.verify(last.as_bytes()).is_err(), "{last}");
    }
}

#[test]
fn salted_password_is_kept_for_the_same_salt_only() {
    let ours = CLIENT_NONCE;
    let mut kept = None;
    let mut answers = Vec::new();
    for salt in ["AAAA", "AAAA", "BBBB"] {
        let mut client = client(Mechanism::ScramSha512, USER, PASSWORD);
        let first = format!("r={ours}x,s={salt},i=4096");
        answers.push(client.last(first.as_bytes(), &mut kept).unwrap());
        assert_eq!(STANDARD.encode(&kept.as_ref().unwrap().salt), salt);
    }
    assert_eq!(answers[0], answers[1]);
    assert_ne!(answers[1], answers[2]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_user_and_password_agree(user in "[^\0]{1,20}", password: String, strong: bool) {
        let mechanism = if strong { Mechanism::ScramSha512 } else { Mechanism::ScramSha256 };
        let credential = ScramCredential::derive(mechanism, &password, b"salt", 4096);
        prop_assert_eq!(exchange(mechanism, &user, &password, &credential), Ok(user));
    }
}

proptest! {
    #[test]
    fn arbitrary_messages_never_panic(bytes: Vec<u8>, text in "(n,,)?(n=)?[a-z=,]{0,20}(,r=)?.*") {
        for message in [&bytes[..], text.as_bytes()] {
            let look_up = |_: &str| (phantom(Mechanism::ScramSha256, "x", b""), true);
            let mechanism = Mechanism::ScramSha256;
            let taken = ServerExchange::first(mechanism, message, "x", look_up);
            if let Ok((server, _)) = taken {
                prop_assert!(server.last(message).is_err());
            }
        }
    }
}
