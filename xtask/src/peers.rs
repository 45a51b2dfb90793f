//! `cargo xtask peers`: installs the clients and servers of other projects outside the checkout.
//!
//! Everything comes through the ordinary clients of the package registries, in exact versions
//! that the manifests in `xtask/peers` and `crates/conformance/clients` name. A peer is installed
//! anew when one of its inputs has changed, and verified by running it every time. HashiCorp Vault,
//! which takes long to build, and rdkafka are installed only where they are named.

mod class_archive;
mod stream_consumer;

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use moldau_conformance::kroxylicious::Kroxylicious;
use moldau_conformance::peers::Peers;
use moldau_conformance::process::free_ports;
use moldau_conformance::virtual_cluster::{Kms, VirtualCluster};

use crate::maven::KAFKA_VERSION;
use crate::workspace;

/// The Maven plugin that copies an artifact with all it depends on.
const COPY_DEPENDENCIES: &str =
    "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

/// Arguments of `cargo xtask peers`.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Only print the class path of Apache Kafka's jars, for `java -cp`.
    #[arg(long)]
    print_classpath: bool,
    /// Only install this one.
    peer: Option<Named>,
}

/// A peer that is installed only where it is named.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Named {
    /// HashiCorp Vault: 5 to 25 minutes on 2 cores, once.
    Vault,
    /// A reader by the `StreamConsumer` of rdkafka, for `moldau lab run sources/karafka`: a minute.
    StreamConsumer,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let peers = Peers::locate()?;
    if arguments.print_classpath {
        println!("{}", peers.kafka_classpath()?);
        return Ok(());
    }
    match arguments.peer {
        Some(Named::Vault) => install_vault(&peers),
        Some(Named::StreamConsumer) => stream_consumer::ensure(&peers),
        None => install(&peers),
    }
}

/// Builds HashiCorp Vault if it is absent or outdated, and verifies it.
pub(crate) fn install_vault(peers: &Peers) -> Result<()> {
    fs::create_dir_all(peers.root())?;
    vault_peer(peers).ensure(peers)
}

/// Whether the Vault that the manifest names is built.
pub(crate) fn has_vault(peers: &Peers) -> Result<bool> {
    vault_peer(peers).is_installed()
}

fn vault_peer(peers: &Peers) -> Peer {
    let manifest = workspace::root().join("xtask/peers/vault");
    Peer {
        name: "HashiCorp Vault",
        inputs: ["go.mod", "go.sum", "main.go"].map(|file| manifest.join(file)).to_vec(),
        directory: peers.root().join("vault"),
        install: vault,
        verify: verify_vault,
    }
}

/// Installs what is absent or outdated and verifies all.
pub(crate) fn install(peers: &Peers) -> Result<()> {
    println!("peers in {}", peers.root().display());
    fs::create_dir_all(peers.root())?;
    let clients = workspace::root().join("crates/conformance/clients");
    for peer in on_java(peers, &clients)?.into_iter().chain(others(peers, &clients)?) {
        peer.ensure(peers)?;
    }
    Ok(())
}

/// What runs in a Java machine.
fn on_java(peers: &Peers, clients: &Path) -> Result<Vec<Peer>> {
    let manifests = workspace::root().join("xtask/peers");
    Ok(vec![
        Peer {
            name: "Apache Kafka",
            inputs: vec![manifests.join("pom.xml")],
            directory: peers.root().join("kafka"),
            install: kafka,
            verify: verify_kafka,
        },
        Peer {
            name: "Kafka's classes",
            inputs: ["class-archive/ClassArchive.java", "pom.xml"]
                .map(|file| manifests.join(file))
                .to_vec(),
            directory: peers.class_archive_directory(),
            install: class_archive::install,
            verify: class_archive::verify,
        },
        Peer {
            name: "Kafka with ZooKeeper",
            inputs: vec![manifests.join("kafka-zookeeper/pom.xml")],
            directory: kafka_zookeeper_directory(peers),
            install: kafka_zookeeper,
            verify: verify_kafka_zookeeper,
        },
        Peer {
            name: "Java client",
            inputs: [vec![manifests.join("pom.xml")], files(&clients.join("java"))?].concat(),
            directory: peers.java_classes(),
            install: java,
            verify: verify_java,
        },
        Peer {
            name: "MirrorMaker",
            inputs: vec![manifests.join("mirror-maker/pom.xml")],
            directory: peers.root().join("mirror-maker"),
            install: |peers, inputs| copy_jars(&inputs[0], &peers.mirror_maker_jars()),
            verify: verify_mirror_maker,
        },
        Peer {
            name: "Kroxylicious",
            inputs: ["pom.xml", "KroxyliciousLauncher.java"]
                .map(|file| manifests.join("kroxylicious").join(file))
                .to_vec(),
            directory: peers.root().join("kroxylicious"),
            install: kroxylicious,
            verify: verify_kroxylicious,
        },
        Peer {
            name: "async-profiler",
            inputs: vec![manifests.join("async-profiler/pom.xml")],
            directory: peers.async_profiler(),
            install: async_profiler,
            verify: verify_async_profiler,
        },
    ])
}

