//! A bare TCP relay: the least that anything between a client and a server costs.
//!
//! Each connection has two threads, one for each direction, which read and write and know nothing
//! else. No event queue stands between, so that no cheaper way exists to carry bytes through an
//! ordinary process over ordinary sockets.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use moldau_measure::Error;

/// Arguments under which the program is a relay; where it listens and where it leads to follow.
pub const ARGUMENTS: [&str; 2] = ["lab", "relay"];

/// Bytes that one read takes at most: as many as the proxy's, so that both carry the same portions.
const BUFFER_BYTES: usize = 256 * 1024;

/// Most connections at a time: each costs two threads and two buffers. A client has a handful.
const CONNECTIONS_MAX: usize = 256;

/// How long the server may take to accept.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Carries what comes over the connections of `listener` to `upstream` and back until
/// the process ends.
///
/// # Errors
/// [`Error::Machine`] once no connection can be accepted any more.
pub fn run(listener: &TcpListener, upstream: SocketAddr) -> Result<(), Error> {
    let open = Arc::new(());
    loop {
        let downstream = match listener.accept() {
            Ok((stream, _)) => stream,
            // The client disconnected while it waited. Other connections go on.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => continue,
            Err(error) => return Err(Error::machine("accepting a connection")(error)),
        };
        if Arc::strong_count(&open) > CONNECTIONS_MAX {
            tracing::warn!(CONNECTIONS_MAX, "too many connections, one is closed");
            continue;
        }
        let open = Arc::clone(&open);
        let carried = thread::Builder::new().spawn(move || {
            if let Err(error) = carry(&downstream, upstream) {
                tracing::warn!(%upstream, %error, "a connection could not be carried on");
            }
            drop(open);
        });
        if let Err(error) = carried {
            tracing::warn!(%error, "a connection is closed for want of a thread");
        }
    }
}

/// Carries one connection to its end.
fn carry(downstream: &TcpStream, upstream: SocketAddr) -> std::io::Result<()> {
    let upstream = TcpStream::connect_timeout(&upstream, CONNECT_TIMEOUT)?;
    downstream.set_nodelay(true)?;
    upstream.set_nodelay(true)?;
    thread::scope(|scope| {
        let back = thread::Builder::new().spawn_scoped(scope, || copy(&upstream, downstream));
        if back.is_ok() {
            copy(downstream, &upstream);
        }
        back.map(|_| ())
    })
}

/// Copies until `from` says no more, which `to` then hears; a failure of either ends both.
fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let mut buffer = vec![0; BUFFER_BYTES];
    let ended = loop {
        match from.read(&mut buffer) {
            Ok(0) => break to.shutdown(Shutdown::Write),
            Ok(count) => {
                let portion = buffer.get(..count).unwrap_or_default();
                if let Err(error) = to.write_all(portion) {
                    break Err(error);
                }
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => break Err(error),
        }
    };
    if ended.is_err() {
        // Whichever side is gone already cannot be closed again.
        drop(from.shutdown(Shutdown::Both));
        drop(to.shutdown(Shutdown::Both));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client's connection through a relay, and the server's end of it.
    fn pair() -> (TcpStream, TcpStream) {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = server.local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        // Ends with the tests.
        thread::spawn(move || run(&listener, upstream));
        let client = TcpStream::connect(address).unwrap();
        let (server, _) = server.accept().unwrap();
        for stream in [&client, &server] {
            stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        }
        (client, server)
    }

    fn random(seed: u64) -> Vec<u8> {
        let mut random = fastrand::Rng::with_seed(seed);
        std::iter::repeat_with(|| random.u8(..)).take(3 * BUFFER_BYTES + 17).collect()
    }

    #[test]
    fn bytes_pass_in_both_directions_at_once() {
        let (client, server) = pair();
        let ends = [(client, random(1), random(2)), (server, random(2), random(1))];
        thread::scope(|scope| {
            for (stream, out, expected) in &ends {
                scope.spawn(move || {
                    let mut stream = stream;
                    stream.write_all(out).unwrap();
                });
                scope.spawn(move || {
                    let mut stream = stream;
                    let mut found = vec![0; expected.len()];
                    stream.read_exact(&mut found).unwrap();
                    assert!(found == *expected);
                });
            }
        });
    }

    #[test]
    fn one_direction_may_end_before_the_other() {
        let (mut client, mut server) = pair();
        client.write_all(b"all that there is").unwrap();
        client.shutdown(Shutdown::Write).unwrap();
        let mut heard = String::new();
        server.read_to_string(&mut heard).unwrap();
        assert_eq!(heard, "all that there is");
        server.write_all(b"the answer").unwrap();
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "the answer");
    }

    #[test]
    fn a_side_that_vanishes_ends_the_other() {
        let (mut client, server) = pair();
        client.write_all(b"never read").unwrap();
        // What is unread when it is closed resets the connection.
        let mut first = [0; 1];
        assert_eq!(server.peek(&mut first).unwrap(), 1);
        drop(server);
        let mut rest = Vec::new();
        let end = client.read_to_end(&mut rest);
        assert!(
            rest.is_empty() && end.map_or_else(|e| e.kind() != ErrorKind::WouldBlock, |_| true)
        );
    }

    #[test]
    fn a_server_that_is_not_there_closes_the_connection_alone() {
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || run(&listener, closed));
        for _ in 0..2 {
            let mut client = TcpStream::connect(address).unwrap();
            client.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
            let mut rest = Vec::new();
            let end = client.read_to_end(&mut rest);
            let is_over = |kind| kind != ErrorKind::WouldBlock && kind != ErrorKind::TimedOut;
            assert!(end.map_or_else(|error| is_over(error.kind()), |count| count == 0));
        }
    }
}
