import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** One of the tenants of a TenantsSession with its clients. */
final class Tenant {
    static final String TOPIC = "orders";
    static final String TRANSACTIONAL_ID = "payments";

    private static final int RECORDS = 50;
    private static final Duration POLL = Duration.ofMillis(50);
    private static final long DEADLINE_MS = 40_000;

    final String name;
    /** Of the topic that all tenants have, in each another number. */
    final int partitions;
    final Admin admin;
    final KafkaProducer<String, String> producer;
    /** Values that the members of a group have read. */
    final List<String> read = new ArrayList<>();

    private final Properties settings;
    private final List<KafkaConsumer<String, String>> members = new ArrayList<>();

    Tenant(String name, int partitions, Properties settings) {
        this.name = name;
        this.partitions = partitions;
        this.settings = settings;
        admin = Admin.create(settings);
        var transactional = with("transactional.id", TRANSACTIONAL_ID);
        var text = new StringSerializer();
        producer = new KafkaProducer<>(transactional, text, text);
    }

    static String group(String protocol) {
        return protocol + "-workers";
    }

    /** A topic that no other tenant has. */
    String ownTopic() {
        return TOPIC + "-" + name;
    }

    Set<TopicPartition> allPartitions() {
        var all = new HashSet<TopicPartition>();
        for (int partition = 0; partition < partitions; partition++) {
            all.add(new TopicPartition(TOPIC, partition));
        }
        all.add(new TopicPartition(ownTopic(), 0));
        return all;
    }

    void createTopics() throws Exception {
        short replicas = -1;
        admin.createTopics(List.of(new NewTopic(TOPIC, partitions, replicas),
            new NewTopic(ownTopic(), 1, replicas))).all().get();
        var names = Set.of(TOPIC, ownTopic());
        await(() -> admin.listTopics().names().get().containsAll(names));
    }

    Uuid topicId() throws Exception {
        return admin.describeTopics(Set.of(TOPIC)).allTopicNames().get().get(TOPIC).topicId();
    }

    /** Sends records to every partition, each with the tenant's name. */
    void send(String kind) {
        for (TopicPartition partition : allPartitions()) {
            for (int i = 0; i < RECORDS; i++) {
                producer.send(new ProducerRecord<>(partition.topic(), partition.partition(), null,
                    value(partition, kind, i)));
            }
        }
        producer.flush();
    }

    List<String> expected() {
        var expected = new ArrayList<String>();
        for (TopicPartition partition : allPartitions()) {
            for (int i = 0; i < RECORDS; i++) {
                expected.add(value(partition, "committed", i));
            }
        }
        return expected;
    }

    void join(String protocol, int count) {
        var group = with("group.id", group(protocol));
        group.put("group.protocol", protocol);
        group.put("auto.offset.reset", "earliest");
        group.put("enable.auto.commit", "false");
        group.put("isolation.level", "read_committed");
        // Topics that a classic member finds late would make it join once more.
        group.put("metadata.max.age.ms", "1000");
        for (int i = 0; i < count; i++) {
            var text = new StringDeserializer();
            var member = new KafkaConsumer<>(group, text, text);
            if (protocol.equals("consumer")) {
                member.subscribe(new SubscriptionPattern(TOPIC + ".*"));
            } else {
                member.subscribe(Pattern.compile(TOPIC + ".*"));
            }
            members.add(member);
        }
    }

    /** Reads what has come. A member that takes over a partition begins where nobody committed, so
     * that records may be read twice until each member has its share. */
    void poll() {
        for (KafkaConsumer<String, String> member : members) {
            for (ConsumerRecord<String, String> record : member.poll(POLL)) {
                read.add(record.value());
            }
            if (!isShared()) {
                read.clear();
                members.forEach(other -> other.seekToBeginning(other.assignment()));
            }
        }
    }

    private boolean isShared() {
        var assigned = new HashSet<TopicPartition>();
        for (KafkaConsumer<String, String> member : members) {
            if (member.assignment().isEmpty()) {
                return false;
            }
            assigned.addAll(member.assignment());
        }
        return assigned.equals(allPartitions());
    }

    boolean isComplete() {
        return isShared() && new HashSet<>(read).containsAll(expected());
    }

    /** Commits where each member stands. */
    Map<TopicPartition, OffsetAndMetadata> commitByTransaction() {
        var all = new HashMap<TopicPartition, OffsetAndMetadata>();
        for (KafkaConsumer<String, String> member : members) {
            var positions = new HashMap<TopicPartition, OffsetAndMetadata>();
            for (TopicPartition partition : member.assignment()) {
                positions.put(partition, new OffsetAndMetadata(member.position(partition)));
            }
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(positions, member.groupMetadata());
            producer.commitTransaction();
            all.putAll(positions);
        }
        return all;
    }

    Map<TopicPartition, OffsetAndMetadata> committed(String protocol) throws Exception {
        return admin.listConsumerGroupOffsets(group(protocol))
            .partitionsToOffsetAndMetadata().get();
    }

    void leave() {
        members.forEach(KafkaConsumer::close);
        members.clear();
        read.clear();
    }

    void close() {
        leave();
        producer.close();
        admin.close();
    }

    static void await(Callable<Boolean> condition) throws Exception {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (!condition.call() && System.currentTimeMillis() < deadline) {
            Thread.onSpinWait();
        }
    }

    private Properties with(String key, String value) {
        var properties = new Properties();
        properties.putAll(settings);
        properties.put(key, value);
        return properties;
    }

    private String value(TopicPartition partition, String kind, int i) {
        return name + " " + kind + " " + partition + " " + i;
    }
}
