//! `moldau broker repair`: shows what is damaged in a data directory and salvages the rest. Exits 1
//! if something is damaged and was not repaired.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use moldau_broker::{Damage, Lost, Orphan, Repair, Report, Uuid};
use serde::Serialize;

use crate::arguments::{BrokerOptions, RepairOptions};
use crate::commands::session::print_json;
use crate::config;
use crate::output;

pub(crate) fn run(options: &RepairOptions) -> anyhow::Result<ExitCode> {
    let RepairOptions { config, data_dir, apply, json, topics } = options;
    let (config, data_dir) = (config.clone(), data_dir.clone());
    let options = BrokerOptions { config, data_dir, ..BrokerOptions::default() };
    let config = config::broker::load_without_listeners(&options)?;
    let names = topics.iter().map(|text| parse_name(text)).collect::<anyhow::Result<_>>()?;
    let repair = Repair::examine(&config, names)?;
    let report = repair.report().clone();
    if !json {
        print_report(&report)?;
    }
    let aside = if *apply { repair.apply()? } else { None };
    let is_repaired = aside.is_some();
    if *json {
        let files = aside.as_ref().map(|path| path.display().to_string());
        print_json(&document(&report, files))?;
    } else if let Some(aside) = aside {
        println!("repaired; the original files are in {}", aside.display());
    } else if !report.is_sound() {
        println!(
            "nothing has changed; `moldau broker repair --data-dir {} --apply` salvages the rest",
            config.data_dir.display()
        );
    }
    let is_sound = report.is_sound() || is_repaired;
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn parse_name(text: &str) -> anyhow::Result<(Uuid, String)> {
    let wrong = || format!("--topic: {text:?} is not ID=NAME");
    let (id, name) = text.split_once('=').with_context(wrong)?;
    Ok((id.parse().with_context(wrong)?, name.to_owned()))
}

fn print_report(report: &Report) -> anyhow::Result<()> {
    let mut out = output::stdout();
    if report.is_unfinished {
        writeln!(out, "a repair was interrupted; --apply completes it")?;
        return Ok(());
    }
    for Damage { path, offset, reason, lost } in &report.damage {
        writeln!(out, "{}, byte {offset}: {reason}", path.display())?;
        for lost in lost {
            writeln!(out, "  {}", describe(lost))?;
        }
    }
    if !report.lost.is_empty() {
        writeln!(out, "lost in total:")?;
    }
    for lost in &report.lost {
        writeln!(out, "  {}", describe(lost))?;
    }
    if report.is_metadata_uncertain {
        writeln!(
            out,
            "metadata may be lost: topics, configurations and committed offsets from just before \
             the damage"
        )?;
    }
    for Orphan { topic, name, partitions } in &report.orphans {
        let id = Uuid::from_bytes(topic.0);
        writeln!(
            out,
            "topic {id} ({partitions} partitions) has lost its name and becomes {name}; --topic \
             {id}=NAME gives it another name"
        )?;
    }
    let tenths = report.bytes.saturating_mul(10) >> 20;
    let (mib, tenth) = (tenths / 10, tenths % 10);
    let sound = if report.is_sound() { "no damage; " } else { "" };
    writeln!(out, "{sound}{} partitions with {mib}.{tenth} MiB of batches are kept", report.logs)?;
    Ok(())
}

fn describe(lost: &Lost) -> String {
    let (first, last) = (lost.offsets.start, lost.offsets.end - 1);
    let doubt = if lost.is_certain { "" } else { ", if there were any; they are skipped" };
    format!("{}-{}: offsets {first} to {last}{doubt}", name_of(lost), lost.log.partition)
}

fn name_of(lost: &Lost) -> String {
    let id = || Uuid::from_bytes(lost.log.topic.0).to_string();
    lost.topic.clone().unwrap_or_else(id)
}

#[derive(Serialize)]
struct Document {
    damage: Vec<DamageDocument>,
    lost: Vec<LostDocument>,
    recovered_topics: Vec<OrphanDocument>,
    is_metadata_uncertain: bool,
    metadata_refused: usize,
    is_unfinished: bool,
    partitions_kept: usize,
    bytes_kept: u64,
    /// Where the files are as they were, if a repair was applied.
    files: Option<String>,
}

#[derive(Serialize)]
struct DamageDocument {
    file: String,
    offset: u64,
    reason: String,
    lost: Vec<LostDocument>,
}

#[derive(Serialize)]
struct LostDocument {
    topic: String,
    topic_id: String,
    partition: i32,
    first_offset: i64,
    last_offset: i64,
    /// Whether these offsets are known to have been given out.
    is_certain: bool,
}

#[derive(Serialize)]
struct OrphanDocument {
    topic_id: String,
    name: String,
    partitions: i32,
}

fn document(report: &Report, files: Option<String>) -> Document {
    let losses = |lost: &[Lost]| -> Vec<LostDocument> {
        let lost = lost.iter().map(|lost| LostDocument {
            topic: name_of(lost),
            topic_id: Uuid::from_bytes(lost.log.topic.0).to_string(),
            partition: lost.log.partition,
            first_offset: lost.offsets.start,
            last_offset: lost.offsets.end - 1,
            is_certain: lost.is_certain,
        });
        lost.collect()
    };
    let damage = report.damage.iter().map(|damage| DamageDocument {
        file: damage.path.display().to_string(),
        offset: damage.offset,
        reason: damage.reason.clone(),
        lost: losses(&damage.lost),
    });
    let orphans = report.orphans.iter().map(|orphan| OrphanDocument {
        topic_id: Uuid::from_bytes(orphan.topic.0).to_string(),
        name: orphan.name.clone(),
        partitions: orphan.partitions,
    });
    Document {
        damage: damage.collect(),
        lost: losses(&report.lost),
        recovered_topics: orphans.collect(),
        is_metadata_uncertain: report.is_metadata_uncertain,
        metadata_refused: report.metadata_refused,
        is_unfinished: report.is_unfinished,
        partitions_kept: report.logs,
        bytes_kept: report.bytes,
        files,
    }
}
