//! How fast the machine is at the moment, as far as repeats of a search tell.
//!
//! What a shared machine can do drifts within minutes, often by more than repeats may lie apart,
//! and one search cannot tell a slow minute from a low ceiling. Repeats that take turns can: what
//! changes for all of them at once is the machine. So in each trial a system can do its ceiling
//! times what the machine is beside its usual self, which is the same for all repeats; and each
//! trial moves the odds of both, in turn to be known better by those of the others.
//!
//! How fast its processors are is measured beside each trial (`yardstick_ns` of a run). Whether
//! ceilings follow that is part of the odds: one that a wait limits does not.

use super::search::{Found, GRID_STEP};
use moldau_measure::numbers::whole;
use moldau_measure::statistics::{Interval, float};

/// Distance of the speeds that are held for possible, in steps of ceilings.
const STRIDE: usize = 4;

/// How far its speed may wander over a run, as standard deviations of logarithms: part of the odds,
/// since one machine stands still where another does not. The first is that of one that does.
const WANDERS: [f64; 3] = [0.0, 0.03, 0.1];

/// How many deviations from the usual speed are held for possible.
const FURTHEST: f64 = 3.0;

/// Trials, of all repeats together, after which half of where it was is forgotten.
const HALF_LIFE: f64 = 20.0;

/// Powers of the speed of processors with which ceilings may rise.
const FOLLOWS: [f64; 2] = [0.0, 1.0];

/// How far that speed may lie from the usual to be believed, as a logarithm.
const PACE_MAX: f64 = 0.5;

/// The odds of its speed at the time of the next trial.
#[derive(Clone, Debug)]
pub struct Machine {
    /// For each way to wander. All together sum to 1.
    ways: Vec<Way>,
    paces: Paces,
}

/// A way to wander: how far beside what its processors do, with which power of their speed, and the
/// odds of each speed if it is this.
#[derive(Clone, Debug)]
struct Way {
    follows: f64,
    wander: f64,
    /// Of logarithms at equal distances around 0, which is the usual speed.
    odds: Vec<f64>,
}

/// How fast its processors were, as logarithms.
#[derive(Clone, Copy, Debug, Default)]
struct Paces {
    /// What all others are in relation to: the mean of those ahead of the first trial at a rate.
    usual: f64,
    ahead: u64,
    /// In the trial at hand, and in the last few.
    now: f64,
    lately: f64,
    /// Of all trials at a rate.
    sum: f64,
    trials: u64,
}

impl Machine {
    /// One that is taken to be as fast at any time.
    #[cfg(test)]
    pub(crate) fn steady() -> Self {
        Self::of(&WANDERS[..1], &FOLLOWS[..1])
    }

    /// The machine beside so many searches of the same load.
    #[must_use]
    pub fn beside(searches: usize) -> Self {
        let wanders = if searches > 1 { &WANDERS[..] } else { &WANDERS[..1] };
        Self::of(wanders, &FOLLOWS)
    }

    fn of(wanders: &[f64], follows: &[f64]) -> Self {
        let ways = follows.iter().flat_map(|power| wanders.iter().map(|far| Way::of(*far, *power)));
        let mut machine = Self { ways: ways.collect(), paces: Paces::default() };
        machine.weigh();
        machine
    }

    /// Takes how long a fixed piece of work took its processors beside a run, ns, that is at a rate
    /// or at full speed; 0 where nobody measured.
    pub fn measured(&mut self, yardstick_ns: u64, is_at_rate: bool) {
        if yardstick_ns > 0 {
            self.paces.add(-float(yardstick_ns).ln(), is_at_rate);
        } else {
            self.paces.now = self.paces.lately;
        }
    }

    /// The logarithm of the speed that is expected, in relation to the usual; `None` if that is
    /// not asked.
    #[must_use]
    pub fn expected(&self) -> Option<f64> {
        (self.ways.len() > 1).then(|| self.ln_speed(self.paces.lately))
    }

    /// A rate of the trial at hand, on the machine as it usually is.
    pub(super) fn usual_rate(&self, rate: f64) -> f64 {
        rate / self.ln_speed(self.paces.now).exp()
    }

    /// The logarithm of the speed that is expected with processors of this pace.
    fn ln_speed(&self, pace: f64) -> f64 {
        let of_way = |way: &Way| -> f64 {
            let speeds = way.lns().zip(&way.odds);
            speeds.map(|(ln, odds)| (ln + way.follows * pace) * odds).sum()
        };
        self.ways.iter().map(of_way).sum()
    }

