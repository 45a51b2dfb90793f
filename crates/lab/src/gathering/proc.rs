//! Reading and parsing of what the kernel tells of processes and sockets.
//!
//! A file that is not there, as of a thread that has ended, tells nothing and is no error: evidence
//! is what there is.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Longest file that is read: `/proc/net/tcp` of a machine with ten thousand connections.
const FILE_BYTES_MAX: u64 = 2 << 20;

/// Names of the threads by which the JVM collects garbage, by their beginnings. A serial collector
/// works on the thread of the virtual machine, which does little else.
const COLLECTORS: [&str; 5] = ["GC Thread", "G1 ", "VM Thread", "ZWorker", "Shenandoah"];

/// Counters of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) cpu_ns: u64,
    pub(super) wait_ns: u64,
}

/// Threads of a process by their ids.
pub(super) fn threads(pid: u32) -> BTreeMap<u32, Thread> {
    let of = |tid: u32| {
        let directory = PathBuf::from(format!("/proc/{pid}/task/{tid}"));
        let schedstat = text(&directory.join("schedstat"))?;
        let mut times = schedstat.split_ascii_whitespace().map(|word| word.parse().unwrap_or(0));
        let name = text(&directory.join("comm"))?.trim().to_string();
        let (cpu_ns, wait_ns) = (times.next()?, times.next()?);
        Some((tid, Thread { name, cpu_ns, wait_ns }))
    };
    thread_ids(pid).into_iter().filter_map(of).collect()
}

pub(super) fn thread_ids(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a thread collects garbage, by its name.
pub(super) fn is_collector(name: &str) -> bool {
    COLLECTORS.iter().any(|collector| name.starts_with(collector))
}

/// The state of a thread: `R` runs, `S` sleeps, `D` waits for the disk, `T` is stopped.
pub(super) fn state(pid: u32, tid: u32) -> Option<char> {
    parse_state(&text(Path::new(&format!("/proc/{pid}/task/{tid}/stat")))?)
}

/// The third field of a `stat` file; the second is a name in parentheses that may hold anything.
fn parse_state(stat: &str) -> Option<char> {
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Bytes that a process gave to the disk.
pub(super) fn written_bytes(pid: u32) -> u64 {
    let io = text(Path::new(&format!("/proc/{pid}/io"))).unwrap_or_default();
    field(&io, "write_bytes:").unwrap_or(0)
}

/// Threads of the machine that run or could.
pub(super) fn runnable() -> u64 {
    let stat = text(Path::new("/proc/stat")).unwrap_or_default();
    field(&stat, "procs_running").unwrap_or(0)
}

/// Bytes that wait for those who serve a port.
pub(super) fn unread_bytes(port: u16) -> u64 {
    // A server of both families has its side of a connection by IPv4 in the other table.
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].into_iter();
    let sockets: String = tables.filter_map(|path| text(Path::new(path))).collect();
    parse_unread(&sockets, port).unwrap_or(0)
}

/// What stands before an IPv4 address that is told as one of IPv6.
const MAPPED: &str = "0000000000000000FFFF0000";

/// Lines of `/proc/net/tcp`: number, local address, remote address, state, `unsent:unread`, each
/// number in hexadecimal digits. A listening socket (`0A`) counts connections there, no bytes.
///
/// A receiver's buffer holds part of what waits for it, and the sender's the rest. What is unsent
/// counts only where something is unread at the other end: elsewhere it is what is not acknowledged
/// yet, and acknowledgements take their time. `None` where no connection is served.
fn parse_unread(table: &str, port: u16) -> Option<u64> {
    let suffix = format!(":{port:04X}");
    let line = |line: &str| -> Option<Socket> {
        let mut words = line.split_ascii_whitespace().skip(1);
        let mut address = || {
            let address = words.next()?;
            Some(address.strip_prefix(MAPPED).unwrap_or(address).to_owned())
        };
        let (local, remote, state) = (address()?, address()?, words.next()?);
        let queues = words.next().filter(|_| state != "0A")?;
        let (unsent, unread) = queues.split_once(':')?;
        let [unsent, unread] = [unsent, unread].map(|it| u64::from_str_radix(it, 16).unwrap_or(0));
        Some(Socket { local, remote, unsent, unread })
    };
    let sockets: Vec<Socket> = table.lines().skip(1).filter_map(line).collect();
    let waiting = |served: &Socket| {
        let is_other = |it: &&Socket| it.local == served.remote && it.remote == served.local;
        served.unread + sockets.iter().find(is_other).map_or(0, |other| other.unsent)
    };
    let mut served = sockets.iter().filter(|it| it.local.ends_with(&suffix)).peekable();
    served.peek()?;
    Some(served.filter(|it| it.unread > 0).map(waiting).sum())
}

/// A connection of one side.
struct Socket {
    local: String,
    remote: String,
    unsent: u64,
    unread: u64,
}

/// The number after `name` on a line of its own.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        if words.next()? == name { words.next()?.parse().ok() } else { None }
    })
}

fn text(path: &Path) -> Option<String> {
    let mut text = String::new();
    fs::File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_string(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_behind_any_name() {
        assert_eq!(parse_state("12 (a) T (b)) D 1 1"), Some('D'));
        assert_eq!(parse_state("no process"), None);
        let me = std::process::id();
        assert!(thread_ids(me).into_iter().any(|tid| state(me, tid) == Some('R')));
        assert!(threads(me).values().any(|thread| !thread.name.is_empty()));
    }

    #[test]
    fn unread_bytes_are_those_of_who_serves_the_port() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr\n\
            0: 0100007F:2384 00000000:0000 0A 00000000:00000005 00:00000000\n\
            1: 0100007F:2384 0100007F:D432 01 00000007:00000010 00:00000000\n\
            2: 0100007F:D432 0100007F:2384 01 00000020:00000003 00:00000000\n\
            3: 0100007F:D433 0100007F:2385 01 00000040:00000003 00:00000000\n";
        // 0x10 unread on one side and 0x20 unsent on the other; nothing waits for 0x2385.
        assert_eq!((parse_unread(table, 0x2384), parse_unread("", 1)), (Some(0x30), None));
        assert_eq!(parse_unread(table, 0x2385), None);
        // A server of both families is in the other table, its client in this one.
        let both = "  sl  local_address rem_address   st tx_queue rx_queue tr\n\
            0: 0100007F:D432 0100007F:2384 01 00000020:00000003 00:00000000\n  sl  local_address\n\
            0: 0000000000000000FFFF00000100007F:2384 0000000000000000FFFF00000100007F:D432 01 \
            00000007:00000010 00:00000000\n";
        assert_eq!(parse_unread(both, 0x2384), Some(0x30));
    }

    #[test]
    fn a_collector_is_known_by_its_name() {
        assert!(is_collector("GC Thread#3") && is_collector("G1 Conc#0"));
        assert!(!is_collector("data-plane-kafk") && !is_collector("GCM"));
    }
}
