//! Rewrites answers: the addresses of brokers, and the offered versions.
//!
//! A change is a splice of the frame. Only the part that changes is decoded; what stands around it,
//! records and the topics of a Metadata answer among it, stays as it came.

use std::net::IpAddr;
use std::ops::Range;
use std::sync::Arc;

use bytes::BytesMut;
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::metadata_response::MetadataResponseBroker;
use moldau_protocol::messages::produce_response::NodeEndpoint;
use moldau_protocol::messages::{
    ApiKey, ApiVersionsResponse, DescribeClusterResponse, FindCoordinatorResponse, MetadataResponse,
};
use moldau_protocol::walk::{RunKind, Walker};
use moldau_protocol::{DecodeError, EncodeError, ErrorCode, Message, Reader, VersionRange, Writer};

use crate::chain::{Chain, SessionChain};
use crate::cluster::Cluster;
use crate::error::Malformed;
use crate::filter::Direction;
use crate::metrics::add;
use crate::shape::{self, Field};

/// Length and correlation id.
const HEAD_BYTES: usize = 8;

/// The tag of NodeEndpoints in Produce and Fetch answers (KIP-951).
const NODE_ENDPOINTS_TAG: u32 = 0;

/// The first versions of Produce and Fetch answers with NodeEndpoints.
const PRODUCE_ENDPOINTS_FROM: i16 = 10;
const FETCH_ENDPOINTS_FROM: i16 = 16;

/// SaslHandshake 0 is followed by frames that are no Kafka requests, which are not relayed; with 1
/// they are SaslAuthenticate requests (KIP-152).
const SASL_HANDSHAKE_VERSION_MIN: i16 = 1;

/// Bytes of a frame, and what takes their place.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Splice {
    pub(crate) range: Range<usize>,
    pub(crate) with: BytesMut,
}

/// How an answer is to be treated.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Treatment {
    /// Passed on unread.
    Opaque,
    /// Held until it is whole, then rewritten.
    Whole,
    /// As [`Treatment::Whole`] if it is small, else walked while it passes.
    Walked,
}

/// How the answers of an API in a version are treated; versions that are not known are not offered
/// to clients, and pass unread when a client uses them all the same.
pub(crate) fn treatment(api: ApiKey, version: i16) -> Treatment {
    let known = api.valid_versions().contains(version);
    match api {
        ApiKey::ApiVersions => Treatment::Whole,
        _ if !known => Treatment::Opaque,
        ApiKey::Metadata | ApiKey::FindCoordinator | ApiKey::DescribeCluster => Treatment::Whole,
        ApiKey::ShareFetch | ApiKey::ShareAcknowledge => Treatment::Whole,
        ApiKey::Produce if version >= PRODUCE_ENDPOINTS_FROM => Treatment::Whole,
        ApiKey::Fetch if version >= FETCH_ENDPOINTS_FROM => Treatment::Walked,
        _ => Treatment::Opaque,
    }
}

/// Rewrites the answers of one session.
#[derive(Debug)]
pub(crate) struct Rewriter {
    cluster: Arc<Cluster>,
    /// The address by which the client came.
    local: IpAddr,
}

/// Why an answer cannot be rewritten.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("the response ends within a field")]
    Unfinished,
}

impl Rewriter {
    /// For a client that came by the address `local`.
    pub(crate) fn new(cluster: Arc<Cluster>, local: IpAddr) -> Self {
        Self { cluster, local }
    }

    pub(crate) fn cluster(&self) -> &Arc<Cluster> {
        &self.cluster
    }

    /// What is to be changed in `frame`, an answer with its length and header, if anything.
    pub(crate) fn rewrite(
        &self,
        filters: &SessionChain,
        api: ApiKey,
        version: i16,
        frame: &[u8],
    ) -> Result<Option<Splice>, Malformed> {
        self.splice(filters, api, version, frame)
            .map_err(|refusal| self.unreadable(api, version, &refusal))
    }

    /// Changes to make in a Metadata answer whose first part is `bytes`; `None` if that does not
    /// hold the brokers yet. What follows the brokers need not be held.
    pub(crate) fn rewrite_metadata(
        &self,
        filters: &SessionChain,
        version: i16,
        bytes: &[u8],
    ) -> Result<Option<Splice>, Malformed> {
        match self.splice(filters, ApiKey::Metadata, version, bytes) {
            Err(Refusal::Decode(DecodeError::Truncated { .. })) => Ok(None),
            Err(refusal) => Err(self.unreadable(ApiKey::Metadata, version, &refusal)),
            Ok(splice) => Ok(splice),
        }
    }

    fn unreadable(&self, api: ApiKey, version: i16, refusal: &Refusal) -> Malformed {
        self.cluster.log_unreadable(api, version, refusal);
        Malformed("failed to read a response with addresses")
    }

