//! Settings of a load of a survey, which may each come from the load itself, from its scenario or
//! from what all loads share.

use serde::{Deserialize, Serialize};

use super::refuse;
use crate::experiments::asked::{Asked, Payload, ReadFile, Times};
use crate::survey::Setting;
use moldau_load::shape::{Keys, Sizes};
use moldau_load::workload::{Acks, Codec, Pace, Tuning, Workload};
use moldau_measure::Error;

/// Settings of a load; those that are left out are as elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Records per second at fixed intended times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_per_second: Option<u64>,
    /// Records per second of each producer at fixed intended times: more producers offer more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub records_per_second_each: Option<u64>,
    /// Records on their way at once, each followed by the next when its answer comes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
    /// How intended times follow one another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Times>,
    /// Size of a record's value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_bytes: Option<usize>,
    /// Sizes of values, where they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record_sizes: Option<Sizes>,
    /// What values hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// Keys of records, which decide their partitions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Keys>,
    /// Topics, over which records are spread one by one; the rate is that of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topics: Option<u16>,
    /// Partitions of each topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u16>,
    /// Producers of each topic, each over a connection of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub producers: Option<u16>,
    /// A producer's largest batch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_bytes: Option<usize>,
    /// How long a producer's batch may wait for more, microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub linger_us: Option<u64>,
    /// Codec of the batches.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compression: Option<Codec>,
    /// When the system answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks: Option<Acks>,
    /// Records of each transaction of a producer; without it, it makes none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transaction_records: Option<u32>,
    /// Requests that each producer may have on their way to a broker at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_flight_max: Option<u16>,
    /// Consumers that read meanwhile, each everything, with a connection for each topic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consumers: Option<u16>,
    /// Bytes that end the wait of a fetch of theirs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_min_bytes: Option<u32>,
    /// How long such a wait may take, ms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetch_max_wait_ms: Option<u32>,
    /// Time before the measured window, ms; that of the survey if it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_ms: Option<u64>,
    /// The measured window, ms; that of the survey if it is left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_ms: Option<u64>,
}

