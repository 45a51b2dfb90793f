//! Times of day in UTC as texts, the seconds whole.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A time in the form `2015-08-30T12:36:00Z`; what lies before 1970 reads as 1970.
pub(crate) fn format(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = date_of(seconds / DAY_SECONDS);
    let of_day = seconds % DAY_SECONDS;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Reads the form that [`format`] writes; a fraction of a second is cut off.
pub(crate) fn parse(text: &str) -> Option<SystemTime> {
    let text = text.strip_suffix('Z')?;
    let text = text.split_once('.').map_or(text, |(whole, _)| whole);
    let (date, time) = text.split_once('T')?;
    let numbers = |text: &str, separator| -> Option<[u64; 3]> {
        let parts: Option<Vec<u64>> = text.split(separator).map(|part| part.parse().ok()).collect();
        parts?.try_into().ok()
    };
    let [year, month, day] = numbers(date, '-')?;
    let [hour, minute, second] = numbers(time, ':')?;
    let in_range = (1970..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    let seconds = days_until(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    in_range.then(|| UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Year, month and day of the day that lies `days` after 1 January 1970.
///
/// Years are counted from 1 March, so that the day that comes every fourth year is the last.
fn date_of(days: u64) -> (u64, u64, u64) {
    let since_year_0 = days + DAYS_TO_1970;
    let (era, of_era) = (since_year_0 / ERA_DAYS, since_year_0 % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / (ERA_DAYS - 1)) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * ERA_YEARS + year_of_era + u64::from(month <= 2), month, day)
}

/// Days from 1 January 1970 to a date that is not before it.
fn days_until(year: u64, month: u64, day: u64) -> u64 {
    let march_year = if month <= 2 { year.saturating_sub(1) } else { year };
    let march_month = (month + 9) % 12;
    let of_era = march_year % ERA_YEARS;
    let of_year = (153 * march_month + 2) / 5 + day.saturating_sub(1);
    let days =
        march_year / ERA_YEARS * ERA_DAYS + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    days.saturating_sub(DAYS_TO_1970)
}

const DAY_SECONDS: u64 = 86_400;
/// The calendar repeats after 400 years.
const ERA_YEARS: u64 = 400;
const ERA_DAYS: u64 = 146_097;
/// Days from 1 March of the year 0 to 1 January 1970.
const DAYS_TO_1970: u64 = 719_468;

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
            (951_868_799, "2000-02-29T23:59:59Z"),
            (1_440_938_160, "2015-08-30T12:36:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(format(at(seconds)), text);
            assert_eq!(parse(text), Some(at(seconds)));
        }
        assert_eq!(parse("2015-08-30T12:36:00.123Z"), Some(at(1_440_938_160)));
    }

    #[test]
    fn every_day_of_two_centuries_is_read_as_written() {
        for day in 0..73_000 {
            let time = at(day * DAY_SECONDS + day % DAY_SECONDS);
            assert_eq!(parse(&format(time)), Some(time));
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        for text in [
            "",
            "Z",
            "2015-08-30",
            "2015-13-30T00:00:00Z",
            "2015-08-30T24:00:00Z",
            "99999-01-01T00:00:00Z",
            "2015-08-30T12:36:00",
            "2015-08-0T12:36Z",
            "1969-01-01T00:00:00Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
