//! Experiments that are asked to end: nothing that they started outlives them, and a hangup ends
//! none that was started without a terminal.

use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::world::{Process, moldau};

/// How long processes may take to come and to go.
const PATIENCE: Duration = Duration::from_mins(1);

/// Two processes for each system, of which the proxy comes last.
const PROCESSES: usize = 2;

/// The file of a survey of a system in so many rounds in `directory`.
fn survey(directory: &Path, system: &str, rounds: u32) -> String {
    let file = directory.join("survey.yaml");
    let text = format!(
        "question: Does it end?\nhypothesis: it does\nsystems: [{system}]\n\
         rounds: {rounds}\nwarmup_ms: 0\nwindow_ms: 100\n\
         scenarios:\n  - {{name: slow, load: {{records_per_second: 100}}}}\n"
    );
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().into()
}

/// A laboratory that measures a cluster which it has not started.
fn measuring(cluster: SocketAddr, directory: &Path) -> Child {
    let file = survey(directory, "external", 1_000);
    let mut command = Command::new(moldau());
    command.args(["lab", "run", &file, "--external", &cluster.to_string(), "--out"]);
    command.arg(directory.join("runs"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// A laboratory, through a shell that does this first. It takes SIGHUP as any process does, also
/// where the tests themselves were started by `nohup`, which a shell could not undo.
fn started(first: &str, directory: &Path, rounds: u32) -> Child {
    let mut command = Command::new("env");
    command.args(["--default-signal=HUP", "/bin/sh", "-c", &format!("{first} exec \"$@\""), "sh"]);
    command.arg(moldau());
    command
        .args(["lab", "run", &survey(directory, "moldau-os-proxy", rounds), "--out"])
        .arg(directory.join("runs"));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// What a process has started.
fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let of_task = |task: fs::DirEntry| {
        let ids = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        ids.split_ascii_whitespace().map(|id| id.parse().unwrap()).collect::<Vec<u32>>()
    };
    tasks.flat_map(of_task).collect()
}

/// Whether it runs. What has ended has no arguments, even where nobody has waited for it.
fn runs(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|arguments| !arguments.is_empty())
}

/// Looks until there is what is looked for.
fn found<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "{what}");
        std::thread::yield_now();
    }
}

/// Sends a signal once all of its processes are there, and gives these.
fn signal(lab: &mut Child, name: &str) -> Vec<u32> {
    let pid = lab.id();
    let started = found("no processes", || {
        assert_eq!(lab.try_wait().unwrap(), None);
        Some(children(pid)).filter(|started| started.len() >= PROCESSES)
    });
    let sent = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(sent.unwrap().success());
    started
}

fn ended(lab: &mut Child) -> ExitStatus {
    found("it does not end", || lab.try_wait().unwrap())
}

#[test]
fn stopped_experiment_leaves_no_process() {
    for name in ["TERM", "INT", "QUIT", "HUP"] {
        let directory = tempfile::tempdir().unwrap();
        let mut lab = started("", directory.path(), 1_000);
        let processes = signal(&mut lab, name);
        assert_eq!(ended(&mut lab).code(), Some(4), "{name}");
        for pid in processes {
            found(&format!("{pid} outlives {name}"), || (!runs(pid)).then_some(()));
        }
        let left = fs::read_dir(directory.path().join("runs")).unwrap().flatten();
        let left: Vec<_> = left.map(|entry| entry.file_name()).collect();
        let is_work = |name: &OsString| name.to_string_lossy().starts_with("work-");
        assert!(!left.iter().any(is_work), "{name}: {left:?}");
    }
}

#[test]
fn ignored_hangup_does_not_stop_an_experiment() {
    let directory = tempfile::tempdir().unwrap();
    let mut lab = started("trap '' HUP;", directory.path(), 3);
    signal(&mut lab, "HUP");
    assert_ne!(ended(&mut lab).code(), Some(4));
    let kept = fs::read_dir(directory.path().join("runs")).unwrap().flatten();
    assert_eq!(kept.filter(|entry| entry.path().join("result.json").is_file()).count(), 1);
}

#[test]
fn stopped_experiment_deletes_its_topics_on_a_running_cluster() {
    let directory = tempfile::tempdir().unwrap();
    let broker = Process::broker(&directory.path().join("data"), &[]);
    let topics = || broker.metric("moldau_topics");
    let mut lab = measuring(broker.address, directory.path());
    found("no topic", || {
        assert_eq!(lab.try_wait().unwrap(), None);
        (topics() > 0.0).then_some(())
    });
    let sent = Command::new("kill").args(["-TERM", &lab.id().to_string()]).status();
    assert!(sent.unwrap().success());
    assert_eq!(ended(&mut lab).code(), Some(4));
    assert_eq!(topics().to_bits(), 0.0_f64.to_bits());
}
