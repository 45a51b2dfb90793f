//! Folding, categories, differences and staleness, on made-up stacks.

use super::categories::{FRAMES, Match, Rule, THREADS};
use super::stacks::Node;
use super::*;
use crate::cpu::ProcessUsage;

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() < 1e-12
}

fn record(text: &str) -> (ProfilesRecord, ProfileRecord) {
    let profile = ProfileRecord {
        case: "20 MB/s, 16 KB".into(),
        arm: "direct".into(),
        role: "broker".into(),
        tool: Tool::Moldau,
        file: file_name("20 MB/s, 16 KB", "direct", "broker"),
        bytes: 0,
        sha256: sha256(text.as_bytes()),
        program_sha256: "program".into(),
        started_unix_ms: 0,
        window_ms: 1_000,
        text: Some(text.into()),
    };
    let all = ProfilesRecord {
        moldau_sha256: "program".into(),
        taken: vec![profile.clone()],
        missing: Vec::new(),
    };
    (all, profile)
}

#[test]
fn folded_stacks_become_a_tree_whose_frames_hold_what_they_called() {
    let text = "net;run;<A as B<C, D>>::write::h0123456789abcdef 6\n\
                net;run 1\n\
                [C2 CompilerThre tid=12];Compile::Compile 2\n\
                net;run;read 1\n";
    let stacks = Stacks::parse(text).unwrap();
    assert_eq!(stacks.samples(), 10);
    let node = |depth, name, samples| Node { depth, name, samples };
    assert_eq!(
        stacks.tree(0.0),
        [
            node(0, "C2 CompilerThre", 2),
            node(1, "Compile::Compile", 2),
            node(0, "net", 8),
            node(1, "run", 8),
            node(2, "<A as B<C, D>>::write", 6),
            node(2, "read", 1),
        ]
    );
    let names =
        |share_min| -> Vec<&str> { stacks.tree(share_min).iter().map(|node| node.name).collect() };
    assert_eq!(names(0.5), ["net", "run", "<A as B<C, D>>::write"]);
    assert!(Stacks::parse("a;b 1\nnothing\n").unwrap_err().contains("line 2"));
    assert!(Stacks::parse("a;b -1\n").is_err());
}

#[test]
fn every_rule_puts_its_names_into_its_category() {
    let example = |(_, by, patterns): &Rule, at: usize| match by {
        Match::Starts => format!("{}x", patterns[at]),
        Match::Contains => format!("/x/{}x", patterns[at]),
    };
    for rule in &THREADS {
        for at in 0..rule.2.len() {
            let name = example(rule, at);
            assert_eq!(Category::of(&[&name, "memcpy"]), rule.0, "{name}");
        }
    }
    for rule in &FRAMES {
        for at in 0..rule.2.len() {
            let name = example(rule, at);
            assert_eq!(Category::of(&["thread", "moldau_broker::run", &name]), rule.0, "{name}");
        }
    }
    let is_ruled = |category| THREADS.iter().chain(&FRAMES).any(|rule| rule.0 == category);
    assert!(SHOWN.into_iter().all(|it| it == Category::Other || is_ruled(it)));
}

#[test]
fn innermost_frame_that_is_known_decides() {
    for (frames, category) in [
        (vec!["moldau-net-0", "tokio::runtime::run", "rustls::conn::f", "core::ops::f"], "TLS"),
        (vec!["t", "rustls::conn::f", "aws_lc_0_39_0_aes_gcm_encrypt"], "cryptography"),
        (vec!["t", "moldau_records::batch::f", "moldau_records::crc::crc32c"], "checksums"),
        (vec!["t", "moldau_net::connection::f", "__libc_send"], "network"),
        (vec!["t", "moldau_broker::dispatch", "core::iter::f"], "rest of the product"),
        (
            vec!["t", "kafka/log/UnifiedLog.append", "sun/nio/ch/FileChannelImpl.write", "write"],
            "disk",
        ),
        (
            vec![
                "t",
                "sun/nio/ch/SocketDispatcher.write",
                "sun/nio/ch/FileDispatcherImpl.write0",
                "__GI_write",
            ],
            "network",
        ),
        (vec!["t", "moldau_net::connection::f", "__GI___writev"], "network"),
        (
            vec!["t", "kafka/server/X", "sun/nio/ch/FileChannelImpl.transferTo0", "sendfile64"],
            "network",
        ),
        (vec!["t", "org/apache/kafka/common/network/Selector.poll"], "rest of the product"),
        (vec!["GC Thread#0", "G1ParScanThreadState::trim", "memcpy"], "garbage collection"),
        (vec!["t", "start_thread"], "other"),
        (vec!["t"], "other"),
    ] {
        assert_eq!(Category::of(&frames).label(), category, "{frames:?}");
    }
}

