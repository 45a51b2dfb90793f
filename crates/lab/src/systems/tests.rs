//! Shells as systems.

use std::net::TcpListener;

use super::*;

fn shell(script: &str, ready: Ready) -> ProcessSpec {
    ProcessSpec {
        role: "shell".into(),
        program: "/bin/sh".into(),
        args: vec!["-c".into(), script.into()],
        env: vec![("WORD".into(), "hello".into())],
        ready,
    }
}

#[test]
fn a_ready_process_is_measured_suspended_and_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ready = Ready::Tcp(listener.local_addr().unwrap());
    let killed = Process::launch(&shell("exec sleep 1000", ready.clone()), directory.path());
    assert!(!killed.unwrap().kill().unwrap().success());
    let spec = shell("echo $WORD; exec sleep 1000", ready);
    let mut process = Process::launch(&spec, directory.path()).unwrap();
    process.wait_until_back().unwrap();
    let said = || fs::read_to_string(directory.path().join("shell.log")).unwrap();
    while said().is_empty() {
        process.check_alive().unwrap();
        thread::yield_now();
    }
    process.suspend().unwrap();
    process.resume().unwrap();
    let pid = process.pid();
    drop(process);
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(said().trim(), "hello");
}

#[test]
fn a_killed_process_is_started_again_as_it_was() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let ready = Ready::Tcp(listener.local_addr().unwrap());
    let spec = shell("echo $WORD; exec sleep 1000", ready);
    let mut process = Process::launch(&spec, directory.path()).unwrap();
    let said = |count: usize| {
        let log = fs::read_to_string(directory.path().join("shell.log")).unwrap();
        log.lines().filter(|line| *line == "hello").count() >= count
    };
    for times in 1..=2 {
        while !said(times) {
            process.check_alive().unwrap();
            thread::yield_now();
        }
        let before = process.pid();
        process.kill_and_restart().unwrap();
        assert_ne!(process.pid(), before);
    }
    process.wait_until_back().unwrap();
}

#[test]
fn a_free_address_is_kept_for_the_server_that_listens_there() {
    let [address, other] = free_addresses().unwrap();
    assert_ne!(address, other);
    for _ in 0..2 {
        let server = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(address).unwrap();
        assert_ne!(client.local_addr().unwrap(), address);
        drop((client, server));
        // Without the reservation the port could be given away now.
        assert!(TcpStream::connect(address).is_err());
        let taken = TcpSocket::new_v4().unwrap().bind(address);
        assert_eq!(taken.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}

#[test]
fn a_process_that_ends_at_once_is_an_error_with_its_last_words() {
    let directory = tempfile::tempdir().unwrap();
    let [address] = free_addresses().unwrap();
    let nobody = Ready::Http(address, "/readyz".into());
    let started = Process::start(&shell("echo no room; exit 3", nobody), directory.path());
    let told = started.unwrap_err().to_string();
    let wanted = "shell ended with exit status: 3; the last that it said:\n  no room";
    assert_eq!(told, wanted);
}

#[test]
fn another_ready_process_at_the_address_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let spec = shell("exec sleep 1000", Ready::Tcp(address));
    let told = Process::start(&spec, directory.path()).unwrap_err().to_string();
    assert!(told.contains(&format!("something else is ready at {address}")), "{told}");
    // Nor is what another is ready for once the process has ended.
    let mut ended = Process::launch(&shell("exit 0", NEVER), directory.path()).unwrap();
    while ended.check_alive().is_ok() {
        thread::yield_now();
    }
    let ready = ended.wait_until_ready(&Ready::Tcp(address), READY_TIMEOUT);
    assert!(matches!(ready, Err(Error::Ended { .. })), "{ready:?}");
}

/// The shell ended, and what it had started served on.
#[test]
fn children_of_a_process_end_with_it() {
    let directory = tempfile::tempdir().unwrap();
    let script = "sleep 1000 & echo $!; wait";
    let running = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
    };
    let end: [fn(Process); 3] = [
        |process| assert!(!process.stop().unwrap().success()),
        |process| assert!(!process.kill().unwrap().success()),
        // The leader alone is struck.
        |mut process| {
            rustix::process::kill_process(id(&process.child), Signal::KILL).unwrap();
            while process.check_alive().is_ok() {
                thread::yield_now();
            }
        },
    ];
    for end in end {
        let process = Process::launch(&shell(script, NEVER), directory.path()).unwrap();
        let said = || fs::read_to_string(process.log()).unwrap();
        while !said().ends_with('\n') {
            thread::yield_now();
        }
        let started = said().trim().to_string();
        assert!(running(&started));
        assert!(process.check_alone().unwrap_err().to_string().contains("other processes"));
        end(process);
        // The adopting process may take a moment to reap it.
        while running(&started) {
            thread::yield_now();
        }
    }
}

#[test]
fn a_preparation_that_never_ends_is_given_up() {
    let directory = tempfile::tempdir().unwrap();
    let launch = |script| Process::launch(&shell(script, NEVER), directory.path()).unwrap();
    let late = launch("exec sleep 1000").succeed_within(Duration::ZERO);
    assert!(matches!(late, Err(Error::NotReady { .. })), "{late:?}");
    launch("exit 0").succeed_within(READY_TIMEOUT).unwrap();
}

#[test]
fn the_end_of_a_long_log_is_read() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    fs::write(&log, "x".repeat(100) + "\nToo many open files").unwrap();
    assert_eq!(tail(&log, 15), "many open files");
    assert_eq!(tail(&directory.path().join("absent"), 15), "");
}

#[test]
fn readiness_over_http_needs_status_200() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        for status in ["503 Not yet", "200 OK"] {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 512];
            assert!(stream.read(&mut request).unwrap() > 0);
            stream.write_all(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes()).unwrap();
        }
    });
    let ready = Ready::Http(address, "/readyz".into());
    assert!(!ready.is_met());
    assert!(ready.is_met());
    server.join().unwrap();
}
