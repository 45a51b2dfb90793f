//! Times in UTC as texts of RFC 3339, the seconds whole.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A time in the form `2015-08-30T12:36:00Z`. What lies before 1970 reads as 1970, and what lies
/// behind 9999 as its last second.
pub(crate) fn format(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let seconds = i64::try_from(seconds).map_or(SECONDS_MAX, |seconds| seconds.min(SECONDS_MAX));
    let time = OffsetDateTime::from_unix_timestamp(seconds).expect("a year from 1970 to 9999");
    time.format(&Rfc3339).expect("a year from 1970 to 9999")
}

/// Reads the form that [`format()`] writes, from 1970 on; a fraction of a second is cut off.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
    let seconds = u64::try_from(time.unix_timestamp()).ok()?;
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
}

/// The last second of the year 9999.
const SECONDS_MAX: i64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn known_times_are_written_and_read() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_440_938_160, "2015-08-30T12:36:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (253_402_300_799, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(format(at(seconds)), text);
            assert_eq!(parse(text), Some(at(seconds)));
        }
        assert_eq!(parse("2015-08-30T12:36:00.123Z"), Some(at(1_440_938_160)));
        assert_eq!(format(at(253_402_300_800)), "9999-12-31T23:59:59Z");
        assert_eq!(format(UNIX_EPOCH - Duration::from_secs(1)), "1970-01-01T00:00:00Z");
    }

    /// The large numbers overflowed, which stops a build with checks and is a time in any other.
    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "Z",
            "2015-08-30",
            "2015-13-30T00:00:00Z",
            "2015-02-30T00:00:00Z",
            "2015-08-30T24:00:00Z",
            "2015-08-30T18446744073709551615:00:00Z",
            "18446744073709551615-08-30T00:00:00Z",
            "2015-08-18446744073709551615T00:00:00Z",
            "2015-18446744073709551615-01T00:00:00Z",
            "99999-01-01T00:00:00Z",
            "2015-08-30T12:36:00",
            "2015-08-0T12:36Z",
            "1969-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
