//! Keys of streams groups, `group.streams.*`.

use moldau_broker::StreamsGroupSettings;

use super::consumer_groups::{Key, setting};
use super::file::File;
use super::within;
use crate::config::problem::Problem;

pub(super) fn parse(file: &File) -> Result<StreamsGroupSettings, Problem> {
    let mut config = StreamsGroupSettings::default();
    macro_rules! read {
        ($name:literal $bounds:expr, $setting:ident $range:ident
         $min:ident $max:ident $own:ident) => {
            (config.$range, config.settings.$setting) = setting(
                $bounds,
                [
                    Key { name: concat!("group.streams.min.", $name), value: &file.$min },
                    Key { name: concat!("group.streams.max.", $name), value: &file.$max },
                    Key { name: concat!("group.streams.", $name), value: &file.$own },
                ],
                (&config.$range, config.settings.$setting),
            )?;
        };
    }
    read!(
        "session.timeout.ms" 1..=i32::MAX,
        session_timeout_ms session_timeout_ms_range
        group_streams_min_session_timeout_ms group_streams_max_session_timeout_ms
        group_streams_session_timeout_ms
    );
    read!(
        "heartbeat.interval.ms" 1..=i32::MAX,
        heartbeat_interval_ms heartbeat_interval_ms_range
        group_streams_min_heartbeat_interval_ms group_streams_max_heartbeat_interval_ms
        group_streams_heartbeat_interval_ms
    );
    read!(
        "assignment.interval.ms" 0..=i32::MAX,
        assignment_interval_ms assignment_interval_ms_range
        group_streams_min_assignment_interval_ms group_streams_max_assignment_interval_ms
        group_streams_assignment_interval_ms
    );
    let none = None;
    (config.standby_replicas_range, config.settings.standby_replicas) = setting(
        0..=i32::MAX,
        [
            Key { name: "0", value: &none },
            Key {
                name: "group.streams.max.standby.replicas",
                value: &file.group_streams_max_standby_replicas,
            },
            Key {
                name: "group.streams.num.standby.replicas",
                value: &file.group_streams_num_standby_replicas,
            },
        ],
        (&config.standby_replicas_range, config.settings.standby_replicas),
    )?;
    let delay = Key {
        name: "group.streams.initial.rebalance.delay.ms",
        value: &file.group_streams_initial_rebalance_delay_ms,
    };
    config.settings.initial_rebalance_delay_ms =
        delay.read(0..=i32::MAX, config.settings.initial_rebalance_delay_ms)?;
    if let Some(tags) = &file.group_streams_rack_aware_assignment_tags {
        config.settings.rack_tags = StreamsGroupSettings::tags(&tags.value).ok_or_else(|| {
            let key = "group.streams.rack.aware.assignment.tags";
            Problem::at(tags, format!("{key}: names that commas separate, each once"))
        })?;
    }
    let size = &file.group_streams_max_size;
    let size = within(size, "group.streams.max.size", 1..=config.group_size_max)?;
    config.group_size_max = size.unwrap_or(config.group_size_max);
    Ok(config)
}
