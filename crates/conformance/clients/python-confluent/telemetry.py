"""A producer of librdkafka that lives, and pushes its metrics, until a file appears.

Arguments: the bootstrap address, a topic, the client id, the file."""

import os
import sys

from confluent_kafka import Producer

POLL_S = 0.05


def main():
    bootstrap, topic, client_id, stop = sys.argv[1:]
    producer = Producer({"bootstrap.servers": bootstrap, "client.id": client_id})
    producer.produce(topic, b"value", b"key")
    while not os.path.exists(stop):
        producer.poll(POLL_S)
    producer.flush()


if __name__ == "__main__":
    main()
