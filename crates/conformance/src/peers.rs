//! Where `cargo xtask peers` keeps the clients and servers of other projects.
//!
//! ```text
//! <root>/kafka/jars/        Apache Kafka's server, tools and Java client
//! <root>/kafka/classpath    one line: the jars, for `java -cp`
//! <root>/mirror-maker/jars  MirrorMaker's jars
//! <root>/java/              the compiled Java client program
//! <root>/python/            a virtual environment with both Python clients
//! <root>/node/node_modules  KafkaJS and its codecs
//! <root>/browser/node_modules  Chromium without a window, and what drives it
//! <root>/go/franz           the compiled franz-go program
//! <root>/sarama/sarama      the compiled Sarama program
//! <root>/kroxylicious/lib   Kroxylicious's jars
//! <root>/kroxylicious/classes  the compiled program that starts it
//! <root>/kubernetes/        Helm, and what validates objects of Kubernetes
//! <root>/vault/vault        HashiCorp Vault, which only the tests of key management need
//! ```

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, bail};

/// Enough for the programs that keep a few records.
const SMALL_HEAP: &str = "-Xmx256m";

/// Enough for the client's own metadata of a million partitions.
const LARGE_HEAP: &str = "-Xmx2g";

/// Kroxylicious takes a buffer of 1 MiB for each partition of a request that it encrypts.
const KROXYLICIOUS_HEAP: &str = "-Xmx512m";

/// Flags for a JVM that lives for seconds: the fast compiler only, and archived classes.
pub(crate) const SHORT_LIVED_JVM: [&str; 3] =
    ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto"];

/// The directory tree of installed peers.
#[derive(Clone, Debug)]
pub struct Peers {
    root: PathBuf,
}

impl Peers {
    /// The tree below `$XDG_CACHE_HOME/moldau` or `~/.cache/moldau`, where `moldau lab` looks too;
    /// it may be empty still.
    pub fn locate() -> Result<Self> {
        let variable = |name| env::var_os(name).filter(|value| !value.is_empty());
        let root = if let Some(cache) = variable("XDG_CACHE_HOME") {
            Path::new(&cache).join("moldau")
        } else if let Some(home) = variable("HOME") {
            Path::new(&home).join(".cache").join("moldau")
        } else {
            bail!("neither XDG_CACHE_HOME nor HOME is set");
        };
        Ok(Self { root })
    }

    /// The directory that holds everything.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The directory of Kafka's jars.
    pub fn kafka_jars(&self) -> PathBuf {
        self.root.join("kafka").join("jars")
    }

    /// The file that holds the class path of Kafka's jars.
    pub fn kafka_classpath_file(&self) -> PathBuf {
        self.root.join("kafka").join("classpath")
    }

    /// The directory of the archive of Kafka's classes.
    pub fn class_archive_directory(&self) -> PathBuf {
        self.root.join("class-archive")
    }

    /// The archive of Kafka's classes, of use to a JVM whose class path begins with Kafka's jars.
    pub fn class_archive(&self) -> PathBuf {
        self.class_archive_directory().join("kafka.jsa")
    }

    /// The flag that makes a JVM use the archive of Kafka's classes.
    pub fn class_archive_flag(&self) -> String {
        format!("-XX:SharedArchiveFile={}", self.class_archive().display())
    }

    /// The directory of the tools of Kubernetes.
    pub fn kubernetes(&self) -> PathBuf {
        self.root.join("kubernetes")
    }

    /// The program of Helm.
    pub fn helm(&self) -> PathBuf {
        self.kubernetes().join("helm")
    }

    /// The program that validates objects of Kubernetes by their schemas.
    pub fn kubectl_validate(&self) -> PathBuf {
        self.kubernetes().join("kubectl-validate")
    }

    /// The directory of the compiled Java client program.
    pub fn java_classes(&self) -> PathBuf {
        self.root.join("java")
    }

    /// The Python virtual environment.
    pub fn python_environment(&self) -> PathBuf {
        self.root.join("python")
    }

    /// The interpreter of the virtual environment.
    pub fn python(&self) -> PathBuf {
        self.python_environment().join("bin").join("python")
    }

    /// The directory in which the Node packages are installed.
    pub fn node(&self) -> PathBuf {
        self.root.join("node")
    }

