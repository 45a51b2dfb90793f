//! Stdout and stderr, whose reader may be gone before all is printed, as in `moldau topics | head`.
//!
//! Without a reader of stdout the process ends quietly, but not at once: what it has started and
//! holds is dropped first, by unwinding. Without a reader of stderr its lines are dropped.

use std::io::{self, ErrorKind, StdoutLock, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process::ExitCode;

/// As `std::println`.
macro_rules! println {
    () => { $crate::output::print(format_args!("\n")) };
    ($($words:tt)*) => { $crate::output::print(format_args!("{}\n", format_args!($($words)*))) };
}

/// As `std::print`.
macro_rules! print {
    ($($words:tt)*) => { $crate::output::print(format_args!($($words)*)) };
}

/// As `std::eprintln`.
macro_rules! eprintln {
    ($($words:tt)*) => {
        $crate::output::tell(format_args!("{}\n", format_args!($($words)*)))
    };
}

/// Stdout of a command, on the thread of [`until_reader_is_gone`].
pub(crate) struct Output(StdoutLock<'static>);

/// What unwinds a command whose stdout has no reader.
struct ReaderGone;

/// Does the work of a command. One without a reader ends with the code that a shell gives
/// to a process that SIGPIPE has ended.
pub(crate) fn until_reader_is_gone(work: impl FnOnce() -> ExitCode) -> ExitCode {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| match panic.is::<ReaderGone>() {
        true => ExitCode::from(READER_GONE),
        false => resume_unwind(panic),
    })
}

pub(crate) fn stdout() -> Output {
    Output(io::stdout().lock())
}

pub(crate) fn print(words: std::fmt::Arguments<'_>) {
    stdout().write_fmt(words).expect("stdout takes what is printed");
}

pub(crate) fn tell(words: std::fmt::Arguments<'_>) {
    // At one go: whoever reads gets no part of a line from a process that ends meanwhile. There is
    // no other place for a failure.
    let _ = io::stderr().write_all(words.to_string().as_bytes());
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        as_read(self.0.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        as_read(self.0.flush())
    }
}

fn as_read<T>(written: io::Result<T>) -> io::Result<T> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => resume_unwind(Box::new(ReaderGone)),
        written => written,
    }
}

/// 128 and the number of SIGPIPE.
const READER_GONE: u8 = 128 + 13;
