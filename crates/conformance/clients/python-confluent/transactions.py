"""The scenario `transactions` of librdkafka; ../README.md says what it contains."""

import time

from confluent_kafka import KafkaException, TopicPartition

RECORDS = 40
DEADLINE_S = 40


class Transactions:
    def __init__(self, client):
        self.client = client
        self.topic = client.topic

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
                producer.commit_transaction(DEADLINE_S)
                committed += values
            else:
                producer.flush(DEADLINE_S)
                producer.abort_transaction(DEADLINE_S)
        producer.begin_transaction()
        self.write(producer, "open")
        producer.flush(DEADLINE_S)
        check = self.client.check
        read = self.read("read_committed")
        check("committed records are read, and no others", sorted(read) == sorted(committed), read)
        read = self.read("read_uncommitted")
        check("all records are read by who reads uncommitted ones", len(read) == 7 * RECORDS,
              len(read))
        producer.abort_transaction(DEADLINE_S)
        read = self.read("read_committed")
        check("nothing that was aborted is read in the end", sorted(read) == sorted(committed),
              read)

    def offsets(self):
        producer = self.producer()
        consumer = self.client.consumer({"group.id": self.topic})
        positions = [TopicPartition(self.topic, partition, 10 + partition) for partition in (0, 1)]
        consumer.assign(positions)
        for commits in (False, True):
            producer.begin_transaction()
            producer.send_offsets_to_transaction(
                positions, consumer.consumer_group_metadata(), DEADLINE_S)
            if commits:
                producer.commit_transaction(DEADLINE_S)
            else:
                producer.abort_transaction(DEADLINE_S)
            found = [p.offset for p in consumer.committed(positions, timeout=DEADLINE_S)]
            if commits:
                self.client.check("offsets are those of the commit", found == [10, 11], found)
            else:
                self.client.check("an abort commits no offsets", all(at < 0 for at in found), found)
        consumer.close()

    def fencing(self):
        first, second = self.producer(), None
        first.begin_transaction()
        self.write(first, "fenced")
        first.flush(DEADLINE_S)
        second = self.producer()
        fenced = False
        try:
            first.commit_transaction(DEADLINE_S)
        except KafkaException as error:
            fenced = error.args[0].fatal()
        self.client.check("a producer that was fenced cannot commit", fenced)
        second.begin_transaction()
        self.write(second, "second")
        second.commit_transaction(DEADLINE_S)
        read = self.read("read_committed")
        good = sum(value.startswith("second") for value in read) == RECORDS
        self.client.check("records of fenced producers are not read",
                          good and not any(value.startswith("fenced") for value in read), read)

    def producer(self):
        producer = self.client.producer({"transactional.id": self.topic})
        producer.init_transactions(DEADLINE_S)
        return producer

    def write(self, producer, name):
        values = [f"{name}-{i}" for i in range(RECORDS)]
        for i, value in enumerate(values):
            producer.produce(self.topic, value.encode(), partition=i % 2)
        return values

    def read(self, isolation):
        """The values up to the end that a consumer of this isolation sees."""
        consumer = self.client.consumer({
            "group.id": "unused", "isolation.level": isolation, "enable.partition.eof": True})
        consumer.assign([TopicPartition(self.topic, partition, 0) for partition in (0, 1)])
        values, ended = [], set()
        deadline = time.time() + DEADLINE_S
        while len(ended) < 2 and time.time() < deadline:
            for message in consumer.consume(500, 0.1):
                if message.error():
                    ended.add(message.partition())
                else:
                    values.append(message.value().decode())
        consumer.close()
        return values