    /// The directory in which the browser is installed, with what it unpacks.
    pub fn browser(&self) -> PathBuf {
        self.root.join("browser")
    }

    /// The program that opens pages in the browser, to be given their files.
    pub fn browser_command(&self) -> Command {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/browser/reports.js");
        let mut node = Command::new("node");
        node.arg(program).env("PEER_BROWSER", self.browser()).env("TMPDIR", self.browser());
        node
    }

    /// The compiled franz-go program.
    pub fn franz(&self) -> PathBuf {
        self.root.join("go").join("franz")
    }

    /// The compiled Sarama program.
    pub fn sarama(&self) -> PathBuf {
        self.root.join("sarama").join("sarama")
    }

    /// The directory of async-profiler.
    pub fn async_profiler(&self) -> PathBuf {
        self.root.join("async-profiler")
    }

    /// The library of async-profiler, which Java machines load.
    pub fn async_profiler_library(&self) -> PathBuf {
        self.async_profiler().join("libasyncProfiler.so")
    }

    /// The directory of MirrorMaker's jars.
    pub fn mirror_maker_jars(&self) -> PathBuf {
        self.root.join("mirror-maker").join("jars")
    }

    /// The directory of Kroxylicious's jars.
    pub fn kroxylicious_jars(&self) -> PathBuf {
        self.root.join("kroxylicious").join("lib")
    }

    /// The directory of the compiled `KroxyliciousLauncher`.
    pub fn kroxylicious_classes(&self) -> PathBuf {
        self.root.join("kroxylicious").join("classes")
    }

    /// The class path of Kroxylicious and its launcher, for `java -cp`.
    pub fn kroxylicious_classpath(&self) -> String {
        let (classes, jars) = (self.kroxylicious_classes(), self.kroxylicious_jars());
        format!("{}:{}/*", classes.display(), jars.display())
    }

    /// A command that runs Kroxylicious with the configuration file that is yet to be added.
    pub fn kroxylicious(&self) -> Command {
        let mut command = Command::new("java");
        command
            .args(SHORT_LIVED_JVM)
            .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
            .args([KROXYLICIOUS_HEAP, "-Dorg.slf4j.simpleLogger.logFile=System.out", "-cp"])
            .args([&self.kroxylicious_classpath(), "KroxyliciousLauncher"]);
        command
    }

    /// HashiCorp Vault.
    pub fn vault(&self) -> PathBuf {
        self.root.join("vault").join("vault")
    }

    /// The class path of Kafka's jars; an error that names the remedy where there is none.
    pub fn kafka_classpath(&self) -> Result<String> {
        let file = self.kafka_classpath_file();
        let text = fs::read_to_string(&file).with_context(|| {
            format!("{} is missing: run `cargo xtask peers` first", file.display())
        })?;
        Ok(text.trim().to_owned())
    }

    /// A `java` command with Kafka's jars, for a class that runs for seconds.
    pub fn java_tool(&self, class: &str) -> Result<Command> {
        self.java(SMALL_HEAP, class)
    }

    /// [`java_tool`](Self::java_tool) for a class that keeps a million partitions in memory.
    pub fn large_java_tool(&self, class: &str) -> Result<Command> {
        self.java(LARGE_HEAP, class)
    }

    /// [`java_tool`](Self::java_tool) for a class that runs many tools, whose log is left out.
    pub fn java_session(&self, class: &str) -> Result<Command> {
        self.short_lived([SMALL_HEAP, "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"], class)
    }

    fn java(&self, heap: &str, class: &str) -> Result<Command> {
        self.short_lived([heap, "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"], class)
    }

    fn short_lived(&self, flags: [&str; 2], class: &str) -> Result<Command> {
        let mut command = Command::new("java");
        command.args(SHORT_LIVED_JVM).arg(self.class_archive_flag()).args(flags);
        command.arg("-cp").arg(self.kafka_and_own_classes()?).arg(class);
        Ok(command)
    }

    /// The class path of Kafka's jars and of the compiled Java programs.
    pub fn kafka_and_own_classes(&self) -> Result<String> {
        Ok(format!("{}:{}", self.kafka_classpath()?, self.java_classes().display()))
    }
}
