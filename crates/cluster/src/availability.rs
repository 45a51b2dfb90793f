//! Whether a service answers, as the requests to it show. An outage is logged once, and so is its
//! end, whatever requests fail meanwhile.
//!
//! A request shows an outage if it fails, or if it has no answer after some seconds. Its failure
//! does not count if a request was answered after it had begun: it belongs to an outage that is
//! over. An object store can serve reads while it takes no object, so only a write ends an outage
//! in which writes fail.

use std::fmt::Display;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, timeout};

use crate::sequencer::Answer;

/// A request without an answer for this long counts as failed. A service that works answers within
/// a second.
const UNANSWERED_MAX: Duration = Duration::from_secs(3);

/// Requests that fail for less than this are no outage that lasts: a database that fails over, or a
/// request that is lost, must not move all clients.
const LASTING: Duration = Duration::from_secs(5);

/// A failure that follows another one so soon is logged only if it lasts. Otherwise occasional
/// failures would fill the log.
const CALM: Duration = Duration::from_secs(5);

/// Once an outage has begun for so long, an answer shows that it is over.
const SETTLED: Duration = Duration::from_secs(1);

/// A service that a cluster needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Service {
    /// The database. Its address is not logged, as it may hold a password.
    PostgreSql,
    /// The object store.
    ObjectStore {
        /// The bucket.
        bucket: String,
        /// The address of the store; none for that of AWS.
        endpoint: Option<String>,
    },
}

impl Service {
    /// Its name for operators.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::PostgreSql => "PostgreSQL",
            Self::ObjectStore { .. } => "the object store",
        }
    }
}

/// What a request does to a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}

/// Whether a service answers.
#[derive(Debug)]
pub struct Availability {
    service: Service,
    /// Guards what the requests have shown.
    shown: Mutex<Shown>,
}

#[derive(Debug, Default)]
struct Shown {
    /// When a read, and a write, was answered last.
    read_at: Option<Instant>,
    written_at: Option<Instant>,
    outage: Option<Outage>,
    /// An outage that was over at this time. Its end is not logged yet.
    over: Option<(Outage, Instant)>,
    /// When a request failed last.
    failed_at: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    /// When the first request began that failed.
    since: Instant,
    /// Whether a write has failed.
    of_writes: bool,
    is_logged: bool,
}

impl Availability {
    /// A service that is not known to be away.
    #[must_use]
    pub fn of(service: Service) -> Self {
        Self { service, shown: Mutex::default() }
    }

    /// The service.
    pub fn service(&self) -> &Service {
        &self.service
    }

    /// For how long requests have failed; none if the last one was answered.
    pub fn away_for(&self) -> Option<Duration> {
        let outage = self.with(|shown| shown.outage)?;
        Some(Instant::now().duration_since(outage.since))
    }

    /// For how long requests have failed, once that is some seconds.
    pub fn lasting_outage(&self) -> Option<Duration> {
        self.away_for().filter(|away_for| *away_for >= LASTING)
    }

    /// Runs a request, and notes what it shows of the service.
    pub(crate) async fn observe<T>(
        &self,
        access: Access,
        what: &'static str,
        request: impl Future<Output = Answer<T>>,
    ) -> Answer<T> {
        let began = Instant::now();
        let mut request = pin!(request);
        let answer = match timeout(UNANSWERED_MAX, &mut request).await {
            Ok(answer) => answer,
            Err(_) => {
                self.failed(access, what, began, &"no answer for some seconds");
                request.await
            }
        };
        match &answer {
            Err(error) if error.is_outage() => self.failed(access, what, began, error),
            _ => self.answered(access),
        }
        answer
    }

    fn failed(&self, access: Access, request: &str, began: Instant, error: &dyn Display) {
        let now = Instant::now();
        let is_logged = self.with(|shown| shown.fails(access, began, now));
        let service = self.service.name();
        match &self.service {
            _ if !is_logged => tracing::debug!(request, %error, "a request to {service} failed"),
            Service::PostgreSql => {
                tracing::warn!(request, %error, "requests to {service} fail");
            }
            Service::ObjectStore { bucket, endpoint } => {
                tracing::warn!(bucket, endpoint, request, %error, "requests to {service} fail");
            }
        }
    }

