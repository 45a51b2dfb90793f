//! Connections whose session holds something that is free once it ends.
//!
//! A session ends with its connection. A process that hangs and a network that is cut leave the
//! connection open, so the server ends a session that is silent, and the broker is never silent: a
//! thread of its own keeps the sessions, so that a long decision of the broker ends none.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};

use crate::Answer;
use crate::frames::Session;

use super::address::Traffic;
use super::link::{Pool, late, meaning};

/// A session that runs one statement, and holds then what that locked.
pub(super) struct Opening {
    client: Client,
    traffic: Traffic,
}

/// Ends the session when dropped.
struct Watch([JoinHandle<()>; 2]);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}

impl Opening {
    pub(super) async fn of(pool: &Pool) -> Answer<Self> {
        let (client, traffic) = pool.open_session().await?;
        Ok(Self { client, traffic })
    }

    /// Runs the statement that locks, and gives its rows and the session. An error ends it.
    pub(super) async fn lock(
        self,
        pool: &Pool,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Answer<(Vec<Row>, Session)> {
        let (client, traffic) = (Arc::new(self.client), self.traffic);
        let (ending, ended) = watch::channel(false);
        let (alive, owner) = watch::channel(());
        let beating = Arc::clone(&client);
        let kept = pool.keeper.spawn(async move {
            tokio::select! {
                _ = traffic => {}
                () = beat(&beating) => {}
                () = hangs(owner) => {}
            }
            ending.send_replace(true);
        });
        // On the threads of the broker, so that it stands still with them.
        let lives = tokio::spawn(async move {
            let mut beats = interval(BEAT);
            loop {
                beats.tick().await;
                alive.send_replace(());
            }
        });
        let watch = Watch([kept, lives]);
        let ask = async {
            client.batch_execute(SETTINGS).await?;
            client.query(text, values).await
        };
        let rows = timeout(pool.timeout, ask).await.map_err(|_| late())?;
        let rows = rows.map_err(|error| meaning(&error))?;
        Ok((rows, Session::of(ended, Box::new(watch))))
    }
}

/// Waits until whoever holds the session does nothing any more.
async fn hangs(mut owner: watch::Receiver<()>) {
    while matches!(timeout(BUSY_MAX, owner.changed()).await, Ok(Ok(()))) {}
}

/// Lets the server know that this process runs, until there is no answer.
async fn beat(client: &Client) {
    let mut beats = interval(BEAT);
    beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        beats.tick().await;
        let answer = timeout(ANSWER_MAX, client.batch_execute("select 1")).await;
        if !matches!(answer, Ok(Ok(()))) {
            return;
        }
    }
}

const BEAT: Duration = Duration::from_millis(500);
/// Longer than any decision takes. A broker that is busy for longer hangs.
const BUSY_MAX: Duration = Duration::from_secs(10);
/// Together with a beat the time after which the server ends the session.
const ANSWER_MAX: Duration = Duration::from_millis(1_500);
/// Without word from the broker for 2 s the session ends. The TCP settings cover answers that the
/// broker does not take; on a socket of the machine they do nothing.
const SETTINGS: &str = "
    set idle_session_timeout = 2000;
    set tcp_keepalives_idle = 1;
    set tcp_keepalives_interval = 1;
    set tcp_keepalives_count = 2;
    set tcp_user_timeout = 1500";