impl Settings {
    /// These settings, and those of `base` where there is none. How fast records come is one
    /// setting by several names, and so is how large they are.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        let pace = if self.paces() > 0 { self } else { base };
        let sizes = if self.sizes() > 0 { self } else { base };
        // A trace is a pace, and another pace takes its place.
        let has_other_pace = self.paces() > 0;
        let inherited = base.arrivals.as_ref().filter(|it| !(has_other_pace && it.is_trace()));
        Self {
            records_per_second: pace.records_per_second,
            records_per_second_each: pace.records_per_second_each,
            outstanding: pace.outstanding,
            arrivals: self.arrivals.as_ref().or(inherited).cloned(),
            record_bytes: sizes.record_bytes,
            record_sizes: sizes.record_sizes.clone(),
            payload: self.payload.as_ref().or(base.payload.as_ref()).cloned(),
            keys: self.keys.or(base.keys),
            topics: self.topics.or(base.topics),
            partitions: self.partitions.or(base.partitions),
            producers: self.producers.or(base.producers),
            batch_bytes: self.batch_bytes.or(base.batch_bytes),
            linger_us: self.linger_us.or(base.linger_us),
            compression: self.compression.or(base.compression),
            acks: self.acks.or(base.acks),
            transaction_records: self.transaction_records.or(base.transaction_records),
            in_flight_max: self.in_flight_max.or(base.in_flight_max),
            consumers: self.consumers.or(base.consumers),
            fetch_min_bytes: self.fetch_min_bytes.or(base.fetch_min_bytes),
            fetch_max_wait_ms: self.fetch_max_wait_ms.or(base.fetch_max_wait_ms),
            warmup_ms: self.warmup_ms.or(base.warmup_ms),
            window_ms: self.window_ms.or(base.window_ms),
        }
    }

    /// Refuses what cannot be of one load, and what has no effect in it.
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.check_exclusions()?;
        check_effects(self, std::slice::from_ref(self))
    }

    /// Refuses what cannot be of one load.
    pub(super) fn check_exclusions(&self) -> Result<(), Error> {
        if self.paces() > 1 {
            let all = "records_per_second, records_per_second_each, outstanding and a trace";
            return refuse(format!("{all} exclude each other"));
        }
        if self.sizes() > 1 {
            return refuse("record_bytes and record_sizes exclude each other".into());
        }
        Ok(())
    }

    /// Reads the files of the user that it names.
    ///
    /// # Errors
    /// [`Error::Plan`] with the file, and the line where it can.
    pub fn read_files(&mut self, read: &mut ReadFile<'_>) -> Result<(), Error> {
        if let Some(payload) = &mut self.payload {
            payload.read_file(read)?;
        }
        self.arrivals.as_mut().map_or(Ok(()), |arrivals| arrivals.read_file(read))
    }

    /// How many settings say how fast records come.
    pub(super) fn paces(&self) -> usize {
        let each = [self.records_per_second, self.records_per_second_each];
        let is_traced = self.arrivals.as_ref().is_some_and(Times::is_trace);
        each.iter().flatten().count()
            + usize::from(self.outstanding.is_some())
            + usize::from(is_traced)
    }

    /// How many settings say how large records are.
    fn sizes(&self) -> usize {
        usize::from(self.record_bytes.is_some()) + usize::from(self.record_sizes.is_some())
    }

    fn consumes(&self) -> bool {
        self.consumers.is_some_and(|consumers| consumers > 0)
    }

    /// The settings that are there, by their keys.
    pub(crate) fn named(&self) -> Vec<Setting> {
        let value = serde_json::to_value(self).expect("numbers and words have a JSON form");
        let entries = value.as_object().into_iter().flatten();
        let named =
            entries.map(|(key, value)| Setting { key: key.clone(), value: in_words(value) });
        named.collect()
    }

    /// The load over a window after a warm-up, ms, with Kafka's own defaults for what is said
    /// nowhere.
    #[must_use]
    pub fn workload(&self, warmup_ms: u64, window_ms: u64) -> Workload {
        let consumers = self.consumers.unwrap_or(0);
        let usual = Tuning::default();
        let topics = self.topics.unwrap_or(usual.topics);
        let producers = self.producers.unwrap_or(1);
        let of_all = |each: u64| each.saturating_mul(u64::from(topics) * u64::from(producers));
        let per_second = self.records_per_second.or(self.records_per_second_each.map(of_all));
        let (payload, times) = (Payload::default(), Times::default());
        let times = self.arrivals.as_ref().unwrap_or(&times);
        let asked = Asked {
            record_bytes: self.record_bytes.unwrap_or(1024),
            sizes: self.record_sizes.as_ref(),
            keys: self.keys,
            payload: self.payload.as_ref().unwrap_or(&payload),
            times,
        };
        let (record_bytes, filler, shape) = asked.shape();
        let workload = Workload {
            pace: match (times.pace(per_second, &shape), self.outstanding) {
                (Some(scheduled), _) => scheduled,
                (None, Some(outstanding)) => Pace::Closed { outstanding },
                (None, None) => Pace::Unpaced,
            },
            record_bytes,
            filler,
            partitions: self.partitions.unwrap_or(1),
            producers,
            batch_bytes: self.batch_bytes.unwrap_or(16 * 1024),
            linger_us: self.linger_us.unwrap_or(0),
            consume: consumers > 0,
            tails: consumers.saturating_sub(1),
            warmup_ms,
            window_ms,
            tuning: Tuning {
                compression: self.compression.unwrap_or(usual.compression),
                acks: self.acks.unwrap_or(usual.acks),
                in_flight_max: self.in_flight_max.unwrap_or(usual.in_flight_max),
                buffer_bytes: usual.buffer_bytes,
                topics,
                fetch_min_bytes: self.fetch_min_bytes.unwrap_or(usual.fetch_min_bytes),
                fetch_max_wait_ms: self.fetch_max_wait_ms.unwrap_or(usual.fetch_max_wait_ms),
                cooldown_ms: usual.cooldown_ms,
                transaction_records: self.transaction_records,
                shape,
            },
        };
        workload.with_short_cooldown()
    }
}

/// A setting that some loads pass over.
struct Effect {
    key: &'static str,
    is_set: fn(&Settings) -> bool,
    /// Whether a load in which it is set does not pass over it.
    is_heeded: fn(&Settings) -> bool,
    /// Why one does.
    reason: &'static str,
}

const EFFECTS: [Effect; 4] = [
    Effect {
        key: "arrivals",
        is_set: |load| load.arrivals.as_ref().is_some_and(Times::spreads_rate),
        is_heeded: |load| load.records_per_second.or(load.records_per_second_each).is_some(),
        reason: "poisson and bursts have no effect without records_per_second or \
                 records_per_second_each",
    },
    Effect {
        key: "record_bytes",
        is_set: |load| load.record_bytes.is_some(),
        is_heeded: |load| load.workload(0, 1).tuning.shape.record_bytes(0).is_none(),
        reason: "has no effect beside the lines of a file or the bytes of a trace, which say how \
                 large records are",
    },
    Effect {
        key: "fetch_min_bytes",
        is_set: |load| load.fetch_min_bytes.is_some(),
        is_heeded: Settings::consumes,
        reason: "has no effect without consumers",
    },
    Effect {
        key: "fetch_max_wait_ms",
        is_set: |load| load.fetch_max_wait_ms.is_some(),
        is_heeded: Settings::consumes,
        reason: "has no effect without consumers",
    },
];

/// Refuses what `own` settings say without effect in any of the loads that are made of them.
pub(super) fn check_effects(own: &Settings, loads: &[Settings]) -> Result<(), Error> {
    for Effect { key, is_set, is_heeded, reason } in EFFECTS {
        if is_set(own) && !loads.iter().any(|load| is_set(load) && is_heeded(load)) {
            return refuse(format!("{key}: {reason}"));
        }
    }
    Ok(())
}