/// What runs without Java.
fn others(peers: &Peers, clients: &Path) -> Result<Vec<Peer>> {
    Ok(vec![
        Peer {
            name: "Python clients",
            inputs: vec![
                clients.join("python-confluent/requirements.txt"),
                clients.join("python-kafka/requirements.txt"),
            ],
            directory: peers.python_environment(),
            install: python,
            verify: verify_python,
        },
        Peer {
            name: "KafkaJS",
            inputs: vec![clients.join("node-kafkajs/package.json")],
            directory: peers.node(),
            install: node,
            verify: verify_node,
        },
        Peer {
            name: "Chromium",
            inputs: vec![clients.join("browser/package.json")],
            directory: peers.browser(),
            install: browser,
            verify: verify_browser,
        },
        Peer {
            name: "franz-go",
            inputs: files(&clients.join("go-franz"))?,
            directory: peers.root().join("go"),
            install: |peers, inputs| go(&peers.franz(), inputs),
            verify: |peers| verify_go(&peers.franz(), "twmb/franz-go"),
        },
        Peer {
            name: "Sarama",
            inputs: files(&clients.join("go-sarama"))?,
            directory: peers.root().join("sarama"),
            install: |peers, inputs| go(&peers.sarama(), inputs),
            verify: |peers| verify_go(&peers.sarama(), "IBM/sarama"),
        },
        Peer {
            name: "Kubernetes",
            inputs: vec![workspace::root().join("xtask/peers/kubernetes/tools")],
            directory: peers.kubernetes(),
            install: kubernetes,
            verify: verify_kubernetes,
        },
    ])
}

/// One thing to install.
struct Peer {
    name: &'static str,
    /// The files of the checkout that decide what is installed.
    inputs: Vec<PathBuf>,
    /// The directory of the cache that belongs to it alone.
    directory: PathBuf,
    install: fn(&Peers, inputs: &[PathBuf]) -> Result<()>,
    /// Runs the peer and returns its version.
    verify: fn(&Peers) -> Result<String>,
}

impl Peer {
    fn ensure(&self, peers: &Peers) -> Result<()> {
        let started = Instant::now();
        let is_installed = self.is_installed()?;
        let version =
            if is_installed { (self.verify)(peers) } else { Err(anyhow::anyhow!("absent")) };
        let version = match version {
            Ok(version) => version,
            Err(_) => {
                println!("  {:15} installing ...", self.name);
                if self.directory.exists() {
                    fs::remove_dir_all(&self.directory)?;
                }
                fs::create_dir_all(&self.directory)?;
                (self.install)(peers, &self.inputs)
                    .and_then(|()| (self.verify)(peers))
                    .with_context(|| format!("cannot install {}", self.name))?
            }
        };
        fs::write(self.stamp(), fingerprint(&self.inputs)?)?;
        println!("  {:15} {version} ({:.1} s)", self.name, started.elapsed().as_secs_f64());
        Ok(())
    }

    /// Whether it was installed from the inputs as they are.
    fn is_installed(&self) -> Result<bool> {
        let wanted = fingerprint(&self.inputs)?;
        Ok(fs::read_to_string(self.stamp()).is_ok_and(|found| found == wanted))
    }

