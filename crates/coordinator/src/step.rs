//! What one step of a group works with and leaves behind.

use std::collections::BTreeMap;

use crate::config::{Config, GroupSettings};
use crate::group_config::{self, GroupOverrides};
use crate::record::GroupRecord;
use crate::reply::{Effects, Reply};
use crate::request::Token;
use crate::share_config::ShareSettings;
use crate::streams_config::StreamsSettings;

/// What one step works with.
pub(crate) struct Step<'a> {
    pub(crate) now_ms: i64,
    pub(crate) config: &'a Config,
    /// What groups override of the configuration.
    pub(crate) overrides: &'a BTreeMap<String, GroupOverrides>,
    pub(crate) effects: Effects,
}

impl Step<'_> {
    pub(crate) fn reply(&mut self, token: Token, reply: Reply) {
        self.effects.replies.push((token, reply));
    }

    pub(crate) fn record(&mut self, record: GroupRecord) {
        self.effects.records.push(record);
    }

    /// Whether the record can be written.
    pub(crate) fn fits(&self, record: &GroupRecord) -> bool {
        let mut bytes = Vec::new();
        record.encode(&mut bytes);
        bytes.len() <= self.config.record_bytes_max
    }

    pub(crate) fn after_ms(&self, delay_ms: i32) -> i64 {
        self.now_ms.saturating_add(i64::from(delay_ms))
    }

    /// The settings of a group of the consumer protocol.
    pub(crate) fn settings(&self, group_id: &str) -> GroupSettings {
        match self.overrides.get(group_id) {
            Some(overrides) => group_config::settings(self.config, overrides),
            None => self.config.consumer.settings,
        }
    }

    /// The settings of a share group.
    pub(crate) fn share_settings(&self, group_id: &str) -> ShareSettings {
        match self.overrides.get(group_id) {
            Some(overrides) => group_config::share_settings(self.config, overrides),
            None => self.config.share.settings,
        }
    }

    /// The settings of a streams group.
    pub(crate) fn streams_settings(&self, group_id: &str) -> StreamsSettings {
        match self.overrides.get(group_id) {
            Some(overrides) => group_config::streams_settings(self.config, overrides),
            None => self.config.streams.settings.clone(),
        }
    }
}
