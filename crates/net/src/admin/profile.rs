//! `GET /profile?seconds=N`: where the process spends its processor time, as folded stacks, a line
//! each: thread and functions from the outermost in, joined by `;`, then a space and how often it
//! was seen. Any tool that draws flame graphs reads that.
//!
//! | status | when |
//! |---|---|
//! | 200 | the stacks of the next N seconds, 1 to [`SECONDS_MAX`]; without N, of [`SECONDS`] |
//! | 400 | N is something else |
//! | 405 | the method is not GET |
//! | 409 | another profile of this process is being taken |
//! | 500 | the operating system refuses |
//!
//! While one is taken, the kernel interrupts the process by SIGPROF [`SAMPLES_PER_SECOND`] times
//! for each second of processor time, and the handler walks the stack of the thread that ran.
//! Before and after, nothing of it exists. Stacks name functions of the program and no data, so
//! that who may read `/metrics` may have them.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use hyper::StatusCode;
use nix::sys::signal::{Signal, raise};
use pprof::{Frames, ProfilerGuard, ProfilerGuardBuilder};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::{Page, text};

/// Seconds of a profile that says nothing of them.
const SECONDS: u64 = 10;

/// Longest profile: the connection of who asked stands idle as long.
const SECONDS_MAX: u64 = 60;

/// Samples for each second of processor time, which the timer counts by ticks of the kernel: where
/// those are 250 a second, there are no more to have. Odd, so that it keeps step with nothing.
const SAMPLES_PER_SECOND: i32 = 199;

/// Signal and timer are the process's, so that there is one profile at a time.
static TAKEN: Semaphore = Semaphore::const_new(1);

/// The page.
pub(super) async fn answer(query: Option<&str>) -> Page {
    let Some(seconds) = seconds(query) else {
        let why = format!("seconds=N, 1 to {SECONDS_MAX}\n");
        return text(StatusCode::BAD_REQUEST, why);
    };
    let Ok(place) = TAKEN.try_acquire() else {
        return text(StatusCode::CONFLICT, "another profile is being taken\n".to_owned());
    };
    match take(place, Duration::from_secs(seconds)).await {
        Ok(folded) => text(StatusCode::OK, folded),
        Err(why) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{why}\n")),
    }
}

/// If the client disconnects early, the profile ends.
async fn take(place: SemaphorePermit<'static>, length: Duration) -> Result<String, String> {
    // Both ends read the files of the program, which would hold up the connections of the thread.
    let begun = tokio::task::spawn_blocking(move || Sampling::begin(place)).await;
    let sampling = begun.map_err(|error| error.to_string())??;
    tokio::time::sleep(length).await;
    let ended = tokio::task::spawn_blocking(move || sampling.end()).await;
    ended.map_err(|error| error.to_string())?
}

/// Samples are taken while this lives.
struct Sampling {
    guard: ProfilerGuard<'static>,
    /// Given back once the guard is gone.
    place: SemaphorePermit<'static>,
}

impl Sampling {
    fn begin(place: SemaphorePermit<'static>) -> Result<Self, String> {
        let start = |samples_per_second| {
            let builder = ProfilerGuardBuilder::default().frequency(samples_per_second);
            builder.build().map_err(|error| error.to_string())
        };
        // The first sample of a process finds out where its libraries lie, which allocates. It is
        // made here, where no allocation is under way, rather than wherever the timer strikes; the
        // timer of this first guard leaves a second for that.
        let guard = start(1)?;
        raise(Signal::SIGPROF).map_err(|error| error.to_string())?;
        drop(guard);
        Ok(Self { guard: start(SAMPLES_PER_SECOND)?, place })
    }

    fn end(self) -> Result<String, String> {
        let stacks = self.guard.report().build_unresolved().map_err(|error| error.to_string())?;
        drop(self.guard);
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for (stack, count) in stacks.data {
            *counts.entry(line(&Frames::from(stack))).or_default() +=
                u64::try_from(count).unwrap_or(0);
        }
        // Names are looked up in one process at a time as well.
        drop(self.place);
        let mut folded = String::new();
        for (stack, count) in counts {
            writeln!(folded, "{stack} {count}").map_err(|error| error.to_string())?;
        }
        Ok(folded)
    }
}

/// Thread and functions, the outermost first.
fn line(stack: &Frames) -> String {
    let mut line = folded_name(&stack.thread_name_or_id());
    for symbol in stack.frames.iter().rev().flat_map(|inlined| inlined.iter().rev()) {
        line.push(';');
        line += &folded_name(&symbol.name());
    }
    line
}

/// A name without what separates names and lines: an array's type holds a semicolon.
fn folded_name(name: &str) -> String {
    name.replace(';', ",").replace(['\n', '\r'], " ")
}

fn seconds(query: Option<&str>) -> Option<u64> {
    let Some(query) = query.filter(|query| !query.is_empty()) else { return Some(SECONDS) };
    let seconds = query.strip_prefix("seconds=")?.parse().ok()?;
    (1..=SECONDS_MAX).contains(&seconds).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn length_of_a_profile_is_bounded() {
        assert_eq!(seconds(None), Some(SECONDS));
        assert_eq!(seconds(Some("")), Some(SECONDS));
        assert_eq!(seconds(Some("seconds=60")), Some(60));
        for wrong in ["seconds=0", "seconds=61", "seconds=", "seconds=-1", "second=1", "1"] {
            assert_eq!(seconds(Some(wrong)), None, "{wrong}");
        }
    }

    #[test]
    fn names_keep_clear_of_what_separates_them() {
        assert_eq!(folded_name("<[u8; 4] as A>::f\n"), "<[u8, 4] as A>::f ");
    }
}
