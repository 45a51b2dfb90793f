//! The keys of a handler: a command or an address.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::time;
use crate::config::problem::{At, Problem};
use crate::config::{Sources, at_least_one, tls};
use crate::run::{Encoding, Form, HttpSettings, HttpTo, PoolSettings, Protocol};

/// The keys of a handler.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Keys {
    /// Program and arguments of a handler process.
    command: Option<At<Vec<String>>>,
    /// Number of processes. Default 1.
    processes: Option<At<usize>>,
    /// `json-lines` or `length-prefixed`. Default `json-lines`.
    protocol: Option<At<Protocol>>,
    /// Requests with one process at a time. Default 16.
    in_flight_max: Option<At<usize>>,
    /// Working directory of the processes. Default: that of `moldau run`.
    directory: Option<At<PathBuf>>,
    /// Variables of the processes, beside those of `moldau run`. Default: none.
    environment: Option<At<BTreeMap<String, String>>>,
    /// How often a record may end its process until it is given up. Default 3.
    crashes_max: Option<At<u32>>,
    /// Milliseconds from the start of a process to its hello. Default 60000.
    start_timeout_ms: Option<At<u64>>,
    /// Milliseconds that a process may take to end once its stdin is closed, and again after
    /// SIGTERM. Default 10000.
    stop_timeout_ms: Option<At<u64>>,
    /// Address of a service, in place of a command.
    url: Option<At<String>>,
    /// Connections to the service. Default 16.
    connections_max: Option<At<usize>>,
    /// File with the value of the header `Authorization`. Default: none.
    authorization_file: Option<At<PathBuf>>,
    /// Authorities to trust for an `https` address, in PEM. Default: the system's.
    trust_file: Option<At<PathBuf>>,
    /// Milliseconds that a request may take. Default 60000.
    timeout_ms: Option<At<u64>>,
    /// How keys stand in documents: `text`, `json` or `base64`. Default `text`.
    key: Option<At<Encoding>>,
    /// How values stand in documents. Default `text`.
    value: Option<At<Encoding>>,
    /// How values of headers stand in documents. Default `text`.
    headers: Option<At<Encoding>>,
}

/// What the file says of a handler.
pub(crate) struct HandlerSettings {
    pub(crate) kind: HandlerKind,
    pub(crate) form: Form,
    pub(crate) timeout: Duration,
    pub(crate) crashes_max: u32,
}

/// Where the handler is.
pub(crate) enum HandlerKind {
    Processes(PoolSettings),
    Http(HttpSettings),
}

impl HandlerSettings {
    /// Requests that the handler takes at a time.
    pub(super) fn requests_max(&self) -> usize {
        match &self.kind {
            HandlerKind::Processes(pool) => pool.processes.saturating_mul(pool.in_flight_max),
            HandlerKind::Http(http) => http.connections_max,
        }
    }
}

/// # Errors
/// Names the key that is at fault.
pub(super) fn settings(
    keys: &At<Keys>,
    name: String,
    sources: &mut Sources,
) -> Result<HandlerSettings, Problem> {
    let Keys { command, url, crashes_max, .. } = &keys.value;
    let timeout = time(&keys.value.timeout_ms, TIMEOUT, "timeout_ms")?;
    let form = keys.value.form()?;
    let kind = match (command, url) {
        (Some(command), None) => {
            keys.value.refuse_keys_of_services()?;
            HandlerKind::Processes(keys.value.pool(command, name, form, timeout)?)
        }
        (None, Some(url)) => {
            keys.value.refuse_keys_of_processes()?;
            HandlerKind::Http(keys.value.http(url, form, timeout, sources)?)
        }
        (Some(_), Some(url)) => {
            return Err(Problem::at(url, "url: cannot be combined with command"));
        }
        (None, None) => {
            return Err(Problem::at(keys, "the key \"command\" is missing, or url"));
        }
    };
    if let Some(crashes) = crashes_max {
        at_least_one(crashes, "crashes_max")?;
    }
    let crashes_max = crashes_max.as_ref().map_or(CRASHES_MAX, |crashes| crashes.value);
    Ok(HandlerSettings { kind, form, timeout, crashes_max })
}

impl Keys {
    fn form(&self) -> Result<Form, Problem> {
        let encoding = |key: &Option<At<Encoding>>| key.as_ref().map(|it| it.value);
        let [key, value, headers] = [&self.key, &self.value, &self.headers];
        if self.protocol.as_ref().is_none_or(|it| it.value == Protocol::JsonLines) {
            let [key, value, headers] =
                [key, value, headers].map(|it| encoding(it).unwrap_or_default());
            return Ok(Form::Values { key, value, headers });
        }
        for (name, key) in [("key", key), ("value", value), ("headers", headers)] {
            if let Some(key) = key {
                let text = format!("{name}: the protocol length-prefixed has bytes, not text");
                return Err(Problem::at(key, text));
            }
        }
        Ok(Form::Bytes)
    }

