//! Experiment files: reading, checking and listing them, with the systems that surveys name.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use moldau_lab::experiments::file::ExperimentFile;
use moldau_lab::experiments::survey::{Settings, SurveyFile};
use moldau_lab::experiments::threads::ThreadsFile;
use moldau_lab::systems::SystemFile;
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::config::{self, Sources, nearest};

/// Where `moldau lab list` looks for experiment files, below the current directory.
const DIRECTORY: &str = "experiments";

/// Published experiments, by the names under which they can be asked for.
const SOURCES: [(&str, &str); 4] = [
    ("sources/chronik", include_str!("../../../../experiments/sources/chronik.yaml")),
    ("sources/instaclustr", include_str!("../../../../experiments/sources/instaclustr.yaml")),
    ("sources/karafka", include_str!("../../../../experiments/sources/karafka.yaml")),
    ("sources/kroxylicious", include_str!("../../../../experiments/sources/kroxylicious.yaml")),
];

/// What the commands of one question each run, by their names.
const QUESTIONS: [(&str, &str); 3] = [
    ("latency", include_str!("../../../../experiments/questions/latency.yaml")),
    ("compression", include_str!("../../../../experiments/questions/compression.yaml")),
    ("threads", include_str!("../../../../experiments/questions/threads.yaml")),
];

/// Systems by the names under which surveys can ask for them.
const SYSTEMS: [(&str, &str); 17] = [
    ("moldau", include_str!("../../../../experiments/systems/moldau.yaml")),
    ("moldau-os", include_str!("../../../../experiments/systems/moldau-os.yaml")),
    ("moldau-os-tls", include_str!("../../../../experiments/systems/moldau-os-tls.yaml")),
    ("moldau-os-tls-ring", include_str!("../../../../experiments/systems/moldau-os-tls-ring.yaml")),
    ("moldau-proxy", include_str!("../../../../experiments/systems/moldau-proxy.yaml")),
    ("moldau-os-proxy", include_str!("../../../../experiments/systems/moldau-os-proxy.yaml")),
    (
        "moldau-os-proxy-encryption",
        include_str!("../../../../experiments/systems/moldau-os-proxy-encryption.yaml"),
    ),
    ("moldau-cluster", include_str!("../../../../experiments/systems/moldau-cluster.yaml")),
    ("kafka", include_str!("../../../../experiments/systems/kafka.yaml")),
    ("kafka-tls", include_str!("../../../../experiments/systems/kafka-tls.yaml")),
    ("kafka-3", include_str!("../../../../experiments/systems/kafka-3.yaml")),
    ("kafka-3.9-kraft", include_str!("../../../../experiments/systems/kafka-3.9-kraft.yaml")),
    (
        "kafka-3.9-zookeeper",
        include_str!("../../../../experiments/systems/kafka-3.9-zookeeper.yaml"),
    ),
    ("kroxylicious", include_str!("../../../../experiments/systems/kroxylicious.yaml")),
    ("kafka-kroxylicious", include_str!("../../../../experiments/systems/kafka-kroxylicious.yaml")),
    (
        "kafka-kroxylicious-encryption",
        include_str!("../../../../experiments/systems/kafka-kroxylicious-encryption.yaml"),
    ),
    ("external", include_str!("../../../../experiments/systems/external.yaml")),
];

/// Systems that `lab check` starts in place of those of the same name: it carries their
/// connections, so that nothing can be measured.
const CHECKED_SYSTEMS: [(&str, &str); 1] = [(
    "moldau-cluster",
    include_str!("../../../../experiments/checked-systems/moldau-cluster.yaml"),
)];

/// What an experiment file asks.
#[derive(Debug)]
pub(super) enum Asked {
    /// What one key of the broker's configuration does.
    Factor(ExperimentFile),
    /// What loads do on systems, which stand in the order of the file.
    Survey(Box<SurveyFile>, Vec<SystemFile>),
    /// What several topics cost consumers on several threads, on systems in the order of the file.
    Threads(ThreadsFile, Vec<SystemFile>),
}

impl Asked {
    fn question(&self) -> &str {
        match self {
            Self::Factor(file) => file.question.trim(),
            Self::Survey(file, _) => file.question.trim(),
            Self::Threads(file, _) => file.question.trim(),
        }
    }

