//! Kafka's `server.properties`. Each line is taken, or has no meaning here, or is not supported;
//! the output accounts for each.

mod listeners;

use std::collections::HashMap;
use std::fmt;

use moldau_broker::{STANDARD_AUTHORIZER, TopicDefaults};

use super::properties::{Property, properties};
use super::yaml::{Map, Yaml};
use crate::config::broker::{self, File};
use crate::config::kafka::{Effect, effect};
use crate::config::{Problem, Sources, parse};

/// A file of the broker, and the account of the lines that it was made of.
#[derive(Debug)]
pub(crate) struct BrokerTranslation {
    map: Map,
    meaningless: Vec<String>,
    /// Settings that the broker does not support, each with its line.
    pub(crate) unsupported: Vec<String>,
}

/// Result of importing a line.
#[derive(Clone, Debug)]
enum Fate {
    /// It is part of a key of the broker's file.
    Taken(&'static str),
    /// Leaving it out loses nothing.
    Meaningless(String),
    /// The broker does not do what it asks for.
    Unsupported(String),
}

/// Translates the text of a file.
///
/// # Errors
/// A line that Kafka cannot read either.
pub(crate) fn server_properties(text: &str) -> Result<BrokerTranslation, Problem> {
    let mut account = Account::new(properties(text)?);
    let mut keys: Vec<(&'static str, Yaml)> = Vec::new();
    listeners::translate(&mut account, &mut keys);
    if account.value("authorizer.class.name").is_none_or(str::is_empty) {
        for key in ["super.users", "allow.everyone.if.no.acl.found"] {
            let reason = "as in Kafka, it has no effect without authorizer.class.name";
            account.decide(key, Fate::Meaningless(reason.to_owned()));
        }
    }
    for index in 0..account.properties.len() {
        if account.fates[index].is_some() {
            continue;
        }
        let property = &account.properties[index];
        let fate = match single(property) {
            Ok((key, value)) => {
                keys.push((key, value));
                Fate::Taken(key)
            }
            Err(fate) => fate,
        };
        account.fates[index] = Some(fate);
    }
    Ok(account.translation(keys))
}

/// The lines, each with its fate once it is decided.
#[derive(Debug)]
struct Account {
    properties: Vec<Property>,
    fates: Vec<Option<Fate>>,
    /// The last line of a key, which counts.
    places: HashMap<String, usize>,
}

impl Account {
    fn new(properties: Vec<Property>) -> Self {
        let places = properties.iter().enumerate();
        let places: HashMap<_, _> = places.map(|(place, it)| (it.key.clone(), place)).collect();
        let overruled = |(place, property): (usize, &Property)| {
            let last = *places.get(&property.key)?;
            let line = properties.get(last)?.line;
            let again = || Fate::Meaningless(format!("line {line} sets it again"));
            (last != place).then(again)
        };
        let fates = properties.iter().enumerate().map(overruled).collect();
        Self { properties, fates, places }
    }

    /// The value of a key.
    fn value(&self, key: &str) -> Option<&str> {
        let property = self.properties.get(*self.places.get(key)?)?;
        Some(property.value.as_str())
    }

    /// Decides on the line of a key, if there is one. The first decision stands.
    fn decide(&mut self, key: &str, fate: Fate) {
        let fates = self.places.get(key).and_then(|place| self.fates.get_mut(*place));
        if let Some(undecided @ None) = fates {
            *undecided = Some(fate);
        }
    }

    /// Decides anew on the line of a key: a part of what was taken has no translation.
    fn replace(&mut self, key: &str, fate: Fate) {
        if let Some(decided) = self.places.get(key).and_then(|it| self.fates.get_mut(*it)) {
            *decided = Some(fate);
        }
    }

    /// The value of a key, which becomes part of a key of the broker's file.
    fn take(&mut self, key: &str, part_of: &'static str) -> Option<String> {
        let value = self.value(key)?.to_owned();
        self.decide(key, Fate::Taken(part_of));
        Some(value)
    }

    fn translation(self, mut keys: Vec<(&'static str, Yaml)>) -> BrokerTranslation {
        let mut translation = BrokerTranslation {
            map: Map::default(),
            meaningless: Vec::new(),
            unsupported: Vec::new(),
        };
        let mut lines: HashMap<&str, Vec<usize>> = HashMap::new();
        for (Property { key, line, .. }, fate) in self.properties.iter().zip(self.fates) {
            match fate {
                Some(Fate::Taken(part_of)) => lines.entry(part_of).or_default().push(*line),
                Some(Fate::Meaningless(reason)) => {
                    translation.meaningless.push(format!("line {line}, {key}: {reason}"));
                }
                Some(Fate::Unsupported(reason)) => {
                    translation.unsupported.push(format!("line {line}, {key}: {reason}"));
                }
                None => {}
            }
        }
        // The keys of the broker's file have an order, which its reader knows from the page.
        let order = |name: &str| File::KEYS.iter().position(|(key, _)| *key == name);
        keys.sort_by_key(|(key, _)| order(key).unwrap_or(usize::MAX));
        for (key, value) in keys {
            let documentation = documentation(key);
            let comment = match lines.get(key).map(Vec::as_slice) {
                None => format!("Kafka's default. {documentation}"),
                Some([line]) => format!("Line {line}. {documentation}"),
                Some(lines) => {
                    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
                    format!("Lines {}. {documentation}", lines.join(", "))
                }
            };
            translation.map.put_described(key, value, comment);
        }
        translation
    }
}

/// Documentation of a key of the broker's file.
fn documentation(key: &str) -> String {
    if let Some((topic_key, text)) = TopicDefaults::documentation(key) {
        let unit = match key.rsplit('.').next() {
            Some(unit @ ("hours" | "minutes")) => format!(", in {unit}"),
            _ => String::new(),
        };
        return format!("Default of `{topic_key}` of topics{unit}. {text}");
    }
    let own = File::KEYS.iter().find(|(name, _)| *name == key);
    let text = own.map_or("", |(_, text)| text.trim());
    match key {
        "log.dirs" => format!("{text} Kafka's files in it are not imported."),
        _ => text.to_owned(),
    }
}

/// What the line of a key alone gives: a key of the broker's file and its value, or its fate.
fn single(property: &Property) -> Result<(&'static str, Yaml), Fate> {
    let (key, value) = (property.key.as_str(), property.value.trim());
    match key {
        "log.dirs" | "log.dir" => return directory(value).map(|value| ("log.dirs", value)),
        "authorizer.class.name" => return authorizer(value),
        "process.roles" if value == "controller" => {
            return Err(Fate::Unsupported("a controller without a broker".to_owned()));
        }
        _ => {}
    }
    if let Some((_, documentation)) = TopicDefaults::documentation(key)
        && let Some(reason) = documentation.strip_prefix("Stored only: ")
    {
        return Err(Fate::Meaningless(reason.trim_end_matches('.').to_owned()));
    }
    let known = File::KEYS.iter().map(|(name, _)| *name).chain(TopicDefaults::keys());
    if let Some(known) = known.into_iter().find(|known| *known == key && known.contains('.')) {
        let value = scalar(value);
        return match problem_with(known, &value) {
            None => Ok((known, value)),
            Some(problem) => Err(Fate::Unsupported(problem)),
        };
    }
    Err(match effect(key) {
        Some(Effect::None(reason)) => Fate::Meaningless(reason.to_owned()),
        Some(Effect::Unsupported(reason)) if HARMLESS.contains(&(key, value)) => {
            Fate::Meaningless(reason.to_owned())
        }
        Some(Effect::Unsupported(reason)) => Fate::Unsupported(reason.to_owned()),
        None => Fate::Unsupported("unknown to this broker".to_owned()),
    })
}

/// Values of keys that are not supported which ask for what the broker does anyway.
const HARMLESS: [(&str, &str); 4] = [
    ("default.replication.factor", "1"),
    ("delete.topic.enable", "true"),
    ("log.cleaner.enable", "true"),
    ("remote.log.storage.system.enable", "false"),
];

fn directory(value: &str) -> Result<Yaml, Fate> {
    let mut directories = value.split(',').map(str::trim).filter(|it| !it.is_empty());
    match (directories.next(), directories.next()) {
        (Some(one), None) => Ok(one.into()),
        (None, _) => Err(Fate::Unsupported("names no directory".to_owned())),
        (Some(_), Some(_)) => Err(Fate::Unsupported("only one directory is supported".to_owned())),
    }
}

fn authorizer(class: &str) -> Result<(&'static str, Yaml), Fate> {
    match class {
        "" => Err(Fate::Meaningless("there is no authorizer by default".to_owned())),
        // The class of brokers with ZooKeeper has the same rules.
        STANDARD_AUTHORIZER | "kafka.security.authorizer.AclAuthorizer" => {
            Ok(("authorizer.class.name", STANDARD_AUTHORIZER.into()))
        }
        _ => Err(Fate::Unsupported(format!("the only class is {STANDARD_AUTHORIZER}"))),
    }
}

/// A value as YAML has it.
fn scalar(value: &str) -> Yaml {
    match (value, value.parse::<u64>()) {
        ("true", _) => Yaml::Flag(true),
        ("false", _) => Yaml::Flag(false),
        (_, Ok(number)) => Yaml::Number(number),
        (text, Err(_)) => text.into(),
    }
}

/// Why the broker's file does not accept a key with this value.
fn problem_with(key: &'static str, value: &Yaml) -> Option<String> {
    let mut map = Map::default();
    if matches!(key, "super.users" | "allow.everyone.if.no.acl.found") {
        map.put("authorizer.class.name", STANDARD_AUTHORIZER);
    }
    map.put(key, value.clone());
    let checked = parse::<File>(&map.to_string())
        .and_then(|file| broker::config(file, &mut Sources::default()));
    let problem = format!("{:#}", checked.err()?);
    let start = format!("{key}: ");
    Some(problem.strip_prefix(&start).map_or(problem.clone(), str::to_owned))
}

/// The YAML file, headed by the lines that it leaves out.
impl fmt::Display for BrokerTranslation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [("No effect here", &self.meaningless), ("Not supported", &self.unsupported)];
        for (title, lines) in parts.into_iter().filter(|(_, lines)| !lines.is_empty()) {
            writeln!(f, "# {title}:")?;
            for line in lines {
                // A text of the other file must not end the comment.
                writeln!(f, "# - {}", line.replace(['\n', '\r'], " "))?;
            }
        }
        write!(f, "{}", self.map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The notes on what is not supported, and the file without its comments.
    fn translated(text: &str) -> (Vec<String>, String) {
        let translation = server_properties(text).unwrap();
        let printed = translation.to_string();
        let lines = printed.lines().filter(|line| !line.trim_start().starts_with('#'));
        (translation.unsupported, lines.collect::<Vec<_>>().join("\n"))
    }

    #[test]
    fn an_empty_file_listens_where_kafka_does() {
        let (unsupported, file) = translated("");
        assert_eq!(file, "listeners: PLAINTEXT://0.0.0.0:9092");
        assert!(unsupported.is_empty());
    }

    /// Leaving out what secures a listener would open it to everyone.
    #[test]
    fn a_listener_whose_security_has_no_translation_is_never_a_plain_one() {
        let text = "listeners=SASL_PLAINTEXT://:9092\nsasl.enabled.mechanisms=GSSAPI";
        let (unsupported, file) = translated(text);
        assert_eq!(file, "listeners: []");
        assert!(unsupported[0].contains("the listener is left out"), "{unsupported:?}");
        let (unsupported, file) = translated("listeners=SASL_PLAINTEXT://:9092");
        assert_eq!(file, "listeners: []");
        assert!(unsupported[0].starts_with("line 1, listeners: "), "{unsupported:?}");
        let (unsupported, file) = translated("listeners=A://:9092\nssl.keystore.location=x");
        assert_eq!(file, "");
        assert!(unsupported[0].contains("A is not a security protocol"), "{unsupported:?}");
        let (_, file) = translated("listeners=SSL://:9092");
        assert!(file.contains("certificate_file: FILE_WITH_THE_SECRET"), "{file}");
    }

    #[test]
    fn a_store_keeps_its_file_and_its_password_gets_one() {
        for (kind, location, is_read) in
            [("PKCS12", "a.store", true), ("JKS", "a.jks", false), ("JKS", "a.P12", true)]
        {
            let (unsupported, file) = translated(&format!(
                "listeners=SSL://:9092\nssl.keystore.type={kind}\n\
                 ssl.keystore.location={location}\nssl.keystore.password=changeit"
            ));
            assert!(file.contains(&format!("key_store_file: {location}")), "{file}");
            assert!(file.contains("key_store_password_file: FILE_WITH_THE_SECRET"), "{file}");
            assert_eq!(unsupported.len(), if is_read { 1 } else { 2 }, "{unsupported:?}");
            assert!(unsupported.iter().all(|it| !it.contains("changeit")));
        }
    }

    #[test]
    fn tokens_are_believed_as_before() {
        let (unsupported, file) = translated(
            "listeners=SASL_PLAINTEXT://:9092\nsasl.enabled.mechanisms=OAUTHBEARER\n\
             sasl.oauthbearer.jwks.endpoint.url=https://issuer.example/keys\n\
             sasl.oauthbearer.expected.audience=kafka\n\
             sasl.oauthbearer.jwks.endpoint.refresh.ms=60000",
        );
        for line in
            ["jwks_url: https://issuer.example/keys", "audience: kafka", "jwks_refresh_s: 60"]
        {
            assert!(file.contains(line), "{file}");
        }
        assert!(unsupported.is_empty(), "{unsupported:?}");
    }

    #[test]
    fn super_users_without_an_authorizer_are_left_out() {
        let (unsupported, file) = translated("listeners=A://:1\nsuper.users=User:a");
        assert!(!file.contains("super.users"), "{file}");
        assert_eq!(unsupported.len(), 1);
    }

    #[test]
    fn a_listener_of_a_host_name_is_reported_and_so_are_several_directories() {
        let text = "listeners=PLAINTEXT://kafka-1:9092\nlog.dirs=/a,/b";
        let (unsupported, file) = translated(text);
        assert_eq!(file, "");
        assert!(unsupported[0].contains("\"kafka-1\" is not an IP address"), "{unsupported:?}");
        assert!(unsupported[1].contains("one directory"), "{unsupported:?}");
    }
}
