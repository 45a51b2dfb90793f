import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.Utils;

/** One cell of {@code InteropSession}: written, looked at where it lies, and read back. */
final class InteropCell {
    /** A line of the session's input. */
    final String name;
    final String codec;
    final String shape;
    final String writer;
    final List<String> readers;
    final TopicPartition partition;

    private static final Duration POLL = Duration.ofMillis(100);
    private static final long DEADLINE_MS = 20_000;
    /** No so many bytes of a value may occur in what is sealed. */
    private static final int WINDOW = 8;

    private final List<InteropRecords.Group> groups;

    InteropCell(String line) {
        String[] fields = line.split("\t");
        name = fields[0];
        partition = new TopicPartition(fields[1], Integer.parseInt(fields[2]));
        codec = fields[3];
        shape = fields[4];
        writer = fields[5];
        readers = List.of(fields[6].split(","));
        groups = InteropRecords.of(shape, partition);
    }

    boolean isTransactional() {
        return shape.equals("transactional");
    }

    void write(KafkaProducer<byte[], byte[]> producer) throws Exception {
        for (InteropRecords.Group group : groups) {
            if (isTransactional()) {
                producer.beginTransaction();
            }
            var acknowledgements = new ArrayList<Future<?>>();
            for (ProducerRecord<byte[], byte[]> record : group.records()) {
                acknowledgements.add(producer.send(
                    shape.equals("published") ? InteropRecords.sealed(record) : record));
            }
            producer.flush();
            for (Future<?> acknowledgement : acknowledgements) {
                acknowledgement.get();
            }
            if (group.aborted()) {
                producer.abortTransaction();
            } else if (isTransactional()) {
                producer.commitTransaction();
            }
        }
    }

    /** Looks at the log of the cluster; returns the offsets of the records, aborted ones too. */
    List<Long> examine(Node leader) throws Exception {
        List<Record> records = new ArrayList<>();
        List<RecordBatch> batches = UpstreamLog.read(leader, partition);
        for (RecordBatch batch : batches) {
            batch.ensureValid();
            if (!batch.isControlBatch()) {
                require(batch.compressionType().name.equals(codec),
                    "a batch on the cluster has the codec " + batch.compressionType().name);
                require(batch.hasProducerId() != isAnonymous(),
                    "a batch on the cluster has the producer id " + batch.producerId());
                batch.forEach(records::add);
            }
            require(batch.isTransactional() == isTransactional(), "another kind of batch");
        }
        List<ProducerRecord<byte[], byte[]>> sent = sent(true);
        require(records.size() == sent.size(),
            records.size() + " records lie on the cluster, not " + sent.size());
        List<Long> offsets = new ArrayList<>();
        for (int i = 0; i < sent.size(); i++) {
            examine(sent.get(i), records.get(i));
            offsets.add(records.get(i).offset());
        }
        return offsets;
    }

    /** Whether its producer has no id. */
    private boolean isAnonymous() {
        return shape.equals("plain") || shape.equals("published");
    }

    private void examine(ProducerRecord<byte[], byte[]> sent, Record found) {
        byte[] value = Utils.toNullableArray(found.value());
        List<Header> headers = new ArrayList<>();
        if (sent.value() != null) {
            int seals = shape.equals("double-wrapped") ? 2 : 1;
            for (int i = 0; i < seals; i++) {
                headers.add(InteropRecords.MARKER);
            }
            require(value != null && isSealed(sent.value(), value),
                "a value lies on the cluster in clear: " + describe(sent));
        }
        sent.headers().forEach(headers::add);
        var expected = new ProducerRecord<>(sent.topic(), sent.partition(), sent.timestamp(),
            sent.key(), sent.value() == null ? null : value, headers);
        var seen = new ProducerRecord<>(sent.topic(), sent.partition(), found.timestamp(),
            Utils.toNullableArray(found.key()), value, List.of(found.headers()));
        requireEqual(expected, seen, "on the cluster");
    }

    private static boolean isSealed(byte[] value, byte[] sealed) {
        Set<Long> windows = new HashSet<>();
        for (int i = 0; i + WINDOW <= value.length; i++) {
            windows.add(ByteBuffer.wrap(value).getLong(i));
        }
        for (int i = 0; i + WINDOW <= sealed.length; i++) {
            if (windows.contains(ByteBuffer.wrap(sealed).getLong(i))) {
                return false;
            }
        }
        return sealed.length > value.length;
    }

    /** Reads through a proxy and compares; {@code offsets} are those on the cluster. */
    void read(KafkaConsumer<byte[], byte[]> consumer, boolean committed, List<Long> offsets) {
        List<ConsumerRecord<byte[], byte[]>> got = readAll(consumer);
        List<ProducerRecord<byte[], byte[]>> sent = sent(!committed);
        require(got.size() == sent.size(), got.size() + " records are read, not " + sent.size()
            + ", at " + got.stream().map(ConsumerRecord::offset).toList());
        List<ProducerRecord<byte[], byte[]>> all = sent(true);
        for (int i = 0; i < sent.size(); i++) {
            ConsumerRecord<byte[], byte[]> record = got.get(i);
            require(record.offset() == offsets.get(all.indexOf(sent.get(i))),
                "record " + i + " is read with the offset " + record.offset());
            requireEqual(sent.get(i),
                new ProducerRecord<>(record.topic(), record.partition(), record.timestamp(),
                    record.key(), record.value(), record.headers()),
                "read");
        }
    }

    private List<ConsumerRecord<byte[], byte[]>> readAll(KafkaConsumer<byte[], byte[]> consumer) {
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        long end = consumer.endOffsets(List.of(partition)).get(partition);
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        List<ConsumerRecord<byte[], byte[]>> got = new ArrayList<>();
        while (consumer.position(partition) < end) {
            consumer.poll(POLL).forEach(got::add);
            require(System.currentTimeMillis() < deadline, got.size() + " records are read, then "
                + "nothing behind offset " + consumer.position(partition) + " of " + end);
        }
        return got;
    }

    private List<ProducerRecord<byte[], byte[]>> sent(boolean withAborted) {
        return groups.stream()
            .filter(group -> withAborted || !group.aborted())
            .flatMap(group -> group.records().stream())
            .toList();
    }

    private static void requireEqual(
            ProducerRecord<byte[], byte[]> expected, ProducerRecord<byte[], byte[]> found,
            String where) {
        String[] texts = {describe(found), describe(expected)};
        require(texts[0].equals(texts[1]), where + ": " + texts[0] + ", not " + texts[1]);
    }

    private static void require(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise);
        }
    }

    /** A text that is equal only for equal records. */
    private static String describe(ProducerRecord<byte[], byte[]> record) {
        StringBuilder text = new StringBuilder();
        text.append(record.timestamp()).append(' ').append(text(record.key()));
        for (Header header : record.headers()) {
            byte[] key = header.key().getBytes(StandardCharsets.UTF_8);
            text.append(' ').append(text(key)).append('=').append(text(header.value()));
        }
        return text.append(" -> ").append(text(record.value())).toString();
    }

    private static String text(byte[] bytes) {
        return bytes == null ? "null" : "'" + new String(bytes, StandardCharsets.ISO_8859_1) + "'";
    }
}