    fn answered(&self, access: Access) {
        let now = Instant::now();
        let Some(lasted) = self.with(|shown| shown.works(access, now)) else { return };
        let (service, lasted_ms) = (self.service.name(), lasted.as_millis());
        match &self.service {
            Service::PostgreSql => {
                tracing::info!(lasted_ms, "requests to {service} succeed again");
            }
            Service::ObjectStore { bucket, endpoint } => {
                let message = "requests to the object store succeed again";
                tracing::info!(bucket, endpoint, lasted_ms, "{message}");
            }
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Shown) -> T) -> T {
        change(&mut self.shown.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shown {
    /// Whether to log a failure of a request that began then.
    fn fails(&mut self, access: Access, began: Instant, now: Instant) -> bool {
        let answered_at = match access {
            Access::Read => self.read_at.max(self.written_at),
            Access::Write => self.written_at,
        };
        if answered_at.is_some_and(|answered_at| answered_at > began) {
            return false;
        }
        let failed_at = self.failed_at.replace(now);
        let was_calm = failed_at.is_none_or(|at| now.duration_since(at) >= CALM);
        // A database that ends answers on some connections still, while others are closed.
        let over = self.over.take().filter(|(_, at)| now.duration_since(*at) < SETTLED);
        let begun = Outage { since: began, of_writes: false, is_logged: false };
        let outage = self.outage.get_or_insert(over.map_or(begun, |(outage, _)| outage));
        outage.of_writes |= access == Access::Write;
        let is_news = was_calm || now.duration_since(outage.since) >= CALM;
        let is_logged = is_news && !outage.is_logged;
        outage.is_logged |= is_logged;
        is_logged
    }

    /// Notes an answer, and returns how long the outage has lasted whose end is to be logged: at
    /// once, unless it has just begun.
    fn works(&mut self, access: Access, now: Instant) -> Option<Duration> {
        match access {
            Access::Read => self.read_at = Some(now),
            Access::Write => self.written_at = Some(now),
        }
        let ends = |outage: &mut Outage| access == Access::Write || !outage.of_writes;
        let outage = self.outage.take_if(ends).filter(|outage| outage.is_logged);
        self.over = outage.map(|outage| (outage, now)).or(self.over);
        let is_to_be_logged =
            |(outage, _): &mut (Outage, Instant)| now.duration_since(outage.since) >= SETTLED;
        let (outage, over_at) = self.over.take_if(is_to_be_logged)?;
        Some(over_at.duration_since(outage.since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    const S: Duration = Duration::from_secs(1);

    /// What is logged of requests, one in each second, which are answered or fail at once: `x` is a
    /// write that fails, `.` one that works, `r` a read that fails, `,` one that works.
    fn logged(requests: &str) -> Vec<(usize, Option<u64>)> {
        let (mut shown, begin) = (Shown::default(), Instant::now());
        let mut logged = Vec::new();
        for (second, request) in requests.chars().enumerate() {
            let now = begin + S * u32::try_from(second).unwrap();
            let access = if ".x".contains(request) { Access::Write } else { Access::Read };
            if "xr".contains(request) {
                logged.extend(shown.fails(access, now, now).then_some((second, None)));
            } else {
                let lasted = shown.works(access, now);
                logged.extend(lasted.map(|lasted| (second, Some(lasted.as_secs()))));
            }
        }
        logged
    }

    #[test]
    fn answers_of_a_service_that_ends_make_no_second_outage() {
        let (mut shown, begin) = (Shown::default(), Instant::now());
        let at = |ms| begin + Duration::from_millis(ms);
        let write = Access::Write;
        assert!(shown.fails(write, at(0), at(5)));
        assert_eq!(shown.works(write, at(11)), None);
        assert!(!shown.fails(write, at(12), at(13)));
        assert!(!shown.fails(write, at(5_100), at(5_110)));
        assert_eq!(shown.works(write, at(5_300)), Some(Duration::from_millis(5_300)));
        assert_eq!(shown.works(write, at(5_400)), None);
        // The end of a short one is logged a little later.
        assert!(shown.fails(write, at(20_000), at(20_000)));
        assert_eq!(shown.works(write, at(20_100)), None);
        assert!(shown.outage.is_none());
        assert_eq!(shown.works(write, at(21_000)), Some(Duration::from_millis(100)));
    }

    #[test]
    fn an_outage_is_logged_once_and_so_is_its_end() {
        assert_eq!(logged("....."), []);
        assert_eq!(logged(".xrxrxxxxx.,."), [(1, None), (10, Some(9))]);
        assert_eq!(logged("xx......xx."), [(0, None), (2, Some(2)), (8, None), (10, Some(2))]);
    }

    #[test]
    fn a_failure_soon_after_another_is_logged_only_if_it_lasts() {
        assert_eq!(logged("x.x.x.x.x.x."), [(0, None), (1, Some(1))]);
        assert_eq!(logged("x.xxxxxxx."), [(0, None), (1, Some(1)), (7, None), (9, Some(7))]);
    }

    /// A store whose disk is full serves reads.
    #[test]
    fn reads_do_not_end_an_outage_of_writes() {
        assert_eq!(logged("x,x,x,."), [(0, None), (6, Some(6))]);
        assert_eq!(logged("r,"), [(0, None), (1, Some(1))]);
        assert_eq!(logged("r."), [(0, None), (1, Some(1))]);
    }

    /// The log said that a second outage had begun, when requests of the first one were given up.
    #[test]
    fn a_request_that_began_before_an_answer_shows_no_outage() {
        let (mut shown, begin) = (Shown::default(), Instant::now());
        assert!(shown.fails(Access::Write, begin, begin + S));
        assert_eq!(shown.works(Access::Write, begin + 9 * S), Some(9 * S));
        assert!(!shown.fails(Access::Write, begin + 8 * S, begin + 30 * S));
        assert!(shown.outage.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_without_an_answer_shows_an_outage_while_it_waits() {
        let availability = Availability::of(Service::PostgreSql);
        let hangs = async {
            tokio::time::advance(UNANSWERED_MAX).await;
            tokio::task::yield_now().await;
            assert_eq!(availability.away_for(), Some(UNANSWERED_MAX));
            tokio::time::advance(S).await;
            Ok(7)
        };
        let answer = tokio::join!(
            availability.observe(Access::Read, "a request", async {
                tokio::time::sleep_until(Instant::now() + UNANSWERED_MAX + S).await;
                Ok(7)
            }),
            hangs
        );
        assert_eq!(answer, (Ok(7), Ok::<_, Error>(7)));
        assert_eq!(availability.away_for(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn an_outage_lasts_once_requests_have_failed_for_some_seconds() {
        let availability = Availability::of(Service::PostgreSql);
        let away = || Err::<(), _>(Error::SequencerAway("away".into()));
        let ask = |answer: Answer<()>| availability.observe(Access::Read, "a", async { answer });
        assert!(ask(away()).await.is_err());
        tokio::time::advance(LASTING - Duration::from_millis(1)).await;
        assert_eq!(availability.lasting_outage(), None);
        ask(Ok(())).await.unwrap();
        assert!(ask(away()).await.is_err());
        tokio::time::advance(LASTING).await;
        assert_eq!(availability.lasting_outage(), Some(LASTING));
        ask(Ok(())).await.unwrap();
        assert_eq!(availability.lasting_outage(), None);
    }

    #[tokio::test]
    async fn an_answer_that_is_no_success_ends_an_outage_as_well() {
        let availability = Availability::of(Service::PostgreSql);
        let ask = |answer: Answer<()>| availability.observe(Access::Read, "a", async { answer });
        assert!(ask(Err(Error::SequencerAway("away".into()))).await.is_err());
        assert!(availability.away_for().is_some());
        assert!(ask(Err(Error::UnknownLog)).await.is_err());
        assert!(availability.away_for().is_none());
    }
}
