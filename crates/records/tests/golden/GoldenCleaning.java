import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecords.RecordFilter;
import org.apache.kafka.common.record.internal.MemoryRecords.RecordFilter.BatchRetention;
import org.apache.kafka.common.record.internal.MemoryRecords.RecordFilter.BatchRetentionResult;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.BufferSupplier;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.storage.internals.log.Cleaner;
import org.apache.kafka.storage.internals.log.CleanerStats;
import org.apache.kafka.storage.internals.log.OffsetMap;
import org.apache.kafka.storage.internals.log.SkimpyOffsetMap;

/**
 * Cleans batches with Kafka's own classes: {@code SkimpyOffsetMap}, the cleaner's
 * {@code shouldRetainRecord} and {@code MemoryRecords.filterTo}.
 *
 * <pre>
 * java -cp JARS GoldenCleaning.java DIRECTORY   cleaning.json, one object per case
 * </pre>
 */
public final class GoldenCleaning {
    private static final long TIME = 1_700_000_000_000L;
    private static final long NOW = TIME + 1_000_000;
    private static final long RETENTION = 86_400_000;
    private static final double LOAD_FACTOR = 0.9;
    private static final List<Compression> CODECS = List.of(
        Compression.NONE, Compression.gzip().build(), Compression.snappy().build(),
        Compression.lz4().build(), Compression.zstd().build());
    private static final List<String> CASES = new ArrayList<>();

    /** One round over one log. */
    private static final class Round {
        String name;
        byte[] before;
        int mapBytes = 2400;
        long fromOffset = 0;
        long now = NOW;
        long firstUncleanableOffset = Long.MAX_VALUE;
        Map<Long, Long> lastOffsets = new LinkedHashMap<>();

        Round(String name, MemoryRecords... batches) {
            this(name, joined(batches));
        }

        Round(String name, byte[] before) {
            this.name = name;
            this.before = before;
        }

        Round now(long now) {
            this.now = now;
            return this;
        }

        Round last(long producerId, long offset) {
            lastOffsets.put(producerId, offset);
            return this;
        }

        /** Runs the round, keeps it as a case and gives back what is left of the log. */
        byte[] run() throws Exception {
            SkimpyOffsetMap map = new SkimpyOffsetMap(mapBytes);
            fill(map);
            ByteBuffer output = ByteBuffer.allocate(1 << 20);
            MemoryRecords.readableRecords(ByteBuffer.wrap(before))
                .filterTo(filter(map), output, BufferSupplier.create());
            output.flip();
            byte[] after = new byte[output.remaining()];
            output.get(after);
            CASES.add(describe(map.latestOffset() + 1, after));
            return after;
        }

        /** As {@code Cleaner.buildOffsetMap}, of which no part can be called without a log. */
        private void fill(OffsetMap map) throws Exception {
            int sizeMax = (int) (map.slots() * LOAD_FACTOR);
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(before));
            for (RecordBatch batch : records.batches()) {
                if (!batch.isControlBatch()) {
                    for (Record record : batch) {
                        if (record.hasKey() && record.offset() >= fromOffset) {
                            if (map.size() >= sizeMax) {
                                return;
                            }
                            map.put(record.key(), record.offset());
                        }
                    }
                }
                if (batch.lastOffset() >= fromOffset) {
                    map.updateLatestOffset(batch.lastOffset());
                }
            }
        }

        private RecordFilter filter(OffsetMap map) throws Exception {
            Cleaner cleaner = new Cleaner(0, map, 1024, 1024, LOAD_FACTOR, null, Time.SYSTEM,
                partition -> { });
            Method shouldRetainRecord = Cleaner.class.getDeclaredMethod("shouldRetainRecord",
                OffsetMap.class, boolean.class, RecordBatch.class, Record.class,
                CleanerStats.class, long.class);
            shouldRetainRecord.setAccessible(true);
            CleanerStats stats = new CleanerStats(Time.SYSTEM);
            return new RecordFilter(now, RETENTION) {
                @Override
                protected BatchRetentionResult checkBatchRetention(RecordBatch batch) {
                    Long last = lastOffsets.get(batch.producerId());
                    boolean isLast = batch.hasProducerId() && last != null
                        && last == batch.lastOffset();
                    boolean staysEmpty = isLast || batch.nextOffset() == firstUncleanableOffset;
                    return new BatchRetentionResult(staysEmpty
                        ? BatchRetention.RETAIN_EMPTY : BatchRetention.DELETE_EMPTY, false);
                }

                @Override
                protected boolean shouldRetainRecord(RecordBatch batch, Record record) {
                    try {
                        return batch.isControlBatch() || (boolean) shouldRetainRecord.invoke(
                            cleaner, map, false, batch, record, stats, now);
                    } catch (ReflectiveOperationException e) {
                        throw new IllegalStateException(e);
                    }
                }
            };
        }

