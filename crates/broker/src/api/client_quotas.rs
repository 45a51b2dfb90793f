//! DescribeClientQuotas, versions 0-1 (KIP-546): there are none, nor can any be set.
//!
//! `kafka-configs --entity-type users --describe` asks for them before it asks for credentials.

use std::collections::HashSet;

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::describe_client_quotas_request::ComponentData;
use moldau_protocol::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::error::{Refusal, denied};

/// Kafka's kinds of entities.
const USER: &str = "user";
const CLIENT: &str = "client-id";
const ADDRESS: &str = "ip";

/// Kafka's numbers of matches: of a name, of the default entity, of any that has a name.
const MATCH_EXACT: i8 = 0;
const MATCH_DEFAULT: i8 = 1;
const MATCH_ANY: i8 = 2;

pub(crate) fn describe(
    call: &Call<'_>,
    request: DescribeClientQuotasRequest,
) -> Outcome<DescribeClientQuotasResponse> {
    let checked = match call.rights.allow_on_cluster(Operation::DescribeConfigs) {
        true => check(&request.components),
        false => Err(denied(ResourceType::Cluster)),
    };
    Outcome::Now(match checked {
        Ok(()) => DescribeClientQuotasResponse {
            entries: Some(Vec::new()),
            ..DescribeClientQuotasResponse::default()
        },
        Err(refusal) => DescribeClientQuotasResponse {
            error_code: refusal.code.into(),
            error_message: Some(refusal.message),
            entries: None,
            ..DescribeClientQuotasResponse::default()
        },
    })
}

/// A filter names each kind of entity once, and has a name where it asks for one.
fn check(components: &[ComponentData]) -> Result<(), Refusal> {
    let invalid = |message: &str| Err(Refusal::new(ErrorCode::InvalidRequest, message));
    let mut seen = HashSet::new();
    for component in components {
        let kind = component.entity_type.as_str();
        if kind.is_empty() {
            return invalid("a kind of entity is not empty");
        }
        if !seen.insert(kind) {
            return invalid("a kind of entity stands in a filter once");
        }
        match (component.match_type, &component.r#match) {
            (MATCH_EXACT, None) => return invalid("an exact match has a name"),
            (MATCH_DEFAULT | MATCH_ANY, Some(_)) => {
                return invalid("only an exact match has a name");
            }
            (MATCH_EXACT | MATCH_DEFAULT | MATCH_ANY, _) => {}
            _ => return invalid("there is no such match"),
        }
        if ![USER, CLIENT, ADDRESS].contains(&kind) {
            let message = "entities are users, clients and addresses";
            return Err(Refusal::new(ErrorCode::UnsupportedVersion, message));
        }
    }
    match seen.contains(ADDRESS) && seen.len() > 1 {
        true => invalid("an address stands alone"),
        false => Ok(()),
    }
}
