//! Sessions that end after a short time, unless the client authenticates again (KIP-368).
//!
//! Steady clients live through several of them on the connections that they have. One that works on
//! without a word is closed, so that whoever keeps its connection has authenticated again.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::{Issuer, Listener, PASSWORD, Served, USER};
use crate::check::Check;
use crate::client::Library;
use crate::connection::{Connection, LIBRARIES, Login};
use crate::peers::Peers;
use crate::steady::Steady;

/// How long a session lasts. A Java client renews it after 85 to 95 percent, so it has at least
/// half a second to do so on a busy machine.
pub(super) const SESSION: Duration = Duration::from_secs(10);

/// Sessions that each client lives through with its connections.
const SESSIONS: u32 = 2;

/// Records a second of each client.
const RATE: u32 = 200;

/// How long clients may take to get going on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Runs each library with each kind of mechanism, and the client that works on without a word.
pub fn renew(
    served: &Served,
    issuer: &Issuer,
    peers: &Peers,
    directory: &Path,
) -> Vec<(&'static str, Result<Vec<Check>>)> {
    let token = issuer.token();
    let logins =
        [("PLAIN", PASSWORD), ("SCRAM-SHA-512", PASSWORD), ("OAUTHBEARER", token.as_str())];
    thread::scope(|scope| {
        let programs = LIBRARIES.map(|library| {
            let clients = logins.map(|(mechanism, password)| {
                let login = Login::new(mechanism, USER, password);
                scope.spawn(move || steady(library, login, served, peers, directory))
            });
            (library.name(), clients.into())
        });
        let silent = ("without renewal", vec![scope.spawn(|| without_renewal(served))]);
        let outcomes = programs.into_iter().chain([silent]).map(|(name, clients)| {
            let checks = clients
                .into_iter()
                .map(|client| client.join().unwrap_or_else(|_| Err(anyhow!("it panicked"))));
            (name, checks.collect::<Result<Vec<_>>>().map(|checks| checks.concat()))
        });
        outcomes.collect()
    })
}

/// A client that keeps its connections through several sessions.
fn steady(
    library: Library,
    login: Login,
    served: &Served,
    peers: &Peers,
    directory: &Path,
) -> Result<Vec<Check>> {
    let mechanism = login.mechanism;
    let topic = format!("renewal-{}-{}-{mechanism}", served.name(), library.name());
    let connection = Connection {
        login: Some(login),
        ..Connection::plain(&served.address(Listener::ShortSasl))
    };
    let mut client = Steady::start(library, &topic, RATE, &connection, peers, directory)?;
    // After a session all connections are made and told of.
    let session = u64::from(RATE) * SESSION.as_secs();
    let before = client.await_progress(TIMEOUT, |progress| progress.read >= session)?;
    let goal = before.read + session * u64::from(SESSIONS);
    let after = client.await_progress(TIMEOUT, |progress| progress.read >= goal)?;
    let (mut checks, _) = client.finish()?;
    checks.push(Check::new(
        "no connection is lost in many sessions",
        after.connections == before.connections,
        &format!("{} connections, before {}", after.connections, before.connections),
    ));
    for check in &mut checks {
        check.name = format!("{mechanism}: {}", check.name);
    }
    Ok(checks)
}

/// A client by PLAIN that asks for metadata until it is closed.
fn without_renewal(served: &Served) -> Result<Vec<Check>> {
    let mut stream = TcpStream::connect(served.address(Listener::ShortSasl))?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mechanism = [&[0, 5][..], b"PLAIN"].concat();
    exchange(&mut stream, 17, 1, &mechanism)?.context("the mechanism is not answered")?;
    let message = format!("\0{USER}\0{PASSWORD}");
    let length = u32::try_from(message.len())?.to_be_bytes();
    let message = [&length[..], message.as_bytes()].concat();
    let began = Instant::now();
    let answer = exchange(&mut stream, 36, 1, &message)?.context("the login is not answered")?;
    // The lifetime of the session ends the answer, in ms.
    let lifetime = answer.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes));
    let told = lifetime.map(Duration::from_millis) == Some(SESSION);

    // Of no topics, none of which is created.
    let metadata = [0, 0, 0, 0, 0];
    let mut answered = 0;
    while exchange(&mut stream, 3, 4, &metadata)?.is_some() {
        answered += 1;
        ensure!(began.elapsed() < TIMEOUT, "it is served after its session");
    }
    let in_time = answered > 0 && began.elapsed() >= SESSION;
    Ok(vec![
        Check::new("a client is told how long its session lasts", told, &format!("{lifetime:?}")),
        Check::new("it is served for its session and then closed", in_time, &answered.to_string()),
    ])
}

/// Sends a request and returns the body of the answer; `None` where the server closes.
fn exchange(
    stream: &mut TcpStream,
    api: u16,
    version: u16,
    body: &[u8],
) -> Result<Option<Vec<u8>>> {
    // API key, version, correlation id 7, and no client id.
    let [api, version] = [api, version].map(u16::to_be_bytes);
    let header = [&api[..], &version, &[0, 0, 0, 7, 0xff, 0xff]].concat();
    let length = u32::try_from(header.len() + body.len())?.to_be_bytes();
    let request = [&length[..], &header, body].concat();
    let mut length = [0; 4];
    // A connection that is closed refuses the request or ends before the answer.
    if stream.write_all(&request).and_then(|()| stream.read_exact(&mut length)).is_err() {
        return Ok(None);
    }
    let length = u32::from_be_bytes(length);
    let mut answer = Vec::new();
    stream.take(length.into()).read_to_end(&mut answer)?;
    ensure!(answer.starts_with(&[0, 0, 0, 7]), "an answer to something else");
    Ok(Some(answer))
}
