//! Configuration of brokers and loggers, for DescribeConfigs, AlterConfigs and
//! IncrementalAlterConfigs (KIP-226, KIP-412).
//!
//! The broker shows its settings that Kafka has too, and the defaults of topics. Clients can change
//! those defaults, for this broker or for all brokers (the broker of the empty name). All other
//! settings are read at the start of the process. The level of a logger lasts until its end.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::DescribeConfigsRequest;
use moldau_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsSynonym,
};
use moldau_protocol::messages::incremental_alter_configs_request::AlterableConfig;

use crate::broker_configs::{BrokerConfig, SOURCE_DEFAULT, SOURCE_STATIC_BROKER, code_of};
use crate::call::Call;
use crate::error::Refusal;
use crate::loggers::{Level, Loggers, ROOT};
use crate::logs::Lsn;
use crate::state::State;
use crate::topic_config::{
    DefaultSource, IN_SYNC, TOPIC_KEYS, TopicDefaults, TopicKey, TopicOverrides, altered_list,
    shown,
};

/// Kafka's number for the source of a logger's level (`DYNAMIC_BROKER_LOGGER_CONFIG`).
const SOURCE_LOGGER: i8 = 6;

/// What a change does with a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Set,
    Delete,
    Append,
    Subtract,
}

impl Operation {
    /// The operation of a number of Kafka's.
    ///
    /// # Errors
    /// `INVALID_REQUEST` for any other number.
    pub(crate) fn of(code: i8) -> Result<Self, Refusal> {
        match code {
            0 => Ok(Self::Set),
            1 => Ok(Self::Delete),
            2 => Ok(Self::Append),
            3 => Ok(Self::Subtract),
            other => Err(invalid_request(format!("unknown configuration operation {other}"))),
        }
    }
}

/// The configuration of this broker, or what clients gave all brokers.
///
/// # Errors
/// `INVALID_REQUEST` for the name of another broker.
pub(crate) fn describe(
    state: &State,
    name: &str,
    request: &DescribeConfigsRequest,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    let defaults = state.catalog.defaults();
    let of_topics = TOPIC_KEYS.iter();
    if source_of(state, name)? == DefaultSource::Cluster {
        let of_cluster = of_topics.flat_map(|key| {
            let given = defaults.given(key);
            let given = given.filter(|(source, ..)| *source == DefaultSource::Cluster);
            given.map(|(source, name, value)| {
                shown_default(key, name, &[(code_of(source), value)], request)
            })
        });
        return Ok(of_cluster.collect());
    }
    let own = state
        .config
        .broker_configs(state.nodes.id())
        .into_iter()
        .map(|config| of_broker(config, request));
    let defaults = of_topics.flat_map(|key| {
        let mut names: Vec<_> = defaults.given(key).map(|(_, name, _)| name).collect();
        names.extend(key.broker_keys.first().map(|first| first.name).filter(|_| names.is_empty()));
        names.sort_unstable();
        names.dedup();
        let defaults = &defaults;
        names.into_iter().map(move |name| of_default(defaults, key, name, request))
    });
    Ok(own.chain(defaults).collect())
}

/// The loggers of this broker with their levels.
///
/// # Errors
/// `INVALID_REQUEST` for the name of another broker.
pub(crate) fn describe_loggers(
    state: &State,
    name: &str,
) -> Result<Vec<DescribeConfigsResourceResult>, Refusal> {
    check_own(state, name)?;
    let levels = state.config.loggers.iter().flat_map(|loggers| loggers.levels());
    let described = levels.map(|(logger, level)| DescribeConfigsResourceResult {
        name: logger.to_owned(),
        value: Some(level.name().to_owned()),
        config_source: SOURCE_LOGGER,
        ..DescribeConfigsResourceResult::default()
    });
    Ok(described.collect())
}

/// Changes the defaults of topics.
///
/// # Errors
/// `INVALID_REQUEST` for the name of another broker, a key that is read at the start only or a
/// value that is not accepted, `INVALID_CONFIG` for a word of what is no list, or a journal that
/// takes nothing.
pub(crate) fn alter(
    call: &Call<'_>,
    name: &str,
    configs: &[AlterableConfig],
    validate_only: bool,
) -> Result<Option<Lsn>, Refusal> {
    let source = changed_source(call.state, name)?;
    check_in_sync(source, configs)?;
    let catalog = &call.state.catalog;
    catalog.configure_defaults(&call.state.storage, source, validate_only, |values, defaults| {
        configs.iter().try_for_each(|config| apply(values, config, defaults))
    })
}