    /// True if it takes profiles without being asked.
    pub(super) fn profiles_itself(&self) -> bool {
        matches!(self, Self::Survey(file, _) if file.profiles_itself())
    }
}

/// Reads an experiment file, or one of the published experiments by its name, and refuses what
/// cannot be run.
///
/// # Errors
/// Names the file, and the line where it can.
pub(super) fn read(path: &Path) -> anyhow::Result<Asked> {
    if !path.exists() {
        if let Some((name, text)) = SOURCES.iter().find(|(name, _)| Path::new(name) == path) {
            return parse(name, text, Path::new(DIRECTORY));
        }
        if path.extension().is_none() {
            let (name, known) = (path.display().to_string(), SOURCES.map(|(name, _)| name));
            bail!("{}, and not an existing file", config::none_of(&name, &known));
        }
    }
    let directory = path.parent().unwrap_or(Path::new("."));
    parse(&path.display().to_string(), &config::text(path)?, directory)
}

/// What tells the kinds of experiment files apart, and workloads of others from all of them.
#[derive(Default, Deserialize)]
struct Kind {
    factor: Option<IgnoredAny>,
    systems: Option<IgnoredAny>,
    threads: Option<IgnoredAny>,
    #[serde(rename = "partitionsPerTopic")]
    partitions_per_topic: Option<IgnoredAny>,
}

/// Reads the text of an experiment file; paths in it are those from `directory`.
fn parse(name: &str, text: &str, directory: &Path) -> anyhow::Result<Asked> {
    // The parse that follows reports a file that is no mapping of keys.
    let kind: Kind = config::parse(text).unwrap_or_default();
    if kind.partitions_per_topic.is_some() {
        bail!("{name} is a workload of the OpenMessaging Benchmark; run it with: moldau lab omb");
    }
    if kind.factor.is_some() || kind.systems.is_none() {
        let mut file: ExperimentFile = parsed(name, text)?;
        file.read_files(&mut user_file(directory)).with_context(|| name.to_owned())?;
        check(&file).with_context(|| name.to_owned())?;
        return Ok(Asked::Factor(file));
    }
    if kind.threads.is_some() {
        return threads(name, parsed(name, text)?, directory);
    }
    survey(name, parsed(name, text)?, directory)
}

/// A survey that can be run; paths of systems and of what loads name are those from `directory`.
///
/// # Errors
/// Says what is wrong with it.
pub(super) fn survey(name: &str, mut file: SurveyFile, directory: &Path) -> anyhow::Result<Asked> {
    file.read_files(&mut user_file(directory)).with_context(|| name.to_owned())?;
    file.check().with_context(|| name.to_owned())?;
    let systems = read_systems(name, &file.systems, directory)?;
    Ok(Asked::Survey(Box::new(file), systems))
}

/// The same of an experiment about threads.
///
/// # Errors
/// Says what is wrong with it.
pub(super) fn threads(name: &str, file: ThreadsFile, directory: &Path) -> anyhow::Result<Asked> {
    file.check().with_context(|| name.to_owned())?;
    let systems = read_systems(name, &file.systems, directory)?;
    Ok(Asked::Threads(file, systems))
}

/// The file of a command that asks one question.
///
/// # Errors
/// None for the names that there are.
pub(super) fn question<T: serde::de::DeserializeOwned>(name: &str) -> anyhow::Result<T> {
    let found = QUESTIONS.iter().find(|(known, _)| *known == name);
    let (_, text) = found.with_context(|| format!("unknown question {name}"))?;
    parsed(&format!("questions/{name}.yaml"), text)
}

/// Settings of a load as they stand in a survey, from an argument.
///
/// # Errors
/// Names what is wrong.
pub(super) fn settings(load: &str) -> anyhow::Result<Settings> {
    parsed("--load", &format!("{{{load}}}"))
}

/// The systems that the file `name` asks for.
fn read_systems(
    name: &str,
    systems: &[String],
    directory: &Path,
) -> anyhow::Result<Vec<SystemFile>> {
    let systems = systems.iter().map(|system| read_system(system, directory));
    systems.collect::<anyhow::Result<_>>().with_context(|| name.to_owned())
}

fn parsed<T: serde::de::DeserializeOwned>(name: &str, text: &str) -> anyhow::Result<T> {
    config::parse(text).map_err(|problem| anyhow!("{name}{problem}"))
}

