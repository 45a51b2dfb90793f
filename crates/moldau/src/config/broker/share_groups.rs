//! Keys of share groups: `group.share.*`, and `errors.deadletterqueue.*`.

use moldau_broker::ShareGroupSettings;

use super::consumer_groups::{Key, setting};
use super::file::File;
use super::within;
use crate::config::problem::Problem;

/// The most members that `group.share.max.size` may allow, as in Kafka.
const GROUP_SIZE_MAX: usize = 1_000;

pub(super) fn parse(file: &File) -> Result<ShareGroupSettings, Problem> {
    let mut config = ShareGroupSettings::default();
    macro_rules! read {
        ($name:literal $bounds:expr, $setting:ident $range:ident
         $min:ident $max:ident $own:ident) => {
            (config.$range, config.settings.$setting) = setting(
                $bounds,
                [
                    Key { name: concat!("group.share.min.", $name), value: &file.$min },
                    Key { name: concat!("group.share.max.", $name), value: &file.$max },
                    Key { name: concat!("group.share.", $name), value: &file.$own },
                ],
                (&config.$range, config.settings.$setting),
            )?;
        };
    }
    read!(
        "session.timeout.ms" 1..=i32::MAX,
        session_timeout_ms session_timeout_ms_range
        group_share_min_session_timeout_ms group_share_max_session_timeout_ms
        group_share_session_timeout_ms
    );
    read!(
        "heartbeat.interval.ms" 1..=i32::MAX,
        heartbeat_interval_ms heartbeat_interval_ms_range
        group_share_min_heartbeat_interval_ms group_share_max_heartbeat_interval_ms
        group_share_heartbeat_interval_ms
    );
    read!(
        "assignment.interval.ms" 0..=i32::MAX,
        assignment_interval_ms assignment_interval_ms_range
        group_share_min_assignment_interval_ms group_share_max_assignment_interval_ms
        group_share_assignment_interval_ms
    );
    read!(
        "record.lock.duration.ms" 1_000..=3_600_000,
        record_lock_duration_ms record_lock_duration_ms_range
        group_share_min_record_lock_duration_ms group_share_max_record_lock_duration_ms
        group_share_record_lock_duration_ms
    );
    read!(
        "delivery.count.limit" 2..=25,
        delivery_count_limit delivery_count_limit_range
        group_share_min_delivery_count_limit group_share_max_delivery_count_limit
        group_share_delivery_count_limit
    );
    read!(
        "partition.max.record.locks" 100..=10_000,
        partition_max_record_locks partition_max_record_locks_range
        group_share_min_partition_max_record_locks group_share_max_partition_max_record_locks
        group_share_partition_max_record_locks
    );
    let size = within(&file.group_share_max_size, "group.share.max.size", 1..=GROUP_SIZE_MAX)?;
    config.group_size_max = size.unwrap_or(config.group_size_max);
    if let Some(creates) = &file.dead_letter_auto_create {
        config.dead_letter_auto_create = creates.value;
    }
    if let Some(prefix) = &file.dead_letter_prefix {
        config.dead_letter_prefix.clone_from(&prefix.value);
    }
    Ok(config)
}
