import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ThreadLocalRandom;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.connect.cli.ConnectDistributed;
import org.apache.kafka.connect.cli.ConnectStandalone;

/**
 * Kafka Connect copies the lines of a file to a topic and from there to a file. The distributed
 * worker, with exactly-once support for sources, is killed in its work and started again; the
 * standalone worker after its source was stopped. Each line must be in the topic and in the last
 * file once; ../README.md describes the interface.
 */
public final class ConnectLines {
    private static final long DEADLINE_MS = 90_000;
    private static final String TRANSACTION_MS = "5000";
    private static final Duration POLL = Duration.ofMillis(300);
    private static final int PORTIONS = 3;
    private static final int LINES = 300;

    private final String bootstrap;
    private final String topic;
    private final Path directory;
    private final int port = freePort();
    private final HttpClient http = HttpClient.newHttpClient();
    private int checks = 0;
    private int failures = 0;

    private ConnectLines(String bootstrap, String topic) throws IOException {
        this.bootstrap = bootstrap;
        this.topic = topic;
        this.directory = Files.createTempDirectory("moldau-connect-");
    }

    /** {@code BOOTSTRAP connect TOPIC}. */
    public static void main(String[] args) throws Exception {
        ConnectLines program = new ConnectLines(args[0], args[2]);
        program.run();
        try (Stream<Path> files = Files.walk(program.directory)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
        System.exit(program.failures == 0 && program.checks > 0 ? 0 : 1);
    }

    private void run() throws Exception {
        Path services = Files.createDirectories(directory.resolve("META-INF/services"));
        Files.writeString(services.resolve("org.apache.kafka.connect.source.SourceConnector"),
            LineSource.class.getName() + "\n");
        Files.writeString(services.resolve("org.apache.kafka.connect.sink.SinkConnector"),
            LineSink.class.getName() + "\n");
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", bootstrap))) {
            admin.createTopics(List.of(
                new NewTopic(topic, 1, (short) 1), new NewTopic(topic + "-alone", 1, (short) 1)))
                .all().get();
        }
        distributed();
        standalone();
    }

    private void distributed() throws Exception {
        Files.createFile(directory.resolve("lines"));
        for (int portion = 0; portion < PORTIONS; portion++) {
            Process worker = distributedWorker();
            try {
                awaitWorker(worker);
                if (portion == 0) {
                    create("source", source(topic, "lines"));
                    create("sink", sink(topic, "copy"));
                }
                append("lines", portion);
                boolean isLast = portion == PORTIONS - 1;
                // A kill comes while lines are under way.
                int wanted = portion * LINES + (isLast ? LINES : LINES / 4);
                await("lines in the sink's file", () -> lines("copy").size() >= wanted);
                if (isLast) {
                    judge(topic, "copy", PORTIONS);
                    offsets();
                }
            } finally {
                worker.destroyForcibly().waitFor();
            }
        }
    }

    /** Offsets of connectors are in topics; without them, a source begins at its start again. */
    private void offsets() throws Exception {
        long end = Files.size(directory.resolve("lines"));
        await("the last offset of the source",
            () -> get("/connectors/" + topic + "-source/offsets").contains("" + end));
        String offsets = get("/connectors/" + topic + "-source/offsets");
        check("the source's offset is the end of its file",
            offsets.contains("\"position\":" + end), offsets);
        String used = get("/connectors/" + topic + "-source/topics");
        check("the topic of the source is known", used.contains("\"" + topic + "\""), used);
        String source = "/connectors/" + topic + "-source";
        send("PUT", source + "/stop", "");
        await("a stopped source", () -> get(source + "/status").contains("STOPPED"));
        // The tasks that are gone are fenced before their offsets are deleted.
        String deleted = send("DELETE", source + "/offsets", "");
        check("the offsets of a stopped source are deleted", deleted.contains("reset"), deleted);
        String none = get(source + "/offsets");
        check("none is left", none.contains("\"offsets\":[]"), none);
        send("PUT", source + "/resume", "");
        await("every line once more", () -> lines("copy").size() >= 2 * PORTIONS * LINES);
        List<String> twice = new ArrayList<>(expected(PORTIONS));
        twice.addAll(expected(PORTIONS));
        check("every line comes once more", values("copy").equals(twice),
            "" + lines("copy").size());
        check("and is in the topic", read(topic, twice.size()).equals(twice), "");
        send("DELETE", source, "");
        await("a deleted connector", () -> !get("/connectors").contains("-source"));
        String left = get("/connectors");
        check("a deleted connector is gone", !left.contains("-source"), left);
    }

