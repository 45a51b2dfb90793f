import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.AlterConfigOp.OpType;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.CreateTopicsOptions;
import org.apache.kafka.clients.admin.DescribeConfigsOptions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * One session of an administrator with the configuration of topics, the same on every server.
 *
 * <p>{@code ConfigSession BOOTSTRAP TOPIC} prints one line per step: its name, a tab, and what
 * came of it. Nothing in a line depends on the time, the place or the name of the topic.
 */
public final class ConfigSession {
    private static final long DEADLINE_MS = 40_000;

    /** A key, then values for it: good ones, bad ones, and one good one in several spellings. */
    private static final String[][] VALUES = {
        {"cleanup.policy", "compact", "delete", "compact,delete", "delete,compact",
            " compact , delete ", "", "compact,compact", "Compact", "compact,", "none"},
        {"compression.type", "producer", " producer ", "gzip", "uncompressed", "none", "GZIP"},
        {"compression.gzip.level", "-1", "0", "1", "9", "10"},
        {"compression.lz4.level", "0", "1", "17", "18"},
        {"compression.zstd.level", "-131073", "-131072", "0", "22", "23"},
        {"delete.retention.ms", "0", "-1", " 5 ", "+5", "005", "5.0", ""},
        {"file.delete.delay.ms", "0", "-1"},
        {"flush.messages", "1", "0"},
        {"flush.ms", "0", "-1"},
        {"follower.replication.throttled.replicas", "*", "0:1,1:1", "0:1, 1:1", "", "x", "0:1:2"},
        {"leader.replication.throttled.replicas", "*", "0:1", "*,0:1", "none", "-1:0"},
        {"index.interval.bytes", "0", "-1"},
        {"local.retention.bytes", "-2", "-1", "100", "-3"},
        {"local.retention.ms", "-2", "-1", "100", "9223372036854775807", "-3"},
        {"max.compaction.lag.ms", "0", "1"},
        {"max.message.bytes", "-1", "0", "2147483647", "2147483648"},
        {"message.timestamp.after.max.ms", "-1", "0"},
        {"message.timestamp.before.max.ms", "-1", "0"},
        {"message.timestamp.type", "CreateTime", "LogAppendTime", " CreateTime", "createtime"},
        {"min.cleanable.dirty.ratio", "0", "1", "0.010", "1e-2", ".5", "1.01", "-0.1", "half",
            "NaN"},
        {"min.compaction.lag.ms", "-1", "0", "5"},
        {"min.insync.replicas", "0", "1", "2"},
        {"preallocate", "true", " True ", "false", "yes"},
        {"remote.log.copy.disable", "true", "false"},
        {"remote.log.delete.on.disable", "true", "false"},
        {"remote.storage.enable", "true", "false"},
        {"retention.bytes", "-1", "-2", "0", "100"},
        {"retention.ms", "-1", "-2", "0", "9223372036854775807", "9223372036854775808", "week"},
        {"segment.bytes", "1048575", "1048576", "52428800", "2147483647"},
        {"segment.index.bytes", "3", "4"},
        {"segment.jitter.ms", "0", "-1"},
        {"segment.ms", "0", "1"},
        {"unclean.leader.election.enable", "true", "false"},
        {"no.such.key", "1"},
        {"message.format.version", "3.0"},
        {"message.downconversion.enable", "false"},
        {"internal.segment.bytes", "1048576"},
        {"log.retention.ms", "5"},
    };

    /** What topics are created with: by Kafka Streams, Connect and Schema Registry, and wrongly. */
    private static final Map<String, Map<String, String>> TOPICS = new HashMap<>(Map.of(
        "repartition", Map.of("cleanup.policy", "delete", "segment.bytes", "52428800",
            "retention.ms", "-1", "message.timestamp.type", "CreateTime"),
        "changelog", Map.of("cleanup.policy", "compact", "message.timestamp.type", "CreateTime"),
        "windowed-changelog", Map.of("cleanup.policy", "compact,delete", "retention.ms",
            "86460000", "message.timestamp.type", "CreateTime"),
        "connect-offsets", Map.of("cleanup.policy", "compact", "min.insync.replicas", "1"),
        "lags", Map.of("min.compaction.lag.ms", "10", "max.compaction.lag.ms", "5"),
        "equal-lags", Map.of("min.compaction.lag.ms", "5", "max.compaction.lag.ms", "5"),
        "local-retention", Map.of("retention.ms", "10", "local.retention.ms", "11"),
        "unknown-key", Map.of("no.such.key", "1"),
        "bad-value", Map.of("retention.ms", "week"),
        "neither", Map.of("cleanup.policy", "")));

    private final Admin admin;
    private final String bootstrap;
    private final String topic;
    private int marks = 0;

    private ConfigSession(String bootstrap, String topic) {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
        TOPICS.put("blanks", Map.of("retention.ms", " 5 "));
        TOPICS.put("two-replicas-in-sync", Map.of("min.insync.replicas", "2"));
    }

