import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import java.util.zip.CRC32C;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;

/**
 * Writes record batches with Kafka's own classes, and describes batches as those classes read them.
 *
 * <pre>
 * java -cp JARS GoldenBatches.java write DIRECTORY   one .bin per case, and golden.json
 * java -cp JARS GoldenBatches.java describe FILE...  the description of the files on stdout
 * </pre>
 */
public final class GoldenBatches {
    private static final long TIME = 1_700_000_000_000L;
    private static final int HEX_BYTES_MAX = 64;
    private static final List<Compression> CODECS = List.of(
        Compression.NONE, Compression.gzip().build(), Compression.snappy().build(),
        Compression.lz4().build(), Compression.zstd().build());

    /** The header fields of a batch; the defaults are a plain producer's. */
    private static final class Batch {
        Compression codec = Compression.NONE;
        TimestampType timestampType = TimestampType.CREATE_TIME;
        long baseOffset = 0;
        long logAppendTime = RecordBatch.NO_TIMESTAMP;
        long producerId = RecordBatch.NO_PRODUCER_ID;
        short producerEpoch = RecordBatch.NO_PRODUCER_EPOCH;
        int baseSequence = RecordBatch.NO_SEQUENCE;
        boolean transactional = false;
        int leaderEpoch = RecordBatch.NO_PARTITION_LEADER_EPOCH;

        Batch codec(Compression codec) {
            this.codec = codec;
            return this;
        }

        Batch producer(long id, int epoch, int sequence, boolean transactional) {
            this.producerId = id;
            this.producerEpoch = (short) epoch;
            this.baseSequence = sequence;
            this.transactional = transactional;
            return this;
        }

        MemoryRecordsBuilder open() {
            return MemoryRecords.builder(
                ByteBuffer.allocate(1 << 20), RecordBatch.MAGIC_VALUE_V2, codec, timestampType,
                baseOffset, logAppendTime, producerId, producerEpoch, baseSequence, transactional,
                false, leaderEpoch);
        }
    }

