//! Simulated systems whose ceiling is known.

use super::*;
use moldau_measure::statistics::{median, standard_deviation};

/// What a simulated system can do, how far that varies, and how often something else fails it.
#[derive(Clone, Copy)]
struct System {
    ceiling: f64,
    /// Full speed in relation to the ceiling.
    full_speed: f64,
    /// Standard deviation of what it can do from trial to trial, as a share.
    scatter: f64,
    /// How often a trial is missed whatever its rate.
    mishap: f64,
    /// How often it stops in a trial, which no rate below what it can do makes good.
    stop: f64,
    /// The power of the rate with which response times rise, if they tell how far a rate is from
    /// what it can do.
    rise: Option<f64>,
    /// Whether what fails it is seen to be of a moment.
    tells_mishaps: bool,
    /// What response times are at least, in relation to the demanded one.
    floor: f64,
}

const SYSTEM: System = System {
    ceiling: 87_654.0,
    full_speed: 1.1,
    scatter: 0.02,
    mishap: 0.0,
    stop: 0.0,
    rise: None,
    tells_mishaps: false,
    floor: 0.0,
};

/// Searches per kind of system.
const SEARCHES: u64 = 100;

fn noise(random: &mut fastrand::Rng) -> f64 {
    (0..12).map(|_| random.f64()).sum::<f64>() - 6.0
}

/// One whole search.
fn search(system: System, seed: u64) -> Found {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut able = || system.ceiling * (system.scatter * noise(&mut random)).exp();
    let mut search = Search::new(able() * system.full_speed);
    let mut mishaps = fastrand::Rng::with_seed(seed ^ 0xFACE);
    while let Some(rate) = search.next_rate(&Machine::steady()) {
        let able = able();
        let is_mishap = mishaps.f64() < system.mishap;
        let is_sustained = rate <= able && !is_mishap;
        let is_stopped = mishaps.f64() < system.stop;
        // What goes wrong by itself is late by 5 % to nine times.
        let unlucky = if is_mishap { (0.05 + 2.15 * mishaps.f64()).exp() } else { 0.0 };
        let lateness =
            system.rise.map(|rise| (rate / able).powf(rise).max(unlucky).max(system.floor));
        let outcome = match (is_sustained, is_stopped) {
            (true, true) => Outcome::Stopped,
            (true, false) => Outcome::Sustained,
            (false, _) => Outcome::Missed,
        };
        let is_momentary = is_mishap && system.tells_mishaps;
        search.note(rate, Evidence { outcome, lateness, is_momentary }, &mut Machine::steady());
    }
    assert_eq!(search.trials.len() + 1, TRIALS);
    search.found()
}

fn searches(system: System) -> Vec<Found> {
    (0..SEARCHES).map(|seed| search(system, seed)).collect()
}

/// How far the furthest of ten searches lies from their median, as a share.
fn disagreement(ten: &[Found]) -> f64 {
    let rates: Vec<f64> = ten.iter().map(|found| found.rate).collect();
    let middle = median(&rates);
    rates.iter().map(|rate| (rate / middle - 1.0).abs()).fold(0.0, f64::max)
}

#[test]
fn ten_repeats_agree_within_three_percent() {
    for (scatter, groups_min) in [(0.001, 10), (0.01, 10), (0.02, 9)] {
        let found = searches(System { scatter, ..SYSTEM });
        let all: Vec<f64> = found.chunks(10).map(disagreement).collect();
        let agree = all.iter().filter(|apart| **apart <= 0.03).count();
        assert!(
            agree >= groups_min,
            "scatter {scatter}: {agree} of {} groups, {all:.3?}",
            all.len()
        );
    }
}

#[test]
fn response_times_near_the_demanded_one_bring_repeats_together() {
    let system = System { scatter: 0.03, ..SYSTEM };
    let untold = Spread::of(&searches(system));
    for rise in [3.0, 5.0, 10.0, 20.0, 40.0] {
        let found = searches(System { rise: Some(rise), ..system });
        let told = Spread::of(&found);
        assert!(told.deviation < 0.85 * untold.deviation, "{rise}: {told:?} and {untold:?}");
        assert!(told.off.abs() < 0.01 && told.covered >= 90, "{rise}: {told:?}");
        let agree = found.chunks(10).filter(|ten| disagreement(ten) <= 0.03).count();
        assert!(agree >= 7, "{rise}: {agree} of 10 groups");
    }
}

