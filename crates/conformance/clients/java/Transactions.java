import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;

/** The scenario {@code transactions} of the Java client; ../README.md says what it contains. */
final class Transactions {
    private static final int RECORDS = 40;

    private final ConformanceClient client;
    private final String topic;
    private final List<TopicPartition> partitions;

    Transactions(ConformanceClient client, String topic) {
        this.client = client;
        this.topic = topic;
        this.partitions = List.of(new TopicPartition(topic, 0), new TopicPartition(topic, 1));
    }

    void run() throws Exception {
        client.createTopic(topic, 2);
        client.admin.createTopics(List.of(
            new NewTopic(topic + "-out", Optional.of(1), Optional.empty()))).all().get();
        endsAndReads();
        offsets();
        fencing();
    }

    private void endsAndReads() throws Exception {
        List<String> committed = new ArrayList<>();
        try (var producer = producer()) {
            producer.initTransactions();
            for (int i = 0; i < 6; i++) {
                boolean commits = i % 3 != 1;
                producer.beginTransaction();
                List<String> values = write(producer, "t" + i);
                if (commits) {
                    producer.commitTransaction();
                    committed.addAll(values);
                } else {
                    producer.flush();
                    producer.abortTransaction();
                }
            }
            producer.beginTransaction();
            write(producer, "open");
            producer.flush();
            client.check("committed records are read, and no others",
                same(read("read_committed"), committed), read("read_committed").toString());
            client.check("all records are read by who reads uncommitted ones",
                read("read_uncommitted").size() == 7 * RECORDS,
                "" + read("read_uncommitted").size());
            shown();
            producer.abortTransaction();
        }
        client.check("nothing that was aborted is read in the end",
            same(read("read_committed"), committed), read("read_committed").toString());
    }

    private void shown() throws Exception {
        var described = client.admin.describeTransactions(List.of(topic)).all().get().get(topic);
        client.check("the open transaction is described",
            described.state() == TransactionState.ONGOING
            && described.topicPartitions().equals(Set.copyOf(partitions)), described.toString());
        var ongoing = new ListTransactionsOptions().filterStates(List.of(TransactionState.ONGOING));
        var listed = client.admin.listTransactions(ongoing).all().get();
        client.check("the open transaction is listed",
            listed.stream().anyMatch(it -> it.transactionalId().equals(topic)), listed.toString());
        var states = client.admin.describeProducers(partitions).all().get();
        client.check("its producer is described with the start of the transaction",
            partitions.stream().allMatch(partition -> states.get(partition).activeProducers()
                .stream().anyMatch(it -> it.currentTransactionStartOffset().isPresent())),
            states.toString());
    }

    /** Copies records and commits their offsets with the copies, or neither. */
    private void offsets() throws Exception {
        try (var producer = producer(); var consumer = member()) {
            producer.initTransactions();
            consumer.subscribe(List.of(topic));
            int copied = 0;
            long deadline = System.currentTimeMillis() + 40_000;
            while (copied < 4 * RECORDS && System.currentTimeMillis() < deadline) {
                var records = consumer.poll(ConformanceClient.POLL);
                if (records.isEmpty()) {
                    continue;
                }
                copied += records.count();
                copy(producer, consumer, records, false);
                copy(producer, consumer, records, true);
            }
            Map<TopicPartition, OffsetAndMetadata> committed =
                consumer.committed(Set.copyOf(partitions));
            Map<TopicPartition, Long> positions = new HashMap<>();
            partitions.forEach(partition -> positions.put(partition, consumer.position(partition)));
            // The position is behind markers, which no commit names.
            boolean ends = partitions.stream().allMatch(partition ->
                committed.get(partition) != null
                && committed.get(partition).offset() <= positions.get(partition)
                && committed.get(partition).offset() > RECORDS / 2);
            client.check("offsets are committed with the records", ends, committed.toString());
            List<String> copies = read("read_committed", new TopicPartition(topic + "-out", 0));
            client.check("every record is copied once", copies.size() == 4 * RECORDS
                && Set.copyOf(copies).size() == copies.size(), copies.toString());
        }
        try (var resumed = member()) {
            resumed.subscribe(List.of(topic));
            long until = System.currentTimeMillis() + 3_000;
            int again = 0;
            while (System.currentTimeMillis() < until) {
                again += resumed.poll(ConformanceClient.POLL).count();
            }
            client.check("a later member reads nothing again", again == 0, "" + again);
        }
    }

