import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLongArray;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends and polls under faults, and records all of it; ../README.md describes its interface. */
public final class HistorySession {
    private static final int PARTITIONS = 4;
    private static final int PLACES = 8;
    private static final int SENDS_MAX = 4;
    /** Records that a consumer goes back when it begins to read, and when it seeks, at most. */
    private static final int BACK_MAX = 200;
    private static final int ABORTED_PERCENT = 20;
    private static final int SEEK_PERCENT = 3;
    /** Mean pause of a producer between two operations. */
    private static final int PAUSE_MS = 20;
    private static final Duration POLL = Duration.ofMillis(50);
    private static final Duration CLOSE = Duration.ofSeconds(5);
    /** How long the end of open transactions and the last consumer may take, each. */
    private static final long END_MS = 60_000;

    private enum Role {
        SENDER, TRANSACTIONS, EXCHANGE, POLLER;

        static Role of(int place) {
            return values()[place % values().length];
        }
    }

    private final String bootstrap;
    private final String topic;
    private final ClientHistory history;
    private final List<TopicPartition> partitions = new ArrayList<>();
    /** The end of each partition, as far as it was polled. */
    private final AtomicLongArray ends = new AtomicLongArray(PARTITIONS);
    private volatile boolean isOver;
    /** An error of a client that no fault explains; empty if there was none. */
    private volatile String failure = "";

