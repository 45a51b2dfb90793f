//! Requests of every API that are too short, and of versions that do not exist.

use anyhow::Result;
use moldau_protocol::ApiKey;

use crate::differential::session::Session;

pub(super) fn run(session: &mut Session) -> Result<()> {
    for api in session.apis() {
        let versions: Vec<_> = session.versions_of(api).collect();
        session.send(versions.iter().copied(), api, "a body that ends early", &[0xff; 3])?;
        if let Some(last) = versions.last() {
            session.send([last + 1, i16::MAX], api, "a version to come", &[])?;
        }
    }
    // A version that only a broker of the past has.
    session.send([-1], ApiKey::Metadata, "version -1", &[])
}