    fn pool(
        &self,
        command: &At<Vec<String>>,
        name: String,
        form: Form,
        timeout: Duration,
    ) -> Result<PoolSettings, Problem> {
        if command.value.first().is_none_or(String::is_empty) {
            return Err(Problem::at(command, "command: names no program"));
        }
        let count = |given: &Option<At<usize>>, default: usize, key: &str, max: usize| {
            let Some(given) = given else { return Ok(default) };
            if !(1..=max).contains(&given.value) {
                let text = format!("{key}: must be from 1 to {max}");
                return Err(Problem::at(given, text));
            }
            Ok(given.value)
        };
        let environment = self.environment.as_ref().map(|it| it.value.clone()).unwrap_or_default();
        let is_name = |name: &String| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(given) = &self.environment
            && let Some(name) = environment.keys().find(|name| !is_name(name))
        {
            return Err(Problem::at(given, format!("environment: {name:?} is not a name")));
        }
        Ok(PoolSettings {
            name,
            command: command.value.clone(),
            directory: self.directory.as_ref().map(|it| it.value.clone()),
            environment,
            processes: count(&self.processes, 1, "processes", PROCESSES_MAX)?,
            in_flight_max: count(&self.in_flight_max, 16, "in_flight_max", IN_FLIGHT_MAX)?,
            protocol: self.protocol.as_ref().map(|it| it.value).unwrap_or_default(),
            form,
            timeout,
            start_timeout: time(&self.start_timeout_ms, TIMEOUT, "start_timeout_ms")?,
            stop_timeout: time(&self.stop_timeout_ms, STOP_TIMEOUT, "stop_timeout_ms")?,
        })
    }

    fn http(
        &self,
        url: &At<String>,
        form: Form,
        timeout: Duration,
        sources: &mut Sources,
    ) -> Result<HttpSettings, Problem> {
        let tls = tls::of_url(url, self.trust_file.as_ref(), sources)?;
        let authorization = self.authorization_file.as_ref();
        let authorization = authorization.map(|path| sources.secret(path)).transpose()?;
        let to = HttpTo::parse(&url.value, authorization.as_ref().map(|it| it.as_str()), tls);
        let to = to.map_err(|error| Problem::at(url, format_args!("url: {error}")))?;
        if let Some(connections) = &self.connections_max {
            at_least_one(connections, "connections_max")?;
        }
        let connections_max = self.connections_max.as_ref().map_or(16, |it| it.value);
        let connections_max = connections_max.min(IN_FLIGHT_MAX);
        Ok(HttpSettings { to, connections_max, timeout, form })
    }

    fn refuse_keys_of_services(&self) -> Result<(), Problem> {
        needs("connections_max", "url", &self.connections_max)?;
        needs("authorization_file", "url", &self.authorization_file)?;
        needs("trust_file", "url", &self.trust_file)
    }

    fn refuse_keys_of_processes(&self) -> Result<(), Problem> {
        needs("processes", "command", &self.processes)?;
        needs("protocol", "command", &self.protocol)?;
        needs("in_flight_max", "command", &self.in_flight_max)?;
        needs("directory", "command", &self.directory)?;
        needs("environment", "command", &self.environment)?;
        needs("crashes_max", "command", &self.crashes_max)?;
        needs("start_timeout_ms", "command", &self.start_timeout_ms)?;
        needs("stop_timeout_ms", "command", &self.stop_timeout_ms)
    }
}

fn needs<T>(key: &str, other: &str, given: &Option<At<T>>) -> Result<(), Problem> {
    match given {
        Some(given) => Err(Problem::at(given, format!("{key}: needs {other}"))),
        None => Ok(()),
    }
}

/// Of a start and of a request: Kafka's default for a request of a user (`default.api.timeout.ms`).
const TIMEOUT: Duration = Duration::from_secs(60);

/// Attempts that tell a record that ends its process from a process that was killed.
const CRASHES_MAX: u32 = 3;

/// What supervisors of processes wait for by default.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

/// Processes of a route: more than machines have cores.
const PROCESSES_MAX: usize = 1024;

/// Requests with one process, of which each may be a batch.
const IN_FLIGHT_MAX: usize = 10_000;
