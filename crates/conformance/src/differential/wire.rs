//! One connection that sends requests of any API and version, good or bad.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::BytesMut;
use moldau_protocol::{ApiKey, frame};
use socket2::{Domain, Socket, Type};

/// Far beyond what an answer takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The name that both servers see.
const CLIENT_ID: &str = "differential";

/// An address to connect from and to; connected anew where the server closed the connection.
pub(super) struct Client {
    from: SocketAddr,
    to: SocketAddr,
    stream: Option<TcpStream>,
    correlation: i32,
}

impl Client {
    pub(super) fn new(from: &str, to: &str) -> Result<Self> {
        Ok(Self {
            from: format!("{from}:0").parse()?,
            to: to.parse()?,
            stream: None,
            correlation: 0,
        })
    }

    /// The body of the answer; `None` where the server closes the connection.
    pub(super) fn call(
        &mut self,
        api: ApiKey,
        version: i16,
        body: &[u8],
    ) -> Result<Option<Vec<u8>>> {
        self.send(api, version, body)?;
        let Some(answer) = self.receive()? else { return Ok(None) };
        let (correlation, body) = frame::parse_response(&answer, api, version)?;
        ensure!(correlation == self.correlation, "an answer to another request");
        Ok(Some(body.to_vec()))
    }

    fn send(&mut self, api: ApiKey, version: i16, body: &[u8]) -> Result<()> {
        self.correlation += 1;
        let mut request = BytesMut::new();
        frame::write_request_header(&mut request, api, version, self.correlation, Some(CLIENT_ID))?;
        request.extend_from_slice(body);
        let length = u32::try_from(request.len())?.to_be_bytes();
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self.stream.insert(connect(self.from, self.to)?),
        };
        stream.write_all(&[&length[..], &request].concat()).context("cannot send")
    }

    fn receive(&mut self) -> Result<Option<Vec<u8>>> {
        let stream = self.stream.as_mut().context("it is connected")?;
        let mut length = [0; 4];
        match stream.read_exact(&mut length) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                bail!("no answer within {PATIENCE:?}")
            }
            Err(_) => {
                self.stream = None;
                return Ok(None);
            }
        }
        let mut answer = vec![0; usize::try_from(u32::from_be_bytes(length))?];
        stream.read_exact(&mut answer)?;
        Ok(Some(answer))
    }
}

fn connect(from: SocketAddr, to: SocketAddr) -> Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&from.into())?;
    socket.connect(&to.into())?;
    let stream = TcpStream::from(socket);
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