    fn splice(
        &self,
        filters: &SessionChain,
        api: ApiKey,
        version: i16,
        frame: &[u8],
    ) -> Result<Option<Splice>, Refusal> {
        let mut reader = Reader::new(frame);
        reader.take(HEAD_BYTES, "header")?;
        if api.response_header_version(version) > 0 {
            reader.skip_tagged_fields()?;
        }
        match api {
            ApiKey::Metadata => self.metadata(reader, version),
            ApiKey::FindCoordinator => self.find_coordinator(reader, version),
            ApiKey::DescribeCluster => self.describe_cluster(reader, version),
            ApiKey::ApiVersions => api_versions(filters, reader, version),
            ApiKey::Produce if version >= 13 => self.produce(reader, shape::PRODUCE_BY_ID),
            ApiKey::Produce => self.produce(reader, shape::PRODUCE_BY_NAME),
            ApiKey::Fetch => self.fetch(filters, frame, version),
            ApiKey::ShareFetch => self.trailing(reader, shape::SHARE_FETCH),
            ApiKey::ShareAcknowledge if version >= 2 => {
                self.trailing(reader, shape::SHARE_ACKNOWLEDGE_WITH_LOCK)
            }
            ApiKey::ShareAcknowledge => self.trailing(reader, shape::SHARE_ACKNOWLEDGE),
            _ => Ok(None),
        }
    }

    /// The brokers stand before the topics, which may be many and are not read.
    fn metadata(&self, mut reader: Reader<'_>, version: i16) -> Result<Option<Splice>, Refusal> {
        let flexible = version >= MetadataResponse::FLEXIBLE_FROM;
        if version >= 3 {
            reader.i32()?;
        }
        let start = reader.position();
        let mut brokers: Vec<MetadataResponseBroker> = reader.array(version, flexible)?;
        // Ports are assigned in the order of the ids, not of the answer.
        brokers.sort_by_key(|broker| broker.node_id);
        brokers.retain_mut(|broker| {
            self.redirect(broker.node_id, &mut broker.host, &mut broker.port).is_some()
        });
        let mut with = BytesMut::new();
        Writer::new(&mut with).array(&brokers, version, flexible)?;
        Ok(Some(Splice { range: start..reader.position(), with }))
    }

    fn find_coordinator(
        &self,
        reader: Reader<'_>,
        version: i16,
    ) -> Result<Option<Splice>, Refusal> {
        let unavailable = i16::from(ErrorCode::CoordinatorNotAvailable);
        replace_body(reader, version, |answer: &mut FindCoordinatorResponse| {
            if version < 4 && answer.error_code == 0 {
                let FindCoordinatorResponse { node_id, host, port, .. } = &mut *answer;
                if self.redirect(*node_id, host, port).is_none() {
                    answer.error_code = unavailable;
                    (answer.node_id, answer.port) = (-1, -1);
                    answer.host.clear();
                }
            }
            for found in answer.coordinators.iter_mut().filter(|found| found.error_code == 0) {
                if self.redirect(found.node_id, &mut found.host, &mut found.port).is_none() {
                    found.error_code = unavailable;
                    (found.node_id, found.port) = (-1, -1);
                    found.host.clear();
                }
            }
        })
    }

    fn describe_cluster(
        &self,
        reader: Reader<'_>,
        version: i16,
    ) -> Result<Option<Splice>, Refusal> {
        replace_body(reader, version, |answer: &mut DescribeClusterResponse| {
            answer.brokers.sort_by_key(|broker| broker.broker_id);
            answer.brokers.retain_mut(|broker| {
                self.redirect(broker.broker_id, &mut broker.host, &mut broker.port).is_some()
            });
        })
    }

    /// NodeEndpoints among the tagged fields at the end.
    fn produce(&self, mut reader: Reader<'_>, body: &[Field]) -> Result<Option<Splice>, Refusal> {
        shape::skip(&mut reader, body)?;
        let mut splice = None;
        for _ in 0..reader.unsigned_varint()? {
            if reader.unsigned_varint()? == NODE_ENDPOINTS_TAG {
                splice = Some(self.tagged_endpoints(&mut reader)?);
            } else {
                let size = reader.unsigned_varint()?;
                reader.take(usize::try_from(size).unwrap_or(usize::MAX), "tagged field")?;
            }
        }
        reader.finish()?;
        Ok(splice)
    }

    /// NodeEndpoints where the walker finds their tag.
    fn fetch(
        &self,
        filters: &SessionChain,
        frame: &[u8],
        version: i16,
    ) -> Result<Option<Splice>, Refusal> {
        let mut rest = frame.get(HEAD_BYTES..).unwrap_or_default();
        let mut walker = Walker::fetch_response(version, rest.len())?;
        let mut splice = None;
        while !rest.is_empty() {
            let run = walker.next_run(rest)?;
            rest = rest.get(run.len..).unwrap_or_default();
            if run.kind == RunKind::NodeEndpointsTag {
                let mut reader = Reader::new(frame);
                reader.take(frame.len() - rest.len(), "frame")?;
                splice = Some(self.tagged_endpoints(&mut reader)?);
            }
        }
        if !walker.is_complete() {
            return Err(Refusal::Unfinished);
        }
        if !filters.claims(ApiKey::Fetch.key(), Direction::Response) {
            add(&self.cluster.metrics().record_bytes_passed, walker.record_bytes());
        }
        Ok(splice)
    }

