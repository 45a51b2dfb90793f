//! One request of HTTP to a server on loopback.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::process::loopback;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Sends a request and returns the status of the answer. `target` is method and path, `headers` are
/// whole lines.
pub(crate) fn status(port: u16, target: &str, headers: &str, body: &str) -> Result<u16> {
    let mut stream = TcpStream::connect(loopback(port))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let length = body.len();
    let request = format!(
        "{target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let answer = String::from_utf8_lossy(&answer);
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next());
    status.and_then(|status| status.parse().ok()).with_context(|| format!("{target}: {answer}"))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn answered(answer: &'static str) -> Result<u16> {
        let listener = TcpListener::bind(loopback(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                assert!(stream.read(&mut request).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            status(port, "GET /", "", "")
        })
    }

    #[test]
    fn the_status_of_an_answer_is_read() {
        assert_eq!(answered("HTTP/1.1 204 No Content\r\n\r\n").unwrap(), 204);
        assert!(answered("").is_err());
        assert!(answered("SSH-2.0\r\n").is_err());
    }
}
