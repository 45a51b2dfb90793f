//! Requests whose parts are topics, groups or transactional ids by name, each with an error of its
//! own.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::*;

use super::{Decide, Named, Partial, join_groups, take};

/// Kafka's message for a denied request.
const REFUSED: &str = "Authorization failed.";

/// Implements [`Partial`] for a request that is a list, answered by a list.
macro_rules! list {
    ($request:ident.$asked:ident => $response:ident.$told:ident,
     |$of:ident| $named:expr, |$item:ident, $code:ident| $tell:expr) => {
        impl Partial for $request {
            fn take_refused(&mut self, _: i16, decide: &Decide<'_>) -> Option<$response> {
                let $told = take(&mut self.$asked, |$of| decide($named), |$item, $code| $tell);
                (!$told.is_empty()).then(|| $response { $told, ..Default::default() })
            }

            fn has_left(&self, _: i16) -> bool {
                !self.$asked.is_empty()
            }

            fn join(answer: &mut $response, mut refused: $response) {
                answer.$told.append(&mut refused.$told);
            }
        }
    };
}

list!(
    ListOffsetsRequest.topics => ListOffsetsResponse.topics,
    |of| Named::Topic(&of.name),
    |item, error_code| list_offsets_response::ListOffsetsTopicResponse {
        partitions: each(item.partitions, |of| list_offsets_response::ListOffsetsPartitionResponse {
            partition_index: of.partition_index,
            error_code,
            ..Default::default()
        }),
        name: item.name,
        ..Default::default()
    }
);

list!(
    OffsetForLeaderEpochRequest.topics => OffsetForLeaderEpochResponse.topics,
    |of| Named::Topic(&of.topic),
    |item, error_code| offset_for_leader_epoch_response::OffsetForLeaderTopicResult {
        partitions: each(item.partitions, |of| offset_for_leader_epoch_response::EpochEndOffset {
            partition: of.partition,
            error_code,
            ..Default::default()
        }),
        topic: item.topic,
        ..Default::default()
    }
);

list!(
    DeleteRecordsRequest.topics => DeleteRecordsResponse.topics,
    |of| Named::Topic(&of.name),
    |item, error_code| delete_records_response::DeleteRecordsTopicResult {
        partitions: each(item.partitions, |of| {
            delete_records_response::DeleteRecordsPartitionResult {
                partition_index: of.partition_index,
                low_watermark: -1,
                error_code,
                ..Default::default()
            }
        }),
        name: item.name,
        ..Default::default()
    }
);

list!(
    CreateTopicsRequest.topics => CreateTopicsResponse.topics,
    |of| Named::Topic(&of.name),
    |item, error_code| create_topics_response::CreatableTopicResult {
        name: item.name,
        error_code,
        error_message: Some(REFUSED.to_owned()),
        ..Default::default()
    }
);

list!(
    CreatePartitionsRequest.topics => CreatePartitionsResponse.results,
    |of| Named::Topic(&of.name),
    |item, error_code| create_partitions_response::CreatePartitionsTopicResult {
        name: item.name,
        error_code,
        ..Default::default()
    }
);

list!(
    OffsetDeleteRequest.topics => OffsetDeleteResponse.topics,
    |of| Named::Topic(&of.name),
    |item, error_code| offset_delete_response::OffsetDeleteResponseTopic {
        partitions: each(item.partitions, |of| {
            offset_delete_response::OffsetDeleteResponsePartition {
                partition_index: of.partition_index,
                error_code,
            }
        }),
        name: item.name,
    }
);

list!(
    DescribeProducersRequest.topics => DescribeProducersResponse.topics,
    |of| Named::Topic(&of.name),
    |item, error_code| describe_producers_response::TopicResponse {
        partitions: each(item.partition_indexes, |partition_index| {
            describe_producers_response::PartitionResponse {
                partition_index,
                error_code,
                ..Default::default()
            }
        }),
        name: item.name,
        ..Default::default()
    }
);

