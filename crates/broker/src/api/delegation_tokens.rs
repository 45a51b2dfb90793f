//! CreateDelegationToken 1-3, RenewDelegationToken 1-2, ExpireDelegationToken 1-2 and
//! DescribeDelegationToken 1-3 (KIP-48): refused as by a Kafka without
//! `delegation.token.secret.key`.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{
    CreateDelegationTokenRequest, CreateDelegationTokenResponse, DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse, ExpireDelegationTokenRequest, ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest, RenewDelegationTokenResponse,
};

use crate::call::{Call, Outcome};

/// Kafka's kind of principal.
const USER: &str = "User";

/// From this version on a token may be for another than who asks for it.
const REQUESTER_SINCE: i16 = 3;

pub(crate) fn create(
    call: &Call<'_>,
    _: CreateDelegationTokenRequest,
) -> Outcome<CreateDelegationTokenResponse> {
    let (kind, name) = (USER.to_owned(), call.client.user());
    let (requester_kind, requester_name) = match call.version {
        REQUESTER_SINCE.. => (kind.clone(), name.clone()),
        _ => Default::default(),
    };
    Outcome::Now(CreateDelegationTokenResponse {
        error_code: refusal(call).into(),
        principal_type: kind,
        principal_name: name,
        token_requester_principal_type: requester_kind,
        token_requester_principal_name: requester_name,
        issue_timestamp_ms: -1,
        expiry_timestamp_ms: -1,
        max_timestamp_ms: -1,
        ..CreateDelegationTokenResponse::default()
    })
}

pub(crate) fn renew(
    call: &Call<'_>,
    _: RenewDelegationTokenRequest,
) -> Outcome<RenewDelegationTokenResponse> {
    Outcome::Now(RenewDelegationTokenResponse {
        error_code: refusal(call).into(),
        expiry_timestamp_ms: -1,
        ..RenewDelegationTokenResponse::default()
    })
}

pub(crate) fn expire(
    call: &Call<'_>,
    _: ExpireDelegationTokenRequest,
) -> Outcome<ExpireDelegationTokenResponse> {
    Outcome::Now(ExpireDelegationTokenResponse {
        error_code: refusal(call).into(),
        expiry_timestamp_ms: -1,
        ..ExpireDelegationTokenResponse::default()
    })
}

pub(crate) fn describe(
    call: &Call<'_>,
    _: DescribeDelegationTokenRequest,
) -> Outcome<DescribeDelegationTokenResponse> {
    Outcome::Now(DescribeDelegationTokenResponse {
        error_code: refusal(call).into(),
        ..DescribeDelegationTokenResponse::default()
    })
}

/// As in Kafka, tokens are for clients who have proven who they are; those learn that there are
/// none.
fn refusal(call: &Call<'_>) -> ErrorCode {
    let has_proven = call.listener.sasl.is_some()
        || (call.listener.tls.is_some() && !call.client.is_anonymous());
    match has_proven {
        true => ErrorCode::DelegationTokenAuthDisabled,
        false => ErrorCode::DelegationTokenRequestNotAllowed,
    }
}
