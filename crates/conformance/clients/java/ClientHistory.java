import java.io.BufferedWriter;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;

/**
 * What all clients of one process did, in the file that {@code moldau lab check --history} reads:
 * one operation in each line. docs/formats.md describes it.
 */
final class ClientHistory implements AutoCloseable {
    /** A value that no client sends, for records whose bytes are not one. */
    private static final String FOREIGN = Long.toUnsignedString(-1);

    private final long startNs = System.nanoTime();
    private final AtomicLong values = new AtomicLong();
    private final AtomicInteger clients = new AtomicInteger();
    private final AtomicLong committed = new AtomicLong();
    private final AtomicLong aborted = new AtomicLong();
    private final AtomicLong polled = new AtomicLong();
    private final BufferedWriter writer;

    ClientHistory(Path file) throws IOException {
        writer = Files.newBufferedWriter(file, StandardCharsets.UTF_8);
    }

    /** The number of the next client. */
    int client() {
        return clients.getAndIncrement();
    }

    long nowUs() {
        return (System.nanoTime() - startNs) / 1_000;
    }

    /** Transactions that were committed. */
    long committed() {
        return committed.get();
    }

    /** Transactions that were aborted. */
    long aborted() {
        return aborted.get();
    }

    /** Records that consumers received. */
    long polled() {
        return polled.get();
    }

    /** Sends and polls outside of transactions. */
    Operation alone(int client) {
        return new Operation(client, false);
    }

    Operation transaction(int client) {
        return new Operation(client, true);
    }

    @Override
    public synchronized void close() throws IOException {
        writer.close();
    }

    private synchronized void write(int client, String more, String outcome, List<Step> steps) {
        String lines = steps.stream().map(Step::json).collect(Collectors.joining(","));
        try {
            writer.write("{\"client\":" + client + more + ",\"outcome\":\"" + outcome
                + "\",\"steps\":[" + lines + "]}\n");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** One request. */
    private static class Step {
        final long fromUs;
        volatile long toUs;
        private final String action;

        Step(long fromUs, long toUs, String action) {
            this.fromUs = fromUs;
            this.toUs = toUs;
            this.action = action;
        }

        String action() {
            return action;
        }

        final String json() {
            return "{\"from_us\":" + fromUs + ",\"to_us\":" + toUs + "," + action() + "}";
        }
    }

    /** The send of one record. The producer's thread has the answer. */
    final class Send extends Step {
        /** Eight bytes, big endian. */
        final long value = values.incrementAndGet();
        private final int partition;
        private volatile boolean acknowledged;
        private volatile boolean answered;
        private volatile Long offset;

        private Send(int partition) {
            super(nowUs(), 0, "");
            this.partition = partition;
        }

        void answer(RecordMetadata metadata, Exception error) {
            acknowledged = error == null;
            offset = acknowledged && metadata.hasOffset() ? metadata.offset() : null;
            toUs = nowUs();
            answered = true;
        }

        @Override
        String action() {
            return "\"send\":{\"partition\":" + partition + ",\"value\":" + value
                + ",\"offset\":" + offset + "}";
        }
    }

    /** A transaction, or sends and polls outside of transactions; written by {@link #close}. */
    final class Operation implements AutoCloseable {
        private final int client;
        private final boolean isTransaction;
        private final List<Step> steps = new ArrayList<>();
        private Long commitUs;
        private boolean isCommitted;

        private Operation(int client, boolean isTransaction) {
            this.client = client;
            this.isTransaction = isTransaction;
        }

        Send send(int partition) {
            Send send = new Send(partition);
            steps.add(send);
            return send;
        }

        void poll(long fromUs, int partition, List<ConsumerRecord<byte[], byte[]>> records) {
            polled.addAndGet(records.size());
            String seen = records.stream()
                .map(it -> "{\"offset\":" + it.offset() + ",\"value\":" + value(it.value()) + "}")
                .collect(Collectors.joining(","));
            add(fromUs, "\"poll\":{\"partition\":" + partition + ",\"records\":[" + seen + "]}");
        }

        /** The position in a partition changed. */
        void position(long fromUs, int partition) {
            add(fromUs, "\"position\":{\"partition\":" + partition + "}");
        }

        /** The client has polled all of a partition. */
        void end(long fromUs, int partition) {
            add(fromUs, "\"end\":{\"partition\":" + partition + "}");
        }

        /** Whether a send has failed, or has no answer. */
        boolean hasFailed() {
            return steps.stream().anyMatch(it -> it instanceof Send send && !send.acknowledged);
        }

        /** The client is about to ask for the commit. */
        void ask() {
            commitUs = nowUs();
        }

        /** The cluster has committed the transaction. */
        void committed() {
            isCommitted = true;
        }

        /** Writes it, whatever ended it: without a request to commit it has no effect. */
        @Override
        public void close() {
            long nowUs = nowUs();
            for (Step step : steps) {
                if (step instanceof Send send && !send.answered) {
                    send.toUs = nowUs;
                }
            }
            if (!isTransaction) {
                steps.forEach(step -> write(client, "", outcome(step), List.of(step)));
            } else if (isCommitted) {
                committed.incrementAndGet();
                write(client, ",\"commit_us\":" + commitUs, "committed", steps);
            } else if (commitUs != null) {
                write(client, ",\"commit_us\":" + commitUs, "unknown", steps);
            } else {
                aborted.incrementAndGet();
                write(client, "", "aborted", steps);
            }
        }

        private void add(long fromUs, String action) {
            steps.add(new Step(fromUs, nowUs(), action));
        }

        private static String outcome(Step step) {
            return step instanceof Send send && !send.acknowledged ? "unknown" : "committed";
        }

        private static String value(byte[] bytes) {
            return bytes == null || bytes.length != Long.BYTES ? FOREIGN
                : Long.toUnsignedString(java.nio.ByteBuffer.wrap(bytes).getLong());
        }
    }
}
