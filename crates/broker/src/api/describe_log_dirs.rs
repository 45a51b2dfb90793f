//! DescribeLogDirs, versions 1-5 (KIP-113, KIP-827 sizes of the disk, `isCordoned`).
//!
//! There is one directory, the journal's, and it holds every partition: the size of a partition is
//! the bytes of its batches, its replica never lags behind and never moves to another directory.
//! Kafka lists every partition, since each has files from its creation on. Here one that was never
//! written has neither files nor memory. It is listed with size 0 where it is asked for by name,
//! or where all are asked for and the topics have at most [`LISTED_MAX`] partitions together;
//! beyond that only partitions that have a log are listed.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use moldau_protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};

use crate::authorizer::Operation;
use crate::call::{Call, Outcome};
use crate::catalog::Topic;
use crate::logs::TopicId;
use crate::state::State;

/// Partitions that are listed whether they were written or not. Tools that look for each
/// partition of a topic are pointed at clusters of this size; a list of a million empty ones would
/// take 25 MB to say nothing.
const LISTED_MAX: u64 = 100_000;

pub(crate) fn handle(
    call: &Call<'_>,
    request: DescribeLogDirsRequest,
) -> Outcome<DescribeLogDirsResponse> {
    if !call.rights.allow_on_cluster(Operation::Describe) {
        return Outcome::Now(DescribeLogDirsResponse {
            error_code: ErrorCode::ClusterAuthorizationFailed.into(),
            ..DescribeLogDirsResponse::default()
        });
    }
    let state = call.state;
    let topics = match &request.topics {
        None => all_topics(state),
        Some(asked) => {
            let found = asked.iter().filter_map(|asked| {
                let topic = state.catalog.by_name(&asked.topic)?;
                let partitions = asked.partitions.iter().filter(|index| topic.has(**index));
                Some(described(&topic, partitions.copied()))
            });
            found.filter(|topic| !topic.partitions.is_empty()).collect()
        }
    };
    let data_dir = &state.config.data_dir;
    let mut result = DescribeLogDirsResult {
        log_dir: std::path::absolute(data_dir).unwrap_or(data_dir.clone()).display().to_string(),
        topics,
        total_bytes: -1,
        usable_bytes: -1,
        ..DescribeLogDirsResult::default()
    };
    match rustix::fs::statvfs(data_dir) {
        Ok(disk) => {
            let bytes = |blocks: u64| signed(blocks.saturating_mul(disk.f_frsize));
            result.total_bytes = bytes(disk.f_blocks);
            result.usable_bytes = bytes(disk.f_bavail);
        }
        Err(error) => {
            tracing::warn!(%error, "the disk size is unknown");
            result.error_code = ErrorCode::KafkaStorageError.into();
        }
    }
    Outcome::Now(DescribeLogDirsResponse {
        results: vec![result],
        ..DescribeLogDirsResponse::default()
    })
}

fn all_topics(state: &State) -> Vec<DescribeLogDirsTopic> {
    let topics = state.catalog.all();
    let partitions_count: u64 = topics.iter().map(|topic| u64::from(topic.partitions)).sum();
    let described = topics.iter().map(|topic| {
        if partitions_count <= LISTED_MAX {
            let count = usize::try_from(topic.partitions).unwrap_or(usize::MAX);
            return described(topic, (0..).take(count));
        }
        let journal = state.storage.journal();
        let logs = journal.map(|it| it.logs_of(TopicId(topic.id.into_bytes()))).unwrap_or_default();
        let mut written: Vec<i32> = logs.iter().map(|log| log.id().partition).collect();
        written.retain(|index| topic.has(*index));
        written.sort_unstable();
        described(topic, written.into_iter())
    });
    described.filter(|topic| !topic.partitions.is_empty()).collect()
}

fn described(topic: &Topic, partitions: impl Iterator<Item = i32>) -> DescribeLogDirsTopic {
    let partitions = partitions.map(|partition_index| DescribeLogDirsPartition {
        partition_index,
        partition_size: topic.logs.find(partition_index).map_or(0, |log| signed(log.bytes())),
        ..DescribeLogDirsPartition::default()
    });
    DescribeLogDirsTopic {
        name: topic.name.to_string(),
        partitions: partitions.collect(),
        ..DescribeLogDirsTopic::default()
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}
