//! How figures are written: three significant digits, a thin structure for large numbers.

use crate::statistics::{PairedEffect, float};

/// Unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// ms.
    Milliseconds,
    /// MB (2^20 bytes of record values) per second.
    MegabytesPerSecond,
    /// Records per second.
    RecordsPerSecond,
    /// ms of processor time per MB produced and consumed.
    CpuMillisecondsPerMegabyte,
    /// A multiple.
    Times,
    /// Records.
    Records,
}

impl Unit {
    /// How tables write it.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Milliseconds => "ms",
            Self::MegabytesPerSecond => "MB/s",
            Self::RecordsPerSecond => "records/s",
            Self::CpuMillisecondsPerMegabyte => "CPU-ms/MB",
            Self::Times => "x",
            Self::Records => "records",
        }
    }

    /// Whether less is better.
    #[must_use]
    pub fn less_is_better(self) -> bool {
        matches!(self, Self::Milliseconds | Self::CpuMillisecondsPerMegabyte | Self::Records)
    }
}

/// A figure without its unit.
pub fn number(value: f64, unit: Unit) -> String {
    match unit {
        Unit::RecordsPerSecond | Unit::Records => thousands(whole(value)),
        Unit::Milliseconds
        | Unit::MegabytesPerSecond
        | Unit::CpuMillisecondsPerMegabyte
        | Unit::Times => digits(value),
    }
}

/// A mean with its interval at 95 %.
pub fn estimate(effect: &PairedEffect, unit: Unit) -> String {
    let [mean, low, high] = [effect.mean, effect.interval_95.low, effect.interval_95.high]
        .map(|value| number(value, unit));
    format!("{mean} [{low}, {high}]")
}

/// A figure whose unit stands elsewhere.
pub fn plain(value: f64) -> String {
    if value.abs() < 10_000.0 {
        return digits(value);
    }
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", thousands(whole(value.abs())))
}

/// A figure with a sign, for differences; without one where nothing is left of it.
pub fn signed(value: f64, unit: Unit) -> String {
    let figure = number(value.abs(), unit);
    let sign = match value {
        _ if figure.chars().all(|digit| matches!(digit, '0' | '.')) => "",
        value if value < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{figure}")
}

/// A ratio minus one, in percent.
pub fn percent(log_ratio: f64) -> String {
    let percent = log_ratio.exp_m1() * 100.0;
    let places = if percent.abs() < 10.0 { 1 } else { 0 };
    format!("{percent:+.places$} %")
}

/// A whole number in groups of three digits.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Bytes in the largest unit that leaves a number above 1.
pub fn bytes(value: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    for (name, size) in UNITS {
        if value >= size {
            return format!("{} {name}", digits(float(value) / float(size)));
        }
    }
    format!("{value} B")
}

/// Three digits that count, however the value is rounded.
pub fn digits(value: f64) -> String {
    let places = match value.abs() {
        size if size >= 99.95 => 0,
        size if size >= 9.995 => 1,
        size if size >= 0.9995 => 2,
        _ => 3,
    };
    format!("{value:.places$}")
}

/// Two digits that count, for sentences.
#[must_use]
pub fn rough(value: f64) -> String {
    let power = value.abs().max(f64::MIN_POSITIVE).log10().floor();
    let unit = 10_f64.powf(power - 1.0);
    let rounded = (value / unit).round() * unit;
    let places = match rounded.abs() {
        size if size >= 9.995 => 0,
        size if size >= 0.9995 => 1,
        size if size >= 0.09995 => 2,
        _ => 3,
    };
    if rounded.abs() >= 1_000.0 {
        return plain(rounded.round());
    }
    format!("{rounded:.places$}")
}

/// A count, for sentences.
#[must_use]
pub fn many(count: u64) -> String {
    match float(count) {
        size if size >= 1e9 => format!("{:.1} billion", size / 1e9),
        size if size >= 1e6 => format!("{:.1} million", size / 1e6),
        _ => thousands(count),
    }
}

/// The nearest whole number, 0 for what is below.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded and not negative; the cast saturates"
)]
pub fn whole(value: f64) -> u64 {
    value.round().max(0.0) as u64
}

/// Whether a number is 0, as serde asks it of fields that are then left out.
pub fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits() {
        assert_eq!(number(0.123_4, Unit::Milliseconds), "0.123");
        assert_eq!(number(1.234, Unit::Milliseconds), "1.23");
        assert_eq!(number(45.67, Unit::MegabytesPerSecond), "45.7");
        assert_eq!(number(1_234.5, Unit::MegabytesPerSecond), "1234");
        assert_eq!([0.999_8, 9.999, 99.97].map(plain), ["1.00", "10.0", "100"]);
        assert_eq!(number(1_234_567.4, Unit::RecordsPerSecond), "1,234,567");
        assert_eq!(signed(-0.5, Unit::Milliseconds), "-0.500");
        assert_eq!(signed(0.5, Unit::Records), "+1");
        assert_eq!(signed(-0.4, Unit::Records), "0");
        assert_eq!(percent(0.05_f64.ln_1p()), "+5.0 %");
        assert_eq!(thousands(999), "999");
        assert_eq!(bytes(3 << 29), "1.50 GiB");
    }

    #[test]
    fn sentences_have_two_digits() {
        let values = [161.3, 83.9, 6.46, 0.1204, 0.0567, 2_345.0, 99.7, 0.0];
        let rough = values.map(rough);
        assert_eq!(rough, ["160", "84", "6.5", "0.12", "0.057", "2300", "100", "0.000"]);
        assert_eq!(
            [999_999, 24_912_000, 1_250_000_000].map(many),
            ["999,999", "24.9 million", "1.2 billion"]
        );
    }
}
