import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Writes and reads while brokers come and go; ../README.md describes its interface. */
public final class Outages {
    private static final int PARTITIONS = 6;
    /** Some thousand records each second, so that each partition is always in use. */
    private static final int BATCH = 50;
    private static final Duration PAUSE = Duration.ofMillis(10);
    private static final long DEADLINE_MS = 120_000;

    private final String bootstrap;
    private final String topic;
    private final ConcurrentHashMap<Long, Boolean> acknowledged = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<Long, Boolean> read = new ConcurrentHashMap<>();
    private final AtomicLong failed = new AtomicLong();
    private volatile String failure = "";

    private Outages(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
    }

    public static void main(String[] args) throws Exception {
        Outages outages = new Outages(args[0], args[1]);
        boolean ok = outages.run(Path.of(args[2]));
        System.out.flush();
        Runtime.getRuntime().halt(ok ? 0 : 1);
    }

    private boolean run(Path stop) throws Exception {
        try (Admin admin = Admin.create(properties())) {
            NewTopic created = new NewTopic(topic, Optional.of(PARTITIONS), Optional.of((short) 3));
            admin.createTopics(List.of(created.configs(Map.of("min.insync.replicas", "2"))))
                .all().get();
        }
        Thread reader = new Thread(this::read, "reader");
        reader.setDaemon(true);
        reader.start();
        long sent = write(stop);
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (!read.keySet().containsAll(acknowledged.keySet())
            && System.currentTimeMillis() < deadline) {
            Thread.sleep(PAUSE.toMillis());
        }
        long lost = acknowledged.keySet().stream().filter(id -> !read.containsKey(id)).count();
        boolean none = failed.get() == 0;
        check("every send is acknowledged", none && acknowledged.size() == sent,
            failed + " of " + sent + " failed: " + failure);
        check("every acknowledged record is read", lost == 0,
            lost + " of " + acknowledged.size() + " lost");
        return none && lost == 0;
    }

    /** Sends until the file is there; how many records. */
    private long write(Path stop) throws Exception {
        long sent = 0;
        try (var producer = new KafkaProducer<byte[], byte[]>(properties())) {
            while (!Files.exists(stop)) {
                for (int i = 0; i < BATCH; i++) {
                    long id = sent++;
                    byte[] value = Long.toString(id).getBytes(StandardCharsets.UTF_8);
                    var record = new ProducerRecord<byte[], byte[]>(topic, value, value);
                    producer.send(record, (metadata, error) -> {
                        if (error == null) {
                            acknowledged.put(id, true);
                        } else {
                            failed.incrementAndGet();
                            failure = error.toString();
                        }
                    });
                }
                System.err.println("progress " + acknowledged.size() + " " + read.size());
                Thread.sleep(PAUSE.toMillis());
            }
        }
        return sent;
    }

    private void read() {
        Properties properties = properties();
        properties.put("group.id", topic);
        properties.put("auto.offset.reset", "earliest");
        try (var consumer = new KafkaConsumer<byte[], byte[]>(properties)) {
            consumer.subscribe(List.of(topic));
            while (true) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(PAUSE)) {
                    String text = new String(record.value(), StandardCharsets.UTF_8);
                    read.put(Long.parseLong(text), true);
                }
            }
        } catch (Exception e) {
            failed.incrementAndGet();
            failure = "the reader: " + e;
        }
    }

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        return properties;
    }

    private static void check(String name, boolean ok, String detail) {
        String escaped = detail.replace("\\", "\\\\").replace("\"", "\\\"");
        System.out.println("{\"check\": \"" + name + "\", \"ok\": " + ok
            + (ok ? "}" : ", \"detail\": \"" + escaped + "\"}"));
    }
}
