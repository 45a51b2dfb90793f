//! Workers in threads, coordinators, and impostors of both.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::frames::{HELLO_BYTES, Hello};
use super::messages::{FromWorker, Load, ToWorker};
use super::*;
use crate::generator::{Setup, Share};
use crate::workload::Workload;

/// Longer than anything here takes.
const DEADLINE: Duration = Duration::from_secs(60);

pub(super) fn token(character: char) -> Token {
    Token::new(Zeroizing::new(character.to_string().repeat(TOKEN_CHARACTERS_MIN))).unwrap()
}

/// A worker of its own thread; returns its address and its events.
fn worker(stay: Stay) -> (SocketAddr, mpsc::Receiver<Event>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = mpsc::channel();
    let worker = Worker::new(listener, token('a'), "1.0".into());
    thread::spawn(move || {
        worker.run(stay, &mut |event| tell.send(event.clone()).unwrap_or_default()).unwrap();
    });
    (address, told)
}

fn connect(addresses: &[SocketAddr], token: &Token, version: &str) -> Result<Workers, Error> {
    let names: Vec<String> = addresses.iter().map(ToString::to_string).collect();
    Workers::connect(&names, token, version)
}

/// Why a worker ended with its coordinator.
fn ended(told: &mpsc::Receiver<Event>) -> Result<(), String> {
    loop {
        if let Event::Ended(_, ended) = told.recv_timeout(DEADLINE).unwrap() {
            return ended;
        }
    }
}

/// A load on a system at `bootstrap`.
fn setup(bootstrap: &str, producers: u16) -> Setup {
    let workload = Workload {
        record_bytes: 100,
        partitions: 2,
        producers,
        consume: false,
        window_ms: 100,
        ..Workload::of_tests()
    };
    Setup { topic: "lab-1".into(), run: 1, seed: 7, ..Setup::of_tests(bootstrap.into(), workload) }
}

#[test]
fn a_worker_refuses_peers_without_the_token_and_serves_one_with_it() {
    let (address, told) = worker(Stay::Always);
    let refused = connect(&[address], &token('b'), "1.0").unwrap_err().to_string();
    assert!(refused.starts_with(&format!("worker {address}: ")), "{refused}");
    assert!(refused.ends_with("as one does whose token is another"), "{refused}");
    let reason = ended(&told).unwrap_err();
    assert!(reason.contains("does not open: its token is another"), "{reason}");
    let refused = connect(&[address], &token('a'), "0.9").unwrap_err().to_string();
    assert!(refused.ends_with("its version is 1.0, and this is 0.9"), "{refused}");
    assert!(ended(&told).unwrap_err().ends_with("its version is 0.9"));
    drop(connect(&[address], &token('a'), "1.0").unwrap());
    assert!(matches!(told.recv_timeout(DEADLINE), Ok(Event::Serves(_))));
    assert_eq!(ended(&told), Ok(()));
}

#[test]
fn a_worker_without_the_token_is_not_believed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let impostor = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut hello = [0; HELLO_BYTES];
        stream.read_exact(&mut hello).unwrap();
        stream.write_all(&Hello { random: [3; 32] }.to_bytes()).unwrap();
        // A frame, though sealed with nothing.
        stream.write_all(&[[0, 0, 0, 40].as_slice(), &[7; 40]].concat()).unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap_or_default()
    });
    let refused = connect(&[address], &token('a'), "1.0").unwrap_err().to_string();
    assert!(refused.starts_with(&format!("worker {address}: ")), "{refused}");
    impostor.join().unwrap();
}

#[test]
fn whatever_comes_a_worker_serves_the_next() {
    let (address, told) = worker(Stay::OneExperiment);
    let hello = Hello { random: [3; 32] }.to_bytes();
    let frame = |length: u32| [hello.as_slice(), &length.to_be_bytes(), &[9; 60]].concat();
    for bytes in [
        Vec::new(),
        b"GET / HTTP/1.1\r\nHost: worker.example.com\r\n\r\n".to_vec(),
        hello.to_vec(),
        frame(0),
        frame(60),
        frame(u32::MAX),
    ] {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(&bytes).unwrap();
        // The worker may have refused what came and gone by now.
        let end = stream.shutdown(std::net::Shutdown::Write);
        assert!(end.is_ok() || end.is_err_and(|error| error.kind() == ErrorKind::NotConnected));
        ended(&told).unwrap_err();
    }
    drop(connect(&[address], &token('a'), "1.0").unwrap());
    assert_eq!(ended(&told), Ok(()), "without a load that was no experiment, and it stays");
    drop(connect(&[address], &token('a'), "1.0").unwrap());
    assert_eq!(ended(&told), Ok(()));
}