/// Those of a system whose disk was rested while full speed was found, and that takes half of what
/// is demanded at any rate.
#[test]
fn response_times_that_no_rate_lowers_say_nothing_of_the_ceiling() {
    for rise in [5.0, 20.0] {
        let late = System { rise: Some(rise), mishap: 0.1, tells_mishaps: true, ..SYSTEM };
        let found = searches(System { full_speed: 1.42, floor: 0.55, ..late });
        let spread = Spread::of(&found);
        assert!(spread.deviation < 0.012 && spread.off.abs() < 0.01, "{rise}: {spread:?}");
        let agree = found.chunks(10).filter(|ten| disagreement(ten) <= 0.03).count();
        assert!(agree >= 9, "{rise}: {agree} of 10 groups");
    }
}

#[test]
fn moments_that_are_seen_move_no_ceiling() {
    let system = System { scatter: 0.02, mishap: 0.2, rise: Some(10.0), ..SYSTEM };
    let untold = Spread::of(&searches(system));
    let told = Spread::of(&searches(System { tells_mishaps: true, ..system }));
    assert!(told.deviation < 0.6 * untold.deviation, "{told:?} and {untold:?}");
    assert!(told.off.abs() < 0.01 && told.covered >= 90, "{told:?}");
}

/// How searches lie around the ceiling, as logarithms, and how many intervals hold it.
#[derive(Debug)]
struct Spread {
    deviation: f64,
    off: f64,
    covered: usize,
}

impl Spread {
    fn of(found: &[Found]) -> Spread {
        let rates: Vec<f64> = found.iter().map(|it| (it.rate / SYSTEM.ceiling).ln()).collect();
        let covers = |it: &&Found| !it.interval_95.excludes(SYSTEM.ceiling);
        Spread {
            deviation: standard_deviation(&rates),
            off: median(&rates),
            covered: found.iter().filter(covers).count(),
        }
    }
}

#[test]
fn a_rate_that_just_misses_and_one_that_just_holds_say_the_same() {
    let near = |outcome: Outcome, lateness| {
        let mut search = Search::new(100.0);
        search.note(
            90.0,
            Evidence { lateness: Some(lateness), ..outcome.into() },
            &mut Machine::steady(),
        );
        search.found().rate
    };
    let (held, missed) = (near(Outcome::Sustained, 0.99), near(Outcome::Missed, 1.01));
    assert!((held / missed - 1.0).abs() < 0.01, "{held} and {missed}");
    let (held, missed) = (near(Outcome::Sustained, 0.1), near(Outcome::Missed, f64::INFINITY));
    assert!(held > 1.2 * missed, "{held} and {missed}");
}

#[test]
fn stops_in_most_trials_move_no_ceiling() {
    let found = searches(System { scatter: 0.01, stop: 0.6, ..SYSTEM });
    let agree = found.chunks(10).filter(|ten| disagreement(ten) <= 0.03).count();
    assert_eq!(agree, 10, "of 10 groups");
    let spread = Spread::of(&found);
    assert!(spread.off.abs() < 0.01 && spread.covered >= 90, "{spread:?}");
}

/// Ten searches, one trial after the other, on a machine whose speed wanders by 10 % and forgets
/// half of where it was within ten trials; `at` tells which trial of all a trial of a search is.
fn ten_that_share_nothing(seed: u64, at: impl Fn(usize, usize) -> usize) -> Vec<Found> {
    let (wander, kept): (f64, f64) = (0.1, 0.5_f64.powf(0.1));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut speed = wander * noise(&mut random);
    let able: Vec<f64> = std::iter::repeat_with(|| {
        speed = kept * speed + (1.0 - kept * kept).sqrt() * wander * noise(&mut random);
        SYSTEM.ceiling * (speed + 0.01 * noise(&mut random)).exp()
    })
    .take(10 * TRIALS)
    .collect();
    let search = |repeat| {
        let mut search = Search::new(able[at(repeat, 0)] * SYSTEM.full_speed);
        for trial in 1..TRIALS {
            let rate = search.next_rate(&Machine::steady()).unwrap();
            let is_sustained = rate <= able[at(repeat, trial)];
            let outcome = if is_sustained { Outcome::Sustained } else { Outcome::Missed };
            search.note(rate, outcome, &mut Machine::steady());
        }
        search.found()
    };
    (0..10).map(search).collect()
}