    private void standalone() throws Exception {
        String alone = topic + "-alone";
        Files.createFile(directory.resolve("more-lines"));
        for (int portion = 0; portion < 2; portion++) {
            Process worker = standaloneWorker(alone);
            try {
                append("more-lines", portion);
                int wanted = (portion + 1) * LINES;
                await("lines in the second file", () -> lines("more-copy").size() >= wanted);
                // The offsets are in a file, which is written now and then and when a source stops.
                String source = "/connectors/" + alone + "-source";
                await("a taken request to stop", () -> send("PUT", source + "/stop", "").isEmpty());
                await("a stopped source", () -> get(source + "/status").contains("STOPPED"));
                String status = get(source + "/status");
                check("a source of a standalone worker stops", status.contains("STOPPED"), status);
            } finally {
                worker.destroyForcibly().waitFor();
            }
        }
        judge(alone, "more-copy", 2);
    }

    /** Compares the topic and the file of the sink with the lines that were written. */
    private void judge(String name, String copy, int portions) throws Exception {
        List<String> expected = expected(portions);
        List<String> found = read(name, expected.size());
        check("each line is in the topic once, in order",
            found.equals(expected), found.size() + " of " + expected.size());
        check("each line is in the sink's file once, in order", values(copy).equals(expected),
            lines(copy).size() + " of " + expected.size());
    }

    private Process distributedWorker() throws Exception {
        Map<String, String> settings = common();
        settings.put("group.id", topic + "-workers");
        for (String storage : List.of("config", "offset", "status")) {
            settings.put(storage + ".storage.topic", topic + "-" + storage);
            settings.put(storage + ".storage.replication.factor", "1");
        }
        settings.put("offset.storage.partitions", "2");
        settings.put("status.storage.partitions", "1");
        settings.put("exactly.once.source.support", "enabled");
        // What a killed worker leaves open keeps the next one from its offsets until then.
        settings.put("transaction.timeout.ms", TRANSACTION_MS);
        settings.put("producer.transaction.timeout.ms", TRANSACTION_MS);
        settings.put("session.timeout.ms", "6000");
        settings.put("heartbeat.interval.ms", "300");
        settings.put("scheduled.rebalance.max.delay.ms", "0");
        return start(ConnectDistributed.class, file("distributed.properties", settings));
    }

    private Process standaloneWorker(String alone) throws Exception {
        Map<String, String> settings = common();
        settings.put("offset.storage.file.filename", directory.resolve("offsets").toString());
        Map<String, String> source = source(alone, "more-lines");
        source.put("name", alone + "-source");
        Map<String, String> sink = sink(alone, "more-copy");
        sink.put("name", alone + "-sink");
        return start(ConnectStandalone.class, file("standalone.properties", settings),
            file("source.properties", source), file("sink.properties", sink));
    }

    private Map<String, String> common() {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("bootstrap.servers", bootstrap);
        settings.put("listeners", "http://127.0.0.1:" + port);
        settings.put("plugin.discovery", "service_load");
        settings.put("key.converter", "org.apache.kafka.connect.storage.StringConverter");
        settings.put("value.converter", "org.apache.kafka.connect.storage.StringConverter");
        settings.put("offset.flush.interval.ms", "500");
        settings.put("consumer.isolation.level", "read_committed");
        settings.put("consumer.session.timeout.ms", "6000");
        settings.put("consumer.heartbeat.interval.ms", "300");
        return settings;
    }

