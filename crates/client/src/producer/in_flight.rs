//! What the requests of a producer do: how many are on their way, for how long, and how long
//! brokers asked it to wait.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// Sums over the Produce requests of a producer since it was started. The difference of two
/// readings tells what happened between them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct RequestTimes {
    /// Requests whose answer came, or for which none will come.
    pub returned: u64,
    /// Time that requests were on their way, each counted by itself and those still there up to
    /// the reading: by its length, how many were on their way on average.
    pub in_flight: Duration,
    /// Time for which answers said that the client was held (`throttle_time_ms`, KIP-219).
    pub throttled: Duration,
    /// Requests that may be on their way at once, over all brokers that any was sent to.
    pub in_flight_max: usize,
}

/// Keeps the sums.
#[derive(Debug)]
pub(super) struct RequestClock {
    sums: RequestTimes,
    count: u32,
    changed_at: Instant,
    nodes: HashSet<i32>,
    in_flight_max: usize,
}

impl RequestClock {
    /// Starts without requests. At most `in_flight_max` may be in flight to each broker.
    pub(super) fn new(in_flight_max: usize, now: Instant) -> Self {
        Self {
            sums: RequestTimes::default(),
            count: 0,
            changed_at: now,
            nodes: HashSet::new(),
            in_flight_max,
        }
    }

    pub(super) fn sent(&mut self, node: i32, now: Instant) {
        self.advance(now);
        self.nodes.insert(node);
        self.count += 1;
    }

    pub(super) fn returned(&mut self, throttled: Duration, now: Instant) {
        self.advance(now);
        assert!(self.count > 0, "what returns was sent");
        self.count -= 1;
        self.sums.returned += 1;
        self.sums.throttled += throttled;
    }

    pub(super) fn read(&mut self, now: Instant) -> RequestTimes {
        self.advance(now);
        RequestTimes { in_flight_max: self.in_flight_max * self.nodes.len(), ..self.sums }
    }

    fn advance(&mut self, now: Instant) {
        self.sums.in_flight += now.saturating_duration_since(self.changed_at) * self.count;
        self.changed_at = self.changed_at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_side_by_side_count_each_by_itself() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut clock = RequestClock::new(5, start);
        clock.sent(1, at(10));
        clock.sent(1, at(20));
        clock.returned(Duration::ZERO, at(40));
        let half = clock.read(at(50));
        // 30 ms of the first, and 30 ms of the second up to the reading.
        assert_eq!((half.returned, half.in_flight), (1, Duration::from_millis(60)));
        clock.sent(2, at(60));
        clock.returned(Duration::from_millis(7), at(70));
        clock.returned(Duration::ZERO, at(80));
        let whole = clock.read(at(100));
        assert_eq!((whole.returned, whole.in_flight), (3, Duration::from_millis(100)));
        assert_eq!((whole.throttled, whole.in_flight_max), (Duration::from_millis(7), 10));
    }
}
