//! The files that are part of the program can be run, and mistakes in files are reported in full.

use super::*;

const PROFILES: &str = include_str!("../../../../../experiments/produce-profiles.yaml");
const DOCUMENTATION: &str = include_str!("../../../../../docs/experiments.md");

fn factor(text: &str) -> anyhow::Result<ExperimentFile> {
    match parse("test", text, Path::new("."))? {
        Asked::Factor(file) => Ok(file),
        Asked::Survey(..) | Asked::Threads(..) => bail!("another kind"),
    }
}

fn refused(text: &str) -> String {
    let outcome = parse("test.yaml", text, Path::new("."));
    format!("{:#}", outcome.map(|_| ()).unwrap_err())
}

fn system_refused(text: &str) -> String {
    format!("{:#}", parse_system("test.yaml", text).unwrap_err())
}

fn source(name: &str) -> &'static str {
    SOURCES.iter().find(|(known, _)| *known == name).unwrap().1
}

/// The lines of a text, counted from 1, in which a key stands.
fn line_of(text: &str, key: &str) -> usize {
    text.lines().position(|line| line.trim_start_matches([' ', '-']).starts_with(key)).unwrap() + 1
}

#[test]
fn the_experiment_on_produce_profiles_can_be_run() {
    let file = factor(PROFILES).unwrap();
    assert_eq!(file.objective.level, "natural");
    assert_eq!(file.factor.levels[0].value, 0);
}

#[test]
fn an_unknown_name_is_refused_with_the_published_names() {
    let refused = |path| read(Path::new(path)).unwrap_err().to_string();
    let told = refused("sources/chronick");
    assert!(told.contains("\"sources/chronick\" is not one of sources/chronik, "), "{told}");
    assert!(told.contains("did you mean \"sources/chronik\"?"), "{told}");
    assert!(refused("chronik.yaml").starts_with("chronik.yaml: No such file"));
}

#[test]
fn every_published_experiment_and_every_system_can_be_run() {
    for (name, text) in SOURCES {
        let (asked_for, systems, is_whole) = match parse(name, text, Path::new(".")).unwrap() {
            Asked::Survey(file, systems) => {
                (file.systems, systems, !file.claims.is_empty() && file.source.is_some())
            }
            Asked::Threads(file, systems) => {
                (file.systems, systems, !file.claims.is_empty() && file.source.is_some())
            }
            Asked::Factor(_) => panic!("{name} has no systems"),
        };
        assert_eq!(systems.len(), asked_for.len());
        assert!(is_whole, "{name}");
    }
    for (name, _) in SYSTEMS {
        read_system(name, Path::new(".")).unwrap();
    }
    let on_disk =
        std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/systems"));
    let names: Vec<String> = on_disk
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), SYSTEMS.len());
    assert!(names.iter().all(|name| SYSTEMS.iter().any(|(known, _)| known == name)), "{names:?}");
}

#[test]
fn a_workload_of_the_benchmark_is_refused_with_the_command_that_runs_it() {
    let problem = refused("name: w\ntopics: 1\npartitionsPerTopic: 16\nmessageSize: 1024\n");
    assert!(problem.starts_with("test.yaml is a workload") && problem.ends_with("moldau lab omb"));
}

#[test]
fn an_unknown_key_is_refused_with_its_line() {
    let broken = PROFILES.replacen("hypothesis:", "hypotesis:", 1);
    let line = line_of(PROFILES, "hypothesis:");
    let problem = refused(&broken);
    assert!(problem.starts_with(&format!("test.yaml:{line}:")), "{problem}");
    assert!(problem.contains("did you mean \"hypothesis\"?"), "{problem}");
}

#[test]
fn a_mistake_in_a_survey_is_reported_with_line_and_nearest_key() {
    let chronik = source("sources/chronik");
    let mistake = |right: &str, wrong: &str| {
        let problem = refused(&chronik.replacen(right, wrong, 1));
        let line = line_of(chronik, right.trim());
        let rest = problem.strip_prefix(&format!("test.yaml:{line}:"));
        let rest = rest.unwrap_or_else(|| panic!("line {line}: {problem}"));
        rest.split_once(": ").unwrap().1.to_owned()
    };
    assert_eq!(
        mistake("outstanding: 1\n", "outstandin: 1\n"),
        "unknown key \"outstandin\"; did you mean \"outstanding\"?"
    );
    assert_eq!(
        mistake("compression: snappy", "compression: snapy"),
        "\"snapy\" is not one of none, gzip, snappy, lz4, zstd; did you mean \"snappy\"?"
    );
    assert_eq!(
        mistake("figure: service_p99", "figure: servce_p99").split("; ").last().unwrap(),
        "did you mean \"service_p99\"?"
    );
    assert_eq!(
        mistake("window_ms: 5000", "window_ms: long"),
        "window_ms: long is not a whole number, 0 or more; its unit is milliseconds"
    );
}

