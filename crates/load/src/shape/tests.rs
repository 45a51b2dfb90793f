//! Shapes: draws follow the settings, a seed repeats them, and mistakes are reported.

use proptest::prelude::*;

use super::*;

fn shape(text: &str) -> Shape {
    serde_json::from_str(text).unwrap()
}

fn dealer(shape: &Shape, seed: u64) -> Dealer {
    Dealer::of(shape, 1_024, 32, seed).unwrap()
}

/// The sizes of the first records of a producer.
fn sizes(shape: &Shape, count: u64) -> Vec<usize> {
    let dealer = dealer(shape, 1);
    let choices = dealer.choices(0, 1);
    let bytes = |number| match choices.of(number).body {
        Body::Sized(bytes) => bytes,
        Body::Line(_) => panic!("no line was asked for"),
    };
    (0..count).map(bytes).collect()
}

/// The keys of the first records of a producer.
fn keys(shape: &Shape, slice: u16, producers: u16, count: u64) -> Vec<u32> {
    let dealer = dealer(shape, 1);
    let choices = dealer.choices(slice, producers);
    (0..count).map(|number| choices.of(number).key.unwrap()).collect()
}

fn mean(sizes: &[usize]) -> f64 {
    float(sizes.iter().sum::<usize>() as u64) / float(sizes.len() as u64)
}

fn corpus(lines: bool, content: Corpus) -> Shape {
    let file = "events.jsonl".to_owned();
    let corpus = CorpusUse { file, bytes: 1, crc32c: 1, lines, content: Arc::new(content) };
    Shape { corpus: Some(corpus), ..Shape::default() }
}

fn traced(text: &str, speed: f64) -> Shape {
    let content = Arc::new(Trace::parse(text.as_bytes(), 10_000).unwrap());
    let trace = TraceUse { file: "day.csv".into(), bytes: 1, crc32c: 1, speed, content };
    Shape { trace: Some(trace), ..Shape::default() }
}

const KINDS: [&str; 3] = [
    r#"{"sizes": {"uniform": {"min": 100, "max": 3000}}}"#,
    r#"{"sizes": {"lognormal": {"median": 400, "sigma": 1.2, "max": 20000}}}"#,
    r#"{"sizes": {"table": [{"bytes": 100, "weight": 60}, {"bytes": 1024, "weight": 30},
        {"bytes": 65536, "weight": 10}]}}"#,
];

#[test]
fn drawn_sizes_have_the_stated_mean() {
    for kind in KINDS {
        let shape = shape(kind);
        shape.check(32).unwrap();
        let (told, found) = (shape.record_bytes(32).unwrap(), mean(&sizes(&shape, 200_000)));
        assert!((found / float(told as u64) - 1.0).abs() < 0.02, "{kind}: {told} and {found}");
    }
}

#[test]
fn a_lognormal_mean_counts_values_beyond_the_limits_as_the_limits() {
    // Without ends in reach it is the median times e^(sigma^2 / 2).
    let free = lognormal_mean(400.0, 0.5, 1e-6, 1e12);
    assert!((free - 400.0 * 0.125_f64.exp()).abs() < 1e-6, "{free}");
    // 39.1 % are cut off below and 42.7 % above; what is left is nearly even in its logarithm.
    let cut = lognormal_mean(400.0, 5.0, 100.0, 1_000.0);
    assert!((cut - 537.5).abs() < 1.0, "{cut}");
}

