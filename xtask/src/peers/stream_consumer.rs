//! A reader by the `StreamConsumer` of rdkafka, which the lab compares with the consumer framework.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use moldau_conformance::peers::Peers;

use super::{Peer, finish};
use crate::workspace;

pub(super) fn ensure(peers: &Peers) -> Result<()> {
    fs::create_dir_all(peers.root())?;
    let manifest = workspace::root().join("xtask/peers/stream-consumer");
    let inputs = ["Cargo.toml", "Cargo.lock", "src/main.rs"].map(|file| manifest.join(file));
    let peer = Peer {
        name: "StreamConsumer",
        inputs: inputs.to_vec(),
        directory: directory(peers),
        install,
        verify,
    };
    peer.ensure(peers)
}

fn directory(peers: &Peers) -> PathBuf {
    peers.root().join("stream-consumer")
}

fn install(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    let manifest = inputs[0].parent().context("Cargo.toml stands in a directory")?;
    let root = directory(peers);
    let mut cargo = Command::new("cargo");
    cargo.args(["install", "--locked", "--path"]).arg(manifest).arg("--root").arg(&root);
    cargo.arg("--target-dir").arg(root.join("target"));
    finish(cargo)?;
    Ok(fs::remove_dir_all(root.join("target"))?)
}

fn verify(peers: &Peers) -> Result<String> {
    let mut reader = Command::new(directory(peers).join("bin/stream-consumer"));
    reader.arg("--help");
    finish(reader).map(|_| "built".to_owned())
}
