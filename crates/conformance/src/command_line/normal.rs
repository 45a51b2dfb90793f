//! What is masked in the output of a tool: that which differs from run to run.

use std::path::Path;

use super::script::Command;

/// Ports that the system chooses, and any journal of ours, are above; nothing else is.
const POSITION_DIGITS_MIN: usize = 5;

/// Where a command ran.
pub(super) struct Place<'a> {
    pub(super) bootstrap: &'a str,
    /// The files that commands read.
    pub(super) files: &'a Path,
    /// All files of the run, those of the broker included.
    pub(super) directory: &'a Path,
}

/// The lines of an output to compare: masked, spaces as one, without the frames of stack traces.
pub(super) fn lines(command: &Command, place: &Place<'_>, output: &str) -> Vec<String> {
    let output = output.replace(&place.files.display().to_string(), "FILES");
    let (host, port) = place.bootstrap.rsplit_once(':').unwrap_or((place.bootstrap, ""));
    let output = without_addresses(&output, host);
    let directory = place.directory.display().to_string();
    let is_frame = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("at ") || (line.starts_with("... ") && line.ends_with(" more"))
    };
    let mut lines: Vec<String> = output
        .lines()
        .filter(|line| !is_frame(line) && !line.trim().is_empty())
        .map(|line| {
            let words = line.split_whitespace().map(|word| {
                without_directory(word, &directory)
                    .split_inclusive(is_delimiter)
                    .map(|part| masked(part, port, command))
                    .collect::<String>()
            });
            with_sorted_set(words.collect::<Vec<_>>().join(" "))
        })
        .collect();
    if command.is_unordered {
        lines.sort_unstable();
    }
    lines
}

/// `kafka-acls` prints a set of Java, whose order differs from process to process.
fn with_sorted_set(line: String) -> String {
    const START: &str = "only supports operations [";
    let Some((before, (set, after))) =
        line.split_once(START).and_then(|(before, rest)| Some((before, rest.split_once(']')?)))
    else {
        return line;
    };
    let mut set: Vec<&str> = set.split(", ").collect();
    set.sort_unstable();
    format!("{before}{START}{}]{after}", set.join(", "))
}

/// A proxy has one port to connect to and others for its brokers.
fn without_addresses(text: &str, host: &str) -> String {
    let start = format!("{host}:");
    let mut parts = text.split(&start);
    let mut masked = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        masked.push_str(if rest.len() < part.len() { "BROKER" } else { host });
        masked.push_str(if rest.len() < part.len() { "" } else { ":" });
        masked.push_str(rest);
    }
    masked
}

/// The directory of a broker's data has another name in each.
fn without_directory(word: &str, directory: &str) -> String {
    let Some((before, after)) = word.split_once(directory) else { return word.to_owned() };
    let end = after.find(['"', ',', ']', ')', '\'']).unwrap_or(after.len());
    format!("{before}DIRECTORY{}", without_directory(&after[end..], directory))
}

fn is_delimiter(letter: char) -> bool {
    ",;:=()[]{}\"'/<>|".contains(letter)
}

/// A part of a word, with the delimiter behind it.
fn masked(part: &str, port: &str, command: &Command) -> String {
    let word = part.trim_end_matches(is_delimiter);
    let end = &part[word.len()..];
    let is_number = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let bare = word.trim_end_matches('.');
    let mask = if is_number && word.len() == 13 {
        "TIME"
    } else if command.has_positions && is_number && word.len() >= POSITION_DIGITS_MIN {
        "POSITION"
    } else if is_number && word == port {
        "PORT"
    } else if is_id(bare) {
        "ID"
    } else if let Some(before) = before_uuid(bare) {
        return format!("{before}UUID{end}");
    } else if command.is_measured && word.bytes().any(|byte| byte.is_ascii_digit()) {
        "NUMBER"
    } else {
        return part.to_owned();
    };
    format!("{mask}{end}")
}

/// A `Uuid` of Kafka's: 16 bytes in Base64 without padding.
fn is_id(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.as_bytes().iter().any(is);
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    word.len() == 22
        && word.bytes().all(is_letter)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// What stands before 32 hexadecimal digits with dashes at the end.
fn before_uuid(word: &str) -> Option<&str> {
    let (before, uuid) = word.split_at_checked(word.len().checked_sub(36)?)?;
    let groups: Vec<usize> = uuid.split('-').map(str::len).collect();
    let is_uuid = groups == [8, 4, 4, 4, 12]
        && uuid.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit());
    is_uuid.then_some(before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(command: &str, output: &str) -> Vec<String> {
        let command = Command::parse(command).unwrap();
        let place = Place {
            bootstrap: "127.0.0.1:9000",
            files: Path::new("/t/files"),
            directory: Path::new("/t"),
        };
        lines(&command, &place, output)
    }

    #[test]
    fn what_differs_from_run_to_run_is_masked() {
        let output = "a   127.0.0.1:9001 /t/files/x \"/t/data\",1\n\tat a.b(C.java)\n\
                      CreateTime:1700000000000\tTopicId: 5bVuT0fATBCs_rE0qkCtEg\n\
                      m-0b2a8e1c-54f6-4f83-9f6c-0c1f8c8c1d11 9000 0.5";
        let shown =
            ["a BROKER FILES/x \"DIRECTORY\",1", "CreateTime:TIME TopicId: ID", "m-UUID PORT 0.5"];
        assert_eq!(normal("kafka-topics --list", output), shown);
    }

    #[test]
    fn the_operations_of_a_resource_are_sorted() {
        let shown = "GROUP only supports operations [ALL, DELETE, READ]";
        let of =
            |set: &str| normal("kafka-acls", &format!("GROUP only supports operations [{set}]"));
        assert_eq!(of("READ, ALL, DELETE"), [shown]);
        assert_eq!(of("DELETE, READ, ALL"), [shown]);
    }

    #[test]
    fn numbers_are_masked_and_lines_sorted_only_where_the_script_says_so() {
        assert_eq!(normal("kafka-topics", "b 2\na 1"), ["b 2", "a 1"]);
        assert_eq!(normal("~# kafka-topics", "b 2\na 1.5"), ["a NUMBER", "b NUMBER"]);
        assert_eq!(normal("@ kafka-topics", "b 9000 19001"), ["b PORT POSITION"]);
    }
}
