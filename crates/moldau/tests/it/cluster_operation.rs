//! What an operator does with `moldau cluster`, on PostgreSQL and an S3 server.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use bytes::Bytes;
use moldau_client::ProducerOptions;
use moldau_cluster::{ObjectKey, Store};

use crate::cluster::{PASSWORD, Services, s3_server};
use crate::ledger::Repeats;
use crate::traffic::{Numbered, block_on, connect};
use crate::world::{free_port, run, run_unread};

/// Runs `moldau cluster ACTION`, and gives its exit code with all that it said.
async fn cluster(action: &str, file: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut arguments = vec!["cluster".into(), action.into(), "--cluster".into()];
    arguments.push(file.as_os_str().to_owned());
    arguments.extend(more.iter().map(Into::into));
    // The requests of the process are served by this thread.
    let output = tokio::task::spawn_blocking(move || run(arguments)).await.unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8(said).unwrap();
    assert!(!said.contains(PASSWORD) && !said.contains(s3_server::SECRET_KEY), "{said}");
    (output.status.code(), said)
}

/// The same, with the exit code and a part of what it says.
async fn told(action: &str, file: &Path, more: &[&str], code: i32, part: &str) {
    let (ended, said) = cluster(action, file, more).await;
    assert!(ended == Some(code) && said.contains(part), "{action}: {ended:?} {said}");
}

#[test]
fn a_cluster_is_set_up_watched_checked_and_cleaned() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let file = services.file(1);
        told("status", &file, &[], 1, "moldau cluster init").await;
        told("init", &file, &[], 0, "has the schema 9, made in 9 steps").await;
        told("init", &file, &[], 0, "nothing was changed").await;
        told("status", &file, &[], 1, "No broker is alive; there is no controller.\n").await;
        let text = std::fs::read_to_string(&file).unwrap();
        let elsewhere = dir.path().join("elsewhere.yaml");
        std::fs::write(&elsewhere, text.replace("cluster/objects", "cluster/others")).unwrap();
        let place = "prefix \"cluster/objects\"";
        told("init", &elsewhere, &[], 1, place).await;
        told("gc", &elsewhere, &[], 1, place).await;
        let any = "127.0.0.1:0".to_owned();
        let mut arguments =
            ["broker", "--listen", &any, "--admin", &any, "--cluster"].map(str::to_owned).to_vec();
        arguments.push(elsewhere.to_str().unwrap().to_owned());
        let refused = tokio::task::spawn_blocking(move || run(arguments)).await.unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(place), "{said}");
        let broker = services.broker(1).await;
        let connected = connect(broker.address).await;
        let mut numbered = Numbered::start(&connected, "numbers", ProducerOptions::default()).await;
        for _ in 0..30 {
            numbered.send_one().await;
        }
        let (count, problems) = numbered.verify(Repeats::Never).await;
        assert_eq!((count, problems), (30, Vec::new()));
        let (_, said) = cluster("status", &file, &[]).await;
        assert!(
            said.starts_with("1 broker is alive; broker 1 is the controller since 20"),
            "{said}"
        );
        let arguments = ["cluster", "status", "--cluster"].map(OsString::from).into_iter();
        let arguments = arguments.chain([file.as_os_str().to_owned()]);
        let unread = tokio::task::spawn_blocking(move || run_unread(arguments)).await.unwrap();
        assert_eq!(unread, (Some(141), String::new()));
        assert!(said.contains(" of records, in 1 topic with 3 partitions.\n"), "{said}");
        assert!(said.contains("fsync"), "the database of the test is not durable: {said}");
        drop(broker);

        told("check", &file, &[], 0, "Nothing is missing").await;
        let (bucket, lost) = (services.store.bucket(), services.store.keys()[0]);
        let orphan = ObjectKey::fresh();
        bucket.put(orphan, Bytes::from_static(b"orphan")).await.unwrap();
        told("check", &file, &[], 0, &format!("not committed: cluster/objects/{orphan}")).await;
        told("gc", &file, &[], 0, "Deleted 0 objects").await;
        let soon = ["--uncommitted-for", "0.000001s"];
        told("gc", &file, &soon, 0, "Deleted 1 object.").await;
        assert!(!services.store.keys().contains(&orphan));

        bucket.delete(&[lost]).await.unwrap();
        told("check", &file, &[], 1, &format!("missing: cluster/objects/{lost}")).await;
        bucket.put(lost, Bytes::from_static(b"short")).await.unwrap();
        told("check", &file, &[], 1, &format!("too short: cluster/objects/{lost}")).await;
    });
}

