//! One module per subcommand.

pub(crate) mod broker;
pub(crate) mod config_check;
pub(crate) mod consume;
mod experiment_file;
pub(crate) mod groups;
pub(crate) mod lab;
mod lab_cores;
pub(crate) mod produce;
pub(crate) mod proxy;
pub(crate) mod proxy_import;
pub(crate) mod proxy_keys;
pub(crate) mod repair;
pub(crate) mod topics;
pub(crate) mod users;

mod session;
mod signals;
mod watch;
