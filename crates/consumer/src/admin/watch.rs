//! What is sampled of an app every few seconds.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use moldau_client::{MemberStage, MemberState, TopicPartition};
use serde_json::{Value, json};

use super::health::Observed;
use crate::status::{RouteName, Status};

/// The last answers of the runtime, and the course of the last minutes.
pub(super) struct Watch {
    /// When the question was asked that has no answer yet.
    pub(super) asked_at: Option<Instant>,
    joining_since: Option<Instant>,
    /// Topics that the app names and the cluster does not have.
    missing: Vec<Arc<str>>,
    /// The last answer.
    last: Status,
    samples: VecDeque<Sample>,
    previous: Vec<Previous>,
    sampled_at: Option<Instant>,
    /// When dead letters were replayed, the oldest first.
    replayed: VecDeque<((TopicPartition, i64), Duration)>,
}

/// The figures of all routes at a time.
struct Sample {
    /// Since 1970-01-01.
    at: Duration,
    /// Since the sample before.
    elapsed: Duration,
    routes: Vec<RouteSample>,
}

/// Narrow numbers: an app may have a thousand routes. Counts are since the sample before.
#[derive(Clone, Copy, Default)]
struct RouteSample {
    handled: u32,
    failed: u32,
    lag: Option<u32>,
    p99_micros: Option<u32>,
}

/// Counts of a route at the sample before.
struct Previous {
    handled: u64,
    failed: u64,
    micros: Histogram<u64>,
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            asked_at: None,
            joining_since: Some(now),
            missing: Vec::new(),
            last: Status::default(),
            samples: VecDeque::new(),
            previous: Vec::new(),
            sampled_at: None,
            replayed: VecDeque::new(),
        }
    }

    /// Takes an answer of the runtime.
    pub(super) fn take(&mut self, at: Duration, now: Instant, status: Status, names: &[RouteName]) {
        self.asked_at = None;
        let elapsed = self.sampled_at.replace(now).map(|before| now - before);
        let previous = std::mem::take(&mut self.previous);
        let mut routes = Vec::with_capacity(names.len());
        for (index, (route, name)) in status.routes.iter().zip(names).enumerate() {
            let micros = name.figures.sampled().micros;
            let failed: u64 = route.failed.iter().map(|(_, count)| *count).sum();
            if let Some(before) = previous.get(index) {
                routes.push(RouteSample {
                    handled: narrow(route.handled.saturating_sub(before.handled)),
                    failed: narrow(failed.saturating_sub(before.failed)),
                    lag: route.lag().and_then(|lag| u64::try_from(lag).ok()).map(narrow),
                    p99_micros: p99_since(&micros, &before.micros),
                });
            }
            self.previous.push(Previous { handled: route.handled, failed, micros });
        }
        if let Some(elapsed) = elapsed {
            if self.samples.len() >= SAMPLES_MAX {
                self.samples.pop_front();
            }
            self.samples.push_back(Sample { at, elapsed, routes });
        }
        self.last = status;
    }

    /// Notes which of the topics that the app names the cluster does not have.
    pub(super) fn take_missing(&mut self, missing: Vec<Arc<str>>) {
        self.missing = missing;
    }

    /// Notes whether the member is joining.
    pub(super) fn take_stage(&mut self, now: Instant, stage: MemberStage) {
        self.joining_since = match stage {
            MemberStage::Joining => self.joining_since.or(Some(now)),
            MemberStage::Stable | MemberStage::Revoking | MemberStage::Ended => None,
        };
    }

    /// What health is judged by.
    pub(super) fn observed(
        &self,
        now: Instant,
        stage: MemberStage,
        member: Option<&MemberState>,
        is_draining: bool,
    ) -> Observed {
        let partitions = || self.last.routes.iter().flat_map(|route| &route.partitions);
        let stalled = partitions()
            .filter_map(|it| Some((TopicPartition::of(&it.topic, it.partition), it.stalled?)));
        Observed {
            is_draining,
            stage,
            joining_for: self.joining_since.map(|since| now.saturating_duration_since(since)),
            heartbeat_age: member
                .and_then(|member| member.last_heartbeat)
                .map(|at| now.saturating_duration_since(at)),
            heartbeat_interval: member.map_or(Duration::ZERO, |member| member.heartbeat_interval),
            silent_for: self.asked_at.map(|asked| now.saturating_duration_since(asked)),
            stalled: stalled.max_by_key(|(_, time)| *time),
            trouble: partitions()
                .filter_map(|it| {
                    let partition = TopicPartition::of(&it.topic, it.partition);
                    Some((partition, it.trouble.clone()?))
                })
                .next(),
            missing: self.missing.clone(),
            partitions: partitions().count(),
            refused: member.and_then(|member| member.refused.as_ref()).map(ToString::to_string),
        }
    }

    /// The last answer.
    pub(super) fn last(&self) -> &Status {
        &self.last
    }

    /// The course of the routes that handled most in it, and of all together.
    pub(super) fn course(&self, names: &[RouteName]) -> Value {
        let handled = |index: usize| -> u64 {
            let of_route = |sample: &Sample| sample.routes.get(index).map(|it| it.handled);
            self.samples.iter().filter_map(of_route).map(u64::from).sum()
        };
        let mut busiest: Vec<usize> = (0..names.len()).collect();
        busiest.sort_by_cached_key(|index| std::cmp::Reverse(handled(*index)));
        busiest.truncate(COURSES_MAX);
        let courses = busiest.into_iter().filter_map(|index| {
            let points = || self.samples.iter().map(|it| it.routes.get(index).copied());
            let points = || points().map(Option::unwrap_or_default);
            Some(json!({
                "topic": &*names.get(index)?.topic,
                "handled": points().map(|it| it.handled).collect::<Vec<_>>(),
                "failed": points().map(|it| it.failed).collect::<Vec<_>>(),
                "lag": points().map(|it| it.lag).collect::<Vec<_>>(),
                "p99Micros": points().map(|it| it.p99_micros).collect::<Vec<_>>(),
            }))
        });
        let total = |of: fn(&RouteSample) -> u32| -> Vec<u64> {
            let sum = |it: &Sample| it.routes.iter().map(|route| u64::from(of(route))).sum();
            self.samples.iter().map(sum).collect()
        };
        let elapsed = self.samples.iter().map(|it| it.elapsed.as_millis());
        json!({
            "atMillis": self.samples.iter().map(|it| it.at.as_millis()).collect::<Vec<_>>(),
            "elapsedMillis": elapsed.collect::<Vec<_>>(),
            "routes": courses.collect::<Vec<_>>(),
            "total": { "handled": total(|it| it.handled), "failed": total(|it| it.failed) },
        })
    }

    /// Notes that a dead letter was replayed.
    pub(super) fn take_replay(&mut self, partition: TopicPartition, offset: i64, at: Duration) {
        if self.replayed.len() >= REPLAYED_MAX {
            self.replayed.pop_front();
        }
        self.replayed.push_back(((partition, offset), at));
    }

    /// When a dead letter was last replayed.
    pub(super) fn replayed(&self, partition: &TopicPartition, offset: i64) -> Option<Duration> {
        let is_it =
            |replayed: &(TopicPartition, i64)| replayed.1 == offset && replayed.0 == *partition;
        self.replayed.iter().rev().find(|(it, _)| is_it(it)).map(|(_, at)| *at)
    }
}

