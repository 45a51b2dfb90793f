import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.FetchResponseData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.requests.AbstractResponse;
import org.apache.kafka.common.requests.FetchRequest;
import org.apache.kafka.common.requests.FetchResponse;
import org.apache.kafka.common.requests.RequestHeader;

/** The batches of a partition as they lie on its leader, which a consumer does not show. */
final class UpstreamLog {
    /** The last version that names topics by their names. */
    private static final short VERSION = 12;
    private static final int BYTES_MAX = 16 << 20;
    private static final int TIMEOUT_MS = 20_000;

    private UpstreamLog() {}

    /** All batches, of aborted transactions too. */
    static List<RecordBatch> read(Node leader, TopicPartition partition) throws Exception {
        List<RecordBatch> batches = new ArrayList<>();
        try (Socket socket = new Socket(leader.host(), leader.port())) {
            socket.setSoTimeout(TIMEOUT_MS);
            long offset = 0;
            while (true) {
                int before = batches.size();
                FetchResponse.recordsOrFail(fetch(socket, partition, offset))
                    .batches().forEach(batches::add);
                if (batches.size() == before) {
                    return batches;
                }
                offset = batches.get(batches.size() - 1).nextOffset();
            }
        }
    }

    private static FetchResponseData.PartitionData fetch(
            Socket socket, TopicPartition partition, long offset) throws Exception {
        var wanted = new FetchRequest.PartitionData(
            Uuid.ZERO_UUID, offset, 0, BYTES_MAX, Optional.empty());
        var header = new RequestHeader(ApiKeys.FETCH, VERSION, "upstream-log", 1);
        ByteBuffer request = FetchRequest.Builder
            .forConsumer(VERSION, 0, 0, Map.of(partition, wanted))
            .setMaxBytes(BYTES_MAX)
            .build(VERSION)
            .serializeWithHeader(header);
        var output = new DataOutputStream(socket.getOutputStream());
        output.writeInt(request.remaining());
        output.write(request.array(), request.arrayOffset() + request.position(),
            request.remaining());
        output.flush();
        var input = new DataInputStream(socket.getInputStream());
        int size = input.readInt();
        byte[] frame = input.readNBytes(size);
        if (frame.length < size) {
            throw new EOFException("the leader closed the connection");
        }
        var response = (FetchResponse) AbstractResponse.parseResponse(
            ByteBuffer.wrap(frame), header);
        FetchResponseData.PartitionData data =
            response.data().responses().get(0).partitions().get(0);
        Errors.forCode(response.data().errorCode()).maybeThrow();
        Errors.forCode(data.errorCode()).maybeThrow();
        return data;
    }
}
