//! Random services behind the handlers, from printed seeds.

use fastrand::Rng;

use super::*;

const STEP: Duration = Duration::from_millis(5);
const STEPS: usize = 60_000;

/// A service that serves so many calls at a time in `latency` each; others wait for it.
#[derive(Clone, Copy, Debug)]
struct Service {
    slots: usize,
    latency: Duration,
    /// Records that come per second.
    arrivals: f64,
}

impl Service {
    fn any(rng: &mut Rng) -> Self {
        let latency = Duration::from_millis(rng.u64(5..200));
        Self { slots: 1 << rng.u32(0..14), latency, arrivals: f64::from(1 << rng.u32(2..18)) }
    }

    /// Workers that are busy with all that comes, without any that wait for the service.
    fn load(&self) -> f64 {
        self.arrivals * self.latency.as_secs_f64()
    }
}

/// The whole part of a number that is not negative.
fn whole(number: f64) -> u64 {
    Duration::from_secs_f64(number).as_secs()
}

#[derive(Default)]
struct Life {
    handled: f64,
    backlog: f64,
    /// Numbers that were chosen in the second half, where all has settled.
    chosen: Vec<usize>,
}

impl Life {
    fn run(tuner: &mut Tuner, service: Service, rng: &mut Rng) -> Self {
        let mut life = Self::default();
        for step in 0..STEPS {
            life.backlog += service.arrivals * STEP.as_secs_f64();
            let wanted = whole(life.backlog.min(service.load() + life.backlog / 2.0)) + 1;
            let wanted = usize::try_from(wanted).expect("it is small");
            let running = tuner.workers().min(wanted);
            let noise = 0.95 + rng.f64() / 10.0;
            let per_second = running.min(service.slots) as f64 / service.latency.as_secs_f64();
            let done = (per_second * STEP.as_secs_f64() * noise).min(life.backlog);
            life.handled += done;
            life.backlog -= done;
            let load = Load { running, lacks_workers: wanted > tuner.workers() };
            if tuner.pass(STEP, load) {
                tuner.choose(whole(life.handled));
            }
            if step >= STEPS / 2 {
                life.chosen.push(tuner.workers());
            }
        }
        life
    }
}

#[test]
fn any_service_gets_enough_workers_and_is_not_flooded() {
    for seed in 0..100 {
        let mut rng = Rng::with_seed(seed);
        let service = Service::any(&mut rng);
        let mut tuner = Tuner::new(AUTO_MIN, AUTO_MAX);
        let life = Life::run(&mut tuner, service, &mut rng);
        let most = life.chosen.iter().copied().max().expect("it chose");
        assert!((AUTO_MIN..=AUTO_MAX).contains(&most), "seed {seed}: {most}, {service:?}");
        let capacity = service.slots as f64 / service.latency.as_secs_f64();
        if service.arrivals > capacity {
            // As many as it serves at a time, within a doubling and the one that is tried.
            let enough = life.chosen.iter().filter(|it| **it * 2 >= service.slots).count();
            assert_eq!(enough, life.chosen.len(), "seed {seed}: {service:?}");
            assert!(
                most <= (service.slots * 4).max(AUTO_MIN * 2),
                "seed {seed}: {most}, {service:?}"
            );
        } else if service.load() * 4.0 < AUTO_MAX as f64 {
            let waiting = service.arrivals * 5.0;
            assert!(life.backlog <= waiting, "seed {seed}: {} wait, {service:?}", life.backlog);
        }
    }
}

#[test]
fn a_steady_load_gets_a_steady_number() {
    let mut rng = Rng::with_seed(1);
    let latency = Duration::from_millis(50);
    let service = Service { slots: 100_000, latency, arrivals: 2_000.0 };
    let mut tuner = Tuner::new(AUTO_MIN, AUTO_MAX);
    let life = Life::run(&mut tuner, service, &mut rng);
    let changes = life.chosen.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert_eq!(changes, 0, "{tuner:?}");
    assert!((100..=800).contains(&tuner.workers()), "{tuner:?}");
}

#[test]
fn a_load_that_ends_gives_the_workers_back_and_one_that_returns_gets_them() {
    let mut rng = Rng::with_seed(2);
    let latency = Duration::from_millis(50);
    let busy = Service { slots: 100_000, latency, arrivals: 20_000.0 };
    let quiet = Service { arrivals: 10.0, ..busy };
    let mut tuner = Tuner::new(AUTO_MIN, AUTO_MAX);
    for _day in 0..3 {
        assert!(Life::run(&mut tuner, busy, &mut rng).chosen.iter().all(|it| *it >= 1_000));
        Life::run(&mut tuner, quiet, &mut rng);
        assert_eq!(tuner.workers(), AUTO_MIN);
    }
}

#[test]
fn handlers_that_never_end_get_no_more_workers() {
    let mut tuner = Tuner::new(AUTO_MIN, AUTO_MAX);
    for _minute in 0..600 {
        let load = Load { running: tuner.workers(), lacks_workers: true };
        if tuner.pass(Duration::from_secs(1), load) {
            tuner.choose(0);
        }
    }
    assert_eq!(tuner.workers(), AUTO_MIN);
}
