//! What consumers that are compared do with records, and what they report. `moldau lab reader` is
//! three of them; others take the same arguments and print the same line.

use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a handler does with each record.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Handling {
    /// Nothing.
    Nothing,
    /// Occupies the processor.
    Compute(Duration),
    /// Waits, as for the answer of a database.
    Wait(Duration),
}

/// What was read after the first quarter. Every compared consumer prints it as one line of JSON.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// Records whose handler has returned.
    pub records: u64,
    /// Time by the clock, ns.
    pub wall_ns: u64,
    /// Processor time of the process, ns.
    pub cpu_ns: u64,
}

impl FromStr for Handling {
    type Err = String;

    /// `nothing`, or `compute:US` and `wait:US` with microseconds.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is none of nothing, compute:US, wait:US");
        let Some((kind, us)) = text.split_once(':') else {
            return if text == "nothing" { Ok(Self::Nothing) } else { Err(wrong()) };
        };
        let time = Duration::from_micros(us.parse().map_err(|_| wrong())?);
        match kind {
            "compute" => Ok(Self::Compute(time)),
            "wait" => Ok(Self::Wait(time)),
            _ => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handling_is_read_from_an_argument() {
        assert_eq!("nothing".parse(), Ok(Handling::Nothing));
        assert_eq!("wait:1000".parse(), Ok(Handling::Wait(Duration::from_millis(1))));
        assert_eq!("compute:10".parse(), Ok(Handling::Compute(Duration::from_micros(10))));
        for wrong in ["", "wait", "wait:", "wait:-1", "sleep:1"] {
            assert!(wrong.parse::<Handling>().is_err(), "{wrong}");
        }
    }
}