#[test]
fn repeats_that_take_turns_agree_where_those_behind_each_other_do_not() {
    let apart = |at: fn(usize, usize) -> usize| {
        let all = (0..SEARCHES).map(|seed| disagreement(&ten_that_share_nothing(seed, at)));
        median(&all.collect::<Vec<_>>())
    };
    let one_by_one = apart(|repeat, trial| repeat * TRIALS + trial);
    let by_turns = apart(|repeat, trial| trial * 10 + (repeat + trial) % 10);
    assert!(one_by_one > 0.1 && by_turns < 0.5 * one_by_one, "{one_by_one}, {by_turns}");
}

/// Ten searches by turns on a machine whose speed wanders by 8 % and forgets half of where it was
/// within so many trials, and that has a mishap in one of ten; each takes the machine for its own,
/// or all share what they know of it.
fn ten_on_a_restless_machine(seed: u64, half_life: f64, is_shared: bool) -> Vec<Found> {
    let (wander, kept) = (0.08, 0.5_f64.powf(1.0 / half_life));
    let mut random = fastrand::Rng::with_seed(seed);
    let mut speed = wander * noise(&mut random);
    let mut able = || {
        speed = kept * speed + (1.0 - kept * kept).sqrt() * wander * noise(&mut random);
        SYSTEM.ceiling * (speed + SYSTEM.scatter * noise(&mut random)).exp()
    };
    let mut all: Vec<Search> = (0..10).map(|_| Search::new(able() * SYSTEM.full_speed)).collect();
    let mut mishaps = fastrand::Rng::with_seed(seed ^ 0xFACE);
    let mut machine = Machine::beside(if is_shared { all.len() } else { 1 });
    for turn in 1..TRIALS {
        for repeat in 0..all.len() {
            let search = &mut all[(turn + repeat) % 10];
            let rate = search.next_rate(&machine).unwrap();
            let unlucky =
                if mishaps.f64() < 0.1 { (0.05 + 2.15 * mishaps.f64()).exp() } else { 0.0 };
            let lateness = (rate / able()).powf(15.0).max(unlucky).max(0.15);
            let outcome = if lateness > 1.0 { Outcome::Missed } else { Outcome::Sustained };
            let evidence = Evidence {
                outcome,
                lateness: Some(lateness),
                is_momentary: unlucky > 0.0 && mishaps.f64() < 0.7,
            };
            search.note(rate, evidence, &mut machine);
        }
    }
    all.iter().map(Search::found).collect()
}

#[test]
fn what_the_machine_did_is_taken_out_of_repeats() {
    for (half_life, agree_min) in [(30.0, 11), (100.0, 17)] {
        let groups = |is_shared| -> Vec<Vec<Found>> {
            let seeds = 0..20;
            seeds.map(|seed| ten_on_a_restless_machine(seed, half_life, is_shared)).collect()
        };
        let apart = |groups: &[Vec<Found>]| -> Vec<f64> {
            groups.iter().map(|ten| disagreement(ten)).collect()
        };
        let (alone, shared) = (groups(false), groups(true));
        let (alone, told) = (apart(&alone), apart(&shared));
        let agree = told.iter().filter(|apart| **apart <= 0.03).count();
        assert!(agree >= agree_min, "{half_life}: {agree} of 20 groups");
        assert!(median(&told) < 0.85 * median(&alone), "{half_life}: {told:.3?}, {alone:.3?}");
        let rates: Vec<f64> = shared.iter().flatten().map(|it| it.rate / SYSTEM.ceiling).collect();
        assert!((median(&rates) - 1.0).abs() < 0.02, "{half_life}: {}", median(&rates));
    }
}

