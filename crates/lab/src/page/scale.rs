//! From values to places on a drawing, and the ticks between.

use super::chart::{Axis, Scale};

/// Decades of a logarithmic axis up to which it has ticks between powers of ten.
const FINE_DECADES_MAX: f64 = 2.5;

/// The most that a logarithmic axis spans: what lies lower stands at its end.
const DECADES_MAX: f64 = 9.0;

/// Most ticks of an axis, however far apart its ends are.
const TICKS_MAX: usize = 40;

/// An axis with its place on the drawing.
pub(super) struct Placed {
    scale: Scale,
    /// Ends as they are drawn: of the values, or of their logarithms.
    low: f64,
    high: f64,
    /// Between ticks that are evenly spaced.
    step: f64,
    /// Places of the ends.
    from: f64,
    to: f64,
}

impl Placed {
    /// An axis for these values between two places.
    pub(super) fn fit(
        axis: &Axis,
        values: impl Iterator<Item = f64>,
        (from, to): (f64, f64),
    ) -> Self {
        let scale = axis.scale;
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter_map(|value| drawn(scale, value)) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if scale == Scale::Linear {
            (low, high) = (low.min(0.0), high.max(0.0));
        }
        let step = step(high - low, (to - from).abs());
        match scale {
            Scale::Linear => {
                (low, high) = ((low / step).floor() * step, (high / step).ceil() * step);
            }
            Scale::Log => {
                low = low.max(high - DECADES_MAX);
                (low, high) = (fine_below(low), -fine_below(-high));
            }
            Scale::Percentile | Scale::Span => {}
        }
        if high <= low {
            high = low + 1.0;
        }
        Self { scale, low, high, step, from, to }
    }

    /// The place of a value; of one beyond an end, that end.
    pub(super) fn place(&self, value: f64) -> Option<f64> {
        let share = (drawn(self.scale, value)? - self.low) / (self.high - self.low);
        Some(self.from + share.clamp(0.0, 1.0) * (self.to - self.from))
    }

    /// Where the axis begins.
    pub(super) fn start(&self) -> f64 {
        self.from
    }

    /// The values that are written beside the axis, with their places.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        let ticks = match self.scale {
            Scale::Linear | Scale::Span => self.even_ticks(),
            Scale::Log => self.log_ticks(),
            Scale::Percentile => self.percentile_ticks(),
        };
        let placed =
            ticks.into_iter().filter_map(|(value, label)| Some((self.place(value)?, label)));
        placed.take(TICKS_MAX).collect()
    }

    fn even_ticks(&self) -> Vec<(f64, String)> {
        let step = self.step;
        let first = (self.low / step).ceil() * step;
        let values = (0..TICKS_MAX).map(|at| first + step * count(at));
        let values = values.take_while(|value| *value <= self.high + step * 1e-6);
        values.map(|value| (value, tick(value, step))).collect()
    }

    fn log_ticks(&self) -> Vec<(f64, String)> {
        let is_fine = self.high - self.low <= FINE_DECADES_MAX;
        let parts: &[f64] = if is_fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let decades = (0..=TICKS_MAX).map(|at| self.low.floor() + count(at));
        let decades = decades.take_while(|decade| *decade <= self.high);
        let values =
            decades.flat_map(|decade| parts.iter().map(move |part| part * 10_f64.powf(decade)));
        let inside = |value: &f64| (self.low - 1e-6..=self.high + 1e-6).contains(&value.log10());
        values.filter(inside).map(|value| (value, tick(value, value))).collect()
    }

    fn percentile_ticks(&self) -> Vec<(f64, String)> {
        let tails = (1..TICKS_MAX).map(|nines| (1.0 - 10_f64.powf(-count(nines)), nines));
        let tails = tails.take_while(|(share, _)| -(1.0 - share).log10() <= self.high + 1e-6);
        let label = |nines: usize| match nines {
            1 => "p90".to_owned(),
            2 => "p99".to_owned(),
            more => format!("p99.{}", "9".repeat(more - 2)),
        };
        let tails = tails.map(|(share, nines)| (share, label(nines)));
        std::iter::once((0.5, "p50".to_owned())).chain(tails).collect()
    }
}

/// What of a value is drawn in proportion; `None` for what the scale cannot show.
fn drawn(scale: Scale, value: f64) -> Option<f64> {
    let drawn = match scale {
        Scale::Linear | Scale::Span => value,
        Scale::Log => value.log10(),
        Scale::Percentile => -(1.0 - value).log10(),
    };
    drawn.is_finite().then_some(drawn)
}

