//! Record settings of loads: their written form, and how files are read.

use super::*;

/// The user's files of these tests.
fn read(path: &str, bytes_max: u64) -> std::io::Result<Vec<u8>> {
    let content = match path {
        "events.jsonl" => "{\"a\":1}\n{\"b\":22}\n",
        "day.csv" => "0,100\n0.5,200\n1,300\n",
        "torn.csv" => "0\nsoon\n",
        "empty" => "",
        _ => return Err(std::io::Error::other("is not there")),
    };
    assert!(bytes_max >= content.len() as u64);
    Ok(content.into())
}

fn shape(payload: &mut Payload, times: &mut Times) -> Result<(usize, Filler, Shape), Error> {
    payload.read_file(&mut read)?;
    times.read_file(&mut read)?;
    let asked = Asked { record_bytes: 512, sizes: None, keys: None, payload, times };
    Ok(asked.shape())
}

fn payload(text: &str) -> Payload {
    serde_json::from_str(text).unwrap()
}

fn times(text: &str) -> Times {
    serde_json::from_str(text).unwrap()
}

#[test]
fn every_content_has_a_name_and_the_size_that_was_asked_for() {
    for (name, filler) in [
        ("random", Filler::Random),
        ("text", Filler::Text),
        ("json", Filler::Json),
        ("logs", Filler::Logs),
        ("avro", Filler::Avro),
    ] {
        let mut payload = payload(&format!("\"{name}\""));
        let made = shape(&mut payload, &mut Times::Constant).unwrap();
        assert_eq!(made, (512, filler, Shape::default()));
    }
}

#[test]
fn a_file_is_named_by_its_path_and_held_once_it_is_read() {
    let text = r#"{"file":"events.jsonl"}"#;
    let mut lines = payload(text);
    assert_eq!(serde_json::to_string(&lines).unwrap(), text);
    let (bytes, filler, shape_of_lines) = shape(&mut lines, &mut Times::Constant).unwrap();
    // 7 and 8 bytes behind a header of 32.
    assert_eq!((bytes, filler), (40, Filler::File));
    let corpus = shape_of_lines.corpus.as_ref().unwrap();
    assert_eq!((&*corpus.file, corpus.bytes, corpus.lines), ("events.jsonl", 17, true));
    shape_of_lines.check(32).unwrap();
    let mut raw = payload(r#"{"raw": "events.jsonl"}"#);
    let (bytes, filler, cut) = shape(&mut raw, &mut Times::Constant).unwrap();
    assert_eq!((bytes, filler, cut.is_plain()), (512, Filler::File, true));
}

#[test]
fn a_trace_is_a_rate_and_perhaps_sizes() {
    let mut replayed = times(r#"{"trace": {"file": "day.csv", "speed": 2}}"#);
    let (bytes, _, shape) = shape(&mut Payload::Text, &mut replayed).unwrap();
    assert_eq!(bytes, 200);
    // Three records in half a second.
    let pace = replayed.pace(None, &shape).unwrap();
    assert_eq!(pace, Pace::Scheduled { per_second: 6, arrivals: Arrivals::Trace });
    assert!(times(r#"{"trace": {"file": "day.csv"}}"#).is_trace());
}

#[test]
fn other_times_need_a_rate() {
    let plain = Shape::default();
    for (text, arrivals) in [
        ("\"constant\"", Arrivals::Constant),
        (r#"{"poisson": {"seed": 3}}"#, Arrivals::Poisson { seed: 3 }),
        (r#"{"bursts": {"size": 9}}"#, Arrivals::Bursts { size: 9 }),
    ] {
        assert_eq!(times(text).pace(None, &plain), None);
        let expected = Pace::Scheduled { per_second: 7, arrivals };
        assert_eq!(times(text).pace(Some(7), &plain), Some(expected));
    }
}

#[test]
fn errors_in_a_file_name_the_line() {
    let told = |payload: &mut Payload, times: &mut Times| {
        shape(payload, times).map(|_| ()).unwrap_err().to_string()
    };
    let mut torn = times(r#"{"trace": {"file": "torn.csv"}}"#);
    assert_eq!(
        told(&mut Payload::Text, &mut torn),
        "invalid plan: torn.csv:2: \"soon\" is no instant in seconds"
    );
    let mut missing = payload(r#"{"file": "missing"}"#);
    assert_eq!(told(&mut missing, &mut Times::Constant), "invalid plan: missing: is not there");
    let mut empty = payload(r#"{"raw": "empty"}"#);
    assert_eq!(told(&mut empty, &mut Times::Constant), "invalid plan: empty is empty");
}
