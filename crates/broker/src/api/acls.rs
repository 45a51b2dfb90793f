//! DescribeAcls 1-3, CreateAcls 1-3, DeleteAcls 1-3 (KIP-140, KIP-290 prefixes).
//!
//! Where authorization is off they are answered with `SECURITY_DISABLED`, whatever the journal
//! keeps. Kafka closes the connection of a client that sends numbers without a meaning; here it is
//! told `INVALID_REQUEST`.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::create_acls_request::AclCreation;
use moldau_protocol::messages::create_acls_response::AclCreationResult;
use moldau_protocol::messages::delete_acls_request::DeleteAclsFilter;
use moldau_protocol::messages::delete_acls_response::{
    DeleteAclsFilterResult, DeleteAclsMatchingAcl,
};
use moldau_protocol::messages::describe_acls_response::{AclDescription, DescribeAclsResource};
use moldau_protocol::messages::{
    CreateAclsRequest, CreateAclsResponse, DeleteAclsRequest, DeleteAclsResponse,
    DescribeAclsRequest, DescribeAclsResponse,
};

use crate::authorizer::{
    AccessControlEntry, Acl, AclFilter, CLUSTER_NAME, FilterFields, Operation, PatternType,
    Permission, ResourcePattern, ResourceType,
};
use crate::call::{Call, DURABLE_WITHIN, Outcome, once_durable};
use crate::error::{Refusal, denied};
use crate::security::Matching;

/// Most changes of one request, as in Kafka: they become one record.
const CHANGES_MAX: usize = 10_000;

/// Checks whether the client may see or change ACLs, and whether there are any to be seen.
fn check(call: &Call<'_>, operation: Operation) -> Result<(), Refusal> {
    if !call.rights.allow_on_cluster(operation) {
        return Err(denied(ResourceType::Cluster));
    }
    match call.state.security.is_enforced() {
        true => Ok(()),
        false => {
            let message = "No Authorizer is configured on the broker";
            Err(Refusal::new(ErrorCode::SecurityDisabled, message))
        }
    }
}

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeAclsRequest,
) -> Outcome<DescribeAclsResponse> {
    let fields = FilterFields {
        resource_type: request.resource_type_filter,
        pattern_type: request.pattern_type_filter,
        name: request.resource_name_filter,
        principal: request.principal_filter,
        host: request.host_filter,
        operation: request.operation,
        permission: request.permission_type,
    };
    let found = check(call, Operation::Describe).and_then(|()| filter(fields));
    Outcome::Now(match found {
        Ok(filter) => DescribeAclsResponse {
            resources: call
                .state
                .security
                .matching_acls(&filter)
                .into_iter()
                .map(described)
                .collect(),
            ..DescribeAclsResponse::default()
        },
        Err(refusal) => DescribeAclsResponse {
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            ..DescribeAclsResponse::default()
        },
    })
}

fn filter(fields: FilterFields) -> Result<AclFilter, Refusal> {
    let unknown = || Refusal::new(ErrorCode::InvalidRequest, "the filter has unknown codes");
    AclFilter::of(fields).ok_or_else(unknown)
}

fn described(
    (pattern, entries): (ResourcePattern, Vec<AccessControlEntry>),
) -> DescribeAclsResource {
    let acls = entries.into_iter().map(|entry| AclDescription {
        principal: entry.principal,
        host: entry.host,
        operation: entry.operation.code(),
        permission_type: entry.permission.code(),
        ..AclDescription::default()
    });
    DescribeAclsResource {
        resource_type: pattern.resource_type.code(),
        resource_name: pattern.name,
        pattern_type: pattern.pattern_type.code(),
        acls: acls.collect(),
        ..DescribeAclsResource::default()
    }
}

pub(crate) fn create(call: &Call<'_>, request: CreateAclsRequest) -> Outcome<CreateAclsResponse> {
    let respond = |results: Vec<Result<(), Refusal>>| {
        let results = results.into_iter().map(created).collect();
        CreateAclsResponse { results, ..CreateAclsResponse::default() }
    };
    let count = request.creations.len();
    let checked = check(call, Operation::Alter).and_then(|()| check_count(count));
    if let Err(refusal) = checked {
        return Outcome::Now(respond(vec![Err(refusal); count]));
    }
    let acls: Vec<_> = request.creations.into_iter().map(acl).collect();
    let valid = acls.iter().filter_map(|acl| acl.as_ref().ok().cloned()).collect();
    let written = call.state.security.create_acls(&call.state.storage, valid);
    let results = acls.into_iter().map(|acl| match (acl, &written) {
        (Ok(_), Err(refusal)) => Err(refusal.clone()),
        (acl, _) => acl.map(|_| ()),
    });
    let results: Vec<_> = results.collect();
    match written {
        Ok(Some(lsn)) => once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
            Ok(()) => respond(results),
            Err(refusal) => respond(vec![Err(refusal); count]),
        }),
        Ok(None) | Err(_) => Outcome::Now(respond(results)),
    }
}

