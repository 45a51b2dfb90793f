import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * Record encryption by one proxy, read through another; ../README.md describes its interface.
 */
public final class InteropSession {
    /** The check that is made after all cells. */
    private static final String LEADERS = "every node leads what was written";
    private static final long DEADLINE_MS = 30_000;
    private static final int DETAIL_MAX = 400;

    private final Admin admin;
    /** The nodes that led what was written. */
    private final Set<Integer> leaders = new HashSet<>();
    private final Map<String, KafkaProducer<byte[], byte[]>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();

    private InteropSession(String upstream) {
        this.admin = Admin.create(properties(upstream));
    }

    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        List<InteropCell> cells = input.lines().map(InteropCell::new).toList();
        InteropSession session = new InteropSession(args[0]);
        session.createTopics(cells, Short.parseShort(args[1]));
        for (InteropCell cell : cells) {
            session.run(cell);
        }
        Set<Integer> nodes = new HashSet<>();
        session.admin.describeCluster().nodes().get().forEach(node -> nodes.add(node.id()));
        nodes.removeAll(session.leaders);
        report(LEADERS, nodes.isEmpty(), "not " + nodes);
        System.out.flush();
        // What is open may wait for a proxy that does not answer.
        Runtime.getRuntime().halt(0);
    }

    /** Creates all topics and waits until each partition has a leader. */
    private void createTopics(List<InteropCell> cells, short replicas) throws Exception {
        Map<String, Integer> sizes = new TreeMap<>();
        for (InteropCell cell : cells) {
            sizes.merge(cell.partition.topic(), cell.partition.partition() + 1, Math::max);
        }
        admin.createTopics(sizes.entrySet().stream()
            .map(size -> new NewTopic(size.getKey(), size.getValue(), replicas)
                .configs(Map.of(
                    "min.insync.replicas", "" + Math.min(replicas, 2),
                    // The timestamps of the records are old.
                    "retention.ms", "-1")))
            .toList()).all().get();
        for (InteropCell cell : cells) {
            awaitLeader(cell.partition);
        }
    }

    private Node awaitLeader(TopicPartition partition) throws Exception {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (System.currentTimeMillis() < deadline) {
            try {
                Node leader = admin.describeTopics(List.of(partition.topic())).allTopicNames()
                    .get().get(partition.topic()).partitions().get(partition.partition()).leader();
                if (leader != null && !leader.isEmpty()) {
                    return leader;
                }
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw e;
                }
            }
        }
        throw new IllegalStateException(partition + " has no leader");
    }

    private void run(InteropCell cell) {
        try {
            attempt("written", () -> cell.write(producer(cell)));
            Node leader = awaitLeader(cell.partition);
            leaders.add(leader.id());
            List<Long> offsets = cell.examine(leader);
            for (String reader : cell.readers) {
                attempt("read at " + reader,
                    () -> cell.read(consumer(reader, true), true, offsets));
                if (cell.isTransactional()) {
                    attempt("read uncommitted at " + reader,
                        () -> cell.read(consumer(reader, false), false, offsets));
                }
            }
            report(cell.name, true, "");
        } catch (Exception e) {
            report(cell.name, false, e.toString());
        }
    }

    private interface Attempt {
        void run() throws Exception;
    }

    private static void attempt(String what, Attempt attempt) throws Exception {
        try {
            attempt.run();
        } catch (Exception e) {
            Throwable cause = e instanceof ExecutionException ? e.getCause() : e;
            throw new Exception(what + ": " + cause, e);
        }
    }

    /** A producer for cells like this one; a transaction that failed needs another. */
    private KafkaProducer<byte[], byte[]> producer(InteropCell cell) {
        boolean plain = cell.shape.equals("plain") || cell.shape.equals("published");
        String kind = cell.isTransactional() ? cell.name : plain ? "plain" : "idempotent";
        String batch = cell.shape.equals("idempotent") ? "2048" : "262144";
        String key = String.join(" ", cell.writer, cell.codec, kind, batch);
        return producers.computeIfAbsent(key, unused -> {
            Properties properties = properties(cell.writer);
            properties.put("acks", "all");
            properties.put("linger.ms", "1000");
            properties.put("batch.size", batch);
            properties.put("compression.type", cell.codec);
            properties.put("enable.idempotence", !plain);
            properties.put("delivery.timeout.ms", "20000");
            properties.put("request.timeout.ms", "10000");
            properties.put("max.block.ms", "20000");
            if (plain) {
                properties.put("max.in.flight.requests.per.connection", "1");
            }
            if (cell.isTransactional()) {
                properties.put("transactional.id", cell.name);
            }
            var producer = new KafkaProducer<>(
                properties, new ByteArraySerializer(), new ByteArraySerializer());
            if (cell.isTransactional()) {
                producer.initTransactions();
            }
            return producer;
        });
    }

    private KafkaConsumer<byte[], byte[]> consumer(String address, boolean committed) {
        return consumers.computeIfAbsent(address + committed, unused -> {
            Properties properties = properties(address);
            properties.put("isolation.level", committed ? "read_committed" : "read_uncommitted");
            properties.put("auto.offset.reset", "none");
            properties.put("enable.auto.commit", "false");
            properties.put("default.api.timeout.ms", "20000");
            // The last fetch of a cell, which finds nothing more, stands before those of the next.
            properties.put("fetch.max.wait.ms", "10");
            return new KafkaConsumer<>(
                properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        });
    }

    private static Properties properties(String bootstrap) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        return properties;
    }

    private static void report(String name, boolean ok, String detail) {
        String shown = detail.length() > DETAIL_MAX ? detail.substring(0, DETAIL_MAX) : detail;
        System.out.println("{\"check\": " + quoted(name) + ", \"ok\": " + ok
            + (ok ? "" : ", \"detail\": " + quoted(shown)) + "}");
    }

    private static String quoted(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char letter : text.toCharArray()) {
            if (letter == '"' || letter == '\\') {
                quoted.append('\\').append(letter);
            } else if (letter < ' ' || letter > '~') {
                quoted.append(String.format("\\u%04x", (int) letter));
            } else {
                quoted.append(letter);
            }
        }
        return quoted.append('"').toString();
    }
}
