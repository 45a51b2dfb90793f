//! Faults at random times, half of those that last with another one meanwhile.

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
const GAP_MS: std::ops::Range<u64> = 250..2_500;

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
    targets: Targets<'_>,
    faults: &[Fault],
    (random, end): (fastrand::Rng, Instant),
    recorder: &Recorder,
    mut tell: impl FnMut(Fault),
) -> (Vec<Struck>, Result<(), Error>) {
    let mut nemesis = Nemesis {
        targets,
        faults,
        due: Vec::new(),
        random,
        end,
        recorder,
        tell: &mut tell,
        struck: Vec::new(),
        lasting: None,
        has_overlapped: false,
        restarted: Vec::new(),
    };
    let survived = nemesis.run();
    (nemesis.struck, survived)
}

struct Nemesis<'a> {
    targets: Targets<'a>,
    faults: &'a [Fault],
    /// Those that have yet to strike before one strikes again.
    due: Vec<Fault>,
    random: fastrand::Rng,
    end: Instant,
    recorder: &'a Recorder,
    tell: &'a mut dyn FnMut(Fault),
    struck: Vec<Struck>,
    /// The fault during which another one may strike, or strikes.
    lasting: Option<Fault>,
    has_overlapped: bool,
    /// Brokers that were started while another fault lasted.
    restarted: Vec<usize>,
}

