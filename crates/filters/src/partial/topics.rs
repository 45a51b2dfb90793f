//! What describes and changes topics and other things that have a configuration.

use moldau_protocol::messages::{
    AlterConfigsRequest, AlterConfigsResponse, DeleteTopicsRequest, DeleteTopicsResponse,
    DescribeConfigsRequest, DescribeConfigsResponse, IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse, MetadataRequest, MetadataResponse, alter_configs_response,
    delete_topics_request::DeleteTopicState, delete_topics_response::DeletableTopicResult,
    describe_configs_response, incremental_alter_configs_response,
    metadata_request::MetadataRequestTopic, metadata_response::MetadataResponseTopic,
};

use super::{Decide, Named, Partial, by_name_or_id, take};

/// The first version of Metadata in which no topic is asked for by an empty list.
const METADATA_OF_NOTHING_SINCE: i16 = 1;

/// The first version of DeleteTopics with topics that have either a name or an id (KIP-516).
const DELETE_IDS_SINCE: i16 = 6;

impl Partial for MetadataRequest {
    fn take_refused(&mut self, _: i16, decide: &Decide<'_>) -> Option<MetadataResponse> {
        let named =
            |of: &MetadataRequestTopic| by_name_or_id(decide, of.name.as_ref(), of.topic_id);
        let tell = |of: MetadataRequestTopic, error_code| MetadataResponseTopic {
            error_code,
            name: of.name,
            topic_id: of.topic_id,
            ..Default::default()
        };
        let topics = take(self.topics.as_mut()?, named, tell);
        (!topics.is_empty()).then(|| MetadataResponse { topics, ..Default::default() })
    }

    /// The brokers are asked for in any case.
    fn has_left(&self, version: i16) -> bool {
        version >= METADATA_OF_NOTHING_SINCE
            || self.topics.as_ref().is_none_or(|topics| !topics.is_empty())
    }

    fn join(answer: &mut MetadataResponse, mut refused: MetadataResponse) {
        answer.topics.append(&mut refused.topics);
    }
}

impl Partial for DeleteTopicsRequest {
    fn take_refused(&mut self, version: i16, decide: &Decide<'_>) -> Option<DeleteTopicsResponse> {
        let tell = |name, topic_id, error_code| DeletableTopicResult {
            name,
            topic_id,
            error_code,
            ..Default::default()
        };
        let responses = if version >= DELETE_IDS_SINCE {
            let named =
                |of: &DeleteTopicState| by_name_or_id(decide, of.name.as_ref(), of.topic_id);
            take(&mut self.topics, named, |of, code| tell(of.name, of.topic_id, code))
        } else {
            let named = |name: &String| decide(Named::Topic(name));
            take(&mut self.topic_names, named, |name, code| {
                tell(Some(name), Default::default(), code)
            })
        };
        (!responses.is_empty()).then(|| DeleteTopicsResponse { responses, ..Default::default() })
    }

    fn has_left(&self, _: i16) -> bool {
        !self.topics.is_empty() || !self.topic_names.is_empty()
    }

    fn join(answer: &mut DeleteTopicsResponse, mut refused: DeleteTopicsResponse) {
        answer.responses.append(&mut refused.responses);
    }
}

/// Implements [`Partial`] for a request about configurations.
macro_rules! configurations {
    ($request:ident, $response:ident, $results:ident, $result:path) => {
        impl Partial for $request {
            fn take_refused(&mut self, _: i16, decide: &Decide<'_>) -> Option<$response> {
                let $results = take(
                    &mut self.resources,
                    |of| decide(Named::Resource(of.resource_type, &of.resource_name)),
                    |of, error_code| {
                        use $result as Told;
                        Told {
                            error_code,
                            resource_type: of.resource_type,
                            resource_name: of.resource_name,
                            ..Default::default()
                        }
                    },
                );
                (!$results.is_empty()).then(|| $response { $results, ..Default::default() })
            }

            fn has_left(&self, _: i16) -> bool {
                !self.resources.is_empty()
            }

            fn join(answer: &mut $response, mut refused: $response) {
                answer.$results.append(&mut refused.$results);
            }
        }
    };
}

configurations!(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    results,
    describe_configs_response::DescribeConfigsResult
);
configurations!(
    AlterConfigsRequest,
    AlterConfigsResponse,
    responses,
    alter_configs_response::AlterConfigsResourceResponse
);
configurations!(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    responses,
    incremental_alter_configs_response::AlterConfigsResourceResponse
);
