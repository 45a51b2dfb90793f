"""The scenario `transactions` of kafka-python; ../README.md says what it contains."""

import time

from kafka import TopicPartition
from kafka.errors import InvalidProducerEpochError, ProducerFencedError
from kafka.structs import OffsetAndMetadata

RECORDS = 40
DEADLINE_S = 40


class Transactions:
    def __init__(self, client):
        self.client = client
        self.topic = client.topic
        self.partitions = [TopicPartition(self.topic, partition) for partition in (0, 1)]

    def run(self):
        self.client.create_topic(2)
        self.ends_and_reads()
        self.offsets()
        self.fencing()

    def ends_and_reads(self):
        producer = self.producer()
        committed = []
        for i in range(6):
            producer.begin_transaction()
            values = self.write(producer, f"t{i}")
            if i % 3 != 1:
                producer.commit_transaction()
                committed += values
            else:
                producer.flush()
                producer.abort_transaction()
        producer.begin_transaction()
        self.write(producer, "open")
        producer.flush()
        check = self.client.check
        read = self.read("read_committed", len(committed))
        check("committed records are read, and no others", sorted(read) == sorted(committed), read)
        read = self.read("read_uncommitted", 7 * RECORDS)
        check("all records are read by who reads uncommitted ones", len(read) == 7 * RECORDS,
              len(read))
        producer.abort_transaction()
        producer.close()
        read = self.read("read_committed", len(committed))
        check("nothing that was aborted is read in the end", sorted(read) == sorted(committed),
              read)

    def offsets(self):
        producer = self.producer()
        consumer = self.client.consumer(group_id=self.topic)
        consumer.assign(self.partitions)
        offsets = {partition: OffsetAndMetadata(10 + partition.partition, "", -1)
                   for partition in self.partitions}
        for commits in (False, True):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            if commits:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
            found = [consumer.committed(partition) for partition in self.partitions]
            if commits:
                self.client.check("offsets are those of the commit", found == [10, 11], found)
            else:
                self.client.check("an abort commits no offsets", found == [None, None], found)
        consumer.close()
        producer.close()

    def fencing(self):
        first = self.producer()
        first.begin_transaction()
        self.write(first, "fenced")
        first.flush()
        second = self.producer()
        fenced = "the commit was accepted"
        try:
            first.commit_transaction()
        except (InvalidProducerEpochError, ProducerFencedError):
            fenced = ""
        self.client.check("a producer that was fenced cannot commit", not fenced, fenced)
        second.begin_transaction()
        self.write(second, "second")
        second.commit_transaction()
        second.close()
        read = self.read("read_committed", 5 * RECORDS)
        good = sum(value.startswith("second") for value in read) == RECORDS
        self.client.check("records of fenced producers are not read",
                          good and not any(value.startswith("fenced") for value in read), read)

    def producer(self):
        producer = self.client.producer(transactional_id=self.topic)
        producer.init_transactions()
        return producer

    def write(self, producer, name):
        values = [f"{name}-{i}" for i in range(RECORDS)]
        for i, value in enumerate(values):
            producer.send(self.topic, value.encode(), partition=i % 2)
        return values

    def read(self, isolation, wanted):
        """The values up to the end that a consumer of this isolation sees."""
        consumer = self.client.consumer(isolation_level=isolation)
        consumer.assign(self.partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(self.partitions)
        values = []
        deadline = time.monotonic() + DEADLINE_S
        while time.monotonic() < deadline:
            batches = consumer.poll(100).values()
            values += [record.value.decode() for batch in batches for record in batch]
            at_end = all(consumer.position(partition) >= end for partition, end in ends.items())
            if at_end and len(values) >= wanted:
                break
        consumer.close()
        return values
