//! Profiles that are fresh, stale or large, in tables and flame graphs.

use super::*;
use crate::sample;
use moldau_measure::profile::{MissingProfile, Tool, sha256};

fn profile(arm: &str, role: &str, text: &str) -> ProfileRecord {
    ProfileRecord {
        case: sample::FIXED.into(),
        arm: arm.into(),
        role: role.into(),
        tool: Tool::Moldau,
        file: format!("profiles/{arm}-{role}.folded"),
        bytes: text.len() as u64,
        sha256: sha256(text.as_bytes()),
        program_sha256: "program".into(),
        started_unix_ms: 0,
        window_ms: 6_000,
        text: Some(text.into()),
    }
}

fn result(taken: Vec<ProfileRecord>) -> RunResult {
    let reason = "perf cannot be run".into();
    let missing = MissingProfile {
        case: sample::FIXED.into(),
        arm: "proxy".into(),
        role: "proxy".into(),
        reason,
    };
    let missing = vec![missing];
    let profiles = ProfilesRecord { moldau_sha256: "program".into(), taken, missing };
    RunResult { profiles: Some(profiles), ..sample::result() }
}

#[test]
fn kinds_of_work_have_shares_and_their_part_of_the_cost() {
    let direct = profile("direct", "broker", "t;moldau_broker::a;__libc_send 50\nt;memcpy 150\n");
    let proxy = profile("proxy", "broker", "t;memcpy 50\n");
    let tables = tables(&result(vec![direct, proxy]));
    let [kinds, .., without] = tables.as_slice() else { panic!("two tables") };
    let columns: Vec<&str> = kinds.columns.iter().map(|column| column.name.as_str()).collect();
    assert_eq!(columns, ["kind of work", "direct, broker", "proxy, broker"]);
    let row = |name: &str| kinds.rows.iter().find(|row| row[0] == name).unwrap();
    assert_eq!(row("network")[2], "0.0 %, 0.000");
    // 317.5 ms a run on average, over 240,000 records of 1 KB.
    assert_eq!(row("all")[1], "100.0 %, 1.35");
    assert_eq!(row("copying memory")[1], "75.0 %, 1.02");
    assert_eq!(row("samples")[1..], ["200", "50"]);
    assert_eq!(without.rows, [[sample::FIXED, "proxy", "proxy", "perf cannot be run"]]);
}

#[test]
fn stale_profile_is_reported_and_not_drawn() {
    let fresh = profile("direct", "broker", "t;fresh_function 50\n");
    let text = Some("t;stale_function 50\n".into());
    let stale = ProfileRecord { text, ..profile("proxy", "broker", "t;other 50\n") };
    let result = result(vec![fresh, stale]);
    let tables = tables(&result);
    let without = tables.last().unwrap();
    assert!(without.rows[0][3].contains("stale: profiles/proxy-broker.folded"), "{without:?}");
    let page = flames(&result).unwrap();
    assert!(page.contains("fresh_function") && !page.contains("stale_function"), "{page}");
    for outside in ["src=", "href=", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn flame_graphs_keep_within_their_bytes() {
    let mut text = String::new();
    for at in 0..900 {
        let frames: Vec<String> =
            (0..40).map(|depth| format!("function_{at}_{depth}<T>")).collect();
        text += &format!("t;{} 1\n", frames.join(";"));
    }
    let profiles: Vec<ProfileRecord> =
        (0..8).map(|at| profile(&format!("arm-{at}"), "broker", &text)).collect();
    let result = result(profiles);
    let (shown, _) = split(result.profiles.as_ref().unwrap());
    assert!(frames(&shown).len() <= FLAMES_BYTES_MAX);
    assert!(
        serde_json::to_string(&frames_above(&shown, SHARE_MIN)).unwrap().len() > FLAMES_BYTES_MAX
    );
}

#[test]
fn differing_functions_are_listed_for_each_arm_against_the_first() {
    let shown = [
        profile("direct", "broker", "t;a 50\n"),
        profile("proxy", "broker", "t;a 50\nt;<b> 150\n"),
        profile("proxy", "proxy", "t;c 50\n"),
    ];
    let result = result(shown.to_vec());
    let (shown, _) = split(result.profiles.as_ref().unwrap());
    let grids = differences(&shown);
    let [grid] = grids.as_slice() else { panic!("one pair") };
    assert_eq!(grid.title, format!("{}, broker: proxy against direct", sample::FIXED));
    assert_eq!(
        grid.rows,
        [["<b>", "0.0 %", "75.0 %", "+75.0 points"], ["a", "100.0 %", "25.0 %", "-75.0 points"]]
    );
}
