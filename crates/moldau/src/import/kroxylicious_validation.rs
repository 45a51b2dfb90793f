//! Kroxylicious's filter `RecordValidation` as ours.

use super::foreign::{Foreign, Notes, Section};
use super::yaml::Map;

/// Translates the settings of the filter. The first rule that names a topic is its rule there too,
/// and the default is one for all other topics.
pub(super) fn record_validation(config: Foreign, notes: &mut Notes) -> Map {
    let mut config = config.section(notes);
    let mut rules = Vec::new();
    let theirs = config.take(&["rules"]).map(|rules| rules.list(notes)).unwrap_or_default();
    for rule in theirs {
        let mut rule = rule.section(notes);
        let names = rule.take(&["topicNames"]).map(|names| names.list(notes)).unwrap_or_default();
        let names: Vec<String> = names.into_iter().filter_map(|name| name.text(notes)).collect();
        if names.is_empty() {
            notes.add(rule.path_of("topicNames"), "names no topic, so the rule matches none");
            continue;
        }
        rules.push(translated(rule, names, notes));
    }
    if let Some(rule) = config.take_section(&["defaultRule"], notes) {
        rules.push(translated(rule, vec!["*".to_owned()], notes));
    }
    config.finish(notes);
    let mut map = Map::default();
    map.put("rules", rules);
    map
}

fn translated(mut rule: Section, topics: Vec<String>, notes: &mut Notes) -> Map {
    let mut map = Map::default();
    map.put("topics", topics);
    for (own, theirs) in [("key", "keyRule"), ("value", "valueRule")] {
        if let Some(field) = rule.take_section(&[theirs], notes) {
            map.put(own, of_field(field, notes));
        }
    }
    rule.finish(notes);
    map
}

/// Rule for keys or values. By default they may be null there, but not empty.
fn of_field(mut field: Section, notes: &mut Notes) -> Map {
    let mut map = Map::default();
    map.put("allow_null", field.take_flag(&["allowNulls"], notes).unwrap_or(true));
    map.put("allow_empty", field.take_flag(&["allowEmpty"], notes).unwrap_or(false));
    if let Some(mut theirs) = field.take_section(&["syntacticallyCorrectJson"], notes) {
        let (mut json, mut content) = (Map::default(), Map::default());
        json.put_some("unique_keys", theirs.take_flag(&["validateObjectKeysUnique"], notes));
        theirs.finish(notes);
        content.put("json", json);
        map.put("content", content);
    }
    if field.take(&["schemaValidationConfig"]).is_some() {
        let what = "is a registry schema; put it into a file for `json_schema_file`";
        notes.add(field.path_of("schemaValidationConfig"), what);
    }
    field.finish(notes);
    map
}
