//! Rubbish on the ports of the broker and the proxy while a producer and a consumer work.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::traffic::Traffic;
use crate::world::Process;

/// How long the frames rain.
const DURATION: Duration = Duration::from_secs(15);

/// Connections that send rubbish, to each of broker and proxy.
const ATTACKERS: u64 = 4;

/// Most memory that a process may have used: its caches and its limit of unflushed bytes, and the
/// room of an ordinary load. A single believed length field would be twice as much.
const RESIDENT_KIB_MAX: u64 = 1 << 20;

/// The proxy's counter of frames of clients that ended their session.
const MALFORMED_DOWNSTREAM: &str = "moldau_proxy_frames_malformed_total{side=\"downstream\"}";

/// What a frame does wrong.
fn frame(random: &mut fastrand::Rng) -> Vec<u8> {
    let api_key = if random.u8(..) < 16 { random.i16(..) } else { random.i16(0..93) };
    let version = if random.u8(..) < 16 { random.i16(..) } else { random.i16(0..19) };
    let mut body = Vec::new();
    body.extend_from_slice(&api_key.to_be_bytes());
    body.extend_from_slice(&version.to_be_bytes());
    body.extend_from_slice(&random.i32(..).to_be_bytes());
    body.extend_from_slice(&4i16.to_be_bytes());
    body.extend_from_slice(b"fuzz");
    for _ in 0..random.usize(0..40) {
        match random.u8(0..6) {
            // Lengths of every size, believed by nobody.
            0 => body.extend_from_slice(&i32::MAX.to_be_bytes()),
            1 => body.extend_from_slice(&[0xff, 0xff, 0xff, 0xff, 0x07]),
            2 => body.extend_from_slice(&(-1i32).to_be_bytes()),
            3 => body.extend_from_slice(&random.i16(0..8).to_be_bytes()),
            4 => body.push(random.u8(0..4)),
            _ => body.extend(std::iter::repeat_with(|| random.u8(..)).take(8)),
        }
    }
    let length = match random.u8(0..20) {
        0 => i32::MAX,
        1 => random.i32(..),
        2 => i32::try_from(body.len()).unwrap() + random.i32(1..100),
        _ => i32::try_from(body.len()).unwrap(),
    };
    let mut bytes = length.to_be_bytes().to_vec();
    bytes.append(&mut body);
    if random.u8(0..8) == 0 {
        bytes.truncate(random.usize(0..=bytes.len()));
    }
    bytes
}

/// Sends frames until told to stop, on a new connection whenever the old one was closed.
fn attack(address: SocketAddr, seed: u64, stop: &AtomicBool, sent: &AtomicU64) {
    let mut random = fastrand::Rng::with_seed(seed);
    while !stop.load(Ordering::Relaxed) {
        let Ok(mut stream) = TcpStream::connect(address) else { continue };
        stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        for _ in 0..random.usize(1..20) {
            if stream.write_all(&frame(&mut random)).is_err() {
                break;
            }
            sent.fetch_add(1, Ordering::Relaxed);
        }
        // Closing with or without reading the answers are two different ways to leave.
        if random.bool() {
            drop(stream.shutdown(Shutdown::Write));
            drop(stream.read(&mut [0; 4096]));
        }
    }
}

fn resident_kib_max(process: &Process) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn random_bytes_do_not_disturb_other_clients() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let dir = tempfile::tempdir().unwrap();
    let mut broker = Process::broker(&dir.path().join("data"), &[]);
    let mut proxy = Process::proxy(dir.path(), broker.address);
    let (stop, sent) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let attackers: Vec<_> = (0..2 * ATTACKERS)
        .map(|index| {
            let address = if index < ATTACKERS { broker.address } else { proxy.address };
            let (stop, sent) = (Arc::clone(&stop), Arc::clone(&sent));
            std::thread::spawn(move || attack(address, seed ^ index, &stop, &sent))
        })
        .collect();
    let traffic = Traffic::run_until(proxy.address, Instant::now() + DURATION);
    stop.store(true, Ordering::Relaxed);
    attackers.into_iter().for_each(|attacker| attacker.join().unwrap());

    assert!(broker.is_running() && proxy.is_running());
    assert!(sent.load(Ordering::Relaxed) > 1_000, "{sent:?} frames were sent");
    assert!(broker.metric("moldau_frames_malformed_total") > 0.0);
    assert!(proxy.metric(MALFORMED_DOWNSTREAM) > 0.0);
    assert!(traffic.acknowledged > 0);
    assert_eq!(traffic.problems, Vec::<String>::new());
    assert_eq!(traffic.consumed, traffic.acknowledged);
    println!("{sent:?} frames of rubbish, {} records", traffic.acknowledged);
    for process in [&broker, &proxy] {
        let resident = resident_kib_max(process);
        println!("{resident} KiB resident at most");
        assert!(resident < RESIDENT_KIB_MAX, "{resident} KiB");
    }
    assert_eq!(proxy.terminate().code(), Some(0));
    assert_eq!(broker.terminate().code(), Some(0));
}
