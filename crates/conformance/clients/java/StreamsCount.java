import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.QueryableStoreTypes;

/**
 * Kafka Streams counts words, loses its local state and restores it from the changelog;
 * ../README.md describes the interface.
 */
public final class StreamsCount {
    private static final long DEADLINE_MS = 40_000;
    private static final int PARTITIONS = 2;
    private static final int WORDS = 7;
    private static final int RECORDS = 300;

    private final String bootstrap;
    private final String topic;
    private final String input;
    private final Path state;
    private final Admin admin;
    private final Map<String, Long> expected = new HashMap<>();
    private final AtomicLong restored = new AtomicLong();
    private int checks = 0;
    private int failures = 0;

    private StreamsCount(String bootstrap, String topic) throws Exception {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.input = topic + "-input";
        this.state = Files.createTempDirectory("moldau-streams-");
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] args) throws Exception {
        StreamsCount program = new StreamsCount(args[0], args[2]);
        program.run();
        program.admin.close();
        System.exit(program.failures == 0 && program.checks > 0 ? 0 : 1);
    }

    private void run() throws Exception {
        admin.createTopics(List.of(
            new NewTopic(input, Optional.of(PARTITIONS), Optional.empty()))).all().get();
        produce();
        try (KafkaStreams streams = start()) {
            Map<String, Long> counts = awaitCounts(streams);
            check("the words are counted", counts.equals(expected), counts.toString());
            streams.close(Duration.ofSeconds(30));
            streams.cleanUp();
        }
        checkConfigs();
        try (var left = Files.walk(state)) {
            List<Path> files = left.filter(Files::isRegularFile).toList();
            check("the local state is gone",
                files.stream().noneMatch(file -> file.toString().contains("rocksdb")), "" + files);
        }
        restored.set(0);
        try (KafkaStreams streams = start()) {
            Map<String, Long> counts = awaitCounts(streams);
            check("the restored counts are the same", counts.equals(expected), counts.toString());
            check("they come from the changelog", restored.get() > 0, "" + restored.get());
            produce();
            counts = awaitCounts(streams);
            check("counting goes on from them", counts.equals(expected), counts.toString());
            streams.close(Duration.ofSeconds(30));
            streams.cleanUp();
        }
    }

    /** Streams asks for these when it creates its own topics. */
    private void checkConfigs() throws Exception {
        String changelog = topic + "-counts-changelog";
        String repartition = topic + "-counts-repartition";
        check("the changelog is compacted", config(changelog, "cleanup.policy").equals("compact"),
            config(changelog, "cleanup.policy"));
        check("the repartition topic has the segments that were asked for",
            config(repartition, "segment.bytes").equals("52428800"),
            config(repartition, "segment.bytes"));
    }

    private String config(String name, String key) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        return admin.describeConfigs(List.of(resource)).all().get().get(resource).get(key).value();
    }

    private KafkaStreams start() {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(input)
            .selectKey((key, word) -> word)
            .groupByKey(org.apache.kafka.streams.kstream.Grouped.as("counts"))
            .count(Materialized.as("counts"));
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, topic);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put("auto.offset.reset", "earliest");
        settings.put("session.timeout.ms", 6000);
        settings.put("heartbeat.interval.ms", 300);
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setGlobalStateRestoreListener(new StateRestoreListener() {
            @Override
            public void onRestoreStart(
                TopicPartition partition, String store, long start, long end) { }

            @Override
            public void onBatchRestored(
                TopicPartition partition, String store, long end, long count) { }

            @Override
            public void onRestoreEnd(TopicPartition partition, String store, long total) {
                restored.addAndGet(total);
            }
        });
        streams.start();
        return streams;
    }

    private void produce() throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "acks", "all");
        try (var producer = new KafkaProducer<>(
                settings, new StringSerializer(), new StringSerializer())) {
            List<java.util.concurrent.Future<?>> pending = new ArrayList<>();
            for (int i = 0; i < RECORDS; i++) {
                String word = "word-" + i * i % WORDS;
                expected.merge(word, 1L, Long::sum);
                pending.add(producer.send(
                    new ProducerRecord<>(input, i % PARTITIONS, null, word)));
            }
            producer.flush();
            for (var record : pending) {
                record.get();
            }
        }
    }

    /** The counts once they are the expected ones, or what they were when the time was up. */
    private Map<String, Long> awaitCounts(KafkaStreams streams) throws Exception {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        Map<String, Long> counts = new HashMap<>();
        while (!counts.equals(expected) && System.currentTimeMillis() < deadline) {
            Thread.sleep(100);
            counts = new HashMap<>();
            try {
                var store = streams.store(StoreQueryParameters.fromNameAndType(
                    "counts", QueryableStoreTypes.<String, Long>keyValueStore()));
                try (var all = store.all()) {
                    while (all.hasNext()) {
                        var next = all.next();
                        counts.put(next.key, next.value);
                    }
                }
            } catch (InvalidStateStoreException e) {
                // The store moves or is being restored.
                counts.clear();
            }
        }
        return counts;
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
}
