//! Defaults, arguments, and values that are refused.

use moldau_broker::Advertised;

use super::*;

fn with(text: &str) -> Result<Config, Problem> {
    config(crate::config::parse(text)?, &mut Sources::default())
}

fn refused(text: &str) -> String {
    with(text).unwrap_err().to_string()
}

#[test]
fn an_empty_file_gives_the_defaults() {
    let config = with("{}").unwrap();
    assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:9092");
    assert_eq!(config.durability, Durability::Fsync);
    assert_eq!(config.listeners[0].advertised, None);
    assert_eq!(config.groups.initial_rebalance_delay_ms, 500);
}

#[test]
fn kafkas_keys_set_what_they_set_in_kafka() {
    let config = with(
        "listeners: INTERNAL://127.0.0.1:9092,EXTERNAL://:9093\n\
         advertised.listeners: EXTERNAL://kafka.example:19093\n\
         num.partitions: 6\n\
         auto.create.topics.enable: false\n\
         log.retention.hours: 2\n\
         log.retention.bytes: -1\n\
         message.max.bytes: 2000000\n\
         log.cleaner.min.cleanable.ratio: 0.25\n\
         log.preallocate: true\n\
         max.connections: 10\n\
         max.connections.per.ip: 5\n\
         connections.max.idle.ms: 1000\n\
         socket.request.max.bytes: 4096\n\
         group.max.size: 7\n\
         group.min.session.timeout.ms: 10\n\
         offsets.retention.minutes: 3\n",
    )
    .unwrap();
    let [internal, external] = &config.listeners[..] else { panic!("two listeners") };
    assert_eq!((internal.name.as_str(), &internal.advertised), ("INTERNAL", &None));
    assert_eq!(external.address.to_string(), "0.0.0.0:9093");
    let advertised = Advertised { host: "kafka.example".to_owned(), port: 19_093 };
    assert_eq!(external.advertised, Some(advertised));
    assert_eq!(external.limits.connections_max, 10);
    assert_eq!(external.limits.connections_per_address_max, 5);
    assert_eq!((config.partitions_default, config.auto_create_topics), (6, false));
    let defaults = [
        ("log.retention.hours", "2"),
        ("log.retention.bytes", "-1"),
        ("message.max.bytes", "2000000"),
        ("log.cleaner.min.cleanable.ratio", "0.25"),
        ("log.preallocate", "true"),
    ];
    let defaults = defaults.iter().try_fold(TopicDefaults::default(), |it, (k, v)| it.with(k, v));
    assert_eq!(config.topic_defaults, defaults.unwrap());
    assert_eq!(config.connections_max_idle, Duration::from_secs(1));
    assert_eq!(config.request_bytes_max, 4096);
    assert_eq!((config.groups.group_size_max, config.groups.session_timeout_ms_min), (7, 10));
    assert_eq!(config.groups.offsets_retention_ms, 180_000);
}

#[test]
fn every_default_of_topics_that_the_broker_knows_is_a_key() {
    let problem = crate::config::parse::<File>("'0': 1").unwrap_err().to_string();
    let (_, keys) = problem.split_once("known keys: ").unwrap();
    let keys: Vec<&str> = keys.split(", ").collect();
    let first = keys.iter().position(|key| *key == "log.cleanup.policy").unwrap();
    assert!(keys[first..].iter().copied().eq(TopicDefaults::keys()));
}

#[test]
fn the_former_name_of_a_key_is_refused_with_its_name() {
    assert_eq!(
        refused("journal_file_mib: 1\npartitions_default: 3\n"),
        ":2:1: the key \"partitions_default\" is called \"num.partitions\""
    );
    assert_eq!(
        refused("listen: 127.0.0.1:9092\n"),
        ":1:1: the key \"listen\" is called \"listeners\", with a value such as \
         PLAINTEXT://127.0.0.1:9092"
    );
}

#[test]
fn arguments_replace_what_the_file_says() {
    let options = BrokerOptions {
        durability: Some(DurabilityChoice::Os),
        advertised: Some("kafka.example:19092".to_owned()),
        ..BrokerOptions::default()
    };
    let config = load(&options, &mut Sources::default()).unwrap();
    assert_eq!(config.durability, Durability::Os);
    let advertised = Advertised { host: "kafka.example".to_owned(), port: 19_092 };
    assert_eq!(config.listeners[0].advertised, Some(advertised));
}

