//! The times of a cron expression in a time zone.

use std::time::Duration;

use croner::Cron;
use croner::parser::{CronParser, Seconds};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// When a task is due.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    cron: Cron,
    text: String,
    zone: TimeZone,
    zone_name: String,
}

impl Schedule {
    /// The times of `cron` in UTC.
    pub(super) fn parse(cron: &str) -> Result<Self, String> {
        let parser = CronParser::builder().seconds(Seconds::Optional).build();
        let parsed = parser.parse(cron).map_err(|error| format!("cron {cron:?}: {error}"))?;
        let (text, zone_name) = (cron.to_owned(), "UTC".to_owned());
        Ok(Self { cron: parsed, text, zone: TimeZone::UTC, zone_name })
    }

    pub(super) fn in_zone(&self, name: &str) -> Result<Self, String> {
        let zone = TimeZone::get(name).map_err(|error| format!("time zone {name:?}: {error}"))?;
        Ok(Self { zone, zone_name: name.to_owned(), ..self.clone() })
    }

    pub(super) fn cron(&self) -> &str {
        &self.text
    }

    pub(super) fn zone(&self) -> &str {
        &self.zone_name
    }

    /// The first time after `after`; `None` if there is none.
    pub(super) fn next_after(&self, after: Duration) -> Option<Duration> {
        let next = self.cron.find_next_occurrence(&self.zoned(after)?, false).ok()?;
        since_epoch(&next)
    }

    /// The last time up to `at`; `None` if there is none.
    pub(super) fn last_until(&self, at: Duration) -> Option<Duration> {
        let last = self.cron.find_previous_occurrence(&self.zoned(at)?, true).ok()?;
        since_epoch(&last)
    }

    fn zoned(&self, at: Duration) -> Option<Zoned> {
        let ms = i64::try_from(at.as_millis()).ok()?;
        Some(Timestamp::from_millisecond(ms).ok()?.to_zoned(self.zone.clone()))
    }
}

fn since_epoch(at: &Zoned) -> Option<Duration> {
    u64::try_from(at.timestamp().as_millisecond()).ok().map(Duration::from_millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Duration {
        let parsed: Timestamp = text.parse().expect("a time");
        Duration::from_millis(u64::try_from(parsed.as_millisecond()).expect("after 1970"))
    }

    #[test]
    fn times_are_those_of_the_zone() {
        let schedule = Schedule::parse("0 6 * * 1-5").expect("valid");
        let after = at("2026-07-03T12:00:00Z");
        // The third of July 2026 is a Friday.
        assert_eq!(schedule.next_after(after), Some(at("2026-07-06T06:00:00Z")));
        let berlin = schedule.in_zone("Europe/Berlin").expect("known");
        assert_eq!(berlin.next_after(after), Some(at("2026-07-06T04:00:00Z")));
        assert_eq!(berlin.last_until(after), Some(at("2026-07-03T04:00:00Z")));
        assert_eq!(berlin.last_until(at("2026-07-03T04:00:00Z")), Some(at("2026-07-03T04:00:00Z")));
    }

    #[test]
    fn a_time_that_occurs_twice_is_used_once() {
        let schedule = Schedule::parse("30 2 * * *").expect("valid");
        let berlin = schedule.in_zone("Europe/Berlin").expect("known");
        let first = berlin.next_after(at("2026-10-24T12:00:00Z")).expect("one");
        let second = berlin.next_after(first).expect("one");
        assert_eq!(second, at("2026-10-26T01:30:00Z"), "after {first:?}");
    }

    #[test]
    fn seconds_may_stand_before_the_minutes() {
        let schedule = Schedule::parse("*/10 * * * * *").expect("valid");
        let next = schedule.next_after(at("2026-01-01T00:00:01Z"));
        assert_eq!(next, Some(at("2026-01-01T00:00:10Z")));
    }

    #[test]
    fn what_is_not_known_is_refused_with_its_reason() {
        let refused = Schedule::parse("61 * * * *").expect_err("no such minute");
        assert!(refused.contains("61 * * * *"), "{refused}");
        let schedule = Schedule::parse("@daily").expect("valid");
        let refused = schedule.in_zone("Europe/Atlantis").expect_err("no such zone");
        assert!(refused.contains("Europe/Atlantis"), "{refused}");
    }
}
