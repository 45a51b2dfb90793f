//! `moldau cluster check`: whether the bucket holds what PostgreSQL names, and what it holds beside
//! that. Exits 1 if records are lost.

use std::process::ExitCode;
use std::time::SystemTime;

use moldau_cluster::{Bucket, Checked, Finding, Listed, Named, check};
use serde::Serialize;

use super::{Services, count, size};
use crate::arguments::ClusterFile;
use crate::commands::session::print_json;

pub(super) async fn run(file: &ClusterFile) -> anyhow::Result<ExitCode> {
    let Services { postgres, bucket, .. } =
        Services::reached(&file.path, "moldau cluster check").await?;
    let mut found = Found::default();
    let checked = check(&postgres, &bucket, |finding| found.add(&bucket, &finding)).await?;
    if file.json {
        print_json(&document(&checked, &found))?;
    } else {
        print(&checked, &found);
    }
    let is_whole = checked.missing + checked.short == 0;
    Ok(if is_whole { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Findings to print; the first ones, as a bucket may hold anything.
#[derive(Default, Serialize)]
struct Found {
    lost: Vec<Lost>,
    unnamed: Vec<Unnamed>,
}

/// An object whose records cannot be read.
#[derive(Serialize)]
struct Lost {
    name: String,
    problem: &'static str,
    bytes: i64,
}

/// An object that nothing names.
#[derive(Serialize)]
struct Unnamed {
    name: String,
    bytes: u64,
    age_s: u64,
    reason: &'static str,
}

impl Found {
    fn add(&mut self, bucket: &Bucket, finding: &Finding) {
        match finding {
            Finding::Missing(named) => self.add_lost(bucket, named, "missing"),
            Finding::Short(named) => self.add_lost(bucket, named, "too short"),
            Finding::Dead(listed) => self.add_unnamed(listed, "waits for its deletion"),
            Finding::Uncommitted(listed) => self.add_unnamed(listed, "not committed"),
            Finding::Foreign(listed) => self.add_unnamed(listed, "not of a broker"),
        }
    }

    fn add_lost(&mut self, bucket: &Bucket, named: &Named, problem: &'static str) {
        if self.lost.len() < SHOWN_MAX {
            let name = bucket.name_of(named.key);
            self.lost.push(Lost { name, problem, bytes: named.bytes });
        }
    }

    fn add_unnamed(&mut self, listed: &Listed, reason: &'static str) {
        if self.unnamed.len() < SHOWN_MAX {
            let age = SystemTime::now().duration_since(listed.modified).unwrap_or_default();
            let (name, bytes, age_s) = (listed.name().to_owned(), listed.bytes, age.as_secs());
            self.unnamed.push(Unnamed { name, bytes, age_s, reason });
        }
    }
}

fn print(checked: &Checked, found: &Found) {
    let (missing, short) = (checked.missing, checked.short);
    if missing + short == 0 {
        println!("Nothing is missing: the bucket holds all that PostgreSQL names.");
    } else {
        let (missing, short) = (count(missing, "object"), count(short, "object"));
        println!("Records are lost: {missing} missing, {short} too short.");
    }
    let (named, bytes) = (count(checked.named, "object"), unsigned(checked.named_bytes));
    println!("PostgreSQL names {named} with {bytes} of records.");
    let (listed, bytes) = (count(checked.listed, "object"), unsigned(checked.listed_bytes));
    let (unnamed, spare) = (count(checked.unnamed, "object"), unsigned(checked.unnamed_bytes));
    println!("The bucket has {listed} with {bytes}; nothing names {unnamed} with {spare}.");
    for Lost { name, problem, bytes } in &found.lost {
        println!("  {problem}: {name}, {} of records", size(*bytes));
    }
    more(missing + short, found.lost.len());
    for Unnamed { name, bytes, age_s, reason } in &found.unnamed {
        println!("  {reason}: {name}, {}, {age_s} s old", unsigned(*bytes));
    }
    more(checked.unnamed, found.unnamed.len());
}

fn more(count: u64, shown: usize) {
    let more = count.saturating_sub(u64::try_from(shown).unwrap_or(count));
    if more > 0 {
        println!("  and {more} more");
    }
}

fn unsigned(bytes: u64) -> String {
    moldau_measure::numbers::bytes(bytes)
}

#[derive(Serialize)]
struct Document<'a> {
    named: u64,
    named_bytes: u64,
    missing: u64,
    short: u64,
    listed: u64,
    listed_bytes: u64,
    unnamed: u64,
    unnamed_bytes: u64,
    found: &'a Found,
}

fn document<'a>(checked: &Checked, found: &'a Found) -> Document<'a> {
    Document {
        named: checked.named,
        named_bytes: checked.named_bytes,
        missing: checked.missing,
        short: checked.short,
        listed: checked.listed,
        listed_bytes: checked.listed_bytes,
        unnamed: checked.unnamed,
        unnamed_bytes: checked.unnamed_bytes,
        found,
    }
}

/// Lines of each kind that are kept and printed.
const SHOWN_MAX: usize = 1_000;
