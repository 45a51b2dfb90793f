//! Amounts as people write them: `16KB`, `1.5 MiB`, `100MB/s`. A KB is 1,024 bytes here, as a
//! KiB is; the laboratory's MB are 2^20 bytes.

use std::time::Duration;

/// Units with their bytes; letters count alike in both cases.
const UNITS: [(&str, f64); 8] = [
    ("", 1.0),
    ("b", 1.0),
    ("kb", 1024.0),
    ("kib", 1024.0),
    ("mb", 1_048_576.0),
    ("mib", 1_048_576.0),
    ("gb", 1_073_741_824.0),
    ("gib", 1_073_741_824.0),
];

/// Largest accepted amount, 2^50: a larger one is a typing error.
const BYTES_MAX: f64 = 1_125_899_906_842_624.0;

/// A number of bytes, at least 1.
///
/// # Errors
/// Says what is wrong with the text, and how it is written.
pub(crate) fn byte_count(text: &str) -> Result<u64, String> {
    let amount = bytes(text)?;
    if amount.fract() != 0.0 {
        return Err(format!("{text} is not a whole number of bytes"));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number between 1 and 2^50"
    )]
    let count = amount as u64;
    Ok(count)
}

/// Bytes per second, more than 0.
///
/// # Errors
/// As [`byte_count`].
pub(crate) fn byte_rate(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let amount = text.strip_suffix("/s").or_else(|| text.strip_suffix("/S"));
    bytes(amount.ok_or_else(|| format!("{text} is not a rate such as 100MB/s"))?)
}

/// A length of time: `90s`, `30m`, `1h`.
///
/// # Errors
/// Says how it is written.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let units = [('s', 1.0), ('m', 60.0), ('h', 3_600.0)];
    let unit = units.into_iter().find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, scale)));
    let (number, scale) =
        unit.ok_or_else(|| format!("{text} has no unit; write it like 90s, 30m or 1h"))?;
    Duration::try_from_secs_f64(positive(number)? * scale)
        .map_err(|_| format!("{text} is too long"))
}

/// A time in ms, more than 0: `50ms`, `0.5s`.
///
/// # Errors
/// Says how it is written.
pub(crate) fn milliseconds(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let (number, scale) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1e3),
        (None, None) => return Err(format!("{text} has no unit; write it like 50ms or 0.5s")),
    };
    Ok(positive(number)? * scale)
}

/// A finite number above 0.
///
/// # Errors
/// Says so.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let number = text.trim().parse::<f64>().ok();
    let number = number.filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| format!("{text} is not a number above 0"))
}

/// Iterations of SCRAM: from what RFC 7677 asks for to where a login takes a second.
///
/// # Errors
/// Says so.
pub(crate) fn scram_iterations(text: &str) -> Result<u32, String> {
    let count = text.parse().ok().filter(|count| (4096..=1_000_000).contains(count));
    count.ok_or_else(|| format!("{text} is not a whole number from 4096 to 1000000"))
}

fn bytes(text: &str) -> Result<f64, String> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let unit = unit.trim().to_ascii_lowercase();
    let number: f64 = number
        .parse()
        .map_err(|_| format!("{text} does not begin with a number; write it like 16KB"))?;
    let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(format!("{unit} is not a unit of bytes; use B, KB, MB, GB, KiB, MiB or GiB"));
    };
    let amount = number * scale;
    if !(1.0..=BYTES_MAX).contains(&amount) {
        return Err(format!("{text} is not between 1 byte and 2^50"));
    }
    Ok(amount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_in_every_usual_spelling() {
        for (text, count) in [
            ("100", 100),
            ("100B", 100),
            ("1KB", 1_024),
            ("1 kb", 1_024),
            ("16KiB", 16_384),
            ("1.5MB", 1_572_864),
            (" 2GB ", 2 << 30),
        ] {
            assert_eq!(byte_count(text), Ok(count), "{text}");
        }
        assert_eq!(byte_rate("100MB/s").map(f64::to_bits), Ok((100.0 * 1_048_576.0_f64).to_bits()));
        assert_eq!(byte_rate("0.5 KB/s").map(f64::to_bits), Ok(512.0_f64.to_bits()));
        assert_eq!(milliseconds("50ms").map(f64::to_bits), Ok(50.0_f64.to_bits()));
        assert_eq!(milliseconds(" 0.5 s").map(f64::to_bits), Ok(500.0_f64.to_bits()));
        assert!(milliseconds("50").is_err() && milliseconds("-1ms").is_err());
        assert_eq!(positive("1.5").map(f64::to_bits), Ok(1.5_f64.to_bits()));
    }

    #[test]
    fn a_wrong_unit_is_reported_with_the_right_form() {
        for (text, part) in [
            ("", "does not begin with a number"),
            ("KB", "does not begin with a number"),
            ("-1KB", "does not begin with a number"),
            ("1..2KB", "does not begin with a number"),
            ("10 MBit", "mbit is not a unit of bytes"),
            ("0", "not between 1 byte"),
            ("99999999GB", "not between 1 byte"),
            ("0.3B", "not between 1 byte"),
            ("1.0001KB", "not a whole number of bytes"),
        ] {
            let problem = byte_count(text).unwrap_err();
            assert!(problem.contains(part), "{text}: {problem}");
        }
        assert!(byte_rate("100MB").unwrap_err().contains("is not a rate such as 100MB/s"));
        for text in ["0", "-1", "inf", "NaN", "x"] {
            assert!(positive(text).is_err(), "{text}");
        }
    }
}
