import io.kroxylicious.proxy.KafkaProxy;
import io.kroxylicious.proxy.config.ConfigParser;
import io.kroxylicious.proxy.internal.config.Features;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Runs Kroxylicious with a configuration until the process is ended: {@code KroxyliciousLauncher
 * CONFIGURATION}, the path of a YAML file. The line {@code Kroxylicious started} on standard output
 * says that its ports are open.
 */
public final class KroxyliciousLauncher {
    private KroxyliciousLauncher() {}

    public static void main(String[] arguments) throws Exception {
        ConfigParser parser = new ConfigParser();
        String yaml = Files.readString(Path.of(arguments[0]));
        Features features = Features.defaultFeatures();
        KafkaProxy proxy = new KafkaProxy(parser, parser.parseConfiguration(yaml), features);
        proxy.startup();
        System.out.println("Kroxylicious started");
        proxy.block();
    }
}
