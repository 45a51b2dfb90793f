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
    let answer = exchange(port, target, headers, body)?;
    let status = answer.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.split(' ').next());
    status.and_then(|status| status.parse().ok()).with_context(|| format!("{target}: {answer}"))
}

/// The page at `path`.
pub(crate) fn page(port: u16, path: &str) -> Result<String> {
    let answer = exchange(port, &format!("GET {path}"), "", "")?;
    let body = answer.split_once("\r\n\r\n").filter(|(head, _)| head.contains(" 200 "));
    Ok(body.with_context(|| format!("{path}: {answer}"))?.1.to_owned())
}

fn exchange(port: u16, target: &str, headers: &str, body: &str) -> Result<String> {
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
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    fn answered<T>(answer: &'static str, ask: impl Fn(u16) -> Result<T>) -> Result<T> {
        let listener = TcpListener::bind(loopback(0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 1024];
                assert!(stream.read(&mut request).unwrap() > 0);
                stream.write_all(answer.as_bytes()).unwrap();
            });
            ask(port)
        })
    }

    #[test]
    fn the_status_of_an_answer_is_read() {
        let ask = |port| status(port, "GET /", "", "");
        assert_eq!(answered("HTTP/1.1 204 No Content\r\n\r\n", ask).unwrap(), 204);
        assert!(answered("", ask).is_err());
        assert!(answered("SSH-2.0\r\n", ask).is_err());
    }

    #[test]
    fn a_page_is_read_where_there_is_one() {
        let ask = |port| page(port, "/metrics");
        assert_eq!(answered("HTTP/1.1 200 OK\r\nA: b\r\n\r\ncount 1\n", ask).unwrap(), "count 1\n");
        assert!(answered("HTTP/1.1 404 Not Found\r\n\r\ncount 1\n", ask).is_err());
    }
}
