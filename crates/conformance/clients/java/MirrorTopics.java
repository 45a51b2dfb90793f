import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * MirrorMaker copies topics, their configs and the offsets of groups from the server to Apache
 * Kafka and back, with exactly-once support. Its process is killed in its work. Each record must
 * arrive once; ../README.md describes the interface.
 */
public final class MirrorTopics {
    private static final long DEADLINE_MS = 90_000;
    private static final Duration POLL = Duration.ofMillis(200);
    /** Records of a portion. */
    private static final int RECORDS = 300;
    private static final long BASE_TIME_MS = System.currentTimeMillis() - 3_600_000;
    private static final Map<String, String> TOPIC_CONFIGS =
        Map.of("retention.ms", "7200000", "max.message.bytes", "234567");

    private final String topic;
    private final String jars;
    private final Path directory = Files.createTempDirectory("moldau-mirror-");
    private final List<Cluster> clusters;
    private final int port = freePort();
    private final Map<Cluster, Integer> sent = new LinkedHashMap<>();
    /** What the group of a cluster committed there last. */
    private final Map<Cluster, Map<TopicPartition, OffsetAndMetadata>> committed =
        new LinkedHashMap<>();
    private int checks = 0;
    private int failures = 0;

    private MirrorTopics(String[] args) throws IOException {
        this.topic = args[2] + "-records";
        this.clusters = List.of(new Cluster("server", args[0]), new Cluster("kafka", args[3]));
        this.jars = args[4];
    }

    /** {@code BOOTSTRAP mirror TOPIC KAFKA JARS}: the jars are those of MirrorMaker. */
    public static void main(String[] args) throws Exception {
        MirrorTopics program = new MirrorTopics(args);
        try {
            program.run();
        } finally {
            program.clusters.forEach(cluster -> cluster.admin.close());
            try (Stream<Path> files = Files.walk(program.directory)) {
                files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
            }
        }
        System.exit(program.failures == 0 && program.checks > 0 ? 0 : 1);
    }