    /// Reads the size and the content behind a tag.
    fn tagged_endpoints(&self, reader: &mut Reader<'_>) -> Result<Splice, Refusal> {
        let start = reader.position();
        let size = reader.unsigned_varint()?;
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        let mut content = Reader::new(reader.take(size, "tagged field")?);
        let endpoints = self.endpoints(&mut content)?;
        content.finish()?;
        let mut with = BytesMut::new();
        let size = u32::try_from(endpoints.len()).unwrap_or(u32::MAX);
        Writer::new(&mut with).unsigned_varint(size);
        with.extend_from_slice(&endpoints);
        Ok(Splice { range: start..reader.position(), with })
    }

    /// NodeEndpoints as the last field.
    fn trailing(&self, mut reader: Reader<'_>, body: &[Field]) -> Result<Option<Splice>, Refusal> {
        shape::skip(&mut reader, body)?;
        let start = reader.position();
        if reader.rest().first() == Some(&1) {
            // An empty array; the most common case by far.
            return Ok(None);
        }
        let with = self.endpoints(&mut reader)?;
        let range = start..reader.position();
        reader.skip_tagged_fields()?;
        reader.finish()?;
        Ok(Some(Splice { range, with }))
    }

    /// Reads an array of endpoints, whose form is the same wherever they occur, and writes it anew.
    fn endpoints(&self, reader: &mut Reader<'_>) -> Result<BytesMut, Refusal> {
        let version = PRODUCE_ENDPOINTS_FROM;
        let mut endpoints: Vec<NodeEndpoint> = reader.array(version, true)?;
        endpoints.retain_mut(|node| {
            self.redirect(node.node_id, &mut node.host, &mut node.port).is_some()
        });
        let mut with = BytesMut::new();
        Writer::new(&mut with).array(&endpoints, version, true)?;
        Ok(with)
    }

    /// Puts the proxy's address in the place of a broker's. `None` if there is no port for it: the
    /// broker must then be left out.
    fn redirect(&self, node_id: i32, host: &mut String, port: &mut i32) -> Option<()> {
        let advertised = self.cluster.advertise(node_id, host, *port, self.local)?;
        (*host, *port) = (advertised.0, i32::from(advertised.1));
        Some(())
    }
}

fn api_versions(
    filters: &SessionChain,
    reader: Reader<'_>,
    version: i16,
) -> Result<Option<Splice>, Refusal> {
    let unsupported = i16::from(ErrorCode::UnsupportedVersion).to_be_bytes();
    // A broker that does not serve the version of the request answers in version 0 (KIP-511).
    let version = if reader.rest().starts_with(&unsupported) { 0 } else { version };
    replace_body(reader, version, |answer: &mut ApiVersionsResponse| {
        offer(answer, filters.chain());
    })
}

/// Offers only what is known here: a later version of any API may carry addresses, as Produce did
/// from version 10 on, and filters must be able to read what they claim.
pub(crate) fn offer(answer: &mut ApiVersionsResponse, chain: &Chain) {
    answer.api_keys.retain_mut(|offered| {
        let directions = [Direction::Request, Direction::Response];
        let filtered = directions.iter().any(|it| chain.claims(offered.api_key, *it));
        chain.admits(offered.api_key) && intersect(offered, filtered).is_some()
    });
}

/// Decodes the rest of the frame, has it changed and encodes it again.
fn replace_body<M: Message>(
    reader: Reader<'_>,
    version: i16,
    change: impl FnOnce(&mut M),
) -> Result<Option<Splice>, Refusal> {
    let mut reader = reader;
    let start = reader.position();
    let mut answer = M::decode(&mut reader, version)?;
    reader.finish()?;
    change(&mut answer);
    let mut with = BytesMut::new();
    answer.encode(&mut Writer::new(&mut with), version)?;
    Ok(Some(Splice { range: start..reader.position(), with }))
}

/// The versions of an API that are both offered by the cluster and relayed here.
fn intersect(offered: &mut ApiVersion, filtered: bool) -> Option<()> {
    let api = ApiKey::try_from(offered.api_key).ok()?;
    let min = match api {
        ApiKey::SaslHandshake => SASL_HANDSHAKE_VERSION_MIN,
        _ if filtered => api.valid_versions().min,
        // What is older than the versions known here carries no addresses of brokers but in the
        // APIs that are known from version 0 on.
        _ => 0,
    };
    let relayed = VersionRange::new(min, api.valid_versions().max);
    let both = VersionRange::new(offered.min_version, offered.max_version).intersection(relayed)?;
    (offered.min_version, offered.max_version) = (both.min, both.max);
    Some(())
}
