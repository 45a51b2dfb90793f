//! Whether PostgreSQL takes sessions: it accepts connections before, and while it recovers.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Version 3.0 of the protocol, and a user, whose password is not sent.
const STARTUP: &[u8] = b"\x00\x00\x00\x15\x00\x03\x00\x00user\x00moldau\x00\x00";

/// The kind of the message that asks for a password, or says that none is needed.
const AUTHENTICATION: u8 = b'R';

/// Begins a session, and looks at the answer: an error until sessions are taken.
pub(super) fn takes_sessions(address: SocketAddr, within: Duration) -> bool {
    let ask = || -> io::Result<u8> {
        let mut stream = TcpStream::connect_timeout(&address, within)?;
        stream.set_read_timeout(Some(within))?;
        stream.write_all(STARTUP)?;
        let mut kind = [0];
        stream.read_exact(&mut kind)?;
        let [kind] = kind;
        Ok(kind)
    };
    ask().is_ok_and(|kind| kind == AUTHENTICATION)
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    #[test]
    fn a_server_that_recovers_takes_no_session() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            for kind in *b"ER" {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; STARTUP.len()];
                stream.read_exact(&mut request).unwrap();
                assert_eq!(usize::from(request[3]), request.len());
                stream.write_all(&[kind, 0, 0, 0, 8]).unwrap();
            }
        });
        let within = Duration::from_secs(60);
        assert!(!takes_sessions(address, within));
        assert!(takes_sessions(address, within));
        server.join().unwrap();
    }
}
