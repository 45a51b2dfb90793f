//! The key `traces` of the proxy.

use std::path::PathBuf;
use std::sync::Arc;

use moldau_net::HttpUrl;
use moldau_proxy::Traces;
use serde::Deserialize;

use super::Sources;
use super::problem::{At, Problem};
use super::tls;

/// Where traces go.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    /// Where a collector takes traces by OTLP over HTTP.
    otlp_url: At<String>,
    /// PEM file of authorities to believe at an `https` address. Default: those of the system.
    trust_file: Option<At<PathBuf>>,
    /// Share of requests to export, from 0 to 1. Default 0.01.
    sample_ratio: Option<At<f64>>,
    /// Names this proxy to the collector. Default `moldau-proxy`.
    #[serde(default = "default_service_name")]
    service_name: String,
}

fn default_service_name() -> String {
    "moldau-proxy".to_owned()
}

/// Makes what the proxy needs.
///
/// # Errors
/// Names the key that is at fault.
pub(super) fn settings(keys: Keys, sources: &mut Sources) -> Result<Traces, Problem> {
    let Keys { otlp_url: url, trust_file, sample_ratio, service_name } = keys;
    let ratio = sample_ratio.as_ref().map_or(SAMPLE_RATIO_DEFAULT, |ratio| ratio.value);
    if let Some(place) = sample_ratio
        && !(0.0..=1.0).contains(&ratio)
    {
        return Err(Problem::at(&place, format_args!("sample_ratio: {ratio} is not 0 to 1")));
    }
    let tls = tls::of_url(&url, trust_file.as_ref(), sources)?;
    let collector = HttpUrl::parse(&url.value, tls)
        .map_err(|error| Problem::at(&url, format_args!("otlp_url: {error}")))?;
    Ok(Traces { collector: Arc::new(collector), sample_ratio: ratio, service_name })
}

/// Enough to see what is usual, at a cost that is not.
const SAMPLE_RATIO_DEFAULT: f64 = 0.01;
