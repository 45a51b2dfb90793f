//! Places where a test lets a running thread fail. Without the feature `faults` they are no code.

#[cfg(feature = "faults")]
pub use armed::{arm_faults, fault_point};

/// Nothing: faults are injected with the feature `faults` alone.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn fault_point(_name: &str) {}

/// Nothing, and `read` is not called: faults are injected with the feature `faults` alone.
///
/// # Errors
/// None.
#[cfg(not(feature = "faults"))]
#[inline(always)]
pub fn arm_faults(_read: impl FnOnce() -> Option<String>) -> Result<(), String> {
    Ok(())
}

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    /// What was armed, once in the life of a process.
    static FAULTS: OnceLock<Vec<Fault>> = OnceLock::new();

    /// A fault at a place that is passed for the `at`th time.
    #[derive(Debug)]
    struct Fault {
        place: String,
        at: u64,
        kind: Kind,
        passed: AtomicU64,
    }

    #[derive(Debug, PartialEq)]
    enum Kind {
        Panic,
        Stall(Duration),
    }

    /// A place that a thread passes again and again. A fault that was armed for it happens here.
    ///
    /// # Panics
    /// If that is the fault.
    pub fn fault_point(name: &str) {
        let Some(faults) = FAULTS.get() else { return };
        for fault in faults.iter().filter(|fault| fault.place == name) {
            if fault.passed.fetch_add(1, Ordering::Relaxed) + 1 != fault.at {
                continue;
            }
            match fault.kind {
                Kind::Panic => panic!("a fault was injected at {name}"),
                Kind::Stall(time) => std::thread::sleep(time),
            }
        }
    }

    /// Arms the faults that `read` gives: `place=panic@3`, `place=stall:2000@1`, separated by
    /// commas. Milliseconds follow `stall`; behind `@` stands how often the place is passed.
    ///
    /// # Errors
    /// Says what is not a fault.
    pub fn arm_faults(read: impl FnOnce() -> Option<String>) -> Result<(), String> {
        let text = read().unwrap_or_default();
        let parts = text.split(',').filter(|part| !part.is_empty());
        let faults = parts.map(|part| parse(part).ok_or_else(|| format!("{part} is no fault")));
        FAULTS.set(faults.collect::<Result<_, _>>()?).map_err(|_| "faults are armed once".into())
    }

    fn parse(part: &str) -> Option<Fault> {
        let (place, fault) = part.split_once('=')?;
        let (kind, at) = fault.split_once('@')?;
        let kind = match kind.split_once(':') {
            None if kind == "panic" => Kind::Panic,
            Some(("stall", millis)) => Kind::Stall(Duration::from_millis(millis.parse().ok()?)),
            _ => return None,
        };
        let at = at.parse().ok()?;
        Some(Fault { place: place.to_owned(), at, kind, passed: AtomicU64::new(0) })
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::catch;

        #[test]
        fn a_fault_happens_when_its_place_is_passed_that_often() {
            for wrong in ["x", "x=panic", "x=stall@1", "x=panic@", "x=leap@1"] {
                assert!(parse(wrong).is_none(), "{wrong}");
            }
            let stall = parse("x=stall:20@1").unwrap();
            assert_eq!(stall.kind, Kind::Stall(Duration::from_millis(20)));
            arm_faults(|| Some("here=panic@2,there=panic@1".into())).unwrap();
            assert!(arm_faults(|| None).is_err());
            fault_point("here");
            assert!(catch(|| fault_point("here")).is_err());
            fault_point("here");
            fault_point("elsewhere");
        }
    }
}
