//! Systems that are files, made of shells.

use super::*;
use moldau_load::security::{SaslFile, TlsFile};

fn parsed(text: &str) -> SystemFile {
    serde_json::from_str(text).unwrap()
}

/// Two processes that do nothing: the first writes down what it was started with.
fn system() -> SystemFile {
    parsed(
        r#"{
        "description": "a shell and a relay of its words", "bootstrap": "${address.front}",
        "processes": [
            {"name": "back", "role": "broker",
             "files": {"server.conf": "listen=${address.back}\nport=${port.back}\n"},
             "prepare": [["/bin/sh", "-c", "cp ${dir}/server.conf ${dir}/copied"]],
             "command": ["/bin/sh", "-c",
                "echo $WORD > ${dir}/said; exec python3 -m http.server -b 127.0.0.1 ${port.back}"],
             "environment": {"WORD": "${moldau}"},
             "ready": {"tcp": "${address.back}"},
             "stop": {"signal": "kill", "within_ms": 100}},
            {"name": "front", "role": "proxy",
             "command": ["python3", "-m", "http.server", "--bind", "127.0.0.1", "${port.front}"],
             "ready": {"http": "${address.front}/"}}
        ]}"#,
    )
}

/// Starts it, and tries again if another process took a port that was free before.
fn started(
    file: &SystemFile,
    installations: &Installations,
    directory: &Path,
) -> Result<RunningSystem, Error> {
    let start = || file.start(installations, directory);
    let is_taken = |error: &Error| {
        let told = error.to_string();
        told.contains("in use") || told.contains("something else is ready")
    };
    start().or_else(|error| if is_taken(&error) { start() } else { Err(error) })
}

fn refused(change: impl FnOnce(&mut SystemFile)) -> String {
    let mut file = system();
    change(&mut file);
    file.check().unwrap_err().to_string()
}

#[test]
fn a_system_is_prepared_started_accounted_and_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let installations = Installations { moldau: "the-word".into(), ..Installations::default() };
    let mut running = started(&system(), &installations, directory.path()).unwrap();
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap_or_default();
    while read("back/said").is_empty() {
        running.check_alive().unwrap();
        std::thread::yield_now();
    }
    assert_eq!(read("back/said").trim(), "the-word");
    let copied = read("back/copied");
    let (address, port) = copied.trim().split_once("\nport=").unwrap();
    assert_eq!(address, format!("listen=127.0.0.1:{port}"));
    assert!(running.bootstrap().starts_with("127.0.0.1:"));
    assert_ne!(running.bootstrap(), address.trim_start_matches("listen="));
    let accounted = running.accounted();
    let roles: Vec<&str> = accounted.iter().map(|(role, _)| role.as_str()).collect();
    assert_eq!(roles, ["broker", "proxy"]);
    running.stop().unwrap();
    for (_, pid) in accounted {
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}

/// The broker is the HTTP server of the first process, which a client reaches through a link alone.
#[test]
fn a_broker_is_reached_through_a_link_that_can_be_cut() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = system();
    file.bootstrap = "${address.there}".into();
    file.links.push(LinkFile {
        of: "back".into(),
        with: LinkEnd::Clients,
        listen: "${address.there}".into(),
        to: "${address.back}".into(),
        then_to: None,
    });
    let secret = "${secret} ${temporary}";
    file.processes[0].files.insert("secret".into(), secret.into());
    let running = started(&file, &Installations::default(), directory.path()).unwrap();
    let there: SocketAddr = running.bootstrap().parse().unwrap();
    assert!(crate::systems::http_get(there, "/").unwrap().contains("200"));
    assert_eq!(running.links(LinkEnd::Store, None).count(), 0);
    assert_eq!(running.links(LinkEnd::Clients, Some(1)).count(), 0);
    let link = running.links(LinkEnd::Clients, Some(0)).next().unwrap();
    link.disturb(crate::systems::Disturbance::Refused);
    let answer = crate::systems::http_get(there, "/");
    assert!(answer.is_none_or(|answer| answer.is_empty()));

    let kept = directory.path().join("back/secret");
    let mode = std::os::unix::fs::PermissionsExt::mode(&kept.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let kept = fs::read_to_string(kept).unwrap();
    let (word, temporary) = kept.split_once(' ').unwrap();
    assert!(word.len() == 32 && Path::new(temporary).is_dir(), "{kept}");
    drop(running);
    assert!(!Path::new(temporary).exists());
}

#[test]
fn a_failed_preparation_command_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = system();
    file.processes[0].prepare = vec![vec!["/bin/false".into()]];
    let error = file.start(&Installations::default(), directory.path()).unwrap_err();
    assert!(error.to_string().starts_with("what prepares back ended with"), "{error}");
}

/// The shell was accounted, but not the process that it had started.
#[test]
fn a_command_that_leaves_the_work_to_others_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = system();
    let words = file.processes[1].command.join(" ");
    file.processes[1].command =
        ["/bin/sh", "-c", &format!("{words} & wait")].map(str::to_string).into();
    let error = started(&file, &Installations::default(), directory.path()).unwrap_err();
    let wanted = "invalid plan: proxy: /bin/sh starts other processes";
    assert!(error.to_string().starts_with(wanted), "{error}");
}

