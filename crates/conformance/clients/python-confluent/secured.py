"""Connects with credentials, right and wrong; ../README.md describes the lines that it reads."""

import sys
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from client import DEADLINE_S, POLL_S, Checks
from connection import connection_settings

RECORDS = 100


def refusal(error):
    if error.code() == KafkaError._AUTHENTICATION:
        return "unauthenticated"
    # An alert by the server comes as the loss of the connection.
    if error.code() == KafkaError._SSL or "SSL alert" in error.str():
        return "untrusted"
    return None


class Session:
    def __init__(self, *connection):
        # librdkafka tells why a connection failed to this callback alone.
        self.errors = []
        self.settings = {**connection_settings(*connection), "error_cb": self.errors.append}

    def run(self, topic):
        admin = AdminClient(self.settings)
        creation = admin.create_topics([NewTopic(topic, num_partitions=1)])[topic]
        end = time.monotonic() + DEADLINE_S
        while not creation.done() and time.monotonic() < end:
            admin.poll(POLL_S)
            refused = next(filter(None, map(refusal, self.errors)), None)
            if refused:
                return refused
        creation.result(0)
        return self.write_and_read(topic)

    def write_and_read(self, topic):
        sent = [f"value-{i}".encode() for i in range(RECORDS)]
        producer = Producer(self.settings)
        for value in sent:
            producer.produce(topic, value, partition=0)
        producer.flush(DEADLINE_S)
        consumer = Consumer({**self.settings, "group.id": topic})
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        read = []
        end = time.monotonic() + DEADLINE_S
        while len(read) < RECORDS and time.monotonic() < end:
            message = consumer.poll(POLL_S)
            if message is not None and message.error() is None:
                read.append(message.value())
        consumer.close()
        return "served" if read == sent else f"read {len(read)} of {RECORDS} records"


def main():
    checks = Checks()
    for line in sys.stdin:
        name, topic, expected, *connection = line.rstrip("\n").split("\t")
        session = Session(*connection)
        try:
            found = session.run(topic)
        except Exception as error:  # whatever it is, it is not what was expected
            found = repr(error)
        checks.check(name, found == expected, f"{found}, {session.errors[-1:]}")
    return checks.exit_code()


if __name__ == "__main__":
    sys.exit(main())
