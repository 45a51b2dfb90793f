//! Whether an app lives, and whether it is ready. No I/O.

use std::sync::Arc;
use std::time::Duration;

use moldau_client::{MemberStage, TopicPartition};

/// What is known of an app.
#[derive(Clone, Debug)]
pub(super) struct Observed {
    /// Whether handlers finish what they have, for the app ends.
    pub(super) is_draining: bool,
    /// How far its member is; joining before the group has answered.
    pub(super) stage: MemberStage,
    /// How long the member has been joining.
    pub(super) joining_for: Option<Duration>,
    /// Time since the coordinator last accepted a heartbeat.
    pub(super) heartbeat_age: Option<Duration>,
    /// Time between heartbeats.
    pub(super) heartbeat_interval: Duration,
    /// How long the runtime has not answered.
    pub(super) silent_for: Option<Duration>,
    /// The handler that has made no progress for longest.
    pub(super) stalled: Option<(TopicPartition, Duration)>,
    /// A partition that is not read on or handled, and why.
    pub(super) trouble: Option<(TopicPartition, String)>,
    /// Topics that the app names and the cluster does not have.
    pub(super) missing: Vec<Arc<str>>,
    /// Partitions that the app reads.
    pub(super) partitions: usize,
    /// Why the group refuses the member.
    pub(super) refused: Option<String>,
}

/// From when on something is wrong.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) joining_max: Duration,
    pub(super) stalled_max: Duration,
}

/// Why the app must be started anew, in a sentence; `Ok` says that it lives.
pub(super) fn liveness(observed: &Observed, limits: Limits) -> Result<String, String> {
    if let Some(silent) = observed.silent_for.filter(|silent| *silent > SILENT_MAX) {
        return Err(format!(
            "The runtime has not answered for {}: a handler blocks its thread.",
            seconds(silent)
        ));
    }
    if let Some((TopicPartition { topic, partition }, time)) =
        observed.stalled.as_ref().filter(|(_, time)| *time > limits.stalled_max)
    {
        return Err(format!(
            "A handler of {topic}-{partition} has made no progress for {}.",
            seconds(*time)
        ));
    }
    if let Some(joining) = observed.joining_for.filter(|time| *time > limits.joining_max) {
        return Err(format!("The member has not joined the group for {}.", seconds(joining)));
    }
    let is_member = matches!(observed.stage, MemberStage::Stable | MemberStage::Revoking);
    let silence_max = observed.heartbeat_interval.saturating_mul(HEARTBEATS_MISSED_MAX);
    if let Some(age) = observed.heartbeat_age.filter(|age| is_member && *age > silence_max) {
        return Err(format!(
            "The membership is frozen: no heartbeat was accepted for {}, one is due every {}.",
            seconds(age),
            seconds(observed.heartbeat_interval)
        ));
    }
    Ok("The app is alive.".to_owned())
}

/// Why the app takes no records, in a sentence; `Ok` says that it does.
pub(super) fn readiness(observed: &Observed, limits: Limits) -> Result<String, String> {
    liveness(observed, limits)?;
    if observed.is_draining {
        return Err("The app ends.".to_owned());
    }
    if let Some(why) = &observed.refused {
        return Err(format!("The group refuses the member: {why}."));
    }
    match observed.stage {
        MemberStage::Joining => Err("The member has not joined the group yet.".to_owned()),
        MemberStage::Ended => Err("The member has left the group.".to_owned()),
        MemberStage::Stable | MemberStage::Revoking => match &observed.trouble {
            Some((TopicPartition { topic, partition }, why)) => {
                Err(format!("The app does not go on in {topic}-{partition}: {why}."))
            }
            None => Ok(ready(observed)),
        },
    }
}

fn ready(observed: &Observed) -> String {
    let mut text = match observed.partitions {
        0 => "The app is ready; the group has no partition for it.".to_owned(),
        1 => "The app is ready and reads 1 partition.".to_owned(),
        many => format!("The app is ready and reads {many} partitions."),
    };
    match observed.missing.as_slice() {
        [] => {}
        [topic] => text += &format!(" Topic {topic} does not exist."),
        topics => text += &format!(" Topics {} do not exist.", topics.join(", ")),
    }
    text
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0 => format!("{} ms", time.as_millis()),
        seconds => format!("{seconds} s"),
    }
}

