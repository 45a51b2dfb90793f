import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.TransactionListing;
import org.apache.kafka.clients.admin.TransactionState;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.UnknownTopicIdException;

/** Tenants with the same names at the same time; ../README.md describes the lines that it reads. */
public final class TenantsSession {
    private static boolean failed = false;

    private final List<Tenant> tenants = new ArrayList<>();

    private TenantsSession() {}

    public static void main(String[] args) throws Exception {
        if (args.length == 1) {
            listCluster(args[0]);
            return;
        }
        var session = new TenantsSession();
        var input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            String[] fields = line.split("\t");
            int partitions = session.tenants.size() + 2;
            var settings = ConnectionSettings.of(fields, 1);
            session.tenants.add(new Tenant(fields[0], partitions, settings));
        }
        session.run();
        System.out.flush();
        System.exit(failed ? 1 : 0);
    }

    private void run() throws Exception {
        for (Tenant tenant : tenants) {
            tenant.createTopics();
        }
        topics();
        transactions();
        for (String protocol : List.of("classic", "consumer")) {
            group(protocol);
        }
        each("the groups listed are the tenant's", tenant -> {
            Set<String> listed = tenant.admin.listGroups().all().get().stream()
                .map(group -> group.groupId()).collect(Collectors.toSet());
            return equal(listed, Set.of(Tenant.group("classic"), Tenant.group("consumer")));
        });
        deletion();
        for (Tenant tenant : tenants) {
            tenant.close();
        }
    }

    private void topics() throws Exception {
        each("the topics listed are the tenant's, each with its partitions", tenant -> {
            var all = new ListTopicsOptions().listInternal(true);
            Set<String> listed = tenant.admin.listTopics(all).names().get();
            var described = tenant.admin.describeTopics(listed).allTopicNames().get();
            int partitions = described.get(Tenant.TOPIC).partitions().size();
            return equal(listed, Set.of(Tenant.TOPIC, tenant.ownTopic()))
                .or(() -> equal(partitions, tenant.partitions));
        });
        each("the id of another tenant's topic leads nowhere", tenant -> {
            Uuid id = other(tenant).topicId();
            try {
                var ids = TopicCollection.ofTopicIds(List.of(id));
                return Optional.of(tenant.admin.describeTopics(ids).allTopicIds().get().toString());
            } catch (ExecutionException error) {
                boolean refused = error.getCause() instanceof UnknownTopicIdException;
                return refused ? Optional.empty() : Optional.of(error.toString());
            }
        });
    }

    /** Transactions of one transactional id, open in all tenants at once. */
    private void transactions() throws Exception {
        for (Tenant tenant : tenants) {
            tenant.producer.initTransactions();
        }
        for (Tenant tenant : tenants) {
            tenant.producer.beginTransaction();
            tenant.send("committed");
        }
        var ids = new HashSet<Long>();
        each("the transaction listed is the tenant's own, of its topics", tenant -> {
            var listed = tenant.admin.listTransactions().all().get();
            listed.stream().map(TransactionListing::producerId).forEach(ids::add);
            var described = tenant.admin.describeTransactions(Set.of(Tenant.TRANSACTIONAL_ID))
                .description(Tenant.TRANSACTIONAL_ID).get();
            Set<String> names = listed.stream().map(TransactionListing::transactionalId)
                .collect(Collectors.toSet());
            Set<String> topics = described.topicPartitions().stream()
                .map(TopicPartition::topic).collect(Collectors.toSet());
            return equal(names, Set.of(Tenant.TRANSACTIONAL_ID))
                .or(() -> equal(listed.size(), 1))
                .or(() -> equal(described.state(), TransactionState.ONGOING))
                .or(() -> equal(topics, Set.of(Tenant.TOPIC, tenant.ownTopic())));
        });
        check("no tenant's producer has the id of another's", ids.size() == tenants.size(), ids);
        each("no tenant's transaction is fenced by another's", tenant -> {
            tenant.producer.commitTransaction();
            tenant.producer.beginTransaction();
            tenant.send("aborted");
            return Optional.empty();
        });
        for (Tenant tenant : tenants) {
            tenant.producer.abortTransaction();
        }
    }

    /** Groups of one name, of two members in each tenant, that subscribe by expression. */
    private void group(String protocol) throws Exception {
        for (Tenant tenant : tenants) {
            tenant.join(protocol, 2);
        }
        Tenant.await(() -> {
            for (Tenant tenant : tenants) {
                tenant.poll();
            }
            return tenants.stream().allMatch(Tenant::isComplete);
        });
        for (Tenant tenant : tenants) {
            tenant.poll();
        }
        each("a " + protocol + " group by expression reads the tenant's records alone", tenant ->
            equal(new TreeSet<>(tenant.read), new TreeSet<>(tenant.expected()))
                .or(() -> equal(tenant.read.size(), tenant.expected().size())));
        each("a described " + protocol + " group has the tenant's members and topics", tenant -> {
            String group = Tenant.group(protocol);
            var described = tenant.admin.describeConsumerGroups(Set.of(group))
                .describedGroups().get(group).get();
            Set<TopicPartition> assigned = described.members().stream()
                .flatMap(member -> member.assignment().topicPartitions().stream())
                .collect(Collectors.toSet());
            return equal(described.members().size(), 2)
                .or(() -> equal(assigned, tenant.allPartitions()));
        });
        each("offsets of a " + protocol + " group are committed by a transaction", tenant -> {
            var positions = tenant.commitByTransaction();
            // The coordinator of the group hears of a commit after the producer does.
            Tenant.await(() -> tenant.committed(protocol).equals(positions));
            var committed = tenant.committed(protocol);
            return equal(committed.keySet(), tenant.allPartitions())
                .or(() -> equal(committed, positions));
        });
        for (Tenant tenant : tenants) {
            tenant.leave();
        }
    }

    /** What one tenant deletes stays there for the others. */
    private void deletion() throws Exception {
        Tenant first = tenants.get(0);
        first.admin.deleteConsumerGroups(Set.of(Tenant.group("classic"))).all().get();
        first.admin.deleteTopics(Set.of(Tenant.TOPIC)).all().get();
        Tenant.await(() -> !first.admin.listTopics().names().get().contains(Tenant.TOPIC));
        for (Tenant tenant : tenants.subList(1, tenants.size())) {
            var group = Tenant.group("classic");
            var listed = tenant.admin.listGroups().all().get();
            boolean kept = listed.stream().anyMatch(found -> found.groupId().equals(group));
            var topics = tenant.admin.listTopics().names().get();
            check("topic and group of one tenant outlive those of another",
                kept && topics.contains(Tenant.TOPIC), listed + " " + topics);
        }
    }

    private Tenant other(Tenant tenant) {
        return tenants.get((tenants.indexOf(tenant) + 1) % tenants.size());
    }

    /** What was found instead of what must hold of a tenant. */
    private interface Statement {
        Optional<String> fault(Tenant tenant) throws Exception;
    }

    private void each(String name, Statement statement) {
        for (Tenant tenant : tenants) {
            Optional<String> fault;
            try {
                fault = statement.fault(tenant);
            } catch (Exception error) {
                fault = Optional.of(error.toString());
            }
            check(name, fault.isEmpty(), tenant.name + ": " + fault.orElse(""));
        }
    }

    private static Optional<String> equal(Object found, Object wanted) {
        return found.equals(wanted) ? Optional.empty() : Optional.of(found + ", not " + wanted);
    }

    private static void check(String name, boolean ok, Object detail) {
        failed |= !ok;
        String shown = detail.toString().replaceAll("[\"\\\\\n]", " ");
        System.out.println("{\"check\": \"" + name + "\", \"ok\": " + ok
            + (ok ? "}" : ", \"detail\": \"" + shown + "\"}"));
    }

    /** Prints what a cluster has, under its names there. */
    private static void listCluster(String bootstrap) throws Exception {
        var settings = new Properties();
        settings.putAll(Map.of("bootstrap.servers", bootstrap));
        try (Admin admin = Admin.create(settings)) {
            admin.listTopics().names().get().forEach(name -> System.out.println("topic " + name));
            admin.listGroups().all().get()
                .forEach(group -> System.out.println("group " + group.groupId()));
            admin.listTransactions().all().get().forEach(transaction ->
                System.out.println("transactional-id " + transaction.transactionalId()));
        }
    }
}