        private String describe(long endOffset, byte[] after) {
            String last = lastOffsets.entrySet().stream()
                .map(entry -> "[" + entry.getKey() + "," + entry.getValue() + "]")
                .collect(Collectors.joining(","));
            return String.format("{\"name\":\"%s\",\"map_bytes\":%d,\"from_offset\":%d,"
                + "\"end_offset\":%d,\"now_ms\":%d,\"delete_retention_ms\":%d,"
                + "\"first_uncleanable_offset\":%d,\"last_offsets\":[%s],%n \"before\":\"%s\",%n"
                + " \"after\":\"%s\"}", name, mapBytes, fromOffset, endOffset, now, RETENTION,
                firstUncleanableOffset, last, HexFormat.of().formatHex(before),
                HexFormat.of().formatHex(after));
        }
    }

    /** The header fields of a batch; the defaults are a plain producer's, in leader epoch 3. */
    private static final class Batch {
        Compression codec = Compression.NONE;
        TimestampType timestampType = TimestampType.CREATE_TIME;
        long baseOffset;
        long logAppendTime = RecordBatch.NO_TIMESTAMP;
        long producerId = RecordBatch.NO_PRODUCER_ID;
        short producerEpoch = RecordBatch.NO_PRODUCER_EPOCH;
        int baseSequence = RecordBatch.NO_SEQUENCE;
        boolean transactional = false;

        Batch(long baseOffset) {
            this.baseOffset = baseOffset;
        }

        Batch codec(Compression codec) {
            this.codec = codec;
            return this;
        }

        Batch appendedAt(long logAppendTime) {
            this.timestampType = TimestampType.LOG_APPEND_TIME;
            this.logAppendTime = logAppendTime;
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
                false, 3);
        }

        /** A record for each {@code key=value}; no {@code =} is a null value, no key a null key. */
        MemoryRecords of(String... records) {
            MemoryRecordsBuilder builder = open();
            for (int i = 0; i < records.length; i++) {
                builder.append(TIME + 10 * i, key(records[i]), value(records[i]));
            }
            return builder.build();
        }
    }

    public static void main(String[] args) throws Exception {
        for (Compression codec : CODECS) {
            superseded(codec);
            tombstones(codec);
        }
        wholeBatches();
        emptyBatches();
        logAppendTime();
        timestamps();
        keysAndRanges();
        transactions();
        Files.writeString(Path.of(args[0]).resolve("cleaning.json"),
            "[\n" + String.join(",\n", CASES) + "\n]\n");
    }

    private static void superseded(Compression codec) throws Exception {
        MemoryRecordsBuilder first =
            new Batch(100).codec(codec).producer(4_000_000_001L, 7, 12, false).open();
        Header[] headers = {
            new RecordHeader("h", bytes("1")), new RecordHeader("null", (byte[]) null),
        };
        first.append(TIME, bytes("a"), bytes("superseded in the batch"));
        first.append(TIME + 5, bytes("b"), bytes("stays"), headers);
        first.append(TIME + 3, bytes("a"), bytes("stays, before the time of the one before"));
        first.append(TIME + 9, bytes("c"), bytes("superseded by the next batch"), headers);
        first.append(TIME + 7, bytes(""), bytes("an empty key"));
        MemoryRecords second = new Batch(105).codec(codec).of("c=last", "d=only");
        Round round = new Round("superseded-" + codec.type().name, first.build(), second);
        round.fromOffset = 100;
        new Round("superseded-again-" + codec.type().name, round.run()).run();
    }

    /** Four rounds: tombstones get a horizon, wait for it, lose a neighbour, and go. */
    private static void tombstones(Compression codec) throws Exception {
        String name = "tombstones-" + codec.type().name;
        MemoryRecords log = new Batch(0).codec(codec).producer(5, 0, 0, false)
            .of("a=1", "b=1", "a", "c=1", "d=1", "e");
        byte[] withHorizon = new Round(name + "-first", log).run();
        byte[] waiting = new Round(name + "-waits", withHorizon).now(NOW + RETENTION - 1).run();
        byte[] next = joined(new Batch(6).codec(codec).of("b=2"));
        byte[] fewer = new Round(name + "-loses-a-neighbour", joined(waiting, next))
            .now(NOW + 5).run();
        byte[] gone = new Round(name + "-go", fewer).now(NOW + RETENTION).run();
        new Round(name + "-gone", gone).now(NOW + 2 * RETENTION).run();
    }

    private static void wholeBatches() throws Exception {
        new Round("nothing-to-remove", new Batch(0).of("a=1", "b=2"), new Batch(2).of("c=3")).run();
        new Round("first-batch-goes", new Batch(0).of("a=1", "b=1"),
            new Batch(2).of("a=2", "b=2")).run();
        new Round("only-the-tombstone-goes", new Batch(0).of("a", "b=1"),
            new Batch(2).of("a=1")).run();
        byte[] withHorizon = new Round("only-a-tombstone", new Batch(0).of("a")).run();
        new Round("only-a-tombstone-goes", withHorizon).now(NOW + RETENTION + 1).run();
    }

    private static void emptyBatches() throws Exception {
        for (Compression codec : CODECS) {
            MemoryRecords log = new Batch(10).codec(codec).producer(9, 2, 40, false)
                .of("a=1", "b=1", "a=2");
            byte[] empty = new Round("emptied-" + codec.type().name, log,
                new Batch(13).of("a=3", "b=3")).last(9, 12).run();
            new Round("empty-stays-" + codec.type().name, empty).last(9, 12).run();
            new Round("empty-goes-" + codec.type().name, empty).last(9, 70).run();
        }
        new Round("no-producer-keeps-no-batch", new Batch(0).of("a=1"), new Batch(1).of("a=2"))
            .last(RecordBatch.NO_PRODUCER_ID, 0).run();
        MemoryRecords log = new Batch(0).producer(1, 0, 0, true).of("a", "b");
        byte[] withHorizon = new Round("transactional-tombstones", log).last(1, 1).run();
        new Round("transactional-tombstones-go", withHorizon).now(NOW + RETENTION)
            .last(1, 1).run();
        MemoryRecords appended = new Batch(0).appendedAt(TIME + 77).producer(1, 0, 0, false)
            .of("a=1");
        new Round("emptied-log-append-time", appended, new Batch(1).of("a=2")).last(1, 0).run();
        byte[] tombstone = new Round("last-of-the-round-stays", new Batch(4).of("a")).run();
        Round end = new Round("last-of-the-round-is-emptied", tombstone).now(NOW + RETENTION);
        end.firstUncleanableOffset = 5;
        Round again = new Round("last-of-the-round-is-empty", end.run());
        again.firstUncleanableOffset = 5;
        new Round("last-of-an-earlier-round-goes", again.run()).run();
    }

    private static void logAppendTime() throws Exception {
        MemoryRecords log = new Batch(0).appendedAt(TIME + 5000).of("a=1", "b=1", "a=2", "c=1");
        byte[] partial = new Round("log-append-time", log).run();
        byte[] next = joined(new Batch(4).appendedAt(TIME + 6000).of("b", "c=2", "d"));
        byte[] withHorizon = new Round("log-append-time-tombstones", joined(partial, next)).run();
        byte[] last = joined(new Batch(7).appendedAt(TIME + 7000).of("c=3"));
        byte[] fewer =
            new Round("log-append-time-with-horizon", joined(withHorizon, last)).run();
        new Round("log-append-time-tombstones-go", fewer).now(NOW + RETENTION).run();
    }

    private static void timestamps() throws Exception {
        MemoryRecordsBuilder builder = new Batch(0).open();
        long[] timestamps = {TIME, 0, RecordBatch.NO_TIMESTAMP, Long.MAX_VALUE, TIME + 2, TIME + 1};
        for (int i = 0; i < timestamps.length; i++) {
            builder.append(timestamps[i], bytes("k" + i), bytes("1"));
        }
        MemoryRecords log = builder.build();
        new Round("timestamps-first-goes", log, new Batch(6).of("k0=2")).run();
        new Round("timestamps-largest-goes", log, new Batch(6).of("k3=2")).run();
        new Round("timestamps-tombstone", log, new Batch(6).of("k0=2", "k1")).run();
        new Round("timestamps-none-is-left", log,
            new Batch(6).of("k0=2", "k1=2", "k3=2", "k4=2", "k5=2")).run();
        MemoryRecordsBuilder extremes = new Batch(0).open();
        extremes.append(Long.MAX_VALUE, bytes("a"), bytes("1"));
        extremes.append(0, bytes("b"), (byte[]) null);
        extremes.append(RecordBatch.NO_TIMESTAMP, bytes("c"), bytes("1"));
        new Round("timestamps-extremes-with-horizon", extremes.build()).run();
    }

    private static void keysAndRanges() throws Exception {
        new Round("without-keys", new Batch(0).of("=1", "a=1", "=2"), new Batch(3).of("=3")).run();
        Round partial = new Round("dirty-from-inside-a-batch", new Batch(0).of("a=1", "b=1", "c=1"),
            new Batch(3).of("a=2", "b=2", "c=2"), new Batch(6).of("b"));
        partial.fromOffset = 4;
        partial.run();
        MemoryRecords[] log = {
            new Batch(0).of("a=1", "b=1", "c=1", "d=1"), new Batch(4).of("e=1", "a=2", "f=1", "g"),
            new Batch(8).of("=4", "b=2", "a=3"),
        };
        // A full map of Kafka's stops at a key that it knows, too; ours takes its later offset. So
        // the record that finds no room has another key in each of these.
        for (int keys : List.of(1, 4, 6, 9)) {
            Round full = new Round("map-of-" + keys + "-keys", log);
            full.mapBytes = 24 * (keys + 1);
            full.run();
        }
        MemoryRecordsBuilder gaps = new Batch(1000).open();
        gaps.appendWithOffset(1002, TIME, bytes("a"), bytes("1"));
        gaps.appendWithOffset(1017, TIME + 1, bytes("b"), bytes("2"));
        gaps.overrideLastOffset(1020);
        new Round("offset-gaps", gaps.build(), new Batch(1030).of("a=2")).run();
    }

    private static void transactions() throws Exception {
        EndTransactionMarker commit = new EndTransactionMarker(ControlRecordType.COMMIT, 2);
        MemoryRecords marker =
            MemoryRecords.withEndTransactionMarker(3, TIME, 5, 9, (short) 1, commit);
        MemoryRecords data = new Batch(0).codec(CODECS.get(3)).producer(9, 1, 0, true)
            .of("a=1", "b=1", "c=1");
        new Round("transaction", data, marker, new Batch(4).of("b=2")).run();
        MemoryRecords other =
            MemoryRecords.withEndTransactionMarker(4, TIME, 5, 9, (short) 1, commit);
        MemoryRecords keyOfAMarker = new Batch(0).of("\0\0\0\1=1", "a=1", "a=2");
        new Round("markers-have-no-keys", keyOfAMarker, marker, other).run();
        new Round("markers-are-not-superseded", marker, other, new Batch(5).of("\0\0\0\1=1")).run();
    }

    private static byte[] key(String record) {
        String key = record.split("=", 2)[0];
        return key.isEmpty() ? null : bytes(key);
    }

    private static byte[] value(String record) {
        String[] parts = record.split("=", 2);
        return parts.length == 1 ? null : bytes(parts[1]);
    }

    private static byte[] joined(MemoryRecords... parts) {
        byte[][] bytes = new byte[parts.length][];
        for (int i = 0; i < parts.length; i++) {
            bytes[i] = new byte[parts[i].sizeInBytes()];
            parts[i].buffer().get(bytes[i]);
        }
        return joined(bytes);
    }

    private static byte[] joined(byte[]... parts) {
        ByteBuffer all = ByteBuffer.allocate(1 << 20);
        for (byte[] part : parts) {
            all.put(part);
        }
        all.flip();
        byte[] bytes = new byte[all.remaining()];
        all.get(bytes);
        return bytes;
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
