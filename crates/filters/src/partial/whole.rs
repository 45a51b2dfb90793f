//! Requests that are refused as a whole by one error.

use moldau_protocol::messages::*;
use moldau_protocol::{ApiKey, DecodeError, ErrorCode};
use moldau_proxy::{FilterError, RequestFrame, ResponseFrame};

use super::named::BATCHES_SINCE;

/// Answers with the one error that an answer has.
macro_rules! with_error {
    ($request:ident, $code:ident, $($api:ident $response:ident,)*) => {
        match $request.api_key() {
            $(ApiKey::$api => {
                let error_code = $code.into();
                Some($request.respond(&$response { error_code, ..Default::default() })?)
            })*
            _ => by_entry($request, $code)?,
        }
    };
}

/// The answer to a request that has an error of its own.
pub(super) fn refuse(
    request: &RequestFrame,
    code: ErrorCode,
) -> Result<Option<ResponseFrame>, FilterError> {
    Ok(with_error! {
        request, code,
        JoinGroup JoinGroupResponse,
        SyncGroup SyncGroupResponse,
        Heartbeat HeartbeatResponse,
        LeaveGroup LeaveGroupResponse,
        InitProducerId InitProducerIdResponse,
        AddOffsetsToTxn AddOffsetsToTxnResponse,
        EndTxn EndTxnResponse,
        OffsetDelete OffsetDeleteResponse,
        ConsumerGroupHeartbeat ConsumerGroupHeartbeatResponse,
        ShareGroupHeartbeat ShareGroupHeartbeatResponse,
        StreamsGroupHeartbeat StreamsGroupHeartbeatResponse,
        StreamsGroupTopologyDescriptionUpdate StreamsGroupTopologyDescriptionUpdateResponse,
        ShareFetch ShareFetchResponse,
        ShareAcknowledge ShareAcknowledgeResponse,
        AlterShareGroupOffsets AlterShareGroupOffsetsResponse,
        DeleteShareGroupOffsets DeleteShareGroupOffsetsResponse,
        DescribeAcls DescribeAclsResponse,
        AlterPartitionReassignments AlterPartitionReassignmentsResponse,
        ListPartitionReassignments ListPartitionReassignmentsResponse,
        DescribeClientQuotas DescribeClientQuotasResponse,
        DescribeUserScramCredentials DescribeUserScramCredentialsResponse,
        DescribeQuorum DescribeQuorumResponse,
        UpdateFeatures UpdateFeaturesResponse,
        UnregisterBroker UnregisterBrokerResponse,
        UnregisterController UnregisterControllerResponse,
        ListConfigResources ListConfigResourcesResponse,
        AddRaftVoter AddRaftVoterResponse,
        RemoveRaftVoter RemoveRaftVoterResponse,
    })
}

/// Administration whose answers have an error for each entry of the request.
fn by_entry(request: &RequestFrame, code: ErrorCode) -> Result<Option<ResponseFrame>, FilterError> {
    let error_code = code.into();
    Ok(Some(match request.api_key() {
        ApiKey::CreateAcls => {
            let asked: CreateAclsRequest = request.decode()?;
            let result =
                create_acls_response::AclCreationResult { error_code, ..Default::default() };
            let results = vec![result; asked.creations.len()];
            request.respond(&CreateAclsResponse { results, ..Default::default() })?
        }
        ApiKey::DeleteAcls => {
            let asked: DeleteAclsRequest = request.decode()?;
            let result =
                delete_acls_response::DeleteAclsFilterResult { error_code, ..Default::default() };
            let filter_results = vec![result; asked.filters.len()];
            request.respond(&DeleteAclsResponse { filter_results, ..Default::default() })?
        }
        // Before version 3 an answer without directories is what tells of it.
        ApiKey::DescribeLogDirs => {
            request.respond(&DescribeLogDirsResponse { error_code, ..Default::default() })?
        }
        // The versions for brokers, with several transactions.
        ApiKey::AddPartitionsToTxn if request.api_version() >= BATCHES_SINCE => {
            request.respond(&AddPartitionsToTxnResponse { error_code, ..Default::default() })?
        }
        ApiKey::ElectLeaders => request.respond(&elect_leaders(request, error_code)?)?,
        ApiKey::AlterReplicaLogDirs => {
            request.respond(&alter_replica_log_dirs(request, error_code)?)?
        }
        ApiKey::AlterClientQuotas => request.respond(&alter_client_quotas(request, error_code)?)?,
        ApiKey::AlterUserScramCredentials => {
            request.respond(&alter_scram_credentials(request, error_code)?)?
        }
        _ => return Ok(None),
    }))
}

