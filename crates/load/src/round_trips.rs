//! The machine's own yardstick: round trips over loopback without anything under test in them.
//!
//! What a client and a server do for small requests is mostly to wake each other. What that costs
//! differs between machines, and on a virtual one from minute to minute, without a trace in the
//! time that the hypervisor is known to have taken.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use moldau_measure::Error;

/// Bytes of a request and of its answer: those of a small Produce request, and of its response.
const REQUEST_BYTES: usize = 3_000;
const ANSWER_BYTES: usize = 100;

/// How long either side waits for the other.
const PATIENCE: Duration = Duration::from_secs(5);

/// Round trips per second, one at a time, between two threads of this process over a loopback
/// connection, counted for `time`.
///
/// # Errors
/// [`Error::Machine`] where the connection cannot be made, or breaks.
pub fn per_second(time: Duration) -> Result<f64, Error> {
    let failed = || Error::machine("count round trips over loopback");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed())?;
    let near = TcpStream::connect(listener.local_addr().map_err(failed())?).map_err(failed())?;
    let (far, _) = listener.accept().map_err(failed())?;
    for stream in [&near, &far] {
        stream.set_nodelay(true).map_err(failed())?;
        stream.set_read_timeout(Some(PATIENCE)).map_err(failed())?;
        stream.set_write_timeout(Some(PATIENCE)).map_err(failed())?;
    }
    thread::scope(|scope| {
        let answering = scope.spawn(|| answer(far));
        let counted = ask(near, time);
        let answered = answering.join().expect("it does not panic");
        counted.and_then(|per_second| answered.map(|()| per_second)).map_err(failed())
    })
}

fn ask(mut stream: TcpStream, time: Duration) -> std::io::Result<f64> {
    let (request, mut answer) = ([0; REQUEST_BYTES], [0; ANSWER_BYTES]);
    let started = Instant::now();
    let mut trips = 0_u32;
    while started.elapsed() < time {
        stream.write_all(&request)?;
        stream.read_exact(&mut answer)?;
        trips += 1;
    }
    Ok(f64::from(trips) / started.elapsed().as_secs_f64())
}

/// Answers until the other side closes.
fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let (mut request, answer) = ([0; REQUEST_BYTES], [0; ANSWER_BYTES]);
    loop {
        match stream.read_exact(&mut request) {
            Err(end) if end.kind() == ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        stream.write_all(&answer)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trips_are_counted() {
        assert!(per_second(Duration::from_millis(20)).unwrap() > 0.0);
    }

    #[test]
    fn a_connection_that_is_cut_is_an_error() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        drop(listener.accept().unwrap());
        assert!(ask(near, PATIENCE).is_err());
    }
}
