//! The binary form of records.

use bytes::Bytes;
use moldau_coordinator::{
    AssignmentConfigs, ClassicMember, CommittedOffset, ConsumerChange, ConsumerMember,
    CopartitionGroup, Error, GroupMetadata, GroupRecord, InternalTopic, MemberRecord, MemberState,
    MemberTasks, Protocol, ShareChange, ShareMember, StreamsChange, StreamsMember, StreamsTasks,
    StreamsTopology, Subtopology, TopicOffsets, UserEndpoint,
};
use moldau_protocol::Uuid;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn encoded(record: &GroupRecord) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

fn committed() -> GroupRecord {
    let offset = |expire_timestamp_ms| CommittedOffset {
        offset: 0x0102,
        leader_epoch: -1,
        metadata: "m".to_owned(),
        commit_timestamp_ms: 0x0304,
        expire_timestamp_ms,
    };
    GroupRecord::OffsetsCommitted {
        group_id: "g".to_owned(),
        topics: vec![TopicOffsets {
            topic: "t".to_owned(),
            partitions: vec![(5, offset(None)), (6, offset(Some(7)))],
        }],
    }
}

fn metadata() -> GroupRecord {
    GroupRecord::GroupMetadata(GroupMetadata {
        group_id: "g".to_owned(),
        generation: 3,
        protocol_type: Some("consumer".to_owned()),
        protocol_name: Some("range".to_owned()),
        leader: None,
        state_timestamp_ms: 9,
        members: vec![MemberRecord {
            member_id: "a-1".to_owned(),
            instance_id: Some(String::new()),
            client_id: "a".to_owned(),
            client_host: "/h".to_owned(),
            rebalance_timeout_ms: 1,
            session_timeout_ms: 2,
            protocols: vec![Protocol { name: "range".to_owned(), metadata: vec![8; 200].into() }],
            assignment: Bytes::from_static(b"xyz"),
        }],
    })
}

fn change() -> GroupRecord {
    let topic = Uuid::from_bytes([7; 16]);
    GroupRecord::ConsumerChanged(ConsumerChange {
        group_id: "g".to_owned(),
        epoch: 3,
        target_epoch: 2,
        target_timestamp_ms: 9,
        metadata_hash: -2,
        removed: vec!["b".to_owned()],
        members: vec![ConsumerMember {
            classic: None,
            member_id: "a".to_owned(),
            instance_id: None,
            rack_id: Some("r".to_owned()),
            client_id: "c".to_owned(),
            client_host: "/h".to_owned(),
            rebalance_timeout_ms: 1,
            assignor: Some("range".to_owned()),
            topics: ["t".to_owned()].into(),
            regex: None,
            epoch: 2,
            previous_epoch: 1,
            state: MemberState::UnrevokedPartitions,
            assigned: [(topic, [(4, 2)].into())].into(),
            revoking: [(topic, [(5, 1)].into())].into(),
        }],
        targets: vec![("a".to_owned(), [(topic, [4, 6].into())].into())],
    })
}

#[test]
fn a_change_of_the_consumer_protocol_has_its_golden_bytes() {
    let head: &[u8] = &[1, 5, 1, b'g', 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9];
    let hash: &[u8] = &[255, 255, 255, 255, 255, 255, 255, 254];
    let member: &[u8] = &[1, 1, b'b', 1, 1, b'a', 0, 2, b'r', 1, b'c', 2, b'/', b'h', 0, 0, 0, 1];
    let subscribed: &[u8] = &[6, b'r', b'a', b'n', b'g', b'e', 1, 1, b't', 0];
    let epochs: &[u8] = &[0, 0, 0, 2, 0, 0, 0, 1, 1];
    let topic: &[u8] = &[7; 16];
    let assigned: &[u8] = &[1, 0, 0, 0, 4, 0, 0, 0, 2, 1];
    let revoking: &[u8] = &[1, 0, 0, 0, 5, 0, 0, 0, 1, 1, 1, b'a', 1];
    let target: &[u8] = &[2, 0, 0, 0, 4, 0, 0, 0, 6];
    let parts =
        [head, hash, member, subscribed, epochs, &[1], topic, assigned, topic, revoking, topic];
    let golden = [&parts.concat(), target].concat();
    assert_eq!(encoded(&change()), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(change()));
}