/// A system by its name, or by the path of its file, which ends in `.yaml`.
pub(super) fn read_system(name: &str, directory: &Path) -> anyhow::Result<SystemFile> {
    if Path::new(name).extension().is_some_and(|extension| extension == "yaml") {
        let path = directory.join(name);
        return parse_system(&path.display().to_string(), &config::text(&path)?);
    }
    match SYSTEMS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => parse_system(&format!("systems/{name}.yaml"), text),
        None => {
            let known = SYSTEMS.map(|(known, _)| known);
            bail!("systems: {}, and not a path that ends in .yaml", config::none_of(name, &known))
        }
    }
}

/// A system that can be checked, by its name or by the path of its file, which ends in `.yaml`.
pub(super) fn read_checked_system(name: &str) -> anyhow::Result<SystemFile> {
    match CHECKED_SYSTEMS.iter().find(|(known, _)| *known == name) {
        Some((_, text)) => parse_system(&format!("checked-systems/{name}.yaml"), text),
        None => read_system(name, Path::new(".")),
    }
}

/// A system by its name or the path of its file, and settings of a load as they stand in a survey.
///
/// # Errors
/// Names what is wrong, and the line where it can.
pub(super) fn explained(system: &str, load: &str) -> anyhow::Result<(SystemFile, Settings)> {
    let file = read_system(system, Path::new("."))?;
    let mut settings = settings(load)?;
    settings.read_files(&mut user_file(Path::new("."))).context("--load")?;
    Ok((file, settings))
}

/// Reads files that loads name, whose paths are those from `directory`.
fn user_file(directory: &Path) -> impl FnMut(&str, u64) -> std::io::Result<Vec<u8>> {
    move |path, bytes_max| {
        let mut bytes = Vec::new();
        File::open(directory.join(path))?
            .take(bytes_max.saturating_add(1))
            .read_to_end(&mut bytes)?;
        if bytes.len() as u64 > bytes_max {
            let problem = format!("is larger than {} MiB", bytes_max >> 20);
            return Err(std::io::Error::other(problem));
        }
        Ok(bytes)
    }
}

fn parse_system(name: &str, text: &str) -> anyhow::Result<SystemFile> {
    let file: SystemFile = parsed(name, text)?;
    if let Some((unknown, known)) = file.unknown_variable() {
        let place = format!("${{{unknown}}}");
        let line = text.lines().position(|line| line.contains(&place)).map_or(0, |line| line + 1);
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let hint = match nearest(&unknown, &known) {
            Some(known) => format!("did you mean ${{{known}}}?"),
            None => format!("known: {}", known.join(", ")),
        };
        bail!("{name}:{line}: unknown variable {place}; {hint}");
    }
    file.check().with_context(|| name.to_owned())?;
    Ok(file)
}

/// Every level is a configuration that the broker takes.
fn check(file: &ExperimentFile) -> anyhow::Result<()> {
    file.check()?;
    for level in &file.factor.levels {
        let line = format!("{}: {}", file.factor.key, level.value);
        let parsed = config::parse::<config::broker::File>(&line);
        let made = parsed.and_then(|file| config::broker::config(file, &mut Sources::default()));
        if let Err(problem) = made {
            bail!("factor, level {}: {problem:#}", level.name);
        }
    }
    Ok(())
}

/// The experiments that can be asked for with their questions: files below the current directory,
/// then published ones. What cannot be read has the reason in place of its question.
pub(super) fn list() -> Vec<(String, String)> {
    // Without the directory there are no experiment files to list.
    let entries = std::fs::read_dir(DIRECTORY).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    let yaml = |path: &std::path::PathBuf| path.extension().is_some_and(|it| it == "yaml");
    let mut found: Vec<String> =
        paths.filter(yaml).map(|path| path.display().to_string()).collect();
    found.sort();
    found.extend(SOURCES.iter().map(|(name, _)| (*name).to_owned()));
    let asked = |name: String| {
        let question = match read(Path::new(&name)) {
            Ok(asked) => asked.question().to_owned(),
            Err(error) => format!("{error:#}"),
        };
        (name, question)
    };
    found.into_iter().map(asked).collect()
}

#[cfg(test)]
mod tests;