    public static void main(String[] args) throws Exception {
        ConfigSession session = new ConfigSession(args[0], args[1]);
        session.create(session.topic, Map.of());
        session.defaults();
        session.values();
        session.lists();
        session.refusals();
        session.resources();
        session.creations();
        session.records();
        session.admin.close();
    }

    private void defaults() throws Exception {
        List<ConfigEntry> entries = new ArrayList<>(described(topic).entries());
        entries.sort(Comparator.comparing(ConfigEntry::name));
        for (ConfigEntry entry : entries) {
            List<String> synonyms = entry.synonyms().stream()
                .map(it -> it.source() + " " + it.name() + "=" + it.value()).toList();
            step("default " + entry.name(), shown(entry) + ", " + entry.type()
                + (entry.isReadOnly() ? ", read only" : "")
                + (entry.isSensitive() ? ", sensitive" : "")
                + (entry.documentation() == null ? ", undocumented" : "") + ", " + synonyms);
        }
    }

    private void values() throws Exception {
        for (String[] row : VALUES) {
            String key = row[0];
            for (String value : Arrays.asList(row).subList(1, row.length)) {
                String outcome = alter(OpType.SET, key, value);
                if (outcome.equals("NONE")) {
                    outcome = awaited(key);
                    alter(OpType.DELETE, key, "");
                }
                step("set " + key + "=[" + value + "]", outcome);
            }
        }
    }

    private void lists() throws Exception {
        String key = "cleanup.policy";
        String[][] operations = {
            {"append", "compact"}, {"append", "compact"}, {"subtract", "delete"},
            {"append", "delete,compact"}, {"subtract", "absent"}, {"subtract", ""},
            {"subtract", "compact,delete"}, {"append", "delete"}, {"append", "absent"},
            {"append", ""}, {"append", "compact"},
        };
        for (int i = 0; i < operations.length; i++) {
            boolean append = operations[i][0].equals("append");
            String outcome =
                alter(append ? OpType.APPEND : OpType.SUBTRACT, key, operations[i][1]);
            String name = "list " + i + ": " + operations[i][0] + " [" + operations[i][1] + "]";
            step(name, outcome.equals("NONE") ? awaited(key) : outcome);
        }
        alter(OpType.DELETE, key, "");
        step("the policy is deleted", awaited(key));
    }

    private void refusals() throws Exception {
        step("append to no list", alter(OpType.APPEND, "retention.ms", "5"));
        step("subtract from no list", alter(OpType.SUBTRACT, "retention.ms", "5"));
        step("append to an unknown key", alter(OpType.APPEND, "no.such.key", "5"));
        step("set to nothing", alter(OpType.SET, "retention.ms", null));
        step("append nothing", alter(OpType.APPEND, "cleanup.policy", null));
        step("delete what is not set", alter(OpType.DELETE, "retention.ms", ""));
        step("delete an unknown key", alter(OpType.DELETE, "no.such.key", ""));
        AlterConfigOp first = new AlterConfigOp(new ConfigEntry("retention.ms", "1"), OpType.SET);
        AlterConfigOp second = new AlterConfigOp(new ConfigEntry("retention.ms", "2"), OpType.SET);
        step("set a key twice at once", alter(topic, first, second));
        AlterConfigOp good = new AlterConfigOp(new ConfigEntry("retention.bytes", "1"), OpType.SET);
        AlterConfigOp bad = new AlterConfigOp(new ConfigEntry("retention.ms", "week"), OpType.SET);
        step("set a good and a bad value", alter(topic, good, bad));
        step("the good one is not set", shown(described(topic).get("retention.bytes")));
        step("alter an absent topic", alter(topic + "-absent", good));
        step("alter what is no topic", alter("not a name", good));
        step("alter all topics", alter("", good));
    }

