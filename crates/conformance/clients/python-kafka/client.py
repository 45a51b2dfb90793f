"""kafka-python's conformance program; ../README.md describes its interface and scenarios."""

import json
import os
import queue
import sys
import threading
import time

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, NewTopic
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

from transactions import Transactions

POLL_MS = 100
DEADLINE_S = 40
BATCH = 80
BROKERS = int(os.environ.get("CONFORMANCE_BROKERS", "1"))


class Checks:
    """Prints one line of JSON per check and remembers whether all held."""

    def __init__(self):
        self.results = []

    def check(self, name, ok, detail=""):
        line = {"check": name, "ok": bool(ok)}
        if not ok:
            line["detail"] = str(detail)
        self.results.append(bool(ok))
        print(json.dumps(line), flush=True)

    def exit_code(self):
        return 0 if self.results and all(self.results) else 1


class Member(threading.Thread):
    """A group member with a thread of its own: kafka-python joins a group inside `poll` alone."""

    def __init__(self, consumer, seen):
        super().__init__(daemon=True)
        self.consumer = consumer
        self.seen = seen
        self.owned = set()
        self.requests = queue.Queue()
        self.answers = queue.Queue()
        self.start()

    def run(self):
        leaving = False
        while not leaving:
            self.seen.extend(record.value.decode() for record in records(self.consumer))
            self.owned = {partition.partition for partition in self.consumer.assignment()}
            while not self.requests.empty():
                leaving = self.requests.get() == "leave"
                self.consumer.commit()
                self.answers.put("committed")
        self.consumer.close()
        self.owned = set()

    def commit(self):
        self.requests.put("commit")
        self.answers.get(timeout=DEADLINE_S)

    def leave(self):
        """Commits, then leaves the group."""
        self.requests.put("leave")
        self.answers.get(timeout=DEADLINE_S)
        self.join(DEADLINE_S)