/// As [`alter`], where the values of the request replace all others.
///
/// # Errors
/// As [`alter`].
pub(crate) fn replace<'a>(
    call: &Call<'_>,
    name: &str,
    configs: impl Iterator<Item = (&'a str, Option<&'a str>)>,
    validate_only: bool,
) -> Result<Option<Lsn>, Refusal> {
    let source = changed_source(call.state, name)?;
    let catalog = &call.state.catalog;
    catalog.configure_defaults(&call.state.storage, source, validate_only, |values, _| {
        values.clear();
        for (name, value) in configs {
            default_key(name)?;
            values.insert(name.to_owned(), value.ok_or_else(|| without_value(name))?.to_owned());
        }
        Ok(())
    })
}

/// Gives loggers levels.
///
/// # Errors
/// `INVALID_REQUEST` for the name of another broker or an operation that loggers do not have,
/// `INVALID_CONFIG` for an unknown logger or level. Nothing is changed then.
pub(crate) fn alter_loggers(
    call: &Call<'_>,
    name: &str,
    configs: &[AlterableConfig],
    validate_only: bool,
) -> Result<(), Refusal> {
    check_own(call.state, name)?;
    let loggers = call.state.config.loggers.as_deref();
    let changes: Vec<_> =
        configs.iter().map(|config| change_of(loggers, config)).collect::<Result<_, _>>()?;
    let loggers = loggers.filter(|_| !validate_only);
    for ((logger, level), loggers) in changes.into_iter().zip(loggers.into_iter().cycle()) {
        loggers.set(logger, level);
    }
    Ok(())
}

fn change_of<'a>(
    loggers: Option<&dyn Loggers>,
    config: &'a AlterableConfig,
) -> Result<(&'a str, Option<Level>), Refusal> {
    let invalid = |message: String| Refusal::new(ErrorCode::InvalidConfig, message);
    let logger = config.name.as_str();
    let levels = loggers.map(Loggers::levels).unwrap_or_default();
    if !levels.iter().any(|(name, _)| *name == logger) {
        return Err(invalid(format!("there is no logger {}", shown(logger))));
    }
    match Operation::of(config.config_operation)? {
        Operation::Set => {
            let text = config.value.as_deref().ok_or_else(|| without_value(logger))?;
            let level = Level::named(text).ok_or_else(|| {
                let text = shown(text);
                invalid(format!("{text} is no level: TRACE, DEBUG, INFO, WARN, ERROR, FATAL"))
            })?;
            Ok((logger, Some(level)))
        }
        Operation::Delete if logger == ROOT => {
            Err(invalid_request("the root logger always has a level".to_owned()))
        }
        Operation::Delete => Ok((logger, None)),
        Operation::Append | Operation::Subtract => {
            Err(invalid_request("the level of a logger is not a list".to_owned()))
        }
    }
}

fn apply(
    values: &mut TopicOverrides,
    config: &AlterableConfig,
    defaults: &TopicDefaults,
) -> Result<(), Refusal> {
    let name = config.name.as_str();
    let operation = Operation::of(config.config_operation)?;
    if operation == Operation::Delete {
        // Tools delete throttles of replication, which a broker of its own never has.
        values.remove(name);
        return Ok(());
    }
    let key = default_key(name)?;
    let value = || config.value.as_deref().ok_or_else(|| without_value(name));
    let value = match operation {
        Operation::Set => value()?.to_owned(),
        Operation::Append | Operation::Subtract if !key.is_list() => {
            return Err(not_a_list(name, operation));
        }
        operation => altered_list(defaults.of(key.name), value()?, operation == Operation::Append),
    };
    values.insert(name.to_owned(), value);
    Ok(())
}

/// `INVALID_CONFIG` for words that are to be added to what is no list, or taken from it.
pub(crate) fn not_a_list(name: &str, operation: Operation) -> Refusal {
    let operation = if operation == Operation::Append { "APPEND" } else { "SUBTRACT" };
    let name = shown(name);
    let message = format!("Can't {operation} to key {name} because its type is not LIST.");
    Refusal::new(ErrorCode::InvalidConfig, message)
}

