import java.time.Duration;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * One topic of many partitions from creation to deletion; every check says how many milliseconds
 * it took. ../README.md describes its interface.
 */
public final class LargeTopic {
    /** The client parses descriptions and metadata of every partition within its timeout. */
    private static final String TIMEOUT_MS = "120000";
    private static final String REQUEST_TIMEOUT_MS = "60000";

    private final String bootstrap;
    private final String topic;
    private final int partitions;
    private final Admin admin;
    private int failures = 0;

    private LargeTopic(String bootstrap, String topic, int partitions) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.partitions = partitions;
        this.admin = Admin.create(properties());
    }

    public static void main(String[] args) throws Exception {
        LargeTopic client = new LargeTopic(args[0], args[1], Integer.parseInt(args[2]));
        int increment = args.length > 3 ? Integer.parseInt(args[3]) : 0;
        // The connection and the classes of the client are no part of what is measured.
        client.admin.describeCluster().nodes().get();
        if (increment > 0) {
            client.grow(increment);
        } else {
            client.live();
        }
        client.admin.close();
        System.exit(client.failures == 0 ? 0 : 1);
    }

    /** Created at once, described, written to, read and deleted. */
    private void live() throws Exception {
        check("the topic is created", () -> create(partitions));
        check("every partition is described once", this::isDescribed);
        byte[] value = "of the last partition".getBytes();
        check("the last partition takes a record", () -> produce(value) == 0);
        check("the last partition returns the record", () -> isConsumed(value));
        check("the topic is deleted", () -> {
            admin.deleteTopics(List.of(topic)).all().get();
            return isGone();
        });
    }

    /** Grown by `increment` partitions at a time. */
    private void grow(int increment) throws Exception {
        check("the topic is created", () -> create(increment));
        for (int count = 2 * increment; count <= partitions; count += increment) {
            int total = count;
            check("the topic has " + total + " partitions", () -> {
                var growth = Map.of(topic, NewPartitions.increaseTo(total));
                admin.createPartitions(growth).all().get();
                return true;
            });
        }
        check("every partition is described once", this::isDescribed);
    }

    private boolean create(int count) throws Exception {
        NewTopic wanted = new NewTopic(topic, Optional.of(count), Optional.empty());
        admin.createTopics(List.of(wanted)).all().get();
        return true;
    }

    private boolean isDescribed() throws Exception {
        TopicDescription found =
            admin.describeTopics(List.of(topic)).allTopicNames().get().get(topic);
        BitSet seen = new BitSet(partitions);
        for (var partition : found.partitions()) {
            if (partition.leader() == null || seen.get(partition.partition())) {
                return false;
            }
            seen.set(partition.partition());
        }
        return seen.cardinality() == partitions && seen.length() == partitions;
    }

    private long produce(byte[] value) throws Exception {
        Properties properties = properties();
        properties.put("acks", "all");
        properties.put("max.block.ms", TIMEOUT_MS);
        properties.put("delivery.timeout.ms", TIMEOUT_MS);
        try (var producer = new KafkaProducer<>(
                properties, new ByteArraySerializer(), new ByteArraySerializer())) {
            return producer.send(new ProducerRecord<>(topic, partitions - 1, null, value))
                .get().offset();
        }
    }

    private boolean isConsumed(byte[] value) {
        Properties properties = properties();
        properties.put("auto.offset.reset", "earliest");
        TopicPartition last = new TopicPartition(topic, partitions - 1);
        try (var consumer = new KafkaConsumer<>(
                properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.assign(List.of(last));
            long deadline = System.currentTimeMillis() + Long.parseLong(TIMEOUT_MS);
            while (System.currentTimeMillis() < deadline) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    return record.offset() == 0 && Arrays.equals(record.value(), value);
                }
            }
            return false;
        }
    }

    private boolean isGone() throws Exception {
        try {
            admin.describeTopics(List.of(topic)).allTopicNames().get();
            return false;
        } catch (ExecutionException e) {
            return e.getCause() instanceof UnknownTopicOrPartitionException;
        }
    }

    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("request.timeout.ms", REQUEST_TIMEOUT_MS);
        properties.put("default.api.timeout.ms", TIMEOUT_MS);
        return properties;
    }

    private void check(String name, Callable<Boolean> statement) throws Exception {
        long started = System.nanoTime();
        boolean ok = statement.call();
        long ms = (System.nanoTime() - started) / 1_000_000;
        failures += ok ? 0 : 1;
        System.out.println(
            "{\"check\": \"" + name + "\", \"ok\": " + ok + ", \"ms\": " + ms + "}");
    }
}