list!(
    DescribeTopicPartitionsRequest.topics => DescribeTopicPartitionsResponse.topics,
    |of| Named::Topic(&of.name),
    |item, error_code| describe_topic_partitions_response::DescribeTopicPartitionsResponseTopic {
        name: Some(item.name),
        error_code,
        ..Default::default()
    }
);

list!(
    DeleteGroupsRequest.groups_names => DeleteGroupsResponse.results,
    |of| Named::Group(of),
    |group_id, error_code| delete_groups_response::DeletableGroupResult {
        group_id,
        error_code,
        ..Default::default()
    }
);

/// Implements [`Partial`] for a request that describes groups.
macro_rules! describe {
    ($($request:ident.$asked:ident => $response:ident, $told:path;)*) => {
        $(list!(
            $request.$asked => $response.groups,
            |of| Named::Group(of),
            |group_id, error_code| {
                use $told as Told;
                Told { group_id, error_code, ..Default::default() }
            }
        );)*
    };
}

describe! {
    DescribeGroupsRequest.groups
        => DescribeGroupsResponse, describe_groups_response::DescribedGroup;
    ConsumerGroupDescribeRequest.group_ids
        => ConsumerGroupDescribeResponse, consumer_group_describe_response::DescribedGroup;
    ShareGroupDescribeRequest.group_ids
        => ShareGroupDescribeResponse, share_group_describe_response::DescribedGroup;
    StreamsGroupDescribeRequest.group_ids
        => StreamsGroupDescribeResponse, streams_group_describe_response::DescribedGroup;
}

list!(
    DescribeTransactionsRequest.transactional_ids
        => DescribeTransactionsResponse.transaction_states,
    |of| Named::TransactionalId(of),
    |transactional_id, error_code| describe_transactions_response::TransactionState {
        transactional_id,
        error_code,
        ..Default::default()
    }
);

list!(
    AlterShareGroupOffsetsRequest.topics => AlterShareGroupOffsetsResponse.responses,
    |of| Named::Topic(&of.topic_name),
    |item, error_code| alter_share_group_offsets_response::AlterShareGroupOffsetsResponseTopic {
        partitions: each(item.partitions, |of| {
            alter_share_group_offsets_response::AlterShareGroupOffsetsResponsePartition {
                partition_index: of.partition_index,
                error_code,
                ..Default::default()
            }
        }),
        topic_name: item.topic_name,
        ..Default::default()
    }
);

list!(
    DeleteShareGroupOffsetsRequest.topics => DeleteShareGroupOffsetsResponse.responses,
    |of| Named::Topic(&of.topic_name),
    |item, error_code| delete_share_group_offsets_response::DeleteShareGroupOffsetsResponseTopic {
        topic_name: item.topic_name,
        error_code,
        ..Default::default()
    }
);

/// A group that is refused is left out with all its topics; of others, single topics may be.
impl Partial for DescribeShareGroupOffsetsRequest {
    fn take_refused(
        &mut self,
        _: i16,
        decide: &Decide<'_>,
    ) -> Option<DescribeShareGroupOffsetsResponse> {
        use describe_share_group_offsets_request::DescribeShareGroupOffsetsRequestTopic as Asked;
        use describe_share_group_offsets_response::{
            DescribeShareGroupOffsetsResponseGroup as Group,
            DescribeShareGroupOffsetsResponsePartition as Partition,
            DescribeShareGroupOffsetsResponseTopic as Topic,
        };
        let mut groups = take(
            &mut self.groups,
            |of| decide(Named::Group(&of.group_id)),
            |of, error_code| Group { group_id: of.group_id, error_code, ..Default::default() },
        );
        for group in &mut self.groups {
            let Some(wanted) = &mut group.topics else { continue };
            let tell = |of: Asked, error_code| Topic {
                partitions: each(of.partitions, |partition_index| Partition {
                    partition_index,
                    error_code,
                    ..Default::default()
                }),
                topic_name: of.topic_name,
                ..Default::default()
            };
            let topics = take(wanted, |of| decide(Named::Topic(&of.topic_name)), tell);
            if !topics.is_empty() {
                let group_id = group.group_id.clone();
                groups.push(Group { group_id, topics, ..Default::default() });
            }
        }
        (!groups.is_empty())
            .then(|| DescribeShareGroupOffsetsResponse { groups, ..Default::default() })
    }

