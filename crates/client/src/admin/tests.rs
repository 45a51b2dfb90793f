//! Two brokers in this process; one is the controller.

use std::cell::Cell;
use std::future::Ready;
use std::rc::Rc;

use bytes::BytesMut;
use moldau_net::{ConnectionLimits, Metrics, Reply, Response, Service, Shutdown, serve_connection};
use moldau_protocol::frame::encode_response;
use moldau_protocol::messages::api_versions_response::ApiVersion;
use moldau_protocol::messages::create_topics_response::CreatableTopicResult;
use moldau_protocol::messages::metadata_response::MetadataResponseBroker;
use moldau_protocol::messages::{ApiVersionsResponse, MetadataResponse};
use moldau_protocol::{ApiKey, Message};
use tokio::net::TcpListener;
use tokio::task::{LocalSet, spawn_local};

use super::*;
use crate::ClusterOptions;

/// Both brokers know each other's port, and the second is the controller.
#[derive(Clone)]
struct Broker {
    node: i32,
    ports: [u16; 2],
    /// Questions for metadata; the first answer knows only the broker that was the controller
    /// before.
    asked: Rc<Cell<u32>>,
    /// How often each broker was asked to create a topic.
    created: Rc<[Cell<u32>; 2]>,
}

impl Service for Broker {
    type Future = Ready<Response>;

    fn call(&mut self, frame: &[u8]) -> Reply<Self::Future> {
        let field = |at: usize| i16::from_be_bytes([frame[at], frame[at + 1]]);
        let (key, version) = (field(0), field(2));
        let id = i32::from_be_bytes(frame[4..8].try_into().unwrap());
        Reply::Ready(match ApiKey::try_from(key).unwrap() {
            ApiKey::ApiVersions => framed(ApiKey::ApiVersions, version, id, &api_versions()),
            ApiKey::Metadata => framed(ApiKey::Metadata, version, id, &self.metadata()),
            api => framed(api, version, id, &self.create()),
        })
    }
}

impl Broker {
    fn metadata(&self) -> MetadataResponse {
        self.asked.set(self.asked.get() + 1);
        let broker = |(node_id, port): (i32, u16)| MetadataResponseBroker {
            node_id,
            host: "127.0.0.1".into(),
            port: port.into(),
            ..Default::default()
        };
        let (known, controller_id) = if self.asked.get() == 1 { (1, 1) } else { (2, 2) };
        MetadataResponse {
            brokers: (1..).zip(self.ports).take(known).map(broker).collect(),
            controller_id,
            ..Default::default()
        }
    }

    fn create(&self) -> CreateTopicsResponse {
        let count = &self.created[usize::from(self.node == 2)];
        count.set(count.get() + 1);
        let code = if self.node == 2 { ErrorCode::None } else { ErrorCode::NotController };
        let topic = CreatableTopicResult {
            name: "orders".into(),
            error_code: code.code(),
            ..Default::default()
        };
        CreateTopicsResponse { topics: vec![topic], ..Default::default() }
    }
}

fn api_versions() -> ApiVersionsResponse {
    let api = |key: ApiKey| ApiVersion {
        api_key: key.key(),
        min_version: 0,
        max_version: 4,
        ..Default::default()
    };
    let keys = [ApiKey::ApiVersions, ApiKey::Metadata, ApiKey::CreateTopics];
    ApiVersionsResponse { api_keys: keys.map(api).to_vec(), ..Default::default() }
}

fn framed<M: Message>(api: ApiKey, version: i16, id: i32, message: &M) -> Response {
    let mut frame = BytesMut::new();
    encode_response(&mut frame, api, version, id, message).unwrap();
    frame.freeze().into()
}

#[test]
fn a_controller_that_is_none_any_more_is_followed_by_its_successor() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    LocalSet::new().block_on(&runtime, async {
        let first = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let second = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let ports = [&first, &second].map(|listener| listener.local_addr().unwrap().port());
        let (asked, created) = (Rc::default(), Rc::<[Cell<u32>; 2]>::default());
        for (node, listener) in (1..).zip([first, second]) {
            let created = Rc::clone(&created);
            let broker = Broker { node, ports, asked: Rc::clone(&asked), created };
            spawn_local(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let metrics = Arc::new(Metrics::default());
                    let limits = ConnectionLimits::default();
                    let broker = broker.clone();
                    spawn_local(async move {
                        serve_connection(stream, broker, limits, &Shutdown::new(), metrics).await
                    });
                }
            });
        }
        let bootstrap = [format!("127.0.0.1:{}", ports[0])];
        let cluster = Cluster::connect(&bootstrap, ClusterOptions::default()).await.unwrap();
        let specs = [TopicSpec::new("orders", 1)];
        let answers = Admin::new(&cluster).create_topics(&specs, false).await.unwrap();
        assert!(answers.iter().all(Result::is_ok), "{answers:?}");
        assert_eq!([created[0].get(), created[1].get()], [1, 1]);
    });
}
