//! Surveys: what is refused, and what loads are made of what a file says.

use super::stages::Stage;
use super::*;
use crate::experiments::bench::Path;
use crate::sample;
use moldau_load::schedule::Arrivals;
use moldau_load::workload::{Acks, Pace, Tuning};

const FILE: &str = r#"{
    "question": "q", "hypothesis": "h", "systems": ["moldau", "kafka"], "rounds": 8,
    "warmup_ms": 400, "window_ms": 8000,
    "load": {"record_bytes": 1024, "payload": "random", "acks": "leader"},
    "scenarios": [
        {"name": "one", "load": {"outstanding": 1, "record_bytes": 128, "batch_bytes": 128}},
        {"name": "many", "load": {"outstanding": 32}}],
    "factors": [
        {"from": "many", "levels": [{"outstanding": 1}, {"outstanding": 64}]},
        {"from": "many", "levels": [{"compression": "snappy"}]}],
    "claims": [{"says": "s", "at": "a", "figure": "produce_records", "published": 2.43,
        "holds": {"at_least": 2.0}, "measured": {"of": "many", "over": "one"},
        "isolated": [{"of": "many, compression snappy", "over": "many"}]}]}"#;

fn file() -> SurveyFile {
    serde_json::from_str(FILE).unwrap()
}

fn level(text: &str) -> Settings {
    serde_json::from_str(text).unwrap()
}

fn refused(change: impl FnOnce(&mut SurveyFile)) -> String {
    let mut file = file();
    change(&mut file);
    file.check().unwrap_err().to_string()
}

#[test]
fn loads_stand_behind_the_scenario_that_they_differ_from() {
    let file = file();
    file.check().unwrap();
    let loads = file.loads();
    let names: Vec<&str> = loads.iter().map(|load| load.cell.name.as_str()).collect();
    let expected =
        ["one", "many", "many, outstanding 1", "many, outstanding 64", "many, compression snappy"];
    assert_eq!(names, expected);
    let workload = |at: usize| file.workload(&loads[at].settings, false);
    let [one, many, snappy] = [workload(0), workload(1), workload(4)];
    assert_eq!((one.pace, one.record_bytes), (Pace::Closed { outstanding: 1 }, 128));
    assert_eq!((many.record_bytes, many.batch_bytes, many.linger_us), (1024, 16_384, 0));
    assert_eq!(many.tuning, Tuning { acks: Acks::Leader, ..Tuning::default() });
    // One setting apart, and no more.
    let tuning = Tuning { compression: Codec::Snappy, ..many.tuning };
    assert_eq!(snappy, Workload { tuning, ..many });
}

