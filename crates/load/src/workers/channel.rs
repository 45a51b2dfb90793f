//! A connection between a coordinator and a worker: messages both ways, and silence noticed.

use std::fmt;
use std::time::Instant;

use bytes::BytesMut;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::frames::{HELLO_BYTES, Hello, Opener, PIECE_BYTES_MAX, Sealer, Side, ends};
use super::{HANDSHAKE_TIMEOUT, SILENCE_MAX, Token};
use moldau_measure::Error;

pub(super) struct Channel {
    stream: TcpStream,
    sealer: Sealer,
    opener: Opener,
    /// What came and is no message yet.
    came: BytesMut,
    /// The other side, for errors.
    peer: String,
    /// When anything came last.
    heard: Instant,
}

impl Channel {
    /// Exchanges hellos. Whether the other side has the token shows when its first message comes.
    pub(super) async fn begin(
        mut stream: TcpStream,
        token: &Token,
        side: Side,
        peer: String,
    ) -> Result<Self, Error> {
        let mut random = [0; _];
        aws_lc_rs::rand::fill(&mut random).map_err(|_| lost(&peer, "no random bytes here"))?;
        let mine = Hello { random };
        let exchange = async {
            stream.set_nodelay(true)?;
            let mut theirs = [0; HELLO_BYTES];
            match side {
                Side::Coordinator => {
                    stream.write_all(&mine.to_bytes()).await?;
                    stream.read_exact(&mut theirs).await?;
                }
                Side::Worker => {
                    stream.read_exact(&mut theirs).await?;
                    stream.write_all(&mine.to_bytes()).await?;
                }
            }
            Ok::<_, std::io::Error>(theirs)
        };
        let theirs = match timeout(HANDSHAKE_TIMEOUT, exchange).await {
            Ok(theirs) => theirs.map_err(|error| lost(&peer, error))?,
            Err(_) => {
                let text = "it did not answer; a worker that serves another experiment does not";
                return Err(lost(&peer, text));
            }
        };
        let theirs = Hello::read(&theirs).map_err(|broken| lost(&peer, broken))?;
        let (coordinator, worker) = match side {
            Side::Coordinator => (mine, theirs),
            Side::Worker => (theirs, mine),
        };
        let (sealer, opener) = ends(token, coordinator, worker, side);
        Ok(Self { stream, sealer, opener, came: BytesMut::new(), peer, heard: Instant::now() })
    }

    pub(super) async fn send(&mut self, message: &impl Serialize) -> Result<(), Error> {
        let text = serde_json::to_vec(message).map_err(|error| self.lost(error))?;
        let frames = self.sealer.seal(&text);
        // A long message takes its time, and each piece of it only so much.
        for piece in frames.chunks(PIECE_BYTES_MAX) {
            match timeout(SILENCE_MAX, self.stream.write_all(piece)).await {
                Ok(written) => written.map_err(|error| self.lost(error))?,
                Err(_) => return Err(self.lost("it takes nothing more")),
            }
        }
        Ok(())
    }

    /// The next message. Cancelling the future loses nothing.
    pub(super) async fn receive<T: DeserializeOwned>(&mut self) -> Result<T, Error> {
        loop {
            let opened = self.opener.open(&mut self.came).map_err(|error| self.lost(error))?;
            if let Some(text) = opened {
                return serde_json::from_slice(&text).map_err(|error| self.lost(error));
            }
            self.came.reserve(PIECE_BYTES_MAX);
            let left = SILENCE_MAX.saturating_sub(self.heard.elapsed());
            match timeout(left, self.stream.read_buf(&mut self.came)).await {
                Ok(Ok(0)) => return Err(self.lost("it closed the connection")),
                Ok(Ok(_)) => self.heard = Instant::now(),
                Ok(Err(error)) => return Err(self.lost(error)),
                Err(_) => {
                    let seconds = SILENCE_MAX.as_secs();
                    return Err(self.lost(format_args!("it was silent for {seconds} s")));
                }
            }
        }
    }

    /// An error about the other side.
    pub(super) fn lost(&self, reason: impl fmt::Display) -> Error {
        lost(&self.peer, reason)
    }
}

pub(super) fn lost(peer: &str, reason: impl fmt::Display) -> Error {
    Error::Peer { peer: peer.into(), reason: reason.to_string() }
}
