import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListGroupsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InvalidRegularExpression;
import org.apache.kafka.common.errors.UnreleasedInstanceIdException;

/** The scenario {@code kip-848} of the Java client; ../README.md says what it contains. */
final class ConsumerProtocol {
    private static final int BATCH = 80;

    private final ConformanceClient client;
    private final String topic;
    private final Map<String, Integer> seen = new HashMap<>();
    private final List<KafkaConsumer<byte[], byte[]>> members = new ArrayList<>();

    ConsumerProtocol(ConformanceClient client, String topic) {
        this.client = client;
        this.topic = topic;
    }

    void run() throws Exception {
        client.createTopic(topic, 4);
        shares();
        described();
        goesOn();
        statics();
        patterns();
        configs();
        endOfGroup();
    }

    private void shares() throws Exception {
        for (int i = 0; i < 3; i++) {
            members.add(member(topic, Map.of()));
            members.get(i).subscribe(List.of(topic));
        }
        client.check("three members share all partitions", await(() -> isShared(4)), assignments());
        produce("one");
        client.check("they read every record once", await(() -> exactly("one")), seen.toString());
        members.forEach(KafkaConsumer::commitSync);
    }

    private void described() throws Exception {
        ConsumerGroupDescription group = describe(topic);
        client.check("the described group is stable and of the consumer protocol",
            group.type() == GroupType.CONSUMER && group.groupState().toString().equals("Stable")
                && group.members().size() == 3 && group.partitionAssignor().equals("uniform"),
            group.toString());
        Set<TopicPartition> assigned = new HashSet<>();
        group.members().forEach(it -> assigned.addAll(it.assignment().topicPartitions()));
        boolean hasTargets = group.members().stream().allMatch(it ->
            it.targetAssignment().isPresent() && it.memberEpoch().isPresent());
        client.check("it shows what its members have", assigned.size() == 4 && hasTargets,
            group.toString());
        List<GroupListing> listed = new ArrayList<>(client.admin
            .listGroups(new ListGroupsOptions().withTypes(Set.of(GroupType.CONSUMER))).all().get());
        client.check("it is listed with its type", listed.stream().anyMatch(it ->
            it.groupId().equals(topic) && it.type().equals(Optional.of(GroupType.CONSUMER))),
            listed.toString());
    }

    private void goesOn() throws Exception {
        members.remove(2).close();
        produce("two");
        client.check("nothing is lost or repeated after one leaves",
            await(() -> isShared(4) && exactly("one", "two")), seen + assignments());
        client.admin.createPartitions(Map.of(topic, NewPartitions.increaseTo(6))).all().get();
        client.check("added partitions find their members", await(() -> isShared(6)),
            assignments());
        members.forEach(KafkaConsumer::commitSync);
        members.remove(1).close();
        members.remove(0).close();
        KafkaConsumer<byte[], byte[]> later = member(topic, Map.of());
        later.subscribe(List.of(topic));
        members.add(later);
        produce("three");
        client.check("a later member goes on from the commit",
            await(() -> exactly("one", "two", "three")), seen.toString());
        later.commitSync();
        members.remove(0).close();
    }

    private void statics() throws Exception {
        String group = topic + "-static";
        KafkaConsumer<byte[], byte[]> first = member(group, Map.of("group.instance.id", "one"));
        KafkaConsumer<byte[], byte[]> second = member(group, Map.of("group.instance.id", "two"));
        members.addAll(List.of(first, second));
        members.forEach(it -> it.subscribe(List.of(topic)));
        client.check("static members share all partitions", await(() -> isShared(6)),
            assignments());
        KafkaConsumer<byte[], byte[]> twin = member(group, Map.of("group.instance.id", "one"));
        twin.subscribe(List.of(topic));
        client.check("an instance that is in use is refused", await(() -> {
            try {
                twin.poll(ConformanceClient.POLL);
                return false;
            } catch (UnreleasedInstanceIdException e) {
                return true;
            }
        }), "nothing was thrown");
        twin.close();
        Set<TopicPartition> had = first.assignment();
        int epoch = describe(group).groupEpoch().orElse(-1);
        first.close();
        members.remove(first);
        KafkaConsumer<byte[], byte[]> back = member(group, Map.of("group.instance.id", "one"));
        members.add(back);
        back.subscribe(List.of(topic));
        client.check("a static member comes back to what it had",
            await(() -> back.assignment().equals(had))
                && describe(group).groupEpoch().orElse(-1) == epoch,
            had + " and " + back.assignment());
        members.forEach(KafkaConsumer::close);
        members.clear();
    }