#[test]
fn a_classic_member_of_a_consumer_group_has_its_golden_bytes() {
    let GroupRecord::ConsumerChanged(mut change) = change() else { unreachable!("it is one") };
    let plain = encoded(&GroupRecord::ConsumerChanged(change.clone()));
    change.members[0].classic = Some(ClassicMember {
        session_timeout_ms: 258,
        protocols: vec![Protocol { name: "range".to_owned(), metadata: vec![8, 9].into() }],
    });
    let change = GroupRecord::ConsumerChanged(change);
    // After the plain member come 29 bytes of targets; 26 bytes of each what it is assigned and
    // what it gives up come after its state.
    let targets = plain.len() - 29;
    let classic: &[u8] = &[0, 0, 1, 2, 1, 5, b'r', b'a', b'n', b'g', b'e', 2, 8, 9];
    let mut golden = [&plain[..targets], classic, &plain[targets..]].concat();
    let state = targets - 2 * 26 - 1;
    assert_eq!(golden[state], 1);
    golden[state] = 5;
    assert_eq!(encoded(&change), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(change));
    golden[state] = 7;
    assert!(GroupRecord::decode(&golden).is_err(), "there is no such state");
}

fn share_change() -> GroupRecord {
    let topic = Uuid::from_bytes([7; 16]);
    GroupRecord::ShareChanged(ShareChange {
        group_id: "g".to_owned(),
        epoch: 3,
        target_epoch: 2,
        target_timestamp_ms: 9,
        metadata_hash: -2,
        removed: vec!["b".to_owned()],
        members: vec![ShareMember {
            member_id: "a".to_owned(),
            rack_id: Some("r".to_owned()),
            client_id: "c".to_owned(),
            client_host: "/h".to_owned(),
            topics: ["t".to_owned(), "u".to_owned()].into(),
            epoch: 2,
            previous_epoch: -1,
            assigned: [(topic, [4].into())].into(),
        }],
        targets: vec![("a".to_owned(), [(topic, [4, 6].into())].into())],
    })
}

#[test]
fn a_change_of_a_share_group_has_its_golden_bytes() {
    let head: &[u8] = &[1, 7, 1, b'g', 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9];
    let hash: &[u8] = &[255, 255, 255, 255, 255, 255, 255, 254];
    let member: &[u8] = &[1, 1, b'b', 1, 1, b'a', 2, b'r', 1, b'c', 2, b'/', b'h'];
    let subscribed: &[u8] = &[2, 1, b't', 1, b'u'];
    let epochs: &[u8] = &[0, 0, 0, 2, 255, 255, 255, 255, 1];
    let topic: &[u8] = &[7; 16];
    let assigned: &[u8] = &[1, 0, 0, 0, 4, 1, 1, b'a', 1];
    let target: &[u8] = &[2, 0, 0, 0, 4, 0, 0, 0, 6];
    let golden = [head, hash, member, subscribed, epochs, topic, assigned, topic, target].concat();
    assert_eq!(encoded(&share_change()), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(share_change()));
}

