"""The scenario `kip-932` of librdkafka; ../README.md says what it contains. The library renews no
locks, tells no lock's time, and its admin client knows nothing of offsets of share groups."""

import time
from collections import Counter

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

BATCH = 80
POLL_S = 0.1
DEADLINE_S = 40
# How long nothing may come, where nothing should.
QUIET_S = 1


class ShareGroups:
    def __init__(self, client, until):
        self.client = client
        self.topic = client.topic
        self.until = until
        self.members = []
        # How often each value was delivered.
        self.seen = Counter()

    def run(self):
        self.client.create_topic(1)
        self.produce("one")
        self.implicit()
        self.explicit()
        self.abandoned()
        self.deleted()

    def implicit(self):
        """The next poll accepts what the last one returned."""
        group = self.group("implicit")
        self.members = [self.member(group, {"max.poll.records": 5}) for _ in range(3)]
        check = self.client.check
        check("three members of one partition read every record",
              self.read(lambda: len(self.seen) == BATCH), self.seen)
        check("each record is delivered once", self.is_once(), self.seen)
        self.produce("two")
        check("they go on with new records",
              self.read(lambda: len(self.seen) == 2 * BATCH) and self.is_once(), self.seen)
        for member in self.members:
            self.commit(member)
        self.close()
        self.members = [self.member(group, {})]
        self.produce("three")
        check("a later member goes on behind them",
              self.read(lambda: len(self.seen) == 3 * BATCH) and self.is_once(), self.seen)
        self.close()

    def explicit(self):
        """Every fourth record is released once, and every fourth is rejected."""
        member = self.member(self.group("explicit"), {"share.acknowledgement.mode": "explicit"})
        acknowledged = []
        member.set_acknowledgement_commit_callback(
            lambda offsets, error: acknowledged.append((offsets, error)))
        self.members = [member]
        self.seen.clear()
        wrong = []

        def choice(message):
            count = message.delivery_count()
            if count != self.seen[message.value()]:
                wrong.append((message.value(), count))
            if message.offset() % 4 == 1 and count < 2:
                return AcknowledgeType.RELEASE
            if message.offset() % 4 == 2:
                return AcknowledgeType.REJECT
            return AcknowledgeType.ACCEPT

        wanted = 3 * BATCH + 3 * BATCH // 4
        check = self.client.check
        check("released records come once more, others do not",
              self.read(lambda: self.seen.total() == wanted, choice),
              (self.seen.total(), len(self.seen)))
        check("deliveries are counted", not wrong, wrong)
        end = time.monotonic() + QUIET_S
        self.read(lambda: time.monotonic() > end, choice)
        check("nothing comes again", self.seen.total() == wanted, self.seen.total())
        self.commit(member)
        # The callback runs in a call of the member.
        self.until(lambda: member.poll(POLL_S) is None or self.answered(acknowledged) == wanted)
        errors = [error for _, error in acknowledged if error is not None]
        check("every acknowledgement is taken",
              self.answered(acknowledged) == wanted and not errors,
              (self.answered(acknowledged), errors))
        self.close()

    def abandoned(self):
        group = self.group("abandoned")
        settings = {"share.acknowledgement.mode": "explicit"}
        first = self.member(group, settings)
        held = self.hold(first)
        first.close()
        second = self.member(group, settings)
        self.members = [second]
        again = {}

        def choice(message):
            again[message.offset()] = message.delivery_count()
            return AcknowledgeType.ACCEPT

        self.seen.clear()
        self.read(lambda: len(self.seen) == 3 * BATCH, choice)
        missing = [offset for offset in held if again.get(offset) != 2]
        self.client.check("what a member left behind comes to another", held and not missing,
                          (len(held), sorted(again.items())[:5], missing[:5]))
        self.close()

    def deleted(self):
        group = self.group("deleted")
        self.members = [self.member(group, {})]
        self.seen.clear()
        self.read(lambda: len(self.seen) == 3 * BATCH)
        self.close()
        deleted = self.client.admin_client.delete_consumer_groups([group])[group]
        self.client.check("a group without members is deleted", deleted.result() is None)

    def group(self, name):
        """A group that reads from the first record on."""
        group = f"{self.topic}-{name}"
        resource = ConfigResource(ResourceType.GROUP, group, incremental_configs=[
            ConfigEntry("share.auto.offset.reset", "earliest",
                        incremental_operation=AlterConfigOpType.SET)])
        self.client.admin_client.incremental_alter_configs([resource])[resource].result()
        return group

    def member(self, group, settings):
        member = ShareConsumer({**self.client.common, "group.id": group, **settings})
        member.subscribe([self.topic])
        return member

    def hold(self, member):
        """Offsets of the records that a member has got, none of which it acknowledges."""
        held = []
        self.until(lambda: held.extend(m.offset() for m in messages(member)) or held)
        return held

    def produce(self, name):
        producer = self.client.producer({})
        for i in range(BATCH):
            producer.produce(self.topic, f"{name}-{i}".encode(), partition=0)
        producer.flush(DEADLINE_S)

    def read(self, condition, choice=None):
        """Lets the members read until the condition holds."""
        def step():
            for member in self.members:
                for message in messages(member):
                    self.seen[message.value()] += 1
                    if choice is not None:
                        member.acknowledge(message, choice(message))
            return condition()

        self.until(step)
        return condition()

    def commit(self, member):
        for error in member.commit_sync(float(DEADLINE_S)).values():
            if error is not None:
                raise error

    def close(self):
        while self.members:
            self.members.pop().close()

    def is_once(self):
        return all(count == 1 for count in self.seen.values())

    @staticmethod
    def answered(acknowledged):
        return sum(len(it) for offsets, _ in acknowledged for it in offsets.values())


def messages(member):
    batch = list(member.poll(POLL_S))
    for message in batch:
        if message.error():
            raise KafkaException(message.error())
    return batch