#[test]
fn repeats_on_a_machine_that_does_not_wander_agree_as_well() {
    let shared = |seed, scatter: f64| {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut able = || SYSTEM.ceiling * (scatter * noise(&mut random)).exp();
        let mut machine = Machine::beside(10);
        let mut all: Vec<Search> =
            (0..10).map(|_| Search::new(able() * SYSTEM.full_speed)).collect();
        for _ in 1..TRIALS {
            for search in &mut all {
                let rate = search.next_rate(&machine).unwrap();
                let is_sustained = rate <= able();
                let outcome = if is_sustained { Outcome::Sustained } else { Outcome::Missed };
                search.note(rate, outcome, &mut machine);
            }
        }
        all.iter().map(Search::found).collect::<Vec<_>>()
    };
    for (scatter, apart_max) in [(0.001, 0.01), (0.02, 0.03)] {
        let groups: Vec<Vec<Found>> = (0..20).map(|seed| shared(seed, scatter)).collect();
        let agree = groups.iter().filter(|ten| disagreement(ten) <= apart_max).count();
        assert!(agree >= 18, "{scatter}: {agree} of 20 groups");
        let spread = Spread::of(&groups.concat());
        assert!(spread.off.abs() < 0.01, "{scatter}: {spread:?}");
        assert!(spread.covered >= 180, "{scatter}: {spread:?}");
    }
}

/// Ten searches by turns of a system whose ceiling rises with some power of the speed of its
/// processors, which is another by 6 % in each trial and measured to one per cent, or by nobody.
fn ten_on_shared_cores(seed: u64, power: f64, is_measured: bool) -> Vec<Found> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut trial = || {
        let pace = 0.06 * noise(&mut random);
        let able = SYSTEM.ceiling * (power * pace + 0.01 * noise(&mut random)).exp();
        let ns = 10_000.0 * (0.01 * noise(&mut random) - pace).exp();
        (able, if is_measured { moldau_measure::numbers::whole(ns) } else { 0 })
    };
    let mut machine = Machine::beside(10);
    let mut begun = || {
        let (able, ns) = trial();
        machine.measured(ns, false);
        Search::new(able * SYSTEM.full_speed)
    };
    let mut all: Vec<Search> = (0..10).map(|_| begun()).collect();
    for _ in 1..TRIALS {
        for search in &mut all {
            let rate = search.next_rate(&machine).unwrap();
            let (able, ns) = trial();
            machine.measured(ns, true);
            let outcome = if rate <= able { Outcome::Sustained } else { Outcome::Missed };
            search.note(rate, outcome, &mut machine);
        }
    }
    all.iter().map(|search| machine.usually(search.found())).collect()
}

#[test]
fn what_shared_cores_did_is_taken_out_of_what_follows_them_and_of_nothing_else() {
    let groups = |power, is_measured| -> Vec<Vec<Found>> {
        (0..10).map(|seed| ten_on_shared_cores(seed, power, is_measured)).collect()
    };
    let apart = |groups: &[Vec<Found>]| {
        median(&groups.iter().map(|ten| disagreement(ten)).collect::<Vec<_>>())
    };
    let near = |groups: &[Vec<Found>]| {
        let rates: Vec<f64> = groups.concat().iter().map(|it| it.rate / SYSTEM.ceiling).collect();
        assert!((median(&rates) - 1.0).abs() < 0.01, "{}", median(&rates));
    };
    let (untold, told) = (groups(1.0, false), groups(1.0, true));
    assert!(apart(&told) < 0.65 * apart(&untold), "{} and {}", apart(&told), apart(&untold));
    near(&told);
    let (untold, told) = (groups(0.0, false), groups(0.0, true));
    assert!(apart(&told) < 1.2 * apart(&untold), "{} and {}", apart(&told), apart(&untold));
    near(&told);
}

#[test]
fn a_ceiling_is_seen_from_both_sides_where_processors_are_faster_than_at_full_speed() {
    let mut machine = Machine::beside(1);
    machine.measured(13_000, false);
    let mut search = Search::new(100.0);
    while let Some(rate) = search.next_rate(&machine) {
        machine.measured(10_000, true);
        let outcome = if rate <= 130.0 { Outcome::Sustained } else { Outcome::Missed };
        search.note(rate, outcome, &mut machine);
    }
    let found = machine.usually(search.found());
    assert_eq!(found.bounds, Bounds::Both, "{found:?}");
    assert!((found.rate / 130.0 - 1.0).abs() < 0.02, "{found:?}");
}

