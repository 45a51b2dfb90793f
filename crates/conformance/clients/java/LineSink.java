import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;

/**
 * A Connect sink that appends each record as a line, {@code OFFSET VALUE}, to the file of its
 * partition. The file decides where a task goes on, so that nothing is in it twice.
 */
public final class LineSink extends SinkConnector {
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
        return new ConfigDef().define(LineSource.FILE, ConfigDef.Type.STRING,
            ConfigDef.Importance.HIGH, "what the file of each partition begins with");
    }

    @Override
    public String version() {
        return "1";
    }

    /** The file of a partition. */
    static Path file(String beginning, int partition) {
        return Path.of(beginning + "-" + partition);
    }

    /** The one task. */
    public static final class LineTask extends SinkTask {
        private String beginning;

        @Override
        public void start(Map<String, String> settings) {
            beginning = settings.get(LineSource.FILE);
        }

        @Override
        public void open(Collection<TopicPartition> partitions) {
            for (TopicPartition partition : partitions) {
                context.offset(partition, cutToLastLine(partition.partition()));
            }
        }

        /** Cuts off a line that a kill left unfinished; returns the offset of the next record. */
        private long cutToLastLine(int partition) {
            Path file = file(beginning, partition);
            try {
                String text = Files.exists(file) ? Files.readString(file) : "";
                text = text.substring(0, text.lastIndexOf('\n') + 1);
                Files.writeString(file, text);
                List<String> lines = text.lines().toList();
                return lines.isEmpty()
                    ? 0 : Long.parseLong(lines.get(lines.size() - 1).split(" ")[0]) + 1;
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public void put(Collection<SinkRecord> records) {
            try {
                for (SinkRecord record : records) {
                    Files.writeString(file(beginning, record.kafkaPartition()),
                        record.kafkaOffset() + " " + record.value() + "\n",
                        StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                }
            } catch (IOException error) {
                throw new IllegalStateException(error);
            }
        }

        @Override
        public Map<TopicPartition, OffsetAndMetadata> preCommit(
                Map<TopicPartition, OffsetAndMetadata> offsets) {
            return offsets;
        }

        @Override
        public void stop() {
        }

        @Override
        public String version() {
            return "1";
        }
    }
}
