import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** The scenario {@code kip-932} of the Java client; ../README.md says what it contains. */
final class ShareGroups {
    private static final int BATCH = 80;
    /** The next poll accepts what the last one returned. */
    private static final Choice IMPLICIT = record -> AcknowledgeType.ACCEPT;

    private final ConformanceClient client;
    private final String topic;
    private final TopicPartition partition;
    private final List<KafkaShareConsumer<byte[], byte[]>> members = new ArrayList<>();
    /** How often each value was delivered. */
    private final Map<String, Integer> seen = new HashMap<>();

    ShareGroups(ConformanceClient client, String topic) {
        this.client = client;
        this.topic = topic;
        this.partition = new TopicPartition(topic, 0);
    }

    void run() throws Exception {
        client.createTopic(topic, 1);
        produce("one");
        implicit();
        explicit();
        gone();
        limited();
        offsets();
    }

    private void implicit() throws Exception {
        String group = group("implicit");
        for (int i = 0; i < 3; i++) {
            members.add(member(group, Map.of("max.poll.records", "5")));
        }
        boolean all = await(IMPLICIT, () -> seen.size() == BATCH);
        client.check("three members of one partition read every record", all, seen.toString());
        client.check("each record is delivered once", isOnce(), seen.toString());
        produce("two");
        all = await(IMPLICIT, () -> seen.size() == 2 * BATCH);
        client.check("they go on with new records", all && isOnce(), seen.toString());
        // The consumer's close acknowledges nothing implicitly, unlike its poll and its commits.
        members.forEach(KafkaShareConsumer::commitSync);
        close();
        members.add(member(group, Map.of()));
        members.get(0).poll(ConformanceClient.POLL);
        produce("three");
        all = await(IMPLICIT, () -> seen.size() == 3 * BATCH);
        client.check("a later member goes on behind them", all && isOnce(), seen.toString());
        close();
    }

    private void explicit() throws Exception {
        String group = group("explicit");
        Map<String, String> explicit = Map.of("share.acknowledgement.mode", "explicit");
        KafkaShareConsumer<byte[], byte[]> member = member(group, explicit);
        members.add(member);
        seen.clear();
        // Every fourth record is released once, and every fourth is rejected.
        Choice choice = record -> switch ((int) (record.offset() % 4)) {
            case 1 -> record.deliveryCount().orElse((short) 0) < 2
                ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT;
            case 2 -> AcknowledgeType.REJECT;
            default -> AcknowledgeType.ACCEPT;
        };
        int total = 3 * BATCH;
        boolean all = await(choice, () -> deliveries() == total + total / 4);
        client.check("released records come once more, others do not", all,
            deliveries() + " deliveries of " + seen.size());
        await(choice, () -> false, System.currentTimeMillis() + 1_000);
        client.check("nothing comes again", deliveries() == total + total / 4,
            "" + deliveries());
        client.check("the lock's time is known",
            member.acquisitionLockTimeoutMs().equals(Optional.of(30_000)),
            "" + member.acquisitionLockTimeoutMs());
        produce("four");
        List<ConsumerRecord<byte[], byte[]>> held = poll(member, 1);
        held.forEach(record -> member.acknowledge(record, AcknowledgeType.RENEW));
        boolean isRenewed = member.commitSync().values().stream().allMatch(Optional::isEmpty);
        client.check("a lock is renewed", !held.isEmpty() && isRenewed, "" + held.size());
        // The consumer returns renewed records once more.
        List<ConsumerRecord<byte[], byte[]>> kept = poll(member, held.size());
        kept.forEach(record -> member.acknowledge(record, AcknowledgeType.ACCEPT));
        boolean isAccepted = member.commitSync().values().stream().allMatch(Optional::isEmpty);
        client.check("what was renewed is accepted",
            isAccepted && kept.size() == held.size(), held.size() + " and " + kept.size());
        close();
    }

    private void gone() throws Exception {
        String group = group("gone");
        Map<String, String> explicit = Map.of("share.acknowledgement.mode", "explicit");
        KafkaShareConsumer<byte[], byte[]> first = member(group, explicit);
        int held = poll(first, 1).size();
        first.close();
        KafkaShareConsumer<byte[], byte[]> second = member(group, explicit);
        int again = poll(second, held).size();
        client.check("what a member left behind comes to another", held > 0 && again >= held,
            held + " and " + again);
        second.close();
    }

