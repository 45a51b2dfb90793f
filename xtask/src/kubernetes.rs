//! Checks what runs workers of the laboratory on Kubernetes, without a cluster: Helm's own linter,
//! and the schemas of Kubernetes for the manifest and for what the chart makes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use moldau_conformance::peers::Peers;

use crate::workspace;

/// The release of Kubernetes whose schemas count.
const KUBERNETES_VERSION: &str = "1.30";

/// What the chart is made with, each set of values once.
const VALUES: [&[&str]; 2] = [
    &["image=registry.example.com/moldau:0"],
    &[
        "image=registry.example.com/moldau:0,workers=3,port=7500,cpu=4,memory=2Gi",
        "imagePullSecrets[0].name=registry,nodeSelector.pool=lab,tolerations[0].operator=Exists",
    ],
];

pub(crate) fn check(peers: &Peers) -> Result<()> {
    let deploy = workspace::root().join("deploy");
    let chart = deploy.join("helm/moldau-lab-workers");
    let directory = tempfile::Builder::new().prefix("moldau-kubernetes-").tempdir()?;
    validate(peers, &deploy.join("kubernetes/workers.yaml"))?;
    for (number, values) in VALUES.iter().enumerate() {
        let set = values.iter().flat_map(|values| ["--set", values]);
        let mut lint = Command::new(peers.helm());
        lint.args(["lint", "--strict"]).args(set.clone()).arg(&chart);
        finish(lint)?;
        let mut template = template(peers, &chart);
        template.args(set);
        let rendered = directory.path().join(format!("{number}.yaml"));
        fs::write(&rendered, finish(template)?)?;
        validate(peers, &rendered)?;
    }
    let Err(refused) = finish(template(peers, &chart)) else {
        bail!("the chart names an image that nobody has published");
    };
    ensure!(refused.to_string().contains("image: the image with"), "{refused}");
    Ok(())
}

/// What a chart makes.
fn template(peers: &Peers, chart: &Path) -> Command {
    let mut template = Command::new(peers.helm());
    template.args(["template", "lab", "--kube-version", KUBERNETES_VERSION]).arg(chart);
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
