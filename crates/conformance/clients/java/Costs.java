import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/**
 * What transactions, rebalances and share groups cost with a broker: Costs BOOTSTRAP PART NAME,
 * where NAME is that of a topic that does not exist. Prints one line of figures.
 */
public final class Costs {
    private static final byte[] VALUE = new byte[100];
    private static final int MEMBERS = 10;

    private final String bootstrap;
    private final String name;

    private Costs(String bootstrap, String name) {
        this.bootstrap = bootstrap;
        this.name = name;
    }

    public static void main(String[] arguments) throws Exception {
        Costs costs = new Costs(arguments[0], arguments[2]);
        switch (arguments[1]) {
            case "transactions" -> costs.transactions();
            case "rebalance" -> costs.rebalance();
            case "share" -> costs.share();
            default -> throw new IllegalArgumentException(arguments[1]);
        }
    }

    /** One producer, 100 records of 100 bytes in each transaction, 10 seconds. */
    private void transactions() throws Exception {
        create(10);
        List<Long> commits = new ArrayList<>();
        long records = 0;
        long from = 0;
        try (var producer = producer(Map.of("transactional.id", name))) {
            producer.initTransactions();
            long begun = System.nanoTime();
            boolean measured = false;
            while (System.nanoTime() - begun < TimeUnit.SECONDS.toNanos(13)) {
                if (!measured && System.nanoTime() - begun > TimeUnit.SECONDS.toNanos(3)) {
                    measured = true;
                    from = System.nanoTime();
                    records = 0;
                    commits.clear();
                }
                producer.beginTransaction();
                for (int i = 0; i < 100; i++) {
                    producer.send(new ProducerRecord<>(name, i % 10, null, VALUE));
                }
                producer.flush();
                long before = System.nanoTime();
                producer.commitTransaction();
                commits.add(System.nanoTime() - before);
                records += 100;
            }
        }
        double seconds = (System.nanoTime() - from) / 1e9;
        long[] sorted = commits.stream().mapToLong(Long::longValue).sorted().toArray();
        print("records_per_second=%.0f commit_p50_ms=%.2f commit_p99_ms=%.2f", records / seconds,
            at(sorted, 0.5), at(sorted, 0.99));
    }

    /**
     * Nine members of a group of the consumer protocol read 1,000 partitions, and a tenth joins.
     * A pause is the time from the call that takes a partition from its old owner to the call
     * that gives it to the new one.
     */
    private void rebalance() throws Exception {
        create(1000);
        Map<TopicPartition, Long> revoked = new ConcurrentHashMap<>();
        List<Long> pauses = new ArrayList<>();
        AtomicBoolean stop = new AtomicBoolean();
        List<Thread> threads = new ArrayList<>();
        AtomicLong[] held = new AtomicLong[MEMBERS];
        for (int member = 0; member < MEMBERS - 1; member++) {
            held[member] = new AtomicLong();
            threads.add(member(held[member], revoked, pauses, stop));
        }
        awaitShares(held, MEMBERS - 1);
        revoked.clear();
        synchronized (pauses) {
            pauses.clear();
        }
        long joined = System.nanoTime();
        held[MEMBERS - 1] = new AtomicLong();
        threads.add(member(held[MEMBERS - 1], revoked, pauses, stop));
        awaitShares(held, MEMBERS);
        double settled = (System.nanoTime() - joined) / 1e6;
        stop.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        long[] sorted;
        synchronized (pauses) {
            sorted = pauses.stream().mapToLong(Long::longValue).sorted().toArray();
        }
        print("moved=%d pause_p50_ms=%.0f pause_max_ms=%.0f settled_ms=%.0f", sorted.length,
            at(sorted, 0.5), at(sorted, 1), settled);
    }

