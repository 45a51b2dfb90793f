//! Requests to the owner of the log of frames: who takes them, and what becomes of them.

use std::sync::Arc;

use bytes::Bytes;
use moldau_cluster::{Fate, Frames, Memory, Ownership, Postgres, Requests, Wakes};
use tokio::time::timeout;
use uuid::Uuid;

use crate::frames::{LONG, claim};
use crate::postgres_server;

/// Both implementations have to pass.
async fn each<F: Future<Output = ()>>(test: impl Fn(Both) -> F) {
    let server = postgres_server::shared();
    test(Both::of(Memory::default())).await;
    test(Both::of(Postgres::connect(&server.database().await).await.unwrap())).await;
}

struct Both {
    requests: Box<dyn Requests>,
    frames: Box<dyn Frames>,
}

impl Both {
    fn of<T: Requests + Frames + Clone>(sequencer: T) -> Self {
        Self { requests: Box::new(sequencer.clone()), frames: Box::new(sequencer) }
    }

    async fn own(&self) -> Ownership {
        claim(&*self.frames, 1).await
    }

    async fn ask(&self, asked: &[u8]) {
        let asked = asked.iter().map(|number| (id(*number), bytes(*number))).collect();
        self.requests.ask(asked).await.unwrap();
    }

    async fn take(&self, epoch: i64) -> Vec<Uuid> {
        let taken = self.requests.take(epoch).await.unwrap();
        let is_right = |(id, bytes): &(Uuid, Bytes)| id.as_bytes()[15] == bytes[0];
        assert!(taken.iter().all(is_right), "{taken:?}");
        taken.into_iter().map(|(id, _)| id).collect()
    }

    async fn answer(&self, number: u8) {
        self.requests.answer(vec![(id(number), bytes(100 + number))]).await.unwrap();
    }

    async fn look(&self) -> Vec<(Uuid, Fate)> {
        self.requests.look((0..9).map(id).collect()).await.unwrap()
    }
}

fn id(number: u8) -> Uuid {
    Uuid::from_u128(number.into())
}

fn bytes(number: u8) -> Bytes {
    Bytes::copy_from_slice(&[number])
}

fn answered(number: u8, next_sequence: i64) -> (Uuid, Fate) {
    (id(number), Fate::Answered { answer: bytes(100 + number), next_sequence })
}

#[tokio::test]
async fn the_owner_takes_requests_in_their_order_and_answers_each() {
    each(|both| async move {
        both.ask(&[2, 1]).await;
        let owned = both.own().await;
        both.ask(&[3, 1]).await;
        assert_eq!(both.take(owned.epoch).await, [id(2), id(1), id(3)]);
        both.frames.append(owned.epoch, 0, vec![bytes(7)]).await.unwrap();
        both.answer(1).await;
        // An owner that did not hear of what it took takes it again.
        assert_eq!(both.take(owned.epoch).await, [id(2), id(3)]);
        both.frames.append(owned.epoch, 1, vec![bytes(7)]).await.unwrap();
        both.answer(2).await;
        assert_eq!(both.look().await, [answered(2, 2), answered(1, 1)]);
        both.requests.forget(vec![id(1), id(2)]).await.unwrap();
        both.answer(1).await;
        assert!(both.look().await.is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_request_that_an_earlier_owner_took_is_in_doubt_and_others_wait_for_the_next() {
    each(|both| async move {
        let first = both.own().await;
        both.ask(&[1, 2]).await;
        assert_eq!(both.take(first.epoch).await, [id(1), id(2)]);
        both.answer(2).await;
        both.ask(&[3, 4]).await;
        both.requests.forget(vec![id(4)]).await.unwrap();
        let epoch = first.epoch;
        drop(first);
        let second = both.own().await;
        assert!(both.take(epoch).await.is_empty());
        assert_eq!(both.look().await, [(id(1), Fate::Unknown), answered(2, 0)]);
        assert_eq!(both.take(second.epoch).await, [id(3)]);
    })
    .await;
}

#[tokio::test]
async fn an_owner_without_requests_removes_what_nobody_waits_for() {
    let server = postgres_server::shared();
    let settings = server.database().await;
    let both = Both::of(Postgres::connect(&settings).await.unwrap());
    let owned = both.own().await;
    both.ask(&[1, 2]).await;
    assert_eq!(both.take(owned.epoch).await, [id(1), id(2)]);
    both.answer(1).await;
    let old = "update moldau.requests set asked_at = asked_at - interval '3 minutes'";
    assert!(server.run_statement(&settings, old));
    both.ask(&[3]).await;
    assert_eq!(both.take(owned.epoch).await, [id(3)]);
    both.answer(3).await;
    assert_eq!(both.look().await, [answered(3, 0)]);
}

#[tokio::test]
async fn brokers_are_woken_by_requests_of_others() {
    let server = postgres_server::shared();
    let postgres = Postgres::connect(&server.database().await).await.unwrap();
    let (ours, theirs) = (Arc::new(Wakes::default()), Arc::new(Wakes::default()));
    let mut owner = theirs.requests();
    let _telling = [postgres.tell(ours.clone()), postgres.tell(theirs.clone())];
    // Whoever begins to listen looks once.
    timeout(LONG, owner.changed()).await.expect("it begins").unwrap();
    let frames = theirs.frames();
    ours.announce_requests();
    timeout(LONG, owner.changed()).await.expect("it is woken").unwrap();
    assert!(!frames.has_changed().unwrap(), "followers of frames sleep on");
}
