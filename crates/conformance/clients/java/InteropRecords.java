import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;

/** What the cells of {@code InteropSession} write; ../README.md has the shapes. */
final class InteropRecords {
    /** Records that are sent together: a batch, or a transaction. */
    record Group(boolean aborted, List<ProducerRecord<byte[], byte[]>> records) {}

    /** The header of a sealed record. */
    static final Header MARKER = new RecordHeader("kroxylicious.io/encryption", new byte[] {2});

    /** What opens out of {@link #PUBLISHED_VALUE}. */
    private static final String PUBLISHED_TEXT = "hello";

    /** A sealed value that was computed from the published format alone. */
    private static final byte[] PUBLISHED_VALUE = HexFormat.of().parseHex(
        "004e800ca0a1a2a3a4a5a6a7a8a9aaab00112233445566778899aabbccddeeffc6395e0e61ee24984a4cadf8"
        + "2b57eef1409d6b23a682745ba4371cbd43964b3e4d1b9a3a0cd4dfc848ae78ece84cf3c200000102030405"
        + "060708090a0b563a38cb265ae827c6105de80023ad475347f46377e67a");

    private static final long FIRST_TIMESTAMP = 1_700_000_000_000L;
    private static final int[] SIZES = {1, 10, 200, 1000, 3000};
    private static final int LARGE = 100_000;

    private final TopicPartition partition;
    private int made = 0;

    private InteropRecords(TopicPartition partition) {
        this.partition = partition;
    }

    static List<Group> of(String shape, TopicPartition partition) {
        InteropRecords records = new InteropRecords(partition);
        return switch (shape) {
            case "plain" -> List.of(
                records.values(8), records.large(), records.values(8));
            case "idempotent" -> List.of(records.values(300));
            case "transactional" -> List.of(
                records.values(8), records.aborted(), records.mixed(), records.aborted(),
                records.values(3));
            case "tombstone" -> List.of(records.mixed(), records.tombstones(), records.values(3));
            case "empty" -> List.of(records.mixed(), records.empty(), records.values(3));
            case "headers" -> List.of(records.headers(), records.values(3), records.headers());
            case "double-wrapped" -> List.of(
                records.values(8), records.mixed(), records.tombstones(), records.headers());
            case "published" -> List.of(records.published());
            default -> throw new IllegalArgumentException("unknown shape " + shape);
        };
    }

    /** The sealed record that a reader finds as the one of the shape {@code published}. */
    static ProducerRecord<byte[], byte[]> sealed(ProducerRecord<byte[], byte[]> record) {
        return new ProducerRecord<>(record.topic(), record.partition(), record.timestamp(),
            record.key(), PUBLISHED_VALUE, List.of(MARKER));
    }

    private Group values(int count) {
        List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            records.add(ofSize(SIZES[made % SIZES.length]));
        }
        return batch(records);
    }

    private Group large() {
        return batch(List.of(ofSize(LARGE)));
    }

    private Group published() {
        byte[] value = PUBLISHED_TEXT.getBytes(StandardCharsets.UTF_8);
        return batch(List.of(record(value, List.of())));
    }

    private static Group batch(List<ProducerRecord<byte[], byte[]>> records) {
        return new Group(false, records);
    }

    private Group aborted() {
        return new Group(true, values(8).records());
    }

    /** Values, tombstones and empty values side by side. */
    private Group mixed() {
        return batch(List.of(ofSize(200), record(null, List.of()), record(new byte[0], List.of()),
            ofSize(10), record(null, hardHeaders()), record(new byte[0], hardHeaders())));
    }

    /** A batch of which nothing is sealed. */
    private Group tombstones() {
        return batch(List.of(
            record(null, List.of()), record(null, hardHeaders()), record(null, List.of())));
    }

    private Group empty() {
        return batch(List.of(record(new byte[0], List.of()), record(new byte[0], List.of())));
    }

    private Group headers() {
        List<Header> many = new ArrayList<>();
        for (int i = 0; i < 100; i++) {
            many.add(header("header-" + i, "value-" + i));
        }
        byte[] value = text(50);
        return batch(List.of(
            record(value, hardHeaders()), record(value, many), record(value, List.of())));
    }

    /** Duplicate names, also with the same value; null and empty values; an empty name. */
    private static List<Header> hardHeaders() {
        return List.of(header("dup", "1"), header("other", "x"), header("dup", "2"),
            header("dup", "2"), header("null", null), header("null", null), header("empty", ""),
            header("", "no name"), header("größe", "→"));
    }

    private static Header header(String key, String value) {
        byte[] bytes = value == null ? null : value.getBytes(StandardCharsets.UTF_8);
        return new RecordHeader(key, bytes);
    }

    private ProducerRecord<byte[], byte[]> ofSize(int size) {
        return record(text(size), List.of());
    }

    /** Keys are present, null and empty in turn. */
    private ProducerRecord<byte[], byte[]> record(byte[] value, List<Header> headers) {
        int number = made++;
        byte[] key = switch (number % 3) {
            case 0 -> ("key-" + number).getBytes(StandardCharsets.UTF_8);
            case 1 -> null;
            default -> new byte[0];
        };
        return new ProducerRecord<>(partition.topic(), partition.partition(),
            FIRST_TIMESTAMP + 7L * number, key, value, headers);
    }

    /**
     * Text that compresses and differs from record to record. It has nothing of the topic's name,
     * which stands in clear in a data key that Vault has wrapped.
     */
    private byte[] text(int size) {
        String line = "value " + made + " in partition " + partition.partition() + ", ";
        String text = line.repeat(size / line.length() + 1);
        return Arrays.copyOf(text.getBytes(StandardCharsets.US_ASCII), size);
    }
}
