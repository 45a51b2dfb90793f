"""librdkafka's conformance program, through confluent-kafka; ../README.md describes it."""

import json
import os
import sys
import time

from confluent_kafka import (OFFSET_BEGINNING, Consumer, ConsumerGroupState, KafkaError,
                             KafkaException, Producer, TopicPartition)
from confluent_kafka.admin import (AdminClient, ConfigResource, NewPartitions, NewTopic, OffsetSpec,
                                   ResourceType)

from consumer_protocol import ConsumerProtocol
from share_groups import ShareGroups
from transactions import Transactions

POLL_S = 0.1
DEADLINE_S = 40
# A deleted key goes with the second cleaning, and a server may clean four times a minute.
CLEANING_S = 90
BATCH = 80
BROKERS = int(os.environ.get("CONFORMANCE_BROKERS", "1"))
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


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


class Client(Checks):
    def __init__(self, bootstrap, topic):
        super().__init__()
        self.topic = topic
        self.common = {"bootstrap.servers": bootstrap}
        authority = os.environ.get("CONFORMANCE_AUTHORITY")
        if authority:
            self.common.update({"security.protocol": "SSL", "ssl.ca.location": authority})
        self.admin_client = AdminClient(self.common)

    def produce_consume(self, codec):
        self.create_topic(1)
        base = int(time.time() * 1000) - 3_600_000
        sent = [sample_record(i) for i in range(600)]
        producer = self.producer({"compression.type": codec, "linger.ms": 20})
        offsets = []
        for i, (key, value, headers) in enumerate(sent):
            producer.produce(self.topic, value=value, key=key, partition=0, timestamp=base + i,
                             headers=headers, on_delivery=collect(offsets))
        producer.flush(DEADLINE_S)
        self.check("acknowledged offsets count from zero", offsets == list(range(600)), offsets)
        got = self.read_from_start(600)
        self.check("as many records are read as were sent", len(got) == 600, len(got))
        wrong = [i for i, (want, message) in enumerate(zip(sent, got))
                 if fields(message) != (i, base + i, *want)]
        detail = wrong and (sent[wrong[0]], fields(got[wrong[0]]))
        self.check("every field of every record survives", not wrong, detail)

    def group(self):
        self.create_topic(4)
        first, second = self.member(), self.member()
        seen = []
        poll_until([first, second], seen, lambda: shares(first, second))
        self.check("two members share all partitions", shares(first, second),
                   (first.assignment(), second.assignment()))

        self.produce_batch("one")
        read_batch([first, second], seen, BATCH)
        self.check("two members read every record once", sorted(seen) == expected("one"), seen)
        group = self.admin_client.describe_consumer_groups([self.topic])[self.topic].result()
        self.check("the described group is stable with two members",
                   group.state == ConsumerGroupState.STABLE and len(group.members) == 2,
                   (group.state, len(group.members)))
        first.commit(asynchronous=False)
        second.commit(asynchronous=False)
        second.close()

        self.produce_batch("two")
        read_batch([first], seen, 2 * BATCH)
        self.check("the rest goes to the member that stays", len(first.assignment()) == 4,
                   first.assignment())
        self.check("nothing is lost or repeated after one leaves",
                   sorted(seen) == expected("one", "two"), seen)
        first.commit(asynchronous=False)
        first.close()

        self.produce_batch("three")
        third = self.member()
        resumed = []
        read_batch([third], resumed, BATCH)
        self.check("a later member resumes from the commit", sorted(resumed) == expected("three"),
                   resumed)
        third.commit(asynchronous=False)
        committed = sum(p.offset for p in third.committed(third.assignment(), timeout=10))
        self.check("the committed offsets cover every record", committed == 3 * BATCH, committed)
        third.close()

    def member(self):
        consumer = self.consumer({
            "group.id": self.topic, "session.timeout.ms": 6000, "heartbeat.interval.ms": 300,
            "partition.assignment.strategy": "cooperative-sticky"})
        consumer.subscribe([self.topic])
        return consumer

    def produce_batch(self, name):
        producer = self.producer({})
        offsets = []
        for i in range(BATCH):
            producer.produce(self.topic, f"{name}-{i}".encode(), partition=i % 4,
                             on_delivery=collect(offsets))
        producer.flush(DEADLINE_S)

    def idempotent(self):
        self.create_topic(1)
        for run in range(2):
            producer = self.producer({"enable.idempotence": True, "linger.ms": 0,
                                      "batch.num.messages": 10})
            offsets = []
            for i in range(500):
                producer.produce(self.topic, str(500 * run + i).encode(), partition=0,
                                 on_delivery=collect(offsets))
            producer.flush(DEADLINE_S)
        got = [int(message.value()) for message in self.read_from_start(1000)]
        self.check("every record is there once", len(got) == len(set(got)) == 1000, len(got))
        self.check("the order is that of sending", got == list(range(1000)), got)

    def admin(self):
        admin = self.admin_client
        wanted = NewTopic(self.topic, num_partitions=3, config={"retention.ms": "7200000"})
        admin.create_topics([wanted])[self.topic].result()
        self.await_partitions(3)
        partitions = self.partitions()
        self.check("the topic has three partitions", len(partitions) == 3, partitions)
        self.check("every partition has a leader and itself in sync",
                   all(p.leader >= 0 and p.isrs for p in partitions.values()), partitions)
        resource = ConfigResource(ResourceType.TOPIC, self.topic)
        config = admin.describe_configs([resource])[resource].result()
        self.check("the described config is the one given",
                   config["retention.ms"].value == "7200000", config["retention.ms"])
        self.check("a second creation is refused",
                   refusal(admin.create_topics([wanted])[self.topic])
                   == KafkaError.TOPIC_ALREADY_EXISTS)
        admin.create_partitions([NewPartitions(self.topic, 5)])[self.topic].result()
        self.await_partitions(5)
        self.check("partitions can be added", len(self.partitions()) == 5, self.partitions())
        cluster = admin.describe_cluster().result()
        self.check("the cluster names its nodes and controller",
                   len(cluster.nodes) == BROKERS and cluster.controller is not None, cluster.nodes)
        admin.delete_topics([self.topic])[self.topic].result()
        self.await_partitions(0)
        self.check("a deleted topic is gone", not self.partitions(), self.partitions())
        self.check("an absent topic cannot be deleted",
                   refusal(admin.delete_topics([self.topic])[self.topic])
                   == KafkaError.UNKNOWN_TOPIC_OR_PART)

    def offsets(self):
        self.create_topic(1)
        base = int(time.time() * 1000) - 3_600_000
        producer = self.producer({"linger.ms": 50})
        for i in range(10):
            producer.produce(self.topic, b"x" * 10, partition=0, timestamp=base + 1000 * i)
        producer.flush(DEADLINE_S)
        for name, spec, offset in [
                ("earliest is zero", OffsetSpec.earliest(), 0),
                ("latest is the end", OffsetSpec.latest(), 10),
                ("a record's own time finds it", OffsetSpec.for_timestamp(base + 3000), 3),
                ("a time between finds the next", OffsetSpec.for_timestamp(base + 3001), 4),
                ("a time before all finds the first", OffsetSpec.for_timestamp(base - 5000), 0),
                ("a time after all finds none", OffsetSpec.for_timestamp(base + 9001), -1),
                ("the highest timestamp is the last's", OffsetSpec.max_timestamp(), 9)]:
            partition = TopicPartition(self.topic, 0)
            found = self.admin_client.list_offsets({partition: spec})[partition].result().offset
            self.check(name, found == offset, found)

    def compacted(self):
        self.create_topic(1, {
            "cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.01",
            "delete.retention.ms": "100"})
        newest = {}
        for codec in CODECS:
            self.produce_updates(codec, newest)
        end = self.end_offset()
        got = self.await_cleaned(end, len(newest))
        kept = [(m.key().decode(), (m.value() or b"").decode()) for m in got if m.offset() < end]
        self.check("every key has its newest value, once", sorted(kept) == sorted(newest.items()),
                   kept[:40])
        offsets = [message.offset() for message in got]
        self.check("offsets ascend", offsets == sorted(set(offsets)), offsets[:40])
        self.check("a deleted key is gone", all(key != "deleted" for key, _ in kept), kept[:40])
        stuck = []
        for start in sorted({0, 1, end - 2, end - 1, end, *range(0, end, 37)}):
            read = self.read_to_end(start)
            offsets = [message.offset() for message in read or []]
            ascend = offsets == sorted(set(offsets)) and all(offset >= start for offset in offsets)
            if read is None or not ascend:
                stuck.append(start)
        self.check("a reader goes on from every offset, kept or not", not stuck, stuck)

    def transactions(self):
        Transactions(self).run()

    def kip_848(self):
        ConsumerProtocol(self, until).run()

    def kip_932(self):
        ShareGroups(self, until).run()

    def produce_updates(self, codec, newest):
        """Many updates of few keys in batches of 50, so that of a batch little or nothing stays."""
        updates = [("deleted", codec)]
        for i in range(200):
            updates.append((f"key-{i % 10}", f"{codec}-{i}-".ljust(50, "x")))
        # The newest value of this key stands before the end of its batch, whose tail goes.
        updates.insert(len(updates) - 5, ("early", codec))
        newest.update(updates[1:])
        updates.append(("deleted", None))
        producer = self.producer({"compression.type": codec, "linger.ms": 1000})
        for start in range(0, len(updates), 50):
            for key, value in updates[start:start + 50]:
                producer.produce(self.topic, value, key, partition=0)
            producer.flush(DEADLINE_S)

    def await_cleaned(self, end, wanted):
        """Reads the topic until only the newest record of each key is left below `end`. Kafka
        cleans a segment only once a later record has closed it, so one more is sent each time."""
        producer = self.producer({})
        got = []

        def cleaned():
            producer.produce(self.topic, b"tick", b"tick", partition=0)
            producer.flush(DEADLINE_S)
            read = self.read_to_end(0)
            got[:] = read or []
            return read is not None and sum(m.offset() < end for m in got) <= wanted

        until(cleaned, CLEANING_S)
        return got

    def end_offset(self):
        partition = TopicPartition(self.topic, 0)
        latest = self.admin_client.list_offsets({partition: OffsetSpec.latest()})
        return latest[partition].result().offset

    def read_to_end(self, start):
        """What stands at or after an offset; nothing where the end is not reached in time."""
        end = self.end_offset()
        consumer = self.consumer({"group.id": "unused", "enable.partition.eof": True,
                                  "fetch.wait.max.ms": 100})
        consumer.assign([TopicPartition(self.topic, 0, start)])
        got, reached = [], []

        def at_end():
            for message in consumer.consume(500, POLL_S):
                if message.error() and message.error().code() == KafkaError._PARTITION_EOF:
                    reached.append(message.offset())
                elif message.error():
                    raise KafkaException(message.error())
                else:
                    got.append(message)
            return bool(reached) and reached[-1] >= end

        until(at_end)
        consumer.close()
        return got if reached and reached[-1] >= end else None

    def create_topic(self, partitions, config=None):
        topic = NewTopic(self.topic, num_partitions=partitions, config=config or {})
        self.admin_client.create_topics([topic])[self.topic].result()
        self.await_partitions(partitions)

    def partitions(self):
        """The partitions by number; empty where the topic does not exist."""
        topics = self.admin_client.list_topics(timeout=10).topics
        return topics[self.topic].partitions if self.topic in topics else {}

    def await_partitions(self, count):
        """A created topic is not yet in every broker's metadata when the answer arrives."""
        until(lambda: len(self.partitions()) == count)

    def read_from_start(self, wanted):
        consumer = self.consumer({"group.id": "unused"})
        consumer.assign([TopicPartition(self.topic, 0, OFFSET_BEGINNING)])
        got = []

        def enough():
            got.extend(messages(consumer, POLL_S))
            return len(got) >= wanted

        until(enough)
        got.extend(messages(consumer, POLL_S))
        consumer.close()
        return got

    def producer(self, settings):
        return Producer({**self.common, "acks": "all", **settings})

    def consumer(self, settings):
        return Consumer({**self.common, "auto.offset.reset": "earliest",
                         "enable.auto.commit": False, **settings})