class Client(Checks):
    def __init__(self, bootstrap, topic):
        super().__init__()
        self.topic = topic
        self.common = {"bootstrap_servers": bootstrap}
        authority = os.environ.get("CONFORMANCE_AUTHORITY")
        if authority:
            self.common.update({"security_protocol": "SSL", "ssl_cafile": authority})
        self.admin_client = KafkaAdminClient(**self.common)

    def produce_consume(self, codec):
        self.create_topic(1)
        base = int(time.time() * 1000) - 3_600_000
        sent = [sample_record(i) for i in range(600)]
        compression = None if codec == "none" else codec
        producer = self.producer(compression_type=compression, linger_ms=20)
        pending = [producer.send(self.topic, value, key, headers, 0, base + i)
                   for i, (key, value, headers) in enumerate(sent)]
        producer.flush()
        offsets = [future.get(DEADLINE_S).offset for future in pending]
        producer.close()
        self.check("acknowledged offsets count from zero", offsets == list(range(600)), offsets)
        got = self.read_from_start(600)
        self.check("as many records are read as were sent", len(got) == 600, len(got))
        wrong = [i for i, (want, record) in enumerate(zip(sent, got))
                 if fields(record) != (i, base + i, *want)]
        detail = wrong and (sent[wrong[0]], fields(got[wrong[0]]))
        self.check("every field of every record survives", not wrong, detail)

    def group(self):
        self.create_topic(4)
        seen = []
        first, second = self.member(seen), self.member(seen)
        until(lambda: shares(first, second))
        self.check("two members share all partitions", shares(first, second),
                   (first.owned, second.owned))

        self.produce_batch("one")
        await_records(seen, BATCH)
        self.check("two members read every record once", sorted(seen) == expected("one"), seen)
        group = self.admin_client.describe_groups([self.topic])[self.topic]
        state, members = group["group_state"], group["members"]
        self.check("the described group is stable with two members",
                   state == "Stable" and len(members) == 2, group)
        first.commit()
        second.leave()

        # kafka-python goes back to the committed offsets when it loses or gains a partition, so
        # the rebalance comes before the records.
        until(lambda: len(first.owned) == 4)
        self.check("the rest goes to the member that stays", len(first.owned) == 4, first.owned)
        self.produce_batch("two")
        await_records(seen, 2 * BATCH)
        self.check("nothing is lost or repeated after one leaves",
                   sorted(seen) == expected("one", "two"), seen)
        first.leave()

        self.produce_batch("three")
        resumed = []
        third = self.member(resumed)
        await_records(resumed, BATCH)
        self.check("a later member resumes from the commit", sorted(resumed) == expected("three"),
                   resumed)
        third.leave()
        offsets = self.admin_client.list_group_offsets([self.topic])[self.topic].values()
        committed = sum(offset.offset for offset in offsets)
        self.check("the committed offsets cover every record", committed == 3 * BATCH, committed)

    def member(self, seen):
        consumer = self.consumer(group_id=self.topic, session_timeout_ms=6000,
                                 heartbeat_interval_ms=300)
        consumer.subscribe([self.topic])
        return Member(consumer, seen)

    def produce_batch(self, name):
        producer = self.producer()
        for i in range(BATCH):
            producer.send(self.topic, f"{name}-{i}".encode(), partition=i % 4)
        producer.close()

    def idempotent(self):
        self.create_topic(1)
        for run in range(2):
            producer = self.producer(enable_idempotence=True, linger_ms=0, batch_size=200)
            pending = [producer.send(self.topic, str(500 * run + i).encode(), partition=0)
                       for i in range(500)]
            producer.flush()
            for future in pending:
                future.get(DEADLINE_S)
            producer.close()
        got = [int(record.value) for record in self.read_from_start(1000)]
        self.check("every record is there once", len(got) == len(set(got)) == 1000, len(got))
        self.check("the order is that of sending", got == list(range(1000)), got)

    def admin(self):
        admin = self.admin_client
        wanted = NewTopic(self.topic, 3, -1, topic_configs={"retention.ms": "7200000"})
        admin.create_topics([wanted])
        self.await_partitions(3)
        partitions = self.partitions()
        self.check("the topic has three partitions", len(partitions) == 3, partitions)
        self.check("every partition has a leader and itself in sync",
                   all(p["leader_id"] in p["isr_nodes"] for p in partitions), partitions)
        self.check("the list of topics has it", self.topic in admin.list_topics())
        configs = admin.describe_configs([ConfigResource("TOPIC", self.topic)])
        self.check("the described config is the one given", "7200000" in str(configs), configs)
        self.check("a second creation is refused",
                   refused(TopicAlreadyExistsError, admin.create_topics, [wanted]))
        admin.create_partitions({self.topic: 5})
        self.await_partitions(5)
        self.check("partitions can be added", len(self.partitions()) == 5, self.partitions())
        cluster = admin.describe_cluster()
        nodes = [broker.get("node_id", broker.get("broker_id")) for broker in cluster["brokers"]]
        self.check("the cluster names its nodes and controller",
                   len(nodes) == BROKERS and cluster["controller_id"] in nodes, cluster)
        admin.delete_topics([self.topic])
        self.await_partitions(0)
        self.check("a deleted topic is gone", not self.partitions(), self.partitions())
        self.check("an absent topic cannot be deleted",
                   refused(UnknownTopicOrPartitionError, admin.delete_topics, [self.topic]))

    def offsets(self):
        self.create_topic(1)
        base = int(time.time() * 1000) - 3_600_000
        producer = self.producer(linger_ms=50)
        for i in range(10):
            producer.send(self.topic, b"x" * 10, partition=0, timestamp_ms=base + 1000 * i)
        producer.close()
        partition = TopicPartition(self.topic, 0)
        consumer = self.consumer()
        self.check("earliest is zero", consumer.beginning_offsets([partition])[partition] == 0)
        self.check("latest is the end", consumer.end_offsets([partition])[partition] == 10)
        for name, stamp, offset in [
                ("a record's own time finds it", base + 3000, 3),
                ("a time between finds the next", base + 3001, 4),
                ("a time before all finds the first", base - 5000, 0),
                ("a time after all finds none", base + 9001, None)]:
            found = consumer.offsets_for_times({partition: stamp})[partition]
            self.check(name, (found and found.offset) == offset, found)
        consumer.close()

    def transactions(self):
        Transactions(self).run()

    def create_topic(self, partitions):
        self.admin_client.create_topics([NewTopic(self.topic, partitions, -1)])
        self.await_partitions(partitions)

    def partitions(self):
        """The partitions' descriptions; empty where the topic does not exist."""
        if self.topic not in self.admin_client.list_topics():
            return []
        try:
            return self.admin_client.describe_topics([self.topic])[0]["partitions"]
        except UnknownTopicOrPartitionError:  # Deleted between the two requests.
            return []

    def await_partitions(self, count):
        """A created topic is not yet in every broker's metadata when the answer arrives."""
        until(lambda: len(self.partitions()) == count)

    def read_from_start(self, wanted):
        consumer = self.consumer()
        partition = TopicPartition(self.topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        got = []

        def enough():
            got.extend(records(consumer))
            return len(got) >= wanted

        until(enough)
        got.extend(records(consumer))
        consumer.close()
        return got

    def producer(self, **settings):
        return KafkaProducer(**self.common, acks="all", **settings)

    def consumer(self, **settings):
        return KafkaConsumer(**self.common, auto_offset_reset="earliest",
                             enable_auto_commit=False, **settings)


def sample_record(i):
    key, value, headers = f"key-{i}".encode(), f"value-{i}".encode().ljust(200, b"x"), []
    kind = i % 6
    if kind == 0:
        headers = [("trace", str(i).encode())]
    elif kind == 1:
        key = None
    elif kind == 2:
        value = None
    elif kind == 3:
        value = b""
    elif kind == 4:
        key = b""
    else:
        # kafka-python refuses a header whose value is null, so that one is left out.
        headers = [("dup", b"1"), ("dup", b"2"), ("empty", b"")]
    return key, value, headers


def fields(record):
    headers = [(name, bytes(value)) for name, value in record.headers]
    return record.offset, record.timestamp, record.key, record.value, headers


def records(consumer):
    return [record for batch in consumer.poll(POLL_MS).values() for record in batch]


def shares(first, second):
    all_owned = sorted(first.owned | second.owned)
    return first.owned and second.owned and all_owned == [0, 1, 2, 3] and (
        len(first.owned) + len(second.owned) == 4)


def await_records(seen, wanted):
    """Waits for `wanted` different records, then one more poll's time for what should not come."""
    until(lambda: len(set(seen)) >= wanted)
    time.sleep(2 * POLL_MS / 1000)


def expected(*batches):
    return sorted(f"{name}-{i}" for name in batches for i in range(BATCH))


def refused(error, call, argument):
    try:
        call(argument)
        return False
    except error:
        return True


def until(condition):
    deadline = time.monotonic() + DEADLINE_S
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def main():
    bootstrap, scenario, topic, *codec = sys.argv[1:]
    client = Client(bootstrap, topic)
    getattr(client, scenario.replace("-", "_"))(*codec)
    return client.exit_code()


if __name__ == "__main__":
    sys.exit(main())
