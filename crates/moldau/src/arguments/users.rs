//! `moldau users`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::units;

#[derive(Debug, Subcommand)]
pub(crate) enum UsersAction {
    /// Print a user's SCRAM credential, which does not reveal the password.
    Scram(ScramOptions),
}

#[derive(Args, Clone, Debug)]
pub(crate) struct ScramOptions {
    /// Name of the user.
    #[arg(long)]
    pub(crate) user: String,
    /// Mechanism of the credential.
    #[arg(long, value_enum, default_value_t = ScramChoice::Sha512)]
    pub(crate) mechanism: ScramChoice,
    /// Rounds of hashing. More rounds make guessing and each login slower.
    #[arg(long, default_value_t = 4096, value_parser = units::scram_iterations)]
    pub(crate) iterations: u32,
    /// File whose first line is the password [default: stdin].
    #[arg(long, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScramChoice {
    #[value(name = "SCRAM-SHA-256")]
    Sha256,
    #[value(name = "SCRAM-SHA-512")]
    Sha512,
}