fn streams_change() -> GroupRecord {
    let part = Subtopology {
        source_topics: vec!["t".to_owned()],
        changelog_topics: vec![InternalTopic {
            name: "l".to_owned(),
            partitions: 0,
            replication_factor: 1,
            configs: [("k".to_owned(), "v".to_owned())].into(),
        }],
        repartition_sinks: vec!["s".to_owned()],
        repartition_sources: Vec::new(),
        copartition_groups: vec![CopartitionGroup {
            source_topics: vec![0],
            repartition_sources: vec![1],
        }],
    };
    GroupRecord::StreamsChanged(Box::new(StreamsChange {
        group_id: "g".to_owned(),
        epoch: 3,
        target_epoch: 2,
        target_timestamp_ms: 9,
        metadata_hash: -2,
        validated_epoch: -1,
        assignment: AssignmentConfigs { standby_replicas: 1, rack_tags: vec!["z".to_owned()] },
        topology: Some(StreamsTopology {
            epoch: 4,
            subtopologies: [("0".to_owned(), part)].into(),
        }),
        removed: vec!["b".to_owned()],
        members: vec![StreamsMember {
            member_id: "a".to_owned(),
            instance_id: None,
            rack_id: Some("r".to_owned()),
            client_id: "c".to_owned(),
            client_host: "/h".to_owned(),
            rebalance_timeout_ms: 1,
            topology_epoch: 4,
            process_id: "p".to_owned(),
            endpoint: Some(UserEndpoint { host: "e".to_owned(), port: 258 }),
            tags: [("z".to_owned(), "y".to_owned())].into(),
            epoch: 2,
            previous_epoch: 1,
            state: MemberState::UnreleasedPartitions,
            assigned: MemberTasks {
                active: [("0".to_owned(), [(5, 2)].into())].into(),
                standby: [("0".to_owned(), [6].into())].into(),
            },
            revoking: MemberTasks::default(),
        }],
        targets: vec![(
            "a".to_owned(),
            StreamsTasks {
                active: [("0".to_owned(), [5].into())].into(),
                standby: [("0".to_owned(), [4, 6].into())].into(),
            },
        )],
    }))
}

#[test]
fn a_change_of_a_streams_group_has_its_golden_bytes() {
    let head: &[u8] = &[1, 8, 1, b'g', 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 9];
    let hash: &[u8] = &[255, 255, 255, 255, 255, 255, 255, 254, 255, 255, 255, 255];
    let assignment: &[u8] = &[0, 0, 0, 1, 1, 1, b'z'];
    let topology: &[u8] = &[1, 0, 0, 0, 4, 1, 1, b'0', 1, 1, b't'];
    let changelog: &[u8] = &[1, 1, b'l', 0, 0, 0, 0, 0, 1, 1, 1, b'k', 1, b'v', 1, 1, b's', 0];
    let copartition: &[u8] = &[1, 1, 0, 0, 1, 0, 1];
    let member: &[u8] = &[1, 1, b'b', 1, 1, b'a', 0, 2, b'r', 1, b'c', 2, b'/', b'h'];
    let process: &[u8] = &[0, 0, 0, 1, 0, 0, 0, 4, 1, b'p', 1, 1, b'e', 0, 0, 1, 2];
    let tags: &[u8] = &[1, 1, b'z', 1, b'y', 0, 0, 0, 2, 0, 0, 0, 1, 2];
    let assigned: &[u8] = &[1, 1, b'0', 1, 0, 0, 0, 5, 0, 0, 0, 2, 1, 1, b'0', 1, 0, 0, 0, 6];
    let target: &[u8] = &[0, 0, 1, 1, b'a', 1, 1, b'0', 1, 0, 0, 0, 5];
    let standby: &[u8] = &[1, 1, b'0', 2, 0, 0, 0, 4, 0, 0, 0, 6];
    let parts = [head, hash, assignment, topology, changelog, copartition, member, process, tags];
    let golden = [&parts.concat(), assigned, target, standby].concat();
    assert_eq!(encoded(&streams_change()), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(streams_change()));
}

#[test]
fn partitions_out_of_order_are_refused() {
    for change in [change(), share_change(), streams_change()] {
        let mut bytes = encoded(&change);
        let last = bytes.len() - 1;
        bytes[last] = 4;
        assert_eq!(GroupRecord::decode(&bytes), Err(Error::Invalid { field: "partitions" }));
    }
}

