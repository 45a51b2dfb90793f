//! SASL as Kafka speaks it: PLAIN, SCRAM and OAUTHBEARER, for servers and for clients.
//!
//! Both sides are state machines over Kafka's messages ([`SaslSession`], [`SaslExchange`]) that own
//! no socket and no clock; [`SaslClient::authenticate`] runs one over a stream.
//!
//! ```text
//! client                                              server
//!   SaslHandshake v1 (mechanism)            ->
//!                                           <-        the mechanisms offered
//!   SaslAuthenticate (first message)        ->
//!                                           <-        challenge, or done
//!   SaslAuthenticate (answer)               ->        ... until done or refused
//! ```
//!
//! A server that limits how long it believes (KIP-368) says so in its last answer; the client
//! repeats all of this on the same connection before that time is over.

mod client;
mod mechanism;
mod oauth_bearer;
mod plain;
mod scram;
mod server;
mod tokens;
mod users;

pub use client::{
    SaslClient, SaslCredentials, SaslExchange, SaslStep, StaticToken, TokenFuture, TokenSource,
};
pub use mechanism::{Mechanism, UnknownMechanism};
pub use oauth_bearer::bearer_token;
pub use scram::ScramCredential;
pub use server::{
    AUTHENTICATION_BYTES_MAX, Admit, Credentials, FAILED_AUTHENTICATION_DELAY, SaslServer,
    SaslServerSettings, SaslSession, SaslState,
};
pub use tokens::{KeySource, TokenSettings, TokenVerifier};
pub use users::{Users, secrets_equal};