    private void limited() throws Exception {
        String group = group("limited");
        KafkaShareConsumer<byte[], byte[]> member = member(group, Map.of(
            "share.acknowledgement.mode", "explicit", "share.acquire.mode", "record_limit",
            "max.poll.records", "7"));
        List<ConsumerRecord<byte[], byte[]>> got = poll(member, 1);
        client.check("a limit of records is kept", got.size() <= 7, "" + got.size());
        member.close();
    }

    private void offsets() throws Exception {
        String group = group("offsets");
        members.add(member(group, Map.of()));
        seen.clear();
        await(IMPLICIT, () -> seen.size() == 4 * BATCH);
        members.get(0).commitSync();
        // The start may stay before records that are accepted; the lag does not count them.
        SharePartitionOffsetInfo end = offset(group);
        client.check("the group's offset is listed", end.lag().equals(Optional.of(0L)),
            end.toString());
        var described = client.admin.describeShareGroups(List.of(group)).all().get().get(group);
        client.check("the group is described", described.members().size() == 1,
            described.toString());
        close();
        client.admin.alterShareGroupOffsets(group, Map.of(partition, 2L * BATCH)).all().get();
        SharePartitionOffsetInfo altered = offset(group);
        client.check("the group's offset is altered", altered.startOffset() == 2 * BATCH,
            altered.toString());
        members.add(member(group, Map.of()));
        seen.clear();
        await(IMPLICIT, () -> seen.size() == 2 * BATCH);
        client.check("it reads from there", seen.size() == 2 * BATCH && isOnce(),
            seen.toString());
        close();
        client.admin.deleteShareGroupOffsets(group, java.util.Set.of(topic)).all().get();
        client.admin.deleteShareGroups(List.of(group)).all().get();
        boolean isListed = client.admin.listGroups().all().get().stream()
            .anyMatch(it -> it.groupId().equals(group));
        client.check("the group is deleted", !isListed, group);
    }

    private SharePartitionOffsetInfo offset(String group) throws Exception {
        return client.admin
            .listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group).get().get(partition);
    }

    /** A group that reads from the first record on. */
    private String group(String name) throws Exception {
        String group = topic + "-" + name;
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        client.admin.incrementalAlterConfigs(Map.of(resource, List.of(new AlterConfigOp(
            new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET))))
            .all().get();
        return group;
    }

    private KafkaShareConsumer<byte[], byte[]> member(String group, Map<String, String> settings) {
        Properties properties = client.properties();
        properties.put("group.id", group);
        properties.putAll(settings);
        KafkaShareConsumer<byte[], byte[]> member = new KafkaShareConsumer<>(
            properties, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        member.subscribe(List.of(topic));
        return member;
    }

    private List<ConsumerRecord<byte[], byte[]>> poll(
            KafkaShareConsumer<byte[], byte[]> member, int least) {
        long deadline = ConformanceClient.deadline();
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        while (records.size() < least && System.currentTimeMillis() < deadline) {
            member.poll(ConformanceClient.POLL).forEach(records::add);
        }
        return records;
    }

    private void produce(String name) throws Exception {
        try (var producer = client.producer(Map.of())) {
            for (int i = 0; i < BATCH; i++) {
                byte[] value = (name + "-" + i).getBytes();
                producer.send(new ProducerRecord<>(topic, 0, null, value));
            }
            producer.flush();
        }
    }

    private void close() {
        members.forEach(KafkaShareConsumer::close);
        members.clear();
    }

    private boolean isOnce() {
        return seen.values().stream().allMatch(count -> count == 1);
    }

    private int deliveries() {
        return seen.values().stream().mapToInt(Integer::intValue).sum();
    }

    private boolean await(Choice choice, Condition condition) throws Exception {
        return await(choice, condition, ConformanceClient.deadline());
    }

    /** Lets the members read until the condition holds. */
    private boolean await(Choice choice, Condition condition, long deadline) throws Exception {
        while (System.currentTimeMillis() < deadline && !condition.holds()) {
            for (var member : members) {
                for (var record : member.poll(ConformanceClient.POLL)) {
                    seen.merge(new String(record.value()), 1, Integer::sum);
                    if (choice != IMPLICIT) {
                        member.acknowledge(record, choice.of(record));
                    }
                }
            }
        }
        return condition.holds();
    }

    private interface Choice {
        AcknowledgeType of(ConsumerRecord<byte[], byte[]> record);
    }

    private interface Condition {
        boolean holds() throws Exception;
    }
}