impl Nemesis<'_> {
    fn run(&mut self) -> Result<(), Error> {
        while !self.faults.is_empty() && Instant::now() < self.end {
            let gap = Duration::from_millis(self.random.u64(GAP_MS));
            self.rest(gap);
            self.strike_any()?;
            self.recover()?;
        }
        self.rest(Duration::MAX);
        self.targets.system.check_alive()
    }

    fn rest(&self, pause: Duration) {
        thread::sleep(pause.min(self.end.saturating_duration_since(Instant::now())));
    }

    /// Strikes with one of the faults that may begin: one that has yet to strike, if there is one.
    fn strike_any(&mut self) -> Result<(), Error> {
        let mut faults = self.that_may_begin(&self.due);
        if faults.is_empty() {
            faults = self.that_may_begin(self.faults);
            if self.lasting.is_none() {
                self.due = self.faults.to_vec();
            }
        }
        let fault = self.random.choice(faults).filter(|_| Instant::now() < self.end);
        let Some(fault) = fault else { return Ok(()) };
        self.due.retain(|due| *due != fault);
        (self.tell)(fault);
        let from_us = self.recorder.now_us();
        let stop = Duration::from_millis(self.random.u64(STOP_MIN_MS..Fault::STOP_MAX_MS));
        let survived = self.strike(fault, stop);
        self.struck.push(Struck { fault, from_us, to_us: self.recorder.now_us() });
        survived
    }

    fn that_may_begin(&self, faults: &[Fault]) -> Vec<Fault> {
        let may_begin = |fault: &Fault| {
            self.lasting.is_none_or(|lasting| fault.may_begin_during(lasting))
                && (*fault != Fault::Failover || self.targets.system.can_fail_over())
        };
        faults.iter().copied().filter(may_begin).collect()
    }

    /// Lets a fault last, half of the times with another one that begins and ends meanwhile.
    fn last(&mut self, fault: Fault, length: Duration) -> Result<(), Error> {
        if self.lasting.is_some() || self.random.bool() {
            thread::sleep(length);
            return Ok(());
        }
        let before = length.mul_f64(self.random.f64());
        thread::sleep(before);
        (self.lasting, self.has_overlapped) = (Some(fault), true);
        let survived = self.strike_any();
        self.lasting = None;
        thread::sleep(length.saturating_sub(before));
        survived
    }

    /// Waits until the system runs after faults that overlapped. A broker that did not start while
    /// a fault lasted is started once more, as supervisors of services do.
    fn recover(&mut self) -> Result<(), Error> {
        for broker in std::mem::take(&mut self.restarted) {
            let broker = self.targets.system.broker_at_mut(broker)?;
            if broker.wait_until_back().is_err() {
                broker.kill_and_restart()?;
            }
        }
        match std::mem::take(&mut self.has_overlapped) {
            true => self.targets.system.wait_until_ready(),
            false => Ok(()),
        }
    }

    fn strike(&mut self, fault: Fault, stop: Duration) -> Result<(), Error> {
        let broker = self.random.usize(..self.targets.system.brokers().max(1));
        match fault {
            Fault::Kill => {
                let absence = if self.random.bool() { stop } else { Duration::ZERO };
                self.targets.system.broker_at_mut(broker)?.kill_at_once()?;
                self.last(fault, absence)?;
                self.restart(broker)
            }
            Fault::Power | Fault::Disk | Fault::Slow => match self.targets.disk {
                Some(disk) => self.strike_disk(disk, fault, stop),
                None => Ok(()),
            },
            Fault::Stop => {
                self.targets.system.broker_at_mut(broker)?.suspend()?;
                self.last(fault, stop)?;
                self.targets.system.broker_at_mut(broker)?.resume()
            }
            Fault::Cut => match &mut self.targets.relay {
                Some(relay) => {
                    relay.kill_and_restart()?;
                    relay.wait_until_back()
                }
                None if self.random.bool() => {
                    let links = self.targets.system.links(LinkEnd::Clients, Some(broker));
                    links.for_each(Link::cut);
                    Ok(())
                }
                None => self.cut_off(fault, LinkEnd::Clients, broker, stop),
            },
            // Clients end by themselves.
            Fault::Client => Ok(()),
            Fault::Clock => self.strike_clock(broker, stop),
            Fault::Database => {
                self.targets.system.database_mut()?.end_and_restart(Signal::QUIT)?;
                self.wait_until_ready()
            }
            Fault::Failover => self.fail_over(stop),
            Fault::DatabaseCut => self.cut_off(fault, LinkEnd::Database, broker, stop),
            Fault::StoreCut => self.cut_off(fault, LinkEnd::Store, broker, stop),
            Fault::Store => {
                let failure = match self.random.u8(..3) {
                    0 => Disturbance::Unavailable,
                    1 => Disturbance::RepliesLost,
                    _ => Disturbance::Delayed(stop / SLOW_PORTIONS),
                };
                self.disturb(fault, (LinkEnd::Store, None), failure, stop)
            }
        }
    }

    /// What is acknowledged while the standby gets nothing would be lost.
    fn fail_over(&mut self, stop: Duration) -> Result<(), Error> {
        let lost = Disturbance::RepliesLost;
        self.targets.system.links(LinkEnd::Primary, None).for_each(|link| link.disturb(lost));
        self.last(Fault::Failover, stop)?;
        self.targets.system.fail_over()?;
        self.targets.system.links(LinkEnd::Primary, None).for_each(Link::restore);
        self.wait_until_ready()
    }

    /// Cuts a broker off from others for a while, in one of the ways.
    fn cut_off(
        &mut self,
        fault: Fault,
        from: LinkEnd,
        broker: usize,
        stop: Duration,
    ) -> Result<(), Error> {
        let disturbance = match self.random.u8(..3) {
            0 => Disturbance::Refused,
            1 => Disturbance::Held,
            _ => Disturbance::RepliesLost,
        };
        self.disturb(fault, (from, Some(broker)), disturbance, stop)
    }

    fn disturb(
        &mut self,
        fault: Fault,
        (with, of): (LinkEnd, Option<usize>),
        disturbance: Disturbance,
        length: Duration,
    ) -> Result<(), Error> {
        self.targets.system.links(with, of).for_each(|link| link.disturb(disturbance));
        self.last(fault, length)?;
        self.targets.system.links(with, of).for_each(Link::restore);
        Ok(())
    }

    fn strike_clock(&mut self, broker: usize, stop: Duration) -> Result<(), Error> {
        let Some(clocks) = self.targets.clocks else { return Ok(()) };
        let direction = if self.random.bool() { Direction::Forward } else { Direction::Back };
        let set = |by| clocks.set(broker, direction, by).map_err(Error::machine("setting a clock"));
        set(Fault::JUMP_MAX.mul_f64(self.random.f64()))?;
        if self.random.bool() {
            self.restart(broker)?;
        }
        self.last(Fault::Clock, stop)?;
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
            self.last(fault, stop)?;
            disk.set_health(Health::Sound);
        }
        if fault == Fault::Slow {
            return Ok(());
        }
        // The first broker is the one whose data lies there.
        self.targets.system.broker_at_mut(0)?.kill_at_once()?;
        disk.lose_power();
        self.restart(0)
    }

    /// Kills a broker if it runs, and starts it again.
    fn restart(&mut self, broker: usize) -> Result<(), Error> {
        self.targets.system.broker_at_mut(broker)?.kill_and_restart()?;
        if self.lasting.is_some() {
            self.restarted.push(broker);
        }
        self.wait_until_ready()
    }

    /// Waits, unless the fault that lasts may keep the system from becoming ready.
    fn wait_until_ready(&mut self) -> Result<(), Error> {
        match self.lasting {
            Some(_) => Ok(()),
            None => self.targets.system.wait_until_ready(),
        }
    }
}