    fn has_left(&self, _: i16) -> bool {
        !self.groups.is_empty()
    }

    fn join(
        answer: &mut DescribeShareGroupOffsetsResponse,
        refused: DescribeShareGroupOffsetsResponse,
    ) {
        join_groups(
            &mut answer.groups,
            refused.groups,
            |group| &group.group_id,
            |told, mut refused| {
                if told.error_code == 0 {
                    told.topics.append(&mut refused.topics);
                }
            },
        );
    }
}

/// The first version of AddPartitionsToTxn with several transactions, which brokers use (KIP-890).
pub(super) const BATCHES_SINCE: i16 = 4;

/// All topics take part or none does: those beside a refused one are not attempted.
impl Partial for AddPartitionsToTxnRequest {
    fn take_refused(
        &mut self,
        version: i16,
        decide: &Decide<'_>,
    ) -> Option<AddPartitionsToTxnResponse> {
        use add_partitions_to_txn_response::{
            AddPartitionsToTxnPartitionResult as Partition, AddPartitionsToTxnTopicResult as Topic,
        };
        if version >= BATCHES_SINCE {
            return None;
        }
        let topics = std::mem::take(&mut self.v3_and_below_topics);
        if topics.iter().all(|of| decide(Named::Topic(&of.name)).is_none()) {
            self.v3_and_below_topics = topics;
            return None;
        }
        let results_by_topic_v3_and_below = each(topics, |of| {
            let code = decide(Named::Topic(&of.name)).unwrap_or(ErrorCode::OperationNotAttempted);
            Topic {
                results_by_partition: each(of.partitions, |partition_index| Partition {
                    partition_index,
                    partition_error_code: code.into(),
                    ..Default::default()
                }),
                name: of.name,
                ..Default::default()
            }
        });
        Some(AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() })
    }

    fn has_left(&self, _: i16) -> bool {
        !self.v3_and_below_topics.is_empty() || !self.transactions.is_empty()
    }

    fn join(_: &mut AddPartitionsToTxnResponse, _: AddPartitionsToTxnResponse) {}
}

/// The first version of FindCoordinator that asks for several (KIP-699).
const COORDINATOR_KEYS_SINCE: i16 = 4;

/// Kafka's numbers for what a coordinator is asked for.
const GROUP_KEY: i8 = 0;
const TRANSACTION_KEY: i8 = 1;

impl Partial for FindCoordinatorRequest {
    fn take_refused(
        &mut self,
        version: i16,
        decide: &Decide<'_>,
    ) -> Option<FindCoordinatorResponse> {
        use find_coordinator_response::Coordinator;
        let decide = |key: &String| match self.key_type {
            GROUP_KEY => decide(Named::Group(key)),
            TRANSACTION_KEY => decide(Named::TransactionalId(key)),
            _ => decide(Named::Cluster),
        };
        if version < COORDINATOR_KEYS_SINCE {
            let error_code = decide(&self.key)?.into();
            self.key.clear();
            let (node_id, port) = (-1, -1);
            return Some(FindCoordinatorResponse {
                error_code,
                node_id,
                port,
                ..Default::default()
            });
        }
        let coordinators = take(&mut self.coordinator_keys, decide, |key, error_code| {
            Coordinator { key, node_id: -1, port: -1, error_code, ..Default::default() }
        });
        (!coordinators.is_empty())
            .then(|| FindCoordinatorResponse { coordinators, ..Default::default() })
    }

    fn has_left(&self, version: i16) -> bool {
        version >= COORDINATOR_KEYS_SINCE && !self.coordinator_keys.is_empty()
    }

    fn join(answer: &mut FindCoordinatorResponse, mut refused: FindCoordinatorResponse) {
        answer.coordinators.append(&mut refused.coordinators);
    }
}

fn each<T, R>(items: Vec<T>, tell: impl Fn(T) -> R) -> Vec<R> {
    items.into_iter().map(tell).collect()
}
