//! What the admin port asks the app and the cluster every few seconds.

use std::time::{Duration, Instant};

use moldau_client::{Cluster, MemberStage, MemberState, OffsetSpec, TopicPartition};
use tokio::time::MissedTickBehavior;

use super::site::Site;

impl Site {
    /// Samples the app until it ends.
    pub(super) async fn watch_app(&self) {
        let mut interval = tokio::time::interval(SAMPLE_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            self.lock_watch().asked_at.get_or_insert_with(Instant::now);
            self.sample().await;
        }
    }

    /// Asks where the partitions end, which the fetches of a paused one do not tell.
    pub(super) async fn watch_ends(&self) {
        let mut interval = tokio::time::interval(ENDS_INTERVAL);
        interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            interval.tick().await;
            let wanted: Vec<_> = {
                let watch = self.lock_watch();
                let partitions = watch.last().routes.iter().flat_map(|route| &route.partitions);
                let wanted = partitions.map(|it| TopicPartition::of(&it.topic, it.partition));
                wanted.map(|it| (it, OffsetSpec::Latest)).collect()
            };
            let Ok(cluster) = self.cluster().await else { continue };
            self.find_missing(cluster).await;
            if wanted.is_empty() {
                continue;
            }
            let ends = cluster.list_offsets(&wanted).await.into_iter();
            let ends = ends.filter_map(|(it, end)| Some((it, end.ok()?.offset)));
            self.subject.inquiry.board.set_ends(ends.collect());
        }
    }

    /// Asks for the topics that the app names, while there are some that do not exist.
    async fn find_missing(&self, cluster: &Cluster) {
        let topics = &self.subject.topics;
        let missing = || {
            let known = cluster.metadata();
            topics.iter().filter(|it| !known.topics.contains_key(*it)).cloned().collect::<Vec<_>>()
        };
        if cluster.load_topics(topics.iter().map(|it| &**it)).await.is_ok() {
            self.lock_watch().take_missing(missing());
        }
    }

    async fn sample(&self) {
        let status = self.subject.inquiry.status(&self.subject.routes).await;
        let (now, member) = (Instant::now(), self.member());
        let mut watch = self.lock_watch();
        watch.take_stage(now, self.stage(member.as_ref()));
        watch.take(self.clock.now(), now, status, &self.subject.routes);
    }

    pub(super) fn member(&self) -> Option<MemberState> {
        self.subject.inquiry.board.member().map(|watch| watch.state())
    }

    /// How far the member is; joining before the group has answered. An app that reads partitions
    /// of its own has none, and need not join.
    pub(super) fn stage(&self, member: Option<&MemberState>) -> MemberStage {
        match (member, self.subject.is_direct) {
            (Some(member), _) => member.stage,
            (None, true) => MemberStage::Stable,
            (None, false) => MemberStage::Joining,
        }
    }
}

/// Time between samples: a person sees that something moves.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(2);

/// Time between questions for the ends of partitions, a request to each broker.
const ENDS_INTERVAL: Duration = Duration::from_secs(5);