/// The runtime answers within milliseconds unless it is stuck.
const SILENT_MAX: Duration = Duration::from_secs(15);

/// Heartbeats that may fail in a row: with Kafka's defaults the session has ended before, and a
/// broker that restarts is back.
const HEARTBEATS_MISSED_MAX: u32 = 20;

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits =
        Limits { joining_max: Duration::from_secs(360), stalled_max: Duration::from_secs(600) };

    fn well() -> Observed {
        Observed {
            is_draining: false,
            stage: MemberStage::Stable,
            joining_for: None,
            heartbeat_age: Some(Duration::from_secs(3)),
            heartbeat_interval: Duration::from_secs(3),
            silent_for: Some(Duration::from_millis(3)),
            stalled: Some((TopicPartition::of("orders", 7), Duration::from_secs(600))),
            trouble: None,
            missing: Vec::new(),
            partitions: 2,
            refused: None,
        }
    }

    #[test]
    fn an_app_that_reads_is_alive_and_ready() {
        assert_eq!(liveness(&well(), LIMITS), Ok("The app is alive.".to_owned()));
        let ready = readiness(&well(), LIMITS).unwrap();
        assert_eq!(ready, "The app is ready and reads 2 partitions.");
    }

    #[test]
    fn a_partition_that_does_not_go_on_ends_readiness_alone() {
        let why = "the batch at offset 7 cannot be read".to_owned();
        let trouble = Some((TopicPartition::of("orders", 7), why));
        let observed = Observed { trouble, ..well() };
        assert!(liveness(&observed, LIMITS).is_ok());
        let why = readiness(&observed, LIMITS).unwrap_err();
        assert_eq!(
            why,
            "The app does not go on in orders-7: the batch at offset 7 cannot be read."
        );
    }

    #[test]
    fn a_member_that_is_refused_is_not_ready_and_says_why() {
        let refused = Some("membership of group g: GroupAuthorizationFailed".to_owned());
        let observed = Observed { refused, ..well() };
        assert!(liveness(&observed, LIMITS).is_ok());
        let why = readiness(&observed, LIMITS).unwrap_err();
        assert!(why.starts_with("The group refuses the member: membership of group g"), "{why}");
    }

    #[test]
    fn topics_that_do_not_exist_are_named() {
        let missing = vec!["a".into(), "b".into()];
        let ready = readiness(&Observed { partitions: 0, missing, ..well() }, LIMITS).unwrap();
        assert!(ready.ends_with("no partition for it. Topics a, b do not exist."), "{ready}");
    }

    #[test]
    fn what_is_frozen_stuck_or_stalled_is_dead_and_says_why() {
        let cases = [
            (
                Observed { heartbeat_age: Some(Duration::from_secs(61)), ..well() },
                "no heartbeat was accepted for 61 s",
            ),
            (
                Observed {
                    stage: MemberStage::Joining,
                    joining_for: Some(Duration::from_secs(361)),
                    ..well()
                },
                "has not joined the group for 361 s",
            ),
            (
                Observed { silent_for: Some(Duration::from_secs(16)), ..well() },
                "has not answered for 16 s",
            ),
            (
                Observed {
                    stalled: Some((TopicPartition::of("orders", 7), Duration::from_secs(601))),
                    ..well()
                },
                "A handler of orders-7 has made no progress for 601 s",
            ),
        ];
        for (observed, why) in cases {
            let dead = liveness(&observed, LIMITS).unwrap_err();
            assert!(dead.contains(why), "{dead}");
            assert_eq!(readiness(&observed, LIMITS), Err(dead));
        }
    }

    #[test]
    fn a_member_that_joins_or_leaves_is_alive_but_not_ready() {
        let joining = Observed {
            stage: MemberStage::Joining,
            joining_for: Some(Duration::from_secs(359)),
            heartbeat_age: Some(Duration::from_secs(300)),
            ..well()
        };
        let left = Observed { stage: MemberStage::Ended, ..well() };
        let draining = Observed { is_draining: true, ..well() };
        for observed in [joining, left, draining] {
            assert!(liveness(&observed, LIMITS).is_ok(), "{observed:?}");
            assert!(readiness(&observed, LIMITS).is_err(), "{observed:?}");
        }
    }
}
