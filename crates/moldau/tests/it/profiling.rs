//! Profiles of a broker at work, taken by its admin port.

use std::thread;
use std::time::{Duration, Instant};

use crate::traffic::{PATIENCE, Traffic};
use crate::world::{Process, http_get};

/// How long the broker works at least: a profile of a second falls into it.
const WORK: Duration = Duration::from_secs(3);

#[test]
fn a_profile_of_a_busy_broker_names_its_functions() {
    let patience = Instant::now() + PATIENCE;
    loop {
        // Traffic makes its topic anew, so each attempt has a broker of its own.
        let dir = tempfile::tempdir().unwrap();
        let broker = Process::broker(dir.path(), &[]);
        let (bootstrap, admin) = (broker.address, broker.admin);
        let load = thread::spawn(move || Traffic::run_until(bootstrap, Instant::now() + WORK));
        let ask = || thread::spawn(move || http_get(admin, "/profile?seconds=1"));
        let answers = [ask(), ask()].map(|asked| asked.join().unwrap());
        let traffic = load.join().unwrap();
        // The signals that take the samples interrupt what the broker does.
        assert!(traffic.problems.is_empty(), "{:?}", traffic.problems);
        let is_refusal = |answer: &&String| answer.contains("another profile is being taken");
        let refusals = answers.iter().filter(is_refusal).count();
        let stacks: String = answers.iter().filter(|answer| !is_refusal(answer)).cloned().collect();
        assert_eq!(broker.terminate().code(), Some(0));
        if refusals == 1 && stacks.contains("moldau_") {
            let counts = stacks.lines().map(|line| line.rsplit_once(' ').unwrap().1);
            assert!(counts.map(|count| count.parse::<u64>().unwrap()).sum::<u64>() > 0);
            assert!(stacks.lines().all(|line| line.contains(';')), "{stacks}");
            break;
        }
        assert!(Instant::now() < patience, "{answers:?}");
    }
}