#[test]
fn the_estimate_is_near_the_ceiling_wherever_full_speed_lies() {
    for full_speed in [0.15, 0.4, 0.7, 1.0, 1.5, 4.0, 16.0] {
        let system = System { full_speed, ..SYSTEM };
        let found: Vec<Found> = (0..2 * SEARCHES).map(|seed| search(system, seed)).collect();
        let off: Vec<f64> = found.iter().map(|it| (it.rate / SYSTEM.ceiling).ln().abs()).collect();
        let rates: Vec<f64> = found.iter().map(|it| it.rate / SYSTEM.ceiling).collect();
        assert!(median(&off) < 0.015, "{full_speed}: off by {}", median(&off));
        assert!((median(&rates) - 1.0).abs() < 0.01, "{full_speed}: {}", median(&rates));
    }
}

#[test]
fn the_interval_covers_the_ceiling_about_as_often_as_it_says() {
    for (scatter, mishap) in [(0.002, 0.0), (0.01, 0.0), (0.03, 0.0), (0.06, 0.0), (0.02, 0.05)] {
        let found = searches(System { scatter, mishap, ..SYSTEM });
        let Spread { covered, .. } = Spread::of(&found);
        assert!(covered >= 90, "scatter {scatter}, mishap {mishap}: {covered} of {SEARCHES}");
    }
}

#[test]
fn rates_at_which_trials_disagree_are_the_unstable_band() {
    let mut search = Search::new(100.0);
    for (rate, outcome) in [
        (80.0, Outcome::Sustained),
        (95.0, Outcome::Missed),
        (90.0, Outcome::Sustained),
        (88.0, Outcome::Missed),
        (60.0, Outcome::Disturbed),
    ] {
        search.note(rate, outcome, &mut Machine::steady());
    }
    let found = search.found();
    assert_eq!(found.unstable, Some(Interval { low: 88.0, high: 90.0 }));
    assert_eq!(found.bounds, Bounds::Both);
    assert!(found.interval_95.low < found.rate && found.rate < found.interval_95.high);
    assert!((85.0..93.0).contains(&found.rate), "{found:?}");
}

#[test]
fn what_was_seen_from_one_side_alone_is_no_ceiling() {
    let mut search = Search::new(100.0);
    assert_eq!(search.found().bounds, Bounds::Neither);
    let only = |outcome| {
        let mut search = Search::new(100.0);
        while let Some(rate) = search.next_rate(&Machine::steady()) {
            search.note(rate, outcome, &mut Machine::steady());
        }
        search.found()
    };
    assert_eq!(only(Outcome::Missed).bounds, Bounds::Below);
    assert_eq!(only(Outcome::Sustained).bounds, Bounds::Above);
    assert_eq!(only(Outcome::Stopped).bounds, Bounds::Above);
    assert_eq!(only(Outcome::Disturbed).bounds, Bounds::Neither);
    assert!(only(Outcome::Missed).rate < 10.0 && only(Outcome::Sustained).rate > 150.0);
    for _ in 0..TRIALS {
        search.note(50.0, Outcome::Disturbed, &mut Machine::steady());
    }
    assert_eq!((search.next_rate(&Machine::steady()), search.found().unstable), (None, None));
}

#[test]
fn a_first_trial_that_went_wrong_bounds_nothing() {
    let but_first = |first, later| {
        let mut search = Search::new(100.0);
        search.note(search.next_rate(&Machine::steady()).unwrap(), first, &mut Machine::steady());
        while let Some(rate) = search.next_rate(&Machine::steady()) {
            search.note(rate, later, &mut Machine::steady());
        }
        search.found()
    };
    let rising = but_first(Outcome::Missed, Outcome::Sustained);
    assert_eq!(rising.bounds, Bounds::Above, "{rising:?}");
    let falling = but_first(Outcome::Sustained, Outcome::Missed);
    assert_eq!(falling.bounds, Bounds::Below, "{falling:?}");
}