#[test]
fn a_load_may_have_a_window_of_its_own() {
    let file = file();
    let own = level(r#"{"warmup_ms": 0, "window_ms": 2000}"#);
    let windows = |settings: &Settings, quick| {
        let workload = file.workload(settings, quick);
        (workload.warmup_ms, workload.window_ms)
    };
    assert_eq!(windows(&own, false), (0, 2_000));
    assert_eq!(windows(&own, true), (0, 1_000));
    assert_eq!(windows(&Settings::default(), true), (100, 2_000));
    assert_eq!(own.over(&Settings { window_ms: Some(9), ..Settings::default() }), own);
}

#[test]
fn a_pace_replaces_a_pace() {
    let rate = level(r#"{"records_per_second": 100, "consumers": 3, "fetch_min_bytes": 9}"#);
    let settings = rate.over(&level(r#"{"outstanding": 5, "partitions": 2, "topics": 4}"#));
    settings.check().unwrap();
    let workload = settings.workload(0, 1);
    assert!(matches!(workload.pace, Pace::Scheduled { per_second: 100, .. }));
    assert_eq!((workload.partitions, workload.consume, workload.tails), (2, true, 2));
    let tuning =
        Tuning { topics: 4, fetch_min_bytes: 9, cooldown_ms: Some(2), ..Tuning::default() };
    assert_eq!((workload.lanes(), workload.tuning), (8, tuning));
}

#[test]
fn a_factor_that_changes_more_than_one_setting_is_refused() {
    let with = |levels: &[&str]| {
        let levels: Vec<Settings> = levels.iter().map(|text| level(text)).collect();
        refused(|file| file.factors[0].levels = levels)
    };
    assert_eq!(
        with(&[r#"{"compression": "snappy", "outstanding": 64}"#]),
        "invalid plan: factors.levels, from \"many\": a level changes one setting, not 2"
    );
    assert_eq!(
        with(&[r#"{"outstanding": 64}"#, r#"{"linger_us": 1}"#]),
        "invalid plan: factors.levels, from \"many\": all change one setting, not outstanding and \
         linger_us"
    );
    assert_eq!(
        with(&[r#"{"outstanding": 32}"#]),
        "invalid plan: factors.levels, from \"many\": outstanding is 32 there already"
    );
    assert!(with(&[]).ends_with("one at least"));
    assert_eq!(
        refused(|file| file.factors[0].from = "most".into()),
        "invalid plan: factors.from: \"most\" is not one of the scenarios \"one\", \"many\""
    );
}

#[test]
fn a_survey_that_cannot_be_measured_is_refused() {
    assert_eq!(
        refused(|file| file.claims[0].isolated[0].of = "many, snappy".into()),
        "invalid plan: claim \"s\": \"many, snappy\" is not one of the loads, which are: one; \
         many; many, outstanding 1; many, outstanding 64; many, compression snappy"
    );
    let named = |file: &mut SurveyFile| file.claims[0].systems = vec!["kroxylicious".into()];
    assert!(refused(named).ends_with("\"kroxylicious\" is not one of the systems"));
    assert!(refused(|file| file.claims[0].holds.at_most = Some(1.0)).ends_with("2 is above 1"));
    assert!(refused(|file| file.claims[0].holds.at_least = None).ends_with("an end at least"));
    assert!(refused(|file| file.systems.clear()).contains("systems: 1 to 8"));
    assert!(refused(|file| file.systems[1] = "moldau".into()).contains("is there twice"));
    assert!(refused(|file| file.scenarios[1].name = "one".into()).contains("not one of the scen"));
    assert!(refused(|file| file.rounds = 0).contains("rounds: 1 to 1000"));
    assert!(refused(|file| file.load.producers = Some(0)).contains("load \"one\": "));
    let both = |file: &mut SurveyFile| file.scenarios[0].load.records_per_second = Some(1);
    assert!(refused(both).contains("exclude each other"));
    let twice = |file: &mut SurveyFile| {
        let again = file.factors[1].clone();
        file.factors.push(again);
    };
    assert!(refused(twice).contains("\"many, compression snappy\" is there twice"));
}

#[test]
fn a_trace_takes_the_place_of_a_rate_and_sizes_that_of_a_size() {
    let mut replayed = level(r#"{"arrivals": {"trace": {"file": "day.csv"}}}"#);
    replayed.read_files(&mut |_, _| Ok(b"0\n1\n2\n".to_vec())).unwrap();
    let rate = level(
        r#"{"records_per_second": 100, "record_bytes": 64, "keys":
        {"zipf": {"count": 9, "exponent": 1.5}}}"#,
    );
    let both = replayed.over(&rate);
    both.check().unwrap();
    let workload = both.workload(0, 2_000);
    workload.check().unwrap();
    assert!(matches!(workload.pace, Pace::Scheduled { arrivals: Arrivals::Trace, .. }));
    assert_eq!((workload.record_bytes, both.keys), (64, rate.keys));
    // And back again: a rate ends a trace, but no other arrivals.
    let pace = |settings: &Settings| settings.workload(0, 1).pace;
    assert_eq!(pace(&rate.over(&replayed)), pace(&rate));
    let poisson = level(r#"{"arrivals": {"poisson": {"seed": 2}}}"#);
    let arrivals = Arrivals::Poisson { seed: 2 };
    assert_eq!(pace(&rate.over(&poisson)), Pace::Scheduled { per_second: 100, arrivals });

    let sizes = level(r#"{"record_sizes": {"uniform": {"min": 100, "max": 200}}}"#);
    let sized = sizes.over(&rate);
    sized.check().unwrap();
    assert_eq!(sized.workload(0, 1).record_bytes, 150);
    assert_eq!(rate.over(&sizes).workload(0, 1).record_bytes, 64);
    let two = Settings { record_bytes: Some(64), ..sizes };
    assert!(two.check().unwrap_err().to_string().contains("exclude each other"));
    let named = sized.named().into_iter().map(|it| format!("{} {}", it.key, it.value));
    assert_eq!(
        named.collect::<Vec<_>>(),
        [
            "keys zipf count 9, exponent 1.5",
            "record_sizes uniform max 200, min 100",
            "records_per_second 100"
        ]
    );
}

#[test]
fn a_trace_that_ends_before_the_window_is_refused() {
    let mut file = file();
    file.load = level(r#"{"arrivals": {"trace": {"file": "day.csv", "speed": 2}}}"#);
    file.scenarios[0].load = Settings::default();
    file.factors.clear();
    file.claims.clear();
    let unread = file.check().unwrap_err().to_string();
    assert!(unread.contains("day.csv: has no instants, or was not read"), "{unread}");
    file.read_files(&mut |_, _| Ok(b"0\n15.3\n".to_vec())).unwrap();
    file.check().unwrap();
    file.read_files(&mut |_, _| Ok(b"0\n15\n".to_vec())).unwrap();
    let short = file.check().unwrap_err().to_string();
    assert!(
        short.ends_with(
            "day.csv: its instants end after 7500 ms, and warm-up and window take 8400 ms"
        ),
        "{short}"
    );
}

#[test]
fn a_rate_of_each_producer_grows_with_producers_and_topics() {
    let each = level(r#"{"records_per_second_each": 50, "producers": 4, "topics": 3}"#);
    let per_second = |settings: &Settings| match settings.workload(0, 1).pace {
        Pace::Scheduled { per_second, .. } => per_second,
        pace => panic!("{pace:?}"),
    };
    assert_eq!(per_second(&each), 600);
    let rate = level(r#"{"records_per_second": 70}"#).over(&each);
    assert_eq!((rate.check().is_ok(), per_second(&rate)), (true, 70));
}

#[test]
fn the_short_form_leaves_out_marked_loads() {
    let mut file = file();
    file.factors[0].quick = false;
    let kept = |file: &SurveyFile| -> Vec<String> {
        let kept = file.loads().into_iter().filter(|load| load.quick);
        kept.map(|load| load.cell.name).collect()
    };
    assert_eq!(kept(&file), ["one", "many", "many, compression snappy"]);
    file.scenarios[1].quick = false;
    assert_eq!(kept(&file), ["one"]);
    let total = PublishedTotal {
        load: "ten".into(),
        at: String::new(),
        records_per_second: 1.0,
        end_to_end_mean_ms: 1.0,
        end_to_end_p99_ms: 1.0,
        proxy_cpu: None,
    };
    assert!(refused(|file| file.totals = vec![total]).contains("totals: \"ten\" is not one"));
}

fn plan(quick: bool) -> Plan {
    Plan {
        file: file(),
        systems: Vec::new(),
        installations: Installations::default(),
        conditions: Conditions { quick, ..Conditions::of_tests() },
        profiler: None,
        profiles_all: false,
    }
}

#[test]
fn the_short_form_halves_rounds_and_quarters_windows() {
    assert_eq!((plan(false).rounds(), plan(true).rounds()), (8, 4));
    let short = file().workload(&Settings::default(), true);
    assert_eq!((short.warmup_ms, short.window_ms), (100, 2_000));
}

fn system(bootstrap: &str) -> SystemFile {
    let text = serde_json::json!({ "description": "", "bootstrap": bootstrap });
    serde_json::from_value(text).unwrap()
}

#[test]
fn loads_of_the_same_systems_make_a_stage_and_those_of_none_are_in_none() {
    let system = system("127.0.0.1:1");
    let there = [("moldau", &system), ("tls", &system)];
    // Per stage its systems, its loads and its steps in three rounds.
    let told = |plan: &Plan| -> Vec<[u32; 3]> {
        let loads = plan.file.loads();
        let numbers = |stage: &Stage<'_>| {
            let counts = [stage.systems.len(), stage.loads.len()];
            let [systems, loads] = counts.map(|it| u32::try_from(it).unwrap());
            [systems, loads, stage.steps(plan)]
        };
        stages(plan, &loads, &there).iter().map(numbers).collect()
    };
    let mut plan = plan(true);
    plan.file.rounds = 3;
    // Each is started, has a probe of both scenarios, and three rounds of five loads.
    assert_eq!(told(&plan), [[2, 5, 2 * (1 + 2 + 3 * 5)]]);
    plan.file.scenarios[1].systems = vec!["tls".into()];
    let law = LawFile { systems: vec!["tls".into()], records_per_second: 400, work_ms: 20 };
    plan.file.littles_law = Some(law);
    assert_eq!(told(&plan), [[2, 1, 2 * (1 + 1 + 3)], [1, 4, 1 + 1 + 3 * 4 + 3 * 4]]);
    plan.file.scenarios[1].systems = vec!["kafka".into()];
    assert_eq!(told(&plan)[1], [1, 0, 1 + 3 * 4], "kafka is not there, and the law has a stage");
}

#[test]
fn settings_of_systems_that_a_survey_does_not_have_are_refused() {
    let pair = |of: &str| {
        let (of, over) = (of.into(), "moldau".into());
        SystemPair { name: "p".into(), of, over }
    };
    let claimed = |file: &mut SurveyFile| {
        file.pairs = vec![pair("kafka")];
        file.claims[0].pair = Some("p".into());
    };
    let mut sound = file();
    claimed(&mut sound);
    (sound.claims[0].measured.over, sound.claims[0].isolated) = (None, Vec::new());
    sound.check().unwrap();
    assert!(refused(claimed).contains("a pair compares systems at one load"));
    let other = refused(|file| file.claims[0].pair = Some("p".into()));
    assert!(other.contains("not one of the pairs"));
    let unknown = "\"tls\" is not one of the systems";
    assert!(refused(|file| file.pairs = vec![pair("tls")]).contains(unknown));
    assert!(refused(|file| file.scenarios[0].systems = vec!["tls".into()]).contains(unknown));
    assert!(refused(|file| file.pairs = vec![pair("kafka"), pair("kafka")]).contains("twice"));
}

#[test]
fn systems_that_are_not_there_are_left_out_with_the_reason() {
    let names = ["external", "kafka"].map(str::to_string);
    let systems = [system("127.0.0.1:1"), system("${kafka}")];
    let (there, left_out) = split(&names, &systems, &Installations::default()).unwrap();
    assert_eq!(there.len(), 1);
    let [left_out] = left_out.as_slice() else { panic!("{left_out:?}") };
    assert_eq!(left_out.system, "kafka");
    assert!(absence(left_out).found.contains("cargo xtask peers"));
    let none = split(&names[1..], &systems[1..], &Installations::default()).unwrap_err();
    assert!(none.to_string().contains("kafka: Apache Kafka is not there"), "{none}");
    let twins = names.clone().map(|_| names[0].clone());
    let twins = split(&twins, &systems, &Installations::default()).unwrap_err();
    assert_eq!(twins.to_string(), "invalid plan: the system external is there twice");
}

#[test]
fn clients_of_a_front_that_rewrites_no_address_stay_with_it() {
    let directory = tempfile::tempdir().unwrap();
    for is_only in [false, true] {
        let file = SystemFile { bootstrap_only: is_only, ..system("127.0.0.1:1") };
        let running = file.start(&Installations::default(), directory.path()).unwrap();
        let path = Path::to_system("front", &running).unwrap();
        assert_eq!(path.clients.bootstrap_only, is_only);
    }
}

#[test]
fn a_machine_that_others_keep_busy_makes_a_survey_invalid() {
    // The sample's processes take 0.8 s of the 12 s of its processors that were not stolen.
    let share = |busy_ticks| {
        let mut run = sample::result().runs.remove(0);
        run.host.busy_ticks = busy_ticks;
        run.host.idle_ticks = 1_200 - busy_ticks;
        taken_share(&run).unwrap()
    };
    let passed = |busy: [u64; 3]| machine_is_quiet(&busy.map(share)).passed;
    assert!(passed([100, 200, 1_100]));
    assert!(!passed([100, 400, 1_100]));
    assert_eq!(machine_is_quiet(&[share(80)]).found, "0 %");
    // Of a cluster that runs already no share is known.
    let check = machine_is_quiet(&[]);
    assert!(check.passed && check.found.starts_with("not known"), "{check:?}");
}

#[test]
fn a_codec_that_shortens_nothing_makes_a_survey_invalid() {
    let run = |codec, filler, stored_bytes| {
        let mut run = sample::result().runs.remove(0);
        run.workload.tuning.compression = codec;
        run.workload.filler = filler;
        run.audit.delivered = 1_000;
        run.stored_bytes = stored_bytes;
        run
    };
    let passed = |runs: &[RunRecord]| codecs_differ(runs).passed;
    // 1,000 values of 1 KB each.
    assert!(passed(&[run(Codec::Lz4, Filler::Text, 400_000)]));
    assert!(!passed(&[run(Codec::Lz4, Filler::Text, 1_020_000)]));
    assert!(passed(&[run(Codec::Lz4, Filler::Random, 1_030_000)]));
    assert!(passed(&[run(Codec::None, Filler::Text, 1_030_000)]));
}