#[test]
fn shares_of_the_categories_are_the_whole() {
    let text = "t;moldau_broker::a;memcpy 3\nt;nothing 1\nGC Thread#1;x 2\nt;__libc_send 1\n";
    let stacks = Stacks::parse(text).unwrap();
    let shares = stacks.shares();
    assert!(near(shares.iter().map(|(_, share)| share).sum(), 1.0), "{shares:?}");
    let share = |of| shares.iter().find(|(category, _)| *category == of).unwrap().1;
    assert!(near(share(Category::Copy), 3.0 / 7.0));
    assert!(near(share(Category::Collection), 2.0 / 7.0));
    assert!(near(share(Category::Network), 1.0 / 7.0));
    assert!(near(share(Category::Other), 1.0 / 7.0));
}

#[test]
fn functions_whose_own_share_differs_most_come_first() {
    let before = Stacks::parse("t;a 5\nt;a;b 5\n").unwrap();
    let after = Stacks::parse("t;a 10\nt;a;c 9\nt;x;b 1\n").unwrap();
    let changes = after.changes(&before, 8);
    let told: Vec<_> = changes.iter().map(|it| (it.function, it.before, it.after)).collect();
    assert_eq!(told.len(), 2, "what is as before is not told: {told:?}");
    assert!(matches!(told[0], ("b", before, after) if near(before, 0.5) && near(after, 0.05)));
    assert!(matches!(told[1], ("c", before, after) if near(before, 0.0) && near(after, 0.45)));
    assert_eq!(after.changes(&before, 1).len(), 1);
    assert!(after.changes(&after, 8).is_empty());
}

#[test]
fn a_profile_is_as_long_as_its_least_busy_process_needs() {
    assert_eq!(profile_window_ms(2_000, None), 5_000);
    assert_eq!(profile_window_ms(8_000, Some(0.5)), 8_000);
    // 199 samples for each second of processor time.
    assert_eq!(profile_window_ms(2_000, Some(0.1)), 8_000);
    assert_eq!(profile_window_ms(2_000, Some(1e-300)), 30_000);
    assert_eq!(profile_window_ms(90_000, Some(1.0)), 30_000);
    let usage =
        |role: &str, cpu_ns| ProcessUsage { role: role.into(), cpu_ns, ..ProcessUsage::default() };
    let first = [usage("broker", 400), usage("generator", 10), usage("proxy", 300)];
    let second = [usage("broker", 0), usage("proxy", 500)];
    let windows = [(&first[..], 1_000), (&second[..], 2_000)];
    assert_eq!(least_share(windows.into_iter()), Some(0.25));
}

#[test]
fn stale_profile_is_refused() {
    let (all, profile) = record("t;moldau_broker::a 50\n");
    assert_eq!(all.stacks(&profile).unwrap().samples(), 50);
    let refused = |profile: &ProfileRecord| all.stacks(profile).unwrap_err();
    let changed = ProfileRecord { text: Some("t;moldau_broker::a 4\n".into()), ..profile.clone() };
    assert!(refused(&changed).starts_with("stale: profiles/"), "{}", refused(&changed));
    let other = ProfileRecord { program_sha256: "another".into(), ..profile.clone() };
    assert!(refused(&other).contains("another program"), "{}", refused(&other));
    // What others run is not this program.
    let java = ProfileRecord { tool: Tool::AsyncProfiler, ..other };
    assert!(all.stacks(&java).is_ok());
    let gone = ProfileRecord { text: None, ..profile };
    assert!(refused(&gone).contains("is not there"));
    let (all, few) = record("t;moldau_broker::a 49\n");
    assert_eq!(all.stacks(&few).unwrap_err(), "49 samples in 1 s, of 50 at least");
    let (all, empty) = record("");
    assert!(all.stacks(&empty).unwrap_err().starts_with("0 samples"));
}

#[test]
fn profiles_are_found_beside_their_result_and_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let (mut all, profile) = record("t;a 1\n");
    assert_eq!(profile.file, "profiles/20_mb_s_16_kb-direct-broker.folded");
    all.write(directory.path()).unwrap();
    all.taken[0].text = None;
    all.read(directory.path());
    assert_eq!(all.taken[0], profile);
    let outside = directory.path().join("secret.folded");
    fs::write(&outside, "t;a 1\n").unwrap();
    all.taken[0].file = "secret.folded".into();
    all.read(directory.path());
    assert_eq!(all.taken[0].text, None);
}

#[test]
fn file_is_hashed_as_its_bytes_are() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("program");
    let bytes = vec![7; 3 * HASH_BLOCK_BYTES / 2];
    fs::write(&path, &bytes).unwrap();
    assert_eq!(sha256_of(&path).unwrap(), sha256(&bytes));
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
