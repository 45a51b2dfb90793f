//! What a configuration accepts, how it is spelled, and what follows from it.

use super::*;

fn overrides(pairs: &[(&str, &str)]) -> TopicOverrides {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn parsed(pairs: &[(&str, &str)]) -> TopicConfig {
    TopicConfig::parse(&overrides(pairs), &TopicDefaults::default()).unwrap()
}

#[test]
fn defaults_are_those_of_kafka() {
    let config = parsed(&[]);
    assert_eq!(config.message_bytes_max, 1_048_588);
    assert_eq!(config.retention_ms, Some(604_800_000));
    assert_eq!(config.retention_bytes, None);
    assert_eq!(config.timestamp_type, TimestampType::CreateTime);
    assert!(config.deletes);
    assert_eq!(config.compaction, None);
}

#[test]
fn every_default_passes_its_own_check_in_its_own_spelling() {
    for key in &TOPIC_KEYS {
        assert_eq!(key.canonical(key.default).as_deref(), Ok(key.default), "{}", key.name);
    }
}

#[test]
fn every_key_has_documentation() {
    for key in &TOPIC_KEYS {
        assert!(key.documentation.ends_with('.'), "{}", key.name);
        let says_so = key.documentation.contains("not supported");
        assert!(key.default_only.is_none() || says_so, "{}", key.name);
    }
}

#[test]
fn the_page_on_configuration_lists_every_key_with_its_default() {
    let page = include_str!("../../../../docs/configuration.md");
    let (_, section) = page.split_once("## Topics").expect("the page has the heading");
    let section = section.split("\n## ").next().unwrap_or_default();
    let rows: Vec<_> = section.lines().filter(|line| line.starts_with("| `")).collect();
    assert_eq!(rows.len(), TOPIC_KEYS.len());
    for (row, key) in rows.iter().zip(&TOPIC_KEYS) {
        let wanted = match key.default {
            "" => format!("| `{}` | empty |", key.name),
            default => format!("| `{}` | `{default}` |", key.name),
        };
        assert!(row.starts_with(&wanted), "{row}");
    }
}

#[test]
fn keys_stand_in_alphabetical_order() {
    assert!(TOPIC_KEYS.is_sorted_by_key(|key| key.name));
}

#[test]
fn an_override_replaces_the_default() {
    let config = parsed(&[
        ("retention.ms", "-1"),
        ("retention.bytes", "1000"),
        ("message.timestamp.type", "LogAppendTime"),
    ]);
    assert_eq!(config.retention_ms, None);
    assert_eq!(config.retention_bytes, Some(1000));
    assert_eq!(config.timestamp_type, TimestampType::LogAppendTime);
}

#[test]
fn the_cleanup_policy_decides_on_retention_and_compaction() {
    for (policy, deletes, compacts) in [
        ("delete", true, false),
        ("compact", false, true),
        ("compact,delete", true, true),
        ("delete,compact", true, true),
        ("", false, false),
    ] {
        let config = parsed(&[("cleanup.policy", policy)]);
        let found = (config.deletes, config.compaction.is_some());
        assert_eq!(found, (deletes, compacts), "{policy}");
    }
}

#[test]
fn a_compacted_topic_has_its_lags_and_its_ratio() {
    let config = parsed(&[
        ("cleanup.policy", "compact"),
        ("min.compaction.lag.ms", "5"),
        ("max.compaction.lag.ms", "6"),
        ("min.cleanable.dirty.ratio", "0.01"),
    ]);
    let wanted = Compaction {
        min_lag_ms: 5,
        max_lag_ms: 6,
        delete_retention_ms: 86_400_000,
        min_dirty_ratio: 0.01,
    };
    assert_eq!(config.compaction, Some(wanted));
}

#[test]
fn lags_that_exclude_one_another_are_refused() {
    let lags = overrides(&[("min.compaction.lag.ms", "6"), ("max.compaction.lag.ms", "5")]);
    let problem = TopicConfig::parse(&lags, &TopicDefaults::default()).unwrap_err();
    assert!(problem.ends_with("lag.ms (6) > max.compaction.lag.ms (5)"), "{problem}");
}

/// A default of the broker that changed must not keep it from starting with the topics it has.
#[test]
fn stored_lags_beyond_new_defaults_use_the_longer_one() {
    let lags = overrides(&[("cleanup.policy", "compact"), ("min.compaction.lag.ms", "6")]);
    let defaults = TopicDefaults::default().with("log.cleaner.max.compaction.lag.ms", "5").unwrap();
    assert!(TopicConfig::parse(&lags, &defaults).is_err());
    let compaction = TopicConfig::restore(&lags, &defaults).unwrap().compaction.unwrap();
    assert_eq!((compaction.min_lag_ms, compaction.max_lag_ms), (6, 6));
}

#[test]
fn unknown_topic_key_is_refused_by_name() {
    let problem = canonical("log.retention.ms", "1").unwrap_err();
    assert_eq!(problem, "Unknown topic config name: log.retention.ms");
}

#[test]
fn unsupported_key_accepts_only_its_default() {
    let key = "remote.storage.enable";
    let problem = canonical(key, "true").unwrap_err();
    let text = format!("Invalid value true for configuration {key}: not supported: ");
    assert!(problem.starts_with(&text), "{problem}");
    let default = topic_key(key).unwrap().default;
    assert_eq!(canonical(key, default).as_deref(), Ok(default));
}

#[test]
fn value_is_stored_in_canonical_form() {
    for (key, value, kept) in [
        ("retention.ms", " 005 ", "5"),
        ("retention.ms", "+5", "5"),
        ("preallocate", "TRUE", "true"),
        ("message.timestamp.type", " CreateTime", "CreateTime"),
        ("min.cleanable.dirty.ratio", "1", "1.0"),
        ("min.cleanable.dirty.ratio", "-0", "0.0"),
        ("min.cleanable.dirty.ratio", "1e-2", "0.01"),
        ("cleanup.policy", " delete , compact ", "delete,compact"),
        ("cleanup.policy", "compact,compact", "compact"),
        ("cleanup.policy", " ", ""),
        ("leader.replication.throttled.replicas", "0:1, 1:1", "0:1,1:1"),
        ("leader.replication.throttled.replicas", "*", "*"),
    ] {
        assert_eq!(canonical(key, value).as_deref(), Ok(kept), "{key}={value}");
    }
}

#[test]
fn a_value_out_of_bounds_is_refused() {
    for (key, value) in [
        ("max.message.bytes", "-1"),
        ("max.message.bytes", "2147483648"),
        ("retention.ms", "week"),
        ("retention.ms", "-2"),
        ("retention.ms", ""),
        ("cleanup.policy", "Compact"),
        ("cleanup.policy", "compact,"),
        ("min.insync.replicas", "0"),
        ("min.cleanable.dirty.ratio", "1.01"),
        ("min.cleanable.dirty.ratio", "NaN"),
        ("max.compaction.lag.ms", "0"),
        ("compression.gzip.level", "0"),
        ("compression.gzip.level", "10"),
        ("segment.bytes", "1048575"),
        ("preallocate", "yes"),
        ("leader.replication.throttled.replicas", "*,0:1"),
        ("leader.replication.throttled.replicas", "0:"),
    ] {
        let problem = canonical(key, value).unwrap_err();
        let text = format!("Invalid value {value} for configuration {key}: ");
        assert!(problem.starts_with(&text), "{problem}");
    }
}

/// A longer value fits neither the journal's record nor an answer.
#[test]
fn error_of_a_too_long_value_is_short() {
    let replicas = vec!["0:1"; 10_000].join(",");
    let problem = canonical("leader.replication.throttled.replicas", &replicas).unwrap_err();
    assert!(problem.contains("longer than 32767 bytes") && problem.len() < 300, "{problem}");
    assert!(canonical(&"k".repeat(32_000), "1").unwrap_err().len() < 300);
    let zeros = format!("{}5", "0".repeat(32_000));
    assert_eq!(canonical("retention.ms", &zeros).as_deref(), Ok("5"));
}
