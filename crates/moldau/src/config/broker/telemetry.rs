//! The keys of metrics that clients push.

use std::path::PathBuf;
use std::sync::Arc;

use moldau_broker::TelemetrySettings;
use moldau_net::HttpUrl;
use serde::Deserialize;

use super::within;
use crate::config::problem::{At, Problem};
use crate::config::{Sources, tls};

/// The key `telemetry`: where the metrics go.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Where a collector takes metrics by OTLP over HTTP.
    otlp_url: At<String>,
    /// PEM file of authorities to believe at an `https` address. Default: those of the system.
    trust_file: Option<At<PathBuf>>,
}

/// Makes what the broker needs.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn settings(
    bytes: &Option<At<usize>>,
    keys: &Option<At<Keys>>,
    sources: &mut Sources,
) -> Result<TelemetrySettings, Problem> {
    let bytes = within(bytes, "telemetry.max.bytes", 1..=BYTES_MAX)?;
    let collector = match keys {
        None => None,
        Some(At { value: Keys { otlp_url: url, trust_file }, .. }) => {
            let tls = tls::of_url(url, trust_file.as_ref(), sources)?;
            let collector = HttpUrl::parse(&url.value, tls)
                .map_err(|error| Problem::at(url, format_args!("otlp_url: {error}")))?;
            Some(Arc::new(collector))
        }
    };
    let defaults = TelemetrySettings::default();
    Ok(TelemetrySettings { bytes_max: bytes.unwrap_or(defaults.bytes_max), collector })
}

/// Most bytes of a push: it is in memory as a whole, and decompressed.
const BYTES_MAX: usize = 16 << 20;
