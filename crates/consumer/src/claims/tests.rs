use futures_util::FutureExt;

use super::*;

fn partition(number: i32) -> TopicPartition {
    TopicPartition::of("tasks", number)
}

#[test]
fn a_recalled_partition_is_free_once_its_holder_stops() {
    let claims = Claims::default();
    claims.offer(partition(0));
    claims.offer(TopicPartition::of("others", 0));
    let hold = claims.take("tasks").now_or_never().expect("it is offered");
    assert_eq!(hold.partition, partition(0));
    assert!(claims.take("tasks").now_or_never().is_none(), "one task has it");
    assert!(hold.recalled().now_or_never().is_none());
    claims.recall(&[partition(0)]);
    assert!(hold.recalled().now_or_never().is_some());
    assert!(!claims.are_free(&[partition(0)]));
    drop(hold);
    assert!(claims.are_free(&[partition(0)]));
    assert!(!claims.are_free(&[TopicPartition::of("others", 0)]), "it is still offered");
}

#[test]
fn a_partition_that_nobody_took_is_free_at_once() {
    let claims = Claims::default();
    claims.offer(partition(0));
    claims.recall(&[partition(0)]);
    assert!(claims.are_free(&[partition(0)]));
    assert!(claims.take("tasks").now_or_never().is_none());
}

#[test]
fn a_partition_that_comes_back_is_taken_once_its_holder_stops() {
    let claims = Claims::default();
    claims.offer(partition(0));
    let hold = claims.take("tasks").now_or_never().expect("it is offered");
    claims.recall(&[partition(0)]);
    claims.offer(partition(0));
    assert!(claims.take("tasks").now_or_never().is_none(), "the former holder has it");
    assert!(hold.recalled().now_or_never().is_some(), "it has to stop all the same");
    drop(hold);
    assert!(claims.take("tasks").now_or_never().is_some());
}