    private void patterns() throws Exception {
        String group = topic + "-pattern";
        KafkaConsumer<byte[], byte[]> member = member(group, Map.of("metadata.max.age.ms", "1000"));
        members.add(member);
        member.subscribe(new SubscriptionPattern(topic + "(-more)?"));
        client.check("a pattern finds its topic", await(() -> isShared(6)), assignments());
        client.admin.createTopics(List.of(
            new NewTopic(topic + "-more", Optional.of(2), Optional.empty()),
            new NewTopic(topic + "-other", Optional.of(2), Optional.empty()))).all().get();
        client.check("a pattern finds a topic that comes later, and no other",
            await(() -> isShared(8)), assignments());
        member.close();
        members.clear();
        KafkaConsumer<byte[], byte[]> wrong = member(group, Map.of());
        wrong.subscribe(new SubscriptionPattern("(" + topic));
        client.check("a pattern that is none is refused", await(() -> {
            try {
                wrong.poll(ConformanceClient.POLL);
                return false;
            } catch (InvalidRegularExpression e) {
                return true;
            }
        }), "nothing was thrown");
        wrong.close();
    }

    private void configs() throws Exception {
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, topic);
        String key = "consumer.heartbeat.interval.ms";
        client.admin.incrementalAlterConfigs(Map.of(group, List.of(
            new AlterConfigOp(new ConfigEntry(key, "6000"), AlterConfigOp.OpType.SET))))
            .all().get();
        client.check("a group may have a configuration of its own", await(() -> {
            var config = client.admin.describeConfigs(List.of(group)).all().get().get(group);
            return config.get(key).value().equals("6000");
        }), key);
        client.admin.incrementalAlterConfigs(Map.of(group, List.of(
            new AlterConfigOp(new ConfigEntry(key, ""), AlterConfigOp.OpType.DELETE)))).all().get();
    }

    private void endOfGroup() throws Exception {
        client.admin.deleteConsumerGroups(List.of(topic)).all().get();
        boolean isGone;
        try {
            isGone = describe(topic).groupState().toString().equals("Dead");
        } catch (ExecutionException e) {
            isGone = true;
        }
        client.check("a group without members is deleted", isGone, topic);
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        return client.admin.describeConsumerGroups(List.of(group)).all().get().get(group);
    }

    private KafkaConsumer<byte[], byte[]> member(String group, Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(settings);
        all.put("group.id", group);
        all.put("group.protocol", "consumer");
        all.put("enable.auto.commit", "false");
        return client.consumer(all);
    }

    /** Whether the members have all partitions, each of them some, and none is with two. */
    private boolean isShared(int partitions) {
        Set<TopicPartition> all = new HashSet<>();
        int sum = 0;
        for (var member : members) {
            all.addAll(member.assignment());
            sum += member.assignment().size();
            if (member.assignment().isEmpty()) {
                return false;
            }
        }
        return all.size() == partitions && sum == partitions;
    }

    private String assignments() {
        StringBuilder text = new StringBuilder();
        members.forEach(it -> text.append(it.assignment()).append(' '));
        return text.toString();
    }

    private boolean exactly(String... batches) {
        Map<String, Integer> expected = new HashMap<>();
        for (String batch : batches) {
            for (int i = 0; i < BATCH; i++) {
                expected.put(batch + "-" + i, 1);
            }
        }
        return expected.equals(seen);
    }

    private void produce(String name) throws Exception {
        try (var producer = client.producer(Map.of())) {
            for (int i = 0; i < BATCH; i++) {
                byte[] value = (name + "-" + i).getBytes();
                producer.send(new ProducerRecord<>(topic, i % 4, null, value));
            }
            producer.flush();
        }
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