    private HistorySession(String bootstrap, String topic, ClientHistory history) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.history = history;
        for (int partition = 0; partition < PARTITIONS; partition++) {
            partitions.add(new TopicPartition(topic, partition));
        }
    }

    public static void main(String[] args) throws Exception {
        boolean ok;
        try (ClientHistory history = new ClientHistory(Path.of(args[2]))) {
            ok = new HistorySession(args[0], args[1], history).run(Path.of(args[3]));
        }
        System.out.flush();
        Runtime.getRuntime().halt(ok ? 0 : 1);
    }

    private boolean run(Path stop) throws Exception {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(properties)) {
            admin.createTopics(List.of(
                new NewTopic(topic, Optional.of(PARTITIONS), Optional.empty()))).all().get();
        }
        List<Thread> places = new ArrayList<>();
        for (int place = 0; place < PLACES; place++) {
            int number = place;
            Thread thread = new Thread(() -> occupy(number), "place " + place);
            thread.setUncaughtExceptionHandler((of, error) -> {
                failure = of.getName() + ": " + error;
                error.printStackTrace();
            });
            places.add(thread);
        }
        places.forEach(Thread::start);
        while (!Files.exists(stop)) {
            System.err.println("progress " + history.committed() + " " + history.polled());
            Thread.sleep(POLL.toMillis());
        }
        isOver = true;
        for (Thread place : places) {
            place.join();
        }
        endTransactions();
        int read = readAll();
        String counts = history.committed() + " committed, " + history.aborted() + " aborted, "
            + history.polled() + " polled";
        System.err.println(counts);
        boolean isUsed = history.committed() > 0 && history.aborted() > 0 && history.polled() > 0;
        check("transactions are committed and aborted, and records polled", isUsed, counts);
        check("the last consumer reaches the end of each partition", read == PARTITIONS,
            read + " of " + PARTITIONS);
        check("clients fail by Kafka's errors only", failure.isEmpty(), failure);
        return isUsed && read == PARTITIONS && failure.isEmpty();
    }

    /** Clients one after the other: each lives until it fails. */
    private void occupy(int place) {
        while (!isOver) {
            Client client = new Client(place);
            try {
                client.work();
            } catch (KafkaException e) {
                System.err.println("client " + client.number + " gives up: " + e);
            }
        }
    }

    /** Each place has its own transactional id, whose next producer ends what is open. */
    private void endTransactions() {
        for (int place = 0; place < PLACES; place++) {
            boolean isTransactional = Role.of(place) == Role.TRANSACTIONS
                || Role.of(place) == Role.EXCHANGE;
            long deadline = System.currentTimeMillis() + END_MS;
            for (boolean ended = !isTransactional; !ended;) {
                try (KafkaProducer<byte[], byte[]> producer = producer(place)) {
                    producer.initTransactions();
                    ended = true;
                } catch (KafkaException e) {
                    if (System.currentTimeMillis() > deadline) {
                        throw e;
                    }
                }
            }
        }
    }

    /** Polls each partition from its start to its end; how many were read so. */
    private int readAll() {
        int number = history.client();
        List<TopicPartition> left = new ArrayList<>(partitions);
        long deadline = System.currentTimeMillis() + END_MS;
        try (var consumer = consumer(); var operation = history.alone(number)) {
            long startUs = history.nowUs();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> to = new HashMap<>(consumer.endOffsets(partitions));
            while (!left.isEmpty() && System.currentTimeMillis() < deadline) {
                record(operation, consumer);
                left.removeIf(it -> {
                    boolean isRead = consumer.position(it) >= to.get(it);
                    if (isRead) {
                        operation.end(startUs, it.partition());
                    }
                    return isRead;
                });
            }
        }
        return PARTITIONS - left.size();
    }

    /** Polls once. */
    private void record(
            ClientHistory.Operation operation, KafkaConsumer<byte[], byte[]> consumer) {
        long fromUs = history.nowUs();
        ConsumerRecords<byte[], byte[]> records = consumer.poll(POLL);
        for (TopicPartition polled : records.partitions()) {
            var of = records.records(polled);
            operation.poll(fromUs, polled.partition(), of);
            long last = of.get(of.size() - 1).offset();
            ends.accumulateAndGet(polled.partition(), last, Math::max);
        }
    }

    /** One client, from its first request to the failure that ends it. */
    private final class Client {
        private final int place;
        private final int number = history.client();
        private final Random random = new Random();

        Client(int place) {
            this.place = place;
        }

        void work() {
            switch (Role.of(place)) {
                case SENDER -> sendAlone();
                case TRANSACTIONS -> transact(null);
                case EXCHANGE -> {
                    try (var consumer = reading()) {
                        transact(consumer);
                    }
                }
                case POLLER -> {
                    try (var consumer = reading()) {
                        while (!isOver) {
                            try (var operation = history.alone(number)) {
                                poll(operation, consumer);
                            }
                        }
                    }
                }
            }
        }

        private void sendAlone() {
            KafkaProducer<byte[], byte[]> producer = producer(null);
            try {
                while (!isOver) {
                    pause();
                    try (var operation = history.alone(number)) {
                        for (int i = random.nextInt(SENDS_MAX); i >= 0; i--) {
                            send(producer, operation, random.nextInt(PARTITIONS));
                        }
                        producer.flush();
                    }
                }
            } finally {
                producer.close(CLOSE);
            }
        }

        /** Sends in transactions, and polls in them if there is a consumer. */
        private void transact(KafkaConsumer<byte[], byte[]> consumer) {
            KafkaProducer<byte[], byte[]> producer = producer(place);
            try {
                producer.initTransactions();
                while (!isOver) {
                    pause();
                    producer.beginTransaction();
                    try (var operation = history.transaction(number)) {
                        transaction(producer, consumer, operation);
                    }
                }
            } finally {
                producer.close(CLOSE);
            }
        }

        private void transaction(
                KafkaProducer<byte[], byte[]> producer, KafkaConsumer<byte[], byte[]> consumer,
                ClientHistory.Operation operation) {
            int first = random.nextInt(PARTITIONS);
            for (int i = 1 + random.nextInt(SENDS_MAX - 1); i >= 0; i--) {
                send(producer, operation, (first + random.nextInt(3)) % PARTITIONS);
                if (random.nextBoolean()) {
                    producer.flush();
                }
                if (consumer != null && random.nextBoolean()) {
                    poll(operation, consumer);
                }
            }
            producer.flush();
            if (operation.hasFailed() || random.nextInt(100) < ABORTED_PERCENT) {
                producer.abortTransaction();
                return;
            }
            operation.ask();
            producer.commitTransaction();
            operation.committed();
        }

        /** Rests, so that the length of the history is bounded. */
        private void pause() {
            try {
                Thread.sleep(random.nextInt(2 * PAUSE_MS));
            } catch (InterruptedException e) {
                throw new IllegalStateException("nobody interrupts a client", e);
            }
        }

        private void send(KafkaProducer<byte[], byte[]> producer,
                ClientHistory.Operation operation, int partition) {
            ClientHistory.Send send = operation.send(partition);
            byte[] value = ByteBuffer.allocate(Long.BYTES).putLong(send.value).array();
            producer.send(new ProducerRecord<>(topic, partition, null, value), send::answer);
        }

        private KafkaConsumer<byte[], byte[]> reading() {
            KafkaConsumer<byte[], byte[]> consumer = consumer();
            consumer.assign(partitions);
            partitions.forEach(partition -> seek(consumer, partition));
            return consumer;
        }

        /** Moves to a place not far from the end of a partition. */
        private void seek(KafkaConsumer<byte[], byte[]> consumer, TopicPartition partition) {
            long end = ends.get(partition.partition());
            consumer.seek(partition, Math.max(0, end - random.nextInt(BACK_MAX)));
        }

        /** Seeks now and then, and polls once. */
        private void poll(
                ClientHistory.Operation operation, KafkaConsumer<byte[], byte[]> consumer) {
            if (random.nextInt(100) < SEEK_PERCENT) {
                TopicPartition partition = partitions.get(random.nextInt(PARTITIONS));
                long fromUs = history.nowUs();
                seek(consumer, partition);
                operation.position(fromUs, partition.partition());
            }
            record(operation, consumer);
        }
    }

    /** A producer, transactional if it is of a place. */
    private KafkaProducer<byte[], byte[]> producer(Integer place) {
        Properties properties = properties();
        properties.put("key.serializer", ByteArraySerializer.class.getName());
        properties.put("value.serializer", ByteArraySerializer.class.getName());
        properties.put("linger.ms", "0");
        properties.put("delivery.timeout.ms", "8000");
        properties.put("max.block.ms", "15000");
        if (place != null) {
            properties.put("transactional.id", topic + "-" + place);
            properties.put("transaction.timeout.ms", "10000");
        }
        return new KafkaProducer<>(properties);
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        Properties properties = properties();
        properties.put("key.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("value.deserializer", ByteArrayDeserializer.class.getName());
        properties.put("isolation.level", "read_committed");
        properties.put("auto.offset.reset", "none");
        properties.put("fetch.max.wait.ms", "100");
        return new KafkaConsumer<>(properties);
    }

    /** Clients wait for less time than the broker may stand still, so that they send again. */
    private Properties properties() {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.put("request.timeout.ms", "2000");
        properties.put("default.api.timeout.ms", "15000");
        properties.put("socket.connection.setup.timeout.ms", "1000");
        properties.put("reconnect.backoff.max.ms", "200");
        return properties;
    }

    private static void check(String name, boolean ok, String detail) {
        String escaped = detail.replace("\\", "\\\\").replace("\"", "\\\"");
        System.out.println("{\"check\": \"" + name + "\", \"ok\": " + ok
            + (ok ? "}" : ", \"detail\": \"" + escaped + "\"}"));
    }
}
