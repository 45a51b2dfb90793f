import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.acl.AclOperation;
import org.apache.kafka.common.message.RequestHeaderData;
import org.apache.kafka.common.message.ResponseHeaderData;
import org.apache.kafka.common.protocol.ApiKeys;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.MessageUtil;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.record.internal.SimpleRecord;
import org.apache.kafka.common.resource.ResourceType;

/**
 * Requests of one client that may do nothing, then of one that has some right, the same on every
 * server.
 *
 * <p>{@code AuthorizationSession BOOTSTRAP} reads cases from its input, and prints one line for
 * each case and right: their names, a tab, and the codes, names and authorised operations of the
 * answer. A case is a line of five columns: its name, API, version, the request as JSON of Kafka's
 * messages, and the rights that are tried one after the other, separated by semicolons; each may be
 * several ACLs, joined by commas. Lines that begin with {@code !} are asked by the administrator
 * and print nothing.
 *
 * <p>Both clients are anonymous. ACLs tell them apart by their hosts, so the server has to let
 * everyone use what no ACL is about: until the administrator's own ACLs are there.
 */
public final class AuthorizationSession {
    private static final String ADMINISTRATOR = "127.0.0.1";
    private static final String CLIENT = "127.0.0.2";
    private static final long DEADLINE_MS = 60_000;

    /** Codes of a server that is not ready yet. */
    private static final List<Integer> PASSING = List.of(5, 6, 14, 15, 16, 41);

    private final Connection administrator;
    private final Connection client;
    private final long deadline = System.currentTimeMillis() + 4 * DEADLINE_MS;
    /** The id of the one broker. */
    private String broker = "";
    private int probes = 0;

    private AuthorizationSession(String bootstrap) throws IOException {
        this.administrator = new Connection(bootstrap, ADMINISTRATOR);
        this.client = new Connection(bootstrap, CLIENT);
    }

    public static void main(String[] args) throws Exception {
        AuthorizationSession session = new AuthorizationSession(args[0]);
        session.secure();
        BufferedReader cases = new BufferedReader(new InputStreamReader(System.in));
        for (String line = cases.readLine(); line != null; line = cases.readLine()) {
            if (!line.isBlank() && !line.startsWith("#")) {
                session.run(line.split("\t+"));
            }
        }
    }

    /** Gives the administrator every right, which takes them from everyone else. */
    private void secure() throws Exception {
        JsonNode cluster = administrator.ask(ApiKeys.DESCRIBE_CLUSTER, (short) 1,
            "{\"includeClusterAuthorizedOperations\":false,\"endpointType\":1}");
        broker = cluster.get("brokers").get(0).get("brokerId").asText();
        List<String> acls = new ArrayList<>();
        for (String resource : List.of("TOPIC *", "GROUP *", "CLUSTER kafka-cluster",
            "TRANSACTIONAL_ID *", "DELEGATION_TOKEN *", "USER *")) {
            acls.add("ALL " + resource);
        }
        create(acls, ADMINISTRATOR);
        probe(29);
    }

    private void run(String[] columns) throws Exception {
        ApiKeys api = ApiKeys.valueOf(columns[1]);
        short version = Short.parseShort(columns[2]);
        if (columns[0].startsWith("!")) {
            administrator.await(api, version, columns[3]);
            return;
        }
        step(columns[0] + ", no right", client.await(api, version, columns[3]));
        String[] rights = columns.length > 4 ? columns[4].split(";") : new String[0];
        for (String right : rights) {
            create(List.of(right.trim().split(",")), CLIENT);
            step(columns[0] + ", " + right.trim(), client.await(api, version, columns[3]));
            clear();
        }
    }

    private void step(String name, JsonNode answer) {
        System.out.println(name + "\t" + shown(answer));
    }

