//! Keys of groups of the consumer protocol, `group.consumer.*`, and what such keys have in common.

use std::ops::RangeInclusive;

use moldau_broker::{Assignor, ConsumerGroupSettings, MigrationPolicy};

use super::file::File;
use super::within;
use crate::config::problem::{At, Problem};

/// A key with its number.
pub(super) struct Key<'a> {
    pub(super) name: &'static str,
    pub(super) value: &'a Option<At<u64>>,
}

impl Key<'_> {
    pub(super) fn read(&self, range: RangeInclusive<i32>, default: i32) -> Result<i32, Problem> {
        let unsigned = |number: i32| u64::from(number.max(0).unsigned_abs());
        let bounds = unsigned(*range.start())..=unsigned(*range.end());
        let value = within(self.value, self.name, bounds)?;
        Ok(value.map_or(default, |ms| i32::try_from(ms).unwrap_or(i32::MAX)))
    }
}

/// A setting with what groups may set, and its default within that.
pub(super) fn setting(
    bounds: RangeInclusive<i32>,
    [min, max, own]: [Key<'_>; 3],
    (range, default): (&RangeInclusive<i32>, i32),
) -> Result<(RangeInclusive<i32>, i32), Problem> {
    let low = min.read(bounds.clone(), *range.start())?;
    let high = max.read(bounds, *range.end())?;
    if low > high
        && let Some(at_fault) = min.value.as_ref().or(max.value.as_ref())
    {
        let text = format!("{}: {low} is above {}, which is {high}", min.name, max.name);
        return Err(Problem::at(at_fault, text));
    }
    // Without a value of its own the setting follows what is allowed.
    Ok((low..=high, own.read(low..=high, default.clamp(low, high))?))
}

pub(super) fn parse(file: &File) -> Result<ConsumerGroupSettings, Problem> {
    let mut config = ConsumerGroupSettings::default();
    macro_rules! keys {
        ($($name:literal $field:ident),*) => { [$(Key { name: $name, value: &file.$field }),*] };
    }
    (config.session_timeout_ms_range, config.settings.session_timeout_ms) = setting(
        1..=i32::MAX,
        keys![
            "group.consumer.min.session.timeout.ms" group_consumer_min_session_timeout_ms,
            "group.consumer.max.session.timeout.ms" group_consumer_max_session_timeout_ms,
            "group.consumer.session.timeout.ms" group_consumer_session_timeout_ms
        ],
        (&config.session_timeout_ms_range, config.settings.session_timeout_ms),
    )?;
    (config.heartbeat_interval_ms_range, config.settings.heartbeat_interval_ms) = setting(
        1..=i32::MAX,
        keys![
            "group.consumer.min.heartbeat.interval.ms" group_consumer_min_heartbeat_interval_ms,
            "group.consumer.max.heartbeat.interval.ms" group_consumer_max_heartbeat_interval_ms,
            "group.consumer.heartbeat.interval.ms" group_consumer_heartbeat_interval_ms
        ],
        (&config.heartbeat_interval_ms_range, config.settings.heartbeat_interval_ms),
    )?;
    (config.assignment_interval_ms_range, config.settings.assignment_interval_ms) = setting(
        0..=i32::MAX,
        keys![
            "group.consumer.min.assignment.interval.ms" group_consumer_min_assignment_interval_ms,
            "group.consumer.max.assignment.interval.ms" group_consumer_max_assignment_interval_ms,
            "group.consumer.assignment.interval.ms" group_consumer_assignment_interval_ms
        ],
        (&config.assignment_interval_ms_range, config.settings.assignment_interval_ms),
    )?;
    let size = &file.group_consumer_max_size;
    let size = within(size, "group.consumer.max.size", 1..=config.group_size_max)?;
    config.group_size_max = size.unwrap_or(config.group_size_max);
    let [refresh] = keys![
        "group.consumer.regex.refresh.interval.ms" group_consumer_regex_refresh_interval_ms
    ];
    config.regex_refresh_interval_ms =
        refresh.read(10_000..=i32::MAX, config.regex_refresh_interval_ms)?;
    if let Some(names) = &file.group_consumer_assignors {
        config.assignors = assignors(names)?;
    }
    if let Some(name) = &file.group_consumer_migration_policy {
        config.migration = migration(name)?;
    }
    Ok(config)
}

fn migration(name: &At<String>) -> Result<MigrationPolicy, Problem> {
    MigrationPolicy::named(name.value.trim()).ok_or_else(|| {
        let names = MigrationPolicy::ALL.map(MigrationPolicy::name).join(", ");
        let value = &name.value;
        let text = format!("group.consumer.migration.policy: {value:?} must be one of {names}");
        Problem::at(name, text)
    })
}

fn assignors(names: &At<String>) -> Result<Vec<Assignor>, Problem> {
    let mut assignors = Vec::new();
    for name in names.value.split(',').map(str::trim) {
        match Assignor::named(name) {
            Some(assignor) if !assignors.contains(&assignor) => assignors.push(assignor),
            Some(_) => {}
            None => {
                let text = format!("group.consumer.assignors: {name:?} must be uniform or range");
                return Err(Problem::at(names, text));
            }
        }
    }
    Ok(assignors)
}