#[test]
fn an_advertised_address_takes_the_name_of_the_file_s_listener() {
    let options = BrokerOptions {
        advertised: Some("kafka.example:1".to_owned()),
        ..BrokerOptions::default()
    };
    let file = crate::config::parse("listeners: CLIENTS://127.0.0.1:0").unwrap();
    let file = with_arguments(file, &options).unwrap();
    let config = config(file, &mut Sources::default()).unwrap();
    assert_eq!(config.listeners[0].advertised.as_ref().unwrap().host, "kafka.example");
}

#[test]
fn a_search_that_never_pauses_is_refused() {
    for key in ["log.retention.check.interval.ms", "log.cleaner.backoff.ms"] {
        let problem = format!(":1:{}: {key}: must be at least 1", key.len() + 3);
        assert_eq!(refused(&format!("{key}: 0")), problem);
        assert!(with(&format!("{key}: 1")).is_ok());
    }
}

#[test]
fn authorization_is_off_until_it_is_configured() {
    assert_eq!(with("{}").unwrap().authorization, None);
    let on = format!("authorizer.class.name: {STANDARD_AUTHORIZER}\n");
    let settings = with(&format!("{on}super.users: User:admin;User:bob")).unwrap().authorization;
    let settings = settings.unwrap();
    assert_eq!(settings.super_users[1].to_string(), "User:bob");
    assert!(!settings.allow_everyone_if_no_acl_found);
    assert!(refused(&format!("{on}super.users: admin")).contains("super.users"));
    // Kafka ignores these without an authorizer, and the operator believes that they count.
    assert!(refused("super.users: User:admin").contains("needs authorizer.class.name"));
    assert!(refused("allow.everyone.if.no.acl.found: false").contains("needs authorizer"));
    assert!(refused("authorizer.class.name: com.example.Own").contains("the only class is"));
}

#[test]
fn arguments_do_not_replace_a_list_of_listeners() {
    let text = "listeners: [{name: A, address: '127.0.0.1:0'}]";
    let with = |options: BrokerOptions| {
        let file = with_arguments(crate::config::parse(text)?, &options)?;
        config(file, &mut Sources::default())
    };
    assert_eq!(with(BrokerOptions::default()).unwrap().listeners[0].name, "A");
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let refused = with(BrokerOptions { listen: Some(address), ..BrokerOptions::default() });
    assert!(refused.unwrap_err().to_string().contains("do not replace a list"));
}

#[test]
fn a_listener_of_kafka_that_is_not_one_here_is_refused() {
    for (text, part) in [
        ("advertised.listeners: kafka:9092", "is not NAME://HOST:PORT"),
        ("advertised.listeners: PLAINTEXT://kafka", "is not NAME://HOST:PORT"),
        ("advertised.listeners: PLAINTEXT://:9092", "is not NAME://HOST:PORT"),
        ("advertised.listeners: EXTERNAL://kafka:9092", "unknown listener \"EXTERNAL\""),
        ("listeners: PLAINTEXT://kafka.example:9092", "is not an IP address"),
        ("listeners: SASL_SSL://:9092", "a list of listeners"),
        ("listeners: ''", "at least one"),
        ("listeners: A://:1,B://:1", "0.0.0.0:1 is in use by listener A"),
        ("listeners: A://:1,A://:2", "\"A\" is the name of another listener"),
        ("listeners: A://:9644", "is in use by admin"),
        ("listeners: 5", "NAME://HOST:PORT"),
    ] {
        let problem = refused(text);
        assert!(problem.contains(part), "{text}: {problem}");
    }
}

#[test]
fn numbers_out_of_bounds_are_refused() {
    for (text, part) in [
        ("group.max.size: 10001", "must lie between 1 and 10000"),
        ("group.min.session.timeout.ms: 1800001", "is above group.max.session.timeout.ms"),
        ("group.max.session.timeout.ms: 1", "is above group.max.session.timeout.ms"),
        ("offset.metadata.max.bytes: 32768", "must lie between 0 and 32767"),
        ("offsets.retention.minutes: 0", "must lie between 1 and 2147483647"),
        ("log.retention.hours: week", "log.retention.hours: Not a number"),
        ("compression.type: lzma", "Invalid value lzma for configuration compression.type"),
    ] {
        let problem = refused(text);
        assert!(problem.contains(part), "{text}: {problem}");
    }
}
