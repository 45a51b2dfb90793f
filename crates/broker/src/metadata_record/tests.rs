//! Records read back as they were written, byte by byte as documented, and nothing else is read.

use super::*;
use proptest::prelude::*;

fn overrides() -> impl Strategy<Value = TopicOverrides> {
    proptest::collection::btree_map("[a-z.]{1,20}", ".{0,20}", 0..5)
}

fn acls() -> impl Strategy<Value = Vec<Acl>> {
    let acl = (
        prop::sample::select(ResourceType::ALL),
        prop::sample::select(PatternType::ALL),
        [".{0,20}", "User:.{0,20}", "[0-9.*]{0,15}"],
        prop::sample::select(Operation::ALL),
        prop::sample::select(Permission::ALL),
    );
    let acl = acl.prop_map(|(resource_type, pattern_type, names, operation, permission)| {
        let [name, principal, host] = names;
        Acl {
            pattern: ResourcePattern { resource_type, pattern_type, name },
            entry: AccessControlEntry { principal, host, operation, permission },
        }
    });
    proptest::collection::vec(acl, 0..4)
}

fn scram_changes() -> impl Strategy<Value = ScramChanges> {
    let mechanism = || prop::sample::select(&ScramMechanism::ALL[..]);
    let keys = [any::<Vec<u8>>(), any::<Vec<u8>>(), any::<Vec<u8>>()];
    let credential =
        (any::<u32>(), keys).prop_map(|(iterations, [salt, stored_key, server_key])| {
            ScramCredential(sasl::ScramCredential { iterations, salt, stored_key, server_key })
        });
    let upserted = proptest::collection::vec((".{0,20}", mechanism(), credential), 0..3);
    let deleted = proptest::collection::vec((".{0,20}", mechanism()), 0..3);
    (upserted, deleted).prop_map(|(upserted, deleted)| ScramChanges { upserted, deleted })
}

fn quota_changes() -> impl Strategy<Value = Vec<QuotaChange>> {
    let name = || proptest::option::of(".{0,20}").prop_map(EntityName::of);
    let entity = prop_oneof![
        name().prop_map(QuotaEntity::User),
        name().prop_map(QuotaEntity::Client),
        (name(), name()).prop_map(|(user, client)| QuotaEntity::UserClient(user, client)),
        name().prop_map(QuotaEntity::Address),
    ];
    let key = prop::sample::select(&QuotaKey::ALL[..]);
    let change = (entity, key, proptest::option::of(0.0..1e18));
    let change = change.prop_map(|(entity, key, value)| QuotaChange { entity, key, value });
    proptest::collection::vec(change, 0..4)
}

fn record() -> impl Strategy<Value = MetadataRecord> {
    prop_oneof![
        (any::<[u8; 16]>(), "[a-z]{1,249}", any::<u32>(), overrides()).prop_map(
            |(id, name, partitions, overrides)| MetadataRecord::TopicCreated {
                id,
                name,
                partitions,
                overrides
            }
        ),
        any::<[u8; 16]>().prop_map(|id| MetadataRecord::TopicDeleted { id }),
        (any::<[u8; 16]>(), any::<u32>())
            .prop_map(|(id, partitions)| MetadataRecord::PartitionsGrown { id, partitions }),
        (any::<[u8; 16]>(), overrides())
            .prop_map(|(id, overrides)| MetadataRecord::TopicConfigured { id, overrides }),
        any::<Vec<u8>>().prop_map(MetadataRecord::Group),
        any::<Vec<u8>>().prop_map(MetadataRecord::ProducerIds),
        any::<Vec<u8>>().prop_map(MetadataRecord::Transaction),
        any::<Vec<u8>>().prop_map(MetadataRecord::Share),
        (acls(), acls())
            .prop_map(|(created, deleted)| MetadataRecord::AclsChanged { created, deleted }),
        scram_changes().prop_map(MetadataRecord::ScramCredentialsChanged),
        quota_changes().prop_map(MetadataRecord::ClientQuotasChanged),
        (any::<bool>(), overrides()).prop_map(|(is_broker, values)| {
            let source = if is_broker { DefaultSource::Broker } else { DefaultSource::Cluster };
            MetadataRecord::DefaultsChanged { source, values }
        }),
        (".{0,20}", overrides())
            .prop_map(|(name, configs)| MetadataRecord::ClientMetricsConfigured { name, configs }),
        any::<[u8; 16]>().prop_map(|id| MetadataRecord::ClusterBegun { id }),
    ]
}

proptest! {
    #[test]
    fn a_record_reads_back_as_written(record in record()) {
        prop_assert_eq!(MetadataRecord::decode(&record.encode()), Ok(record));
    }

    #[test]
    fn a_shortened_record_is_refused(record in record(), cut in 1usize..40) {
        let bytes = record.encode();
        let kept = bytes.len().saturating_sub(cut);
        let shorter = MetadataRecord::decode(&bytes[..kept]);
        // The coordinator's records run to the end, so a shorter one is another record.
        let runs_to_end =
            matches!(
                record,
                MetadataRecord::Group(_)
                    | MetadataRecord::ProducerIds(_)
                    | MetadataRecord::Transaction(_)
                    | MetadataRecord::Share(_)
            );
        prop_assert!(shorter.is_err() || runs_to_end);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in any::<Vec<u8>>()) {
        if let Ok(record) = MetadataRecord::decode(&bytes) {
            prop_assert_eq!(record.encode(), bytes);
        }
    }
}

