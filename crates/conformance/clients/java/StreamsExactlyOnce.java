import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.StreamsGroupDescription;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupState;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.JoinWindows;

/**
 * A Streams application with {@code exactly_once_v2} counts words and joins two streams in a
 * window, in a classic group or in a streams group. Its process is killed and started again; its
 * output must hold every result once; ../README.md describes the interface.
 */
public final class StreamsExactlyOnce {
    /** A killed member of a streams group keeps its tasks until its session of 45 s ends. */
    private static final long DEADLINE_MS = 90_000;
    private static final String STREAMS_GROUP_SCENARIO = "kip-1071";
    private static final int PARTITIONS = 2;
    private static final int WORDS = 10;
    private static final int PORTIONS = 3;
    private static final int RECORDS = 400;

    private final String bootstrap;
    private final String topic;
    private final boolean hasStreamsGroup;
    private final Path state;
    private final Admin admin;
    private final KafkaProducer<String, String> producer;
    private int checks = 0;
    private int failures = 0;

    private StreamsExactlyOnce(String bootstrap, String scenario, String topic) throws Exception {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.hasStreamsGroup = scenario.equals(STREAMS_GROUP_SCENARIO);
        this.state = Files.createTempDirectory("moldau-streams-");
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        this.producer = new KafkaProducer<>(Map.of("bootstrap.servers", bootstrap),
            new StringSerializer(), new StringSerializer());
    }

    /**
     * {@code BOOTSTRAP SCENARIO TOPIC}; the application is
     * {@code job BOOTSTRAP TOPIC STATE PROTOCOL}.
     */
    public static void main(String[] args) throws Exception {
        if (args[0].equals("job")) {
            application(args[1], args[2], args[3], args[4]);
            return;
        }
        StreamsExactlyOnce program = new StreamsExactlyOnce(args[0], args[1], args[2]);
        program.run();
        program.producer.close();
        program.admin.close();
        System.exit(program.failures == 0 && program.checks > 0 ? 0 : 1);
    }

    /** Runs until it is killed. */
    private static void application(
            String bootstrap, String topic, String state, String protocol) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(topic + "-words")
            .groupByKey()
            .count()
            .toStream()
            .mapValues(count -> count.toString())
            .to(topic + "-counts");
        builder.<String, String>stream(topic + "-left")
            .join(builder.<String, String>stream(topic + "-right"),
                (left, right) -> left + "/" + right,
                JoinWindows.ofTimeDifferenceWithNoGrace(Duration.ofHours(1)))
            .to(topic + "-joined");
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, topic);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, state);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        // Without a cache every record of the input is one of the output.
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put("auto.offset.reset", "earliest");
        settings.put("transaction.timeout.ms", 10_000);
        settings.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol);
        if (protocol.equals("classic")) {
            settings.put("session.timeout.ms", 6000);
            settings.put("heartbeat.interval.ms", 300);
        }
        new KafkaStreams(builder.build(), settings).start();
    }

    private void run() throws Exception {
        List<NewTopic> topics = new ArrayList<>();
        for (String name : List.of("words", "left", "right", "counts", "joined")) {
            topics.add(new NewTopic(
                topic + "-" + name, Optional.of(PARTITIONS), Optional.empty()));
        }
        admin.createTopics(topics).all().get();
        for (int portion = 0; portion < PORTIONS; portion++) {
            Process job = start();
            try {
                boolean isLast = portion == PORTIONS - 1;
                produce(portion);
                // A kill comes while results are being written.
                int wanted = portion * RECORDS + (isLast ? RECORDS : RECORDS / 4);
                read("counts", wanted);
                if (isLast) {
                    judge();
                    judgeGroup();
                }
            } finally {
                job.destroyForcibly().waitFor();
            }
        }
    }

    private Process start() throws Exception {
        return new ProcessBuilder(
            ProcessHandle.current().info().command().orElse("java"),
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp", System.getProperty("java.class.path"), StreamsExactlyOnce.class.getName(),
            "job", bootstrap, topic, state.toString(), hasStreamsGroup ? "streams" : "classic")
            .inheritIO().start();
    }

    private void produce(int portion) {
        for (int i = portion * RECORDS; i < (portion + 1) * RECORDS; i++) {
            String key = "key-" + i;
            producer.send(new ProducerRecord<>(topic + "-words", "word-" + i % WORDS, ""));
            producer.send(new ProducerRecord<>(topic + "-left", key, "l" + i));
            producer.send(new ProducerRecord<>(topic + "-right", key, "r" + i));
        }
        producer.flush();
    }

    /** Compares all committed results with those of one pass over the input. */
    private void judge() {
        int all = PORTIONS * RECORDS;
        Map<String, List<String>> counts = read("counts", all);
        check("every word is counted", counts.size() == WORDS, counts.keySet().toString());
        List<String> expected =
            IntStream.rangeClosed(1, all / WORDS).mapToObj(String::valueOf).toList();
        counts.forEach((word, found) ->
            check("each count of " + word + " is there once, in order", found.equals(expected),
                found.toString()));
        Map<String, List<String>> joined = read("joined", all);
        check("every pair is joined", joined.size() == all, "" + joined.size());
        long wrong = joined.entrySet().stream().filter(pair -> {
            String number = pair.getKey().substring("key-".length());
            return !pair.getValue().equals(List.of("l" + number + "/r" + number));
        }).count();
        check("each pair is joined once", wrong == 0, wrong + " of " + joined.size());
    }

    /** The tasks of both parts of the topology are with the member that lives. */
    private void judgeGroup() throws Exception {
        if (!hasStreamsGroup) {
            return;
        }
        StreamsGroupDescription group =
            admin.describeStreamsGroups(List.of(topic)).all().get().get(topic);
        check("the streams group is stable", group.groupState() == GroupState.STABLE,
            group.toString());
        check("it has one member", group.members().size() == 1, group.toString());
        int tasks = group.members().stream()
            .flatMap(member -> member.assignment().activeTasks().stream())
            .mapToInt(part -> part.partitions().size()).sum();
        check("the member has all tasks", tasks == 2 * PARTITIONS, group.toString());
        boolean isListed = admin.listGroups(ListGroupsOptions.forStreamsGroups()).all().get()
            .stream().anyMatch(listed -> listed.groupId().equals(topic));
        check("the group is listed as a streams group", isListed, "");
    }

    /** The committed values of each key, once there are so many of them or the time is up. */
    private Map<String, List<String>> read(String name, int wanted) {
        Map<String, List<String>> values = new HashMap<>();
        Map<String, Object> settings =
            Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = IntStream.range(0, PARTITIONS)
                .mapToObj(partition -> new TopicPartition(topic + "-" + name, partition)).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long deadline = System.currentTimeMillis() + DEADLINE_MS;
            int count = 0;
            boolean isPast = false;
            // One poll more shows what should not be there.
            while (!isPast && System.currentTimeMillis() < deadline) {
                isPast = count >= wanted;
                var records = consumer.poll(Duration.ofMillis(300));
                for (ConsumerRecord<String, String> record : records) {
                    values.computeIfAbsent(record.key(), key -> new ArrayList<>())
                        .add(record.value());
                    count++;
                }
            }
        }
        return values;
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
