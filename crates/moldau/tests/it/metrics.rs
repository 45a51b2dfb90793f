//! `/metrics` of brokers and of a proxy with every filter, against the page that lists them.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use moldau_encryption::KeyFile;

use crate::cluster::Services;
use crate::traffic::block_on;
use crate::world::{Process, moldau};

const PAGE: &str = include_str!("../../../../docs/metrics.md");

/// What is told of a metric: its type, its labels, what it counts.
type Told = (String, Vec<String>, String);

/// The metrics of some sections of the documentation, by name.
fn documented(sections: &[&str]) -> BTreeMap<String, Told> {
    let mut is_in = false;
    let rows = PAGE.lines().filter(|line| {
        if let Some(heading) = line.strip_prefix('#') {
            is_in = sections.contains(&heading.trim_start_matches(['#', ' ']));
        }
        is_in && line.starts_with("| `moldau_")
    });
    let cells = rows.map(|row| row.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>());
    let metric = |cells: Vec<&str>| {
        let [name, kind, labels, help] = cells[..] else { panic!("{cells:?}") };
        let labels = labels.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        (name.trim_matches('`').to_owned(), (kind.to_owned(), labels, help.to_owned()))
    };
    cells.map(metric).collect()
}

/// The metrics of an admin port, by name; labels are those of its samples.
fn served(page: &str) -> BTreeMap<String, Told> {
    let mut all = BTreeMap::new();
    let mut help = BTreeMap::new();
    for line in page.lines() {
        if let Some((name, text)) = line.strip_prefix("# HELP ").and_then(|it| it.split_once(' ')) {
            help.insert(name, text.trim_end_matches('.'));
        }
        let Some(family) = line.strip_prefix("# TYPE ") else { continue };
        let (name, kind) = family.split_once(' ').unwrap();
        let sample = match kind {
            "counter" => format!("{name}_total"),
            _ => name.to_owned(),
        };
        let labels = labels(page, &sample);
        let told = (kind.to_owned(), labels, help[name].to_owned());
        assert!(all.insert(sample, told).is_none(), "{name} stands twice");
    }
    all
}

/// The labels of the first sample; none where there is no sample.
fn labels(page: &str, sample: &str) -> Vec<String> {
    let labelled = page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix('{'));
    let pairs = labelled.and_then(|line| line.split('}').next()).unwrap_or_default();
    let names = pairs.split(',').filter_map(|pair| Some(pair.split_once('=')?.0.to_owned()));
    names.collect()
}

#[track_caller]
fn agree(served: &BTreeMap<String, Told>, sections: &[&str]) {
    let documented = documented(sections);
    let names = |all: &BTreeMap<String, Told>| all.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(served), names(&documented));
    for (name, (kind, labels, help)) in served {
        let (known_kind, known_labels, known_help) = &documented[name];
        assert_eq!((kind, help), (known_kind, known_help), "{name}");
        // Of a family without a sample its labels are not known.
        assert!(labels.is_empty() || labels == known_labels, "{name}: {labels:?}");
    }
}

#[test]
fn the_page_lists_every_metric_of_a_broker() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(&dir.path().join("data"), &[]);
    let page = broker.page("/metrics");
    agree(&served(&page), &["`moldau broker`", "Without `--cluster`"]);
    assert_eq!(labels("moldau_requests_total{api=\"Fetch\"} 1", "moldau_requests_total"), ["api"]);
}

#[test]
fn the_page_lists_every_metric_of_a_broker_of_a_cluster() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let broker = services.broker(1).await;
        agree(&served(&broker.page("/metrics")), &["`moldau broker`", "With `--cluster`"]);
    });
}

#[test]
fn the_page_lists_every_metric_of_a_proxy_and_of_its_filters() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(&dir.path().join("data"), &[]);
    let keys = dir.path().join("keys");
    KeyFile::init(&keys).unwrap();
    let text = format!(
        "admin: 127.0.0.1:0
virtual_clusters:
  - name: main
    bootstrap: 127.0.0.1:0
    upstream: [\"{}\"]
    filters:
      - audit: {{file: audit.jsonl}}
      - authorization: {{rules: [allow User:* All any *]}}
      - chaos: {{rules: [{{apis: [Fetch], probability: 0, fault: disconnect}}]}}
      - header: {{rules: [{{topics: [a], on: produce, remove: [b]}}]}}
      - mask: {{rules: [{{topics: [a], fields: [b], masking: null}}]}}
      - quota: {{limits: [{{entity: {{client_id: a}}, requests_per_second: 1}}]}}
      - record_validation: {{rules: [{{topics: [a], value: {{bytes_max: 9}}}}]}}
      - record_encryption:
          template: KEK_$(topicName)
          kms: {{key_file: {{path: \"{}\"}}}}
",
        broker.address,
        keys.display()
    );
    let config = dir.path().join("proxy.yaml");
    std::fs::write(&config, text).unwrap();
    let proxy = Process::start(proxy_command(dir.path(), &config));
    agree(&served(&proxy.page("/metrics")), &["`moldau proxy`", "Filters"]);
}

fn proxy_command(dir: &Path, config: &Path) -> Command {
    let mut command = Command::new(moldau());
    command.arg("proxy").arg("--config").arg(config).current_dir(dir);
    command
}
