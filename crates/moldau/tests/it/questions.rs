//! The questions of operators, asked in seconds of brokers that the laboratory starts itself, and
//! asked again after an interruption. What they measure here says nothing.

use std::path::{Path, PathBuf};

use moldau_lab::experiments::Silent;
use moldau_lab::experiments::faults::{self, Plan};
use moldau_lab::pages::page;

use crate::world::{conditions, result_of, run, system};

const SURVEY: &str = "\
question: How does latency grow?
hypothesis: it does
systems: [moldau-os]
rounds: 3
warmup_ms: 20
window_ms: 200
load: {record_bytes: 256, consumers: 1}
scenarios:
  - {name: full speed}
asks:
  latency: {full_speed_percent: [2, 5, 10]}
";

/// The directory of the only result below `runs`.
fn only_result(runs: &Path) -> PathBuf {
    let entries = std::fs::read_dir(runs).unwrap().map(|entry| entry.unwrap().path());
    let mut found = entries.filter(|path| path.join("manifest.json").is_file());
    let only = found.next().unwrap();
    assert_eq!(found.next(), None);
    only
}

#[test]
fn resumed_experiment_keeps_finished_runs() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("survey.yaml"), SURVEY).unwrap();
    let asked = ["lab", "run", &path("survey.yaml"), "--out", &path("runs"), "--json"];
    let whole = result_of(&run(asked));
    let kept = only_result(Path::new(&path("runs")));
    let finished = std::fs::read_to_string(kept.join("finished.jsonl")).unwrap();
    assert_eq!(finished.lines().count(), whole.runs.len() + 1);

    // The power goes in the middle of the sixth line: full speed and four runs are there.
    let ends: Vec<usize> = finished.match_indices('\n').map(|(at, _)| at + 1).collect();
    std::fs::write(kept.join("finished.jsonl"), &finished[..(ends[4] + ends[5]) / 2]).unwrap();
    for made in ["result.json", "report.html", "report.md"] {
        std::fs::remove_file(kept.join(made)).unwrap();
    }
    let dir = kept.to_str().unwrap();
    let resumed = result_of(&run(["lab", "resume", dir]));
    assert_eq!((&resumed.id, resumed.started_unix_ms), (&whole.id, whole.started_unix_ms));
    assert!(resumed.runs[..4] == whole.runs[..4] && resumed.runs.len() >= 12);
    assert!(resumed.runs[4] != whole.runs[4]);
    assert_eq!(resumed.cases(), whole.cases());
    assert!(resumed.audit.is_clean() && kept.join("report.html").is_file());
    let note = resumed.checks.iter().find(|check| check.name.contains("resumed")).unwrap();
    assert!(note.found.starts_with("4 runs"), "{note:?}");
    for report in ["report.md", "report.html"] {
        let report = std::fs::read_to_string(kept.join(report)).unwrap();
        assert!(report.contains("Latency by load on moldau-os"), "{report}");
        assert!(report.contains("resumed after an interruption"), "{report}");
    }

    let refused = |why: &str| {
        let output = run(["lab", "resume", dir]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(4) && said.contains(why), "{said}");
    };
    refused("the experiment is complete");
    std::fs::remove_file(kept.join("result.json")).unwrap();
    std::fs::write(path("survey.yaml"), SURVEY.replace("256", "257")).unwrap();
    refused("its plan is another");
}

/// Systems of other loads got rates too, of what they took at full speed.
#[test]
fn relative_rates_follow_the_systems_of_the_first_scenario() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let survey = SURVEY
        .replace("systems: [moldau-os]", "systems: [moldau-os, moldau]")
        .replace("{name: full speed}", "{name: full speed, systems: [moldau-os]}")
        .replace(
            "asks:",
            "  - {name: slow, systems: [moldau], load: {records_per_second: 500}}\nasks:",
        );
    std::fs::write(path("survey.yaml"), survey).unwrap();
    let result =
        result_of(&run(["lab", "run", &path("survey.yaml"), "--out", &path("runs"), "--json"]));
    let arms_of = |case: &str| {
        let runs = result.runs.iter().filter(|run| run.case == case);
        runs.map(|run| run.arm.as_str()).collect::<std::collections::BTreeSet<_>>()
    };
    let cases = result.cases();
    assert_eq!(cases.len(), 2 + 3, "{cases:?}");
    for case in cases {
        let arm = if case == "slow" { "moldau" } else { "moldau-os" };
        assert_eq!(arms_of(case), [arm].into(), "{case}");
    }
}

#[test]
fn broker_recovers_from_each_fault_without_loss() {
    let directory = tempfile::tempdir().unwrap();
    let (system, installations) = system();
    let plan = Plan {
        names: vec!["moldau".into()],
        systems: vec![system],
        installations,
        conditions: conditions(directory.path()),
        rounds: 1,
        window_ms: 4_000,
        rate: 500,
        record_bytes: 200,
    };
    let result = faults::run(&plan, &mut Silent).unwrap();
    assert_eq!(
        result.cases(),
        ["undisturbed", "connections cut", "broker stopped", "broker killed"]
    );
    for run in &result.runs {
        // 500 a second for five seconds, warm-up included; none without an answer.
        assert!(run.audit.is_clean() && run.audit.acked == 2_500, "{}: {:?}", run.case, run.audit);
    }
    let longest = |case: &str| {
        let run = result.runs.iter().find(|run| run.case == case).unwrap();
        run.latency.as_ref().unwrap().response.summary.max_ns
    };
    // A record that is due at the beginning of a stop of 1 s waits until its end.
    assert!(longest("broker stopped") > 900_000_000);
    let told = page(&result).unwrap().answer.join(" ");
    assert!(told.contains("On moldau 0 of 10,000 acknowledged records were lost"), "{told}");
}
