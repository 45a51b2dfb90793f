import java.io.ByteArrayOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.tools.consumer.group.ConsumerGroupCommand;

/** The scenario {@code migration} of the Java client; ../README.md says what it contains. */
final class Migration {
    private static final int PARTITIONS = 4;
    private static final String CLASSIC = "classic";
    private static final String CONSUMER = "consumer";

    private final ConformanceClient client;
    private final String topic;
    private final Map<String, Integer> seen = new HashMap<>();
    private final Map<TopicPartition, Long> committed = new TreeMap<>(
        (one, other) -> Integer.compare(one.partition(), other.partition()));
    private final List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();
    private KafkaProducer<byte[], byte[]> producer;
    private int produced = 0;
    private String backwards = "";

    Migration(ConformanceClient client, String topic) {
        this.client = client;
        this.topic = topic;
    }

    void run() throws Exception {
        client.createTopic(topic, PARTITIONS);
        producer = client.producer(Map.of());
        described();
        rolled("range", "org.apache.kafka.clients.consumer.RangeAssignor");
        rolled("sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
        statics();
        producer.close();
    }

    /** Kafka's tool shows a group of both protocols. */
    private void described() throws Exception {
        String group = topic + "-described";
        produce(8);
        join(group, CLASSIC, Map.of("client.id", "old"));
        client.check("a classic member has all partitions", await(() -> isShared()), shares());
        join(group, CONSUMER, Map.of("client.id", "young"));
        client.check("a member of the consumer protocol joins it", await(() -> isShared()
            && describe(group).groupState().toString().equals("Stable")), shares());
        commit();
        String offsets = tool(group, "--describe");
        String details = tool(group, "--describe", "--members", "--verbose");
        String state = tool(group, "--describe", "--state", "--verbose");
        String ours = group + " " + topic;
        List<String> rows = offsets.lines().filter(it -> it.startsWith(ours)).toList();
        client.check("the tool shows its offsets", rows.size() == PARTITIONS
            && rows.stream().allMatch(it -> it.matches(ours + " \\d 2 2 0 \\S+ /\\S+ \\S+")),
            offsets);
        rows = details.lines().filter(it -> it.startsWith(group)).sorted().toList();
        client.check("the tool shows its members", rows.size() == 2
            && rows.stream().anyMatch(it -> it.matches(group + " old-\\S+ /\\S+ old 2 2 "
                + topic + ":\\d,\\d 2 " + topic + ":\\d,\\d false"))
            && rows.stream().anyMatch(it -> it.matches(group + " \\S+ /\\S+ young 2 2 "
                + topic + ":\\d,\\d 2 " + topic + ":\\d,\\d true")), details);
        client.check("the tool shows its state", state.lines().anyMatch(it -> it.matches(
            group + " \\S+ \\(1?\\d+\\) uniform Stable 2 2 2")), state);
        close(1);
        client.check("it is a classic group again", await(() -> isShared()
            && describe(group).type() == GroupType.CLASSIC), shares());
        state = tool(group, "--describe", "--state");
        client.check("the tool shows a classic group", state.lines().anyMatch(it -> it.matches(
            group + " \\S+ \\(1?\\d+\\) range Stable 1")), state);
        close(0);
        seen.clear();
        committed.clear();
    }

    /** A group of two members is rolled to the consumer protocol and back, while records come. */
    private void rolled(String name, String assignor) throws Exception {
        String group = topic + "-" + name;
        Map<String, String> classic = Map.of("partition.assignment.strategy", assignor);
        join(group, CLASSIC, classic);
        join(group, CLASSIC, classic);
        flows(group, name + ": two classic members share", GroupType.CLASSIC, 0);
        close(0);
        join(group, CONSUMER, Map.of());
        flows(group, name + ": one goes over to the consumer protocol", GroupType.CONSUMER, 1);
        close(0);
        join(group, CONSUMER, Map.of());
        flows(group, name + ": the other goes over", GroupType.CONSUMER, 2);
        close(0);
        join(group, CLASSIC, classic);
        flows(group, name + ": one comes back", GroupType.CONSUMER, 1);
        close(0);
        join(group, CLASSIC, classic);
        flows(group, name + ": the other comes back", GroupType.CLASSIC, 0);
        close(0);
        close(0);
        Map<TopicPartition, Long> ends = new HashMap<>();
        try (var consumer = client.consumer(Map.of("group.id", group))) {
            ends.putAll(consumer.endOffsets(partitions()));
        }
        look(group);
        client.check(name + ": the committed offsets are the ends", committed.equals(ends),
            committed + " and " + ends);
        seen.clear();
        committed.clear();
    }

    /** The members have all partitions, read what comes, and commit it. */
    private void flows(String group, String name, GroupType type, long upgraded) throws Exception {
        client.check(name, await(() -> {
            if (!isShared()) {
                produce(4);
                return false;
            }
            ConsumerGroupDescription described = describe(group);
            long consumers = described.members().stream()
                .filter(it -> it.upgraded().equals(Optional.of(true))).count();
            return described.type() == type && consumers == upgraded
                && described.members().size() == 2;
        }), shares() + describe(group));
        produce(40);
        client.check(name + "; nothing is lost", await(() -> seen.size() == produced), seen.size()
            + " of " + produced);
        commit();
        look(group);
        client.check(name + "; offsets never go back", backwards.isEmpty(), backwards);
    }

    /** A static member keeps its partitions under the other protocol. */
    private void statics() throws Exception {
        String group = topic + "-static";
        String key = "group.instance.id";
        join(group, CLASSIC, Map.of(key, "one"));
        join(group, CLASSIC, Map.of(key, "two"));
        client.check("static members share", await(() -> isShared()), shares());
        for (String protocol : List.of(CONSUMER, CLASSIC)) {
            for (String instance : List.of("one", "two")) {
                Set<TopicPartition> had = members.get(0).assignment();
                close(0);
                join(group, protocol, Map.of(key, instance));
                client.check(instance + " goes on with what it had: " + protocol, await(() ->
                    isShared() && members.get(1).assignment().equals(had)), had + shares());
            }
        }
        client.check("static members made it a classic group",
            describe(group).type() == GroupType.CLASSIC, describe(group).toString());
        close(0);
        close(0);
    }

    private void join(String group, String protocol, Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(settings);
        all.put("group.id", group);
        all.put("group.protocol", protocol);
        all.put("auto.commit.interval.ms", "200");
        if (protocol.equals(CLASSIC)) {
            all.put("heartbeat.interval.ms", "500");
            all.put("session.timeout.ms", "10000");
        }
        KafkaConsumer<byte[], byte[]> member = client.consumer(all);
        member.subscribe(List.of(topic));
        members.add(member);
    }

    private void close(int index) {
        members.remove(index).close();
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        return client.admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    private Set<TopicPartition> partitions() {
        Set<TopicPartition> all = new HashSet<>();
        for (int i = 0; i < PARTITIONS; i++) {
            all.add(new TopicPartition(topic, i));
        }
        return all;
    }

    /** Whether the members have all partitions, as many each, and none is with two. */
    private boolean isShared() {
        Set<TopicPartition> all = new HashSet<>();
        members.forEach(it -> all.addAll(it.assignment()));
        int each = PARTITIONS / members.size();
        return all.equals(partitions())
            && members.stream().allMatch(it -> it.assignment().size() == each);
    }

    private String shares() {
        return members.stream().map(it -> it.assignment().toString())
            .collect(Collectors.joining(" "));
    }

    private void produce(int count) {
        for (int i = 0; i < count; i++) {
            byte[] value = Integer.toString(produced).getBytes();
            producer.send(new ProducerRecord<>(topic, produced % PARTITIONS, null, value));
            produced++;
        }
        producer.flush();
    }

    /** Every member commits the ends of its partitions, once no rebalance keeps it from that. */
    private void commit() throws Exception {
        await(() -> {
            if (!members.stream().allMatch(this::isAtEnd)) {
                return false;
            }
            try {
                members.forEach(KafkaConsumer::commitSync);
                return true;
            } catch (RebalanceInProgressException | CommitFailedException e) {
                return false;
            }
        });
    }

    /** Whether a member has read its partitions; after a rebalance it reads some of them again. */
    private boolean isAtEnd(KafkaConsumer<byte[], byte[]> member) {
        return member.endOffsets(member.assignment()).entrySet().stream()
            .allMatch(it -> member.position(it.getKey()) == it.getValue());
    }

    /** Looks at the committed offsets. */
    private void look(String group) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets =
            client.admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata().get();
        offsets.forEach((partition, offset) -> {
            Long before = committed.put(partition, offset.offset());
            if (before != null && before > offset.offset()) {
                backwards += partition + ": " + before + " to " + offset.offset() + "; ";
            }
        });
        committed.forEach((partition, offset) -> {
            if (!offsets.containsKey(partition)) {
                backwards += partition + " is gone; ";
            }
        });
    }

    /** What kafka-consumer-groups prints of a group, with single spaces. */
    private String tool(String group, String... arguments) throws Exception {
        Path config = Files.createTempFile("migration", ".properties");
        try (OutputStream file = Files.newOutputStream(config)) {
            client.properties().store(file, null);
        }
        List<String> all = new ArrayList<>(Arrays.asList(arguments));
        all.addAll(List.of("--group", group, "--command-config", config.toString(),
            "--bootstrap-server", client.properties().getProperty("bootstrap.servers")));
        PrintStream before = System.out;
        ByteArrayOutputStream shown = new ByteArrayOutputStream();
        System.setOut(new PrintStream(shown, true));
        try {
            ConsumerGroupCommand.main(all.toArray(String[]::new));
        } finally {
            System.setOut(before);
            Files.delete(config);
        }
        return shown.toString().lines().map(it -> it.trim().replaceAll("\\s+", " "))
            .collect(Collectors.joining("\n"));
    }

    /** Lets the members read until the condition holds. */
    private boolean await(Condition condition) throws Exception {
        long deadline = ConformanceClient.deadline();
        while (System.currentTimeMillis() < deadline) {
            if (condition.holds()) {
                return true;
            }
            for (var member : members) {
                for (var record : member.poll(ConformanceClient.POLL)) {
                    seen.merge(new String(record.value()), 1, Integer::sum);
                }
            }
        }
        return condition.holds();
    }

    private interface Condition {
        boolean holds() throws Exception;
    }
}
