"""The scenario `kip-848` of librdkafka; ../README.md says what it contains."""

from confluent_kafka import ConsumerGroupState, ConsumerGroupType, TopicPartition
from confluent_kafka.admin import NewPartitions

BATCH = 80
POLL_S = 0.1


class ConsumerProtocol:
    def __init__(self, client, until):
        self.client = client
        self.topic = client.topic
        self.until = until
        self.seen = []
        self.members = []

    def run(self):
        self.client.create_topic(4)
        check = self.client.check
        self.members = [self.member(self.topic) for _ in range(3)]
        check("three members share all partitions", self.wait(lambda: self.shared(4)),
              self.assignments())
        self.produce("one")
        check("they read every record once", self.wait(lambda: self.exactly("one")), self.seen)
        for member in self.members:
            member.commit(asynchronous=False)
        self.described()
        self.members.pop().close()
        self.produce("two")
        check("nothing is lost or repeated after one leaves",
              self.wait(lambda: self.shared(4) and self.exactly("one", "two")), self.seen)
        self.client.admin_client.create_partitions(
            [NewPartitions(self.topic, 6)])[self.topic].result()
        check("added partitions find their members", self.wait(lambda: self.shared(6)),
              self.assignments())
        for member in self.members:
            member.commit(asynchronous=False)
        while self.members:
            self.members.pop().close()
        self.resumes()
        self.statics()
        self.patterns()
        deleted = self.client.admin_client.delete_consumer_groups([self.topic])[self.topic]
        check("a group without members is deleted", deleted.result() is None)

    def described(self):
        admin = self.client.admin_client
        group = admin.describe_consumer_groups([self.topic])[self.topic].result()
        self.client.check(
            "the described group is stable and of the consumer protocol",
            group.state == ConsumerGroupState.STABLE and group.type == ConsumerGroupType.CONSUMER
            and len(group.members) == 3, (group.state, group.type, len(group.members)))
        listed = admin.list_consumer_groups(types={ConsumerGroupType.CONSUMER}).result().valid
        self.client.check("it is listed with its type",
                          any(it.group_id == self.topic for it in listed),
                          [it.group_id for it in listed])

    def resumes(self):
        self.produce("three")
        member = self.member(self.topic)
        self.members = [member]
        self.client.check("a later member goes on from the commit",
                          self.wait(lambda: self.exactly("one", "two", "three")), self.seen)
        member.commit(asynchronous=False)
        partitions = [TopicPartition(self.topic, index) for index in range(4)]
        committed = sum(it.offset for it in member.committed(partitions, timeout=10))
        self.client.check("the committed offsets cover every record", committed == 3 * BATCH,
                          committed)
        self.members.pop().close()

    def statics(self):
        group = self.topic + "-static"
        settings = [{"group.instance.id": name} for name in ("one", "two")]
        self.members = [self.member(group, it) for it in settings]
        self.client.check("static members share all partitions", self.wait(lambda: self.shared(6)),
                          self.assignments())
        first = self.members.pop(0)
        had = sorted((it.topic, it.partition) for it in first.assignment())
        first.close()
        back = self.member(group, settings[0])
        self.members.append(back)
        self.client.check(
            "a static member comes back to what it had",
            self.wait(lambda: sorted((it.topic, it.partition) for it in back.assignment()) == had),
            (had, self.assignments()))
        while self.members:
            self.members.pop().close()

    def patterns(self):
        self.members = [self.member(self.topic + "-pattern", topic="^" + self.topic + ".*")]
        self.client.check("a pattern finds its topic", self.wait(lambda: self.shared(6)),
                          self.assignments())
        self.members.pop().close()

    def member(self, group, settings=None, topic=None):
        consumer = self.client.consumer(
            {"group.id": group, "group.protocol": "consumer", **(settings or {})})
        consumer.subscribe([topic or self.topic])
        return consumer

    def shared(self, partitions):
        shares = [[(it.topic, it.partition) for it in member.assignment()]
                  for member in self.members]
        held = [partition for share in shares for partition in share]
        return all(shares) and len(held) == len(set(held)) == partitions

    def assignments(self):
        return [member.assignment() for member in self.members]

    def exactly(self, *batches):
        return sorted(self.seen) == sorted(
            f"{batch}-{i}".encode() for batch in batches for i in range(BATCH))

    def produce(self, name):
        producer = self.client.producer({})
        for i in range(BATCH):
            producer.produce(self.topic, f"{name}-{i}".encode(), partition=i % 4)
        producer.flush(40)

    def wait(self, condition):
        """Lets the members read until the condition holds."""
        def step():
            if condition():
                return True
            for member in self.members:
                for message in member.consume(500, POLL_S):
                    if not message.error():
                        self.seen.append(message.value())
            return condition()

        self.until(step)
        return condition()