    private void copy(
            KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer,
            Iterable<ConsumerRecord<byte[], byte[]>> records, boolean commits) {
        producer.beginTransaction();
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (ConsumerRecord<byte[], byte[]> record : records) {
            producer.send(new ProducerRecord<>(topic + "-out", record.value()));
            offsets.put(new TopicPartition(record.topic(), record.partition()),
                new OffsetAndMetadata(record.offset() + 1));
        }
        ConsumerGroupMetadata group = consumer.groupMetadata();
        producer.sendOffsetsToTransaction(offsets, group);
        if (commits) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
    }

    private void fencing() throws Exception {
        try (var first = producer(); var second = producer()) {
            first.initTransactions();
            first.beginTransaction();
            write(first, "fenced");
            first.flush();
            second.initTransactions();
            client.check("a producer that was fenced cannot commit", isFenced(first), "committed");
            second.beginTransaction();
            write(second, "second");
            second.commitTransaction();
            client.admin.fenceProducers(List.of(topic)).all().get();
            second.beginTransaction();
            client.check("an administrator fences a producer", isFenced(second), "committed");
        }
        List<String> read = read("read_committed");
        client.check("records of fenced producers are not read",
            read.stream().noneMatch(value -> value.startsWith("fenced"))
            && read.stream().filter(value -> value.startsWith("second")).count() == RECORDS,
            read.toString());
    }

    private boolean isFenced(KafkaProducer<byte[], byte[]> producer) {
        try {
            producer.send(new ProducerRecord<>(topic, 0, null, "fenced-late".getBytes()));
            producer.commitTransaction();
            return false;
        } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
            return true;
        } catch (KafkaException other) {
            return other.getCause() instanceof ProducerFencedException
                || other.getCause() instanceof InvalidProducerEpochException;
        }
    }

    private List<String> write(KafkaProducer<byte[], byte[]> producer, String name) {
        List<String> values = new ArrayList<>();
        for (int i = 0; i < RECORDS; i++) {
            values.add(name + "-" + i);
            producer.send(new ProducerRecord<>(topic, i % 2, null, values.get(i).getBytes()));
        }
        return values;
    }

    private KafkaProducer<byte[], byte[]> producer() {
        return client.producer(Map.of("transactional.id", topic, "linger.ms", "5"));
    }

    private KafkaConsumer<byte[], byte[]> member() {
        return client.consumer(Map.of("group.id", topic, "enable.auto.commit", "false",
            "isolation.level", "read_committed", "auto.offset.reset", "earliest",
            "session.timeout.ms", "6000", "heartbeat.interval.ms", "300"));
    }

    private static boolean same(List<String> read, List<String> written) {
        List<String> one = new ArrayList<>(read);
        List<String> other = new ArrayList<>(written);
        one.sort(null);
        other.sort(null);
        return one.equals(other);
    }

    private List<String> read(String isolation) {
        List<String> all = new ArrayList<>();
        partitions.forEach(partition -> all.addAll(read(isolation, partition)));
        return all;
    }

    /** The values up to the end that a consumer of this isolation sees. */
    private List<String> read(String isolation, TopicPartition partition) {
        List<String> values = new ArrayList<>();
        try (var consumer = client.consumer(Map.of("isolation.level", isolation))) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            long deadline = System.currentTimeMillis() + 40_000;
            while (consumer.position(partition) < end && System.currentTimeMillis() < deadline) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    values.add(new String(record.value()));
                }
            }
        }
        return values;
    }
}
