//! `moldau lab worker`, and the workers that an experiment asks for.

use std::net::TcpListener;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use moldau_load::workers::{Event, Stay, Token, Worker, Workers};
use zeroize::Zeroizing;

use crate::arguments::{WorkerOptions, WorkersOptions};

/// Serves experiments until the process is ended, or one was carried through.
pub(super) fn serve(options: &WorkerOptions, version: String) -> anyhow::Result<ExitCode> {
    let token = token(&options.token_file)?;
    let listener = TcpListener::bind(options.listen)
        .with_context(|| format!("listening on {}", options.listen))?;
    eprintln!("worker: listens on {}", listener.local_addr()?);
    let stay = if options.once { Stay::OneExperiment } else { Stay::Always };
    Worker::new(listener, token, version).run(stay, &mut |event| match event {
        Event::Serves(coordinator) => eprintln!("worker: serves {coordinator}"),
        Event::Ended(coordinator, Ok(())) => eprintln!("worker: done with {coordinator}"),
        Event::Ended(_, Err(reason)) => eprintln!("worker: {reason}"),
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The workers that were asked for, connected.
pub(super) fn connected(
    options: &WorkersOptions,
    version: &str,
) -> anyhow::Result<Option<Workers>> {
    let Some(path) = &options.token_file else { return Ok(None) };
    Ok(Some(Workers::connect(&options.workers, &token(path)?, version)?))
}

fn token(path: &Path) -> anyhow::Result<Token> {
    let place = || path.display().to_string();
    let text = Zeroizing::new(std::fs::read_to_string(path).with_context(place)?);
    let token = text.trim_end_matches(['\n', '\r']);
    ensure!(!token.contains('\n'), "{}: has more than one line", place());
    Token::new(Zeroizing::new(token.to_owned())).with_context(place)
}
