"""Offers records of the laboratory through librdkafka when they are due, and prints how it went.

It takes a JSON document that says how, and a file of values of one size, one after the other. Each
value says in its header when it is due. Response times count from there until the acknowledgement
is told, like those of the laboratory's own generator, with which this program shares no code.
"""

import functools
import gc
import json
import math
import sys
import threading
import time

try:
    from confluent_kafka import Producer, libversion
except ImportError as error:
    sys.exit(f"this Python has no confluent-kafka: {error}")

# Bytes of a value that hold its intended time, big-endian, in ns since the start.
INTENDED = slice(24, 32)

# From the last preparation to the start. librdkafka asks for its producer id meanwhile, and asks
# again after half a second where it had no connection yet.
HEAD_START_NS = 1_000_000_000

# The shortest wait for what is due next: what falls due within it goes out together.
WAIT_NS_MIN = 200_000

# How long the cluster may take to be found, and the last answers to come.
PATIENCE_S = 30

# How long to wait for acknowledgements before looking whether all is over.
POLL_S = 0.1

QUANTILES = [0.5, 0.9, 0.99, 0.999]


class Run:
    """What is offered, and what came of it. Times are in ns since the start."""

    def __init__(self, plan, content):
        size = plan["record_bytes"]
        self.topic = plan["topic"]
        self.from_ns = plan["warmup_ns"]
        self.values = [content[at:at + size] for at in range(0, len(content), size)]
        self.lags_ns = []
        self.responses_ns = []
        # Numbers of first records, their offsets, and how many are at the offsets that follow.
        self.acknowledged = []
        self.refusal = None
        self.start_ns = 0
        self.cpu_ns = 0

    def now_ns(self):
        return time.perf_counter_ns() - self.start_ns

    def offer(self, producer):
        """Hands every record over when it is due; what is late goes out at once."""
        due_ns = [int.from_bytes(value[INTENDED], "big") for value in self.values]
        self.start_ns = time.perf_counter_ns() + HEAD_START_NS
        cpu_before_ns = None
        for number, due in enumerate(due_ns):
            lag = self.now_ns() - due
            while lag < 0:
                time.sleep(max(-lag, WAIT_NS_MIN) / 1e9)
                lag = self.now_ns() - due
            if due >= self.from_ns:
                if cpu_before_ns is None:
                    cpu_before_ns = time.process_time_ns()
                self.lags_ns.append(lag)
            told = functools.partial(self.settle, number, due)
            producer.produce(self.topic, self.values[number], partition=0, on_delivery=told)
        self.cpu_ns = time.process_time_ns() - cpu_before_ns

    def settle(self, number, due, error, message):
        """Notes the answer to a record."""
        now = self.now_ns()
        if error is not None:
            self.refusal = self.refusal or str(error)
            return
        if due >= self.from_ns:
            self.responses_ns.append(now - due)
        offset = message.offset()
        if self.acknowledged:
            first, base, count = self.acknowledged[-1]
            if (first + count, base + count) == (number, offset):
                self.acknowledged[-1][2] += 1
                return
        self.acknowledged.append([number, offset, 1])

    def told(self):
        if self.refusal is not None:
            sys.exit(f"a record was refused: {self.refusal}")
        answered = sum(count for _, _, count in self.acknowledged)
        if answered < len(self.values):
            sys.exit(f"{answered} of {len(self.values)} records have an answer")
        responses, lags = sorted(self.responses_ns), sorted(self.lags_ns)
        return {
            "version": libversion()[0],
            "response_ms": [quantile_ms(responses, share) for share in QUANTILES],
            "lag_p99_ms": quantile_ms(lags, 0.99),
            "cpu_us_per_record": self.cpu_ns / 1e3 / len(lags),
            "acknowledged": self.acknowledged,
        }


def quantile_ms(sorted_ns, share):
    """What a share of the values does not exceed."""
    return sorted_ns[math.ceil(share * len(sorted_ns)) - 1] / 1e6


def hear(producer, ended):
    """Has the acknowledgements told as they come, which `produce` does not wait for."""
    while not ended.is_set():
        producer.poll(POLL_S)


def main():
    plan = json.loads(sys.argv[1])
    with open(sys.argv[2], "rb") as values:
        run = Run(plan, values.read())
    producer = Producer(plan["producer"])
    # Finds the leader, so that no record waits for that.
    producer.list_topics(plan["topic"], PATIENCE_S)
    # A collection would stop both threads, and there is nothing to collect.
    gc.disable()
    ended = threading.Event()
    hearing = threading.Thread(target=hear, args=(producer, ended))
    hearing.start()
    try:
        run.offer(producer)
        producer.flush(PATIENCE_S)
    finally:
        ended.set()
        hearing.join()
    print(json.dumps(run.told()))


main()