    public static void main(String[] args) throws IOException {
        switch (args[0]) {
            case "write" -> write(Path.of(args[1]));
            case "describe" -> {
                List<Path> files = new ArrayList<>();
                for (int i = 1; i < args.length; i++) {
                    files.add(Path.of(args[i]));
                }
                System.out.println(describe(files));
            }
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private static void write(Path directory) throws IOException {
        List<Path> files = new ArrayList<>();
        for (Compression codec : CODECS) {
            files.add(save(directory, "features-" + codec.type().name, features(codec)));
            files.add(save(directory, "large-" + codec.type().name, large(codec)));
        }
        files.add(save(directory, "incompressible-lz4", incompressible(CODECS.get(3))));
        files.add(save(directory, "many-records", manyRecords()));
        files.add(save(directory, "timestamps", timestamps()));
        files.add(save(directory, "no-timestamp", noTimestamp()));
        files.add(save(directory, "log-append-time", logAppendTime()));
        files.add(save(directory, "idempotent", idempotent()));
        files.add(save(directory, "sequence-wraps", sequenceWraps()));
        files.add(save(directory, "transactional", transactional()));
        files.add(save(directory, "offset-gaps", offsetGaps()));
        files.add(save(directory, "commit-marker", marker(ControlRecordType.COMMIT)));
        files.add(save(directory, "abort-marker", marker(ControlRecordType.ABORT)));
        files.add(save(directory, "three-batches", threeBatches()));
        Files.writeString(directory.resolve("golden.json"), describe(files) + "\n");
        save(directory, "legacy-format-0", legacy(RecordBatch.MAGIC_VALUE_V0));
        save(directory, "legacy-format-1", legacy(RecordBatch.MAGIC_VALUE_V1));
    }

    private static MemoryRecords features(Compression codec) {
        MemoryRecordsBuilder builder = new Batch().codec(codec).open();
        Header[] headers = {
            new RecordHeader("twice", bytes("first")),
            new RecordHeader("null", (byte[]) null),
            new RecordHeader("empty", new byte[0]),
            new RecordHeader("twice", bytes("second")),
            new RecordHeader("", bytes("empty key")),
            new RecordHeader("\u017elu\u0165", bytes("\u010desk\u00fd")),
        };
        builder.append(TIME, bytes("key"), bytes("value"));
        builder.append(TIME + 1, null, bytes("null key"));
        builder.append(TIME + 2, bytes("null value"), (byte[]) null);
        builder.append(TIME + 3, new byte[0], new byte[0]);
        builder.append(TIME + 4, (byte[]) null, (byte[]) null);
        builder.append(TIME + 5, bytes("with headers"), bytes("six of them"), headers);
        builder.append(TIME + 6, bytes("binary"), new byte[] {0, -1, 127, -128});
        return builder.build();
    }

    /** More than two LZ4 blocks and six Snappy blocks, compressible in part. */
    private static MemoryRecords large(Compression codec) {
        MemoryRecordsBuilder builder = new Batch().codec(codec).open();
        Random random = new Random(7);
        for (int i = 0; i < 70; i++) {
            byte[] value = new byte[2000];
            for (int at = 0; at < value.length; at++) {
                value[at] = (byte) ('a' + (at % 100 < 80 ? at % 7 : random.nextInt(26)));
            }
            builder.append(TIME + i, bytes("key-" + i), value);
        }
        return builder.build();
    }

    private static MemoryRecords incompressible(Compression codec) {
        MemoryRecordsBuilder builder = new Batch().codec(codec).open();
        byte[] value = new byte[70_000];
        new Random(11).nextBytes(value);
        builder.append(TIME, null, value);
        return builder.build();
    }

    private static MemoryRecords manyRecords() {
        MemoryRecordsBuilder builder = new Batch().open();
        for (int i = 0; i < 600; i++) {
            byte[] key = bytes(Integer.toString(i % 17));
            builder.append(TIME + i / 10, key, bytes(Integer.toString(i)));
        }
        return builder.build();
    }

    private static MemoryRecords timestamps() {
        long[] timestamps = {
            TIME, TIME - 1, 0, TIME + 100, RecordBatch.NO_TIMESTAMP, Long.MAX_VALUE, 1,
        };
        MemoryRecordsBuilder builder = new Batch().open();
        for (long timestamp : timestamps) {
            builder.append(timestamp, bytes("t"), bytes(Long.toString(timestamp)));
        }
        return builder.build();
    }

    private static MemoryRecords noTimestamp() {
        MemoryRecordsBuilder builder = new Batch().open();
        builder.append(RecordBatch.NO_TIMESTAMP, bytes("a"), bytes("b"));
        builder.append(RecordBatch.NO_TIMESTAMP, bytes("c"), bytes("d"));
        return builder.build();
    }

    private static MemoryRecords logAppendTime() {
        Batch batch = new Batch();
        batch.timestampType = TimestampType.LOG_APPEND_TIME;
        batch.logAppendTime = TIME + 5000;
        batch.baseOffset = 42;
        batch.leaderEpoch = 3;
        MemoryRecordsBuilder builder = batch.open();
        builder.append(TIME, bytes("a"), bytes("1"));
        builder.append(TIME + 9000, bytes("b"), bytes("2"));
        return builder.build();
    }

    private static MemoryRecords idempotent() {
        MemoryRecordsBuilder builder = new Batch().producer(4_000_000_001L, 7, 12, false).open();
        builder.append(TIME, bytes("a"), bytes("1"));
        builder.append(TIME, bytes("b"), bytes("2"));
        return builder.build();
    }

    private static MemoryRecords sequenceWraps() {
        Batch batch = new Batch().producer(1, 0, Integer.MAX_VALUE - 1, false);
        MemoryRecordsBuilder builder = batch.open();
        for (int i = 0; i < 4; i++) {
            builder.append(TIME, null, bytes(Integer.toString(i)));
        }
        return builder.build();
    }

    private static MemoryRecords transactional() {
        Batch batch = new Batch().codec(CODECS.get(3)).producer(9, 1, 0, true);
        MemoryRecordsBuilder builder = batch.open();
        builder.append(TIME, bytes("a"), bytes("in a transaction"));
        return builder.build();
    }

    /** What compaction leaves: offsets with gaps, and a last offset beyond the last record. */
    private static MemoryRecords offsetGaps() {
        Batch batch = new Batch();
        batch.baseOffset = 1000;
        MemoryRecordsBuilder builder = batch.open();
        builder.appendWithOffset(1002, TIME, bytes("a"), bytes("1"));
        builder.appendWithOffset(1017, TIME + 1, bytes("b"), bytes("2"));
        builder.overrideLastOffset(1020);
        return builder.build();
    }

    private static MemoryRecords marker(ControlRecordType type) {
        EndTransactionMarker marker = new EndTransactionMarker(type, 2);
        return MemoryRecords.withEndTransactionMarker(77, TIME, 5, 9, (short) 1, marker);
    }

    private static MemoryRecords threeBatches() {
        ByteBuffer all = ByteBuffer.allocate(4096);
        for (int i = 0; i < 3; i++) {
            Batch batch = new Batch().codec(CODECS.get(i));
            batch.baseOffset = 10 * i;
            MemoryRecordsBuilder builder = batch.open();
            builder.append(TIME + i, bytes("batch"), bytes(Integer.toString(i)));
            all.put(builder.build().buffer());
        }
        all.flip();
        return MemoryRecords.readableRecords(all);
    }

    private static MemoryRecords legacy(byte magic) {
        MemoryRecordsBuilder builder = MemoryRecords.builder(
            ByteBuffer.allocate(1024), magic, Compression.NONE, TimestampType.CREATE_TIME, 0L);
        long timestamp = magic == RecordBatch.MAGIC_VALUE_V0 ? RecordBatch.NO_TIMESTAMP : TIME;
        builder.append(timestamp, bytes("old"), bytes("as long as a header of format 2"));
        builder.append(timestamp, bytes("old"), bytes("as long as a header of format 2"));
        return builder.build();
    }

    private static Path save(Path directory, String name, MemoryRecords records)
            throws IOException {
        ByteBuffer buffer = records.buffer().duplicate();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        Path file = directory.resolve(name + ".bin");
        Files.write(file, bytes);
        return file;
    }

    private static String describe(List<Path> files) throws IOException {
        List<String> entries = new ArrayList<>();
        for (Path file : files) {
            ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file));
            MemoryRecords records = MemoryRecords.readableRecords(bytes);
            List<String> batches = new ArrayList<>();
            for (MutableRecordBatch batch : records.batches()) {
                batch.ensureValid();
                batches.add(describe(batch));
            }
            entries.add(String.format("{\"file\":\"%s\",\"batches\":[%s]}",
                file.getFileName(), String.join(",", batches)));
        }
        return "[\n" + String.join(",\n", entries) + "\n]";
    }

