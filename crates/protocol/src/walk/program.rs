//! The layouts that a walker follows.

use crate::fetch;
use crate::message::Message;
use crate::messages::{FetchResponse, ProduceRequest};
use crate::produce;

/// Arrays within arrays: topics, partitions, aborted transactions.
pub(super) const DEPTH_MAX: usize = 3;

/// The longest program, that of a Fetch response, has this many operations.
const OPS_MAX: usize = 20;

/// One step of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    /// Fields of so many bytes.
    Fixed(usize),
    /// A string.
    String { nullable: bool },
    /// Records after their length, or null.
    Records,
    /// The count of an array. The operations of an element follow, up to an
    /// [`EndOfElement`](Op::EndOfElement) just before `end`.
    Array { nullable: bool, end: usize },
    /// The end of an element of the innermost array.
    EndOfElement,
    /// Tagged fields, of which tag 0 may be the node endpoints.
    TaggedFields { endpoints: bool },
    /// The end of the frame.
    End,
}

/// A layout.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    ops: [Op; OPS_MAX],
    len: usize,
    flexible: bool,
}

impl Program {
    fn new(flexible: bool) -> Self {
        Self { ops: [Op::End; OPS_MAX], len: 0, flexible }
    }

    /// The operation at `position`; after the last one there is the end.
    pub(super) fn op(&self, position: usize) -> Op {
        self.ops.get(position).copied().unwrap_or(Op::End)
    }

    /// Whether lengths are compact.
    pub(super) fn flexible(&self) -> bool {
        self.flexible
    }

    fn push(&mut self, op: Op) {
        self.ops[self.len] = op;
        self.len += 1;
    }

    fn tagged_fields(&mut self) {
        if self.flexible {
            self.push(Op::TaggedFields { endpoints: false });
        }
    }

    fn array(&mut self, nullable: bool, element: impl FnOnce(&mut Self)) {
        let count = self.len;
        self.push(Op::End);
        element(self);
        self.push(Op::EndOfElement);
        self.ops[count] = Op::Array { nullable, end: self.len };
    }

    fn topic(&mut self, by_id: bool) {
        self.push(if by_id { Op::Fixed(16) } else { Op::String { nullable: false } });
    }
}

/// A Fetch response after its correlation id; the layout is drawn in [`fetch`].
pub(super) fn fetch_response(version: i16) -> Program {
    let since = |first: i16, size: usize| if version >= first { size } else { 0 };
    let mut program = Program::new(version >= FetchResponse::FLEXIBLE_FROM);
    program.tagged_fields();
    program.push(Op::Fixed(4 + since(fetch::SESSION_SINCE, 6)));
    program.array(false, |topic| {
        topic.topic(version >= fetch::TOPIC_ID_SINCE);
        topic.array(false, |partition| {
            partition.push(Op::Fixed(22 + since(fetch::LOG_START_OFFSET_SINCE, 8)));
            partition.array(true, |aborted| {
                aborted.push(Op::Fixed(16));
                aborted.tagged_fields();
            });
            if version >= fetch::PREFERRED_READ_REPLICA_SINCE {
                partition.push(Op::Fixed(4));
            }
            partition.push(Op::Records);
            partition.tagged_fields();
        });
        topic.tagged_fields();
    });
    if program.flexible {
        program.push(Op::TaggedFields { endpoints: version >= fetch::NODE_ENDPOINTS_SINCE });
    }
    program
}

/// The body of a Produce request; the layout is drawn in [`produce`].
pub(super) fn produce_request(version: i16) -> Program {
    let mut program = Program::new(version >= ProduceRequest::FLEXIBLE_FROM);
    program.push(Op::String { nullable: true });
    program.push(Op::Fixed(2 + 4));
    program.array(false, |topic| {
        topic.topic(version >= produce::TOPIC_ID_SINCE);
        topic.array(false, |partition| {
            partition.push(Op::Fixed(4));
            partition.push(Op::Records);
            partition.tagged_fields();
        });
        topic.tagged_fields();
    });
    program.tagged_fields();
    program
}
