//! An HTTP server on loopback for tests, which answers as a function says and keeps what it was
//! asked.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A request, its header names in lower case.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Vec<u8>,
}

impl Asked {
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    pub(super) fn text(&self) -> &str {
        str::from_utf8(&self.body).unwrap()
    }
}

/// The server, which lives as long as the runtime.
pub(super) struct FakeHttp {
    pub(super) url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl FakeHttp {
    /// Starts a server that answers each request with a status and a body.
    pub(super) async fn start(
        answer: impl Fn(&Asked) -> (u16, String) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let request = read(&mut stream).await;
                let (status, body) = answer(&request);
                kept.lock().unwrap().push(request);
                let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all((head + &body).as_bytes()).await.unwrap();
            }
        });
        Self { url, asked }
    }

    /// What was asked since the last call.
    pub(super) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }

    /// Methods and paths of what was asked since the last call.
    pub(super) fn paths(&self) -> Vec<String> {
        self.asked().iter().map(|asked| format!("{} {}", asked.method, asked.path)).collect()
    }
}

async fn read(stream: &mut TcpStream) -> Asked {
    let mut bytes = Vec::new();
    let head_end = loop {
        assert_ne!(stream.read_buf(&mut bytes).await.unwrap(), 0, "the request is whole");
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.split("\r\n");
    let first: Vec<&str> = lines.next().unwrap().split(' ').collect();
    let headers: BTreeMap<String, String> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers.get("content-length").map_or(0, |text| text.parse().unwrap());
    let mut body = bytes.split_off(head_end + 4);
    while body.len() < length {
        assert_ne!(stream.read_buf(&mut body).await.unwrap(), 0, "the body is whole");
    }
    Asked { method: first[0].to_owned(), path: first[1].to_owned(), headers, body }
}