#[test]
fn a_configuration_has_its_golden_bytes() {
    let configs = vec![("k".to_owned(), "v".to_owned())];
    let record = GroupRecord::GroupConfigured { group_id: "g".to_owned(), configs };
    let golden = [1, 6, 1, b'g', 1, 1, b'k', 1, b'v'];
    assert_eq!(encoded(&record), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(record));
}

#[test]
fn committed_offsets_have_their_golden_bytes() {
    #[rustfmt::skip]
    let golden = [
        1, 1, 1, b'g', 1, 1, b't', 2,
        0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 1, 2, 255, 255, 255, 255, 1, b'm',
        0, 0, 0, 0, 0, 0, 3, 4, 0,
        0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 1, 2, 255, 255, 255, 255, 1, b'm',
        0, 0, 0, 0, 0, 0, 3, 4, 1, 0, 0, 0, 0, 0, 0, 0, 7,
    ];
    assert_eq!(encoded(&committed()), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(committed()));
}

#[test]
fn deletions_have_their_golden_bytes() {
    let offsets = GroupRecord::OffsetsDeleted {
        group_id: "g".to_owned(),
        topics: vec![("t".to_owned(), vec![1, 258])],
    };
    let golden = [1, 2, 1, b'g', 1, 1, b't', 2, 0, 0, 0, 1, 0, 0, 1, 2];
    assert_eq!(encoded(&offsets), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(offsets));
    let group = GroupRecord::GroupDeleted { group_id: "gr".to_owned() };
    assert_eq!(encoded(&group), [1, 4, 2, b'g', b'r']);
    assert_eq!(GroupRecord::decode(&[1, 4, 2, b'g', b'r']), Ok(group));
}

#[test]
fn group_metadata_has_its_golden_bytes() {
    let head: &[u8] = &[1, 3, 1, b'g', 0, 0, 0, 3, 9];
    let protocol: &[u8] = &[6, b'r', b'a', b'n', b'g', b'e', 0, 0, 0, 0, 0, 0, 0, 0, 9, 1];
    let member: &[u8] = &[3, b'a', b'-', b'1', 1, 1, b'a', 2, b'/', b'h', 0, 0, 0, 1, 0, 0, 0, 2];
    let offered: &[u8] = &[1, 5, b'r', b'a', b'n', b'g', b'e', 0xc8, 1];
    let golden =
        [head, b"consumer", protocol, member, offered, &[8; 200], &[3, b'x', b'y', b'z']].concat();
    assert_eq!(encoded(&metadata()), golden);
    assert_eq!(GroupRecord::decode(&golden), Ok(metadata()));
}

#[test]
fn every_cut_record_is_refused() {
    for record in [committed(), metadata(), change(), streams_change()] {
        let bytes = encoded(&record);
        for length in 0..bytes.len() {
            assert!(GroupRecord::decode(&bytes[..length]).is_err(), "{length} bytes");
        }
    }
}

#[test]
fn what_is_not_a_record_is_named() {
    assert_eq!(GroupRecord::decode(&[]), Err(Error::Truncated { field: "version" }));
    assert_eq!(GroupRecord::decode(&[2, 4, 0]), Err(Error::Version { version: 2 }));
    assert_eq!(GroupRecord::decode(&[1, 9, 0]), Err(Error::Kind { kind: 9 }));
    assert_eq!(GroupRecord::decode(&[1, 4, 0, 7]), Err(Error::Trailing { bytes: 1 }));
    assert_eq!(GroupRecord::decode(&[1, 4, 1, 255]), Err(Error::Invalid { field: "group" }));
    assert_eq!(GroupRecord::decode(&[1, 4, 0x80, 0]), Err(Error::Invalid { field: "group" }));
    let endless = [1, 4, 255, 255, 255, 255, 255, 255, 1];
    assert_eq!(GroupRecord::decode(&endless), Err(Error::Invalid { field: "group" }));
}

