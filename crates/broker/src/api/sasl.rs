//! SaslHandshake 0-1 (KIP-43), SaslAuthenticate 0-2 (KIP-152, KIP-368), where there is nothing to
//! authenticate: on listeners without SASL.
//!
//! On listeners with SASL the connection answers them itself, before the table of `dispatch`, with
//! the bare tokens that follow SaslHandshake 0. That version cannot repeat an authentication, which
//! is answered with `UNSUPPORTED_VERSION`; Kafka lets it, though only SaslAuthenticate says when
//! to.

use moldau_protocol::ErrorCode;
use moldau_protocol::messages::{
    SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest, SaslHandshakeResponse,
};

use crate::call::{Call, Outcome};

pub(crate) fn handshake(
    _call: &Call<'_>,
    _request: SaslHandshakeRequest,
) -> Outcome<SaslHandshakeResponse> {
    let error_code = ErrorCode::IllegalSaslState.into();
    Outcome::Now(SaslHandshakeResponse { error_code, ..SaslHandshakeResponse::default() })
}

pub(crate) fn authenticate(
    _call: &Call<'_>,
    _request: SaslAuthenticateRequest,
) -> Outcome<SaslAuthenticateResponse> {
    Outcome::Now(SaslAuthenticateResponse {
        error_code: ErrorCode::IllegalSaslState.into(),
        error_message: Some("this listener has no SASL".to_owned()),
        ..SaslAuthenticateResponse::default()
    })
}
