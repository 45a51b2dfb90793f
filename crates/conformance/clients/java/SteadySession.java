import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes at a rate and reads it until a file is there; ../README.md describes its interface. */
public final class SteadySession {
    private static final int PARTITIONS = 3;
    private static final int VALUE_BYTES = 1000;
    private static final Duration PAUSE = Duration.ofMillis(10);
    /** Records that wait for their acknowledgement where no rate is given. */
    private static final long BUFFERED = 5000;
    private static final long DEADLINE_MS = 40_000;

    private final String topic;
    private final long rate;
    private final Path stop;
    private final Properties settings;
    private final AtomicLong acknowledged = new AtomicLong();
    private final AtomicLong read = new AtomicLong();
    private final Queue<String> errors = new ConcurrentLinkedQueue<>();
    private volatile String generation = "-";
    /** Connections that the reader has made. */
    private volatile long connectionsOfReader = 0;

    private SteadySession(String[] fields) {
        topic = fields[0];
        rate = Long.parseLong(fields[1]);
        stop = Path.of(fields[2]);
        settings = ConnectionSettings.of(fields, 3);
    }

    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        boolean ok = new SteadySession(input.readLine().split("\t")).run();
        System.out.flush();
        Runtime.getRuntime().halt(ok ? 0 : 1);
    }

    private boolean run() throws Exception {
        try (Admin admin = Admin.create(settings)) {
            short replicas = -1;
            admin.createTopics(List.of(new NewTopic(topic, PARTITIONS, replicas))).all().get();
        }
        Thread reader = new Thread(this::read, "reader");
        reader.setDaemon(true);
        reader.start();
        long sent = write();
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (read.get() < sent && System.currentTimeMillis() < deadline) {
            Thread.sleep(PAUSE.toMillis());
        }
        boolean all = acknowledged.get() == sent;
        boolean each = read.get() == sent;
        check("every send is acknowledged", all, acknowledged + " of " + sent);
        check("every record is read once and in order", each, read + " of " + sent);
        check("no error is reported", errors.isEmpty(), errors.toString());
        return all && each && errors.isEmpty();
    }

    /** Sends until the file is there; how many records. */
    private long write() throws Exception {
        var bytes = new ByteArraySerializer();
        String padding = "x".repeat(VALUE_BYTES);
        long sent = 0;
        try (var producer = new KafkaProducer<>(settings, bytes, bytes)) {
            long start = System.nanoTime();
            while (!Files.exists(stop)) {
                long due = (long) ((System.nanoTime() - start) / 1e9 * rate);
                if (rate == 0) {
                    due = acknowledged.get() + BUFFERED;
                }
                for (; sent < due; sent++) {
                    byte[] value = (sent + " " + padding).getBytes(StandardCharsets.UTF_8);
                    int partition = (int) (sent % PARTITIONS);
                    var record = new ProducerRecord<byte[], byte[]>(topic, partition, null, value);
                    producer.send(record, (metadata, error) -> {
                        if (error == null) {
                            acknowledged.incrementAndGet();
                        } else {
                            errors.add("a send: " + error);
                        }
                    });
                }
                long made = connections(producer.metrics()) + connectionsOfReader;
                System.err.println(
                    "progress " + acknowledged + " " + read + " " + generation + " " + made);
                Thread.sleep(PAUSE.toMillis());
            }
        }
        return sent;
    }

    private void read() {
        Properties properties = new Properties();
        properties.putAll(settings);
        properties.put("group.id", topic);
        properties.put("auto.offset.reset", "earliest");
        long[] next = new long[PARTITIONS];
        for (int partition = 0; partition < PARTITIONS; partition++) {
            next[partition] = partition;
        }
        var bytes = new ByteArrayDeserializer();
        try (var consumer = new KafkaConsumer<>(properties, bytes, bytes)) {
            consumer.subscribe(List.of(topic), new Losses());
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(PAUSE)) {
                    String text = new String(record.value(), StandardCharsets.UTF_8);
                    long id = Long.parseLong(text.substring(0, text.indexOf(' ')));
                    if (id != next[record.partition()]) {
                        errors.add("a read: " + id + ", not " + next[record.partition()]);
                    }
                    next[record.partition()] = id + PARTITIONS;
                    read.incrementAndGet();
                    record.headers().forEach(header ->
                        generation = new String(header.value(), StandardCharsets.UTF_8));
                }
                connectionsOfReader = connections(consumer.metrics());
            }
        } catch (Exception error) {
            errors.add("the reader: " + error);
        }
    }

    /** A member that is alone in its group loses nothing. */
    private final class Losses implements ConsumerRebalanceListener {
        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            errors.add("revoked: " + partitions);
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}
    }

    private static long connections(Map<MetricName, ? extends Metric> metrics) {
        for (var metric : metrics.entrySet()) {
            boolean whole = metric.getKey().tags().keySet().equals(Set.of("client-id"));
            if (whole && metric.getKey().name().equals("connection-creation-total")) {
                return ((Double) metric.getValue().metricValue()).longValue();
            }
        }
        return 0;
    }

    private static void check(String name, boolean ok, String detail) {
        String shown = detail.replaceAll("[\"\\\\\n]", " ");
        System.out.println("{\"check\": \"" + name + "\", \"ok\": " + ok
            + (ok ? "}" : ", \"detail\": \"" + shown + "\"}"));
    }
}
