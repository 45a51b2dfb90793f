//! Messages of every API for tests, made from their layouts.

use bytes::BytesMut;
use moldau_protocol::names::{self, Verdict, Visitor};
use moldau_protocol::{ApiKey, Entity, Field, Kind, Layout, Uuid, Writer, frame};
use moldau_proxy::{FilterError, FilterFuture, RequestFrame, ResponseFrame};

/// Makes messages of any layout. Ids are zero, so that no test has to look them up.
struct Maker {
    random: fastrand::Rng,
    version: i16,
    flexible: bool,
}

impl Maker {
    fn body(layout: &Layout, version: i16, seed: u64) -> BytesMut {
        let (random, flexible) = (fastrand::Rng::with_seed(seed), version >= layout.flexible_from);
        let mut out = BytesMut::new();
        Self { random, version, flexible }.fields(layout.fields, &mut Writer::new(&mut out));
        out
    }

    fn fields(&mut self, fields: &[Field], w: &mut Writer<'_>) {
        for field in fields.iter().filter(|field| !field.is_tagged()) {
            if !field.versions.contains(self.version) {
                continue;
            }
            match field.kind {
                Kind::Struct(fields) if field.nullable.is_some() => {
                    w.i8(1);
                    self.fields(fields, w);
                }
                kind => self.value(kind, field, w),
            }
        }
        if self.flexible {
            w.unsigned_varint(0);
        }
    }

    fn value(&mut self, kind: Kind, field: &Field, w: &mut Writer<'_>) {
        let flexible = self.flexible && !field.is_never_compact;
        match kind {
            // Numbers are small, so that kinds of keys and resources are those that occur.
            Kind::Fixed(size) => {
                w.raw(&[0; 8][1..size]);
                w.u8(self.random.u8(..3));
            }
            Kind::Uuid => w.uuid(Uuid::ZERO),
            Kind::Text => w.string(&self.text(), flexible).unwrap(),
            Kind::Bytes => w.bytes(b"\0\x09any bytes", flexible).unwrap(),
            Kind::Struct(fields) => self.fields(fields, w),
            Kind::Array(element) => {
                let count = self.random.usize(..3);
                w.length(count, flexible, "array").unwrap();
                (0..count).for_each(|_| self.value(*element, field, w));
            }
        }
    }

    fn text(&mut self) -> String {
        let count = self.random.usize(..8);
        let letters = (0..count).map(|_| self.random.choice(['a', 'b', '-', '.', 'é']).unwrap());
        // Names of dots alone are never valid, and stay as they are.
        std::iter::once('x').chain(letters).collect()
    }
}

/// A request of the API.
pub(crate) fn made_request(api: ApiKey, version: i16, seed: u64) -> RequestFrame {
    let mut bytes = BytesMut::zeroed(4);
    frame::write_request_header(&mut bytes, api, version, 5, None).unwrap();
    bytes.extend_from_slice(&Maker::body(&names::request_layout(api), version, seed));
    RequestFrame::parse(bytes.into(), true).unwrap()
}

/// The body of an answer of the API.
pub(crate) fn made_response_body(api: ApiKey, version: i16, seed: u64) -> Vec<u8> {
    Maker::body(&names::response_layout(api), version, seed).to_vec()
}

/// An answer of the API with this body.
pub(crate) fn made_response(api: ApiKey, version: i16, body: &[u8]) -> ResponseFrame {
    let mut bytes = vec![0, 0, 0, 0, 0, 0, 0, 5];
    if api.response_header_version(version) > 0 {
        bytes.push(0);
    }
    bytes.extend_from_slice(body);
    ResponseFrame::parse(bytes, api, version).unwrap()
}

/// All names in a message.
pub(crate) fn names_in(layout: &Layout, version: i16, body: &[u8]) -> Vec<String> {
    struct Gather(Vec<String>);
    impl Visitor for Gather {
        fn text(&mut self, entity: Entity, text: &str, _: &mut String) -> Verdict {
            if entity != Entity::Explanation {
                self.0.push(text.to_owned());
            }
            Verdict::Keep
        }
    }
    let mut gather = Gather(Vec::new());
    names::visit(layout, version, body, &mut gather).unwrap();
    gather.0
}

/// Waits for what a filter does.
pub(crate) fn run<T>(work: FilterFuture<T>) -> Result<T, FilterError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}