    /// What a search found, on processors as they were in the mean of all trials.
    #[must_use]
    pub fn usually(&self, found: Found) -> Found {
        let follows: f64 =
            self.ways.iter().map(|way| way.follows * way.odds.iter().sum::<f64>()).sum();
        let speed = (follows * self.paces.mean()).exp();
        let faster = |Interval { low, high }| Interval { low: low * speed, high: high * speed };
        Found {
            rate: found.rate * speed,
            interval_95: faster(found.interval_95),
            unstable: found.unstable.map(faster),
            bounds: found.bounds,
        }
    }

    /// The speeds that are held for possible: where each is on a grid of ceilings, from the lowest,
    /// and its odds.
    pub(super) fn held(&self) -> impl Iterator<Item = (usize, f64)> {
        let reach = float(self.reach() as u64);
        self.ways.iter().flat_map(move |way| {
            let middle = whole((reach + way.follows * self.paces.now / GRID_STEP).round());
            let middle = usize::try_from(middle).unwrap_or(usize::MAX);
            let first = middle.saturating_sub(way.places() * STRIDE);
            (first..).step_by(STRIDE).zip(way.odds.iter().copied())
        })
    }

    /// Steps of ceilings from its usual speed to the furthest.
    pub(super) fn reach(&self) -> usize {
        let wanders = self.ways.iter().map(Way::places).max().unwrap_or(0) * STRIDE;
        let follows = self.ways.iter().map(|way| way.follows).fold(0.0, f64::max);
        let follows = whole((follows * PACE_MAX / GRID_STEP).ceil());
        wanders + usize::try_from(follows).unwrap_or(usize::MAX)
    }

    /// Goes on to the next trial, given how likely each speed made what was seen in this.
    pub(super) fn go_on(&mut self, seen: &[f64]) {
        let before = self.clone();
        let all = self.ways.iter_mut().flat_map(|way| &mut way.odds);
        all.zip(seen).for_each(|(odds, seen)| *odds *= seen);
        if !self.weigh() {
            *self = before;
        }
        self.ways.iter_mut().for_each(Way::wander);
    }

    /// Has the odds sum to 1, unless there are none.
    fn weigh(&mut self) -> bool {
        let sum: f64 = self.ways.iter().flat_map(|way| &way.odds).sum();
        self.ways.iter_mut().flat_map(|way| &mut way.odds).for_each(|odds| *odds /= sum);
        sum > 0.0
    }
}

impl Paces {
    fn add(&mut self, ln: f64, is_at_rate: bool) {
        if !is_at_rate && self.trials == 0 || self.ahead == 0 {
            self.ahead += 1;
            self.usual += (ln - self.usual) / float(self.ahead);
        }
        self.now = (ln - self.usual).clamp(-PACE_MAX, PACE_MAX);
        if is_at_rate {
            self.lately = 0.5 * (self.lately + self.now);
            self.sum += self.now;
            self.trials += 1;
        }
    }

    /// Of the trials at a rate.
    fn mean(&self) -> f64 {
        self.sum / float(self.trials.max(1))
    }
}

impl Way {
    fn of(wander: f64, follows: f64) -> Self {
        let places = (1..).take_while(|at| ln(*at) <= FURTHEST * wander).count();
        let mut way = Self { follows, wander, odds: vec![0.0; 2 * places + 1] };
        let odds = way.lns().map(|ln| if places > 0 { bell(ln / wander) } else { 1.0 });
        way.odds = weighed(odds.collect(), 1.0);
        way
    }

    /// Possible speeds on either side of the usual.
    fn places(&self) -> usize {
        self.odds.len() / 2
    }

    fn lns(&self) -> impl Iterator<Item = f64> + use<> {
        let places = self.places();
        (0..=2 * places).map(move |at| if at < places { -ln(places - at) } else { ln(at - places) })
    }

    /// Goes on to the next trial.
    fn wander(&mut self) {
        if self.places() == 0 {
            return;
        }
        let kept = 0.5_f64.powf(1.0 / HALF_LIFE);
        let step = self.wander * (1.0 - kept * kept).sqrt();
        let reaches = |ln: f64| -> f64 {
            let from = self.lns().zip(&self.odds);
            from.map(|(from, odds)| odds * bell((ln - kept * from) / step)).sum()
        };
        self.odds = weighed(self.lns().map(reaches).collect(), self.odds.iter().sum());
    }
}

/// Odds that have this sum.
fn weighed(odds: Vec<f64>, wanted: f64) -> Vec<f64> {
    let sum: f64 = odds.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    odds.into_iter().map(|odds| odds * wanted / sum).collect()
}

/// The logarithm of a speed so many places above the usual.
fn ln(places: usize) -> f64 {
    GRID_STEP * float((places * STRIDE) as u64)
}

