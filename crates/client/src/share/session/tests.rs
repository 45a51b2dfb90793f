//! Sessions against a model of a broker that loses requests, answers and sessions.

use super::*;

const PLACES: [Place; 3] = [
    (Uuid::from_bytes([1; 16]), 0),
    (Uuid::from_bytes([1; 16]), 1),
    (Uuid::from_bytes([2; 16]), 0),
];

/// Offsets of each partition.
const OFFSETS: i64 = 40;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    Available,
    Acquired,
    Done,
}

/// A broker with one session at most.
#[derive(Debug)]
struct Broker {
    session: Option<(i32, BTreeSet<Place>)>,
    records: BTreeMap<(Place, i64), State>,
    renewed: usize,
}

impl Broker {
    fn new() -> Self {
        let offsets = |place| (0..OFFSETS).map(move |offset| ((place, offset), State::Available));
        let records = PLACES.into_iter().flat_map(offsets).collect();
        Self { session: None, records, renewed: 0 }
    }

    fn end_session(&mut self) {
        self.session = None;
        let acquired = self.records.values_mut().filter(|state| **state == State::Acquired);
        acquired.for_each(|state| *state = State::Available);
    }

    /// Takes a request, one that fetches up to `limit` or one that only acknowledges; what it
    /// acquires, or `None` if there is no such session.
    fn take(&mut self, asked: &Contents, limit: Option<usize>) -> Option<Vec<(Place, i64)>> {
        match (asked.epoch, &mut self.session) {
            (0, _) => {
                assert!(asked.said.is_empty(), "nothing can be held of a session that opens");
                self.end_session();
                self.session = Some((1, asked.added.clone()));
            }
            (FINAL_EPOCH, Some(_)) => {
                self.acknowledge(asked);
                self.end_session();
                return Some(Vec::new());
            }
            (epoch, Some((next, partitions))) if epoch == *next => {
                *next += 1;
                if limit.is_some() {
                    partitions.extend(asked.added.iter().chain(asked.said.keys()));
                }
                partitions.retain(|place| !asked.forgotten.contains(place));
                self.acknowledge(asked);
            }
            _ => return None,
        }
        let partitions = &self.session.as_ref().unwrap().1;
        let open = self.records.iter_mut().filter(|((place, _), state)| {
            **state == State::Available && partitions.contains(place)
        });
        let acquired = open.take(limit.unwrap_or(0)).map(|(record, state)| {
            *state = State::Acquired;
            *record
        });
        Some(acquired.collect())
    }

    fn acknowledge(&mut self, asked: &Contents) {
        for (place, runs) in &asked.said {
            for run in runs {
                for offset in run.first..=run.last {
                    let state = self.records.get_mut(&(*place, offset)).unwrap();
                    assert_eq!(*state, State::Acquired, "{place:?} {offset}");
                    match run.kind {
                        2 => *state = State::Available,
                        RENEW => self.renewed += 1,
                        _ => *state = State::Done,
                    }
                }
            }
        }
    }
}

/// A member with one request at a time.
struct Member {
    session: Session,
    broker: Broker,
    random: fastrand::Rng,
    /// What it holds, as the caller knows it.
    held: Vec<(Place, i64)>,
}

impl Member {
    fn turn(&mut self) {
        let random = &mut self.random;
        // The caller says something of some of what it holds.
        random.shuffle(&mut self.held);
        for _ in 0..random.usize(..6) {
            let Some((place, offset)) = self.held.pop() else { break };
            let said = [Acknowledgement::Accept, Acknowledgement::Release, Acknowledgement::Reject];
            let said = *random.choice(&said).unwrap();
            assert!(self.session.acknowledge(place, offset, said));
            assert!(!self.session.acknowledge(place, offset, said), "it is no longer held");
        }
        if let Some((place, offset)) = self.held.first().filter(|_| random.u8(..4) == 0) {
            assert!(self.session.acknowledge(*place, *offset, Acknowledgement::Renew));
        }
        let wanted: BTreeSet<Place> = PLACES.into_iter().filter(|_| random.bool()).collect();
        let is_report = self.session.has_renewals() || self.random.u8(..3) == 0;
        let random = &mut self.random;
        let fetched_max = Some(random.usize(1..8));
        let (asked, limit) = match (is_report && self.session.is_open(), random.u8(..30)) {
            (_, 0) => (self.session.close().inspect(|_| self.held.clear()), None),
            (true, _) => (self.session.report(), None),
            (false, _) => (self.session.fetch(&wanted), fetched_max),
        };
        let Some(asked) = asked else { return };
        assert!(!self.session.is_idle() && self.session.fetch(&wanted).is_none());
        let is_lost = self.random.u8(..20) == 0;
        let answer = if is_lost { None } else { self.broker.take(&asked, limit) };
        let is_late = self.random.u8(..20) == 0;
        match answer.filter(|_| !is_late) {
            Some(acquired) => {
                self.session.answered();
                for (place, offset) in acquired {
                    self.session.deliver(place, offset, offset);
                    self.held.push((place, offset));
                }
            }
            None => {
                // The connection ends, and the session with it.
                self.session.lost();
                self.broker.end_session();
                self.held.clear();
            }
        }
        let known = self.broker.session.as_ref().map(|(_, partitions)| partitions);
        assert_eq!(known.cloned().unwrap_or_default(), self.session.known);
    }

    /// Reads and accepts what is left.
    fn drain(&mut self) {
        let wanted = PLACES.into_iter().collect();
        for _ in 0..400 {
            self.session.accept_all();
            let reported = self.session.report().filter(|_| self.session.is_open());
            let (asked, limit) = match reported {
                Some(report) => (Some(report), None),
                None => (self.session.fetch(&wanted), Some(5)),
            };
            let acquired = self.broker.take(&asked.unwrap(), limit).unwrap();
            self.session.answered();
            for (place, offset) in acquired {
                self.session.deliver(place, offset, offset);
            }
        }
    }
}

#[test]
fn every_record_is_finished_once_whatever_is_lost() {
    let mut renewed = 0;
    for seed in 0..300 {
        let random = fastrand::Rng::with_seed(seed);
        let (session, broker) = (Session::default(), Broker::new());
        let mut member = Member { session, broker, random, held: Vec::new() };
        for _ in 0..200 {
            member.turn();
        }
        member.drain();
        let open = member.broker.records.iter().find(|(_, state)| **state != State::Done);
        assert_eq!(open, None, "seed {seed}");
        renewed += member.broker.renewed;
    }
    assert!(renewed > 0);
}

#[test]
fn consecutive_offsets_of_one_kind_are_one_run() {
    let mut session = Session::default();
    let place = PLACES[0];
    session.fetch(&BTreeSet::from([place])).unwrap();
    session.answered();
    session.deliver(place, 3, 9);
    session.pass_over(place, [10]);
    for offset in [3, 4, 8] {
        assert!(session.acknowledge(place, offset, Acknowledgement::Reject));
    }
    assert!(!session.acknowledge(place, 11, Acknowledgement::Accept));
    session.accept_all();
    let said = session.report().unwrap();
    let run = |first, last, kind| Run { first, last, kind };
    let expected = [run(3, 4, 3), run(5, 7, 1), run(8, 8, 3), run(9, 9, 1), run(10, 10, 0)];
    assert_eq!((said.epoch, said.said[&place].as_slice()), (1, expected.as_slice()));
    assert_eq!(session.lost(), [place]);
    assert!(!session.is_open());
}
