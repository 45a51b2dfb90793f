//! The tools for the terminal.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::world::{Process, moldau, run};

#[test]
fn a_line_is_sent_while_the_next_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let broker = Process::broker(dir.path(), &[]);
    let bootstrap = broker.address.to_string();
    let created = run(["topics", "create", "typed", "--bootstrap", &bootstrap]);
    assert!(created.status.success(), "{created:?}");
    let mut producer = Command::new(moldau())
        .args(["produce", "typed", "--bootstrap", &bootstrap])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = producer.stdin.take().unwrap();
    for line in ["first", "second"] {
        writeln!(stdin, "{line}").unwrap();
        let count = if line == "first" { "1" } else { "2" };
        let consume = ["consume", "typed", "--from-beginning", "-n", count];
        let read = run([&consume[..], &["--bootstrap", &bootstrap]].concat());
        assert!(String::from_utf8(read.stdout).unwrap().contains(line));
    }
    drop(stdin);
    assert!(producer.wait().unwrap().success());
}