#[test]
fn a_count_beyond_the_bytes_allocates_nothing() {
    let huge = [1, 2, 1, b'g', 255, 255, 255, 255, 15, 0];
    assert_eq!(GroupRecord::decode(&huge), Err(Error::Truncated { field: "topics" }));
}

fn any_offset() -> impl Strategy<Value = CommittedOffset> {
    (any::<i64>(), any::<i32>(), ".{0,20}", any::<i64>(), option::of(any::<i64>())).prop_map(
        |(offset, leader_epoch, metadata, commit_timestamp_ms, expire_timestamp_ms)| {
            CommittedOffset {
                offset,
                leader_epoch,
                metadata,
                commit_timestamp_ms,
                expire_timestamp_ms,
            }
        },
    )
}

fn any_member() -> impl Strategy<Value = MemberRecord> {
    let bytes = || vec(any::<u8>(), 0..300).prop_map(Bytes::from);
    let protocol = (".{0,9}", bytes()).prop_map(|(name, metadata)| Protocol { name, metadata });
    let names = (".{0,9}", option::of(".{0,9}"), ".{0,9}", ".{0,9}");
    (names, any::<i32>(), any::<i32>(), vec(protocol, 0..4), bytes()).prop_map(
        |(names, rebalance_timeout_ms, session_timeout_ms, protocols, assignment)| MemberRecord {
            member_id: names.0,
            instance_id: names.1,
            client_id: names.2,
            client_host: names.3,
            rebalance_timeout_ms,
            session_timeout_ms,
            protocols,
            assignment,
        },
    )
}

fn any_metadata() -> impl Strategy<Value = GroupMetadata> {
    let name = || option::of(".{0,9}");
    let members = vec(any_member(), 0..4);
    (".{0,9}", any::<i32>(), name(), name(), name(), any::<i64>(), members).prop_map(
        |(group_id, generation, protocol_type, protocol_name, leader, time, members)| {
            GroupMetadata {
                group_id,
                generation,
                protocol_type,
                protocol_name,
                leader,
                state_timestamp_ms: time,
                members,
            }
        },
    )
}

fn any_record() -> impl Strategy<Value = GroupRecord> {
    let topic = (".{0,9}", vec((any::<i32>(), any_offset()), 0..4))
        .prop_map(|(topic, partitions)| TopicOffsets { topic, partitions });
    prop_oneof![
        (".{0,200}", vec(topic, 0..4))
            .prop_map(|(group_id, topics)| GroupRecord::OffsetsCommitted { group_id, topics }),
        (".{0,9}", vec((".{0,9}", vec(any::<i32>(), 0..5)), 0..4))
            .prop_map(|(group_id, topics)| GroupRecord::OffsetsDeleted { group_id, topics }),
        any_metadata().prop_map(GroupRecord::GroupMetadata),
        ".{0,9}".prop_map(|group_id| GroupRecord::GroupDeleted { group_id }),
        Just(change()),
        Just(share_change()),
        Just(streams_change()),
        (".{0,9}", vec((".{0,9}", ".{0,9}"), 0..4))
            .prop_map(|(group_id, configs)| GroupRecord::GroupConfigured { group_id, configs }),
    ]
}

proptest! {
    #[test]
    fn every_record_comes_back_as_it_was(record in any_record()) {
        prop_assert_eq!(GroupRecord::decode(&encoded(&record)), Ok(record));
    }

    #[test]
    fn a_changed_record_decodes_to_its_own_bytes_or_not_at_all(
        record in any_record(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = encoded(&record);
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Ok(decoded) = GroupRecord::decode(&bytes) {
            prop_assert_eq!(encoded(&decoded), bytes);
        }
    }

    #[test]
    fn random_bytes_never_panic(mut bytes in vec(any::<u8>(), 2..200)) {
        bytes[0] = 1;
        bytes[1] %= 9;
        if let Ok(decoded) = GroupRecord::decode(&bytes) {
            prop_assert_eq!(encoded(&decoded), bytes);
        }
    }
}