/// A value without the marks of a document: `zipf count 1000, exponent 1.1`.
fn in_words(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(in_words).collect::<Vec<_>>().join("; "),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| format!("{key} {}", in_words(value)));
            entries.collect::<Vec<_>>().join(", ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::survey::SurveyFile;

    /// Errors in the settings that all loads share, in a survey with these scenarios.
    fn told(load: &str, scenarios: &str, more: &str) -> Result<(), String> {
        let text = format!(
            r#"{{"question": "q", "hypothesis": "h", "systems": ["moldau"], "rounds": 3,
                "warmup_ms": 0, "window_ms": 1000, "load": {load},
                "scenarios": [{scenarios}]{more}}}"#
        );
        let mut file: SurveyFile = serde_json::from_str(&text).unwrap();
        let read = file.read_files(&mut |path, _| {
            let lines = if path == "day.csv" { "0,100\n2,100\n" } else { "one line\n" };
            Ok(lines.as_bytes().to_vec())
        });
        read.unwrap();
        file.check().map_err(|error| error.to_string())
    }

    #[test]
    fn a_setting_that_no_load_heeds_is_refused_by_its_key() {
        let [plain, closed] = [r#"{"name": "a"}"#, r#"{"name": "b", "load": {"outstanding": 4}}"#];
        let both = format!("{plain}, {closed}");
        for (key, load) in [
            ("arrivals", r#"{"arrivals": {"poisson": {"seed": 1}}}"#),
            ("arrivals", r#"{"arrivals": {"bursts": {"size": 9}}}"#),
            ("record_bytes", r#"{"record_bytes": 99, "payload": {"file": "a.txt"}}"#),
            ("fetch_min_bytes", r#"{"fetch_min_bytes": 9}"#),
            ("fetch_max_wait_ms", r#"{"fetch_max_wait_ms": 9, "consumers": 0}"#),
        ] {
            let problem = told(load, &both, "").unwrap_err();
            assert!(problem.starts_with(&format!("invalid plan: {key}: ")), "{problem}");
            let alone: Settings = serde_json::from_str(load).unwrap();
            let problem = alone.check().unwrap_err().to_string();
            assert!(problem.starts_with(&format!("invalid plan: {key}: ")), "{problem}");
        }
        let traced = r#"{"record_bytes": 99, "arrivals": {"trace": {"file": "day.csv"}}}"#;
        assert!(told(traced, plain, "").unwrap_err().contains("record_bytes: has no effect"));
        // What is cut from a file is as large as is asked for, and constant distances are none.
        told(r#"{"record_bytes": 99, "payload": {"raw": "a.txt"}}"#, plain, "").unwrap();
        told(r#"{"arrivals": "constant"}"#, &both, "").unwrap();
    }

    #[test]
    fn shared_settings_may_have_no_effect_in_some_loads() {
        let plain = r#"{"name": "a"}"#;
        for (load, heeding) in [
            (r#"{"arrivals": {"poisson": {"seed": 1}}}"#, r#"{"records_per_second": 9}"#),
            (r#"{"arrivals": {"bursts": {"size": 9}}}"#, r#"{"records_per_second_each": 9}"#),
            (r#"{"record_bytes": 99, "payload": {"file": "a.txt"}}"#, r#"{"payload": "text"}"#),
            (r#"{"fetch_min_bytes": 9, "fetch_max_wait_ms": 9}"#, r#"{"consumers": 1}"#),
        ] {
            let both = format!(r#"{plain}, {{"name": "b", "load": {heeding}}}"#);
            told(load, &both, "").unwrap();
        }
        let poisson = r#"{"arrivals": {"poisson": {"seed": 1}}}"#;
        let factor = r#", "factors": [{"from": "a", "levels": [{"records_per_second": 9}]}]"#;
        told(poisson, plain, factor).unwrap();
        // Rates that are made of the full speed are rates.
        let asks = r#", "asks": {"latency": {"full_speed_percent": [10, 20]}}"#;
        told(poisson, plain, asks).unwrap();
    }

    #[test]
    fn a_load_refuses_own_settings_without_effect() {
        let paced = r#"{"name": "a", "load": {"records_per_second": 9, "consumers": 1}}"#;
        let own = |load: &str| {
            told("{}", &format!(r#"{paced}, {{"name": "b", "load": {load}}}"#), "").unwrap_err()
        };
        let closed = own(r#"{"outstanding": 4, "arrivals": {"poisson": {"seed": 1}}}"#);
        assert!(closed.contains("load \"b\": "), "{closed}");
        assert!(closed.contains("arrivals: poisson and bursts have no effect"), "{closed}");
        assert!(own(r#"{"fetch_min_bytes": 9}"#).contains("fetch_min_bytes: has no effect"));
        let level = r#", "factors": [{"from": "b", "levels": [{"fetch_min_bytes": 9}]}]"#;
        let both = format!(r#"{paced}, {{"name": "b"}}"#);
        let level = told("{}", &both, level).unwrap_err();
        assert!(level.contains("load \"b\": ") && level.contains("fetch_min_bytes: "), "{level}");
    }
}
