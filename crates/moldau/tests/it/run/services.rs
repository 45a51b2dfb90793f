//! Handlers that are HTTP services.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use super::site::Site;
use crate::traffic::block_on;
use crate::world::free_port;

/// Answers as the value of a record says, and reports its connections.
const SERVICE: &str = r#"
import json, ssl, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

connections = 0

class Service(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def setup(self):
        global connections
        connections += 1
        super().setup()

    def answer(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        records = request.get("records", [request])
        assert self.headers["Authorization"] == "Bearer secret" and self.path == "/in?x=1"
        values = [record["value"] for record in records]
        if "bad" in values:
            return self.answer(422, b"no such item")
        if "slow" in values:
            time.sleep(10000)
        if "busy" in values and request["attempt"] < 3:
            return self.answer(503, Retry_After="0")
        if "close" in values and request["attempt"] < 2:
            self.close_connection = True
            self.connection.close()
            return
        produce = [{"topic": "out", "value": it, "headers": [["connections", str(connections)]]}
                   for it in values]
        self.answer(200, json.dumps({"produce": produce}).encode(),
                    Content_Type="application/vnd.moldau+json; charset=utf-8")

    def log_message(self, *arguments):
        pass

server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Service)
server.daemon_threads = True
if "tls" in sys.argv:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain("own.pem", "own.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// A service, and its port.
struct Service {
    child: Child,
    port: String,
}

impl Service {
    /// Starts it on a port, 0 for any.
    fn start(site: &Site, more: &[&str]) -> Self {
        let script = site.write("service.py", SERVICE);
        let mut command = Command::new("python3");
        command.arg(&script).args(more).current_dir(script.parent().unwrap());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { child, port: port.trim().to_owned() }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn a_status_decides_what_becomes_of_a_record() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1), ("dead", 1)]).await;
        site.write("token", "Bearer secret");
        let service = Service::start(&site, &["0"]);
        let values = ["a", "busy", "bad", "slow", "close", "z"].map(|value| (None, value));
        site.produce("in", &values).await;
        let rest = format!(
            "routes:\n  - topics: in\n    dead_letters: dead\n    \
             retry: {{attempts_max: 3, pause_ms: 1}}\n    handler: \
             {{url: 'http://127.0.0.1:{}/in?x=1', authorization_file: token, timeout_ms: 500}}\n",
            service.port
        );
        let worker = site.worker(&site.config("worker.yaml", &rest));
        let out = site.values("out", 4).await;
        let dead = site.read("dead", |seen| seen.len() >= 2).await;
        let said = worker.terminate();
        assert_eq!(out, ["a", "busy", "close", "z"]);
        let causes = dead.iter().map(|it| it.headers["dead-letter-cause"].as_str());
        let refused = format!("answered 422 Unprocessable Entity: {:?}", "no such item");
        assert_eq!(causes.collect::<Vec<_>>(), [refused.as_str(), "took longer than 500ms"]);
        assert!(said.contains(&format!("-> http://127.0.0.1:{}/in\n", service.port)), "{said}");
        assert!(!said.contains("secret"), "{said}");
    });
}

/// One connection takes all batches, over TLS, and one that the service closed is replaced.
#[test]
fn connections_over_tls_are_kept() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("token", "Bearer secret");
        let own = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        site.write("own.pem", &own.cert.pem());
        site.write("own.key", &own.signing_key.serialize_pem());
        let service = Service::start(&site, &["0", "tls"]);
        let values: Vec<String> = (0..50).map(|n: i32| n.to_string()).collect();
        let values: Vec<_> = values.iter().map(|value| (None, value.as_str())).collect();
        site.produce("in", &values).await;
        let rest = format!(
            "routes:\n  - topics: in\n    batch_records_max: 5\n    handler: \
             {{url: 'https://localhost:{}/in?x=1', authorization_file: token, \
             trust_file: own.pem}}\n",
            service.port
        );
        let worker = site.worker(&site.config("worker.yaml", &rest));
        let out = site.read("out", |seen| seen.len() >= 50).await;
        worker.terminate();
        assert!(out.iter().all(|it| it.headers["connections"] == "1"), "{out:?}");
    });
}

#[test]
fn a_service_that_is_away_loses_nothing() {
    block_on(async {
        let site = Site::new(&[("in", 1), ("out", 1)]).await;
        site.write("token", "Bearer secret");
        let port = free_port().to_string();
        site.produce("in", &[(None, "a")]).await;
        let rest = format!(
            "routes:\n  - topics: in\n    retry: {{attempts_max: 1000000, pause_ms: 1, \
             pause_max_ms: 10}}\n    handler: \
             {{url: 'http://127.0.0.1:{port}/in?x=1', authorization_file: token}}\n"
        );
        let mut worker = site.worker(&site.config("worker.yaml", &rest));
        worker.wait_for_line("runs until");
        let service = Service::start(&site, &[&port]);
        assert_eq!(site.values("out", 1).await, ["a"]);
        let said = worker.terminate();
        drop(service);
        assert!(said.contains("in: 1 handled, "), "{said}");
    });
}