fn created(result: Result<(), Refusal>) -> AclCreationResult {
    match result {
        Ok(()) => AclCreationResult::default(),
        Err(refusal) => AclCreationResult {
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            ..AclCreationResult::default()
        },
    }
}

/// The ACL that a client wants.
fn acl(creation: AclCreation) -> Result<Acl, Refusal> {
    let invalid = |message: &str| Refusal::new(ErrorCode::InvalidRequest, message);
    let unknown = |what: &str| invalid(&format!("invalid {what} of an ACL"));
    let pattern = ResourcePattern {
        resource_type: ResourceType::of(creation.resource_type)
            .ok_or_else(|| unknown("resource type"))?,
        pattern_type: PatternType::of(creation.resource_pattern_type)
            .ok_or_else(|| unknown("pattern type"))?,
        name: creation.resource_name,
    };
    let entry = AccessControlEntry {
        principal: creation.principal,
        host: creation.host,
        operation: Operation::of(creation.operation).ok_or_else(|| unknown("operation"))?,
        permission: Permission::of(creation.permission_type)
            .ok_or_else(|| unknown("permission"))?,
    };
    if pattern.resource_type == ResourceType::Cluster && pattern.name != CLUSTER_NAME {
        return Err(invalid("the name of the cluster resource is kafka-cluster"));
    }
    if pattern.name.is_empty() {
        return Err(invalid("the name of the resource is empty"));
    }
    if entry.host.is_empty() {
        return Err(invalid("a host is an address, or * for any"));
    }
    if !entry.principal.contains(':') {
        return Err(invalid("the principal is not TYPE:NAME, such as User:alice"));
    }
    Ok(Acl { pattern, entry })
}

pub(crate) fn delete(call: &Call<'_>, request: DeleteAclsRequest) -> Outcome<DeleteAclsResponse> {
    let respond =
        |filter_results| DeleteAclsResponse { filter_results, ..DeleteAclsResponse::default() };
    let count = request.filters.len();
    let refuse = move |refusal: &Refusal| {
        respond((0..count).map(|_| not_filtered(refusal.clone())).collect())
    };
    let checked = check(call, Operation::Alter).and_then(|()| check_count(count));
    // As in Kafka, whose words for deletions are fewer.
    let checked = checked.map_err(|refusal| match refusal.code {
        ErrorCode::SecurityDisabled => Refusal::new(refusal.code, "No Authorizer is configured."),
        _ => refusal,
    });
    if let Err(refusal) = checked {
        return Outcome::Now(refuse(&refusal));
    }
    let filters: Vec<_> = request.filters.into_iter().map(deletion).collect();
    let valid: Vec<_> = filters.iter().filter_map(|filter| filter.as_ref().ok().cloned()).collect();
    let (found, written) = match call.state.security.delete_acls(&call.state.storage, &valid) {
        Ok(deleted) => deleted,
        Err(refusal) => return Outcome::Now(refuse(&refusal)),
    };
    let mut found = found.into_iter();
    let results = filters.into_iter().map(|filter| match filter {
        Ok(_) => deleted(found.next().unwrap_or_default()),
        Err(refusal) => not_filtered(refusal),
    });
    let response = respond(results.collect());
    let Some(lsn) = written else { return Outcome::Now(response) };
    once_durable(call, lsn, DURABLE_WITHIN, move |durable| match durable {
        Ok(()) => response,
        Err(refusal) => refuse(&refusal),
    })
}

fn deletion(asked: DeleteAclsFilter) -> Result<AclFilter, Refusal> {
    filter(FilterFields {
        resource_type: asked.resource_type_filter,
        pattern_type: asked.pattern_type_filter,
        name: asked.resource_name_filter,
        principal: asked.principal_filter,
        host: asked.host_filter,
        operation: asked.operation,
        permission: asked.permission_type,
    })
}

fn deleted(found: Matching) -> DeleteAclsFilterResult {
    let matching_acls = found.into_iter().flat_map(|(pattern, entries)| {
        entries.into_iter().map(move |entry| DeleteAclsMatchingAcl {
            resource_type: pattern.resource_type.code(),
            resource_name: pattern.name.clone(),
            pattern_type: pattern.pattern_type.code(),
            principal: entry.principal,
            host: entry.host,
            operation: entry.operation.code(),
            permission_type: entry.permission.code(),
            error_message: None,
            ..DeleteAclsMatchingAcl::default()
        })
    });
    let matching_acls = matching_acls.collect();
    DeleteAclsFilterResult {
        error_message: None,
        matching_acls,
        ..DeleteAclsFilterResult::default()
    }
}

fn not_filtered(refusal: Refusal) -> DeleteAclsFilterResult {
    DeleteAclsFilterResult {
        error_code: refusal.code.into(),
        error_message: Some(refusal.message),
        ..DeleteAclsFilterResult::default()
    }
}

fn check_count(count: usize) -> Result<(), Refusal> {
    match count <= CHANGES_MAX {
        true => Ok(()),
        false => {
            let message = format!("a request can change at most {CHANGES_MAX} ACLs");
            Err(Refusal::new(ErrorCode::PolicyViolation, message))
        }
    }
}
