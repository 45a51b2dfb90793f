//! The form of a process in the plan of an experiment.

use std::fmt;

use super::{ProcessFile, Replacement};
use moldau_measure::profile::sha256;

impl fmt::Debug for ProcessFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, role, files, prepare, command, promote, environment, ready, stop } = self;
        let [files, environment] = [files, environment].map(|texts| {
            let hashed = texts.iter().map(|(name, text)| (name, sha256(text.as_bytes())));
            hashed.collect::<Vec<_>>()
        });
        let prepare: Vec<_> = prepare.iter().map(|command| told(command)).collect();
        let commands = (prepare, told(command), told(promote));
        let told = (name, role, files, commands, environment, ready, stop);
        f.debug_tuple("ProcessFile").field(&told).finish()
    }
}

impl fmt::Debug for Replacement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [text, by] = [&self.text, &self.by].map(|it| sha256(it.as_bytes()));
        f.debug_struct("Replacement").field("text", &text).field("by", &by).finish()
    }
}

/// A program, and the SHA-256 of its arguments: one that makes a user may be given the password.
fn told(command: &[String]) -> Option<(&String, String)> {
    let (program, arguments) = command.split_first()?;
    Some((program, sha256(arguments.join("\0").as_bytes())))
}
