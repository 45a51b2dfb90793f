//! Instructions that a function takes, counted by Valgrind's Callgrind, which must be installed.
//! Benches of several crates include this file.

use std::error::Error;
use std::process::Command;

/// Instructions of this program, started with `arguments`, within the functions whose path matches
/// `function`, which are not to be inlined.
pub(crate) fn instructions(function: &str, arguments: &[&str]) -> Result<u64, Box<dyn Error>> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={function}"))
        .arg(std::env::current_exe()?)
        .args(arguments)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let said = String::from_utf8(output.stderr)?;
    let collected = said.lines().find_map(|line| line.split_once("Collected : "));
    let (_, collected) = collected.ok_or_else(|| format!("valgrind counted nothing: {said}"))?;
    Ok(collected.trim().parse()?)
}
