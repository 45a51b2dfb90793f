import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java client's conformance program; ../README.md describes its interface and scenarios. */
public final class ConformanceClient {
    static final Duration POLL = Duration.ofMillis(100);
    private static final long DEADLINE_MS = 40_000;
    private static final int BATCH = 80;

    private final String bootstrap;
    private final String topic;
    final Admin admin;
    private int checks = 0;
    private int failures = 0;

    private ConformanceClient(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.admin = Admin.create(properties());
    }

    public static void main(String[] args) throws Exception {
        ConformanceClient client = new ConformanceClient(args[0], args[2]);
        switch (args[1]) {
            case "produce-consume" -> client.produceConsume(args[3]);
            case "group" -> client.group();
            case "idempotent" -> client.idempotent();
            case "admin" -> client.admin();
            case "offsets" -> client.offsets();
            case "kip-848" -> new ConsumerProtocol(client, args[2]).run();
            case "migration" -> new Migration(client, args[2]).run();
            case "kip-932" -> new ShareGroups(client, args[2]).run();
            case "transactions" -> new Transactions(client, args[2]).run();
            case "compacted" -> new CompactedTopic(client, args[2]).run();
            default -> throw new IllegalArgumentException("unknown scenario " + args[1]);
        }
        client.admin.close();
        System.exit(client.failures == 0 && client.checks > 0 ? 0 : 1);
    }

    private void produceConsume(String codec) throws Exception {
        createTopic(topic, 1);
        long base = System.currentTimeMillis() - 3_600_000;
        List<ProducerRecord<byte[], byte[]>> sent = new ArrayList<>();
        for (int i = 0; i < 600; i++) {
            sent.add(sampleRecord(i, base));
        }
        long firstMisplaced = -1;
        try (var producer = producer(Map.of("compression.type", codec, "linger.ms", "20"))) {
            List<RecordMetadata> written = sendAll(producer, sent);
            for (int i = 0; i < written.size() && firstMisplaced < 0; i++) {
                firstMisplaced = written.get(i).offset() == i ? -1 : i;
            }
        }
        check("acknowledged offsets count from zero", firstMisplaced < 0,
            "record " + firstMisplaced);
        List<ConsumerRecord<byte[], byte[]>> got = readFromStart(sent.size());
        check("as many records are read as were sent", got.size() == sent.size(), "" + got.size());
        String difference = "";
        for (int i = 0; i < Math.min(got.size(), sent.size()) && difference.isEmpty(); i++) {
            difference = difference(sent.get(i), got.get(i), i);
        }
        check("every field of every record survives", difference.isEmpty(), difference);
    }

    private ProducerRecord<byte[], byte[]> sampleRecord(int i, long base) {
        byte[] key = ("key-" + i).getBytes();
        StringBuilder padded = new StringBuilder("value-" + i);
        while (padded.length() < 200) {
            padded.append('x');
        }
        byte[] value = padded.toString().getBytes();
        List<Header> headers = new ArrayList<>();
        switch (i % 6) {
            case 0 -> headers.add(new RecordHeader("trace", ("" + i).getBytes()));
            case 1 -> key = null;
            case 2 -> value = null;
            case 3 -> value = new byte[0];
            case 4 -> key = new byte[0];
            default -> {
                headers.add(new RecordHeader("dup", "1".getBytes()));
                headers.add(new RecordHeader("dup", "2".getBytes()));
                headers.add(new RecordHeader("empty", new byte[0]));
                headers.add(new RecordHeader("null", (byte[]) null));
            }
        }
        return new ProducerRecord<>(topic, 0, base + i, key, value, headers);
    }

    private static String difference(
            ProducerRecord<byte[], byte[]> sent, ConsumerRecord<byte[], byte[]> got, int i) {
        if (got.offset() != i) {
            return "record " + i + " has the offset " + got.offset();
        } else if (got.timestamp() != sent.timestamp()) {
            return "record " + i + " has another timestamp";
        } else if (!Arrays.equals(got.key(), sent.key())) {
            return "record " + i + " has another key";
        } else if (!Arrays.equals(got.value(), sent.value())) {
            return "record " + i + " has another value";
        } else if (!got.headers().equals(sent.headers())) {
            return "record " + i + " has the headers " + got.headers();
        }
        return "";
    }

