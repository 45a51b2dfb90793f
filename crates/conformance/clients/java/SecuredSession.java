import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.SaslAuthenticationException;
import org.apache.kafka.common.errors.SslAuthenticationException;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** Connects with credentials, right and wrong; ../README.md describes the lines that it reads. */
public final class SecuredSession {
    private static final String NONE = "-";
    private static final int RECORDS = 100;
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long DEADLINE_MS = 40_000;

    private static boolean failed = false;

    private SecuredSession() {}

    public static void main(String[] args) throws Exception {
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] fields = line.split("\t");
            run(fields[0], fields[1], fields[2], settings(fields));
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

    private static Properties settings(String[] fields) {
        String authority = fields[4];
        String identity = fields[5];
        String mechanism = fields[6];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", fields[3]);
        settings.put("request.timeout.ms", "20000");
        settings.put("default.api.timeout.ms", "20000");
        boolean tls = !authority.equals(NONE);
        boolean sasl = !mechanism.equals(NONE);
        settings.put("security.protocol", (sasl ? "SASL_" : "") + (tls ? "SSL" : "PLAINTEXT"));
        if (tls) {
            settings.put("ssl.truststore.type", "PEM");
            settings.put("ssl.truststore.location", authority);
        }
        if (!identity.equals(NONE)) {
            settings.put("ssl.keystore.type", "PEM");
            settings.put("ssl.keystore.location", identity);
        }
        if (sasl) {
            settings.put("sasl.mechanism", mechanism);
            settings.put("sasl.jaas.config", login(mechanism, fields[7], fields[8]));
        }
        if (mechanism.equals("OAUTHBEARER")) {
            settings.put("sasl.login.callback.handler.class", TokenHandler.class.getName());
        }
        return settings;
    }

    private static String login(String mechanism, String user, String secret) {
        String common = "org.apache.kafka.common.security.";
        return switch (mechanism) {
            case "OAUTHBEARER" ->
                common + "oauthbearer.OAuthBearerLoginModule required token=\"" + secret + "\";";
            default -> common + (mechanism.equals("PLAIN") ? "plain.Plain" : "scram.Scram")
                + "LoginModule required username=\"" + user + "\" password=\"" + secret + "\";";
        };
    }

    /** Gives the token of the login settings as it is, whatever it holds. */
    public static final class TokenHandler implements AuthenticateCallbackHandler {
        private String token;

        @Override
        public void configure(
                Map<String, ?> configs, String mechanism, List<AppConfigurationEntry> entries) {
            token = (String) entries.get(0).getOptions().get("token");
        }

        @Override
        public void handle(Callback[] callbacks) throws UnsupportedCallbackException {
            for (Callback callback : callbacks) {
                if (callback instanceof OAuthBearerTokenCallback wanted) {
                    wanted.token(new Token(token));
                } else if (!(callback instanceof SaslExtensionsCallback)) {
                    throw new UnsupportedCallbackException(callback);
                }
            }
        }

        @Override
        public void close() {}
    }

    private record Token(String value) implements OAuthBearerToken {
        @Override
        public Set<String> scope() {
            return Collections.emptySet();
        }

        @Override
        public long lifetimeMs() {
            return System.currentTimeMillis() + 3_600_000;
        }

        @Override
        public String principalName() {
            return "whoever the token names";
        }

        @Override
        public Long startTimeMs() {
            return null;
        }
    }
}