    private static String describe(RecordBatch batch) {
        List<String> records = new ArrayList<>();
        for (Record record : batch) {
            record.ensureValid();
            List<String> headers = new ArrayList<>();
            for (Header header : record.headers()) {
                String key = describe(bytes(header.key()));
                headers.add("[" + key + "," + describe(header.value()) + "]");
            }
            records.add(String.format("\n {\"offset\":%d,\"timestamp\":%d,\"sequence\":%d,"
                + "\"key\":%s,\"value\":%s,\"headers\":[%s]}",
                record.offset(), record.timestamp(), record.sequence(),
                describe(bytes(record.key())), describe(bytes(record.value())),
                String.join(",", headers)));
        }
        return String.format("{\"base_offset\":%d,\"last_offset\":%d,\"size\":%d,"
            + "\"leader_epoch\":%d,\"crc\":%d,\"compression\":\"%s\",\"log_append_time\":%b,"
            + "\"transactional\":%b,\"control\":%b,\"max_timestamp\":%d,\"producer_id\":%d,"
            + "\"producer_epoch\":%d,\"base_sequence\":%d,\"last_sequence\":%d,"
            + "\"records_count\":%d,\"records\":[%s]}",
            batch.baseOffset(), batch.lastOffset(), batch.sizeInBytes(),
            batch.partitionLeaderEpoch(), batch.checksum(), batch.compressionType().name,
            batch.timestampType() == TimestampType.LOG_APPEND_TIME, batch.isTransactional(),
            batch.isControlBatch(), batch.maxTimestamp(), batch.producerId(),
            batch.producerEpoch(), batch.baseSequence(), batch.lastSequence(),
            batch.countOrNull(), String.join(",", records));
    }

    /** Hex for short values, length and CRC32C for long ones, null for null. */
    private static String describe(byte[] bytes) {
        if (bytes == null) {
            return "null";
        }
        if (bytes.length <= HEX_BYTES_MAX) {
            return "\"" + HexFormat.of().formatHex(bytes) + "\"";
        }
        CRC32C crc = new CRC32C();
        crc.update(bytes);
        return String.format("{\"length\":%d,\"crc32c\":%d}", bytes.length, crc.getValue());
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
