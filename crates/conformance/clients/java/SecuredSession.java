import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Connects with credentials, right and wrong; ../README.md describes the lines that it reads. */
public final class SecuredSession {
    private static final int RECORDS = 100;
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long DEADLINE_MS = 40_000;

    private static boolean failed = false;

    private SecuredSession() {}

    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] fields = line.split("\t");
            run(fields[0], fields[1], fields[2], ConnectionSettings.of(fields, 3));
        }
        System.exit(failed ? 1 : 0);
    }

    private static void run(String name, String topic, String expected, Properties settings) {
        String found;
        try {
            found = serve(topic, settings);
        } catch (Exception error) {
            found = refusal(error instanceof ExecutionException ? error.getCause() : error);
        }
        boolean ok = found.equals(expected);
        failed |= !ok;
        String detail = ok ? "" : ", \"detail\": \"" + found.replaceAll("[\"\\\\\n]", " ") + "\"";
        System.out.println("{\"check\": \"" + name + "\", \"ok\": " + ok + detail + "}");
    }

    private static String refusal(Throwable error) {
        if (error instanceof SaslAuthenticationException) {
            return "unauthenticated";
        }
        if (error instanceof SslAuthenticationException) {
            return "untrusted";
        }
        return error.getCause() == null ? error.toString() : error + ", " + error.getCause();
    }

    /** Writes and reads records of a new topic. */
    private static String serve(String topic, Properties settings) throws Exception {
        try (Admin admin = Admin.create(settings)) {
            admin.createTopics(Set.of(new NewTopic(topic, 1, (short) -1))).all()
                .get(DEADLINE_MS, TimeUnit.MILLISECONDS);
        }
        List<String> sent = new ArrayList<>();
        try (var producer =
                new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < RECORDS; i++) {
                sent.add("value-" + i);
                producer.send(new ProducerRecord<>(topic, sent.get(i)));
            }
            producer.flush();
        }
        List<String> read = new ArrayList<>();
        try (var consumer =
                new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(Set.of(new TopicPartition(topic, 0)));
            consumer.seekToBeginning(consumer.assignment());
            long deadline = System.currentTimeMillis() + DEADLINE_MS;
            while (read.size() < RECORDS && System.currentTimeMillis() < deadline) {
                for (ConsumerRecord<String, String> record : consumer.poll(POLL)) {
                    read.add(record.value());
                }
            }
        }
        return read.equals(sent) ? "served" : "read " + read.size() + " of " + RECORDS + " records";
    }
}
