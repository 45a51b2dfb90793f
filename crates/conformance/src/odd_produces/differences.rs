//! Where our broker decides otherwise than Apache Kafka, and why.

/// Cases of which the broker makes something else.
pub(super) struct Difference {
    /// Their names, or what these begin with before a `*`.
    pub(super) cases: &'static [&'static str],
    /// How the outcome begins with Apache Kafka: one of these.
    pub(super) kafka: &'static [&'static str],
    /// How it begins with our broker.
    pub(super) ours: &'static str,
    /// Why.
    pub(super) reason: &'static str,
}

impl Difference {
    pub(super) fn covers(&self, case: &str) -> bool {
        self.cases.iter().any(|name| match name.strip_suffix('*') {
            Some(beginning) => case.starts_with(beginning),
            None => case == *name,
        })
    }
}

pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        cases: &[
            "length -1",
            "length 0",
            "length 13",
            "length 14",
            "length 48",
            "length 49",
            "length one too small",
            "a batch and 20 zeros",
        ],
        // Kafka's answer to a length between 14 and 48 varies from run to run.
        kafka: &["error 2;", "error -1;"],
        ours: "error 87;",
        reason: "producers send again what is refused with CORRUPT_MESSAGE, for two minutes; a \
                 length does not get better by that",
    },
    Difference {
        cases: &["a batch and a byte", "a batch and half of one"],
        kafka: &["at 0; stored [0 to 1,"],
        ours: "error 87; stored ",
        reason: "Kafka drops what follows the batch without an error: a producer that loses \
                 records should learn of it",
    },
    Difference {
        cases: &[
            "length 2147483647",
            "a length padded by 5 bytes",
            "records of noise",
            "records of noise, plain",
            "a stream that ends early, *",
            "no stream at all, gzip",
            "no stream at all, lz4",
            "no stream at all, snappy",
            "plain records as *",
            "gzip with a wrong checksum",
            "lz4 with a wrong header checksum",
            "lz4 with linked blocks",
            "text behind the stream, snappy",
            "text behind the stream, zstd",
        ],
        kafka: &["error -1;"],
        ours: "error 87;",
        reason: "Kafka does not foresee these and says UNKNOWN_SERVER_ERROR; the producer is to \
                 blame",
    },
    Difference {
        cases: &["attributes: codec *"],
        kafka: &["error -1;"],
        ours: "error 76;",
        reason: "Kafka does not foresee it; UNSUPPORTED_COMPRESSION_TYPE says what is wrong",
    },
    Difference {
        cases: &["text behind the stream, gzip", "text behind the stream, lz4"],
        kafka: &["at 0;"],
        ours: "error 87;",
        reason: "Java's streams read no further than they must; other consumers fail on the bytes",
    },
    Difference {
        cases: &[
            "offset deltas [0, 5], plain",
            "offset deltas [5, 0], plain",
            "offset deltas [1, 0], plain",
            "offset deltas [0, 0], plain",
            "offset deltas [1, 2], plain",
            "offset deltas [-1, 0], plain",
            "compacted, offset deltas with a gap, plain",
        ],
        kafka: &["at 0; stored [0 to 1,"],
        ours: "at 0; stored [0 to 1,",
        reason: "Kafka keeps offsets that are not in the batch: consumers pass over the records \
                 of others then; here records count up, as Kafka's code means to have it for \
                 compressed ones",
    },
    Difference {
        cases: &[
            "offset deltas [0, 5], *",
            "offset deltas [5, 0], *",
            "offset deltas [1, 0], *",
            "offset deltas [0, 0], *",
            "offset deltas [1, 2], *",
            "offset deltas [-1, 0], *",
            "compacted, offset deltas with a gap, *",
        ],
        kafka: &["error -1;"],
        ours: "at 0; stored [0 to 1,",
        reason: "Kafka means to write them anew and fails",
    },
    Difference {
        cases: &["offset deltas [0, 2147483648], plain"],
        kafka: &["at 0; stored [0 to 1,"],
        ours: "error 87;",
        reason: "an offset delta is a number of 32 bits; Kafka keeps what overflows it",
    },
    Difference {
        cases: &["offset deltas [0, 2147483648], *"],
        kafka: &["error -1;"],
        ours: "error 87;",
        reason: "an offset delta is a number of 32 bits",
    },
    Difference {
        cases: &["producer (5, -1, 0)"],
        kafka: &["at 0;"],
        ours: "error 87;",
        reason: "a producer id without an epoch cannot be fenced, and none is given out",
    },
    Difference {
        cases: &["request: a transactional batch with id Some*"],
        kafka: &["at 0; stored [0 to 1, attributes 0x10,"],
        ours: "error 87;",
        reason: "a transaction without a producer id never ends",
    },
    Difference {
        cases: &["request: a partition twice"],
        kafka: &["at 0; stored"],
        ours: "at 0, at 2; stored",
        reason: "Kafka keeps one of the two and says nothing of the other",
    },
    Difference {
        cases: &["request: null records"],
        kafka: &["closed;"],
        ours: "error 87;",
        reason: "Kafka does not foresee it; the connection may carry other requests",
    },
    Difference {
        cases: &["sequences repeated"],
        kafka: &["at 0, then at 0 stamped;"],
        ours: "at 0, then at 0;",
        reason: "Kafka gives the time of the first append as that of a LogAppendTime topic",
    },
    Difference {
        cases: &["sequences the second again"],
        kafka: &["at 0, then at 2, then at 2 stamped, then at 0 stamped;"],
        ours: "at 0, then at 2, then at 2, then at 0;",
        reason: "as above",
    },
];