    /// The file that says from what it was installed.
    fn stamp(&self) -> PathBuf {
        self.directory.join(".installed")
    }
}

/// A number that changes with the contents of the files.
fn fingerprint(inputs: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    for input in inputs {
        let bytes = fs::read(input).with_context(|| format!("cannot read {}", input.display()))?;
        bytes.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

/// Puts the jars that a pom names, and all that they need, into a directory.
fn copy_jars(pom: &Path, directory: &Path) -> Result<()> {
    let mut maven = Command::new("mvn");
    maven
        .args(["-q", "-B", COPY_DEPENDENCIES, "-f"])
        .arg(pom)
        .arg(format!("-Dkafka.version={KAFKA_VERSION}"))
        .arg(format!("-DoutputDirectory={}", directory.display()));
    finish(maven).map(drop)
}

fn kafka(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    copy_jars(&inputs[0], &peers.kafka_jars())?;
    write_class_path(&peers.kafka_jars(), &peers.kafka_classpath_file())
}

/// Writes the class path of all jars of a directory.
fn write_class_path(jars: &Path, file: &Path) -> Result<()> {
    let mut jars = fs::read_dir(jars)?
        .map(|entry| Ok(entry?.path().display().to_string()))
        .collect::<Result<Vec<String>>>()?;
    jars.retain(|jar| jar.ends_with(".jar"));
    jars.sort();
    Ok(fs::write(file, jars.join(":") + "\n")?)
}

fn kafka_zookeeper_directory(peers: &Peers) -> PathBuf {
    peers.root().join("kafka-zookeeper")
}

fn kafka_zookeeper(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    let directory = kafka_zookeeper_directory(peers);
    copy_jars(&inputs[0], &directory.join("jars"))?;
    write_class_path(&directory.join("jars"), &directory.join("classpath"))
}

fn verify_kafka_zookeeper(peers: &Peers) -> Result<String> {
    let directory = kafka_zookeeper_directory(peers);
    let class_path = fs::read_to_string(directory.join("classpath"))?;
    let mut broker = Command::new("java");
    broker.args(["-cp", class_path.trim(), "kafka.Kafka", "--version"]);
    let version = finish(broker)?;
    ensure!(jar_named(&directory.join("jars"), "zookeeper-").is_some(), "ZooKeeper is missing");
    Ok(version.lines().last().unwrap_or_default().to_owned())
}

/// What stands between `prefix` and the end of a jar's name.
fn jar_named(directory: &Path, prefix: &str) -> Option<String> {
    fs::read_dir(directory).ok()?.find_map(|jar| {
        let name = jar.ok()?.file_name().into_string().ok()?;
        Some(name.strip_prefix(prefix)?.strip_suffix(".jar")?.to_owned())
    })
}

fn verify_kafka(peers: &Peers) -> Result<String> {
    let mut tool = peers.java_tool("org.apache.kafka.tools.TopicCommand")?;
    tool.arg("--version");
    let version = finish(tool)?;
    ensure!(version.contains(KAFKA_VERSION), "the tools are of another version: {version}");
    ensure!(jar_exists(peers, "kafka_2.13"), "the server's jar is missing");
    Ok(KAFKA_VERSION.to_owned())
}

fn jar_exists(peers: &Peers, artifact: &str) -> bool {
    peers.kafka_jars().join(format!("{artifact}-{KAFKA_VERSION}.jar")).is_file()
}

/// The files of a directory, in the order of their names.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(directory)?.map(|entry| Ok(entry?.path()));
    let mut files = entries.collect::<Result<Vec<PathBuf>>>()?;
    files.sort();
    Ok(files)
}

fn java(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    let mut compiler = Command::new("javac");
    compiler
        .args(["-Xlint:all,-processing,-classfile", "-Werror", "-cp", &peers.kafka_classpath()?])
        .arg("-d")
        .arg(peers.java_classes())
        .args(&inputs[1..]);
    finish(compiler).map(drop)
}

fn verify_java(peers: &Peers) -> Result<String> {
    let programs =
        ["ConformanceClient", "ConnectLines", "LargeTopic", "SecuredSession", "StreamsCount"];
    for program in programs {
        let class = peers.java_classes().join(format!("{program}.class"));
        ensure!(class.is_file(), "{} is missing", class.display());
    }
    ensure!(jar_exists(peers, "kafka-streams"), "the jar of Kafka Streams is missing");
    Ok(format!("kafka-clients and kafka-streams {KAFKA_VERSION}"))
}

fn verify_mirror_maker(peers: &Peers) -> Result<String> {
    let jars = peers.mirror_maker_jars();
    let mut mirror = Command::new("java");
    mirror.arg("-cp").arg(jars.join("*"));
    mirror.args(["org.apache.kafka.connect.mirror.MirrorMaker", "--help"]);
    // It ends with an error after its help.
    let help = mirror.output().context("cannot start java")?.stdout;
    ensure!(help.starts_with(b"usage: connect-mirror-maker"), "it tells no usage");
    jar_named(&jars, "connect-runtime-").context("the jar of the runtime is missing")
}

fn kroxylicious(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    copy_jars(&inputs[0], &peers.kroxylicious_jars())?;
    let mut compiler = Command::new("javac");
    compiler
        .args(["-Xlint:all,-processing,-classfile", "-Werror"])
        .arg("-cp")
        .arg(peers.kroxylicious_jars().join("*"))
        .arg("-d")
        .arg(peers.kroxylicious_classes())
        .args(&inputs[1..]);
    finish(compiler).map(drop)
}

/// Takes the library for this machine out of the jar.
fn async_profiler(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    let directory = peers.async_profiler();
    copy_jars(&inputs[0], &directory)?;
    let jar = fs::read_dir(&directory)?.next().context("the jar is missing")??.path();
    let platform = match std::env::consts::ARCH {
        "aarch64" => "linux-arm64",
        _ => "linux-x64",
    };
    let inside = format!("{platform}/libasyncProfiler.so");
    let mut unpack = Command::new("jar");
    unpack.current_dir(&directory).arg("xf").arg(&jar).arg(&inside);
    finish(unpack)?;
    Ok(fs::rename(directory.join(inside), peers.async_profiler_library())?)
}

/// Loads it into a Java machine, which tells its version.
fn verify_async_profiler(peers: &Peers) -> Result<String> {
    let mut java = Command::new("java");
    java.arg(format!("-agentpath:{}=version", peers.async_profiler_library().display()));
    java.arg("-version");
    let version = finish(java)?;
    let is_number = version.starts_with(|first: char| first.is_ascii_digit());
    ensure!(is_number, "the library tells no version: {version}");
    Ok(version)
}

/// Starts it with record encryption; a Vault is not asked for anything before the first record.
fn verify_kroxylicious(peers: &Peers) -> Result<String> {
    let directory = tempfile::tempdir()?;
    let token_file = directory.path().join("token");
    fs::write(&token_file, "none")?;
    let vault = Kms::Vault { url: "http://127.0.0.1:1/v1/transit".to_owned(), token_file };
    let port = free_ports(2 * VirtualCluster::PORTS)?;
    let cluster = |name: &str, port: u16, kms: Kms| VirtualCluster {
        name: name.to_owned(),
        port,
        upstream: "127.0.0.1:1".to_owned(),
        kms,
    };
    let clusters = [
        cluster("memory", port, Kms::Memory(Vec::new())),
        cluster("vault", port + VirtualCluster::PORTS, vault),
    ];
    Kroxylicious::start(peers, &clusters, directory.path())?;
    let version = jar_named(&peers.kroxylicious_jars(), "kroxylicious-runtime-");
    version.context("the jar of the runtime is missing")
}

fn python(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    let mut environment = Command::new("python3");
    environment.args(["-m", "venv"]).arg(peers.python_environment());
    finish(environment)?;
    let mut pip = Command::new(peers.python());
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--only-binary", ":all:"]);
    for requirements in inputs {
        pip.arg("-r").arg(requirements);
    }
    finish(pip).map(drop)
}

fn verify_python(peers: &Peers) -> Result<String> {
    let mut python = Command::new(peers.python());
    python.args([
        "-c",
        "import confluent_kafka as c, kafka, snappy, lz4, zstandard; print('librdkafka',\
         c.libversion()[0] + ',', 'kafka-python', kafka.__version__)",
    ]);
    finish(python)
}

fn node(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    npm_install(&peers.node(), &inputs[0])
}

fn browser(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    npm_install(&peers.browser(), &inputs[0])
}

fn verify_browser(peers: &Peers) -> Result<String> {
    let mut command = peers.browser_command();
    command.arg("--version");
    finish(command)
}

/// Installs the packages of a manifest; none runs a script of its own.
fn npm_install(directory: &Path, manifest: &Path) -> Result<()> {
    fs::copy(manifest, directory.join("package.json"))?;
    let mut npm = Command::new("npm");
    npm.current_dir(directory).args([
        "install",
        "--no-package-lock",
        "--ignore-scripts",
        "--no-audit",
        "--no-fund",
        "--loglevel=error",
    ]);
    finish(npm).map(drop)
}

fn verify_node(peers: &Peers) -> Result<String> {
    let mut node = Command::new("node");
    node.env("NODE_PATH", peers.node().join("node_modules")).args([
        "-e",
        "for (const name of ['kafkajs-snappy', 'lz4-napi', 'zstd-codec']) require(name);\
         console.log(require('kafkajs/package.json').version)",
    ]);
    finish(node)
}

fn go(program: &Path, inputs: &[PathBuf]) -> Result<()> {
    let source = inputs[0].parent().context("go.mod stands in a directory")?;
    let mut build = Command::new("go");
    build.current_dir(source).args(["build", "-mod=readonly", "-o"]).arg(program).arg(".");
    finish(build).map(drop)
}

/// Installs each program of a list, as `go install` takes them.
fn kubernetes(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    for tool in fs::read_to_string(&inputs[0])?.lines().filter(|line| !line.starts_with('#')) {
        let mut install = Command::new("go");
        // Outside of the checkout, and with the Go that is there.
        install.current_dir(peers.root()).env("GOTOOLCHAIN", "local");
        install.env("GOBIN", peers.kubernetes()).args(["install", tool]);
        finish(install)?;
    }
    Ok(())
}

fn verify_kubernetes(peers: &Peers) -> Result<String> {
    let mut helm = Command::new(peers.helm());
    helm.args(["version", "--short"]);
    let mut validate = Command::new(peers.kubectl_validate());
    validate.arg("--help");
    finish(validate)?;
    Ok(format!("helm {}", finish(helm)?))
}

fn vault(peers: &Peers, inputs: &[PathBuf]) -> Result<()> {
    let source = inputs[0].parent().context("go.mod stands in a directory")?;
    let mut build = Command::new("go");
    build.current_dir(source).args(["build", "-mod=readonly", "-trimpath", "-ldflags=-s -w", "-o"]);
    build.arg(peers.vault()).arg(".");
    finish(build).map(drop)
}

fn verify_vault(peers: &Peers) -> Result<String> {
    let mut vault = Command::new(peers.vault());
    vault.arg("version");
    finish(vault)
}

/// The version of a library that a Go program is built with.
fn verify_go(program: &Path, library: &str) -> Result<String> {
    let mut go = Command::new("go");
    go.args(["version", "-m"]).arg(program);
    let text = finish(go)?;
    let line = text.lines().find(|line| line.contains(&format!("{library}\t")));
    let version = line.and_then(|line| line.split_whitespace().nth(2));
    Ok(version.with_context(|| format!("the program is built without {library}"))?.to_owned())
}

/// Runs a command to its end and returns its trimmed output; an error shows both outputs.
fn finish(mut command: Command) -> Result<String> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.output().with_context(|| format!("cannot start {program}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{program} ended with {}:\n{stdout}{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(stdout.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pom_names_the_same_kafka_as_the_tasks() {
        let pom = include_str!("../peers/pom.xml");
        assert!(pom.contains(&format!("<kafka.version>{KAFKA_VERSION}</kafka.version>")));
    }

    #[test]
    fn a_changed_input_changes_the_fingerprint() {
        let own = workspace::root().join("xtask/src/peers.rs");
        let manifest = workspace::root().join("xtask/Cargo.toml");
        let both = fingerprint(&[own.clone(), manifest]).unwrap();
        assert_ne!(fingerprint(&[own]).unwrap(), both);
    }
}