fn narrow(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The percentile of what was measured since `before`.
fn p99_since(micros: &Histogram<u64>, before: &Histogram<u64>) -> Option<u32> {
    if micros.len() == before.len() {
        return None;
    }
    let mut since = micros.clone();
    // It holds all that was measured before.
    since.subtract(before).ok()?;
    Some(narrow(since.value_at_quantile(0.99)))
}

/// Ten minutes of samples.
const SAMPLES_MAX: usize = 300;

/// Routes whose course is shown: more lines cannot be told apart.
const COURSES_MAX: usize = 6;

/// Replays that are remembered, so that the page shows what was replayed already.
const REPLAYED_MAX: usize = 1000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::RouteFigures;
    use crate::status::RouteStatus;

    fn name() -> RouteName {
        RouteName {
            topic: "orders".into(),
            dead_letter_topics: Vec::new(),
            figures: Arc::new(RouteFigures::new()),
        }
    }

    fn status(handled: u64) -> Status {
        let route = RouteStatus {
            topic: "orders".to_owned(),
            handled,
            failed: vec![("failed", handled / 10)],
            dead_letters: 0,
            dead_letter_topics: Vec::new(),
            handler_p50: None,
            handler_p99: None,
            cpu_per_record: None,
            share: None,
            partitions: Vec::new(),
        };
        Status { routes: vec![route], failures: Vec::new() }
    }

    #[test]
    fn the_course_is_bounded_and_holds_what_came_since_the_sample_before() {
        let (names, start) = ([name()], Instant::now());
        let mut watch = Watch::new(start);
        let samples = u64::try_from(SAMPLES_MAX).unwrap() + 10;
        for number in 0..samples {
            let at = Duration::from_secs(2 * number);
            watch.take(at, start + at, status(100 * number), &names);
        }
        let course = watch.course(&names);
        assert_eq!(course["routes"][0]["handled"].as_array().unwrap().len(), SAMPLES_MAX);
        assert_eq!(course["routes"][0]["handled"][7], 100);
        assert_eq!(course["total"]["failed"][7], 10);
        assert_eq!(course["elapsedMillis"][7], 2000);
    }

    #[test]
    fn a_question_without_an_answer_is_observed_as_silence() {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        watch.asked_at = Some(start);
        let later = start + Duration::from_secs(20);
        let observed = watch.observed(later, MemberStage::Joining, None, false);
        assert_eq!(observed.silent_for, Some(Duration::from_secs(20)));
        assert_eq!(observed.joining_for, Some(Duration::from_secs(20)));
        watch.take(Duration::ZERO, later, status(1), &[name()]);
        assert_eq!(watch.observed(later, MemberStage::Joining, None, false).silent_for, None);
    }

    #[test]
    fn replays_are_remembered_up_to_a_limit() {
        let mut watch = Watch::new(Instant::now());
        let dead = TopicPartition::of("dead", 0);
        let count = i64::try_from(REPLAYED_MAX).unwrap() + 1;
        for offset in 0..count {
            watch.take_replay(dead.clone(), offset, Duration::ZERO);
        }
        assert_eq!(watch.replayed(&dead, 0), None);
        assert_eq!(watch.replayed(&dead, count - 1), Some(Duration::ZERO));
    }
}
