//! Requests of every API that are too short, and of versions that do not exist.

use anyhow::Result;
use moldau_protocol::ApiKey;

use crate::differential::session::Session;

/// The cases that every API has, whether a script asks it or not.
pub(in crate::differential) const CASES: [&str; 2] =
    ["a body that ends early", "a version to come"];

pub(super) fn run(session: &mut Session) -> Result<()> {
    let [early, to_come] = CASES;
    for api in session.apis() {
        let versions: Vec<_> = session.versions_of(api).collect();
        session.send(versions.iter().copied(), api, early, &[0xff; 3])?;
        if let Some(last) = versions.last() {
            session.send([last + 1, i16::MAX], api, to_come, &[])?;
        }
    }
    // A version that only a broker of the past has.
    session.send([-1], ApiKey::Metadata, "version -1", &[])
}
