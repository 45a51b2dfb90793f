//! DescribeTransactions 0, ListTransactions 0-2 (KIP-664, KIP-994 durations, KIP-1152 patterns),
//! DescribeProducers 0.
//!
//! With a journal transactions end in one step, so that Kafka's states in between do not arise. A
//! duration finds open transactions alone. The coordinator has one epoch.

use std::collections::HashSet;
use std::sync::Arc;

use moldau_coordinator::transactions::TransactionDescription;
use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_producers_request::TopicRequest;
use moldau_protocol::messages::describe_producers_response::{
    PartitionResponse, ProducerState, TopicResponse,
};
use moldau_protocol::messages::describe_transactions_response::{TopicData, TransactionState};
use moldau_protocol::messages::{
    DescribeProducersRequest, DescribeProducersResponse, DescribeTransactionsRequest,
    DescribeTransactionsResponse, ListTransactionsRequest, ListTransactionsResponse,
    list_transactions_response,
};
use regex::RegexBuilder;

use crate::api::transactions::once_written;
use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::error::read_code;
use crate::partition::{self, Partition};
use crate::state::State;

/// The names of all states that Kafka has.
const STATES: [&str; 8] = [
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
];

/// Memory that a pattern may take once compiled.
const PATTERN_BYTES_MAX: usize = 1 << 20;

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeTransactionsRequest,
) -> Outcome<DescribeTransactionsResponse> {
    // Each is described once, so that an answer is bounded by the transactions that exist.
    let mut seen = HashSet::new();
    let ids = request.transactional_ids.into_iter().filter(|id| seen.insert(id.clone()));
    let states = ids.map(|id| {
        if !call.rights.allow(ResourceType::TransactionalId, Operation::Describe, &id) {
            return refused(id, ErrorCode::TransactionalIdAuthorizationFailed);
        }
        if id.is_empty() {
            return refused(id, ErrorCode::InvalidRequest);
        }
        if let Err(refusal) = call.state.storage.coordinate() {
            return refused(id, refusal.code);
        }
        match call.state.transactions.view(|transactions| transactions.describe(&id)) {
            Some(known) => described(call, id, known),
            None => refused(id, ErrorCode::TransactionalIdNotFound),
        }
    });
    let response = DescribeTransactionsResponse {
        transaction_states: states.collect(),
        ..DescribeTransactionsResponse::default()
    };
    let refused = |code: ErrorCode, response: DescribeTransactionsResponse| {
        let refused = response.transaction_states.into_iter();
        let refused = refused.map(|state| refused_state(state.transactional_id, code));
        DescribeTransactionsResponse {
            transaction_states: refused.collect(),
            ..DescribeTransactionsResponse::default()
        }
    };
    once_written(call, call.state.transactions.written(), move |durable| match durable {
        Ok(()) => response,
        Err(code) => refused(code, response),
    })
}

fn refused_state(id: String, code: ErrorCode) -> TransactionState {
    refused(id, code)
}

fn described(call: &Call<'_>, id: String, known: TransactionDescription) -> TransactionState {
    let topics = known.partitions.into_iter().filter_map(|(topic, partitions)| {
        let topic = call.state.catalog.by_id(topic)?;
        let shows = call.rights.show(ResourceType::Topic, Operation::Describe, &topic.name);
        let topic = topic.name.to_string();
        shows.then(|| TopicData { topic, partitions, ..TopicData::default() })
    });
    TransactionState {
        transactional_id: id,
        transaction_state: known.state.name().to_owned(),
        transaction_timeout_ms: known.timeout_ms,
        transaction_start_time_ms: known.start_ms,
        producer_id: known.producer.id,
        producer_epoch: known.producer.epoch,
        topics: topics.collect(),
        ..TransactionState::default()
    }
}

fn refused(id: String, code: ErrorCode) -> TransactionState {
    TransactionState {
        error_code: code.into(),
        transactional_id: id,
        ..TransactionState::default()
    }
}