/// The distance between ticks: 1, 2 or 5 of some power of ten, about 70 apart.
fn step(range: f64, length: f64) -> f64 {
    let wanted = (range / (length / 70.0).max(2.0)).max(f64::MIN_POSITIVE);
    let power = 10_f64.powf(wanted.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|part| part * power);
    steps.into_iter().find(|step| *step >= wanted * 0.999).unwrap_or(power * 10.0)
}

/// The logarithm of the next 1, 2 or 5 of a power of ten that is no larger.
fn fine_below(log: f64) -> f64 {
    let decade = log.floor();
    let logs = [5.0_f64, 2.0, 1.0].map(|part| decade + part.log10());
    logs.into_iter().find(|fine| *fine <= log + 1e-9).unwrap_or(decade)
}

/// A value beside an axis, with as many decimals as its step needs.
fn tick(value: f64, step: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e9 => (value / 1e9, " G"),
        size if size >= 1e6 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let places =
        if unit.is_empty() { (0..6).find(|places| is_whole(step, *places)) } else { Some(1) };
    let text = format!("{value:.*}", places.unwrap_or(6));
    let text = if unit.is_empty() { text } else { text.trim_end_matches(".0").to_owned() };
    let text = if text.trim_matches(['-', '0', '.']).is_empty() { "0".to_owned() } else { text };
    format!("{text}{unit}")
}

fn is_whole(step: f64, places: usize) -> bool {
    let scaled = step * 10_f64.powf(count(places));
    (scaled - scaled.round()).abs() < 1e-6 * scaled.abs().max(1.0) && scaled >= 1.0 - 1e-9
}

/// A small number of things as a figure.
pub(super) fn count(things: usize) -> f64 {
    f64::from(u32::try_from(things).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: Scale, values: &[f64], length: f64) -> Vec<String> {
        let axis = Axis::new("x", "", scale);
        let placed = Placed::fit(&axis, values.iter().copied(), (0.0, length));
        placed.ticks().into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_values_that_cover_all() {
        assert_eq!(labels(Scale::Linear, &[3.1, 9.7], 350.0), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(
            labels(Scale::Linear, &[0.42, 0.83], 280.0),
            ["0.0", "0.5", "1.0"].map(|it| if it == "0.0" { "0" } else { it })
        );
        assert_eq!(labels(Scale::Linear, &[250_000.0], 200.0), ["0", "100 k", "200 k", "300 k"]);
        assert_eq!(labels(Scale::Log, &[0.7, 11.0], 300.0), ["0.5", "1", "2", "5", "10", "20"]);
        assert_eq!(labels(Scale::Log, &[0.02, 400.0], 300.0), ["0.1", "1", "10", "100"]);
        assert_eq!(
            labels(Scale::Percentile, &[0.0, 0.9995], 300.0),
            ["p50", "p90", "p99", "p99.9"]
        );
        assert_eq!(labels(Scale::Span, &[31.0, 72.0], 280.0), ["40", "60"]);
    }

    #[test]
    fn values_stand_between_the_ends_and_in_proportion() {
        let axis = Axis::new("x", "", Scale::Log);
        let placed = Placed::fit(&axis, [1.0, 100.0].into_iter(), (10.0, 210.0));
        assert_eq!(placed.place(1.0), Some(10.0));
        assert!((placed.place(10.0).unwrap() - 110.0).abs() < 1e-9);
        assert_eq!(placed.place(1e6), Some(210.0));
        assert_eq!((placed.place(0.0), placed.place(-1.0)), (None, None));
        let axis = Axis::new("x", "", Scale::Linear);
        let upwards = Placed::fit(&axis, [4.0].into_iter(), (300.0, 20.0));
        assert_eq!((upwards.place(0.0), upwards.place(f64::NAN)), (Some(300.0), None));
    }

    #[test]
    fn an_axis_without_values_or_with_one_has_ends() {
        for scale in [Scale::Linear, Scale::Span, Scale::Log, Scale::Percentile] {
            let axis = Axis::new("x", "", scale);
            for values in [vec![], vec![0.5], vec![f64::NAN, f64::INFINITY], vec![0.0]] {
                let placed = Placed::fit(&axis, values.iter().copied(), (0.0, 100.0));
                let at = placed.place(0.5).unwrap();
                assert!((0.0..=100.0).contains(&at), "{scale:?} {values:?}: {at}");
                assert!(placed.ticks().iter().all(|(at, _)| (0.0..=100.0).contains(at)));
            }
        }
    }
}