/// The objects of the live cluster were deleted as garbage.
#[test]
fn a_second_database_with_the_prefix_of_a_cluster_is_refused_and_deletes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let file = services.file(1);
        told("init", &file, &[], 0, "has the schema").await;
        let broker = services.broker(1).await;
        let connected = connect(broker.address).await;
        let mut numbered = Numbered::start(&connected, "numbers", ProducerOptions::default()).await;
        for _ in 0..10 {
            numbered.send_one().await;
        }
        assert_eq!(numbered.verify(Repeats::Never).await, (10, Vec::new()));
        let objects = services.store.keys();
        assert!(!objects.is_empty());
        let foreign = services.file_with(2, &services.other_connection(), s3_server::BUCKET);
        let part = "prefix \"cluster/objects\" belongs to the cluster";
        let soon = ["--uncommitted-for", "0.000001s"];
        for (action, more) in [("init", &[][..]), ("gc", &soon), ("check", &[])] {
            told(action, &foreign, more, 1, part).await;
        }
        let any = "127.0.0.1:0";
        let mut arguments =
            ["broker", "--listen", any, "--admin", any, "--cluster"].map(OsString::from).to_vec();
        arguments.push(foreign.into_os_string());
        let refused = tokio::task::spawn_blocking(move || run(arguments)).await.unwrap();
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(!refused.status.success() && said.contains(part), "{said}");
        assert!(objects.iter().all(|key| services.store.keys().contains(key)));
        told("init", &file, &[], 0, "nothing was changed").await;
    });
}

#[test]
fn a_second_broker_of_an_id_says_what_it_waits_for_and_why_it_gives_up() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let _first = services.broker(1).await;
        let (any, file) = ("127.0.0.1:0", services.file(1));
        let mut arguments =
            ["broker", "--listen", any, "--admin", any, "--cluster"].map(OsString::from).to_vec();
        arguments.push(file.into_os_string());
        let second = tokio::task::spawn_blocking(move || run(arguments)).await.unwrap();
        let said = String::from_utf8_lossy(&second.stderr);
        assert!(!second.status.success(), "{said}");
        for part in ["waits for the end of another broker", "a broker with the id 1 is alive"] {
            assert!(said.contains(part), "{said}");
        }
    });
}

#[test]
fn check_and_gc_say_why_the_store_does_not_answer() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let file = services.file(1);
        told("init", &file, &[], 0, "has the schema").await;
        let text = std::fs::read_to_string(&file).unwrap();
        let with = |from: &str, to: &str| {
            let changed = dir.path().join("changed.yaml");
            std::fs::write(&changed, text.replace(from, to)).unwrap();
            changed
        };
        let nobody = format!("http://127.0.0.1:{}", free_port());
        let away = with(&services.store.settings().endpoint.unwrap(), &nobody);
        told("init", &away, &[], 1, "no answer from the object store").await;
        told("check", &away, &[], 1, "no answer from the object store").await;
        told("gc", &away, &[], 1, "no answer from the object store").await;
        let keys = "[default]\naws_access_key_id = A\naws_secret_access_key = B\n";
        std::fs::write(dir.path().join("strange"), keys).unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let refused = with(&path("keys"), &path("strange"));
        told("check", &refused, &[], 1, "the object store refuses").await;
    });
}

#[test]
fn a_file_without_an_id_is_valid_with_that_of_the_command_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, keys) = (path("cluster.yaml"), path("keys"));
    std::fs::write(&keys, "[default]\naws_access_key_id = A\naws_secret_access_key = B\n").unwrap();
    let note = "; it has no broker.id, so each broker needs --broker-id";
    for (id, note) in [("broker.id: 1\n", ""), ("", note), ("broker.id:\n", note)] {
        let database = "postgres: {url: postgresql://db/moldau}";
        let text = format!("{id}{database}\nbucket: {{name: a, credentials_file: {keys}}}\n");
        std::fs::write(&file, text).unwrap();
        let said = String::from_utf8(run(["config", "check", &file]).stdout).unwrap();
        assert_eq!(said, format!("{file}: a valid cluster configuration{note}\n"));
    }
}