fn elect_leaders(
    request: &RequestFrame,
    error_code: i16,
) -> Result<ElectLeadersResponse, DecodeError> {
    use elect_leaders_response::{PartitionResult, ReplicaElectionResult};
    let asked: ElectLeadersRequest = request.decode()?;
    let results = asked.topic_partitions.into_iter().flatten().map(|of| {
        let partitions = of.partitions.iter().map(|index| PartitionResult {
            partition_id: *index,
            error_code,
            ..Default::default()
        });
        ReplicaElectionResult {
            partition_result: partitions.collect(),
            topic: of.topic,
            ..Default::default()
        }
    });
    Ok(ElectLeadersResponse {
        replica_election_results: results.collect(),
        // Version 0 has an error for each partition only.
        error_code: if request.api_version() > 0 { error_code } else { 0 },
        ..Default::default()
    })
}

fn alter_replica_log_dirs(
    request: &RequestFrame,
    error_code: i16,
) -> Result<AlterReplicaLogDirsResponse, DecodeError> {
    use alter_replica_log_dirs_response::{
        AlterReplicaLogDirPartitionResult, AlterReplicaLogDirTopicResult,
    };
    let asked: AlterReplicaLogDirsRequest = request.decode()?;
    let results = asked.dirs.into_iter().flat_map(|dir| dir.topics).map(|of| {
        let partitions = of.partitions.iter().map(|index| AlterReplicaLogDirPartitionResult {
            partition_index: *index,
            error_code,
            ..Default::default()
        });
        AlterReplicaLogDirTopicResult {
            partitions: partitions.collect(),
            topic_name: of.name,
            ..Default::default()
        }
    });
    Ok(AlterReplicaLogDirsResponse { results: results.collect(), ..Default::default() })
}

fn alter_client_quotas(
    request: &RequestFrame,
    error_code: i16,
) -> Result<AlterClientQuotasResponse, DecodeError> {
    use alter_client_quotas_response::{EntityData, EntryData};
    let asked: AlterClientQuotasRequest = request.decode()?;
    let entries = asked.entries.into_iter().map(|entry| {
        let entity = entry.entity.into_iter().map(|of| EntityData {
            entity_type: of.entity_type,
            entity_name: of.entity_name,
            ..Default::default()
        });
        EntryData { error_code, entity: entity.collect(), ..Default::default() }
    });
    Ok(AlterClientQuotasResponse { entries: entries.collect(), ..Default::default() })
}

fn alter_scram_credentials(
    request: &RequestFrame,
    error_code: i16,
) -> Result<AlterUserScramCredentialsResponse, DecodeError> {
    use alter_user_scram_credentials_response::AlterUserScramCredentialsResult;
    let asked: AlterUserScramCredentialsRequest = request.decode()?;
    let deleted = asked.deletions.into_iter().map(|of| of.name);
    let users = deleted.chain(asked.upsertions.into_iter().map(|of| of.name));
    let results = users.map(|user| AlterUserScramCredentialsResult {
        user,
        error_code,
        ..Default::default()
    });
    Ok(AlterUserScramCredentialsResponse { results: results.collect(), ..Default::default() })
}
