"""Tenants with the same names at the same time; ../README.md describes the lines that it reads."""

import sys

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from client import DEADLINE_S, POLL_S, Checks, messages, until
from connection import connection_settings

TOPIC = "orders"
TRANSACTIONAL_ID = "payments"
RECORDS = 50


def group_name(protocol):
    return f"{protocol}-workers"


class Tenant:
    def __init__(self, name, partitions, connection):
        self.name = name
        # Of the topic that all tenants have, in each another number.
        self.topics = {TOPIC: partitions, f"{TOPIC}-{name}": 1}
        self.settings = connection_settings(*connection)
        self.admin = AdminClient(self.settings)
        self.producer = Producer({**self.settings, "transactional.id": TRANSACTIONAL_ID})
        self.member = None
        self.read = []

    def listed_topics(self):
        topics = self.admin.list_topics(timeout=DEADLINE_S).topics
        return {name: len(topic.partitions) for name, topic in topics.items()}

    def listed_groups(self):
        return {group.group_id for group in self.admin.list_consumer_groups().result().valid}

    def create_topics(self):
        created = self.admin.create_topics([NewTopic(*topic) for topic in self.topics.items()])
        for creation in created.values():
            creation.result()
        until(lambda: self.listed_topics() == self.topics)

    def send(self, kind):
        for partition in self.partitions():
            for value in self.values(partition, kind):
                self.producer.produce(partition.topic, value, partition=partition.partition)
        self.producer.flush(DEADLINE_S)

    def partitions(self):
        return [TopicPartition(topic, i) for topic, n in self.topics.items() for i in range(n)]

    def values(self, partition, kind):
        place = f"{partition.topic} {partition.partition}"
        return [f"{self.name} {kind} {place} {i}" for i in range(RECORDS)]

    def expected(self):
        return sorted(v for p in self.partitions() for v in self.values(p, "committed"))

    def join(self, protocol):
        self.read = []
        self.member = Consumer({
            **self.settings, "group.id": group_name(protocol), "group.protocol": protocol,
            "auto.offset.reset": "earliest", "enable.auto.commit": False})
        self.member.subscribe([f"^{TOPIC}.*"])

    def poll(self):
        self.read.extend(message.value().decode() for message in messages(self.member, POLL_S))

    def commit_by_transaction(self):
        positions = self.member.position(self.member.assignment())
        self.producer.begin_transaction()
        self.producer.send_offsets_to_transaction(positions, self.member.consumer_group_metadata())
        self.producer.commit_transaction()
        committed = self.member.committed(self.partitions(), timeout=DEADLINE_S)
        place = [(p.topic, p.partition, p.offset) for p in positions]
        return sorted(place) == sorted((p.topic, p.partition, p.offset) for p in committed)


class Session(Checks):
    def __init__(self, tenants):
        super().__init__()
        self.tenants = tenants

    def run(self):
        for tenant in self.tenants:
            tenant.create_topics()
        self.each("the topics listed are the tenant's, each with its partitions",
                  lambda tenant: (tenant.listed_topics(), tenant.topics))
        self.transactions()
        for protocol in ["classic", "consumer"]:
            self.group(protocol)
        groups = {group_name("classic"), group_name("consumer")}
        self.each("the groups listed are the tenant's",
                  lambda tenant: (tenant.listed_groups(), groups))

    def transactions(self):
        """Transactions of one transactional id, open in all tenants at once."""
        for tenant in self.tenants:
            tenant.producer.init_transactions()
        for tenant in self.tenants:
            tenant.producer.begin_transaction()
            tenant.send("committed")
        for tenant in self.tenants:
            tenant.producer.commit_transaction()
            tenant.producer.begin_transaction()
            tenant.send("aborted")
        for tenant in self.tenants:
            tenant.producer.abort_transaction()
        self.check("no tenant's transaction is fenced by another's", True)

    def group(self, protocol):
        """Groups of one name that subscribe by expression."""
        for tenant in self.tenants:
            tenant.join(protocol)

        def complete():
            for tenant in self.tenants:
                tenant.poll()
            return all(len(t.read) >= len(t.expected()) for t in self.tenants)

        until(complete)
        complete()
        self.each(f"a {protocol} group by expression reads the tenant's records alone",
                  lambda tenant: (sorted(tenant.read), tenant.expected()))
        self.each(f"offsets of a {protocol} group are committed by a transaction",
                  lambda tenant: (tenant.commit_by_transaction(), True))
        for tenant in self.tenants:
            tenant.member.close()

    def each(self, name, found_and_wanted):
        for tenant in self.tenants:
            found, wanted = found_and_wanted(tenant)
            self.check(name, found == wanted, f"{tenant.name}: {found}, not {wanted}")


def main():
    tenants = []
    for line in sys.stdin:
        name, *connection = line.rstrip("\n").split("\t")
        tenants.append(Tenant(name, len(tenants) + 2, connection))
    session = Session(tenants)
    session.run()
    return session.exit_code()


if __name__ == "__main__":
    sys.exit(main())
