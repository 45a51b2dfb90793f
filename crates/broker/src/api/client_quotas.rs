//! DescribeClientQuotas, versions 0-1 (KIP-546): there are none, nor can any be set.
//!
//! `kafka-configs --entity-type users --describe` asks for them before it asks for credentials.

use moldau_protocol::messages::{DescribeClientQuotasRequest, DescribeClientQuotasResponse};

use crate::authorizer::{Operation, ResourceType};
use crate::call::{Call, Outcome};
use crate::error::denied;

pub(crate) fn describe(
    call: &Call<'_>,
    _request: DescribeClientQuotasRequest,
) -> Outcome<DescribeClientQuotasResponse> {
    Outcome::Now(match call.rights.allow_on_cluster(Operation::DescribeConfigs) {
        true => DescribeClientQuotasResponse {
            entries: Some(Vec::new()),
            ..DescribeClientQuotasResponse::default()
        },
        false => {
            let refusal = denied(ResourceType::Cluster);
            DescribeClientQuotasResponse {
                error_code: refusal.code.into(),
                error_message: Some(refusal.message),
                entries: None,
                ..DescribeClientQuotasResponse::default()
            }
        }
    })
}