    private void group() throws Exception {
        createTopic(topic, 4);
        KafkaConsumer<byte[], byte[]> first = member();
        KafkaConsumer<byte[], byte[]> second = member();
        List<KafkaConsumer<byte[], byte[]>> both = List.of(first, second);
        Map<String, Integer> seen = new HashMap<>();
        long deadline = deadline();
        while (!shared(first, second) && System.currentTimeMillis() < deadline) {
            poll(both, seen);
        }
        check("two members share all partitions", shared(first, second),
            first.assignment() + " and " + second.assignment());

        produceBatch("one");
        pollUntil(both, seen, BATCH);
        check("two members read every record once", exactly(seen, "one"), seen.toString());
        var description = admin.describeClassicGroups(List.of(topic)).all().get().get(topic);
        check("the described group is stable with two members",
            description.state().toString().equals("Stable") && description.members().size() == 2,
            description.toString());
        first.commitSync();
        second.commitSync();
        second.close();

        produceBatch("two");
        pollUntil(List.of(first), seen, 2 * BATCH);
        check("the rest goes to the member that stays", first.assignment().size() == 4,
            first.assignment().toString());
        check("nothing is lost or repeated after one leaves", exactly(seen, "one", "two"),
            seen.toString());
        first.commitSync();
        first.close();

        produceBatch("three");
        KafkaConsumer<byte[], byte[]> third = member();
        Map<String, Integer> resumed = new HashMap<>();
        pollUntil(List.of(third), resumed, BATCH);
        check("a later member resumes from the commit", exactly(resumed, "three"),
            resumed.toString());
        third.commitSync();
        long committed = 0;
        for (var offset : third.committed(new HashSet<>(third.assignment())).values()) {
            committed += offset == null ? 0 : offset.offset();
        }
        check("the committed offsets cover every record", committed == 3 * BATCH, "" + committed);
        third.close();
    }

    private static boolean shared(KafkaConsumer<?, ?> first, KafkaConsumer<?, ?> second) {
        Set<TopicPartition> all = new HashSet<>(first.assignment());
        all.addAll(second.assignment());
        int sum = first.assignment().size() + second.assignment().size();
        return all.size() == 4 && sum == 4 && !first.assignment().isEmpty()
            && !second.assignment().isEmpty();
    }

    private KafkaConsumer<byte[], byte[]> member() {
        KafkaConsumer<byte[], byte[]> consumer = consumer(Map.of(
            "group.id", topic,
            "enable.auto.commit", "false",
            "session.timeout.ms", "6000",
            "heartbeat.interval.ms", "300",
            "partition.assignment.strategy", CooperativeStickyAssignor.class.getName()));
        consumer.subscribe(List.of(topic));
        return consumer;
    }

    private static void poll(
            Collection<KafkaConsumer<byte[], byte[]>> members, Map<String, Integer> seen) {
        for (var member : members) {
            for (var record : member.poll(POLL)) {
                seen.merge(new String(record.value()), 1, Integer::sum);
            }
        }
    }

    /** Polls until `wanted` different records were seen, then once more for what should not be. */
    private static void pollUntil(
            Collection<KafkaConsumer<byte[], byte[]>> members,
            Map<String, Integer> seen,
            int wanted) {
        long deadline = deadline();
        while (seen.size() < wanted && System.currentTimeMillis() < deadline) {
            poll(members, seen);
        }
        poll(members, seen);
    }

    private static boolean exactly(Map<String, Integer> seen, String... batches) {
        Map<String, Integer> expected = new HashMap<>();
        for (String batch : batches) {
            for (int i = 0; i < BATCH; i++) {
                expected.put(batch + "-" + i, 1);
            }
        }
        return expected.equals(seen);
    }

