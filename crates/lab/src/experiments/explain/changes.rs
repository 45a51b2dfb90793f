//! Changes as loads and systems: what each makes of a workload, and what it does to a system.

use crate::explain::Change;
use crate::systems::SystemFile;
use moldau_load::workload::{Acks, Codec, Pace, Workload};

/// What a change is for a run.
pub(super) enum Way {
    /// Another load.
    Load(Box<Workload>),
    /// Another system beside the first.
    System(Box<SystemFile>),
    /// Another address of the same system.
    Direct,
    /// The same, while something else is done to the machine.
    Meanwhile,
    /// It cannot be made, for this reason.
    Impossible(&'static str),
}

/// What a change is for a load on a system.
pub(super) fn way(change: Change, load: &Workload, system: &SystemFile) -> Way {
    let mut changed = load.clone();
    match change {
        Change::DoubleRate => {
            let Pace::Scheduled { per_second, .. } = &mut changed.pace else {
                return Way::Impossible("the load has no rate");
            };
            *per_second = per_second.saturating_mul(2);
        }
        Change::DoubleOutstanding => {
            let Pace::Closed { outstanding } = &mut changed.pace else {
                return Way::Impossible("the load is no closed loop");
            };
            *outstanding = outstanding.saturating_mul(2);
        }
        Change::DoubleInFlight => {
            changed.tuning.in_flight_max = load.tuning.in_flight_max.saturating_mul(2);
        }
        Change::DoublePartitions => changed.partitions = load.partitions.saturating_mul(2),
        Change::DoubleProducers => changed.producers = load.producers.saturating_mul(2),
        Change::NoCompression => changed.tuning.compression = Codec::None,
        Change::LeaderAcks => changed.tuning.acks = Acks::Leader,
        Change::NoLinger => changed.linger_us = 0,
        Change::FetchAtOnce if load.tuning.fetch_min_bytes <= 1 => {
            return Way::Impossible("fetches wait for no bytes");
        }
        Change::FetchAtOnce => changed.tuning.fetch_min_bytes = 1,
        Change::NoFlush => {
            return other(system.replaced(&system.without_flush), "no way to do without flushes");
        }
        Change::MoreMemory => {
            let more = system.replaced(&system.with_more_memory);
            return other(more, "no way to give it more memory");
        }
        Change::PastTheFront => {
            return match system.direct {
                Some(_) => Way::Direct,
                None => Way::Impossible("the system's file tells no way past its front"),
            };
        }
        Change::DoubleQuota | Change::BusyProcesses(_) | Change::Continue => return Way::Meanwhile,
    }
    Way::Load(Box::new(changed))
}

fn other(system: Option<SystemFile>, missing: &'static str) -> Way {
    system.map_or(Way::Impossible(missing), |system| Way::System(Box::new(system)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiments::survey::Settings;

    fn system() -> SystemFile {
        let text = r#"{"description": "a broker", "bootstrap": "127.0.0.1:1", "processes": [{
            "name": "broker", "role": "broker", "command": ["broker", "--durability", "fsync"],
            "ready": {"tcp": "127.0.0.1:1"}}],
            "without_flush": [{"text": "fsync", "by": "os"}]}"#;
        serde_json::from_str(text).unwrap()
    }

    fn load() -> Workload {
        Settings { records_per_second: Some(100), ..Settings::default() }.workload(0, 1)
    }

    #[test]
    fn a_change_is_that_of_one_setting() {
        let load = load();
        let Way::Load(double) = way(Change::DoubleInFlight, &load, &system()) else { panic!() };
        let mut expected = load.clone();
        expected.tuning.in_flight_max = 10;
        assert_eq!(*double, expected);
        let Way::Load(rate) = way(Change::DoubleRate, &load, &system()) else { panic!() };
        assert!(matches!(rate.pace, Pace::Scheduled { per_second: 200, .. }));
    }

    #[test]
    fn a_system_without_flushes_is_another_system() {
        let Way::System(other) = way(Change::NoFlush, &load(), &system()) else { panic!() };
        assert_eq!(other.processes[0].command, ["broker", "--durability", "os"]);
    }

    #[test]
    fn what_cannot_be_changed_is_said() {
        for change in [
            Change::DoubleOutstanding,
            Change::FetchAtOnce,
            Change::MoreMemory,
            Change::PastTheFront,
        ] {
            assert!(matches!(way(change, &load(), &system()), Way::Impossible(_)), "{change:?}");
        }
        let mut waiting = load();
        waiting.tuning.fetch_min_bytes = 2;
        let Way::Load(changed) = way(Change::FetchAtOnce, &waiting, &system()) else { panic!() };
        assert_eq!(*changed, load());
    }
}
