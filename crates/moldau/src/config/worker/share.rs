//! Share groups (KIP-932), and the keys that do not go with one.

use serde::Deserialize;

use super::{Auto, File, WorkersChoice};
use crate::config::problem::{At, Problem};

/// How the process takes part in its group.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GroupType {
    #[default]
    Consumer,
    Share,
}

/// # Errors
/// Names a key that a share group has no use for, and where its setting is if it has one.
pub(super) fn check(file: &File) -> Result<(), Problem> {
    let of_group = |key| format!("is the group's own: set {key} with kafka-configs");
    refuse(file.group_protocol.as_ref(), "group.protocol", NOT_SHARED)?;
    refuse(file.group_instance_id.as_ref(), "group.instance.id", NOT_SHARED)?;
    let reset = of_group("share.auto.offset.reset");
    refuse(file.auto_offset_reset.as_ref(), "auto.offset.reset", &reset)?;
    let isolation = of_group("share.isolation.level");
    refuse(file.isolation_level.as_ref(), "isolation.level", &isolation)?;
    let session = of_group("share.session.timeout.ms");
    refuse(file.session_timeout_ms.as_ref(), "session.timeout.ms", &session)?;
    let heartbeat = of_group("share.heartbeat.interval.ms");
    refuse(file.heartbeat_interval_ms.as_ref(), "heartbeat.interval.ms", &heartbeat)?;
    refuse(file.auto_commit_interval_ms.as_ref(), "auto.commit.interval.ms", NOT_SHARED)?;
    refuse(file.max_poll_interval_ms.as_ref(), "max.poll.interval.ms", NOT_SHARED)?;
    refuse(file.max_partition_fetch_bytes.as_ref(), "max.partition.fetch.bytes", NOT_SHARED)?;
    refuse(file.transactional_id.as_ref(), "transactional.id", NOT_SHARED)?;
    refuse(file.segment.as_ref(), "segment", NOT_SHARED)?;
    let auto = file.workers.as_ref();
    let auto = auto.filter(|it| matches!(it.value, WorkersChoice::Word(Auto::Auto)));
    refuse(auto, "workers", "a share group needs a number")
}

/// # Errors
/// The key is given.
pub(super) fn refuse<T>(given: Option<&At<T>>, key: &str, why: &str) -> Result<(), Problem> {
    match given {
        Some(given) => Err(Problem::at(given, format!("{key}: {why}"))),
        None => Ok(()),
    }
}

/// Why most keys are refused.
pub(super) const NOT_SHARED: &str = "does not go with group.type: share";
