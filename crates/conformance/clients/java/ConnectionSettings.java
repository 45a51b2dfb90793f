import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import javax.security.auth.callback.Callback;
import javax.security.auth.callback.UnsupportedCallbackException;
import javax.security.auth.login.AppConfigurationEntry;
import org.apache.kafka.common.security.auth.AuthenticateCallbackHandler;
import org.apache.kafka.common.security.auth.SaslExtensionsCallback;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerToken;
import org.apache.kafka.common.security.oauthbearer.OAuthBearerTokenCallback;

/** What the columns of a line say about a connection; ../README.md describes them. */
final class ConnectionSettings {
    private static final String NONE = "-";

    private ConnectionSettings() {}

    /** The settings of a client, from BOOTSTRAP in column `first` to SECRET. */
    static Properties of(String[] fields, int first) {
        String authority = fields[first + 1];
        String identity = fields[first + 2];
        String mechanism = fields[first + 3];
        Properties settings = new Properties();
        settings.put("bootstrap.servers", fields[first]);
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
            String login = login(mechanism, fields[first + 4], fields[first + 5]);
            settings.put("sasl.jaas.config", login);
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
