//! Workers: processes, on this machine or on others, that offer one load together and read it back.
//!
//! A coordinator, which is the experiment, deals the producers of a load to workers in their order
//! and its partitions in turn: every record has one producer and every partition one reader. All
//! take the same start, each by its own clock. When every producer has settled its records, the
//! coordinator sends each reader the offsets to wait for. All ledgers go to the coordinator, which
//! audits every record of the run.
//!
//! [`frames`] describes the bytes on the wire and their encryption, [`crate::clocks`] the offsets
//! of clocks. A worker serves one coordinator after another. Each side hears from the other every
//! second, and gives up on one that is silent for [`SILENCE_MAX`].

mod channel;
mod coordinating;
pub mod frames;
mod messages;
mod serving;

use std::fmt;
use std::time::Duration;

use zeroize::Zeroizing;

use moldau_measure::Error;

pub use coordinating::Workers;
pub use serving::{Event, Stay, Worker};

/// Most workers of a run.
pub const WORKERS_MAX: usize = 256;

/// How long the other side may be silent: it speaks every second, and a machine may stand still for
/// some.
pub const SILENCE_MAX: Duration = Duration::from_secs(10);

/// Time between two signs of life.
const ALIVE_INTERVAL: Duration = Duration::from_secs(1);

/// How long a connection and its handshake may take: until then the peer is unknown.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);

/// Fewest characters of a token: 128 bits in hexadecimal. An eavesdropper may try tokens against a
/// recording, as fast as a machine can.
const TOKEN_CHARACTERS_MIN: usize = 32;

/// The secret that coordinator and workers share.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

impl Token {
    /// A token from random characters, such as `openssl rand -hex 32` prints.
    ///
    /// # Errors
    /// [`Error::Plan`] for one that could be guessed.
    pub fn new(text: Zeroizing<String>) -> Result<Self, Error> {
        if text.len() < TOKEN_CHARACTERS_MIN {
            let text = format!("the token has fewer than {TOKEN_CHARACTERS_MIN} characters");
            return Err(Error::Plan(text));
        }
        Ok(Self(text))
    }

    fn bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests;
