//! The examples of `docs/run.md`, with their interpreters.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::site::{Site, Worker};
use crate::traffic::block_on;
use crate::world::free_port;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The file of an example, for the broker of the site.
fn example(site: &Site, name: &str) -> PathBuf {
    let text = std::fs::read_to_string(root().join("examples/run").join(name)).unwrap();
    site.write(name, &text.replace("127.0.0.1:9092", &site.bootstrap()))
}

const ORDERS: [(Option<&str>, &str); 2] = [(Some("anna"), "book"), (Some("ben"), "lamp")];

/// Word for word, but for the port of the broker.
#[test]
fn the_guide_shows_what_the_first_example_says_and_its_handler() {
    block_on(async {
        let site = Site::new(&[("orders", 3)]).await;
        site.produce("orders", &ORDERS[..1]).await;
        let mut worker = Worker::start(&example(&site, "python.yaml"), &root());
        worker.wait_for_line("anna orders book");
        let said = worker.terminate().replace(&site.bootstrap(), "127.0.0.1:9092");
        let (run, end) = said.split_once("moldau run: stops").expect("it says that it stops");
        let summary = end.lines().last().expect("a summary");
        let handler = std::fs::read_to_string(root().join("examples/run/handler.py")).unwrap();
        let guide = std::fs::read_to_string(root().join("docs/run.md")).unwrap();
        for shown in [
            format!("```text\n{run}```"),
            format!("```text\n{summary}\n```"),
            format!("```python\n{handler}```"),
        ] {
            assert!(guide.contains(&shown), "{shown}");
        }
    });
}

#[test]
fn python_and_node_print_orders() {
    block_on(async {
        let site = Site::new(&[("orders", 1)]).await;
        site.produce("orders", &ORDERS).await;
        for name in ["python.yaml", "node.yaml"] {
            let mut worker = Worker::start(&example(&site, name), &root());
            let mut said =
                ["]: ", "]: "].map(|part| worker.wait_for_line(part).split_off("orders[0]".len()));
            said.sort_unstable();
            assert_eq!(said, [": anna orders book", ": ben orders lamp"], "{name}");
            let said = worker.terminate();
            assert!(said.contains("orders: 2 handled, 0 retries, 0 given up"), "{said}");
        }
    });
}

#[test]
fn a_shell_script_prints_the_documents() {
    block_on(async {
        let site = Site::new(&[("orders", 1)]).await;
        site.produce("orders", &ORDERS).await;
        let mut worker = Worker::start(&example(&site, "shell.yaml"), &root());
        let line = worker.wait_for_line("]: ");
        let document = line.strip_prefix("orders[0]: ").unwrap();
        let document: serde_json::Value = serde_json::from_str(document).unwrap();
        let timestamp = &document["timestamp"];
        assert!(timestamp.is_i64());
        let expected = serde_json::json!({
            "id": 1, "topic": "orders", "partition": 0, "offset": 0, "timestamp": timestamp,
            "key": "anna", "value": "book", "headers": [], "attempt": 1
        });
        assert_eq!(document, expected);
        worker.wait_for_line("\"lamp\"");
        worker.terminate();
    });
}

#[test]
fn invoices_are_produced_and_bad_orders_become_dead_letters() {
    block_on(async {
        let site = Site::new(&[("orders", 1), ("invoices", 1), ("orders.dead", 1)]).await;
        let good = "{\"total\": 12.50}";
        site.produce("orders", &[(Some("anna"), good), (Some("ben"), "{}")]).await;
        let worker = Worker::start(&example(&site, "invoices.yaml"), &root());
        let invoices = site.read("invoices", |seen| !seen.is_empty()).await;
        let dead = site.read("orders.dead", |seen| !seen.is_empty()).await;
        let said = worker.terminate();
        assert_eq!(invoices[0].key.as_deref(), Some("anna"));
        assert_eq!(invoices[0].value, "{\"to\": \"anna\", \"amount\": 12.5}");
        assert_eq!(dead[0].headers["dead-letter-cause"], "the order has no total");
        assert!(said.contains("orders: 1 handled, 0 retries, 1 given up"), "{said}");
    });
}

#[test]
fn a_service_prints_orders() {
    block_on(async {
        let site = Site::new(&[("orders", 1)]).await;
        site.produce("orders", &ORDERS).await;
        let port = free_port().to_string();
        let mut service = Command::new("python3")
            .args(["examples/run/service.py", &port])
            .current_dir(root())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let config = example(&site, "http.yaml");
        let text = std::fs::read_to_string(&config).unwrap().replace("8080", &port);
        std::fs::write(&config, text).unwrap();
        let worker = Worker::start(&config, &root());
        let lines = BufReader::new(service.stdout.take().unwrap()).lines();
        let mut said: Vec<String> = lines.take(2).map(|line| line.unwrap()).collect();
        said.sort_unstable();
        assert_eq!(said, ["anna orders book", "ben orders lamp"]);
        worker.terminate();
        service.kill().unwrap();
        service.wait().unwrap();
    });
}
