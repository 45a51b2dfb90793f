//! The laboratory's generator beside librdkafka, and what is said where that is missing.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::world::moldau;

/// Exit code and words of a comparison with `arguments`, where the cache is empty.
fn compared(arguments: &[&str]) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(moldau());
    command.args(["lab", "selftest", "drivers", "--quick", "--out"]).arg(directory.path());
    let output = command.args(arguments).env("XDG_CACHE_HOME", directory.path()).output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn drivers_without_confluent_kafka_names_the_remedy() {
    let (code, said) = compared(&[]);
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("Python with confluent-kafka is not in "), "{said}");
    assert!(said.contains("cargo xtask peers"), "{said}");
}

#[test]
fn error_of_python_without_confluent_kafka_is_shown() {
    let directory = tempfile::tempdir().unwrap();
    let python = directory.path().join("python");
    fs::write(&python, "#!/bin/sh\necho no confluent-kafka here >&2\nexit 1\n").unwrap();
    fs::set_permissions(&python, Permissions::from_mode(0o755)).unwrap();
    let (code, said) = compared(&["--python", python.to_str().unwrap()]);
    assert_eq!(code, Some(4), "{said}");
    let words = "offering records through librdkafka: exit status: 1: no confluent-kafka here";
    assert!(said.contains(words), "{said}");
}

/// What the drivers measure here says nothing; that both are audited and told does.
#[cfg(feature = "real-clients")]
#[test]
fn drivers_offer_equal_records_without_loss() {
    use moldau_lab::checks::Verdict;
    use moldau_lab::experiments::self_test::{Drivers, Plan, run};
    use moldau_lab::experiments::{Conditions, Silent};
    use moldau_lab::self_test::SelfTest;

    let directory = tempfile::tempdir().unwrap();
    let python = std::env::var_os("MOLDAU_PYTHON").expect("the feature comes with the variable");
    let drivers =
        Drivers { python: Some(python.into()), rounds: 3, warmup_ms: 200, window_ms: 300 };
    let plan = Plan {
        test: SelfTest::Drivers,
        moldau: moldau().into(),
        conditions: Conditions {
            version: "0".into(),
            work_directory: directory.path().into(),
            seed: 1,
            quick: true,
        },
        drivers,
    };
    let result = run(&plan, &mut Silent).unwrap();
    let audit = result.audit;
    assert!(audit.is_clean() && result.verdict != Verdict::RecordsLost, "{audit:?}");
    // Six runs or more at each rate, of half a second.
    assert!(audit.sent >= 6 * (500 + 2_500) && audit.sent.is_multiple_of(1_000), "{audit:?}");
    assert_eq!((audit.acked, audit.delivered), (audit.sent, audit.sent));
    let record = result.self_test.unwrap();
    assert_eq!(record.tables.len(), 2);
    for table in &record.tables {
        assert_eq!(table.columns[1..3], ["moldau lab", "librdkafka"]);
        assert!(table.about.contains("librdkafka 2."), "{}", table.about);
    }
}
