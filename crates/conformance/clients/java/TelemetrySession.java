import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * A producer and a consumer with their own metrics switched on, as they are by default. Prints the
 * instance id of each. The producer stays open until a file exists: a producer that is closed with
 * nothing in flight may end before its last push. The consumer pushes for the last time when it is
 * closed.
 */
public final class TelemetrySession {
    private static final Duration TIMEOUT = Duration.ofSeconds(30);

    private TelemetrySession() {}

    public static void main(String[] arguments) throws Exception {
        String bootstrap = arguments[0];
        String topic = arguments[1];
        String clientId = arguments[2];
        Path pushed = Path.of(arguments[3]);
        Properties common = new Properties();
        common.put("bootstrap.servers", bootstrap);
        common.put("client.id", clientId);

        Properties ofProducer = new Properties();
        ofProducer.putAll(common);
        ofProducer.put("key.serializer", StringSerializer.class.getName());
        ofProducer.put("value.serializer", StringSerializer.class.getName());
        try (KafkaProducer<String, String> producer = new KafkaProducer<>(ofProducer)) {
            producer.send(new ProducerRecord<>(topic, "key", "value")).get();
            System.out.println("producer " + producer.clientInstanceId(TIMEOUT));
            long deadline = System.nanoTime() + TIMEOUT.toNanos();
            while (!Files.exists(pushed) && System.nanoTime() < deadline) {
                Thread.sleep(20);
            }
        }

        Properties ofConsumer = new Properties();
        ofConsumer.putAll(common);
        ofConsumer.put("group.id", clientId);
        ofConsumer.put("auto.offset.reset", "earliest");
        ofConsumer.put("key.deserializer", StringDeserializer.class.getName());
        ofConsumer.put("value.deserializer", StringDeserializer.class.getName());
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(ofConsumer)) {
            consumer.subscribe(List.of(topic));
            long deadline = System.nanoTime() + TIMEOUT.toNanos();
            while (consumer.poll(Duration.ofMillis(100)).isEmpty()) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("no record came");
                }
            }
            System.out.println("consumer " + consumer.clientInstanceId(TIMEOUT));
        }
    }
}
