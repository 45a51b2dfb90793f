import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/** The scenario {@code compacted} of the Java client; ../README.md says what it contains. */
final class CompactedTopic {
    private static final List<String> CODECS = List.of("none", "gzip", "snappy", "lz4", "zstd");
    private static final int KEYS = 10;
    private static final int RECORDS = 200;
    /** A deleted key goes with the second cleaning, and a server may clean four times a minute. */
    private static final long CLEANING_MS = 90_000;

    private final ConformanceClient client;
    private final String topic;
    private final TopicPartition partition;
    private final Map<String, String> newest = new HashMap<>();

    CompactedTopic(ConformanceClient client, String topic) {
        this.client = client;
        this.topic = topic;
        this.partition = new TopicPartition(topic, 0);
    }

    void run() throws Exception {
        client.admin.createTopics(List.of(
            new NewTopic(topic, Optional.of(1), Optional.empty()).configs(Map.of(
                "cleanup.policy", "compact", "segment.ms", "100",
                "min.cleanable.dirty.ratio", "0.01", "delete.retention.ms", "100")))).all().get();
        client.awaitPartitions(1);
        for (String codec : CODECS) {
            produceUpdates(codec);
        }
        long end = endOffset();
        List<ConsumerRecord<byte[], byte[]>> got = awaitCleaned(end);

        client.check("every key has its newest value, once", values(got, end).equals(newest)
            && got.stream().filter(record -> record.offset() < end).count() == newest.size(),
            describe(got));
        client.check("offsets ascend", ascend(got), describe(got));
        client.check("a deleted key is gone",
            got.stream().noneMatch(record -> key(record).equals("deleted")), describe(got));
        List<Long> stuck = new ArrayList<>();
        Set<Long> starts = new HashSet<>(List.of(0L, 1L, end - 2, end - 1, end));
        for (long start = 0; start < end; start += 37) {
            starts.add(start);
        }
        for (long start : starts) {
            if (!goesOn(start)) {
                stuck.add(start);
            }
        }
        client.check("a reader goes on from every offset, kept or not", stuck.isEmpty(),
            stuck.toString());
    }

    /** Many updates of few keys in batches of 50, so that of a batch little or nothing stays. */
    private void produceUpdates(String codec) throws Exception {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        records.add(record("deleted", codec));
        for (int i = 0; i < RECORDS; i++) {
            String value = codec + "-" + i + "-" + "x".repeat(50);
            records.add(record("key-" + i % KEYS, value));
            newest.put("key-" + i % KEYS, value);
        }
        // The newest value of this key stands before the end of its batch, whose tail goes.
        records.add(records.size() - 5, record("early", codec));
        newest.put("early", codec);
        records.add(record("deleted", null));
        for (int from = 0; from < records.size(); from += 50) {
            List<ProducerRecord<byte[], byte[]>> batch =
                records.subList(from, Math.min(from + 50, records.size()));
            try (var producer =
                    client.producer(Map.of("compression.type", codec, "linger.ms", "1000"))) {
                ConformanceClient.sendAll(producer, batch);
            }
        }
    }

    private ProducerRecord<byte[], byte[]> record(String key, String value) {
        return new ProducerRecord<>(
            topic, 0, key.getBytes(), value == null ? null : value.getBytes());
    }

    /**
     * Reads the topic until only the newest record of each key is left below {@code end}. Kafka
     * cleans a segment only once a later record has closed it, so one more is sent each time.
     */
    private List<ConsumerRecord<byte[], byte[]>> awaitCleaned(long end) throws Exception {
        long deadline = System.currentTimeMillis() + CLEANING_MS;
        List<ConsumerRecord<byte[], byte[]>> got;
        int ticks = 0;
        do {
            try (var producer = client.producer(Map.of())) {
                ConformanceClient.sendAll(producer, List.of(record("tick", "" + ticks++)));
            }
            got = readAll();
        } while (got.stream().filter(record -> record.offset() < end).count() > newest.size()
            && System.currentTimeMillis() < deadline);
        return got;
    }

    /** Everything from the beginning to the end; the end is reached or the check fails. */
    private List<ConsumerRecord<byte[], byte[]>> readAll() throws Exception {
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        long end = endOffset();
        try (var consumer = client.consumer(Map.of())) {
            consumer.assign(List.of(partition));
            consumer.seekToBeginning(List.of(partition));
            long deadline = ConformanceClient.deadline();
            while (consumer.position(partition) < end && System.currentTimeMillis() < deadline) {
                consumer.poll(ConformanceClient.POLL).forEach(got::add);
            }
            if (consumer.position(partition) < end) {
                client.check("a reader reaches the end", false,
                    consumer.position(partition) + " of " + end);
            }
        }
        return got;
    }

    private boolean goesOn(long start) throws Exception {
        long end = endOffset();
        try (var consumer = client.consumer(Map.of())) {
            consumer.assign(List.of(partition));
            consumer.seek(partition, start);
            long last = start - 1;
            long deadline = ConformanceClient.deadline();
            while (consumer.position(partition) < end && System.currentTimeMillis() < deadline) {
                for (var record : consumer.poll(ConformanceClient.POLL)) {
                    if (record.offset() <= last) {
                        return false;
                    }
                    last = record.offset();
                }
            }
            return consumer.position(partition) >= end;
        }
    }

    private long endOffset() throws Exception {
        return client.admin.listOffsets(Map.of(partition, OffsetSpec.latest()))
            .partitionResult(partition).get().offset();
    }

    private Map<String, String> values(List<ConsumerRecord<byte[], byte[]>> got, long end) {
        Map<String, String> values = new HashMap<>();
        got.stream().filter(record -> record.offset() < end && record.value() != null)
            .forEach(record -> values.put(key(record), new String(record.value())));
        return values;
    }

    private static boolean ascend(List<ConsumerRecord<byte[], byte[]>> got) {
        for (int i = 1; i < got.size(); i++) {
            if (got.get(i).offset() <= got.get(i - 1).offset()) {
                return false;
            }
        }
        return true;
    }

    private static String key(ConsumerRecord<byte[], byte[]> record) {
        return new String(record.key());
    }

    private static String describe(List<ConsumerRecord<byte[], byte[]>> got) {
        return got.stream().limit(40).map(record -> record.offset() + " " + key(record))
            .toList() + " of " + got.size();
    }
}