/// Results name the seed alone, so that a record of another program of the same seed has to be the
/// same.
#[test]
fn the_seed_decides_every_record() {
    let drawn: Vec<Vec<usize>> = KINDS.iter().map(|kind| sizes(&shape(kind), 4)).collect();
    assert_eq!(drawn, GOLDEN_SIZES);
    let zipf = shape(r#"{"keys": {"zipf": {"count": 1000, "exponent": 1.1}}}"#);
    assert_eq!(keys(&zipf, 0, 2, 6), GOLDEN_KEYS[0]);
    assert_eq!(keys(&zipf, 1, 2, 6), GOLDEN_KEYS[1]);
    let other = dealer(&zipf, 2);
    let of_other_seed = (0..6).map(|number| other.choices(0, 2).of(number).key.unwrap());
    assert_ne!(of_other_seed.collect::<Vec<_>>(), GOLDEN_KEYS[0]);
}

const GOLDEN_SIZES: [[usize; 4]; 3] =
    [[966, 2870, 2928, 2309], [203, 1914, 2148, 1292], [100, 100, 100, 100]];
const GOLDEN_KEYS: [[u32; 6]; 2] = [[0, 44, 56, 8, 0, 110], [8, 0, 0, 307, 1, 8]];

#[test]
fn producers_go_through_keys_in_turn_from_places_of_their_own() {
    let round = shape(r#"{"keys": {"round_robin": {"count": 10}}}"#);
    assert_eq!(keys(&round, 0, 2, 12), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]);
    assert_eq!(keys(&round, 1, 2, 3), [5, 6, 7]);
    assert_eq!((key_text(0), key_text(1_048_575)), (*b"00000000", *b"01048575"));
}

#[test]
fn keys_come_as_often_as_their_law_says() {
    let share = |text: &str, key: u32| {
        let drawn = keys(&shape(text), 0, 1, 200_000);
        let count = drawn.iter().filter(|it| **it == key).count();
        float(count as u64) / 200_000.0
    };
    // The harmonic number of 100 is 5.187.
    let zipf = r#"{"keys": {"zipf": {"count": 100, "exponent": 1.0}}}"#;
    for (key, expected) in [(0, 1.0 / 5.187), (9, 0.1 / 5.187)] {
        let found = share(zipf, key);
        assert!((found / expected - 1.0).abs() < 0.05, "key {key}: {found}");
    }
    let uniform = share(r#"{"keys": {"uniform": {"count": 100}}}"#, 42);
    assert!((uniform - 0.01).abs() < 0.001, "{uniform}");
}

#[test]
fn impossible_shapes_are_refused() {
    let refused = |text: &str| shape(text).check(32).unwrap_err().to_string();
    for (text, said) in [
        (r#"{"sizes": {"uniform": {"min": 31, "max": 100}}}"#, "32-byte"),
        (r#"{"sizes": {"uniform": {"min": 200, "max": 100}}}"#, "200 is above 100"),
        (r#"{"sizes": {"uniform": {"min": 200, "max": 1000001}}}"#, "above 1000000"),
        (r#"{"sizes": {"lognormal": {"median": 200, "sigma": 0, "max": 300}}}"#, "sigma"),
        (r#"{"sizes": {"lognormal": {"median": 200, "sigma": 9, "max": 300}}}"#, "sigma"),
        (r#"{"sizes": {"lognormal": {"median": 200, "sigma": 1, "max": 100}}}"#, "above 100"),
        (r#"{"sizes": {"table": []}}"#, "1 to 1024"),
        (r#"{"sizes": {"table": [{"bytes": 99, "weight": 0}]}}"#, "weight above 0"),
        (r#"{"keys": {"uniform": {"count": 0}}}"#, "keys.count"),
        (r#"{"keys": {"zipf": {"count": 9, "exponent": -1}}}"#, "exponent"),
    ] {
        let problem = refused(text);
        assert!(problem.contains(said), "{text}: {problem}");
    }
    assert!(serde_json::from_str::<Shape>(r#"{"keys": {"zipf": {"count": 9}}}"#).is_err());
    let unread = corpus(true, Corpus::default()).check(32).unwrap_err().to_string();
    assert!(unread.contains("events.jsonl: is empty, or was not read"), "{unread}");
    let mut two = corpus(true, Corpus::of_lines(b"a".to_vec(), 9).unwrap());
    two.sizes = shape(KINDS[0]).sizes;
    assert!(two.check(32).unwrap_err().to_string().contains("only one of them"));
}

#[test]
fn lines_of_a_file_are_values_without_their_ends() {
    let content = Corpus::of_lines(b"{\"a\":1}\r\n\n{\"b\":22}\nlast".to_vec(), 100).unwrap();
    let lines: Vec<&[u8]> = (0..4).map(|index| content.line(index)).collect();
    assert_eq!(lines, [&b"{\"a\":1}"[..], b"{\"b\":22}", b"last", b""]);
    let shape = corpus(true, content);
    shape.check(32).unwrap();
    // 7, 8 and 4 bytes behind a header of 32.
    assert_eq!((shape.record_bytes(32), shape.record_bytes_max(32)), (Some(38), Some(40)));
    let dealer = dealer(&shape, 1);
    let bodies = |slice| (0..4).map(|number| dealer.choices(slice, 3).of(number).body).collect();
    let (first, last): (Vec<Body>, Vec<Body>) = (bodies(0), bodies(2));
    assert_eq!(first, [0, 1, 2, 0].map(Body::Line));
    assert_eq!(last, [2, 0, 1, 2].map(Body::Line));
    let long = Corpus::of_lines(b"ab\nabc".to_vec(), 2).unwrap_err();
    assert_eq!(long, "2: a line of 3 bytes is above 2");
    assert_eq!(Corpus::of_lines(b"\n\n".to_vec(), 2).unwrap_err(), " holds no line");
    assert_eq!(Corpus::of_bytes(Vec::new()).unwrap_err(), " is empty");
}

#[test]
fn a_trace_has_instants_from_its_first_and_optional_sizes() {
    let parse = |text: &str| Trace::parse(text.as_bytes(), 1_000);
    let plain = parse("1700000000.5\n1700000000.500000001\n\n# noon\n1700000002\n").unwrap();
    assert_eq!(plain.instants_ns(), [0, 1, 1_500_000_000]);
    let sized = traced("time,bytes\n0,100\n0.25 , 10\n1,300\n", 1.0);
    sized.check(32).unwrap();
    // The second is smaller than a header, and as large as that.
    assert_eq!((sized.record_bytes(32), sized.record_bytes_max(32)), (Some(144), Some(300)));
    assert_eq!(sizes(&sized, 4), [100, 32, 300, 300]);
    for (text, problem) in [
        ("0\nsoon\n", "2: \"soon\" is no instant in seconds"),
        ("1\n0.9\n", "2: 0.9 is before the instant of the line before"),
        ("-1\n", "1: \"-1\" is no instant in seconds"),
        ("0\n1,5\n", "2: every line has bytes, or none has"),
        ("0,5\n1,1001\n", "2: \"1001\" is no size up to 1000"),
        ("time\n", " holds no instant"),
    ] {
        assert_eq!(parse(text).unwrap_err(), problem, "{text:?}");
    }
    let still = traced("0\n", 0.0).check(32).unwrap_err().to_string();
    assert!(still.contains("day.csv: speed is above 0"), "{still}");
}

#[test]
fn producers_share_the_sizes_of_a_trace_as_they_share_its_instants() {
    let sized = traced("0,100\n1,200\n2,300\n3,400\n", 1.0);
    let dealer = dealer(&sized, 1);
    let of = |slice| (0..2).map(|number| dealer.choices(slice, 2).of(number).body).collect();
    let (even, odd): (Vec<Body>, Vec<Body>) = (of(0), of(1));
    assert_eq!(even, [100, 300].map(Body::Sized));
    assert_eq!(odd, [200, 400].map(Body::Sized));
}

#[test]
fn a_result_keeps_the_description_of_a_file_and_not_its_contents() {
    let shape = traced("0,100\n1,200\n", 2.0);
    let text = serde_json::to_string(&shape).unwrap();
    assert_eq!(text, r#"{"trace":{"file":"day.csv","bytes":1,"crc32c":1,"speed":2.0}}"#);
    let read: Shape = serde_json::from_str(&text).unwrap();
    assert!(read.trace.unwrap().content.instants_ns().is_empty());
    assert_eq!(serde_json::to_string(&Shape::default()).unwrap(), "{}");
}

proptest! {
    #[test]
    fn sizes_stay_between_the_ends(seed: u64, min in 32_usize..5_000, more in 0_usize..50_000) {
        let max = min + more;
        for sizes in [
            Sizes::Uniform { min, max },
            Sizes::Lognormal { median: min, sigma: 2.0, max },
            Sizes::Table(vec![
                SizeShare { bytes: min, weight: 1 }, SizeShare { bytes: max, weight: 3 },
            ]),
        ] {
            let shape = Shape { sizes: Some(sizes), ..Shape::default() };
            shape.check(32).unwrap();
            let told = shape.record_bytes(32).unwrap();
            prop_assert!((32..=max).contains(&told));
            let dealer = dealer(&shape, seed);
            for number in 0..50 {
                let Body::Sized(bytes) = dealer.choices(3, 4).of(number).body else { panic!() };
                prop_assert!((32..=max).contains(&bytes));
            }
        }
    }

    #[test]
    fn keys_are_those_that_there_are(seed: u64, count in 1_u32..5_000, exponent in 0.0..3.0) {
        for keys in [
            Keys::RoundRobin { count }, Keys::Uniform { count }, Keys::Zipf { count, exponent },
        ] {
            let dealer = dealer(&Shape { keys: Some(keys), ..Shape::default() }, seed);
            for number in (0..20).chain(u64::MAX - 2..=u64::MAX) {
                prop_assert!(dealer.choices(1, 3).of(number).key.unwrap() < count);
            }
        }
    }

    #[test]
    fn any_bytes_are_a_file_or_refused(content: Vec<u8>) {
        if let Ok(corpus) = Corpus::of_lines(content.clone(), 50) {
            prop_assert!(corpus.line_count() > 0 && corpus.line_bytes_max() <= 50);
        }
        if let Ok(trace) = Trace::parse(&content, 50) {
            prop_assert!(trace.instants_ns().is_sorted());
        }
    }

    #[test]
    fn instants_that_are_written_are_read(
        distances in proptest::collection::vec(0_u64..4_000_000_000, 1..50),
    ) {
        let mut at = 5_000_000_000_u64;
        let mut text = String::new();
        let mut expected = Vec::new();
        for (index, distance) in distances.iter().enumerate() {
            at += if index == 0 { 0 } else { *distance };
            text += &format!("{}.{:09}\n", at / 1_000_000_000, at % 1_000_000_000);
            expected.push(at - 5_000_000_000);
        }
        let trace = Trace::parse(text.as_bytes(), 1).unwrap();
        prop_assert_eq!(trace.instants_ns(), &expected[..]);
    }
}
