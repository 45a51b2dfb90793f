import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs a broker, a producer, consumers and the administration client of Apache Kafka in one JVM,
 * which writes what it loaded to an archive of classes: {@code ClassArchive DIRECTORY}.
 */
public final class ClassArchive {
    private static final String TOPIC = "classes";

    private ClassArchive() {}

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        String broker = "127.0.0.1:" + freePort();
        String properties = directory.resolve("server.properties").toString();
        Files.write(Path.of(properties), settings(broker, directory.resolve("data")));
        kafka.tools.StorageTool.execute(
            new String[] {"format", "-t", "MoldauConformanceTestA", "-c", properties}, System.out);
        Thread server = new Thread(() -> kafka.Kafka.main(new String[] {properties}));
        server.setDaemon(true);
        server.start();
        Map<String, Object> client = new HashMap<>();
        client.put("bootstrap.servers", broker);
        client.put("auto.offset.reset", "earliest");
        client.put("compression.type", "lz4");
        client.put("transactional.id", TOPIC);
        try (Admin admin = Admin.create(client)) {
            admin.createTopics(List.of(new NewTopic(TOPIC, 1, (short) 1))).all().get();
            admin.describeCluster().nodes().get();
            admin.describeTopics(List.of(TOPIC)).allTopicNames().get();
        }
        produce(client);
        consume(client, "classic");
        consume(client, "consumer");
        System.exit(0);
    }

    private static List<String> settings(String broker, Path data) throws Exception {
        String controller = "127.0.0.1:" + freePort();
        return List.of("process.roles=broker,controller", "node.id=1",
            "listeners=PLAINTEXT://" + broker + ",CONTROLLER://" + controller,
            "controller.quorum.voters=1@" + controller, "controller.listener.names=CONTROLLER",
            "log.dirs=" + data, "group.initial.rebalance.delay.ms=0",
            "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1",
            "transaction.state.log.replication.factor=1", "transaction.state.log.min.isr=1",
            "transaction.state.log.num.partitions=1");
    }

    private static void produce(Map<String, Object> client) throws Exception {
        StringSerializer serializer = new StringSerializer();
        try (var producer = new KafkaProducer<>(client, serializer, serializer)) {
            producer.initTransactions();
            producer.beginTransaction();
            producer.send(new ProducerRecord<>(TOPIC, "value")).get();
            producer.commitTransaction();
        }
    }

    private static void consume(Map<String, Object> client, String protocol) {
        client.put("group.id", protocol);
        client.put("group.protocol", protocol);
        StringDeserializer deserializer = new StringDeserializer();
        try (var consumer = new KafkaConsumer<>(client, deserializer, deserializer)) {
            consumer.subscribe(List.of(TOPIC));
            while (consumer.poll(Duration.ofSeconds(1)).isEmpty()) {
                Thread.onSpinWait();
            }
            consumer.commitSync();
        }
    }

    private static int freePort() throws Exception {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
