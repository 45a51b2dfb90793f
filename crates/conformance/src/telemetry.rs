//! Metrics that real clients push (KIP-714): directly and through the proxy, to be seen in
//! `/metrics` and at a collector.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::check::Check;
use crate::moldau::Moldau;
use crate::peers::Peers;
use crate::process::{Process, free_ports, loopback, pause};

const TIMEOUT: Duration = Duration::from_secs(60);

const PAUSE: Duration = Duration::from_millis(50);

/// The tool `kafka-client-metrics`.
const CLIENT_METRICS: &str = "org.apache.kafka.tools.ClientMetricsCommand";

/// Runs the clients.
pub fn run(binary: &Path, peers: &Peers, directory: &Path) -> Result<Vec<Check>> {
    let collector = Collector::start()?;
    let port = free_ports(2)?;
    let config = json!({
        "log.dirs": directory.join("broker-data"),
        "listeners": format!("PLAINTEXT://{}", loopback(port)),
        "admin": loopback(port + 1).to_string(),
        "telemetry": {"otlp_url": format!("http://{}/v1/metrics", collector.address)},
    });
    let broker = Moldau::configured("broker", binary, &config, directory, port, port + 1)?;
    let proxy = Moldau::proxy(binary, directory, broker.bootstrap())?;
    let mut subscribe = peers.java_tool(CLIENT_METRICS)?;
    subscribe.args(["--bootstrap-server", broker.bootstrap(), "--alter", "--name", "all"]);
    subscribe.args(["--metrics", "*", "--interval", "100"]);
    let subscribed = Process::run(subscribe, "subscribe", directory, "", TIMEOUT)?;
    ensure!(subscribed.success(), "{}", subscribed.explanation());

    let mut checks = Vec::new();
    for (way, server) in [("direct", &broker), ("proxied", &proxy)] {
        checks.extend(java(peers, (way, server), &broker, directory)?);
        checks.extend(librdkafka(peers, (way, server), &broker, directory)?);
    }
    let sent = "moldau_telemetry_sent_total";
    broker.await_metric(sent, |count| count >= 6)?;
    let bodies = collector.bodies();
    for client_id in ["java-direct", "java-proxied", "librdkafka-direct", "librdkafka-proxied"] {
        let is_there = |body: &Vec<u8>| {
            contains(body, client_id.as_bytes()) && contains(body, b"org.apache.kafka.producer.")
        };
        let name = format!("the collector has the metrics of {client_id}");
        checks.push(Check::new(&name, bodies.iter().any(is_there), "no such body"));
    }
    let failures = broker.metric("moldau_telemetry_errors_total")?;
    checks.push(Check::new("every push is read", failures == 0, &failures.to_string()));
    proxy.stop()?;
    broker.stop()?;
    Ok(checks)
}

/// A Java producer and consumer.
fn java(
    peers: &Peers,
    (way, server): (&str, &Moldau),
    broker: &Moldau,
    directory: &Path,
) -> Result<Vec<Check>> {
    let client_id = format!("java-{way}");
    let mut command = peers.java_tool("TelemetrySession")?;
    let pushed = directory.join(format!("{client_id}-pushed"));
    command.args([server.bootstrap(), &client_id, &client_id]).arg(&pushed);
    let mut client = Process::spawn(command, &client_id, directory)?;
    let producing = page_with_producer(broker, &client_id)?;
    fs::write(&pushed, "")?;
    let ended = client.exits_within(TIMEOUT)?;
    ensure!(ended.is_some_and(|status| status.success()), "{}", client.tail());
    let stdout = client.stdout_text();
    let mut checks = Vec::new();
    for (kind, name, page) in [
        ("producer", "org_apache_kafka_producer_connection_creation_total", producing),
        ("consumer", "org_apache_kafka_consumer_connection_creation_total", broker.metrics()?),
    ] {
        let id = stdout.lines().find_map(|line| line.strip_prefix(&format!("{kind} ")));
        let id = id.with_context(|| format!("no id of the {kind}: {stdout}"))?;
        let labels = format!("client_instance_id=\"{id}\",client_id=\"{client_id}\"");
        let is_told = page.lines().any(|line| line.starts_with(&format!("{name}{{{labels}")));
        let names: Vec<_> = page.lines().filter(|line| line.contains(id)).collect();
        checks.push(Check::new(
            &format!("{name} of {client_id} is shown"),
            is_told,
            &names.join("\n"),
        ));
        let info = format!(
            "moldau_telemetry_client_info{{{labels},client_software_name=\"apache-kafka-java\""
        );
        let is_known = page.lines().any(|line| line.starts_with(&info));
        checks.push(Check::new(
            &format!("the software of the {kind} {client_id} is shown"),
            is_known,
            &names.join("\n"),
        ));
    }
    Ok(checks)
}

/// A producer of librdkafka.
fn librdkafka(
    peers: &Peers,
    (way, server): (&str, &Moldau),
    broker: &Moldau,
    directory: &Path,
) -> Result<Vec<Check>> {
    let client_id = format!("librdkafka-{way}");
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/python-confluent/telemetry.py");
    let stop: PathBuf = directory.join(format!("{client_id}-stop"));
    let mut command = Command::new(peers.python());
    command.arg(program).args([server.bootstrap(), &client_id, &client_id]).arg(&stop);
    let mut client = Process::spawn(command, &client_id, directory)?;
    let page = page_with_producer(broker, &client_id)?;
    fs::write(&stop, "")?;
    let ended = client.exits_within(TIMEOUT)?;
    ensure!(ended.is_some_and(|status| status.success()), "{}", client.tail());
    let name = format!("metrics of {client_id} are shown");
    Ok(vec![Check::new(&name, has_producer(&page, &client_id), &client.tail())])
}

/// The broker's metrics once they have those of this producer, or as they are after a minute.
fn page_with_producer(broker: &Moldau, client_id: &str) -> Result<String> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let page = broker.metrics()?;
        if has_producer(&page, client_id) || Instant::now() > deadline {
            return Ok(page);
        }
        pause(PAUSE);
    }
}

fn has_producer(page: &str, client_id: &str) -> bool {
    let labels = format!("client_id=\"{client_id}\"");
    let mut lines = page.lines().filter(|line| line.contains(&labels));
    lines.any(|line| line.starts_with("org_apache_kafka_producer_"))
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Takes requests of OTLP and keeps their bodies. It lasts as long as the process.
struct Collector {
    address: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind(loopback(0))?;
        let address = listener.local_addr()?.to_string();
        let bodies = Arc::<Mutex<Vec<Vec<u8>>>>::default();
        let kept = Arc::clone(&bodies);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                match take(stream) {
                    Ok(body) => kept.lock().unwrap_or_else(PoisonError::into_inner).push(body),
                    Err(error) => eprintln!("the collector got no request: {error:#}"),
                }
            }
        });
        Ok(Self { address, bodies })
    }

    fn bodies(&self) -> Vec<Vec<u8>> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Reads one request and answers it.
fn take(stream: TcpStream) -> Result<Vec<u8>> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut reader = BufReader::new(stream);
    let (mut length, mut is_protobuf) = (0, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim().to_ascii_lowercase();
        if let Some(text) = line.strip_prefix("content-length:") {
            length = text.trim().parse()?;
        }
        is_protobuf |= line == "content-type: application/x-protobuf";
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let status = if is_protobuf { "200 OK" } else { "415 Unsupported Media Type" };
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    reader.get_mut().write_all(answer.as_bytes())?;
    Ok(body)
}
