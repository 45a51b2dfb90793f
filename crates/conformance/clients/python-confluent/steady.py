"""Writes at a rate and reads it until a file is there; ../README.md describes its interface."""

import json
import os
import sys
import threading
import time

from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from client import DEADLINE_S, POLL_S, Checks, until
from connection import connection_settings

PARTITIONS = 3
PADDING = "x" * 1000
PAUSE_S = 0.01
# Records that wait for their acknowledgement where no rate is given.
BUFFERED = 5000


class Session(Checks):
    def __init__(self, topic, rate, stop, *connection):
        super().__init__()
        self.topic, self.rate, self.stop = topic, int(rate), stop
        self.settings = {**connection_settings(*connection), "error_cb": self.on_error}
        self.sent = self.acknowledged = self.read = 0
        self.generation = "-"
        self.errors = []
        # Connections that producer and consumer have made.
        self.connections = {}
        self.done = False

    def run(self):
        admin = AdminClient(self.settings)
        admin.create_topics([NewTopic(self.topic, PARTITIONS)])[self.topic].result(DEADLINE_S)
        reader = threading.Thread(target=self.consume)
        reader.start()
        self.produce()
        until(self.is_read)
        self.done = True
        reader.join()
        self.check("every send is acknowledged", self.acknowledged == self.sent,
                   (self.acknowledged, self.sent))
        self.check("every record is read once and in order", self.read == self.sent,
                   (self.read, self.sent))
        self.check("no error is reported", not self.errors, self.errors)

    def is_read(self):
        time.sleep(PAUSE_S)
        return self.read >= self.sent

    def on_error(self, error):
        self.errors.append(str(error))

    def on_delivery(self, error, _):
        if error is None:
            self.acknowledged += 1
        else:
            self.errors.append(f"a send: {error}")

    def counted(self, who):
        """Settings of a client whose connections are counted."""
        def on_statistics(text):
            brokers = json.loads(text)["brokers"].values()
            self.connections[who] = sum(broker["connects"] for broker in brokers)
        return {**self.settings, "statistics.interval.ms": 500, "stats_cb": on_statistics}

    def produce(self):
        producer = Producer({**self.counted("producer"), "enable.idempotence": True})
        start = time.monotonic()
        while not os.path.exists(self.stop):
            due = int((time.monotonic() - start) * self.rate)
            if self.rate == 0:
                due = self.acknowledged + BUFFERED
            while self.sent < due:
                producer.produce(self.topic, f"{self.sent} {PADDING}",
                                 partition=self.sent % PARTITIONS, on_delivery=self.on_delivery)
                self.sent += 1
            made = sum(self.connections.values())
            print("progress", self.acknowledged, self.read, self.generation, made,
                  file=sys.stderr, flush=True)
            producer.poll(0)
            time.sleep(PAUSE_S)
        producer.flush(DEADLINE_S)

    def consume(self):
        consumer = Consumer({**self.counted("consumer"), "group.id": self.topic,
                             "auto.offset.reset": "earliest"})
        consumer.subscribe([self.topic], on_revoke=self.on_revoke)
        following = list(range(PARTITIONS))
        while not self.done:
            for message in consumer.consume(500, POLL_S):
                if message.error():
                    self.errors.append(str(message.error()))
                    continue
                text, _, _ = message.value().partition(b" ")
                expected = following[message.partition()]
                if int(text) != expected:
                    self.errors.append(f"a read: {text}, not {expected}")
                following[message.partition()] = int(text) + PARTITIONS
                self.read += 1
                for _, value in message.headers() or []:
                    self.generation = value.decode()
        consumer.close()

    def on_revoke(self, _, partitions):
        """A member that is alone in its group loses nothing before it leaves."""
        if not self.done:
            self.errors.append(f"revoked: {partitions}")


def main():
    session = Session(*sys.stdin.readline().rstrip("\n").split("\t"))
    session.run()
    return session.exit_code()


if __name__ == "__main__":
    sys.exit(main())