/// As Kafka's cluster with eligible leader replicas (KIP-966): all its brokers count by one number
/// of replicas in sync.
///
/// # Errors
/// `INVALID_CONFIG` for a number of one broker, or the end of that for all.
fn check_in_sync(source: DefaultSource, configs: &[AlterableConfig]) -> Result<(), Refusal> {
    let mut changes = configs.iter().filter(|config| config.name == IN_SYNC);
    let message = match source {
        DefaultSource::Cluster => {
            let deletes = |config: &AlterableConfig| {
                matches!(Operation::of(config.config_operation), Ok(Operation::Delete))
            };
            let message = "Cluster-level min.insync.replicas cannot be removed while ELR is \
                           enabled.";
            changes.any(deletes).then_some(message)
        }
        DefaultSource::Broker | DefaultSource::File => {
            let message = "Broker-level min.insync.replicas cannot be altered while ELR is \
                           enabled.";
            changes.next().map(|_| message)
        }
    };
    match message {
        Some(message) => Err(Refusal::new(ErrorCode::InvalidConfig, message)),
        None => Ok(()),
    }
}

/// The topic's key of a broker-level key that clients can change: of several, the one in the
/// topic's own unit.
fn default_key(name: &str) -> Result<&'static TopicKey, Refusal> {
    let is_first = |key: &&TopicKey| key.broker_keys.first().is_some_and(|it| it.name == name);
    TOPIC_KEYS.iter().find(is_first).ok_or_else(|| {
        invalid_request(format!("{} cannot be changed while the broker runs", shown(name)))
    })
}

/// Whom the broker of a name stands for.
fn source_of(state: &State, name: &str) -> Result<DefaultSource, Refusal> {
    if name.is_empty() {
        return Ok(DefaultSource::Cluster);
    }
    check_own(state, name).map(|()| DefaultSource::Broker)
}

/// Whom a change of the broker of a name is for: in a cluster all brokers have the same defaults.
fn changed_source(state: &State, name: &str) -> Result<DefaultSource, Refusal> {
    if state.nodes.is_shared() && !name.is_empty() {
        let message = "the brokers of a cluster have their defaults together: those of the broker \
                       of the empty name";
        return Err(invalid_request(message.to_owned()));
    }
    source_of(state, name)
}

fn check_own(state: &State, name: &str) -> Result<(), Refusal> {
    let own = state.nodes.id();
    if name == own.to_string() {
        return Ok(());
    }
    Err(invalid_request(format!("broker {} is not this one, which is {own}", shown(name))))
}

fn without_value(name: &str) -> Refusal {
    invalid_request(format!("{} has no value", shown(name)))
}

fn invalid_request(message: String) -> Refusal {
    Refusal::new(ErrorCode::InvalidRequest, message)
}

/// A broker-level default of a topic's key.
fn of_default(
    defaults: &TopicDefaults,
    key: &TopicKey,
    name: &'static str,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let given = defaults.given(key).filter(|(_, given, _)| *given == name);
    let builtin = key.broker_keys.first().filter(|first| first.name == name);
    let builtin = builtin.map(|_| (SOURCE_DEFAULT, key.default));
    let values: Vec<_> =
        given.map(|(source, _, value)| (code_of(source), value)).chain(builtin).collect();
    shown_default(key, name, &values, request)
}

/// A key with its values, of which the first is in force.
fn shown_default(
    key: &TopicKey,
    name: &'static str,
    values: &[(i8, &str)],
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let in_force = values.first().copied();
    DescribeConfigsResourceResult {
        name: name.to_owned(),
        value: in_force.map(|(_, value)| value.to_owned()),
        read_only: key.broker_keys.first().is_none_or(|first| first.name != name),
        config_source: in_force.map_or(SOURCE_DEFAULT, |(source, _)| source),
        synonyms: synonyms(name, values, request),
        config_type: key.type_code(),
        documentation: request.include_documentation.then(|| key.documentation.to_owned()),
        ..DescribeConfigsResourceResult::default()
    }
}

fn of_broker(
    config: BrokerConfig,
    request: &DescribeConfigsRequest,
) -> DescribeConfigsResourceResult {
    let source = if config.is_given { SOURCE_STATIC_BROKER } else { SOURCE_DEFAULT };
    DescribeConfigsResourceResult {
        name: config.name.to_owned(),
        synonyms: synonyms(config.name, &[(source, &config.value)], request),
        value: Some(config.value),
        read_only: true,
        config_source: source,
        config_type: config.config_type.code(),
        documentation: request.include_documentation.then(|| config.documentation.to_owned()),
        ..DescribeConfigsResourceResult::default()
    }
}

fn synonyms(
    name: &str,
    values: &[(i8, &str)],
    request: &DescribeConfigsRequest,
) -> Vec<DescribeConfigsSynonym> {
    let shown = values.iter().filter(|_| request.include_synonyms);
    let shown = shown.map(|(source, value)| DescribeConfigsSynonym {
        name: name.to_owned(),
        value: Some((*value).to_owned()),
        source: *source,
        ..DescribeConfigsSynonym::default()
    });
    shown.collect()
}