    private void run() throws Exception {
        for (Cluster cluster : clusters) {
            NewTopic made = new NewTopic(topic, 2, (short) 1).configs(TOPIC_CONFIGS);
            cluster.admin.createTopics(List.of(made)).all().get();
            produce(cluster, RECORDS);
            commit(cluster);
        }
        mirror(() -> {
            awaitCopies(0);
            for (Cluster source : clusters) {
                // MirrorMaker notes what offset became which only while records come.
                await("the offsets of a group of " + source.name, () -> {
                    produce(source, 2);
                    commit(source);
                    return translated(source).size() == 2;
                });
                source.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(3)))
                    .all().get();
                produce(source, RECORDS);
            }
            // The kill comes while records are under way.
            awaitCopies(RECORDS * 3 / 4);
        });
        for (Cluster cluster : clusters) {
            produce(cluster, RECORDS);
        }
        mirror(() -> {
            awaitCopies(0);
            for (Cluster source : clusters) {
                judge(source);
            }
        });
        for (Cluster source : clusters) {
            goesOn(source);
        }
    }

    /** Runs MirrorMaker for as long as the step takes, and kills it. */
    private void mirror(Step step) throws Exception {
        Process mirror = start();
        try {
            step.run();
            check("MirrorMaker runs", mirror.isAlive(), "it ended");
        } finally {
            mirror.destroyForcibly().waitFor();
        }
    }

    /** Waits until no more than so many records are still to be copied, each way. */
    private void awaitCopies(int missing) throws Exception {
        for (Cluster source : clusters) {
            int wanted = sent.get(source) - missing;
            await(wanted + " records of " + source.name, () -> copies(source).size() >= wanted);
        }
    }

    private void judge(Cluster source) throws Exception {
        Cluster target = other(source);
        String copy = copyOf(source);
        Map<Integer, List<String>> written = byPartition(read(source, topic));
        Map<Integer, List<String>> copied = byPartition(copies(source));
        check(source, "every record is there once, in order, with its fields",
            size(written) == sent.get(source) && copied.equals(written),
            size(copied) + " of " + size(written) + " of " + sent.get(source));
        int partitions = partitions(target, copy);
        check(source, "an added partition is added", partitions == 3, "" + partitions);
        await("the configs of a topic", () -> configs(target, copy).equals(TOPIC_CONFIGS));
        check(source, "the configs of a topic come along",
            configs(target, copy).equals(TOPIC_CONFIGS), configs(target, copy).toString());
        String heartbeats = source.name + ".heartbeats";
        await("heartbeats", () -> !read(target, heartbeats).isEmpty());
        check(source, "heartbeats arrive", !read(target, heartbeats).isEmpty(), "");
    }

    /**
     * A consumer of the source goes on at the target. MirrorMaker may set it back by some records,
     * never forward.
     */
    private void goesOn(Cluster source) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> translated = translated(source);
        check(source, "the offsets of a group are translated", translated.size() == 2,
            translated.toString());
        List<String> rest = new ArrayList<>();
        for (ConsumerRecord<byte[], byte[]> record : read(source, topic)) {
            var partition = new TopicPartition(topic, record.partition());
            OffsetAndMetadata committed = this.committed.get(source).get(partition);
            if (committed == null || record.offset() >= committed.offset()) {
                rest.add(fields(record));
            }
        }
        List<String> got = new ArrayList<>();
        try (var consumer = consumer(other(source), Map.of("group.id", group(source)))) {
            consumer.subscribe(List.of(copyOf(source)));
            await("the rest of the records", () -> {
                consumer.poll(POLL).forEach(record -> got.add(fields(record)));
                return got.containsAll(rest);
            });
        }
        check(source, "a consumer goes on where it was",
            got.containsAll(rest) && got.size() < sent.get(source),
            got.size() + " of " + rest.size());
    }

    /** A transaction that is aborted and one that is committed, with all fields of records. */
    private void produce(Cluster cluster, int records) throws Exception {
        int first = sent.getOrDefault(cluster, 0);
        sent.put(cluster, first + records);
        Map<String, Object> settings = Map.of("bootstrap.servers", cluster.bootstrap,
            "transactional.id", topic + "-writer");
        int partitions = partitions(cluster, topic);
        try (var producer = new KafkaProducer<>(
                settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.initTransactions();
            for (String prefix : List.of("aborted", cluster.name)) {
                producer.beginTransaction();
                for (int i = first; i < first + records; i++) {
                    List<Header> headers = List.of(
                        new RecordHeader("number", bytes("" + i)), new RecordHeader("none", null));
                    producer.send(new ProducerRecord<>(topic, i % partitions, BASE_TIME_MS + i,
                        i % 5 == 0 ? null : bytes("key-" + i % 7),
                        i % 11 == 0 ? null : bytes(prefix + "-" + i), headers));
                }
                if (prefix.equals("aborted")) {
                    producer.flush();
                    producer.abortTransaction();
                } else {
                    producer.commitTransaction();
                }
            }
        }
    }

    /** A group of the source has read all that is there. */
    private void commit(Cluster source) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> ends = new LinkedHashMap<>();
        try (var consumer = consumer(source, Map.of())) {
            consumer.endOffsets(List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1)))
                .forEach((partition, end) -> ends.put(partition, new OffsetAndMetadata(end)));
        }
        source.admin.alterConsumerGroupOffsets(group(source), ends).all().get();
        committed.put(source, ends);
    }

    /** What MirrorMaker has committed at the target for the group of the source. */
    private Map<TopicPartition, OffsetAndMetadata> translated(Cluster source) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new LinkedHashMap<>();
        other(source).admin.listConsumerGroupOffsets(group(source)).partitionsToOffsetAndMetadata()
            .get().forEach((partition, offset) -> {
                if (partition.topic().equals(copyOf(source)) && offset.offset() > 0) {
                    offsets.put(partition, offset);
                }
            });
        return offsets;
    }

    private Process start() throws IOException {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("clusters", "server,kafka");
        settings.put("server->kafka.enabled", "true");
        settings.put("kafka->server.enabled", "true");
        settings.put("topics", topic);
        settings.put("groups", topic + ".*");
        settings.put("sync.topic.acls.enabled", "false");
        settings.put("sync.group.offsets.enabled", "true");
        settings.put("offset.lag.max", "0");
        settings.put("replication.factor", "1");
        for (String interval : List.of("refresh.topics", "refresh.groups", "sync.topic.configs",
                "emit.heartbeats", "emit.checkpoints", "sync.group.offsets")) {
            settings.put(interval + ".interval.seconds", "1");
        }
        for (String internal : List.of("heartbeats.topic", "checkpoints.topic",
                "offset-syncs.topic", "offset.storage", "config.storage", "status.storage")) {
            settings.put(internal + ".replication.factor", "1");
        }
        settings.put("dedicated.mode.enable.internal.rest", "true");
        settings.put("listeners", "http://127.0.0.1:" + port);
        for (Cluster cluster : clusters) {
            settings.put(cluster.name + ".bootstrap.servers", cluster.bootstrap);
            settings.put(cluster.name + ".exactly.once.source.support", "enabled");
            settings.put(cluster.name + ".consumer.isolation.level", "read_committed");
            settings.put(cluster.name + ".offset.flush.interval.ms", "500");
            // What a killed worker leaves open, and its place in the group, last this long.
            settings.put(cluster.name + ".transaction.timeout.ms", "5000");
            settings.put(cluster.name + ".producer.transaction.timeout.ms", "5000");
            settings.put(cluster.name + ".session.timeout.ms", "6000");
            settings.put(cluster.name + ".heartbeat.interval.ms", "300");
            settings.put(cluster.name + ".scheduled.rebalance.max.delay.ms", "0");
        }
        Properties properties = new Properties();
        properties.putAll(settings);
        Path file = directory.resolve("mirror.properties");
        try (var output = Files.newOutputStream(file)) {
            properties.store(output, null);
        }
        return new ProcessBuilder(ProcessHandle.current().info().command().orElse("java"),
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp", jars + "/*",
            "org.apache.kafka.connect.mirror.MirrorMaker", file.toString())
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private Cluster other(Cluster cluster) {
        return clusters.get(1 - clusters.indexOf(cluster));
    }

    private String group(Cluster source) {
        return topic + "-readers-of-" + source.name;
    }

    private String copyOf(Cluster source) {
        return source.name + "." + topic;
    }

    private List<ConsumerRecord<byte[], byte[]>> copies(Cluster source) throws Exception {
        return read(other(source), copyOf(source));
    }

    /** The committed records of a topic; none where it does not exist. */
    private List<ConsumerRecord<byte[], byte[]>> read(Cluster cluster, String name)
            throws Exception {
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < partitions(cluster, name); index++) {
            partitions.add(new TopicPartition(name, index));
        }
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        if (partitions.isEmpty()) {
            return records;
        }
        try (var consumer = consumer(cluster, Map.of())) {
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            await("the end of " + name, () -> {
                consumer.poll(POLL).forEach(records::add);
                return ends.entrySet().stream()
                    .allMatch(end -> consumer.position(end.getKey()) >= end.getValue());
            });
        }
        return records;
    }

    private int partitions(Cluster cluster, String name) throws Exception {
        try {
            return cluster.admin.describeTopics(List.of(name)).allTopicNames().get().get(name)
                .partitions().size();
        } catch (ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return 0;
            }
            throw error;
        }
    }

    /** Those of the configs of a topic that this program has set. */
    private Map<String, String> configs(Cluster cluster, String name) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        Config found = cluster.admin.describeConfigs(List.of(resource)).all().get().get(resource);
        Map<String, String> configs = new TreeMap<>();
        TOPIC_CONFIGS.keySet().forEach(key -> configs.put(key, found.get(key).value()));
        return configs;
    }

    private static KafkaConsumer<byte[], byte[]> consumer(
            Cluster cluster, Map<String, Object> further) {
        Map<String, Object> settings = new LinkedHashMap<>(further);
        settings.put("bootstrap.servers", cluster.bootstrap);
        settings.put("isolation.level", "read_committed");
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        return new KafkaConsumer<>(
            settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static Map<Integer, List<String>> byPartition(
            List<ConsumerRecord<byte[], byte[]>> records) {
        Map<Integer, List<String>> found = new TreeMap<>();
        records.forEach(record -> found
            .computeIfAbsent(record.partition(), index -> new ArrayList<>()).add(fields(record)));
        return found;
    }

    private static int size(Map<Integer, List<String>> records) {
        return records.values().stream().mapToInt(List::size).sum();
    }

    private static String fields(ConsumerRecord<byte[], byte[]> record) {
        StringBuilder fields = new StringBuilder();
        fields.append(record.timestamp()).append(' ').append(text(record.key())).append(' ')
            .append(text(record.value()));
        record.headers().forEach(header ->
            fields.append(' ').append(header.key()).append('=').append(text(header.value())));
        return fields.toString();
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : new String(bytes, StandardCharsets.UTF_8);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void await(String what, Condition condition) throws Exception {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException(what + " did not come in " + DEADLINE_MS + " ms");
            }
            Thread.sleep(200);
        }
    }

    /** A port below those that outgoing connections get, as they would hold it for a minute. */
    private static int freePort() throws IOException {
        for (int attempt = 0; attempt < 100; attempt++) {
            int port = ThreadLocalRandom.current().nextInt(10_000, 30_000);
            try (var socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (IOException error) {
                continue;
            }
        }
        throw new IOException("no port is free");
    }

    private void check(Cluster source, String name, boolean ok, String detail) {
        check(source.name + " to " + other(source).name + ": " + name, ok, detail);
    }

    private void check(String name, boolean ok, String detail) {
        checks++;
        String line = "{\"check\": \"" + name + "\", \"ok\": " + ok;
        if (!ok) {
            failures++;
            line += ", \"detail\": \"" + detail.replaceAll("[\\\\\"\\p{Cntrl}]", "'") + "\"";
        }
        System.out.println(line + "}");
    }

    /** One of the two, by the name that MirrorMaker puts before its topics. */
    private record Cluster(String name, String bootstrap, Admin admin) {
        Cluster(String name, String bootstrap) {
            this(name, bootstrap, Admin.create(Map.of("bootstrap.servers", bootstrap)));
        }
    }

    private interface Condition {
        boolean holds() throws Exception;
    }

    private interface Step {
        void run() throws Exception;
    }
}
