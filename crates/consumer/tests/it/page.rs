//! The page of the admin port in a real browser. The variable PEER_BROWSER names where its packages
//! are: `cargo xtask test` sets it.

use std::path::{Path, PathBuf};

use moldau_consumer::{Admin, DeadLetters, Message, record};
use tokio::process::Command;

use crate::status::status_when;
use crate::world::{DEADLINE, GROUP, TOPIC, broker};

#[tokio::test]
async fn a_person_reads_the_page_and_replays_a_dead_letter() {
    let broker = broker(1, &[(Some("anna"), "good")]).await;
    broker.create_topic("dead", 1).await;
    broker.produce(TOPIC, Some("ben"), "<img src=x onerror=alert(1)>").await;
    let handler = async |message: Message| match message.key() {
        Some(b"anna") => Ok(()),
        _ => Err("<script>alert(1)</script>"),
    };
    let route = record(handler).layer(DeadLetters::to("dead"));
    let admin = Admin::at("127.0.0.1:0").token("s3cret");
    // What has a meaning in an address must be shown all the same.
    let app = broker.app(GROUP).pattern("orders|a%23 #b&c", route).admin(admin);
    let control = app.control();
    let until = async {
        let address = control.admin_address().await.expect("the app runs");
        status_when(&control, |it| it.routes[0].dead_letters == 1).await;
        let packages = std::env::var_os("PEER_BROWSER").expect("the feature comes with it");
        let clients = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/clients");
        let script: PathBuf = clients.join("browser/consumer.js");
        let mut node = Command::new("node");
        node.arg(script).arg(address.to_string()).arg("s3cret").kill_on_drop(true);
        node.env("TMPDIR", &packages).env("PEER_BROWSER", &packages);
        let opened = tokio::time::timeout(DEADLINE, node.output()).await;
        let opened = opened.expect("the browser is done in time").expect("Node.js starts");
        let said = String::from_utf8_lossy(&opened.stdout);
        assert!(opened.status.success(), "{said}{}", String::from_utf8_lossy(&opened.stderr));
        assert_eq!(said.matches("\"ok\":true").count(), CHECKS, "{said}");
        // The replayed record fails again.
        status_when(&control, |it| it.routes[0].dead_letters == 2).await;
    };
    app.run(until).await.unwrap();
    let records = broker.read(TOPIC, 3).await;
    assert_eq!(records[2].value(), records[1].value());
}

/// Checks that the script prints.
const CHECKS: usize = 9;