    /** Creates ACLs, and waits until the server goes by them. */
    private void create(List<String> acls, String host) throws Exception {
        StringBuilder creations = new StringBuilder();
        for (String acl : acls) {
            String[] words = acl.trim().split(" ", 3);
            creations.append(creation(words[0], words[1], words[2], host)).append(',');
        }
        probes += 1;
        creations.append(creation("DESCRIBE", "TOPIC", "probe-" + probes, host));
        JsonNode answer = administrator.ask(ApiKeys.CREATE_ACLS, (short) 3,
            "{\"creations\":[" + creations + "]}");
        for (JsonNode result : answer.get("results")) {
            if (result.get("errorCode").asInt() != 0) {
                throw new IllegalStateException(acls + ": " + answer);
            }
        }
        if (host.equals(CLIENT)) {
            probe(3);
        }
    }

    private static String creation(String operation, String type, String name, String host) {
        return "{\"resourceType\":" + ResourceType.valueOf(type).code()
            + ",\"resourceName\":\"" + name + "\",\"resourcePatternType\":3"
            + ",\"principal\":\"User:ANONYMOUS\",\"host\":\"" + host + "\",\"operation\":"
            + AclOperation.valueOf(operation).code() + ",\"permissionType\":3}";
    }

    /** Takes every right from the client. */
    private void clear() throws Exception {
        administrator.ask(ApiKeys.DELETE_ACLS, (short) 3,
            "{\"filters\":[{\"resourceTypeFilter\":1,\"resourceNameFilter\":null,"
                + "\"patternTypeFilter\":1,\"principalFilter\":null,\"hostFilter\":\"" + CLIENT
                + "\",\"operation\":1,\"permissionType\":1}]}");
        probe(29);
    }

    /** Waits until the client gets this code for the newest topic that does not exist. */
    private void probe(int code) throws Exception {
        String request = "{\"topics\":[{\"topicId\":\"" + Uuid.ZERO_UUID + "\",\"name\":\"probe-"
            + probes + "\"}],\"allowAutoTopicCreation\":false,"
            + "\"includeTopicAuthorizedOperations\":false}";
        while (true) {
            JsonNode answer = client.ask(ApiKeys.METADATA, (short) 12, request);
            if (answer.get("topics").get(0).get("errorCode").asInt() == code) {
                return;
            }
            pause(answer);
        }
    }

    private void pause(JsonNode answer) throws InterruptedException {
        if (System.currentTimeMillis() > deadline) {
            throw new IllegalStateException("still " + answer);
        }
        Thread.sleep(20);
    }

    /** What of an answer does not depend on time, place or chance. */
    private String shown(JsonNode node) {
        if (node.isArray()) {
            List<String> elements = new ArrayList<>();
            node.forEach(element -> elements.add(shown(element)));
            elements.removeIf(String::isEmpty);
            elements.sort(null);
            return elements.isEmpty() ? "" : elements.toString();
        }
        if (!node.isObject()) {
            return "";
        }
        List<String> fields = new ArrayList<>();
        for (Map.Entry<String, JsonNode> field : node.properties()) {
            String name = field.getKey();
            String lower = name.toLowerCase(Locale.ROOT);
            boolean told = lower.endsWith("errorcode") || lower.endsWith("authorizedoperations")
                || List.of("name", "topic", "groupId", "key", "user", "partitionIndex", "index",
                    "partition", "resourceName", "resourceType").contains(name);
            String value = told ? field.getValue().asText() : shown(field.getValue());
            if (name.equals("configs")) {
                continue;
            }
            if (name.equals("resourceName") && value.equals(broker)) {
                value = "BROKER";
            }
            if (!value.isEmpty()) {
                fields.add(name + "=" + value);
            }
        }
        return fields.isEmpty() ? "" : fields.toString();
    }

    /** A socket that speaks Kafka's protocol, one request after the other. */
    private final class Connection {
        private final Socket socket = new Socket();
        private final DataInputStream in;
        private final OutputStream out;
        private int correlationId = 0;

        Connection(String bootstrap, String host) throws IOException {
            int colon = bootstrap.lastIndexOf(':');
            socket.bind(new InetSocketAddress(host, 0));
            socket.connect(new InetSocketAddress(bootstrap.substring(0, colon),
                Integer.parseInt(bootstrap.substring(colon + 1))));
            socket.setSoTimeout((int) DEADLINE_MS);
            in = new DataInputStream(socket.getInputStream());
            out = socket.getOutputStream();
        }

