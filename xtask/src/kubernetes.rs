//! Checks what runs Moldau on Kubernetes, without a cluster: Helm's own linter, and the schemas of
//! Kubernetes for the manifests and for what the charts make of each file of values in `ci`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use moldau_conformance::peers::Peers;

use crate::workspace;

/// The release of Kubernetes whose schemas count.
const KUBERNETES_VERSION: &str = "1.30";

/// Charts of which a manifest has what they make of `ci/least-values.yaml`.
const MANIFESTS: [(&str, &str); 2] =
    [("moldau-cluster", "cluster.yaml"), ("moldau-proxy", "proxy.yaml")];

pub(crate) fn check(peers: &Peers) -> Result<()> {
    let deploy = workspace::root().join("deploy");
    let directory = tempfile::Builder::new().prefix("moldau-kubernetes-").tempdir()?;
    for manifest in files(&deploy.join("kubernetes"))? {
        validate(peers, &manifest)?;
    }
    for chart in files(&deploy.join("helm"))? {
        for values in files(&chart.join("ci"))? {
            let mut lint = Command::new(peers.helm());
            lint.args(["lint", "--strict", "--values"]).arg(&values).arg(&chart);
            finish(lint)?;
            let rendered = directory.path().join("rendered.yaml");
            fs::write(&rendered, made(peers, &chart, &values)?)?;
            validate(peers, &rendered)?;
        }
        let Err(refused) = finish(template(peers, &chart)) else {
            bail!("{} names an image that is not published", chart.display());
        };
        let names_key = [" image: ", " config.virtual_clusters: ", " bucket.name: "];
        ensure!(names_key.iter().any(|key| refused.to_string().contains(key)), "{refused}");
    }
    for (chart, manifest) in MANIFESTS {
        let chart = deploy.join("helm").join(chart);
        let made = made(peers, &chart, &chart.join("ci/least-values.yaml"))?;
        let manifest = deploy.join("kubernetes").join(manifest);
        let is_same = fs::read_to_string(&manifest)? == made;
        ensure!(is_same, "{} differs from what its chart makes", manifest.display());
    }
    Ok(())
}

/// The files of a directory, in order.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    files.sort();
    Ok(files)
}

/// What a chart makes of a file of values.
fn made(peers: &Peers, chart: &Path, values: &Path) -> Result<String> {
    let mut template = template(peers, chart);
    template.arg("--values").arg(values);
    finish(template)
}

fn template(peers: &Peers, chart: &Path) -> Command {
    let mut template = Command::new(peers.helm());
    template.args(["template", "moldau", "--kube-version", KUBERNETES_VERSION]).arg(chart);
    template
}

fn validate(peers: &Peers, manifest: &Path) -> Result<()> {
    let mut validate = Command::new(peers.kubectl_validate());
    validate.args(["--version", KUBERNETES_VERSION]).arg(manifest);
    finish(validate).map(drop)
}

/// What a command prints; an error shows all that it said.
fn finish(mut command: Command) -> Result<String> {
    let output = command.output().with_context(|| format!("cannot start {command:?}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} ended with {}:\n{stdout}{stderr}", output.status);
    Ok(stdout)
}