    private Map<String, String> source(String to, String file) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("connector.class", LineSource.class.getName());
        settings.put("tasks.max", "1");
        settings.put(LineSource.TOPIC, to);
        settings.put(LineSource.FILE, directory.resolve(file).toString());
        return settings;
    }

    private Map<String, String> sink(String from, String file) {
        Map<String, String> settings = new LinkedHashMap<>();
        settings.put("connector.class", LineSink.class.getName());
        settings.put("tasks.max", "1");
        settings.put("topics", from);
        settings.put(LineSource.FILE, directory.resolve(file).toString());
        return settings;
    }

    private String file(String name, Map<String, String> settings) throws IOException {
        Properties properties = new Properties();
        properties.putAll(settings);
        Path file = directory.resolve(name);
        try (var output = Files.newOutputStream(file)) {
            properties.store(output, null);
        }
        return file.toString();
    }

    private Process start(Class<?> worker, String... files) throws Exception {
        List<String> command = new ArrayList<>(List.of(
            ProcessHandle.current().info().command().orElse("java"),
            "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
            "-cp", System.getProperty("java.class.path") + ":" + directory, worker.getName()));
        command.addAll(List.of(files));
        return new ProcessBuilder(command).redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT).start();
    }

    private void awaitWorker(Process worker) throws Exception {
        await("a healthy worker",
            () -> !worker.isAlive() || get("/health").contains("healthy"));
        check("a worker serves requests", worker.isAlive(), "it ended");
    }

    private void create(String name, Map<String, String> settings) throws Exception {
        String fields = settings.entrySet().stream()
            .map(entry -> "\"" + entry.getKey() + "\": \"" + entry.getValue() + "\"")
            .collect(Collectors.joining(", ", "{", "}"));
        String answer = send("PUT", "/connectors/" + topic + "-" + name + "/config", fields);
        check("a " + name + " is created", answer.contains("\"name\""), answer);
    }

    private String get(String path) {
        return send("GET", path, "");
    }

    /** The body of the answer; empty where there is none, as a worker starts or rebalances. */
    private String send(String method, String path, String body) {
        HttpRequest request = HttpRequest.newBuilder(
                URI.create("http://127.0.0.1:" + port + path))
            .timeout(Duration.ofSeconds(60))
            .header("Content-Type", "application/json")
            .method(method, HttpRequest.BodyPublishers.ofString(body)).build();
        try {
            return http.send(request, HttpResponse.BodyHandlers.ofString()).body();
        } catch (IOException error) {
            return "";
        } catch (InterruptedException error) {
            throw new IllegalStateException(error);
        }
    }

    private void append(String file, int portion) throws IOException {
        String text = IntStream.range(portion * LINES, (portion + 1) * LINES)
            .mapToObj(i -> "line-" + i + "\n").collect(Collectors.joining());
        Files.writeString(directory.resolve(file), text, StandardOpenOption.APPEND);
    }

    private static List<String> expected(int portions) {
        return IntStream.range(0, portions * LINES).mapToObj(i -> "line-" + i).toList();
    }

    /** The whole lines of a sink's file. */
    private List<String> lines(String copy) throws IOException {
        Path file = LineSink.file(directory.resolve(copy).toString(), 0);
        String text = Files.exists(file) ? Files.readString(file) : "";
        return text.substring(0, text.lastIndexOf('\n') + 1).lines().toList();
    }

    private List<String> values(String copy) throws IOException {
        return lines(copy).stream().map(line -> line.substring(line.indexOf(' ') + 1)).toList();
    }

    /** The committed values, once there are so many of them or the time is up. */
    private List<String> read(String name, int wanted) {
        List<String> values = new ArrayList<>();
        Map<String, Object> settings =
            Map.of("bootstrap.servers", bootstrap, "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(
                settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = List.of(new TopicPartition(name, 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long deadline = System.currentTimeMillis() + DEADLINE_MS;
            boolean isPast = false;
            // One poll more shows what should not be there.
            while (!isPast && System.currentTimeMillis() < deadline) {
                isPast = values.size() >= wanted;
                consumer.poll(POLL).forEach(record -> values.add(record.value()));
            }
        }
        return values;
    }

    private void await(String what, Condition condition) throws Exception {
        long deadline = System.currentTimeMillis() + DEADLINE_MS;
        while (!condition.holds()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException(what + " did not come in " + DEADLINE_MS + " ms");
            }
            Thread.sleep(50);
        }
    }

    /** A port below those that outgoing connections get, as they would hold it for a minute. */
    private static int freePort() throws IOException {
        for (int attempt = 0; attempt < 100; attempt++) {
            int port = ThreadLocalRandom.current().nextInt(10_000, 30_000);
            try (var socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
                return socket.getLocalPort();
            } catch (IOException error) {
                continue;
            }
        }
        throw new IOException("no port is free");
    }

    private void check(String name, boolean ok, String detail) {
        checks++;
        String line = "{\"check\": \"" + name + "\", \"ok\": " + ok;
        if (!ok) {
            failures++;
            line += ", \"detail\": \"" + detail.replaceAll("[\\\\\"\\p{Cntrl}]", "'") + "\"";
        }
        System.out.println(line + "}");
    }

    private interface Condition {
        boolean holds() throws Exception;
    }
}