def sample_record(i):
    key, value, headers = f"key-{i}".encode(), f"value-{i}".encode().ljust(200, b"x"), None
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
        headers = [("dup", b"1"), ("dup", b"2"), ("empty", b""), ("null", None)]
    return key, value, headers


def fields(message):
    return (message.offset(), message.timestamp()[1], message.key(), message.value(),
            message.headers())


def collect(offsets):
    def on_delivery(error, message):
        if error is not None:
            raise KafkaException(error)
        offsets.append(message.offset())
    return on_delivery


def messages(consumer, timeout_s):
    batch = consumer.consume(500, timeout_s)
    for message in batch:
        if message.error():
            raise KafkaException(message.error())
    return batch


def shares(first, second):
    own = [{p.partition for p in member.assignment()} for member in (first, second)]
    return all(own) and not own[0] & own[1] and own[0] | own[1] == {0, 1, 2, 3}


def poll_until(members, seen, condition):
    def step():
        for member in members:
            seen.extend(message.value().decode() for message in messages(member, POLL_S))
        return condition()
    until(step)


def read_batch(members, seen, wanted):
    """Polls until `wanted` different records were seen, then once more for what should not come."""
    poll_until(members, seen, lambda: len(set(seen)) >= wanted)
    poll_until(members, seen, lambda: True)


def expected(*batches):
    return sorted(f"{name}-{i}" for name in batches for i in range(BATCH))


def refusal(future):
    try:
        future.result()
        return None
    except KafkaException as error:
        return error.args[0].code()


def until(condition, seconds=DEADLINE_S):
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        pass


def main():
    bootstrap, scenario, topic, *codec = sys.argv[1:]
    client = Client(bootstrap, topic)
    getattr(client, scenario.replace("-", "_"))(*codec)
    return client.exit_code()


if __name__ == "__main__":
    sys.exit(main())