#[test]
fn a_silent_peer_does_not_block_a_worker() {
    let (address, told) = worker(Stay::Always);
    let silent: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).unwrap()).collect();
    // One after the other they would take longer than a coordinator waits.
    drop(connect(&[address], &token('a'), "1.0").unwrap());
    assert!(matches!(told.recv_timeout(DEADLINE).unwrap(), Event::Serves(_)));
    drop(silent);
}

#[test]
fn a_worker_whose_load_fails_is_named_and_serves_the_next() {
    let (one, two) = (worker(Stay::Always), worker(Stay::Always));
    let mut workers = connect(&[one.0, two.0], &token('a'), "1.0").unwrap();
    let mut setup = setup("127.0.0.1:9", 2);
    setup.workload.record_bytes = 20;
    let failed = workers.produce(&setup, &mut || {}).unwrap_err().to_string();
    assert!(failed.starts_with("worker 127.0.0.1:"), "{failed}");
    assert!(failed.ends_with("20 bytes cannot hold the 32-byte payload header"), "{failed}");
    drop(workers);
    drop((ended(&one.1), ended(&two.1)));
    connect(&[one.0, two.0], &token('a'), "1.0").unwrap();
}

#[test]
fn a_load_that_cannot_be_dealt_is_refused() {
    let (one, two) = (worker(Stay::Always), worker(Stay::Always));
    let mut workers = connect(&[one.0, two.0], &token('a'), "1.0").unwrap();
    let refused = |error: Error| match error {
        Error::Plan(text) => text,
        other => panic!("{other}"),
    };
    let found = workers.produce(&setup("127.0.0.1:9", 1), &mut || {}).unwrap_err();
    assert!(refused(found).starts_with("2 workers for 1 producers"));
    let twice = connect(&[one.0, one.0], &token('a'), "1.0").unwrap_err();
    assert!(refused(twice).contains("there twice"));
    assert!(refused(connect(&[], &token('a'), "1.0").unwrap_err()).contains("1 to 256"));
}

#[test]
fn a_token_that_could_be_guessed_is_refused_and_none_is_printed() {
    let short = "a".repeat(TOKEN_CHARACTERS_MIN - 1);
    assert!(Token::new(Zeroizing::new(short)).is_err());
    assert_eq!(format!("{:?}", token('a')), "Token(..)");
}

#[test]
fn messages_have_these_forms() {
    let said = |message: &ToWorker| serde_json::to_string(message).unwrap();
    assert_eq!(said(&ToWorker::Alive), r#""alive""#);
    assert_eq!(said(&ToWorker::Begin { start_ns: 5 }), r#"{"begin":{"start_ns":5}}"#);
    assert_eq!(said(&ToWorker::Finish { ends: vec![1, 2] }), r#"{"finish":{"ends":[1,2]}}"#);
    let answer = FromWorker::Clock { received_ns: 1, answered_ns: 2 };
    let answer = serde_json::to_string(&answer).unwrap();
    assert_eq!(answer, r#"{"clock":{"received_ns":1,"answered_ns":2}}"#);
    let load = Load::of(&setup("broker:9092", 4), Share { index: 1, of: 2 });
    let load = said(&ToWorker::Prepare(Box::new(load)));
    let start =
        r#"{"prepare":{"bootstrap":"broker:9092","bootstrap_only":false,"credentials":null,"#;
    assert!(load.starts_with(start), "{load}");
    assert!(load.ends_with(r#""is_accounted":true,"share":{"index":1,"of":2}}}"#), "{load}");
    let ToWorker::Prepare(read) = serde_json::from_str(&load).unwrap() else { panic!("{load}") };
    assert_eq!(read.into_setup().unwrap().workload, setup("", 4).workload);
    for strange in [r#""later""#, r#"{"begin":{}}"#, r#"{"begin":{"start_ns":-1}}"#, "{}", ""] {
        assert!(serde_json::from_str::<ToWorker>(strange).is_err(), "{strange}");
    }
}
