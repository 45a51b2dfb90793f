//! How the kernel's scheduler is asked to treat the threads of a load at intended times: before
//! everything else that waits for a processor, as it would be on a machine of its own.

use rustix::process::{Pid, getpriority_process, setpriority_process};

/// Niceness of such threads: the lowest there is.
const NICENESS: i32 = -20;

/// Asks for it for the calling thread. Where the machine does not grant it (it takes
/// `CAP_SYS_NICE` or a limit of its own), the thread stays as it is, and is late more often.
pub(super) fn ask() {
    tell(setpriority_process(None, NICENESS));
}

/// The same for a process that is to be scheduled as they are.
pub fn ask_for(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        tell(setpriority_process(Some(pid), NICENESS));
    }
}

fn tell(asked: rustix::io::Result<()>) {
    if let Err(error) = asked {
        tracing::debug!(%error, "the generator is scheduled as anything else");
    }
}

/// The niceness that such threads get on this machine.
pub fn granted() -> Option<i32> {
    // A thread of its own, since who has asked cannot always take it back.
    let asking = std::thread::spawn(|| {
        ask();
        getpriority_process(None).ok()
    });
    asking.join().ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::generator::threads::producing_max;
    use crate::generator::{Setup, produce_watched};
    use crate::null_sink;
    use crate::schedule::Arrivals;
    use crate::workload::{Pace, Tuning, Workload};

    /// A load over so many topics on a sink; no other test has producers whose numbers begin like
    /// this one.
    fn setup(pace: Pace, topics: u16, producer: u16) -> Setup {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let bootstrap = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || null_sink::run(&listener));
        let workload = Workload {
            pace,
            record_bytes: 100,
            batch_bytes: 4_096,
            consume: false,
            window_ms: 50,
            tuning: Tuning { topics, ..Tuning::default() },
            ..Workload::of_tests()
        };
        let first_producer = 100 * producer;
        Setup { first_producer, ..Setup::of_tests(bootstrap, workload) }
    }

    /// Niceness of its producer threads while its window is open.
    fn niceness_in_window(pace: Pace, topics: u16, producer: u16) -> Vec<i32> {
        niceness_of(&setup(pace, topics, producer), producer)
    }

    fn niceness_of(setup: &Setup, producer: u16) -> Vec<i32> {
        let mut seen = Vec::new();
        produce_watched(setup, &mut || {
            if seen.is_empty() {
                seen = threads(&format!("lab-producer-{producer}"));
            }
        })
        .unwrap();
        seen
    }

    /// Niceness of the threads of this process that have a name.
    fn threads(name: &str) -> Vec<i32> {
        let threads = fs::read_dir("/proc/self/task").unwrap().flatten();
        let stats = threads.filter_map(|it| fs::read_to_string(it.path().join("stat")).ok());
        let of_name = stats.filter_map(|stat| {
            let (front, fields) = stat.rsplit_once(") ")?;
            let is_it = front.split_once('(').is_some_and(|(_, it)| it.starts_with(name));
            is_it.then(|| fields.split(' ').nth(16).unwrap().parse().unwrap())
        });
        of_name.collect()
    }

    #[test]
    fn only_threads_of_a_load_at_intended_times_go_before_others() {
        let usual = getpriority_process(None).unwrap();
        let timed = Pace::Scheduled { per_second: 1_000, arrivals: Arrivals::Constant };
        assert_eq!(niceness_in_window(timed, 1, 91), [granted().unwrap()]);
        assert_eq!(niceness_in_window(Pace::Unpaced, 1, 92), [usual]);
        let mut in_turn = setup(timed, 1, 95);
        in_turn.clients.waits_in_turn = true;
        assert_eq!(niceness_of(&in_turn, 95), [usual]);
        assert_eq!(getpriority_process(None).unwrap(), usual);
    }

    #[test]
    fn producers_stay_until_their_usage_is_read() {
        let timed = Pace::Scheduled { per_second: 1_000, arrivals: Arrivals::Constant };
        let (setup, mut edges, mut left) = (setup(timed, 1, 94), 0, Vec::new());
        produce_watched(&setup, &mut || {
            edges += 1;
            // All is answered soon after the window; nothing but the reading keeps them then.
            let until = Instant::now() + Duration::from_millis(200);
            while edges == 2 && Instant::now() < until {
                left = threads("lab-producer-94");
            }
        })
        .unwrap();
        assert_eq!(left.len(), 1);
    }

    #[test]
    fn many_producers_share_threads() {
        let timed = Pace::Scheduled { per_second: 1_000, arrivals: Arrivals::Constant };
        let seen = niceness_in_window(timed, 64, 93);
        let most = usize::from(producing_max());
        assert!(!seen.is_empty() && seen.len() <= most, "{} threads", seen.len());
        assert!(seen.iter().all(|niceness| *niceness == granted().unwrap()));
    }
}
