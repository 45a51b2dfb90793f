//! Faults at random times.

use std::thread;
use std::time::{Duration, Instant};

use moldau_disk::{Health, LossyDisk};

use super::clock::{BrokerClock, Direction};
use super::recorder::Recorder;
use crate::check::{Fault, Struck};
use crate::systems::{Process, RunningSystem};
use moldau_measure::Error;

/// Time between the end of a fault and the next one, ms.
const GAP_MS: std::ops::Range<u64> = 500..4_000;

/// Shortest time for which the broker stands still, ms.
const STOP_MIN_MS: u64 = 100;

/// Requests that a slow disk answers in its time.
const SLOW_REQUESTS: u32 = 100;

/// What can be struck.
pub(super) struct Targets<'a> {
    pub(super) system: &'a mut RunningSystem,
    /// What carries all connections.
    pub(super) relay: Option<&'a mut Process>,
    /// Where the broker keeps its data.
    pub(super) disk: Option<&'a LossyDisk>,
    /// What the broker reads the time from.
    pub(super) clock: Option<&'a BrokerClock>,
}

/// Strikes at random times until `end`, and leaves everything running. Says of each fault that it
/// strikes. Gives those that struck, and why it ended early.
pub(super) fn harass(
    mut targets: Targets<'_>,
    faults: &[Fault],
    (mut random, end): (fastrand::Rng, Instant),
    recorder: &Recorder,
    mut tell: impl FnMut(Fault),
) -> (Vec<Struck>, Result<(), Error>) {
    let mut struck = Vec::new();
    let rest = |pause: Duration| {
        thread::sleep(pause.min(end.saturating_duration_since(Instant::now())));
    };
    while !faults.is_empty() && Instant::now() < end {
        rest(Duration::from_millis(random.u64(GAP_MS)));
        let fault = faults.get(random.usize(..faults.len())).copied();
        let Some(fault) = fault.filter(|_| Instant::now() < end) else { break };
        tell(fault);
        let from_us = recorder.now_us();
        let stop = Duration::from_millis(random.u64(STOP_MIN_MS..Fault::STOP_MAX_MS));
        let survived = match fault {
            Fault::Clock => targets.strike_clock(&mut random, stop),
            fault => targets.strike(fault, stop),
        };
        struck.push(Struck { fault, from_us, to_us: recorder.now_us() });
        if survived.is_err() {
            return (struck, survived);
        }
    }
    rest(Duration::MAX);
    (struck, targets.system.check_alive())
}

impl Targets<'_> {
    fn strike(&mut self, fault: Fault, stop: Duration) -> Result<(), Error> {
        match fault {
            Fault::Kill => self.kill(|| ()),
            Fault::Power | Fault::Disk | Fault::Slow => match self.disk {
                Some(disk) => self.strike_disk(disk, fault, stop),
                None => Ok(()),
            },
            Fault::Stop => {
                let broker = self.system.broker_mut()?;
                broker.suspend()?;
                thread::sleep(stop);
                broker.resume()
            }
            Fault::Cut => match &mut self.relay {
                Some(relay) => {
                    relay.kill_and_restart()?;
                    relay.wait_until_back()
                }
                None => Ok(()),
            },
            // Clients end by themselves.
            Fault::Client | Fault::Clock => Ok(()),
        }
    }

    fn strike_clock(&mut self, random: &mut fastrand::Rng, stop: Duration) -> Result<(), Error> {
        let Some(clock) = self.clock else { return Ok(()) };
        let direction = if random.bool() { Direction::Forward } else { Direction::Back };
        let set = |by| clock.set(direction, by).map_err(Error::machine("setting a clock"));
        set(Fault::JUMP_MAX.mul_f64(random.f64()))?;
        if random.bool() {
            self.kill(|| ())?;
        }
        thread::sleep(stop);
        set(Duration::ZERO)
    }

    fn strike_disk(&mut self, disk: &LossyDisk, fault: Fault, stop: Duration) -> Result<(), Error> {
        let health = match fault {
            Fault::Disk => Health::Failing,
            Fault::Slow => Health::Slow(stop / SLOW_REQUESTS),
            _ => Health::Sound,
        };
        if health != Health::Sound {
            disk.set_health(health);
            thread::sleep(stop);
            disk.set_health(Health::Sound);
        }
        if fault == Fault::Slow {
            return Ok(());
        }
        self.kill(|| disk.lose_power())
    }

    /// Kills the broker, and starts it again after something has happened.
    fn kill(&mut self, between: impl FnOnce()) -> Result<(), Error> {
        self.system.broker_mut()?.kill_and_restart_after(between)?;
        self.system.wait_until_ready()
    }
}