        /** Asks until the server is ready to answer. */
        JsonNode await(ApiKeys api, short version, String json) throws Exception {
            while (true) {
                JsonNode answer = ask(api, version, json);
                if (PASSING.stream().noneMatch(code -> has(answer, code))) {
                    return answer;
                }
                pause(answer);
            }
        }

        JsonNode ask(ApiKeys api, short version, String json) throws Exception {
            String name = api.messageType.newRequest().getClass().getSimpleName();
            ApiMessage request = (ApiMessage) converter(name)
                .getMethod("read", JsonNode.class, short.class)
                .invoke(null, new ObjectMapper().readTree(resolved(json)), version);
            RequestHeaderData header = new RequestHeaderData().setRequestApiKey(api.id)
                .setRequestApiVersion(version).setClientId("session")
                .setCorrelationId(++correlationId);
            ByteBuffer head = MessageUtil.toByteBufferAccessor(header,
                api.requestHeaderVersion(version)).buffer();
            ByteBuffer body = MessageUtil.toByteBufferAccessor(request, version).buffer();
            ByteBuffer frame = ByteBuffer.allocate(4 + head.remaining() + body.remaining());
            frame.putInt(head.remaining() + body.remaining()).put(head).put(body);
            out.write(frame.array());
            byte[] answer = new byte[in.readInt()];
            in.readFully(answer);
            ByteBufferAccessor bytes = new ByteBufferAccessor(ByteBuffer.wrap(answer));
            new ResponseHeaderData().read(bytes, api.responseHeaderVersion(version));
            ApiMessage response = api.messageType.newResponse();
            response.read(bytes, version);
            try {
                return (JsonNode) converter(response.getClass().getSimpleName())
                    .getMethod("write", response.getClass(), short.class)
                    .invoke(null, response, version);
            } catch (InvocationTargetException error) {
                throw new IllegalStateException(response.toString(), error);
            }
        }

        private Class<?> converter(String message) throws ClassNotFoundException {
            return Class.forName("org.apache.kafka.common.message." + message + "JsonConverter");
        }

        /** Puts in what a request cannot know. */
        private String resolved(String json) throws Exception {
            String resolved = json.replace("$ZERO", Uuid.ZERO_UUID.toString())
                .replace("$NO_TOPIC", new Uuid(7, 7).toString())
                .replace("$BROKER", broker)
                .replace("$BATCH", encoded(MemoryRecords.withRecords(Compression.NONE,
                    new SimpleRecord("value".getBytes()))))
                .replace("$TRANSACTIONAL", encoded(MemoryRecords.withTransactionalRecords(
                    Compression.NONE, 5, (short) 0, 0, new SimpleRecord("value".getBytes()))));
            int at = resolved.indexOf("$ID(");
            while (at >= 0) {
                int end = resolved.indexOf(')', at);
                String topic = resolved.substring(at + 4, end);
                resolved = resolved.substring(0, at) + idOf(topic) + resolved.substring(end + 1);
                at = resolved.indexOf("$ID(");
            }
            return resolved;
        }

        private String encoded(MemoryRecords records) {
            ByteBuffer buffer = records.buffer().duplicate();
            byte[] bytes = new byte[buffer.remaining()];
            buffer.get(bytes);
            return Base64.getEncoder().encodeToString(bytes);
        }

        private String idOf(String topic) throws Exception {
            JsonNode answer = administrator.await(ApiKeys.METADATA, (short) 12,
                "{\"topics\":[{\"topicId\":\"$ZERO\",\"name\":\"" + topic + "\"}],"
                    + "\"allowAutoTopicCreation\":false,"
                    + "\"includeTopicAuthorizedOperations\":false}");
            return answer.get("topics").get(0).get("topicId").asText();
        }
    }

    private static boolean has(JsonNode node, int code) {
        JsonNode own = node.get("errorCode");
        if (own != null && own.asInt() == code) {
            return true;
        }
        for (JsonNode child : node) {
            if (has(child, code)) {
                return true;
            }
        }
        return false;
    }
}