#[test]
fn an_unknown_system_is_refused_with_the_nearest() {
    let chronik = source("sources/chronik");
    assert_eq!(
        refused(
            &chronik
                .replacen("[moldau, kafka]", "[moldau, kafak]", 1)
                .replace("systems: [kafka]", "systems: [kafak]")
        ),
        "test.yaml: systems: \"kafak\" is not one of moldau, moldau-os, moldau-os-tls, \
         moldau-os-tls-ring, moldau-proxy, moldau-os-proxy, moldau-os-proxy-encryption, \
         moldau-cluster, kafka, kafka-tls, kafka-3, kafka-3.9-kraft, kafka-3.9-zookeeper, \
         kroxylicious, kafka-kroxylicious, kafka-kroxylicious-encryption, external; \
         did you mean \"kafka\"?, and not a path that ends in .yaml"
    );
}

#[test]
fn a_mistake_in_a_system_is_reported_with_line_and_nearest_word() {
    let kafka = SYSTEMS.iter().find(|(name, _)| *name == "kafka").unwrap().1;
    assert_eq!(
        system_refused(&kafka.replacen("tcp: ${address.clients}", "tcp: ${adress.clients}", 1)),
        format!(
            "test.yaml:{}: unknown variable ${{adress.clients}}; did you mean \
             ${{address.clients}}?",
            line_of(kafka, "tcp: ")
        )
    );
    let problem = system_refused(&kafka.replacen("prepare:", "prepar:", 1));
    assert!(
        problem.starts_with(&format!("test.yaml:{}:", line_of(kafka, "prepare:"))),
        "{problem}"
    );
    assert!(problem.ends_with("unknown key \"prepar\"; did you mean \"prepare\"?"), "{problem}");
    let problem = system_refused(&kafka.replacen("signal: term", "signal: trem", 1));
    let wrong = "\"trem\" is not one of term, int, quit, kill; did you mean \"term\"?";
    assert!(problem.ends_with(wrong), "{problem}");
    assert_eq!(
        system_refused(&kafka.replacen("role: broker", "role: server", 1)),
        "test.yaml: invalid plan: process node: role: \"server\" is not one of broker, proxy, \
         database, store"
    );
}

#[test]
fn a_level_that_the_broker_refuses_is_named() {
    let problem = refused(&PROFILES.replacen("commit_delay_ms", "commit_delay", 1));
    assert!(problem.contains("level natural: unknown key \"commit_delay\""), "{problem}");
}

#[test]
fn every_key_is_documented() {
    let texts =
        SOURCES.iter().chain(&SYSTEMS).chain(&QUESTIONS).map(|(_, text)| *text).chain([PROFILES]);
    for text in texts {
        // Files within a system file have keys of their own.
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let mut inside = None;
        for line in lines {
            let indent = line.len() - line.trim_start().len();
            if inside.is_some_and(|outer| indent > outer) {
                continue;
            }
            inside = line.ends_with(": |").then_some(indent);
            let Some((key, _)) = line.trim_start_matches([' ', '-']).split_once(": ") else {
                continue;
            };
            if key.chars().all(|c| c.is_ascii_lowercase() || c == '_') {
                assert!(DOCUMENTATION.contains(&format!("`{key}`")), "{key}");
            }
        }
    }
}

#[test]
fn a_load_follows_from_settings_of_a_survey() {
    let (_, load) = explained("moldau", "partitions: 2, compression: lz4").unwrap();
    assert_eq!(load.partitions, Some(2));
    let (_, usual) = explained("moldau", "").unwrap();
    assert_eq!(usual, Settings::default());
    let refused = format!("{:#}", explained("moldau", "partition: 2").unwrap_err());
    assert!(refused.contains("partitions"), "{refused}");
}
