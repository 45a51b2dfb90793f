//! The file of `--security`: how a client tool secures its way to a cluster, and who it says it is.
//!
//! ```yaml
//! tls: {trust_file: authority.pem}
//! sasl: {mechanism: SCRAM-SHA-512, user: alice, password_file: alice.password}
//! ```

use std::path::Path;

use moldau_client::Security;
use serde::Deserialize;

use super::problem::{At, Problem};
use super::{Sources, sasl, tls};

/// The keys of the file, each as in `upstream` of a virtual cluster.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct File {
    /// TLS towards the cluster. Default: none.
    pub(super) tls: Option<At<tls::Client>>,
    /// What the tool proves itself with. Default: nothing.
    pub(super) sasl: Option<At<sasl::Client>>,
}

/// Reads a file.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn load(path: &Path) -> anyhow::Result<Security> {
    super::load(path, &mut Sources::default(), security)
}

/// Turns the keys of a file into what connections need.
///
/// # Errors
/// What is wrong and where.
pub(crate) fn security(file: File, sources: &mut Sources) -> Result<Security, Problem> {
    let File { tls, sasl } = file;
    Ok(Security {
        tls: tls.as_ref().map(|tls| tls::client(tls, sources)).transpose()?,
        sasl: sasl.as_ref().map(|sasl| sasl::client(sasl, sources)).transpose()?,
    })
}

/// Whether a text is such a file rather than one of a broker or a proxy, which have neither key at
/// their top.
pub(crate) fn is_likely(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("tls:") || line.starts_with("sasl:"))
}
