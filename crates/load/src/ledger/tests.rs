use super::*;
use crate::payload::{Account, Filler, PayloadWriter};

fn value(writer: &PayloadWriter, producer: u16, partition: u16, sequence: u64) -> Vec<u8> {
    let mut value = Vec::new();
    writer.write(Header { run: 1, producer, partition, sequence, intended_ns: 5 }, &mut value);
    value
}

fn writer() -> PayloadWriter {
    PayloadWriter::new(Filler::Random, Account::Clear, 1, 64).unwrap()
}

#[test]
fn ten_thousand_injected_faults_are_all_found() {
    let detection = self_test(42, 10_000).unwrap();
    assert_eq!(detection.found, detection.expected);
    assert!(detection.is_complete());
}

#[test]
fn an_unacknowledged_record_may_come_back_or_not() {
    let writer = writer();
    let mut sent = SentLedger::new(0, 1);
    for _ in 0..4 {
        sent.sent(0);
    }
    sent.acked(0, 0, 2, 0);
    sent.failed(0, 1);
    let mut delivered = DeliveryLedger::new(1, 1, 1);
    for sequence in 0..3 {
        delivered.observe(0, sequence, &value(&writer, 0, 0, sequence));
    }
    let audit = audit(&[sent], &delivered);
    assert!(audit.is_clean());
    assert_eq!((audit.sent, audit.acked, audit.failed, audit.unknown), (4, 2, 1, 1));
    assert_eq!(audit.delivered, 3);
}

#[test]
fn two_producers_may_share_a_partition() {
    let writer = writer();
    let mut sent = [SentLedger::new(0, 1), SentLedger::new(1, 1)];
    let mut delivered = DeliveryLedger::new(1, 2, 1);
    for offset in 0..100_u64 {
        let producer = u16::from(offset % 3 == 0);
        let ledger = &mut sent[usize::from(producer)];
        let sequence = ledger.next_sequence(0);
        ledger.sent(0);
        ledger.acked(0, sequence, 1, offset);
        delivered.observe(0, offset, &value(&writer, producer, 0, sequence));
    }
    let audit = audit(&sent, &delivered);
    assert!(audit.is_clean(), "{audit:?}");
    assert_eq!(audit.delivered, 100);
}

#[test]
fn a_record_of_another_run_is_foreign() {
    let mut delivered = DeliveryLedger::new(2, 1, 1);
    assert_eq!(delivered.observe(0, 0, &value(&writer(), 0, 0, 0)), None);
    assert_eq!(audit(&[], &delivered).foreign, 1);
}

#[test]
fn acknowledgements_that_arrive_out_of_order_count_once() {
    let mut sent = SentLedger::new(0, 1);
    for _ in 0..30 {
        sent.sent(0);
    }
    sent.acked(0, 20, 10, 20);
    sent.acked(0, 0, 10, 0);
    sent.acked(0, 10, 10, 10);
    sent.acked(0, 10, 10, 10);
    assert_eq!(sent.acked_count(), 30);
}
