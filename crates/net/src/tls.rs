//! TLS and mutual TLS, by rustls: own certificates, trusted authorities, and the meaning of a
//! certificate's name.
//!
//! Files are read elsewhere: settings hold their content, and [`ServerTls::replace`] and
//! [`ClientTls::replace`] apply new ones. Established connections keep the settings they began
//! with.
//!
//! A handshake takes far more processor time than an ordinary request: some 0.15 ms of a core with
//! a P-256 key and 0.4 ms with RSA 2048, as the benchmark `handshake` of this crate counts it.
//! Handshakes of one network thread therefore take turns: between two steps of them every
//! connection that is being served gets its own turn, and the thread looks at its sockets. A flood
//! of handshakes delays requests by one handshake's work, not by the flood's.

mod client;
mod identity;
mod mapping;
mod server;

pub use client::{ClientTls, ClientTlsSettings};
pub use identity::{CryptoProvider, Identity, TrustAnchors, server_end_point};
pub use mapping::PrincipalMapping;
pub use server::{Accepted, ClientAuthentication, ClientHello, ServerTls, ServerTlsSettings};