    private void resources() throws Exception {
        for (String name : List.of(topic + "-absent", "not a name", "")) {
            ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
            step("describe topic [" + name.replace(topic, "TOPIC") + "]",
                code(admin.describeConfigs(List.of(resource)).all()));
        }
        ConfigResource cluster = new ConfigResource(ConfigResource.Type.BROKER, "");
        List<String> defaults = admin.describeConfigs(List.of(cluster)).all().get().get(cluster)
            .entries().stream().map(it -> it.name() + "=" + shown(it)).toList();
        step("describe the defaults of the cluster", defaults.toString());
        ConfigResource group = new ConfigResource(ConfigResource.Type.GROUP, topic);
        step("describe a group", code(admin.describeConfigs(List.of(group)).all()));
        String id = admin.describeCluster().nodes().get().iterator().next().idString();
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, id);
        Config own = admin.describeConfigs(List.of(broker)).all().get().get(broker);
        step("the broker's id", own.get("broker.id").value().equals(id) + " "
            + own.get("broker.id").source() + (own.get("broker.id").isReadOnly() ? " fixed" : ""));
        AlterConfigOp move = new AlterConfigOp(new ConfigEntry("broker.id", "9"), OpType.SET);
        step("alter the broker's id",
            code(admin.incrementalAlterConfigs(Map.of(broker, List.of(move))).all()));
    }

    private void creations() throws Exception {
        for (String name : TOPICS.keySet().stream().sorted().toList()) {
            Map<String, String> configs = TOPICS.get(name);
            NewTopic wanted = new NewTopic(topic + "-" + name, Optional.of(1), Optional.empty())
                .configs(configs);
            String validated = code(admin.createTopics(
                List.of(wanted), new CreateTopicsOptions().validateOnly(true)).all());
            var result = admin.createTopics(List.of(wanted));
            String created = code(result.all());
            if (created.equals("NONE")) {
                Config config = result.config(wanted.name()).get();
                created = config.entries().size() + " keys";
                for (String key : configs.keySet().stream().sorted().toList()) {
                    created += ", " + key + "=" + shown(config.get(key));
                }
                awaitTopic(wanted.name());
            }
            step("validate " + name, validated);
            step("create " + name, created);
        }
        Map<String, String> absent = new HashMap<>();
        absent.put("retention.ms", null);
        step("create with nothing for a value", code(admin.createTopics(List.of(
            new NewTopic(topic + "-null", Optional.of(1), Optional.empty()).configs(absent)))
            .all()));
    }

    private void records() throws Exception {
        for (String acks : List.of("1", "all")) {
            step("produce with acks " + acks + " where two replicas should be in sync",
                produced("two-replicas-in-sync", acks, "none", "a").toString());
        }
        for (String codec : List.of("none", "gzip", "snappy", "lz4", "zstd")) {
            step("produce a key, none, a key in " + codec,
                produced("changelog", "all", codec, "a", null, "b").toString());
        }
        step("produce two keys", produced("changelog", "all", "zstd", "a", "").toString());
        step("produce no key to compact,delete",
            produced("windowed-changelog", "all", "none", (String) null).toString());
        step("produce no key without a policy",
            produced("neither", "all", "none", (String) null).toString());
        for (String name : List.of("changelog", "windowed-changelog", "neither")) {
            TopicPartition partition = new TopicPartition(topic + "-" + name, 0);
            step("delete records of " + name, code(admin.deleteRecords(
                Map.of(partition, RecordsToDelete.beforeOffset(0))).all()));
        }
    }

    /** The offset or the error of each record; all go in one batch. */
    private List<String> produced(String name, String acks, String codec, String... keys)
            throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "acks", acks,
            "enable.idempotence", "false", "linger.ms", "10000", "compression.type", codec);
        List<String> outcomes = new ArrayList<>();
        try (var producer = new KafkaProducer<>(
                settings, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> pending = new ArrayList<>();
            for (String key : keys) {
                pending.add(producer.send(
                    new ProducerRecord<>(topic + "-" + name, 0, key, "value")));
            }
            producer.flush();
            for (var record : pending) {
                try {
                    outcomes.add("" + record.get().offset());
                } catch (ExecutionException e) {
                    outcomes.add(Errors.forException(e.getCause()).name());
                }
            }
        }
        return outcomes;
    }

    private void create(String name, Map<String, String> configs) throws Exception {
        NewTopic wanted = new NewTopic(name, Optional.of(1), Optional.empty()).configs(configs);
        admin.createTopics(List.of(wanted)).all().get();
        awaitTopic(name);
    }

    private void awaitTopic(String name) throws Exception {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (System.currentTimeMillis() < deadline) {
            try {
                admin.describeTopics(List.of(name)).allTopicNames().get();
                return;
            } catch (ExecutionException e) {
                if (!(e.getCause() instanceof UnknownTopicOrPartitionException)) {
                    throw e;
                }
            }
        }
    }

    /** Alters a key and, in the same request, the mark by which {@link #awaited} knows it. */
    private String alter(OpType operation, String key, String value) throws Exception {
        marks++;
        return alter(topic, new AlterConfigOp(new ConfigEntry(key, value), operation),
            new AlterConfigOp(new ConfigEntry(mark(key), "" + marks), OpType.SET));
    }

    private static String mark(String key) {
        return key.equals("flush.ms") ? "segment.ms" : "flush.ms";
    }

    private String alter(String name, AlterConfigOp... operations) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        return code(admin.incrementalAlterConfigs(Map.of(resource, List.of(operations))).all());
    }

    private Config described(String name) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, name);
        DescribeConfigsOptions options =
            new DescribeConfigsOptions().includeSynonyms(true).includeDocumentation(true);
        return admin.describeConfigs(List.of(resource), options).all().get().get(resource);
    }

    /** A key as described once its last change is seen: Kafka's broker learns of it late. */
    private String awaited(String key) throws Exception {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        Config config;
        do {
            config = described(topic);
        } while (!config.get(mark(key)).value().equals("" + marks)
            && System.currentTimeMillis() < deadline);
        return config.get(key) == null ? "absent" : shown(config.get(key));
    }

    private static String shown(ConfigEntry entry) {
        return "[" + entry.value() + "] " + entry.source();
    }

    private static String code(KafkaFuture<?> future) throws Exception {
        try {
            future.get();
            return "NONE";
        } catch (ExecutionException e) {
            return Errors.forException(e.getCause()).name();
        }
    }

    private static void step(String name, String outcome) {
        System.out.println(name + "\t" + outcome);
    }
}