    private void produceBatch(String name) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < BATCH; i++) {
            records.add(new ProducerRecord<>(topic, i % 4, null, (name + "-" + i).getBytes()));
        }
        try (var producer = producer(Map.of())) {
            sendAll(producer, records);
        }
    }

    private void idempotent() throws Exception {
        createTopic(topic, 1);
        Map<String, String> settings = Map.of(
            "enable.idempotence", "true", "batch.size", "200", "linger.ms", "0",
            "max.in.flight.requests.per.connection", "5");
        for (int run = 0; run < 2; run++) {
            List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                byte[] value = ("" + (500 * run + i)).getBytes();
                records.add(new ProducerRecord<>(topic, 0, null, value));
            }
            try (var producer = producer(settings)) {
                sendAll(producer, records);
            }
        }
        List<ConsumerRecord<byte[], byte[]>> got = readFromStart(1000);
        check("every record is there once", got.size() == 1000, "" + got.size());
        int wrong = -1;
        for (int i = 0; i < got.size() && wrong < 0; i++) {
            wrong = new String(got.get(i).value()).equals("" + i) ? -1 : i;
        }
        check("the order is that of sending", wrong < 0, "at offset " + wrong);
    }

    private void admin() throws Exception {
        NewTopic wanted = new NewTopic(topic, Optional.of(3), Optional.empty())
            .configs(Map.of("retention.ms", "7200000"));
        admin.createTopics(List.of(wanted)).all().get();
        awaitPartitions(3);
        TopicDescription description = describe();
        check("the topic has three partitions", description.partitions().size() == 3,
            description.toString());
        check("every partition has a leader and itself in sync",
            description.partitions().stream()
                .allMatch(p -> p.leader() != null && p.isr().contains(p.leader())),
            description.toString());
        check("the list of topics has it", admin.listTopics().names().get().contains(topic), "");
        var resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        var config = admin.describeConfigs(List.of(resource)).all().get().get(resource);
        check("the described config is the one given",
            config.get("retention.ms").value().equals("7200000"), config.toString());
        check("a second creation is refused",
            fails(admin.createTopics(List.of(wanted)).all(), TopicExistsException.class), "");
        admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(5))).all().get();
        awaitPartitions(5);
        check("partitions can be added", describe().partitions().size() == 5, "");
        String brokers = System.getenv().getOrDefault("CONFORMANCE_BROKERS", "1");
        check("the cluster names its nodes and controller",
            admin.describeCluster().nodes().get().size() == Integer.parseInt(brokers)
                && admin.describeCluster().controller().get() != null, "");
        admin.deleteTopics(List.of(topic)).all().get();
        long deadline = deadline();
        while (admin.listTopics().names().get().contains(topic)
                && System.currentTimeMillis() < deadline) {
            Thread.onSpinWait();
        }
        check("a deleted topic is gone", !admin.listTopics().names().get().contains(topic), "");
        check("an absent topic cannot be deleted",
            fails(admin.deleteTopics(List.of(topic)).all(),
                UnknownTopicOrPartitionException.class), "");
    }

    private TopicDescription describe() throws Exception {
        return admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
    }

    private static boolean fails(KafkaFuture<?> future, Class<?> expected) throws Exception {
        try {
            future.get();
            return false;
        } catch (ExecutionException e) {
            return expected.isInstance(e.getCause());
        }
    }

    private void offsets() throws Exception {
        createTopic(topic, 1);
        long base = System.currentTimeMillis() - 3_600_000;
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            records.add(new ProducerRecord<>(topic, 0, base + 1000L * i, null, new byte[10]));
        }
        try (var producer = producer(Map.of("linger.ms", "50"))) {
            sendAll(producer, records);
        }
        checkOffset("earliest is zero", OffsetSpec.earliest(), 0);
        checkOffset("latest is the end", OffsetSpec.latest(), 10);
        checkOffset("a record's own time finds it", OffsetSpec.forTimestamp(base + 3000), 3);
        checkOffset("a time between finds the next", OffsetSpec.forTimestamp(base + 3001), 4);
        checkOffset("a time before all finds the first", OffsetSpec.forTimestamp(base - 5000), 0);
        checkOffset("a time after all finds none", OffsetSpec.forTimestamp(base + 9001), -1);
        checkOffset("the highest timestamp is the last's", OffsetSpec.maxTimestamp(), 9);
    }

    private void checkOffset(String name, OffsetSpec spec, long expected) throws Exception {
        TopicPartition partition = new TopicPartition(topic, 0);
        ListOffsetsResultInfo found =
            admin.listOffsets(Map.of(partition, spec)).partitionResult(partition).get();
        check(name, found.offset() == expected, found.toString());
    }

    void createTopic(String name, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(name, Optional.of(partitions), Optional.empty())))
            .all().get();
        awaitPartitions(partitions);
    }

    /** A created topic is not yet in every broker's metadata when the answer arrives. */
    void awaitPartitions(int partitions) throws Exception {
        long deadline = deadline();
        while (System.currentTimeMillis() < deadline) {
            try {
                if (describe().partitions().size() == partitions) {
                    return;
                }
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw e;
                }
            }
        }
    }

    static List<RecordMetadata> sendAll(
            KafkaProducer<byte[], byte[]> producer, List<ProducerRecord<byte[], byte[]>> records)
            throws Exception {
        List<Future<RecordMetadata>> pending = new ArrayList<>();
        for (var record : records) {
            pending.add(producer.send(record));
        }
        producer.flush();
        List<RecordMetadata> written = new ArrayList<>();
        for (var future : pending) {
            written.add(future.get());
        }
        return written;
    }

    private List<ConsumerRecord<byte[], byte[]>> readFromStart(int wanted) {
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        try (var consumer = consumer(Map.of())) {
            TopicPartition partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long deadline = deadline();
            while (got.size() < wanted && System.currentTimeMillis() < deadline) {
                consumer.poll(POLL).forEach(got::add);
            }
            consumer.poll(POLL).forEach(got::add);
        }
        return got;
    }

    KafkaProducer<byte[], byte[]> producer(Map<String, String> settings) {
        Properties properties = properties();
        properties.put("acks", "all");
        properties.putAll(settings);
        return new KafkaProducer<>(
            properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    KafkaConsumer<byte[], byte[]> consumer(Map<String, String> settings) {
        Properties properties = properties();
        properties.put("auto.offset.reset", "earliest");
        properties.putAll(settings);
        return new KafkaConsumer<>(
            properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        String authority = System.getenv("CONFORMANCE_AUTHORITY");
        if (authority != null) {
            properties.put("security.protocol", "SSL");
            properties.put("ssl.truststore.type", "PEM");
            properties.put("ssl.truststore.location", authority);
        }
        return properties;
    }

    static long deadline() {
        return System.currentTimeMillis() + DEADLINE_MS;
    }

    void check(String name, boolean ok, String detail) {
        checks++;
        String line = "{\"check\": \"" + name + "\", \"ok\": " + ok;
        if (!ok) {
            failures++;
            line += ", \"detail\": \"" + detail.replaceAll("[\\\\\"\\p{Cntrl}]", "'") + "\"";
        }
        System.out.println(line + "}");
    }
}
