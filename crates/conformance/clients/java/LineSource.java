import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.ConnectorTransactionBoundaries;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/** A Connect source of the whole lines of a file; the offset of a line is where the next starts. */
public final class LineSource extends SourceConnector {
    static final String FILE = "file";
    static final String TOPIC = "topic";
    static final String POSITION = "position";

    private Map<String, String> settings;

    @Override
    public void start(Map<String, String> settings) {
        this.settings = settings;
    }

    @Override
    public Class<? extends Task> taskClass() {
        return LineTask.class;
    }

    @Override
    public List<Map<String, String>> taskConfigs(int most) {
        return List.of(settings);
    }

    @Override
    public void stop() {
    }

    @Override
    public ConfigDef config() {
        return new ConfigDef()
            .define(FILE, ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "what is read")
            .define(TOPIC, ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "where it goes");
    }

    @Override
    public String version() {
        return "1";
    }

    @Override
    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> settings) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    @Override
    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(
            Map<String, String> settings) {
        return ConnectorTransactionBoundaries.UNSUPPORTED;
    }

    @Override
    public boolean alterOffsets(
            Map<String, String> settings, Map<Map<String, ?>, Map<String, ?>> offsets) {
        return true;
    }

    /** Each poll, and so each transaction, has a few lines. */
    public static final class LineTask extends SourceTask {
        private static final int LINES_MAX = 10;
        private static final int LINE_BYTES_MAX = 256;
        private static final long IDLE_MS = 20;

        private String topic;
        private Map<String, String> partition;
        private RandomAccessFile file;
        private long position;

        @Override
        public void start(Map<String, String> settings) {
            topic = settings.get(TOPIC);
            partition = Map.of(FILE, settings.get(FILE));
            Map<String, Object> offset = context.offsetStorageReader().offset(partition);
            position = offset == null ? 0 : ((Number) offset.get(POSITION)).longValue();
            try {
                file = new RandomAccessFile(settings.get(FILE), "r");
            } catch (IOException error) {
                throw new IllegalArgumentException(error);
            }
        }

        @Override
        public List<SourceRecord> poll() throws InterruptedException {
            List<SourceRecord> records = new ArrayList<>();
            // Slow enough that a kill finds work under way.
            Thread.sleep(IDLE_MS);
            try {
                byte[] bytes = new byte[LINES_MAX * LINE_BYTES_MAX];
                file.seek(position);
                int count = file.read(bytes);
                int start = 0;
                for (int end = 0; end < count && records.size() < LINES_MAX; end++) {
                    if (bytes[end] == '\n') {
                        String line = new String(bytes, start, end - start, StandardCharsets.UTF_8);
                        start = end + 1;
                        records.add(new SourceRecord(partition,
                            Map.of(POSITION, position + start), topic, Schema.STRING_SCHEMA, line));
                    }
                }
                position += start;
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
            return records.isEmpty() ? null : records;
        }

        @Override
        public void stop() {
            try {
                file.close();
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
