//! A member of a pattern.

use moldau_protocol::Uuid;

use super::*;
use crate::group::machine::Patience;
use crate::group::options::{GroupProtocol, MembershipOptions};
use crate::metadata::TopicRef;

/// A member of a pattern, with what it does at a time.
struct Matching {
    member: ClassicMember,
    now: Instant,
}

impl Matching {
    fn new() -> Self {
        let second = Duration::from_secs(1);
        let patience = Patience {
            backoff: second,
            backoff_max: second,
            start: second,
            metadata_age_max: second,
        };
        let options = MembershipOptions {
            protocol: GroupProtocol::Classic,
            pattern: Some("orders.*".to_owned()),
            ..MembershipOptions::default()
        };
        let now = Instant::now();
        let member = Member::new("g", options, patience, now, 7);
        Self { member: ClassicMember::new(member).unwrap(), now }
    }

    fn step(&mut self, input: Input) -> Vec<Effect> {
        self.now += Duration::from_millis(1);
        self.member.step(self.now, input)
    }

    /// What it does after the next lookup is due, which finds these topics.
    fn look(&mut self, names: &[&str]) -> Vec<Effect> {
        self.now += Duration::from_secs(2);
        let looked = self.member.step(self.now, Input::Due);
        let is_look = |effect: &Effect| matches!(effect, Effect::Look(Look::Every));
        assert!(looked.iter().any(is_look), "{looked:?}");
        self.step(Input::Looked(Ok(found(names))))
    }

    /// Takes part with a generation of its own, in which it leads nothing.
    fn join(&mut self, generation_id: i32, while_joining: &[&str]) -> Vec<Effect> {
        let joined = JoinGroupResponse {
            generation_id,
            member_id: "me".to_owned(),
            leader: "other".to_owned(),
            protocol_name: Some(self.member.assignor.name().to_owned()),
            ..JoinGroupResponse::default()
        };
        let syncs = self.step(Input::Answered(Answer::Join(joined)));
        assert!(matches!(syncs[..], [Effect::Ask(Ask::Sync(_))]), "{syncs:?}");
        if !while_joining.is_empty() {
            self.look(while_joining);
        }
        let assignment = assignor::encode_assignment(&[]).unwrap();
        let synced = SyncGroupResponse { assignment, ..SyncGroupResponse::default() };
        self.step(Input::Answered(Answer::Sync(synced)))
    }
}

fn found(names: &[&str]) -> Vec<Found> {
    let found = |name: &&str| Found {
        topic: TopicRef { name: (*name).into(), id: Uuid::ZERO },
        partitions: 1,
    };
    names.iter().map(found).collect()
}

fn joins(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| matches!(effect, Effect::Ask(Ask::Join(_))))
}

#[test]
fn a_topic_that_comes_while_the_member_joins_is_subscribed_to_afterwards() {
    let mut matching = Matching::new();
    assert!(joins(&matching.look(&["orders-1"])));
    matching.join(1, &["orders-1", "orders-2"]);
    assert!(joins(&matching.look(&["orders-1", "orders-2"])));
    matching.join(2, &[]);
    assert!(!joins(&matching.look(&["orders-1", "orders-2"])));
}
