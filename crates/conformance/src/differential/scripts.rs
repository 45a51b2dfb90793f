//! The requests that both servers are asked, by families of APIs.
//!
//! A script asks the same on every server and decides nothing by the answers; what it takes from
//! them are names and numbers that the server generated. A case whose request changes something
//! has `$v` in its names, so that every version finds the same state.

mod cluster;
mod configs;
mod controller;
mod groups;
pub(super) mod malformed;
mod offsets;
mod quotas;
mod records;
mod security;
mod share_deliveries;
mod share_groups;
mod streams_groups;
mod telemetry;
mod topics;
mod transactions;

use anyhow::Result;
use serde_json::{Value, json};

use super::session::Session;
use super::tree;
use crate::odd_produces::batch::{Batch, Record};

/// Asks everything.
pub(super) fn run(session: &mut Session) -> Result<()> {
    session.create_topics(&[(ORDERS, 2), (EMPTY, 1)])?;
    records::run(session)?;
    topics::run(session)?;
    configs::run(session)?;
    groups::run(session)?;
    offsets::run(session)?;
    share_groups::run(session)?;
    share_deliveries::run(session)?;
    streams_groups::run(session)?;
    transactions::run(session)?;
    cluster::run(session)?;
    controller::run(session)?;
    quotas::run(session)?;
    telemetry::run(session)?;
    security::run(session)?;
    malformed::run(session)?;
    // What was asked without rights was so to the end.
    session.await_refusal()
}

/// A topic of two partitions, of which the first has records.
const ORDERS: &str = "orders";

/// A topic of one partition that is never written to.
const EMPTY: &str = "empty";

/// A topic that does not exist, and the id of one.
const ABSENT: &str = "absent";
const ABSENT_ID: &str = "AAAAAAAAAAcAAAAAAAAABw";

/// No topic's id.
const NO_ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// A name that no topic may have.
const ILLEGAL: &str = "no name!";

/// A batch of so many records, the first of the time of the run.
fn batch(session: &Session, count: i64) -> String {
    let records: Vec<_> = (0..count).map(Record::at).collect();
    tree::hex(&Batch::of(session.now_ms(), &records).encode())
}

/// The same object with one more field, or another value of it.
fn with(base: &Value, name: &str, value: Value) -> Value {
    let mut changed = base.clone();
    changed[name] = value;
    changed
}

/// A topic by name or, in versions that have ids, by id.
fn topic(session: &Session, name: &str, rest: &Value) -> Result<Value> {
    let id = match name {
        ABSENT => ABSENT_ID.to_owned(),
        "" => NO_ID.to_owned(),
        name => session.id_of(name)?,
    };
    let named = json!({"Name": name, "TopicId": id});
    let (Value::Object(mut all), Value::Object(rest)) = (named, rest.clone()) else {
        unreachable!("both are objects")
    };
    all.extend(rest);
    Ok(Value::Object(all))
}