pub(crate) fn list(
    call: &Call<'_>,
    request: ListTransactionsRequest,
) -> Outcome<ListTransactionsResponse> {
    let pattern = request.transactional_id_pattern.filter(|pattern| !pattern.is_empty());
    let pattern = pattern.map(|pattern| {
        let mut whole = RegexBuilder::new(&format!("^(?:{pattern})$"));
        whole.size_limit(PATTERN_BYTES_MAX).dfa_size_limit(PATTERN_BYTES_MAX).build()
    });
    let Ok(pattern) = pattern.transpose() else {
        return Outcome::Now(ListTransactionsResponse {
            error_code: ErrorCode::InvalidRegularExpression.into(),
            ..ListTransactionsResponse::default()
        });
    };
    let is_known = |state: &String| STATES.contains(&state.as_str());
    let (states, unknown): (Vec<_>, Vec<_>) = request.state_filters.into_iter().partition(is_known);
    let producers: HashSet<i64> = request.producer_id_filters.into_iter().collect();
    let is_wanted = |id: &str, known: &TransactionDescription| {
        let runs_ms = call.now_ms.saturating_sub(known.start_ms);
        let has_state = states.iter().any(|state| state == known.state.name());
        // A filter that names unknown states alone finds nothing.
        ((states.is_empty() && unknown.is_empty()) || has_state)
            && (producers.is_empty() || producers.contains(&known.producer.id))
            && (request.duration_filter < 0
                || (known.is_open() && runs_ms > request.duration_filter))
            && pattern.as_ref().is_none_or(|pattern| pattern.is_match(id))
    };
    // Each broker of a cluster is asked, and the coordinator tells.
    let coordinates = call.state.storage.decides();
    let mut found: Vec<_> = call.state.transactions.view(|transactions| {
        let wanted =
            transactions.list().filter(|_| coordinates).filter(|(id, known)| is_wanted(id, known));
        wanted.map(|(id, known)| (id.to_owned(), known)).collect()
    });
    let shows = |id: &str| call.rights.show(ResourceType::TransactionalId, Operation::Describe, id);
    found.retain(|(id, _)| shows(id));
    let states =
        found.into_iter().map(|(id, known)| list_transactions_response::TransactionState {
            transactional_id: id,
            producer_id: known.producer.id,
            transaction_state: known.state.name().to_owned(),
            ..list_transactions_response::TransactionState::default()
        });
    let response = ListTransactionsResponse {
        unknown_state_filters: unknown,
        transaction_states: states.collect(),
        ..ListTransactionsResponse::default()
    };
    once_written(call, call.state.transactions.written(), move |durable| match durable {
        Ok(()) => response,
        Err(code) => ListTransactionsResponse {
            error_code: code.into(),
            ..ListTransactionsResponse::default()
        },
    })
}

pub(crate) fn producers(
    call: &Call<'_>,
    request: DescribeProducersRequest,
) -> Outcome<DescribeProducersResponse> {
    let mut seen = HashSet::new();
    let transactional: HashSet<i64> = call
        .state
        .transactions
        .view(|transactions| transactions.list().map(|(_, known)| known.producer.id).collect());
    let (state, rights) = (Arc::clone(call.state), call.rights.clone());
    Outcome::Later(Box::pin(async move {
        let mut topics = Vec::with_capacity(request.topics.len());
        for TopicRequest { name, partition_indexes, .. } in request.topics {
            let is_allowed = rights.allow(ResourceType::Topic, Operation::Read, &name);
            // Each partition is described once, so that an answer is bounded by what exists.
            let first = partition_indexes.into_iter().filter(|at| seen.insert((name.clone(), *at)));
            let mut partitions = Vec::new();
            for index in first {
                partitions.push(match is_allowed {
                    true if name.is_empty() => {
                        producers_refused(index, ErrorCode::InvalidTopicException)
                    }
                    true => producers_of(&state, &name, index, &transactional).await,
                    false => producers_refused(index, ErrorCode::TopicAuthorizationFailed),
                });
            }
            topics.push(TopicResponse { name, partitions, ..TopicResponse::default() });
        }
        DescribeProducersResponse { topics, ..DescribeProducersResponse::default() }
    }))
}

async fn producers_of(
    state: &Arc<State>,
    topic: &str,
    index: i32,
    transactional: &HashSet<i64>,
) -> PartitionResponse {
    let found = match partition::by_name(state, topic, index, -1) {
        Ok(Partition::Written(log)) => match log.producers().await {
            Ok(found) => found,
            Err(error) => return producers_refused(index, read_code(&error)),
        },
        Ok(Partition::Unwritten { .. }) => Vec::new(),
        Err(code) => return producers_refused(index, code),
    };
    let active = found.into_iter().map(|producer| ProducerState {
        producer_id: producer.id,
        producer_epoch: producer.epoch.into(),
        last_sequence: producer.last_sequence,
        last_timestamp: producer.last_timestamp,
        // As in Kafka, a producer without transactions has none.
        coordinator_epoch: if transactional.contains(&producer.id) { 0 } else { -1 },
        current_txn_start_offset: producer.transaction_start.unwrap_or(-1),
        ..ProducerState::default()
    });
    PartitionResponse {
        partition_index: index,
        active_producers: active.collect(),
        ..PartitionResponse::default()
    }
}

fn producers_refused(index: i32, code: ErrorCode) -> PartitionResponse {
    PartitionResponse {
        partition_index: index,
        error_code: code.into(),
        ..PartitionResponse::default()
    }
}
