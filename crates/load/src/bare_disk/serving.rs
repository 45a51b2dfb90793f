//! The writing loop behind a loopback connection: what any server must pay that flushes before it
//! answers.
//!
//! One thread sends each operation at its intended time. Another takes whatever has arrived whole,
//! writes and flushes it, and answers with a byte for each. A third takes the answers.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::Outcome;
use super::file::{Aligned, File, Ring};
use super::writing::{Booked, Times};
use crate::generator::{BlockingTimer, RunClock};
use crate::workload::Workload;
use moldau_measure::Error;

/// Answers that are taken at once.
const ANSWERS_MAX: usize = 4096;

/// Runs the loop over the file.
pub(super) fn run(file: &File, file_bytes: u64, workload: &Workload) -> Result<Outcome, Error> {
    let (client, server) = connected_pair()?;
    let sending = Sending::new(workload);
    thread::scope(|scope| {
        let ring = Ring::new(file, file_bytes);
        let bytes = workload.record_bytes;
        let serving = scope.spawn(move || serve(server, ring, bytes));
        let taking = scope.spawn(|| sending.take_answers(&client));
        let sent = sending.send_all(&client, workload);
        // Without a further operation the server ends, and with it the answers.
        let ended = client.shutdown(Shutdown::Write).map_err(Error::machine("ending a loop"));
        let served = serving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let taken = taking.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        // A server that failed is why the others did.
        served.and(sent).and(taken).and(ended)
    })?;
    let state = sending.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    state.booked.into_outcome()
}

/// Both ends of a connection over loopback.
fn connected_pair() -> Result<(TcpStream, TcpStream), Error> {
    let action = "connecting a loop to itself";
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(Error::machine(action))?;
    let address = listener.local_addr().map_err(Error::machine(action))?;
    let client = TcpStream::connect(address).map_err(Error::machine(action))?;
    let (server, _) = listener.accept().map_err(Error::machine(action))?;
    for stream in [&client, &server] {
        stream.set_nodelay(true).map_err(Error::machine(action))?;
    }
    Ok((client, server))
}

/// Writes and flushes operations of `bytes` each as they come, until there are no more.
fn serve(mut stream: TcpStream, mut ring: Ring<'_>, bytes: usize) -> Result<(), Error> {
    let gathered_max = ring.gathered_max(bytes);
    let mut buffer = Aligned::random(gathered_max * bytes);
    let answers = vec![1; gathered_max];
    let mut filled = 0;
    loop {
        let room = buffer.bytes().get_mut(filled..).expect("whole operations were taken out");
        match stream.read(room) {
            Ok(0) => return Ok(()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(Error::machine("reading operations")(error)),
        }
        let operations = filled / bytes;
        if operations > 0 {
            let whole = operations * bytes;
            ring.append(buffer.bytes().get(..whole).expect("it was filled"))?;
            let answer = answers.get(..operations).expect("no more than are gathered");
            stream.write_all(answer).map_err(Error::machine("answering operations"))?;
            buffer.bytes().copy_within(whole..filled, 0);
            filled -= whole;
        }
    }
}

/// The client's side.
struct Sending {
    clock: RunClock,
    state: Mutex<State>,
}

struct State {
    booked: Booked,
    /// Operations without an answer, which come in order; bounded by what the sockets hold.
    waiting: VecDeque<Times>,
}

impl Sending {
    fn new(workload: &Workload) -> Self {
        let state = State { booked: Booked::new(workload), waiting: VecDeque::new() };
        Self { clock: RunClock::starting_at(Instant::now()), state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send_all(&self, mut stream: &TcpStream, workload: &Workload) -> Result<(), Error> {
        let mut operation = Aligned::random(workload.record_bytes);
        let timer = BlockingTimer::new()?;
        let slice = self.state().booked.slice(workload)?;
        let mut ready_ns = 0;
        for intended_ns in slice {
            self.state().booked.offer(intended_ns)?;
            if self.state().booked.is_too_late(self.clock) {
                continue;
            }
            timer.sleep_until(self.clock.instant(intended_ns))?;
            let start_ns = self.clock.now_ns();
            // Waiting for room in the socket is the disk's; only waking up late is the loop's.
            let times = Times { intended_ns, ready_ns: ready_ns.max(intended_ns), start_ns };
            self.state().waiting.push_back(times);
            stream.write_all(operation.bytes()).map_err(Error::machine("sending operations"))?;
            ready_ns = self.clock.now_ns();
        }
        Ok(())
    }

    fn take_answers(&self, mut stream: &TcpStream) -> Result<(), Error> {
        let mut answers = [0; ANSWERS_MAX];
        loop {
            let count = match stream.read(&mut answers) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(Error::machine("taking answers")(error)),
            };
            let done_ns = self.clock.now_ns();
            let mut state = self.state();
            for _ in 0..count {
                let times = state.waiting.pop_front().expect("an answer belongs to an operation");
                state.booked.book(times, done_ns);
            }
        }
    }
}
