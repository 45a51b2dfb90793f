use std::fmt;
use std::str::FromStr;

/// A SASL mechanism that Kafka knows.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Mechanism {
    /// `PLAIN`: user and password in clear text (RFC 4616); use it over TLS only.
    Plain,
    /// `SCRAM-SHA-256` (RFC 7677).
    ScramSha256,
    /// `SCRAM-SHA-512`.
    ScramSha512,
    /// `OAUTHBEARER`: a signed access token (RFC 7628, KIP-255).
    OAuthBearer,
}

/// A name that is no mechanism of [`Mechanism`].
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{name:?} is not one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 and OAUTHBEARER")]
pub struct UnknownMechanism {
    name: String,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Plain, Self::ScramSha256, Self::ScramSha512, Self::OAuthBearer];

    /// Kafka's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
            Self::OAuthBearer => "OAUTHBEARER",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    fn from_str(name: &str) -> Result<Self, UnknownMechanism> {
        let known = Self::ALL.into_iter().find(|mechanism| mechanism.name() == name);
        known.ok_or_else(|| UnknownMechanism { name: name.to_owned() })
    }
}