/// The bytes as `docs/formats.md` draws them.
#[test]
fn acls_are_written_as_documented() {
    let acl = Acl {
        pattern: ResourcePattern {
            resource_type: ResourceType::Topic,
            pattern_type: PatternType::Prefixed,
            name: "or".to_owned(),
        },
        entry: AccessControlEntry {
            principal: "User:a".to_owned(),
            host: "*".to_owned(),
            operation: Operation::Read,
            permission: Permission::Allow,
        },
    };
    let record = MetadataRecord::AclsChanged { created: vec![acl], deleted: Vec::new() };
    let golden = b"\x07\0\0\0\0\x01\x02\x04\0\x02or\0\x06User:a\0\x01*\x03\x03\0\0\0\0";
    assert_eq!(record.encode(), golden);
    assert_eq!(MetadataRecord::decode(golden), Ok(record));
}

#[test]
fn scram_credentials_are_written_as_documented() {
    let credential = ScramCredential(sasl::ScramCredential {
        iterations: 4096,
        salt: b"salt".to_vec(),
        stored_key: b"stored".to_vec(),
        server_key: b"server".to_vec(),
    });
    let record = MetadataRecord::ScramCredentialsChanged(ScramChanges {
        upserted: vec![("a".to_owned(), ScramMechanism::Sha256, credential)],
        deleted: vec![("b".to_owned(), ScramMechanism::Sha512)],
    });
    let mut golden = b"\x08\0\0\0\0\x01\0\x01a\x01\0\0\x10\0".to_vec();
    golden.extend_from_slice(b"\0\x04salt\0\x06stored\0\x06server");
    golden.extend_from_slice(b"\0\0\0\x01\0\x01b\x02");
    assert_eq!(record.encode(), golden);
    assert_eq!(MetadataRecord::decode(&golden), Ok(record));
}

#[test]
fn quotas_are_written_as_documented() {
    let alice = || EntityName::Named("a".to_owned());
    let record = MetadataRecord::ClientQuotasChanged(vec![
        QuotaChange {
            entity: QuotaEntity::UserClient(alice(), EntityName::Default),
            key: QuotaKey::ConsumerByteRate,
            value: Some(1.0),
        },
        QuotaChange {
            entity: QuotaEntity::Address(EntityName::Default),
            key: QuotaKey::ConnectionCreationRate,
            value: None,
        },
    ]);
    let golden = b"\x0b\0\0\0\0\x02\x02\0\x01a\x01\0\x02\x01\x3f\xf0\0\0\0\0\0\0\0\0\x01\x05\0";
    assert_eq!(record.encode(), golden);
    assert_eq!(MetadataRecord::decode(golden), Ok(record));
    for nobody in [b"\x0b\0\0\0\0\x01\0\0\0\x01\0", b"\x0b\0\0\0\0\x01\x01\x01\x01\x01\0"] {
        assert!(MetadataRecord::decode(nobody).is_err());
    }
}

#[test]
fn client_metrics_are_written_as_documented() {
    let configs = TopicOverrides::from([("metrics".to_owned(), "*".to_owned())]);
    let record = MetadataRecord::ClientMetricsConfigured { name: "all".to_owned(), configs };
    let golden = b"\x0d\0\0\x03all\0\x01\0\x07metrics\0\x01*";
    assert_eq!(record.encode(), golden);
    assert_eq!(MetadataRecord::decode(golden), Ok(record));
}

#[test]
fn defaults_are_written_as_documented() {
    let values = TopicOverrides::from([("log.retention.ms".to_owned(), "5".to_owned())]);
    let record = MetadataRecord::DefaultsChanged { source: DefaultSource::Cluster, values };
    let golden = b"\x0c\0\x01\0\x01\0\x10log.retention.ms\0\x015";
    assert_eq!(record.encode(), golden);
    assert_eq!(MetadataRecord::decode(golden), Ok(record));
    assert!(MetadataRecord::decode(b"\x0c\0\x02\0\0").is_err());
}

#[test]
fn unknown_codes_and_huge_counts_are_refused() {
    let refused: [&[u8]; 4] = [
        // No resource has type 9, no operation number 1, no mechanism number 3.
        b"\x07\0\0\0\0\x01\x09\x04\0\x02or\0\x06User:a\0\x01*\x03\x03\0\0\0\0",
        b"\x07\0\0\0\0\x01\x02\x04\0\x02or\0\x06User:a\0\x01*\x01\x03\0\0\0\0",
        b"\x08\0\0\0\0\0\0\0\0\x01\0\x01b\x03",
        b"\x07\0\xff\xff\xff\xff",
    ];
    for bytes in refused {
        assert!(MetadataRecord::decode(bytes).is_err(), "{bytes:?}");
    }
}