/// The normal distribution, but for its scale.
fn bell(deviations: f64) -> f64 {
    (-0.5 * deviations * deviations).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn untold(machine: &Machine) -> Vec<f64> {
        vec![1.0; machine.held().count()]
    }

    fn lns(machine: &Machine) -> Vec<f64> {
        machine.ways.iter().flat_map(Way::lns).collect()
    }

    #[test]
    fn a_steady_machine_is_as_fast_whatever_is_seen() {
        let mut machine = Machine::steady();
        machine.go_on(&[0.01]);
        machine.measured(9_000, true);
        machine.measured(8_000, true);
        let held: Vec<(usize, f64)> = machine.held().collect();
        assert_eq!((machine.expected(), machine.reach(), held), (None, 0, vec![(0, 1.0)]));
    }

    #[test]
    fn speeds_lie_on_the_grid_of_ceilings() {
        let machine = Machine::beside(2);
        for ((at, _), ln) in machine.held().zip(lns(&machine)) {
            let above = float(at as u64) - float(machine.reach() as u64);
            assert!((above * GRID_STEP - ln).abs() < 1e-9, "{at}: {ln}");
        }
    }

    #[test]
    fn what_is_seen_moves_a_machine_and_is_forgotten_again() {
        let mut machine = Machine::beside(2);
        assert!(machine.expected().unwrap().abs() < 1e-9);
        let fast = |ln: f64| if ln > 0.1 { 1.0 } else { 0.0 };
        machine.go_on(&lns(&machine).into_iter().map(fast).collect::<Vec<_>>());
        let fast = machine.expected().unwrap();
        assert!((0.1..0.2).contains(&fast), "{fast}");
        (0..20).for_each(|_| machine.go_on(&untold(&machine)));
        let half = machine.expected().unwrap();
        assert!((half / fast - 0.5).abs() < 0.05, "{half} of {fast}");
    }

    #[test]
    fn a_machine_is_as_fast_as_its_processors_as_far_as_ceilings_follow_them() {
        let mut machine = Machine::beside(1);
        [11_000, 9_000].into_iter().for_each(|ns| machine.measured(ns, false));
        machine.measured(0, true);
        assert_eq!(machine.expected(), Some(0.0));
        // A tenth faster than the mean of those ahead of it.
        let usual = (11_000.0_f64.ln() + 9_000.0_f64.ln()) / 2.0;
        machine.measured(whole((usual - 0.1).exp()), true);
        let reach = machine.reach();
        let held: Vec<(usize, f64)> = machine.held().collect();
        assert_eq!(held, [(reach, 0.5), (reach + 40, 0.5)]);
        let expected = machine.expected().unwrap();
        assert!((expected - 0.025).abs() < 1e-3, "half of the last, by even odds: {expected}");
        machine.go_on(&[0.2, 0.6]);
        assert!((machine.expected().unwrap() - 0.0375).abs() < 1e-3);
        let interval_95 = Interval { low: 90.0, high: 110.0 };
        let (unstable, bounds) = (None, crate::ceiling::search::Bounds::Both);
        let found = machine.usually(Found { rate: 100.0, interval_95, unstable, bounds });
        let wanted = 100.0 * 0.075_f64.exp();
        assert!((found.rate / wanted - 1.0).abs() < 1e-3, "{found:?}");
        assert!((found.interval_95.low / found.rate - 0.9).abs() < 1e-9, "{found:?}");
    }

    #[test]
    fn processors_that_nobody_believes_reach_no_further_than_the_grid() {
        let mut machine = Machine::beside(2);
        [1, u64::MAX, 1].into_iter().for_each(|ns| machine.measured(ns, true));
        assert!(machine.held().all(|(at, _)| at <= 2 * machine.reach()));
        machine.measured(u64::MAX, true);
        assert!(machine.held().all(|(at, _)| at <= 2 * machine.reach()));
    }

    #[test]
    fn what_no_speed_explains_and_what_says_nothing_leaves_what_is_known() {
        let mut machine = Machine::beside(2);
        let deviation = |machine: &Machine| {
            let odds = machine.held().map(|(_, odds)| odds);
            lns(machine).iter().zip(odds).map(|(ln, odds)| ln * ln * odds).sum::<f64>().sqrt()
        };
        let first = deviation(&machine);
        (0..200).for_each(|_| machine.go_on(&untold(&machine)));
        machine.go_on(&vec![0.0; machine.held().count()]);
        assert!((deviation(&machine) / first - 1.0).abs() < 0.05, "{first} at first");
        let sum: f64 = machine.held().map(|(_, odds)| odds).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{sum}");
    }
}
