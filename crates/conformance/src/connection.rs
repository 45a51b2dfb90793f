//! How a client connects, and the client programs that read it from their standard input.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::client::{Library, script};
use crate::peers::Peers;

/// The clients that have these programs.
pub const LIBRARIES: [Library; 3] = [Library::Java, Library::Librdkafka, Library::Franz];

/// What a column of a program's input says where there is nothing.
const NONE: &str = "-";

/// Where a client connects, and how it and the server prove who they are.
#[derive(Clone, Debug, Default)]
pub struct Connection {
    /// The address of the server.
    pub bootstrap: String,
    /// The file of the authority that the client trusts; without it there is no TLS.
    pub authority: Option<String>,
    /// The file of its own certificate and key.
    pub identity: Option<String>,
    /// What it proves itself with by SASL.
    pub login: Option<Login>,
}

/// A user's credentials.
#[derive(Clone, Debug)]
pub struct Login {
    /// Kafka's name of the mechanism.
    pub mechanism: &'static str,
    /// The user's name.
    pub user: String,
    /// A password, or a token for OAUTHBEARER.
    pub secret: String,
}

/// A program of the three libraries; `clients/README.md` says what each does.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Session {
    /// Connects with credentials, right and wrong.
    Secured,
    /// Writes at a rate and reads it.
    Steady,
    /// Tenants with the same names.
    Tenants,
}

impl Connection {
    /// One without TLS and SASL.
    pub fn plain(bootstrap: &str) -> Self {
        Self { bootstrap: bootstrap.to_owned(), ..Self::default() }
    }

    /// The last columns of a line that a program reads.
    pub(crate) fn columns(&self) -> String {
        let or_none = |column: &Option<String>| column.clone().unwrap_or(NONE.to_owned());
        let (mechanism, user, secret) = match &self.login {
            Some(login) => (login.mechanism, login.user.as_str(), login.secret.as_str()),
            None => (NONE, NONE, NONE),
        };
        let (authority, identity) = (or_none(&self.authority), or_none(&self.identity));
        [self.bootstrap.as_str(), &authority, &identity, mechanism, user, secret].join("\t")
    }
}

impl Login {
    /// Credentials by one mechanism, by Kafka's name.
    pub fn new(mechanism: &'static str, user: &str, secret: &str) -> Self {
        Self { mechanism, user: user.to_owned(), secret: secret.to_owned() }
    }
}

impl Session {
    /// The command that runs a library's program.
    pub fn program(self, library: Library, peers: &Peers) -> Result<Command> {
        let (class, word) = match self {
            Self::Secured => ("SecuredSession", "secured"),
            Self::Steady => ("SteadySession", "steady"),
            Self::Tenants => ("TenantsSession", "tenants"),
        };
        match library {
            Library::Java => peers.java_tool(class),
            Library::Librdkafka => {
                let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients");
                let file = programs.join("python-confluent").join(format!("{word}.py"));
                Ok(script(&peers.python(), &file))
            }
            Library::Franz => {
                let mut franz = Command::new(peers.franz());
                franz.arg(word);
                Ok(franz)
            }
            Library::Sarama | Library::KafkaPython | Library::Kafkajs => {
                anyhow::bail!("{} has no such program", library.name())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_connection_lacks_is_a_dash() {
        let login = Login::new("PLAIN", "alice", "s");
        let columns = Connection { login: Some(login), ..Connection::plain("a:1") }.columns();
        assert_eq!(columns, "a:1\t-\t-\tPLAIN\talice\ts");
        assert_eq!(Connection::plain("a:1").columns(), "a:1\t-\t-\t-\t-\t-");
    }
}