#[test]
fn init_names_each_thing_that_is_wrong() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let with = |port: u16| {
            let to = format!("host=127.0.0.1 port={port} user=moldau password={PASSWORD}");
            let to = format!("{to} sslmode=disable");
            services.file_with(1, &to, s3_server::BUCKET)
        };
        let port = free_port();
        told("init", &with(port), &[], 1, "no answer from the database").await;
        told("init", &with(port), &[], 1, &format!("(at 127.0.0.1:{port})")).await;
        let refused = message(b'E', b"SFATAL\0C28P01\0Mpassword authentication failed\0\0");
        let part = "the database refuses: password authentication failed";
        told("init", &with(database_that_says(refused)), &[], 1, part).await;
        let old = [
            message(b'R', &[0; 4]),
            message(b'S', b"server_version\x0014.9\0"),
            message(b'Z', b"I"),
        ];
        let part = "PostgreSQL 14.9 is too old";
        told("init", &with(database_that_says(old.concat())), &[], 1, part).await;
        let settings = services.connection().to_owned();
        let file = services.file_with(1, &settings, "no-bucket");
        told("init", &file, &[], 1, "it has no such bucket").await;
        let any = "127.0.0.1:0";
        let mut arguments =
            ["broker", "--listen", any, "--admin", any, "--cluster"].map(OsString::from).to_vec();
        arguments.push(file.into_os_string());
        let broker = tokio::task::spawn_blocking(move || run(arguments)).await.unwrap();
        let said = String::from_utf8_lossy(&broker.stderr);
        let part = "failed to join the cluster: bucket no-bucket at http://127.0.0.1:";
        assert!(!broker.status.success() && said.contains(part), "{said}");
        services.store.ignore_conditions();
        told("init", &services.file(1), &[], 1, "If-None-Match").await;
    });
}

/// They went on, and the owner deleted what they acknowledged.
#[test]
fn brokers_of_a_database_end_once_a_restored_copy_owns_the_objects() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let services = Services::start(dir.path()).await;
        let config = dir.path().join("broker.yaml");
        std::fs::write(&config, "log.retention.check.interval.ms: 100\n").unwrap();
        let more = ["--config", config.to_str().unwrap()];
        let broker = services.broker_with(1, &more).await;
        let copy = services.file_with(2, &services.restored_connection(), s3_server::BUCKET);
        told("check", &copy, &[], 1, "this database is a copy of the one that owns").await;
        told("init", &copy, &["--restored"], 0, "owns the objects now").await;
        told("init", &copy, &["--restored"], 0, "owned the objects before").await;
        let ended = tokio::task::spawn_blocking(move || broker.wait_with_stderr()).await;
        let (status, said) = ended.unwrap();
        assert!(!status.success() && said.contains("another copy of this database"), "{said}");
        told("check", &services.file(1), &[], 1, "another copy of this database").await;
    });
}

#[test]
fn the_demo_loses_nothing_when_it_kills_the_controller_and_leaves_nothing_behind() {
    let output = run(["cluster", "demo", "--time", "1s"]);
    let told = String::from_utf8_lossy(&output.stderr);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said} {told}");
    assert!(said.contains(" 0 lost, 0 duplicated.\nFailover took "), "{said}");
    let dir = said.split_once("run in ").unwrap().1.split_once(".\n").unwrap().0;
    assert!(dir.contains("moldau-demo-") && !Path::new(dir).exists(), "{dir}");
}

/// A message of PostgreSQL's protocol.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let len = u32::try_from(body.len() + 4).unwrap();
    [&[kind], &len.to_be_bytes()[..], body].concat()
}

/// The port of a database that answers one client with this.
fn database_that_says(answer: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut startup = [0; 1024];
        let received = stream.read(&mut startup).unwrap();
        assert!(received > 8);
        stream.write_all(&answer).unwrap();
        // The client has read it once it closes.
        drop(stream.read(&mut startup));
    });
    port
}
