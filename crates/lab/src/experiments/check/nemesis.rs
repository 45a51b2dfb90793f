//! Faults at random times.

use std::thread;
use std::time::{Duration, Instant};

use moldau_disk::{Health, LossyDisk};
use rustix::process::Signal;

use super::clock::{BrokerClocks, Direction};
use super::recorder::Recorder;
use crate::check::{Fault, Struck};
use crate::systems::{Disturbance, Link, LinkEnd, Process, RunningSystem};
use moldau_measure::Error;

/// Time between the end of a fault and the next one, ms.
const GAP_MS: std::ops::Range<u64> = 500..4_000;

/// Shortest time for which a broker stands still or is cut off, ms.
const STOP_MIN_MS: u64 = 100;

/// Requests that a slow disk answers in its time.
const SLOW_REQUESTS: u32 = 100;

/// Portions that a slow connection carries in its time: some requests take longer than their
/// timeout, since each has a few.
const SLOW_PORTIONS: u32 = 5;

/// What can be struck.
pub(super) struct Targets<'a> {
    pub(super) system: &'a mut RunningSystem,
    /// What carries all connections of clients, unless links do.
    pub(super) relay: Option<&'a mut Process>,
    /// Where the broker keeps its data.
    pub(super) disk: Option<&'a LossyDisk>,
    /// What brokers read the time from.
    pub(super) clocks: Option<&'a BrokerClocks>,
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
        if fault == Fault::Failover && !targets.system.can_fail_over() {
            continue;
        }
        tell(fault);
        let from_us = recorder.now_us();
        let stop = Duration::from_millis(random.u64(STOP_MIN_MS..Fault::STOP_MAX_MS));
        let survived = targets.strike(fault, &mut random, stop);
        struck.push(Struck { fault, from_us, to_us: recorder.now_us() });
        if survived.is_err() {
            return (struck, survived);
        }
    }
    rest(Duration::MAX);
    (struck, targets.system.check_alive())
}

impl Targets<'_> {
    fn strike(
        &mut self,
        fault: Fault,
        random: &mut fastrand::Rng,
        stop: Duration,
    ) -> Result<(), Error> {
        let broker = random.usize(..self.system.brokers().max(1));
        match fault {
            Fault::Kill => self.kill(broker, || ()),
            Fault::Power | Fault::Disk | Fault::Slow => match self.disk {
                Some(disk) => self.strike_disk(disk, fault, stop),
                None => Ok(()),
            },
            Fault::Stop => {
                let broker = self.system.broker_at_mut(broker)?;
                broker.suspend()?;
                thread::sleep(stop);
                broker.resume()
            }
            Fault::Cut => match &mut self.relay {
                Some(relay) => {
                    relay.kill_and_restart()?;
                    relay.wait_until_back()
                }
                None => {
                    self.cut(broker, random, stop);
                    Ok(())
                }
            },
            // Clients end by themselves.
            Fault::Client => Ok(()),
            Fault::Clock => self.strike_clock(broker, random, stop),
            Fault::Database => {
                self.system.database_mut()?.end_and_restart(Signal::QUIT)?;
                self.system.wait_until_ready()
            }
            Fault::Failover => self.fail_over(stop),
            Fault::DatabaseCut => {
                self.disturb(LinkEnd::Database, Some(broker), cut_off(random), stop);
                Ok(())
            }
            Fault::StoreCut => {
                self.disturb(LinkEnd::Store, Some(broker), cut_off(random), stop);
                Ok(())
            }
            Fault::Store => {
                let failure = match random.u8(..3) {
                    0 => Disturbance::Unavailable,
                    1 => Disturbance::RepliesLost,
                    _ => Disturbance::Delayed(stop / SLOW_PORTIONS),
                };
                self.disturb(LinkEnd::Store, None, failure, stop);
                Ok(())
            }
        }
    }

    /// What is acknowledged while the standby gets nothing would be lost.
    fn fail_over(&mut self, stop: Duration) -> Result<(), Error> {
        let lost = Disturbance::RepliesLost;
        self.system.links(LinkEnd::Primary, None).for_each(|link| link.disturb(lost));
        thread::sleep(stop);
        self.system.fail_over()?;
        self.system.links(LinkEnd::Primary, None).for_each(Link::restore);
        self.system.wait_until_ready()
    }

    /// Cuts connections with clients, or cuts the broker off from them for a while.
    fn cut(&self, broker: usize, random: &mut fastrand::Rng, stop: Duration) {
        if random.bool() {
            self.system.links(LinkEnd::Clients, Some(broker)).for_each(Link::cut);
        } else {
            self.disturb(LinkEnd::Clients, Some(broker), cut_off(random), stop);
        }
    }

    fn disturb(
        &self,
        with: LinkEnd,
        of: Option<usize>,
        disturbance: Disturbance,
        length: Duration,
    ) {
        self.system.links(with, of).for_each(|link| link.disturb(disturbance));
        thread::sleep(length);
        self.system.links(with, of).for_each(Link::restore);
    }

    fn strike_clock(
        &mut self,
        broker: usize,
        random: &mut fastrand::Rng,
        stop: Duration,
    ) -> Result<(), Error> {
        let Some(clocks) = self.clocks else { return Ok(()) };
        let direction = if random.bool() { Direction::Forward } else { Direction::Back };
        let set = |by| clocks.set(broker, direction, by).map_err(Error::machine("setting a clock"));
        set(Fault::JUMP_MAX.mul_f64(random.f64()))?;
        if random.bool() {
            self.kill(broker, || ())?;
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
        // The first broker is the one whose data lies there.
        self.kill(0, || disk.lose_power())
    }

    /// Kills a broker, and starts it again after something has happened.
    fn kill(&mut self, broker: usize, between: impl FnOnce()) -> Result<(), Error> {
        self.system.broker_at_mut(broker)?.kill_and_restart_after(between)?;
        self.system.wait_until_ready()
    }
}

/// A way to be cut off.
fn cut_off(random: &mut fastrand::Rng) -> Disturbance {
    match random.u8(..3) {
        0 => Disturbance::Refused,
        1 => Disturbance::Held,
        _ => Disturbance::RepliesLost,
    }
}