    private Thread member(AtomicLong held, Map<TopicPartition, Long> revoked, List<Long> pauses,
        AtomicBoolean stop) {
        Thread thread = new Thread(() -> {
            Properties properties = new Properties();
            properties.put("bootstrap.servers", bootstrap);
            properties.put("group.id", name);
            properties.put("group.protocol", "consumer");
            try (var consumer = new KafkaConsumer<>(properties, new ByteArrayDeserializer(),
                new ByteArrayDeserializer())) {
                consumer.subscribe(List.of(name), new ConsumerRebalanceListener() {
                    @Override
                    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
                        held.addAndGet(-partitions.size());
                        partitions.forEach(it -> revoked.put(it, System.nanoTime()));
                    }

                    @Override
                    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
                        for (TopicPartition partition : partitions) {
                            Long since = revoked.remove(partition);
                            if (since != null) {
                                synchronized (pauses) {
                                    pauses.add(System.nanoTime() - since);
                                }
                            }
                        }
                        held.addAndGet(partitions.size());
                    }
                });
                while (!stop.get()) {
                    consumer.poll(Duration.ofMillis(100));
                }
            }
        });
        thread.start();
        return thread;
    }

    /** Until each of so many members has its share of the partitions. */
    private static void awaitShares(AtomicLong[] held, int members) throws InterruptedException {
        long share = 1000 / members;
        while (true) {
            long[] counts = IntStream.range(0, members).mapToLong(it -> held[it].get()).toArray();
            if (Arrays.stream(counts).sum() == 1000
                && Arrays.stream(counts).allMatch(it -> it == share || it == share + 1)) {
                return;
            }
            Thread.sleep(5);
        }
    }

    /** Ten members of a share group take a million records of ten partitions, and accept them. */
    private void share() throws Exception {
        create(10);
        int count = 1_000_000;
        try (var producer = producer(Map.of("linger.ms", "20"))) {
            for (int i = 0; i < count; i++) {
                producer.send(new ProducerRecord<>(name, i % 10, null, VALUE));
            }
        }
        try (Admin admin = admin()) {
            var group = new ConfigResource(ConfigResource.Type.GROUP, name);
            var earliest = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"),
                AlterConfigOp.OpType.SET);
            admin.incrementalAlterConfigs(Map.of(group, List.of(earliest))).all().get();
        }
        AtomicLong taken = new AtomicLong();
        AtomicLong first = new AtomicLong();
        CountDownLatch all = new CountDownLatch(1);
        AtomicBoolean stop = new AtomicBoolean();
        List<Thread> threads = new ArrayList<>();
        for (int member = 0; member < MEMBERS; member++) {
            Thread thread = new Thread(() -> {
                Properties properties = new Properties();
                properties.put("bootstrap.servers", bootstrap);
                properties.put("group.id", name);
                try (var consumer = new KafkaShareConsumer<>(
                    properties, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                    consumer.subscribe(List.of(name));
                    while (!stop.get()) {
                        int records = consumer.poll(Duration.ofMillis(100)).count();
                        if (records > 0) {
                            first.compareAndSet(0, System.nanoTime());
                            if (taken.addAndGet(records) >= count) {
                                all.countDown();
                            }
                        }
                    }
                }
            });
            thread.start();
            threads.add(thread);
        }
        boolean complete = all.await(180, TimeUnit.SECONDS);
        double seconds = (System.nanoTime() - first.get()) / 1e9;
        stop.set(true);
        for (Thread thread : threads) {
            thread.join();
        }
        print("records_per_second=%.0f complete=%s", taken.get() / seconds, complete);
    }

    private void create(int partitions) throws Exception {
        try (Admin admin = admin()) {
            admin.createTopics(List.of(new NewTopic(name, partitions, (short) 1))).all().get();
        }
    }

    private Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    private KafkaProducer<byte[], byte[]> producer(Map<String, Object> further) {
        Properties properties = new Properties();
        properties.put("bootstrap.servers", bootstrap);
        properties.putAll(further);
        return new KafkaProducer<>(
            properties, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static double at(long[] sorted, double quantile) {
        return sorted.length == 0 ? Double.NaN
            : sorted[(int) Math.min(sorted.length - 1, quantile * sorted.length)] / 1e6;
    }

    private static void print(String format, Object... figures) {
        System.out.println(String.format(Locale.ROOT, format, figures));
    }
}