#[test]
fn a_system_that_cannot_be_started_is_refused() {
    system().check().unwrap();
    assert_eq!(
        refused(|file| file.processes[1].name = "back".into()),
        "invalid plan: processes.name: \"back\" is there twice"
    );
    assert_eq!(
        refused(|file| file.processes[0].role = "brokr".into()),
        "invalid plan: process back: role: \"brokr\" is not one of broker, proxy, \
         database, store"
    );
    let link = |of: &str| LinkFile {
        of: of.into(),
        with: LinkEnd::Clients,
        listen: "${address.there}".into(),
        to: "${address.back}".into(),
        then_to: None,
    };
    assert_eq!(
        refused(|file| file.links.push(link("none"))),
        "invalid plan: links: \"none\" is no process"
    );
    assert!(refused(|file| file.links = vec![link("back"); 13]).contains("at most 12"));
    assert!(refused(|file| file.processes[0].name = "../up".into()).contains("processes.name"));
    assert!(refused(|file| file.processes[0].command.clear()).contains("a program at least"));
    assert!(refused(|file| file.processes[0].stop.within_ms = 60_001).contains("60000 at most"));
    let outside = |file: &mut SystemFile| {
        file.processes[0].files.insert("../up".into(), String::new());
    };
    assert!(refused(outside).contains("a name is no path"));
}

#[test]
fn a_variable_that_is_none_is_found_with_those_that_are() {
    assert_eq!(system().unknown_variable(), None);
    let mut file = system();
    file.processes[1].command.push("--listen=${adress.front}".into());
    let (unknown, known) = file.unknown_variable().unwrap();
    assert_eq!(unknown, "adress.front");
    assert!(known.contains(&"address.front".to_string()), "{known:?}");
    assert!(known.contains(&"kroxylicious".to_string()), "{known:?}");
}

#[test]
fn missing_parts_of_a_system_are_named() {
    let mut file = SystemFile { bootstrap: "${external}".into(), ..system() };
    let missing = file.missing(&Installations::default()).unwrap();
    assert_eq!(missing, "no cluster was named; name one with: --external HOST:PORT");
    let external = Installations { external: Some("h:1".into()), ..Installations::default() };
    assert_eq!(file.missing(&external), None);
    file.processes[0].environment.insert("CLASSPATH".into(), "${kafka}".into());
    assert!(file.missing(&external).unwrap().starts_with("Apache Kafka is not there"));
    let there = Installations { kafka: Some("a.jar".into()), ..external };
    assert_eq!(file.missing(&there), None);
}

#[test]
fn a_plan_shows_that_files_and_environment_changed_but_not_their_contents() {
    let with = |secret: &str| {
        let mut file = system();
        let process = &mut file.processes[0];
        process.environment.insert("KAFKA_OPTS".into(), format!("-Dpassword={secret}"));
        process.files.insert("jaas.conf".into(), format!("password=\"{secret}\";"));
        process.prepare.push(vec!["add-user".into(), format!("--password={secret}")]);
        process.command.push(format!("--password={secret}"));
        let (text, by) = (format!("a{secret}"), format!("b{secret}"));
        file.without_flush.push(Replacement { text, by });
        format!("{file:?}")
    };
    let told = with("hunter2");
    for part in ["KAFKA_OPTS", "jaas.conf", "add-user"] {
        assert!(told.contains(part), "{told}");
    }
    assert!(!told.contains("hunter2"), "{told}");
    assert_ne!(told, with("hunter3"));
}

#[test]
fn readiness_over_http_has_a_path() {
    let installations =
        Installations { external: Some("127.0.0.1:9".into()), ..Default::default() };
    let scope = Scope {
        installations: &installations,
        addresses: BTreeMap::new(),
        directory: None,
        certificates: None,
        temporary: None,
        secret: String::new(),
    };
    let expand = |text: &str| ReadyFile::Http(text.into()).expand(&scope);
    let address = "127.0.0.1:9".parse().unwrap();
    assert_eq!(expand("${external}/readyz").unwrap(), Ready::Http(address, "/readyz".into()));
    let error = expand("localhost/readyz").unwrap_err().to_string();
    assert_eq!(error, "invalid plan: ready: \"localhost\" is not an address, IP:PORT");
    assert!(expand("${dir}").unwrap_err().to_string().contains("${dir} stands for nothing here"));
}

#[test]
fn clients_secure_their_connections_with_certificates_made_for_the_system() {
    let directory = tempfile::tempdir().unwrap();
    let mut file = system();
    file.processes.clear();
    let started = |file: &SystemFile| file.start(&Installations::default(), directory.path());
    assert!(started(&file).unwrap().security().tls.is_none());
    assert!(!directory.path().join("certificates").exists());
    let at = |name: &str| format!("${{certificates}}/{name}");
    file.security = SecurityFile {
        tls: Some(TlsFile {
            trust_file: at("authority.pem"),
            certificate_file: Some(at("client.pem")),
            key_file: Some(at("client.key")),
        }),
        sasl: Some(SaslFile {
            mechanism: "SCRAM-SHA-256".into(),
            user: "lab".into(),
            password_file: at("password"),
        }),
    };
    let running = started(&file).unwrap();
    assert!(running.security().tls.is_some() && running.security().sasl.is_some());
    let store = fs::read_to_string(directory.path().join("certificates/server-store.pem")).unwrap();
    assert!(store.contains("PRIVATE KEY") && store.contains("BEGIN CERTIFICATE"));
    let tls = file.security.tls.as_mut().unwrap();
    tls.key_file = None;
    assert!(started(&file).unwrap_err().to_string().contains("go together"));
    file.security.tls = None;
    file.security.sasl.as_mut().unwrap().mechanism = "OAUTHBEARER".into();
    assert!(started(&file).unwrap_err().to_string().contains("OAUTHBEARER"));
}
